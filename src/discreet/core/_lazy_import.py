"""Public names that are imported when they are first used.

A package keeps a stub beside its ``__init__.py``: the one list of its names and where each lives,
for editors, for type checkers and for this module. So a package costs next to nothing to import,
and what is never asked for (databases, statistics, drawing) is never loaded.
"""

from __future__ import annotations

import ast
import pkgutil
import sys
from collections.abc import Callable
from importlib import import_module


def lazy_exports(
    package: str,
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """What a package's ``__getattr__``, ``__dir__`` and ``__all__`` are, as its stub says."""
    stub = pkgutil.get_data(package, "__init__.pyi")
    assert stub is not None  # noqa: S101 - only loaders that keep no files return none
    places = export_locations(stub)

    def find(name: str) -> object:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        place, called = places[name]
        # A name that its package does not hold is a module of that package; ours are all modules.
        held = None if place == package else getattr(import_module(place), called, None)
        found = import_module(f"{place}.{called}") if held is None else held
        setattr(sys.modules[package], name, found)
        return found

    def names() -> list[str]:
        return [*sorted(places), *(["__version__"] if package == "discreet" else [])]

    return find, names, sorted(places)


def export_locations(stub: bytes) -> dict[str, tuple[str, str]]:
    """Each public name of a stub, its module and what it is called there."""
    return {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in ast.parse(stub).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }

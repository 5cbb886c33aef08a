"""Differential privacy for people who must publish.

A name is imported when it is first used: ``import discreet`` costs next to nothing, and what is
never asked for (databases, statistics, drawing) is never loaded. `__init__.pyi` says where each
name lives, for editors, for type checkers and for this file.
"""

import ast
import pkgutil
from importlib import import_module

__version__ = "0.1.0"


def _homes() -> dict[str, tuple[str, str]]:
    """Each public name, its module and what it is called there, as the stub says."""
    stub = pkgutil.get_data(__name__, "__init__.pyi")
    if stub is None:  # pragma: no cover - a loader that keeps no files
        raise ImportError("discreet is not installed completely: __init__.pyi is missing.")
    return {
        alias.asname or alias.name: (node.module or "", alias.name)
        for node in ast.parse(stub).body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


_HOMES = _homes()
__all__ = sorted(_HOMES)  # noqa: PLE0605 - the stub writes them out


def __getattr__(name: str) -> object:
    """Import a public name on first use, and keep it."""
    if name not in _HOMES:
        raise AttributeError(f"module 'discreet' has no attribute {name!r}")
    place, called = _HOMES[name]
    # A name that its package does not hold is a module of that package; ours are all modules.
    held = None if place == __name__ else getattr(import_module(place), called, None)
    found = import_module(f"{place}.{called}") if held is None else held
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

"""Which test files exercise a name: those that import it, or else what calls it."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeAlias

from benchmarks.environments import ROOT
from discreet.core._lazy_import import export_locations

Scope: TypeAlias = ast.Module | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
SOURCE = ROOT / "src"
STUDIES = ROOT / "research" / "src"
_FAR = 4
"""How many calls may lie between a test and what it exercises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Something defined in a module: ``of`` is its dotted name there, empty for the module."""

    module: str
    of: str

    @property
    def top(self) -> str:
        """What a test would import."""
        return self.of.partition(".")[0]

    @property
    def last(self) -> str:
        """What a test would call."""
        return self.of.rpartition(".")[2]

    @property
    def package(self) -> str:
        """The package of ``discreet`` that it belongs to, or ``studies``."""
        return _package(self.module)

    @property
    def below(self) -> str:
        """The module, without the package."""
        return self.module.split(".", maxsplit=1 if self.package == "studies" else 2)[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """The names that a file uses, and from which modules of the package it has them."""

    path: str
    used: frozenset[str]
    imports: frozenset[tuple[str, str]]

    def names(self, place: Place) -> bool:
        """Whether it takes ``place`` from its module, or from a package that offers it."""
        if not place.of:
            return any(place.module in (whence, f"{whence}.{of}") for whence, of in self.imports)
        return place.last in self.used and any(
            of == place.top and _offers(whence, place.module) for whence, of in self.imports
        )


def folder(package: str) -> Path:
    """Where the modules of a package are."""
    return STUDIES / "discreet_studies" if package == "studies" else SOURCE / "discreet" / package


def exercised(place: Place) -> tuple[str, tuple[str, ...]]:
    """The files that name it; else those of what calls it, which comes first."""
    nearer, seen = {place}, {place}
    for _ in range(_FAR):
        for one in sorted(nearer, key=lambda one: _distance(one, place)):
            if found := _naming(one):
                return ("" if one == place else one.of), found
        nearer = {caller for one in nearer for caller in _callers(one)} - seen
        seen |= nearer
    return "", ()


@cache
def _naming(place: Place) -> tuple[str, ...]:
    """Files that import it and use it; a method whose name is its own needs no import."""
    home = "research" if place.package == "studies" else place.package
    found = [file.path for file in _by_name(place.last) if file.names(place)]
    if not found and "." in place.of and len(_methods()[place.package, place.last]) == 1:
        found = [file.path for file in _by_name(place.last) if file.path.startswith(home)]
    own = place.module.rpartition(".")[2].strip("_")
    return tuple(sorted(found, key=lambda path: (own not in path, home not in path, path)))


def definitions(tree: ast.Module) -> Iterator[tuple[Scope, str]]:
    """The module, then every class and function with its dotted name."""
    yield tree, ""
    yield from _inside(tree, "")


def module_of(path: Path) -> str:
    """The dotted name of a file of the package."""
    source = STUDIES if path.is_relative_to(STUDIES) else SOURCE
    parts = path.relative_to(source).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _package(module: str) -> str:
    parts = module.split(".")
    return "studies" if parts[0] == "discreet_studies" else parts[1]


def _paths() -> list[Path]:
    """The modules of both distributions."""
    return sorted(
        path
        for folder in (SOURCE / "discreet", STUDIES / "discreet_studies")
        for path in folder.rglob("*.py")
    )


def _inside(node: ast.AST, prefix: str) -> Iterator[tuple[Scope, str]]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield child, f"{prefix}{child.name}"
            yield from _inside(child, f"{prefix}{child.name}.")


def _offers(module: str, inner: str) -> bool:
    """Whether a module may offer what is defined in ``inner``."""
    return module == "discreet.local" or f"{inner}.".startswith(f"{module}.")


def _distance(one: Place, place: Place) -> tuple[bool, bool, bool, str, str]:
    """Its own class first, then its module, then its package."""
    outer = not place.of.startswith(f"{one.of}.")
    return outer, one.module != place.module, one.package != place.package, one.module, one.of


def _callers(place: Place) -> Iterator[Place]:
    """Its class, and definitions that use its name, in its module or in one that imports it."""
    if "." in place.of:
        yield Place(module=place.module, of=place.of.rpartition(".")[0])
    for caller in _bodies()[place.last]:
        if caller.module == place.module or any(
            of == place.top and _offers(whence, place.module)
            for whence, of in _modules()[caller.module].imports
        ):
            yield caller


@cache
def _bodies() -> defaultdict[str, list[Place]]:
    """By name: the definitions that use it."""
    found: defaultdict[str, list[Place]] = defaultdict(list)
    for path in _paths():
        module = module_of(path)
        for of, names in _within(tree(path)).items():
            for name in names:
                found[name].append(Place(module=module, of=of))
    return found


def _within(module: ast.Module) -> dict[str, set[str]]:
    """Every definition with the names that it uses, those inside it included."""
    found: dict[str, set[str]] = {}
    todo: list[tuple[ast.AST, str, tuple[set[str], ...]]] = [(module, "", ())]
    while todo:
        node, of, scopes = todo.pop()
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                of = f"{of}.{node.name}" if of else node.name
                scopes = (*scopes, found.setdefault(of, set()))
            case ast.Name(id=own) | ast.Attribute(attr=own):
                for names in scopes:
                    names.add(own)
        todo += [(child, of, scopes) for child in ast.iter_child_nodes(node)]
    return found


@cache
def _methods() -> defaultdict[tuple[str, str], list[str]]:
    """By package and name: what defines a method of this name."""
    found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for path in [path for path in _paths() if "." in module_of(path)]:
        package = _package(module_of(path))
        for _, of in definitions(tree(path)):
            if "." in of:
                found[package, of.rpartition(".")[2]].append(of)
    return found


@cache
def _modules() -> dict[str, File]:
    return {module_of(path): _file(path, path.name) for path in _paths()}


@cache
def _tests() -> tuple[File, ...]:
    """Test files, named by their path below ``tests``, those of the studies by that below root."""
    ours, theirs = ROOT / "tests", ROOT / "research" / "tests"
    files = [(path, path.relative_to(ours)) for path in sorted(ours.rglob("test_*.py"))]
    files += [(path, path.relative_to(ROOT)) for path in sorted(theirs.rglob("test_*.py"))]
    return tuple(_file(path, name.as_posix()) for path, name in files)


@cache
def _by_name(name: str) -> tuple[File, ...]:
    """Test files that use a name; all of them for a module."""
    return tuple(file for file in _tests() if not name or name in file.used)


@cache
def tree(path: Path) -> ast.Module:
    """A file, parsed once."""
    return ast.parse(path.read_text(encoding="utf-8"))


def _file(path: Path, name: str) -> File:
    """Names by a walk; imports also of what is reached by dots: ``discreet.local.krr``."""
    used: set[str] = set()
    imports: set[tuple[str, str]] = set()
    known: dict[str, str] = {}
    dotted: list[ast.Attribute] = []
    for node in ast.walk(tree(path)):
        match node:
            case ast.Name(id=own):
                used.add(own)
            case ast.Attribute(attr=own):
                used.add(own)
                dotted.append(node)
            case ast.ImportFrom(module=str(module), names=names) if module.startswith("discreet"):
                used |= {one.name for one in names}
                for one in names:
                    imports.add(home := _home(module, one.name))
                    known[one.asname or one.name] = ".".join(home)
            case ast.Import(names=names):
                for one in names:
                    if one.name.partition(".")[0] == "discreet":
                        known[one.asname or "discreet"] = one.name if one.asname else "discreet"
    for reached in dotted:
        module, _, own = _resolved(reached, known).rpartition(".")
        if module:
            imports.add((module, own))
    return File(path=name, used=frozenset(used), imports=frozenset(imports))


def _resolved(node: ast.AST, known: dict[str, str]) -> str:
    """The dotted name of an expression, if it begins with something imported."""
    match node:
        case ast.Name(id=name):
            return known.get(name, "")
        case ast.Attribute(value=value, attr=attr):
            outer = _resolved(value, known)
            return ".".join(_home(outer, attr)) if outer else ""
    return ""


@cache
def _home(module: str, name: str) -> tuple[str, str]:
    """Where a name lives: if a package offers it, where its stub says."""
    stub = SOURCE.joinpath(*module.split("."), "__init__.pyi")
    offered = export_locations(stub.read_bytes()) if stub.exists() else {}
    return offered.get(name, (module, name))

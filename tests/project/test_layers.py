"""What the tree must be: no cycles, unique classes, no dead modules, few libraries a package.

The order of the packages is import-linter's contract in pyproject.toml; `make lint` checks it.
"""

import ast
import sys
import tomllib
from collections import defaultdict
from collections.abc import Container, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = {"discreet": ROOT / "src", "discreet_studies": ROOT / "research" / "src"}
PACKAGE = SOURCES["discreet"] / "discreet"
MODULES = sorted(PACKAGE.rglob("*.py"))

# Third-party imports by package. A star means inside functions only: optional, or slow to import.
ALLOWED = {
    "core": {"numpy"},
    "boundary": {"numpy"},
    "noise": {"numpy"},
    "accounting": {"numpy", "scipy"},
    "mechanisms": {"numpy", "scipy"},
    "data": {"duckdb", "narwhals", "numpy"},
    "query": {"numpy", "scipy"},
    "ledger": {"numpy", "psycopg*"},
    "ranges": {"numpy", "scipy"},
    "intervals": {"numpy", "scipy"},
    "interop": set(),
    "marginals": {"numpy", "scipy"},
    "local": {"narwhals", "numpy", "scipy"},
    "tables": {"numpy"},
    "models": {"joblib", "numpy", "scipy", "sklearn"},
    "audit": {"numpy", "scipy"},
    "disclosure": {"narwhals", "numpy", "scipy"},
    "cards": set(),
    "report": {"numpy", "matplotlib*"},
    "spec": {"numpy"},
    "client": set(),
    "server": {"click", "numpy"},
    "cli": {"click", "numpy", "rich"},
    "__init__.py": set(),
    "__main__.py": set(),
}
# Optional libraries, and the only files (or folders) that may import them, when they are needed.
OWNED = {
    "anyio": {"server/"},
    "fastapi": {"server/"},
    "jinja2": {"server/"},
    "pydantic": {"server/"},
    "starlette": {"server/"},
    "uvicorn": {"server/"},
    "pyspark": {"data/_spark/", "local/collection/_spark_reports.py"},
    "pandas": {"core/tabular.py"},  # the types of what is returned
    "polars": {"audit/cases/models.py", "core/tabular.py"},
    "pyarrow": {"local/collection/_spark_reports.py", "core/tabular.py"},
    "sqlglot": {"query/_sql.py"},
    "dp_accounting": {"interop/events.py"},
    "adbc_driver_postgresql": {"data/_postgres_source.py"},
}
VAGUE = {"utils", "util", "helpers", "helper", "common", "misc"}
DEEPEST = 3
"""Levels of folders below ``discreet``."""


# ── what a module imports ────────────────────────────────────────────────────────────────────────


def imports(source: str) -> Iterator[str]:
    """Third-party packages of a module; those imported inside functions end in a star."""
    tree = ast.parse(source)
    inside = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                names = [alias.name for alias in node.names]
            case ast.ImportFrom(level=0, module=str(module)):
                names = [module]
            case _:
                continue
        for name in names:
            package = name.partition(".")[0]
            if package not in sys.stdlib_module_names and package != "discreet":
                yield package + "*" if id(node) in inside else package


def refused(source: str, allowed: set[str]) -> set[str]:
    """Imports that this package may not have. What is allowed everywhere is allowed inside too."""
    return {
        name for name in imports(source) if name not in allowed and name.rstrip("*") not in allowed
    }


def owns(files: set[str], place: str) -> bool:
    """Whether a file is one of these, or lies in one of these folders."""
    return any(place == one or (one.endswith("/") and place.startswith(one)) for one in files)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_what_its_package_may(path):
    package = path.relative_to(PACKAGE).parts[0]
    assert package in ALLOWED, f"say in ALLOWED what the new package {package!r} may import"
    place = path.relative_to(PACKAGE).as_posix()
    owned = {name for name, files in OWNED.items() if owns(files, place)}
    assert refused(path.read_text(encoding="utf-8"), ALLOWED[package] | owned) == set()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_is_named_for_what_it_holds(path):
    assert path.stem.strip("_") not in VAGUE
    assert len(path.relative_to(PACKAGE).parts) <= DEEPEST + 1


def test_the_check_of_imports_sees_what_is_not_allowed():
    planted = (
        "import scipy.special\ndef f():\n    import matplotlib.pyplot\n    from os import path"
    )
    assert refused(planted, {"numpy"}) == {"scipy", "matplotlib*"}
    assert refused(planted, {"scipy", "matplotlib*"}) == set()
    assert refused("import matplotlib", {"matplotlib*"}) == {"matplotlib"}
    assert owns({"server/"}, "server/pages/plan.py")
    assert not owns({"server/"}, "cli/server.py")
    assert not owns({"serve"}, "server/app.py")


# ── the graph of our own modules ─────────────────────────────────────────────────────────────────


def module_of(path: Path, source: Path) -> str:
    name = path.relative_to(source).with_suffix("").as_posix().replace("/", ".")
    return name.removesuffix(".__init__")


@cache
def graph(*, stubs: bool = False) -> dict[str, frozenset[str]]:
    """Each module of both distributions, and those it imports: anywhere, also lazily or for types.

    A stub lists what its package offers and loads on first use; only with ``stubs`` it counts.
    """
    paths = {}
    for source in SOURCES.values():
        paths |= {module_of(path, source): path for path in source.rglob("*.py")}
    edges = {}
    for name, path in paths.items():
        trees = [ast.parse(path.read_text(encoding="utf-8"))]
        stub = path.with_suffix(".pyi")
        if stubs and stub.exists():
            trees.append(ast.parse(stub.read_text(encoding="utf-8")))
        texts = {
            node.value.partition(":")[0]
            for tree in trees
            for node in ast.walk(tree)
            if isinstance(node, ast.Constant) and isinstance(node.value, str)
        }
        found = {one for tree in trees for one in mentioned(tree, paths)}
        found |= texts if stubs else set()
        edges[name] = frozenset(one for one in found if one in paths and one != name)
    return edges


def mentioned(tree: ast.AST, known: Container[str]) -> Iterator[str]:
    """Modules that import statements name; a package only if a name of its own is meant."""
    for node in ast.walk(tree):
        match node:
            case ast.Import():
                yield from (alias.name for alias in node.names)
            case ast.ImportFrom(level=0, module=str(module)):
                for alias in node.names:
                    inside = f"{module}.{alias.name}"
                    yield inside if inside in known else module


def cycles(edges: dict[str, frozenset[str]]) -> list[list[str]]:
    """Groups of modules that can reach each other."""
    order, seen = [], set()
    backward = defaultdict(set)
    for name, others in edges.items():
        for other in others:
            backward[other].add(name)

    def visit(start, ways, done):
        stack = [(start, iter(ways[start]))]
        seen.add(start)
        while stack:
            name, rest = stack[-1]
            following = next((one for one in rest if one not in seen), None)
            if following is None:
                stack.pop()
                done.append(name)
            else:
                seen.add(following)
                stack.append((following, iter(ways[following])))

    for name in edges:
        if name not in seen:
            visit(name, edges, order)
    seen.clear()
    groups = []
    for name in reversed(order):
        if name not in seen:
            group: list[str] = []
            visit(name, backward, group)
            groups.append(sorted(group))
    return [group for group in groups if len(group) > 1]


def test_no_modules_import_each_other_not_even_lazily_or_for_types():
    assert cycles(graph()) == []


def test_a_cycle_is_noticed():
    planted = {"a": frozenset("b"), "b": frozenset("c"), "c": frozenset("a"), "d": frozenset("a")}
    assert cycles(planted) == [["a", "b", "c"]]


def test_every_module_is_reached_from_a_public_name_or_a_command():
    edges = graph(stubs=True)
    offered = ("discreet", "discreet.__main__", *entry_points("pyproject.toml"))
    reached = reachable(edges, offered)
    lost = {name for name in edges if name.startswith("discreet.")} - reached
    assert {name for name in lost if not is_empty_package(name)} == set()
    studied = reachable(edges, entry_points("research/pyproject.toml"))
    left = {name for name in edges if name.startswith("discreet_studies")} - studied
    tested = {one for path in (ROOT / "research/tests").rglob("*.py") for one in used(path)}
    tested |= {one for path in (ROOT / "tests").rglob("*.py") for one in used(path)}
    left -= reachable(edges, [name for name in tested if name in edges])
    assert {name for name in left if not is_empty_package(name)} == set()


def used(path: Path) -> set[str]:
    return set(mentioned(ast.parse(path.read_text(encoding="utf-8")), graph()))


def entry_points(file: str) -> list[str]:
    project = tomllib.loads((ROOT / file).read_text(encoding="utf-8"))["project"]
    groups = [project.get("scripts", {}), *project.get("entry-points", {}).values()]
    return [place.partition(":")[0] for group in groups for place in group.values()]


def reachable(edges: dict[str, frozenset[str]], starts) -> set[str]:
    found, todo = set(), list(starts)
    while todo:
        name = todo.pop()
        if name in found:
            continue
        found.add(name)
        todo += [name.rpartition(".")[0]] if "." in name else []
        todo += edges.get(name, ())
    return found


def is_empty_package(name: str) -> bool:
    for source in SOURCES.values():
        path = source.joinpath(*name.split("."), "__init__.py")
        if path.exists():
            return not any(
                isinstance(node, ast.FunctionDef | ast.ClassDef)
                for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
            )
    return False


# ── classes ──────────────────────────────────────────────────────────────────────────────────────


def test_a_class_name_means_one_thing():
    places = defaultdict(list)
    for path in MODULES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(path.relative_to(PACKAGE).as_posix())
    assert {name: where for name, where in places.items() if len(where) > 1} == {}

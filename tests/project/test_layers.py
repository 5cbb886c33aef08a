"""Which libraries each room may import, how long a file may be, which names are refused.

The order of the rooms themselves is import-linter's contract in pyproject.toml.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "src" / "discreet"
MODULES = sorted(PACKAGE.rglob("*.py"))

# Third-party imports by room. A star means inside functions only: optional, or slow to import.
ALLOWED = {
    "core": {"numpy"},
    "noise": {"numpy"},
    "accounting": {"numpy", "scipy"},
    "mechanisms": {"numpy", "scipy"},
    "data": {"duckdb", "narwhals", "numpy"},
    "queries": {"numpy", "scipy"},
    "ledger": {"numpy", "psycopg*"},
    "leakage": {"numpy", "scipy"},
    "models": {"joblib", "numpy", "scipy", "sklearn"},
    "disclosure": {"narwhals", "numpy", "scipy"},
    "report": {"numpy", "matplotlib*"},
    "studies": {"duckdb*", "numpy", "scipy", "sklearn*"},
    "apps": {"click", "numpy", "rich"},
    "tables": set(),
    "local": {"narwhals", "numpy"},
    "__init__.py": set(),
    "__main__.py": set(),
}
# Optional libraries, and the only files (or folders) that may import them, when they are needed.
OWNED = {
    "anyio": {"apps/web/"},
    "fastapi": {"apps/web/"},
    "jinja2": {"apps/web/"},
    "pydantic": {"apps/web/"},
    "starlette": {"apps/web/"},
    "uvicorn": {"apps/web/"},
    "pyspark": {
        "data/encode_spark.py",
        "data/limit_spark.py",
        "data/spark_engine.py",
        "data/spark_source.py",
        "local/spark_reports.py",
    },
    "polars": {"apps/cli/model_cases.py"},
    "pyarrow": {"local/spark_reports.py"},
    "adbc_driver_postgresql": {"data/postgres_source.py"},
}
LONGEST_MODULE = 400
VAGUE = {"utils", "util", "helpers", "helper", "common", "base", "misc"}


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
    """Imports that this room may not have. What is allowed everywhere is allowed inside too."""
    return {
        name for name in imports(source) if name not in allowed and name.rstrip("*") not in allowed
    }


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_what_its_room_may(path):
    room = path.relative_to(PACKAGE).parts[0]
    assert room in ALLOWED, f"say in ALLOWED what the new room {room!r} may import"
    place = path.relative_to(PACKAGE).as_posix()
    owned = {name for name, files in OWNED.items() if owns(files, place)}
    assert refused(path.read_text(encoding="utf-8"), ALLOWED[room] | owned) == set()


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_is_short_and_named_for_what_it_does(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= LONGEST_MODULE
    assert path.stem.strip("_") not in VAGUE


def owns(files: set[str], place: str) -> bool:
    """Whether a file is one of these, or lies in one of these folders."""
    return any(place == one or (one.endswith("/") and place.startswith(one)) for one in files)


def test_the_check_sees_what_is_not_allowed():
    planted = (
        "import scipy.special\ndef f():\n    import matplotlib.pyplot\n    from os import path"
    )
    assert refused(planted, {"numpy"}) == {"scipy", "matplotlib*"}
    assert refused(planted, {"scipy", "matplotlib*"}) == set()
    assert refused("import matplotlib", {"matplotlib*"}) == {"matplotlib"}
    assert owns({"apps/web/"}, "apps/web/pages/plan.py")
    assert not owns({"apps/web/"}, "apps/cli/web.py")
    assert not owns({"apps/we"}, "apps/web/app.py")

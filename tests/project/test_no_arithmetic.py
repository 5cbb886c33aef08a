"""The command line and the server compute nothing: they parse, call and show.

What is spent, what is left and how exact it will be is computed in the layers below, where it is
tested. Adding up sizes, percent signs and clocks may stay.
"""

import ast
from pathlib import Path

import pytest

import discreet

PACKAGE = Path(discreet.__file__).parent
MATHS = frozenset(
    {
        *("sqrt", "cbrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "pow", "hypot"),
        *("erf", "erfc", "gamma", "lgamma", "comb", "perm", "factorial", "prod", "fsum", "sumprod"),
    }
)
NUMERIC = ("numpy", "scipy", "statistics")
ALLOWED = {"server/demo.py": "simulates people for a demonstration"}


def arithmetic(text: str) -> list[str]:
    """Lines with powers, functions of mathematics, or a library of them."""
    tree = ast.parse(text)
    names = _imported(tree)
    found = []
    for node in ast.walk(tree):
        match node:
            case ast.BinOp(op=ast.Pow()) | ast.AugAssign(op=ast.Pow()):
                found.append((node.lineno, "a power"))
            case ast.Call(func=ast.Name(id="pow")):
                found.append((node.lineno, "a power"))
            case ast.Call(func=func) if (called := _called(func, names)) is not None:
                found.append((node.lineno, called))
            case ast.Import() | ast.ImportFrom():
                found += [(node.lineno, one) for one in _modules(node) if _numeric(one)]
    return [f"line {line}: {what}" for line, what in sorted(set(found))]


def _modules(node: ast.Import | ast.ImportFrom) -> list[str]:
    if isinstance(node, ast.Import):
        return [one.name for one in node.names]
    return [f"{node.module}.{one.name}" for one in node.names if node.module and not node.level]


def _imported(tree: ast.Module) -> dict[str, str]:
    """The full name of whatever a module imports, by the name that it has there."""
    found = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for full, one in zip(_modules(node), node.names, strict=False):
                found[one.asname or one.name] = full
    return found


def _numeric(name: str) -> bool:
    return name.split(".", maxsplit=1)[0] in NUMERIC


def _called(func: ast.expr, names: dict[str, str]) -> str | None:
    """The full name of a function of mathematics."""
    head, _, rest = ast.unparse(func).partition(".")
    full = f"{names.get(head, head)}.{rest}".rstrip(".")
    root, last = full.split(".")[0], full.split(".")[-1]
    known = (root in ("math", "cmath") and last in MATHS) or _numeric(full)
    return full if known and head in names else None


FILES = sorted(
    path.relative_to(PACKAGE).as_posix()
    for layer in ("cli", "server")
    for path in (PACKAGE / layer).rglob("*.py")
)


@pytest.mark.parametrize("name", FILES)
def test_interfaces_compute_nothing(name):
    found = arithmetic((PACKAGE / name).read_text(encoding="utf-8"))
    assert bool(found) == (name in ALLOWED), found


@pytest.mark.parametrize(
    "line",
    [
        "rho = 1 / (2 * sigma**2)",
        "left **= 0.5",
        "left = pow(limit, 2)",
        "left = math.sqrt(limit)",
        "left = m.log(limit)",
        "left = root(limit)",
        "left = np.histogram(shares)",
        "left = math.prod(groups)",
        "from scipy.stats import norm",
        "import numpy",
    ],
)
def test_a_planted_line_is_found(line):
    name = "server/plans.py"
    text = (PACKAGE / name).read_text(encoding="utf-8")
    heads = ("import math", "import math as m", "from math import sqrt as root")
    if "np." in line:
        heads = (*heads, "import numpy as np")
    planted = "\n".join([text, *heads, "def planted():", f"    {line}", ""])
    assert any(found.startswith(f"line {planted.count(chr(10))}:") for found in arithmetic(planted))


@pytest.mark.parametrize(
    "line", ["math.isfinite(share)", "100 * share", "size // 64", "1 << 16", "math.inf", "now - 60"]
)
def test_what_shows_is_no_arithmetic(line):
    assert arithmetic(f"import math\n{line}\n") == []

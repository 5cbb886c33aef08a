"""Pictures are drawn in one place: reports, pages and `plot` say what, and not how."""

import ast
import re
from pathlib import Path

import discreet

ROOT = Path(discreet.__file__).parent
PLACE = "report/drawing/"
SHAPES = re.compile(r"<(svg|rect|circle|line|poly\w+|path|text)[ />]|[▁-▟]")


def test_nothing_else_draws():
    """No other module holds a shape or asks a library for one."""
    found = set()
    for path in ROOT.rglob("*.py"):
        name = path.relative_to(ROOT).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Constant(value=str(text)) if SHAPES.search(text):
                    found.add(name)
                case ast.ImportFrom(module=str(text)) if text.startswith("matplotlib"):
                    found.add(name)
                case ast.Import(names=names) if any("matplotlib" in one.name for one in names):
                    found.add(name)
    assert found
    assert {name for name in found if not name.startswith(PLACE)} == set()


def test_pages_hold_no_picture():
    pages = (ROOT / "server" / "templates").glob("*.html")
    shown = {page.name for page in pages if SHAPES.search(page.read_text(encoding="utf-8"))}
    assert shown == set()


def test_bars_are_laid_out_once():
    """Both painters take places and words from the same layout: no scale is made by a second."""
    calls = set()
    for path in (ROOT / PLACE).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Attribute(value=ast.Name(id="ChartScale"), attr="tight"):
                    calls.add(path.name)
                case ast.Attribute(value=ast.Name(id="math"), attr="log" | "log10"):
                    calls.add(path.name)
    assert calls == {"axis.py", "bar_chart.py"}

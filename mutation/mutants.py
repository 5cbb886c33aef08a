"""Every small way to break a module: which characters are replaced, and by what."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, replace

_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
    ast.Is: "is not",
    ast.IsNot: "is",
}
_ARITHMETIC: dict[type[ast.operator], str] = {
    ast.Add: "-",
    ast.Sub: "+",
    ast.Mult: "+",
    ast.Div: "*",
    ast.FloorDiv: "*",
    ast.Mod: "//",
    ast.Pow: "*",
    ast.LShift: ">>",
    ast.RShift: "<<",
    ast.BitAnd: "|",
    ast.BitOr: "&",
    ast.BitXor: "|",
}
_NAMES = {
    "min": "max",
    "max": "min",
    "minimum": "maximum",
    "maximum": "minimum",
    "ceil": "floor",
    "floor": "ceil",
    "any": "all",
    "all": "any",
    "log1p": "log",
    "expm1": "exp",
    "logaddexp": "subtract",
    "cumsum": "asarray",
    "upward": "downward",
    "downward": "upward",
}
OPERATORS = (
    "a comparison gains or loses its equality, or is turned round; `in` and `is` are negated",
    "an arithmetic or bitwise operator becomes another one; `and` becomes `or`",
    "`not` and the minus sign go; a condition of `if`, `while` or `... if ... else` is negated",
    "a number grows by one, `True` becomes `False`",
    "a function becomes its opposite: " + ", ".join(f"`{a}` → `{b}`" for a, b in _NAMES.items()),
)
"""What is changed, in words."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where a part of the source is computed."""

    function: str
    """Its qualified name; empty for what is computed when the module is imported."""
    first: int
    last: int
    """The tests that run one of these lines are those that may notice a change."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """The characters from ``start`` to ``end`` of the source become ``text``."""

    line: int
    start: int
    end: int
    text: str
    before: str
    place: Place = Place("", 0, 0)

    def apply(self, source: str) -> str:
        """The broken source."""
        return source[: self.start] + self.text + source[self.end :]

    def __str__(self) -> str:
        return f"{self.before} -> {self.text}"


def mutants(source: str) -> list[Mutant]:
    """All mutants of a module, in the order of its lines; words for people stay as they are."""
    tree = ast.parse(source)
    skipped = _skipped(tree)
    starts = _starts(source)
    made = [
        replace(one, place=place)
        for node, place in _placed(tree, Place("", 1, len(starts)), "")
        if id(node) not in skipped
        for one in _of(node, source, starts)
    ]
    return sorted(made, key=lambda one: (one.start, one.text))


def _placed(node: ast.AST, place: Place, prefix: str) -> Iterator[tuple[ast.AST, Place]]:
    """Every part of the tree with its place; ``prefix`` begins the names of what is defined."""
    yield node, place
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                yield from _function(child, place, prefix)
            case ast.ClassDef(name=name):
                yield from _placed(child, place, f"{prefix}{name}.")
            case ast.stmt() | ast.match_case() if place.function:
                yield from _placed(child, Place(place.function, *_lines(child)), prefix)
            case _:
                yield from _placed(child, place, prefix)


def _function(
    node: ast.FunctionDef | ast.AsyncFunctionDef, outer: Place, prefix: str
) -> Iterator[tuple[ast.AST, Place]]:
    """The body belongs to the function; its defaults are computed where it is defined."""
    last = node.end_lineno or node.lineno
    yield from _placed(node.args, Place(outer.function, node.lineno, last), prefix)
    name = f"{prefix}{node.name}"
    for child in node.body:
        here = Place(name, *_lines(child))
        wrapped = ast.Module(body=[child], type_ignores=[])
        yield from _placed(wrapped, here, f"{name}.<locals>.")


def _lines(node: ast.stmt | ast.match_case) -> tuple[int, int]:
    """The lines of a statement without those of the statements in it."""
    first = node.pattern.lineno if isinstance(node, ast.match_case) else node.lineno
    inner = getattr(node, "body", None) or getattr(node, "cases", None)
    if not inner:
        return first, getattr(node, "end_lineno", None) or first
    begin = inner[0].pattern.lineno if isinstance(inner[0], ast.match_case) else inner[0].lineno
    return first, max(first, begin - 1)


def _skipped(tree: ast.Module) -> set[int]:
    """Annotations, errors' words, docstrings and decorators decide nothing that is computed."""
    roots: list[ast.AST | None] = []
    for node in ast.walk(tree):
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                roots += [node.returns, *node.decorator_list]
            case ast.ClassDef():
                roots += [*node.decorator_list, *node.bases]
            case ast.arg():
                roots.append(node.annotation)
            case ast.AnnAssign():
                roots.append(node.annotation)
            case ast.Raise() | ast.MatchValue():
                roots.append(node)
            case ast.Assign(targets=[ast.Name(id=name)]) if name.startswith("__"):
                roots.append(node)
            case ast.Call(func=ast.Name(id="cast" | "TypeVar" | "warn")):
                roots.append(node)
            case ast.keyword(arg="strict"):  # zip's second check of lengths that are equal
                roots.append(node)
            case _:
                pass
    return {id(node) for root in roots if root is not None for node in ast.walk(root)}


def _starts(source: str) -> list[int]:
    """Where each line begins, in characters."""
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    return starts


def _place(source: str, starts: list[int], line: int, column: int) -> int:
    """Characters up to a place that the parser gives in bytes of UTF-8."""
    text = source[starts[line - 1] : starts[line]]
    return starts[line - 1] + len(text.encode()[:column].decode())


def _of(node: ast.AST, source: str, starts: list[int]) -> Iterator[Mutant]:
    match node:
        case ast.Compare():
            before: ast.expr = node.left
            for operator, after in zip(node.ops, node.comparators, strict=True):
                new = _COMPARE[type(operator)]
                yield from _between(before, after, new, source, starts)
                before = after
        case ast.BinOp(op=op) if type(op) in _ARITHMETIC and not _is_text(node):
            yield from _between(node.left, node.right, _ARITHMETIC[type(op)], source, starts)
        case ast.BoolOp():
            new = "or" if isinstance(node.op, ast.And) else "and"
            for one, other in zip(node.values, node.values[1:], strict=False):
                yield from _between(one, other, new, source, starts)
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=operand):
            yield from _replaced(node, f"({_text(operand, source, starts)})", source, starts)
        case ast.Constant(value=bool(value)):
            yield from _replaced(node, str(not value), source, starts)
        case ast.Constant(value=int() | float() as number):
            changed = f"({number!r} + 1)" if number + 1 != number else f"({number!r} * 2)"
            yield from _replaced(node, changed, source, starts)
        case ast.Name(id=name) if name in _NAMES and isinstance(node.ctx, ast.Load):
            yield from _replaced(node, _NAMES[name], source, starts)
        case ast.Attribute(attr=name) if name in _NAMES:
            end = _ends(node, source, starts)[1]
            begin = end - len(name)
            line = node.end_lineno or node.lineno
            yield Mutant(line=line, start=begin, end=end, text=_NAMES[name], before=name)
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
            words = _text(test, source, starts)
            yield from _replaced(test, f"(not ({words}))", source, starts)
        case _:
            return


def _is_text(node: ast.BinOp) -> bool:
    sides = (node.left, node.right)
    return any(isinstance(side, ast.JoinedStr) for side in sides) or any(
        isinstance(side, ast.Constant) and isinstance(side.value, str) for side in sides
    )


def _ends(node: ast.expr, source: str, starts: list[int]) -> tuple[int, int]:
    return (
        _place(source, starts, node.lineno, node.col_offset),
        _place(source, starts, node.end_lineno or 0, node.end_col_offset or 0),
    )


def _text(node: ast.expr, source: str, starts: list[int]) -> str:
    start, end = _ends(node, source, starts)
    return source[start:end]


def _replaced(node: ast.expr, text: str, source: str, starts: list[int]) -> Iterator[Mutant]:
    start, end = _ends(node, source, starts)
    before = source[start:end]
    if before != text:
        yield Mutant(line=node.lineno, start=start, end=end, text=text, before=before)


def _between(
    one: ast.expr, other: ast.expr, text: str, source: str, starts: list[int]
) -> Iterator[Mutant]:
    """The operator between two operands; brackets and line breaks around it stay."""
    start, end = _ends(one, source, starts)[1], _ends(other, source, starts)[0]
    gap = source[start:end]
    bare = gap.replace("(", " ").replace(")", " ").replace("\\", " ")
    word = " ".join(bare.split("#")[0].split())
    at = gap.find(word) if word else -1
    if at >= 0:
        line = source.count("\n", 0, start + at) + 1
        yield Mutant(
            line=line, start=start + at, end=start + at + len(word), text=text, before=word
        )

"""The nodes of a program in layers: what an engine computes first, and what from that."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from discreet.data.code import Bin, Binary, Clip, Code, Const, Divide, Pick, Ref
from discreet.data.plan import Program

Value = TypeVar("Value")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layers(Generic[Value]):
    """Named columns in an order in which they can be computed, and those that are asked for."""

    layers: tuple[tuple[tuple[str, Value], ...], ...]
    where: Value | None
    index: Value
    values: list[Value]


def layered(
    program: Program,
    *,
    column: Callable[[str], Value],
    constant: Callable[[int], Value],
    node: Callable[[Binary | Clip | Bin | Pick | Divide, list[Value]], Value],
) -> Layers[Value]:
    """One column for each node of the expressions, innermost first, in an engine's own words."""
    places = {field: f"c{i}" for i, (field, _) in enumerate(program.columns)}
    names: dict[Code, str] = {}
    layers: list[list[tuple[str, Value]]] = []

    def visit(code: Code) -> tuple[Value, int]:
        """The column or constant of a node, and the layer after which it exists."""
        match code:
            case Ref(source):
                return column(places[source]), 0
            case Const(value):
                return constant(value), 0
        inner = (code.left, code.right) if isinstance(code, Binary | Divide) else (code.inner,)
        seen = [visit(part) for part in inner]
        depth = 1 + max(layer for _, layer in seen)
        if code not in names:
            names[code] = f"e{len(names)}"
            layers.extend([] for _ in range(depth - len(layers)))
            layers[depth - 1].append((names[code], node(code, [value for value, _ in seen])))
        return column(names[code]), depth

    where = None if program.where is None else visit(program.where)[0]
    index = visit(program.index)[0]
    values = [visit(value)[0] for value in program.values]
    return Layers(layers=tuple(map(tuple, layers)), where=where, index=index, values=values)

"""Integer expressions that every engine can compute, with bounds of their values."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from itertools import repeat
from typing import Any, ClassVar, Literal, TypeAlias
from weakref import WeakValueDictionary

from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument
from discreet.data import schema as declared
from discreet.data.schema import INT64, Label

# ── Nodes ────────────────────────────────────────────────────────────────────────────────────────
# Each node maps int64 codes of one row to an int64 and cannot fail: expressions are checked when
# they are bound to a schema, so that no intermediate result leaves the range of int64.


Operator: TypeAlias = Literal["+", "-", "*", "<", "<=", "=", "and", "or"]


class _Interned(type):
    """Equal nodes are one object, as long as one of them lives.

    Expressions share parts: abs(x) has x twice, and fifty of them nested have 2**50 paths, but only
    150 nodes. Comparing and hashing by identity takes the same time for any of them.
    """

    _nodes: ClassVar[WeakValueDictionary[tuple[object, ...], Any]] = WeakValueDictionary()
    _turn: ClassVar = threading.Lock()

    def __call__(cls, *given: Any, **named: Any) -> Any:
        made = super().__call__(*given, **named)
        # Parts are interned, so that they hash by identity; True is not the integer 1 here.
        fields = made.fields()
        key = (cls, *zip(map(type, fields), fields, strict=True))
        with _Interned._turn:
            return _Interned._nodes.setdefault(key, made)


class _Node(metaclass=_Interned):
    """An interned node; copies and pickles are the node itself, or become it."""

    __slots__ = ("__weakref__",)

    def fields(self) -> tuple[Any, ...]:
        """What it was made of."""
        return tuple(map(partial(getattr, self), type(self).__match_args__))  # type: ignore[attr-defined]

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self.fields()


@dataclass(frozen=True, slots=True, eq=False)
class CodeRef(_Node):
    """The code of a declared column."""

    column: str


@dataclass(frozen=True, slots=True, eq=False)
class CodeConst(_Node):
    """A public integer."""

    value: int


@dataclass(frozen=True, slots=True, eq=False)
class CodeBinary(_Node):
    """Arithmetic, or a comparison or connective with result 0 or 1."""

    operator: Operator
    left: Code
    right: Code


@dataclass(frozen=True, slots=True, eq=False)
class CodeClip(_Node):
    """The nearest integer in ``lower .. upper``."""

    inner: Code
    lower: int
    upper: int


@dataclass(frozen=True, slots=True, eq=False)
class CodeBin(_Node):
    """How many of the (increasing) edges are not above the value."""

    inner: Code
    edges: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CodePick(_Node):
    """``table[value - first]``; the value is known to lie in the table."""

    inner: Code
    first: int
    table: tuple[int, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CodeDivide(_Node):
    """``floor(left / right)``, and ``zero`` where the right side is zero.

    The left side is never ``-2**63``, so that no quotient leaves int64.
    """

    left: Code
    right: Code
    zero: int


Code: TypeAlias = CodeRef | CodeConst | CodeBinary | CodeClip | CodeBin | CodePick | CodeDivide


def parts(code: Code) -> tuple[Code, ...]:
    """The nodes that a node is made of."""
    match code:
        case CodeRef() | CodeConst():
            return ()
        case CodeBinary(_, left, right) | CodeDivide(left, right):
            return left, right
        case CodeClip(inner) | CodeBin(inner) | CodePick(inner):
            return (inner,)


def columns(code: Code) -> set[str]:
    """The columns that a node reads."""
    return {one.column for one in in_order([code]) if isinstance(one, CodeRef)}


def in_order(codes: Iterable[Code]) -> list[Code]:
    """The nodes of expressions, each once, parts before what is made of them."""
    found: dict[Code, None] = {}
    open_ = list(zip(reversed(list(codes)), repeat(0)))
    while open_:
        code, visits = open_.pop()
        if visits:
            found.setdefault(code)
        elif code not in found:
            open_.append((code, 1))
            open_.extend(zip(reversed(parts(code)), repeat(0)))
    return list(found)


# ── Nodes with bounds ────────────────────────────────────────────────────────────────────────────


Kind: TypeAlias = Literal["number", "flag", "label", "date", "text"]
MOST_PICKS = 100_000
"""Tables of values are no longer than this."""
OPEN = (
    "this column is text with unknown values: group by it with keys=..., found by "
    "discover_keys() or taken from a public list; for conditions, declare it as a category."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedCode:
    """Integer code with its range; a number is ``code * 2**exponent``, a label its position."""

    code: Code
    lower: int
    upper: int
    kind: Kind
    exponent: int = 0
    labels: tuple[Label, ...] = ()
    step: declared.Step = "day"
    known: Code | None = None
    """Code that is 1 where the value is known and else 0; None where it always is. Where it is not,
    the code still lies within the bounds, and a flag is 0."""

    def label(self, code: int) -> Label:
        """What a code stands for."""
        match self.kind:
            case "label":
                return self.labels[code]
            case "date":
                return declared.date_label(code, step=self.step)
            case "flag":
                return bool(code)
            case "text":
                raise InvalidArgument("text without listed keys has no labels.")
            case "number" if self.exponent >= 0:
                return code << self.exponent
            case "number":
                value = code * Fraction(2) ** self.exponent
                return int(value) if value.denominator == 1 else float(value)

    def named(self, codes: Sequence[int]) -> list[Label]:
        """What many codes stand for."""
        if self.kind == "label":
            return [self.labels[code] for code in codes]
        return [self.label(code) for code in codes]

    def locate(self, label: object) -> int:
        """The code of a public label; an error if nothing can have it."""
        return self.locator()(label)

    def locator(self) -> Callable[[object], int]:
        """`locate` for many labels: those that are listed are looked up, not searched."""
        places: dict[object, int] = {}
        for place, name in enumerate(self.labels):
            places.setdefault(name, place)
        return lambda label: self._locate(label, places)

    def _locate(self, label: object, places: Mapping[object, int]) -> int:
        if self.kind == "text":
            raise InvalidArgument(OPEN)
        code: int | None
        if self.kind == "label":
            try:
                code = None if isinstance(label, bool) else places.get(label)
            except TypeError:  # a list, for example
                code = None
        elif self.kind == "date":
            code = declared.date_code("value", label, step=self.step)
        elif self.kind == "flag":
            code = int(label) if isinstance(label, bool) else None
        elif type(label) is int and self.exponent == 0:  # keys come by the million
            code = label
        else:
            exact = check.finite("value", label) / Fraction(2) ** self.exponent
            code = int(exact) if exact.denominator == 1 else None
        if code is None or not self.lower <= code <= self.upper:
            raise InvalidArgument(f"value {label!r} is none that this expression can take.")
        return code


def flag(code: Code) -> BoundedCode:
    """A condition."""
    return BoundedCode(code=code, lower=0, upper=1, kind="flag")


def category_code(code: Code, labels: tuple[Label, ...]) -> BoundedCode:
    """A category with these labels."""
    return BoundedCode(code=code, lower=0, upper=len(labels) - 1, kind="label", labels=labels)


def both(a: Code | None, b: Code | None) -> Code | None:
    """Whether both of two values are known."""
    if a is None or b is None or a == b:
        return b if a is None else a
    return CodeBinary("and", a, b)


def where_known(value: BoundedCode, known: Code | None) -> BoundedCode:
    """The value, which is known only there; a flag is then 1 only where it is known to be true."""
    if known is None:
        return value
    code = CodeBinary("and", known, value.code) if value.kind == "flag" else value.code
    return replace(value, code=code, known=both(value.known, known))


def small(value: BoundedCode) -> bool:
    """Whether all values fit a table."""
    return value.upper - value.lower < MOST_PICKS


def of_kind(value: BoundedCode, kind: Kind) -> BoundedCode:
    """The value, if it is of this kind."""
    if value.kind == "text":
        raise InvalidArgument(OPEN)
    if value.kind != kind:
        raise InvalidArgument(f"this operation takes a {kind}, got a {value.kind}.")
    return value


def number(value: BoundedCode) -> BoundedCode:
    """A number; a flag counts as 0 or 1."""
    if value.kind == "flag":
        return BoundedCode(code=value.code, lower=0, upper=1, kind="number")
    return of_kind(value, "number")


def position(inner: BoundedCode, mark: object) -> Fraction:
    """A public literal in steps of an expression's grid, exactly."""
    if inner.kind == "text":
        raise InvalidArgument(OPEN)
    if inner.kind == "date":
        return Fraction(declared.date_code("value", mark, step=inner.step))
    return check.finite("value", mark) / Fraction(2) ** inner.exponent


def constant(value: object) -> BoundedCode:
    """A public number, which must be a multiple of a power of two to be exact in arithmetic."""
    exact = check.finite("value", value)
    exponent = 1 - exact.denominator.bit_length()
    if Fraction(2) ** -exponent != exact.denominator:
        raise InvalidArgument(f"value {value} in arithmetic must be a dyadic number, such as 0.25.")
    return checked_number(CodeConst(exact.numerator), (exact.numerator,), exponent)


def checked_number(code: Code, ends: Iterable[int], exponent: int) -> BoundedCode:
    """A number whose extreme values are these, if they fit into 64 bits."""
    ends = tuple(ends)
    if max(map(abs, ends)) > INT64:
        raise InvalidArgument(
            "the bounds of this expression pass 2**63 steps of its grid: clip the parts, or "
            "declare narrower bounds or a coarser grid."
        )
    return BoundedCode(
        code=code, lower=min(ends), upper=max(ends), kind="number", exponent=exponent
    )


def rescale(value: BoundedCode, exponent: int) -> BoundedCode:
    """The same number on a finer grid."""
    factor = 2 ** (value.exponent - exponent)
    if factor == 1:
        return value
    if value.lower == value.upper == 0:  # however large the factor
        return checked_number(CodeConst(0), (0,), exponent)
    ends = value.lower * factor, value.upper * factor
    return checked_number(CodeBinary("*", value.code, CodeConst(factor)), ends, exponent)


def literal(value: object, *, beside: BoundedCode | None = None) -> BoundedCode:
    """A public value as code: a text is a label, a date takes the step of what stands beside it."""
    if isinstance(value, str):
        return category_code(CodeConst(0), (value,))
    if isinstance(value, bool):
        return flag(CodeConst(int(value)))
    if beside is not None and beside.kind == "date":
        place = declared.date_code("value", value, step=beside.step)
        return BoundedCode(
            code=CodeConst(place), lower=place, upper=place, kind="date", step=beside.step
        )
    return constant(value)


def align(a: BoundedCode, b: BoundedCode) -> tuple[BoundedCode, BoundedCode]:
    """Two numbers on the finer grid of the two."""
    exponent = min(a.exponent, b.exponent)
    return rescale(number(a), exponent), rescale(number(b), exponent)

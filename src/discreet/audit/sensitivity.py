"""The sensitivity oracle: how far a query really moves, by brute force over all neighbors.

A claimed sensitivity is a theorem about every data set; on small ones it can be checked against
all of them. Every query of this library passes this check.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

from discreet.core._validate import as_tuple, count, finite, flag, one_of
from discreet.core.errors import InvalidArgument, NotCertified
from discreet.core.number_format import short
from discreet.core.relation import NeighboringRelation
from discreet.core.tabular import Record
from discreet.query.result import Result, records

Norm: TypeAlias = Literal["l0", "l1", "l2", "linf"]
_MOST_ROWS = 100

Data: TypeAlias = tuple[Any, ...]
Query: TypeAlias = Callable[[Data], Any]
TOLERANCE = 1e-9
"""Relative room for queries that compute in doubles."""


class SensitivityError(NotCertified, AssertionError):
    """A claimed sensitivity is smaller than the true one, or larger without a reason.

    It is also a `NotCertified` and an `AssertionError`.

    Examples:
        >>> from discreet import NeighboringRelation, audit
        >>> try:
        ...     audit.check_sensitivity(
        ...         sum, 1, values=[0, 5], rows=2, relation=NeighboringRelation.ADD_REMOVE
        ...     )
        ... except audit.SensitivityError:
        ...     print("the sum changes by 5")
        the sum changes by 5
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity(Result):
    """The largest move found, and the pair of data sets that shows it."""

    value: float | Fraction
    left: Data
    right: Data
    pairs: int

    def rows(self, confidence: float = 0.95) -> list[Record]:  # noqa: ARG002 - it is exact
        """List the largest move.

        Args:
            confidence: Without effect: the move is exact, for the pairs that were looked at.

        Returns:
            One record: value, std, low and high, the last three None.
        """
        return records((), [()], value=[float(self.value)])

    def __str__(self) -> str:
        return (
            f"the largest move is {short(float(self.value))}, of {self.pairs:,} pairs: between "
            f"{self.left} and {self.right}"
        )

    __repr__ = __str__


def true_sensitivity(
    query: Query,
    *,
    values: Iterable[Any],
    rows: int,
    relation: NeighboringRelation,
    norm: Norm = "l1",
    ordered: bool = False,
) -> Sensitivity:
    """The largest distance of the query's answers on any two neighbors of this size.

    ``values`` are all the contributions that one unit of privacy can make (numbers, or tuples of
    rows); ``rows`` is the size of the larger data set of each pair. Under ADD_REMOVE the other one
    is one smaller, under REPLACE_ONE equal, under LOCAL ``rows`` must be 1. ``ordered=True``
    tries every order of the records, for queries that depend on it.
    """
    # Theorem: exact for the query restricted to these values and this size; a lower bound on the
    #   sensitivity over everything else.
    # Proof: every pair of neighbors is visited.
    if not callable(query):
        raise InvalidArgument(f"query must be a function of the data, got {type(query).__name__}.")
    one_of("norm", norm, get_args(Norm))
    best = Sensitivity(value=0, left=(), right=(), pairs=0)
    pairs = 0
    answers: dict[Data, tuple[Any, ...]] = {}
    for left, right in neighbors(values, rows=rows, relation=relation, ordered=ordered):
        for data in (left, right):
            if data not in answers:
                answers[data] = _vector(query(data))
        moved = distance(answers[left], answers[right], norm=norm)
        pairs += 1
        if moved > best.value:
            best = Sensitivity(value=moved, left=left, right=right, pairs=0)
    return Sensitivity(value=best.value, left=best.left, right=best.right, pairs=pairs)


def check_sensitivity(
    query: Query,
    claimed: float | Fraction,
    *,
    values: Iterable[Any],
    rows: int,
    relation: NeighboringRelation,
    norm: Norm = "l1",
    ordered: bool = False,
    slack: str | None = None,
) -> Sensitivity:
    """Check a claimed sensitivity on all pairs of small neighboring data sets.

    Args:
        query: Function from a tuple of rows to a number or a vector.
        claimed: Claimed sensitivity.
        values: All values that a row can have. They must be hashable.
        rows: Number of rows of the larger data set of each pair, at most 100; 1 for the local
            relation.
        relation: Neighboring relation.
        norm: Norm of the change: `"l1"`, `"l2"`, `"linf"` or `"l0"` (number of changed
            coordinates).
        ordered: Whether to try every order of the rows, for queries that depend on it.
        slack: Reason for which the claim may be larger than the largest change. By default the
            claim must be attained.

    Returns:
        The largest change, with the pair of data sets that shows it.

    Raises:
        SensitivityError: The claim is too small, or it is not attained and no `slack` was given.
        InvalidArgument: An argument is outside its range.

    Examples:
        >>> from discreet import NeighboringRelation, audit
        >>> found = audit.check_sensitivity(
        ...     sum, 5, values=[0, 1, 5], rows=3, relation=NeighboringRelation.ADD_REMOVE
        ... )
        >>> found.value, found.left, found.right
        (Fraction(5, 1), (0, 0, 5), (0, 0))
    """
    claim = finite("claimed", claimed)
    found = true_sensitivity(
        query, values=values, rows=rows, relation=relation, norm=norm, ordered=ordered
    )
    true = found.value
    shown = (
        f"on {found.left} and {found.right} the answers differ by {short(float(true), digits=6)}"
    )
    if true > claim * (1 + Fraction(TOLERANCE)):
        raise SensitivityError(
            f"claimed sensitivity {short(float(claim), digits=6)} ({norm}, "
            f"{relation.value}) is too small: "
            f"{shown}. Raise the claim or bound the query."
        )
    if slack is None and true < claim * (1 - Fraction(TOLERANCE)):
        raise SensitivityError(
            f"claimed sensitivity {short(float(claim), digits=6)} ({norm}, "
            f"{relation.value}) is not attained: "
            f"at most, {shown}. Lower the claim, add extreme values, or state the slack."
        )
    return found


def neighbors(
    values: Iterable[Any], *, rows: int, relation: NeighboringRelation, ordered: bool = False
) -> Iterator[tuple[Data, Data]]:
    """All pairs of neighboring data sets; unordered ones once, in the order of ``values``."""
    given = as_tuple("values", values)
    if not all(isinstance(value, Hashable) for value in given):
        raise InvalidArgument("values must be numbers, texts or tuples of them.")
    domain = tuple(dict.fromkeys(given))
    size = count("rows", rows)
    if size > _MOST_ROWS:
        raise InvalidArgument(f"rows must be at most {_MOST_ROWS}: all data sets are tried.")
    if not domain:
        raise InvalidArgument("values must not be empty: give what one unit can contribute.")
    if relation is NeighboringRelation.LOCAL and size != 1:
        raise InvalidArgument(f"rows must be 1 in the local model, got {size}.")
    if flag("ordered", ordered):
        yield from _ordered(domain, size, relation)
        return
    for rest in itertools.combinations_with_replacement(range(len(domain)), size - 1):
        if relation is NeighboringRelation.ADD_REMOVE:
            for one in range(len(domain)):
                yield _data(domain, (*rest, one)), _data(domain, rest)
        else:
            for one, other in itertools.combinations(range(len(domain)), 2):
                yield _data(domain, (*rest, one)), _data(domain, (*rest, other))


def _ordered(domain: Data, size: int, relation: NeighboringRelation) -> Iterator[tuple[Data, Data]]:
    for data in itertools.product(domain, repeat=size):
        for i in range(size):
            before, after = data[:i], data[i + 1 :]
            if relation is NeighboringRelation.ADD_REMOVE:
                yield data, (*before, *after)
            else:
                yield from ((data, (*before, v, *after)) for v in domain if v != data[i])


def distance(left: Sequence[Any], right: Sequence[Any], *, norm: Norm) -> float | Fraction:
    """How far two answers are apart; answers of different length or with NaN are infinitely far."""
    if len(left) != len(right):
        return math.inf
    gaps = [abs(a - b) for a, b in zip(left, right, strict=True)]
    if any(gap != gap for gap in gaps):  # noqa: PLR0124 (NaN, also among Fractions)
        return math.inf
    if norm == "l0":
        return sum(1 for gap in gaps if gap)
    if norm == "l1":
        return sum(gaps, start=Fraction(0)) if _exact(gaps) else math.fsum(gaps)
    if norm == "l2":
        return math.sqrt(math.fsum(gap * gap for gap in gaps))
    return max(gaps, default=0)


def _exact(gaps: list[Any]) -> bool:
    return all(isinstance(gap, (int, Fraction)) for gap in gaps)


def _data(domain: Data, indices: tuple[int, ...]) -> Data:
    return tuple(domain[i] for i in sorted(indices))


def _vector(answer: Any) -> tuple[Any, ...]:
    if isinstance(answer, (int, float, Fraction)):
        return (answer,)
    return tuple(v.item() if hasattr(v, "item") else v for v in _flat(answer))


def _flat(answer: Any) -> Iterator[Any]:
    if hasattr(answer, "ravel"):
        yield from answer.ravel()
    elif isinstance(answer, (tuple, list)):
        for part in answer:
            yield from _flat(part)
    else:
        yield answer

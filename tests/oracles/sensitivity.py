"""The sensitivity oracle on random data sets, for queries whose domain is too large to exhaust.

from tests.oracles.sensitivity import assert_sensitivity, neighboring

@given(neighboring(st.integers(0, 100), relation=NeighboringRelation.ADD_REMOVE))
def test_sum(pair):
    assert_sensitivity(sum, 100, pair)
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any

from hypothesis import assume, event
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from discreet.audit.sensitivity import TOLERANCE, Data, Norm, _vector, distance
from discreet.core.relation import NeighboringRelation


@st.composite
def neighboring(
    draw: st.DrawFn,
    values: SearchStrategy[Any],
    *,
    relation: NeighboringRelation,
    min_size: int = 1,
    max_size: int = 20,
) -> tuple[Data, Data]:
    """Two neighboring data sets; the larger has min_size to max_size units."""
    data = draw(st.lists(values, min_size=min_size, max_size=max_size))
    i = draw(st.integers(0, len(data) - 1))
    rest = (*data[:i], *data[i + 1 :])
    if relation is NeighboringRelation.ADD_REMOVE:
        return tuple(data), rest
    other = draw(values)
    assume(other != data[i])
    return tuple(data), (*data[:i], other, *data[i + 1 :])


def assert_sensitivity(
    query: Callable[[Data], Any],
    claimed: float | Fraction,
    pair: tuple[Data, Data],
    *,
    norm: Norm = "l1",
) -> None:
    """The answers on this pair are no further apart than claimed."""
    moved = distance(_vector(query(pair[0])), _vector(query(pair[1])), norm=norm)
    event("attained" if moved >= claimed * (1 - TOLERANCE) else "below the claim")
    assert moved <= claimed * (1 + TOLERANCE), f"{pair[0]} and {pair[1]}: {float(moved)}"

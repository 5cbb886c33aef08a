"""Divergences: closed forms of normals, order, and a wrong theorem about permute-and-flip."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.audit import _outputs as outputs
from discreet.audit import exact
from discreet.audit import lattice_distribution as lattice
from discreet.core.errors import InvalidArgument
from discreet_studies.noise_mechanisms import output_divergences as divergence


def normals() -> exact.OutputPair:
    noise = lattice.discrete_gaussian(1000.0)
    return exact.pair(noise, noise.shift(1000))


def test_normals() -> None:
    """B7: TV 0.38292, KL 1/2, D_a = a/2, on a fine grid and in closed form."""
    assert divergence.normal_total_variation(1, 1) == pytest.approx(0.38292, abs=1e-5)
    assert divergence.total_variation(normals()) == pytest.approx(0.38292, abs=1e-5)
    # The lists end where the other law goes on: compare where both are listed.
    inner = normals()
    both = (inner.left > 0) & (inner.right > 0)
    listed = exact.OutputPair(
        outcomes=range(int(both.sum())), left=inner.left[both], right=inner.right[both]
    )
    for order in (1.0, 1.5, 2.0, 4.0):
        closed = divergence.normal_renyi(1, 1, order)
        assert divergence.renyi(listed, order) == pytest.approx(closed, abs=1e-6)


@given(
    st.lists(st.floats(0.01, 1), min_size=3, max_size=3),
    st.lists(st.floats(0.01, 1), min_size=3, max_size=3),
)
def test_inequalities(a: list[float], b: list[float]) -> None:
    laws = exact.OutputPair(
        outcomes=range(3), left=np.array(a) / sum(a), right=np.array(b) / sum(b)
    )
    kl = divergence.kullback_leibler(laws)
    assert divergence.total_variation(laws) <= math.sqrt(kl / 2) + 1e-9
    orders = [divergence.renyi(laws, order) for order in (0.5, 1.0, 1.5, 3.0, 20.0, math.inf)]
    assert all(x <= y + 1e-9 for x, y in itertools.pairwise(orders))
    assert exact.delta_one_way(laws, 0.0).upper >= divergence.total_variation(laws) - 1e-12


def test_impossible_outcomes() -> None:
    laws = exact.pair({"a": 0.5, "b": 0.5}, {"a": 0.5, "c": 0.5})
    assert divergence.kullback_leibler(laws) == math.inf
    assert divergence.renyi(laws, 0.5) < math.inf
    assert divergence.total_variation(laws) == 0.5
    with pytest.raises(InvalidArgument, match="order"):
        divergence.renyi(laws, 0)


def test_permute_and_flip_is_not_of_bounded_range() -> None:
    """opendp#2911: epsilon^2/8 zCDP belongs to the exponential mechanism, not to this one."""
    rho = 1 / 8
    scores = ([0.0, 1.0], [1.0, 0.0])
    for law, private in [(outputs.exponential, True), (outputs.permute_and_flip, False)]:
        laws = exact.pair(*(law(s, weight=0.5) for s in scores))
        orders = (1.0, 1.5, 2.0, 5.0, 20.0)
        assert all(divergence.renyi(laws, a) <= rho * a for a in orders) == private
        # Pure epsilon 1 holds for both.
        assert exact.epsilon(laws).upper <= 1 + 1e-9

"""Output laws of composite mechanisms, against enumeration and against their theorems."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.audit import _outputs as outputs
from discreet.audit import exact
from discreet.audit import lattice_distribution as lattice

SMALL = lattice.LatticeDistribution(start=-1, mass=np.array([0.2, 0.5, 0.3]))
SCORES = st.lists(st.integers(0, 6), min_size=1, max_size=5)


@pytest.mark.parametrize("ties", ["first", "random"])
def test_noisy_max_equals_enumeration(ties: outputs.Ties) -> None:
    scores = [0, 1, 1, -1]
    law: dict[int, float] = defaultdict(float)
    for draw in itertools.product(range(3), repeat=4):
        mass = math.prod(float(SMALL.mass[d]) for d in draw)
        noisy = [s + d - 1 for s, d in zip(scores, draw, strict=True)]
        best = [i for i, v in enumerate(noisy) if v == max(noisy)]
        for i in best[:1] if ties == "first" else best:
            law[i] += mass / (1 if ties == "first" else len(best))
    found = {i: mass for i, mass in outputs.noisy_max(scores, SMALL, ties=ties).items() if mass > 0}
    assert found == pytest.approx(law, abs=1e-14)


def test_permute_and_flip_equals_enumeration() -> None:
    scores, weight = [0.0, 1.0, 2.0, 0.5], 0.7
    p = [math.exp(weight * (s - max(scores))) for s in scores]
    law: dict[int, float] = defaultdict(float)
    for order in itertools.permutations(range(4)):
        reach = 1.0
        for i in order:
            law[i] += reach * p[i] / 24
            reach *= 1 - p[i]
    assert outputs.permute_and_flip(scores, weight=weight) == pytest.approx(law, abs=1e-14)


@settings(max_examples=20)
@given(SCORES)
def test_permute_and_flip_is_noisy_max_with_exponential_noise(scores: list[int]) -> None:
    """Ding et al. 2021; on a lattice, with random ties, only in the limit of fine steps."""
    steps = 100
    fine = outputs.noisy_max([steps * s for s in scores], lattice.geometric(steps / 0.8))
    flip = outputs.permute_and_flip(scores, weight=0.8)
    assert [fine[i] for i in fine] == pytest.approx([flip[i] for i in flip], abs=0.02)


@given(SCORES, st.data())
def test_selection_keeps_its_theorem(scores: list[int], data: st.DataObject) -> None:
    """Every score moves by at most 1, in any direction: epsilon 1 at weight 1/2, noise 2."""
    other = [s + data.draw(st.integers(-1, 1)) for s in scores]
    noise = lattice.discrete_laplace(2.0)
    laws = [
        (outputs.exponential(scores, weight=0.5), outputs.exponential(other, weight=0.5)),
        (outputs.permute_and_flip(scores, weight=0.5), outputs.permute_and_flip(other, weight=0.5)),
        (outputs.noisy_max(scores, noise), outputs.noisy_max(other, noise)),
    ]
    for left, right in laws:
        found = exact.epsilon(exact.pair(left, right, error=1e-17))
        assert found.lower <= 1.0
        assert found.upper <= 1.0 + 1e-9


def test_exponential_mechanism_is_tight() -> None:
    many = [10] + [0] * 50
    fewer = [9] + [1] * 50
    laws = exact.pair(outputs.exponential(many, weight=0.5), outputs.exponential(fewer, weight=0.5))
    assert 0.5 < exact.epsilon(laws).lower <= 1.0


def brute_force(
    mechanism: outputs.SparseVectorOutputs, queries: list[int]
) -> dict[tuple[bool, ...], float]:
    """Every draw of a three-point noise, one by one."""
    law: dict[tuple[bool, ...], float] = defaultdict(float)

    def step(answers: tuple[bool, ...], hits: int, rho: int, mass: float) -> None:
        i = len(answers)
        if i == len(queries) or hits == mechanism.cutoff:
            law[answers] += mass
            return
        for nu, m in zip((-1, 0, 1), SMALL.mass, strict=True):
            above = queries[i] + nu >= mechanism.threshold + rho
            if above and mechanism.refresh is not None:
                for fresh, f in zip((-1, 0, 1), SMALL.mass, strict=True):
                    step((*answers, True), hits + 1, fresh, mass * m * f)
            else:
                step((*answers, above), hits + above, rho, mass * m)

    for rho, m in zip((-1, 0, 1), SMALL.mass, strict=True):
        step((), 0, rho, float(m))
    return law


@pytest.mark.parametrize("refresh", [None, SMALL])
@pytest.mark.parametrize("cutoff", [1, 2, None])
def test_sparse_vector_equals_enumeration(
    refresh: lattice.LatticeDistribution | None, cutoff: int | None
) -> None:
    mechanism = outputs.SparseVectorOutputs(
        threshold=1, threshold_noise=SMALL, query_noise=SMALL, cutoff=cutoff, refresh=refresh
    )
    queries = [0, 2, 1, 0]
    law = {k: v for k, v in mechanism.law(queries).items() if v > 0}
    assert law == pytest.approx(brute_force(mechanism, queries), abs=1e-14)


def test_published_value_equals_enumeration() -> None:
    mechanism = outputs.SparseVectorOutputs(
        threshold=1, threshold_noise=SMALL, query_noise=SMALL, cutoff=1
    )
    queries = [0, 1]
    law: dict[tuple[int, int], float] = defaultdict(float)
    for rho, a, b in itertools.product((-1, 0, 1), repeat=3):
        mass = float(np.prod([SMALL.mass[x + 1] for x in (rho, a, b)]))
        values = [queries[0] + a, queries[1] + b]
        first = next((i for i in (0, 1) if values[i] >= 1 + rho), -1)
        law[(first, values[first] if first >= 0 else 0)] += mass
    found = {k: v for k, v in mechanism.law_with_value(queries).items() if v > 0}
    assert found == pytest.approx(law, abs=1e-14)


def test_truncated_laplace_closed_form() -> None:
    """Given |k| <= B one edge is new on the neighbor: mass r^B (1-r)/(1+r-2r^(B+1))."""
    scale, bound = 2.0, 15
    noise = lattice.discrete_laplace(scale).condition(-bound, bound)
    r = math.exp(-1 / scale)
    edge = r**bound * (1 - r) / (1 + r - 2 * r ** (bound + 1))
    found = exact.delta(exact.pair(noise, noise.shift(1)), 1 / scale)
    assert found.lower <= edge <= found.upper
    assert found.upper - found.lower < 1e-12

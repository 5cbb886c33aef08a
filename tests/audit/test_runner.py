"""The audit table: every broken mechanism is caught, twice where its laws are known."""

from __future__ import annotations

import dataclasses
import itertools
import math

import numpy as np
import pytest

from discreet.audit import exact
from discreet.audit.case import AuditCase
from discreet.audit.cases import broken
from discreet.audit.cases import sparse_vector as variants
from discreet.audit.lattice_distribution import discrete_laplace
from discreet.audit.runner import FAMILY, audit_case, run_audit

ALL = (*broken.cases(), *(case for case in variants.cases() if not case.broken))
REQUIRED = {
    "scale 10% too small",
    "sigma 10% too small",
    "Lap(epsilon) for Lap(1/epsilon)",
    "float Laplace, low bits",
    "redrawn until positive",
    "same noise twice",
    "clamp forgotten",
    "seed used again",
    "mixed noise mechanism",
    "median by local sensitivity",
    "deviation by R/n",
    "mean by max(|lower|, |upper|)/n",
    "Gaussian without the squares",
    "block mean by the whole size",
    "NaN passes",
    "exact count for nothing",
}


def test_what_must_be_there_is_there() -> None:
    assert {case.name for case in ALL} >= REQUIRED
    assert sum(case.name.startswith("sparse vector") for case in ALL) == 6
    assert len({case.name for case in ALL}) == len(ALL)


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_verdict(case: AuditCase) -> None:
    row = audit_case(case, failure_probability=FAMILY / len(ALL), samples=case.samples, seed=11)
    assert row.verdict == ("BROKEN" if case.broken else "holds")
    if case.broken:
        assert row.attacked.broken
        assert row.attacked.epsilon > row.claimed.epsilon
        assert case.why
    if row.exact is not None:
        assert (row.exact.lower > row.claimed.epsilon) == case.broken
        # What samples prove cannot exceed what is true.
        assert row.attacked.epsilon <= row.exact.upper


@pytest.mark.parametrize(
    ("name", "epsilon"),
    [
        ("scale 10% too small", 1 / 0.9),
        ("Lap(epsilon) for Lap(1/epsilon)", 2.0),
        ("clamp forgotten", 10.0),
        ("sparse vector: 4, Lee and Clifton 2014", (1 + 6 * 3) / 4),
    ],
)
def test_exact_epsilon_of_the_broken(name: str, epsilon: float) -> None:
    """The last one: (1 + 6c)/4 is the tight bound of Lyu, Su, Li 2017, reached by long streams."""
    case = next(case for case in ALL if case.name == name)
    assert case.laws is not None
    found = exact.epsilon(case.laws())
    assert found.lower <= epsilon * (1 + 1e-12)
    assert found.upper >= 0.99 * epsilon


def test_exact_delta_of_the_broken() -> None:
    """M35: 0.0396 for a claimed 0.001; M13: 0.028 for a claimed 1e-5; B2: 0.019 for a claimed 0."""
    for name, true in [
        ("mixed noise mechanism", 0.0396),
        ("Gaussian without the squares", 0.028),
        ("mean of a secret size", 0.019),
    ]:
        case = next(case for case in ALL if case.name == name)
        assert case.laws is not None
        assert exact.delta(case.laws(), 1.0).lower == pytest.approx(true, rel=0.02), name


def test_longer_streams_break_variant_six_without_limit() -> None:
    variant = variants.SparseVectorVariant(threshold_scale=2.0, query_scale=2.0, cutoff=None)
    found = [
        exact.epsilon(variant.laws([0] * 2 * m, [1] * m + [-1] * m)).lower for m in (1, 2, 4, 6)
    ]
    assert all(b > a + 0.4 for a, b in itertools.pairwise(found))
    # Lyu, Su, Li 2017: at least m epsilon / 2.
    assert all(e >= m / 2 for e, m in zip(found, (1, 2, 4, 6), strict=True))


def _case(*, scale: float, broken: bool) -> AuditCase:
    noise = discrete_laplace(scale)

    def draw(value: int, n: int, seed: int) -> np.ndarray:
        return value + variants.laplace_integers(scale, n, np.random.default_rng(seed))

    return AuditCase(
        name=f"laplace {scale}",
        claimed=(1.0, 0.0),
        draw=draw,
        left=0,
        right=1,
        laws=lambda: exact.pair(noise.clamp(0, 1), noise.shift(1).clamp(0, 1)),
        broken=broken,
    )


def test_the_audit_itself_can_fail() -> None:
    """A broken one that is called good is an accusation; a good one called broken is a miss."""
    verdicts = [
        row.verdict
        for row in run_audit(
            [
                _case(scale=1.0, broken=False),
                _case(scale=0.9, broken=True),
                _case(scale=0.9, broken=False),
                _case(scale=1.0, broken=True),
                # Too fine for the samples, but not for the sums.
                _case(scale=0.999, broken=False),
            ],
            samples=200_000,
        )
    ]
    assert verdicts == ["holds", "BROKEN", "ACCUSED", "MISSED", "ACCUSED"]


def test_rows_are_reproducible_and_reported_one_by_one() -> None:
    cases = [_case(scale=1.0, broken=False), _case(scale=0.5, broken=True)]
    seen = []
    first = run_audit(cases, samples=20_000, progress=seen.append)
    again = run_audit(cases, samples=20_000)
    assert [dataclasses.asdict(row) for row in first] == [dataclasses.asdict(row) for row in again]
    assert [row.name for row in seen] == [case.name for case in cases]
    assert all(row.ok for row in first)
    assert math.isfinite(first[1].attacked.epsilon)

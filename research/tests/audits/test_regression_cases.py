"""Claims about private regression: which sums move how far, and that the audit sees it."""

import math

import numpy as np
import pytest

from discreet.accounting.guarantee import gdp
from discreet.audit.runner import FAMILY, audit_case, registered
from discreet_studies.audits import regression_cases
from discreet_studies.audits.regression_cases import (
    by_bounds,
    by_largest,
    by_moments,
    change,
    claims,
    largest_pair,
    mean_pair,
    sigma,
    target_pair,
)

CASES = {case.name: case for case in regression_cases.cases()}


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=pytest.mark.slow if n.startswith("SSP") else ()) for n in CASES],
)
def test_a_case_gets_its_verdict(name):
    case = CASES[name]
    # The gaps are wide, but for SSP.
    samples = case.samples if name.startswith("SSP") else min(case.samples, 50_000)
    row = audit_case(case, failure_probability=FAMILY / len(registered()), samples=samples, seed=11)
    assert row.ok, row
    assert row.verdict == ("BROKEN" if case.broken else "not refuted")


def test_cases_are_registered_with_the_audit():
    assert {case.name for case in registered()} >= set(CASES)


@pytest.mark.parametrize("rows", [10, 100, 1000])
def test_one_outlier_moves_everything_that_is_scaled_by_the_largest(rows):
    # X'X: n becomes n/100 + 1; X'y: n becomes n/10 + 1.
    expected = math.hypot(0.99 * rows - 1, 0.9 * rows - 1)
    assert change(by_largest, *largest_pair(rows)) == pytest.approx(expected)
    assert change(by_largest, *target_pair(rows)) == pytest.approx(math.hypot(1, 0.9 * rows - 1))
    # Every sign turns to minus: X'y falls from n to 0.
    assert change(by_moments, *mean_pair(rows)) == pytest.approx(math.hypot(1, rows))


def test_declared_bounds_are_never_exceeded_and_are_attained():
    rng = np.random.default_rng(8)
    worst = 0.0
    for _ in range(2000):
        rows = [tuple(row) for row in rng.normal(0, 2, (rng.integers(1, 6), 2)).tolist()]
        more = (*rows, tuple(rng.normal(0, 2, 2).tolist()))
        worst = max(worst, change(by_bounds, rows, more))
    assert worst <= math.sqrt(2) + 1e-12
    assert change(by_bounds, [(0.0, 0.0)], [(0.0, 0.0), (1.0, 1.0)]) == pytest.approx(math.sqrt(2))
    assert gdp(math.sqrt(2) / sigma()).epsilon(1e-6) == pytest.approx(1, abs=1e-6)


def test_claims_are_refuted_by_their_events_and_repaired():
    found = {claim.name: claim for claim in claims()}
    assert len(found) == 7
    assert all(claim.ok for claim in found.values())
    assert found["SSP as coded, epsilon 1 (M3b)"].true == pytest.approx(5.2e-4, rel=0.01)
    # The more rows, the worse.
    true = [found[f"regression by the largest of {n} rows (M4)"].true for n in (10, 100)]
    assert true[0] < 0.6
    assert true[1] > 0.999

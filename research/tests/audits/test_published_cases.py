"""Broken claims of a thesis: each caught, by samples and by sums, and what replaces it is not."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from click.testing import CliRunner
from scipy import integrate, stats

from discreet.audit import exact
from discreet.audit.case import AuditCase
from discreet.audit.runner import FAMILY, audit_case, registered
from discreet.cli.main import main
from discreet_studies.audits import corrected_mechanisms as published_sound
from discreet_studies.audits import published_cases, published_claims
from discreet_studies.audits import published_distributions as laws

BROKEN = published_cases.published()
SOUND = published_sound.cases()


def quick(case: AuditCase) -> int:
    """Where every output is a release of its own a few hundred do."""
    return min(case.samples, 500) if case.samples <= 2_000 else case.samples


@pytest.mark.parametrize("case", [c for c in BROKEN if c.samples < 1_000_000], ids=lambda c: c.name)
def test_a_broken_claim_is_caught(case: AuditCase) -> None:
    row = audit_case(case, failure_probability=FAMILY / 100, samples=case.samples, seed=11)
    assert row.verdict == "BROKEN"
    assert row.exact is not None
    assert row.claimed.epsilon < row.attacked.epsilon <= row.exact.upper


@pytest.mark.slow
@pytest.mark.parametrize(
    "case", [c for c in BROKEN if c.samples >= 1_000_000], ids=lambda c: c.name
)
def test_a_broken_claim_is_caught_by_many_samples(case: AuditCase) -> None:
    test_a_broken_claim_is_caught(case)


@pytest.mark.parametrize("case", SOUND, ids=lambda case: case.name)
def test_what_is_right_is_not_accused(case: AuditCase) -> None:
    row = audit_case(case, failure_probability=FAMILY / 100, samples=quick(case), seed=11)
    assert row.verdict in ("holds", "not refuted")


def test_cases_have_names_of_their_own_and_all_are_registered() -> None:
    names = [case.name for case in registered()]
    assert len(set(names)) == len(names)
    assert {case.name for case in published_cases.cases()} <= set(names)


@pytest.mark.parametrize(
    ("name", "delta"),
    [
        ("smooth Gaussian, published smoothness", 0.2237),
        ("smooth Laplace, dilation at epsilon 6", 0.06196),
        ("mixed noise of any sigma", 0.02452),
        ("blurred local sensitivity", 0.7922),
        ("one flip, answered twice", 0.375),
        ("k-noise called private", 0.2),
    ],
)
def test_exact_delta_at_the_claimed_epsilon(name: str, delta: float) -> None:
    case = next(case for case in BROKEN if case.name == name)
    assert case.laws is not None
    assert isinstance(case.claimed, tuple)
    assert exact.delta(case.laws(), case.claimed[0]).lower == pytest.approx(delta, rel=1e-3)


@pytest.mark.parametrize(("name", "epsilon"), [
    ("parts by value, the worst part", 2.0),
    ("blocks of values, left edge for empty ones", 2.0),
    ("bounded Laplace by D/epsilon", 1.4898),
    ("subsample and aggregate, not clamped", 10.0),
])  # fmt: skip
def test_exact_pure_epsilon(name: str, epsilon: float) -> None:
    case = next(case for case in BROKEN if case.name == name)
    assert case.laws is not None
    assert exact.epsilon(case.laws()).lower == pytest.approx(epsilon, rel=4e-3)


def test_every_claim_is_refuted_by_its_event_and_its_repair_holds() -> None:
    found = published_claims.claims()
    assert len({claim.name for claim in found}) == len(found) == 16
    for claim in found:
        assert claim.ok, claim
        seen = claim.event.at_left - math.exp(claim.epsilon) * claim.event.at_right
        assert seen == claim.true > claim.claimed
        assert str(claim.event) in str(claim)


def test_a_claim_that_holds_is_not_refuted() -> None:
    sigma = laws.analytic_sigma(1, 1e-5)
    event = published_claims.telling(stats.norm(0, sigma), stats.norm(1, sigma), 1.0)
    assert event.at_left - math.e * event.at_right == pytest.approx(1e-5, rel=1e-6)


def test_the_command_prints_claims_with_their_witnesses() -> None:
    def refuse(word: str) -> None:
        raise AssertionError(word)

    asked = ["k-PRAM", *{claim.name for claim in published_claims.claims()}]
    result = CliRunner().invoke(main, ["audit", "--published", "--json", *asked])
    assert result.exit_code == 0
    lines = [json.loads(line, parse_constant=refuse) for line in result.output.splitlines()]
    assert all(line["ok"] for line in lines)
    assert lines[0]["verdict"] == "BROKEN"
    assert lines[0]["witness"]
    assert sum("repaired_delta" in line and bool(line["event"]) for line in lines) == 16


# ── the closed forms, against quadrature ──────────────────────────────────────────────────────


def integral(left: stats.rv_continuous, right: stats.rv_continuous, epsilon: float) -> float:
    """On so fine a grid that the kinks do not matter."""
    x = np.linspace(-90, 90, 900_001)
    gain = np.maximum(left.pdf(x) - math.exp(epsilon) * right.pdf(x), 0)
    return float(integrate.trapezoid(gain, x))


@pytest.mark.parametrize(
    ("left", "right", "shift", "epsilon"),
    [(2.0, 1.0, 0.0, 1.0), (1.0, 2.0, 0.5, 0.2), (3.0, 1.5, -2.0, 1.5), (1.0, 1.0, 2.0, 1.0),
     (1.3, 1.0, 1.0, 0.9), (1.0, 1.3, 1.0, 0.0)],
)  # fmt: skip
def test_divergences_are_integrals(left: float, right: float, shift: float, epsilon: float) -> None:
    scales = {"left": left, "right": right, "shift": shift}
    for closed, law in ((laws.laplace_delta, stats.laplace), (laws.gaussian_delta, stats.norm)):
        found = integral(law(0, left), law(shift, right), epsilon)
        assert closed(epsilon, **scales) == pytest.approx(found, abs=1e-7)


def test_smooth_laplace_is_the_worst_pair() -> None:
    rng = np.random.default_rng(1)
    for epsilon, beta, c in ((1.0, 0.05, 2.0), (10.0, 0.9, 1.5), (0.5, 0.02, 1.3)):
        worst = laws.smooth_laplace_delta(epsilon, beta=beta, multiplier=c)
        found = [
            laws.laplace_delta(
                epsilon,
                left=c / epsilon * math.exp(ratio),
                right=c / epsilon,
                shift=shift * min(1.0, math.exp(ratio)),
            )
            for ratio, shift in zip(
                rng.uniform(-beta, beta, 300), rng.uniform(0, 1, 300), strict=True
            )
        ]
        corner = laws.laplace_delta(
            epsilon, left=c / epsilon * math.exp(beta), right=c / epsilon, shift=1.0
        )
        assert max(found) <= worst == pytest.approx(corner, rel=1e-9)


def test_the_multiplier_is_the_smallest() -> None:
    for epsilon, delta, beta in ((0.5, 1e-4, 0.0252), (1, 1e-6, 0.02), (2, 1e-6, 0.0689)):
        c = laws.smooth_laplace_multiplier(epsilon, delta, beta=beta)
        assert laws.smooth_laplace_delta(epsilon, beta=beta, multiplier=c) == pytest.approx(delta)
    assert laws.smooth_laplace_multiplier(1, 1e-6, beta=0.5) == math.inf


def test_beyond_the_closed_form_the_corners_count() -> None:
    """A smoothness near epsilon: the narrower law may exceed the wider one, too."""
    found = laws.smooth_laplace_delta(0.5, beta=0.6, multiplier=1.0)
    wide = 2.0 * math.exp(0.6)
    pairs = [laws.laplace_delta(0.5, left=a, right=b, shift=s)
             for a, b in ((wide, 2.0), (2.0, wide)) for s in (0.0, 1.0)]  # fmt: skip
    assert found == max(pairs) > 0


def test_weighted_sensitivity_is_worst_where_it_jumps() -> None:
    rng = np.random.default_rng(2)
    for epsilon, b in ((1.0, 0.5), (2.0, 0.7), (0.5, 0.9), (5.0, 0.2)):
        worst = laws.weighted_delta(epsilon, b)
        jump = laws.laplace_delta(epsilon, left=1 / epsilon, right=b / epsilon, shift=0.0)
        assert worst == pytest.approx(jump, rel=1e-9)
        for first, second, share in rng.uniform(size=(300, 3)):
            scales = [((1 - b) * local + b) / epsilon for local in (first, second)]
            shift = share * min(first, second)
            found = laws.laplace_delta(epsilon, left=scales[0], right=scales[1], shift=shift)
            assert found <= worst * (1 + 1e-9)


def test_errors_within_bounds_by_draws() -> None:
    rng = np.random.default_rng(6)
    drawn = np.clip(3 + rng.laplace(0, 2, 400_000), 0, 10)
    spread = np.square(drawn - 3).std() / math.sqrt(drawn.size)
    assert abs(np.square(drawn - 3).mean() - laws.clamped_error(3, 2, width=10)) < 6 * spread
    kept = 3 + rng.laplace(0, 2, 600_000)
    kept = kept[(kept >= 0) & (kept <= 10)]
    spread = np.square(kept - 3).std() / math.sqrt(kept.size)
    assert abs(np.square(kept - 3).mean() - laws.bounded_error(3, 2, width=10)) < 6 * spread


def test_bounded_noise_by_sums() -> None:
    x = np.linspace(0, 10, 400_001)
    middle = (x[1:] + x[:-1]) / 2
    for q in (0.0, 0.1, 0.384, 4.0):
        masses = [np.exp(-np.abs(middle - c) / 1.2) for c in (q, q + 1)]
        p, r = (mass / mass.sum() for mass in masses)
        for first, second, a, b in ((p, r, q, q + 1), (r, p, q + 1, q)):
            for epsilon in (0.2, 0.7, 1.0):
                found = float(np.maximum(first - math.exp(epsilon) * second, 0).sum())
                closed = laws._bounded_pair(epsilon, 1.2, left=a, right=b, width=10)
                assert closed == pytest.approx(found, abs=1e-6)


def test_sums_of_two_laplace_noises_by_integration() -> None:
    x = np.linspace(-60, 60, 2_000_001)
    density = (1 + np.abs(x)) * np.exp(-np.abs(x)) / 4
    shifted = (1 + np.abs(x - 1)) * np.exp(-np.abs(x - 1)) / 4
    for epsilon in (0.1, 0.5, 0.75):
        found = integrate.trapezoid(np.maximum(density - math.exp(epsilon) * shifted, 0), x)
        assert laws.two_laplace_delta(epsilon) == pytest.approx(float(found), abs=1e-7)
    assert laws.two_laplace_delta(1.0) == 0

"""Statistics, intervals and a panel in the audit: none is accused, and laws are listed whole."""

import dataclasses

import pytest

from discreet.audit import exact
from discreet.audit.case import AuditCase
from discreet.audit.cases import statistics as statistic_cases
from discreet.audit.cases.statistics import cases
from discreet.audit.runner import FAMILY, audit_case

CASES = {case.name: case for case in cases()}


@pytest.mark.parametrize("case", CASES.values(), ids=lambda case: case.name)
def test_none_is_accused(case: AuditCase) -> None:
    samples = min(case.samples, 1_000)
    row = audit_case(case, failure_probability=FAMILY / 100, samples=samples, seed=5)
    assert row.verdict in ("holds", "not refuted")


@pytest.mark.parametrize("name", ["clamped laplace", "folded laplace", "counts of bins"])
def test_laws_are_listed_whole_and_use_the_claim(name: str) -> None:
    laws = CASES[name].laws()
    assert laws.left.sum() == pytest.approx(1, abs=1e-9)
    assert laws.right.sum() == pytest.approx(1, abs=1e-9)
    assert 0.99 < exact.epsilon(laws).upper < 1 + 1e-9


def test_laws_are_those_of_the_noise_that_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """With half of the noise the exact epsilon is twice the claimed one: none is the claim's."""
    for name in ("laplace", "private_bin_counts"):
        made = getattr(statistic_cases, name)
        monkeypatch.setattr(
            statistic_cases, name, lambda made=made, **given: made(**{**given, "epsilon": 2})
        )
    halved = {case.name: case for case in cases()}
    for name in ("clamped laplace", "folded laplace", "counts of bins"):
        assert exact.epsilon(halved[name].laws()).lower > 1.9


def test_half_of_the_noise_is_caught() -> None:
    case = CASES["clamped laplace"]
    wrong = dataclasses.replace(case, claimed=(0.5, 0.0), laws=None, broken=True)
    assert audit_case(wrong, failure_probability=FAMILY, samples=50_000, seed=5).verdict == "BROKEN"

"""Personalized mechanisms: no level loses more than promised, and every mistake is caught."""

import pytest

from discreet.audit import exact
from discreet.audit.cases import personalized as personal_cases
from discreet.audit.cases.personalized import EPSILONS, LEVELS
from discreet.audit.runner import FAMILY, audit_case, registered

SOUND, MISTAKEN = personal_cases.sound(), personal_cases.mistaken()


def verdict(case):
    # The sums are the sharper check: few samples do, but for what must be caught by them.
    samples = min(case.samples, 400_000) if case.broken else min(case.samples // 5, 20_000)
    return audit_case(
        case, failure_probability=FAMILY / len(registered()), samples=samples, seed=5
    ).verdict


@pytest.mark.parametrize("case", SOUND, ids=lambda case: case.name)
def test_every_level_holds(case):
    assert verdict(case) == "holds"


@pytest.mark.parametrize("case", MISTAKEN, ids=lambda case: case.name)
def test_every_mistake_is_caught(case):
    assert verdict(case) == "BROKEN"


def test_each_mechanism_has_a_case_for_each_level():
    names = {case.name for case in registered()}
    assert names >= {case.name for case in (*SOUND, *MISTAKEN)}
    kinds = {case.name.rsplit(", ", 1)[0] for case in SOUND}
    assert kinds == {"stretching", "sampling", "personal count", "personal quantile", "partition"}
    assert {f"{kind}, {level}" for kind in kinds for level in LEVELS} <= names


def test_noise_uses_up_what_a_level_allows():
    """Else a level would be protected by chance, and not by its budget."""
    found = {case.name: exact.epsilon(case.laws()).lower for case in SOUND}
    for kind in ("stretching", "sampling"):
        for level in LEVELS:
            assert found[f"{kind}, {level}"] == pytest.approx(float(EPSILONS[level]), rel=1e-6)
    # Open people who are alike are in a run of their own; the others share the strict one.
    assert found["partition, open"] == pytest.approx(2)
    assert found["partition, usual"] == pytest.approx(0.2)

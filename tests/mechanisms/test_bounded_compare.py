"""Advice on bounded outputs: losses against closed forms and sums, the choice against all."""

import math

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument
from discreet.mechanisms.bounded._divergence import table
from discreet.mechanisms.bounded.compare import compare_bounded_noise
from discreet.mechanisms.scalar.best_noise import best_additive_noise


def advice(**options):
    return compare_bounded_noise(
        **{"lower": 0, "upper": 10, "sensitivity": 1, "epsilon": 1, **options}
    )


def losses(given):
    return {one.name: one.loss for one in given.options}


def exact_laws(span, epsilon, bounded_scale):
    """Row: truth, column: output; by brute force on whole numbers."""
    ratio = math.exp(-epsilon)
    k = np.arange(-4000, 4001)
    noise = (1 - ratio) / (1 + ratio) * ratio ** np.abs(k)
    laws = {"clamped laplace": [], "folded laplace": []}
    for truth in range(span + 1):
        ends = np.clip(truth + k, 0, span)
        turned = np.abs((truth + k + span) % (2 * span) - span)
        laws["clamped laplace"].append(np.bincount(ends, noise, minlength=span + 1))
        laws["folded laplace"].append(np.bincount(turned, noise, minlength=span + 1))
    return {**laws, "bounded laplace": table(span, bounded_scale)}


@pytest.mark.parametrize("epsilon", [0.1, 1, 3])
@pytest.mark.parametrize("prior", ["uniform", "worst", [0, 2]])
@pytest.mark.parametrize("loss", ["mse", "mae", "p95"])
def test_losses_on_whole_numbers_are_exact(epsilon, prior, loss):
    given = advice(upper=6, epsilon=epsilon, prior=prior, loss=loss)
    direct = next(one.mechanism for one in given.options if one.name == "bounded laplace")
    truths = prior if isinstance(prior, list) else range(7)
    errors = np.abs(np.subtract.outer(np.arange(7), np.arange(7)))
    for name, laws in exact_laws(6, epsilon, direct.scale).items():
        rows = [np.bincount(errors[t], laws[t], minlength=7) for t in truths]
        if prior != "worst":
            rows = [np.mean(rows, axis=0)]
        size = np.arange(7)
        measured = {
            "mse": [math.sqrt(row @ size**2) for row in rows],
            "mae": [row @ size for row in rows],
            "p95": [int(np.argmax(np.cumsum(row) >= 0.95 * (1 - 1e-12))) for row in rows],
        }
        assert losses(given)[name] == pytest.approx(max(measured[loss]), rel=1e-9)


def test_the_best_comes_first_and_keeps_the_promise():
    for options in ({}, {"epsilon": 0.1}, {"prior": "worst"}, {"delta": 0.01, "domain": "reals"}):
        given = advice(**options)
        found = [one.loss for one in given.options]
        assert found == sorted(found)
        assert given.best is given.options[0].mechanism
        for one in given.options:
            assert one.mechanism.certify().holds
            delta = one.mechanism.guarantee.delta(options.get("epsilon", 1))
            assert delta <= options.get("delta", 0) * (1 + 1e-9)
            assert 0 <= one.mechanism.release(3) <= 10


def test_each_way_has_its_place():
    assert advice(prior="worst").options[0].name == "clamped laplace"
    assert advice(epsilon=0.1, prior=[5], domain="reals").options[0].name == "bounded laplace"
    assert advice(prior=[5]).options[0].name == "folded laplace"
    assert advice(epsilon=8, domain="reals").options[0].name == "clamped staircase"
    assert advice(delta=0.05).options[0].name == "clamped grafted"


def test_published_errors_on_reals():
    """Mean squared errors of M48: clamped 18.0 and bounded 7.78 in the middle, 1.00 at a bound."""
    middle = losses(advice(epsilon=0.1, prior=[5], domain="reals"))
    assert middle["clamped laplace"] ** 2 == pytest.approx(18.0, abs=0.05)
    assert middle["bounded laplace"] ** 2 == pytest.approx(7.78, abs=0.005)
    edge = losses(advice(prior=[0], domain="reals"))
    assert edge["clamped laplace"] ** 2 == pytest.approx(1.0, abs=0.001)


@pytest.mark.parametrize("on", ["reals", "integers"])
@pytest.mark.parametrize("delta", [0, 0.01])
def test_far_bounds_leave_every_noise_as_it_is(on, delta):
    given = advice(lower=-1000, upper=1000, prior=[0], delta=delta, domain=on, epsilon=0.5)
    plain = {
        one.name: one.loss
        for one in best_additive_noise(
            sensitivity=1, epsilon=0.5, delta=delta, domain=on
        ).candidates
    }
    found = losses(given)
    assert {f"clamped {name}" for name in plain} < found.keys()
    for name, loss in plain.items():
        assert found[f"clamped {name}"] == pytest.approx(loss, rel=1e-3)


def test_guessing_is_compared():
    wide = advice(epsilon=0.01, domain="reals")
    assert wide.constant == pytest.approx(10 / math.sqrt(12), rel=1e-3)
    assert not wide.worthwhile
    assert "Guessing" in wide.explain()
    assert advice(epsilon=1).worthwhile
    assert "Guessing" not in advice(epsilon=1).explain()


@pytest.mark.parametrize(
    "options", [{"loss": "rms"}, {"prior": "normal"}, {"prior": []}, {"prior": [11]}], ids=repr
)
def test_refused(options):
    with pytest.raises(InvalidArgument):
        advice(**options)

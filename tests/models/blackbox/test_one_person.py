"""One strange position or example is read by itself: no error, no warning, no other's value."""

from __future__ import annotations

import warnings
from decimal import Decimal

import numpy as np
import pytest

import discreet
from discreet.models.blackbox import Records, make_private, release_examples

STRANGE = [
    None, float("nan"), float("inf"), 1e308, 10**400, "x", "1", True, b"1", 1j, [1], [1, 2], {},
    np.datetime64("2020-01-01"), Decimal("NaN"), object(), np.longdouble("1e400"), (1, 2, 3),
]  # fmt: skip


def _mechanism(public, function):
    return make_private(
        function, public_inputs=public, metric="record", epsilon=10**4, bounds=(0, 10)
    )


@pytest.mark.parametrize("place", range(len(STRANGE)))
def test_a_strange_position_is_that_position_alone(place):
    seen = []

    def function(rows):
        seen.append(np.array(rows))
        return float(np.mean(rows))

    draw = np.random.default_rng(0)
    flat = _mechanism(draw.uniform(0, 10, size=(20, 4)), function)
    wide = _mechanism(draw.uniform(0, 10, size=(20, 4, 2)), function)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for made, honest in ((flat, [1.0, 2.0, 3.0]), (wide, [[1.0, 2.0]] * 3)):
            made.box.evaluate(made.box.shape.clean(made.box.shape.read([*honest, STRANGE[place]])))
            assert np.array_equal(seen[-1][:3], np.array(honest))
            assert isinstance(made.release([*honest, STRANGE[place]]), float)


@pytest.mark.parametrize("place", range(len(STRANGE)))
def test_a_strange_example_moves_its_own_count_alone(place):
    asked = {"anchors": [[0.0], [5.0]], "metric": Records(), "bounds": (0, 10), "epsilon": 10**5}
    inputs, outputs = [[0.0], [5.0]] * 20, [1.0, 9.0] * 20
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for odd_input, odd_output in ((STRANGE[place], 5.0), ([0.0], STRANGE[place])):
            found = release_examples(
                [*inputs, odd_input], [*outputs, odd_output], **asked, rng=discreet.seeded_rng(1)
            )
            # Of twenty-one examples at an anchor one is not what the others are.
            assert np.abs(found.outputs - [1, 9]).max() <= 9 / 21 + 0.01


def test_what_a_function_draws_for_one_input_does_not_reach_the_next():
    def function(rows):
        return float(np.random.random(1 + int(rows[0] > 5)).mean())  # noqa: NPY002

    made = _mechanism(np.random.default_rng(0).uniform(0, 10, size=(20, 4)), function)
    after = []
    for first in (1.0, 9.0):
        np.random.seed(1)  # noqa: NPY002
        made.release([first, 0.0, 0.0, 0.0])
        after.append(np.random.random())  # noqa: NPY002
    assert after[0] == after[1]

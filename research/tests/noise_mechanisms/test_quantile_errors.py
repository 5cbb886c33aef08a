"""The table of errors: every shape and mechanism, and the order that theory says."""

import numpy as np

from discreet_studies.noise_mechanisms.median_errors import mechanisms, median_errors, shapes


def test_every_mechanism_on_every_shape():
    found = median_errors(rows=301, trials=12)
    assert len(found) == len(shapes(301)) * len(mechanisms(301))
    errors = {(row.shape, row.mechanism): row.mean_absolute for row in found}
    for shape in ("uniform", "normal", "exponential"):
        chosen, lomax, delta, plain = (
            errors[shape, name]
            for name in (
                "interpolated choice",
                "smooth, Lomax",
                "smooth, Laplace, δ",
                "Laplace, global",
            )
        )
        assert chosen < lomax < delta < plain
    ranks = {(row.shape, row.mechanism): row.mean_ranks for row in found}
    assert ranks["uniform", "interpolated choice"] < 12
    assert ranks["uniform", "Laplace, global"] > 60


def test_shapes_lie_between_the_bounds_and_do_not_change():
    once, again = shapes(99), shapes(99)
    for name, column in once.items():
        assert len(column) == 99
        assert 0 <= column.min() <= column.max() <= 100
        assert np.array_equal(column, again[name])

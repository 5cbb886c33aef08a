"""The error to expect of each method, from public facts alone.

Errors were simulated on synthetic rows (`simulate`): features that are normal, skewed and binary in
turns, a linear target with seven tenths of its variance explained and heavy tails, bounds of very
different widths, everything off their midpoints. What matters is the signal, rows times mu over the
root of the columns, and how many deviations the declared bounds are away: not the bounds
themselves, because every method scales by them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.models._model_inputs import Floats
from discreet.models.regression._row_sources import ArrayRows
from discreet.models.regression._task import RegressionMethod, RegressionTask
from discreet.noise.random_source import seeded_rng
from discreet.query.budget import QueryBudget, budget

# ── Simulated errors ─────────────────────────────────────────────────────────────────────────────
# In multiples of least squares: written by `tabulate`.


SIGNALS = (3, 10, 20, 40, 80, 200, 600, 2000, 10000)
WIDTHS = (4.0, 12.0, 40.0)
FEATURES = (1, 3, 8, 20)
TABLE: Mapping[str, tuple[tuple[tuple[float, ...], ...], ...]] = {
    "level": (
        (
            (3.688, 3.688, 3.399, 3.281, 3.247, 3.245, 3.245, 3.245, 3.245),
            (4.075, 4.075, 3.247, 3.245, 3.245, 3.245, 3.246, 3.246, 3.246),
            (4.333, 3.506, 3.447, 3.433, 3.427, 3.424, 3.422, 3.422, 3.422),
            (3.704, 3.261, 3.234, 3.233, 3.232, 3.232, 3.232, 3.231, 3.231),
        ),
        (
            (38.51, 3.383, 3.281, 3.253, 3.247, 3.246, 3.246, 3.246, 3.246),
            (62.73, 3.287, 3.252, 3.245, 3.245, 3.245, 3.245, 3.245, 3.245),
            (46.65, 3.496, 3.455, 3.436, 3.431, 3.425, 3.42, 3.42, 3.42),
            (3.334, 3.241, 3.238, 3.233, 3.23, 3.233, 3.231, 3.231, 3.231),
        ),
        (
            (598.2, 3.36, 3.294, 3.25, 3.252, 3.252, 3.249, 3.249, 3.249),
            (996.8, 3.29, 3.253, 3.245, 3.245, 3.245, 3.245, 3.245, 3.25),
            (732.5, 3.474, 3.444, 3.444, 3.428, 3.428, 3.428, 3.411, 3.411),
            (3.373, 3.24, 3.24, 3.24, 3.227, 3.227, 3.227, 3.227, 3.227),
        ),
    ),
    "gradient": (
        (
            (4.393, 3.453, 1.949, 1.448, 1.103, 1.095, 1.108, 1.108, 1.108),
            (5.145, 3.225, 2.27, 1.734, 1.383, 1.296, 1.256, 1.25, 1.247),
            (4.771, 2.889, 2.471, 2.143, 1.896, 1.893, 1.89, 1.89, 1.908),
            (4.663, 2.966, 2.567, 2.256, 2.183, 2.168, 2.189, 2.193, 2.195),
        ),
        (
            (40.52, 15.04, 2.847, 1.821, 1.105, 1.131, 1.112, 1.112, 1.092),
            (51.54, 8.065, 3.793, 2.494, 2.272, 2.213, 2.161, 2.164, 2.161),
            (39.47, 4.942, 2.605, 2.44, 2.305, 2.296, 2.296, 2.296, 2.297),
            (27.23, 3.027, 2.679, 2.512, 2.463, 2.487, 2.497, 2.5, 2.501),
        ),
        (
            (598.3, 155.8, 15.91, 1.854, 1.711, 1.105, 1.098, 1.115, 1.094),
            (718.5, 36.71, 6.679, 2.676, 2.619, 2.623, 2.602, 2.607, 2.605),
            (654.2, 20.95, 2.768, 2.702, 2.673, 2.688, 2.697, 2.7, 2.701),
            (257.6, 17.94, 2.742, 2.621, 2.595, 2.606, 2.608, 2.61, 2.611),
        ),
    ),
    "boosted": (
        (
            (6.199, 2.627, 1.679, 1.192, 1.132, 1.086, 1.02, 1.004, 1),
            (5.885, 4.854, 2.898, 1.454, 1.158, 1.178, 1.101, 1.053, 1.026),
            (4.408, 3.468, 2.92, 2.135, 1.596, 1.222, 1.124, 1.091, 1.081),
            (3.936, 3.062, 2.797, 2.467, 1.9, 1.304, 1.139, 1.07, 1.048),
        ),
        (
            (49.69, 26.39, 6.002, 1.238, 1.137, 1.071, 1.019, 1.005, 1),
            (54.89, 44.88, 15.34, 1.821, 1.156, 1.169, 1.097, 1.056, 1.017),
            (52.97, 11.3, 5.38, 2.18, 1.595, 1.218, 1.122, 1.067, 1.029),
            (47.93, 7.32, 2.842, 2.553, 1.888, 1.318, 1.127, 1.057, 1.032),
        ),
        (
            (769.3, 460, 78.83, 2.685, 1.14, 1.073, 1.02, 1.004, 1),
            (717.6, 576.7, 158.4, 2.194, 1.137, 1.167, 1.099, 1.046, 1.018),
            (750.6, 88.27, 28.48, 2.3, 1.569, 1.213, 1.128, 1.062, 1.026),
            (799.1, 39.17, 2.873, 2.602, 1.893, 1.324, 1.128, 1.053, 1.027),
        ),
    ),
    "theil_sen": (
        ((25.04, 4.43, 1.273, 1.047, 1.013, 1.003, 1.001, 0.9999, 0.9994),),
        ((280.2, 103.2, 14.82, 1.048, 1.013, 1.004, 1.002, 1, 0.9992),),
        ((3619, 1468, 933.2, 1.066, 1.014, 1.002, 1.002, 1.002, 1.002),),
    ),
}


# ── Forecast ─────────────────────────────────────────────────────────────────────────────────────


EXPLAINED = 0.7
_CORRELATION = 0.6
_ROWS = 2000
# Degrees of freedom of the errors.
_TAIL = 5


def forecast(
    *, expected_rows: float, features: int, mu: float, width: float = 10.0
) -> Mapping[str, float]:
    """Mean squared errors of all methods, in multiples of that of least squares without privacy.

    ``width``: how many deviations of a column fit into half its declared range, at a guess.
    """
    if not (expected_rows > 0 and mu > 0 and width > 0 and features >= 1):
        raise InvalidArgument("expected_rows, features, mu and width must be positive.")
    signal = expected_rows * mu / math.sqrt(features + 1)
    place = min(range(len(WIDTHS)), key=lambda i: abs(math.log(WIDTHS[i] / width)))
    # What is fitted from too few rows for the columns is worse even without privacy.
    sampling = 1 + (features + 1) / max(expected_rows, 1.0)
    found = {}
    for name, table in TABLE.items():
        if name == "theil_sen" and features > 1:
            continue
        rising = [
            float(np.interp(math.log(signal), np.log(SIGNALS), np.log(row))) for row in table[place]
        ]
        known = np.log(FEATURES[: len(rising)])
        found[name] = math.exp(float(np.interp(math.log(features), known, rising))) * sampling
    return dict(sorted(found.items(), key=lambda item: item[1]))


def synthetic_rows(
    rows: int, features: int, width: float, rng: np.random.Generator
) -> tuple[Floats, Floats, RegressionTask]:
    """Rows of the reference population, and what is declared about them."""
    common = rng.normal(size=(rows, 1))
    own = rng.normal(size=(rows, features))
    x = math.sqrt(_CORRELATION) * common + math.sqrt(1 - _CORRELATION) * own
    for column in range(features):
        if column % 3 == 1:
            x[:, column] = np.exp(0.7 * x[:, column])
        elif column % 3 == 2:
            x[:, column] = x[:, column] > 0.5
    x = np.round((x - x.mean(axis=0)) / x.std(axis=0), 1)
    # Every direction explains as much as any other, also those in which the rows hardly spread.
    values, vectors = np.linalg.eigh(np.cov(x.T).reshape(features, features))
    explained = x @ (vectors @ (rng.normal(size=features) / np.sqrt(values)))
    error = rng.standard_t(_TAIL, size=rows) * math.sqrt((_TAIL - 2) / _TAIL)
    y = explained / explained.std() * math.sqrt(EXPLAINED) + error * math.sqrt(1 - EXPLAINED)
    wide = np.full(features + 1, width)
    wide[: features - 1] *= np.exp(rng.normal(size=features - 1))
    wide = np.maximum(wide, 3.0)
    shift = rng.uniform(-0.7, 0.7, size=features + 1) * (wide - 3)
    lower, upper = (shift - wide)[:-1], (shift + wide)[:-1]
    # Of a binary column, just its two values are declared.
    lower[2::3], upper[2::3] = x[:, 2::3].min(axis=0), x[:, 2::3].max(axis=0)
    task = RegressionTask(
        lower=lower,
        upper=upper,
        target=(float(shift[-1] - wide[-1]), float(shift[-1] + wide[-1])),
        rows=rows,
        mu=1.0,
        relation=NeighboringRelation.ADD_REMOVE,
    )
    return x, y, task


def simulate(
    method: RegressionMethod, *, signal: float, features: int, width: float, repeats: int = 4
) -> float:
    """The mean error of a method in multiples of that of least squares, on made-up rows."""
    mu = signal * math.sqrt(features + 1) / _ROWS
    errors, plain = [], []
    for repeat in range(repeats):
        rng = np.random.default_rng([repeat, features])
        x, y, task = synthetic_rows(2 * _ROWS, features, width, rng)
        told = RegressionTask(
            lower=task.lower,
            upper=task.upper,
            target=task.target,
            rows=_ROWS,
            mu=mu,
            relation=task.relation,
        )
        amount: QueryBudget = budget(rho=mu**2 / 2)
        noises = method.plan(told, amount)
        train = ArrayRows(x[:_ROWS], y[:_ROWS, None])
        fit = method.fit(train, told, noises=noises, rng=seeded_rng(repeat))
        seen = fit.map.predictions(fit.map.design(x[_ROWS:]), fit.theta[:, None])[:, 0]
        errors.append(float(np.mean(np.square(np.clip(seen, *task.target) - y[_ROWS:]))))
        design = np.column_stack((np.ones(len(x)), x))
        theta, *_ = np.linalg.lstsq(design[:_ROWS], y[:_ROWS], rcond=None)
        plain.append(float(np.mean(np.square(design[_ROWS:] @ theta - y[_ROWS:]))))
    return float(np.mean(errors) / np.mean(plain))


def tabulate(
    methods: Mapping[str, RegressionMethod], *, repeats: int = 3
) -> dict[str, list[list[list[float]]]]:
    """The table of forecasts, by width, features and signal: made anew when a method changes."""
    found = {}
    for name, method in methods.items():
        sizes = FEATURES[:1] if name == "theil_sen" else FEATURES
        found[name] = [
            [
                [simulate(method, signal=s, features=f, width=w, repeats=repeats) for s in SIGNALS]
                for f in sizes
            ]
            for w in WIDTHS
        ]
    return found

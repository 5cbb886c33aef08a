"""The error to expect of each method, from public facts alone.

Errors were simulated on made-up rows (`simulate`): features that are normal, skewed and binary in
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
from discreet.core.relation import Relation
from discreet.models.inputs import Floats
from discreet.models.regression.forecast_table import FEATURES, SIGNALS, TABLE, WIDTHS
from discreet.models.regression.tables import ArrayRows
from discreet.models.regression.task import Method, Task
from discreet.noise.bits import seeded
from discreet.queries.budget import Budget, budget

EXPLAINED = 0.7
_CORRELATION = 0.6
_ROWS = 2000
# Degrees of freedom of the errors.
_TAIL = 5


def forecast(*, rows: float, features: int, mu: float, width: float = 10.0) -> Mapping[str, float]:
    """Mean squared errors of all methods, in multiples of that of least squares without privacy.

    ``width``: how many deviations of a column fit into half its declared range, at a guess.
    """
    if not (rows > 0 and mu > 0 and width > 0 and features >= 1):
        raise InvalidArgument("rows, features, mu and width must be positive.")
    signal = rows * mu / math.sqrt(features + 1)
    place = min(range(len(WIDTHS)), key=lambda i: abs(math.log(WIDTHS[i] / width)))
    # What is fitted from too few rows for the columns is worse even without privacy.
    sampling = 1 + (features + 1) / max(rows, 1.0)
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


def made_up(
    rows: int, features: int, width: float, rng: np.random.Generator
) -> tuple[Floats, Floats, Task]:
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
    task = Task(
        lower=lower,
        upper=upper,
        target=(float(shift[-1] - wide[-1]), float(shift[-1] + wide[-1])),
        rows=rows,
        mu=1.0,
        relation=Relation.ADD_REMOVE,
    )
    return x, y, task


def simulate(
    method: Method, *, signal: float, features: int, width: float, repeats: int = 4
) -> float:
    """The mean error of a method in multiples of that of least squares, on made-up rows."""
    mu = signal * math.sqrt(features + 1) / _ROWS
    errors, plain = [], []
    for repeat in range(repeats):
        rng = np.random.default_rng([repeat, features])
        x, y, task = made_up(2 * _ROWS, features, width, rng)
        told = Task(
            lower=task.lower,
            upper=task.upper,
            target=task.target,
            rows=_ROWS,
            mu=mu,
            relation=task.relation,
        )
        amount: Budget = budget(rho=mu**2 / 2)
        noises = method.plan(told, amount)
        train = ArrayRows(x[:_ROWS], y[:_ROWS, None])
        fit = method.fit(train, told, noises=noises, bits=seeded(repeat))
        seen = fit.map.predictions(fit.map.design(x[_ROWS:]), fit.theta[:, None])[:, 0]
        errors.append(float(np.mean(np.square(np.clip(seen, *task.target) - y[_ROWS:]))))
        design = np.column_stack((np.ones(len(x)), x))
        theta, *_ = np.linalg.lstsq(design[:_ROWS], y[:_ROWS], rcond=None)
        plain.append(float(np.mean(np.square(design[_ROWS:] @ theta - y[_ROWS:]))))
    return float(np.mean(errors) / np.mean(plain))


def tabulate(
    methods: Mapping[str, Method], *, repeats: int = 3
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

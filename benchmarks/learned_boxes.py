"""Black boxes, public and private inputs for each, and what the catalog offers instead."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.accounting.guarantee import Guarantee
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.additive import AdditiveMechanism, laplace
from discreet.mechanisms.data_dependent.sample_and_aggregate import sample_and_aggregate
from discreet.mechanisms.data_dependent.smooth_sensitivity import smooth_sensitivity
from discreet.mechanisms.mechanism import Certificate, Mechanism
from discreet.mechanisms.quantiles import private_quantile
from discreet.noise.random_source import RandomSource

Floats = NDArray[np.float64]
Statistic: TypeAlias = Literal["median", "trimmed_mean", "max"]
ROWS = 25
PUBLIC = 600
PRIVATE = 200
TOP = 10.0
TRIM = 3
LAGS = 6
COUNTS = 633.0
HOURS = (
    *(164, 113, 42, 5, 1, 2, 100, 213, 306, 362, 392, 445),
    *(504, 468, 525, 537, 573, 570, 455, 352, 351, 331, 355, 252),
)
"""Vehicles in five minutes, by the hour."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plain(Mechanism):
    """Laplace noise for the global sensitivity of a function, clamped to its public range."""

    function: Callable[[Any], float]
    noise: AdditiveMechanism
    low: float
    high: float

    @property
    def guarantee(self) -> Guarantee:
        """That of the noise."""
        return self.noise.guarantee

    @property
    def std(self) -> float:
        """That of the noise."""
        return self.noise.std

    def release(self, value: Any, *, rng: RandomSource | None = None) -> float:
        """The function's value, within its range, with noise, within its range again."""
        said = min(max(float(self.function(value)), self.low), self.high)
        return min(max(float(np.asarray(self.noise.release(said, rng=rng))), self.low), self.high)

    def certify(self) -> Certificate:
        """That of the noise."""
        return self.noise.certify()


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """A function with inputs; its range and global sensitivity where one record is replaced."""

    name: str
    function: Callable[[Any], float]
    public: Floats
    private: Floats
    bounds: tuple[float, float]
    output: tuple[float, float]
    sensitivity: float
    model: object = None
    """What is wrapped, if it is not the function itself."""
    statistic: Statistic | None = None
    """What the catalog calls it, if it does."""

    def alternatives(self, epsilon: float) -> dict[str, Mechanism]:
        """All that the catalog offers for it, at the same price."""
        found: dict[str, Mechanism] = {"plain Laplace": self._plain(epsilon)}
        if self.statistic is None:
            return found
        low, high = (int(end) for end in self.bounds)
        # A quantile's level is below one: half a rank below is the maximum.
        level = {"median": Fraction(1, 2), "max": 1 - Fraction(1, 2 * ROWS)}.get(self.statistic)
        if level is not None:
            found["private quantile"] = private_quantile(
                quantile=level,
                lower=low,
                upper=high,
                epsilon=epsilon,
                relation=NeighboringRelation.REPLACE_ONE,
            )
        if self.statistic != "max":
            extra: dict[str, Any] = {"trim": TRIM} if self.statistic == "trimmed_mean" else {}
            found["smooth sensitivity"] = smooth_sensitivity(
                self.statistic, lower=low, upper=high, public_rows=ROWS, epsilon=epsilon, **extra
            )
        found["sample and aggregate"] = sample_and_aggregate(
            self.function,
            groups=5,
            lower=low,
            upper=high,
            epsilon=epsilon,
            relation=NeighboringRelation.REPLACE_ONE,
        )
        return found

    def _plain(self, epsilon: float) -> Mechanism:
        noise = laplace(
            sensitivity=Fraction(self.sensitivity),
            epsilon=epsilon,
            domain="reals",
            relation=NeighboringRelation.REPLACE_ONE,
        )
        low, high = self.output
        return Plain(function=self.function, noise=noise, low=low, high=high)


def boxes() -> list[Box]:
    """Seven black boxes."""
    return [
        _statistic("median", np.median, statistic="median", sensitivity=TOP),
        _statistic("maximum", np.max, statistic="max", sensitivity=TOP),
        _statistic(
            "trimmed mean",
            trimmed,
            statistic="trimmed_mean",
            sensitivity=TOP / (ROWS - 2 * TRIM),
        ),
        *_regressors(),
        _forecaster(),
    ]


def trimmed(rows: Floats) -> float:
    """The mean without the smallest and largest."""
    cut = TRIM if len(rows) == ROWS else round(TRIM * len(rows) / ROWS)
    return float(np.mean(np.sort(rows)[cut : len(rows) - cut]))


def _statistic(
    name: str, function: Callable[[Any], Any], *, statistic: Statistic, sensitivity: float
) -> Box:
    draw = np.random.default_rng(1)
    middle = draw.uniform(2, 8, size=(PUBLIC + PRIVATE, 1))
    spread = draw.uniform(0.3, 2, size=(PUBLIC + PRIVATE, 1))
    rows = middle + spread * draw.standard_t(5, size=(PUBLIC + PRIVATE, ROWS))
    rows = np.clip(rows, 0, TOP)
    return Box(
        name=name,
        function=lambda x: float(function(x)),
        public=rows[:PUBLIC],
        private=rows[PUBLIC:],
        bounds=(0, TOP),
        output=(0, TOP),
        sensitivity=sensitivity,
        statistic=statistic,
    )


def _series(size: int, seed: int) -> Floats:
    """Short histories of a quantity between 0 and 10 that moves slowly."""
    draw = np.random.default_rng(seed)
    level = draw.uniform(1, 9, size=(size, 1))
    steps = np.cumsum(draw.normal(0, 0.5, size=(size, LAGS)), axis=1)
    return np.clip(level + steps, 0, TOP)


def _regressors() -> list[Box]:
    """Models of scikit-learn that were trained on other public series."""
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.neural_network import MLPRegressor
    from sklearn.tree import DecisionTreeRegressor

    past, draw = _series(1500, 2), np.random.default_rng(3)
    curve = 10 / (1 + np.exp(-(past.mean(axis=1) - 5))) + 0.5 * (past[:, -1] - past[:, 0])
    target = curve + draw.normal(0, 0.3, size=len(past))
    models = {
        "decision tree": DecisionTreeRegressor(max_depth=6, random_state=0),
        "random forest": RandomForestRegressor(20, max_depth=6, random_state=0),
        "neural network": MLPRegressor(hidden_layer_sizes=(16, 16), max_iter=1000, random_state=0),
    }
    now = _series(PUBLIC + PRIVATE, 4)
    low, high = float(target.min()), float(target.max())
    found = []
    for name, model in models.items():
        model.fit(past, target)

        known: dict[bytes, float] = {}

        def function(x: Floats, model: Any = model, known: dict[bytes, float] = known) -> float:
            key = np.ravel(x).tobytes()
            if key not in known:
                known[key] = float(model.predict(np.reshape(x, (1, -1)))[0])
            return known[key]

        found.append(
            Box(
                name=name,
                function=function,
                public=now[:PUBLIC],
                private=now[PUBLIC:],
                bounds=(0, TOP),
                output=(low, high),
                sensitivity=high - low,
                model=model,
            )
        )
    return found


def traffic(seed: int) -> Floats:
    """A day of counts, in five minutes, made up."""
    draw = np.random.default_rng(seed)
    hours = np.concatenate([HOURS[-1:], HOURS, HOURS[:1]])
    base = np.interp(np.arange(288) / 12, np.arange(-1, 25) + 0.5, hours)
    noise = draw.normal(size=288) * 26 * np.sqrt(np.maximum(base, 20) / 300)
    counts: Floats = np.clip(np.round(base + noise), 0, COUNTS)
    return counts


def _forecaster() -> Box:
    """Least squares on the last four readings, fitted to earlier days."""

    def lagged(days: range) -> tuple[Floats, Floats]:
        series = [traffic(day) for day in days]
        windows = [np.lib.stride_tricks.sliding_window_view(day, 5) for day in series]
        table = np.concatenate(windows).astype(np.float64)
        return table[:, :4], table[:, 4]

    past, following = lagged(range(5))
    table = np.column_stack([past, np.ones(len(past))])
    weights = np.linalg.lstsq(table, following, rcond=None)[0]
    public, private = lagged(range(5, 9))[0], lagged(range(9, 11))[0]
    draw = np.random.default_rng(5)
    ends = weights[4] + np.array([np.minimum(weights[:4], 0).sum(), 0]) * COUNTS
    return Box(
        name="AR(4) forecaster",
        function=lambda x: float(x @ weights[:4] + weights[4]),
        public=draw.permutation(public)[:PUBLIC],
        private=draw.permutation(private)[:PRIVATE],
        bounds=(0, COUNTS),
        output=(float(ends[0]), float(weights[4] + np.maximum(weights[:4], 0).sum() * COUNTS)),
        sensitivity=float(np.abs(weights[:4]).max() * COUNTS),
    )

"""E8: medians from blocks of values, from blocks at random, and without blocks."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet.noise.distribution import Floats
from discreet_studies.checks import Claims
from discreet_studies.noise_mechanisms import reference_values as stated
from discreet_studies.noise_mechanisms.bin_sensitivity import bin_sensitivities
from discreet_studies.study import Figure, Findings, Line, StudyCheck, StudySetting, StudyTable

_N = 1000
_RANGE = 100.0
_EPSILON = 1.0
_BLOCKS = (5, 7, 10, 15, 20)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """Data on [0, 100] by their law, and its median."""

    name: str
    median: float

    def draw(self, rng: np.random.Generator, times: int) -> Floats:
        """Sorted rows of 1000 values."""
        size = times, _N
        match self.name:
            case "uniform":
                x = rng.uniform(0, _RANGE, size)
            case "exponential, clipped":
                x = np.minimum(rng.exponential(10, size), _RANGE)
            case _:
                x = _RANGE * rng.beta(2, 8, size)
        return np.sort(x, axis=1)


def _beta_median() -> float:
    """Of Beta(2, 8): 1 - (1 - x)^9 - 9 x (1 - x)^8 = 1/2."""
    low, high = 0.0, 1.0
    for _ in range(60):
        x = (low + high) / 2
        below = 1 - (1 - x) ** 9 - 9 * x * (1 - x) ** 8 < 0.5
        low, high = (x, high) if below else (low, x)
    return high


SHAPES = (
    Shape(name="uniform", median=50.0),
    Shape(name="exponential, clipped", median=10 * math.log(2)),
    Shape(name="beta", median=_RANGE * _beta_median()),
)


def block_medians(setting: StudySetting) -> Findings:
    """Mean squared errors: noise by its exact variance, estimates by simulation."""
    rng = setting.rng("E8")
    times = setting.times(2000, quick=400)
    found = {shape.name: _errors(shape, rng, times) for shape in SHAPES}
    return Findings(
        checks=(
            *_printed(found["uniform"]),
            *_elsewhere(found),
            *_others(found),
            *_not_global(rng),
            *_middle(rng),
            *_two_data_sets(),
            *bin_sensitivities(),
            *_noisy(rng, times),
        ),
        tables=(_table(found),),
        figures=tuple(_figure(name, errors) for name, errors in found.items()),
    )


Errors = dict[str, float]


def _errors(shape: Shape, rng: np.random.Generator, times: int) -> Errors:
    """Mean squared error of each method, by name."""
    x = shape.draw(rng, times)
    target = shape.median
    found: Errors = {}
    shuffled = rng.permuted(x, axis=1)
    for m in _BLOCKS:
        by_value = blocks_of_values(x, m).mean(axis=1)
        at_random = _blocks_at_random(shuffled, m)
        found[f"I, {m}"] = _mse(by_value, target) + 8 * _RANGE**2 / (m**3 * _EPSILON**2)
        found[f"II, {m}"] = _mse(at_random, target) + 2 * _RANGE**2 / (m * _EPSILON) ** 2
    middle = x[:, (_N - 1) // 2]
    exact = _mse(middle, target)
    beta = _EPSILON / (2 * math.log(2 / 1e-6))
    smooth = smooth_sensitivities(x, beta)
    found["smooth Laplace"] = exact + float(np.mean(2 * (2 * smooth / _EPSILON) ** 2))
    found["smooth Lomax"] = exact + float(np.mean(_lomax_variance(smooth_sensitivities(x, 0.1))))
    found["exponential"] = _mse(exponential_medians(x, rng), target)
    found["global Laplace"] = exact + 2 * (_RANGE / _EPSILON) ** 2
    return found


def _mse(values: Floats, target: float) -> float:
    return float(np.mean(np.square(values - target)))


def blocks_of_values(x: Floats, m: int) -> Floats:
    """The median of each of m bins of equal width (its middle, if empty), for sorted rows."""
    edges = np.linspace(0, _RANGE, m + 1)
    start = np.stack([(x < edge).sum(axis=1) for edge in (*edges[:-1], math.inf)], axis=1)
    low, size = start[:, :-1], np.diff(start, axis=1)
    rows = np.arange(len(x))[:, None]
    last = x.shape[1] - 1
    first = x[rows, np.minimum(low + (size - 1) // 2, last)]
    second = x[rows, np.minimum(low + size // 2, last)]
    medians: Floats = np.where(size > 0, (first + second) / 2, (edges[:-1] + edges[1:]) / 2)
    return medians


def _blocks_at_random(shuffled: Floats, m: int) -> Floats:
    """The mean of the medians of m groups; what is left over is dropped, as published."""
    size = _N // m
    groups = shuffled[:, : size * m].reshape(len(shuffled), m, size)
    means: Floats = np.median(groups, axis=2).mean(axis=1)
    return means


def smooth_sensitivities(x: Floats, beta: float) -> Floats:
    """The smooth sensitivity of the lower median of each sorted row (B34)."""
    times, n = x.shape
    m = (n - 1) // 2
    best = np.zeros(times)
    k = 0
    # Windows that hold the median, k + 1 places wide, until none can be better.
    while k <= n and _RANGE * math.exp(-beta * k) > best.min():
        left = np.arange(m - k - 1, m + 1)
        low = _padded(x, left)
        high = _padded(x, left + k + 1)
        best = np.maximum(best, math.exp(-beta * k) * (high - low).max(axis=1))
        k += 1
    return best


def _padded(x: Floats, places: np.ndarray[tuple[int, ...], np.dtype[np.int64]]) -> Floats:
    inside = np.clip(places, 0, x.shape[1] - 1)
    values: Floats = np.where(places < 0, 0.0, np.where(places >= x.shape[1], _RANGE, x[:, inside]))
    return values


def _lomax_variance(sensitivity: Floats) -> Floats:
    """B47 at gamma = 0.1, epsilon = 1."""
    gamma, k = 0.1, _EPSILON / 0.1
    c = min(
        math.expm1(_EPSILON / (k + 1)), math.exp(gamma) * math.expm1((_EPSILON - gamma) / (k + 1))
    )
    variance: Floats = 2 * (sensitivity / c) ** 2 / ((k - 1) * (k - 2))
    return variance


def exponential_medians(x: Floats, rng: np.random.Generator) -> Floats:
    """The exponential mechanism on the intervals between sorted values (B48), by Gumbel noise."""
    times, n = x.shape
    ends = np.concatenate((np.zeros((times, 1)), x, np.full((times, 1), _RANGE)), axis=1)
    widths = np.diff(ends, axis=1)
    rank = np.abs(np.arange(n + 1) - n / 2)
    with np.errstate(divide="ignore"):
        weight = np.log(widths) - _EPSILON * rank / 2
    chosen = np.argmax(weight + rng.gumbel(size=weight.shape), axis=1)
    rows = np.arange(times)
    drawn: Floats = ends[rows, chosen] + widths[rows, chosen] * rng.random(times)
    return drawn


# ── checks ────────────────────────────────────────────────────────────────────────────────────


def _printed(uniform: Errors) -> list[StudyCheck]:
    claims = Claims(source="Biswal 2024, table of blocks")
    theory = Claims(source="E8")
    made: list[StudyCheck] = []
    for m, (first, second) in stated.BLOCKS.items():
        made += [
            claims.number(f"E8/printed, I/{m}", f"mean squared error, {m} blocks of values",
                          expected=first, got=uniform[f"I, {m}"], relative=0.15),
            claims.number(f"E8/printed, II/{m}", f"mean squared error, {m} blocks at random",
                          expected=second, got=uniform[f"II, {m}"], relative=0.22),
        ]  # fmt: skip
    for m in _BLOCKS:
        made += [
            theory.number(f"E8/theory, I/{m}", f"8 L^2 / m^3, {m} blocks of values",
                          expected=8 * _RANGE**2 / m**3, got=uniform[f"I, {m}"], relative=0.15),
            theory.number(f"E8/theory, II/{m}", f"2 L^2 / m^2 + 2.5, {m} blocks at random",
                          expected=2 * _RANGE**2 / m**2 + 2.5, got=uniform[f"II, {m}"],
                          relative=0.03),
        ]  # fmt: skip
    return made


_STATED = {
    "exponential, clipped": {"I, 5": 2183.0, "I, 20": 1843.0, "II, 5": 764.0, "II, 20": 49.0},
    "beta": {"I, 5": 1482.0, "I, 20": 1022.0, "II, 5": 831.0, "II, 20": 47.0},
}
_WITHOUT = {
    "uniform": (2.5, 16.8, 3.2),
    "exponential, clipped": (0.10, 0.82, 0.14),
    "beta": (0.25, 1.53, 0.38),
}


def _elsewhere(found: dict[str, Errors]) -> list[StudyCheck]:
    claims = Claims(
        source="M40",
        why="Uniform data hide that blocks of values estimate the middle of the range.",
    )
    made: list[StudyCheck] = []
    for name, numbers in _STATED.items():
        made += claims.numbers(
            f"E8/{name}", f"mean squared error on {name} data, method and blocks",
            expected=numbers, got={key: found[name][key] for key in numbers}, relative=0.15,
        )  # fmt: skip
        made += [
            claims.order(
                f"E8/{name}, order/{m}", f"which blocks are better on {name} data, {m} blocks",
                expected=("at random", "of values"),
                got={"of values": found[name][f"I, {m}"], "at random": found[name][f"II, {m}"]},
            )
            for m in _BLOCKS
        ]  # fmt: skip
    constant = (_RANGE / 2 - SHAPES[1].median) ** 2
    made.append(
        claims.number("E8/constant", "squared error of always saying 50, exponential data",
                      expected=1855, got=constant, absolute=1.0)
    )  # fmt: skip
    return made


def _others(found: dict[str, Errors]) -> list[StudyCheck]:
    better = Claims(source="B48, B31, B47", why="The thesis has blocks instead.")
    made: list[StudyCheck] = []
    for name, values in _WITHOUT.items():
        keys = ("exponential", "smooth Laplace", "smooth Lomax")
        errors = found[name]
        made += better.numbers(
            f"E8/{name}, no blocks", f"mean squared error on {name} data",
            expected=dict(zip(keys, values, strict=True)),
            got={key: errors[key] for key in keys}, relative=0.25,
        )  # fmt: skip
        blocks = min(value for key, value in errors.items() if key.startswith(("I,", "II,")))
        made.append(
            better.at_most(f"E8/{name}, best", f"error over that of the best blocks, {name}",
                           expected=1.0, got=errors["exponential"] / blocks)
        )  # fmt: skip
    return made


def _not_global(rng: np.random.Generator) -> list[StudyCheck]:
    """M24, on 999 values at epsilon 1, delta' 1e-6."""
    beta = _EPSILON / (2 * math.log(2 / 1e-6))
    wrong = Claims(
        source="M24", why="The thesis: in practice smooth sensitivity is the global one, here 100."
    )
    return [
        wrong.number(
            f"E8/smooth sensitivity/{shape.name}",
            f"mean smooth sensitivity of the median of 999 {shape.name} values",
            expected=expected,
            got=float(smooth_sensitivities(shape.draw(rng, 100)[:, 1:], beta).mean()),
            relative=0.15,
        )
        for shape, expected in zip(SHAPES[:2], (1.36, 0.275), strict=True)
    ]


def _two_data_sets() -> list[StudyCheck]:
    """M28: the data sets of the attack on local sensitivity, n = 11, beta 0.1."""
    first = np.repeat([0.0, _RANGE], [6, 5])[None]
    second = np.repeat([0.0, _RANGE], [7, 4])[None]
    wrong = Claims(source="M28", why="The worked example has errors of index and no padding.")
    return [
        wrong.number("E8/first data", "smooth sensitivity over the range, 6 zeros and 5 ones",
                     expected=1.0, got=float(smooth_sensitivities(first, 0.1)[0]) / _RANGE,
                     absolute=1e-12),
        wrong.number("E8/second data", "the same for 7 zeros and 4 ones, e^-beta",
                     expected=math.exp(-0.1), absolute=1e-12,
                     got=float(smooth_sensitivities(second, 0.1)[0]) / _RANGE),
    ]  # fmt: skip


def _middle(rng: np.random.Generator) -> list[StudyCheck]:
    """B41: whatever the data, the mean of bins' medians stays near the middle."""
    worst = 0.0
    for m in _BLOCKS:
        x = np.sort(_RANGE * rng.beta(0.3, 3, (200, 50)), axis=1)
        answers = blocks_of_values(x, m).mean(axis=1)
        worst = max(worst, float(np.abs(answers - _RANGE / 2).max()) / (_RANGE / (2 * m)))
    return [
        Claims(source="B41, M40", why="Presented as an estimate of the median.").at_most(
            "E8/middle",
            "largest distance of the mean of bins' medians from the middle, in half bins",
            expected=1.0,
            got=worst,
        )
    ]


def _noisy(rng: np.random.Generator, times: int) -> list[StudyCheck]:
    """Block noise drawn as published, and M45: one noise on the average does with less."""
    m = 10
    scale = 2 * _RANGE / (m * _EPSILON)
    drawn = rng.laplace(0, scale, (times, m)).mean(axis=1)
    exact = 8 * _RANGE**2 / m**3
    # A mean of m has fourth moment 3 v^2 + (excess 3) v^2/m, v its variance.
    spread = exact * math.sqrt(2 + 3 / m)
    return [
        Claims(source="E8").simulated("E8/noise", "variance of the mean of 10 noises",
                                      values=np.square(drawn), expected=exact, spread=spread),
        Claims(source="M45", why="The gain is attributed to averaging noises.").number(
            "E8/one noise", "variance of m noises over that of one on the average, 10 blocks",
            expected=m, got=exact / (2 * (scale / m) ** 2), absolute=1e-9),
    ]  # fmt: skip


def _table(found: dict[str, Errors]) -> StudyTable:
    return StudyTable(
        id="E8/errors",
        title="Mean squared error of a private median, range 100, 1000 values, epsilon 1",
        columns=("method", *found),
        rows=tuple((key, *(found[name][key] for name in found)) for key in found["uniform"]),
        note="I: blocks of values; II: blocks at random. Smooth Laplace has delta' 1e-6 and the "
        "published multiplier 2; the others are pure.",
    )


def _figure(name: str, errors: Errors) -> Figure:
    x = tuple(float(m) for m in _BLOCKS)
    flat = ("smooth Laplace", "smooth Lomax", "exponential")
    return Figure(
        id=f"E8/{name}",
        title=f"Error of a private median of {name} data",
        x="blocks",
        y="mean squared error",
        lines=(
            Line(label="blocks of values", x=x, y=tuple(errors[f"I, {m}"] for m in _BLOCKS)),
            Line(label="blocks at random", x=x, y=tuple(errors[f"II, {m}"] for m in _BLOCKS)),
            *(Line(label=key, x=(x[0], x[-1]), y=(errors[key],) * 2) for key in flat),
        ),
        note="epsilon 1, 1000 values on [0, 100]; exact noise, simulated data",
        log_y=True,
    )

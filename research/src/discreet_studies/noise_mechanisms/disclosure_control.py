"""E1 and E2: k-anonymity, k-PRAM and k-noise."""

from __future__ import annotations

import math

import numpy as np

from discreet.disclosure._disclosure_risk import histogram
from discreet.disclosure._k_noise import (
    KNoiseRelease,
    anonymity_set_size,
    expected_anonymity_set_size,
    k_noise,
    width_after_releases,
)
from discreet.disclosure._pram import KPramRelease, k_pram, symmetric_pram
from discreet.disclosure.generalization_hierarchy import together
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import seeded_rng
from discreet_studies.checks import Claims
from discreet_studies.study import Figure, Findings, Line, StudyCheck, StudySetting, StudyTable

_COUNTS = (32, 100, 121, 81, 62, 79, 84, 57, 31, 9, 2, 1)
_EDGES = tuple(range(19, 80, 5))
_HALF = 2.5
_SOURCE = "Biswal 2024, section 3.6"
_STANDS_IN = (
    "The file of 659 ages is not at hand: ages are drawn within the counts of its twelve bins, so "
    "the printed number is one of many with the same law."
)


def ages(rng: np.random.Generator) -> Floats:
    """A stand-in for the 659 ages: uniform in bins, the first on [22, 24], the last on [74, 78)."""
    low = np.repeat(_EDGES[:-1], _COUNTS).astype(np.float64)
    high = np.repeat(_EDGES[1:], _COUNTS).astype(np.float64)
    low[low == 19] = 22
    high[high == 79] = 78
    return rng.uniform(low, high)


def noisy_ages(setting: StudySetting) -> Findings:
    """k-PRAM against k-noise on ages."""
    x = ages(setting.rng("E1"))
    bits = seeded_rng(setting.seed)
    jittered = k_noise(x, delta=_HALF, rng=bits)
    redrawn = k_pram(x, edges=_EDGES, k=1, rng=bits)
    return Findings(
        checks=(*_errors(x, jittered, redrawn), *_crowds(x), *_risks(setting, redrawn)),
        tables=(_error_table(jittered, redrawn),),
        figures=(_crowd_figure(x), _histogram_figure(x, jittered, redrawn)),
    )


def _errors(x: Floats, jittered: KNoiseRelease, redrawn: KPramRelease) -> list[StudyCheck]:
    printed = Claims(source=f"{_SOURCE}, table of errors", why=_STANDS_IN)
    exact = Claims(source="B10, B12")
    n = len(x)
    # E (U - V)^2 on a bin of width w is w^2/6; of a value x in it, (x - m)^2 + w^2/12.
    place = np.repeat(np.arange(12), _COUNTS)
    middle = (np.array(_EDGES[:-1])[place] + np.array(_EDGES[1:])[place]) / 2
    drawn_error = float(np.mean((x - middle) ** 2) + 25 / 12)
    moved = float(np.mean(x - middle))
    return [
        printed.number("E1/k-noise, MSE", "mean squared error of k-noise",
                       expected=2.060666, got=jittered.utility.mse, absolute=0.22),
        printed.number("E1/k-PRAM, MSE", "mean squared error of k-PRAM",
                       expected=4.398563, got=redrawn.utility.mse, absolute=0.6),
        printed.number("E1/ratio", "mean squared error of k-PRAM over that of k-noise",
                       expected=4.398563 / 2.060666, got=redrawn.utility.mse / jittered.utility.mse,
                       absolute=0.4),
        exact.simulated("E1/k-noise, exact MSE", "mean squared error of k-noise is a^2/3",
                        values=np.square(jittered.values - x), expected=_HALF**2 / 3,
                        spread=_HALF**2 * math.sqrt(1 / 5 - 1 / 9)),
        exact.simulated("E1/k-PRAM, exact MSE", "mean squared error of k-PRAM on these ages",
                        values=np.square(redrawn.values - x), expected=drawn_error, spread=5.3),
        Claims(
            source="M9",
            why="The thesis reads biases of 0.034 and 0.069 as a difference of the methods; they "
            "are within one standard error, 0.056 and 0.078.",
        ).simulated("E1/k-noise, bias", "bias of k-noise", values=x - jittered.values, expected=0.0,
                    spread=_HALF / math.sqrt(3)),
        exact.simulated("E1/k-PRAM, bias", "bias of k-PRAM on these ages",
                        values=x - redrawn.values, expected=moved, spread=5 / math.sqrt(12)),
        Claims(source="M9", why="The printed biases are noise.").at_most(
            "E1/bias in standard errors", "printed bias of k-noise over its standard error",
            expected=3.0, got=0.03408935 / (_HALF / math.sqrt(3 * n))),
    ]  # fmt: skip


def _crowds(x: Floats) -> list[StudyCheck]:
    theorem = Claims(source="Biswal 2024, Theorem 3.5.1; B12")
    points = np.linspace(x.min(), x.max(), 1001)
    before = anonymity_set_size(x, at=points, window=2 * _HALF)
    ratio = expected_anonymity_set_size(
        x, at=points, half_width=_HALF, window=2 * _HALF
    ) / np.maximum(before, 1)
    near = expected_anonymity_set_size(x, at=x, half_width=_HALF, window=_HALF)
    own = np.repeat(np.array(_COUNTS), _COUNTS)
    tight = expected_anonymity_set_size(
        np.full(9, 2 * _HALF * (1 - 1e-9)), at=[0.0], half_width=_HALF, window=2 * _HALF
    )
    return [
        Claims(source=_SOURCE, why=_STANDS_IN).number(
            "E1/crowd", "mean expected crowd within 2.5 of a true age", expected=81.4,
            got=float(near.mean()), absolute=2.0),
        theorem.at_least("E1/theorem", "smallest expected crowd within 5 over the crowd before",
                         expected=0.5, got=float(ratio.min())),
        *Claims(source="B12", why="The theorem proves 1/2; these are its values.").numbers(
            "E1/crowd ratio", "expected crowd within 5 over the crowd before",
            expected={"smallest": 0.75, "mean": 1.03},
            got={"smallest": float(ratio.min()), "mean": float(ratio.mean())},
            absolute=0.1),
        theorem.number("E1/tight", "the same when all records are just inside: 1/2 is tight",
                       expected=0.5, got=float(tight[0]) / 9, absolute=1e-6),
        Claims(
            source="M9",
            why="The text reads the theorem as: the expected crowd reaches the bin's own count.",
        ).number("E1/own bin", "share of records whose expected crowd reaches their bin's count",
                 expected=0.4, got=float((near >= own).mean()), absolute=0.1),
    ]  # fmt: skip


def _risks(setting: StudySetting, redrawn: KPramRelease) -> list[StudyCheck]:
    rng = setting.rng("E1 risks")
    smallest = min(
        int(k_noise(ages(rng), delta=_HALF, rng=seeded_rng(seed)).anonymity.min())
        for seed in range(50)
    )
    return [
        Claims(source="M9", why="The thesis speaks of k records in every bin.").equal(
            "E1/k", "smallest bin", expected=1, got=redrawn.k),
        Claims(source="M10", why="An expected crowd is no bound on disclosure.").equal(
            "E1/anonymity", "originals that a released value may stem from, fewest of 50 runs",
            expected=1, got=smallest),
        Claims(source="B10").equal(
            "E1/bins", "k-PRAM keeps the counts of bins", expected=0,
            got=int(np.abs(histogram(redrawn.values, edges=_EDGES) - np.array(_COUNTS)).max())),
    ]  # fmt: skip


def _error_table(jittered: KNoiseRelease, redrawn: KPramRelease) -> StudyTable:
    return StudyTable(
        id="E1/errors",
        title="Bias and error of 659 ages, printed and here",
        columns=("method", "bias printed", "bias", "MSE printed", "MSE", "MSE in theory"),
        rows=(
            ("k-PRAM", 0.06881953, redrawn.utility.bias, 4.398563, redrawn.utility.mse, 25 / 6),
            ("k-noise", 0.03408935, jittered.utility.bias, 2.060666, jittered.utility.mse, 25 / 12),
        ),
        note="Twice the error of k-noise is the price of drawing a value anew, not moving it.",
    )


def _crowd_figure(x: Floats) -> Figure:
    at = np.linspace(22, 78, 225)
    return Figure(
        id="E1/crowd",
        title="Ages within 2.5 years of a point: before and, on average, after k-noise",
        x="age (years)",
        y="records",
        lines=(
            Line(
                label="before",
                x=tuple(at),
                y=tuple(anonymity_set_size(x, at=at, window=_HALF) * 1.0),
            ),
            Line(
                label="expected after",
                x=tuple(at),
                y=tuple(expected_anonymity_set_size(x, at=at, half_width=_HALF, window=_HALF)),
            ),
        ),
        note="exact expectation; 659 ages, noise uniform within 2.5 years",
    )


def _histogram_figure(x: Floats, jittered: KNoiseRelease, redrawn: KPramRelease) -> Figure:
    inside = np.clip(jittered.values, _EDGES[0], _EDGES[-1])
    middle = tuple(edge + 2.5 for edge in _EDGES[:-1])
    return Figure(
        id="E1/histogram",
        title="Ages in bins of five years",
        x="age (years)",
        y="records",
        lines=tuple(
            Line(label=name, x=middle, y=tuple(histogram(values, edges=_EDGES) * 1.0), points=True)
            for name, values in (("before", x), ("k-noise", inside), ("k-PRAM", redrawn.values))
        ),
        note="one run of each; k-PRAM keeps the counts",
    )


# ── E2 and the attacks of E10 ─────────────────────────────────────────────────────────────────

_AGES = (32, 45, 27, 19, 31, 25)
_AMOUNTS = (75.50, 120.00, 16.75, 85.00, 50.00, 40.50)


def tables_of_six(setting: StudySetting) -> Findings:
    """The two k-anonymous tables of the thesis."""
    del setting
    old: Ints = (np.array(_AGES) > 30).astype(np.int64)
    much: Ints = (np.array(_AMOUNTS) > 50).astype(np.int64)
    one = sorted(together([old], [2]).sizes.tolist())
    two = sorted(together([old, much], [2, 2]).sizes.tolist())
    wrong = Claims(
        source="M7",
        why="The table is called 3-anonymous for two variables; classes are joint classes. And an "
        "amount of 120.00 stands in 51-100.",
    )
    right = Claims(source="Biswal 2024, table of one variable")
    return Findings(
        checks=(
            right.equal("E2/one variable", "classes by age", expected="3, 3", got=_listed(one)),
            wrong.equal("E2/both", "joint classes", expected="1, 1, 2, 2", got=_listed(two)),
            wrong.equal("E2/k", "k of the table of two variables", expected=1, got=min(two)),
        ),
        tables=(
            StudyTable(
                id="E2/rows",
                title="The six rows, generalized by age and by amount",
                columns=("age", "amount", "rows alike by age", "rows alike by both"),
                rows=tuple(
                    (
                        "31-45" if o else "18-30",
                        "51 and more" if m else "0-50",
                        int((old == o).sum()),
                        int(((old == o) & (much == m)).sum()),
                    )
                    for o, m in zip(old, much, strict=True)
                ),
            ),
        ),
    )  # fmt: skip


def _listed(sizes: list[int]) -> str:
    return ", ".join(map(str, sizes))


def attacks(setting: StudySetting) -> Findings:
    """PRAM, repeated k-noise, and the median by local sensitivity."""
    return Findings(
        checks=(*_pram(setting), *_intersections(setting), *_local(setting)),
        figures=(_intersection_figure(),),
    )


def _pram(setting: StudySetting) -> list[StudyCheck]:
    matrix = symmetric_pram(0.8, categories=2)
    counts = [500, 500]
    swapped = float(matrix.floats[0, 1] * counts[0])
    codes = np.repeat([0, 1], [700, 300])
    estimate = matrix.estimate(np.bincount(matrix.apply(codes, rng=seeded_rng(setting.seed))))
    variance = float(matrix.covariance([700, 300])[0, 0])
    source = Claims(source="B9, E10")
    return [
        source.number("E10/PRAM, swaps", "expected swaps each way, 1000 people, p = 0.8",
                      expected=100, got=swapped, absolute=1e-9),
        source.number("E10/PRAM, variance", "variance of the estimate, 700 and 300 people",
                      expected=444.4, got=variance, absolute=0.1),
        source.number("E10/PRAM, epsilon", "local epsilon of p = 0.8", expected=1.3863,
                      got=matrix.local_epsilon, absolute=1e-4),
        source.simulated("E10/PRAM, estimate", "estimate of 700 people after PRAM",
                         values=estimate.counts[:1], expected=700, spread=math.sqrt(variance)),
    ]  # fmt: skip


def _intersections(setting: StudySetting) -> list[StudyCheck]:
    """M10: each release of the same record excludes what is farther than the half-width."""
    wrong = Claims(source="M10", why="A second release is an intersection, not another crowd.")
    rng = setting.rng("E10")
    made = []
    for releases, stated in ((1, 5.0), (10, 0.92), (100, 0.099), (1000, 0.010)):
        noise = rng.uniform(-_HALF, _HALF, (2000, releases))
        left = 2 * _HALF - (noise.max(axis=1) - noise.min(axis=1))
        exact = width_after_releases(releases, half_width=_HALF)
        made += [
            wrong.number(f"E10/width/{releases}", f"width left after {releases} releases",
                         expected=stated, got=exact, relative=0.02),
            wrong.simulated(f"E10/width, simulated/{releases}",
                            f"width left after {releases} releases, 2000 records",
                            values=left, expected=exact, spread=_range_spread(releases)),
        ]  # fmt: skip
    return made


def _range_spread(m: int) -> float:
    """The deviation of the range of m uniform draws on a width of 2a: a Beta(m - 1, 2) law."""
    variance = 2 * (m - 1) / ((m + 1) ** 2 * (m + 2))
    return 2 * _HALF * math.sqrt(variance)


def _intersection_figure() -> Figure:
    x = tuple(float(round(10 ** (k / 8))) for k in range(25))
    return Figure(
        id="E10/width",
        title="What is left of a record's hiding place after several releases of k-noise",
        x="releases",
        y="width (years)",
        lines=(
            Line(
                label="expected width",
                x=x,
                y=tuple(width_after_releases(int(m), half_width=_HALF) for m in x),
            ),
        ),
        note="exact; noise uniform within 2.5 years",
        log_x=True,
        log_y=True,
    )


def _local(setting: StudySetting) -> list[StudyCheck]:
    """B28: two data sets with the same median, one of which gets no noise."""
    rng = setting.rng("E10 local")
    n, trials = 11, 1000
    first = np.repeat([0.0, 1.0], [n // 2 + 1, n // 2])
    second = np.repeat([0.0, 1.0], [n // 2 + 2, n // 2 - 1])
    caught = 0
    for _ in range(trials):
        chosen = int(rng.integers(2))
        x = (first, second)[chosen]
        m = n // 2
        scale = max(x[m + 1] - x[m], x[m] - x[m - 1])
        answer = float(x[m] + scale * rng.laplace())
        caught += (answer == 0.0) == (chosen == 1)
    return [
        Claims(
            source="B28, M39", why="The conclusion says that sensitivity may be estimated freely."
        ).equal(
            "E10/local sensitivity",
            "of 1000 answers with noise for the local sensitivity, told apart",
            expected=1000,
            got=caught,
        )
    ]

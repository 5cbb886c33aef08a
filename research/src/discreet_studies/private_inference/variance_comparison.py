"""E2: the variance of rows with noise, and the epsilon at which it is as good as a noisy one."""

from __future__ import annotations

import math

import numpy as np

from discreet.intervals.central_vs_local import compare_central_local
from discreet.noise.distribution import Floats
from discreet_studies.checks import Claims
from discreet_studies.private_inference import reference_values as stated
from discreet_studies.study import Figure, Findings, Line, StudyCheck, StudySetting, StudyTable

_ROWS = (5, 50, 659)
_FOURTH = 1 / 80
"""Fourth central moment of the uniform law on [0, 1]."""
_CROSS = (
    "The square of a sum is printed as the sum of squares: all cross terms are missing, and the "
    "squared mean counts as bias."
)
_SQUARE_ROOT = (
    "The thesis finds that epsilon must grow like n, from an equation that has no real solution "
    "for n above 160; it grows like the root of n."
)


def variances(setting: StudySetting) -> Findings:
    """Exact moments, simulated ones, those of the thesis, and matching of budgets."""
    return Findings(
        checks=(*_moments(), *_simulated(setting), *_fourth(setting), *_matching()),
        tables=(_moment_table(), _matching_table()),
        figures=(_figure(),),
    )


def moments(n: int, *, variance: float, scale: float) -> tuple[float, float, float]:
    """Mean, variance and mean squared error of the sample variance of noisy rows (C4)."""
    spread = (
        4 * scale**4 * (5 * n - 3) / (n * (n - 1)) + 8 * scale**2 * variance / (n - 1)
    )  # fmt: skip
    return variance + 2 * scale**2, spread, spread + 4 * scale**4


def fourth_moment(n: int, *, scale: float, as_text: bool) -> float:
    """Of a centered noise, E (Z_i - mean)^4 (M4)."""
    last = 1 / n if as_text else 1.5 / n
    head = 1 - 4 / n + 6 / n**2 - 3 / n**3
    return 24 * scale**4 * (head + (n - 1) / n**2 * (1 - last))


def published_error(n: int, *, variance: float, fourth: float, scale: float) -> float:
    """Equation 5.25: squares of the terms of a sum, for the square of the sum.

    ``fourth`` is the fourth central moment of the rows.
    """
    noise = 2 * scale**2 * (1 - 1 / n)
    term = fourth + 6 * variance * noise + fourth_moment(n, scale=scale, as_text=True)
    return n / (n - 1) ** 2 * term


def matched(n: int, *, debiased: bool, epsilon: float = 1.0) -> float:
    """The epsilon at which noisy rows give the variance as well as noise on it (C5), U(0, 1)."""
    target = 2 / (epsilon * n) ** 2
    square = 4 * (5 * n - 3) / (n * (n - 1)) + (0 if debiased else 4)
    linear = 8 * stated.UNIFORM_VARIANCE / (n - 1)
    return 1 / math.sqrt(_root(square, linear, target))


def published_matched(n: int, *, epsilon: float = 1.0) -> float:
    """Equation 5.26 for uniform rows: NaN where it has no real solution."""
    target = 2 / (epsilon * n) ** 2 - n / (n - 1) ** 2 / 80
    if target <= 0:
        return math.nan
    square = n / (n - 1) ** 2 * fourth_moment(n, scale=1.0, as_text=True)
    linear = n / (n - 1) ** 2 * 12 * stated.UNIFORM_VARIANCE * (1 - 1 / n)
    return 1 / math.sqrt(_root(square, linear, target))


def _root(square: float, linear: float, target: float) -> float:
    """The positive u with ``square u^2 + linear u = target``, without cancellation."""
    return 2 * target / (linear + math.sqrt(linear**2 + 4 * square * target))


def _moments() -> list[StudyCheck]:
    mean, spread, error = moments(659, variance=stated.UNIFORM_VARIANCE, scale=1.0)
    right = Claims(source="M2, M3, C4", why=_CROSS)
    text = Claims(source="Biswal 2024, equation 5.25")
    limit = moments(10**6, variance=stated.UNIFORM_VARIANCE, scale=1.0)[2]
    printed = published_error(659, variance=stated.UNIFORM_VARIANCE, fourth=_FOURTH, scale=1.0)
    return [
        Claims(source="Biswal 2024, equation 5.23; C4").number(
            "E2/mean", "mean of the variance of noisy rows, n 659", expected=2.083, got=mean,
            absolute=0.0005),
        right.number("E2/variance", "variance of the variance of noisy rows, n 659",
                     expected=0.0314, got=spread, absolute=0.00005),
        right.number("E2/error", "mean squared error, n 659", expected=4.031, got=error,
                     absolute=0.0005),
        right.number("E2/second moment", "mean square of the variance of noisy rows, n 659",
                     expected=4.37, got=spread + mean**2, absolute=0.005),
        text.number("E2/as printed", "the same by the printed formula", expected=0.0379,
                    got=printed, absolute=0.00005),
        right.at_least("E2/error, n 1e6", "mean squared error does not vanish with many rows",
                       expected=4.0, got=limit),
    ]  # fmt: skip


def _simulated(setting: StudySetting) -> list[StudyCheck]:
    rng = setting.rng("E2")
    made: list[StudyCheck] = []
    claims = Claims(source="C4", why=_CROSS)
    for n in _ROWS:
        runs = (
            setting.times(200_000, quick=20_000) if n < 100 else setting.times(40_000, quick=4_000)
        )
        x = rng.uniform(size=n)
        s2 = float(x.var(ddof=1))
        mean, spread, error = moments(n, variance=s2, scale=1.0)
        found = _noisy_variances(x, runs, rng)
        squares, errors = np.square(found - mean), np.square(found - s2)
        made += [
            Claims(source="C4").simulated(
                f"E2/simulated mean/{n}", f"mean of the variance of {n} noisy rows, {runs} runs",
                values=found, expected=mean, spread=math.sqrt(spread)),
            Claims(source="C4").simulated(
                f"E2/debiased/{n}", f"the same less 2 b^2, n {n}", values=found - 2, expected=s2,
                spread=math.sqrt(spread)),
            # The spread of squares needs eighth moments: it is that of the runs.
            claims.simulated(f"E2/simulated variance/{n}", f"its variance, n {n}, {runs} runs",
                             values=squares, expected=spread, spread=float(squares.std())),
            claims.simulated(f"E2/simulated error/{n}", f"its squared error, n {n}, {runs} runs",
                             values=errors, expected=error, spread=float(errors.std())),
        ]  # fmt: skip
    return made


def _noisy_variances(x: Floats, runs: int, rng: np.random.Generator) -> Floats:
    piece = max(1, 1_000_000 // len(x))
    return np.concatenate([
        (x + rng.laplace(size=(min(piece, runs - start), len(x)))).var(axis=1, ddof=1)
        for start in range(0, runs, piece)
    ])  # fmt: skip


def _fourth(setting: StudySetting) -> list[StudyCheck]:
    rng = setting.rng("E2 fourth")
    wrong = Claims(source="M4", why="Counted with 6 n (n - 1) mixed terms where there are half.")
    made: list[StudyCheck] = []
    for n, printed, true in ((2, 6.0, 4.5), (3, 8.89, 8.0)):
        z = rng.laplace(size=(setting.times(1_000_000, quick=100_000), n))
        fourths = (z[:, 0] - z.mean(axis=1)) ** 4
        exact = fourth_moment(n, scale=1.0, as_text=False)
        made += [
            Claims(source="Biswal 2024, section 5.6").number(
                f"E2/fourth moment, printed/{n}", f"fourth moment of a centered noise, n {n}",
                expected=printed, got=fourth_moment(n, scale=1.0, as_text=True), absolute=0.005),
            wrong.number(f"E2/fourth moment/{n}", f"fourth moment of a centered noise, n {n}",
                         expected=true, got=exact, absolute=1e-9),
            wrong.simulated(f"E2/fourth moment, simulated/{n}", f"the same, {len(z)} draws",
                            values=fourths, expected=exact, spread=float(fourths.std())),
        ]  # fmt: skip
    return made


def _matching() -> list[StudyCheck]:
    right = Claims(source="M5, M6, C5", why=_SQUARE_ROOT)
    keys = {f"n {n}": n for n in stated.MATCHED}
    ours = {
        n: compare_central_local(
            lower=0, upper=1, public_rows=n, epsilon=1, std=math.sqrt(stated.UNIFORM_VARIANCE)
        )[1]
        for n in keys.values()
    }
    nothing = [n for n in (100, 150, 200, 1000, 10_000) if math.isnan(published_matched(n))]
    slope = math.log10(matched(100_000, debiased=False) / matched(10_000, debiased=False))
    return [
        *right.numbers(
            "E2/matched, debiased", "epsilon of noisy rows for the error of a noisy variance",
            expected={key: stated.MATCHED[n][0] for key, n in keys.items()},
            got={key: ours[n].matched for key, n in keys.items()}, relative=0.05),
        *right.numbers(
            "E2/matched, biased", "the same without taking the noise off",
            expected={key: stated.MATCHED[n][1] for key, n in keys.items()},
            got={key: matched(n, debiased=False) for key, n in keys.items()}, relative=0.05),
        right.number("E2/slope", "power of n in it, 1e4 to 1e5", expected=0.5, got=slope,
                     absolute=0.02),
        Claims(source="M5").equal(
            "E2/no solution", "numbers of rows for which the printed equation has no solution",
            expected="200, 1000, 10000", got=", ".join(map(str, nothing))),
    ]  # fmt: skip


def _moment_table() -> StudyTable:
    rows = []
    for n in _ROWS:
        mean, spread, error = moments(n, variance=stated.UNIFORM_VARIANCE, scale=1.0)
        printed = published_error(n, variance=stated.UNIFORM_VARIANCE, fourth=_FOURTH, scale=1.0)
        rows.append((n, mean, spread, error, printed))
    return StudyTable(
        id="E2/moments",
        title="Sample variance of uniform rows with Laplace noise of scale 1",
        columns=("rows", "mean", "variance", "squared error, corrected", "squared error, as_text"),
        rows=tuple(rows),
        note="The true variance is 1/12. Less 2, the squared error is the variance.",
    )


def _matching_table() -> StudyTable:
    return StudyTable(
        id="E2/matching",
        title="Epsilon at which noisy rows give the variance as well as noise on it at epsilon 1",
        columns=("rows", "noise taken off", "taken as it is", "as_text"),
        rows=tuple(
            (n, matched(n, debiased=True), matched(n, debiased=False), _printed(n))
            for n in (10, *stated.MATCHED)
        ),
        note="Uniform rows. A dash: the printed equation has no real solution.",
    )


def _printed(n: int) -> float | None:
    found = published_matched(n)
    return None if math.isnan(found) else found


def _figure() -> Figure:
    n = tuple(float(round(10 ** (1 + k / 8))) for k in range(33))
    return Figure(
        id="E2/matching",
        title="Epsilon that noisy rows need to be as good as a noisy answer at epsilon 1",
        x="rows",
        y="epsilon",
        lines=(
            Line(label="mean", x=n, y=tuple(math.sqrt(k) for k in n)),
            Line(
                label="variance, noise taken off",
                x=n,
                y=tuple(matched(int(k), debiased=True) for k in n),
            ),
            Line(
                label="variance, as it is",
                x=n,
                y=tuple(matched(int(k), debiased=False) for k in n),
            ),
            Line(
                label="variance, as_text",
                x=tuple(k for k in n if k < 160),
                y=tuple(published_matched(int(k)) for k in n if k < 160),
            ),
        ),
        note="exact, uniform rows; the printed equation has no solution from 160 rows on",
        log_x=True,
        log_y=True,
    )

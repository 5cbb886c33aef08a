"""Claims about private linear regression that do not hold, and what keeps them.

Least squares is solved from X'X and X'y. What is audited here are these sums as they are released,
on one regressor, where every law is known: Wang 2018 and Kalaja 2020 scale rows with exact
statistics of the data, and diffprivlib takes one bound for the other. No rows, no solver: `leakage`
knows neither data nor models.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
from scipy import stats

from discreet.accounting.conversion import gaussian_mu
from discreet.accounting.guarantee import gdp
from discreet.audit import exact
from discreet.audit.case import AuditCase
from discreet.audit.lattice_distribution import Floats, point
from discreet.mechanisms.additive import gaussian
from discreet_studies.audits.published_claims import PublishedClaim, refuted

EPSILON, DELTA = 1.0, 1e-6
ROWS = 40
"""Of the small data sets; the more there are, the worse it gets."""
Row = tuple[float, float]
"""A regressor and a target."""
Scaled = Callable[[Sequence[Row]], tuple[float, float]]
"""From rows to X'X and X'y, as pre-processing leaves them."""


def cases() -> tuple[AuditCase, ...]:
    """What was published or shipped, then the same with declared bounds."""
    return (_ssp(), *_scaled(), *_lower_bound(), *_sound())


def sigma() -> float:
    """Noise on X'X and on X'y for bounds of 1, accounted for together (K33)."""
    return math.sqrt(2) / gaussian_mu(EPSILON, delta=DELTA)


# ── what pre-processing does to the sums ──────────────────────────────────────────────────────


def by_largest(rows: Sequence[Row]) -> tuple[float, float]:
    """K19, K20: regressor and target in units of their largest (M4, M5)."""
    x, y = _columns(rows)
    u, v = x / np.abs(x).max(), y / np.abs(y).max()
    return float(u @ u), float(u @ v)


def by_moments(rows: Sequence[Row]) -> tuple[float, float]:
    """K16, K17: centered at the exact mean, then rows of length 1 (M5)."""
    x, y = _columns(rows)
    u = np.sign(x - x.mean())
    return float(u @ u), float(u @ y)


def by_bounds(rows: Sequence[Row]) -> tuple[float, float]:
    """K25: clipped to declared bounds of 1."""
    x, y = (np.clip(column, -1, 1) for column in _columns(rows))
    return float(x @ x), float(x @ y)


def _columns(rows: Sequence[Row]) -> tuple[Floats, Floats]:
    table = np.array(rows, dtype=np.float64)
    return table[:, 0], table[:, 1]


def change(scaled: Scaled, left: Sequence[Row], right: Sequence[Row]) -> float:
    """How far X'X and X'y move together; one row is paid for with the root of 2."""
    (a, b), (c, d) = scaled(left), scaled(right)
    return math.hypot(a - c, b - d)


def largest_pair(rows: int) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """Rows at 1, and the same with one more whose regressor is 10."""
    same = ((1.0, 1.0),) * rows
    return same, (*same, (10.0, 1.0))


def target_pair(rows: int) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """Rows at 1, and the same with one more whose target is 10."""
    same = ((1.0, 1.0),) * rows
    return same, (*same, (1.0, 10.0))


def mean_pair(rows: int) -> tuple[tuple[Row, ...], tuple[Row, ...]]:
    """A regressor that tells the target's sign, and one more row that moves the mean past it."""
    same = ((-1.0, -1.0), (1.0, 1.0)) * (rows // 2)
    return same, (*same, (10.0 * rows, 0.0))


# ── cases for the attack ──────────────────────────────────────────────────────────────────────


def _ssp() -> AuditCase:
    """M3b: the code of Wang 2018 gives the whole epsilon to either release."""
    nominal = 2.0
    noise = math.sqrt(math.log(4 / DELTA)) / nominal
    shift = math.sqrt(2) / noise
    return AuditCase(
        name="SSP as coded, epsilon 2",
        claimed=(nominal, DELTA),
        draw=partial(_draw, by_bounds, noise=noise),
        left=((0.0, 0.0),),
        right=((0.0, 0.0), (1.0, 1.0)),
        # Both move by one deviation each: their sum is sufficient.
        laws=lambda: exact.binned(stats.norm(0, 1), stats.norm(shift, 1)),
        broken=True,
        samples=2_000_000,
        why="epsilon is not split over X'X and X'y: true epsilon 3.40 (M3b)",
    )


def _scaled() -> tuple[AuditCase, ...]:
    return (
        _moved("regression by the largest row", by_largest, largest_pair(ROWS),
               "one row rescales all others, however many there are (M4)"),
        _moved("regression by the largest target", by_largest, target_pair(ROWS),
               "one target rescales all others, however many there are (M5)"),
        _moved("regression by the exact mean", by_moments, mean_pair(ROWS),
               "one row moves the mean past all others: every sign turns (M5)"),
    )  # fmt: skip


def _moved(
    name: str, scaled: Scaled, pair: tuple[Sequence[Row], Sequence[Row]], why: str
) -> AuditCase:
    left, right = pair
    moved = change(scaled, left, right) / sigma()
    return AuditCase(
        name=name,
        claimed=(EPSILON, DELTA),
        draw=partial(_draw, scaled, noise=sigma()),
        left=left,
        right=right,
        laws=lambda: exact.binned(stats.norm(0, 1), stats.norm(moved, 1)),
        broken=True,
        why=why,
    )


def _lower_bound() -> tuple[AuditCase, ...]:
    """Diffprivlib 0.6.6: squares are noised for the square of the lower bound, taken twice.

    ``LinearRegression`` without an intercept, one regressor: a third of epsilon for the sum of its
    squares. Within (-1, 3) the noise is for 1 where a row moves it by 9; within (0, 1) there is
    none. (Without an intercept rows are not clamped either: see "clamp forgotten".)
    """
    scale, true = 3 / EPSILON, 9.0
    # Far from zero: the noise is folded there.
    base = 200.0
    return (
        AuditCase(
            name="diffprivlib regression, squares by the lower bound",
            claimed=(EPSILON, 0.0),
            draw=partial(_folded, scale=scale),
            left=base,
            right=base + true,
            laws=lambda: exact.laplace_pair(base, base + true, scale=scale),
            broken=True,
            why="noise for a square of 1 where the upper bound allows 9: true epsilon 3",
        ),
        AuditCase(
            name="diffprivlib regression, bounds from zero",
            claimed=(EPSILON, 0.0),
            draw=partial(_folded, scale=0.0),
            left=base,
            right=base + 1,
            laws=lambda: exact.pair(point(int(base)), point(int(base) + 1)),
            broken=True,
            samples=10_000,
            why="the lower bound is 0, so the squares get no noise at all",
        ),
    )


def _sound() -> tuple[AuditCase, ...]:
    worst = (((0.0, 0.0),), ((0.0, 0.0), (1.0, 1.0)))
    shift = math.sqrt(2) / sigma()
    return (
        AuditCase(
            name="regression by declared bounds",
            claimed=gdp(shift),
            draw=partial(_draw, by_bounds, noise=sigma()),
            left=worst[0],
            right=worst[1],
            laws=lambda: exact.binned(stats.norm(0, 1), stats.norm(shift, 1)),
        ),
        AuditCase(
            name="regression by declared bounds, outlier",
            claimed=gdp(shift),
            draw=partial(_draw, by_bounds, noise=sigma()),
            left=largest_pair(ROWS)[0],
            right=largest_pair(ROWS)[1],
        ),
    )


def _draw(scaled: Scaled, rows: Sequence[Row], n: int, seed: int, *, noise: float) -> Floats:
    """The noisy sums (a simulation: a plain seeded generator)."""
    rng = np.random.default_rng(seed)
    return _rounded(scaled(rows) + noise * rng.standard_normal((n, 2)))


def _folded(value: float, n: int, seed: int, *, scale: float) -> Floats:
    rng = np.random.default_rng(seed)
    return _rounded(np.abs(value + rng.laplace(0, scale, n)))


def _rounded(values: Floats) -> Floats:
    """To a coarse grid: else the lowest bits alone tell the inputs apart (Mironov 2012)."""
    return np.round(values * 64) / 64


# ── claims that only an exact law refutes ─────────────────────────────────────────────────────


def claims() -> tuple[PublishedClaim, ...]:
    """SSP as coded at four epsilons, and the largest row by the number of rows."""
    return (*_coded(), *_unbounded())


def _coded() -> list[PublishedClaim]:
    made = []
    for epsilon in (1, 2, 5, 10):
        noise = math.sqrt(math.log(4 / DELTA)) / epsilon
        made.append(
            refuted(
                f"SSP as coded, epsilon {epsilon} (M3b)",
                stats.norm(0, 1),
                stats.norm(math.sqrt(2) / noise, 1),
                epsilon=epsilon,
                claimed=DELTA,
                repaired=gaussian(sensitivity=1, epsilon=epsilon, delta=DELTA),
            )
        )
    return made


def _unbounded() -> list[PublishedClaim]:
    made = []
    for rows in (10, 100, 1000):
        moved = change(by_largest, *largest_pair(rows))
        made.append(
            refuted(
                f"regression by the largest of {rows} rows (M4)",
                stats.norm(0, 1),
                stats.norm(moved / sigma(), 1),
                epsilon=EPSILON,
                claimed=DELTA,
                repaired=gaussian(sensitivity=1, epsilon=EPSILON, delta=DELTA),
            )
        )
    return made

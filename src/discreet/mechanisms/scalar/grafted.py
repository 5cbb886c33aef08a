"""Grafted noise: a Laplace core with Gaussian tails, for an (epsilon, delta) on one number."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from scipy import optimize

from discreet.core._rational import Number, ceil_div
from discreet.core._validate import positive, probability
from discreet.core.errors import Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms._inputs import Domain, ScoreScale
from discreet.mechanisms.scalar._base import LOSSES, Loss, ScalarNoise
from discreet.noise.distribution import Floats
from discreet.noise.piecewise_constant import TOTAL, PiecewiseConstant

# Cells by which the sensitivity is divided, and cells of one side of the noise, at most.
_FINE = 32
_MOST_CELLS = 1 << 15
# Mass below 2**-62 cannot be written; tails that fall to it are cut there.
_DEEPEST = 43.5
_LARGEST_EPSILON = 300


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class GraftedNoise(ScalarNoise):
    """Grafted noise. Made by `grafted`."""

    name = "grafted"
    scale: ScoreScale
    noise: PiecewiseConstant
    target: tuple[Fraction, Fraction]
    relation: NeighboringRelation

    def exact(self) -> tuple[float, str]:
        """The sum of all excesses, in integers."""
        found = self.noise.delta(self.scale.shift, self.target[0])
        return float(found), "sum over all cells, in integers"


@dataclass(frozen=True, slots=True)
class _Shape:
    """Log-density of the core's slope (an epsilon per sensitivity) and where the tails begin."""

    slope: float
    core: float
    """In units of the sensitivity."""

    def weights(self, cells: int) -> Floats:
        """Unnormalized weights of cells 0, 1, ..., of which ``cells`` make the sensitivity."""
        # Beyond the core the exponent is slope (t^2 + a^2) / (2 a): it equals _DEEPEST + its spread
        a = self.core
        reach = math.sqrt(max(2 * a * (_DEEPEST + 4) / self.slope - a * a, a * a))
        reach = min(reach, (_DEEPEST + 4) / self.slope) if a >= reach else reach
        t = np.arange(math.ceil(reach * cells) + 1) / cells
        falls = np.where(t <= a, self.slope * t, self.slope * (t * t + a * a) / (2 * a))
        return np.exp(-falls)

    def divergence(self, cells: int, epsilon: float) -> float:
        """The hockey-stick divergence of a move by the sensitivity, in double precision."""
        half = self.weights(cells)
        every = np.concatenate([half[:0:-1], half])
        every /= every.sum()
        moved = np.concatenate([np.zeros(cells), every])[: len(every)]
        return float(np.maximum(every - math.exp(epsilon) * moved, 0).sum())


def grafted(
    *,
    sensitivity: Number,
    epsilon: Number,
    delta: Number,
    loss: Loss = "mse",
    domain: Domain | None = None,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> GraftedNoise:
    """Noise whose density is Laplace near zero and Gaussian beyond: between the two, and better."""
    # Theorem: (epsilon, delta)-DP under `relation`.
    # Proof: by computation. The law is a table of whole numbers, whose divergence is summed in
    #   integers (`PiecewiseConstant.delta`), for the worst shift; what does not pass is not
    #   returned.
    # Source: Muthukrishnan, Kalyani 2023 (the flipped Huber density). B49: the slope of the core is
    #   searched around epsilon, where the optimum lies for small delta.
    # Needs: a scalar, 0 < delta < 1; epsilon not so small that the table would be too long.
    eps, dlt = positive("epsilon", epsilon), probability("delta", delta, zero=False, one=False)
    scale = ScoreScale.of(sensitivity, domain=domain)
    if eps > _LARGEST_EPSILON:
        raise Unsupported(f"epsilon must be at most {_LARGEST_EPSILON} for this noise.")
    cells, width = _cells(scale.shift, float(eps))
    measure = LOSSES[loss]

    def fitted(slope: float) -> _Shape | None:
        return _fit(slope, cells, float(eps), float(dlt))

    def cost(factor: float) -> float:
        shape = fitted(factor * float(eps))
        return math.inf if shape is None else measure(_distribution(shape, cells, width))

    best = min((1.0, 0.9, 1.1, 0.75, 1.3, 0.5, 2.0), key=cost)
    least = cost(best)
    if math.isinf(least):
        raise Unsupported("No grafted noise keeps this epsilon and delta: use laplace.")
    search = optimize.minimize_scalar(
        lambda factor: min(cost(factor), 10 * least),
        bounds=(best * 0.85, best * 1.15),
        method="bounded",
        options={"xatol": 1e-3},
    )
    factor = float(search.x) if search.fun < least else best
    shape = fitted(factor * float(eps))
    assert shape is not None  # noqa: S101 - its cost is finite
    return GraftedNoise(
        scale=scale,
        noise=_certified(shape, cells, width, scale.shift, (eps, dlt)),
        target=(eps, dlt),
        relation=relation,
    )


def _cells(shift: int, epsilon: float) -> tuple[int, int]:
    """Cells a sensitivity, and integers a cell (an odd number)."""
    room = int(_MOST_CELLS * epsilon / (_DEEPEST + 4))
    if room < 1:
        raise Unsupported(
            "epsilon is too small for a table of this noise: use laplace or gaussian."
        )
    cells = min(_FINE, room, shift)
    # Rounded up: a shift beyond the last whole cell would cost a second cell's loss.
    width = ceil_div(shift, cells)
    return cells, width + (width % 2 == 0)


def _fit(slope: float, cells: int, epsilon: float, delta: float) -> _Shape | None:
    """The shortest core of this slope that keeps delta; None if even Laplace noise does not."""
    longest = (_DEEPEST + 8) / slope
    if _Shape(slope, longest).divergence(cells, epsilon) > delta:
        return None
    low, high = 1e-3, longest
    for _ in range(50):
        middle = math.sqrt(low * high)
        if _Shape(slope, middle).divergence(cells, epsilon) <= delta:
            high = middle
        else:
            low = middle
    return _Shape(slope, high)


def _distribution(shape: _Shape, cells: int, width: int) -> PiecewiseConstant:
    """The shape in whole numbers; what rounding leaves goes to the center."""
    half = shape.weights(cells)
    share = half / (2 * half.sum() - half[0])
    whole = [int(weight * TOTAL) for weight in share[1:]]
    while whole and whole[-1] == 0:
        whole.pop()
    whole = list(np.minimum.accumulate(whole)) if whole else []
    return PiecewiseConstant([TOTAL - 2 * int(sum(map(int, whole))), *map(int, whole)], width=width)


def _certified(
    shape: _Shape, cells: int, width: int, shift: int, target: tuple[Fraction, Fraction]
) -> PiecewiseConstant:
    """The shape in integers, its core longer by as little as makes it keep the target."""
    growth = 0.0
    while growth < 0.1:
        grown = _Shape(shape.slope * (1 - growth / 10), shape.core * (1 + growth))
        law = _distribution(grown, cells, width)
        if law.delta(shift, target[0]) <= target[1]:
            return law
        growth = 2 * growth or 1e-9
    raise Unsupported("No grafted noise keeps this epsilon and delta: use laplace.")

"""The sparse vector technique and its published variants (Lyu, Su, Li 2017, figure 1).

Two of the six are private as they claim; four are not. All are given on integer queries of
sensitivity 1 with discrete Laplace noise, so that their output laws can be listed exactly.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.audit import exact
from discreet.audit._outputs import SparseVectorOutputs
from discreet.audit.case import AuditCase
from discreet.audit.lattice_distribution import discrete_laplace

Ints: TypeAlias = NDArray[np.int64]
UNANSWERED = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class SparseVectorVariant:
    """Noise scales and rules of one variant; None means no noise, no limit, no new threshold."""

    threshold_scale: float
    query_scale: float | None
    cutoff: int | None
    refresh_scale: float | None = None
    publishes_value: bool = False

    def laws(self, left: Sequence[int], right: Sequence[int]) -> exact.OutputPair:
        """The exact laws of the answers on two streams (threshold 0)."""
        mechanism = SparseVectorOutputs(
            threshold=0,
            threshold_noise=discrete_laplace(self.threshold_scale),
            query_noise=discrete_laplace(self.query_scale) if self.query_scale else None,
            cutoff=self.cutoff,
            refresh=discrete_laplace(self.refresh_scale) if self.refresh_scale else None,
        )
        law = partial(_with_value, mechanism) if self.publishes_value else mechanism.law
        return exact.pair(law(left), law(right), error=mechanism.error(left))

    def draw(self, queries: Sequence[int], n: int, seed: int) -> Ints:
        """Simulate: 1 above, 0 below, -1 unanswered; then the published values, if any."""
        rng = np.random.default_rng(seed)
        rho = laplace_integers(self.threshold_scale, n, rng)
        answers = np.full((n, len(queries)), UNANSWERED, dtype=np.int64)
        values = np.zeros_like(answers)
        hits = np.zeros(n, dtype=np.int64)
        for i, query in enumerate(queries):
            nu = laplace_integers(self.query_scale, n, rng)
            active = np.ones(n, dtype=bool) if self.cutoff is None else hits < self.cutoff
            above = active & (query + nu >= rho)
            answers[active, i] = 0
            answers[above, i] = 1
            values[above, i] = query + nu[above]
            hits += above
            if self.refresh_scale:
                rho = np.where(above, laplace_integers(self.refresh_scale, n, rng), rho)
        return np.hstack((answers, values)) if self.publishes_value else answers


def _with_value(
    mechanism: SparseVectorOutputs, queries: Sequence[int]
) -> dict[tuple[int, int], float]:
    """Values are read between -4 and 12: farther out the tails tell no more, only rounding."""
    law: dict[tuple[int, int], float] = {}
    for (index, value), mass in mechanism.law_with_value(queries).items():
        seen = (index, max(-4, min(12, value)))
        law[seen] = law.get(seen, 0.0) + mass
    return law


def laplace_integers(scale: float | None, n: int, rng: np.random.Generator) -> Ints:
    """Discrete Laplace draws as a difference of geometric ones: simulation only."""
    if scale is None:
        return np.zeros(n, dtype=np.int64)
    p = -np.expm1(-1 / scale)
    return rng.geometric(p, n) - rng.geometric(p, n)


def _case(
    name: str,
    variant: SparseVectorVariant,
    left: Sequence[int],
    right: Sequence[int],
    *,
    why: str = "",
) -> AuditCase:
    return AuditCase(
        name=f"sparse vector: {name}",
        claimed=(1.0, 0.0),
        draw=variant.draw,
        left=tuple(left),
        right=tuple(right),
        laws=lambda: variant.laws(left, right),
        broken=bool(why),
        samples=200_000,
        why=why,
    )


def cases() -> tuple[AuditCase, ...]:
    """The six variants, each claiming epsilon 1, on the inputs that hurt it."""
    half = 0.5
    zeros = [0] * 10
    return (
        _case(
            "1, Lyu et al. 2017",
            SparseVectorVariant(threshold_scale=1 / half, query_scale=2 * 2 / half, cutoff=2),
            zeros[:8],
            [1] * 6 + [-1] * 2,
        ),
        _case(
            "2, Dwork and Roth 2014",
            SparseVectorVariant(
                threshold_scale=2 / half,
                query_scale=2 * 2 / half,
                cutoff=2,
                refresh_scale=2 / half,
            ),
            zeros[:8],
            [1] * 6 + [-1] * 2,
        ),
        _case(
            "3, Roth 2011",
            SparseVectorVariant(
                threshold_scale=1 / half, query_scale=1 / half, cutoff=1, publishes_value=True
            ),
            zeros,
            [1] * 9 + [0],
            why="publishes the noisy value that was compared",
        ),
        _case(
            "4, Lee and Clifton 2014",
            SparseVectorVariant(threshold_scale=4.0, query_scale=4 / 3, cutoff=3),
            [0] * 9,
            [1] * 6 + [-1] * 3,
            why="noise on the queries does not grow with the number of reports",
        ),
        _case(
            "5, Stoddard et al. 2014",
            SparseVectorVariant(threshold_scale=1 / half, query_scale=None, cutoff=None),
            [0, 1],
            [1, 0],
            why="no noise on the queries",
        ),
        _case(
            "6, Chen et al. 2015",
            SparseVectorVariant(threshold_scale=1 / half, query_scale=1 / half, cutoff=None),
            zeros,
            [1] * 5 + [-1] * 5,
            why="any number of reports for the price of one",
        ),
    )

"""Regression as published: scaled by exact statistics of the private rows. Not private.

For studies on public data and for audits. It takes seeded bits only, so nothing made here can be
released or charged, and it says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np

from discreet.core.errors import InvalidArgument, NotCertified
from discreet.models._model_inputs import Floats
from discreet.models.regression._row_lattice import Mapping, RowLattice, RowMap, sum_moments
from discreet.models.regression.ssp_and_adassp import Constants, plan_published
from discreet.models.regression.sufficient_statistics import NoisySufficientStatistics
from discreet.noise.random_source import RandomSource

Policy: TypeAlias = Literal[1, 2]
STATEMENT = "no DP guarantee"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PublishedScaling:
    """Exact means, deviations and maxima of rows (K16, K19, K20): data-dependent."""

    center: Floats
    scale: Floats
    radius: float
    target_center: float
    target_half: float
    mapping: Literal["max", "row"]

    is_private: bool = field(default=False, init=False)

    def rows(self, lattice: RowLattice) -> RowMap:
        """The map of rows with these statistics."""
        mapping: Mapping = "row" if self.mapping == "row" else "ball"
        many = len(self.center)
        return RowMap(
            lattice=lattice,
            mapping=mapping,
            lower=np.full(many, -np.inf),
            upper=np.full(many, np.inf),
            center=self.center,
            scale=self.scale,
            radius=self.radius,
            target_center=np.array([self.target_center]),
            target_half=np.array([self.target_half]),
        )


def published_scaling(
    x: Floats, y: Floats, *, mapping: Literal["max", "row"] = "max", centered: bool = True
) -> PublishedScaling:
    """Standardize, then divide by the largest norm (K19) or each row by its own (K17)."""
    center, scale = x.mean(axis=0), x.std(axis=0, ddof=1)
    scale = np.where(scale > 0, scale, 1.0)
    middle = float(y.mean()) if centered else 0.0
    radius = float(np.linalg.norm((x - center) / scale, axis=1).max()) if mapping == "max" else 1.0
    return PublishedScaling(
        center=center,
        scale=scale,
        radius=radius,
        target_center=middle,
        target_half=float(np.abs(y - middle).max()),
        mapping=mapping,
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AsPublished:
    """What a curator would publish: moments, and the statistics themselves under policy 2."""

    moments: NoisySufficientStatistics
    scaling: PublishedScaling
    policy: Policy
    nominal: tuple[float, float]

    is_private: bool = field(default=False, init=False)

    @property
    def statement(self) -> str:
        """What the ledger must print (K26)."""
        how = (
            "withheld, but the coefficients depend on them without noise"
            if self.policy == 1
            else "published as they are"
        )
        epsilon, delta = self.nominal
        return (
            f"{STATEMENT} (nominal epsilon {epsilon:g}, delta {delta:g}): means, deviations and "
            f"maxima are exact statistics of the private rows, {how}."
        )


def as_published(  # noqa: PLR0913 - one demonstrator, each choice named
    x: Floats,
    y: Floats,
    *,
    epsilon: float,
    delta: float,
    rng: RandomSource,
    mapping: Literal["max", "row"] = "max",
    policy: Policy = 2,
    method: Literal["ssp", "adassp"] = "adassp",
    constants: Constants = "thesis",
    intercept: float = 0.0,
) -> AsPublished:
    """Run a published pipeline, on public data or for an audit: seeded bits only."""
    if mapping not in ("max", "row"):
        raise InvalidArgument(f"mapping must be 'max' or 'row', got {mapping!r}.")
    if rng.private:
        raise NotCertified(f"{STATEMENT}: use seeded bits, or PrivateLinearRegression.")
    if policy not in (1, 2):
        raise InvalidArgument(f"policy must be 1 or 2, got {policy!r}.")
    scaling = published_scaling(x, y, mapping=mapping)
    lattice = RowLattice.of(features=x.shape[1], intercept=intercept)
    plan = plan_published(
        lattice, method=method, constants=constants, epsilon=epsilon, delta=delta, certified=False
    )
    rows = scaling.rows(lattice)
    moments = plan.release(sum_moments(rows, x, y[:, None]), rows=rows, rng=rng)
    return AsPublished(moments=moments, scaling=scaling, policy=policy, nominal=(epsilon, delta))

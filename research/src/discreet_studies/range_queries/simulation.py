"""Simulated checks of the study: the same ranges for the exact error and for the simulated one."""

from __future__ import annotations

import math

import numpy as np

from discreet.noise.distribution import Floats, Ints
from discreet_studies.checks import Claims
from discreet_studies.range_queries.central_model import Linear, simulate
from discreet_studies.range_queries.local_model import LocalModel
from discreet_studies.range_queries.tree_cover import starts
from discreet_studies.study import StudyCheck

RANGES = 100
"""Random ranges asked of each structure, as in the thesis."""


def asked(domain: int, *, length: int, rng: np.random.Generator) -> Ints:
    """Random ranges of a length; all of them if there are few."""
    all_of_them = starts(domain, length=length)
    if len(all_of_them) <= RANGES:
        return all_of_them
    return np.sort(rng.choice(all_of_them, size=RANGES, replace=False))


def central(
    claims: Claims,
    name: str,
    claim: str,
    model: Linear,
    *,
    structures: int,
    rng: np.random.Generator,
) -> StudyCheck:
    """Laplace noise through a linear model, against its exact mean squared error."""
    errors = simulate(model, structures=structures, rng=rng)
    return squared(claims, name, claim, errors, model)


def squared(claims: Claims, name: str, claim: str, errors: Floats, model: Linear) -> StudyCheck:
    """Simulated errors against the exact mean squared error of their model."""
    return claims.simulated(
        name,
        f"{claim}: mean squared error",
        values=np.square(errors).mean(axis=1),
        expected=float(model.variances.mean()),
        spread=model.spread(),
    )


def local(
    claims: Claims,
    name: str,
    claim: str,
    model: LocalModel,
    counts: Ints,
    *,
    length: int,
    structures: int,
    rng: np.random.Generator,
) -> StudyCheck:
    """Reports of all users, against the exact mean squared error.

    The errors are sums over thousands of users, so the spread of their squares is that of a normal
    vector with the exact covariance.
    """
    first = asked(len(counts), length=length, rng=rng)
    errors = model.simulate(counts, first, length=length, structures=structures, rng=rng)
    covariance = model.covariance(counts, first, length=length)
    return claims.simulated(
        name,
        f"{claim}: mean squared error",
        values=np.square(errors).mean(axis=1),
        expected=float(np.trace(covariance)) / len(first),
        spread=math.sqrt(2 * float(np.square(covariance).sum())) / len(first),
    )

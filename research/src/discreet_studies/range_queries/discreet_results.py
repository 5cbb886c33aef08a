"""The house's own structures under the study's ranges: exact error, and simulation end to end."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from discreet.core.relation import NeighboringRelation
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import RandomSource
from discreet.query.budget import QueryBudget
from discreet.ranges._strategy_design import RangeDesign
from discreet.ranges.domain import integers
from discreet.ranges.strategies.base import Contribution, MeasurementCost
from discreet.ranges.strategies.hierarchical_histogram import HierarchicalHistogram, optimal_blocks
from discreet.ranges.workload import LengthWorkload, Workload
from discreet_studies.range_queries.central_model import Linear
from discreet_studies.range_queries.tree_cover import running


def designed(structure: HierarchicalHistogram, *, epsilon: float) -> RangeDesign:
    """The structure with the noise that a release would have: one visit is protected."""
    return RangeDesign(
        domain=integers(0, structure.size - 1),
        strategy=structure,
        budget=QueryBudget(epsilon=Fraction(epsilon)),
        family="laplace",
    )


def named(structure: HierarchicalHistogram) -> str:
    """The sizes of its blocks."""
    return f"blocks {'/'.join(map(str, structure.sizes))}"


def variances(structure: HierarchicalHistogram, *, epsilon: float) -> Floats:
    """The exact variance of the noise of each level."""
    return designed(structure, epsilon=epsilon).noise


def best_for(length: int, *, domain: int, epsilon: float) -> HierarchicalHistogram:
    """The nested blocks of least error for all ranges of one length."""
    exactly = LengthWorkload(name=f"ranges of {length}", shortest=length, longest=length)
    return _best(exactly, domain=domain, epsilon=epsilon)


def best_for_all(domain: int, *, epsilon: float) -> HierarchicalHistogram:
    """The nested blocks of least mean error for all ranges."""
    return _best(LengthWorkload(name="all ranges"), domain=domain, epsilon=epsilon)


def _best(workload: Workload, *, domain: int, epsilon: float) -> HierarchicalHistogram:
    return optimal_blocks(
        domain,
        workload=workload,
        price=MeasurementCost(family="laplace", strength=epsilon),
        relation=NeighboringRelation.ADD_REMOVE,
        contribution=Contribution(),
    )


def model(structure: HierarchicalHistogram, first: Ints, *, length: int, epsilon: float) -> Linear:
    """The weight of every noise in every answer, by asking the structure for one at a time."""
    noise = variances(structure, epsilon=epsilon)
    sizes = [len(level) for level in structure.measure(np.zeros(structure.size, dtype=np.int64))]
    columns = []
    for chosen, size in enumerate(sizes):
        for place in range(size):
            levels = [np.zeros(n, dtype=np.int64) for n in sizes]
            levels[chosen][place] = 1
            columns.append(_sums(structure.estimate(levels, noise), first, length))
    variance = np.repeat(noise, sizes)
    # E X^4 = Var (6 Var + 1) for discrete Laplace noise.
    return Linear(weights=np.array(columns).T, variance=variance, excess=3 + 1 / variance)


def simulate(
    structure: HierarchicalHistogram,
    counts: Ints,
    first: Ints,
    *,
    length: int,
    epsilon: float,
    structures: int,
    rng: RandomSource,
) -> Floats:
    """Errors of every answer (columns) in independent structures (rows), each one a release."""
    design = designed(structure, epsilon=epsilon)
    truth = _sums(counts.astype(np.float64), first, length)
    errors = np.empty((structures, len(first)))
    for row in range(structures):
        released = design.release(counts, rng=rng)
        errors[row] = released.answer_many(first, first + length - 1) - truth
    return errors


def _sums(cells: Floats, first: Ints, length: int) -> Floats:
    before = running(cells)
    return before[first + length] - before[first]

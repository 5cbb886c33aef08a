"""Recompute the guarantee of a plan: how far its own measurements move, and what noise they get."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from fractions import Fraction

import numpy as np

from discreet.accounting import composition
from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core.relation import NeighboringRelation
from discreet.marginals.design import MarginalDesign, TableKey, measured_shape, support
from discreet.mechanisms._drawn import releases_of_many
from discreet.mechanisms.mechanism import Certificate, CertificateCheck, DrawCheck
from discreet.noise.distribution import Floats, Ints
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import RandomSource

_PAIRS = 200
_MANY = 1 << 14
_FEWEST = 64
"""Releases that are made at least: the number of all rows is drawn once in each."""
_GROUPS = 3
"""Groups that are looked at one by one, from the smallest; all are looked at together."""
_PARTS = 1 << 30

Tables = Mapping[TableKey, Ints]


def certify_plan(
    design: MarginalDesign,
    *,
    measure: Callable[[Tables], Sequence[Ints]],
    release: Callable[[Tables, RandomSource], Sequence[Ints]],
    guarantee: Guarantee,
    rows: int,
) -> Certificate:
    """Certify a plan from what it measures and draws, not from its formulas."""
    moved = _moved(design, measure, rows, guarantee.relation)
    added = events.compose(
        [_added(law, most) for law, most in zip(design.laws, moved, strict=True) if most]
    )
    epsilon = guarantee.epsilon(1e-9)
    checks = []
    for share in (0.5, 1.0):
        at = epsilon * share
        exact = composition.delta(added, epsilon=at)
        checks.append(
            CertificateCheck(
                part="all measurements together",
                epsilon=at,
                claimed=guarantee.delta(at),
                exact=exact.value,
                route=f"as measured on made-up neighbors, {exact.by}",
            )
        )
    drawn = tuple(_drawn(design, release))
    return Certificate(
        mechanism="marginals", guarantee=guarantee, checks=tuple(checks), drawn=drawn
    ).demand()


def _moved(
    design: MarginalDesign,
    measure: Callable[[Tables], Sequence[Ints]],
    rows: int,
    relation: NeighboringRelation,
) -> list[int]:
    """How far each group moves at most between made-up neighbors: squared L2, or L1."""
    generator = np.random.default_rng(0)
    most = [0] * len(design.places)
    rest = _tables(design, generator.integers(0, 2**31, size=(len(design.columns), 4)))
    base = measure(rest)
    for left, right in _neighbors(design, generator, relation):
        one = measure(_plus(rest, _tables(design, left), rows)) if left is not None else base
        two = measure(_plus(rest, _tables(design, right), rows)) if right is not None else base
        for k, (a, b) in enumerate(zip(one, two, strict=True)):
            away = np.abs(np.ravel(a - b)).astype(object)
            most[k] = max(most[k], int(away.sum() if design.plain else (away * away).sum()))
    return most


def _neighbors(
    design: MarginalDesign, generator: np.random.Generator, relation: NeighboringRelation
) -> Iterator[tuple[Ints | None, Ints | None]]:
    """Rows of a unit before and after; those of one cell move contrasts furthest."""
    sizes = np.array([column.size for column in design.columns])
    first = np.zeros((len(sizes), 1), dtype=np.int64)
    yield None, first
    for _ in range(_PAIRS // 10):
        yield None, generator.integers(0, sizes)[:, None]
    if relation is NeighboringRelation.REPLACE_ONE:
        for i in range(len(sizes)):
            for value in {1, int(sizes[i]) - 1}:
                other = first.copy()
                other[i] = value
                yield first, other
        for _ in range(_PAIRS // 10):
            yield generator.integers(0, sizes)[:, None], generator.integers(0, sizes)[:, None]


def _tables(design: MarginalDesign, codes: Ints) -> dict[TableKey, Ints]:
    found = {}
    sizes_of = np.array([column.size for column in design.columns])
    codes = design.coded(codes % sizes_of[:, None])
    for table in dict.fromkeys(support(place) for place in design.places):
        sizes = tuple([design.columns[i].size for i in table])
        made = np.zeros(sizes, dtype=np.int64)
        places = tuple([codes[i] for i in table])
        if table:
            np.add.at(made, places, 1)
        else:
            made += codes.shape[1]
        found[table] = made
    return found


def _plus(rest: Tables, own: Tables, rows: int) -> dict[TableKey, Ints]:
    return {table: rest[table] + rows * own[table] for table in rest}


def _added(law: DiscreteGaussian | DiscreteLaplace, moved: int) -> events.Event:
    if isinstance(law, DiscreteGaussian):
        return events.DiscreteGaussianEvent(law.square, Fraction(moved), moved)
    return events.DiscreteLaplaceEvent(law.scale, moved)


def _drawn(
    design: MarginalDesign, release: Callable[[Tables, RandomSource], Sequence[Ints]]
) -> Iterator[DrawCheck]:
    """Releases of nothing: what is drawn, put on one scale by the law that each group claims."""
    # Proof: a draw k of a law with cumulated probabilities F, spread evenly between F(k - 1) and
    #   F(k), is uniform. So all groups can be looked at together.
    empty = _tables(design, np.zeros((len(design.columns), 0), dtype=np.int64))
    whole = sum(
        math.prod(measured_shape(place, design.columns, plain=design.plain))
        for place in design.places
    )
    times = max(_FEWEST, _MANY // whole)
    generator = np.random.default_rng(1)

    def spread(groups: Sequence[Ints]) -> Floats:
        found = []
        for values, law in zip(groups, design.laws, strict=True):
            k = np.ravel(values)
            below = law.cdf(k - 1)
            found.append(below + generator.random(len(k)) * (law.cdf(k) - below))
        return np.concatenate(found)

    def even(k: Ints) -> Floats:
        return np.clip((k + 1) / _PARTS, 0.0, 1.0)

    def draw(words: RandomSource) -> Ints:
        drawn = np.concatenate([spread(release(empty, words)) for _ in range(times)])
        return (drawn * _PARTS).astype(np.int64)

    yield releases_of_many("noise of all groups", draw, even)
    for place in range(len(design.places)):
        law = design.laws[place]

        def one(words: RandomSource, place: int = place) -> Ints:
            return np.concatenate([np.ravel(release(empty, words)[place]) for _ in range(times)])

        yield releases_of_many(f"noise of group {place + 1}", one, law.cdf)
        if place == _GROUPS - 1:
            break

"""Keys shown by a threshold: our own selection, and the ways in which it goes wrong.

An input is the number of units of each key that either side has (zero: the key does not occur
there). An output is, key by key, the noisy count that is shown, or zero for a hidden key.
"""

from __future__ import annotations

from functools import reduce
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.audit import exact
from discreet.audit import lattice_distribution as lattice
from discreet.audit.case import AuditCase
from discreet.audit.cases.sparse_vector import laplace_integers
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms.partition_selection import PartitionSelection, partition_selection
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import seeded_rng

Counts: TypeAlias = tuple[int, ...]
EPSILON = 1
DELTA = 0.01


def cases() -> tuple[AuditCase, ...]:
    """Good ones: keys that stay, keys that come, and keys that are exchanged."""
    one, three = _selection(1), _selection(3)
    exchange = _selection(3, relation=NeighboringRelation.REPLACE_ONE)
    c, d = three.threshold + 2, exchange.threshold + 2
    return (
        _case("partition selection", one, (one.threshold + 2,), (one.threshold + 3,)),
        _case("partition selection, new key", three, (0, c, c), (1, c + 1, c + 1)),
        _case(
            "partition selection, replace one",
            exchange,
            (1, d + 1, d + 1, 0, d, d),
            (0, d, d, 1, d + 1, d + 1),
        ),
    )


def broken() -> tuple[AuditCase, ...]:
    """What must be caught; the threshold that is reached and not exceeded is among `mistakes`."""
    one = _selection(1)
    claimed = float(EPSILON), float(one.mass)
    return (
        AuditCase(
            name="threshold for one key of several",
            claimed=claimed,
            draw=lambda counts, n, seed: _shown(counts, n, seed, one),
            left=(0, 0, 0),
            right=(1, 1, 1),
            laws=lambda: _laws(one, (0, 0, 0), (1, 1, 1)),
            broken=True,
            why="a unit may have three keys, delta was computed for one",
        ),
        AuditCase(
            name="threshold on rows, not units",
            claimed=claimed,
            draw=lambda counts, n, seed: _shown(counts, n, seed, one),
            left=(0,),
            right=(3,),
            laws=lambda: _laws(one, (0,), (3,)),
            broken=True,
            why="one unit with three rows looks like three",
        ),
    )


def _selection(
    groups: int, *, relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE
) -> PartitionSelection:
    return partition_selection(
        groups=groups, epsilon=EPSILON, delta=DELTA, method="laplace", relation=relation
    )


def _case(name: str, mechanism: PartitionSelection, left: Counts, right: Counts) -> AuditCase:
    def draw(counts: Counts, n: int, seed: int) -> object:
        """Many releases at once: the noise is independent from key to key."""
        columns = []
        for place, units in enumerate(counts):
            column = np.zeros(n, dtype=np.int64)
            found, noisy = mechanism.release(np.full(n, units), rng=seeded_rng(seed + 100 * place))
            column[found] = noisy
            columns.append(column)
        return np.stack(columns, axis=1)

    return AuditCase(
        name=name,
        claimed=(float(EPSILON), float(mechanism.mass)),
        draw=draw,
        left=left,
        right=right,
        laws=lambda: _laws(mechanism, left, right),
        mechanism=mechanism,
    )


def _shown(counts: Counts, n: int, seed: int, mechanism: PartitionSelection) -> NDArray[np.int64]:
    """A simulation of the same selection, without the care of the library."""
    rng = np.random.default_rng(seed)
    noisy = np.stack([units + laplace_integers(1 / EPSILON, n, rng) for units in counts], axis=1)
    return np.where((noisy > mechanism.threshold) & (np.array(counts) > 0), noisy, 0)


def _laws(mechanism: PartitionSelection, left: Counts, right: Counts) -> exact.OutputPair:
    """Key by key; above both counts the ratio is constant, so all of that is one outcome."""
    assert isinstance(mechanism.noise, DiscreteLaplace)  # noqa: S101 - all of these are
    noise = lattice.discrete_laplace(float(mechanism.noise.scale))
    pairs = []
    for a, b in zip(left, right, strict=True):
        shown = np.arange(mechanism.threshold + 1, max(a, b, mechanism.threshold + 1) + 1)
        pairs.append(exact.pair(*(_key_law(noise, units, shown) for units in (a, b))))
    return reduce(exact.product, pairs)


def _key_law(
    noise: lattice.LatticeDistribution, units: int, shown: NDArray[np.int64]
) -> dict[int, float]:
    if units == 0:
        return {0: 1.0}
    masses = noise.pmf(shown - units)
    masses[-1] += float(noise.sf(int(shown[-1]) - units))
    hidden = float(noise.cdf(int(shown[0]) - 1 - units))
    return {0: hidden, **dict(zip(shown.tolist(), masses.tolist(), strict=True))}

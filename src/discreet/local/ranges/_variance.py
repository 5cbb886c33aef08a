"""Errors of ranges in the local model, in closed form, for any distribution of the values.

Every client draws one level and reports only there, so the levels' errors come from disjoint parts
of one population: what one level over-samples another misses. The formulas count that exactly. All
variances are of estimated shares, times the number of reports n. Also here: the choice of the
oracle of least error for a level.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeAlias

import numpy as np

from discreet.core._validate import as_tuple, count, one_of
from discreet.core.errors import InvalidArgument
from discreet.local.oracles.base import FrequencyOracle
from discreet.local.oracles.local_hashing import hadamard_response, olh
from discreet.local.oracles.randomized_response import grr
from discreet.local.oracles.subset_selection import subset_selection
from discreet.local.oracles.unary_encoding import oue
from discreet.noise.distribution import Floats, Ints, floats
from discreet.ranges.workload import Workload, energies, energy, length_energies

# ── Choice of an oracle ──────────────────────────────────────────────────────────────────────────


LONGEST = 1 << 13
"""Bits of the longest report unless more are allowed: one kibibyte."""
ALIKE = 1.01
"""Variances within one percent count as equal: then the shorter report wins."""

Oracles: TypeAlias = str | Sequence[str] | None
"""One name, several to choose from, or None for all."""

FACTORIES: dict[str, Callable[..., FrequencyOracle]] = {
    "grr": grr,
    "olh": olh,
    "subset_selection": subset_selection,
    "oue": oue,
    "hadamard_response": hadamard_response,
}


def best_oracle(
    categories: int,
    *,
    epsilon: Fraction,
    oracle: Oracles = None,
    max_report_bits: int | None = None,
) -> FrequencyOracle:
    """Choose the frequency oracle with the least error for ranges.

    Variances within one percent count as equal; then the shorter report is chosen.

    Args:
        categories: Number of categories, at least 2. Clients report codes from 0 to `categories -
            1`.
        epsilon: Privacy loss of one report.
        oracle: Oracle, or several to choose from: "grr", "olh", "subset_selection", "oue",
            "hadamard_response". If None, all of them.
        max_report_bits: Longest report that clients can send, in bits. If None, 8192 bits.

    Returns:
        A local randomizer with `randomize` for clients and `estimate` for the server.

    Raises:
        InvalidArgument: A name is unknown, or no report is short enough.

    Privacy:
        Each report is epsilon-DP for the client in the local model: neighbors are any two values of
        the client.

    Examples:
        >>> from discreet import local
        >>> local.best_oracle(16, epsilon=1).kind
        'olh'
    """
    names = (oracle,) if isinstance(oracle, str) else tuple(FACTORIES) if oracle is None else oracle
    for name in as_tuple("oracle", names) or (None,):
        one_of("oracle", name, FACTORIES)
    if max_report_bits is not None:
        count("max_report_bits", max_report_bits)
    made = [FACTORIES[name](categories=categories, epsilon=epsilon) for name in names]
    # A named oracle is taken as it is; only an open choice has a default length.
    room = LONGEST if max_report_bits is None and oracle is None else max_report_bits
    fitting = [one for one in made if room is None or 8 * one.width <= room]
    if not fitting:
        shortest = min(8 * one.width for one in made)
        raise InvalidArgument(
            f"max_report_bits must be at least {shortest} for {categories} blocks, got {room}."
        )
    least = min(one.contrast_variance() for one in fitting)
    close = [one for one in fitting if one.contrast_variance() <= least * ALIKE]
    return min(close, key=lambda one: one.width)


# ── Variances ────────────────────────────────────────────────────────────────────────────────────


_CHUNK = 1 << 14
"""Ranges at a time."""
_PATHS = [2, 5]
_OFF = [0, 1, 3, 4]
"""Rows of `_steps`: smaller blocks on the paths to the ends of a range, and all others."""

Spread: TypeAlias = tuple[float, float]
"""``(alpha, gamma)``: a report's contrast u has variance ``alpha |u|^2 + gamma u_x^2`` given x."""


class LocalVariance(ABC):
    """The error of every range of a structure, times n."""

    __slots__ = ()
    size: int
    rates: tuple[float, ...]
    """The share of the reports on each level."""

    @property
    @abstractmethod
    def padded(self) -> int:
        """Cells after filling up the last block."""

    @property
    @abstractmethod
    def _blocks(self) -> tuple[int, ...]:
        """The sizes of the blocks of all levels, and of the whole filled-up domain."""

    @property
    @abstractmethod
    def _factors(self) -> Floats:
        """What a fall of the energy from each level to the next costs; infinite if unmeasured."""

    @abstractmethod
    def _at(self, a: Ints, b: Ints, sums: Floats, k: float) -> Floats:
        """The law of some ranges, given prefix sums of the shares of the cells."""

    def uniform(self, a: Ints, b: Ints) -> Floats:
        """For ranges of cells ``a .. b``, if all cells are equally frequent."""
        return self._summed(_energies(a, b, self._blocks))

    def mean(self, workload: Workload) -> float:
        """The mean of ``uniform`` over a workload."""
        return float(self._summed(energies(workload, self.size, self._blocks)))

    def by_length(self, lengths: Ints) -> Floats:
        """The mean of ``uniform`` over all ranges of each length."""
        return self._summed(length_energies(self.size, lengths, self._blocks))

    def at(self, a: Ints, b: Ints, shares: Floats, *, reports: int | None = None) -> Floats:
        """For any shares of the cells; with ``reports``, exact for that many clients."""
        # Theorem: given the numbers of reports `n_l` of the levels, the estimate of a range w is
        #   unbiased, and its variance is `sum_l (v_l + k f[u_l]) / n_l - k f[w] / n` with
        #   `k = n / (n - 1)`. Here u_l are the weights that level l gives to the clients, f[u]
        #   is the variance of u over the clients and v_l the mean over them of the variance of a
        #   report's contribution: for blocks `alpha |u|^2 + gamma f(u^2)` (`spread`), for signed
        #   Hadamard responses `c^2 |u|^2 - f(u^2)`.
        # Proof: docs/theory/local-ranges.md. The clients are split over the levels at random, so
        #   two levels' means of u and v have covariance `-k f[u, v] / n` and one level's has
        #   variance `k f[u] (1/n_l - 1/n)`. Summed over levels, the terms with 1/n are `k f[sum_l
        #   u_l]`, and the u_l of a client sum to w (and a constant), because least squares is
        #   unbiased.
        sums = np.zeros(self.padded + 1)
        sums[1 : len(shares) + 1] = np.cumsum(shares)
        sums[len(shares) + 1 :] = sums[len(shares)]
        # A finite population: what is drawn from it without putting back varies so much more.
        k = 1.0 if reports is None or reports < 2 else reports / (reports - 1)
        first, last = np.broadcast_arrays(np.asarray(a), np.asarray(b))
        if not np.isfinite(self._factors).all():
            return np.full(first.shape, np.inf)
        found = np.empty(first.size)
        for start in range(0, first.size, _CHUNK):
            part = slice(start, start + _CHUNK)
            found[part] = self._at(first.ravel()[part], last.ravel()[part], sums, k)
        return np.maximum(found, 0.0).reshape(first.shape)

    def _summed(self, held: Floats) -> Floats:
        """``sum_j (E_j - E_(j+1)) x_j - f_R (1 - f_R)``; the last axis holds the energies E."""
        if not np.isfinite(self._factors).all():  # a level without reports
            return np.full(held.shape[:-1], np.inf)
        # With equally frequent cells f_R is r/D; E is r for blocks of one, r^2/D for blocks of D.
        sampled = (held[..., 0] - held[..., -1]) / self.padded
        return np.maximum(-np.diff(held, axis=-1) @ self._factors - sampled, 0.0)


def spread(oracle: FrequencyOracle) -> Spread:
    """How an oracle's estimates of contrasts vary, from the laws that it states."""
    # Theorem: if no category is treated differently from another, the covariance of the estimates
    #   from a report of a client with value x is
    #   `alpha I + beta 11' + gamma e_x e_x' + kappa (e_x 1' + 1 e_x')`, so a contrast u (weights
    #   that sum to zero) has the variance `alpha |u|^2 + gamma u_x^2`.
    # Proof: permutations of the categories that keep x leave the covariance as it is; these four
    #   matrices span what they leave. Sums over 1 and 2 categories without and with x then are
    #   `alpha + beta`, `2 alpha + 4 beta`, and these plus `gamma + 2 kappa` and
    #   `gamma + 4 kappa`: solve for alpha and gamma.
    # Source: F13, F47, F48, F49.
    if oracle.categories == 2:  # the only contrast is (1, -1): |u|^2 and u_x^2 tell the same
        return oracle.contrast_variance(), 0.0
    one, two = (float(oracle.range_variance(length, 0.0)) for length in (1, 2))
    own, both = (float(oracle.range_variance(length, 1.0)) for length in (1, 2))
    return 2 * one - two / 2, 2 * own - both + two - 2 * one


@dataclass(frozen=True, slots=True, kw_only=True)
class HierarchicalVariance(LocalVariance):
    """Nested blocks ``1 = s_0 | s_1 | ...`` made consistent with the known total  (F50)."""

    size: int
    sizes: tuple[int, ...]
    spreads: tuple[Spread, ...]
    rates: tuple[float, ...]

    @property
    def padded(self) -> int:
        return -(-self.size // self.sizes[-1]) * self.sizes[-1]

    @property
    def noise(self) -> Floats:
        """Variance times n of one report's contrast of unit length, if cells are equally frequent.

        With the sampling of clients: what least squares weighs the levels by.
        """
        nodes = self.padded / np.array(self.sizes, dtype=np.float64)
        alpha, gamma = np.array(self.spreads).T
        return floats(alpha + (gamma + 1) / nodes)

    @property
    def _blocks(self) -> tuple[int, ...]:
        return (*self.sizes, self.padded)

    @property
    def _factors(self) -> Floats:
        """``1 / lambda_j``, where lambda sums ``s_i p_i / V_i`` up to level j."""
        sizes = np.array(self.sizes, dtype=np.float64)
        with np.errstate(divide="ignore"):
            return 1 / np.cumsum(sizes * np.array(self.rates) / self.noise)

    def _at(self, a: Ints, b: Ints, sums: Floats, k: float) -> Floats:
        inverse = self._factors
        falls = -np.diff(_energies(a, b, self._blocks), axis=-1)
        inside = sums[b + 1] - sums[a]
        found = -k * inside * (1 - inside)
        # The weights of a level's nodes, up to a factor: on the two paths, and summed off them.
        paths = np.zeros((2, *a.shape))
        mean, square = np.zeros(a.shape), np.zeros(a.shape)
        levels = reversed(range(len(self.sizes)))
        for level, (masses, gains) in zip(levels, _steps(a, b, self._blocks, sums), strict=True):
            weights = paths[[0, 0, 0, 1, 1, 1]] + gains * inverse[level]
            means, squares = masses * weights, masses * np.square(weights)
            alpha, gamma = self.spreads[level]
            length = falls[..., level:] @ np.square(inverse[level:]) / self.sizes[level]
            here = square + squares.sum(axis=0)
            varied = here - np.square(mean + means.sum(axis=0))
            factor = self.rates[level] * (self.sizes[level] / self.noise[level]) ** 2
            found += factor * (alpha * length + gamma * here + k * varied)
            paths = weights[_PATHS]
            mean += means[_OFF].sum(axis=0)
            square += squares[_OFF].sum(axis=0)
        return floats(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class HaarVariance(LocalVariance):
    """Differences of halves, each level through signed Hadamard responses  (F51).

    The levels are blocks of 2, 4, ... cells. A client's weight is that of its block with the sign
    of its half, ``(P_(j-1) - P_j) w``.
    """

    size: int
    rates: tuple[float, ...]
    square: float
    """``((e^eps + 1) / (e^eps - 1))^2``."""

    @property
    def padded(self) -> int:
        return 1 << len(self.rates)

    @property
    def _blocks(self) -> tuple[int, ...]:
        return tuple(1 << j for j in range(len(self.rates) + 1))

    @property
    def _factors(self) -> Floats:
        rates = np.array(self.rates)
        with np.errstate(divide="ignore"):
            return floats(self.square / (rates * 2.0 ** np.arange(1, len(rates) + 1)))

    def _at(self, a: Ints, b: Ints, sums: Floats, k: float) -> Floats:
        inside = sums[b + 1] - sums[a]
        falls = -np.diff(_energies(a, b, self._blocks), axis=-1)
        found = falls @ self._factors - k * inside * (1 - inside)
        steps = _steps(a, b, self._blocks, sums)
        for rate, (masses, gains) in zip(reversed(self.rates), steps, strict=True):
            mean = (masses * gains).sum(axis=0)
            square = (masses * np.square(gains)).sum(axis=0)
            found += ((k - 1) * square - k * np.square(mean)) / rate
        return floats(found)


def _steps(
    a: Ints, b: Ints, blocks: Sequence[int], sums: Floats
) -> Iterator[tuple[Floats, Floats]]:
    """From the whole domain down to the smallest blocks: where ``P w`` changes, and for how many.

    Each step goes from two blocks, those that hold the first and the last cell of a range, to the
    smaller blocks inside, by rows: covered ones, untouched ones and the one with the first cell;
    covered ones, untouched ones and the one with the last. Masses are shares of the clients, gains
    the covered share of the smaller block less that of the larger. Where both ends are in one
    block, the last three rows have no mass.
    """
    # Proof: P w is 0 or 1 off the two paths to the ends, and stays so below; masses of runs of
    #   blocks are differences of prefix sums.
    above = _Ends(a, b, blocks[-1])
    for block in reversed(blocks[:-1]):
        here = _Ends(a, b, block)
        edges = (
            (here.first[1], np.where(above.same, here.last[0], above.first[1])),
            (above.first[0], here.first[0]),
            here.first,
            (above.last[0], here.last[0]),
            (here.last[1], above.last[1]),
            here.last,
        )
        masses = np.stack([sums[end] - sums[start] for start, end in edges])
        masses[0] = np.where(here.same & above.same, 0.0, masses[0])
        masses[1] += np.where(above.same, masses[4], 0.0)
        masses[3:5] = np.where(above.same, 0.0, masses[3:5])
        masses[5] = np.where(here.same, 0.0, masses[5])
        gains = [
            one - larger
            for smaller, larger in zip(here.covers, above.covers, strict=True)
            for one in (1.0, 0.0, smaller)
        ]
        yield masses, np.stack(gains)
        above = here


class _Ends:
    """The blocks of one size that hold the first and the last cells of ranges."""

    def __init__(self, a: Ints, b: Ints, block: int) -> None:
        self.same = a // block == b // block
        self.first = a // block * block, (a // block + 1) * block
        self.last = b // block * block, (b // block + 1) * block
        begun = np.where(self.same, b - a + 1, self.first[1] - a) / block
        self.covers = begun, np.where(self.same, begun, (b - self.last[0] + 1) / block)


def _energies(a: Ints, b: Ints, blocks: tuple[int, ...]) -> Floats:
    """Of ranges, for each block size on the last axis."""
    first, last = np.broadcast_arrays(a, b)
    return np.stack([energy(first, last, block) for block in blocks], axis=-1)

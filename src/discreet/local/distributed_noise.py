"""Distributed noise: each client adds a share, and all shares together are discrete Laplace noise.

Each client adds its share to its own vector, modulo a public number, and a protocol of secure
aggregation reveals the sum and nothing else. The published sum is then the one that a trusted
server would have published, without the server. The protocol itself is not part of this package.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import gammaln

from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core._rational import Number
from discreet.core._validate import count, positive
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms._inputs import read_whole
from discreet.noise.distribution import Floats, Ints, floats
from discreet.noise.laplace import DiscreteLaplace, Geometric
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.noise.uniform import uniform_integers

# A share takes about as many steps as the noise is wide.
LARGEST_SCALE = 1 << 16
_LARGEST_MODULUS = 1 << 62


@dataclass(frozen=True, slots=True, kw_only=True)
class Polya:
    """One of ``shares`` equal parts of a geometric number: P(k) ~ C(k - 1 + 1/m, k) r^k."""

    # Theorem: the sum of m independent draws is geometric, P(k) = (1 - r) r^k, r = exp(-1/scale).
    # Proof: the generating function of one is ((1 - r)/(1 - r z))^(1/m).
    # Source: Goryczka, Xiong 2017; the negative binomial law of shape 1/m.

    scale: Fraction
    shares: int

    def log_pmf(self, k: ArrayLike) -> Floats:
        """Natural logarithm of the probability of ``k``."""
        x, a = floats(k), 1 / self.shares
        rate = 1 / float(self.scale)
        ways = gammaln(np.maximum(x, 0) + a) - gammaln(a) - gammaln(np.maximum(x, 0) + 1)
        return np.where(x >= 0, ways - rate * x + a * math.log(-math.expm1(-rate)), -np.inf)

    def pmf(self, k: ArrayLike) -> Floats:
        """Probability of ``k``."""
        return np.exp(self.log_pmf(k))

    @property
    def variance(self) -> float:
        """That of the geometric number, divided by the number of shares."""
        return DiscreteLaplace(self.scale).variance / (2 * self.shares)

    def sample(self, size: int, rng: RandomSource) -> Ints:
        """``size`` independent draws, exactly from this law."""
        # Proof: a geometric number G is the sum of a part of shape 1/m and one of shape 1 - 1/m;
        #   given G the first is beta-binomial, which is what an urn gives: of the units of G, the
        #   next one falls to the first part with chance (1/m + a)/(1 + j) after j of which a
        #   did. All chances are rational.
        whole = Geometric(self.scale).sample(size, rng)
        mine = np.zeros(size, dtype=np.int64)
        open_ = np.flatnonzero(whole > 0)
        step = 0
        while open_.size:
            place = uniform_integers(self.shares * (1 + step), open_.size, rng)
            mine[open_] += place < 1 + self.shares * mine[open_]
            step += 1
            open_ = open_[whole[open_] > step]
        return mine


@dataclass(frozen=True, slots=True, kw_only=True)
class DistributedLaplace:
    """Shares of discrete Laplace noise for vectors that are summed. Made by `laplace_shares`."""

    scale: Fraction
    sensitivity: int
    min_honest_reports: int
    modulus: int
    relation: NeighboringRelation

    @property
    def guarantee(self) -> Guarantee:
        """What the sum costs, against the server and all clients but the honest."""
        return Guarantee(events.DiscreteLaplaceEvent(self.scale, self.sensitivity), self.relation)

    def std(self, clients: int | None = None) -> float:
        """Of the noise in one number of the sum, if so many clients added their share."""
        number = self.min_honest_reports if clients is None else self._enough(clients)
        return math.sqrt(DiscreteLaplace(self.scale).variance * number / self.min_honest_reports)

    def noise(self, size: int, *, rng: RandomSource | None = None) -> Ints:
        """The share of one client for a vector of ``size`` numbers."""
        source = resolve_rng(rng)
        part = Polya(scale=self.scale, shares=self.min_honest_reports)
        return part.sample(size, source) - part.sample(size, source)

    def randomize(self, value: ArrayLike, *, rng: RandomSource | None = None) -> Ints:
        """A client's vector of whole numbers with its share, modulo the modulus: for one sum."""
        values, _ = read_whole(value)
        if values.size and int(np.abs(values).max()) >= self.modulus // 2:
            raise OutOfDomain(
                f"value must hold whole numbers within half of the modulus {self.modulus}."
            )
        return (values + self.noise(values.size, rng=rng)) % self.modulus

    def decode(self, total: ArrayLike, *, clients: int) -> Ints:
        """The noisy sum from the sum of the messages modulo the modulus; post-processing.

        ``clients`` is how many honest clients are in the sum; fewer than planned are refused,
        because their noise is not enough.
        """
        self._enough(clients)
        seen, _ = read_whole(total)
        inside = seen % self.modulus
        return np.where(inside >= (self.modulus + 1) // 2, inside - self.modulus, inside)

    def _enough(self, clients: int) -> int:
        number = count("clients", clients)
        if number < self.min_honest_reports:
            raise InvalidArgument(
                f"clients must be at least the {self.min_honest_reports} that the shares were "
                "made for, got "
                f"{number}: the noise of fewer is not enough. Do not publish this sum."
            )
        return number


def distributed_laplace(
    *,
    sensitivity: int,
    epsilon: Number,
    min_honest_reports: int,
    modulus: int = 1 << 32,
    relation: NeighboringRelation = NeighboringRelation.REPLACE_ONE,
) -> DistributedLaplace:
    """Split Laplace noise into shares that clients add to their values.

    The sum over `min_honest_reports` clients has discrete Laplace noise. For secure aggregation,
    which reveals only the sum.

    Args:
        sensitivity: Largest L1 change of the sum by one client, for example 2 for a one-hot vector
            under replace-one.
        epsilon: Privacy loss of the sum.
        min_honest_reports: Number of clients that surely add their share and keep it secret. Shares
            of the others only add noise.
        modulus: Modulus of the secure sum, more than twice the largest sum with its noise. A sum
            that wraps around is private, but wrong.
        relation: Neighboring relation of the guarantee, such as `NeighboringRelation.ADD_REMOVE`.

    Returns:
        The distributed mechanism, with the randomizer of a client and the noise of the sum.

    Raises:
        InvalidArgument: An argument is not valid.

    Privacy:
        Whoever sees the sum, and the values and shares of all other clients, learns about the value
        of an honest client no more than epsilon-DP allows. discreet cannot check `sensitivity` or
        the secure aggregation for you.

    Examples:
        >>> from discreet import local
        >>> noise = local.distributed_laplace(sensitivity=2, epsilon=1, min_honest_reports=100)
        >>> float(noise.scale)
        2.0
    """
    # Theorem: whoever sees the sum modulo the modulus, and the shares and values of all clients but
    #   `min_honest_reports` of them, learns about one of those no more than epsilon-DP allows.
    # Proof: what the others sent can be subtracted. The shares of the honest are differences of
    #   Polya draws of shape 1/honest, so their sum is the difference of two geometric numbers:
    #   discrete Laplace of scale sensitivity/epsilon. A residue is post-processing.
    # Source: Ács, Castelluccia 2011; Goryczka, Xiong 2017 (F57).
    # Needs: secure aggregation, which reveals the sum only and only if at least
    #   `min_honest_reports` honest clients are in it; a scale of at most 2**16.
    moved = count("sensitivity", sensitivity)
    scale = moved / positive("epsilon", epsilon)
    if scale > LARGEST_SCALE:
        raise InvalidArgument(
            f"epsilon must be at least sensitivity / 2**16, got {epsilon}: use a coarser unit."
        )
    if relation is NeighboringRelation.LOCAL:
        raise InvalidArgument(
            "relation must be ADD_REMOVE or REPLACE_ONE: only a sum is protected."
        )
    size = count("modulus", modulus, minimum=2)
    if size > _LARGEST_MODULUS:
        raise InvalidArgument(f"modulus must be at most 2**62, got {size}.")
    return DistributedLaplace(
        scale=Fraction(scale),
        sensitivity=moved,
        min_honest_reports=count("min_honest_reports", min_honest_reports),
        modulus=size,
        relation=relation,
    )

"""Summation histogram encoding: a one-hot vector with discrete Laplace noise on every entry."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from discreet.core._rational import Number
from discreet.core._validate import count, positive
from discreet.core.errors import InvalidArgument
from discreet.local.oracles.base import FrequencyOracle
from discreet.local.randomizer import Reports, Tally, codes
from discreet.mechanisms._drawn import releases_of_many
from discreet.mechanisms.mechanism import Certificate, CertificateCheck, DrawCheck
from discreet.noise.distribution import Floats, Ints
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import RandomSource, resolve_rng

# Entries of reports made or added up at once.
_CHUNK = 1 << 19
# Entries keep this many scales of noise on each side: a cut of e^-48, which no sum can show.
_ROOM = 48
# Steps of the grid for one client: fine enough for the noise to be as good as continuous.
_FINEST = 1 << 12
_LARGEST = (1 << 15) - 1
# Entries that a certificate looks at.
_LOOKED_AT = 1 << 14


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class SummationHistogramEncoding(FrequencyOracle):
    """Every entry is ``steps`` or zero plus noise of scale 2 * steps / epsilon, then clamped.

    A report holds one signed number of two bytes for each category, the lowest byte first. Entries
    are clamped to +-32767 by the client: post-processing, and so rare that no estimate shows it.
    """

    kind: ClassVar[str] = "she"
    categories: int
    epsilon: Fraction
    steps: int

    @property
    def noise(self) -> DiscreteLaplace:
        """The noise of an entry, in steps."""
        return DiscreteLaplace(2 * self.steps / self.epsilon)

    @property
    def keep(self) -> float:
        """Mean of the own entry in units of a client; here no probability."""
        return 1.0

    @property
    def other(self) -> float:
        """Mean of any other entry."""
        return 0.0

    @property
    def width(self) -> int:
        return 2 * self.categories

    @property
    def size(self) -> int:
        return self.categories

    def parameters(self) -> dict[str, Any]:
        return {"categories": self.categories, "steps": self.steps}

    def randomize(self, value: ArrayLike, *, rng: RandomSource | None = None) -> Reports:
        """The report of each client; noise on every entry is drawn alike and exactly."""
        source = resolve_rng(rng)
        own = codes(value, self.categories)
        out = np.empty((len(own), self.categories), dtype="<i2")
        step = max(1, _CHUNK // self.categories)
        noise = self.noise
        for start in range(0, len(own), step):
            here = own[start : start + step]
            entries = noise.sample(len(here) * self.categories, source).reshape(len(here), -1)
            entries[np.arange(len(here)), here] += self.steps
            out[start : start + step] = np.clip(entries, -_LARGEST, _LARGEST)
        return out.view(np.uint8)

    def tally(self, reports: Reports) -> Tally:
        """Add up entries; a report with an entry that no client sends (-32768) is refused."""
        counts = np.zeros(self.categories, dtype=np.int64)
        accepted = 0
        step = max(1, _CHUNK // self.categories)
        for start in range(0, len(reports), step):
            entries = np.ascontiguousarray(reports[start : start + step]).view("<i2")
            lowest = entries.min(axis=1)
            if lowest.min() < -_LARGEST:
                entries = entries[lowest >= -_LARGEST]
            counts += entries.sum(axis=0, dtype=np.int64)
            accepted += len(entries)
        return Tally(counts, accepted, len(reports) - accepted)

    def supports(self, counts: Ints) -> Floats:
        """Sums of entries in units of a client."""
        return counts / self.steps

    def range_variance(self, length: ArrayLike, share: ArrayLike) -> Floats:
        """Variance times n: every entry has the same noise whatever the data. F48."""
        r, f = np.asarray(length, dtype=np.float64), np.asarray(share, dtype=np.float64)
        return r * self.noise.variance / self.steps**2 + 0 * f

    def error_bound(self, reports: int, miss: float) -> float:
        """How far an estimated share can be off, but for a probability of at most ``miss``."""
        # Theorem: with probability at least 1 - miss a mean of n draws is within
        #   2 s sqrt(L/n) + s L/n of zero, where L = log(2 / miss) and s is the scale.
        # Proof: log E exp(tX) = -log(1 - (cosh t - 1) / (cosh(1/s) - 1)). Since (cosh t - 1) / t^2
        #   grows with t this is at most -log(1 - s^2 t^2) <= s^2 t^2 / (1 - s t): sub-gamma of
        #   variance 2 s^2 and scale s.
        # Source: Boucheron, Lugosi, Massart 2013, section 2.4.
        if reports == 0:
            return math.inf
        room = math.log(2 / miss) / reports
        scale = float(self.noise.scale) / self.steps
        return scale * (2 * math.sqrt(room) + room)

    def certify(self) -> Certificate:
        """The largest loss of the exact law: two entries move by ``steps``, in rationals."""
        loss = Fraction(2 * self.steps) / self.noise.scale
        check = CertificateCheck(
            part=f"two of {self.categories} entries",
            epsilon=float(self.epsilon),
            claimed=self.guarantee.delta(float(self.epsilon)),
            exact=0.0 if loss <= self.epsilon else -math.expm1(float(self.epsilon - loss)),
            route="exact law of a report, in rationals",
        )
        return Certificate(
            mechanism="she", guarantee=self.guarantee, checks=(check,), drawn=self._looks()
        ).demand()

    def _looks(self) -> tuple[DrawCheck, ...]:
        """The own and another entry of reports, against the law of the noise."""
        many = max(1, _LOOKED_AT // self.categories)
        looks = []
        for own, entry in ((0, 0), (0, self.categories - 1), (self.categories - 1, 0)):
            here = self.steps if own == entry else 0
            value = np.full(many, own)

            def draw(rng: RandomSource, value: Ints = value, entry: int = entry) -> Ints:
                reports = self.randomize(value, rng=rng).view("<i2")
                return reports[:, entry].astype(np.int64)

            def cdf(k: Ints, here: int = here) -> Floats:
                inside = self.noise.cdf(k - here)
                return np.where(k >= _LARGEST, 1.0, np.where(k < -_LARGEST, 0.0, inside))

            name = "own entry" if own == entry else "another entry"
            looks.append(releases_of_many(name, draw, cdf))
        return tuple(looks)

    def __repr__(self) -> str:
        return f"summation_histogram_encoding({self.guarantee!r}, categories={self.categories})"


def summation_histogram_encoding(
    *, categories: int, epsilon: Number, steps: int | None = None
) -> SummationHistogramEncoding:
    """Create summation histogram encoding (SHE): Laplace noise on a one-hot vector.

    Args:
        categories: Number of categories, at least 2. Clients report codes from 0 to `categories -
            1`.
        epsilon: Privacy loss of one report, at least 1/340.
        steps: Number of levels of the noise for each unit. If None, a fine grid.

    Returns:
        A local randomizer with `randomize` for clients and `estimate` for the server.

    Raises:
        InvalidArgument: An argument is not valid.

    Privacy:
        Each report is epsilon-DP for the client in the local model: neighbors are any two values of
        the client.

    Examples:
        >>> from discreet import local
        >>> local.summation_histogram_encoding(categories=4, epsilon=1).guarantee.epsilon() <= 1
        True
    """
    # Theorem: each report is epsilon-DP in the local model; n Var = 8 / epsilon^2 on a fine grid.
    # Proof: two one-hot vectors of `steps` differ by 2 * steps in L1, which is epsilon scales of
    #   the noise; clamping is post-processing.
    # Source: Dwork et al. 2006; Wang, Blocki, Li, Jha 2017. F45, F48.
    # Needs: categories >= 2, epsilon >= 1/340; `steps` is best left out.
    eps = positive("epsilon", epsilon)
    # The own entry and the room for its noise on one side must fit two bytes.
    most = min(math.floor(_LARGEST / (1 + 2 * _ROOM / eps)), _FINEST)
    if most < 1:
        raise InvalidArgument(f"epsilon must be at least 1/340 for she, got {epsilon}: use oue.")
    steps = 1 << most.bit_length() - 1 if steps is None else count("steps", steps)
    if steps > most:
        raise InvalidArgument(f"steps must be at most {most} at this epsilon, got {steps}.")
    return SummationHistogramEncoding(
        categories=count("categories", categories, minimum=2), epsilon=eps, steps=steps
    )

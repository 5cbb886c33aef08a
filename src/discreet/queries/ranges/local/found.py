"""What a search for heavy hitters found, with its error."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist

from discreet.core.check import probability
from discreet.noise.law import Floats


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """Texts that stand out of the noise, most frequent first.

    The noise of all ``tried`` candidates of a level together passes the threshold of that level
    with probability 0.05. Shares are unbiased for a text chosen in advance; those of texts that
    were found *because* their estimate is high are a little too high, the more the nearer they
    are to the threshold. A text that shares cells with heavy ones under two of the public hashes
    may be found wrongly: more hashes or cells make that rarer.
    """

    items: tuple[bytes, ...]
    shares: Floats
    std: Floats
    reports: int
    tried: int

    @property
    def texts(self) -> tuple[str, ...]:
        """The items as text; bytes that are none are replaced."""
        return tuple(item.decode("utf-8", errors="replace") for item in self.items)

    def interval(self, level: float = 0.95) -> tuple[Floats, Floats]:
        """Bounds of each share that hold with about this probability (normal approximation)."""
        inside = float(probability("level", level, zero=False, one=False))
        z = NormalDist().inv_cdf((1 + inside) / 2)
        return self.shares - z * self.std, self.shares + z * self.std

    def __str__(self) -> str:
        lines = [f"{len(self.items)} texts found in {self.reports:,} reports"]
        for text, share, std in zip(self.texts, self.shares, self.std, strict=True):
            lines.append(f"  {text!r:24} {share:8.2%} ± {1.96 * std:.2%}")
        return "\n".join(lines)

    __repr__ = __str__

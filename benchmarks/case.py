"""A piece of work that is measured: its kind, its size, and who else does it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

Params: TypeAlias = Mapping[str, int | float]
NONE: Params = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One piece of work: a function of every file in ``benchmarks/peers`` that can do it.

    ``warm`` replaces parameters for the warm-up. ``peers`` maps each peer to the parameters that
    differ for it: a peer too slow for the full size does less, and its time is extrapolated along
    ``size``. ``once``: never repeated in one process, because answers may be cached.
    ``repetitions``: the work is repeated for its error, which is told for each statistic.
    """

    name: str
    kind: str
    params: Params
    peers: Mapping[str, Params]
    warm: Params = field(default_factory=dict)
    size: str | None = None
    once: bool = False
    repetitions: int = 0
    limit_s: float = 900.0  # a single run that takes longer is given up

    def params_for(self, peer: str) -> dict[str, int | float]:
        """The parameters as this peer gets them."""
        return {**self.params, **self.peers.get(peer, NONE)}

    def factor(self, peer: str) -> float:
        """By how much the peer's time is to be multiplied."""
        if self.size is None:
            return 1.0
        return self.params[self.size] / self.params_for(peer)[self.size]


MILLION = 1_000_000
LOOP: Params = {"n": 100_000}  # scalar loops are extrapolated from this many calls
WARM: Params = {"n": 1_000}

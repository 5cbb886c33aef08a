"""What every client of a collection does, and how a server counts the reports: all of it public.

A report is a row of bytes of fixed width, the same in memory, in a file and on a wire. A server
adds reports into a vector of 64-bit counts; vectors of disjoint sets of reports add up. So a
collection of any size is a sum, and the order and place of its parts do not matter.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from hashlib import sha256
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.accounting.guarantee import Guarantee
from discreet.core import canonical, events
from discreet.core.errors import OutOfDomain
from discreet.core.relation import Relation
from discreet.mechanisms.mechanism import Mechanism
from discreet.mechanisms.values import read
from discreet.noise.bits import Bits
from discreet.noise.law import Ints

Reports: TypeAlias = NDArray[np.uint8]
"""Reports as rows of bytes: shape (number of reports, width)."""

VERSION = 1
"""Version of the wire format; a reader refuses a version it does not know."""


@dataclass(frozen=True, slots=True)
class Tally:
    """What a server keeps of some reports: their sum, and how many were well formed.

    A report that no client can send is left out of the sum and counted in ``refused``, so that it
    moves nothing; a report that some client can send moves the sum as that client would.
    """

    counts: Ints
    accepted: int
    refused: int


class Randomiser(Mechanism):
    """The public description of one kind of report. Subclasses are frozen dataclasses."""

    kind: ClassVar[str]
    epsilon: Fraction

    @property
    def guarantee(self) -> Guarantee:
        """What one report costs its client."""
        return Guarantee(events.Pure(self.epsilon), Relation.LOCAL)

    def __repr__(self) -> str:
        return f"{self.kind}({self.guarantee!r}, reports of {self.width} bytes)"

    @property
    @abstractmethod
    def width(self) -> int:
        """Bytes of one report."""

    @property
    @abstractmethod
    def size(self) -> int:
        """Length of the vector of counts that a server keeps."""

    @abstractmethod
    def encode(self, value: ArrayLike, *, bits: Bits | None = None) -> Reports:
        """The report of each client: one row a value. This is all that leaves a client."""

    @abstractmethod
    def tally(self, reports: Reports) -> Tally:
        """Add up reports of the right width; anything may stand in them."""

    @abstractmethod
    def estimate(self, counts: Ints, reports: int) -> Any:
        """What the counts of that many accepted reports say, with its error (post-processing)."""

    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The public parameters besides epsilon: with kind and epsilon they rebuild this object."""

    def describe(self) -> dict[str, Any]:
        """Everything a client in any language needs to know, as JSON holds it."""
        epsilon = canonical.ratio(self.epsilon)
        return {"version": VERSION, "kind": self.kind, "epsilon": epsilon, **self.parameters()}

    @property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that differ between descriptions."""
        return sha256(canonical.text(self.describe()).encode()).hexdigest()[:16]


def codes(value: ArrayLike, categories: int) -> Ints:
    """Private categories as a flat array of codes 0 .. categories - 1."""
    values = read(value)
    if values.size == 0:
        return np.empty(0, dtype=np.int64)
    array = values.whole
    if array is None or not 0 <= array.min() <= array.max() < categories:
        raise OutOfDomain(f"value must hold whole numbers from 0 to {categories - 1}.")
    return array

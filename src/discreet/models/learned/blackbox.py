"""A function that nobody vouches for: asked once, and whatever it does, a number or nothing comes.

That a function fails, warns, is late or answers in another shape would tell about its input.
"""

from __future__ import annotations

import math
import threading
import time
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.core.check import positive
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.models.inputs import Bounds, Floats, bounds_of

Function: TypeAlias = Callable[[Any], Any]

MISSING = math.nan
"""What a function that failed has said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The public shape of an input, its domain, and what takes the place of what is no number."""

    positions: int
    attributes: int
    flat: bool
    """Whether the function takes ``(positions,)``: one attribute, without an axis of its own."""
    lower: Floats
    upper: Floats
    stand_in: Floats
    """For entries that are no finite numbers, one for each place: ``(positions, attributes)``."""

    @classmethod
    def of(cls, public: NDArray[Any], *, bounds: Bounds | None) -> Shape:
        """From the public inputs. Without bounds the domain is three times as wide as theirs."""
        flat = public.ndim == 2
        table = cube(public)
        attributes = table.shape[2]
        if bounds is None:
            low, high = table.min(axis=(0, 1)), table.max(axis=(0, 1))
            span = np.maximum(high - low, 1.0)
            lower, upper = low - span, high + span
        else:
            lower, upper = bounds_of("bounds", bounds, columns=attributes)
        stand_in = np.clip(np.median(table, axis=0), lower, upper)
        return cls(
            positions=table.shape[1],
            attributes=attributes,
            flat=flat,
            lower=lower,
            upper=upper,
            stand_in=stand_in,
        )

    @property
    def expected(self) -> tuple[int, ...]:
        """The shape of one input."""
        return (self.positions,) if self.flat else (self.positions, self.attributes)

    def read(self, private: object) -> Floats:
        """One input as doubles; only its shape, which is public, can be refused."""
        found = numbers(private)
        if found.shape != self.expected:
            raise OutOfDomain(f"The input must have the shape {self.expected}, got {found.shape}.")
        return found.reshape(self.positions, self.attributes)

    def read_one(self, private: object) -> Floats:
        """One position of an input: a number, or one for each attribute."""
        found = numbers(private)
        if found.shape not in ((self.attributes,), self.expected[1:]):
            raise OutOfDomain(f"A reading must have the shape {self.expected[1:]}.")
        return found.reshape(self.attributes)

    def clean(self, rows: Floats) -> Floats:
        """Finite numbers of the domain. Every entry by itself, so neighbours stay neighbours."""
        rows = np.where(np.isfinite(rows), rows, self.stand_in)
        return np.clip(rows, self.lower, self.upper)

    def given(self, rows: Floats) -> Floats:
        """A copy in the shape that the function takes."""
        return rows.reshape(self.expected).copy()


def cube(inputs: NDArray[Any]) -> Floats:
    """Inputs as ``(how many, positions, attributes)``."""
    table = np.asarray(inputs, dtype=np.float64)
    return table[:, :, None] if table.ndim == 2 else table


def numbers(private: object) -> Floats:
    """Doubles of the same shape; what is no number becomes NaN, entry by entry."""
    with suppress(Exception):  # which entry it was, and why, would tell about it
        return np.asarray(private, dtype=np.float64)
    try:
        entries = np.asarray(private, dtype=object)
    except Exception:  # noqa: BLE001
        raise OutOfDomain("The input must be a rectangular array.") from None
    return np.array([_number(entry) for entry in entries.ravel()]).reshape(entries.shape)


def _number(entry: object) -> float:
    try:
        return float(np.asarray(entry, dtype=np.float64).reshape(()))
    except Exception:  # noqa: BLE001
        return MISSING


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BlackBox:
    """A callable or a fitted regressor, asked so that nothing but one number can come out."""

    function: Function
    shape: Shape
    regressor: bool
    seconds: float | None = None
    """If given, every answer takes just this long, and a later one is not waited for; a function
    that lets no other thread run (one long operation in C) holds up the answer all the same."""

    @classmethod
    def of(cls, function: object, *, shape: Shape, seconds: float | None) -> BlackBox:
        """A callable as it is; of anything else its ``predict``."""
        late = None if seconds is None else float(positive("seconds", seconds))
        predict = getattr(function, "predict", None)
        if callable(predict):
            return cls(function=predict, shape=shape, regressor=True, seconds=late)
        if not callable(function):
            raise InvalidArgument(
                f"function must be callable or have predict(), got {type(function).__name__}."
            )
        return cls(function=function, shape=shape, regressor=False, seconds=late)

    def ask(self, rows: Floats) -> float:
        """What the function says about one clean input; NaN where it says no number."""
        given = self.shape.given(rows)
        if self.regressor:
            given = given.reshape(1, -1)
        return self._ask(given) if self.seconds is None else self._in_time(given, self.seconds)

    def _ask(self, given: Floats) -> float:
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                answer = np.asarray(self.function(given))
                if answer.size != 1 or answer.dtype.kind not in "biufO":
                    return MISSING
                return float(answer.reshape(()).item())
        except BaseException:  # noqa: BLE001 - also sys.exit and an interrupt: that it fails tells
            return MISSING

    def _in_time(self, given: Floats, seconds: float) -> float:
        """Wait for the same time, whatever a function does that lets other threads run."""
        end = time.monotonic() + seconds
        said: list[float] = []
        asked = threading.Thread(target=lambda: said.append(self._ask(given)), daemon=True)
        asked.start()
        while (left := end - time.monotonic()) > 0:
            time.sleep(left)
        return said[0] if said else MISSING

    def ask_public(self, table: Floats) -> Floats:
        """What the function says about public inputs."""
        if self.regressor:
            try:
                found = np.asarray(self.function(table.reshape(len(table), -1)), dtype=np.float64)
            except Exception:  # noqa: BLE001 - one by one then
                found = np.empty(0)
            if found.size == len(table):
                return found.reshape(len(table))
        return np.array([self._ask(self._given(rows)) for rows in table])

    def _given(self, rows: Floats) -> Floats:
        given = self.shape.given(rows)
        return given.reshape(1, -1) if self.regressor else given

"""Which oracle a level should use: the one of least error among those whose reports fit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TypeAlias

from discreet.core.check import count, listed, one_of
from discreet.core.errors import InvalidArgument
from discreet.mechanisms.local.hashing import hadamard_response, olh
from discreet.mechanisms.local.oracle import Oracle
from discreet.mechanisms.local.response import grr
from discreet.mechanisms.local.subset import subset_selection
from discreet.mechanisms.local.unary import oue

LONGEST = 1 << 13
"""Bits of the longest report unless more are allowed: one kibibyte."""
ALIKE = 1.01
"""Variances within one percent count as equal: then the shorter report wins."""

Oracles: TypeAlias = str | Sequence[str] | None
"""One name, several to choose from, or None for all."""

FACTORIES: dict[str, Callable[..., Oracle]] = {
    "grr": grr,
    "olh": olh,
    "subset_selection": subset_selection,
    "oue": oue,
    "hadamard_response": hadamard_response,
}


def best_oracle(
    categories: int, *, epsilon: Fraction, oracle: Oracles = None, report_bits: int | None = None
) -> Oracle:
    """The oracle of least contrast variance, which is all that a level adds to a range. F49."""
    names = (oracle,) if isinstance(oracle, str) else tuple(FACTORIES) if oracle is None else oracle
    for name in listed("oracle", names) or (None,):
        one_of("oracle", name, FACTORIES)
    if report_bits is not None:
        count("report_bits", report_bits)
    made = [FACTORIES[name](categories=categories, epsilon=epsilon) for name in names]
    # A named oracle is taken as it is; only an open choice has a default length.
    room = LONGEST if report_bits is None and oracle is None else report_bits
    fitting = [one for one in made if room is None or 8 * one.width <= room]
    if not fitting:
        shortest = min(8 * one.width for one in made)
        raise InvalidArgument(
            f"report_bits must be at least {shortest} for {categories} blocks, got {room}."
        )
    least = min(one.contrast_variance() for one in fitting)
    close = [one for one in fitting if one.contrast_variance() <= least * ALIKE]
    return min(close, key=lambda one: one.width)

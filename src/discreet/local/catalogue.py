"""Every kind of report there is, and the way from a description back to its randomiser."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from discreet.mechanisms.local import catalogue
from discreet.mechanisms.local.randomiser import Randomiser

KINDS: dict[str, str] = {
    **catalogue.KINDS,
    "ranges.tree": "discreet.queries.ranges.local.tree:described",
    "ranges.haar": "discreet.queries.ranges.local.haar:described",
    "ranges.partition": "discreet.queries.ranges.local.adaptive:described",
    "grid": "discreet.queries.ranges.local.grid:described",
    "heavy_hitters": "discreet.queries.ranges.local.heavy:described",
}
"""The function that makes each kind from ``epsilon`` and its parameters."""


def from_description(description: Mapping[str, Any] | str) -> Randomiser:
    """The randomiser that `Randomiser.describe` described, from its dictionary or its JSON.

    Unknown versions, kinds and fields are refused: a client that guesses could be private to
    another degree than it says.
    """
    return catalogue.rebuild(description, kinds=KINDS)

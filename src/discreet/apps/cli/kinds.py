"""What `discreet local describe` can set up, by the names that people know."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from discreet.core.errors import InvalidArgument

if TYPE_CHECKING:
    from discreet.mechanisms.local.randomiser import Randomiser

# Kind: the function of `discreet.local` that makes it, and what it is told besides epsilon.
_CATEGORIES, _BOUNDS = ("categories",), ("lower", "upper")
KINDS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    "grr": ("grr", _CATEGORIES),
    "sue": ("sue", _CATEGORIES),
    "oue": ("oue", _CATEGORIES),
    "the": ("the", _CATEGORIES),
    "she": ("she", _CATEGORIES),
    "olh": ("olh", _CATEGORIES),
    "hadamard": ("hadamard_response", _CATEGORIES),
    "subset": ("subset_selection", _CATEGORIES),
    "mean": ("best_mean", _BOUNDS),
    "distribution": ("square_wave", (*_BOUNDS, "cells")),
    "ranges": ("plan_local", _BOUNDS),
    "words": ("heavy_hitters", ("length",)),
}
_CLIENTS = 1_000_000  # a plan of ranges is the same for any number


def make(kind: str, *, epsilon: float, given: Mapping[str, Any]) -> Randomiser:
    """The randomiser of this kind."""
    from discreet import local

    name, needed = KINDS[kind]
    if set(given) != set(needed):
        wanted = " and ".join(f"--{option}" for option in needed)
        raise InvalidArgument(f"--kind {kind} needs {wanted}, and nothing else besides --epsilon.")
    if kind == "ranges":
        return _ranges(epsilon, **given)
    made: Randomiser = getattr(local, name)(epsilon=epsilon, **given)
    return made


def _ranges(epsilon: float, *, lower: float, upper: float) -> Randomiser:
    """The best structure for all ranges of whole numbers."""
    from discreet import local
    from discreet.queries.ranges.workload import all_ranges

    if not (lower.is_integer() and upper.is_integer() and lower < upper):
        raise InvalidArgument("--kind ranges needs whole numbers, --lower below --upper.")
    domain = local.integers(lower=int(lower), upper=int(upper))
    return local.plan_local(domain, all_ranges(), epsilon=epsilon, clients=_CLIENTS).best

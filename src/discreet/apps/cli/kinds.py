"""What `discreet local describe` can set up, by the names that people know."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from discreet.core.errors import InvalidArgument

if TYPE_CHECKING:
    from discreet.mechanisms.local.randomiser import Randomiser

# Kind: the module and the function that makes it, and what it must be told besides epsilon.
_CATEGORIES, _BOUNDS = ("categories",), ("lower", "upper")
KINDS: Mapping[str, tuple[str, str, tuple[str, ...]]] = {
    "grr": ("response", "grr", _CATEGORIES),
    "sue": ("unary", "sue", _CATEGORIES),
    "oue": ("unary", "oue", _CATEGORIES),
    "the": ("unary", "the", _CATEGORIES),
    "she": ("histogram", "she", _CATEGORIES),
    "olh": ("hashing", "olh", _CATEGORIES),
    "hadamard": ("hashing", "hadamard_response", _CATEGORIES),
    "subset": ("subset", "subset_selection", _CATEGORIES),
    "mean": ("best", "best_mean", _BOUNDS),
}


def make(kind: str, *, epsilon: float, given: Mapping[str, Any]) -> Randomiser:
    """The randomiser of this kind."""
    module, name, needed = KINDS[kind]
    if set(given) != set(needed):
        wanted = " and ".join(f"--{option}" for option in needed)
        raise InvalidArgument(f"--kind {kind} needs {wanted}, and nothing else besides --epsilon.")
    factory = getattr(importlib.import_module(f"discreet.mechanisms.local.{module}"), name)
    made: Randomiser = factory(epsilon=epsilon, **given)
    return made

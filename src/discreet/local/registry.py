"""Every kind of report there is, and the way from a description back to its randomiser."""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from fractions import Fraction
from importlib import import_module
from typing import Any

from discreet.core.canonical_json import read_ratio
from discreet.core.errors import InvalidArgument, PrivacyError
from discreet.local.randomizer import VERSION, Randomiser

# ── Catalogue ────────────────────────────────────────────────────────────────────────────────────
# From a public description back to the randomiser it describes.
#
# Each kind names the function that makes it: keyword arguments are ``epsilon`` and what
# `Randomiser.parameters` returned. It is imported when a description asks for it.


_HERE = "discreet.mechanisms.local."
KINDS: dict[str, str] = {
    "grr": _HERE + "response:grr",
    "sue": _HERE + "unary:sue",
    "oue": _HERE + "unary:oue",
    "the": _HERE + "unary:the",
    "she": _HERE + "histogram:she",
    "olh": _HERE + "hashing:olh",
    "subset_selection": _HERE + "subset:subset_selection",
    "rappor": _HERE + "longitudinal:rappor",
    "l_osue": _HERE + "longitudinal:l_osue",
    "l_olh": _HERE + "memoised_hashing:l_olh",
    "duchi": _HERE + "piecewise:duchi",
    "piecewise": _HERE + "piecewise:piecewise",
    "balanced": _HERE + "balanced:balanced",
    "hybrid": _HERE + "hybrid:hybrid",
    "local_laplace": _HERE + "laplace:local_laplace",
    "several": _HERE + "several:described",
    "square_wave": _HERE + "wave:square_wave",
}
"""The randomisers of this room, by kind."""


def rebuild(
    description: Mapping[str, Any] | str, *, kinds: Mapping[str, str] = KINDS
) -> Randomiser:
    """The randomiser that describes itself exactly like this; anything else is refused."""
    given = _object(description)
    version, kind, epsilon = (given.pop(name, None) for name in ("version", "kind", "epsilon"))
    if type(version) is not int or version != VERSION:
        raise InvalidArgument(f"version must be {VERSION}, got {version!r}: update this program.")
    if not isinstance(kind, str) or kind not in kinds:
        raise InvalidArgument(f"kind must be one of {', '.join(sorted(kinds))}, got {kind!r}.")
    made = _make(kind, kinds[kind], read_ratio("epsilon", epsilon), given)
    described = json.loads(json.dumps(made.describe()))
    if described != {"version": version, "kind": kind, "epsilon": epsilon, **given}:
        raise InvalidArgument(
            f"The description is not as {kind} writes it: compare with {json.dumps(described)}."
        )
    return made


def _make(kind: str, place: str, epsilon: Fraction, given: dict[str, Any]) -> Randomiser:
    module, _, name = place.partition(":")
    factory = getattr(import_module(module), name)
    known = inspect.signature(factory).parameters
    unknown = sorted(given.keys() - known)
    if unknown:
        raise InvalidArgument(f"{kind} has no field {', '.join(map(repr, unknown))}.")
    try:
        made: Randomiser = factory(epsilon=epsilon, **given)
    except PrivacyError:
        raise
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        raise InvalidArgument(
            f"The fields of {kind} are missing or of the wrong kind ({type(error).__name__})."
        ) from None
    return made


def _object(description: Mapping[str, Any] | str) -> dict[str, Any]:
    """A plain copy, as JSON holds it; names in order, as JSON gives their order no meaning."""
    try:
        found = json.loads(description) if isinstance(description, str) else dict(description)
        found = json.loads(json.dumps(found, sort_keys=True))
    except (TypeError, ValueError, RecursionError):
        raise InvalidArgument("description must be a JSON object.") from None
    if not isinstance(found, dict):
        raise InvalidArgument("description must be a JSON object.")
    return found


# ── Catalogue ────────────────────────────────────────────────────────────────────────────────────
# From a public description back to the randomiser it describes.
#
# Each kind names the function that makes it: keyword arguments are ``epsilon`` and what
# `Randomiser.parameters` returned. It is imported when a description asks for it.


KINDS_catalogue: dict[str, str] = {
    **KINDS,
    "ranges.tree": "discreet.local.ranges.hierarchical:described",
    "ranges.haar": "discreet.local.ranges.haar:described",
    "ranges.partition": "discreet.local.ranges.adaptive:described",
    "grid": "discreet.local.ranges.hybrid_grid:described",
    "heavy_hitters": "discreet.local._heavy_hitters:described",
}
"""The function that makes each kind from ``epsilon`` and its parameters."""


def from_description(description: Mapping[str, Any] | str) -> Randomiser:
    """The randomiser that `Randomiser.describe` described, from its dictionary or its JSON.

    Unknown versions, kinds and fields are refused: a client that guesses could be private to
    another degree than it says.
    """
    return rebuild(description, kinds=KINDS_catalogue)

"""Every kind of randomizer, and the way from a public description back to its randomizer.

Each kind names the function that makes it. Keyword arguments are ``epsilon`` and what
`LocalRandomizer.parameters` returned. The function is imported when a description asks for it.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from fractions import Fraction
from importlib import import_module
from typing import Any

from discreet.core.canonical_json import read_ratio
from discreet.core.errors import InvalidArgument, PrivacyError
from discreet.local.randomizer import VERSION, LocalRandomizer

_FIELDS = {"permanent": "permanent_epsilon"}
"""Fields of a description whose argument has another name."""
RANDOMIZER_KINDS: dict[str, str] = {
    "grr": "discreet.local.oracles.randomized_response:grr",
    "sue": "discreet.local.oracles.unary_encoding:sue",
    "oue": "discreet.local.oracles.unary_encoding:oue",
    "the": "discreet.local.oracles.unary_encoding:threshold_histogram_encoding",
    "she": "discreet.local.oracles.histogram_encoding:summation_histogram_encoding",
    "olh": "discreet.local.oracles.local_hashing:olh",
    "subset_selection": "discreet.local.oracles.subset_selection:subset_selection",
    "rappor": "discreet.local.longitudinal:rappor",
    "l_osue": "discreet.local.longitudinal:l_osue",
    "l_olh": "discreet.local.longitudinal:longitudinal_olh",
    "duchi": "discreet.local.means.piecewise:duchi",
    "piecewise": "discreet.local.means.piecewise:piecewise_mean",
    "balanced": "discreet.local.means.balanced_piecewise:balanced_piecewise",
    "hybrid": "discreet.local.means.hybrid:hybrid_mean",
    "local_laplace": "discreet.local.means.local_laplace:local_laplace",
    "several": "discreet.local.means.multidimensional:described",
    "square_wave": "discreet.local.distribution:square_wave",
}
"""The function that makes each randomizer of one value from ``epsilon`` and its parameters."""
KINDS: dict[str, str] = {
    **RANDOMIZER_KINDS,
    "ranges.tree": "discreet.local.ranges.hierarchical:described",
    "ranges.haar": "discreet.local.ranges.haar:described",
    "ranges.partition": "discreet.local.ranges.adaptive:described",
    "grid": "discreet.local.ranges.hybrid_grid:described",
    "heavy_hitters": "discreet.local._heavy_hitters:described",
}
"""All kinds of reports: those of several values are made of randomizers of one value."""


def rebuild(
    description: Mapping[str, Any] | str, *, kinds: Mapping[str, str] = RANDOMIZER_KINDS
) -> LocalRandomizer:
    """The randomizer that describes itself exactly like this; anything else is refused."""
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


def _make(kind: str, place: str, epsilon: Fraction, given: dict[str, Any]) -> LocalRandomizer:
    module, _, name = place.partition(":")
    factory = getattr(import_module(module), name)
    known = inspect.signature(factory).parameters
    given = {_FIELDS.get(name, name): value for name, value in given.items()}
    unknown = sorted(given.keys() - known)
    if unknown:
        raise InvalidArgument(f"{kind} has no field {', '.join(map(repr, unknown))}.")
    try:
        made: LocalRandomizer = factory(epsilon=epsilon, **given)
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


def randomizer_from_json(description: Mapping[str, Any] | str) -> LocalRandomizer:
    """Create the randomizer of a description.

    Unknown versions, kinds and fields are refused: a client that guesses could have another privacy
    loss than it states.

    Args:
        description: Dictionary of `LocalRandomizer.describe`, or its JSON text.

    Returns:
        The randomizer.

    Raises:
        InvalidArgument: The description is not of a known randomizer.

    Privacy:
        The randomizer has the guarantee of the described one.

    Examples:
        >>> from discreet import local
        >>> described = local.grr(categories=4, epsilon=1).describe()
        >>> local.randomizer_from_json(described).categories
        4
    """
    return rebuild(description, kinds=KINDS)

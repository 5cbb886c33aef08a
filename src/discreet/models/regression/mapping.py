"""From what is declared to the map of rows, by a private scaling if one is asked for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np

from discreet.core.check import positive
from discreet.core.errors import InvalidArgument
from discreet.models.inputs import LARGEST, Bounds, Floats, bounds_of
from discreet.models.regression.moments import MomentsPlan
from discreet.models.regression.rows import Mapping, RowMap, box_radius
from discreet.models.regression.scaling import Flags, Scaling, private_scaling
from discreet.models.regression.tables import Rows
from discreet.noise.bits import Bits

HowScaled: TypeAlias = Literal["bounds", "private"] | Scaling

# Radius of the ball, in roots of the number of features (K35).
RADIUS = 0.75
# Targets are clipped so many deviations from their centre, features twice as many.
_CLIP = 3.0
# A box around known or found centres reaches so many deviations.
_BOX = 2.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Declared:
    """Public bounds of features (infinite where there are none) and of targets."""

    lower: Floats
    upper: Floats
    target_lower: Floats
    target_upper: Floats
    scaling: HowScaled
    mapping: Mapping
    radius: float | None


def declare(
    *,
    bounds: Bounds,
    target_bounds: Bounds,
    scaling: HowScaled,
    mapping: Mapping,
    radius: float | None,
    features: int,
    outputs: int,
    names: Sequence[str] | None,
) -> Declared:
    """Check what is declared; nothing is read."""
    if mapping not in ("ball", "row", "box", "weighted"):
        raise InvalidArgument(
            f"mapping must be 'ball', 'weighted', 'box' or 'row', got {mapping!r}."
        )
    if not isinstance(scaling, Scaling) and scaling not in ("bounds", "private"):
        raise InvalidArgument(f"scaling must be 'bounds', 'private' or a Scaling, got {scaling!r}.")
    if target_bounds is None:
        raise InvalidArgument("target_bounds must be declared: (lower, upper) of the target.")
    target = bounds_of("target_bounds", target_bounds, columns=outputs)
    if bounds is not None:
        lower, upper = bounds_of("bounds", bounds, columns=features, names=names)
    elif isinstance(scaling, Scaling):
        lower, upper = np.full(features, -np.inf), np.full(features, np.inf)
    else:
        raise InvalidArgument(
            "bounds must be declared: (lower, upper) of each feature. Only with a declared scaling "
            "may a feature be unbounded."
        )
    if isinstance(scaling, Scaling):
        scaling.arrays(features)
    if radius is not None and not 1 / LARGEST < positive("radius", radius) < LARGEST:
        raise InvalidArgument(f"radius must be within {1 / LARGEST:g} and {LARGEST:g}.")
    return Declared(
        lower=lower,
        upper=upper,
        target_lower=target[0],
        target_upper=target[1],
        scaling=scaling,
        mapping=mapping,
        radius=radius,
    )


def row_map(rows: Rows, plan: MomentsPlan, *, declared: Declared, bits: Bits) -> RowMap:
    """The map of rows: by declared constants alone, or by a private scaling that the plan pays."""
    d = rows.features
    lower, upper = declared.lower, declared.upper
    target = declared.target_lower, declared.target_upper
    if isinstance(declared.scaling, Scaling):
        centre, scale = declared.scaling.arrays(d)
    elif declared.scaling == "private":
        found = private_scaling(
            rows,
            lower=np.concatenate((lower, target[0])),
            upper=np.concatenate((upper, target[1])),
            noises=plan.scaling,
            bits=bits,
        )
        centre, scale = found.centre[:d], found.scale[:d]
        lower, upper = _around(lower, upper, centre, 2 * _CLIP * scale, np.ones(d, dtype=bool))
        target = _around(*target, found.centre[d:], _CLIP * found.scale[d:], found.seen[d:])
    else:
        centre, scale = (lower + upper) / 2, (upper - lower) / 2
    if declared.mapping == "box":
        if declared.scaling != "bounds":
            # Two-sided clipping to tight bounds (K25): noise is then that of the bounds.
            clip = _BOX if declared.radius is None else float(declared.radius)
            lower, upper = _around(lower, upper, centre, clip * scale, np.ones(d, dtype=bool))
        reach = box_radius(lower, upper, centre, scale)
    else:
        reach = math.sqrt(d) * (RADIUS if declared.radius is None else float(declared.radius))
    return RowMap(
        lattice=plan.lattice,
        mapping=declared.mapping,
        lower=lower,
        upper=upper,
        centre=centre,
        scale=scale,
        radius=reach,
        target_centre=(target[0] + target[1]) / 2,
        target_half=(target[1] - target[0]) / 2,
    )


def _around(
    lower: Floats, upper: Floats, centre: Floats, reach: Floats, seen: Flags
) -> tuple[Floats, Floats]:
    """The bounds, drawn in to ``reach`` from the centres of columns that were seen."""
    low = np.where(seen, np.maximum(lower, centre - reach), lower)
    high = np.where(seen, np.minimum(upper, centre + reach), upper)
    return low, high

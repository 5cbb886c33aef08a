"""Labels of classifiers: declared or public, as places in the list of classes, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.utils.multiclass import type_of_target

from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.models.inputs import Floats

Classes: TypeAlias = Sequence[Any] | NDArray[Any] | str | None
"""The labels that can occur, or ``"public"``: those found in y are no secret."""


def declared(classes: Classes, *, found: NDArray[Any] | None = None) -> NDArray[Any]:
    """The labels that can occur; ``found`` are those of an earlier look at public labels."""
    if isinstance(classes, str) or classes is None:
        if classes == "public" and found is not None:
            return found
        raise InvalidArgument(
            "classes must be declared: the labels that can occur, or 'public' if the labels "
            "found in y are no secret."
        )
    try:
        named: NDArray[Any] = np.unique(np.asarray(classes))
    except (TypeError, ValueError):
        raise InvalidArgument("classes must be all numbers or all text.") from None
    if len(named) < 2:
        raise InvalidArgument(
            f"classes must name at least two labels, got {len(named)} class: with a single "
            "class there is nothing to learn."
        )
    return named


def classes_of(classes: Classes, y: NDArray[Any]) -> NDArray[Any]:
    """The labels that can occur; y is looked at only where they are public."""
    if not isinstance(classes, str) or classes != "public":
        return declared(classes)
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise OutOfDomain("y contains NaN or infinity: drop or replace missing labels.")
    if type_of_target(y) not in ("binary", "multiclass"):
        raise OutOfDomain("Unknown label type: y must hold labels, all numbers or all text.")
    found: NDArray[Any] = np.unique(y)
    if len(found) < 2:
        raise InvalidArgument("y holds one class only: there is nothing to learn.")
    return found


def places(y: NDArray[Any], classes: NDArray[Any]) -> Floats:
    """The place of each label among the classes."""
    found = np.full(len(y), -1.0)
    for place, label in enumerate(classes):
        found[y == label] = place
    if (found < 0).any():
        raise OutOfDomain(
            "y holds labels that are not among the declared classes: declare them, or map "
            "them to one that is."
        )
    return found


def probabilities(margins: Floats) -> Floats:
    """Of the classes, one row for each item; margins of one number belong to two classes."""
    if margins.ndim == 1:
        ones: Floats = expit(margins)
        return np.column_stack([1 - ones, ones])
    return np.asarray(softmax(margins, axis=1), dtype=np.float64)


def likeliest(margins: Floats, classes: NDArray[Any]) -> NDArray[Any]:
    """The label with the largest margin."""
    chosen = margins > 0 if margins.ndim == 1 else margins.argmax(axis=1)
    labels: NDArray[Any] = classes[chosen.astype(np.intp)]
    return labels

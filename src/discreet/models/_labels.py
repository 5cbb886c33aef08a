"""Declared or public labels, as places in the list of classes, and back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.utils.multiclass import type_of_target

from discreet.boundary.owners import owner_key
from discreet.boundary.values import listed
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.models._model_inputs import Floats

Classes: TypeAlias = Sequence[Any] | NDArray[Any] | str | None
"""The labels that can occur, or ``"public"``: those found in y are no secret."""


def declared_classes(classes: Classes, *, found: NDArray[Any] | None = None) -> NDArray[Any]:
    """The labels that can occur; ``found`` are those of an earlier look at public labels."""
    if isinstance(classes, str) or classes is None:
        if classes == "public" and found is not None:
            return found
        raise InvalidArgument(
            "classes must be declared: the labels that can occur, or 'public' if the labels "
            "found in y are no secret."
        )
    named = _told_apart(listed(classes))
    if len(named) < 2:
        raise InvalidArgument(
            f"classes must name at least two labels, got {len(named)} class: with a single "
            "class there is nothing to learn."
        )
    return named


def _told_apart(labels: list[object]) -> NDArray[Any]:
    """Distinct labels in order, if an array can hold them as what they are."""
    keys = {owner_key(label) for label in labels}
    try:
        named: NDArray[Any] = np.unique(np.asarray(labels))
    except (TypeError, ValueError):
        named = np.empty(0)
    # An array makes doubles of large numbers, texts of numbers, and cuts zero bytes off texts.
    if None in keys or {owner_key(label) for label in named} != keys:
        raise InvalidArgument(
            "classes must be all numbers or all text, and remain distinct in an array: no missing "
            "label, no whole number beyond 2**53 among doubles, no text that ends in a zero byte."
        )
    return named


def classes_of(classes: Classes, y: NDArray[Any]) -> NDArray[Any]:
    """The labels that can occur; y is looked at only where they are public."""
    if not isinstance(classes, str) or classes != "public":
        return declared_classes(classes)
    if y.dtype.kind == "O":
        distinct = {key: label for label in y if (key := owner_key(label)) is not None}
        found = _told_apart(list(distinct.values()))
    else:
        found = np.unique(y[~np.isnan(y)] if y.dtype.kind == "f" else y)
    if len(found) and type_of_target(found) not in ("binary", "multiclass"):
        raise OutOfDomain("Unknown label type: y must hold labels, all numbers or all text.")
    if len(found) < 2:
        raise InvalidArgument("y holds one class only: there is nothing to learn.")
    return found


def class_places(y: NDArray[Any], classes: NDArray[Any]) -> Floats:
    """The place of each label among the classes; NaN for what is none of them."""
    # Theorem: each label is compared by its exact value, whatever the other labels are.
    found = np.full(len(y), np.nan)
    if y.dtype.kind == "O":
        places = {owner_key(label): float(place) for place, label in enumerate(classes)}
        known: dict[int | str, float] = {}  # by plain labels: a key is made once for each
        for row, label in enumerate(y):
            if type(label) is not int and type(label) is not str:
                found[row] = places.get(owner_key(label), np.nan)
                continue
            if label not in known:
                known[label] = places.get(owner_key(label), np.nan)
            found[row] = known[label]
        return found
    for place, label in enumerate(classes):
        held = _held(label, y.dtype)
        if held is not None:
            found[y == held] = place
    return found


def _held(label: Any, dtype: np.dtype[Any]) -> Any:
    """A label in the type of an array, if that type has it: a comparison would round it."""
    with np.errstate(all="ignore"):
        try:
            held: Any = np.asarray(label).astype(dtype)[()]
        except (TypeError, ValueError, OverflowError):
            return None
    return held if owner_key(held) == owner_key(label) else None


def check_label_type(y: NDArray[Any], classes: NDArray[Any]) -> None:
    """Refuse an array of a type that holds none of the classes: numbers for texts, or texts."""
    text = y.dtype.kind == "U"
    numbers = np.abs(classes.astype(np.float64)) if classes.dtype.kind in "iuf" else np.zeros(1)
    if y.dtype.kind == "f" and numbers.max() >= 2**53:
        raise InvalidArgument(
            "y holds doubles, which cannot tell the declared classes beyond 2**53 apart, and which "
            "a single missing label makes of whole numbers: use Int64 or a list."
        )
    if y.dtype.kind != "O" and text != isinstance(classes[0], str):
        raise InvalidArgument(
            f"y holds {'text' if text else 'numbers'}, the declared classes are none: declare the "
            "classes as they stand in y."
        )


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

"""The public description of a collection: how clients randomize, and what the codes mean."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.core import _validate as check
from discreet.core import canonical_json as canonical
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.local._heavy_hitters import HeavyHitters
from discreet.local.randomizer import LocalRandomizer
from discreet.local.registry import randomizer_from_json
from discreet.ranges.domain import DateDomain, OrdinalDomain

_LABELS = "labels"


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectionSpec:
    """Describe a collection: the local randomizer and the names of its categories.

    All of it is public.

    Args:
        randomizer: Local randomizer that clients use.
        labels: Name of each category, in the order of the codes. Empty if there are none.

    Raises:
        InvalidArgument: The labels are not different texts, one for each category.

    Examples:
        >>> from discreet import local
        >>> randomizer = local.grr(categories=2, epsilon=1)
        >>> collection = local.CollectionSpec(randomizer=randomizer, labels=("no", "yes"))
        >>> collection.labels
        ('no', 'yes')
    """

    randomizer: LocalRandomizer
    labels: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.randomizer, LocalRandomizer):
            raise InvalidArgument(
                "randomizer must be one, such as discreet.local.oue(categories=4, epsilon=1), got "
                f"{type(self.randomizer).__name__}."
            )
        if not check.as_tuple("labels", self.labels):
            return
        many = getattr(self.randomizer, "categories", None)
        if many is None:
            raise InvalidArgument(f"labels are for categories; {self.randomizer.kind} has none.")
        if not all(isinstance(label, str) for label in self.labels):
            raise InvalidArgument("labels must be texts.")
        if len(self.labels) != many or len(set(self.labels)) != many:
            raise InvalidArgument(f"labels must be {many} different texts, one for each category.")

    def describe(self) -> dict[str, Any]:
        """Return the collection as JSON-compatible data.

        Returns:
            A dictionary.

        Examples:
            >>> collection.describe()["kind"]
            'grr'
        """
        described = self.randomizer.describe()
        return {**described, _LABELS: list(self.labels)} if self.labels else described

    def to_json(self) -> str:
        """Return the collection as JSON text, always the same for the same collection.

        Returns:
            Text for `from_json`.

        Examples:
            >>> local.CollectionSpec.from_json(collection.to_json()).labels
            ('no', 'yes')
        """
        return canonical.text(self.describe())

    @staticmethod
    def from_json(text: str) -> CollectionSpec:
        """Read a collection from JSON text, written by `to_json` or by hand.

        Args:
            text: JSON text.

        Returns:
            The collection.

        Raises:
            InvalidArgument: The text is no collection.

        Examples:
            >>> local.CollectionSpec.from_json(collection.to_json()).randomizer.categories
            2
        """
        try:
            described = json.loads(text)
        except (ValueError, RecursionError):
            raise InvalidArgument("A collection must be one JSON object.") from None
        if not isinstance(described, dict):
            raise InvalidArgument("A collection must be one JSON object.")
        labels = described.pop(_LABELS, [])
        if not isinstance(labels, list):
            raise InvalidArgument("labels must be a list of texts.")
        return CollectionSpec(randomizer=randomizer_from_json(described), labels=tuple(labels))

    @property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits that differ between collections."""
        return sha256(self.to_json().encode()).hexdigest()[:16]

    @property
    def _textual(self) -> bool:
        domain = getattr(self.randomizer, "domain", None)
        return isinstance(self.randomizer, HeavyHitters) or isinstance(
            domain, DateDomain | OrdinalDomain
        )

    def parse(self, texts: Sequence[str], *, unknown: str | None = None) -> NDArray[Any]:
        """Translate private values from text into what `randomize` takes.

        Args:
            texts: Values as texts: labels if the collection has labels, else numbers, or the texts
                themselves where texts are collected.
            unknown: Label that stands for all values that are no label. If None, such values are
                refused.

        Returns:
            An array of codes, numbers or texts.

        Raises:
            InvalidArgument: `unknown` is no label.
            OutOfDomain: A value is no label, or no number. The error does not quote it.

        Examples:
            >>> collection.parse(["yes", "maybe"], unknown="no").tolist()
            [1, 0]
        """
        if not self.labels:
            return np.array(texts, dtype=np.str_) if self._textual else _numbers(texts)
        places = {label: place for place, label in enumerate(self.labels)}
        if unknown is not None and unknown not in places:
            raise InvalidArgument(f"unknown must be one of the labels, got {unknown!r}.")
        other = -1 if unknown is None else places[unknown]
        found = np.fromiter((places.get(text, other) for text in texts), np.int64, len(texts))
        if found.size and found.min() < 0:
            raise OutOfDomain(
                "Every value must be one of the collection's labels: name the one that stands for "
                "all others with unknown (--unknown)."
            )
        return found


def _numbers(texts: Sequence[str]) -> NDArray[Any]:
    for kind in (int, float):
        try:
            return np.array([kind(text) for text in texts], dtype=np.dtype(kind))
        except (ValueError, OverflowError):
            continue
    # Raised outside of the handler: the original would quote a value.
    raise OutOfDomain("Every value must be a number.")

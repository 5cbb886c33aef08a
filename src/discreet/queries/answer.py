"""An answer: keys, noisy integers and how to read them. Public, and complete as JSON."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from discreet.core import check
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.data.plan import Key
from discreet.data.schema import Label
from discreet.queries import reading
from discreet.queries.noisy import Noisy, law_content, read_law
from discreet.queries.reading import Reading
from discreet.queries.sampling import interval as population


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What was measured, with noise, for each public key."""

    title: str
    names: tuple[str, ...]
    keys: tuple[Key, ...]
    scale: Reading
    parts: tuple[Noisy, ...]
    independent: bool = False
    """Whether a unit gives at most one row to a group, so that rows are as independent as units."""

    def __post_init__(self) -> None:
        if any(len(key) != len(self.names) for key in self.keys):
            raise InvalidArgument("An answer needs a value for each name in each key.")
        reading.verify(self.scale, self.parts, keys=len(self.keys))

    @property
    def values(self) -> list[int] | list[float]:
        """The published numbers in the order of the keys."""
        return reading.values(self.scale, self.parts)

    @property
    def std(self) -> list[float] | list[None]:
        """The standard deviation of the noise of each, where it is known."""
        return reading.stds(self.scale, self.parts)

    def interval(self, level: float, *, sampling: bool = False) -> tuple[list[float], list[float]]:
        """Bounds that hold the answer without noise, each with probability at least ``level``.

        With ``sampling`` they hold what the answer estimates in the population.
        """
        if not self.keys:  # a discovery that found none
            return [], []
        if not sampling:
            return reading.interval(self.scale, self.parts, level)
        if not self.independent:
            raise Unsupported(
                "sampling=True needs independent rows, but a unit may have several in a group, and "
                "rows of one unit are alike: use rows_per_unit=1 or rows_per_unit_and_group=1."
            )
        inside = float(check.probability("level", level, zero=False, one=False))
        return population(self.scale, self.parts, inside)

    @property
    def has_interval(self) -> bool:
        """Whether there are bounds at all: a choice has none."""
        return all(part.noise is not None for part in self.parts)

    def content(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "title": self.title,
            "names": list(self.names),
            "keys": [[_label(label) for label in key] for key in self.keys],
            "scale": reading.content(self.scale),
            "independent": self.independent,
            "parts": [
                {
                    "name": part.name,
                    "noise": None if part.noise is None else law_content(part.noise),
                    "values": list(part.values),
                }
                for part in self.parts
            ],
        }

    @classmethod
    def read(cls, content: Mapping[str, Any]) -> Answer:
        """The inverse of ``content``."""
        return cls(
            title=content["title"],
            names=tuple(content["names"]),
            keys=tuple(tuple(_read_label(label) for label in key) for key in content["keys"]),
            scale=reading.read(content["scale"]),
            independent=content.get("independent", False) is True,
            parts=tuple(
                Noisy(
                    name=part["name"],
                    noise=None if part["noise"] is None else read_law(part["noise"]),
                    values=tuple(map(int, part["values"])),
                )
                for part in content["parts"]
            ),
        )


def _label(label: Label) -> object:
    """Dates are marked, all else is JSON already."""
    if isinstance(label, dt.datetime):
        return {"time": label.isoformat()}
    return {"date": label.isoformat()} if isinstance(label, dt.date) else label


def _read_label(content: Any) -> Label:
    if not isinstance(content, dict):
        label: Label = content
        return label
    readers: Mapping[str, Callable[[str], Label]] = {
        "time": dt.datetime.fromisoformat,
        "date": dt.date.fromisoformat,
    }
    ((kind, text),) = content.items()
    return readers[kind](text)

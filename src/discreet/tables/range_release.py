"""Releases that answer every range or rectangle of a table's columns, with their receipts."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from discreet.core.errors import InvalidArgument
from discreet.data.program import ExactResult
from discreet.ledger.account import Receipt
from discreet.noise.random_source import RandomSource
from discreet.query._release_plan import TableSpec
from discreet.ranges.grid.release import GridRelease
from discreet.ranges.grid.table_query import PlannedGrid
from discreet.ranges.release import RangeRelease
from discreet.ranges.table_query import ROWS, PlannedRanges, with_limits
from discreet.tables.release import (
    describe_epsilon,
    describe_protection,
    read_receipt,
    receipt_content,
)

_SECTION = "release"
# What a section of the JSON calls the fields.
_WORDS = {
    "title": "title",
    "question": "query_text",
    "mechanism": "mechanism",
    "protects": "privacy_statement",
}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ChargedRelease:
    """What a table adds to an artifact: the question in words, and the receipt."""

    title: str
    query_text: str
    mechanism: str
    privacy_statement: str
    receipt: Receipt

    def _with_section(self, text: str) -> str:
        words = {word: getattr(self, name) for word, name in _WORDS.items()}
        section = {**words, "receipt": receipt_content(self.receipt)}
        return json.dumps({**json.loads(text), _SECTION: section})


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ChargedRangeRelease(RangeRelease, ChargedRelease):
    """Noisy measurements of a column of a table: answers to all ranges, and the receipt.

    Its JSON is also that of a `RangeRelease`, with a section more.
    """

    def to_json(self) -> str:
        """The whole artifact as text; ``from_json`` reads it back, and so does `RangeRelease`."""
        return self._with_section(super().to_json())

    @classmethod
    def from_json(cls, text: str) -> ChargedRangeRelease:
        """The artifact of a text that a table has released."""
        held = RangeRelease.from_json(text)
        return cls(**_parts(held), **_read(text, held))

    def __str__(self) -> str:
        return _told(self, f"every range of {self.domain}", self.interval())

    __repr__ = __str__


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ChargedGridRelease(GridRelease, ChargedRelease):
    """Noisy measurements of several columns: answers to all rectangles, and the receipt.

    Its JSON is also that of a `GridRelease`, with a section more.
    """

    def to_json(self) -> str:
        """The whole artifact as text; ``from_json`` reads it back, and so does `GridRelease`."""
        return self._with_section(super().to_json())

    @classmethod
    def from_json(cls, text: str) -> ChargedGridRelease:
        """The artifact of a text that a table has released."""
        held = GridRelease.from_json(text)
        return cls(**_parts(held), **_read(text, held))

    def __str__(self) -> str:
        whole = self.interval(*[None] * len(self.grid.shape))
        return _told(self, f"every rectangle of {self.grid}", whole)

    __repr__ = __str__


AnyRangeRelease: TypeAlias = ChargedRangeRelease | ChargedGridRelease
AnyPlannedRanges: TypeAlias = PlannedRanges | PlannedGrid


def release_cells(
    planned: AnyPlannedRanges,
    table: ExactResult,
    *,
    setting: TableSpec,
    receipt: Receipt,
    rng: RandomSource,
) -> AnyRangeRelease:
    """Noise on the exact counts of the cells, by the best structure of the plan.

    Theorem: the artifact has the guarantee of the plan, for which the receipt was charged.
    Proof: `RangeDesign.guarantee`, `GridDesign.guarantee`; the counts are those of the plan that
        was planned (`plan_query`, `plan_grid_query`).
    Source: docs/theory/ranges.md, docs/theory/grids.md.
    Needs: ``table`` holds the integers of ``planned.counted``.
    """
    noises = dict.fromkeys(map(repr, planned.ranked.best.mechanisms))
    section: dict[str, Any] = {
        "title": planned.query.title,
        "query_text": planned.query.text,
        "mechanism": f"{planned.ranked.best.describe()}; groups: {'; '.join(noises)}",
        "privacy_statement": describe_protection(with_limits(setting, planned.query.limits)),
        "receipt": receipt,
    }
    counts = table.columns[ROWS]
    if isinstance(planned, PlannedGrid):
        # Groups are numbered with the last column running fastest, as arrays are.
        cells = counts.reshape(planned.ranked.grid.shape)
        return ChargedGridRelease(**_parts(planned.ranked.best.release(cells, rng=rng)), **section)
    return ChargedRangeRelease(**_parts(planned.ranked.best.release(counts, rng=rng)), **section)


def _parts(held: RangeRelease | GridRelease) -> dict[str, Any]:
    return {field.name: getattr(held, field.name) for field in fields(held)}


def _read(text: str, held: RangeRelease | GridRelease) -> dict[str, Any]:
    try:
        section = json.loads(text)[_SECTION]
        found = {name: section[word] for word, name in _WORDS.items()}
        receipt = read_receipt(section["receipt"])
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, InvalidArgument):
            raise
        raise InvalidArgument(
            "text must be ranges that a table has released; RangeRelease and GridRelease read "
            "those without a receipt."
        ) from None
    if receipt.guarantee.relation is not held.guarantee.relation:
        raise InvalidArgument("text states a receipt under another relation than its ranges.")
    return {**found, "receipt": receipt}


def _told(release: AnyRangeRelease, what: str, whole: tuple[float, float]) -> str:
    guarantee = release.guarantee
    return (
        f"{release.title} ({describe_epsilon(guarantee)}, {guarantee.relation.value})\n"
        f"  {what}, by {release.strategy.describe()}\n"
        f"  all of it: {release.total:,.6g}  (95% between {whole[0]:,.6g} and {whole[1]:,.6g})"
    )

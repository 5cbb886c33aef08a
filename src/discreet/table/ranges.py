"""Ranges through the one door: an artefact that answers every range, with its receipt."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from discreet.core.errors import InvalidArgument
from discreet.ledger.account import Receipt
from discreet.noise.bits import Bits
from discreet.queries.design import Setting
from discreet.queries.ranges.question import ROWS, PlannedRanges
from discreet.queries.ranges.release import RangeRelease
from discreet.table.charge import protection
from discreet.table.release import read_receipt, receipt_content, worth

if TYPE_CHECKING:
    from discreet.data.engine import Table

_SECTION = "release"


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ChargedRanges(RangeRelease):
    """Noisy measurements of a column of a table: answers to all ranges, and the receipt.

    Its JSON is also that of a `RangeRelease`, with a section more.
    """

    title: str
    question: str
    mechanism: str
    protects: str
    receipt: Receipt

    def to_json(self) -> str:
        """The whole artefact as text; ``from_json`` reads it back, and so does `RangeRelease`."""
        section = {
            "title": self.title,
            "question": self.question,
            "mechanism": self.mechanism,
            "protects": self.protects,
            "receipt": receipt_content(self.receipt),
        }
        return json.dumps({**json.loads(super().to_json()), _SECTION: section})

    @classmethod
    def from_json(cls, text: str) -> ChargedRanges:
        """The artefact of a text that a table has released."""
        held = RangeRelease.from_json(text)
        try:
            section = json.loads(text)[_SECTION]
            words = {name: section[name] for name in ("title", "question", "mechanism", "protects")}
            receipt = read_receipt(section["receipt"])
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            if isinstance(error, InvalidArgument):
                raise
            raise InvalidArgument(
                "text must be ranges that a table has released; RangeRelease.from_json reads "
                "those without a receipt."
            ) from None
        if receipt.guarantee.relation is not held.guarantee.relation:
            raise InvalidArgument("text states a receipt under another relation than its ranges.")
        parts = {field.name: getattr(held, field.name) for field in fields(held)}
        return cls(**parts, **words, receipt=receipt)

    def __str__(self) -> str:
        low, high = self.interval()
        return (
            f"{self.title} ({worth(self.guarantee)}, {self.guarantee.relation.value})\n"
            f"  every range of {self.domain}, by {self.strategy.describe()}\n"
            f"  all of it: {self.total:,.6g}  (95% between {low:,.6g} and {high:,.6g})"
        )

    __repr__ = __str__


def charged(
    planned: PlannedRanges, table: Table, *, setting: Setting, receipt: Receipt, bits: Bits
) -> ChargedRanges:
    """Noise on the exact counts of the cells, by the best structure of the plan.

    Theorem: the artefact has the guarantee of the plan, for which the receipt was charged.
    Proof: `RangeDesign.guarantee`; the counts are those of the plan that was priced (`planned`).
    Source: docs/theory/ranges.md.
    Needs: ``table`` holds the integers of ``planned.counted``.
    """
    design = planned.ranked.best
    made = design.release(table.columns[ROWS], bits=bits)
    parts = {field.name: getattr(made, field.name) for field in fields(made)}
    return ChargedRanges(
        **parts,
        title=planned.query.title,
        question=planned.query.text,
        mechanism=f"{design.describe()}; groups: {_noises(planned)}",
        protects=protection(setting),
        receipt=receipt,
    )


def _noises(planned: PlannedRanges) -> str:
    """The mechanisms of the groups, each once."""
    return "; ".join(dict.fromkeys(map(repr, planned.ranked.best.mechanisms)))

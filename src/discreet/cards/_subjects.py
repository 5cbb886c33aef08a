"""What a card is written for, in one form: a title, a question, and measurements with events."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from discreet.accounting.guarantee import Guarantee
from discreet.accounting.personalized import PersonalizedGuarantee
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.ledger.account import Receipt
from discreet.local.collection.spec import CollectionSpec
from discreet.local.randomizer import LocalRandomizer
from discreet.query.result import Result
from discreet.tables.release import Release
from discreet.tables.stream import Stream

Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class CardSubject:
    """One published thing."""

    title: str
    question: str
    guarantee: Guarantee
    receipt: Receipt | None = None
    mechanism: str = ""
    unit: str = ""
    """Who is protected, in words."""
    facts: Facts = field(default_factory=dict)
    levels: tuple[tuple[str, Guarantee], ...] = ()
    post_processing: str = ""
    claimed_by: str = ""

    @property
    def measurements(self) -> list[Facts]:
        """Events with what their noise is; one, if no more is known than the guarantee."""
        found: list[Facts] | None = self.facts.get("measurements")
        return found or [
            {
                "event": json.loads(self.guarantee.to_json())["event"],
                "part": "the whole",
                "noise": {"law": self.mechanism or "as in the event"},
            }
        ]


def subjects(given: object) -> Iterator[CardSubject]:
    """All that is in what a card is asked for."""
    if isinstance(given, Sequence) and not isinstance(given, str):
        if not given:
            raise InvalidArgument("card needs at least one release, got an empty list.")
        for one in given:
            yield from subjects(one)
        return
    yield _subject(given)


def _subject(given: object) -> CardSubject:
    if isinstance(given, CardSubject):
        return given
    if isinstance(given, CollectionSpec | LocalRandomizer):
        return _collection(given)
    if isinstance(given, Stream):
        return CardSubject(
            title=given.receipt.label or "stream",
            question=str(given.plan),
            guarantee=given.plan.guarantee,
            receipt=given.receipt,
            mechanism=given.plan.describe() if hasattr(given.plan, "describe") else "",
            unit=_limit_words(given.plan),
            facts={"kind": "stream"},
        )
    paid = getattr(given, "guarantee", None) or getattr(given, "guarantee_", None)
    if not isinstance(paid, Guarantee | PersonalizedGuarantee):
        raise Unsupported(
            f"{type(given).__name__} has no guarantee, so it has no card: cards are for releases, "
            "fitted models, streams and local collections."
        )
    return _of_guarantee(given, paid)


def _of_guarantee(given: object, paid: Guarantee | PersonalizedGuarantee) -> CardSubject:
    receipt = getattr(given, "receipt", None) or getattr(given, "receipt_", None)
    title = given._title() if isinstance(given, Result) else type(given).__name__  # noqa: SLF001
    mapped = isinstance(given, Release) and given._estimator is None  # noqa: SLF001
    personal = isinstance(paid, PersonalizedGuarantee)
    return CardSubject(
        title=getattr(given, "title", None) or title,
        question=getattr(given, "query_text", None) or title,
        guarantee=paid.worst if isinstance(paid, PersonalizedGuarantee) else paid,
        receipt=receipt if isinstance(receipt, Receipt) else None,
        mechanism=str(getattr(given, "mechanism", "")),
        unit=str(getattr(given, "privacy_statement", "")),
        facts=getattr(given, "facts", None) or {},
        levels=paid.privacy_levels if isinstance(paid, PersonalizedGuarantee) and personal else (),
        claimed_by=str(getattr(given, "claimed_by", "")),
        post_processing="The value was mapped by a function of the analyst." if mapped else "",
    )


def _collection(given: CollectionSpec | LocalRandomizer) -> CardSubject:
    randomizer = given.randomizer if isinstance(given, CollectionSpec) else given
    return CardSubject(
        title=f"local collection by {randomizer.kind}",
        question=f"one report of each client, randomized by {randomizer.kind}",
        guarantee=randomizer.guarantee,
        mechanism=repr(randomizer),
        unit="protects which value a client holds, before it leaves the client",
        facts={"kind": "local"},
    )


def _limit_words(plan: Any) -> str:
    many = plan.max_rows_per_unit
    return f"protects any one unit, of which at most {many} event{'s' * (many > 1)} count"

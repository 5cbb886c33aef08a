"""Release cards: what was released and under which guarantee, for machines and for people."""

from __future__ import annotations

import json
import platform
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from discreet.accounting.guarantee import Guarantee
from discreet.accounting.periods import Released
from discreet.cards import _formats, _numbers, _schema, _verify
from discreet.cards._subjects import CardSubject, subjects
from discreet.core import events
from discreet.core.errors import InvalidArgument, RelationMismatch, Unsupported
from discreet.core.number_format import at_most
from discreet.core.relation import NeighboringRelation
from discreet.core.tabular import Record, Tabular
from discreet.data.unit import content_columns
from discreet.ledger.account import Account, Receipt

Content = dict[str, Any]
VERSION = 1
PERSON = (
    "curator",
    "intended_use",
    "region",
    "sector",
    "license",
    "contact",
    "justification",
    "source",
    "authors",
)
_NO_LIMITS = dict.fromkeys(
    ("max_rows_per_unit", "max_groups_per_unit", "max_rows_per_unit_per_group")
)
LENGTHS = {
    "hour": {"24 hours": 24, "7 days": 168, "365 days": 8760},
    "day": {"7 days": 7, "30 days": 30, "365 days": 365},
    "week": {"4 weeks": 4, "52 weeks": 52},
    "month": {"12 months": 12},
    "quarter": {"4 quarters": 4},
    "year": {"10 years": 10},
}
"""Over how many periods of a person a card states the cost, by the length of one."""
_NOT_COVERED = (
    "What is true of a whole group is not protected, whether or not a person is in the data.",
    "What was published from the same data and not charged to the same account adds to this.",
    (
        "Rows beyond the limits are not used, and values beyond the bounds are clipped: both bias "
        "the numbers, not the guarantee."
    ),
    (
        "The card does not show that the data were limited as stated, that columns, bounds and "
        "limits were chosen without looking at the data, or that the software ran as published."
    ),
    "How people came into the data, and whether they are representative, is not described.",
)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class CardCheck(Tabular):
    """What the check of a card found. Made by `ReleaseCard.verify`.

    Attributes:
        problems: One sentence for each field that is wrong, with its name first.
        checked: What was checked.
        unchecked: What nobody can check from the card.

    Examples:
        >>> import discreet
        >>> from discreet import local
        >>> check = discreet.card(local.grr(categories=2, epsilon=1)).verify()
        >>> check.ok, check.problems
        (True, ())
    """

    problems: tuple[str, ...]
    checked: tuple[str, ...]
    unchecked: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether no problem was found."""
        return not self.problems

    def rows(self) -> list[Record]:
        """List one record for each line of the check.

        Returns:
            Records with `result` ("problem", "checked" or "not checked") and `text`.

        Examples:
            >>> sorted({row["result"] for row in check.rows()})
            ['checked', 'not checked']
        """
        kinds = (
            ("problem", self.problems),
            ("checked", self.checked),
            ("not checked", self.unchecked),
        )
        return [{"result": kind, "text": text} for kind, texts in kinds for text in texts]

    def __str__(self) -> str:
        head = "The card holds." if self.ok else "The card does not hold."
        return "\n".join([head, *(f"  {row['result']}: {row['text']}" for row in self.rows())])

    __repr__ = __str__


@dataclass(frozen=True, slots=True, repr=False)
class ReleaseCard:
    """Hold the statement of a release, or of an audit: what it promises, to whom.

    A card holds no released number and nothing that is private. Make one with `card` or the
    `card` method of a release.

    Attributes:
        content: The card as JSON-compatible data, by the published schema.

    Raises:
        InvalidArgument: The content is no card by the schema; the error names the field.

    Examples:
        >>> import discreet
        >>> from discreet import local
        >>> card = discreet.card(local.grr(categories=2, epsilon=1))
        >>> card.content["privacy"]["variant"], card.guarantee.epsilon()
        ('local', 1.0)

    See Also:
        [Release cards](../how-to/cards.md).
    """

    content: Mapping[str, Any]

    def __post_init__(self) -> None:
        found = _schema.problems(dict(self.content))
        if found:
            raise InvalidArgument(f"This is no release card: {'; '.join(found[:3])}.")

    @property
    def _audit(self) -> bool:
        return "discreet_audit" in self.content

    @property
    def title(self) -> str:
        """Title of the card."""
        return str(self.content["title"])

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee of everything on the card, from its events; an audit has none."""
        if self._audit:
            raise Unsupported("An audit promises nothing: see the cases on its card.")
        return _verify.stated_guarantee(self.content)

    def to_json(self) -> str:
        """Return the card as JSON text.

        Returns:
            Text for `from_json`, by the schema that `ReleaseCard.schema` returns.

        Examples:
            >>> discreet.ReleaseCard.from_json(card.to_json()) == card
            True
        """
        return json.dumps(self.content, indent=1, allow_nan=False, ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> ReleaseCard:
        """Read a card, strictly: unknown fields, doubled keys and NaN are refused.

        Args:
            text: JSON text of a card.

        Returns:
            The card. Its numbers are not checked: see `verify`.

        Raises:
            InvalidArgument: The text is no card; the error names the field.

        Examples:
            >>> discreet.ReleaseCard.from_json(card.to_json()).title
            'local collection by grr'
        """
        return cls(_schema.read(text))

    @staticmethod
    def schema() -> dict[str, object]:
        """Return the JSON Schema of cards (draft 2020-12).

        Returns:
            The schema as JSON-compatible data.

        Examples:
            >>> discreet.ReleaseCard.schema()["title"]
            'discreet release card, version 1'
        """
        return dict(_schema.schema())

    def verify(self, release: str | None = None, *, account: Account | None = None) -> CardCheck:
        """Compute the numbers again from the events on the card, and compare.

        Args:
            release: JSON text of the release or report that the card speaks of. If None, it is not
                compared.
            account: Account that paid. If None, the entry of the ledger is not looked up.

        Returns:
            The problems found, each with the name of its field. A number is a problem if it is
            lower than what follows from the events. Of an audit: where verdicts, confidence and
            numbers contradict each other, or state more than so many samples can prove.

        Raises:
            InvalidArgument: `release` is no release or report, or the card is of an audit, which
                has neither release nor account.

        Privacy:
            Nothing private is read, and nothing is charged.

        Examples:
            >>> print(str(card.verify()).splitlines()[0])
            The card holds.
        """
        if self._audit:
            return self._verify_audit(with_more=release is not None or account is not None)
        compared = None if release is None else _verify.read_release(release)
        problems = _verify.problems(self.content)
        checked = [
            f"{len(self.content['measurements'])} events compose to the guarantee of the card",
            "no stated number is lower than what follows from the events",
        ]
        if compared is not None:
            problems += _verify.against_release(self.content, compared, build=card)
            checked.append("events, limits, columns and unit are those of the release")
        if account is not None:
            problems += _verify.against_account(self.content, account)
            checked.append(f"the entry of account {account.name!r} in the ledger")
        return CardCheck(
            problems=tuple(problems), checked=tuple(checked), unchecked=_verify.UNCHECKED
        )

    def _verify_audit(self, *, with_more: bool) -> CardCheck:
        if with_more:
            raise InvalidArgument("The card of an audit has no release and no account.")
        from discreet.cards import _audit  # noqa: PLC0415 - audits load every mechanism

        cases = f"{len(self.content['cases'])} verdicts follow from what was claimed and found"
        return CardCheck(
            problems=tuple(_verify.numbers_agree(self.content) + _audit.problems(self.content)),
            checked=(
                cases,
                "no bound is stronger than its number of samples can prove",
                "the confidence is that of all cases together",
            ),
            unchecked=_audit.UNCHECKED,
        )

    def to_markdown(self) -> str:
        """Return the card as a Markdown page, in the order of NIST SP 800-226.

        Returns:
            The text.

        Examples:
            >>> card.to_markdown().splitlines()[0]
            '# Release card: local collection by grr'
        """
        return _formats.markdown(self.content)

    def to_html(self) -> str:
        """Return the card as a section of an HTML page; everything is escaped.

        Returns:
            The text of a section element.

        Examples:
            >>> card.to_html().startswith("<section")
            True
        """
        return _formats.html(self.content)

    def to_registry(self) -> str:
        """Return a draft of the entry for the public registry of deployments (YAML).

        Returns:
            The text. What only a person knows is marked "(to be written by a person: ...)".

        Raises:
            Unsupported: The card is of an audit, which is no deployment.

        Examples:
            >>> card.to_registry().splitlines()[2]
            'tier: 3'
        """
        if self._audit:
            raise Unsupported("An audit is no deployment: the registry is for releases.")
        return _formats.registry(self.content)

    def save(self, path: str | Path) -> Path:
        """Write the card into a file; the format follows its suffix.

        Args:
            path: File ending in `.json`, `.md`, `.html` or `.yaml`.

        Returns:
            The path.

        Raises:
            InvalidArgument: The suffix is another one.

        Examples:
            >>> from tempfile import mkdtemp
            >>> card.save(f"{mkdtemp()}/card.md").name
            'card.md'
        """
        target = Path(path)
        write = {
            ".json": self.to_json,
            ".md": self.to_markdown,
            ".html": self.to_html,
            ".yaml": self.to_registry,
        }.get(target.suffix)
        if write is None:
            raise InvalidArgument(
                f"path must end in .json, .md, .html or .yaml, got {target.name}."
            )
        target.write_text(write(), encoding="utf-8")
        return target

    def __repr__(self) -> str:
        if self._audit:
            verdicts = Counter(one["verdict"] for one in self.content["cases"])
            told = ", ".join(f"{many} {verdict}" for verdict, many in verdicts.items())
            return f"ReleaseCard({self.title!r}, audit, {told})"
        stated = self.content["privacy"]
        epsilon, delta = stated["epsilon"], stated["delta"]
        shown = "no epsilon" if epsilon is None else f"epsilon {at_most(epsilon['value'])}"
        if epsilon is not None and delta is not None and delta["value"]:
            shown += f" at delta {at_most(delta['value'])}"
        return f"ReleaseCard({self.title!r}, {stated['variant']}, {shown})"


def card(
    of: object,
    *,
    title: str | None = None,
    delta: float | None = None,
    account: Account | None = None,
    person: Mapping[str, str] | None = None,
    periods: Mapping[str, int] | None = None,
) -> ReleaseCard:
    """Write the release card of something that was published.

    Args:
        of: Release or other private result, list of them, fitted model, stream, local collection,
            local randomizer, or what `discreet.audit.run_audit` returns. The card of an audit says
            what was attacked, claimed and found, with which confidence, and what that does not
            prove; it takes a title alone.
        title: Title of the card. If None, that of what was published.
        delta: Probability parameter at which epsilon is stated. If None, 0 for pure DP, else 1e-6.
        account: Account that paid. With it the card states the limit and the looks that were
            charged before this release.
        person: What only you know, by name: `curator`, `intended_use`, `region`, `sector`,
            `license`, `contact`, `justification`, `source` or `authors`.
        periods: If the privacy unit is one period of a person: lengths of time by name with their
            number of periods, such as `{"week": 7, "year": 365}`. The card then states what a
            person pays over them, if each period is released separately. If None, and the privacy
            unit of the table has a date as a part, it states that for usual lengths, and also what
            a person pays if one release covers all of these periods.

    Returns:
        The card. It costs nothing and holds no released number.

    Raises:
        Unsupported: `of` has no guarantee.
        RelationMismatch: The releases are under different neighboring relations.
        InvalidArgument: There is no release, or a word about the release is not known, or an audit
            is given together with releases or with what only releases have.

    Privacy:
        Everything on a card was public before the data were read, or is in the ledger.

    Examples:
        >>> import discreet
        >>> from discreet import local
        >>> discreet.card(local.grr(categories=2, epsilon=1), title="Smoking survey")
        ReleaseCard('Smoking survey', local, epsilon 1)

    See Also:
        [Release cards](../how-to/cards.md), `discreet verify`.
    """
    # Theorem: `privacy.event` composes each measurement once, so its cost is that of all that is
    #   on the card, adaptively.
    # Proof: measurements are told apart by their place in the plan and the receipt that paid; what
    #   two statistics share was drawn once (`Measurement`).
    several = of if isinstance(of, Sequence) and not isinstance(of, str) else [of]
    if any(hasattr(one, "attacked") for one in several):
        return _audited(several, title, (delta, account, person, periods))
    told = dict(person or {})
    if unknown := set(told) - set(PERSON):
        raise InvalidArgument(
            f"person must use {', '.join(PERSON)}; got {min(map(str, unknown))!r}."
        )
    found = list(subjects(of))
    relations = {one.guarantee.relation for one in found}
    if len(relations) > 1:
        raise RelationMismatch("A card is about one neighboring relation; write one for each.")
    measurements, uses = _measured(found)
    total = events.compose(
        [events.from_json(json.dumps(one["event"])) for one in measurements.values()]
    )
    guarantee = Guarantee(total, found[0].guarantee.relation)
    at = _numbers.shown_delta(guarantee, delta)
    receipts = [one.receipt for one in found if one.receipt is not None]
    limits = [one.facts.get("limits", _NO_LIMITS) for one in found]
    content: Content = {
        "discreet_card": VERSION,
        "title": title or "; ".join(one.title for one in found[:5]) + (" ..." if found[5:] else ""),
        "time": (receipts[-1].time if receipts else datetime.now(UTC)).isoformat(),
        "software": _software(sorted({one.claimed_by for one in found} - {""})),
        "privacy": {
            "relation": guarantee.relation.name,
            "unit": _unit(found[0], guarantee.relation),
            "event": json.loads(events.to_json(total)),
            **_numbers.numbers(guarantee, at),
            "fixed_in_advance": len({one.hash for one in receipts}) <= 1,
            "check": None,
        },
        "limits": limits[0],
        "columns": _columns(found),
        "public": _public(found),
        "measurements": [
            {"event": one["event"], "certified": not by, **({"claimed_by": by} if by else {})}
            for one, by in zip(measurements.values(), _claims(found, uses), strict=True)
        ],
        "statistics": _statistics(found, list(measurements.values()), uses, limits[0], at),
        "exploration": [] if account is None else _explored(account, receipts),
        "post_processing": sorted({one.post_processing for one in found} - {""}),
        "ledger": _ledger(receipts, account),
        "not_covered": list(_NOT_COVERED),
        "model": _model(found, guarantee.relation),
        "person": {name: told.get(name) for name in PERSON},
    }
    ways: tuple[Released, ...] = ("separately",)
    if periods is None and (own := content["privacy"]["unit"]["period"]) is not None:
        periods, ways = LENGTHS[own["every"]], ("separately", "together")
    if periods:
        content["privacy"]["periods"] = [
            _numbers.period(guarantee.event, length, many, at, way)
            for length, many in periods.items()
            for way in ways
        ]
    if found[0].levels and len(found) == 1:
        content["privacy"]["levels"] = [_level(name, one, at) for name, one in found[0].levels]
    return ReleaseCard(content)


def _audited(rows: Sequence[object], title: str | None, more: Sequence[object]) -> ReleaseCard:
    if any(one is not None for one in more):
        raise InvalidArgument("The card of an audit takes a title, and nothing else.")
    from discreet.cards import _audit  # noqa: PLC0415 - audits load every mechanism

    return ReleaseCard(_audit.content(rows, title, _software([])))


def _measured(found: Sequence[CardSubject]) -> tuple[dict[object, Any], list[list[int]]]:
    """All measurements, each once, and which of them each subject uses."""
    known: dict[object, Any] = {}
    places: dict[object, int] = {}
    uses = []
    for number, one in enumerate(found):
        mine = []
        for place, measured in enumerate(one.measurements):
            shared = "id" in measured and one.receipt is not None
            key = (
                (one.receipt.account, one.receipt.hash, measured["id"])
                if shared and one.receipt is not None
                else (number, place)
            )
            known.setdefault(key, measured)
            mine.append(places.setdefault(key, len(places)))
        uses.append(mine)
    return known, uses


def _claims(found: Sequence[CardSubject], uses: Sequence[Sequence[int]]) -> list[str]:
    claims = [""] * (1 + max(place for mine in uses for place in mine))
    for one, mine in zip(found, uses, strict=True):
        for place in mine:
            claims[place] = one.claimed_by or claims[place]
    return claims


def _statistics(
    found: Sequence[CardSubject],
    measured: Sequence[Mapping[str, Any]],
    uses: Sequence[Sequence[int]],
    limits: object,
    delta: Any,
) -> list[Content]:
    many = Counter(place for mine in uses for place in mine)
    sharers: dict[int, list[int]] = {place: [] for place, count in many.items() if count > 1}
    for number, mine in enumerate(uses):
        for place in mine:
            if place in sharers:
                sharers[place].append(number)
    written = []
    for number, (one, mine) in enumerate(zip(found, uses, strict=True)):
        event = events.compose(
            [events.from_json(json.dumps(measured[place]["event"])) for place in mine]
        )
        others = {place: [n for n in sharers.get(place, []) if n != number] for place in mine}
        row: Content = {
            "title": one.title,
            "question": one.question,
            "event": json.loads(events.to_json(event)),
            "epsilon": _numbers.optional(_numbers.epsilon(event, delta)),
            "delta": _numbers.number(delta),
            "measurements": list(mine),
            "noise": [
                _noise(measured[place], [found[n].title for n in others[place]]) for place in mine
            ],
        }
        if "kind" in one.facts:
            row["kind"] = one.facts["kind"]
        if one.mechanism:
            row["mechanism"] = one.mechanism
        # Where a result does not say its limits, the words of its unit do.
        if "limits" in one.facts and one.facts["limits"] != limits:
            row["limits"] = one.facts["limits"]
        written.append(row)
    return written


def _noise(measured: Mapping[str, Any], others: Sequence[str]) -> Content:
    row: Content = {"part": measured["part"], **measured["noise"]}
    for name in ("divided_by", "sensitivity"):
        if name in measured:
            row[name] = measured[name]
    if others:
        row["shared_with"] = list(others[:20])
    return row


def _software(guests: list[str]) -> Content:
    import discreet  # noqa: PLC0415 - the version stands in the package itself

    return {
        "name": "discreet",
        "version": discreet.__version__,
        "python": platform.python_version(),
        "guests": guests,
    }


def _unit(first: CardSubject, relation: NeighboringRelation) -> Content:
    unit = first.facts.get("unit")
    columns, period = content_columns(unit), first.facts.get("period")
    return {
        "columns": columns,
        "period": period,
        "words": first.unit or _verify.unit_words(columns, relation),
    }


def _columns(found: Sequence[CardSubject]) -> list[Content]:
    named = {one["name"]: one for subject in found for one in subject.facts.get("columns", ())}
    return list(named.values())


def _public(found: Sequence[CardSubject]) -> list[Content]:
    facts: dict[tuple[str, str], Content] = {}

    def add(fact: str, origin: str, **more: int) -> None:
        facts[fact, origin] = {"fact": fact, "origin": origin, **more}

    for one in _columns(found):
        add(f"bounds or categories of column {one['name']!r}", one["origin"])
    for subject in found:
        if subject.facts.get("kind") == "keys" and subject.receipt is not None:
            add(f"the groups of {subject.title!r}", "charged", sequence=subject.receipt.sequence)
    if found[0].guarantee.relation is NeighboringRelation.REPLACE_ONE:
        add("the number of privacy units", "declared")
    if any(one.levels for one in found):
        add("who chose which privacy level", "declared")
    return list(facts.values())


def _explored(account: Account, receipts: Sequence[Receipt]) -> list[Content]:
    """What was charged before this release, and is not part of it."""
    looks, own = [], {one.hash for one in receipts}
    for entry in account.history:
        if entry.hash in own:
            break
        if entry.guarantee is None or entry.kind not in {"charge", "reserve"}:
            continue
        looks.append(
            {
                "label": entry.label,
                "sequence": entry.sequence,
                "hash": entry.hash,
                "time": entry.time.isoformat(),
                "event": json.loads(events.to_json(entry.guarantee.event)),
            }
        )
    return looks


def _ledger(receipts: Sequence[Receipt], account: Account | None) -> Content | None:
    if not receipts:
        return None
    last = receipts[-1]
    limit: Content = {}
    if account is not None:
        event = account.limit.event
        for name in ("epsilon", "delta", "rho", "mu"):
            if (value := getattr(event, name, None)) is not None:
                limit[name] = _numbers.number(value)
    return {
        "account": last.account,
        "sequence": last.sequence,
        "hash": last.hash,
        "limit": limit,
        "adaptive": True,
    }


def _model(found: Sequence[CardSubject], relation: NeighboringRelation) -> Content:
    local = relation is NeighboringRelation.LOCAL
    kinds = {one.facts.get("kind") for one in found}
    streaming = "stream" in kinds
    return {
        "trust": "local" if local else "central",
        "access": "non-interactive",
        "releases": "many" if streaming or local else "one",
        "data": "dynamic" if streaming or local else "static",
        "randomness": (
            "Noise comes from the operating system's cryptographic generator; the card cannot show "
            "that this machine's generator was sound."
        ),
        "arithmetic": (
            "Sums, sensitivities and noise are exact integers and rationals wherever the event is "
            "discrete; continuous events state an idealized law of real numbers."
        ),
        "timing": "How long a release took, and how much memory it used, is not protected.",
    }


def _level(name: str, guarantee: Guarantee, delta: Any) -> Content:
    return {
        "name": name,
        "event": json.loads(events.to_json(guarantee.event)),
        "epsilon": _numbers.optional(_numbers.epsilon(guarantee.event, delta)),
        "delta": _numbers.number(delta),
    }

"""The check of a card: every number again, from the events that stand on it."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from discreet.accounting.guarantee import Guarantee
from discreet.cards import _numbers
from discreet.core import canonical_json as canonical
from discreet.core import events
from discreet.core.errors import PrivacyError
from discreet.core.events import (
    DiscreteGaussianEvent,
    DiscreteLaplaceEvent,
    Event,
)
from discreet.core.relation import NeighboringRelation
from discreet.data.program import ContributionBound
from discreet.ledger._entries import LedgerEntry
from discreet.ledger.account import Account
from discreet.tables.release import Release

Content = Mapping[str, Any]
UNCHECKED = (
    "that the data were limited, clipped and read as the card says",
    "that the random numbers were good, and that the software ran as published",
    "that bounds, limits and groups were chosen without looking at the data",
    "whether more was published from the same data under another account",
)
_LAWS = ("discrete laplace", "discrete gaussian", "choice by rank")
_PLAIN = ("scale", "variance", "bound", "divided_by")
"""What a card says of noise in plain fields, beside the sensitivity that it covers."""
_ENOUGH = 50
"""More problems of one kind are not listed."""


def stated_guarantee(card: Content) -> Guarantee:
    """The guarantee of the event of the whole card."""
    stated = card["privacy"]
    relation = NeighboringRelation[stated["relation"]]
    return Guarantee(_event(stated["event"]), relation)


def unit_words(columns: Sequence[str], relation: NeighboringRelation) -> str:
    """Who is protected, where no sentence was written."""
    if relation is NeighboringRelation.LOCAL:
        return "protects which value a client holds"
    who = f"any one {' and '.join(columns)}, with all its rows," if columns else "any one row"
    if relation is NeighboringRelation.ADD_REMOVE:
        return f"protects whether {who} is in the data at all"
    return f"protects what the data say about {who} while their number is public"


def problems(card: Content) -> list[str]:
    """What on the card contradicts its own events."""
    found = numbers_agree(card)
    try:
        guarantee = stated_guarantee(card)
        measured = [_event(one["event"]) for one in card["measurements"]]
    except PrivacyError as error:
        return [*found, f"privacy.event: {error}"]
    found += _composition(card, guarantee.event, measured)
    found += _too_low(card, guarantee)
    found += _words(card, guarantee)
    for place, one in enumerate(card["statistics"]):
        found += _statistic(card, one, f"statistics[{place}]", measured)
        if len(found) > _ENOUGH:
            break
    for place, level in enumerate(card["privacy"].get("levels", ())):
        least = _numbers.epsilon(_event(level["event"]), _numbers.exact(level["delta"]))
        found += _low(f"privacy.levels[{place}].epsilon", level["epsilon"], least)
    for place, fact in enumerate(card["public"]):
        if fact["origin"] == "exact from the data":
            found.append(
                f"public[{place}]: {fact['fact']!r} was taken exactly from the data, which no "
                "guarantee on this card covers"
            )
    return found


def _event(content: Content) -> Event:
    return events.from_json(json.dumps(content))


def numbers_agree(card: Content) -> list[str]:
    """Every number stands twice."""
    found = []

    def visit(value: Any, path: str) -> None:
        if isinstance(value, Mapping):
            if set(value) == {"text", "value"}:
                try:
                    same = float(value["text"]) == value["value"]
                except (OverflowError, ValueError):
                    same = False
                if not same:
                    found.append(f"{path}: text and value differ")
                return
            for name, one in value.items():
                visit(one, f"{path}.{name}" if path else name)
        elif isinstance(value, list):
            for place, one in enumerate(value):
                visit(one, f"{path}[{place}]")

    visit(dict(card), "")
    return found[:_ENOUGH]


def _composition(card: Content, whole: Event, measured: Sequence[Event]) -> list[str]:
    found = []
    if events.compose(measured) != whole:
        found.append("privacy.event: is not the composition of the measurements")
    used = {place for one in card["statistics"] for place in one["measurements"]}
    if used - set(range(len(measured))):
        found.append("measurements: a statistic names one that is not there")
    if set(range(len(measured))) - used:
        found.append("measurements: one belongs to no statistic")
    for place, one in enumerate(card["measurements"]):
        if one["certified"] == ("claimed_by" in one):
            found.append(f"measurements[{place}].certified: a claimed event is not certified")
    return found


def _too_low(card: Content, guarantee: Guarantee) -> list[str]:
    found = []
    stated = card["privacy"]
    try:
        computed = _numbers.recomputed(card, guarantee)
    except (PrivacyError, ValueError, OverflowError, ZeroDivisionError) as error:
        return [f"privacy: the numbers cannot be computed from the event: {error}"]
    for name, one, least in computed:
        found += _low(name, one, least)
    if len(stated["attack"]["tpr"]) == 0 or not stated["epsilons"]:
        found.append("privacy.attack: states no point of the trade-off curve")
    kind = _numbers.variant(guarantee)
    stronger = {"pure": 0, "gdp": 1, "zcdp": 2, "approximate": 3, "local": 0}
    if (stated["variant"] == "local") != (kind == "local") or (
        stronger[stated["variant"]] < stronger[kind]
    ):
        found.append(f"privacy.variant: the events are {kind}")
    return found


def _low(name: str, stated: Content | None, least: float | Fraction | None) -> list[str]:
    if stated is None:
        return []  # nothing is claimed
    if least is None or not math.isfinite(least):
        return [f"{name}: states {stated['text']}, but the events have none"]
    if _numbers.exact(stated) < Fraction(least):
        return [
            f"{name}: states {stated['text']}, which is lower than {_numbers.number(least)['text']}"
        ]
    return []


def _words(card: Content, guarantee: Guarantee) -> list[str]:
    """The sentence about who is protected names the unit and fits the relation."""
    unit, relation = card["privacy"]["unit"], guarantee.relation
    found = [
        "privacy.unit.columns: the sentence in privacy.unit.words does not name this unit"
        for name in unit["columns"]
        if name not in unit["words"]
    ][:1]
    if not unit["columns"] and "any one row" not in unit["words"] and card["columns"]:
        found.append("privacy.unit.columns: the sentence in privacy.unit.words names another unit")
    marks = {
        NeighboringRelation.ADD_REMOVE: "is in the data at all",
        NeighboringRelation.REPLACE_ONE: "while their number is public",
    }
    for other, words in marks.items():
        if other is not relation and words in unit["words"]:
            found.append("privacy.relation: the sentence in privacy.unit.words is of another one")
    return found


def _statistic(card: Content, one: Content, path: str, measured: Sequence[Event]) -> list[str]:
    if any(place >= len(measured) for place in one["measurements"]):
        return [f"{path}.measurements: names one that is not there"]
    mine = [measured[place] for place in one["measurements"]]
    try:
        event = _event(one["event"])
    except PrivacyError as error:
        return [f"{path}.event: {error}"]
    found = []
    if events.compose(mine) != event:
        found.append(f"{path}.event: is not the composition of its measurements")
    least = _numbers.epsilon(event, _numbers.exact(one["delta"]))
    found += _low(f"{path}.epsilon", one["epsilon"], least)
    if len(one["noise"]) != len(mine):
        return [*found, f"{path}.noise: must have one entry for each measurement"]
    limits = one.get("limits", card["limits"])
    for place, (noise, part) in enumerate(zip(one["noise"], mine, strict=True)):
        found += _noise(noise, part, f"{path}.noise[{place}]")
    if one.get("kind") == "count" and len(mine) == 1:
        found += _limits(limits, card, mine[0], one["noise"][0].get("divided_by", 1), path)
    return found


def _noise(noise: Content, event: Event, path: str) -> list[str]:
    """The law in plain fields is that of the event, and the event covers the sensitivity."""
    if "sensitivity" not in noise:
        # Then the noise may only be named in words: fields that nobody can judge claim nothing.
        told = [name for name in _PLAIN if name in noise]
        if not told and noise["law"] not in _LAWS:
            return []
        return [f"{path}.sensitivity: is missing, so {(told or ['law'])[0]} cannot be checked"]
    wanted: dict[str, str] = {}
    moves: tuple[str, int | Fraction] | None = None
    match event:
        case DiscreteLaplaceEvent(scale, shift):
            wanted, moves = {"law": "discrete laplace", "scale": str(scale)}, ("l1", shift)
        case DiscreteGaussianEvent(variance, shift_squared, _):
            wanted = {"law": "discrete gaussian", "variance": str(variance)}
            moves = ("l2_squared", shift_squared)
    found = [
        f"{path}.{name}: is not that of the event"
        for name, text in wanted.items()
        if noise.get(name) != text
    ]
    if moves is not None and noise["sensitivity"][moves[0]] > moves[1]:
        found.append(f"{path}.sensitivity.{moves[0]}: is more than the event allows")
    return found


def _limits(limits: Content, card: Content, event: Event, divided: int, path: str) -> list[str]:
    """A count moves as far as the rows of a unit: the event must allow for it."""
    if card["privacy"]["relation"] != "ADD_REMOVE":
        return []
    rows, groups = limits.get("max_rows_per_unit"), limits.get("max_groups_per_unit")
    each = limits.get("max_rows_per_unit_per_group")
    if not card["privacy"]["unit"]["columns"]:
        rows = groups = each = 1
    by_group = groups * each if groups and each else None
    known = [one for one in (rows, by_group) if one]
    if not known:
        return [f"{path}.limits: a count needs a limit on the rows of a unit"]
    bound = ContributionBound(
        groups=groups or min(known),
        rows=min(known),
        rows_per_group=min([min(known), *([each] if each else [])]),
        weight=1,
    )
    where = "limits" if path == "" else f"{path}.limits"
    match event:
        case DiscreteLaplaceEvent(_, shift) if shift * divided < bound.l1:
            return [f"{where}: {bound.l1} rows of a unit move the count by more than its event"]
        case DiscreteGaussianEvent(_, shift_squared, _) if (
            shift_squared * divided**2 < bound.l2_squared
        ):
            return [f"{where}: {bound.l1} rows of a unit move the count by more than its event"]
        case _:
            return []


# ── Against what was released ────────────────────────────────────────────────────────────────────


def read_release(text: str) -> tuple[Any, Guarantee, bool]:
    """The releases of a JSON text, what they cost, and whether these are all."""
    with canonical.reading("a release, a result or a report"):
        content = json.loads(text)
        guarantee = Guarantee.from_json(json.dumps(content["guarantee"]))
        if "releases" in content:
            held = [Release.from_json(json.dumps(one)) for one in content["releases"]]
            return held, guarantee, not content.get("ranges")
        if "discreet_release" in content:
            return [Release.from_json(text)], guarantee, True
    return [], guarantee, False


def against_release(
    card: Content,
    compared: tuple[Any, Guarantee, bool],
    *,
    build: Callable[..., Any],
) -> list[str]:
    """Where the card differs from that of the release."""
    held, guarantee, complete = compared
    found = []
    if stated_guarantee(card) != guarantee:
        found.append("privacy.event: is not the guarantee of the release")
    if not held:
        return found
    again = build(held, title=card["title"]).content
    blocks = ["limits", "columns"]
    found += [f"{name}: is not that of the release" for name in blocks if card[name] != again[name]]
    if card["privacy"]["unit"]["columns"] != again["privacy"]["unit"]["columns"]:
        found.append("privacy.unit.columns: is not that of the release")
    if card["privacy"]["relation"] != again["privacy"]["relation"]:
        found.append("privacy.relation: is not that of the release")
    for name in ("account", "sequence", "hash"):
        own = (card["ledger"] or {}).get(name)
        if own != (again["ledger"] or {}).get(name):
            found.append(f"ledger.{name}: is not that of the receipt")
    stated = {one["title"]: one for one in card["statistics"]}
    for one in again["statistics"]:
        mine = stated.get(one["title"])
        if mine is None:
            found.append(f"statistics: {one['title']!r} is missing")
            continue
        found += [
            f"statistics[{one['title']!r}].{name}: is not that of the release"
            for name in ("question", "event", "noise", "limits", "kind")
            if mine.get(name) != one.get(name)
        ]
    if complete and len(card["statistics"]) != len(again["statistics"]):
        found.append("statistics: the card has others than the release")
    return found


def against_account(card: Content, account: Account) -> list[str]:
    """Whether the ledger has the entry that the card names."""
    stated = card["ledger"]
    if stated is None:
        return ["ledger: the card names no entry"]
    if stated["account"] != account.name:
        return [f"ledger.account: the card names {stated['account']!r}, not {account.name!r}"]
    entries = {one.sequence: one for one in account.history}
    entry = entries.get(stated["sequence"])
    if entry is None:
        return [f"ledger.sequence: the account has no entry {stated['sequence']}"]
    found = []
    if entry.hash != stated["hash"]:
        found.append("ledger.hash: is not that of the entry")
    if entry.guarantee is None:
        return [*found, "ledger.sequence: the entry paid for nothing"]
    whole, fixed = stated_guarantee(card), card["privacy"]["fixed_in_advance"]
    if entry.guarantee.relation is not whole.relation:
        found.append("privacy.relation: is not that of the entry")
    charges = {at: one.guarantee.event for at, one in entries.items() if one.guarantee is not None}
    found += _looks(card["exploration"], entries)
    if stated["limit"]:  # made with the account: then it lists what was charged before
        found += _limit(stated["limit"], account)
        told = {look["sequence"] for look in card["exploration"]}
        missing = sorted(at for at in charges if at < entry.sequence and at not in told)
        if fixed and missing:
            found.append(f"exploration: the charge of entry {missing[0]} is missing")
    # Several receipts paid at most all that was charged to the account.
    paid = "the entry" if fixed else "the account"
    total = entry.guarantee.event if fixed else events.compose(list(charges.values()))
    delta = _numbers.exact(card["privacy"]["delta"])
    if total != whole.event and _numbers.epsilon(total, delta) < _numbers.epsilon(
        whole.event, delta
    ):
        found.append(f"ledger: {paid} was charged less than the card promises")
    return found


def _looks(looks: Sequence[Content], entries: Mapping[int, LedgerEntry]) -> list[str]:
    """What was charged before, as the ledger has it."""
    found = []
    for place, look in enumerate(looks):
        charged = entries.get(look["sequence"])
        if charged is None or charged.guarantee is None or charged.hash != look["hash"]:
            found.append(f"exploration[{place}].hash: is not that of an entry that paid")
        elif look["event"] != json.loads(events.to_json(charged.guarantee.event)):
            found.append(f"exploration[{place}].event: is not that of the entry")
    return found


def _limit(stated: Content, account: Account) -> list[str]:
    """Every number of the limit, and no other."""
    limit, found = account.limit.event, []
    for name in ("epsilon", "delta", "rho", "mu"):
        own, number = getattr(limit, name, None), stated.get(name)
        if (own is None) != (number is None) or (
            number is not None and _numbers.exact(number) != own
        ):
            found.append(f"ledger.limit.{name}: is not the limit of the account")
    return found

"""The card of an audit: what was attacked, claimed and found, and what that does not prove."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from discreet.audit.runner import TOLERANCE, AuditRow
from discreet.cards import _numbers
from discreet.core.errors import InvalidArgument

Content = dict[str, Any]
VERSION = 1
_DEMONSTRATIONS = ("BROKEN", "MISSED")
_ROOM = 1e-9
"""Relative room for numbers that were rounded to the digits of a card."""
_NOT_PROVED = (
    "An attack that finds nothing proves nothing: other inputs or more samples may refute a claim.",
    "An exact law speaks of the audited inputs alone, and of the law as it was listed.",
    "Outputs were simulated with seeded bits: the randomness of a real release was not looked at.",
    "How long a mechanism takes, and what else it tells but its output, was not audited here.",
    "No data of people were read: an audit costs nothing and promises nothing about a release.",
)
UNCHECKED = (
    "that the mechanisms, inputs and samples were those that the names say",
    "that the exact laws are those of the mechanisms",
    "claims at other deltas than the stated one",
)


def content(given: Sequence[object], title: str | None, software: Content) -> Content:
    """What stands on the card."""
    rows = [one for one in given if isinstance(one, AuditRow)]
    if len(rows) < len(given):
        raise InvalidArgument("A card is about an audit or about releases; write one for each.")
    many = f"{len(rows)} mechanism{'s' * (len(rows) > 1)}"
    return {
        "discreet_audit": VERSION,
        "title": title or (rows[0].name if len(rows) == 1 else f"audit of {many}"),
        "time": datetime.now(UTC).isoformat(),
        "software": software,
        "failure_probability": _numbers.number(
            math.fsum(one.attacked.failure_probability for one in rows)
        ),
        "cases": [_case(one) for one in rows],
        "not_proved": list(_NOT_PROVED),
    }


def _case(row: AuditRow) -> Content:
    found, exact = row.attacked, row.exact
    return {
        "name": row.name,
        "demonstration": row.verdict in _DEMONSTRATIONS,
        "claimed": _point(row.claimed),
        "exact": None
        if exact is None
        else {
            "lower": _numbers.optional(exact.lower, up=False),
            "upper": _numbers.optional(exact.upper),
        },
        "attack": {
            "epsilon": _numbers.number(found.epsilon, up=False),
            "samples": found.samples,
            "failure_probability": _numbers.number(found.failure_probability),
            "event": found.event,
            "at_least": _numbers.number(found.at_least, up=False),
            "at_most": _numbers.number(found.at_most),
            "refuted": None if found.refuted is None else _point(found.refuted),
        },
        "certified": row.certified,
        "verdict": row.verdict,
        "why": row.why,
    }


def _point(point: tuple[float, float]) -> Content:
    epsilon, delta = point
    return {"epsilon": _numbers.optional(epsilon), "delta": _numbers.number(delta)}


def problems(card: Mapping[str, Any]) -> list[str]:
    """Where the numbers, the verdicts and the confidence contradict each other."""
    if not card["cases"]:
        return ["cases: nothing was audited"]
    found = []
    total = math.fsum(_value(one["attack"]["failure_probability"]) for one in card["cases"])
    if _value(card["failure_probability"]) < total * (1 - _ROOM):
        found.append("failure_probability: is less than that of the cases together")
    if not card["not_proved"]:
        found.append("not_proved: an audit does not say what it does not prove")
    for place, one in enumerate(card["cases"]):
        path = f"cases[{place}]"
        found += _attack(one, f"{path}.attack")
        found += _verdict(one, path)
    return found


def _attack(case: Mapping[str, Any], path: str) -> list[str]:
    """What the samples can prove, and what the event of the attack proves."""
    attack, delta = case["attack"], _value(case["claimed"]["delta"])
    most, level = attack["samples"], _value(attack["failure_probability"]) / 2
    if not 0 < level < 1 / 2:
        return [f"{path}.failure_probability: must be between 0 and 1"]
    # Clopper-Pearson bounds of n outputs are extreme at 0 and n hits. An attack tests at least one
    # event on two inputs, so each bound fails with at most half of the probability of its case.
    best = level ** (1 / most), -math.expm1(math.log(level) / most)
    found = []
    if _value(attack["at_least"]) > best[0] * (1 + _ROOM):
        found.append(f"{path}.at_least: is more than {most:,} outputs can prove")
    if _value(attack["at_most"]) < best[1] * (1 - _ROOM):
        found.append(f"{path}.at_most: is less than {most:,} outputs can prove")
    stated, bounds = _value(attack["epsilon"]), (attack["at_least"], attack["at_most"])
    if stated > max(0.0, _ratio(best, delta)) + _ROOM:
        found.append(f"{path}.epsilon: is more than {most:,} outputs can prove")
    shown = _ratio((_value(bounds[0]), _value(bounds[1])), delta)
    if stated < shown - _ROOM * (1 + abs(shown)):
        found.append(f"{path}.epsilon: is less than the event of the attack proves")
    claimed = _epsilon(case["claimed"]["epsilon"])
    refuted = attack["refuted"]
    if refuted is None and stated > claimed * (1 + _ROOM) + _ROOM:
        found.append(f"{path}.refuted: the attack proves more than the claim, and nothing is said")
    if refuted is not None:
        held = _ratio((_value(bounds[0]), _value(bounds[1])), _value(refuted["delta"]))
        if held < _value(refuted["epsilon"]) * (1 - _ROOM) - _ROOM:
            found.append(f"{path}.refuted: the event of the attack does not refute this")
    return found


def _verdict(case: Mapping[str, Any], path: str) -> list[str]:
    """Whether the verdict follows; an exact law may refute or leave open at other deltas."""
    verdict, exact = case["verdict"], case["exact"]
    claimed = _epsilon(case["claimed"]["epsilon"])
    room = claimed + (TOLERANCE + _ROOM) * (1 + claimed)
    lower = 0.0 if exact is None else _epsilon(exact["lower"])
    upper = math.inf if exact is None else _epsilon(exact["upper"])
    broken = case["attack"]["refuted"] is not None
    found = []
    if lower > upper * (1 + _ROOM):
        found.append(f"{path}.exact: the lower bound is above the upper one")
    if case["demonstration"] != (verdict in _DEMONSTRATIONS):
        found.append(f"{path}.verdict: only demonstrations are BROKEN or MISSED")
    if verdict == "holds" and upper > room:
        found.append(f"{path}.verdict: the exact law does not keep the claim")
    if verdict in ("holds", "not refuted") and (
        broken or lower > room or case["certified"] is False
    ):
        found.append(f"{path}.verdict: the claim was refuted")
    if verdict == "BROKEN" and not broken:
        found.append(f"{path}.verdict: no attack refuted the claim")
    return found


def _ratio(bounds: tuple[float, float], delta: float) -> float:
    above, below = bounds[0] - delta, bounds[1]
    if above <= 0:
        return -math.inf
    return math.inf if below <= 0 else math.log(above / below)


def _value(number: Mapping[str, Any]) -> float:
    return float(_numbers.exact(number))


def _epsilon(number: Mapping[str, Any] | None) -> float:
    """An epsilon of an audit; null where it is infinite."""
    return math.inf if number is None else _value(number)

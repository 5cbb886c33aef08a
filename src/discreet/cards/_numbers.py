"""The numbers of a card, each rounded in the safe direction, from what was released alone."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any

from discreet.accounting import composition
from discreet.accounting.filters import rho_of
from discreet.accounting.guarantee import SHOWN_DELTA, Guarantee, stated_delta
from discreet.accounting.meaning import FALSE_POSITIVES
from discreet.accounting.periods import HOW, Released, period_event
from discreet.core import events
from discreet.core._validate import count
from discreet.core.errors import Unsupported
from discreet.core.events import Event
from discreet.core.relation import NeighboringRelation
from discreet.ledger._filter_rules import rule_for

Content = dict[str, Any]
DELTAS = (Fraction(1, 10**4), Fraction(1, 10**6), Fraction(1, 10**8), Fraction(1, 10**10))
"""Where a card states epsilon."""
_UP, _DOWN = (Context(prec=12, rounding=way) for way in (ROUND_CEILING, ROUND_FLOOR))


def number(value: float | Fraction, *, up: bool = True) -> Content:
    """A bound as a decimal that is not below it (if not ``up``: not above it), and as a double."""
    exact = Fraction(value)
    decimal = (
        (_UP if up else _DOWN)
        .divide(Decimal(exact.numerator), Decimal(exact.denominator))
        .normalize()
    )
    return {"text": _text(decimal), "value": float(decimal)}


def _text(decimal: Decimal) -> str:
    if -20 <= decimal.adjusted() <= 20:
        return f"{decimal:f}"
    return f"{decimal:e}".lower().replace("e+", "e")


def optional(value: float | Fraction | None, *, up: bool = True) -> Content | None:
    """The same; null for what is infinite or not known."""
    return None if value is None or not math.isfinite(value) else number(value, up=up)


def exact(content: Mapping[str, Any]) -> Fraction:
    """What a number of a card says."""
    return Fraction(Decimal(content["text"]))


@lru_cache(maxsize=1 << 15)
def epsilon(event: Event, delta: Fraction) -> float:
    """Epsilon at a delta, an upper bound."""
    return composition.epsilon(event, delta=delta).value


def rho(event: Event) -> Fraction | None:
    """The zCDP of an event, if it has one."""
    try:
        return rho_of(event)
    except (Unsupported, OverflowError):
        return None


def mu(event: Event) -> float | None:
    """The GDP of an event, if it has one, rounded up."""
    limit = rule_for(Guarantee(events.GdpEvent(Fraction(1)), NeighboringRelation.ADD_REMOVE))
    try:
        (square,) = limit.price(event)
    except (Unsupported, OverflowError):
        return None
    return None if square is None else math.sqrt(square) * (1 + 1e-12)


def variant(guarantee: Guarantee) -> str:
    """The name of the kind of guarantee that says most."""
    if guarantee.relation is NeighboringRelation.LOCAL:
        return "local"
    if math.isfinite(epsilon(guarantee.event, Fraction(0))):
        return "pure"
    if mu(guarantee.event) is not None:
        return "gdp"
    return "approximate" if rho(guarantee.event) is None else "zcdp"


def shown_delta(guarantee: Guarantee, delta: float | None) -> Fraction:
    """The delta of a card: zero where there is a pure epsilon, else what is asked for."""
    if delta is None and math.isfinite(epsilon(guarantee.event, Fraction(0))):
        return Fraction(0)
    wanted = SHOWN_DELTA if delta is None else delta
    return Fraction(str(stated_delta(guarantee, delta=wanted)))


def numbers(guarantee: Guarantee, delta: Fraction) -> Content:
    """Epsilon, rho, mu, epsilon at several deltas, and what an attacker gains."""
    event = guarantee.event
    meaning = guarantee.meaning()
    return {
        "variant": variant(guarantee),
        "epsilon": optional(epsilon(event, delta)),
        "delta": number(delta),
        "rho": optional(rho(event)),
        "mu": optional(mu(event)),
        "epsilons": [
            {"delta": number(one), "epsilon": optional(epsilon(event, one))} for one in DELTAS
        ],
        "method": composition.epsilon(event, delta=delta).by,
        "attack": {
            "advantage": number(meaning.advantage),
            "tpr": [
                {"fpr": number(_decimal(one)), "tpr": number(meaning.true_positive_rate(one))}
                for one in FALSE_POSITIVES
            ],
        },
    }


def _decimal(value: float) -> Fraction:
    return Fraction(str(value))


def period(event: Event, length: str, many: int, delta: Fraction, released: Released) -> Content:
    """What a person pays over so many units, released separately or together."""
    times = count("periods", many)
    whole = period_event(event, times, released)
    return {
        "length": length,
        "count": times,
        "how": HOW[released],
        "epsilon": optional(epsilon(whole, delta)),
        "delta": number(delta),
    }


def recomputed(
    card: Mapping[str, Any], guarantee: Guarantee
) -> list[tuple[str, Content | None, Any]]:
    """Each stated number of the privacy block, with what follows from the event of the card."""
    stated, event = card["privacy"], guarantee.event
    found: list[tuple[str, Content | None, Any]] = [
        ("privacy.epsilon", stated["epsilon"], epsilon(event, exact(stated["delta"]))),
        ("privacy.rho", stated["rho"], rho(event)),
        ("privacy.mu", stated["mu"], mu(event)),
    ]
    for place, one in enumerate(stated["epsilons"]):
        value = epsilon(event, exact(one["delta"]))
        found.append((f"privacy.epsilons[{place}].epsilon", one["epsilon"], value))
    for place, one in enumerate(stated.get("periods", ())):
        released = "together" if one["how"] == HOW["together"] else "separately"
        whole = period_event(event, one["count"], released)
        value = epsilon(whole, exact(one["delta"]))
        found.append((f"privacy.periods[{place}].epsilon", one["epsilon"], value))
    meaning = guarantee.meaning()
    attack = stated["attack"]
    found.append(("privacy.attack.advantage", attack["advantage"], meaning.advantage))
    for place, one in enumerate(attack["tpr"]):
        rate = meaning.true_positive_rate(float(exact(one["fpr"])))
        found.append((f"privacy.attack.tpr[{place}].tpr", one["tpr"], rate))
    return found

"""Limits and costs in the words of the account: epsilon (at its delta), rho or mu."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

from discreet.accounting import composition
from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core._rational import round_down, round_up
from discreet.core.errors import Unsupported
from discreet.core.events import Event
from discreet.core.number_format import number, short
from discreet.ledger._filter_rules import rule_for

LimitMeasure: TypeAlias = Literal["epsilon", "rho", "mu"]


def limit_measure(limit: Guarantee) -> LimitMeasure:
    """The measure in which a limit counts."""
    match limit.event:
        case events.ZcdpEvent():
            return "rho"
        case events.GdpEvent():
            return "mu"
        case _:
            return "epsilon"


def limit_delta(limit: Guarantee) -> float:
    """The delta at which a limit tells epsilon; zero where there is none."""
    event = limit.event
    return round_down(event.delta) if isinstance(event, events.ApproxEvent) else 0.0


def limit_words(limit: Guarantee) -> str:
    """The limit as its owner would say it."""
    match limit.event:
        case events.ApproxEvent(epsilon, delta) if delta:
            return f"epsilon {number(epsilon)}, delta {number(delta)}"
        case events.PureEvent(epsilon) | events.ApproxEvent(epsilon, _):
            return f"epsilon {number(epsilon)}"
        case events.ZcdpEvent(rho, _):
            return f"rho {number(rho)}"
        case events.GdpEvent(mu):
            return f"mu {number(mu)}"
        case _:
            return "an unknown limit"


def cost_amount(event: Event, limit: Guarantee) -> float:
    """What an event costs by itself in the measure of a limit, rounded up."""
    delta = limit_delta(limit)
    if delta:
        return composition.epsilon(event, delta=delta).value
    price = rule_for(limit).price(event)[0]
    amount = math.inf if price is None else round_up(price)
    if isinstance(limit.event, events.GdpEvent):
        return math.nextafter(math.sqrt(amount), math.inf)
    return amount


def cost_words(event: Event, limit: Guarantee) -> str:
    """What an event costs by itself, in the measure of a limit; never by the name of its class."""
    measure, delta = limit_measure(limit), limit_delta(limit)
    try:
        pure, failure = composition.basic(event)
        stated = measure == "epsilon" and pure is not None and not failure
        if stated:
            return f"epsilon {short(float(pure or 0))}"
        amount = cost_amount(event, limit)
    except Unsupported:
        amount = math.inf
    at = f" at delta {number(delta)}" if delta else ""
    if not math.isfinite(amount):
        return f"a cost without a bound in {measure}{at}"
    return f"{measure} {short(amount)}{at}"

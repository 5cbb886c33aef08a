"""The terms of an account: its limit and its policy, fixed when it is opened."""

from __future__ import annotations

import json
from dataclasses import dataclass

from discreet.accounting.guarantee import Guarantee
from discreet.ledger.journal import Content, Row
from discreet.ledger.rules import Composition, Rule, rule_for


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """The terms of an account beside its limit; they never change.

    ``composition`` and ``orders``: how a limit approx(epsilon, delta) composes (rules.ApproxRule).
    ``adaptive=False`` is a promise that no event depends on an earlier output; then the exact
    composition decides where the sums say no. ``renewals``: how often the budget may start anew.
    """

    composition: Composition | None = None
    orders: tuple[float, ...] = ()
    adaptive: bool = True
    renewals: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """An account on the way from the root: what is needed to decide there."""

    id: int
    name: str
    limit: Guarantee
    policy: Policy
    rule: Rule


def read_level(row: Row) -> Level:
    """The terms of an account from its row."""
    limit = Guarantee.from_json(row.allowance)
    policy = read_policy(row.policy)
    rule = rule_for(limit, composition=policy.composition, orders=policy.orders)
    return Level(id=row.id, name=row.name, limit=limit, policy=policy, rule=rule)


def policy_content(policy: Policy) -> Content:
    """As JSON."""
    return {
        "adaptive": policy.adaptive,
        "composition": policy.composition,
        "orders": list(policy.orders),
        "renewals": policy.renewals,
    }


def read_policy(text: str) -> Policy:
    """The inverse of ``policy_content``."""
    content = json.loads(text)
    return Policy(**{**content, "orders": tuple(content["orders"])})

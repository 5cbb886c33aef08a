"""Quantiles of columns with up to 2**63 values: reserved as a whole, read level by level."""

from __future__ import annotations

import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.accounting.guarantee import Guarantee
from discreet.core.errors import InvalidArgument
from discreet.data.schema import Label
from discreet.ledger.account import Receipt
from discreet.noise.distribution import Ints
from discreet.noise.random_source import RandomSource
from discreet.ranges.quantile_search import HierarchicalSearch
from discreet.ranges.table_query import ROWS, with_limits
from discreet.tables._open_table import OpenTable
from discreet.tables.release import (
    describe_epsilon,
    describe_protection,
    fresh_key,
    receipt_content,
    reserve_budget,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class LargeDomainQuantiles:
    """Quantiles to the last digit of the declared values, and how far their ranks may be off."""

    query_text: str
    q: tuple[Fraction, ...]
    values: tuple[Label, ...]
    rank_width: float
    """With probability 95 % no answer is off by more rows than this in rank."""
    mechanism: str
    privacy_statement: str
    guarantee: Guarantee
    receipt: Receipt

    def value(self, q: float) -> Label:
        """The answer to one of the levels that were asked."""
        near = min(self.q, key=lambda known: abs(float(known) - q))
        if abs(float(near) - q) > 1e-9:
            listed = ", ".join(f"{float(known):g}" for known in self.q)
            raise InvalidArgument(f"q must be one of {listed}; got {q}.")
        return self.values[self.q.index(near)]

    def to_json(self) -> str:
        """All of it as text."""
        content: dict[str, Any] = {
            "question": self.query_text,
            "quantiles": [
                {"level": str(q), "value": value if isinstance(value, int | float) else str(value)}
                for q, value in zip(self.q, self.values, strict=True)
            ],
            "rank_width": self.rank_width,
            "mechanism": self.mechanism,
            "protects": self.privacy_statement,
            "receipt": receipt_content(self.receipt),
        }
        return json.dumps(content)

    def __str__(self) -> str:
        found = (f"  {float(q):g}: {v}" for q, v in zip(self.q, self.values, strict=True))
        head = (
            f"{self.query_text} ({describe_epsilon(self.guarantee)}, "
            f"{self.guarantee.relation.value})"
        )
        return "\n".join([head, *found, f"  ranks within ±{self.rank_width:,.4g} rows (95%)"])

    __repr__ = __str__


def release_large_domain_quantiles(
    table: OpenTable, planned: HierarchicalSearch, *, rng: RandomSource
) -> LargeDomainQuantiles:
    """Reserve all of it, then count a level, add noise, and look closer where the quantiles are.

    Theorem: the result is within ``planned.guarantee`` under the table's relation, which the
        account is charged before a row is read.
    Proof: `Descent.guarantee`; edges are made of noisy counts alone.
    Source: docs/theory/ranges.md.
    Needs: an account; columns of the source as declared.
    """
    from discreet.data.execute import collect  # noqa: PLC0415 - engines are slow to import
    from discreet.data.source import check_source  # noqa: PLC0415 - engines are slow to import

    def counts(edges: tuple[int, ...]) -> Ints:
        # A fresh key each time: which rows are kept must not be known or repeated.
        plan = planned.counted(edges)
        return collect(plan, source=table._source, key=fresh_key(rng)).columns[ROWS]

    check_source(planned.counted((planned.bound.lower + 1,)).program(), table._source)
    label = planned.query.text
    with reserve_budget(table.account, planned.guarantee, label=label, rng=rng) as held:
        values = planned.walk(counts, rng=rng)
    return LargeDomainQuantiles(
        query_text=label,
        q=planned.query.q,
        values=values,
        rank_width=planned.rank_width(),
        mechanism=f"descent over {len(planned.widths)} levels: {planned.mechanisms[0]!r}",
        privacy_statement=describe_protection(with_limits(planned.setting, planned.query.limits)),
        guarantee=planned.guarantee,
        receipt=held.receipt,
    )

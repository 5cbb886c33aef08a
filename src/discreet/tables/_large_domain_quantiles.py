"""Quantiles of columns with up to 2**63 values: reserved as a whole, read level by level."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from discreet.accounting.guarantee import Guarantee, describe_epsilon
from discreet.core import canonical_json as canonical
from discreet.core.errors import InvalidArgument
from discreet.core.number_format import number, short
from discreet.core.tabular import Record
from discreet.data.schema import Label
from discreet.ledger.account import Receipt
from discreet.noise.distribution import Ints
from discreet.noise.random_source import RandomSource
from discreet.query.result import Result, records
from discreet.ranges.quantile_search import HierarchicalSearch
from discreet.ranges.table_query import ROWS, with_limits
from discreet.tables._open_table import OpenTable
from discreet.tables.release import (
    describe_protection,
    fresh_key,
    read_receipt,
    receipt_content,
    reserve_budget,
)


@dataclass(frozen=True, kw_only=True, eq=False)
class LargeDomainQuantiles(Result):
    """Hold quantiles that are exact to the last digit of the declared values.

    Attributes:
        query_text: Query in words.
        q: Levels, between 0 and 1.
        values: Quantile of each level.
        rank_width: Number of rows that the rank of a quantile may be off, for all of them with 95%
            confidence.
        mechanism: Mechanisms that added the noise, in words.
        privacy_statement: Who is protected, in words.
        guarantee: Privacy guarantee of the release.
        receipt: Entry of the ledger that paid for it.

    Examples:
        >>> import discreet
        >>> import pandas as pd
        >>> rows = pd.DataFrame({"pay": range(1000)})
        >>> columns = {"pay": discreet.integer(0, 2**40)}
        >>> people = discreet.table(rows, columns=columns, budget=10)
        >>> found = people.large_domain_quantiles("pay", [0.5], epsilon=1)
        >>> found.q, len(found.values)
        ((Fraction(1, 2),), 1)
    """

    query_text: str
    q: tuple[Fraction, ...]
    values: tuple[Label, ...]
    rank_width: float
    mechanism: str
    privacy_statement: str
    guarantee: Guarantee
    receipt: Receipt

    def rows(self, confidence: float = 0.95) -> list[Record]:  # noqa: ARG002 - the bound is of ranks
        """Return one record for each level.

        Args:
            confidence: Without effect: only the error of ranks is known, `rank_width`.

        Returns:
            Dictionaries with the level and `value`; `std`, `low` and `high` are None.

        Examples:
            >>> [row["quantile"] for row in found.rows()]
            [0.5]
        """
        levels = ((float(q),) for q in self.q)
        return records(("quantile",), levels, value=self.values, std=None, low=None, high=None)

    def at(self, q: float) -> Label:
        """Return the quantile of a level.

        Args:
            q: One of the levels of the query.

        Returns:
            The quantile.

        Raises:
            InvalidArgument: The level was not in the query.

        Examples:
            >>> 0 <= found.at(0.5) <= 2**40
            True
        """
        near = min(self.q, key=lambda known: abs(float(known) - q))
        if abs(float(near) - q) > 1e-9:
            listed = ", ".join(map(number, self.q))
            raise InvalidArgument(f"q must be one of {listed}; got {q}.")
        return self.values[self.q.index(near)]

    @classmethod
    def from_json(cls, text: str) -> LargeDomainQuantiles:
        """Read the quantiles of a text.

        Args:
            text: What `to_json` has written.

        Returns:
            The quantiles.

        Raises:
            InvalidArgument: The text holds no such quantiles.

        Examples:
            >>> type(found).from_json(found.to_json()).at(0.5) == found.at(0.5)
            True
        """
        with canonical.reading("quantiles of a large domain"):
            content = json.loads(text)
            listed = content["quantiles"]
            receipt = read_receipt(content["receipt"])
            return cls(
                query_text=str(content["question"]),
                q=tuple(Fraction(one["level"]) for one in listed),
                values=tuple(_read_label(one) for one in listed),
                rank_width=float(content["rank_width"]),
                mechanism=str(content["mechanism"]),
                privacy_statement=str(content["protects"]),
                guarantee=receipt.guarantee,
                receipt=receipt,
            )

    def to_json(self) -> str:
        """Return the release as JSON text.

        Returns:
            Text for `from_json`.

        Examples:
            >>> type(found.to_json()).__name__
            'str'
        """
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
        found = (f"  {number(q)}: {v}" for q, v in zip(self.q, self.values, strict=True))
        head = (
            f"{self.query_text} ({describe_epsilon(self.guarantee)}, "
            f"{self.guarantee.relation.value})"
        )
        return "\n".join([head, *found, f"  ranks within ±{short(self.rank_width)} rows (95%)"])

    __repr__ = __str__


def _read_label(content: dict[str, Any]) -> Label:
    """A label of a numeric column, or of a column of dates."""
    value = content["value"]
    return (
        dt.date.fromisoformat(value)
        if isinstance(value, str)
        else float(value)
        if isinstance(value, float)
        else int(value)
    )


def release_large_domain_quantiles(
    table: OpenTable, planned: HierarchicalSearch, *, rng: RandomSource
) -> LargeDomainQuantiles:
    """Reserve all of it, then count a level, add noise, and look closer where the quantiles are."""
    # Theorem: the result is within `planned.guarantee` under the table's relation, which the
    #   account is charged before a row is read.
    # Proof: `Descent.guarantee`; edges are made of noisy counts alone.
    # Source: docs/theory/ranges.md.
    # Needs: an account; columns of the source as declared.
    from discreet.data.execute import collect  # noqa: PLC0415 - engines are slow to import
    from discreet.data.source import check_source  # noqa: PLC0415 - engines are slow to import

    def counts(edges: tuple[int, ...]) -> Ints:
        # A fresh key each time: which rows are kept must not be known or repeated.
        plan = planned.counted(edges)
        return collect(plan, source=table._source, key=fresh_key(rng)).columns[ROWS]

    check_source(planned.counted((planned.bound.lower + 1,)), table._source)
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

"""Answers to SQL: the released numbers in the order and under the names of the SELECT."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from discreet.accounting.guarantee import Guarantee, describe_epsilon
from discreet.core.tabular import Record, Tabular
from discreet.ledger.account import Receipt
from discreet.query._sql import SqlQuestion
from discreet.query.builders import Query
from discreet.tables.release import Release


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class SqlPlan(Tabular):
    """Hold the queries of a SELECT before anything is released. Made by `Table.plan_sql`.

    Attributes:
        queries: Queries that `Table.release` and `Table.forecast` take.
        text: SQL that was translated.

    Examples:
        >>> import discreet
        >>> import pandas as pd
        >>> people = discreet.table(pd.DataFrame({"age": [23, 35, 41]}), columns={}, budget=1)
        >>> [query.text for query in people.plan_sql("SELECT COUNT(*) AS n FROM people").queries]
        ['count']
    """

    queries: tuple[Query, ...]
    text: str
    _question: SqlQuestion = field(repr=False)

    def rows(self) -> list[Record]:
        """List one record for each column of the answer.

        Returns:
            Records with `column` and `query`, the query in words; for keys of groups it is empty.

        Examples:
            >>> people.plan_sql("SELECT COUNT(*) AS n FROM people").rows()
            [{'column': 'n', 'query': 'count'}]
        """
        return [
            {
                "column": column.name,
                "query": "" if column.query is None else self.queries[column.query].text,
            }
            for column in self._question.columns
        ]

    def __str__(self) -> str:
        lines = [f"  {row['column']}: {row['query'] or 'key of the groups'}" for row in self.rows()]
        return "\n".join([self.text.strip(), *lines])

    __repr__ = __str__


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class SqlAnswer(Tabular):
    """Hold the released numbers of a SELECT. Made by `Table.sql`.

    ORDER BY and LIMIT work on the released numbers, so they cost nothing.

    Attributes:
        releases: Release of each aggregate, with errors, guarantee and JSON.
        text: SQL that was answered.

    Examples:
        >>> import discreet
        >>> import pandas as pd
        >>> people = discreet.table(pd.DataFrame({"age": [23, 35, 41]}), columns={}, budget=10)
        >>> answer = people.sql("SELECT COUNT(*) AS n FROM people", epsilon=0.5)
        >>> len(answer.releases), answer.guarantee.epsilon()
        (1, 0.5)
    """

    releases: tuple[Release, ...]
    text: str
    _question: SqlQuestion = field(repr=False)

    @property
    def guarantee(self) -> Guarantee:
        """Guarantee of all numbers together, as it was charged."""
        return self.releases[0].receipt.guarantee

    @property
    def receipt(self) -> Receipt:
        """Entry of the ledger that paid."""
        return self.releases[0].receipt

    def rows(self, confidence: float = 0.95) -> list[Record]:
        """List the rows of the answer, in the order of the SELECT.

        Args:
            confidence: Probability with which each interval holds.

        Returns:
            Records with the columns of the SELECT. After each number stand the ends of its
            interval, `NAME low` and `NAME high`; None where there is none.

        Examples:
            >>> answer = people.sql("SELECT COUNT(*) AS n FROM people", epsilon=1)
            >>> list(answer.rows()[0])
            ['n', 'n low', 'n high']
        """
        answered = [release.rows(confidence) for release in self.releases]
        found: list[tuple[list[Any], Record]] = []
        for place in range(len(answered[0])):
            row: Record = {}
            plain: list[Any] = []
            for column in self._question.columns:
                if column.query is None:
                    plain.append(answered[0][place][str(column.key)])
                    row[column.name] = plain[-1]
                    continue
                number = answered[column.query][place]
                plain.append(number["value"])
                row |= {
                    column.name: number["value"],
                    f"{column.name} low": number["low"],
                    f"{column.name} high": number["high"],
                }
            found.append((plain, row))
        for place, descending in reversed(self._question.order):
            found.sort(key=_by(place), reverse=descending)
        return [row for _, row in found[: self._question.limit]]

    def _rows_at(self, confidence: float | None) -> list[Record]:
        return self.rows() if confidence is None else self.rows(confidence)

    def __str__(self) -> str:
        head = f"{self.text.strip()}  ({describe_epsilon(self.guarantee)})"
        lines = []
        for row in self.rows():
            told = []
            for column in self._question.columns:
                words = self._cell(row, column.name)
                if row.get(f"{column.name} low") is not None:
                    ends = (self._cell(row, f"{column.name} {end}") for end in ("low", "high"))
                    words += " (95% {} to {})".format(*ends)
                told.append(f"{column.name} {words}")
            lines.append(f"  {', '.join(told)}")
        return "\n".join([head, *lines])

    __repr__ = __str__


def _by(place: int) -> Callable[[tuple[list[Any], Record]], tuple[bool, Any]]:
    """Keys of one column are of one type; what is missing comes last."""

    def key(found: tuple[list[Any], Record]) -> tuple[bool, Any]:
        value = found[0][place]
        return (value is None, str(value) if isinstance(value, str) else value)

    return key

"""A table that somebody else holds: the verbs of a local one, answered by its server.

What is public — forecasts, amounts, plans — is computed here, by the same code as for a local
table. What reads data is asked of the server, which charges the caller's account there.
"""

from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Never, Unpack

from discreet.apps.client.connection import Connection, ServerSilent, named
from discreet.apps.client.schema import setting_of
from discreet.apps.sent import question
from discreet.core.errors import Unsupported
from discreet.core.exact import Number
from discreet.data.expression import Expression
from discreet.data.written import write_label
from discreet.queries.ask import Query, Value
from discreet.queries.budget import Budget, budget
from discreet.queries.ranges.grid_question import AskedGrid, rectangles
from discreet.queries.ranges.question import Asked, ranges
from discreet.tables.ranged import Priced, split
from discreet.tables.ranges import ChargedGrid, ChargedRanges
from discreet.tables.release import Release
from discreet.tables.table import Table

_WAIT_S = 10
"""So long the server may keep a request, instead of being asked again and again."""
_PAUSE_S = 0.05
_OPEN = ("queued", "running")


def _elsewhere(verb: str) -> Callable[..., Never]:
    def refuse(*_: object, **__: object) -> Never:
        raise Unsupported(
            f"{verb} is for a table that is here: a server answers count, units, sum, mean, "
            "variance, covariance, median, quantiles, histogram, ranges, grid and release."
        )

    return refuse


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ServedTable(Table):
    """A private table on a server; see `connect`."""

    name: str
    connection: Connection = field(repr=False)

    # What reads data in ways that a server does not offer.
    discover: ClassVar[Any] = _elsewhere("discover")
    fine_quantiles: ClassVar[Any] = _elsewhere("fine_quantiles")
    join: ClassVar[Any] = _elsewhere("join")
    join_units: ClassVar[Any] = _elsewhere("join_units")
    run: ClassVar[Any] = _elsewhere("run")
    run_all: ClassVar[Any] = _elsewhere("run_all")
    suggest_bounds: ClassVar[Any] = _elsewhere("suggest_bounds")
    suggest_limits: ClassVar[Any] = _elsewhere("suggest_limits")

    @property
    def remaining(self) -> float:
        """What the caller's account has left, in the currency of its limit."""
        return float(self._budget()["remaining"])

    @property
    def limit(self) -> str:
        """The limit of the caller's account, in words."""
        return str(self._budget()["limit_words"])

    def release(
        self,
        queries: Sequence[Query],
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        weights: Sequence[Number] | None = None,
        label: str | None = None,  # noqa: ARG002 - the words of a local table
        request_id: str | None = None,
    ) -> tuple[Release, ...]:
        """Answer several questions with one budget, split by ``weights``, on the server.

        All that can be refused is refused here first, and costs nothing. The same ``request_id``
        with the same questions is one charge and one answer, however often it is asked. The server
        writes the questions themselves into its ledger, not the ``label``.
        """
        amount = budget(epsilon=epsilon, delta=delta, rho=rho)
        # Mistakes are found here; the noise is designed there, so a simple amount will do.
        self._design(queries, weights, epsilon=1)
        shares = [1] * len(queries) if weights is None else weights
        words = [
            {**question(one), **_amount(amount), "weight": write_label(weight)}
            for one, weight in zip(queries, shares, strict=True)
        ]
        found = self._asked(words, request_id)["releases"]
        return tuple(Release.from_json(json.dumps(one)) for one in found)

    def ranges(
        self,
        value: Value,
        *,
        workload: Asked = "all",
        bins: int | None = None,
        edges: Iterable[Number] | None = None,
        where: Expression | None = None,
        **more: Unpack[Priced],
    ) -> ChargedRanges:
        """Answers to every range of a column, each with its exact error, for one price."""
        own, amount = split(more)
        query = ranges(value, workload=workload, bins=bins, edges=edges, where=where, limits=own)
        found = self._ranged({**question(query), **_amount(amount)})
        return ChargedRanges.from_json(found)

    def grid(
        self,
        values: Sequence[Value],
        *,
        workload: AskedGrid = "all",
        bins: Mapping[str, int] | None = None,
        where: Expression | None = None,
        **more: Unpack[Priced],
    ) -> ChargedGrid:
        """Answers to every rectangle of several columns, each with its exact error."""
        own, amount = split(more)
        query = rectangles(values, workload=workload, bins=bins, where=where, limits=own)
        return ChargedGrid.from_json(self._ranged({**question(query), **_amount(amount)}))

    def __repr__(self) -> str:
        return (
            f"ServedTable({self.name!r} of {self.connection.host}, "
            f"columns={sorted(self.setting.schema)}, relation={self.setting.relation!r})"
        )

    def _budget(self) -> Mapping[str, Any]:
        found: Mapping[str, Any] | None = self.connection.get("tables", self.name)["budget"]
        if found is None:
            raise Unsupported(f"{self.name}: the owner has opened no account for this token.")
        return found

    def _ranged(self, asked: dict[str, Any]) -> str:
        return json.dumps(self._asked([asked], None)["ranges"][0])

    def _asked(self, words: list[dict[str, Any]], request_id: str | None) -> Mapping[str, Any]:
        """Hand in a release and wait for it; what is asked twice under one id is one release."""
        named_ = request_id or secrets.token_urlsafe(16)
        try:
            body = {"statistics": words, "request_id": named_, "wait": _WAIT_S}
            return _waited(self.connection, self.name, body)
        except ServerSilent as error:
            raise ServerSilent(
                f"{error} It may be under way: release(..., request_id={named_!r}) with the same "
                "questions is charged at most once."
            ) from None


def served(connection: Connection, name: str) -> ServedTable:
    """The table of that name, as its server declares it."""
    shown = connection.get("tables", name)
    return ServedTable(
        source=None, setting=setting_of(shown), account=None, name=name, connection=connection
    )


def _waited(connection: Connection, name: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
    job = connection.post("tables", name, "releases", body=body)
    while job["state"] in _OPEN:
        time.sleep(_PAUSE_S)
        job = connection.get("releases", job["id"], wait=_WAIT_S)
    if job["state"] != "done":
        raise named(job["problem"], job["error"])
    found: Mapping[str, Any] = job["result"]
    return found


def _amount(given: Budget) -> dict[str, Any]:
    parts = {"epsilon": given.epsilon, "delta": given.delta, "rho": given.rho}
    return {name: write_label(one) for name, one in parts.items() if one is not None}

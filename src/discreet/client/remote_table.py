"""Tables of a server, with the methods of a local table.

What is public (forecasts, budgets, plans) is computed here, by the same code as for a local table.
What reads data is sent to the server, which charges the caller's account there.
"""

from __future__ import annotations

import datetime as dt
import json
import secrets
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Never, Unpack, overload

from discreet.client.connection import (
    DEFAULT_TIMEOUT,
    Connection,
    ServerUnreachable,
    connection,
    error_of,
)
from discreet.core._rational import Number
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.data import schema
from discreet.data.expression import Expression
from discreet.data.expression_json import write_label
from discreet.data.program import ContributionLimits
from discreet.data.schema import OTHER, ColumnSpec
from discreet.query._release_plan import TableSpec
from discreet.query.budget import QueryBudget, budget
from discreet.query.builders import Query, Value, Values
from discreet.ranges.grid.table_query import GridQuery, GridWorkloadLike
from discreet.ranges.table_query import WorkloadLike
from discreet.spec.query_json import write_query
from discreet.tables.range_release import (
    AnyRangeRelease,
    ChargedGridRelease,
    ChargedRangeRelease,
)
from discreet.tables.release import Release
from discreet.tables.table import RangeBudget, Table, range_query, split_range_args

_RELATIONS = {
    "add_remove": NeighboringRelation.ADD_REMOVE,
    "replace_one": NeighboringRelation.REPLACE_ONE,
}
_LIMITS = {
    "max_rows_per_unit": "rows_per_unit",
    "max_groups_per_unit": "groups_per_unit",
    "max_rows_per_unit_per_group": "rows_per_unit_and_group",
}
"""Contribution limits, and what they are called in the answers of a server."""
_WAIT_S = 10
"""So long the server may keep a request, instead of being asked again and again."""
_PAUSE_S = 0.05
_OPEN = ("queued", "running")


# ── Declarations ─────────────────────────────────────────────────────────────────────────────────


def table_spec(shown: Mapping[str, Any]) -> TableSpec:
    """What forecasts and plans follow from; the server declares it, nothing is read."""
    try:
        return TableSpec(
            schema={one["name"]: _column(one) for one in shown["columns"]},
            privacy_unit=shown["unit"],
            limits=ContributionLimits(**{name: shown[sent] for name, sent in _LIMITS.items()}),
            relation=_RELATIONS[shown["relation"]],
        )
    except (KeyError, TypeError, ValueError) as error:
        if isinstance(error, InvalidArgument):
            raise
        raise InvalidArgument(
            "url: the server describes its table in words unknown here."
        ) from None


def _column(shown: Mapping[str, Any]) -> ColumnSpec:
    lower, upper, missing = shown["lower"], shown["upper"], shown["missing"]
    match shown["kind"]:
        case "integer":
            return schema.integer(lower=lower, upper=upper, missing=missing)
        case "real":
            return schema.real(lower=lower, upper=upper, granularity=shown["step"], missing=missing)
        case "category":
            names = [level for level in shown["levels"] if level != OTHER]
            other = OTHER in shown["levels"]
            return schema.category(names, include_other=other, missing=missing)
        case "date":
            ends = {"lower": _time(lower), "upper": _time(upper), "missing": _time(missing)}
            return schema.date(**ends, step=shown["step"])
        case "boolean":
            return schema.boolean(missing=missing)
        case "text":
            return schema.text()
    raise InvalidArgument(f"url: the server has columns of kind {shown['kind']!r}.")


def _time(text: str) -> dt.date:
    return dt.date.fromisoformat(text) if len(text) == 10 else dt.datetime.fromisoformat(text)


# ── The table ────────────────────────────────────────────────────────────────────────────────────


def _elsewhere(verb: str) -> Callable[..., Never]:
    def refuse(*_: object, **__: object) -> Never:
        raise Unsupported(
            f"{verb} is for a table that is here: a server answers count, count_units, sum, "
            "mean, variance, covariance, median, quantiles, histogram, ranges and release."
        )

    return refuse


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RemoteTable(Table):
    """A private table on a server; see `connect`."""

    name: str
    connection: Connection = field(repr=False)

    # What reads data in ways that a server does not offer.
    discover_keys: ClassVar[Any] = _elsewhere("discover_keys")
    large_domain_quantiles: ClassVar[Any] = _elsewhere("large_domain_quantiles")
    join: ClassVar[Any] = _elsewhere("join")
    join_by_unit: ClassVar[Any] = _elsewhere("join_by_unit")
    _run: ClassVar[Any] = _elsewhere("_run")
    _run_all: ClassVar[Any] = _elsewhere("_run_all")
    suggest_bounds: ClassVar[Any] = _elsewhere("suggest_bounds")
    suggest_contribution_limits: ClassVar[Any] = _elsewhere("suggest_contribution_limits")

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
            {**write_query(one), **_amount(amount), "weight": write_label(weight)}
            for one, weight in zip(queries, shares, strict=True)
        ]
        found = self._asked(words, request_id)["releases"]
        return tuple(Release.from_json(json.dumps(one)) for one in found)

    @overload
    def ranges(
        self,
        value: Value,
        *,
        workload: WorkloadLike = "all",
        bins: int | None = None,
        edges: Iterable[Number] | None = None,
        where: Expression | None = None,
        **more: Unpack[RangeBudget],
    ) -> ChargedRangeRelease: ...

    @overload
    def ranges(
        self,
        value: Values,
        *,
        workload: GridWorkloadLike = "all",
        bins: Mapping[str, int] | None = None,
        where: Expression | None = None,
        **more: Unpack[RangeBudget],
    ) -> ChargedGridRelease: ...

    def ranges(
        self,
        value: Value | Values,
        *,
        workload: Any = "all",
        bins: int | Mapping[str, int] | None = None,
        edges: Iterable[Number] | None = None,
        where: Expression | None = None,
        **more: Unpack[RangeBudget],
    ) -> AnyRangeRelease:
        """Answers to every range of a column, or to every rectangle of a list of columns."""
        own, amount = split_range_args(more)
        query = range_query(
            value, workload=workload, bins=bins, edges=edges, where=where, limits=own
        )
        found = self._ranged({**write_query(query), **_amount(amount)})
        if isinstance(query, GridQuery):
            return ChargedGridRelease.from_json(found)
        return ChargedRangeRelease.from_json(found)

    def __repr__(self) -> str:
        return (
            f"RemoteTable({self.name!r} of {self.connection.host}, "
            f"columns={sorted(self.spec.schema)}, relation={self.spec.relation!r})"
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
        except ServerUnreachable as error:
            raise ServerUnreachable(
                f"{error} It may be under way: release(..., request_id={named_!r}) with the same "
                "questions is charged at most once."
            ) from None


def _open(connection: Connection, name: str) -> RemoteTable:
    """The table of that name, as its server declares it."""
    shown = connection.get("tables", name)
    return RemoteTable(
        _source=None, spec=table_spec(shown), account=None, name=name, connection=connection
    )


def _waited(connection: Connection, name: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
    job = connection.post("tables", name, "releases", body=body)
    while job["state"] in _OPEN:
        time.sleep(_PAUSE_S)
        job = connection.get("releases", job["id"], wait=_WAIT_S)
    if job["state"] != "done":
        raise error_of(job["problem"], job["error"])
    found: Mapping[str, Any] = job["result"]
    return found


def _amount(given: QueryBudget) -> dict[str, Any]:
    parts = {"epsilon": given.epsilon, "delta": given.delta, "rho": given.rho}
    return {name: write_label(one) for name, one in parts.items() if one is not None}


# ── Connecting ───────────────────────────────────────────────────────────────────────────────────


def connect(
    url: str,
    token: str,
    *,
    table: str | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    ca_file: str | None = None,
) -> RemoteTable:
    """A table of a server, with the verbs of a local one: `discreet serve` is at the other end.

    ``table`` may be left out if the server has one. ``token`` is what the owner was shown for you.
    For ``timeout`` seconds a server that is busy or away is asked again, always under the same
    request id: one charge, one answer. ``ca_file`` is a file with the certificate of the server,
    if no public authority has signed it.
    """
    made = connection(url, token, timeout=timeout, ca_file=ca_file)
    try:
        names = [str(one["name"]) for one in made.get("tables")]
    except (KeyError, TypeError):
        raise InvalidArgument("url: what answers there is no server of discreet.") from None
    if table is None and len(names) == 1:
        table = names[0]
    if table not in names:
        raise InvalidArgument(f"table must be one of {', '.join(names)}; got {table!r}.")
    return _open(made, str(table))

"""Tables of a server, with the methods of a local table.

What is public (forecasts, budgets, plans) is computed here, by the same code as for a local table.
What reads data is sent to the server, which charges the caller's account there.
"""

from __future__ import annotations

import datetime as dt
import json
import secrets
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

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
from discreet.data.expression_json import write_label
from discreet.data.program import ContributionLimits
from discreet.data.schema import MISSING, OTHER, ColumnSpec
from discreet.data.unit import read_unit
from discreet.query._release_plan import TableSpec
from discreet.query.budget import NoiseName, QueryBudget, budget
from discreet.query.builders import Query
from discreet.ranges.grid.table_query import GridQuery
from discreet.ranges.table_query import RangeQuery
from discreet.spec.query_json import write_query
from discreet.tables._query_methods import QueryMethods
from discreet.tables.range_release import (
    AnyRangeRelease,
    ChargedGridRelease,
    ChargedRangeRelease,
)
from discreet.tables.release import Release

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
        declared = {one["name"]: _column(one) for one in shown["columns"]}
        return TableSpec(
            schema=declared,
            privacy_unit=read_unit(shown["unit"], declared),
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
    required = shown.get("required", False)  # servers of 0.1 do not say it
    match shown["kind"]:
        case "integer":
            return schema.integer(lower, upper, missing=missing, required=required)
        case "real":
            return schema.real(
                lower, upper, granularity=shown["step"], missing=missing, required=required
            )
        case "category":
            groups = (OTHER, MISSING) if missing == MISSING else (OTHER,)
            names = [level for level in shown["levels"] if level not in groups]
            other = OTHER in shown["levels"]
            return schema.category(names, include_other=other, missing=missing, required=required)
        case "date":
            stands = None if missing is None else _time(missing)
            return schema.date(
                _time(lower), _time(upper), step=shown["step"], missing=stands, required=required
            )
        case "boolean":
            return schema.boolean(missing=missing, required=required)
        case "text":
            return schema.text()
    raise InvalidArgument(f"url: the server has columns of kind {shown['kind']!r}.")


def _time(text: str) -> dt.date:
    return dt.date.fromisoformat(text) if len(text) == 10 else dt.datetime.fromisoformat(text)


# ── The table ────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RemoteTable(QueryMethods):
    """A private table on a server, with the queries of a local table; see `connect`.

    What a server does not offer (private key discovery, joins, suggestions from the data) is not
    here.

    Attributes:
        name: Name of the table on the server.
        spec: Columns, privacy unit, contribution limits and neighboring relation, as the server
            declares them.
        connection: Connection to the server.

    Examples:
        >>> import discreet
        >>> people = discreet.connect("https://dp.example.org", "a token")  # doctest: +SKIP
        >>> people.spec.privacy_unit  # doctest: +SKIP
        'person'
    """

    name: str
    spec: TableSpec = field(repr=False)
    connection: Connection = field(repr=False)

    @property
    def remaining(self) -> float:
        """Budget that the account of the token has left, in the measure of its limit."""
        return float(self._budget()["remaining"])

    @property
    def limit(self) -> str:
        """Limit of the account of the token, in words."""
        return str(self._budget()["limit_words"])

    def release(
        self,
        queries: Sequence[Query],
        *,
        epsilon: Number | None = None,
        delta: Number | None = None,
        rho: Number | None = None,
        noise: NoiseName | None = None,
        weights: Sequence[Number] | None = None,
        label: str | None = None,  # noqa: ARG002 - the words of a local table
        request_id: str | None = None,
    ) -> tuple[Release, ...]:
        """Release several queries with one budget, on the server.

        Mistakes are found here first and cost nothing.

        Args:
            queries: Queries, made for example by `discreet.query.mean`.
            epsilon: Privacy loss of the release, as epsilon, for all queries together.
            delta: Probability parameter of (epsilon, delta)-DP, which goes with `epsilon`.
            rho: Privacy loss as rho of zCDP, instead of `epsilon` and `delta`.
            noise: "laplace" or "gaussian". If None, the one with the smaller margin of error; with
                `epsilon` alone it is Laplace noise.
            weights: Relative share of the budget for each query. If None, all have the same share.
            label: Not used: the server writes the queries themselves into its ledger.
            request_id: Name of this request. The same name with the same queries is charged once
                and has one answer, however often it is sent. If None, a random one.

        Returns:
            One release for each query, in order.

        Raises:
            BudgetExceeded: The account has not enough budget left; nothing is charged.
            ServerUnreachable: The server did not answer in time; repeat the request under the same
                name.

        Privacy:
            All releases together have the stated privacy loss for one privacy unit under the
            table's neighboring relation. The server charges the account before a row is read.

        Examples:
            >>> people = discreet.connect("https://dp.example.org", "a token")  # doctest: +SKIP
            >>> (number,) = people.release([query.count()], epsilon=0.1)  # doctest: +SKIP
        """
        amount = budget(epsilon=epsilon, delta=delta, rho=rho, noise=noise)
        # Mistakes are found here; the noise is designed there, so a simple amount will do.
        self._design(queries, weights, epsilon=1)
        shares = [1] * len(queries) if weights is None else weights
        words = [
            {**write_query(one), **_amount(amount), "weight": write_label(weight)}
            for one, weight in zip(queries, shares, strict=True)
        ]
        found = self._asked(words, request_id)["releases"]
        return tuple(Release.from_json(json.dumps(one)) for one in found)

    def _release_ranges(
        self,
        query: RangeQuery | GridQuery,
        amount: QueryBudget,
        *,
        label: str | None,  # noqa: ARG002 - the server writes the query itself into its ledger
    ) -> AnyRangeRelease:
        content = {**write_query(query), **_amount(amount)}
        found = json.dumps(self._asked([content], None)["ranges"][0])
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
    return RemoteTable(spec=table_spec(shown), name=name, connection=connection)


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
    noise = {} if given.noise is None else {"noise": given.noise}
    return {name: write_label(one) for name, one in parts.items() if one is not None} | noise


# ── Connecting ───────────────────────────────────────────────────────────────────────────────────


def connect(
    url: str,
    token: str,
    *,
    table: str | None = None,
    timeout: float = DEFAULT_TIMEOUT,
    ca_file: str | None = None,
) -> RemoteTable:
    """Connect to a table of a server, with the methods of a local table.

    The server is started by `discreet serve`. Forecasts, budgets and plans are computed locally.
    What reads data is sent to the server, which charges the account of the token there.

    Args:
        url: Address of the server, such as `https://dp.example.org`. Plain HTTP is accepted for the
            own machine only.
        token: Access token that the owner of the server made for you.
        table: Name of the table. It may be left out if the server has only one.
        timeout: Seconds for which a server that is busy or away is asked again. A request keeps its
            id, so it is charged at most once.
        ca_file: File with the certificate of the server in PEM, if no public authority has signed
            it.

    Returns:
        A table with `count`, `mean`, `ranges`, `release` and the other methods that a server
        offers.

    Raises:
        InvalidArgument: The address is no server of discreet, or it has no such table.
        ServerUnreachable: The server did not answer in time.

    Examples:
        >>> import discreet
        >>> discreet.connect("https://dp.example.org", "")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ...
        discreet.core.errors.InvalidArgument: ...
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

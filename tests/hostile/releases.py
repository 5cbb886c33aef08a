"""What else a table releases: ranges, keys, suggestions, joins, personal budgets, models."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl

import discreet
from discreet.core.relation import NeighboringRelation
from tests.data import sources
from tests.hostile import tables
from tests.hostile.catalogue import strange
from tests.hostile.harness import Door, Pair, Session

ADD, REPLACE = NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE
TEXTS = {**tables.COLUMNS, "t": discreet.text(strip=True, missing_values=["z", "it's --"])}


def _keyed(release: Any) -> object:
    return [
        (type(k).__name__, type(v).__name__)
        for k, v in zip(release.keys, release.value, strict=True)
    ]


SQL = [
    "SELECT t, COUNT(*), SUM(w), AVG(x) FROM v GROUP BY t",
    "SELECT COUNT(x), SUM(COALESCE(w, 2)) FROM v WHERE d IS NOT NULL",
    "SELECT AVG(x) FILTER (WHERE b IS TRUE), 1.0 * SUM(x) / SUM(w) FROM v",
    "SELECT EXTRACT(MONTH FROM d) AS m, MEDIAN(w) FROM v WHERE NOT (x > 3) GROUP BY m",
]
ASKED: dict[str, tuple[str, Callable[[Any], object]]] = {
    "ranges of a table": ("ranges", lambda t: t.ranges("w", epsilon=1).cells),
    "ranges of reals": ("ranges", lambda t: t.ranges("x", bins=8, epsilon=1).cells),
    "ranges of two columns": (
        "ranges",
        lambda t: t.ranges(["w", "t"], epsilon=1).cells,
    ),
    "large domain quantiles": (
        "large_domain_quantiles",
        lambda t: t.large_domain_quantiles("x", [0.5], epsilon=1),
    ),
    "suggested bounds": (
        "suggest_bounds",
        lambda t: t.suggest_bounds("x", epsilon=1),
    ),
    "suggested limits": (
        "suggest_contribution_limits",
        lambda t: t.suggest_contribution_limits(by="t", epsilon=1),
    ),
    "sql": (
        "sql",
        lambda t: [t.sql(text, epsilon=1) for text in SQL],
    ),
    "discovered keys": (
        "discover_keys",
        lambda t: t.discover_keys("t", epsilon=1, delta=1e-6, max_groups_per_unit=1),
    ),
}
METHODS = tuple(ASKED)
SOURCES: dict[str, Callable[[Any, Path], Any] | None] = {
    "pandas objects": None,
    "polars": sources.polars,
    "parquet": tables.parquet_by("pyarrow"),
}


def asked(name: str) -> Callable[[random.Random, Path], Session]:
    """One method of a table, on frames mostly."""

    def started(draw: random.Random, folder: Path) -> Session:
        kind = draw.choice(["pandas objects", "pandas objects", "polars", "polars", "parquet"])
        source = SOURCES[kind]
        rows = tables.honest_rows(draw)
        limited = name != "large domain quantiles" or draw.random() < 0.5
        needs_unit = name == "suggested limits"
        unit = "who" if needs_unit or (limited and draw.random() < 0.7) else None
        limit = discreet.approx_dp(10**9, 0.5)
        account = discreet.Ledger("memory://").account("a", limit=limit)
        declared = TEXTS if name == "discovered keys" else tables.COLUMNS

        def run(given: list[tables.Row]) -> object:
            if source is None:
                made = tables.objects(given, folder)
            else:
                made = source(sources.arrow(given, tables.TYPES), folder)
            table = discreet.table(made, columns=declared, account=account, **tables.limited(unit))
            found = ASKED[name][1](table)
            if name == "sql":
                return [tuple(map(tables._told, one.releases)) for one in found]
            return _keyed(found) if name == "discovered keys" else found

        def pairs() -> Iterator[Pair]:
            return tables.people(
                draw,
                types=None if source is None else tables.TYPES,
                relation=ADD,
                unit=unit,
                rows=rows,
            )

        return Session(
            base=rows,
            run=run,
            pairs=pairs,
            local=False,
            account=account,
            free_lengths=name == "discovered keys",
        )

    return started


# ── Many tables at once ──────────────────────────────────────────────────────────────────────────

PLANS: list[tuple[Any, dict[str, Any]]] = [
    ([["w", "t"]], {"epsilon": 1}),
    ([["t", "b"], ["b", "f"], ["t"]], {"rho": 0.5}),
    ([["t", "b", "f"]], {"epsilon": 1, "delta": 1e-6}),
    (2, {"columns": ["t", "b", "w"], "rho": 0.5}),
    (2, {"columns": ["t", "b", "f"], "epsilon": 1, "weights": {("b", "t"): 5}}),
    ([["w", "b"]], {"rho": 0.5, "ranges": {"w": "all"}}),
    (
        [["t", "b"]],
        {
            "rho": 0.5,
            "columns": {"half": discreet.col("t").map({"a": "one"}), "t": "t", "b": "b"},
            "spine": ["half", "t"],
        },
    ),
    ([["x", "b"], ["x"]], {"rho": 0.5}),
    ([["d"], ["t"]], {"epsilon": 1, "ranges": {"d": "all"}}),
]


def many_tables(draw: random.Random, folder: Path) -> Session:
    """All tables of a plan are counted in one reading; neighbors by either relation."""
    kind = draw.choice(["pandas objects", "polars", "parquet"])
    relation = draw.choice([ADD, REPLACE])
    rows = tables.honest_rows(draw)
    unit = draw.choice([None, "who"])
    columns = tables.declared(draw)
    chosen, asked = draw.choice(PLANS)
    limit = discreet.approx_dp(10**9, 0.5, relation=relation)
    account = discreet.Ledger("memory://").account("a", limit=limit)

    def run(given: list[tables.Row]) -> object:
        table = discreet.table(
            _frame(kind, given, folder),
            columns=columns,
            account=account,
            relation=relation,
            **tables.limited(unit),
        )
        found = table.marginals(chosen, **asked)
        return [(table.columns, table.value) for table in found.tables()], found.total

    def pairs() -> Iterator[Pair]:
        types = None if kind == "pandas objects" else tables.TYPES
        return tables.people(draw, types=types, relation=relation, unit=unit, rows=rows)

    return Session(base=rows, run=run, pairs=pairs, local=False, account=account)


# ── Joins ────────────────────────────────────────────────────────────────────────────────────────

REGIONS = pl.DataFrame({"code": ["a", "b", "é", "5", "01"], "r": ["n", "s", "n", "s", "n"]})


def _frame(kind: str, rows: list[tables.Row], folder: Path) -> Any:
    if kind == "pandas objects":
        return tables.objects(rows, folder)
    return SOURCES[kind](sources.arrow(rows, tables.TYPES), folder)  # type: ignore[misc]


def join_public(draw: random.Random, folder: Path) -> Session:
    """Columns of a public table, looked up by a private value."""
    kind = draw.choice(sorted(SOURCES))
    rows = tables.honest_rows(draw)
    account = tables.fresh_account()

    def run(given: list[tables.Row]) -> object:
        table = discreet.table(
            _frame(kind, given, folder),
            columns=tables.COLUMNS,
            account=account,
            **tables.limited("who"),
        )
        regions = {"r": discreet.category(["n", "s"])}
        joined = table.join(REGIONS, on={"t": "code"}, columns=regions)
        asked = [discreet.query.count(by="r"), discreet.query.sum("x", by="r")]
        return [tables._told(one) for one in joined.release(asked, epsilon=2)]

    def pairs() -> Iterator[Pair]:
        types = None if kind == "pandas objects" else tables.TYPES
        return tables.people(draw, types=types, relation=ADD, unit="who", rows=rows)

    return Session(base=rows, run=run, pairs=pairs, local=False, account=account)


def join_units(draw: random.Random, folder: Path) -> Session:
    """Columns of each unit's row in another private table: one person is in both."""
    kind = draw.choice(sorted(SOURCES))
    rows = tables.honest_rows(draw)
    names = sorted({row["who"] for row in rows})
    others = [{**rows[0], "who": who, "t": draw.choice("ab")} for who in names]
    account = tables.fresh_account()

    def opened(given: list[tables.Row], columns: dict[str, Any]) -> Any:
        return discreet.table(
            _frame(kind, given, folder), columns=columns, account=account, **tables.limited("who")
        )

    def run(data: Any) -> object:
        first = opened(data[0], {k: tables.COLUMNS[k] for k in ("x", "w")})
        second = opened(data[1], {"t": tables.COLUMNS["t"]})
        joined = first.join_by_unit(second, columns=["t"])
        asked = [discreet.query.count(by="t"), discreet.query.sum("x", by="t")]
        return [tables._told(one) for one in joined.release(asked, epsilon=2)]

    def pairs() -> Iterator[Pair]:
        types = None if kind == "pandas objects" else tables.TYPES
        mine = tables.people(draw, types=types, relation=ADD, unit="who", rows=rows)
        for pair in mine:
            new = [row for row in pair.data if not any(row is one for one in rows)]
            for row in new:
                row["who"] = new[0]["who"]
            yield Pair(pair.name, (pair.data, [*others, *new]))
            yield Pair(f"elsewhere: {pair.name}", (rows, [*others, *new]))

    return Session(base=(rows, others), run=run, pairs=pairs, local=False, account=account)


# ── Personal budgets ─────────────────────────────────────────────────────────────────────────────


def _by_level(view: Any) -> object:
    found = view.by_level(discreet.query.count())
    return [(level, tables._told(one)) for level, one in sorted(found.items())]


VIEWED: dict[str, Callable[[Any], object]] = {
    "count": lambda view: view.count().value,
    "count by b": lambda view: view.count(by="b").value,
    "sum": lambda view: view.sum("x").value,
    "mean": lambda view: view.mean("x").value,
    "histogram": lambda view: view.histogram("x", edges=[1, 2.5, 5]).value,
    "by level": _by_level,
}


def levels(draw: random.Random, folder: Path) -> Session:
    """Each person's level stands in a column; a strange one is nobody's."""
    kind = draw.choice(["pandas objects", "polars"])
    rows = tables.honest_rows(draw)
    for row in rows:
        row["t"] = draw.choice("ab")
    account = tables.fresh_account()
    name = draw.choice(sorted(VIEWED))
    whole = draw.random() < 0.3  # levels that are numbers
    unit = draw.choice([None, "who", "who"])

    def run(given: list[tables.Row]) -> object:
        table = discreet.table(
            _frame(kind, given, folder),
            columns={**tables.COLUMNS, "f": discreet.category([0, 1])},
            account=account,
            **tables.limited(unit),
        )
        loss = {0: 0.5, 1: 1} if whole else {"a": 0.5, "b": 1}
        view = table.with_personal_budgets(privacy_levels=loss, budget="f" if whole else "t")
        return VIEWED[name](view)

    def pairs() -> Iterator[Pair]:
        types = None if kind == "pandas objects" else tables.TYPES
        for pair in tables.people(draw, types=types, relation=ADD, unit=unit, rows=rows):
            new = [row for row in pair.data if not any(row is one for one in rows)]
            for row in new:
                if draw.random() < 0.7:
                    row["t"] = draw.choice("ab") if types else strange(draw)[1]
                if types is None and draw.random() < 0.7:
                    row["f"] = strange(draw)[1]
            yield pair

    return Session(base=rows, run=run, pairs=pairs, local=False, account=account)


def members(draw: random.Random, folder: Path) -> Session:
    """The ledger knows the level of each member: strangers take no part, members pay."""
    kind = draw.choice(["pandas objects", "polars"])
    rows = tables.honest_rows(draw)
    names = sorted({row["who"] for row in rows})
    ledger = discreet.Ledger("memory://")
    crowd = ledger.personal_budgets(
        "panel",
        limits={"strict": discreet.zcdp(10**3), "open": discreet.zcdp(10**4)},
        members=names,
        privacy_levels=[draw.choice(["strict", "open"]) for _ in names],
    )

    def run(given: list[tables.Row]) -> object:
        table = discreet.table(
            _frame(kind, given, folder), columns=tables.COLUMNS, **tables.limited("who")
        )
        view = table.with_personal_budgets(
            personal_budgets=crowd, privacy_levels={"strict": 0.5, "open": 1}
        )
        before = crowd.spent()
        found = view.count(max_privacy_level="open")
        paid = np.asarray(crowd.spent()) - np.asarray(before)
        return type(found.value).__name__, paid.round(9)

    def pairs() -> Iterator[Pair]:
        types = None if kind == "pandas objects" else tables.TYPES
        return tables.people(draw, types=types, relation=ADD, unit="who", rows=rows)

    return Session(base=rows, run=run, pairs=pairs, local=False)


# ── Models from a source ─────────────────────────────────────────────────────────────────────────


def fit_source(draw: random.Random, folder: Path) -> Session:
    """A regression that reads a source itself."""
    kinds = {**tables.CHEAP, "parquet": tables.FILES["parquet of pyarrow"]}
    for odd in ("polars categories", "arrow dictionaries"):
        kinds.pop(odd)
    kind = draw.choice(sorted(kinds))  # a frame of objects is refused, by its type
    rows = tables.honest_rows(draw)
    given = {"epsilon": 1, "delta": 1e-6, "bounds": [(-5, 5)], "target_bounds": (0, 10)}

    maker = draw.choice(
        [
            discreet.models.PrivateLinearRegression,
            discreet.models.PrivatePoisson,
            discreet.models.PrivateLogit,
        ]
    )
    if maker is discreet.models.PrivateLogit:
        given.pop("target_bounds")

    def run(data: list[tables.Row]) -> object:
        made = kinds[kind](sources.arrow(data, tables.TYPES), folder)
        model = maker(**given)
        found = model.fit_source(made, features=["w"], target="x")
        return np.asarray(found.coef_), np.asarray(found.intercept_)

    def pairs() -> Iterator[Pair]:
        return tables.people(draw, types=tables.TYPES, relation=ADD, unit=None, rows=rows)

    return Session(base=rows, run=run, pairs=pairs, local=False)


# ── Rows of numbers, in a plan of many tables ────────────────────────────────────────────────────


def planned_rows(draw: random.Random, folder: Path) -> Session:
    """A plan by itself measures rows of codes: a strange one is a row of first values."""
    relation = draw.choice([ADD, REPLACE])
    limit = discreet.approx_dp(10**9, 0.5, relation=relation)
    account = discreet.Ledger("memory://").account("a", limit=limit)
    table = discreet.table(
        pl.DataFrame({"t": ["a"], "b": [True]}),
        columns={name: tables.COLUMNS[name] for name in "tb"},
        account=account,
        relation=relation,
    )
    plan = table.plan_marginals([["t", "b"]], **draw.choice([{"epsilon": 1}, {"rho": 0.5}]))
    many = draw.randrange(6, 40)
    rows: list[Any] = [[draw.randrange(5), draw.randrange(2)] for _ in range(many)]
    hold = draw.choice([list, tuple, _frame_of_codes])
    place = draw.randrange(many)

    def run(given: Any) -> object:
        return [found.value for found in plan.release(given).tables()]

    def neighbor(row: Any) -> Any:
        kept = rows if relation is ADD else [*rows[:place], *rows[place + 1 :]]
        return hold([*kept, row])

    def pairs() -> Iterator[Pair]:
        for row in itertools.product(range(5), range(2)):
            yield Pair(str(row), neighbor(list(row)), ordinary=True)
        while True:
            label, value = strange(draw)
            row: Any = [value, 1] if draw.random() < 0.5 else [0, value]
            if hold is not _frame_of_codes and draw.random() < 0.3:
                row = draw.choice([value, [value], [1, 1, value], []])
            yield Pair(label, neighbor(row))

    return Session(base=hold(rows), run=run, pairs=pairs, account=account)


def _frame_of_codes(rows: list[Any]) -> Any:
    columns = []
    for values in zip(*rows, strict=True):
        held = np.empty(len(rows), dtype=object)
        for place, value in enumerate(values):
            held[place] = value
        columns.append(pd.Series(held, dtype=object))
    return pd.DataFrame(dict(zip("tb", columns, strict=True)))


PERSONAL = (
    "discreet.Table.with_personal_budgets",
    *(
        f"discreet.Table.with_personal_budgets.{name}"
        for name in ("count", "sum", "mean", "histogram", "by_level")
    ),
)

DOORS: list[Door] = [
    Door("rows of a plan", ("discreet.Table.plan_marginals.release",), planned_rows, pairs=15),
    *(Door(name, (f"discreet.Table.{ASKED[name][0]}",), asked(name), pairs=5) for name in METHODS),
    Door("many tables", ("discreet.Table.marginals",), many_tables, pairs=6),
    Door("join with a public table", ("discreet.Table.join",), join_public, pairs=6),
    Door("join by unit", ("discreet.Table.join_by_unit",), join_units, pairs=6),
    Door("personal budgets by column", PERSONAL, levels, pairs=12),
    Door(
        "personal budgets of a ledger",
        ("discreet.Table.with_personal_budgets",),
        members,
        pairs=12,
    ),
    Door(
        "regression from a source",
        tuple(
            f"discreet.models.{name}.fit_source"
            for name in ("PrivateLinearRegression", "PrivatePoisson", "PrivateLogit")
        ),
        fit_source,
        pairs=12,
    ),
]

"""Questions that are planned, and everything that is known of them before a row is read."""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Mapping
from fractions import Fraction
from hashlib import sha256
from typing import Any

from discreet import col, keys, when
from discreet import query as queries
from discreet.core import events
from discreet.data._duckdb.compile import ALIAS, compile_query
from discreet.data.program import Program
from discreet.data.source import Type
from discreet.mechanisms.selection import ExponentialMechanism
from discreet.query._release_plan import Measurement, PlannedQuery, plan_release
from discreet.query.budget import QueryBudget, budget
from discreet.query.builders import Query
from discreet.query.error_forecast import forecast
from tests.compatibility.example import SETTINGS, plain

OLD = (col("age") >= 65) & ~col("well")
EARLY = col("day") < dt.date(2026, 1, 15)
BUDGETS: Mapping[str, QueryBudget] = {
    "pure": budget(epsilon=0.5),
    "concentrated": budget(rho=0.125),
    "approximate": budget(epsilon=1, delta=1e-6),
}
QUERIES: Mapping[str, Query] = {
    "count": queries.count(),
    "count where": queries.count(where=OLD, name="Old"),
    "count by place": queries.count(by="place"),
    "count by two": queries.count(by=["place", "well"]),
    "count by keys": queries.count(by=["place", "well"], keys=[("north", True), ("east", False)]),
    "count and other": queries.count(by="place", keys=keys(["north"], include_other=True)),
    "count by text": queries.count(by="town", keys=["Aa", "Celle"]),
    "units": queries.count_units(),
    "units by place": queries.count_units(by="place", where=EARLY),
    "units limited": queries.count_units(by="day").limit_contributions(max_groups_per_unit=1),
    "sum": queries.sum("pay"),
    "sum of integer by place": queries.sum("age", by="place"),
    "sum of expression": queries.sum(col("pay") * 2 - col("age"), where=col("well")),
    "mean": queries.mean("pay"),
    "mean by place": queries.mean("age", by="place", where=EARLY),
    "mean when": queries.mean(when(col("well")).then(col("age")).otherwise(0)),
    "mean clipped": queries.mean(col("pay").clip(lower=0, upper=500)),
    "mean of flag": queries.mean("well", by="place"),
    "variance": queries.variance("age"),
    "variance by well": queries.variance("pay", by="well"),
    "covariance": queries.covariance("age", "pay"),
    "covariance by place": queries.covariance("age", col("pay") / 4, by="place"),
    "median": queries.median("age"),
    "median in bins": queries.median("pay", bins=64, method="exponential"),
    "median by place": queries.median("age", by="place", method="tree"),
    "quantiles": queries.quantiles("pay", [0.1, 0.5, 0.9], bins=32),
    "quantiles by well": queries.quantiles("age", [Fraction(1, 3), 0.5], by="well"),
    "quantiles tree": queries.quantiles("age", [0.25, 0.75], method="tree"),
    "histogram": queries.histogram("place"),
    "histogram with edges": queries.histogram("age", edges=[18, 40, 65]),
    "histogram of days": queries.histogram(
        "day", edges=[dt.date(2026, 1, 8), dt.date(2026, 1, 22)]
    ),
    "by month": queries.count(by={"month": col("day").month()}),
    "limited": queries.sum("age", by="place").limit_contributions(max_rows_per_unit=1),
}
TOGETHER: Mapping[str, tuple[str, ...]] = {
    "count, mean and variance": ("count", "mean", "variance"),
    "by place": ("count by place", "mean by place", "units by place"),
    "sums that are shared": ("count", "sum", "mean", "quantiles tree"),
}
TYPES: dict[str, Type] = {
    "who": "text",
    "age": "integer",
    "place": "text",
    "pay": "float",
    "day": "date",
    "well": "boolean",
    "town": "text",
    "level": "text",
}
KEY = 1234567890123456789


def cases() -> list[tuple[str, str, tuple[str, ...]]]:
    """Setting, budget and questions: every question everywhere, budgets in turn."""
    found = []
    for number, name in enumerate(QUERIES):
        for place, setting in enumerate(SETTINGS):
            if (setting, name) == ("rows", "units limited"):  # without units there is no limit
                continue
            turn = list(BUDGETS)[1 + number % 2 if setting == "people" else (number + place) % 3]
            found += [(setting, one, (name,)) for one in ("pure", turn)[setting != "people" :]]
    for names in TOGETHER.values():
        found += [("people", one, names) for one in BUDGETS]
    return found


def told_measurement(one: Measurement) -> dict[str, Any]:
    """Sensitivity and noise of one part."""
    told = {
        "place": one.place,
        "part": one.part.name,
        "l1": one.move.l1,
        "l2_squared": one.move.l2_squared,
        "choice": one.move.choice,
        "shift": one.shift,
        "event": json.loads(events.to_json(one.mechanism.guarantee.event)),
        "relation": one.mechanism.guarantee.relation.name,
    }
    if isinstance(one.mechanism, ExponentialMechanism):
        return plain({**told, "rate": one.mechanism.rate})
    return plain({**told, "std": one.law.std})


def told_question(question: PlannedQuery) -> dict[str, Any]:
    """What is known of an answer."""
    shown = [forecast(question, expected_rows=rows, confidence=level) for rows, level in FORECASTS]
    return {
        "title": question.query.title,
        "names": plain(question.names),
        "keys": plain(question.keys),
        "independent": question.independent,
        "measurements": [told_measurement(one) for one in question.measurements],
        "forecasts": [
            plain([one.groups, one.std, one.width, one.confidence, one.expected_rows, one.step])
            for one in shown
        ],
    }


FORECASTS: tuple[tuple[int | None, float], ...] = ((None, 0.95), (500, 0.95), (20_000, 0.9))


def told_plan(program: Program) -> dict[str, Any]:
    """What an engine is asked, and how far one unit moves each of its sums."""
    query = compile_query(program, types=TYPES, key=KEY).replace(ALIAS, "source")
    reaches = {name: program.reach(name) for name in program.aggregates}
    return plain(
        {
            "unit": program.unit,
            "columns": [name for name, _ in program.columns],
            "size": program.size,
            "entries": program.entries,
            "cells": program.cells,
            "rest": program.rest,
            "bins": program.bins,
            "count_units": program.count_units,
            "sums": [(one.factors, one.weight, one.exponent) for one in program.sums],
            "limits": (
                program.limits.max_rows_per_unit,
                program.limits.max_groups_per_unit,
                program.limits.max_rows_per_unit_per_group,
            ),
            "reach": {
                name: (one.groups, one.rows, one.rows_per_group, one.weight, one.linf, one.l1)
                for name, one in reaches.items()
            },
            "l2_squared": {name: one.l2_squared for name, one in reaches.items()},
            "sql": sha256(query.encode()).hexdigest()[:16],
        }
    )


def planned(setting: str, amount: str, names: tuple[str, ...]) -> dict[str, Any]:
    """Everything that is known of questions before a row is read."""
    made = plan_release(
        [QUERIES[name] for name in names], setting=SETTINGS[setting], budget=BUDGETS[amount]
    )
    return {
        "guarantee": sha256(made.guarantee.to_json().encode()).hexdigest()[:16],
        "epsilon": plain([made.guarantee.epsilon(delta) for delta in (1e-9, 1e-6)]),
        "questions": [told_question(one) for one in made.questions],
        "passes": [told_plan(one) for one in made.passes],
    }


def all_planned() -> dict[str, Any]:
    """All of them, by name."""
    return {
        f"{setting} / {amount} / {' + '.join(names)}": planned(setting, amount, names)
        for setting, amount, names in cases()
    }


def queries_as_sql() -> dict[str, str]:
    """Some whole queries, to read what has changed when a hash differs."""
    chosen = ("count by place", "quantiles by well", "covariance")
    return {
        name: compile_query(
            plan_release(
                [QUERIES[name]], setting=SETTINGS["people"], budget=BUDGETS["pure"]
            ).passes[0],
            types=TYPES,
            key=KEY,
        ).replace(ALIAS, "source")
        for name in chosen
    }

"""Releases with noise from a seed: the same numbers, bit by bit."""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import discreet
from discreet import Guarantee, NeighboringRelation, col, intervals, keys, local, seeded_rng
from discreet import query as queries
from discreet.ledger._entries import Outcome
from discreet.ledger.account import Account, Receipt, Reservation
from discreet.mechanisms.partition_selection import partition_selection
from discreet.models import blackbox
from discreet.models.dp_sgd import (
    OutputPerturbationLogisticRegression,
    PersonalizedLogisticRegression,
    PrivateHuberRegressor,
    PrivateLogisticRegression,
    PrivateRidge,
)
from discreet.models.pate.aggregators import ConfidentGNMax
from discreet.models.pate.classifier import publish_labels
from discreet.models.pate.label_plan import plan_labels
from discreet.models.pate.teacher_assignment import assign_weighting
from discreet.models.regression import PrivateLinearRegression
from discreet.query._release_plan import ReleasePlan, plan_release
from discreet.query.budget import budget
from discreet.query.builders import Query
from discreet.ranges.grid.table_query import plan_grid_query, rectangles
from discreet.ranges.quantile_search import plan_quantile_search, quantile_search
from discreet.ranges.stream.file import StreamFile
from discreet.ranges.table_query import plan_query as planned_ranges
from discreet.ranges.table_query import ranges
from discreet.tables._execute import execute
from discreet.tables._large_domain_quantiles import release_large_domain_quantiles
from discreet.tables.discover_keys import release_keys
from discreet.tables.release import Release
from discreet.tables.suggest import suggest_bounds, suggest_contribution_limits
from discreet.tables.table import Table
from tests.compatibility.example import opened, plain, rounded
from tests.compatibility.randomizers import MADE, encoded

RECEIPT = Receipt(
    account="free",
    sequence=1,
    hash="0" * 64,
    guarantee=discreet.pure_dp(1),
    label="seeded",
    time=dt.datetime(2026, 1, 1, tzinfo=dt.UTC),
    request_id=None,
)


class Free(Account):
    """An account that takes any bits: for simulations."""

    def __init__(self) -> None:
        """Without a ledger."""

    def reserve(
        self,
        guarantee: Guarantee,
        *,
        label: str,
        private: bool = True,
        request_id: str | None = None,
    ) -> Reservation:
        return Reservation(self, RECEIPT)

    def _settle(self, sequence: int, outcome: Outcome) -> None:
        """Nothing to tell."""


def free(path: Path, setting: str = "people") -> Table:
    return replace(opened(path, setting=setting), account=Free())


# ── tables ────────────────────────────────────────────────────────────────────────────────────

ASKED: Mapping[str, tuple[Query, dict[str, float], str]] = {
    "count": (queries.count(), {"epsilon": 0.5}, "people"),
    "count where": (queries.count(where=col("age") >= 65), {"rho": 0.125}, "people"),
    "count by place": (queries.count(by="place"), {"epsilon": 1, "delta": 1e-6}, "people"),
    "count and other": (
        queries.count(by="place", keys=keys(["north"], include_other=True)),
        {"epsilon": 1},
        "groups",
    ),
    "count by town": (queries.count(by="town", keys=["Aa", "Celle"]), {"epsilon": 1}, "people"),
    "units": (queries.count_units(), {"epsilon": 0.5}, "people"),
    "units by day": (queries.count_units(by="day"), {"rho": 0.5}, "groups"),
    "sum": (queries.sum("pay"), {"epsilon": 1}, "rows"),
    "sum by place": (queries.sum("age", by="place"), {"rho": 0.25}, "people"),
    "mean": (queries.mean("age"), {"epsilon": 1}, "people"),
    "mean by place": (queries.mean("pay", by="place"), {"epsilon": 2}, "replaced"),
    "variance": (queries.variance("age"), {"epsilon": 2}, "people"),
    "covariance": (queries.covariance("age", "pay"), {"rho": 0.5}, "people"),
    "median": (queries.median("age"), {"epsilon": 2}, "rows"),
    "median by place": (queries.median("age", by="place", method="tree"), {"rho": 1}, "people"),
    "quantiles": (queries.quantiles("pay", [0.25, 0.5, 0.75], bins=64), {"epsilon": 2}, "people"),
    "histogram": (queries.histogram("age", edges=[18, 40, 65]), {"epsilon": 1}, "people"),
}


def told(release: Release) -> dict[str, Any]:
    """All numbers of a release."""
    rows = release.rows(0.9)
    return plain(
        {
            "value": release.value,
            "keys": release.keys,
            "names": release.key_columns,
            "std": [row["std"] for row in rows],
            "low": [row["low"] for row in rows],
            "high": [row["high"] for row in rows],
            "guarantee": release.guarantee.to_json(),
            "protects": release.privacy_statement,
        }
    )


def of_tables(path: Path) -> dict[str, Any]:
    """Every statistic, and what else a table answers."""
    found: dict[str, Any] = {}
    for number, (name, (query, amount, setting)) in enumerate(ASKED.items()):
        table = free(path, setting)
        planned = plan_release([query], setting=table.spec, budget=budget(**amount))
        (release,) = execute(table, planned, rng=seeded_rng(number))[0]
        found[f"table: {name}"] = told(release)
    table = free(path)
    three = plan_release(
        [queries.count(by="place"), queries.mean("age", by="place"), queries.count_units()],
        setting=table.spec,
        budget=budget(epsilon=2),
        weights=[1, 2, 1],
    )
    made = execute(table, three, rng=seeded_rng(50))[0]
    found["table: three together"] = [told(one) for one in made]
    found["table: folded"] = plain(made[0].merge_small_groups(below=80).rows(0.9))
    chosen = partition_selection(groups=2, epsilon=2, delta=1e-3, method="laplace")
    shown = release_keys(table, by="town", mechanism=chosen, where=None, rng=seeded_rng(51))
    found["table: discovered"] = told(shown)
    bounds = suggest_bounds(
        table,
        "pay",
        coverage=0.95,
        outermost=(0, 1 << 20),
        budget=budget(epsilon=1),
        rng=seeded_rng(52),
    )
    numbers = (bounds.lower, bounds.upper, bounds.granularity, bounds.outside, bounds.whole)
    found["table: suggested bounds"] = plain(numbers)
    limits = suggest_contribution_limits(
        table, by="place", planned_epsilon=1, budget=budget(epsilon=2), rng=seeded_rng(53)
    )
    found["table: suggested limits"] = plain(
        [
            (one.limit, one.lost, one.noise, one.error)
            for some in (limits.row_choices, limits.group_choices)
            for one in some
        ]
    )
    return found | of_cells(table)


def of_cells(table: Table) -> dict[str, Any]:
    """Ranges, grids and fine quantiles of a table."""
    found: dict[str, Any] = {}
    for name, amount in (("pure", budget(epsilon=1)), ("concentrated", budget(rho=0.5))):
        planned = planned_ranges(ranges("age"), setting=table.spec, budget=amount)
        work = ReleasePlan(ranges=(planned,))
        (made,) = execute(table, work, rng=seeded_rng(60))[1]
        found[f"ranges: {name}"] = plain(
            {
                "measured": made.measured,
                "guarantee": made.guarantee.to_json(),
                "rows": made.contribution.rows,
                "errors": [one.mean for one in planned.ranked.candidates],
                "answers": rounded([made.answer(18, 64), made.answer_interval(18, 64)]),
            }
        )
    grid = plan_grid_query(
        rectangles(["place", "age"], bins={"age": 8}),
        setting=table.spec,
        budget=budget(epsilon=1),
    )
    (boxes,) = execute(table, ReleasePlan(ranges=(grid,)), rng=seeded_rng(61))[1]
    found["grid"] = plain(
        {
            "measured": boxes.measured,
            "guarantee": boxes.guarantee.to_json(),
            "total": rounded(boxes.total),
        }
    )
    walk = plan_quantile_search(
        quantile_search("pay", [0.25, 0.5]), setting=table.spec, budget=budget(epsilon=4)
    )
    fine = release_large_domain_quantiles(table, walk, rng=seeded_rng(62))
    found["fine quantiles"] = plain(
        {
            "values": fine.values,
            "width": fine.rank_width,
            "guarantee": fine.guarantee.to_json(),
        }
    )
    return found


# ── mechanisms ────────────────────────────────────────────────────────────────────────────────


def column(many: int = 60) -> list[float]:
    draw = random.Random(7)
    return [draw.randrange(0, 400) / 40 for _ in range(many)]


def of_mechanisms() -> dict[str, Any]:
    """Noise, choices, quantiles and the rest, on one column."""
    values, bits = column(), seeded_rng
    ends: dict[str, Any] = {"lower": 0, "upper": 10}
    counted = {**ends, "public_rows": len(values)}
    laplace = discreet.laplace(sensitivity=1, epsilon=0.5)
    made: dict[str, Any] = {
        "laplace": laplace.release(np.arange(8), rng=bits(1)),
        "laplace on reals": discreet.laplace(sensitivity=1, epsilon=0.5, domain="reals").release(
            np.arange(4) / 3, rng=bits(2)
        ),
        "laplace with delta": discreet.laplace(sensitivity=2, epsilon=1, delta=1e-6).release(
            5, rng=bits(3)
        ),
        "gaussian": discreet.gaussian(sensitivity=1, epsilon=1, delta=1e-6).release(
            np.arange(6), rng=bits(4)
        ),
        "gaussian on reals": discreet.gaussian(sensitivity=1, rho=0.1, domain="reals").release(
            2.5, rng=bits(5)
        ),
        "gaussian of mu": discreet.gaussian(sensitivity=3, mu=0.5).release(7, rng=bits(6)),
        "truncated": discreet.truncated_laplace(sensitivity=1, epsilon=1, delta=1e-4).release(
            11, rng=bits(7)
        ),
        "best": discreet.best_additive_noise(sensitivity=1, epsilon=1, loss="mae").release(
            11, rng=bits(8)
        ),
        "staircase": discreet.best_additive_noise(sensitivity=0.5, epsilon=3).release(
            11.5, rng=bits(9)
        ),
        "bounded": discreet.bounded_laplace(sensitivity=1, epsilon=1, **ends).release(
            4.5, rng=bits(10)
        ),
        "clamped": discreet.clamp_output(laplace, **ends).release(9, rng=bits(11)),
        "folded": discreet.reflect_output(laplace, **ends).release(9, rng=bits(12)),
        "exponential": discreet.exponential_mechanism(sensitivity=1, epsilon=1).release(
            [1, 5, 3, 4], rng=bits(13)
        ),
        "noisy max": discreet.report_noisy_max(sensitivity=1, epsilon=1).release(
            [1, 5, 3, 4], rng=bits(14)
        ),
        "permute and flip": discreet.permute_and_flip(sensitivity=1, epsilon=1).release(
            [1, 5, 3, 4], rng=bits(15)
        ),
        "above threshold": discreet.above_threshold(sensitivity=1, epsilon=1, positives=2).release(
            [1, 9, 2, 8, 3, 12], threshold=7, rng=bits(16)
        ),
        "smooth": discreet.smooth_sensitivity("median", epsilon=1, delta=1e-6, **counted).release(
            values, rng=bits(17)
        ),
        "smooth, pure": discreet.smooth_sensitivity("median", epsilon=1, **counted).release(
            values, rng=bits(18)
        ),
        "quantile": discreet.private_quantile(0.5, epsilon=1, **ends).release(values, rng=bits(19)),
        "quantiles": discreet.private_quantiles(
            [0.25, 0.5, 0.75], epsilon=2, granularity=0.25, **ends
        ).release(values, rng=bits(20)),
        "variance": discreet.private_variance(epsilon=1, **counted).release(values, rng=bits(21)),
        "sd": discreet.private_std(epsilon=1, direct=True, **counted).release(values, rng=bits(22)),
        "weighted": discreet.weighted_sensitivity(
            "median", epsilon=1, delta=1e-6, **counted
        ).release(values, rng=bits(23)),
        "propose": discreet.propose_test_release(
            "median", bound=2, epsilon=2, delta=1e-3, **counted
        ).release(values, rng=bits(24)),
        "blocks": discreet.sample_and_aggregate(np.mean, groups=12, epsilon=2, **ends).release(
            values, rng=bits(25)
        ),
        "bins": discreet.private_bin_counts(bins=5, epsilon=1, **ends)
        .release(values, rng=bits(26))
        .counts,
        "response": discreet.randomized_response(categories=4, epsilon=1).release(
            [0, 1, 2, 3] * 4, rng=bits(27)
        ),
    }
    mean = discreet.mean_without_bounds(unit=1, epsilon=8).release(values, rng=bits(28))
    made["unbounded mean"] = (mean.value, mean.lower, mean.upper, mean.std)
    shown = partition_selection(groups=1, rho=0.5, delta=1e-3).release([1, 40, 3, 90], rng=bits(29))
    made["partition"] = shown
    span = intervals.mean(lower=0, upper=10, public_rows=len(values), epsilon=1)
    held = span.release(values, rng=bits(30))
    made["interval of a mean"] = (held.value, held.low, held.high)
    return {f"mechanism: {name}": plain(one) for name, one in made.items()}


# ── ranges, streams, reports ──────────────────────────────────────────────────────────────────


def of_ranges() -> dict[str, Any]:
    """Structures on counts, without a table."""
    counts = np.array([(place * place) % 17 for place in range(64)])
    found: dict[str, Any] = {}
    for name, amount in (("pure", {"epsilon": 1}), ("concentrated", {"rho": 0.5})):
        plan = discreet.plan_ranges(64, "all", **amount)
        for number, one in enumerate(plan.candidates[:3]):
            made = one.design.release(counts, rng=seeded_rng(70 + number))
            found[f"plan of ranges: {name} {number}"] = plain(
                {
                    "mean": one.mean,
                    "largest": one.largest,
                    "measured": made.measured,
                    "guarantee": made.guarantee.to_json(),
                }
            )
    aware = discreet.plan_ranges(64, "all", epsilon=1, data_aware=True).aware
    for number, each in enumerate(aware):
        cells = each.release(counts, rng=seeded_rng(80 + number))
        found[f"data-aware: {number}"] = {
            "cells": rounded(cells.cells),
            "guarantee": cells.guarantee.to_json(),
        }
    return found


def of_streams() -> dict[str, Any]:
    """Counts without end, with an end, and in a window."""
    counts = [place % 5 for place in range(40)]
    plans = {
        "pure, horizon": discreet.plan_stream(epsilon=1, horizon=64),
        "gaussian, horizon": discreet.plan_stream(rho=0.5, horizon=64),
        "window": discreet.plan_stream(epsilon=1, window=8),
        "without end": discreet.plan_stream(epsilon=1, delta=1e-6),
        "replaced": discreet.plan_stream(
            epsilon=1, horizon=64, max_rows_per_unit=2, relation=NeighboringRelation.REPLACE_ONE
        ),
    }
    found: dict[str, Any] = {}
    for number, (name, plan) in enumerate(plans.items()):
        file = StreamFile(None, plan=plan, units=False, payer="free")
        answers = file.feed(counts, rng=seeded_rng(90 + number))
        file.close()
        exact = plan.pure
        found[f"stream: {name}"] = {
            "values": plain(answers.values) if exact else rounded(answers.values),
            "std": rounded(answers.std[:16]),
            "guarantee": plan.guarantee.to_json(),
        }
    return found


def of_reports() -> dict[str, Any]:
    """Reports of every kind of randomizer, and what they add up to."""
    found: dict[str, Any] = {}
    for name, (randomizer, _) in MADE.items():
        rows = encoded(name)
        total = local.Aggregator(randomizer).add(rows)
        found[f"reports: {name}"] = plain(
            {
                "reports": rows.tobytes(),
                "counts": total.counts if total.counts.size <= 256 else int(total.counts.sum()),
                "fingerprint": randomizer.fingerprint,
                "epsilon": randomizer.guarantee.epsilon(),
                "event": randomizer.guarantee.to_json(),
            }
        )
    return found


# ── models: linear algebra, so ten digits ─────────────────────────────────────────────────────


def examples(many: int = 300) -> tuple[np.ndarray, np.ndarray]:
    draw = random.Random(7)
    x = np.array([[draw.uniform(-1, 1) for _ in range(2)] for _ in range(many)])
    y = x @ np.array([0.5, -0.25]) + np.array([draw.uniform(-0.1, 0.1) for _ in range(many)])
    return x, y


def of_models() -> dict[str, Any]:
    """Coefficients of models, and labels of teachers."""
    x, y = examples()
    flags = (y > 0).astype(int)
    usual: dict[str, Any] = {"epsilon": 2, "delta": 1e-6, "bounds": (-1, 1)}
    found: dict[str, Any] = {}
    for method in ("psd", "adassp"):
        line = PrivateLinearRegression(
            method=method,
            target_bounds=(-1, 1),
            scaling="bounds",
            mapping="ball",
            rng=seeded_rng(110),
            **usual,
        ).fit(x, y)
        found[f"linear regression: {method}"] = (line.coef_, line.intercept_)
        found[f"linear regression: {method}, cost"] = line.guarantee_.to_json()
    logistic = PrivateLogisticRegression(
        classes=(0, 1), public_rows=300, steps=20, rng=seeded_rng(111), **usual
    ).fit(x, flags)
    found["logistic"] = (logistic.coef_, logistic.intercept_)
    found["logistic, cost"] = logistic.guarantee_.to_json()
    for name, kind in (("ridge", PrivateRidge), ("huber", PrivateHuberRegressor)):
        made = kind(
            target_bounds=(-1, 1), public_rows=300, steps=20, rng=seeded_rng(112), **usual
        ).fit(x, y)
        found[name] = (made.coef_, made.intercept_)
    perturbed = OutputPerturbationLogisticRegression(
        epsilon=2, bounds=(-1, 1), classes=(0, 1), public_rows=300, steps=5, rng=seeded_rng(113)
    ).fit(x, flags)
    found["perturbed"] = (perturbed.coef_, perturbed.intercept_)
    limits = {"open": discreet.approx_dp(3, 1e-6), "strict": discreet.approx_dp(0.5, 1e-6)}
    personal = PersonalizedLogisticRegression(
        limits=limits,
        people={"open": 150, "strict": 150},
        bounds=(-1, 1),
        classes=(0, 1),
        steps=20,
        rng=seeded_rng(114),
    ).fit(x, flags, privacy_levels=np.where(np.arange(300) % 2, "open", "strict"))
    found["personal"] = (personal.coef_, personal.intercept_)
    found["personal, cost"] = personal.personal_guarantee_.epsilons(1e-6)
    return rounded({**found, **of_teachers(), **of_learned()})


def of_teachers() -> dict[str, Any]:
    """Labels of an ensemble."""
    limits = {"open": discreet.approx_dp(2, 1e-5), "strict": discreet.approx_dp(1, 1e-5)}
    made = assign_weighting(
        250, people={"open": 50, "strict": 50}, sensitivities={"open": 1, "strict": 1}, key="k"
    )
    rule = ConfidentGNMax(threshold=200, sigma_threshold=150, sigma_votes=40)
    plan = plan_labels(made, rule, limits, classes=3, answered_share=0.6)
    draw = random.Random(7)
    votes = [sorted((0, *(draw.randrange(251) for _ in range(2)), 250)) for _ in range(30)]
    counts = np.diff(np.array(votes), axis=1)
    labels = publish_labels(counts, plan, rng=seeded_rng(115))
    return {
        "teachers": labels.labels,
        "teachers, answers": (plan.answers, plan.queries),
        "teachers, cost": plan.guarantee.epsilons(1e-5),
    }


def of_learned() -> dict[str, Any]:
    """A function made private by public inputs."""
    draw = random.Random(7)
    public = np.array([[draw.uniform(0, 10) for _ in range(6)] for _ in range(40)])
    made = blackbox.make_private(
        np.mean, public_inputs=public[:30], metric="record", epsilon=1, bounds=(0, 10)
    )
    answers = [made.release(row, rng=seeded_rng(116 + i)) for i, row in enumerate(public[30:35])]
    return {
        "learned": answers,
        "learned, chosen": made.chosen,
        "learned, error": made.expected.error,
    }


EXACT: Mapping[str, Callable[[], dict[str, Any]]] = {
    "mechanisms": of_mechanisms,
    "ranges": of_ranges,
    "streams": of_streams,
    "reports": of_reports,
}

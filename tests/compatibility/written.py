"""Everything that version 0.1 writes: made here once, read back by the tests.

`make` writes into a folder; each function of `SEEN` reads what is there with the public readers and
tells what it holds as plain values. The recorded telling is ``written/expected.json``.
"""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import io
import json
import shutil
import time
import tomllib
from collections.abc import Callable, Mapping
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from click.testing import CliRunner

import discreet
from discreet import Guarantee, Ledger, NeighboringRelation, col, keys, local
from discreet import query as queries
from discreet.accounting.personalized import PersonalizedGuarantee, personalized
from discreet.cli.main import main as command
from discreet.core import events
from discreet.data.expression_json import read_expression, write_expression
from discreet.ledger.account import Account
from discreet.local.collection.report_file import read_header
from discreet.local.longitudinal import MemoizedOracle
from discreet.query.budget import budget
from discreet.ranges.grid.table_query import rectangles
from discreet.ranges.release import DataDependentRelease
from discreet.ranges.stream.file import StreamFile
from discreet.ranges.stream.plan import StreamPlan
from discreet.ranges.table_query import ranges
from discreet.server.config import read as read_config
from discreet.server.service import Service
from discreet.server.store import open_store
from discreet.server.users import User, UserStore
from discreet.spec.query_json import write_query
from discreet.spec.release_file import read as read_release_file
from discreet.spec.statistics import release_spec
from discreet.tables.personalized_table import PersonalizedRelease
from discreet.tables.range_release import ChargedGridRelease, ChargedRangeRelease
from discreet.tables.release import read_receipt
from tests.compatibility.example import FIXTURES, SETTINGS, opened, plain, rounded, write_rows
from tests.compatibility.planned import QUERIES
from tests.compatibility.randomizers import MADE, encoded

WRITTEN = FIXTURES / "written"
AHEAD = dt.datetime(2090, 1, 1, tzinfo=dt.UTC)


def put(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


# ── ledgers ───────────────────────────────────────────────────────────────────────────────────


def make_ledger(folder: Path) -> None:
    """Accounts of every currency, with charges, reservations, a renewal and a crowd."""
    with Ledger(f"sqlite:///{folder / 'ledger.db'}") as ledger:
        pure = ledger.account("pure", limit=discreet.pure_dp(3))
        child = ledger.account("child", limit=discreet.pure_dp(1), parent=pure)
        approx = ledger.account(
            "approx", limit=discreet.approx_dp(4, 1e-6), renewals=2, expires=AHEAD
        )
        filtered = ledger.account("not adaptive", limit=discreet.approx_dp(2, 1e-6), adaptive=False)
        zcdp = ledger.account("zcdp", limit=discreet.zcdp(0.5))
        gdp = ledger.account("gdp", limit=discreet.gdp(2))
        replaced = ledger.account(
            "replaced", limit=discreet.approx_dp(1, 1e-6, relation=NeighboringRelation.REPLACE_ONE)
        )
        pure.charge(discreet.laplace(sensitivity=1, epsilon=0.5).guarantee, label="Laplace noise")
        child.charge(discreet.pure_dp(0.25), label="a child pays", request_id="request 1")
        child.reserve(discreet.pure_dp(0.125), label="still open", request_id="request 2")
        with child.reserve(discreet.pure_dp(0.125), label="released"):
            pass
        pure.reserve(discreet.pure_dp(0.125), label="failed").settle("failed")
        for one in (approx, filtered):
            one.charge(discreet.gaussian(sensitivity=1, epsilon=1, delta=1e-8).guarantee, label="G")
            one.charge(discreet.approx_dp(0.5, 1e-9), label="declared")
            one.charge(discreet.zcdp(0.01) * 3, label="three times")
        approx.renew(reason="a new year", expires=AHEAD)
        approx.charge(discreet.pure_dp(0.5), label="after the renewal")
        zcdp.charge(discreet.gaussian(sensitivity=1, rho=0.125).guarantee, label="rho")
        gdp.charge(discreet.gdp(1), label="mu")
        gdp.charge(discreet.gaussian(sensitivity=1, mu=0.5).guarantee, label="Gaussian noise")
        replaced.charge(
            discreet.pure_dp(0.5, relation=NeighboringRelation.REPLACE_ONE), label="replaced"
        )
        crowd = ledger.personal_budgets(
            "crowd",
            limits={"strict": discreet.zcdp(0.01), "open": discreet.zcdp(0.5)},
            members=["anna", "ben", "cleo", "dora"],
            privacy_levels=["strict", "open", "open", "strict"],
        )
        crowd.charge_eligible([0.02, 0.1, 0.2, 0.005], label="costs of each")
        crowd.charge_all(discreet.zcdp(0.001), label="the same for all")
        crowd.charge_eligible(
            personalized({"strict": discreet.zcdp(0.002), "open": discreet.zcdp(0.05)}),
            label="levels",
        )
        ledger.export(folder / "ledger.json", kind="json")
        ledger.export(folder / "ledger.csv", kind="csv")


def told_account(account: Account) -> dict[str, Any]:
    spent = account.spent
    return plain(
        {
            "limit": account.limit.to_json(),
            "relation": account.relation.name,
            "parents": account.parents,
            "expires": None if account.expires is None else account.expires.isoformat(),
            "period": account.period,
            "head": account.head,
            "renewals": account.policy.renewals,
            "adaptive": account.policy.adaptive,
            "composition": account.policy.composition,
            "orders": account.policy.orders,
            "spent": spent.to_json(),
            "epsilon": [spent.epsilon(delta) for delta in (1e-9, 1e-6)],
            "remaining": account.remaining,
            "history": [
                {
                    "sequence": one.sequence,
                    "kind": one.kind,
                    "time": one.time.isoformat(),
                    "label": one.label,
                    "guarantee": None if one.guarantee is None else one.guarantee.to_json(),
                    "outcome": one.outcome,
                    "request": one.request_id,
                    "origin": one.origin,
                    "period": one.period,
                    "hash": one.hash,
                }
                for one in account.history
            ],
        }
    )


def without_costs(text: str) -> list[list[str]]:
    """An export but for the words of costs: 0.1 named classes there."""
    return [row[:6] + row[7:] for row in csv.reader(io.StringIO(text))]


def seen_ledger(folder: Path) -> dict[str, Any]:
    """Balances, histories and heads; nothing is wrong, and exports are as they were."""
    with Ledger(f"sqlite:///{folder / 'ledger.db'}") as ledger:
        checked = ledger.verify()
        assert checked.ok, checked.problems
        assert ledger.verify(heads={one.name: one.head for one in ledger.accounts()}).ok
        assert ledger.export(kind="json") == text_of(folder / "ledger.json")
        assert without_costs(ledger.export(kind="csv")) == without_costs(
            text_of(folder / "ledger.csv")
        )
        crowd = ledger.personal_budgets("crowd")
        return {
            "accounts": {one.name: told_account(one) for one in ledger.accounts()},
            "checked": [checked.accounts, checked.entries],
            "heads": dict(checked.heads),
            "crowds": list(ledger.all_personal_budgets()),
            "crowd": plain(
                {
                    "members": crowd.members,
                    "levels": crowd.levels.tolist(),
                    "limits": crowd.limits.to_json(),
                    "spent": crowd.spent(),
                    "head": crowd.head,
                }
            ),
        }


# ── guarantees ────────────────────────────────────────────────────────────────────────────────

LAPLACE = events.DiscreteLaplaceEvent(scale=2, shift=1)
EVENTS: Mapping[str, events.Event] = {
    "pure": events.PureEvent(0.5),
    "approx": events.ApproxEvent(0.5, 1e-6),
    "zcdp": events.ZcdpEvent(0.125, 0.01),
    "gdp": events.GdpEvent(0.5),
    "laplace noise": events.LaplaceEvent(2),
    "gaussian noise": events.GaussianEvent(3),
    "discrete laplace": LAPLACE,
    "discrete gaussian": events.DiscreteGaussianEvent(variance=9, shift_squared=2, dimension=2),
    "truncated laplace": events.TruncatedLaplaceEvent(scale=2, shift=1, bound=30),
    "bounded range": events.BoundedRangeEvent(0.5),
    "either": events.EitherEvent((events.PureEvent(1), events.GdpEvent(1))),
    "composed": events.ComposedEvent(((LAPLACE, 3), (events.PureEvent(0.1), 2))),
    "sampled": events.SampledEvent(rate=0.1, inner=events.GaussianEvent(2)),
    "sampled without replacement": events.SampledWithoutReplacementEvent(
        sample=5, population=50, inner=events.PureEvent(1)
    ),
    "group": events.GroupEvent(size=3, inner=LAPLACE),
    "shuffled": events.ShuffledEvent(epsilon=1, reports=1000),
    "shuffled, two levels": events.ShuffledTwoLevelEvent(
        epsilon=1, reports=1000, parts=((1, 0.5, 0.25),)
    ),
    "nothing": events.NOTHING,
}
REPLACING = ("sampled without replacement", "shuffled", "shuffled, two levels")


def make_guarantees(folder: Path) -> None:
    """One of each kind of event, under every relation, and personal ones."""
    kept = {
        name: Guarantee(
            event,
            NeighboringRelation.REPLACE_ONE
            if name in REPLACING
            else NeighboringRelation.ADD_REMOVE,
        ).to_json()
        for name, event in EVENTS.items()
    }
    kept |= {
        f"under {one.name}": Guarantee(events.PureEvent(1), one).to_json()
        for one in NeighboringRelation
    }
    put(folder / "guarantees.json", json.dumps(kept, indent=1))
    menu = {"strict": discreet.pure_dp(0.25), "open": discreet.approx_dp(1, 1e-6)}
    put(folder / "personal_guarantee.json", personalized(menu).to_json())


def seen_guarantees(folder: Path) -> dict[str, Any]:
    """What each is worth; written again they are the same texts."""
    found: dict[str, Any] = {}
    for name, text in json.loads(text_of(folder / "guarantees.json")).items():
        read = Guarantee.from_json(text)
        assert read.to_json() == text
        assert events.from_json(events.to_json(read.event)) == read.event
        if name in EVENTS:
            assert read.event == EVENTS[name]
        numbers = [read.epsilon(1e-6), read.delta(0.5)]
        found[name] = [read.relation.name, plain(numbers)]
    text = text_of(folder / "personal_guarantee.json")
    menu = PersonalizedGuarantee.from_json(text)
    assert menu.to_json() == text
    return found | {"personal": plain(menu.epsilons(1e-6)), "worst": menu.worst.to_json()}


# ── releases ──────────────────────────────────────────────────────────────────────────────────


def make_releases(folder: Path) -> None:
    """One of each family."""
    with TemporaryDirectory() as other, Ledger(f"sqlite:///{other}/spent.db") as ledger:
        account = ledger.account("releases", limit=discreet.approx_dp(500, 0.01))
        table = opened(write_rows(Path(other) / "rows.csv"), account)
        amounts = ({"epsilon": 1}, {"rho": 0.25}, {"epsilon": 1, "delta": 1e-6})
        made: dict[str, Any] = {}
        for number, (name, query) in enumerate(QUERIES.items()):
            (made[name],) = table.release([query], label=f"n {number}", **amounts[number % 3])
        towns = table.discover_keys("town", max_groups_per_unit=2, epsilon=4, delta=1e-3)
        made["discovered"] = towns
        made["folded later"] = table.count(by="day", epsilon=2)
        made["mapped"] = made["count"].map(lambda value: {"thousands": value / 1000})
        made["by discovered"] = table.count(
            by="town", keys=keys(towns, include_other=True), epsilon=1
        )
        kept = {name: json.loads(one.to_json()) for name, one in made.items()}
        put(folder / "releases.json", json.dumps(kept, separators=(",", ":")))
        put(folder / "release.json", made["mean by place"].to_json())
        own = table.with_personal_budgets(
            privacy_levels={"strict": 0.25, "open": 1}, budget="level"
        )
        put(folder / "personal_count.json", own.count().to_json())
        put(folder / "personal_mean.json", own.mean("age", by="place").to_json())
        put(folder / "ranges_age.json", table.ranges("age", epsilon=1).to_json())
        put(folder / "ranges_day.json", table.ranges("day", rho=0.5, workload="prefixes").to_json())
        put(folder / "ranges_pay.json", table.ranges("pay", bins=16, epsilon=1).to_json())
        put(folder / "ranges_place.json", table.ranges("place", epsilon=1).to_json())
        grid = table.ranges(["place", "age"], bins={"age": 8}, epsilon=1)
        put(folder / "grid.json", grid.to_json())
        fine = table.large_domain_quantiles("pay", [0.25, 0.5], epsilon=4)
        put(folder / "fine_quantiles.json", fine.to_json())
        bounds = table.suggest_bounds("pay", epsilon=1, outermost=(0, 1 << 20))
        limits = table.suggest_contribution_limits(by="place", epsilon=1)
        put(folder / "suggested.toml", f"{bounds.toml}\n{limits.toml}\n")
    counts = np.arange(64) % 9
    plain_ranges = discreet.plan_ranges(64, "all", epsilon=1, data_aware=True)
    put(folder / "ranges_free.json", plain_ranges.best.release(counts).to_json())
    for number, offer in enumerate(plain_ranges.aware):
        put(folder / f"aware_{number}.json", offer.release(counts).to_json())
    shape = discreet.ranges.plan_grid([8, 4], "marginals", rho=0.5)
    put(folder / "grid_free.json", shape.best.release(np.ones((8, 4), dtype=int)).to_json())


def told_release(release: discreet.Release) -> dict[str, Any]:
    told = {
        "title": release.title,
        "question": release.query_text,
        "value": release.value,
        "epsilon": release.guarantee.epsilon(1e-6),
        "mechanism": release.mechanism,
        "protects": release.privacy_statement,
        "receipt": [
            release.receipt.account,
            release.receipt.sequence,
            release.receipt.hash,
            release.receipt.label,
            release.receipt.time.isoformat(),
            release.receipt.request_id,
            release.receipt.replayed,
        ],
    }
    if release._estimator is None:
        return plain(told)
    rows = [tuple(row.values()) for row in release.rows(0.9)]
    return plain({**told, "names": release.key_columns, "rows": rows})


def seen_releases(folder: Path) -> dict[str, Any]:
    """Values, errors and receipts; written again they are the same texts."""
    found: dict[str, Any] = {}
    made: dict[str, discreet.Release] = {}
    for name, content in json.loads(text_of(folder / "releases.json")).items():
        made[name] = discreet.Release.from_json(json.dumps(content))
        assert json.loads(made[name].to_json()) == content
        found[name] = told_release(made[name])
    found["folded"] = plain(made["folded later"].merge_small_groups(below=8).rows(0.9))
    found["sampled"] = plain(made["count where"].interval(0.9, sampling=False))
    text = text_of(folder / "release.json")
    assert discreet.Release.from_json(text).to_json() == text
    for name in ("personal_count", "personal_mean"):
        text = text_of(folder / f"{name}.json")
        own = PersonalizedRelease.from_json(text)
        assert own.to_json() == text
        found[name] = {
            "release": told_release(own.release),
            "epsilons": plain(own.guarantee.epsilons(1e-6)),
            "weights": plain(own.weights),
            "interval": plain(own.interval(0.9)),
        }
    fine = json.loads(text_of(folder / "fine_quantiles.json"))  # it has no reader
    receipt = read_receipt(fine["receipt"])
    found["fine quantiles"] = [fine["question"], fine["quantiles"], sorted(fine)]
    found["fine quantiles, receipt"] = [receipt.sequence, receipt.guarantee.to_json()]
    suggested = tomllib.loads(text_of(folder / "suggested.toml"))
    found["suggested"] = {
        name: sorted(dict(one)) if isinstance(one, dict) else one for name, one in suggested.items()
    }
    return found


def seen_cells(folder: Path) -> dict[str, Any]:
    """Answers of ranges and grids; what linear algebra makes of them, to ten digits."""
    found: dict[str, Any] = {}
    asked_of: dict[str, tuple[Any, Any]] = {
        "ranges_age": (18, 64),
        "ranges_day": (dt.date(2026, 1, 8), dt.date(2026, 1, 20)),
        "ranges_pay": (None, None),
        "ranges_place": ("north", "south"),
    }
    for name, ends in asked_of.items():
        text = text_of(folder / f"{name}.json")
        made = ChargedRangeRelease.from_json(text)
        assert made.to_json() == text
        bare = discreet.RangeRelease.from_json(text)
        assert bare.answer(*ends) == made.answer(*ends)
        found[name] = {
            "measured": plain(made.measured),
            "cells": made.domain.size,
            "private": made.private,
            "rows": made.contribution.rows,
            "answer": rounded([made.answer(*ends), made.answer_interval(*ends), made.total]),
            "epsilon": plain(made.guarantee.epsilon(1e-6)),
            "words": [made.title, made.query_text, made.mechanism, made.privacy_statement],
            "receipt": [made.receipt.account, made.receipt.sequence, made.receipt.hash],
        }
    text = text_of(folder / "grid.json")
    grid = ChargedGridRelease.from_json(text)
    assert grid.to_json() == text
    found["grid"] = {
        "measured": plain(grid.measured),
        "shape": list(grid.grid.shape),
        "answer": rounded([grid.answer(("north", "south"), None), grid.total]),
        "words": [grid.title, grid.query_text, grid.mechanism, grid.privacy_statement],
        "receipt": [grid.receipt.account, grid.receipt.sequence, grid.receipt.hash],
    }
    for name in ("ranges_free", "grid_free", "aware_0", "aware_1"):
        text = text_of(folder / f"{name}.json")
        if name == "ranges_free":
            one = discreet.RangeRelease.from_json(text)
            again, cells = one.to_json(), one.cells
            numbers = [one.answer(3, 40), one.answer_interval(3, 40), one.guarantee.epsilon()]
        elif name == "grid_free":
            box = discreet.GridRelease.from_json(text)
            again, cells = box.to_json(), box.cells
            numbers = [box.answer((1, 4), None), box.guarantee.epsilon(1e-6)]
        else:
            aware = DataDependentRelease.from_json(text)
            again, cells = aware.to_json(), aware.cells
            numbers = [aware.answer((3, 40)), aware.total, aware.guarantee.epsilon()]
        assert again == text
        found[name] = {"cells": rounded(cells), "numbers": rounded(numbers)}
    return found


# ── local reports ─────────────────────────────────────────────────────────────────────────────


def make_local(folder: Path) -> None:
    """Collections, reports, files, sums, clients."""
    collections, sums = {}, {}
    for name, (randomizer, _) in MADE.items():
        collections[name] = local.CollectionSpec(randomizer=randomizer).to_json()
        rows = encoded(name)
        (folder / f"{name}.reports").write_bytes(rows.tobytes())
        if randomizer.size <= 300:  # the others hold many zeros
            sums[name] = local.Aggregator(randomizer).add(rows).to_bytes().hex()
    labels = tuple("abcdefg")
    named = local.CollectionSpec(randomizer=MADE["oue"][0], labels=labels)
    collections["labels"] = named.to_json()
    put(folder / "collections.json", json.dumps(collections, indent=1))
    put(folder / "aggregates.json", json.dumps(sums, indent=1))
    with local.ReportWriter(folder / "reports.dlr", named) as writer:
        writer.write(encoded("oue"))
    with local.AggregatorState(folder / "state.db", named) as state:
        state.count([folder / "reports.dlr"])
    tree = MADE["ranges.tree"][0]
    total = local.Aggregator(tree).add(encoded("ranges.tree"))
    put(folder / "local_ranges.json", total.estimate().to_json())
    fresh = local.BudgetedClient(MADE["grr"][0], budget=2)
    fresh.report(3)
    put(folder / "fresh_client.json", fresh.to_json())
    plan = MADE["rappor"][0]
    assert isinstance(plan, MemoizedOracle)
    kept = local.MemoizedClient(plan, budget=4, reports=5)
    kept.memoize(3)
    kept.report()
    put(folder / "memoised_client.json", kept.to_json())


def seen_local(folder: Path) -> dict[str, Any]:
    """Each collection rebuilt, each report counted, each sum and client read."""
    found: dict[str, Any] = {}
    collections = json.loads(text_of(folder / "collections.json"))
    sums = json.loads(text_of(folder / "aggregates.json"))
    for name, text in collections.items():
        made = local.CollectionSpec.from_json(text)
        assert made.to_json() == text
        told = [made.fingerprint, made.randomizer.kind, made.randomizer.fingerprint]
        found[name] = {"collection": [*told, plain(made.randomizer.guarantee.epsilon())]}
        if name not in MADE:
            found[name]["labels"] = list(made.labels)
            continue
        assert made.randomizer == MADE[name][0]
        reports = (folder / f"{name}.reports").read_bytes()
        total = local.Aggregator(made.randomizer).add(reports)
        assert (total.reports, total.refused) == (24, 0)
        if name in sums:
            held = bytes.fromhex(sums[name])
            assert local.Aggregator.from_bytes(held) == total
            assert local.Aggregator.from_bytes(held, made.randomizer).to_bytes() == held
            assert total.to_bytes() == held
            found[name]["counts"] = plain(total.counts)
    return found | seen_files(folder)


def seen_files(folder: Path) -> dict[str, Any]:
    """A file of reports, the state of a count, ranges, clients."""
    with (folder / "reports.dlr").open("rb") as stream:
        head = read_header(stream)
    named = local.CollectionSpec.from_json(head.description)
    with local.AggregatorState(folder / "state.db") as state:
        assert state.collection == named
        sums = [state.aggregate.reports, state.aggregate.refused, plain(state.aggregate.counts)]
        shares = rounded(state.aggregate.estimate().shares)
        files = {name: list(place) for name, place in state.files()}
        (again,) = state.count([folder / "reports.dlr"])  # all of it was counted
        assert (again.reports, again.refused, again.note) == (0, 0, "")
    text = text_of(folder / "local_ranges.json")
    cells = local.LocalRanges.from_json(text)
    assert cells.to_json() == text
    text = text_of(folder / "fresh_client.json")
    fresh = local.BudgetedClient.from_json(text, randomizer=MADE["grr"][0])
    assert fresh.to_json() == text
    plan = MADE["rappor"][0]
    assert isinstance(plan, MemoizedOracle)
    text = text_of(folder / "memoised_client.json")
    kept = local.MemoizedClient.from_json(text, plan=plan)
    assert kept.to_json() == text
    return {
        "header": [head.width, head.identity, head.fingerprint, head.length],
        "state": [*sums, shares, files],
        "local ranges": rounded([cells.answer(8, 40), cells.reports, cells.cells[:8]]),
        "fresh": plain([fresh.sent, fresh.budget, fresh.guarantee.epsilon()]),
        "memoised": plain([kept.sent, kept.periods, kept.limit, kept.budget]),
    }


# ── streams ───────────────────────────────────────────────────────────────────────────────────

PLANS: Mapping[str, StreamPlan] = {
    "horizon": discreet.plan_stream(epsilon=1, horizon=64),
    "gaussian": discreet.plan_stream(rho=0.125, horizon=64, keys=["a", "b"]),
    "window": discreet.plan_stream(epsilon=1, window=8, max_rows_per_unit=2),
    "without end": discreet.plan_stream(
        epsilon=1, delta=1e-6, relation=NeighboringRelation.REPLACE_ONE
    ),
}


def make_streams(folder: Path) -> None:
    """Plans, and two streams in files, paid by a ledger."""
    put(folder / "stream_plans.json", json.dumps({n: p.to_json() for n, p in PLANS.items()}))
    with Ledger(f"sqlite:///{folder / 'stream_ledger.db'}") as ledger:
        account = ledger.account("streams", limit=discreet.approx_dp(10, 1e-6))
        with discreet.stream(
            folder / "stream.db", account=account, epsilon=1, horizon=64, label="visits"
        ) as visits:
            visits.feed([place % 5 for place in range(20)])
        with discreet.stream(
            folder / "units.db", account=account, epsilon=1, window=8, enforce_limits=True
        ) as limited:
            limited.events([1, 1, 2], units=["anna", "anna", "ben"], end=3)


def seen_streams(folder: Path) -> dict[str, Any]:
    """Plans with their errors; streams with their last answers, that go on and are not charged."""
    found: dict[str, Any] = {}
    for name, text in json.loads(text_of(folder / "stream_plans.json")).items():
        plan = StreamPlan.from_json(text)
        assert plan == PLANS[name]
        assert plan.to_json() == text
        told = plan.forecast(16)
        found[name] = [plan.guarantee.to_json(), rounded([told.std, told.half_width])]
    with Ledger(f"sqlite:///{folder / 'stream_ledger.db'}") as ledger:
        account = ledger.account("streams")
        before = account.head
        options: dict[str, dict[str, Any]] = {
            "stream.db": {"horizon": 64},
            "units.db": {"window": 8, "enforce_limits": True},
        }
        for name, option in options.items():
            with discreet.stream(folder / name, account=account, epsilon=1, **option) as made:
                last = made.last
                assert last is not None
                found[name] = plain([made.steps, last.first, last.values, made.receipt.hash])
                assert made.receipt.replayed
        assert account.head == before
    return found


def seen_stream_goes_on(folder: Path) -> dict[str, Any]:
    """A stream is fed further."""
    plan = discreet.plan_stream(epsilon=1, horizon=64)
    file = StreamFile(folder / "stream.db", plan=plan, units=False, payer="streams")
    answers = file.feed([1, 2, 3], rng=discreet.seeded_rng(7))
    found = plain([file.steps, answers.first, answers.values, answers.std])
    file.close()
    return {"goes on": found}


# ── questions that are sent ───────────────────────────────────────────────────────────────────


def make_sent(folder: Path) -> None:
    """Questions and expressions as JSON."""
    sent = {name: write_query(query) for name, query in QUERIES.items()}
    sent["ranges"] = write_query(ranges("age", workload=[(18, 64)]))
    sent["ranges in bins"] = write_query(ranges("pay", bins=8, where=col("well")))
    sent["rectangles"] = write_query(rectangles(["place", "age"], bins={"age": 4}))
    one = ((col("age") + 2) * 3 - col("pay") % 7).clip(lower=0, upper=50)
    put(folder / "sent.json", json.dumps({"questions": sent, "expression": write_expression(one)}))


def seen_sent(folder: Path) -> dict[str, Any]:
    """What arrives costs and asks the same; sent again it is the same."""
    content = json.loads(text_of(folder / "sent.json"))
    found: dict[str, Any] = {}
    for name, words in content["questions"].items():
        work = release_spec([{**words, "epsilon": 0.5}], setting=SETTINGS["people"]).plan()
        found[name] = [work.guarantee.to_json(), list(work.titles)]
        if work.questions and words["kind"] not in ("median", "quantiles"):
            (arrived,) = work.questions
            again = json.loads(json.dumps(write_query(arrived.query)))
            (back,) = release_spec(
                [{**again, "epsilon": 0.5}], setting=SETTINGS["people"]
            ).statistics
            assert back.query.text == arrived.query.text
    back = read_expression(content["expression"])
    assert json.loads(json.dumps(write_expression(back))) == content["expression"]
    found["expression"] = repr(back)
    mean = discreet.query.mean(back)
    found["cost"] = ask_price(mean)
    return found


def ask_price(query: queries.Query) -> str:
    from discreet.query._release_plan import plan_release

    return plan_release(
        [query], setting=SETTINGS["people"], budget=budget(epsilon=0.5)
    ).guarantee.to_json()


# ── the command line ──────────────────────────────────────────────────────────────────────────

COLUMNS = """
age = { kind = "integer", lower = 0, upper = 120 }
place = { kind = "category", levels = ["north", "south", "east"], other = false }
pay = { kind = "real", lower = 0, upper = 1024, grid = 0.25 }
day = { kind = "date", lower = 2026-01-01, upper = 2026-01-31 }
well = { kind = "boolean" }
"""
RELEASE = f"""title = "A release"
[table]
source = "rows.csv"
unit = "who"
max_rows_per_unit = 3
[columns]
{COLUMNS}
[account]
ledger = "sqlite:///budget.db"
name = "commands"
limit = {{ epsilon = 8, delta = 1e-6 }}
[[statistic]]
name = "People"
kind = "units"
within = 60
[[statistic]]
kind = "mean"
of = "age"
by = ["place"]
rows = 100
epsilon = 1
[[statistic]]
name = "Old"
kind = "count"
where = [{{ column = "age", at_least = 65 }}]
rho = 0.125
[[statistic]]
name = "Ages"
kind = "ranges"
of = "age"
epsilon = 1
"""
FILES = ["release.csv", "release.html", "release.json", "release.ranges-1.json"]


def run(*words: str) -> str:
    """What a command prints."""
    done = CliRunner().invoke(command, list(words))
    assert done.exit_code == 0, done.output
    return done.stdout


def make_commands(folder: Path) -> None:
    """A release file, and what is released by it; what plans and ledgers say as JSON."""
    write_rows(folder / "rows.csv")
    put(folder / "release.toml", RELEASE)
    put(folder / "plan.json", run("plan", str(folder / "release.toml"), "--json"))
    run("release", str(folder / "release.toml"))
    told = run("ledger", "show", f"sqlite:///{folder / 'budget.db'}", "commands", "--json")
    put(folder / "show.json", told)
    (folder / "rows.csv").unlink()
    names = sorted(path.name for path in folder.glob("release.*") if path.suffix != ".toml")
    put(folder / "names.json", json.dumps(names))
    (folder / "release.html").unlink()  # for people, and large


def seen_commands(folder: Path) -> dict[str, Any]:
    """Files by their names, each number in them, and the same plan as before."""
    assert json.loads(text_of(folder / "names.json")) == FILES
    content = json.loads(text_of(folder / "release.json"))
    releases = [discreet.Release.from_json(json.dumps(one)) for one in content["releases"]]
    made = ChargedRangeRelease.from_json(text_of(folder / "release.ranges-1.json"))
    lines = text_of(folder / "release.csv").splitlines()
    with Ledger(f"sqlite:///{folder / 'budget.db'}") as ledger:
        assert ledger.verify().ok
        account = told_account(ledger.account("commands"))
    told = run("ledger", "show", f"sqlite:///{folder / 'budget.db'}", "commands", "--json")
    now, then = json.loads(told), json.loads(text_of(folder / "show.json"))
    # 0.1 had no statement, and counted the classes of what was spent.
    assert now.pop("statement")["lines"]
    for one in (*now["history"], *then["history"]):
        one.pop("cost")
    assert now == then
    file = read_release_file(folder / "release.toml")
    return {
        "file": [file.title, file.account, list(file.plan().titles)],
        "price": file.plan().guarantee.to_json(),
        "content": [content["title"], sorted(content), content["guarantee"]],
        "releases": [told_release(one) for one in releases],
        "rows": [one["rows"] for one in content["releases"]],
        "ranges": [plain(made.measured), made.title, rounded(made.answer(18, 64))],
        "csv": [lines[0], len(lines), lines[1]],
        "account": account,
        "plan": sorted(json.loads(text_of(folder / "plan.json"))),
    }


# ── the service ───────────────────────────────────────────────────────────────────────────────

SERVE = """[server]
address = "127.0.0.1:8337"
store = "sqlite:///service.db"
ledger = "sqlite:///service_ledger.db"
[[table]]
name = "people"
title = "People"
source = "rows.csv"
unit = "who"
max_rows_per_unit = 3
rows = 240
account = "people"
limit = { epsilon = 20, delta = 1e-6 }
analyst_limit = { epsilon = 8, delta = 1e-6 }
[table.columns]
"""
ANALYST = User(name="analyst", role="analyst")
OWNER = User(name="owner", role="owner")
ASKED: tuple[Mapping[str, Any], ...] = (
    {"kind": "count", "by": ["place"], "epsilon": 0.5},
    {"kind": "ranges", "of": "age", "epsilon": 0.5},
)


def make_service(folder: Path) -> None:
    """People, a release, an audit's note and a refused request."""
    write_rows(folder / "rows.csv")
    put(folder / "serve.toml", SERVE + COLUMNS)
    service = Service(read_config(folder / "serve.toml"))
    life = timedelta(days=3650)
    tokens = {
        role: service.users.add(role, role, life=life)[0]
        for role in ("owner", "analyst", "auditor")
    }
    service.users.add("left", "analyst", life=life)
    service.users.revoke("left")
    service.start()
    for number, one in enumerate(ASKED):
        service.submit(ANALYST, "people", [one], request_id=f"request {number}")
    ends = time.monotonic() + 30
    while time.monotonic() < ends and any(
        job.state in ("queued", "running") for job in service.releases(ANALYST)
    ):
        time.sleep(0.05)
    service.close()
    put(folder / "tokens.json", json.dumps(tokens))
    (folder / "rows.csv").unlink()


def seen_service(folder: Path) -> dict[str, Any]:
    """Who is known by which token, what was asked and answered, and what was spent."""
    write_rows(folder / "rows.csv")
    store = open_store(f"sqlite:///{folder / 'service.db'}")
    people = UserStore(store)
    tokens = json.loads(text_of(folder / "tokens.json"))
    recognized = {role: people.by_token(token) for role, token in tokens.items()}
    known = [[one.name, one.role, one.revoked, one.expires] for one in people.known()]
    store.close()
    service = Service(read_config(folder / "serve.toml"))
    try:
        jobs = sorted(service.releases(ANALYST), key=lambda job: job.request_id)
        answers = [service.result(ANALYST, job.id) for job in jobs]
        files = [service.release_file(ANALYST, job.id, "json").text for job in jobs]
        ledger = service.shared_ledger
        assert ledger.verify().ok
        accounts = {one.name: told_account(one) for one in ledger.accounts()}
    finally:
        service.close()
    return {
        "tokens": {role: None if who is None else who.name for role, who in recognized.items()},
        "known": known,
        "jobs": [
            [one.id, one.request_id, one.table, one.title, one.state, one.account, one.worth]
            for one in jobs
        ],
        "asked": [[dict(each) for each in one.statistics] for one in jobs],
        "releases": [told_release(one) for releases, _ in answers for one in releases],
        "ranges": [plain(one.measured) for _, some in answers for one in some],
        "files": [sorted(json.loads(text)) for text in files],
        "accounts": accounts,
    }


# ── all ───────────────────────────────────────────────────────────────────────────────────────

MAKE: Mapping[str, Callable[[Path], None]] = {
    "ledger": make_ledger,
    "guarantees": make_guarantees,
    "releases": make_releases,
    "local": make_local,
    "streams": make_streams,
    "sent": make_sent,
    "commands": make_commands,
    "service": make_service,
}
SEEN: Mapping[str, tuple[str, Callable[[Path], dict[str, Any]]]] = {
    "ledger": ("ledger", seen_ledger),
    "guarantees": ("guarantees", seen_guarantees),
    "releases": ("releases", seen_releases),
    "cells": ("releases", seen_cells),
    "local": ("local", seen_local),
    "streams": ("streams", seen_streams),
    "stream goes on": ("streams", seen_stream_goes_on),
    "sent": ("sent", seen_sent),
    "commands": ("commands", seen_commands),
    "service": ("service", seen_service),
}


def make_all() -> None:
    """Every fixture, anew."""
    for name, make in MAKE.items():
        folder = WRITTEN / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        make(folder)
        for path in folder.glob("*.db"):  # mostly empty pages
            path.with_name(path.name + ".gz").write_bytes(gzip.compress(path.read_bytes(), mtime=0))
            path.unlink()


def copied(name: str, folder: Path) -> Path:
    """A copy of a fixture, with its databases unpacked: reading one may change its file."""
    made = Path(shutil.copytree(WRITTEN / name, folder / name))
    for path in made.glob("*.db.gz"):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
    return made


def see(name: str, folder: Path) -> dict[str, Any]:
    """What a copy of a fixture holds, as JSON has it."""
    place, seen = SEEN[name]
    return json.loads(json.dumps(seen(copied(place, folder))))

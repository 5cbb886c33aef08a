"""E14: the same guarantee under less and less trust: central, shuffled, local."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from discreet.accounting import shuffle as randomizers
from discreet.accounting.guarantee import Guarantee
from discreet.accounting.shuffle import Parts, closed_form
from discreet.core.events import PureEvent
from discreet.core.relation import NeighboringRelation
from discreet.local.ranges.hierarchical import flat_histogram
from discreet.local.ranges.plan import optimal_hierarchical_histogram
from discreet.local.trust_models import TrustComparison, compare_trust_models
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import RandomSource, seeded_rng
from discreet.ranges._strategy_design import RangeDesign
from discreet_studies.checks import Claims
from discreet_studies.range_queries import client_reports as clients
from discreet_studies.range_queries import reference_values as stated
from discreet_studies.range_queries.client_reports import ALL
from discreet_studies.range_queries.tree_cover import running
from discreet_studies.study import Figure, Findings, Line, StudyCheck, StudySetting, StudyTable

_CELLS = 1024
_USERS = 100_000
_DELTA = 1e-6
_RANGES = 100
_REPORTS = 10_000
"""Of the figure, and of a quick run."""
_RUNGS = ("central", "shuffle", "local")
_BOUNDS = ("closed form", "clones", "binary responses")


def trust(setting: StudySetting) -> Findings:
    """E14: errors before anything is collected, and by simulation."""
    made = compare_trust_models(
        clients.days(_CELLS), ALL, epsilon=1, delta=_DELTA, expected_clients=_USERS
    )
    amplified = {
        cell: _amplified(*cell)
        for cell in stated.SHUFFLED
        if cell[0] == _REPORTS or not setting.quick
    }
    return Findings(
        checks=(
            *_amplification(amplified),
            *_rungs(made),
            *_as_derived(),
            *_simulated(setting, made),
        ),
        tables=(_ladder_table(made), _shuffle_table(amplified)),
        figures=(_figure(amplified),),
    )


# ── amplification by shuffling ─────────────────────────────────────────────────────────────────


def _epsilon(local: float, users: int, parts: Parts = ()) -> float:
    report = Guarantee(PureEvent(Fraction(local)), NeighboringRelation.LOCAL)
    return report.shuffled(reports=users, parts=parts).epsilon(_DELTA)


def _amplified(users: int, local: float) -> dict[str, float]:
    return {
        "closed form": closed_form(local, delta=_DELTA, reports=users),
        "clones": _epsilon(local, users),
        "binary responses": _epsilon(local, users, randomizers.block_design_parts(points=2)),
    }


def _amplification(amplified: dict[tuple[int, float], dict[str, float]]) -> list[StudyCheck]:
    made: list[StudyCheck] = []
    for (users, local), got in amplified.items():
        printed = zip(_BOUNDS, stated.SHUFFLED[users, local], strict=True)
        expected = {name: number for name, number in printed if number is not None}
        where = f"{users:,} reports of epsilon {local:g}"
        made += Claims(source="F56").numbers(
            f"E14/shuffled/{where}",
            f"epsilon at delta 1e-6 of {where}",
            expected=expected,
            got={name: got[name] for name in expected},
            absolute=0.0006,
        )
        made.append(
            Claims(source="F56").at_most(
                f"E14/shuffled/{where}/order",
                f"{where}: numbers are no larger than the closed form, ratio",
                expected=1.0,
                got=max(got["clones"], got["binary responses"]) / got["closed form"],
            )
        )
    return made


# ── the ladder ─────────────────────────────────────────────────────────────────────────────────


def _rungs(made: TrustComparison) -> list[StudyCheck]:
    claims = Claims(
        source="F56, F59",
        why="Expected were 24.9 in the central model, 165 shuffled (183 before), 2405 local. The "
        "central tree may use the public number of users; shuffled reports are accounted for "
        "by what they are, not as any reports; local levels take the best oracle each.",
    )
    limits = {"central": 25.0, "shuffle": 165.0, "local": 2405.0}
    checks = [
        claims.at_most(
            f"E14/ladder/{model}",
            f"error at n = {_USERS:,}, {_CELLS} cells, epsilon 1, replace-one: {model}",
            expected=limit,
            got=made[model].rmse,
        )
        for model, limit in limits.items()
    ]
    checks.append(
        Claims(source="F59").order(
            "E14/ladder/order",
            "less trust, more error",
            expected=_RUNGS,
            got={model: made[model].rmse for model in _RUNGS},
        )
    )
    return checks


def _as_derived() -> list[StudyCheck]:
    """The figures that were derived before, from the same laws."""
    days = clients.days(_CELLS)
    local = 5.7
    shuffled = {
        oracle: optimal_hierarchical_histogram(
            domain=days, epsilon=local, workload=ALL, oracle=oracle
        )
        for oracle in ("subset_selection", "oue")
    }
    alone = optimal_hierarchical_histogram(domain=days, epsilon=1, workload=ALL, oracle="oue")
    claims = Claims(source="F50, F56")
    subset = shuffled["subset_selection"].law.mean(ALL)
    return [
        claims.number(
            "E14/derived/closed form", "epsilon of 100,000 shuffled reports of 5.7, closed form",
            expected=0.9997, got=closed_form(local, delta=_DELTA, reports=_USERS), absolute=1e-4,
        ),
        claims.number(
            "E14/derived/subset selection", "n x variance at 5.7, subset selection on all levels",
            expected=0.273, got=subset, absolute=0.0006,
        ),
        claims.number(
            "E14/derived/error", "and its error at 100,000 users",
            expected=165.0, got=math.sqrt(_USERS * subset), absolute=0.6,
        ),
        claims.number(
            "E14/derived/unary encoding", "n x variance at 5.7, unary encoding on all levels",
            expected=0.584, got=shuffled["oue"].law.mean(ALL), absolute=0.0006,
        ),
        claims.number(
            "E14/derived/flat", "n x variance at 5.7, flat by subset selection",
            expected=2.14,
            got=flat_histogram(domain=days, epsilon=local, oracle="subset_selection").law.mean(ALL),
            absolute=0.006,
        ),
        claims.number(
            "E14/derived/local", "local error by unary encoding on optimized levels, epsilon 1",
            expected=2405.0, got=math.sqrt(_USERS * alone.law.mean(ALL)), relative=0.003,
        ),
    ]  # fmt: skip


def _counts() -> Ints:
    """As even as whole users can be."""
    return np.diff(np.arange(_CELLS + 1) * _USERS // _CELLS)


def _simulated(setting: StudySetting, made: TrustComparison) -> list[StudyCheck]:
    """Every rung end to end: releases of the curator, reports of all clients."""
    counts = _counts()
    ends = np.sort(setting.rng("E14").integers(0, _CELLS + 1, size=(4 * _RANGES, 2)), axis=1)
    ends = ends[ends[:, 0] < ends[:, 1]][:_RANGES]
    first, last = ends[:, 0], ends[:, 1] - 1
    checks = []
    for model in _RUNGS:
        design = made[model].design
        bits = seeded_rng(setting.seed + len(model))
        claim = f"{model} model, {_USERS:,} users on {_CELLS} cells, epsilon 1"
        if isinstance(design, RangeDesign):
            drawn = _released(design, counts, (first, last), setting.times(200, quick=20), bits)
            checks.append(
                clients.squared(
                    Claims(source="F30, F59"),
                    f"E14/simulated, {model}",
                    claim,
                    drawn,
                    clients.from_single(design.variance, first, last),
                    # E X^4 = Var (6 Var + 1) for discrete Laplace noise.
                    excess=3 + 1 / float(design.noise.min()),
                )
            )
            continue
        checks.append(
            clients.simulated(
                Claims(source="F50, F56"),
                f"E14/simulated, {model}",
                claim,
                design,
                counts,
                ranges=(first, last),
                structures=setting.times(100, quick=6),
                rng=bits,
            )
        )
    return checks


def _released(
    design: RangeDesign,
    counts: Ints,
    ranges: tuple[Ints, Ints],
    structures: int,
    rng: RandomSource,
) -> Floats:
    first, last = ranges
    before = running(counts)
    truth = before[last + 1] - before[first]
    return np.array(
        [
            design.release(counts, rng=rng).answer_many(first, last) - truth
            for _ in range(structures)
        ]
    )


def _ladder_table(made: TrustComparison) -> StudyTable:
    return StudyTable(
        id="E14/ladder",
        title=f"Errors under one guarantee: {_USERS:,} users, {_CELLS} cells, all ranges",
        columns=("model", "trusted", "structure", "RMSE (users)", "% of all", "report's epsilon"),
        rows=tuple(
            (
                rung.model,
                rung.trusted,
                rung.structure,
                rung.rmse,
                100 * rung.rmse / _USERS,
                "none" if math.isinf(rung.local_epsilon) else rung.local_epsilon,
            )
            for rung in made.rungs
        ),
        note="(1, 1e-6) if one user's value is replaced; exact, before anything is collected.",
    )


def _shuffle_table(amplified: dict[tuple[int, float], dict[str, float]]) -> StudyTable:
    return StudyTable(
        id="E14/shuffled",
        title="Epsilon at delta 1e-6 of shuffled reports",
        columns=("reports", "epsilon of a report", *_BOUNDS),
        rows=tuple((*cell, *(by[name] for name in _BOUNDS)) for cell, by in amplified.items()),
        note="Clones: any reports. Binary responses: reports that are one randomized bit each.",
    )


def _figure(amplified: dict[tuple[int, float], dict[str, float]]) -> Figure:
    every = {local: by for (users, local), by in amplified.items() if users == _REPORTS}
    return Figure(
        id="E14/errors",
        title="Amplification by shuffling: epsilon of all reports against that of one",
        x="epsilon of a report",
        y="epsilon of all reports, shuffled",
        lines=tuple(
            Line(label=name, x=tuple(every), y=tuple(by[name] for by in every.values()))
            for name in _BOUNDS
        ),
        note=f"{_REPORTS:,} reports, delta 1e-6, exact upper bounds",
        log_y=True,
    )

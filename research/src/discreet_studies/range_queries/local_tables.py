"""E12: errors of local structures over all ranges, in closed form and by reports."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from discreet.local.oracles.base import FrequencyOracle
from discreet.local.oracles.randomized_response import grr
from discreet.local.oracles.unary_encoding import oue
from discreet.local.ranges.haar import haar_wavelet
from discreet.local.ranges.hierarchical import (
    LocalHierarchicalHistogram,
    flat_histogram,
    hierarchical_histogram,
)
from discreet.local.ranges.plan import best_shares, optimal_hierarchical_histogram
from discreet.noise.distribution import Ints
from discreet.noise.random_source import seeded_rng
from discreet.ranges.strategies.base import rounded_shares
from discreet_studies.checks import Claims
from discreet_studies.range_queries import central_model
from discreet_studies.range_queries import client_reports as clients
from discreet_studies.range_queries import reference_values as stated
from discreet_studies.range_queries.client_reports import ALL
from discreet_studies.range_queries.example_counts import even
from discreet_studies.range_queries.local_model import Levels, PublishedUnary
from discreet_studies.range_queries.tree_cover import height, starts
from discreet_studies.study import Figure, Findings, Line, StudyCheck, StudySetting, StudyTable

_PER_CELL = 50
_RANGES = 100
_WHY = (
    "Derived with levels as if they sampled independent users, and in part without the variance of "
    "a user's own bit; here is the exact law."
)
Columns = dict[str, float]


def all_ranges(setting: StudySetting) -> Findings:
    """E12: n times the mean variance over all ranges."""
    domains = (64,) if setting.quick else (64, 256, 1024)
    found = {cell: _row(*cell) for cell in stated.LOCAL_VARIANCES if cell[0] in domains}
    checks: list[StudyCheck] = []
    for cell, row in found.items():
        printed = zip(stated.LOCAL_STRUCTURES, stated.LOCAL_VARIANCES[cell], strict=True)
        expected = {name: number for name, number in printed if number is not None}
        checks += Claims(source="F13, F48 to F51").sampled(
            f"E12/all ranges/D={cell[0]}, epsilon {cell[1]:g}",
            f"n x mean variance over all ranges, domain {cell[0]}, epsilon {cell[1]:g}",
            expected=expected,
            # Without inference the nodes alone were counted, not how users fall on levels.
            got={name: row.get(f"{name}, nodes alone", row[name]) for name in expected},
            fine=0.006,
            coarse=0.045,
            why=_WHY,
        )
    checks += _exact(domains)
    checks += _issue()
    checks += _simulated(setting)
    return Findings(checks=tuple(checks), tables=(_table(found),), figures=(_figure(),))


def _row(domain: int, epsilon: float) -> Columns:
    days = clients.days(domain)
    found: Columns = {
        "flat, oue, raw": _raw(oue(categories=domain, epsilon=epsilon)),
        "flat, oue": flat_histogram(domain=days, epsilon=epsilon, oracle="oue").law.mean(ALL),
        "flat, grr": _raw(grr(categories=domain, epsilon=epsilon)),
        "flat, ss": flat_histogram(
            domain=days, epsilon=epsilon, oracle="subset_selection"
        ).law.mean(ALL),
    }
    for degree in (2, 4):
        if domain <= 256:
            found[f"B={degree}, raw, nodes alone"] = _nodes(domain, degree, epsilon)
            found[f"B={degree}, raw"] = _plain(domain, degree, epsilon)
        for oracle, name in (("oue", ""), ("subset_selection", ", ss")):
            made = hierarchical_histogram(
                domain=days, epsilon=epsilon, branching=degree, oracle=oracle
            )
            found[f"B={degree}{name}"] = made.law.mean(ALL)
            found[f"B={degree}{name}, optimized"] = _optimized(made).law.mean(ALL)
    found["Haar"] = haar_wavelet(domain=days, epsilon=epsilon).law.mean(ALL)
    return found


def _raw(oracle: FrequencyOracle) -> float:
    """Over all ranges of a flat histogram, if all cells are equally frequent."""
    domain = oracle.categories
    lengths = np.arange(1, domain + 1)
    return float(
        np.average(oracle.range_variance(lengths, lengths / domain), weights=lengths[::-1])
    )


def _plain(domain: int, degree: int, epsilon: float) -> float:
    """A tree without inference: the fewest nodes of each range  # F16."""
    model = Levels(oracle=PublishedUnary(epsilon=epsilon), degree=degree, root=False)
    counts = even(domain, per_day=_PER_CELL)
    total = sum(
        float(model.variances(counts, starts(domain, length=r), length=r).sum())
        for r in range(1, domain + 1)
    )
    return total / (domain * (domain + 1) / 2) / int(counts.sum())


def _nodes(domain: int, degree: int, epsilon: float) -> float:
    """The largest part of it: levels times the variance of a node times the nodes of a range."""
    other = oue(categories=domain, epsilon=epsilon).variance(0.0)
    nodes = sum(
        int(central_model.nodes(length=r, domain=domain, degree=degree, root=False).sum())
        for r in range(1, domain + 1)
    )
    return height(domain, degree=degree) * float(other) * nodes / (domain * (domain + 1) / 2)


def _optimized(made: LocalHierarchicalHistogram) -> LocalHierarchicalHistogram:
    """The same levels with the best shares of users for all ranges."""
    return replace(made, shares=rounded_shares(best_shares(made.law, ALL)))


def _exact(domains: tuple[int, ...]) -> list[StudyCheck]:
    """Exact values that were derived by another way."""
    made: list[StudyCheck] = []
    for (domain, oracle), number in stated.OPTIMIZED_EXACT.items():
        if domain in domains:
            best = optimal_hierarchical_histogram(
                domain=clients.days(domain), epsilon=1, workload=ALL, oracle=oracle
            )
            made.append(
                Claims(source="F50").number(
                    f"E12/exact/D={domain}, {oracle}",
                    f"n x mean variance of the optimized tree, {oracle}, domain {domain}",
                    expected=number,
                    got=best.law.mean(ALL),
                    absolute=0.006,
                )
            )
    return made


def _issue() -> list[StudyCheck]:
    """The domain of 1024 at epsilon 1, in every run."""
    days = clients.days(1024)
    best = optimal_hierarchical_histogram(
        domain=days, epsilon=1, workload=ALL, oracle="subset_selection"
    )
    short = optimal_hierarchical_histogram(domain=days, epsilon=1, workload=ALL)
    claims = Claims(source="F50, F51")
    return [
        claims.at_most(
            "E12/optimized/least", "n x variance of the optimized tree, domain 1024, epsilon 1",
            expected=55.0, got=best.law.mean(ALL),
        ),
        claims.at_most(
            "E12/optimized/short reports", "the same with the shortest reports within a percent",
            expected=55.0, got=short.law.mean(ALL),
        ),
        claims.number(
            "E12/optimized/uniform", "equal levels by unary encoding, degree 2",
            expected=70.5, got=hierarchical_histogram(domain=days, epsilon=1,
            oracle="oue").law.mean(ALL),
            relative=0.005,
        ),
        claims.number(
            "E12/optimized/Haar", "Haar by Hadamard responses, equal levels",
            expected=71.6, got=haar_wavelet(domain=days, epsilon=1).law.mean(ALL), relative=0.005,
        ),
        claims.number(
            "E12/optimized/flat", "flat by unary encoding, projected",
            expected=629.0, got=flat_histogram(domain=days, epsilon=1, oracle="oue").law.mean(ALL),
            relative=0.005,
        ),
    ]  # fmt: skip


def _asked(domain: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
    """Random ranges, all alike likely."""
    ends = np.sort(rng.integers(0, domain + 1, size=(4 * _RANGES, 2)), axis=1)
    ends = ends[ends[:, 0] < ends[:, 1]][:_RANGES]
    return ends[:, 0], ends[:, 1] - 1


def _simulated(setting: StudySetting) -> list[StudyCheck]:
    """Every structure through its clients, on even counts."""
    made = []
    for domain in (64,) if setting.quick else (64, 256, 1024):
        days = clients.days(domain)
        counts = even(domain, per_day=_PER_CELL)
        ranges = _asked(domain, setting.rng("E12"))
        structures: dict[str, clients.Structure] = {
            "flat, oue": flat_histogram(domain=days, epsilon=1, oracle="oue"),
            "flat, ss": flat_histogram(domain=days, epsilon=1, oracle="subset_selection"),
            "flat, grr": flat_histogram(domain=days, epsilon=1, oracle="grr"),
            "B=2": hierarchical_histogram(domain=days, epsilon=1, oracle="oue"),
            "B=4": hierarchical_histogram(domain=days, epsilon=1, branching=4, oracle="oue"),
            "B=2, optimized": optimal_hierarchical_histogram(
                domain=days, epsilon=1, workload=ALL, oracle="oue"
            ),
            "optimized": optimal_hierarchical_histogram(domain=days, epsilon=1, workload=ALL),
            "Haar": haar_wavelet(domain=days, epsilon=1),
        }
        for name, structure in structures.items():
            made.append(
                clients.simulated(
                    Claims(source="F48 to F51"),
                    f"E12/simulated, {name}/D={domain}",
                    f"reports, {name}, {int(counts.sum()):,} users on {domain} cells, epsilon 1",
                    structure,
                    counts,
                    ranges=ranges,
                    structures=setting.times(120, quick=16),
                    rng=seeded_rng(setting.seed + domain),
                )
            )
    return made


def _table(found: dict[tuple[int, float], Columns]) -> StudyTable:
    names = tuple(dict.fromkeys(name for row in found.values() for name in row))
    return StudyTable(
        id="E12/all ranges",
        title="Local model: n x mean variance of an estimated share over all ranges",
        columns=("D", "epsilon", *names),
        rows=tuple((*cell, *(row.get(name, "") for name in names)) for cell, row in found.items()),
        note="Exact for equally frequent cells. Raw: without a known total or inference. ss: "
        "subset selection, all others by unary encoding (oue) unless named. Optimized: the best "
        "shares of users for the levels.",
    )


def _figure() -> Figure:
    domains = (16, 32, 64, 128, 256, 512, 1024)

    def line(label: str, errors: list[float]) -> Line:
        return Line(label=label, x=tuple(map(float, domains)), y=tuple(errors))

    every = [clients.days(domain) for domain in domains]
    return Figure(
        id="E12/errors",
        title="Local ranges: error against the domain",
        x="domain (cells)",
        y="n x mean variance of a share",
        lines=(
            line("flat, raw", [_raw(oue(categories=d, epsilon=1)) for d in domains]),
            line(
                "flat",
                [flat_histogram(domain=d, epsilon=1, oracle="oue").law.mean(ALL) for d in every],
            ),
            line(
                "tree of degree 2",
                [
                    hierarchical_histogram(domain=d, epsilon=1, oracle="oue").law.mean(ALL)
                    for d in every
                ],
            ),
            line("Haar", [haar_wavelet(domain=d, epsilon=1).law.mean(ALL) for d in every]),
            line(
                "optimized",
                [
                    optimal_hierarchical_histogram(
                        domain=d, epsilon=1, workload=ALL, oracle="subset_selection"
                    ).law.mean(ALL)
                    for d in every
                ],
            ),
        ),
        note="epsilon 1, all ranges, equally frequent cells, exact",
        log_x=True,
        log_y=True,
    )

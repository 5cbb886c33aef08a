"""E0: formulas to their digits, and two reasons why their epsilons are no guarantees."""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from discreet.accounting.conversion import gaussian_epsilon, renyi_epsilon, zcdp_rho
from discreet.accounting.guarantee import approx_dp
from discreet.models.pate._data_dependent_cost import answer_cost
from discreet.models.pate.aggregators import (
    classic_epsilon,
    gaussian_cost,
    gaussian_log_error,
    with_share,
)
from discreet.models.pate.label_plan import expected_label_ratio
from discreet.noise.distribution import Floats
from discreet_studies.checks import Claims
from discreet_studies.personalized_pate.exact_divergence import exact_cost
from discreet_studies.personalized_pate.reference_values import BASELINE, LABELS, LAW_WORST
from discreet_studies.personalized_pate.run_helpers import (
    ORDERS,
    baseline,
    menu,
    panel,
    prices,
    until,
    weights,
)
from discreet_studies.personalized_pate.stopping import Conversion, stop
from discreet_studies.personalized_pate.votes import DELTA, WORLDS, Votes, World, plain
from discreet_studies.study import Cell, Findings, StudyCheck, StudySetting, StudyTable

VOTES = {
    "A": [250, *[0] * 9],
    "B": [230, 10, 5, 2, 1, 1, 1, 0, 0, 0],
    "C": [150, 60, 20, 10, 5, 2, 1, 1, 1, 0],
    "E": [225, 25],
}
_AT = (2, 5, 10, 20, 50)
_SIGMA, _ASKED = 40.0, 150.0
ORIGINAL = {
    "A": (1.527357e-05, 1.749153e-05, 2.333178e-05, 5.321318e-05, 2.083274e-03),
    "B": (8.095863e-05, 9.142748e-05, 1.177670e-04, 2.396516e-04, 5.493687e-03),
    "C": (1.25e-03, 3.125e-03, 6.25e-03, 1.25e-02, 3.125e-02),
    "E": (6.386371e-05, 7.227196e-05, 9.357134e-05, 1.936237e-04, 4.826030e-03),
}
"""Costs of an answer by the analysis of Papernot et al. 2018, sigma 40, in 50-digit arithmetic."""
PERSONAL = {
    0.5: (3.902726e-05, 4.132455e-05, 4.599448e-05, 5.978107e-05, 1.949450e-04),
    4 / 3: (1.106324e-04, 1.309842e-04, 1.904938e-04, 5.735187e-04, 2.969803e-02),
    2.5: (2.264235e-04, 3.258530e-04, 8.427123e-04, 1.218750e-02, 1.953125e-01),
}
"""The same for votes B, by weight of the owner's teacher."""
TOTALS = {
    (381, 221, 1.0): (0.772031, 0.598575, 2.745131, 2.366005, 2.178825),
    (381, 221, 4 / 3): (1.033728, 0.819341, 3.729563, 3.264604, 3.013425),
    (100, 60, 0.5): (0.274432, 0.174392, 0.686185, 0.543730, 0.495091),
}
"""Queries, answers, weight: epsilon by votes (classic, tight), without votes, and exactly."""
ENDS: dict[tuple[Conversion, tuple[float, ...], tuple[float, ...]], int] = {
    ("classic", (1.0,), (1.0,)): 583,
    ("tight", (1.0,), (1.0,)): 915,
    ("classic", (2 / 3, 4 / 3), (1.0, 2.0)): 1357,
    ("classic", (0.5, 2.5), (1.0, 5.0)): 2221,
}
"""Queries until rule A ends, all answered, votes B."""
_ONE_SIDED = Claims(
    source="Lemmas 4.5 and 5.5",
    why="The lemmas claim the bound for any two neighbors. It holds from the data at hand to a "
    "neighbor, not back: the neighbor's votes are nearer to a tie.",
)
_STOPPED = Claims(
    source="Section 6.2",
    why="A run that ends when its data-dependent cost reaches the budget tells about private votes "
    "by its length. The claimed guarantee is (1, 1e-5).",
)


def accounting_errors(setting: StudySetting) -> Findings:
    """Vectors, then the witnesses."""
    pairs, one, both = _enumerated()
    length, moved = ends(VOTES["B"]), ends([229, 11, *VOTES["B"][2:]])
    checks = [
        *_agreement(),
        *_totals(),
        *_laws(),
        *_witness(),
        _ONE_SIDED.at_least(
            "E0/one side/enumerated", f"cases of {pairs} in which the divergence back exceeds the "
            "one-sided bound", expected=1, got=one,
        ),
        Claims(source="M12").equal(
            "E0/two sides/enumerated", f"cases of {pairs} in which a divergence exceeds the "
            "two-sided bound", expected=0, got=both,
        ),
        _STOPPED.equal("E0/stopping/length", "labels of a run when all teachers vote as in B, "
                       "epsilon 1", expected=583, got=length),
        _STOPPED.at_least(
            "E0/stopping/witness", "labels fewer when one teacher votes otherwise: an event of "
            "probability 1 beside one of probability 0, so no epsilon and no delta below 1",
            expected=1, got=length - moved,
        ),
        *_real(setting),
    ]  # fmt: skip
    return Findings(checks=tuple(checks), tables=(_table(length, moved, pairs, one, both),))


def _agreement() -> list[StudyCheck]:
    """The original analysis where there is one weight; then by weight."""
    made: list[StudyCheck] = []
    for name, expected in ORIGINAL.items():
        got = cost(VOTES[name], share=1.0)
        made += Claims(source="Papernot et al. 2018, Theorem 6").numbers(
            f"E0/original/{name}", f"cost of an answer, votes {name}",
            expected={f"order {a}": v for a, v in zip(_AT, expected, strict=True)},
            got={f"order {a}": float(v) for a, v in zip(_AT, got, strict=True)}, relative=1e-6,
        )  # fmt: skip
    for share, expected in PERSONAL.items():
        got = cost(VOTES["B"], share=share)
        made += Claims(source="Lemma 5.5, M19").numbers(
            f"E0/weight {share:.3g}", f"cost of an answer, votes B, weight {share:.3g}",
            expected={f"order {a}": v for a, v in zip(_AT, expected, strict=True)},
            got={f"order {a}": float(v) for a, v in zip(_AT, got, strict=True)}, relative=1e-6,
        )  # fmt: skip
    return made


def cost(votes: list[int], *, share: float) -> Floats:
    """The published cost of an answer at a few orders."""
    errors = gaussian_log_error(votes, sigma=_SIGMA)
    return gaussian_cost(errors, sigma=with_share(_SIGMA, share), orders=_AT)


def _totals() -> list[StudyCheck]:
    made: list[StudyCheck] = []
    names = ("votes, classic", "votes, tight", "loose, classic", "loose, tight", "loose, exact")
    for (queries, answers, share), expected in TOTALS.items():
        errors = gaussian_log_error(VOTES["B"], sigma=_SIGMA)
        tell = gaussian_cost(errors, sigma=with_share(_SIGMA, share), orders=ORDERS)
        asked = queries * share**2 * ORDERS / (2 * _ASKED**2)
        curves = (asked + answers * tell, asked + answers * share**2 * ORDERS / _SIGMA**2)
        squares = share**2 * (queries / _ASKED**2 + 2 * answers / _SIGMA**2)
        got = [
            convert(curve)
            for curve in curves
            for convert in (lambda c: classic_epsilon(c, orders=ORDERS, delta=DELTA)[0], _tight)
        ]
        got.append(gaussian_epsilon(DELTA, mu=math.sqrt(squares)))
        made += Claims(source="M19").numbers(
            f"E0/total/{queries}, {answers}, {share:.3g}",
            f"epsilon of {queries} queries with {answers} answers, weight {share:.3g}",
            expected=dict(zip(names, expected, strict=True)),
            got=dict(zip(names, got, strict=True)), absolute=2e-6,
        )  # fmt: skip
    return made


def _tight(curve: Floats) -> float:
    return min(
        renyi_epsilon(float(c), order=float(a), delta=DELTA)
        for c, a in zip(curve, ORDERS, strict=True)
    )


def _laws() -> list[StudyCheck]:
    """Budgets, deterministic ends, and the law of labels against the printed tables."""
    made = list(
        Claims(source="M4").numbers(
            "E0/rho", "the zCDP that (epsilon, 1e-5) allows",
            expected={"1": 0.02081994, "2": 0.08004538, "5": 0.44962348},
            got={k: zcdp_rho(float(k), delta=DELTA) for k in ("1", "2", "5")}, relative=1e-6,
        )
    )  # fmt: skip
    for (conversion, shares, budgets), expected in ENDS.items():
        got = ends(VOTES["B"], shares=shares, budgets=budgets, conversion=conversion)
        made.append(
            Claims(source="M26").equal(
                f"E0/end/{conversion}, budgets {budgets}", "queries until rule A ends, all "
                f"answered, {conversion} conversion, budgets {budgets}", expected=expected, got=got,
            )
        )  # fmt: skip
    for world, worst in LAW_WORST.items():
        far = max(
            abs(law(cell) * BASELINE[world] / printed - 1)
            for way in ("upsampling", "weighting")
            for cell, printed in LABELS[world][way].items()
            if printed is not None
        )
        made.append(
            Claims(source="M41").number(
                f"E0/law/{world}", f"how far the law of labels is at most from what is printed of "
                f"upsampling and weighting, {world}", expected=worst, got=far, absolute=0.003,
            )
        )  # fmt: skip
    return made


def law(cell: tuple[float, float]) -> float:
    """Labels for each label of the plain ensemble at epsilon 1, by the law (M41)."""
    high, share = cell
    people = {"high": share, "low": 1 - share}
    return expected_label_ratio(people, menu(high), against=approx_dp(1, DELTA))


# ── one side ──────────────────────────────────────────────────────────────────────────────────


def _witness() -> list[StudyCheck]:
    """Twenty votes to none (T3)."""
    errors = gaussian_log_error([20, 0], sigma=4.0)
    bound = float(gaussian_cost(errors, sigma=4.0, orders=[5])[0])
    two = float(answer_cost(errors, classes=2, sigma=4.0, share=1.0, orders=[5])[0])
    forward, back = (float(d[0]) for d in exact_cost([20, 0], sigma=4.0, share=1.0, orders=[5]))
    exactly = Claims(source="T3")
    return [
        exactly.number("E0/one side/bound", "published bound, votes (20, 0), sigma 4, order 5",
                       expected=0.0218378, got=bound, relative=1e-5),
        exactly.number("E0/one side/forward", "exact divergence to a neighbor",
                       expected=0.000478, got=forward, relative=1e-3),
        _ONE_SIDED.number("E0/one side/back", "exact divergence back, which the lemma bounds by "
                          "0.0218378", expected=0.0281595, got=back, relative=1e-5),
        exactly.number("E0/two sides/bound", "two-sided bound", expected=0.0475607, got=two,
                       relative=1e-5),
    ]  # fmt: skip


def _enumerated() -> tuple[int, int, int]:
    """All histograms of 20 votes in two classes: pairs, violations of one side, of both."""
    pairs = one = both = 0
    orders = np.array([2.0, 5.0, 10.0, 20.0])
    for first, sigma in product(range(11, 21), (2.0, 3.0, 4.0, 6.0, 8.0)):
        votes = [first, 20 - first]
        errors = gaussian_log_error(votes, sigma=sigma)
        bound = gaussian_cost(errors, sigma=sigma, orders=orders)
        two = answer_cost(errors, classes=2, sigma=sigma, share=1.0, orders=orders)
        forward, back = exact_cost(votes, sigma=sigma, share=1.0, orders=orders)
        pairs += len(orders)
        one += int((back > bound * (1 + 1e-9)).sum())
        both += int((np.maximum(forward, back) > two * (1 + 1e-9)).sum())
    return pairs, one, both


# ── the length of a run ───────────────────────────────────────────────────────────────────────


def ends(
    votes: list[int],
    *,
    shares: tuple[float, ...] = (1.0,),
    budgets: tuple[float, ...] = (1.0,),
    conversion: Conversion = "classic",
) -> int:
    """Queries until rule A ends when all items have these votes and all are answered."""
    errors = np.full(4000, float(gaussian_log_error(votes, sigma=_SIGMA)))
    rule = WORLDS[0].rule
    costs = {}
    for share in shares:
        ask, tell = prices(errors, rule, share)
        costs[str(share)] = ask + tell
    limits = {str(s): approx_dp(b, DELTA) for s, b in zip(shares, budgets, strict=True)}
    end = stop(costs, costs, limits, orders=ORDERS, rule="discard", conversion=conversion)
    return end.queries


def _real(setting: StudySetting) -> list[StudyCheck]:
    """The same noise, one teacher who always says the runner-up: runs differ in length."""
    made = []
    for world in WORLDS:
        votes = plain(setting, world)
        second = np.argsort(baseline(setting, world, 0).counts, axis=1)[:, -2]
        said = votes.said.copy()
        said[:, 0] = second
        other = Votes(said=said, truth=votes.truth, classes=votes.classes)
        here, there = (_length(setting, each, world) for each in (votes, other))
        made.append(
            _STOPPED.at_least(
                f"E0/stopping/{world.name}", "queries fewer in the mean when one of 250 teachers "
                f"names the runner-up, same noise, {world.name}", expected=0.5, got=here - there,
            )
        )  # fmt: skip
    return made


def _length(setting: StudySetting, votes: Votes, world: World) -> float:
    """Queries of ten runs."""
    found = panel(votes, weights(0.5, 1.0), world.rule)
    rng = setting.rng(f"E0/stopping/{world.name}")
    limits = {"high": approx_dp(1, DELTA), "low": approx_dp(1, DELTA)}
    return float(np.mean([until(found, limits, rng).queries for _ in range(10)]))


def _table(length: int, moved: int, pairs: int, one: int, both: int) -> StudyTable:
    rows: tuple[tuple[Cell, ...], ...] = (
        ("one-sided bound, divergence back above it", f"{one} of {pairs} cases", "one-sided"),
        ("two-sided bound, a divergence above it", f"{both} of {pairs} cases", "sound"),
        ("labels until epsilon 1, votes (230, 10, 5, ...)", str(length), "rule A"),
        ("the same, one teacher votes otherwise (229, 11, 5, ...)", str(moved), "rule A"),
    )
    return StudyTable(
        id="E0/faults",
        title="Both faults of the published accounting",
        columns=("what", "found", "of"),
        rows=rows,
        note="All histograms of 20 votes in two classes against their neighbors, five noises, "
        "four orders; runs in which all items are answered.",
    )

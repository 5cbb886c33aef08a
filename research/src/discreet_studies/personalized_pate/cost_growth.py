"""E2 to E4: how costs grow with the queries (Figures 6.3 to 6.5)."""

from __future__ import annotations

import numpy as np

from discreet.noise.distribution import Floats
from discreet_studies.checks import Claims
from discreet_studies.personalized_pate.labels import needed
from discreet_studies.personalized_pate.reference_values import BEST_ORDERS, BEST_ORDERS_AT, RATIOS
from discreet_studies.personalized_pate.run_helpers import (
    Panel,
    baseline,
    copied,
    course,
    panel,
    weighted,
    weights,
)
from discreet_studies.personalized_pate.votes import MNIST, plain
from discreet_studies.study import (
    Cell,
    Figure,
    Findings,
    Line,
    StudyCheck,
    StudySetting,
    StudyTable,
)

_SHOWN = 2000  # labels in Figure 6.5
_POINTS = 40


def best_orders(setting: StudySetting) -> Findings:
    """E2: the order with the smallest epsilon falls, earlier for the generous level."""
    rng = setting.rng("E2")
    one, _ = course(baseline(setting, MNIST, 0), rng)
    two, _ = course(weighted(setting, MNIST, 0, (3.0, 0.5)), rng)
    orders = {
        "plain": one.orders["low"],
        "low, weight 0.5": two.orders["low"],
        "high, weight 1.5": two.orders["high"],
    }
    checks: list[StudyCheck] = []
    for name, found in orders.items():
        got = {f"{n} queries": float(found[n - 1]) for n in BEST_ORDERS_AT}
        stated = zip(BEST_ORDERS_AT, BEST_ORDERS[name], strict=True)
        checks += Claims(source="Figure 6.3").numbers(
            f"E2/{name}", f"best order, {name}", got=got,
            expected={f"{n} queries": float(order) for n, order in stated},
            absolute=4 if setting.quick else 2,
        )  # fmt: skip
        checks.append(
            Claims(source="Figure 6.3").at_most(
                f"E2/{name}/falls", f"the largest step up of the best order, {name}",
                expected=1.0, got=float(np.diff(found).max()),
            )
        )  # fmt: skip
    at = _spaced(3500)
    lines = tuple(
        Line(label=name, x=tuple(map(float, at)), y=tuple(float(found[n - 1]) for n in at))
        for name, found in orders.items()
    )
    figure = Figure(
        id="E2/orders", title="The best order falls with the queries", x="queries",
        y="order with the smallest epsilon", lines=lines,
        note="MNIST; half of the owners three times the weight; 1 run, noise drawn once",
    )  # fmt: skip
    return Findings(checks=tuple(checks), figures=(figure,))


def ratios(setting: StudySetting) -> Findings:
    """E3: the ratio of the two epsilons settles near the ratio of the weights."""
    rng = setting.rng("E3")
    checks: list[StudyCheck] = []
    rows: list[tuple[Cell, ...]] = []
    lines = []
    votes = plain(setting, MNIST)
    for times, expected in RATIOS.items():
        found, _ = course(panel(votes, weights(0.5, float(times)), MNIST.rule), rng)
        ratio = found.epsilons["high"] / found.epsilons["low"]
        got = {f"{n} queries": float(ratio[n - 1]) for n in (1000, 9000)}
        checks += Claims(source="Figure 6.4").numbers(
            f"E3/1:{times}", f"ratio of the epsilons, weights 1:{times}",
            expected=dict(zip(got, expected, strict=True)), got=got, relative=0.05,
        )  # fmt: skip
        far = float(np.abs(ratio[999:] / times - 1).max())
        checks.append(
            Claims(source="Figure 6.4", why="The thesis calls it the square root of the ratio of "
                   "budgets; it is its budget parameter that is squared (T23).").at_most(
                f"E3/1:{times}/near", "how far the ratio of epsilons is at most from that of the "
                f"weights, from 1,000 queries on, 1:{times}", expected=0.16, got=far,
            )
        )  # fmt: skip
        rows.append((f"1:{times}", *expected, *got.values()))
        at = _spaced(9000)
        lines.append(Line(label=f"1:{times}", x=tuple(map(float, at)),
                          y=tuple(float(ratio[n - 1]) for n in at)))  # fmt: skip
    table = StudyTable(
        id="E3/ratios", title="Ratio of the two epsilons, reference and again",
        columns=("weights", "1,000, reference", "9,000, reference", "1,000", "9,000"),
        rows=tuple(rows),
    )  # fmt: skip
    figure = Figure(
        id="E3/ratios", title="Ratio of the two epsilons", x="queries",
        y="epsilon of the generous over that of the strict level", lines=tuple(lines),
        note="MNIST, weighting, half of the owners generous; delta 1e-5; 1 run, noise drawn once",
    )  # fmt: skip
    return Findings(checks=tuple(checks), tables=(table,), figures=(figure,))


def spending(setting: StudySetting) -> Findings:
    """E4: epsilon against labels; spread grows with budgets, falls with the generous share."""
    source = Claims(source="Figure 6.5")
    rng = setting.rng("E4")
    at = 400
    costs: dict[tuple[float, float], dict[str, Floats]] = {}
    for cell in ((2.0, 0.5), (5.0, 0.25), (5.0, 0.5), (5.0, 0.75)):
        costs[cell] = _by_label(weighted(setting, MNIST, 0, cell), rng)
    alone = _by_label(baseline(setting, MNIST, 0), rng)["low"]
    shared = _by_label(copied(setting, MNIST, (2.0, 0.5), needed(MNIST, (2.0, 0.5))), rng)
    lines = [
        _line(f"(1, {cell[0]:g}), {level}", costs[cell][level])
        for cell in ((2.0, 0.5), (5.0, 0.5))
        for level in ("low", "high")
    ]
    lines.append(_line("everybody alike", alone))
    spread = {cell: float(c["high"][at] - c["low"][at]) for cell, c in costs.items()}
    checks = [
        source.at_least("E4/spread, budgets", "spread of the costs at 400 labels, (1, 5) over "
                        "(1, 2)", expected=1.0, got=spread[5.0, 0.5] / spread[2.0, 0.5]),
        source.at_least("E4/spread, labels", "spread of the costs, 1,600 labels over 400, (1, 5)",
                        expected=1.0, got=float(
                            (costs[5.0, 0.5]["high"] - costs[5.0, 0.5]["low"])[1600])
                        / spread[5.0, 0.5]),
        *(
            source.at_most(f"E4/share, {level}", "cost at 400 labels, 75 % generous over 25 %, "
                           f"{level} level", expected=1.0,
                           got=float(costs[5.0, 0.75][level][at] / costs[5.0, 0.25][level][at]))
            for level in ("low", "high")
        ),
        *(
            source.number(f"E4/u is w, {level}", f"cost at 400 labels, upsampling as weighting, "
                          f"{level} level", expected=float(costs[2.0, 0.5][level][at]),
                          got=float(shared[level][at]), relative=0.05)
            for level in ("low", "high")
        ),
        source.at_least("E4/between", "cost of everybody alike over that of the strict level",
                        expected=1.0, got=float(alone[at] / costs[2.0, 0.5]["low"][at])),
    ]  # fmt: skip
    figure = Figure(
        id="E4/costs", title="Epsilon against labels", x="labels", y="epsilon", lines=tuple(lines),
        note="MNIST, weighting, half of the owners generous; delta 1e-5; accounting of the thesis; "
        "1 run, noise drawn once",
    )  # fmt: skip
    return Findings(checks=tuple(checks), figures=(figure,))


def _by_label(found: Panel, rng: np.random.Generator) -> dict[str, Floats]:
    """Epsilon of each level when so many items were answered."""
    end, answered = course(found, rng)
    return {name: each[answered] for name, each in end.epsilons.items()}


def _line(label: str, values: Floats) -> Line:
    at = [n for n in _spaced(_SHOWN) if n <= len(values)]
    return Line(label=label, x=tuple(map(float, at)), y=tuple(float(values[n - 1]) for n in at))


def _spaced(end: int) -> list[int]:
    return [max(1, round(end * i / _POINTS)) for i in range(1, _POINTS + 1)]

"""E7: figures 6.1 to 6.5, what a second release about the same two people adds."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np

from discreet.accounting.conversion import gaussian_delta, gaussian_epsilon
from discreet.audit.series.model import VAR
from discreet.noise.distribution import Floats
from discreet_studies.checks import Claims
from discreet_studies.private_inference import reference_values as stated
from discreet_studies.private_inference.published_series import (
    Scenario,
    SeriesClaim,
    adjusted_epsilon,
    claim,
    noise_std,
    total_dependence,
)
from discreet_studies.private_inference.reference_values import Mode
from discreet_studies.study import Figure, Findings, Line, StudyCheck, StudySetting, StudyTable

_PEOPLE = 2
_DELTA = 0.05
_SENSITIVITY = 0.5
_MATRICES = {
    "6.1": ((1.0, 0.0), (1.0, 0.0)),
    "6.2": ((0.5, 0.1), (0.0, 0.5)),
    "6.3": ((0.9, 0.5), (0.0, 0.9)),
}
_TENTHS = {f"a11 {k / 10:g}": k / 10 for k in range(1, 10)}
_SQUARE = (
    "The variance of a mean of n values has n^2 below it, printed with n: leakage is understated "
    "by up to the root of n."
)


def figures(setting: StudySetting) -> Findings:
    """The five figures, in three modes, and what the theorems behind them claim."""
    del setting  # exact
    return Findings(
        checks=(*_curves(), *_sweeps(), *_prose(), *_claims()),
        tables=(_table(),),
        figures=(
            *(_figure(name) for name in _MATRICES),
            _sweep_figure("6.4"),
            _sweep_figure("6.5"),
        ),
    )


def adjusted(name: str, rho: float, *, mode: Mode) -> float:
    """One point of figures 6.1 (A1+N2) to 6.3 (A2+N1): epsilon of the first person's value."""
    if name == "6.1" and mode == "as_coded":
        return 1 / math.sqrt(1 + (1 + rho) / 4 * math.log(25))
    matrix = np.array(_MATRICES[name])
    slopes = matrix.sum(axis=0) if name == "6.1" else column_sums(matrix)
    return _epsilon(slopes, rho, mode=mode, of_sum=name == "6.1")


def swept(name: str, diagonal: float, rho: float, *, mode: Mode) -> float:
    """One point of figures 6.4 (equal diagonal) and 6.5 (diagonal that sums to 1)."""
    last = diagonal if name == "6.4" else 1 - diagonal
    return _epsilon(column_sums(np.array([[diagonal, 0.5], [0.0, last]])), rho, mode=mode)


def column_sums(matrix: Floats) -> Floats:
    """Of the inverse: how the first mean depends on the second values, if the prior is flat."""
    return np.asarray(np.linalg.solve(matrix.T, np.ones(len(matrix))))


def _epsilon(slopes: Floats, rho: float, *, mode: Mode, of_sum: bool = False) -> float:
    noise = np.array([[1.0, rho], [rho, 1.0]])
    # Forward the model's noise is that of the sum, backward that of its image.
    weights = np.ones(_PEOPLE) if of_sum else slopes
    variance = float(weights @ noise @ weights) / _PEOPLE ** (2 if mode == "corrected" else 1)
    shift = abs(float(slopes[0])) / _PEOPLE
    if mode == "as_coded":
        return shift / math.sqrt(1 + variance / (2 * math.log(1.25 / _DELTA)))
    return adjusted_epsilon(
        1.0, delta=_DELTA, shift=shift, sensitivity=_SENSITIVITY, variance=variance
    )


def true_epsilon(name: str, rho: float) -> float:
    """The exact epsilon at the same delta, with the law that the values really have."""
    matrix = _MATRICES[name]
    if name == "6.1":
        noise = np.array([[1.0, rho], [rho, 1.0]])
        slope = float(np.array(matrix).sum(axis=0)[0]) / _PEOPLE
        deviation = noise_std(1.0, delta=_DELTA, sensitivity=_SENSITIVITY)
        mu = slope / math.sqrt(deviation**2 + float(noise.sum()) / _PEOPLE**2)
        return gaussian_epsilon(_DELTA, mu=mu)
    made = claim(
        VAR(lags=matrix, noise=((1.0, rho), (rho, 1.0))), scenario="A2+N1", width=1.0,
        epsilons=(1.0, 1.0), deltas=(_DELTA, _DELTA),
    )  # fmt: skip
    return made.true_epsilon


def _source(mode: Mode, name: str) -> Claims:
    if mode == "as_coded":
        return Claims(source=f"Biswal 2024, figure {name}, listing A.0.7")
    if mode == "as_text":
        return Claims(source=f"Biswal 2024, figure {name} with the parameters of the text")
    flat = "" if name == "6.1" else " It still has a flat prior; see E8."
    return Claims(source="M17, C23", why=_SQUARE + flat)


def _curves() -> list[StudyCheck]:
    made: list[StudyCheck] = []
    for (name, mode), row in stated.FIGURES.items():
        made += _source(mode, name).numbers(
            f"E7/{name}, {mode}",
            f"adjusted epsilon, figure {name}, {mode}",
            expected={f"rho {rho:g}": value for rho, value in zip(stated.RHOS, row, strict=True)},
            got={f"rho {rho:g}": adjusted(name, rho, mode=mode) for rho in stated.RHOS},
            absolute=0.0001,
        )
    return made


def _sweeps() -> list[StudyCheck]:
    made: list[StudyCheck] = []
    for (name, rho), row in stated.SWEEPS.items():
        made += _source("as_coded", name).numbers(
            f"E7/{name}, rho {rho:g}",
            f"adjusted epsilon, figure {name}, as_coded, rho {rho:g}",
            expected=dict(zip(_TENTHS, row, strict=True)),
            got=_swept(name, rho),
            absolute=0.0006,
        )
    return [
        *made,
        *Claims(source="Biswal 2024, figure 6.4").numbers(
            "E7/6.4, shifts", "shift of the first mean, figure 6.4",
            expected=dict(zip(_TENTHS, stated.SHIFTS, strict=True)),
            got={name: 1 / (2 * a) for name, a in _TENTHS.items()}, absolute=0.0005),
    ]  # fmt: skip


def _swept(name: str, rho: float) -> dict[str, float]:
    return {label: swept(name, a, rho, mode="as_coded") for label, a in _TENTHS.items()}


def _prose() -> list[StudyCheck]:
    """What the text reads off its figures."""
    read = Claims(source="Biswal 2024, text of figures 6.2, 6.4 and 6.5")
    wrong = Claims(
        source="Biswal 2024, text of figure 6.1; A.0.7",
        why="The text says that epsilon is below 1 for every correlation; so it is in the listing, "
        "which multiplies where the formula divides.",
    )
    six_four = {rho: list(_swept("6.4", rho).values()) for rho in (-1, 0, 1)}
    six_five = {rho: list(_swept("6.5", rho).values()) for rho in (-1, 0, 1)}
    peaks = [int(np.argmax(six_four[rho])) + 1 for rho in (-1, 0, 1)]
    falls = sum(bool(np.all(np.diff(row) < 0)) for row in six_five.values())
    return [
        read.at_most("E7/6.4, always below 1", "largest epsilon of figure 6.4 at rho -1",
                     expected=1.0, got=max(six_four[-1])),
        read.at_least("E7/6.4, above 1", "largest epsilon of figure 6.4 at rho 0, and more at 1",
                      expected=1.0, got=min(max(six_four[0]), max(six_four[1]))),
        read.equal("E7/6.4, peaks", "where figure 6.4 has its interior maxima, in tenths",
                   expected="4, 3, 2", got=", ".join(map(str, peaks))),
        read.equal("E7/6.5, falls", "curves of figure 6.5 that fall throughout", expected=3,
                   got=falls),
        read.number("E7/6.2, ends", "smallest epsilon of figure 6.2, as_coded", expected=0.7,
                    got=adjusted("6.2", 1.0, mode="as_coded"), absolute=0.01),
        wrong.at_least("E7/6.1, above 1", "smallest epsilon of figure 6.1, as_text", expected=1.0,
                       got=min(adjusted("6.1", rho, mode="as_text") for rho in stated.RHOS)),
        Claims(
            source="Biswal 2024, text of figure 6.3",
            why="The text has the minimum of figure 6.2, 0.7.",
        ).number("E7/6.3, minimum", "smallest epsilon of figure 6.3, as_coded", expected=0.507,
                 got=adjusted("6.3", 1.0, mode="as_coded"), absolute=0.0005),
        Claims(
            source="A.0.7",
            why="The listing takes 1 for a sensitivity that the text has as 1/2, so that what it "
            "plots is too small.",
        ).at_least("E7/6.2, sensitivity", "epsilon of figure 6.2 at rho -1, text over listing",
                   expected=1.9, got=adjusted("6.2", -1.0, mode="as_text")
                   / adjusted("6.2", -1.0, mode="as_coded")),
        Claims(source="Biswal 2024, A.0.7", why="The printed listing stops before it.").beyond(
            "E7/6.5, listing", "figure 6.5 by its own listing, not by that of figure 6.4"),
    ]  # fmt: skip


def _claims() -> list[StudyCheck]:
    """M16, M17, M20: what the theorems state at other parameters."""
    square = Claims(source="M17", why=_SQUARE)
    many, ten = (VAR(lags=0.9 * np.eye(n), noise=np.eye(n)) for n in (100, 10))
    text, right = _claimed(many, "A1+N2", "as_text"), _claimed(many, "A1+N2")
    everyone = _claimed(ten, "A3+N3")
    # As stated, with n^2 in each part: one epsilon for the first release, not ten.
    printed = 1.0 + 10 * _claimed(ten, "A1+N2").epsilon
    group = Claims(
        source="M20, C28",
        why="The statement has epsilon_1 where its proof has n epsilon_1, and group deltas that "
        "say nothing from 12 people on.",
    )
    falling = VAR(lags=((-0.5, 0.0), (0.0, 0.5)), noise=np.eye(2))
    negative = _claimed(falling, "A1+N2", "as_text")
    return [
        Claims(source="M21", why="A shift is printed without its absolute value.").at_most(
            "E7/negative, as_text", "printed epsilon of a falling value", expected=-0.1,
            got=negative.epsilon),
        Claims(source="C23").at_most(
            "E7/textbook bound", "largest exact over adjusted epsilon, where that is below 1",
            expected=1.0, got=_largest_ratio()),
        Claims(source="Biswal 2024, Theorem 6.3.5").number(
            "E7/hundred, as_text", "adjusted epsilon, 100 people, A = 0.9 I", expected=0.0436,
            got=text.epsilon, absolute=0.00005),
        square.number("E7/hundred, corrected", "the same with n^2", expected=0.3925,
                      got=right.epsilon, absolute=0.00005),
        square.number("E7/hundred, exact", "the exact epsilon at delta 1e-5", expected=0.2708,
                      got=gaussian_epsilon(1e-5, mu=right.mu), absolute=0.00005),
        square.number("E7/hundred, delta", "true delta at the printed epsilon, 1e-5 claimed",
                      expected=0.0154, got=float(gaussian_delta(text.epsilon, mu=right.mu)),
                      absolute=0.0001),
        group.number("E7/everyone, mu", "exact mu of everybody's values, ten people",
                     expected=2.58384, got=everyone.mu, absolute=1e-5),
        Claims(source="Biswal 2024, Theorem 6.3.8").number(
            "E7/everyone, as_text", "epsilon that the theorem states, ten people",
            expected=8.5374, got=printed, absolute=0.0001),
        group.number("E7/everyone, delta", "true delta at that epsilon", expected=0.01112,
                     got=float(gaussian_delta(printed, mu=everyone.mu)), absolute=0.00001),
        Claims(
            source="M16, C21", why="Lemma 6.3.1 prints epsilon/a, 1/3: a release of 3 x needs "
            "three times as much."
        ).number("E7/dependence", "epsilon that a second release of 3 x adds", expected=3.0,
                 got=total_dependence(1.0, second=1.0, ratio=3.0, mode="corrected") - 1.0,
                 absolute=1e-12),
    ]  # fmt: skip


def _claimed(
    model: VAR, scenario: Scenario, mode: Literal["as_text", "corrected"] = "corrected"
) -> SeriesClaim:
    return claim(
        model, scenario=scenario, width=1.0, epsilons=(1.0, 1.0), deltas=(1e-5, 1e-5), mode=mode
    )


def _largest_ratio() -> float:
    """The formula rests on the classical theorem: it may exceed the exact epsilon, not fall short.

    For the same release, flat prior included, over figures 6.2 and 6.3.
    """
    ratios = []
    for name in ("6.2", "6.3"):
        slopes = column_sums(np.array(_MATRICES[name]))
        for rho in np.linspace(-0.9, 0.9, 19):
            stated_epsilon = adjusted(name, float(rho), mode="corrected")
            noise = np.array([[1.0, rho], [rho, 1.0]])
            variance = float(slopes @ noise @ slopes) / _PEOPLE**2
            deviation = noise_std(1.0, delta=_DELTA, sensitivity=_SENSITIVITY)
            mu = float(slopes[0]) / _PEOPLE / math.hypot(deviation, math.sqrt(variance))
            if stated_epsilon < 1:
                ratios.append(gaussian_epsilon(_DELTA, mu=mu) / stated_epsilon)
    return max(ratios)


def _table() -> StudyTable:
    return StudyTable(
        id="E7/epsilon",
        title="Adjusted epsilon of the first person's value, by correlation of the model's noise",
        columns=("figure", "mode", *(f"rho {rho:g}" for rho in stated.RHOS)),
        rows=tuple(
            (name, mode, *(adjusted(name, rho, mode=mode) for rho in stated.RHOS))
            for name, mode in stated.FIGURES
        ),
        note="Two people, epsilon 1, delta 0.05. Figures 6.2 and 6.3 have a flat prior throughout.",
    )


def _figure(name: str) -> Figure:
    rhos = tuple(k / 20 for k in range(-20, 21))
    inside = rhos[1:-1]
    modes: tuple[Mode, ...] = ("as_coded", "as_text", "corrected")
    return Figure(
        id=f"E7/{name}",
        title=f"Figure {name}: epsilon of a value from a release at another time",
        x="correlation of the model's noise",
        y="epsilon",
        lines=(
            *(
                Line(label=mode, x=rhos, y=tuple(adjusted(name, rho, mode=mode) for rho in rhos))
                for mode in modes
            ),
            Line(
                label="true epsilon",
                x=inside,
                y=tuple(true_epsilon(name, rho) for rho in inside),
            ),
        ),
        note="exact; two people, epsilon 1, delta 0.05. True: with the stationary law as prior"
        if name != "6.1"
        else "exact; two people, epsilon 1, delta 0.05. True: the exact profile, no textbook bound",
    )


def _sweep_figure(name: str) -> Figure:
    diagonals = tuple(k / 50 for k in range(5, 46))
    modes: tuple[Mode, ...] = ("as_coded", "corrected")
    return Figure(
        id=f"E7/{name}",
        title=f"Figure {name}: epsilon against the diagonal of the model",
        x="a11, with a22 the same" if name == "6.4" else "a11, with a22 = 1 - a11",
        y="epsilon",
        lines=tuple(
            Line(
                label=f"{mode}, rho {rho:g}",
                x=diagonals,
                y=tuple(swept(name, a, rho, mode=mode) for a in diagonals),
            )
            for mode in modes
            for rho in (-1.0, 0.0, 1.0)
        ),
        note="exact; two people, epsilon 1, delta 0.05, off-diagonal 0.5, flat prior",
    )

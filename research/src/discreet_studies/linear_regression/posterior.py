"""E15: one sample of a posterior, the slope of the risk, and thresholds that are simulated.

What Wang 2018 compares with (K37), the bound that the thesis quotes (K15), and the choice of
clipping thresholds without private data (K25). Simulations only: the budget of the sample is not
derived here, so nothing in this module has a guarantee.
"""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import numpy as np

from discreet.accounting.conversion import gaussian_mu
from discreet.noise.distribution import Floats
from discreet_studies.checks import Claims
from discreet_studies.linear_regression.methods import DELTA, matrices
from discreet_studies.study import Findings, StudyCheck, StudySetting, StudyTable

Solve: TypeAlias = Literal["right", "as coded"]


def samples(
    gram: Floats, moment: Floats, *, penalty: float, precision: float, draws: int,
    rng: np.random.Generator, solve: Solve = "right",
) -> Floats:  # fmt: skip
    """Draws from the posterior N(theta, H^-1 / precision) with H = gram + penalty (K37).

    With H = R'R, R^-1 z has the covariance H^-1; the published code solves with R', which gives
    (R R')^-1: another matrix unless R is diagonal.
    """
    h = gram + penalty * np.eye(len(gram))
    lower = np.linalg.cholesky(h)  # H = L L', R = L'
    root = lower.T if solve == "right" else lower
    z = rng.standard_normal((len(gram), draws))
    theta = np.linalg.solve(h, moment)
    return theta[None] + np.linalg.solve(root, z).T / math.sqrt(precision)


def posterior(setting: StudySetting) -> Findings:
    """E15: all of it."""
    tables, checks = [], [*_covariances(setting), *_slope(setting)]
    found, table = _thresholds(setting)
    checks += found
    tables.append(table)
    return Findings(checks=tuple(checks), tables=tuple(tables))


def _covariances(setting: StudySetting) -> list[StudyCheck]:
    rng = setting.rng("E15/posterior")
    draws, d, precision = setting.times(400_000, quick=100_000), 4, 2.5
    x = rng.standard_normal((200, d)) @ np.triu(np.full((d, d), 0.7))
    gram, moment = x.T @ x / 50, rng.standard_normal(d)
    truth = np.linalg.inv(gram + 0.3 * np.eye(d)) / precision
    made: list[StudyCheck] = []
    for solve in ("right", "as coded"):
        drawn = samples(
            gram, moment, penalty=0.3, precision=precision, draws=draws, rng=rng,
            solve="right" if solve == "right" else "as coded",
        )  # fmt: skip
        # Each entry of a sample covariance has the variance (S_ii S_jj + S_ij^2) / draws.
        error = np.cov(drawn.T) - truth
        scale = np.sqrt((np.outer(truth.diagonal(), truth.diagonal()) + truth**2) / draws)
        worst = float(np.abs(error / scale).max())
        if solve == "right":
            made.append(
                Claims(source="K37").at_most("E15/covariance", "largest deviation of the sample's "
                                             "covariance from that of the posterior, in errors",
                                             expected=6.5, got=worst)
            )  # fmt: skip
        else:
            made.append(
                Claims(source="K37", why="The published code solves with the transposed root.")
                .at_least("E15/covariance as coded", "the same as coded, in errors",
                          expected=6.5, got=worst)
            )  # fmt: skip
    return made


def _slope(setting: StudySetting) -> list[StudyCheck]:
    """K15: once the smallest eigenvalue dominates, excess risk falls with the square of epsilon."""
    rng = setting.rng("E15/slope")
    n, d, draws = 200_000, 5, setting.times(4_000, quick=1_000)
    # Rows uniform on the sphere: X'X / n is near I / d; taken as that, exactly.
    gram, theta = n / d * np.eye(d), np.full(d, 0.4)
    moment = gram @ theta
    epsilons = np.array([0.3, 1.0, 3.0])
    risks = []
    for epsilon in epsilons:
        sigma = math.sqrt(2) / gaussian_mu(float(epsilon), delta=DELTA)
        noisy = gram + sigma * matrices("averaged", (draws,), d, rng)
        found = np.linalg.solve(
            noisy, (moment + sigma * rng.standard_normal((draws, d)))[..., None]
        )
        off = found[..., 0] - theta
        risks.append(float(np.einsum("ki,ij,kj->k", off, gram, off).mean()) / n)
    mus = np.array([gaussian_mu(float(e), delta=DELTA) for e in epsilons])
    slope = float(np.polyfit(np.log(mus), np.log(risks), 1)[0])
    return [
        Claims(source="K15").number("E15/slope", "slope of log excess risk against the log of the "
                                    "budget (mu), where the smallest eigenvalue dominates",
                                    expected=-2.0, got=slope, absolute=0.2)
    ]  # fmt: skip


def _thresholds(setting: StudySetting) -> tuple[list[StudyCheck], StudyTable]:
    """K25: clip at the multiple of the scale that is best on made-up rows of this n, d, epsilon.

    Nothing private is looked at, so a poisoned row cannot move the threshold.
    """
    rng = setting.rng("E15/thresholds")
    draws = setting.times(60, quick=20)
    rows = []
    for epsilon in (0.1, 1.0, 10.0):
        errors = {c: _simulated(c, epsilon, draws, rng) for c in (0.5, 1.0, 2.0, 4.0)}
        rows.append((epsilon, *errors.values(), min(errors, key=lambda c: errors[c])))
    chosen = [float(row[-1]) for row in rows]
    check = Claims(source="K25").at_least(
        "E15/thresholds", "simulated threshold at epsilon 10 over that at 0.1: more budget, "
        "less clipping", expected=1.0, got=chosen[-1] / chosen[0],
    )  # fmt: skip
    table = StudyTable(
        id="E15/thresholds",
        title="Error on made-up rows by clipping threshold (in deviations)",
        columns=("epsilon", "0.5", "1", "2", "4", "chosen"),
        rows=tuple(rows),
        note="1,000 rows, 5 features, normal; two joint releases; error over that of zero.",
    )
    return [check], table


def _simulated(threshold: float, epsilon: float, draws: int, rng: np.random.Generator) -> float:
    """Mean error over that of predicting zero, for rows clipped at ``threshold`` deviations."""
    n, d = 1_000, 5
    total = 0.0
    for _ in range(draws):
        x = rng.standard_normal((2 * n, d))
        y = x @ np.full(d, 0.4) + 0.5 * rng.standard_normal(2 * n)
        kept = np.clip(x[:n], -threshold, threshold) / (threshold * math.sqrt(d))
        target = np.clip(y[:n], -threshold, threshold) / threshold
        sigma = math.sqrt(2) / gaussian_mu(epsilon, delta=DELTA)
        gram = kept.T @ kept + sigma * matrices("averaged", (1,), d, rng)[0]
        edge = sigma * (math.sqrt(2 * d) + 1)
        penalty = max(0.0, edge - float(np.linalg.eigvalsh(gram)[0]))
        moment = kept.T @ target + sigma * rng.standard_normal(d)
        theta = np.linalg.solve(gram + penalty * np.eye(d), moment)
        seen = np.clip(x[n:], -threshold, threshold) / (threshold * math.sqrt(d))
        total += float(np.mean((y[n:] - threshold * seen @ theta) ** 2) / np.mean(y[n:] ** 2))
    return total / draws

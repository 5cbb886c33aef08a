"""The picture of a guarantee: how many participants an attacker finds, at each rate of alarms."""

from __future__ import annotations

import math

import numpy as np

from discreet.accounting.meaning import AttackBounds
from discreet.core.number_format import short
from discreet.report.drawing.axis import ChartAxis, ChartCurve
from discreet.report.drawing.panel import LinePanel

_LOWEST = -5
_POINTS = 121


def attack_curve(meaning: AttackBounds) -> LinePanel:
    """True positives against false positives, log-log, with the guess and the pure bound."""
    rates = [float(one) for one in np.logspace(_LOWEST, 0, _POINTS)]
    lines = [
        ChartCurve(label="any attack, at most", x=rates, y=meaning.curve(rates)),
        ChartCurve(label="guessing without the release", x=rates, y=rates),
    ]
    if math.isfinite(meaning.epsilon):
        factor = math.exp(min(meaning.epsilon, 700))
        lines.append(
            ChartCurve(
                label=f"epsilon {short(meaning.epsilon, digits=3)} alone",
                x=rates,
                y=[min(1.0, factor * one, 1 - (1 - one) / factor) for one in rates],
            )
        )
    return LinePanel(
        lines=lines,
        x=ChartAxis(label="false-positive rate (people falsely accused)", log=True),
        y=ChartAxis(label="true-positive rate (participants found)", log=True),
        title="What an attacker gains, at most",
        note=f"Advantage {short(meaning.advantage, digits=3)}: the largest gap of the first two.",
    )

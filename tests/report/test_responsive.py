"""Panels for a page: places are shares of the width, and nothing but classes says how they look."""

from __future__ import annotations

import math
import re

import pytest

from discreet.report.drawing.axis import ChartAxis, ChartBand, ChartCurve
from discreet.report.drawing.panel import BarPanel, LinePanel
from discreet.report.drawing.responsive import drawn, meter

BARS = BarPanel(
    labels=["<b>free</b>", "25 percent"],
    values=[50.0, 100.0],
    low=[25.0, None],
    high=[75.0, None],
    title="Visits & stays",
    note="Whiskers.",
    unit="people",
)


def lines(**more) -> LinePanel:
    curve = ChartCurve(label="<i>one</i>", x=[1.0, 10.0, 100.0], y=[100.0, 10.0, 1.0])
    given = {
        "x": ChartAxis(label="epsilon", log=True),
        "y": ChartAxis(label="error", log=True),
        **more,
    }
    return LinePanel(lines=[curve], title="Error", note="", **given)


def test_a_bar_and_its_whiskers_are_shares_of_the_widest():
    html = drawn(BARS)
    assert '<rect class="bar" x="0.00%" width="50.00%"' in html
    assert '<rect class="bar" x="0.00%" width="100.00%"' in html
    assert 'class="whisker" x1="25.00%" x2="75.00%"' in html
    assert html.count('class="whisker"') == 3  # the second bar has no ends
    assert "50 <small>25 to 75</small>" in html


def test_bars_below_zero_hang_from_zero():
    html = drawn(
        BarPanel(
            labels=["a", "b"],
            values=[-50.0, 150.0],
            low=[None, None],
            high=[None, None],
            title="t",
            note="",
            unit="u",
        )
    )
    assert '<rect class="bar" x="0.00%" width="25.00%"' in html
    assert '<rect class="bar" x="25.00%" width="75.00%"' in html


def test_dots_are_places_and_need_no_zero():
    html = drawn(
        BarPanel(
            labels=["a", "b"],
            values=[10.0, 11.0],
            low=[None] * 2,
            high=[None] * 2,
            title="t",
            note="",
            unit="u",
            dots=True,
        )
    )
    assert re.findall(r'cx="([\d.]+)%"', html) == ["0.00", "100.00"]


def test_what_does_not_fit_is_counted():
    many = BarPanel(
        labels=[str(i) for i in range(45)],
        values=[1.0] * 45,
        low=[None] * 45,
        high=[None] * 45,
        title="t",
        note="",
        unit="u",
    )
    html = drawn(many)
    assert html.count("<li>") == 40
    assert "5 more are in the table." in html


def test_a_power_law_is_a_straight_line_on_logarithms():
    html = drawn(lines())
    assert 'points="0.0,0.0 500.0,500.0 1000.0,1000.0"' in html
    assert "epsilon (log scale)" in html


def test_what_is_infinite_is_left_out():
    curve = ChartCurve(label="", x=[1.0, 2.0, 3.0], y=[math.inf, 1.0, 2.0])
    html = drawn(
        LinePanel(lines=[curve], x=ChartAxis(label="x"), y=ChartAxis(label="y"), title="", note="")
    )
    assert html.count("<circle") == 2
    assert "inf" not in html
    assert "nan" not in html


def test_a_band_goes_there_and_back():
    band = ChartBand(x=[1.0, 100.0], low=[1.0, 1.0], high=[100.0, 100.0])
    html = drawn(lines(band=band))
    assert 'class="band" points="0.0,0.0 1000.0,0.0 1000.0,1000.0 0.0,1000.0"' in html


@pytest.mark.parametrize("panel", [BARS, lines()])
def test_a_picture_is_escaped_and_has_no_style_of_its_own(panel):
    html = drawn(panel)
    assert "<b>" not in html
    assert "<i>" not in html
    assert not re.search(r"style=|<style|<script|\son\w+=|fill=|stroke=", html)


def test_a_meter_never_passes_its_end():
    html = meter([("spent", 0.7), ("this", 0.5)], words='"all"')
    assert 'class="spent" x="0.00%" width="70.00%"' in html
    assert 'class="this" x="70.00%" width="30.00%"' in html
    assert "&quot;all&quot;" in html

"""Pictures of the local model: what is drawn is what was estimated, and everything can be drawn."""

import datetime as dt
import itertools
import math
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from matplotlib.patches import Rectangle

import discreet
from discreet import local, seeded_rng
from discreet.core.errors import InvalidArgument
from discreet.intervals.central_vs_local import compare_by_rows
from discreet.local import Aggregator, AggregatorState, CollectionSpec, bins, dates, ordered
from discreet.local._heavy_hitters import HeavyHittersEstimate
from discreet.local.ranges.haar import HaarResponse
from discreet.ranges import workload
from discreet.ranges.domain import integers
from discreet.report.drawing.figure import stacked
from discreet.report.drawing.panel import BarPanel, LinePanel
from discreet.report.local_section import KINDS, TABLES, panels

CLIENTS = 3000
KINDS_OF_SVG = ("text", "rect", "line", "polyline")
ALL = workload.all_ranges()
RNG = np.random.default_rng(1)
VALUES = RNG.integers(0, 32, size=CLIENTS) % 23
DOMAIN = integers(0, 31)
DOMAINS = {
    "integers": (DOMAIN, VALUES),
    "dates": (
        dates(lower=dt.date(2024, 1, 1), upper=dt.date(2024, 2, 9)),
        np.datetime64("2024-01-01") + VALUES,
    ),
    "bins": (bins(edges=(-1.5, 0.0, 2.5, 7.0)), VALUES % 7),
    "ordered": (ordered(labels=("a<b", "c$d", "e")), np.array(["a<b", "c$d", "e"])[VALUES % 3]),
}


def counted(randomizer, values):
    return Aggregator(randomizer).add(randomizer.randomize(values, rng=seeded_rng(3)))


def learned():
    tree = local.adaptive_hierarchy(domain=DOMAIN, epsilon=2)
    return tree.learn(counted(tree.randomizer, VALUES))


def state():
    kept = AggregatorState(None, CollectionSpec(randomizer=OUE, labels=tuple("abcdefgh")))
    kept.aggregate.merge(counted(OUE, VALUES % 8))
    return kept


OUE = local.oue(categories=8, epsilon=1)
WAVE = local.square_wave(cells=20, epsilon=1, lower=1950, upper=2020)
MEAN = local.best_mean_randomizer(epsilon=1, lower=0, upper=30)
SEVERAL = local.multidimensional_mean(columns={"x": (0, 30), "$y<": (0, 60)}, epsilon=1)
TREE = local.hierarchical_histogram(domain=DOMAIN, epsilon=1)
GRID = local.hybrid_grid({"a": DOMAIN, "b": integers(0, 15)}, epsilon=1, expected_clients=CLIENTS)
FOUND = HeavyHittersEstimate(
    items=("café".encode(), rb"$x^{$\frac", b"<b>&\x00\xff", "\u202eabc".encode()),
    shares=np.array([0.3, 0.2, 0.1, 0.05]),
    std=np.full(4, 0.01),
    reports=10**6,
    tried=99,
)


@pytest.fixture(scope="module", name="shown")
def fixture_shown():
    """Something of every kind."""
    told = counted(WAVE, 1950 + VALUES).estimate()
    return {
        "State": state(),
        "Aggregate": counted(OUE, VALUES % 8),
        "Adaptive": learned(),
        "Frequencies": counted(OUE, VALUES % 8).estimate(),
        "LocalRanges": counted(TREE, VALUES).estimate(),
        "Polished": counted(TREE, VALUES).estimate().nonnegative(),
        "Distribution": told,
        "Bootstrap": WAVE.bootstrap(told, replicates=5, rng=seeded_rng(4)),
        "Mean": counted(MEAN, VALUES).estimate(),
        "a dict of means": counted(SEVERAL, {"x": VALUES, "$y<": VALUES}).estimate(),
        "Found": FOUND,
        "GridEstimate": counted(GRID, {"a": VALUES, "b": VALUES // 2}).estimate(),
        "LocalPlan": local.plan_collection(DOMAIN, ALL, epsilon=1, expected_clients=CLIENTS),
        "Ladder": local.compare_trust_models(
            DOMAIN, ALL, epsilon=1, delta=1e-6, expected_clients=CLIENTS
        ),
        "BestAdditive": discreet.best_additive_noise(sensitivity=1, epsilon=1),
        "Comparisons": compare_by_rows(lower=0, upper=9, rows=[9, 99], epsilon=1, std=2),
    }


def only(panel_or_more, kind):
    (one,) = panel_or_more
    assert isinstance(one, kind)
    return one


def words(svg):
    """All that is written in a picture."""
    return [node.text or "" for node in ET.fromstring(svg).iter() if node.tag.endswith("text")]


# ── everything can be drawn, or is refused with a list ───────────────────────


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_is_drawn_in_both_ways(shown, kind, tmp_path):
    told = words(discreet.plot(shown[kind], tmp_path / "a.svg").svg)
    assert told
    assert not any(text.endswith("…") for text in told)  # nothing was too long
    for panel in panels(shown[kind]):
        assert any(panel.title in text for text in told)
    discreet.plot(shown[kind], tmp_path / "a.png")
    png = (tmp_path / "a.png").read_bytes()
    assert png.startswith(b"\x89PNG")


def test_the_list_of_kinds_is_complete(shown):
    assert set(shown) == set(KINDS)


@pytest.mark.parametrize(
    "randomizer",
    [
        local.grr(categories=8, epsilon=1),
        local.sue(categories=8, epsilon=1),
        local.threshold_histogram_encoding(categories=8, epsilon=1),
        local.summation_histogram_encoding(categories=8, epsilon=1),
        local.olh(categories=8, epsilon=1),
        local.hadamard_response(categories=8, epsilon=1),
        local.subset_selection(categories=8, epsilon=1),
        local.rappor(categories=8, epsilon=1, permanent_epsilon=2),
        local.l_osue(categories=8, epsilon=1, permanent_epsilon=2),
        local.best_oracle(8, epsilon=1),
        local.duchi(epsilon=1, lower=0, upper=8),
        local.piecewise_mean(epsilon=1, lower=0, upper=8),
        local.balanced_piecewise(epsilon=1, lower=0, upper=8),
        local.hybrid_mean(epsilon=1, lower=0, upper=8),
        local.local_laplace(epsilon=1, lower=0, upper=8),
        local.square_wave(cells=8, epsilon=1, lower=0, upper=8),
        local.haar_wavelet(domain=DOMAIN, epsilon=1),
        local.flat_histogram(domain=DOMAIN, epsilon=1),
        local.heavy_hitters(length=1, epsilon=4),
    ],
    ids=lambda one: one.kind,
)
@pytest.mark.parametrize("many", [0, 1, 400])
def test_counts_of_every_randomizer_are_drawn(randomizer, many, tmp_path):
    values = ["a"] * many if randomizer.kind == "heavy_hitters" else VALUES[:many] % 8
    drawn = discreet.plot(counted(randomizer, values), tmp_path / "a.svg").svg
    assert f"({many} reports of epsilon" in drawn
    assert not re.search(r"\b(nan|inf)\b", drawn)
    assert ("nothing is known" in drawn) == (many == 0)


@pytest.mark.parametrize(
    "other",
    [
        None,
        OUE,
        CollectionSpec(randomizer=OUE),
        {},
        {"x": 1},
        Aggregator(HaarResponse(pairs=2, epsilon=Fraction(1))),
    ],
    ids=["None", "randomizer", "collection", "empty", "dict", "numbers"],
)
def test_what_cannot_be_drawn_is_refused_with_what_can(other, tmp_path):
    with pytest.raises(InvalidArgument, match="can be drawn") as caught:
        discreet.plot(other, tmp_path / "a.svg")
    for kind in (*TABLES, *KINDS):
        assert kind in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_the_confidence_must_be_a_probability(shown, tmp_path):
    for confidence in (0, 1, 95):
        with pytest.raises(InvalidArgument, match="confidence"):
            discreet.plot(shown["Ladder"], tmp_path / "a.svg", confidence=confidence)


# ── what is drawn is what was estimated ──────────────────────────────────────


def test_shares_are_the_largest_in_percent_with_their_intervals():
    oracle = local.oue(categories=40, epsilon=1)
    found = counted(oracle, VALUES).estimate()
    bars = only(panels(found, confidence=0.9), BarPanel)
    order = [share.category for share in found.top(20)]
    low, high = found.interval(0.9)
    assert bars.labels == list(map(str, order))
    assert bars.values == pytest.approx(100 * found.shares[order])
    assert bars.low == pytest.approx(100 * low[order])
    assert bars.high == pytest.approx(100 * high[order])
    assert bars.title == "The 20 largest of 40 shares (3,000 reports of epsilon 1)"
    assert "90 times of 100" in bars.note
    assert "too large" in bars.note
    assert "too large" not in only(panels(counted(OUE, VALUES % 8)), BarPanel).note


def test_labels_come_from_the_collection_and_the_cost_from_the_randomizer(shown):
    bars = only(panels(shown["State"]), BarPanel)
    order = [share.category for share in shown["State"].aggregate.estimate().top(8)]
    assert bars.labels == ["abcdefgh"[i] for i in order]
    kept = counted(local.rappor(categories=8, epsilon=1, permanent_epsilon=2), VALUES % 8)
    assert "of epsilon 1, epsilon 2 a period)" in only(panels(kept), BarPanel).title


def test_adjusted_shares_have_no_whiskers(shown):
    found = shown["Frequencies"]
    assert None not in only(panels(found.pinned()), BarPanel).low
    for adjusted in (found.projected(), found.norm_cut()):
        bars = only(panels(adjusted), BarPanel)
        assert set(bars.low) == set(bars.high) == {None}
        assert "no error is known" in bars.note


@pytest.mark.parametrize("name", DOMAINS)
def test_ranges_are_split_into_parts_and_summed_up(name):
    domain, values = DOMAINS[name]
    release = counted(local.hierarchical_histogram(domain=domain, epsilon=1), values).estimate()
    bars, lines = panels(release)
    assert len(bars.values) == min(domain.size, 16)
    assert sum(bars.values) == pytest.approx(CLIENTS)
    first, last = domain.label(0), domain.label((domain.size // len(bars.values)) - 1)
    ends = (first[0], last[1]) if isinstance(first, tuple) else (first, last)
    assert bars.values[0] == pytest.approx(release.answer(*ends))
    assert (bars.low[0], bars.high[0]) == pytest.approx(release.answer_interval(*ends))
    curve = release.cdf()
    assert lines.lines[0].y == pytest.approx(curve.values)  # all cells: they are few
    assert lines.band.low == pytest.approx(curve.low)
    assert lines.band.high == pytest.approx(curve.high)
    assert lines.x.words(0.0)
    assert lines.x.words(0.5) == lines.x.words(float(domain.size)) == ""


def test_labels_are_no_formulas(tmp_path):
    domain, values = DOMAINS["ordered"]
    release = counted(local.hierarchical_histogram(domain=domain, epsilon=1), values)
    figure = discreet.plot(release, tmp_path / "a.png")  # "c$d" at a tick and at a bar
    (axes,) = figure.to_matplotlib().axes
    shown = [text for text in axes.texts if text.get_text() == "c$d"]
    assert len(shown) == 2
    assert not any(text.get_parse_math() for text in shown)


def test_without_reports_there_are_no_whiskers():
    bars, lines = panels(Aggregator(TREE))
    assert set(bars.low) == set(bars.high) == {None}
    assert set(lines.band.low) == set(lines.band.high) == {0.0}  # nobody is known to be there


def test_a_plan_shows_every_candidate_and_the_chosen_one_first(shown, tmp_path):
    plan = local.plan_collection(integers(0, 1023), ALL, epsilon=1, expected_clients=CLIENTS)
    lines = only(panels(plan), LinePanel)
    assert lines.lines[0].label == plan.chosen.name != plan.candidates[0].name
    assert {line.label for line in lines.lines} == {one.name for one in plan.candidates}
    lengths, _ = plan.curves()
    for one in plan.candidates:
        (line,) = (line for line in lines.lines if line.label == one.name)
        assert line.x == lengths.tolist()
        assert line.y == pytest.approx(one.by_length(lengths))
    assert "in clients of 3,000" in lines.y.label
    drawn = " ".join(words(discreet.plot(plan, tmp_path / "a.svg").svg))
    for one in plan.candidates:
        assert one.name in drawn  # on two lines, but whole
    assert "epsilon 1)" in only(panels(shown["LocalPlan"]), LinePanel).title


def test_the_ladder_is_drawn_by_logarithms(shown):
    ladder = shown["Ladder"]
    bars = only(panels(ladder), BarPanel)
    assert bars.values == [rung.rmse for rung in ladder.rungs]
    assert [label.split(":")[0] for label in bars.labels] == [r.model for r in ladder.rungs]
    assert bars.svg().count("(log scale), all ranges of 0 .. 31.") == 1
    own = f"epsilon {ladder['shuffle'].local_epsilon:.4g} (shuffle), 1 (local)"
    assert own in bars.note


def test_bars_by_logarithms_begin_at_a_power_of_ten(shown):
    (bars,) = panels(shown["Ladder"])
    drawn = replace(bars, values=[20.0, 200.0, 2000.0, 0.0]).svg()
    widths = [float(w) for w in re.findall(r'<rect [^>]*width="([\d.]+)" height="16"', drawn)]
    whole = math.log10(200)  # from 10 to 2000
    expected = [430 * part / whole for part in (math.log10(2), math.log10(20), whole, 0)]
    assert widths == pytest.approx(expected, abs=0.06)
    assert {"10", "100", "1,000"} <= set(words(drawn))


def test_a_density_holds_one_and_begins_where_its_numbers_do(shown):
    lines = only(panels(shown["Distribution"]), LinePanel)
    x, y = np.array(lines.lines[0].x), np.array(lines.lines[0].y)
    assert np.trapezoid(y, x) == pytest.approx(1)
    assert (x[0], x[-1]) == (1950, 2020)
    ticks = [text for text in words(lines.svg()) if re.fullmatch(r"[\d,]+", text)]
    assert "1,950" in ticks
    assert "1,000" not in ticks
    assert "bootstrap" in lines.note
    drawn = only(panels(shown["Bootstrap"]), LinePanel)
    low, high = shown["Bootstrap"].interval_of(lambda one: one.density)
    assert drawn.band.low == pytest.approx(np.repeat(np.maximum(low, 0), 2))
    assert drawn.band.high == pytest.approx(np.repeat(high, 2))
    unsettled = replace(shown["Distribution"], converged=False)
    assert "Not settled" in only(panels(unsettled), LinePanel).note


def test_means_are_dots_each_on_its_own_axis(shown):
    means = shown["a dict of means"]
    for panel, (name, mean) in zip(panels(means, confidence=0.8), means.items(), strict=True):
        assert (panel.labels, panel.values, panel.dots) == ([name], [mean.value], True)
        assert (panel.low[0], panel.high[0]) == mean.interval(0.8)
    assert "of epsilon 1" in panels(counted(MEAN, VALUES))[0].title


def test_several_attributes_are_drawn_one_by_one(shown):
    found = shown["GridEstimate"]
    first, second = panels(counted(GRID, {"a": VALUES, "b": VALUES // 2}))
    assert first.title == "a: 0 .. 31 in 16 parts (3,000 reports of epsilon 1)"
    assert second.labels == list(map(str, range(16)))
    assert first.values[1] == pytest.approx(100 * found.share(a=(2, 3)))
    assert sum(second.values) == pytest.approx(100)
    assert set(first.low) == {None}


def test_noises_are_compared_by_their_loss(shown):
    best = shown["BestAdditive"]
    bars = only(panels(best), BarPanel)
    assert dict(zip(bars.labels, bars.values, strict=True)) == {
        one.name: one.loss for one in best.candidates
    }
    assert bars.labels[0] == best.chosen.name
    assert all(name in bars.note for name, _ in best.refused)
    assert best.refused


def test_texts_from_strangers_cannot_break_a_picture(tmp_path):
    bars = only(panels(FOUND), BarPanel)
    assert bars.values == pytest.approx(100 * FOUND.shares)
    drawn = discreet.plot(FOUND, tmp_path / "a.svg").svg
    told = words(drawn)
    assert {"café", r"$x^{$\frac", "<b>&\ufffd\ufffd", "\ufffdabc"} <= set(told)
    assert "<b>" not in drawn
    nothing = replace(FOUND, items=(), shares=np.empty(0), std=np.empty(0))
    assert "Nothing stands out" in only(panels(nothing), BarPanel).note
    discreet.plot(nothing, tmp_path / "b.png")


# ── both ways of drawing agree ───────────────────────────────────────────────


def test_matplotlib_draws_the_same_words_bars_and_lines(shown, kind_drawn):
    figure = discreet.plot(shown[kind_drawn])
    (axes,) = figure.to_matplotlib().axes
    drawn = list(ET.fromstring(figure.svg).iter())
    named = {kind: [x for x in drawn if x.tag.endswith("}" + kind)] for kind in KINDS_OF_SVG}
    assert sorted(x.get_text() for x in axes.texts) == sorted(x.text or "" for x in named["text"])
    boxes = [float(x.get("width")) for x in named["rect"] if x.get("width") != "100%"]
    widths = [x.get_width() for x in axes.patches if isinstance(x, Rectangle)]
    assert widths == pytest.approx(boxes)
    assert len(axes.lines) == len(named["line"]) + len(named["polyline"])
    # Told apart without color: only grays.
    colors = {x.get("stroke", x.get("fill", "#000")) for x in drawn} - {"none"}
    assert all(len(set(color.strip("#"))) == 1 or color.startswith("rgb") for color in colors)


@pytest.fixture(params=["Frequencies", "Ladder", "LocalPlan", "LocalRanges", "Bootstrap"])
def kind_drawn(request):
    return request.param


def test_logarithms_leave_out_what_is_not_positive(shown):
    lines = only(panels(shown["LocalPlan"]), LinePanel)
    assert lines.lines[0].y[-1] == 0  # the whole is known
    curves = re.findall(r'<polyline points="([^"]*)"', lines.svg())
    assert len(curves[0].split()) == len(lines.lines[0].y) - 1


def test_notebooks_show_a_figure_and_it_can_be_saved_later(shown, tmp_path):
    figure = discreet.plot(shown["Frequencies"])
    assert figure._repr_svg_() == figure.svg
    assert figure.save(tmp_path / "later.svg").read_text(encoding="utf-8") == figure.svg
    assert repr(figure).startswith("Figure(8 shares (3,000 reports")
    for bad, why in ((tmp_path / "a.xyz", "must end in"), (tmp_path / "no" / "a.svg", "no folder")):
        with pytest.raises(InvalidArgument, match=why):
            figure.save(bad)


def test_panels_lie_below_each_other_in_svg(shown):
    pictures = [panel.svg() for panel in panels(shown["LocalRanges"])]
    whole = ET.fromstring(stacked(pictures))
    tops = [float(part.get("y")) for part in whole]
    heights = [float(ET.fromstring(picture).get("height")) for picture in pictures]
    assert tops == [0, *itertools.accumulate(heights[:-1])]
    assert float(whole.get("height")) == sum(heights)

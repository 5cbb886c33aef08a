"""Levels of owners: weights that end together, copies, turns, the law of labels, rules to stop."""

import math

import numpy as np
import pytest

import discreet
from discreet.core.errors import InvalidArgument, NotCertified, Unsupported
from discreet.models.pate import aggregators as old
from discreet.models.pate import label_plan as calibrate
from discreet.models.pate import teacher_assignment as schedule
from discreet.models.pate.aggregators import ConfidentGNMax
from discreet.models.pate.label_plan import plan_labels
from discreet.models.pate.teacher_assignment import (
    UNITS,
    TeacherAssignment,
    assign_hybrid,
    assign_weighting,
    count_votes,
    drop_levels,
)
from discreet_studies.personalized_pate import stopping

RULE = ConfidentGNMax(threshold=200, sigma_threshold=150, sigma_votes=40)


def menu(**epsilons):
    return {name: discreet.approx_dp(epsilon, 1e-5) for name, epsilon in epsilons.items()}


# ── weights ────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("epsilon", "mu", "ratio"),
    [(1, 0.268051, 1), (1.5, 0.387212, 1.485005), (2, 0.501552, 1.960778), (5, 1.121242, 4.647129)],
)
def test_sensitivities(epsilon, mu, ratio):
    limits = menu(one=1, other=epsilon)
    assert calibrate.vote_weights(limits)["other"] == pytest.approx(mu, abs=1e-6)
    roots = calibrate.vote_weights(limits, method="concentrated")
    assert roots["other"] / roots["one"] == pytest.approx(ratio, abs=1e-6)
    assert calibrate.vote_weights(limits, method="epsilon")["other"] == epsilon


def test_gaussian_weights_end_together():
    """M24 ii: no level could pay for one more label, and none has more than one left."""
    limits = menu(low=1, high=3)
    made = assign_weighting(
        250, people={"low": 1, "high": 1}, sensitivities=calibrate.vote_weights(limits)
    )
    plan = plan_labels(made, RULE, limits, classes=10, answered_share=1)
    spent = plan.guarantee.epsilons(1e-5)
    one = {name: spent[name] / plan.answers for name in spent}  # a label's worth, about
    assert 1 - spent["low"] < 2 * one["low"]
    assert 3 - spent["high"] < 2 * one["high"]


def test_trying_finds_the_same_balance():
    limits = menu(low=1, high=3)

    def spend(weights):
        made = assign_weighting(250, people={"low": 1, "high": 1}, sensitivities=weights)
        costs = {name: 150 * (share / UNITS) ** 2 / 1600 for name, share in made.shares.items()}
        return {name: rho + 2 * math.sqrt(rho * math.log(1e5)) for name, rho in costs.items()}

    found = calibrate.balance(limits, spend)
    closed = calibrate.vote_weights(limits, method="concentrated")
    assert found["high"] / found["low"] == pytest.approx(closed["high"] / closed["low"], rel=0.02)
    with pytest.raises(NotCertified):
        calibrate.balance(limits, lambda _: {"low": 1.0, "high": 1.0})
    with pytest.raises(InvalidArgument, match="positive"):
        calibrate.balance(limits, lambda _: {"low": 0.0, "high": 1.0})


@pytest.mark.parametrize(
    ("high", "share", "law"),
    [(1.5, 0.25, 278), (2, 0.5, 484), (3, 0.75, 1289), (5, 0.25, 808), (5, 0.5, 1762)],
)
def test_the_label_law(high, share, law):
    limits = menu(low=1, high=high)
    found = calibrate.expected_label_ratio(
        {"low": 1 - share, "high": share}, limits, against=discreet.approx_dp(1, 1e-5)
    )
    assert 221 * found == pytest.approx(law, abs=1)


def test_the_label_law_of_three_levels_and_of_the_plan():
    limits = menu(a=1, b=2, c=3)
    people = {"a": 34, "b": 43, "c": 23}
    strict = discreet.approx_dp(1, 1e-5)
    assert calibrate.expected_label_ratio(people, limits, against=strict) == pytest.approx(
        3.41, abs=0.01
    )
    law = calibrate.expected_label_ratio(people, limits, against=strict, method="gaussian")
    made = assign_weighting(250, people=people, sensitivities=calibrate.vote_weights(limits))
    plain = assign_weighting(250, people={"all": 1}, sensitivities={"all": 1})
    many = plan_labels(made, RULE, limits, classes=10, answered_share=1).answers
    few = plan_labels(plain, RULE, {"all": strict}, classes=10, answered_share=1).answers
    assert many / few == pytest.approx(law, rel=0.05)


def test_an_even_menu_gives_most():
    """The root of rho is concave: of menus with the same mean epsilon the even one is best."""
    one = discreet.approx_dp(1, 1e-5)
    uneven = calibrate.expected_label_ratio({"a": 1, "b": 1}, menu(a=1, b=5), against=one)
    even = calibrate.expected_label_ratio({"a": 1, "b": 1}, menu(a=3, b=3), against=one)
    assert even > uneven


@pytest.mark.parametrize(
    ("roots", "times"),
    [({"a": 1, "b": 2}, {"a": 1, "b": 2}), ({"a": 1, "b": 1.5}, {"a": 2, "b": 3})],
)
def test_copies(roots, times):
    assert calibrate.copies(roots) == times
    with pytest.raises(NotCertified):
        calibrate.copies({"a": 1, "b": math.pi}, tolerance=1e-9)


def test_the_same_noise_in_proportion():
    """M20's example: ratio 2 at 50/50 is 375 teachers, 60, 225 and 300."""
    found = calibrate.scale_aggregator(RULE, 1.5)
    assert (found.sigma_votes, found.sigma_threshold, found.threshold) == (60, 225, 300)


def test_small_levels_join_stricter_ones():
    made = assign_hybrid(
        20, people={"a": 100, "b": 90, "c": 1}, sensitivities={"a": 1, "b": 2, "c": 5}, key="k"
    )
    shares = made.shares
    assert made.copies == (1, 1, 2)  # floor(5 / 2) teachers of level b
    assert shares["c"] == 2 * shares["b"]
    assert shares["c"] / shares["a"] <= 5
    owners = [f"p{i}" for i in range(191)]
    levels = ["a"] * 100 + ["b"] * 90 + ["c"]
    rows = made.rows(owners, levels)
    assert sum(190 in part for part in rows) == 2
    assert sum(map(len, rows)) == 192
    # With everybody large enough it is weighting.
    same = assign_hybrid(20, people={"a": 1, "b": 1}, sensitivities={"a": 1, "b": 2})
    plain = assign_weighting(20, people={"a": 1, "b": 1}, sensitivities={"a": 1, "b": 2})
    assert (same.weights == plain.weights).all()


def test_small_levels_keep_their_teachers_when_others_leave():
    """M7: without one owner, no other owner's records change teachers."""
    made = assign_hybrid(
        12, people={"a": 30, "b": 20, "c": 2}, sensitivities={"a": 1, "b": 2, "c": 6}
    )
    owners = np.array([f"p{i}" for i in range(52)])
    levels = np.array(["a"] * 30 + ["b"] * 20 + ["c"] * 2)
    whole = made.rows(owners, levels)
    for gone in range(52):
        kept = np.flatnonzero(np.arange(52) != gone)
        left = made.rows(owners[kept], levels[kept])
        touched = [t for t in range(12) if gone in whole[t]]
        assert made.weights[touched].sum() <= made.shares[str(levels[gone])]
        for t in range(12):
            assert kept[left[t]].tolist() == [i for i in whole[t].tolist() if i != gone]


def test_going_on_without_a_level():
    made = assign_weighting(20, people={"a": 1, "b": 1}, sensitivities={"a": 1, "b": 2})
    left = drop_levels(made, ["a"])
    assert left.shares == {"a": 0, "b": made.shares["b"]}
    votes = np.zeros((1, 20), dtype=int)
    assert count_votes(votes, left, classes=2)[0, 0] == made.weights[made.weights > UNITS].sum()
    rest = plan_labels(left, RULE, menu(a=1e-9, b=1), classes=2, answered_share=1)
    assert rest.guarantee.epsilons(1e-5)["a"] == 0
    with pytest.raises(InvalidArgument, match="no teacher"):
        drop_levels(made, ["a", "b"])


# ── turns ──────────────────────────────────────────────────────────────────────────────────────


def test_turns_are_even():
    made = schedule.vanishing_schedule(50, people={"a": 3, "b": 2}, turns={"a": 3, "b": 8}, key="x")
    assert len(made.slots) == 8
    present = np.stack([slot.weights > 0 for slot in made.slots])
    first, end = made.slots[0].blocks[0]
    assert (present[:, first:end].sum(axis=0) == 3).all()
    assert present[:, end:].all()
    load = present[:, first:end].sum(axis=1)
    assert load.max() - load.min() <= 1
    for slot in made.slots:
        assert 49 * UNITS < slot.weights.sum() <= 50 * UNITS
    assert made.at(8) is made.slots[0]
    again = schedule.vanishing_schedule(
        50, people={"a": 3, "b": 2}, turns={"a": 3, "b": 8}, key="y"
    )
    assert any((x.weights != y.weights).any() for x, y in zip(made.slots, again.slots, strict=True))
    with pytest.raises(InvalidArgument, match="same"):
        schedule.vanishing_schedule(50, people={"a": 1}, turns={"b": 1})


def test_turns_cost_more_than_weights():
    """At the same mean influence a cycle costs 1/f times as much (M21)."""
    made = schedule.vanishing_schedule(100, people={"a": 1, "b": 1}, turns={"a": 2, "b": 8})
    weights = assign_weighting(100, people={"a": 1, "b": 1}, sensitivities={"a": 0.25, "b": 1})
    for name, factor in {"a": 4, "b": 1}.items():
        steady = len(made.slots) * weights.shares[name] ** 2
        assert made.squares[name] / steady == pytest.approx(factor, rel=0.02)


def test_the_law_of_turns():
    """With all turns it is the plain ensemble; with the best part it stays below weighting."""
    assert calibrate.vanishing_label_ratio(0.5, ratio=4, part=1) == 1
    best = max(
        calibrate.vanishing_label_ratio(0.5, ratio=4, part=f) for f in np.linspace(0.01, 1, 100)
    )
    assert best < ((1 + 2) / 2) ** 2


# ── rules to stop ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("weights", "epsilons", "conversion", "discard", "ends", "reserve", "loose"),
    [
        ([1], [1], "classic", 583, [0.999379], 566, 32),
        ([1], [1], "tight", 915, [0.999794], 896, 47),
        ([2 / 3, 4 / 3], [1, 2], "classic", 1357, [0.982896, 1.999663], 1338, 69),
        ([2 / 3, 4 / 3], [1, 2], "tight", 1847, [0.941457, 1.999532], 1829, 94),
        ([0.5, 2.5], [1, 5], "classic", 2221, [0.941866, 4.999127], 2202, 111),
    ],
)
def test_rules_of_the_thesis(weights, epsilons, conversion, discard, ends, reserve, loose):
    """M26: votes B, every query answered, published (one-sided) costs."""
    orders = np.arange(2, 51)
    votes = [230, 10, 5, 2, 1, 1, 1, 0, 0, 0]
    error = old.gaussian_log_error(votes, sigma=40)
    limits = menu(**{f"l{i}": e for i, e in enumerate(epsilons)})
    cost, most = {}, {}
    for name, weight in zip(limits, weights, strict=True):
        asked = weight**2 * orders / (2 * 150**2)
        seen = old.with_share(40, weight)
        tight = old.gaussian_cost(error, sigma=seen, orders=orders)
        cost[name] = np.tile(asked + tight, (2500, 1))
        most[name] = asked + orders / seen**2
    found = stopping.stop(cost, most, limits, orders=orders, rule="discard", conversion=conversion)
    assert found.queries == discard
    assert [each[-1] for each in found.epsilons.values()] == pytest.approx(ends, abs=2e-6)
    assert all((np.diff(each) <= 0).all() for each in found.orders.values())
    first = stopping.stop(cost, most, limits, orders=orders, conversion=conversion)
    assert first.queries == reserve
    always = {name: np.tile(each, (200, 1)) for name, each in most.items()}
    full = stopping.stop(always, most, limits, orders=orders, conversion=conversion)
    assert full.queries == loose


def test_reserving_first_never_passes_a_limit():
    rng = np.random.default_rng(0)
    orders = np.arange(2, 51)
    for _ in range(50):
        most = orders * float(rng.uniform(1e-4, 1e-2))
        cost = rng.uniform(0, 1, (500, 1)) * most
        found = stopping.stop({"a": cost}, {"a": most}, menu(a=1), orders=orders)
        assert found.queries < 500
        assert (found.epsilons["a"] <= 1).all()


@pytest.mark.parametrize(
    ("part", "wrong", "match"),
    [
        ("weights", np.full(3, 0.9), "whole units"),
        ("weights", np.full((3, 1), UNITS), "whole units"),
        ("weights", np.array([UNITS, -1, UNITS]), "negative"),
        ("copies", (0,), "copies"),
        ("copies", (1, 1), "each level"),
        ("blocks", ((-2, 2),), "blocks"),
        ("blocks", ((0, 4),), "blocks"),
        ("blocks", ((2, 2),), "blocks"),
    ],
)
def test_teachers_are_paid_for_with_all_that_they_weigh(part, wrong, match):
    """Three teachers of 0.9 units, or a block before the first: votes would move for nothing."""
    made = {"copies": (1,), "blocks": ((0, 3),), "weights": np.full(3, UNITS)}
    assert TeacherAssignment(names=("all",), **made).shares == {"all": UNITS}
    with pytest.raises(InvalidArgument, match=match):
        TeacherAssignment(names=("all",), **{**made, part: wrong})


def test_bad_input_is_named():
    with pytest.raises(InvalidArgument, match="rule"):
        stopping.stop({}, {}, {}, orders=[2], rule="other")
    with pytest.raises(InvalidArgument, match="row"):
        stopping.stop({"a": [[1.0, 2.0]]}, {"a": [1.0]}, menu(a=1), orders=[2])
    with pytest.raises(InvalidArgument, match="method"):
        calibrate.vote_weights(menu(a=1), method="other")
    with pytest.raises(Unsupported, match="approx"):
        calibrate.vote_weights({"a": discreet.pure_dp(1)})
    with pytest.raises(InvalidArgument, match="same levels"):
        calibrate.expected_label_ratio({"b": 1}, menu(a=1), against=discreet.approx_dp(1, 1e-5))

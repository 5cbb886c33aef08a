"""Plans and running streams: epochs, windows, keys, states, what is claimed and what is refused."""

import itertools
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

import discreet
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.relation import NeighboringRelation
from discreet.noise.random_source import seeded_rng
from discreet.ranges.stream import state as stream
from discreet.ranges.stream.plan import FIRST_EPOCH, StreamPlan, plan_stream
from tests.distributions import ALPHA

AMOUNTS = [{"epsilon": 1}, {"rho": 0.5}, {"epsilon": 1, "delta": 1e-6}]
SHAPES = [{"horizon": 700}, {"window": 150}, {}]


def run(plan, counts, *, rng, batches=(1 << 30,)):
    state, answers = stream.begin(plan), []
    for size in itertools.cycle(batches):
        if not len(counts):
            break
        state, some = stream.advance(plan, state, counts[:size], rng=rng)
        assert some.first == state.step - len(some.values) + 1
        counts = counts[size:]
        answers.append(some.values)
    return state, np.concatenate(answers)


def truth(plan, counts):
    total = np.cumsum(counts, axis=0)
    if plan.window is None:
        return total
    before = np.zeros_like(total)
    before[plan.window :] = total[: -plan.window]
    return total - before


@pytest.mark.parametrize("shape", [{"horizon": 300}, {"window": 90}, {}], ids=str)
@pytest.mark.parametrize("amount", AMOUNTS[:2], ids=str)
def test_errors_are_those_forecast(shape, amount):
    """Answers less the truth, squared, against the forecast variance; a wrong one is caught."""
    lanes = 2_000
    plan = plan_stream(**amount, **shape, keys=[str(i) for i in range(lanes)])
    counts = np.random.default_rng(1).integers(0, 20, (300, 1)) * np.ones(lanes, dtype=np.int64)
    _, answers = run(plan, counts, rng=seeded_rng(2), batches=(100, 33))
    at = np.array([1, 89, 90, 91, 150, 179, 180, 200, 256, 257, 290, 300])
    seen = np.square(answers - truth(plan, counts))[at - 1].mean(axis=1)
    # The fourth moment of a sum of Laplace or Gaussian variables is at most 6 var^2.
    reach = stats.norm.isf(ALPHA / 2) * np.sqrt(5 / lanes)
    assert np.all(np.abs(seen / plan.variance(at) - 1) < reach)
    assert np.all(np.abs(seen / (1.8 * plan.variance(at)) - 1) > reach)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("amount", AMOUNTS[:2], ids=str)
def test_a_state_that_was_put_away_goes_on_in_the_same_way(shape, amount):
    """With the same bits the same answers, to the last bit: nothing is forgotten or added."""
    plan = plan_stream(**amount, **shape, keys=["a", "b"])
    counts = np.random.default_rng(3).integers(0, 20, (700, 2))
    straight, packed = seeded_rng(4), seeded_rng(4)
    _, expected = run(plan, counts, rng=straight, batches=(70, 1, 29))
    state, found = stream.begin(plan), []
    rows = counts
    for size in itertools.cycle((70, 1, 29)):
        if not len(rows):
            break
        state = stream.unpack(stream.pack(state))
        state, some = stream.advance(plan, state, rows[:size], rng=packed)
        rows = rows[size:]
        found.append(some.values)
    assert np.array_equal(np.concatenate(found), expected)


def test_memory_does_not_grow_with_time():
    """Totals without end, one at a time and many at a time: O(log T) numbers."""
    for amount, most in [({"epsilon": 1}, 120), ({"rho": 1}, 330)]:
        plan = plan_stream(**amount)
        state = stream.begin(plan)
        for size in (1, 1, 1000, 3, 5_000, 4_000):
            counts = np.ones(size, dtype=np.int64)
            state, _ = stream.advance(plan, state, counts, rng=seeded_rng(5))
            assert state.numbers <= most


def test_windows_do_not_get_worse_with_time():
    for amount in AMOUNTS[:2]:
        plan = plan_stream(**amount, window=100)
        later = plan.variance(np.arange(101, 201))
        assert np.array_equal(plan.variance(np.arange(10_001, 10_101)), later)
        assert later.max() < 3 * plan.variance(np.arange(1, 101)).max()


def test_epochs_double():
    plan = plan_stream(epsilon=1)
    epochs = [plan.epoch(t) for t in range(1, 10 * FIRST_EPOCH)]
    for number in range(4):
        assert epochs.count(number) == plan.length(number)
        assert epochs.index(number) == plan.start(number)
    # A closed epoch adds its last error, once.
    inside = plan.counter(1).variance(np.array([5]))[0]
    end = plan.counter(0).variance(np.array([FIRST_EPOCH]))[0]
    assert plan.variance([FIRST_EPOCH + 5])[0] == pytest.approx(inside + end)


@pytest.mark.parametrize(
    "relation", [NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE]
)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_guarantees_are_what_was_asked(shape, relation):
    for per_unit in (1, 4):
        plan = plan_stream(epsilon=0.5, max_rows_per_unit=per_unit, relation=relation, **shape)
        assert plan.guarantee.epsilon() == pytest.approx(0.5, rel=1e-12)
        assert plan.guarantee.relation is relation
        plan = plan_stream(rho=0.125, max_rows_per_unit=per_unit, relation=relation, **shape)
        assert plan.guarantee.rdp(2.0) <= 0.25 * (1 + 1e-12)
        assert plan.guarantee.rdp(2.0) >= 0.25 * (1 - 1e-6)
        plan = plan_stream(
            epsilon=1, delta=1e-6, max_rows_per_unit=per_unit, relation=relation, **shape
        )
        assert plan.guarantee.epsilon(1e-6) == pytest.approx(1, rel=1e-6)


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_noise_is_scaled_to_units_and_relation(shape):
    """Laplace: all events of a unit at once, in one block of each level; Gaussian: the same."""
    t = np.array([10, 400])
    one = plan_stream(epsilon=0.1, **shape)
    for plan, factor in [
        (plan_stream(epsilon=0.1, max_rows_per_unit=3, **shape), 9),
        (plan_stream(epsilon=0.1, relation=NeighboringRelation.REPLACE_ONE, **shape), 4),
    ]:
        assert plan.variance(t) == pytest.approx(factor * one.variance(t), rel=1e-3)
    one = plan_stream(rho=0.1, **shape)
    for plan, factor in [
        (plan_stream(rho=0.1, max_rows_per_unit=3, **shape), 9),
        (plan_stream(rho=0.1, relation=NeighboringRelation.REPLACE_ONE, **shape), 2),
    ]:
        assert plan.variance(t) == pytest.approx(factor * one.variance(t), rel=1e-3)


def test_published_errors():
    """Prefixes of 1024 steps: Laplace at epsilon 1, Gaussian at rho 1 (F33)."""
    t = np.arange(1, 1025)
    gaussian = plan_stream(rho=1, horizon=1024).variance(t)
    assert (gaussian.mean(), gaussian.max()) == pytest.approx((4.8373, 5.3561), abs=1e-3)
    # The discrete variance is a little below 2 / epsilon^2 for each block: 123.6 without it.
    assert plan_stream(epsilon=1, horizon=1024).variance(t).mean() == pytest.approx(122.45, abs=0.1)


@pytest.mark.parametrize("amount", AMOUNTS[:2], ids=str)
def test_intervals_cover(amount):
    lanes = 2_000
    plan = plan_stream(**amount, keys=[str(i) for i in range(lanes)])
    counts = np.zeros((300, lanes), dtype=np.int64)
    _, answers = stream.advance(plan, stream.begin(plan), counts, rng=seeded_rng(6))
    for level in (0.8, 0.95):
        low, high = answers.interval(level)
        covered = ((low <= 0) & (high >= 0)).mean(axis=1)[[0, 20, 255, 256, 299]]
        assert np.all(covered > level - 6.2 * np.sqrt(level * (1 - level) / lanes))
        assert np.all(covered < level + 0.05)


def test_forecast_reads():
    plan = plan_stream(epsilon=1, horizon=24)
    forecast = plan.forecast(24)
    assert forecast.std == plan.std([24])[0]
    assert str(forecast).startswith("after step 24: standard deviation ")
    assert forecast.half_width == plan.half_width([24])[0]


def test_plans_are_kept_as_text():
    for amount, shape in itertools.product(AMOUNTS, SHAPES):
        plan = plan_stream(**amount, **shape, keys=["x", "y"], max_rows_per_unit=2)
        assert StreamPlan.from_json(plan.to_json()) == plan
    with pytest.raises(InvalidArgument, match="text"):
        StreamPlan.from_json("{}")
    assert plan_stream(epsilon=0.1).budget.epsilon == Fraction(1, 10)


def test_events_are_counted_into_steps():
    plan = plan_stream(epsilon=1, keys=["a", "b"])
    counts = stream.tally(plan, [3, 5, 3, 3], after=2, keys=[0, 1, 1, 0], end=6)
    assert counts.tolist() == [[2, 1], [0, 0], [0, 1], [0, 0]]
    plan = plan_stream(epsilon=1)
    assert stream.tally(plan, [], after=2, end=4).tolist() == [0, 0]


@pytest.mark.parametrize(
    ("steps", "keys", "end", "error"),
    [
        (np.array(["3"]), None, 5, OutOfDomain),
        (np.array([[3]]), None, 5, OutOfDomain),
        ("3", None, 5, OutOfDomain),
        (3, None, 5, OutOfDomain),
        ([3], [0], 5, InvalidArgument),
        ([3], None, 1, InvalidArgument),
    ],
)
def test_what_is_no_list_of_events_is_refused(steps, keys, end, error):
    with pytest.raises(error):
        stream.tally(plan_stream(epsilon=1), steps, after=2, keys=keys, end=end)


def test_keys_are_a_list_and_no_text_is_taken_apart():
    with pytest.raises(InvalidArgument, match="keys must be a list"):
        plan_stream(epsilon=1, keys="north")


def test_keys_are_one_for_each_event():
    plan = plan_stream(epsilon=1, keys=["a", "b"])
    for keys in ([0, 1], np.array(["a"]), "a"):
        with pytest.raises(OutOfDomain, match="keys"):
            stream.tally(plan, [3], after=2, keys=keys, end=5)
    with pytest.raises(InvalidArgument, match="keys"):
        stream.tally(plan, [3], after=2, end=5)


class Hostile:
    """What raises whatever is asked of it."""

    def __str__(self):
        raise ZeroDivisionError

    __repr__ = __float__ = __int__ = __index__ = __hash__ = __eq__ = __str__


HUGE = [float("inf"), 10**5000, 2**63, 2**64, Decimal("1e999999")]
STRANGE = [
    *(*HUGE, float("nan"), -float("inf"), None, "3", "x", b"3", -(10**5000), -(2**63), 1j),
    *([3], (3,), {}, object(), Hostile(), np.datetime64("NaT"), np.float32("nan")),
    *(Decimal("NaN"), Decimal("sNaN"), "\ud800", "3\0"),
]
NAMES = range(len(STRANGE))


@pytest.mark.parametrize("odd", STRANGE, ids=NAMES)
@pytest.mark.parametrize("first", [True, False])
def test_one_event_of_no_step_or_no_key_changes_nothing(odd, first):
    plan, keyed = plan_stream(epsilon=1), plan_stream(epsilon=1, keys=["a", "b"])
    steps = [odd, 3, 5, 3] if first else [3, 5, 3, odd]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert stream.tally(plan, steps, after=2, end=6).tolist() == [2, 0, 1, 0]
        keys = [odd, 0, 1, 1] if first else [0, 1, 1, odd]
        places = [3, 3, 5, 3] if first else [3, 5, 3, 3]
        found = stream.tally(keyed, places, after=2, keys=keys, end=6)
    assert found.tolist() == [[1, 1], [0, 0], [0, 1], [0, 0]]


@pytest.mark.parametrize("late", [2, 7, 0, -1, 2.4, 6.5, 1e300])
def test_an_event_of_a_step_that_is_not_open_is_left_out(late):
    found = stream.tally(plan_stream(epsilon=1), [3, late, 3.0], after=2, end=6)
    assert found.tolist() == [2, 0, 0, 0]
    assert stream.tally(plan_stream(epsilon=1), np.array([3, late]), after=2, end=6)[0] == 1


@pytest.mark.parametrize("counts", [3, "3", np.array([1.5]), np.array([True]), np.array(["1"])])
def test_counts_of_another_type_or_shape_are_refused(counts):
    plan = plan_stream(epsilon=1)
    with pytest.raises(OutOfDomain):
        stream.advance(plan, stream.begin(plan), counts, rng=seeded_rng(1))
    with pytest.raises(OutOfDomain):
        stream.check_counts(plan_stream(epsilon=1, keys=["a", "b"]), [[1, 2], [3]])


@pytest.mark.parametrize("odd", STRANGE, ids=NAMES)
def test_a_count_that_is_none_counts_what_it_can_and_changes_no_other(odd):
    most = 2**31 - 1
    worth = most if any(odd is one for one in HUGE) else 0
    found = stream.check_counts(plan_stream(epsilon=1), [4, odd, 2**33, -5, 1.5])
    assert found.ravel().tolist() == [4, worth, most, 0, 2]
    keyed = plan_stream(epsilon=1, keys=["a", "b"])
    assert stream.check_counts(keyed, [[1, odd], [2, 3]]).tolist() == [[1, worth], [2, 3]]


@pytest.mark.parametrize("amount", [{"epsilon": 10**6}, {"rho": 10**9}], ids=str)
def test_counts_beyond_all_bounds_are_cut_and_do_not_overflow(amount):
    """No error, which would tell; and no wrap-around, even with the largest count at every step."""
    for horizon in (3, 500):
        plan = plan_stream(**amount, horizon=horizon)
        most = plan.counter(0).most
        assert most >= 2**26
        counts = np.full(horizon, 2**63, dtype=np.uint64)
        _, answers = stream.advance(plan, stream.begin(plan), counts, rng=seeded_rng(1))
        expected = most * np.arange(1, horizon + 1)
        assert answers.values == pytest.approx(expected, rel=1e-12, abs=0.5)


def test_the_horizon_is_the_end():
    """F11: a step beyond it is refused, never wrapped around."""
    plan = plan_stream(rho=1, horizon=3)
    state, _ = stream.advance(plan, stream.begin(plan), [1, 2], rng=seeded_rng(1))
    with pytest.raises(InvalidArgument, match="horizon"):
        stream.advance(plan, state, [1, 2], rng=seeded_rng(1))
    state, last = stream.advance(plan, state, [1], rng=seeded_rng(1))
    assert last.steps.tolist() == [3]
    with pytest.raises(InvalidArgument, match="horizon"):
        plan.std([4])


def test_refused_plans():
    for wrong in [
        {},
        {"epsilon": 1, "horizon": 5, "window": 5},
        {"epsilon": 1, "keys": []},
        {"epsilon": 1, "keys": ["a", "a"]},
        {"epsilon": 1, "max_rows_per_unit": 0},
        {"epsilon": 1, "window": 1},
        {"epsilon": 0},
    ]:
        with pytest.raises(InvalidArgument):
            plan_stream(**wrong)
    with pytest.raises(InvalidArgument, match="relation"):
        plan_stream(epsilon=1, relation=discreet.NeighboringRelation.LOCAL)


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16", "uint32", "int64", "uint64"])
def test_counts_and_keys_of_any_whole_type_are_counted(kind):
    counts, plan = np.array([1, 0, 100]), plan_stream(epsilon=1, horizon=3)
    _, expected = run(plan, counts, rng=seeded_rng(1))
    _, found = run(plan, counts.astype(kind), rng=seeded_rng(1))
    assert found.tolist() == expected.tolist()
    keyed = plan_stream(epsilon=1, horizon=3, keys=["a", "b"])
    at, keys = np.array([1, 3], dtype=kind), np.array([1, 0], dtype=kind)
    assert stream.tally(keyed, at, after=0, keys=keys, end=3).tolist() == [[0, 1], [0, 0], [1, 0]]

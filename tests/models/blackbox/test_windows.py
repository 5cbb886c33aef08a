"""Windows of a stream: what a reading pays, by counting, and the refusal beyond it (A46)."""

import copy
import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest

from discreet import Ledger, NotCertified, gaussian, pure_dp, seeded_rng
from discreet.core.errors import BudgetExceeded, InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.models.blackbox import WindowPlan, make_private
from discreet.models.blackbox.mechanism import distribution_of

N = 4
PUBLIC = np.random.default_rng(0).uniform(0, 10, size=(30, N))


@pytest.fixture(scope="module")
def single():
    return make_private(np.mean, public_inputs=PUBLIC, metric="record", epsilon=2)


@pytest.fixture(scope="module")
def runs():
    return make_private(np.mean, public_inputs=PUBLIC, metric="record", group=3, epsilon=2)


def met(run: int, stride: int) -> int:
    """The most windows that a run of readings meets, by trying all places."""
    starts = range(0, 60, stride)
    return max(sum(start < at + run and at < start + N for start in starts) for at in range(20, 40))


def uses_of_each(run: int, stride: int) -> int:
    """The most pairs of a window and a reading of the run in it."""
    starts = range(0, 60, stride)
    return max(
        sum(start <= i < start + N for start in starts for i in range(at, at + run))
        for at in range(20, 40)
    )


@pytest.mark.parametrize("stride", [1, 2, 3, 4, 5, 9])
def test_a46_a_reading_is_charged_once_for_every_window_that_holds_it(single, stride: int) -> None:
    plan = WindowPlan(mechanism=single, stride=stride)
    assert plan.uses == met(1, stride) == -(-N // stride)
    assert plan.guarantee.epsilon() == pytest.approx(2 * plan.uses)


@pytest.mark.parametrize(("group", "stride"), list(itertools.product([2, 3, 5], [1, 2, 4])))
def test_a46_runs_behind_a_mechanism_for_single_readings(single, group: int, stride: int) -> None:
    plan = WindowPlan(mechanism=single, stride=stride, group=group)
    assert plan.uses == group * -(-N // stride) >= uses_of_each(group, stride)


@pytest.mark.parametrize("stride", [1, 2, 4, 7])
def test_a46_runs_behind_a_mechanism_for_runs(runs, stride: int) -> None:
    plan = WindowPlan(mechanism=runs, stride=stride, group=3)
    assert plan.uses == met(3, stride) == -(-(N + 2) // stride)
    with pytest.raises(InvalidArgument, match="runs of 3"):
        WindowPlan(mechanism=runs, group=2)


def test_a46_the_whole_stream_is_paid_for_before_the_first_reading(single, tmp_path) -> None:
    with Ledger(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        account = ledger.account(
            "readings", limit=pure_dp(10, relation=NeighboringRelation.REPLACE_ONE)
        )
        plan = WindowPlan(mechanism=single)
        assert "charged 4 times, epsilon 2 each, 8 in all" in plan.explain()
        stream = plan.start(account=account, label="forecasts")
        assert account.remaining == 2
        answers = [stream.feed(float(i % 10)) for i in range(12)]
        assert [found is None for found in answers] == [True] * 3 + [False] * 9
        assert account.remaining == 2, "paid at the start"
        with pytest.raises(NotCertified):
            stream.feed(1.0, rng=seeded_rng(1))
        with pytest.raises(BudgetExceeded):
            plan.start(account=account)
        disjoint = WindowPlan(mechanism=single, stride=N).start(account=account)
        assert account.remaining == 0
        stream.close()
        disjoint.close()
        with pytest.raises(InvalidArgument, match="closed"):
            stream.feed(1.0)
        outcomes = [entry.outcome for entry in account.history if entry.kind == "reserve"]
        assert outcomes == ["released", "released"]


def test_windows_are_the_last_readings_in_order() -> None:
    asked = []
    made = make_private(
        lambda x: asked.append(x.tolist()) or float(x.mean()),
        public_inputs=PUBLIC,
        public_outputs=PUBLIC.mean(axis=1),
        metric="record",
        epsilon=4,
        bounds=(0, 99),
    )
    stream = WindowPlan(mechanism=made, stride=2).start()
    for i in range(8):
        stream.feed(i)
    assert asked == [[0, 1, 2, 3], [2, 3, 4, 5], [4, 5, 6, 7]]
    # A reading is one person's: a strange one is missing, not an error.
    assert stream.feed([1.0, 2.0]) is None
    assert stream.feed(None) is not None
    assert asked[-1][2:] == made.box.shape.stand_in[2:, 0].tolist()


@pytest.mark.parametrize("group", [2, 4])
def test_a_run_behind_single_readings_is_no_composition(single, group: int) -> None:
    """One window, ``group`` readings replaced: the same noise, shifted ``group`` times as far."""
    plan = WindowPlan(mechanism=single, stride=N, group=group)
    reach = 40 * single.model.width
    places = np.arange(-reach, reach + 1)
    law = distribution_of(single.noise)
    here, there = law.pmf(places), law.pmf(places - group * single.model.width)
    claims = []
    for epsilon in np.linspace(0, 2 * group, 9)[:-1]:
        exact = np.maximum(here - np.exp(epsilon) * there, 0).sum()
        claims.append((plan.guarantee.delta(epsilon), exact))
        assert plan.guarantee.delta(epsilon) >= exact
    composed = single.guarantee * plan.uses
    assert any(
        composed.delta(epsilon) < exact
        for epsilon, (_, exact) in zip(np.linspace(0, 2 * group, 9), claims, strict=False)
    ), "what is refuted here"


def test_a_run_behind_single_readings_with_a_delta_is_refused() -> None:
    made = make_private(np.mean, public_inputs=PUBLIC, metric="record", epsilon=1, delta=1e-2)
    loose = replace(
        made, noise=gaussian(sensitivity=1, rho=1, relation=NeighboringRelation.REPLACE_ONE)
    )
    with pytest.raises(InvalidArgument, match="group=2"):
        WindowPlan(mechanism=loose, group=2)
    assert WindowPlan(mechanism=loose).uses == N


def test_the_account_of_the_mechanism_pays_for_a_stream(single, tmp_path) -> None:
    with Ledger(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        account = ledger.account(
            "readings", limit=pure_dp(10, relation=NeighboringRelation.REPLACE_ONE)
        )
        plan = WindowPlan(mechanism=single.charged_to(account))
        plan.start()
        assert account.remaining == 2
        with pytest.raises(BudgetExceeded):
            plan.start()


@pytest.mark.parametrize("way", [copy.copy, copy.deepcopy, pickle.dumps])
def test_a_stream_is_not_copied(single, way) -> None:
    """A copy would answer every window again for the same price."""
    with pytest.raises(InvalidArgument, match="copied"):
        way(WindowPlan(mechanism=single).start())


@pytest.mark.parametrize(("metric", "words"), [("attribute", "attribute"), ("count", "event")])
def test_what_is_less_than_a_reading_is_named_and_makes_no_runs(metric: str, words: str) -> None:
    made = make_private(np.mean, public_inputs=np.floor(PUBLIC), metric=metric, epsilon=50)
    assert f"each {words} of a reading" in WindowPlan(mechanism=made).explain()
    with pytest.raises(InvalidArgument, match="whole records"):
        WindowPlan(mechanism=made, group=2)


def test_a_run_that_is_hidden_at_once_is_named(runs) -> None:
    assert "each run of 3 readings is charged" in WindowPlan(mechanism=runs).explain()

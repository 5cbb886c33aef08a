"""Examples that are private too: what they cost, how far one moves the sums, what comes out."""

import numpy as np
import pytest

from discreet import Ledger, NotCertified, pure_dp, seeded_rng
from discreet.core.errors import BudgetExceeded, InvalidArgument, OutOfDomain
from discreet.models.blackbox import Truncated, make_private, release_examples

ANCHORS = np.linspace(0, 10, 21)[:, None]
METRIC = Truncated(width=10)


def asked(inputs, outputs, **changes):
    given = {"anchors": ANCHORS, "metric": METRIC, "bounds": (0, 100), "epsilon": 1}
    return release_examples(inputs, outputs, **{"rng": seeded_rng(3), **given, **changes})


def test_a50_one_example_moves_one_count_by_one_and_one_sum_by_half_the_steps(monkeypatch):
    seen = []

    class Silent:
        guarantee = pure_dp(1)

        def release(self, value, *, rng):
            seen.append(np.array(value))
            return value

    claimed = []

    def noiseless(*, sensitivity, epsilon, relation):
        claimed.append(sensitivity)
        return Silent()

    monkeypatch.setattr("discreet.models.blackbox.examples.laplace", noiseless)
    draw = np.random.default_rng(0)
    inputs = draw.uniform(-2, 12, (12, 1))
    outputs = draw.choice([-np.inf, -5, 0, 3.3, 100, 1e300, np.inf, np.nan], 12)
    asked(inputs, outputs)
    counts, sums = seen
    widest = 0
    for i in range(12):
        seen.clear()
        asked(np.delete(inputs, i, axis=0), np.delete(outputs, i))
        assert np.abs(counts - seen[0]).sum() == 1 == claimed[0]
        moved = np.abs(sums - seen[1])
        assert np.count_nonzero(moved) <= 1
        widest = max(widest, moved.sum())
    assert widest == claimed[1]


def test_what_comes_out_follows_the_examples_and_can_be_wrapped():
    draw = np.random.default_rng(1)
    inputs = draw.uniform(0, 10, (20_000, 1))
    made = asked(inputs, 10 * inputs[:, 0])
    # About a thousand examples an anchor; noise of a mean: 100 * sqrt(2) * 2 / 1000, ten of them.
    assert np.abs(made.outputs[1:-1] - 10 * ANCHORS[1:-1, 0]).max() < 3.0
    assert made.guarantee.epsilon() == 1.0
    private = make_private(
        lambda x: float(10 * x[0]),
        public_inputs=made.anchors[:, :, 0],
        public_outputs=made.outputs,
        metric="record",
        epsilon=50,
        bounds=(0, 10),
    )
    assert private.guarantee.epsilon() <= 50


def test_few_examples_are_drawn_to_the_mean_of_all():
    inputs = np.concatenate([np.full((5_000, 1), 10.0), [[0.0]]])
    outputs = np.concatenate([np.full(5_000, 80.0), [0.0]])
    made = asked(inputs, outputs, epsilon=4)
    assert made.outputs[-1] == pytest.approx(80, abs=1)
    assert ((made.outputs >= 0) & (made.outputs <= 100)).all()


def test_it_is_charged_before_anything_is_read(tmp_path):
    with Ledger(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        account = ledger.account("examples", limit=pure_dp(1.5))
        with pytest.raises(NotCertified):
            asked([[1]], [1], account=account)  # seeded
        made = asked([[1]], [1], account=account, rng=None)
        assert made.receipt is not None
        with pytest.raises(BudgetExceeded):
            asked([[1]], [1], account=account, rng=None)
        assert account.spent.epsilon() == 1.0


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"bounds": (3, 3)}, InvalidArgument),
        ({"bounds": 3}, InvalidArgument),
        ({"bounds": (1, 2, 3)}, InvalidArgument),
        ({"bounds": (-1e308, 1e308)}, InvalidArgument),
        ({"epsilon": 0}, InvalidArgument),
        ({"anchors": [[np.nan]]}, InvalidArgument),
        ({"anchors": [[1.0, 2.0]]}, OutOfDomain),
    ],
)
def test_odd_arguments_are_refused_without_a_value(changes, error):
    with pytest.raises(error) as refused:
        asked(np.array([[7.25]]), [1], **changes)
    assert "7.25" not in str(refused.value)


@pytest.mark.parametrize("strange", ["a", None, [1, 2], np.ma.masked, 10**400, b"7", object()])
def test_one_odd_example_counts_like_an_ordinary_one(strange):
    # An error, or a warning, would tell of one person.
    inputs, outputs = [[2.0], [7.25]], [20.0, 70.0]
    assert np.isfinite(asked([*inputs, [strange]], [*outputs, 1]).outputs).all()
    assert np.isfinite(asked([*inputs, strange], [*outputs, 1]).outputs).all()
    middle = asked([*inputs, [5.0]], [*outputs, 50.0]).outputs
    if strange != 10**400:
        assert (asked([*inputs, [5.0]], [*outputs, strange]).outputs == middle).all()


def test_that_there_is_no_example_is_not_told():
    for nothing in ([], np.array([]), np.empty((0, 1))):
        assert np.isfinite(asked(nothing, []).outputs).all()
    with pytest.raises(OutOfDomain):
        asked([], [1])


def test_numbers_too_small_are_not_told_where_they_are_errors():
    with np.errstate(all="raise"):
        assert np.isfinite(asked([[5e-324]], [5e-324], bounds=(-10, 10)).outputs).all()

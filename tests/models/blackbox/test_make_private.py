"""One call makes a function private: what it chooses, promises, charges and refuses."""

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from scipy.stats import beta

from discreet import Ledger, NotCertified, gaussian, laplace, private_quantile, pure_dp, seeded_rng
from discreet.core.errors import (
    BudgetExceeded,
    InvalidArgument,
    OutOfDomain,
    RelationMismatch,
    Unsupported,
)
from discreet.core.relation import NeighboringRelation
from discreet.models.blackbox import (
    Metric,
    Records,
    Truncated,
    UnitCount,
    WindowGroups,
    make_private,
)
from discreet.models.blackbox.mechanism import distribution_of, make_noise
from discreet.models.blackbox.metrics import ONE, Adjacency
from discreet.models.blackbox.output_ranges import ConstantRange
from discreet.models.blackbox.surrogates import AdditiveClip

N = 8
DRAW = np.random.default_rng(0)
PUBLIC = np.clip(DRAW.uniform(1, 9, (90, 1)) + DRAW.normal(0, 1, (90, N)), 0, 10)
PRIVATE = np.clip(DRAW.uniform(1, 9, (60, 1)) + DRAW.normal(0, 1, (60, N)), 0, 10)


@pytest.fixture(scope="module")
def mean():
    return make_private(
        np.mean, public_inputs=PUBLIC[:50], metric="record", epsilon=1, bounds=(0, 10)
    )


@pytest.fixture
def account(tmp_path):
    with Ledger(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        yield ledger.account("answers", limit=pure_dp(2, relation=NeighboringRelation.REPLACE_ONE))


def test_a50_public_data_and_neighbors_must_be_named() -> None:
    with pytest.raises(TypeError):
        make_private(np.mean, PUBLIC, metric="record", epsilon=1)
    with pytest.raises(TypeError):
        make_private(np.mean, public_inputs=PUBLIC, epsilon=1)
    with pytest.raises(TypeError):
        make_private(np.mean, metric="record", epsilon=1)
    with pytest.raises(InvalidArgument, match="'record', 'attribute', 'count'"):
        make_private(np.mean, public_inputs=PUBLIC, metric="person", epsilon=1)


def test_a_distance_with_neighbors_of_its_own_is_refused() -> None:
    class Moved(Metric):
        """Neighbors move all entries a little: whole records were said to be hidden."""

        relation_words = "all entries together moved by at most one"
        record_like = False

        def coordinates(self, inputs):
            return np.rint(self.cleaned(inputs) * ONE).astype(np.int64)

        def between(self, queries, anchors):
            return np.abs(queries[:, None] - anchors[None]).sum(axis=-1)

    with pytest.raises(InvalidArgument, match="under Moved is not known"):
        make_private(np.mean, public_inputs=PUBLIC, metric=Moved(), epsilon=1)

    class Own(Truncated):
        """Another distance of whole records."""

    assert Adjacency.of(Own(width=1.0, level="attribute")).level == "attribute"


def test_a50_what_is_and_is_not_protected_is_said(mean) -> None:
    assert "one whole record" in mean.protects
    assert f"{N} positions" in mean.protects
    words = " ".join(mean.does_not_protect)
    for part in ("public inputs and outputs", "trained on", "order", "overlapping", "sees it"):
        assert part in words
    assert all(line in mean.explain() for line in mean.does_not_protect)


def test_the_error_on_private_inputs_is_as_expected(mean) -> None:
    bits = seeded_rng(1)
    errors = [abs(mean.release(x, rng=bits) - x.mean()) for x in PRIVATE for _ in range(10)]
    assert np.mean(errors) == pytest.approx(mean.expected.error, rel=0.25)
    assert mean.expected.error < 0.6 * mean.expected.constant


def test_a47_the_estimate_is_better_than_the_noisy_number_and_costs_nothing(mean) -> None:
    bits = seeded_rng(2)
    answers = [(mean.answer(x, rng=bits), x.mean()) for x in PRIVATE for _ in range(10)]
    raw = np.mean([abs(found.noisy - said) for found, said in answers])
    refined = np.mean([abs(found.value - said) for found, said in answers])
    assert refined < raw
    plain = replace(mean, posterior=None)
    assert plain.guarantee == mean.guarantee
    assert (
        plain.release(PRIVATE[0], rng=seeded_rng(3))
        == mean.answer(PRIVATE[0], rng=seeded_rng(3)).noisy
    )
    said = [x.mean() for x in PUBLIC]
    assert all(min(said) - 1 <= found.value <= max(said) + 1 for found, _ in answers)


def test_a43_the_law_of_the_noise_keeps_epsilon_at_every_shift(mean) -> None:
    law, width = distribution_of(mean.noise), mean.model.width
    places = np.arange(-6 * width, 6 * width + 1)
    for shift in (1, width // 2, width):
        gap = law.log_pmf(places) - law.log_pmf(places + shift)
        assert np.abs(gap).max() <= 1 + 1e-9
    gap = law.log_pmf(places) - law.log_pmf(places + width + 1)
    assert np.abs(gap).max() > 1 + 1e-9, "one step more must break it"


def test_a44_the_certificate_recomputes_noise_and_ranges(mean) -> None:
    assert mean.certify().holds
    wide = ConstantRange(low=0, high=mean.model.width, step=mean.model.step)

    class Wrong(ConstantRange):
        """Ranges that follow the first record."""

        def ranges(self, inputs):
            low, high = super().ranges(inputs)
            shift = (inputs[:, 0, 0] > 5).astype(np.int64)
            return low + shift, high + shift

    assert replace(mean, model=wide).certify().holds
    wrong = Wrong(low=0, high=mean.model.width, step=mean.model.step)
    with pytest.raises(NotCertified):
        replace(mean, model=wrong).certify()

    class Empty(ConstantRange):
        def ranges(self, inputs):
            low, high = super().ranges(inputs)
            return high + 1, low

    with pytest.raises(NotCertified):
        replace(mean, model=Empty(low=0, high=1, step=Fraction(1))).certify()


def test_a44_what_is_seen_at_the_worst_pair_is_within_epsilon(mean) -> None:
    """Lower bounds of 99.9 % on epsilon, from draws at the two ends; less noise is caught."""
    width, many = mean.model.width, 100_000

    def seen(law) -> float:
        draws = law.sample(2 * many, seeded_rng(8))
        hits = [int((draws[:many] <= 0).sum()), int((draws[many:] + width <= 0).sum())]
        low = beta.ppf(0.0005, hits[0], many - hits[0] + 1)
        high = beta.ppf(0.9995, hits[1] + 1, many - hits[1])
        return float(np.log(low / high))

    assert 0.9 < seen(distribution_of(mean.noise)) <= 1
    assert seen(distribution_of(make_noise(width // 2, epsilon=1))) > 1


def test_numbers_too_small_are_not_told_where_they_are_errors(mean) -> None:
    tiny = AdditiveClip(
        knots=[[0.0, 4.0]] * N,
        heights=[[0, ONE]] * N,
        offset=0,
        shape=(N, 1),
        slope=mean.model.width,
        width=mean.model.width,
        metric=Records(),
        step=mean.step,
    )
    with np.errstate(all="raise"):
        assert np.isfinite(replace(mean, model=tiny).release(np.full(N, 5e-324)))


def test_intervals_hold_the_clipped_answer(mean) -> None:
    bits, held = seeded_rng(4), 0
    for x in PRIVATE:
        low, high = mean.model.ranges(x[None, :, None])
        step = float(mean.step)
        inside = (
            np.clip(np.floor((x.mean() - mean.origin) / step), low[0], high[0]) * step + mean.origin
        )
        lower, upper = mean.answer(x, rng=bits).interval(0.9)
        held += lower - 1e-9 <= inside <= upper + 1e-9
    assert held >= 45  # binomial(60, 0.9): below 45 with probability under 1e-4; the seed is fixed
    with pytest.raises(InvalidArgument):
        mean.interval(1.5)


def test_each_answer_is_charged_before_the_function_is_asked(mean, account) -> None:
    seen = []

    def function(x):
        seen.append(float(account.remaining))
        return x.mean()

    spy = make_private(
        function,
        public_inputs=PUBLIC,
        public_outputs=PUBLIC.mean(axis=1),
        metric="record",
        epsilon=1,
        account=account,
        label="mean of eight",
    )
    assert not seen, "given outputs are taken as they are"
    assert account.remaining == 2
    found = spy.answer(PRIVATE[0])
    assert seen == [1.0]
    assert found.receipt.label == "mean of eight"
    spy.release(PRIVATE[1])
    with pytest.raises(BudgetExceeded):
        spy.release(PRIVATE[2])
    assert len(seen) == 2
    assert [entry.outcome for entry in account.history if entry.kind == "reserve"] == [
        "released",
        "released",
    ]


def test_seeded_bits_are_refused_with_an_account(mean, account) -> None:
    charged = mean.charged_to(account)
    with pytest.raises(NotCertified):
        charged.release(PRIVATE[0], rng=seeded_rng(1))
    with pytest.raises(OutOfDomain):
        charged.release(PRIVATE[0][:3])
    assert account.remaining == 2


def test_accounts_of_another_relation_are_refused(mean, tmp_path) -> None:
    with Ledger(f"sqlite:///{tmp_path}/other.db") as ledger:
        other = ledger.account("answers", limit=pure_dp(2))
        with pytest.raises(RelationMismatch):
            mean.charged_to(other).release(PRIVATE[0])


def test_a42_only_public_inputs_are_asked_about() -> None:
    asked = []
    make_private(
        lambda x: asked.append(x.copy()) or float(x.sum()),
        public_inputs=PUBLIC[:40],
        metric="record",
        epsilon=1,
        bounds=(0, 10),
    )
    assert np.array_equal(np.array(asked), PUBLIC[:40])


def test_a42_a_fast_sine_of_twelve_numbers_gets_a_constant() -> None:
    public = np.random.default_rng(5).uniform(0, 1, size=(150, 12))
    made = make_private(
        lambda x: float(np.sin(4 * np.pi * np.linalg.norm(x))),
        public_inputs=public,
        metric="record",
        epsilon=1,
        bounds=(0, 1),
    )
    assert made.chosen.startswith("constant")
    assert made.expected.error <= made.expected.constant * (1 + 1e-12)


def test_a33_for_a_tiny_epsilon_the_answer_is_a_public_constant_and_free(account) -> None:
    asked = []
    made = make_private(
        lambda x: asked.append(1) or float(x.mean()),
        public_inputs=PUBLIC,
        public_outputs=PUBLIC.mean(axis=1),
        metric="record",
        epsilon=1e-6,
        account=account,
    )
    assert made.chosen == "constant"
    assert made.guarantee.epsilon() == 0
    assert made.certify().holds
    assert {made.release(x) for x in PRIVATE[:5]} == {made.release(np.full(N, np.nan))}
    assert made.release(PRIVATE[0]) == pytest.approx(np.median(PUBLIC.mean(axis=1)), abs=0.1)
    assert not asked, "the input is not used"
    assert account.remaining == 2


def test_a_function_without_spread_is_a_constant() -> None:
    made = make_private(lambda x: 7.25, public_inputs=PUBLIC[:30], metric="record", epsilon=1)
    assert made.release(PRIVATE[0]) == 7.25
    assert made.guarantee.epsilon() == 0


@pytest.mark.parametrize("offset", [1e9, -1e12])
def test_far_from_zero_is_as_good(offset: float) -> None:
    made = make_private(
        lambda x: float(x.mean()) + offset, public_inputs=PUBLIC[:50], metric="record", epsilon=1
    )
    assert made.expected.error < 0.6 * made.expected.constant
    assert abs(made.release(PRIVATE[0], rng=seeded_rng(1)) - offset) < 20


def test_a37_attributes_counts_and_runs_have_their_own_words_and_pass_their_certificates() -> None:
    draw = np.random.default_rng(6)
    table = np.floor(draw.uniform(0, 50, size=(40, 4, 2)))
    fine = make_private(np.sum, public_inputs=table, metric="attribute", epsilon=1)
    assert "one attribute" in fine.protects
    runs = make_private(np.sum, public_inputs=table, metric="record", group=2, epsilon=1)
    assert "2 consecutive" in runs.protects
    cars = make_private(np.sum, public_inputs=table[:, :, 0], metric="count", epsilon=1)
    assert "one event" in cars.protects
    for made in (fine, runs, cars):
        assert made.certify().holds
        assert np.isfinite(made.release(made.box.shape.as_argument(made.box.shape.stand_in)))
    assert cars.sensitivity < runs.sensitivity


def test_a_given_metric_is_used() -> None:
    counts = np.floor(PUBLIC[:40] * 10)
    made = make_private(np.sum, public_inputs=counts, metric=UnitCount(), epsilon=1)
    assert "one event" in made.protects
    runs = WindowGroups(length=3, parts_of=Records())
    made = make_private(np.sum, public_inputs=counts, metric=runs, epsilon=1)
    assert "3 consecutive" in made.protects
    with pytest.raises(InvalidArgument, match="group"):
        make_private(np.sum, public_inputs=counts, metric=runs, group=2, epsilon=1)
    with pytest.raises(InvalidArgument, match="group"):
        make_private(np.sum, public_inputs=counts, metric="count", group=2, epsilon=1)


@pytest.mark.slow
def test_regressors_of_scikit_learn_are_wrapped_as_they_are() -> None:
    from sklearn.ensemble import RandomForestRegressor
    from sklearn.tree import DecisionTreeRegressor

    target = PUBLIC.mean(axis=1)
    for model in (
        DecisionTreeRegressor(max_depth=4, random_state=0),
        RandomForestRegressor(5, max_depth=4, random_state=0),
    ):
        made = make_private(
            model.fit(PUBLIC, target), public_inputs=PUBLIC, metric="record", epsilon=3
        )
        assert made.certify().holds
        assert made.expected.error < 0.5 * made.expected.constant
        assert np.isfinite(made.release(PRIVATE[0]))


@pytest.mark.slow
def test_delta_is_passed_on() -> None:
    made = make_private(
        np.mean, public_inputs=PUBLIC[:40], metric="record", epsilon=0.5, delta=1e-3
    )
    assert made.guarantee.epsilon(1e-3) <= 0.5 * (1 + 1e-9)


@pytest.mark.parametrize(
    "noise",
    [
        None,
        laplace(
            sensitivity=1, epsilon=1, domain="integers", relation=NeighboringRelation.REPLACE_ONE
        ),
        gaussian(sensitivity=1, rho=1, domain="integers", relation=NeighboringRelation.REPLACE_ONE),
        make_noise(1, epsilon=1),
    ],
    ids=["none", "laplace", "gaussian", "best"],
)
def test_noise_for_narrower_ranges_is_not_certified(noise) -> None:
    """Sound by itself, and so are the ranges: but not for each other."""
    made = make_private(np.mean, public_inputs=PUBLIC[:40], metric="record", epsilon=1)
    assert made.certify().holds
    with pytest.raises(NotCertified, match="ranges of"):
        replace(made, noise=noise).certify()


class TestAlternatives:
    """Mechanisms that may answer instead."""

    median = staticmethod(lambda x: float(np.median(x)))

    def test_a_better_one_answers(self, account) -> None:
        exact = private_quantile(
            lower=0, upper=10, epsilon=200, relation=NeighboringRelation.REPLACE_ONE
        )
        made = make_private(
            self.median,
            public_inputs=PUBLIC[:40, :7],
            metric="record",
            epsilon=200,
            post_process=False,
            alternatives={"exact": exact},
            account=account,
        )
        assert made.expected.error < 1
        assert made.chosen == "exact"
        assert made.guarantee == exact.guarantee
        assert made.certify().holds
        with pytest.raises(Unsupported):
            made.interval(0.9)

    def test_one_that_is_perfect_is_chosen_and_charged(self, tmp_path) -> None:
        noise = laplace(sensitivity=1, epsilon=1, relation=NeighboringRelation.REPLACE_ONE)

        class Cheat(type(noise)):
            """Says the truth: what it promises is its own business."""

            def release(self, value, *, rng=None):
                return float(np.median(value))

        cheat = Cheat(**{name: getattr(noise, name) for name in noise.__dataclass_fields__})
        made = make_private(
            self.median,
            public_inputs=PUBLIC[:40],
            metric="record",
            epsilon=1,
            alternatives={"cheat": cheat},
        )
        assert made.chosen == "cheat"
        assert made.release(PRIVATE[0]) == np.median(PRIVATE[0])
        with Ledger(f"sqlite:///{tmp_path}/l.db") as ledger:
            account = ledger.account(
                "a", limit=pure_dp(1, relation=NeighboringRelation.REPLACE_ONE)
            )
            made.charged_to(account).release(PRIVATE[0])
            with pytest.raises(BudgetExceeded):
                made.charged_to(account).release(PRIVATE[0])

    def test_a_weaker_promise_is_refused(self) -> None:
        public = {"public_inputs": PUBLIC[:20], "metric": "record", "epsilon": 1}
        weak = private_quantile(
            lower=0, upper=10, epsilon=2, relation=NeighboringRelation.REPLACE_ONE
        )
        with pytest.raises(InvalidArgument, match="guarantees less"):
            make_private(self.median, **public, alternatives={"weak": weak})
        other = private_quantile(lower=0, upper=10, epsilon=1)
        with pytest.raises(RelationMismatch):
            make_private(self.median, **public, alternatives={"other": other})
        with pytest.raises(InvalidArgument, match="group"):
            make_private(self.median, **public, group=2, alternatives={"weak": weak})

    @pytest.mark.parametrize("positions", [1, 3])
    def test_noise_for_each_entry_is_no_alternative(self, positions: int) -> None:
        noise = laplace(
            sensitivity=1, epsilon=1, domain="reals", relation=NeighboringRelation.REPLACE_ONE
        )
        with pytest.raises(InvalidArgument, match="one number"):
            make_private(
                self.median,
                public_inputs=PUBLIC[:20, :positions],
                metric="record",
                epsilon=1,
                alternatives={"noise": noise},
            )


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        ({"public_inputs": [1.0, 2.0]}, "shape"),
        ({"public_inputs": [["a"]]}, "numbers"),
        ({"public_inputs": np.full((20, 3), np.nan)}, "finite"),
        ({"public_outputs": [1.0, 2.0]}, "one for each"),
        ({"public_outputs": ["a"] * 20}, "public_outputs"),
        ({"alternatives": [3]}, "alternatives"),
        ({"alternatives": {"x": 3}}, "'x' must be a mechanism"),
        ({"epsilon": 0}, "epsilon"),
        ({"epsilon": float("nan")}, "epsilon"),
        ({"delta": 1}, "delta"),
        ({"anchors": 0}, "anchors"),
        ({"bounds": (3, 1)}, "bounds"),
        ({"group": 0}, "group"),
        ({"seconds": 0}, "seconds"),
    ],
)
def test_wrong_arguments_are_named(wrong: dict, match: str) -> None:
    right = {"public_inputs": PUBLIC[:20], "metric": "record", "epsilon": 1}
    with pytest.raises(InvalidArgument, match=match):
        make_private(np.mean, **(right | wrong))


def test_a_function_that_answers_no_public_input_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="at least 10"):
        make_private(lambda x: float("nan"), public_inputs=PUBLIC[:50], metric="record", epsilon=1)


# ── A sensitivity that is known ──────────────────────────────────────────────────────────────────

COUNTS = np.random.default_rng(3).integers(0, 50, (120, 6)).astype(float)


def flow(capacities):
    """The largest flow through a small network: one more capacity adds one at most."""
    a, b, c, d, e, f = capacities
    return float(min(a + b, c) + min(d, e + f))


def test_a_function_of_known_sensitivity_does_not_lose_to_laplace_noise() -> None:
    usual = {"public_inputs": COUNTS, "metric": "count", "epsilon": 1, "bounds": (0, 100)}
    made = make_private(flow, sensitivity=1, **usual)
    assert made.chosen == "known sensitivity"
    assert made.expected.error <= 1.0, "the error of Laplace noise"
    assert made.sensitivity == pytest.approx(1, rel=1e-3)
    assert made.guarantee.epsilon() <= 1
    assert made.certify().holds
    bits = seeded_rng(1)
    errors = [abs(made.release(row, rng=bits) - flow(row)) for row in COUNTS for _ in range(5)]
    # Of 600 noises with mean absolute value 1, and so variance 1 of it.
    assert np.mean(errors) <= 1 + 5 / np.sqrt(600)
    assert made.rests_on_declaration
    assert "declared sensitivity (1)" in made.does_not_protect[0]
    assert not make_private(flow, **usual).rests_on_declaration


def test_a_declared_sensitivity_that_is_wrong_is_noticed() -> None:
    usual = {"public_inputs": COUNTS, "epsilon": 1, "bounds": (0, 100)}
    with pytest.raises(InvalidArgument, match="sensitivity is too small"):
        make_private(flow, metric="count", sensitivity=0.5, **usual)
    with pytest.raises(InvalidArgument, match="sensitivity is too small"):
        make_private(flow, metric="record", sensitivity=1, **usual)
    made = make_private(flow, metric="count", sensitivity=1, **usual)
    worse = replace(made, box=replace(made.box, function=lambda row: 2 * flow(row)))
    with pytest.raises(NotCertified, match="declared sensitivity"):
        worse.certify()
    # Where clipping is better than a hopeless sensitivity, the guarantee does not rest on it.
    large = make_private(np.mean, public_inputs=PUBLIC, metric="record", epsilon=1, sensitivity=500)
    assert not large.rests_on_declaration

"""What certificates compare: every pair, both directions, and the numbers they state."""

import dataclasses
import itertools
import math
from fractions import Fraction

import numpy as np
import pytest

import discreet
from discreet.core.errors import NotCertified
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms import quantiles as quantile
from discreet.mechanisms.above_threshold import AboveThreshold
from discreet.mechanisms.data_dependent import smooth_sensitivity as smooth_check
from discreet.mechanisms.data_dependent import weighted_sensitivity as weighted
from discreet.mechanisms.data_dependent.propose_test_release import propose_test_release
from discreet.mechanisms.data_dependent.smooth_sensitivity import smooth_sensitivity
from discreet.mechanisms.mechanism import CertificateCheck, DrawCheck
from discreet.mechanisms.partition_selection import partition_selection
from discreet.mechanisms.quantiles import PrivateQuantile, private_quantile
from discreet.mechanisms.selection import ExponentialMechanism

# -- one check ----------------------------------------------------------------------------------


def test_a_check_holds_up_to_a_billionth_and_a_little():
    def check(claimed, exact):
        return CertificateCheck(part="all", epsilon=1.0, claimed=claimed, exact=exact, route="sum")

    little = 1e-14
    assert check(0.0, little).holds
    assert not check(0.0, math.nextafter(little, 1)).holds
    assert check(0.5, 0.5 * (1 + 0.9e-9)).holds
    assert not check(0.5, 0.5 * (1 + 1.1e-9)).holds
    assert check(0.0, little).verdict == "delta is 0 up to rounding, claimed 0"
    assert check(0.0, 2e-14).verdict == "delta is 2e-14, claimed 0"


# -- keys ---------------------------------------------------------------------------------------


def excess(law, shifts, epsilon):
    """The divergence of independent noise on counts that move by so much each."""
    p = q = np.ones(1)
    for shift in shifts:
        moved = np.append(np.zeros(shift), law[:-shift])
        p, q = np.outer(p, law).ravel(), np.outer(q, moved).ravel()
    return math.fsum(np.maximum(p - math.exp(epsilon) * q, 0))


@pytest.mark.parametrize(
    "relation", [NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE]
)
@pytest.mark.parametrize("how", ["laplace", "gaussian", "rho"])
def test_certificates_of_keys(how, relation):
    """At 0, half of epsilon and epsilon: new keys come out, or those that stay are told apart."""
    price = {"rho": 0.2} if how == "rho" else {"epsilon": 1, "method": how}
    made = partition_selection(groups=1, delta=0.02, relation=relation, **price)
    reach = 40 if how == "laplace" else 15
    k = np.arange(-reach * math.ceil(made.std), reach * math.ceil(made.std) + 1)
    law = made.noise.pmf(k)
    new = law[k >= made.threshold].sum()
    # Two counts that move by one each are as hard for Laplace noise as one that moves by two.
    moved = (
        [1] if relation is NeighboringRelation.ADD_REMOVE else [2] if how == "laplace" else [1, 1]
    )
    checks = made.certify().checks
    epsilons = [check.epsilon for check in checks]
    if how == "rho":
        top = made.guarantee.epsilon(2 * float(made.mass) + 1e-6)
        assert epsilons == [0.0, top / 2, top]
    else:
        assert epsilons == [0.0, 0.5, 1.0]
        assert checks[-1].claimed == 0.02
    for check in checks:
        stay = excess(law, moved, check.epsilon)
        assert check.exact == pytest.approx(new + (1 - new) * stay, rel=1e-6)
        assert check.part == f"threshold {made.threshold}, 1 keys of a unit"
    for check in checks[: 3 if how == "rho" else 2]:
        assert check.claimed == made.guarantee.delta(check.epsilon)


def test_new_keys_of_a_unit_with_many():
    made = partition_selection(groups=5, epsilon=1, delta=0.1, method="laplace")
    one = float(made.noise.sf(made.threshold - 1))
    new = 1 - (1 - one) ** 5
    checks = made.certify().checks
    assert float(made.mass) == pytest.approx(5 * one, rel=1e-12)
    for check in checks:
        assert check.part.endswith(", 5 keys of a unit")
    # At epsilon the noise itself has no delta left.
    assert checks[-1].exact == pytest.approx(new, rel=1e-9)


# -- propose, test, release ---------------------------------------------------------------------


class Law:
    """Discrete Laplace masses as they should be, but for one place; and tails."""

    def __init__(self, rate, place, extra, tail):
        self.rate, self.place, self.extra, self.tail = rate, place, extra, tail

    def log_pmf(self, k):
        return -self.rate * abs(k) + (self.extra if k == self.place else 0.0)

    def sf(self, k):
        return self.tail


def proposed(**options):
    given = {
        "lower": 0,
        "upper": 8,
        "public_rows": 9,
        "epsilon": 2,
        "delta": 1e-3,
        "bound": 3,
        "granularity": 1,
    }
    return propose_test_release(**{**given, **options})


@pytest.mark.parametrize("share", [Fraction(1, 4), Fraction(2, 3)])
def test_certificates_of_a_test_and_an_answer(share):
    made = proposed(test=share)
    names = [field.name for field in dataclasses.fields(made)]
    given = {name: getattr(made, name) for name in names}
    rate = float(made.test)

    def with_noise(law):
        class Other(type(made)):
            __slots__ = ()
            test_noise = law
            threshold = made.threshold

            def _looks(self):
                return ()  # these laws are not drawn

        return Other(**given)

    first, second = with_noise(Law(rate, 99, 0.0, 0.9e-3)).certify().checks
    assert first.epsilon == second.epsilon == 2.0
    assert (first.claimed, first.exact) == (1e-3, 0.9e-3)
    assert (second.claimed, second.exact) == (0.0, 0.0)
    for place in range(-3, 5):
        # More at the top, or less anywhere else, makes it fall too fast.
        extra = -1e-9 if place else 1e-9
        with pytest.raises(NotCertified):
            with_noise(Law(rate, place, extra, 0.9e-3)).certify()
    with pytest.raises(NotCertified):
        with_noise(Law(rate, 99, 0.0, 1.1e-3)).certify()


# -- quantiles ----------------------------------------------------------------------------------


def test_excesses_without_rounding():
    law, other = np.array([0.6, 0.4]), np.array([0.1, 0.9])
    assert quantile._excess(law, other, 2.0) == pytest.approx(0.4, rel=1e-9)
    assert quantile._excess(other, law, 1.0) == pytest.approx(0.5, rel=1e-9)
    assert quantile._excess(2 * other * (1 + 0.5e-12), other, 2.0) == 0
    assert quantile._excess(2 * other * (1 + 3e-12), other, 2.0) > 0


FLAT = np.full(6, 1 / 6)
PEAK = np.array([0.08, 0.08, 0.08, 0.6, 0.08, 0.08])  # e / 6 < 0.6, but 1 / 6 < 0.08 e
HOLE = np.array([0.2, 0.2, 0.2, 0.0, 0.2, 0.2])  # 0.2 < e / 6, but 1 / 6 > 0


@pytest.mark.parametrize(
    "relation", [NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE]
)
@pytest.mark.parametrize("odd", [PEAK, HOLE])
def test_all_small_data_are_compared_with_their_neighbors(relation, odd, monkeypatch):
    made = private_quantile(lower=0, upper=5, granularity=1, epsilon=1, relation=relation)
    (check,) = made.certify().checks
    assert check.part == "all data of up to 3 rows on 6 points"
    assert (check.epsilon, check.claimed) == (1.0, 0.0)
    every = [
        data
        for rows in range(4)
        for data in itertools.combinations_with_replacement(range(6), rows)
    ]
    asked = []

    def law(self, codes, span):
        asked.append(tuple(codes.tolist()))
        assert span == 5
        return odd if asked[-1] == strange else FLAT

    monkeypatch.setattr(PrivateQuantile, "_law", law)
    seen = DrawCheck(part="none", found=0.0, allowed=0.0, route="this law is not drawn")
    monkeypatch.setattr(PrivateQuantile, "_drawn", lambda self, small: seen)
    for strange in [(), (0,), (5,), (0, 5, 5), (5, 5, 5)]:
        asked.clear()
        if not strange and relation is NeighboringRelation.REPLACE_ONE:
            assert made.certify().holds  # there is no row to replace
        else:
            with pytest.raises(NotCertified):
                made.certify()
        assert sorted(asked) == sorted(every)


def test_points_are_flipped_one_by_one():
    for method in ("interpolated", "exponential"):
        assert private_quantile(lower=0, upper=1, epsilon=1, method=method).stride == 1
    fields = {field.name: field.default for field in dataclasses.fields(PrivateQuantile)}
    assert fields["stride"] == 1


@pytest.mark.parametrize("method", ["interpolated", "exponential"])
def test_laws_of_steep_choices_are_numbers(method):
    made = private_quantile(lower=0, upper=9, granularity=1, epsilon=10**5, method=method)
    law = made.probabilities([0, 1, 1, 5, 8, 9, 9])
    assert law.tolist() == [0, 0, 0, 0, 0, 1, 0, 0, 0, 0]
    # Here no point is the quantile itself: it would be 10/3.
    made = dataclasses.replace(made, quantile=Fraction(1, 3))
    law = made.probabilities([5])
    place = 3 if method == "interpolated" else 5
    assert law.tolist() == [float(point == place) for point in range(10)]


# -- choices and thresholds ---------------------------------------------------------------------


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_choices_are_compared_in_both_directions(epsilon, monkeypatch):
    monkeypatch.setattr(ExponentialMechanism, "probabilities", lambda self, scores: scores)
    made = discreet.exponential_mechanism(sensitivity=1, epsilon=epsilon)
    factor = math.exp(epsilon)
    for left, right in (([0.9, 0.1, 0.0], [0.2, 0.3, 0.5]), ([0.5, 0.5, 0.0], [0.45, 0.45, 0.1])):
        both = [
            sum(max(0.0, a - factor * b) for a, b in zip(*pair, strict=True))
            for pair in ((left, right), (right, left))
        ]
        for pair in ((left, right), (right, left)):
            found = made._divergence(*map(np.array, pair))
            assert found == pytest.approx(max(both), rel=1e-12)


@pytest.mark.parametrize("monotonic", [False, True])
def test_runs_are_compared_with_three_neighbors_in_both_directions(monotonic, monkeypatch):
    made = discreet.above_threshold(sensitivity=1, epsilon=1, monotonic=monotonic)
    seen, laws = [], {}

    def law(self, values, *, threshold):
        seen.append(tuple(np.asarray(values).tolist()))
        assert threshold == 0
        return laws.get(seen[-1], np.array([0.5, 0.5, 0.0]))

    monkeypatch.setattr(AboveThreshold, "probabilities", law)
    rest = 0 if monotonic else -1
    others = [(1, 1, 1), (0, 0, 1), (rest, rest, 1)]
    # The first is larger in one place only by a factor above e, the second smaller.
    for odd, exact in (([0.4, 0.4, 0.2], 0.2), ([0.1, 0.9, 0.0], 0.5 - math.e / 10)):
        for strange in others:
            seen.clear()
            laws.clear()
            laws[strange] = np.array(odd)
            assert made._divergence(3) == pytest.approx(exact, rel=1e-9)
            assert set(seen) == {(0, 0, 0), *others}
    laws.clear()
    assert made._divergence(3) == 0


# -- noise that follows the data ----------------------------------------------------------------


def spied(monkeypatch, module):
    """Let divergences be zero but for one call; keep what was asked."""
    asked = []
    answers = {}

    def divergence(log_density, p, q, epsilon):
        asked.append((tuple(map(float, p)), tuple(map(float, q)), float(epsilon)))
        return answers.get(len(asked) - 1, 0.0)

    monkeypatch.setattr(module, "divergence", divergence)
    return asked, answers


@pytest.mark.parametrize("options", [{}, {"delta": 1e-6, "smoothness": 0.03}])
def test_scales_and_centers_that_a_smooth_bound_allows(options, monkeypatch):
    family = smooth_sensitivity(lower=0, upper=1, public_rows=9, epsilon=1, **options).family
    asked, answers = spied(monkeypatch, smooth_check)
    assert smooth_check.worst_divergence(family) == 0
    expected = set()
    for part, share in itertools.product((0, 0.25, 0.5, 0.75, 0.9, 1), (0, 0.5, 1)):
        wide = share / float(family.multiplier), math.exp(part * family.beta)
        expected |= {((0.0, 1.0), wide, 1.0), (wide, (0.0, 1.0), 1.0)}
    found = {tuple(np.round(np.hstack(one), 12)) for one in asked}
    assert found == {tuple(np.round(np.hstack(one), 12)) for one in expected}
    for call in range(len(asked)):
        asked.clear()
        answers.clear()
        answers[call] = 0.7
        assert smooth_check.worst_divergence(family) == 0.7


def test_local_sensitivities_that_a_weighted_one_allows(monkeypatch):
    made = weighted.weighted_sensitivity(lower=0, upper=1, public_rows=9, epsilon=2, delta=1e-3)
    asked, answers = spied(monkeypatch, weighted)
    (check,) = made.certify().checks
    assert (check.epsilon, check.claimed, check.exact) == (2.0, 1e-3, 0.0)
    b, sizes = float(made.share), (0.0, 0.1, 0.5, 0.9, 1.0)
    expected = set()
    for one, other in itertools.product(sizes, sizes):
        left, right = (((1 - b) * size + b) / 2 for size in (one, other))
        expected |= {((0.0, left), (shift, right), 2.0) for shift in (0.0, min(one, other))}
    found = {tuple(np.round(np.hstack(one), 12)) for one in asked}
    assert found == {tuple(np.round(np.hstack(one), 12)) for one in expected}
    for call in (0, 7, len(asked) - 1):
        asked.clear()
        answers.clear()
        answers[call] = 0.7
        with pytest.raises(NotCertified):
            made.certify()


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize(("p", "q"), [((0, 1), (0, 1.5)), ((0, 1.5), (0, 1)), ((0.3, 1), (0, 1))])
def test_divergences_do_not_depend_on_the_unit(size, p, q):
    """Laplace laws: closed forms at 0.2."""
    log_density = smooth_sensitivity(
        lower=0, upper=1, public_rows=9, epsilon=1, delta=1e-6
    ).family.log_density
    scaled = [(center * size, scale * size) for center, scale in (p, q)]
    found = smooth_check.divergence(log_density, *scaled, 0.2)
    e = math.exp(0.2)
    if p[1] == q[1]:
        exact = 1 - math.exp((0.2 - 0.3) / 2)
    else:
        # One crossing on each side, where p / e^0.2 meets q.
        x = abs(math.log(1.5) + (0.2 if p[1] > q[1] else -0.2)) / (1 - 1 / 1.5)
        inside = [1 - math.exp(-x / scale) for _, scale in (p, q)]
        if p[1] > q[1]:
            inside = [1 - mass for mass in inside]
        exact = inside[0] - e * inside[1]
    assert found == pytest.approx(exact, rel=1e-8)

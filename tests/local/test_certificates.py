"""How far a broken law is from its claim: certificates against sums over all reports."""

import itertools
import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from discreet.core._rational import exp_minus
from discreet.local import longitudinal
from discreet.local._window_channel import WindowChannel, window
from discreet.local.longitudinal import l_osue, longitudinal_olh, rappor
from discreet.local.means.local_laplace import LocalLaplace
from discreet.local.oracles.histogram_encoding import SummationHistogramEncoding
from discreet.local.oracles.local_hashing import olh
from discreet.local.oracles.randomized_response import grr
from discreet.local.oracles.subset_selection import subset_selection
from discreet.local.oracles.unary_encoding import ONE, OptimizedUnary, SymmetricUnary
from discreet.local.randomizer import coin_check
from discreet.mechanisms.mechanism import Certificate
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import seeded_rng


@pytest.fixture
def undemanding(monkeypatch):
    """Certificates that do not hold are returned all the same."""
    monkeypatch.setattr(Certificate, "demand", lambda self: self)


def divergence(first, second, epsilon):
    """Of two lists of probabilities."""
    factor = math.exp(epsilon)
    return sum(max(0.0, float(p) - factor * float(q)) for p, q in zip(first, second, strict=True))


@pytest.mark.parametrize(("inputs", "width"), [(2, 1), (3, 2), (5, 2), (3, 6), (2, 4)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(1)])
def test_a_window(inputs, width, epsilon):
    broken = WindowChannel(inputs=inputs, width=width, near=700, far=100)
    laws = [broken.weights(i) / broken.total for i in range(inputs)]
    assert all(law.sum() == pytest.approx(1) for law in laws)
    worst = max(divergence(a, b, epsilon) for a, b in itertools.permutations(laws, 2))
    check = broken.check(epsilon, "part")
    assert check.exact == pytest.approx(worst)
    assert (check.epsilon, check.claimed, check.part) == (float(epsilon), 0.0, "part")
    assert not check.holds
    assert window(inputs=inputs, width=width, epsilon=epsilon).check(epsilon, "part").exact == 0


@pytest.mark.parametrize(("inputs", "width"), [(2, 1), (2, 7), (9, 1), (9, 4), (4, 30)])
def test_the_moments_of_a_window(inputs, width):
    made = WindowChannel(inputs=inputs, width=width, near=17, far=3)
    assert made.symbols == inputs + width - 1
    for index in range(inputs):
        weights = [int(w) for w in made.weights(index)]
        assert sum(weights) == made.total == 17 * width + 3 * (made.symbols - width)
        middle, d = Fraction(made.symbols - 1, 2), Fraction(2 * index - inputs + 1, 2)
        first = sum(Fraction(w, made.total) * (s - middle) for s, w in enumerate(weights))
        second = sum(Fraction(w, made.total) * (s - middle) ** 2 for s, w in enumerate(weights))
        assert made.gain * float(d) == pytest.approx(float(first))
        assert made.moment + made.gain * float(d) ** 2 == pytest.approx(float(second))


@pytest.mark.parametrize("epsilon", [Fraction(1, 3), Fraction(2), Fraction(20)])
@pytest.mark.parametrize(("inputs", "width"), [(2, 1), (50, 7), (7, 50)])
def test_no_larger_weight_keeps_epsilon(inputs, width, epsilon):
    made = window(inputs=inputs, width=width, epsilon=epsilon)
    low, high = (Fraction(end, 1 << 400) for end in exp_minus(epsilon, 400))
    assert made.near * high <= made.far
    assert (made.near + 1) * low > made.far
    assert made.total <= 1 << 62 < made.total * 2


def test_how_large_an_epsilon_is_used_up():
    """A weight of 2**20 is the smallest, of 2**62 in all: 42 binary digits, less than 29.2."""
    kept = [window(inputs=2, width=1, epsilon=Fraction(e, 10)) for e in (287, 290, 292, 400)]
    ratios = [math.log(one.near / one.far) for one in kept]
    assert ratios[:2] == pytest.approx([28.7, 29.0], abs=1e-6)
    assert ratios[2:] == pytest.approx([42 * math.log(2)] * 2, abs=1e-6)
    assert kept[2].far == kept[3].far == 1 << 20


class Loose(SymmetricUnary):
    """Flips too seldom."""

    @property
    def coins(self):
        return 3 * ONE // 4, ONE // 8


@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(2)])
@pytest.mark.usefixtures("undemanding")
def test_unary_encodings(epsilon):
    made = Loose(categories=3, epsilon=epsilon)
    p, q = 0.75, 0.125
    assert made.ratio == Fraction(21)

    def law(value):
        ones = [p if i == value else q for i in range(3)]
        return [
            math.prod(c if bit else 1 - c for c, bit in zip(ones, bits, strict=True))
            for bits in itertools.product((0, 1), repeat=3)
        ]

    check = made.certify().checks[0]
    assert check.exact == pytest.approx(divergence(law(0), law(1), epsilon))
    assert check.claimed == 0
    fine = SymmetricUnary(categories=3, epsilon=epsilon).certify()
    assert fine.checks[0].exact == 0
    at_the_ratio = Loose(categories=3, epsilon=Fraction(4)).certify()
    assert at_the_ratio.checks[0].exact == 0

    class Hardly(OptimizedUnary):
        @property
        def coins(self):
            keep, other = super().coins
            return keep, other - 1

    assert Hardly(categories=3, epsilon=epsilon).certify().checks[0].exact == 1e-9


def test_what_a_ratio_exceeds():
    fine = longitudinal._check("part", Fraction(2), Fraction(7, 10))
    assert fine.exact == 0
    assert (fine.part, fine.epsilon, fine.claimed) == ("part", 0.7, 0)
    # Beyond e^epsilon: the share of the first that the second does not cover.
    bad = longitudinal._check("part", Fraction(4), Fraction(1))
    assert bad.exact == pytest.approx(1 - math.e / 4)
    assert longitudinal._check("part", Fraction(2), Fraction(693147, 10**6)).exact == pytest.approx(
        1 - math.exp(0.693147) / 2, rel=1e-3
    )
    assert longitudinal._check("part", Fraction(2), Fraction(6931471805, 10**10)).exact == 1e-9


class Quiet(SummationHistogramEncoding):
    """Noise of a scale of three halves where two are needed."""

    @property
    def noise(self):
        return DiscreteLaplace(Fraction(3, 2) * self.steps / self.epsilon)


@pytest.mark.usefixtures("undemanding")
@pytest.mark.parametrize("epsilon", [Fraction(1, 2), Fraction(3)])
def test_a_histogram_with_less_noise(epsilon):
    kept = SummationHistogramEncoding(categories=3, epsilon=epsilon, steps=4)
    assert kept.noise.scale == 8 / epsilon
    check = kept.certify().checks[0]
    assert (check.exact, check.epsilon, check.claimed) == (0, float(epsilon), 0)
    loss = epsilon * Fraction(4, 3)
    broken = Quiet(categories=3, epsilon=epsilon, steps=4).certify().checks[0]
    assert broken.exact == pytest.approx(1 - math.exp(epsilon - loss))


@pytest.mark.parametrize(("light", "heavy"), [(1, 1), (4, 1), (3, 5)])
@pytest.mark.parametrize("epsilon", [Fraction(1, 4), Fraction(1)])
def test_a_coin(light, heavy, epsilon):
    """A tenth of lies: what is true of the first and not of the second, in all."""
    tenth = Fraction(1, 10)

    def lie(precision):
        assert precision >= 256
        return math.floor(tenth * 2**precision), math.ceil(tenth * 2**precision)

    check = coin_check("part", lie, epsilon=epsilon, light=light, heavy=heavy)
    told = 0.9 - heavy * math.exp(epsilon) * 0.1 / light
    assert check.exact == pytest.approx(told)
    assert not check.holds
    assert (check.part, check.epsilon, check.claimed) == ("part", float(epsilon), 0)
    assert coin_check("part", lie, epsilon=Fraction(5), light=light, heavy=heavy).exact == 0


@pytest.mark.parametrize(
    ("made", "light", "heavy"),
    [
        (grr(categories=5, epsilon=1), 4, 1),
        (subset_selection(categories=7, epsilon=1, chosen=3), 4, 3),
        (olh(categories=8, epsilon=1, hashes=4), 6, 2),
        (olh(categories=16, epsilon=1, hashes=8, kept=3), 10, 6),
    ],
)
def test_the_coin_of_blocks(made, light, heavy):
    with localcontext(prec=60):
        rarer = Decimal(-1).exp() * light
        share = Fraction(rarer / (heavy + rarer))
    low, high = made._lie(100)
    assert low <= share * 2**100 <= high <= low + 4
    assert made.keep == pytest.approx(float(1 - share))
    assert made.certify().checks[0].exact < 1e-70


@pytest.mark.parametrize("hashes", [2, 4, 16])
@pytest.mark.parametrize(("epsilon", "permanent"), [(0.5, 2), (1, 1.25), (3, 6)])
def test_two_lies_in_a_row_are_one(hashes, epsilon, permanent):
    plan = longitudinal_olh(
        categories=40, epsilon=epsilon, permanent_epsilon=permanent, hashes=hashes
    )
    with localcontext(prec=80):
        r, s = (Decimal(-x).exp() for x in (epsilon, permanent))
        others = hashes - 1
        whole = Fraction(others * r / (1 + others * r))
        first = Fraction(others * s / (1 + others * s))
        # x + y - x y g / (g - 1) = whole, for y.
        second = (whole - first) / (1 - first * Fraction(hashes, others))
    for exact, (low, high) in (
        (second, plan._second_lie(90)),
        (whole, plan._either_lie(90)),
        (first, plan.response._lie(90)),
    ):
        assert low <= exact * 2**90 <= high <= low + 8
    p, q, a, c = plan._steps
    assert (p, q) == pytest.approx((float(1 - first), float(first) / others))
    assert (a, c) == pytest.approx((float(1 - second), float(second) / others))


def exact_loss(ratio):
    with localcontext(prec=60):
        return (Decimal(ratio.numerator) / Decimal(ratio.denominator)).ln()


@pytest.mark.parametrize("make", [rappor, l_osue])
@pytest.mark.parametrize("reports", [1, 2, 9, 1000, 1 << 16, (1 << 16) + 1])
def test_the_loss_of_unary_copies_is_rounded_up_and_hardly(make, reports):
    plan = make(categories=3, epsilon=0.25, permanent_epsilon=1.5)
    p, q = (Fraction(coin, ONE) for coin in plan.response.coins)
    flip = plan.flip
    t = (flip / (1 - flip)) ** min(reports, 2000)
    ratio = (p + (1 - p) * t) / (q + (1 - q) * t) * (1 - q + q * t) / (1 - p + p * t)
    found, exact = Decimal(plan.loss_after(reports)), exact_loss(ratio)
    assert exact * (1 + Decimal(2) ** -45) < found < exact * (1 + Decimal(2) ** -36)
    if reports > 1 << 16:
        assert plan.ratio_after(reports) == plan.ratio_after()


@pytest.mark.parametrize("hashes", [2, 4, 16])
@pytest.mark.parametrize("reports", [1, 2, 9, 100])
def test_the_loss_of_hashed_copies_is_rounded_up_and_hardly(hashes, reports):
    plan = longitudinal_olh(categories=40, epsilon=0.25, permanent_epsilon=1.5, hashes=hashes)
    with localcontext(prec=60):
        others = hashes - 1
        r, s = Decimal("-0.25").exp(), Decimal("-1.5").exp()
        p = 1 / (1 + others * s)
        c = (r - s) / ((1 - s) * (1 + others * r))
        t = (c / (1 - others * c)) ** reports
        # All copies show the hash of the one value, which the other value does not have.
        one = p + others * p * s * t
        two = p * s + (p + (others - 1) * p * s) * t
        exact, found = (one / two).ln(), Decimal(plan.loss_after(reports))
        slack = found - exact
        assert exact * Decimal(2) ** -45 < slack < (exact + reports + 64) * Decimal(2) ** -38


class Far:
    """Noise beyond every cut."""

    def sample(self, size, _bits):
        return np.resize([-(10**9), 10**9], size)


def test_reports_are_cut_at_the_outer_levels(monkeypatch):
    made = LocalLaplace(epsilon=Fraction(1), lower=Fraction(0), upper=Fraction(1), grid=4)
    monkeypatch.setattr(LocalLaplace, "noise", property(lambda _: Far()))
    drawn = made.draw(np.array([0.5, 0.5]), seeded_rng(1))
    assert drawn.tolist() == [0, len(made.levels) - 1]


def test_a_grid_and_its_noise():
    kept = LocalLaplace(epsilon=Fraction(1), lower=Fraction(0), upper=Fraction(1), grid=16)
    check = kept.certify().checks[0]
    assert (check.exact, check.epsilon) == (0.0, 1.0)
    assert kept.noise.scale == 16
    assert kept.reach == 32 * 16
    assert kept.levels[0] == -32
    assert kept.levels[-1] == 33
    assert np.diff(kept.levels) == pytest.approx(1 / 16)
    tail = sum(
        float(kept.noise.pmf(k)) * (k - kept.reach) for k in range(kept.reach + 1, kept.reach + 900)
    )
    assert kept.bias * kept.grid == pytest.approx(tail, rel=1e-6)

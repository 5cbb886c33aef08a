"""What a guarantee means: the success of any attack, from the whole privacy profile.

An attacker sees the release and decides between two neighboring data sets. The best decision is a
likelihood-ratio test, and how well it does is a function of the privacy profile alone. Profiles are
upper bounds, so every number here is one as well.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from discreet.accounting import composition
from discreet.accounting.conversion import Floats
from discreet.core._validate import as_tuple, count, probability
from discreet.core.errors import Unsupported
from discreet.core.events import Event
from discreet.core.number_format import percent, short
from discreet.core.relation import NeighboringRelation
from discreet.core.tabular import Record, Tabular

FALSE_POSITIVES = (0.0001, 0.001, 0.01, 0.1)
PRIORS = (0.5, 0.1, 0.01, 0.001)
CANDIDATES = (10, 100, 1000)
_ABOVE = 1 + 1e-12
_ENDS = (1e-9, 1e-7, 1e-5, 1e-3)
"""Where the profile is this small, it changes no number here in its first digits."""
_NODES = 400
_NEAR_ONE = 1 + 1e-7
_WIDEST = 60.0


@dataclass(frozen=True, slots=True, repr=False, eq=False)
class AttackBounds(Tabular):
    """Bounds of the success of any attack on a release. Made by `Guarantee.meaning`.

    All numbers are upper bounds, whatever the attacker knows and computes. They follow from the
    whole privacy profile, and not from one epsilon.

    Attributes:
        relation: Neighboring relation: which two data sets the attacker tells apart.
        epsilon: Pure epsilon of the guarantee, infinite if there is none.
        advantage: Largest difference of the true-positive and the false-positive rate of a
            membership test.

    Examples:
        >>> import discreet
        >>> meaning = discreet.gdp(0.5).meaning()
        >>> round(meaning.advantage, 4), round(meaning.accuracy(), 4)
        (0.1974, 0.5987)
    """

    relation: NeighboringRelation
    epsilon: float
    advantage: float
    _epsilons: Floats = field(repr=False)
    """Zero and above, in increasing order."""
    _deltas: Floats = field(repr=False)

    def true_positive_rate(self, false_positive_rate: float) -> float:
        """Bound how many participants an attacker finds.

        Args:
            false_positive_rate: Share of the people who did not take part whom the attacker takes
                for participants.

        Returns:
            Largest share of participants that any attack finds at this rate of false alarms.

        Raises:
            InvalidArgument: The rate is not between 0 and 1.

        Examples:
            >>> round(meaning.true_positive_rate(0.01), 4)
            0.0339
        """
        # Theorem: TPR <= min over x >= 0 of delta(ln x) + x FPR, for the profile of either order.
        # Source: Dong, Roth, Su 2022, Proposition 2.12 (duality of profile and trade-off).
        rate = float(probability("false_positive_rate", false_positive_rate, zero=True))
        return float(self._rates(np.array([rate]))[0])

    def _rates(self, false: Floats) -> Floats:
        slopes, deltas = self._line()
        bounds: Floats = (deltas[:, None] + slopes[:, None] * false[None, :]).min(axis=0)
        return np.minimum(bounds * _ABOVE, 1.0)

    def _line(self) -> tuple[Floats, Floats]:
        """The profile over all slopes: for a negative epsilon by its mirror image."""
        e, d = self._epsilons, self._deltas
        mirrored = -np.expm1(-e[:0:-1]) + np.exp(-e[:0:-1]) * d[:0:-1]
        return (
            np.concatenate([[0.0], np.exp(-e[:0:-1]), np.exp(e)]),
            np.concatenate([[1.0], np.minimum(mirrored * _ABOVE, 1.0), d]),
        )

    def accuracy(self, prior: float = 0.5) -> float:
        """Bound how often an attacker guesses right who took part.

        Args:
            prior: Probability that the person took part, before the attacker sees the release.

        Returns:
            Largest probability of a right guess.

        Raises:
            InvalidArgument: `prior` is not between 0 and 1.

        Examples:
            >>> round(discreet.pure_dp(1).meaning().accuracy(), 4)
            0.7311
        """
        # Theorem: max(p, 1-p) + min(p, 1-p) delta(|ln((1-p)/p)|), in the direction of the rarer.
        before = float(probability("prior", prior))
        rare = min(before, 1 - before)
        if rare == 0:
            return 1.0
        slope = (1 - rare) / rare
        # (1 - r) + r delta(ln slope) is what the trade-off gives at this slope.
        gain = self._delta(np.array([math.log(slope)]))[0]
        return float(min(1.0, ((1 - rare) + rare * gain) * _ABOVE))

    def _delta(self, epsilon: Floats) -> Floats:
        """The profile between its points: it is convex in exp(epsilon), so chords lie above."""
        e, d = self._epsilons, self._deltas
        found: Floats = np.interp(np.exp(np.minimum(epsilon, e[-1])), np.exp(e), d)
        return found

    def posterior(self, prior: float) -> float:
        """Bound what an attacker believes afterwards, whatever the release shows.

        Args:
            prior: Probability that the person took part, before the attacker sees the release.

        Returns:
            Largest probability after the release; 1 if the guarantee has no pure epsilon. Then see
            `posterior_probability`.

        Raises:
            InvalidArgument: `prior` is not between 0 and 1.

        Examples:
            >>> round(discreet.pure_dp(1).meaning().posterior(0.01), 4)
            0.0267
        """
        before = float(probability("prior", prior))
        if before in (0.0, 1.0) or self.epsilon > 700:
            return float(before > 0)
        grown = before * math.exp(self.epsilon)
        return min(1.0, grown / (1 - before + grown) * _ABOVE)

    def posterior_probability(self, prior: float, *, above: float) -> float:
        """Bound how probable it is that an attacker comes to believe something.

        Args:
            prior: Probability that the person took part, before the attacker sees the release.
            above: Belief that is exceeded.

        Returns:
            Largest probability that the belief exceeds `above`, whether the person takes part or
            not.

        Raises:
            InvalidArgument: `prior` or `above` is not between 0 and 1.

        Examples:
            >>> meaning.posterior_probability(0.01, above=0.1) < 1e-5
            True
        """
        # Theorem: P(loss > t) <= delta(e) / (1 - exp(e - t)) for all e < t, and the posterior
        #   exceeds b if the loss exceeds t = ln(b (1-p) / ((1-b) p)).
        # Proof: delta(e) = E[(1 - exp(e - loss))_+], and the integrand is at least 1 - exp(e - t)
        #   where the loss exceeds t. Needs: b > p; else the bound is 1.
        before = float(probability("prior", prior, zero=False, one=False))
        belief = float(probability("above", above, zero=False, one=False))
        if belief <= before:
            return 1.0
        if belief >= self.posterior(before):
            return 0.0
        t = math.log(belief * (1 - before) / ((1 - belief) * before))
        slopes, deltas = self._line()
        below = slopes < math.exp(min(t, 700.0)) * (1 - 1e-9)
        bounds = deltas[below] / (1 - slopes[below] * math.exp(-t))
        return float(min(1.0, bounds.min() * _ABOVE))

    def identification(self, candidates: int) -> float:
        """Bound how often an attacker picks a person's true values among candidates.

        Args:
            candidates: Number of values that are equally probable before the release.

        Returns:
            Largest probability of the right guess.

        Raises:
            InvalidArgument: `candidates` is not a positive integer.

        Examples:
            >>> round(discreet.pure_dp(1).meaning().identification(100), 4)
            0.0272
        """
        # Theorem: at most TPR(1/m). Proof: the guesses are disjoint events E_1..E_m. For the
        #   output Q without the person (or with a fixed stand-in) and the concave trade-off T, the
        #   mean of P_i(E_i) is at most the mean of T(Q(E_i)), at most T(1/m).
        # Source: after Hayes, Mahloujifar, Balle 2023.
        return self.true_positive_rate(1 / count("candidates", candidates))

    def curve(self, false_positive_rates: Sequence[float]) -> list[float]:
        """Compute the trade-off curve at several rates.

        Args:
            false_positive_rates: Rates of false alarms.

        Returns:
            The bound of `true_positive_rate` at each of them.

        Raises:
            InvalidArgument: A rate is not between 0 and 1.

        Examples:
            >>> [round(rate, 3) for rate in meaning.curve([0.001, 0.01, 0.1])]
            [0.005, 0.034, 0.217]
        """
        given = as_tuple("false_positive_rates", false_positive_rates)
        rates = [float(probability("false_positive_rates", one)) for one in given]
        return [float(one) for one in self._rates(np.array(rates, dtype=np.float64))]

    def rows(self) -> list[Record]:
        """List the usual numbers.

        Returns:
            One record for each: measure, condition (a rate, a prior or a number), and the largest
            value, without the attacker's own knowledge in `alone`.

        Examples:
            >>> meaning.rows()[0]["measure"]
            'advantage'
        """

        def row(measure: str, at: float | None, most: float, alone: float) -> Record:
            return {"measure": measure, "at": at, "at most": most, "without the release": alone}

        return [
            row("advantage", None, self.advantage, 0.0),
            *(
                row("true-positive rate at false-positive rate", one, rate, one)
                for one, rate in zip(FALSE_POSITIVES, self.curve(FALSE_POSITIVES), strict=True)
            ),
            *(row("right guess at prior", p, self.accuracy(p), max(p, 1 - p)) for p in PRIORS),
            *(row("posterior from prior", p, self.posterior(p), p) for p in PRIORS),
            *(
                row("right guess among candidates", m, self.identification(m), 1 / m)
                for m in CANDIDATES
            ),
        ]

    def words(self) -> str:
        """Say in plain words what an attacker gains.

        Returns:
            One paragraph.

        Examples:
            >>> print(discreet.pure_dp(1).meaning().words().partition(",")[0])
            Suppose an attacker knows everything about a person except whether they took part
        """
        secret, found = {
            NeighboringRelation.ADD_REMOVE: (
                "everything about a person except whether they took part",
                "they find at most {} of 1,000 participants",
            ),
            NeighboringRelation.REPLACE_ONE: (
                "everything about a person except which of two records is theirs",
                "they recognize at most {} of 1,000 people who have the record that they look for",
            ),
            NeighboringRelation.LOCAL: (
                "everything about a client except which of two values they hold",
                "they recognize at most {} of 1,000 clients who hold the value that they look for",
            ),
        }[self.relation]
        right = _hundredths(100 * self.accuracy())
        many = _hundredths(1000 * self.true_positive_rate(0.001))
        pure = ""
        if math.isfinite(self.epsilon):
            pure = (
                f" Whatever the release shows, odds change by a factor of at most "
                f"{short(math.exp(min(self.epsilon, 700)), digits=3)}."
            )
        return (
            f"Suppose an attacker knows {secret}, and starts with even odds. After seeing this "
            f"release they guess right in at most {right} of 100 cases, whatever they do (50 "
            f"without it). If they may raise a false alarm in at most 1 of 1,000 cases, "
            f"{found.format(many)} (1 without it).{pure}"
        )

    def __str__(self) -> str:
        lines = [self.words()]
        for row in self.rows():
            name = row["measure"] + ("" if row["at"] is None else f" {short(row['at'])}")
            most, alone = percent(row["at most"]), percent(row["without the release"])
            lines.append(f"  {name}: at most {most} ({alone} without the release)")
        return "\n".join(lines)

    __repr__ = __str__


def _hundredths(value: float) -> str:
    """Rounded up to two digits, so that "at most" stays true."""
    if value >= 1000:
        return "1,000"
    places = 0 if value >= 10 else 1
    return short(math.ceil(value * 10**places * (1 - 1e-12)) / 10**places)


def attack_bounds(event: Event, relation: NeighboringRelation) -> AttackBounds:
    """Bounds of attacks on what was released.

    Args:
        event: What was released.
        relation: Which data sets are neighbors.

    Returns:
        The bounds, from the worse of the two directions at each epsilon.
    """
    pure = composition.epsilon(event, delta=0.0).value
    nodes = _nodes(event, pure)
    deltas = composition.profile(event, nodes)
    deltas[0] = min(deltas[0], _total_variation(event))
    if math.isfinite(pure):
        deltas = np.minimum(deltas, _response_profile(nodes, pure))
    return AttackBounds(relation, pure, float(deltas[0]), nodes, np.minimum(deltas, 1.0))


def _nodes(event: Event, pure: float) -> Floats:
    """Where the profile is computed: from zero to where it no longer matters."""
    top = pure
    for delta in _ENDS:
        if math.isfinite(top) and top <= _WIDEST:
            break
        top = composition.epsilon(event, delta=delta).value
    top = min(max(top, 1e-9), _WIDEST)
    return top * np.linspace(0.0, 1.0, _NODES) ** 1.5


def _response_profile(epsilons: Floats, pure: float) -> Floats:
    """The profile of randomized response: no guarantee of that epsilon has a larger one."""
    if pure > _WIDEST:
        return np.ones(epsilons.size)
    gap = np.maximum(-np.expm1(epsilons - pure), 0.0)
    return gap / (1 + math.exp(-pure)) * _ABOVE


def _total_variation(event: Event) -> float:
    """The advantage by Pinsker and by Bretagnolle and Huber: best where only zCDP is known."""
    # Theorem: TV <= sqrt(KL / 2) and TV <= sqrt(1 - exp(-KL)); KL is at most any Renyi divergence
    #   of an order above 1. Source: Tsybakov 2009, Lemmas 2.5 and 2.6.
    try:
        divergence = composition.rdp(event, order=_NEAR_ONE)
    except (OverflowError, Unsupported):
        return 1.0
    if not math.isfinite(divergence):
        return 1.0
    far = math.sqrt(-math.expm1(-divergence))
    return min(math.sqrt(divergence / 2), far) * _ABOVE

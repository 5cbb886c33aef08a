"""The best noise for one number: every distribution here, certified, by its expected loss."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

from discreet.accounting.guarantee import Guarantee
from discreet.core._rational import Number
from discreet.core._validate import one_of, positive, probability
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.number_format import number
from discreet.core.relation import NeighboringRelation
from discreet.core.tabular import Record, Tabular
from discreet.mechanisms._drawn import charges
from discreet.mechanisms._inputs import Domain, Released, check_domain, exact_sensitivity, whole
from discreet.mechanisms.additive import AdditiveMechanism, gaussian, laplace
from discreet.mechanisms.mechanism import Certificate, Mechanism
from discreet.mechanisms.scalar._base import LOSS_NAMES, LOSSES, Loss, ScalarNoise
from discreet.mechanisms.scalar.grafted import grafted
from discreet.mechanisms.scalar.staircase import staircase
from discreet.mechanisms.scalar.truncated_laplace import truncated_laplace
from discreet.noise.random_source import RandomSource

# A law that is better by less than this is not worth being less usual.
_TIE = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseCandidate:
    """One certified noise, and what its error costs in the unit of the data."""

    mechanism: AdditiveMechanism | ScalarNoise
    loss: float

    @property
    def name(self) -> str:
        """The noise."""
        return self.mechanism.name


@dataclass(frozen=True, slots=True, kw_only=True)
class BestAdditiveNoise(Mechanism, Tabular):
    """The noise with the smallest expected error. Made by `best_additive_noise`."""

    candidates: tuple[NoiseCandidate, ...]
    """Best first; the first is what releases."""
    loss: Loss
    refused: tuple[tuple[str, str], ...]
    """Noises that do not fit, each with the reason."""

    @property
    def chosen(self) -> AdditiveMechanism | ScalarNoise:
        """The mechanism that releases."""
        return self.candidates[0].mechanism

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee of one release."""
        return self.chosen.guarantee

    @property
    def std(self) -> float:
        """Standard deviation of the noise."""
        return self.chosen.std

    def interval(self, confidence: float) -> tuple[float, float]:
        """Bound the noise.

        Args:
            confidence: Probability with which the bound holds, between 0 and 1.

        Returns:
            Lower and upper bound.

        Raises:
            InvalidArgument: `confidence` is not between 0 and 1.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.best_additive_noise(sensitivity=1, epsilon=2)
            >>> low, high = mechanism.interval(0.95)
            >>> low <= high
            True
        """
        return self.chosen.interval(confidence)

    def release(self, value: float, *, rng: RandomSource | None = None) -> Released:
        """Add the best noise to a number.

        Args:
            value: Private number.
            rng: Random source. By default the operating system's.

        Returns:
            A noisy number, an integer on integers and a float on reals.

        Raises:
            OutOfDomain: The input is not one number.

        Privacy:
            The release satisfies `guarantee`. No account is charged; charge `mechanism.guarantee`
            before you release.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.best_additive_noise(sensitivity=1, epsilon=2)
            >>> isinstance(mechanism.release(100), int)
            True
        """
        return self.chosen.release(value, rng=rng)

    def certify(self) -> Certificate:
        """Recompute the guarantee from exact distributions.

        Returns:
            A certificate that lists each check with the claimed and the exact delta.

        Raises:
            NotCertified: An exact distribution does not satisfy the guarantee.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.best_additive_noise(sensitivity=1, epsilon=2)
            >>> mechanism.certify().holds
            True
        """
        inner = self.chosen.certify()
        drawn = (*inner.drawn, charges("what is charged", self.guarantee, self.chosen.guarantee))
        return replace(inner, guarantee=self.guarantee, drawn=drawn).demand()

    def rows(self) -> list[Record]:
        """List each noise that satisfies the guarantee, best first.

        Returns:
            One dict per noise, with its expected loss.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.best_additive_noise(sensitivity=1, epsilon=2)
            >>> len(mechanism.rows()) == len(mechanism.candidates)
            True
        """
        return [{"noise": one.name, "loss": one.loss} for one in self.candidates]

    def explain(self) -> str:
        """Compare all noises that satisfy the guarantee, and say why others do not.

        Returns:
            Text with one noise per line and its expected loss.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.best_additive_noise(sensitivity=1, epsilon=2)
            >>> mechanism.explain().splitlines()[0]
            'Smallest root of the mean squared error: laplace.'
        """
        lines = [f"Smallest {LOSS_NAMES[self.loss]}: {self.candidates[0].name}."]
        best = self.candidates[0].loss
        for one in self.candidates:
            more = f"{one.loss / best - 1:+.2%}" if best else ""
            lines.append(f"  {one.name:18} {number(one.loss):>12}  {more}")
        lines += [f"  {name:18} {'-':>12}  {why}" for name, why in self.refused]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"best_additive_noise({self.chosen!r})"


def best_additive_noise(
    *,
    sensitivity: Number,
    epsilon: Number,
    delta: Number = 0,
    loss: Loss = "mse",
    domain: Domain | None = None,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> BestAdditiveNoise:
    """Choose the additive noise with the smallest expected error for one number.

    Candidates are Laplace, Gaussian, staircase, truncated Laplace and grafted noise. The choice
    depends on public numbers only, so it costs no budget.

    Args:
        sensitivity: Largest change of the number between neighboring data sets.
        epsilon: Privacy loss.
        delta: Probability parameter of (epsilon, delta)-DP. With 0, only pure DP noise is compared.
        loss: Measure of the error: `"mse"` (mean squared error), `"mae"` (mean absolute error) or
            `"p95"` (95th percentile of the absolute error).
        domain: `"integers"` or `"reals"`. By default integers if the sensitivity is an integer,
            otherwise reals.
        relation: Neighboring relation to which the sensitivity refers.

    Returns:
        A mechanism that releases with the best noise. `candidates` lists all of them and
        `explain()` compares them.

    Raises:
        InvalidArgument: A number or `loss` is outside its range.
        Unsupported: No candidate satisfies the budget.

    Privacy:
        The mechanism is (epsilon, delta)-DP. Every candidate is certified from its exact
        distribution.

    Examples:
        >>> import discreet
        >>> mechanism = discreet.best_additive_noise(sensitivity=1, epsilon=2)
        >>> mechanism.candidates[0].name
        'laplace'

    See Also:
        `compare_bounded_noise`: noise that stays between bounds.

    References:
        [Proof](../theory/theorems.md#mechanisms.scalar.best_noise.best_additive_noise).
    """
    # Theorem: (epsilon, delta)-DP under `relation`; no noise of the catalog (Laplace with its
    #   credit of delta, Gaussian, staircase, truncated Laplace, grafted) has a smaller loss.
    # Proof: each candidate is certified from its exact law; the losses are those of the same laws.
    # Source: B39c, B49.
    # Needs: one number (for vectors, `gaussian` or `laplace`); delta of a truncated or grafted law
    #   is in part an event that tells neighbors apart: keep it far below one over the people.
    one_of("loss", loss, LOSSES)
    check_domain(domain)
    eps, dlt = positive("epsilon", epsilon), probability("delta", delta, one=False)
    where: Domain = (
        "reals" if whole(exact_sensitivity(sensitivity)) is None else (domain or "integers")
    )
    task = _Task(
        sensitivity=sensitivity, epsilon=eps, delta=dlt, loss=loss, domain=where, relation=relation
    )
    made, refused = [], []
    for name, make in task.catalog.items():
        try:
            mechanism = make()
        except (Unsupported, InvalidArgument) as error:
            refused.append((name, str(error)))
            continue
        made.append(NoiseCandidate(mechanism=mechanism, loss=_loss(mechanism, loss)))
    if not made:
        raise Unsupported(f"No noise keeps this promise; {refused[0][0]}: {refused[0][1]}")
    best = min(one.loss for one in made)
    # Laws that are alike to a millionth count as equal: then the order of the catalog decides.
    first = next(one for one in made if one.loss <= best * (1 + _TIE))
    rest = sorted((one for one in made if one is not first), key=lambda one: one.loss)
    return BestAdditiveNoise(candidates=(first, *rest), loss=loss, refused=tuple(refused))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Task:
    """What is asked, as every noise of the catalog takes it."""

    sensitivity: Number
    epsilon: Fraction
    delta: Fraction
    loss: Loss
    domain: Domain
    relation: NeighboringRelation

    def laplace(self) -> AdditiveMechanism:
        return laplace(
            sensitivity=self.sensitivity,
            epsilon=self.epsilon,
            delta=self.delta,
            domain=self.domain,
            relation=self.relation,
        )

    def gaussian(self) -> AdditiveMechanism:
        self._needs_delta()
        return gaussian(
            sensitivity=self.sensitivity,
            epsilon=self.epsilon,
            delta=self.delta,
            domain=self.domain,
            relation=self.relation,
        )

    def staircase(self) -> ScalarNoise:
        return staircase(
            sensitivity=self.sensitivity,
            epsilon=self.epsilon,
            loss=self.loss,
            domain=self.domain,
            relation=self.relation,
        )

    def truncated_laplace(self) -> ScalarNoise:
        self._needs_delta()
        return truncated_laplace(
            sensitivity=self.sensitivity,
            epsilon=self.epsilon,
            delta=self.delta,
            domain=self.domain,
            relation=self.relation,
        )

    def grafted(self) -> ScalarNoise:
        self._needs_delta()
        return grafted(
            sensitivity=self.sensitivity,
            epsilon=self.epsilon,
            delta=self.delta,
            loss=self.loss,
            domain=self.domain,
            relation=self.relation,
        )

    def _needs_delta(self) -> None:
        if self.delta == 0:
            raise Unsupported("needs a delta above zero")

    @property
    def catalog(self) -> dict[str, Callable[[], AdditiveMechanism | ScalarNoise]]:
        """Every noise here, the more usual ones first."""
        return {
            "laplace": self.laplace,
            "gaussian": self.gaussian,
            "staircase": self.staircase,
            "truncated_laplace": self.truncated_laplace,
            "grafted": self.grafted,
        }


def _loss(mechanism: AdditiveMechanism | ScalarNoise, loss: Loss) -> float:
    """In the unit of the data."""
    measure = LOSSES[loss]
    if isinstance(mechanism, ScalarNoise):
        value, step = measure(mechanism.noise), mechanism.scale.step
    else:
        part = mechanism.integers or mechanism.reals
        assert part is not None  # noqa: S101 - `on` leaves one of them
        value, step = measure(part.noise), part.step
    return step * (math.sqrt(value) if loss == "mse" else value)

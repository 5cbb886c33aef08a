"""Which way to stay between bounds: expected losses, compared before any data is touched."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, TypeAlias

import numpy as np

from discreet.core._rational import Number
from discreet.core._validate import as_tuple, finite, one_of
from discreet.core.errors import InvalidArgument
from discreet.core.number_format import number
from discreet.core.relation import NeighboringRelation
from discreet.core.tabular import Record, Tabular
from discreet.mechanisms._inputs import Domain, exact_sensitivity
from discreet.mechanisms.additive import AdditiveMechanism
from discreet.mechanisms.bounded._error import ErrorDistribution, clamped_error, folded_error
from discreet.mechanisms.bounded.mechanism import (
    BoundedLaplaceMechanism,
    BoundedOutput,
    bounded_laplace,
    clamp_output,
    reflect_output,
)
from discreet.mechanisms.scalar._base import LOSS_NAMES, LOSSES, Loss, ScalarNoise
from discreet.mechanisms.scalar.best_noise import best_additive_noise
from discreet.noise.laplace import DiscreteLaplace, RoundedLaplace

Prior: TypeAlias = Literal["uniform", "worst"] | Sequence[float]
"""Where the truth may lie: anywhere alike, where it is worst, or at one of these values."""

_LEVEL = 0.95
_NODES = 65
_MEASURES: dict[Loss, Callable[[ErrorDistribution], float]] = {
    "mse": lambda law: law.root_mean_square,
    "mae": lambda law: law.mean_absolute,
    "p95": lambda law: law.size(_LEVEL),
}


_NO_DATA = "no data at all"


@dataclass(frozen=True, slots=True, kw_only=True)
class BoundedOption:
    """One way to stay between the bounds, and what its error costs in the unit of the data."""

    name: str
    mechanism: BoundedLaplaceMechanism | BoundedOutput
    loss: float


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class BoundedComparison(Tabular):
    """All ways, best first. Made by `advise_bounded`."""

    options: tuple[BoundedOption, ...]
    loss: Loss
    constant: float
    """The loss of a number that is published without a look at the data."""

    @property
    def best(self) -> BoundedLaplaceMechanism | BoundedOutput:
        """The mechanism of least expected loss."""
        return self.options[0].mechanism

    @property
    def worthwhile(self) -> bool:
        """Whether looking at the data is better than guessing."""
        return self.options[0].loss < self.constant

    def rows(self) -> list[Record]:
        """List each way with its loss, best first, and the loss of no data at all."""
        found = [(one.name, one.loss) for one in self.options]
        return [{"way": name, "loss": loss} for name, loss in (*found, (_NO_DATA, self.constant))]

    def explain(self) -> str:
        """Compare the expected errors of all options, best first.

        Returns:
            Text with one option per line.

        Examples:
            >>> import discreet
            >>> advice = discreet.compare_bounded_noise(lower=0, upper=10, sensitivity=1, epsilon=1)
            >>> len(advice.explain().splitlines()) > len(advice.options)
            True
        """
        lines = [f"Smallest {LOSS_NAMES[self.loss]}: {self.options[0].name}."]
        lines += [f"  {row['way']:26} {number(row['loss']):>12}" for row in self.rows()]
        if not self.worthwhile:
            lines.append("Guessing is as good: use a larger epsilon, or do not spend any.")
        return "\n".join(lines)

    __str__ = __repr__ = explain


def compare_bounded_noise(  # noqa: PLR0913 - each has a default and a name
    *,
    lower: Number,
    upper: Number,
    sensitivity: Number,
    epsilon: Number,
    delta: Number = 0,
    loss: Loss = "mse",
    prior: Prior = "uniform",
    domain: Domain | None = None,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> BoundedComparison:
    """Compare the expected errors of mechanisms whose outputs stay between bounds.

    Candidates are clamped noise, reflected Laplace noise and bounded Laplace noise. All satisfy the
    same guarantee. Clamping is best near a bound and while the noise is narrow compared with the
    bounds.

    Args:
        lower: Smallest output.
        upper: Largest output.
        sensitivity: Largest change of the number between neighboring data sets.
        epsilon: Privacy loss.
        delta: Probability parameter of (epsilon, delta)-DP.
        loss: Measure of the error: `"mse"` (root of the mean squared error), `"mae"` (mean absolute
            error) or `"p95"` (95th percentile of the absolute error).
        prior: Where the true number may lie: `"uniform"`, `"worst"`, or a list of likely values
            that does not come from the private data.
        domain: `"integers"` or `"reals"`. By default integers if the bounds and the sensitivity are
            integers, otherwise reals.
        relation: Neighboring relation to which the sensitivity refers.

    Returns:
        A comparison with `options`, best first, and `best`, a mechanism.

    Raises:
        InvalidArgument: The bounds, the budget, `loss` or `prior` are not valid.

    Privacy:
        The comparison reads public numbers only and costs no budget.

    Examples:
        >>> import discreet
        >>> advice = discreet.compare_bounded_noise(lower=0, upper=10, sensitivity=1, epsilon=1)
        >>> advice.options[0].name
        'clamped laplace'

    See Also:
        [Bounded outputs](../how-to/bounded.md).
    """
    # Theorem: nothing is spent: the advice reads public numbers only. The losses are those of the
    #   exact laws, on whole numbers, and of the continuous laws to a part of 10**-4 on reals.
    # Source: B54.
    # Needs: a `prior` that does not come from the private data.
    one_of("loss", loss, LOSSES)
    direct = bounded_laplace(
        lower=lower,
        upper=upper,
        sensitivity=sensitivity,
        epsilon=epsilon,
        delta=delta,
        domain=domain,
        relation=relation,
    )
    additive = best_additive_noise(
        sensitivity=min(
            exact_sensitivity(sensitivity), finite("upper", upper) - finite("lower", lower)
        ),
        epsilon=epsilon,
        delta=delta,
        loss=loss,
        domain="integers" if direct.column.exponent == 0 else "reals",
        relation=relation,
    )
    truths = _truths(prior, direct)
    options = [
        BoundedOption(name=name, mechanism=mechanism, loss=_loss(map(law, truths), loss, prior))
        for name, mechanism, law in _ways(direct, [one.mechanism for one in additive.candidates])
    ]
    options.sort(key=lambda one: one.loss)
    guess = float(np.mean(truths))
    guesses = (
        ErrorDistribution(errors=np.array([guess - truth]), masses=np.ones(1)) for truth in truths
    )
    return BoundedComparison(
        options=tuple(options), loss=loss, constant=_loss(guesses, loss, prior)
    )


def _ways(
    direct: BoundedLaplaceMechanism, noises: list[AdditiveMechanism | ScalarNoise]
) -> Iterator[
    tuple[str, BoundedLaplaceMechanism | BoundedOutput, Callable[[float], ErrorDistribution]]
]:
    """Each way with its mechanism and the law of its error around a truth."""
    low, high = direct.bounds
    for noise in noises:
        yield (
            f"clamped {noise.name}",
            clamp_output(noise, lower=low, upper=high),
            partial(_clamped_at, direct, noise),
        )
        part = (noise.integers or noise.reals) if isinstance(noise, AdditiveMechanism) else None
        if part is not None and isinstance(part.noise, DiscreteLaplace | RoundedLaplace):
            scale = float(part.noise.scale) * part.step / direct.column.step
            yield (
                f"folded {noise.name}",
                reflect_output(noise, lower=low, upper=high),
                partial(_folded_at, direct, scale),
            )
    yield "bounded laplace", direct, direct.error


def _clamped_at(
    direct: BoundedLaplaceMechanism, noise: AdditiveMechanism | ScalarNoise, truth: float
) -> ErrorDistribution:
    return clamped_error(direct.steps(truth), direct.column, noise)


def _folded_at(direct: BoundedLaplaceMechanism, scale: float, truth: float) -> ErrorDistribution:
    return folded_error(direct.steps(truth), direct.column, scale)


def _truths(prior: Prior, mechanism: BoundedLaplaceMechanism) -> list[float]:
    low, high = mechanism.bounds
    if isinstance(prior, str):
        if prior not in ("uniform", "worst"):
            raise InvalidArgument(
                f"prior must be 'uniform', 'worst' or likely values, got {prior!r}."
            )
        if mechanism.column.exponent == 0 and mechanism.column.span < _NODES:
            return np.arange(low, high + 1).tolist()
        ends = np.linspace(low, high, _NODES)
        found: list[float] = (ends if prior == "worst" else (ends[:-1] + ends[1:]) / 2).tolist()
        return found
    values = [float(finite("prior", value)) for value in as_tuple("prior", prior)]
    if not values:
        raise InvalidArgument("prior must have at least one likely value.")
    if min(values) < low or max(values) > high:
        raise InvalidArgument("prior must lie between lower and upper.")
    return values


def _loss(laws: Iterable[ErrorDistribution], loss: Loss, prior: Prior) -> float:
    """Of the mixture of the laws, or of the worst one."""
    measure = _MEASURES[loss]
    if isinstance(prior, str) and prior == "worst":
        return max(measure(law) for law in laws)
    every = list(laws)
    mixture = ErrorDistribution(
        errors=np.concatenate([law.errors for law in every]),
        masses=np.concatenate([law.masses for law in every]) / len(every),
    )
    return measure(mixture)

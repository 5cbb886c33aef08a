"""Noisy gradient descent on a strongly convex loss: only the last iterate is released.

A step shrinks what is known of earlier ones, so that the cost does not grow without end with the
number of steps, as composition would have it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.accounting.conversion import gaussian_delta, gaussian_sigma
from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core._rational import Number
from discreet.core._validate import count, exponent_below, non_negative, positive
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.mechanisms._drawn import Handed, moves, with_stand_in
from discreet.mechanisms.additive import AdditiveMechanism, gaussian
from discreet.mechanisms.mechanism import Certificate, CertificateCheck, DrawCheck, Mechanism
from discreet.models.dp_sgd._output_perturbation import (
    contraction,
    gradient_constants,
    neighboring_records,
    project_to_ball,
    read_records,
)
from discreet.models.dp_sgd.losses import Floats, Loss
from discreet.models.dp_sgd.train import (
    UNIT,
    data_gradient,
    gradient_error,
    piece_error,
    representable,
    widened,
)
from discreet.noise.random_source import RandomSource, resolve_rng

# ── Cost of the last iterate ─────────────────────────────────────────────────────────────────────


# The formulas are a few operations on doubles; results are rounded up by this.
_UP = 1 + 1e-12


def factor(*, contraction: float, steps: int) -> float:
    """``sqrt((1 - c^t)/(1 + c^t) (1 + c)/(1 - c))``: the cost of t steps in units of one.

    At c = 1 it is sqrt(t), what composition gives; below, it never exceeds the limit for t without
    end, ``sqrt((1 + c)/(1 - c))``.
    """
    c = float(non_negative("contraction", contraction))
    t = count("steps", steps)
    if c > 1:
        raise InvalidArgument(f"contraction must not exceed 1, got {contraction}.")
    if c == 0:
        return 1.0
    if c == 1:
        return math.sqrt(t)
    half = -math.log(c) / 2
    # The ratio of the two hyperbolic tangents is the fraction above, without cancellation. For c
    # very close to 1 the logarithm is what rounding left of it: composition bounds the result.
    return min(math.sqrt(math.tanh(t * half) / math.tanh(half)) * _UP, math.sqrt(t))


def last_iterate_mu(*, contraction: float, sensitivity: float, sigma: float, steps: int) -> float:
    """The mu of the last of ``steps`` iterates of noisy gradient descent (Gaussian DP).

    ``sensitivity`` is how far one record moves a full-batch step at one theta, ``sigma`` the
    standard deviation of the Gaussian noise of each step in the same unit (both of the gradient,
    or both of the parameters), ``contraction`` see `bolt_on.contraction`.
    """
    # Theorem: mu-GDP with `mu = (s/sigma) sqrt((1 - c^t)/(1 + c^t) (1 + c)/(1 - c))`; exact for
    #   quadratic losses.
    # Source: Bok, Su, Altschuler 2024, Theorem 4.1. Proof in theory/sgd-convergence.
    # Needs: all records in every step, a start that does not depend on them, isotropic Gaussian
    #   noise in every step, contraction on both data sets, no clipping, and that nothing of the
    #   other iterates is ever published.
    unit = float(positive("sensitivity", sensitivity)) / float(positive("sigma", sigma))
    return unit * factor(contraction=contraction, steps=steps) * _UP


def quadratic_mu(*, contraction: float, sensitivity: float, sigma: float, steps: int) -> float:
    """The same for a quadratic loss, by following mean and variance step by step."""
    shift, variance = 0.0, 0.0
    for _ in range(count("steps", steps)):
        shift = contraction * shift + sensitivity
        variance = contraction**2 * variance + sigma**2
    return shift / math.sqrt(variance)


def composed_mu(*, sensitivity: float, sigma: float, steps: int) -> float:
    """What all iterates together cost: ``sqrt(t) s / sigma``."""
    return sensitivity / sigma * math.sqrt(count("steps", steps))


# ── Descent on all records ───────────────────────────────────────────────────────────────────────


# Grid steps in one deviation of a step's noise: 2**30, so that rounding costs next to nothing.
_RESOLUTION = 30
_SLACK = 1 + 1e-9
_MOST_STEPS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class NoisyGradientDescent(Mechanism):
    """Full-batch gradient descent with noise in every step. Made by `noisy_descent`.

    Attributes:
        objective: Loss that is minimized.
        features: Number of features.
        rows: Public number of records.
        row_norm: Largest L2 norm of a row.
        steps: Number of steps.
        rate: Learning rate.
        noise: Mechanism of one step, on the parameters.
        moved: Largest change of the parameters by one record in one step, in L2, rounding included.
        shrink: Factor by which a step contracts distances.
        radius: Distance from zero to which parameters are projected before a step.

    Examples:
        >>> import numpy
        >>> from discreet.models import dp_sgd
        >>> mechanism = dp_sgd.noisy_descent(
        ...     dp_sgd.Logistic(l2=0.1), features=1, public_rows=500, row_norm=1, mu=1, steps=10
        ... )
        >>> mechanism.steps
        10
    """

    objective: Loss
    features: int
    rows: int
    row_norm: float
    steps: int
    rate: float
    noise: AdditiveMechanism
    moved: float
    shrink: float
    radius: float

    @property
    def mu(self) -> float:
        """Privacy loss of the last iterate, in Gaussian DP."""
        return last_iterate_mu(
            contraction=self.shrink, sensitivity=self.moved, sigma=self.noise.std, steps=self.steps
        )

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee of one release, if one record is replaced."""
        return Guarantee(
            events.GdpEvent(Fraction(self.mu * _SLACK)), NeighboringRelation.REPLACE_ONE
        )

    @property
    def std(self) -> float:
        """Largest standard deviation of the noise of a parameter.

        It is attained where the loss is flattest.
        """
        kept = self.shrink**2
        return self.noise.std * math.sqrt(
            self.steps if kept >= 1 else (1 - kept**self.steps) / (1 - kept)
        )

    def certify(self) -> Certificate:
        """Recompute the guarantee on the worst loss, and that of the noise of a step.

        Returns:
            A certificate that lists each check.

        Raises:
            NotCertified: An exact distribution does not satisfy the guarantee.

        Examples:
            >>> import numpy
            >>> from discreet.models import dp_sgd
            >>> mechanism = dp_sgd.noisy_descent(
            ...     dp_sgd.Logistic(l2=0.1), features=1, public_rows=500, row_norm=1, mu=1, steps=10
            ... )
            >>> mechanism.certify().holds
            True
        """
        exact = quadratic_mu(
            contraction=self.shrink, sensitivity=self.moved, sigma=self.noise.std, steps=self.steps
        )
        worth = self.guarantee.epsilon(1e-6)
        checks = [
            CertificateCheck(
                part=f"last of {self.steps} iterates",
                epsilon=epsilon,
                claimed=self.guarantee.delta(epsilon),
                exact=float(gaussian_delta(epsilon, mu=exact)),
                route="mean and variance of a quadratic, step by step",
            )
            for epsilon in (0.0, worth / 2, worth)
        ]
        step = self.noise.certify()
        return Certificate(
            mechanism="noisy descent",
            guarantee=self.guarantee,
            checks=(*step.checks, *checks),
            drawn=(*step.drawn, *self._moved()),
        ).demand()

    def _moved(self) -> tuple[DrawCheck, ...]:
        """How far one record moves the first step, in what the guarantee allows."""
        worst = 0.0
        for records in neighboring_records(self.rows, self.features, self.row_norm):
            seen = []
            for x, y in records:
                noted = Handed(self.noise)
                with_stand_in(self, noise=noted).release(x, y)
                seen.append(noted.handed.astype(np.float64))
            worst = max(worst, float(np.linalg.norm(seen[0] - seen[1])))
        return (moves("one record's target", worst, self.moved),) if worst else ()

    def release(self, x: object, y: object, *, rng: RandomSource | None = None) -> Floats:
        """Run gradient descent on private records and release the last iterate.

        Args:
            x: Features, one row per record. Longer rows than `row_norm` are shrunk.
            y: Target of each record.
            rng: Random source. By default the operating system's.

        Returns:
            The last iterate. The guarantee does not cover earlier iterates.

        Privacy:
            The release satisfies `guarantee` if one record is replaced. This method charges no
            account; `OutputPerturbationLogisticRegression` does.

        Examples:
            >>> import numpy
            >>> from discreet.models import dp_sgd
            >>> mechanism = dp_sgd.noisy_descent(
            ...     dp_sgd.Logistic(l2=0.1), features=1, public_rows=500, row_norm=1, mu=1, steps=10
            ... )
            >>> x = numpy.linspace(-1, 1, 500)[:, None]
            >>> mechanism.release(x, (x[:, 0] > 0).astype(float)).shape
            (1,)
        """
        rows, targets = read_records(
            self.objective, x, y, features=self.features, row_norm=self.row_norm, rows=self.rows
        )
        source = resolve_rng(rng)
        theta = np.zeros(self.objective.dimension(self.features))
        for _ in range(self.steps):
            theta = representable(project_to_ball(theta, self.radius), self.features)
            slope = data_gradient(self.objective, theta, rows, targets) / self.rows
            slope += self.objective.penalty_gradient(theta)
            theta = self.noise.release(theta - self.rate * slope, rng=source)
        return theta


def noisy_descent(  # noqa: PLR0913 - each has a name
    objective: Loss,
    *,
    features: int,
    public_rows: int,
    row_norm: float,
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    mu: Number | None = None,
    steps: int | None = None,
    rate: float | None = None,
) -> NoisyGradientDescent:
    """Create a mechanism for gradient descent of which only the end is released.

    Every step uses all records.

    Because the loss is strongly convex, the privacy loss does not grow without limit with the
    number of steps. Give one of: `epsilon` with `delta`, `rho`, or `mu`.

    Args:
        objective: Loss with bounded gradient and `l2` above zero, also on an intercept.
        features: Number of features.
        public_rows: Public number of records.
        row_norm: Largest L2 norm of a row. Longer rows are shrunk.
        epsilon: Privacy loss in (epsilon, delta)-DP.
        delta: Probability parameter of (epsilon, delta)-DP.
        rho: Privacy loss in zero-concentrated DP.
        mu: Privacy loss in Gaussian DP.
        steps: Number of steps. By default chosen from the number of records and the contraction.
        rate: Learning rate. By default 1 / smoothness.

    Returns:
        A mechanism with `release(x, y)`.

    Raises:
        InvalidArgument: Not exactly one budget is given, or an argument is outside its range.
        Unsupported: The loss has no bounded gradient or is not strongly convex, or the rate is too
            large.

    Privacy:
        The last iterate satisfies the budget if one record is replaced. Never publish another
        iterate.

    Examples:
        >>> import numpy
        >>> from discreet.models import dp_sgd
        >>> mechanism = dp_sgd.noisy_descent(
        ...     dp_sgd.Logistic(l2=0.1), features=1, public_rows=500, row_norm=1, mu=1, steps=10
        ... )
        >>> mechanism.mu <= 1
        True

    References:
        Bok, Su and Altschuler (2024).
        [Proof](../theory/theorems.md#models.dp_sgd.noisy_gradient_descent.noisy_descent).
    """
    # Theorem: mu-GDP under replace-one, with `last_iterate_mu`; `epsilon` with `delta` and
    #   `rho` by the exact conversion of mu.
    # Proof: the bound needs only that two runs come from distance d to at most `c d + s` in a
    #   step. Rounding to the grid, projection and errors of doubles (`gradient_error`) are in s.
    #   See theory/sgd-convergence.
    # Source: Bok, Su, Altschuler 2024. C44.
    # Needs: a loss with bounded gradient and l2 above zero; `public_rows`, the number of records,
    #   public; that no other iterate is ever published.
    width, n = count("features", features), count("public_rows", public_rows)
    length = widened(float(positive("row_norm", row_norm)), width)
    g, m = gradient_constants(objective, length)
    top = objective.smoothness(length)
    eta = 1 / top if rate is None else float(positive("rate", rate))
    # What doubles left of the contraction is rounded up, but never to more than composition.
    found = float(contraction(eta, smoothness=top, strong_convexity=m)[0])
    shrink = min(1.0, found * (1 + 4 * UNIT) + 4 * UNIT)
    times = _usual_steps(n, shrink) if steps is None else count("steps", steps)
    goal = _mu(epsilon, delta, rho, mu) / _SLACK**2
    radius = g / m
    moved = eta * 2 * g / n
    grown = factor(contraction=shrink, steps=times) / goal
    exponent = exponent_below(Fraction(moved * grown), resolution=_RESOLUTION)
    moved += 2 * _errors(objective, width, length, radius=radius, rate=eta, exponent=exponent)
    moved *= _SLACK
    sigma = Fraction(moved * grown * _SLACK)
    return NoisyGradientDescent(
        objective=objective,
        features=width,
        rows=n,
        row_norm=float(row_norm),
        steps=times,
        rate=eta,
        noise=gaussian(
            sensitivity=moved,
            sigma=sigma,
            domain="reals",
            granularity=Fraction(2) ** exponent,
            relation=NeighboringRelation.REPLACE_ONE,
        ),
        moved=moved,
        shrink=shrink,
        radius=radius,
    )


def _usual_steps(rows: int, shrink: float) -> int:
    """Enough that what is left of the start is below what one record does."""
    needed = math.log(max(rows, 2)) / -math.log(shrink) if 0 < shrink < 1 else 1.0
    return max(1, min(_MOST_STEPS, math.ceil(needed)))


def _mu(
    epsilon: Number | None, delta: Number | None, rho: Number | None, mu: Number | None
) -> float:
    """The mu that keeps what is asked for."""
    if (epsilon is None) != (delta is None) or sum(
        given is not None for given in (epsilon, rho, mu)
    ) != 1:
        raise InvalidArgument("Give one of: epsilon together with delta, or rho, or mu.")
    if mu is not None:
        return float(positive("mu", mu))
    if rho is not None:
        return math.sqrt(2 * float(positive("rho", rho)))
    assert epsilon is not None  # noqa: S101 - checked above
    assert delta is not None  # noqa: S101 - checked above
    return 1 / gaussian_sigma(float(epsilon), delta=float(delta))


def _errors(
    objective: Loss,
    features: int,
    row_norm: float,
    *,
    radius: float,
    rate: float,
    exponent: int,
) -> float:
    """How far the computed step is from the true one, the rounding of its start included."""
    dimension = objective.dimension(features)
    grid = math.sqrt(dimension) * 2.0**exponent / 2
    slope = gradient_error(objective, row_norm=row_norm, radius=radius, share=1.0)
    pieces = piece_error(features) * math.sqrt(dimension) * radius
    longest = radius + rate * (objective.lipschitz(row_norm) + objective.l2 * radius)
    return grid + pieces + rate * slope + (dimension + 16) * UNIT * longest

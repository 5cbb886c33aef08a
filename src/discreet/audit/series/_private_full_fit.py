"""A private model of few long series: who depends on whom, with one value protected (C31).

For people this is a weak unit: their other values stay as they are, and tell much the same. It is
for series that are aggregates themselves, or where one moment is the secret.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.accounting.guarantee import Guarantee
from discreet.audit.series._private_fit import grid_of, order_of, private_panel, shape_of
from discreet.audit.series.model import VAR, Floats
from discreet.core._rational import Number
from discreet.core.errors import InvalidArgument, NotCertified
from discreet.core.relation import NeighboringRelation
from discreet.core.tabular import Record
from discreet.mechanisms.additive import AdditiveMechanism
from discreet.mechanisms.quantiles import SortedColumn
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.query.budget import BudgetChange, budget
from discreet.query.result import Result, records

Ints = NDArray[np.int64]

_LARGEST_SUM = 1 << 60
# A model whose matrix has a larger spectral radius is shrunk to it; shocks keep this share.
_RADIUS = 0.98
_LEAST = 1e-3


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PrivateFullFit(Result):
    """A model that may be published; one value of one person at one time is protected."""

    model: VAR
    guarantee: Guarantee
    projected: bool
    """Whether no stationary model has the noisy moments: it is one nearby."""
    private: bool
    """False if the noise came from seeded bits: then there is no guarantee."""
    sums: Ints = field(repr=False)
    """The release itself: noisy sums of values and of products."""

    def rows(self, confidence: float = 0.95) -> list[Record]:  # noqa: ARG002 - no error is known
        """List the entries of the lags' matrices.

        Args:
            confidence: Without effect: no error is known.

        Returns:
            One record for each: lag, person, depends on, value, std, low and high, the last three
            None.
        """
        matrices = self.model.matrices
        keys = ((lag + 1, i, j) for lag, i, j in np.ndindex(matrices.shape))
        return records(("lag", "person", "depends on"), keys, value=matrices.ravel())


def moves(*, people: int, order: int, half: int) -> BudgetChange:
    """How far sums and products move if one value is replaced; values lie within ``half`` of 0."""
    # Theorem: with h = half, n people and order p the squared L2 move is at most `(4 + 4 (n - 1) +
    #   1 + p (8 (n - 1) + 16)) h^4`, the L1 move `(2 + 2 (n - 1) + 1 + p (4 (n - 1) + 4)) h^2`.
    # Proof: a value x moves by 2h at most: so does its person's sum, which is counted h times.
    #   Products with the n - 1 others at the same time move by `2 h^2`, the square by h^2. At lag
    #   k, the products with n - 1 others earlier and n - 1 later move by `2 h^2`, the person's
    #   own sum at that lag, which holds x twice, by `4 h^2`.
    n, p, h = people, order, half
    return BudgetChange(
        l1=(2 + 2 * (n - 1) + 1 + p * (4 * (n - 1) + 4)) * h**2,
        l2_squared=(4 + 4 * (n - 1) + 1 + p * (8 * (n - 1) + 16)) * h**4,
    )


def statistics(values: Floats, *, column: SortedColumn, order: int) -> Ints:
    """Sums of everybody's values and of all products at lags 0, ..., order: private.

    Values are counted from the middle of the range, in half steps. Their sums are multiplied by the
    largest value, so that they are of the size of products and get noise of that size.
    """
    x = 2 * column.places(values) - column.span
    n, t = x.shape
    parts = [x.sum(axis=1) * column.span, (x @ x.T)[np.triu_indices(n)]]
    parts += [(x[:, k:] @ x[:, : t - k].T).ravel() for k in range(1, order + 1)]
    return np.concatenate(parts)


def private_full_fit(
    panel: ArrayLike,
    *,
    bounds: tuple[Number, Number],
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    order: int = 1,
    rng: RandomSource | None = None,
) -> PrivateFullFit:
    """Fit a full model to a few long series, protecting single values.

    In this model, everybody may depend on everybody. No account is charged, because accounts
    protect persons.

    Args:
        panel: Private values, an array or a frame of people x times, whose numbers are public. A
            value that is missing, or no number, counts as the middle of the bounds.
        bounds: Public lower and upper bound to which values are clipped.
        epsilon: Privacy loss. Without `delta` the noise is Laplace noise.
        delta: Probability parameter of (epsilon, delta)-DP. With it the noise is Gaussian noise.
        rho: Privacy loss in zero-concentrated DP, instead of `epsilon`.
        order: Number of earlier times on which a value depends.
        rng: Random source. By default the operating system's.

    Returns:
        The fit with `model` and `guarantee`.

    Raises:
        InvalidArgument: The budget or the bounds are not valid, or there are too many times for
            exact sums.
        OutOfDomain: The panel is no table of people x times, or has too few times.

    Privacy:
        The fit satisfies the budget if one value of one person at one time is replaced. It does not
        protect whole rows; see `private_fit`.

    Examples:
        >>> import discreet
        >>> from discreet.audit import series
        >>> alike = series.ExchangeableVAR(habits=(0.5,), variance=1.0, correlation=0.2)
        >>> panel = alike.simulate(people=2, times=2_000, rng=discreet.seeded_rng(1))
        >>> series.private_full_fit(panel, bounds=(-4, 4), rho=1).model.people
        2

    References:
        [Proof](../theory/theorems.md#audit.series._private_full_fit.private_full_fit).
    """
    # Theorem: the fit costs the budget if one value, of one person at one time, is replaced.
    # Proof: noise for the sensitivity of `moves`; the rest is post-processing.
    # Source: C31; sums of products with noise: Dwork et al. 2006; Yule and Walker's equations.
    # Needs: public bounds. The unit is a value, not a person: accounts count persons, so none is
    #   charged here. See `private_fit` for whole rows.
    source = resolve_rng(rng)
    paid = budget(epsilon=epsilon, delta=delta, rho=rho)
    n, t = shape_of(panel)
    p = order_of(order, times=t)
    column = grid_of(bounds)
    half = column.span
    if t * half**2 > _LARGEST_SUM:
        raise InvalidArgument("panel must have fewer times: sums of products exceed 2**60.")
    move = moves(people=n, order=p, half=half)
    (noise,) = paid.mechanisms(
        [move], shares=[Fraction(1)], relation=NeighboringRelation.REPLACE_ONE
    )
    assert isinstance(noise, AdditiveMechanism)  # noqa: S101 - a move without a choice gets additive noise
    values = private_panel(panel, column=column)
    sums = noise.release(statistics(values, column=column, order=p), rng=source)
    model, projected = _solved(sums, (n, t, p), noise.std, column)
    return PrivateFullFit(
        model=model,
        guarantee=noise.guarantee,
        projected=projected,
        private=source.private,
        sums=sums,
    )


def _solved(
    sums: Ints, shape: tuple[int, int, int], noise: float, column: SortedColumn
) -> tuple[VAR, bool]:
    """The model of Yule and Walker's equations, made stationary where noise has spoilt it."""
    n, t, p = shape
    mean = sums[:n] / (t * column.span)
    upper = n * (n + 1) // 2
    C = np.zeros((p + 1, n, n))
    C[0][np.triu_indices(n)] = sums[n : n + upper]
    C[0] = C[0] + np.triu(C[0], 1).T
    C[1:] = sums[n + upper :].reshape(p, n, n)
    C = C / (t - np.arange(p + 1))[:, None, None] - np.outer(mean, mean)
    error = 2 * math.sqrt(n) * noise / t
    values, vectors = np.linalg.eigh(C[0])
    if not values[-1] > error:
        raise NotCertified(
            "The noise at this budget is too large to see the variation in the panel. "
            "Give more budget, narrower bounds, or more times."
        )
    # Directions that drown in noise get its size: their dependence is then shrunk, not invented.
    C[0] = (vectors * np.maximum(values, error)) @ vectors.T
    lags = _yule_walker(C)
    shocks = C[0] - np.einsum("kij,klj->il", lags, C[1:])
    radius = VAR(lags=lags, noise=np.eye(n), start=np.eye(n * p)).radius
    if radius > _RADIUS:
        lags = lags * ((_RADIUS / radius) ** np.arange(1, p + 1))[:, None, None]
    scale = float(np.trace(C[0])) / n
    own, axes = np.linalg.eigh((shocks + shocks.T) / 2)
    noise_matrix = (axes * np.maximum(own, _LEAST * scale)) @ axes.T
    projected = radius > _RADIUS or bool(values[0] < error) or bool(own[0] < _LEAST * scale)
    return VAR(lags=lags, noise=noise_matrix * (column.step / 2) ** 2), projected


def _yule_walker(C: Floats) -> Floats:
    """Lags with ``C_k = sum_m A_m C_{k-m}`` for k = 1, ..., p; ``C_{-k} = C_k'``."""
    p, n = len(C) - 1, C.shape[1]
    # Transposed: C_k' = sum_m C_{k-m}' A_m'.
    left = np.block([[C[m - k] if m > k else C[k - m].T for m in range(p)] for k in range(p)])
    right = np.concatenate([C[k].T for k in range(1, p + 1)])
    solved = np.linalg.lstsq(left, right, rcond=None)[0]
    result: Floats = solved.reshape(p, n, n).transpose(0, 2, 1)
    return np.ascontiguousarray(result)

"""A model from a panel under differential privacy: noisy sums of products, then moments (C31).

One person's whole row is protected. What distinguishes one person from another cannot be released
then, so the model is one in which all people are alike: the same dependence on their own past, the
same shocks, one correlation between the shocks of any two.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.accounting.guarantee import Guarantee
from discreet.audit.series.exchangeable import ExchangeableVAR, solve
from discreet.audit.series.model import VAR, Floats
from discreet.boundary.rows import matrix
from discreet.core._rational import Number
from discreet.core._validate import count, positive
from discreet.core.errors import InvalidArgument, NotCertified, OutOfDomain
from discreet.core.number_format import short
from discreet.core.relation import NeighboringRelation
from discreet.core.tabular import Record
from discreet.ledger.account import Account, Receipt, reserve_if_charged
from discreet.mechanisms.additive import AdditiveMechanism
from discreet.mechanisms.quantiles import SortedColumn
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.query.budget import BudgetChange, QueryBudget, budget
from discreet.query.result import Result, records

Ints = NDArray[np.int64]

# Steps between the bounds; rounding is then far below any noise.
_STEPS = 1 << 12
_LARGEST_SUM = 1 << 60
_SHARES = (Fraction(1, 2), Fraction(1, 2))


@dataclass(frozen=True, slots=True, kw_only=True)
class PrivateFitPlan:
    """What is released of a panel of this shape, and its noise: known before a row is read."""

    people: int
    times: int
    order: int
    column: SortedColumn
    largest: int
    """The largest sum of squares of a person's centered values, in steps."""
    totals: AdditiveMechanism
    products: AdditiveMechanism

    @property
    def guarantee(self) -> Guarantee:
        """What the release costs; one person's whole row is replaced."""
        return self.totals.guarantee + self.products.guarantee

    def statistics(self, values: Floats) -> tuple[Ints, Ints]:
        """Totals of all people at each time, and sums of products of a person's values: private."""
        rows = self._rows(values)
        t = self.times
        products = [int((rows[:, k:] * rows[:, : t - k]).sum()) for k in range(self.order + 1)]
        return rows.sum(axis=0), np.array(products)

    def _rows(self, values: Floats) -> Ints:
        t, inside = self.times, self.column.places(values)
        # Around each person's own mean, rounded; no float decides.
        centered = (2 * (t * inside - inside.sum(axis=1, keepdims=True)) + t) // (2 * t)
        square = (centered**2).sum(axis=1)
        wide = square > self.largest
        # Toward zero, and a little more than needed: rounding must not pass the limit.
        shrink = np.sqrt(self.largest / square[wide]) * (1 - 1e-12)
        centered[wide] = np.trunc(centered[wide] * shrink[:, None]).astype(np.int64)
        result: Ints = centered
        return result

    def noisy(self, values: Floats, rng: RandomSource) -> tuple[Floats, Floats]:
        """The statistics with their noise: a release."""
        totals, products = self.statistics(values)
        return (
            self.totals.release(totals, rng=rng).astype(np.float64),
            self.products.release(products, rng=rng).astype(np.float64),
        )

    def solve(self, totals: Floats, products: Floats) -> ExchangeableVAR:
        """The model whose expected statistics are those that were released."""
        n, t = self.people, self.times
        per_person = products / n
        noise = self.products.std / n
        if not per_person[0] > 2 * noise:
            raise NotCertified(
                "The noise at this budget is too large to see the variation in the panel. "
                "Give more budget, narrower bounds, a smaller spread, or more people."
            )
        around = totals - totals.mean()
        common = float((around**2).sum() - (t - 1) * self.totals.std**2) / n**2
        found = solve(per_person, common=common, people=n, times=t)
        return replace(found, variance=found.variance * 4.0**self.column.exponent)


def moves(*, times: int, order: int, largest: int) -> tuple[BudgetChange, BudgetChange]:
    """How far totals and products move if one person's row is replaced."""
    # Theorem: totals by at most `2 sqrt(B)` (L2) or `2 sqrt(T B)` (L1), products by at most
    #   `2 sqrt(p) B` (L2) or `2 p B` (L1); T times, order p, B is `largest`.
    # Proof: every row c is clipped, rounded, centered and shrunk by itself, so that its squares add
    #   up to B at most: two rows differ by `2 sqrt(B)` at most. Products of a row have `|S_k| <=
    #   S_0 <= B` (Cauchy, Schwarz); two such vectors differ by at most `S_0 + S_0'` in each of p
    #   products and by `|S_0 - S_0'|` in the squares: a convex function, largest at corners.
    #   There its square is `4 p B^2` or `(p + 1) B^2`, in moduli `2 p B` or `(p + 1) B`.
    return (
        BudgetChange(l1=2 * (math.isqrt(times * largest) + 1), l2_squared=4 * largest),
        BudgetChange(l1=2 * order * largest, l2_squared=4 * order * largest**2),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class PrivateFit(Result):
    """A model that may be published, and everything computed from it."""

    alike: ExchangeableVAR
    """The few numbers that the model consists of."""
    guarantee: Guarantee
    totals: Floats = field(repr=False)
    """The release itself: noisy totals at each time around everybody's own mean, in steps."""
    products: Floats = field(repr=False)
    """And noisy sums of products at each lag."""
    plan: PrivateFitPlan = field(repr=False)
    private: bool
    """False if the noise came from seeded bits: then there is no guarantee."""
    receipt: Receipt | None = None

    def rows(self, confidence: float = 0.95) -> list[Record]:  # noqa: ARG002 - no error is known
        """List the numbers that the model consists of; `plausible` simulates their error.

        Args:
            confidence: Without effect: no error is known.

        Returns:
            One record for each: parameter, value, std, low and high, the last three None.
        """
        alike = self.alike
        habits = {f"habit {lag + 1}": habit for lag, habit in enumerate(alike.habits)}
        found = habits | {"variance": alike.variance, "correlation": alike.correlation}
        return records(("parameter",), ((name,) for name in found), value=found.values())

    @property
    def model(self) -> VAR:
        """For as many people as there are in the panel."""
        return self.alike.model(self.plan.people)

    def plausible(self, number: int, *, rng: RandomSource) -> tuple[ExchangeableVAR, ...]:
        """Models that the release could as well have come from: a parametric bootstrap.

        Panels are simulated from the model, put through the same release and solved again. Costs
        nothing: the panel is not read. For `worst`.
        """
        found = []
        shape = {"people": self.plan.people, "times": self.plan.times}
        for _ in range(count("number", number)):
            panel = self.alike.simulate(**shape, rng=rng)
            with suppress(NotCertified):
                found.append(self.plan.solve(*self.plan.noisy(panel + self._middle, rng)))
        if 2 * len(found) < number:
            raise NotCertified(
                "Most simulated releases drown in noise: this model says little. "
                "Give more budget, narrower bounds, a smaller spread, or more people."
            )
        return tuple(found)

    @property
    def _middle(self) -> float:
        return self.plan.column.number(self.plan.column.span // 2)

    def __str__(self) -> str:
        seeded = "" if self.private else "; drawn from seeded bits: not private"
        return f"{self.alike}\ncost: {price(self.guarantee)}{seeded}"

    __repr__ = __str__


def price(guarantee: Guarantee, *, delta: float = 1e-6) -> str:
    """What a private fit costs, in words."""
    pure = guarantee.epsilon(0.0)
    worth = short(pure)
    if pure == math.inf:
        worth = f"{short(guarantee.epsilon(delta))} at delta {delta:g}"
    return f"epsilon {worth}, if one person's whole row is replaced"


def plan_fit(
    *,
    people: int,
    times: int,
    bounds: tuple[Number, Number],
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    order: int = 1,
    spread: Number | None = None,
) -> PrivateFitPlan:
    """Plan the noise of a private fit, before a panel is read.

    Args:
        people: Number of people.
        times: Number of times.
        bounds: Public lower and upper bound of the values.
        epsilon: Privacy loss. Without `delta` the noise is Laplace noise.
        delta: Probability parameter of (epsilon, delta)-DP. With it the noise is Gaussian noise.
        rho: Privacy loss in zero-concentrated DP, instead of `epsilon`.
        order: Number of earlier times on which a value depends.
        spread: Public guess of the largest standard deviation of a person's values.

    Returns:
        The plan, with its `guarantee`.

    Raises:
        InvalidArgument: The budget or the bounds are not valid, or there are too many people for
            exact sums.
        OutOfDomain: There are too few times for the order.

    Examples:
        >>> from discreet.audit import series
        >>> plan = series.plan_fit(people=50, times=12, bounds=(0, 8), rho=0.1)
        >>> round(plan.guarantee.rdp(2), 3)
        0.2

    See Also:
        `private_fit`.
    """
    paid = budget(epsilon=epsilon, delta=delta, rho=rho)
    n, t = count("people", people), count("times", times)
    p = order_of(order, times=t)
    column = grid_of(bounds)
    largest = t * (column.span + 1) ** 2 // 4
    if spread is not None:
        within = positive("spread", spread) / Fraction(2) ** column.exponent
        largest = min(largest, max(t, math.floor(t * within**2)))
    if largest * n > _LARGEST_SUM:
        raise InvalidArgument(
            f"panel must have at most {_LARGEST_SUM // largest} people for exact sums of {t} times."
        )
    return _planned(paid, column, largest, (n, t, p))


def grid_of(bounds: tuple[Number, Number]) -> SortedColumn:
    """Between 2**12 and 2**14 steps: the default grid is finer than sums of squares allow."""
    low, high = bounds
    fine = SortedColumn.of(low, high, None)
    extra = max(0, (fine.span // _STEPS).bit_length() - 1)
    return SortedColumn.of(low, high, Fraction(2) ** (fine.exponent + extra))


def _planned(
    paid: QueryBudget, column: SortedColumn, largest: int, shape: tuple[int, int, int]
) -> PrivateFitPlan:
    n, t, p = shape
    moved = moves(times=t, order=p, largest=largest)
    totals, products = paid.mechanisms(
        moved, shares=_SHARES, relation=NeighboringRelation.REPLACE_ONE
    )
    # Moves without a choice get additive noise.
    assert isinstance(totals, AdditiveMechanism)  # noqa: S101
    assert isinstance(products, AdditiveMechanism)  # noqa: S101
    return PrivateFitPlan(
        people=n,
        times=t,
        order=p,
        column=column,
        largest=largest,
        totals=totals,
        products=products,
    )


def private_fit(  # noqa: PLR0913 - each is a public choice with a name
    panel: ArrayLike,
    *,
    bounds: tuple[Number, Number],
    epsilon: Number | None = None,
    delta: Number | None = None,
    rho: Number | None = None,
    order: int = 1,
    spread: Number | None = None,
    account: Account | None = None,
    label: str = "model of a series",
    rng: RandomSource | None = None,
) -> PrivateFit:
    """Fit an exchangeable model to a panel with differential privacy.

    Args:
        panel: Private values, an array or a frame of people x times, whose numbers are public. A
            value that is missing, or no number, counts as the middle of the bounds.
        bounds: Public lower and upper bound to which values are clipped.
        epsilon: Privacy loss. Without `delta` the noise is Laplace noise.
        delta: Probability parameter of (epsilon, delta)-DP. With it the noise is Gaussian noise.
        rho: Privacy loss in zero-concentrated DP, instead of `epsilon`.
        order: Number of earlier times on which a value depends.
        spread: Public guess of the largest standard deviation of a person's values around their own
            mean. Rows that spread more are shrunk to it, and the noise is smaller.
        account: Ledger account that pays for the fit.
        label: Text for the ledger entry.
        rng: Random source. By default the operating system's.

    Returns:
        The fit with `alike` (the exchangeable model), `model` and `guarantee`.

    Raises:
        BudgetExceeded: The account cannot pay. Nothing was read.
        InvalidArgument: The budget or the bounds are not valid.
        OutOfDomain: The panel is no table of people x times, or has too few times.

    Privacy:
        The fit satisfies the budget if one person's whole row is replaced. The account is charged
        before the values are read. The model fits only if all people behave alike.

    Examples:
        >>> import discreet
        >>> from discreet.audit import series
        >>> alike = series.ExchangeableVAR(habits=(0.5,), variance=1.0, correlation=0.2)
        >>> panel = alike.simulate(people=200, times=12, rng=discreet.seeded_rng(1))
        >>> series.private_fit(panel, bounds=(-4, 4), rho=1).model.people
        200

    See Also:
        `private_full_fit`, [releases about the same people](../how-to/series.md).

    References:
        [Proof](../theory/theorems.md#audit.series._private_fit.private_fit).
    """
    # Theorem: the fit costs the budget if one person's row is replaced by any other row; the number
    #   of people and times is public.
    # Proof: noise for the sensitivities of `moves`; the rest is post-processing.
    # Source: C31; sums of products: Dwork et al. 2006.
    # Needs: bounds and spread from elsewhere than the panel. As a description it needs people who
    #   are alike; a person's own level may differ, it is removed from their row.
    source = resolve_rng(rng)
    shape = shape_of(panel)
    plan = plan_fit(
        people=shape[0],
        times=shape[1],
        bounds=bounds,
        epsilon=epsilon,
        delta=delta,
        rho=rho,
        order=order,
        spread=spread,
    )
    with reserve_if_charged(account, plan.guarantee, label=label, rng=source) as held:
        totals, products = plan.noisy(private_panel(panel, column=plan.column), source)
        found = plan.solve(totals, products)
    return PrivateFit(
        alike=found,
        guarantee=plan.guarantee,
        totals=totals,
        products=products,
        plan=plan,
        private=source.private,
        receipt=None if held is None else held.receipt,
    )


def order_of(order: int, *, times: int) -> int:
    """How many lags, of which there must be enough in the panel."""
    p = count("order", order)
    if times < p + 2:
        raise OutOfDomain(f"panel must have at least {p + 2} times for order {p}, got {times}.")
    return p


def shape_of(panel: ArrayLike) -> tuple[int, int]:
    """People and times, which are public; no value is looked at."""
    shape = getattr(panel, "shape", None)
    if not isinstance(shape, tuple) or len(shape) != 2:
        raise OutOfDomain(
            "panel must be an array or a frame of people x times, with as many times for "
            "everybody: lists of people could differ in length."
        )
    return shape


def private_panel(panel: ArrayLike, *, column: SortedColumn) -> Floats:
    """People x times, each value read by itself: what is no number counts as the middle."""
    values = matrix(panel, columns=shape_of(panel)[1])
    return np.where(np.isnan(values), column.number(column.span // 2), values)

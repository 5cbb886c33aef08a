"""Subsample and aggregate: any estimator, run on groups of rows, with noise on the summary.

One person is in one group, so one person moves one of the estimates, between declared bounds,
whatever the estimator does: nothing has to be known about it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.accounting.guarantee import Guarantee
from discreet.boundary.foreign_code import alone, draw_seed
from discreet.boundary.owners import NOBODY, check_owner_type, number_owners
from discreet.boundary.rows import choose_rows
from discreet.boundary.sums import exact_sum
from discreet.boundary.values import listed
from discreet.core._rational import Number
from discreet.core._validate import bounds, count, exponent_below, finite, one_of, positive
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.relation import NeighboringRelation, central_relation
from discreet.mechanisms._drawn import (
    EvenWords,
    Handed,
    charges,
    moves,
    tells_nothing_else,
)
from discreet.mechanisms.additive import AdditiveMechanism, laplace
from discreet.mechanisms.mechanism import Certificate, DrawCheck, Mechanism
from discreet.mechanisms.quantiles import PrivateQuantile, SortedColumn, private_quantile
from discreet.noise.distribution import Ints
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.noise.uniform import uniform_integers

Estimator: TypeAlias = Callable[[NDArray[Any]], float]
"""From the rows of a group to a number. It must depend on its argument alone."""
Summary: TypeAlias = Literal["mean", "median"]

# Steps between the bounds of an estimate, and bits of the noise's scale, at most.
_RESOLUTION = 20
_SCALE_BITS = 31
# A certificate makes up so many rows, at most.
_MOST_ROWS = 1 << 12


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleAndAggregate(Mechanism):
    """An estimator on groups of rows. Made by `sample_and_aggregate`."""

    estimator: Estimator
    groups: int
    column: SortedColumn
    default: int
    """What an empty group, or one where the estimator fails, counts as; in steps."""
    inner: AdditiveMechanism | PrivateQuantile
    relation: NeighboringRelation

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee of one release."""
        return Guarantee(self.inner.guarantee.event, self.relation)

    @property
    def std(self) -> float:
        """Standard deviation of the noise, without the variation of the estimates."""
        return self.inner.std * self._unit

    @property
    def _unit(self) -> float:
        return self.column.step / self.groups if isinstance(self.inner, AdditiveMechanism) else 1.0

    def interval(self, confidence: float) -> tuple[float, float]:
        """Bound the noise around the summary of the estimates.

        Args:
            confidence: Probability with which the bound holds, between 0 and 1.

        Returns:
            Lower and upper bound, in ranks for the median.

        Raises:
            InvalidArgument: `confidence` is not between 0 and 1.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.sample_and_aggregate(
            ...     max, lower=0, upper=100, groups=3, epsilon=1
            ... )
            >>> low, high = mechanism.interval(0.95)
            >>> low <= high
            True
        """
        low, high = self.inner.interval(confidence)
        return low * self._unit, high * self._unit

    def assign(self, units: int, rng: RandomSource) -> Ints:
        """A group for each unit, without a look at the data.

        Where a unit is replaced their number is public and groups are as equal as can be; where
        one is added each unit draws by itself, so that the others stay where they are.
        """
        if self.relation is NeighboringRelation.REPLACE_ONE:
            groups = np.empty(units, dtype=np.int64)
            groups[np.argsort(rng.words(units), kind="stable")] = np.arange(units) % self.groups
            return groups
        return uniform_integers(self.groups, units, rng)

    def estimates(self, rows: object, groups: Ints) -> Ints:
        """The estimate of every group, in steps from the lower bound: private.

        The rows of a list are put into one array for each group, whose type follows from the rows
        of this group. Rows of no group (-1) are left out.
        """
        data = _records(rows)
        order = np.argsort(groups, kind="stable")
        order = order[np.searchsorted(groups[order], 0) :]
        ends = np.searchsorted(groups[order], np.arange(1, self.groups))
        seed = draw_seed()
        found = []
        for place, part in enumerate(np.split(order, ends)):
            # What one group's estimate warns of, sets or draws must not reach the next group.
            with alone((seed + place) % 2**32):
                found.append(self._estimate(choose_rows(data, part)))
        return np.array(found)

    def _estimate(self, part: NDArray[Any]) -> int:
        if len(part) == 0:
            return self.default
        try:
            value = float(self.estimator(part))
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001 - that it fails, and how, would tell about the group
            return self.default
        if math.isnan(value):
            return self.default
        low, high = self.column.number(0), self.column.number(self.column.span)
        return int(self.column.sorted([min(max(value, low), high)])[0])

    def release(
        self, rows: ArrayLike, *, owners: ArrayLike | None = None, rng: RandomSource | None = None
    ) -> float:
        """Run the estimator on groups of rows and release a summary.

        Args:
            rows: Private rows.
            owners: Person of each row, if a person may have several rows. Rows without an owner are
                dropped. By default each row is a person.
            rng: Random source. By default the operating system's.

        Returns:
            The noisy mean or the private median of the estimates.

        Raises:
            OutOfDomain: `owners` does not have one entry per row.

        Privacy:
            The release satisfies `guarantee`. No account is charged; charge `mechanism.guarantee`
            before you release.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.sample_and_aggregate(
            ...     max, lower=0, upper=100, groups=3, epsilon=1
            ... )
            >>> 0 <= mechanism.release([12, 37, 41, 58, 93]) <= 100
            True
        """
        source = resolve_rng(rng)
        data = _records(rows)
        if owners is None:
            groups = self.assign(len(data), source)
        else:
            check_owner_type("owners", owners)
            owner, many = number_owners(owners)
            if owner.shape != (len(data),):
                raise OutOfDomain("owners must name one owner for each row.")
            groups = np.append(self.assign(many, source), NOBODY)[owner]
        found = self.estimates(data, groups)
        if isinstance(self.inner, PrivateQuantile):
            numbers = (self.column.first + found) * self.column.step
            return self.inner.release(numbers, rng=source)
        noisy = self.inner.release(exact_sum(found), rng=source)
        inside = min(max(int(noisy), 0), self.groups * self.column.span)
        return self.column.first * self.column.step + inside * self._unit

    def certify(self) -> Certificate:
        """Recompute the guarantee of the noise, or of the choice.

        Returns:
            A certificate that lists each check with the claimed and the exact delta.

        Raises:
            NotCertified: An exact distribution does not satisfy the guarantee.

        Examples:
            >>> import discreet
            >>> mechanism = discreet.sample_and_aggregate(
            ...     max, lower=0, upper=100, groups=3, epsilon=1
            ... )
            >>> mechanism.certify().holds
            True
        """
        inner = self.inner.certify()
        drawn = (
            *inner.drawn,
            *self._moved(),
            charges("what is charged", self.guarantee, self.inner.guarantee),
        )
        return replace(inner, mechanism=repr(self), guarantee=self.guarantee, drawn=drawn).demand()

    def _moved(self) -> tuple[DrawCheck, DrawCheck]:
        ends = self.column.number(0), self.column.number(self.column.span)
        jumping = replace(self, estimator=lambda part: ends[int(np.any(part))])
        many = min(2 * self.groups, _MOST_ROWS)
        data = [np.zeros(many, dtype=np.int64)]
        for row in (0, many - 1):
            data.append(data[0].copy())
            data[-1][row] = 1
        handed, answers = [], []
        middle = self.column.span // 2
        for rows in data:
            noted, told = Handed(self.inner), Handed(self.inner, answer=middle)
            replace(jumping, inner=noted).release(rows, rng=EvenWords())  # type: ignore[arg-type]
            handed.append(noted.handed)
            found = replace(jumping, inner=told).release(rows, rng=EvenWords())  # type: ignore[arg-type]
            answers.append(found)
        apart = [np.abs(handed[0] - other) for other in handed[1:]]
        if isinstance(self.inner, PrivateQuantile):
            moved = moves("estimates", max(int(np.count_nonzero(one)) for one in apart), 1)
        else:
            allowed = float(self.inner.sensitivity)
            moved = moves("sum of the estimates", max(float(one) for one in apart), allowed)
        return moved, tells_nothing_else("estimates", answers)

    def __repr__(self) -> str:
        return f"sample_and_aggregate({self.groups} groups; {self.inner!r})"


def _records(rows: object) -> NDArray[Any] | list[object]:
    """Rows as they are: an array keeps its type, which is not a row's to choose."""
    if isinstance(rows, np.ndarray) and rows.ndim:
        return rows
    if isinstance(rows, str | bytes) or not hasattr(rows, "__len__"):
        raise OutOfDomain("rows must be an array with one entry, or one line, for each row.")
    return listed(rows)


def sample_and_aggregate(
    estimator: Estimator,
    *,
    lower: Number,
    upper: Number,
    groups: int,
    epsilon: Number,
    summary: Summary = "median",
    default: Number | None = None,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> SampleAndAggregate:
    """Make an estimator private: run it on groups of rows, summarize the estimates.

    Rows are assigned to groups at random. More groups mean less noise, but fewer rows for each
    estimate.

    Args:
        estimator: Function from the rows of one group to a number. It must depend on its argument
            only.
        lower: Public lower bound of the estimates. Estimates are clipped.
        upper: Public upper bound.
        groups: Number of groups.
        epsilon: Privacy loss.
        summary: `"median"` releases a private median of the estimates. `"mean"` adds noise of size
            `(upper - lower) / (groups * epsilon)` to their mean.
        default: Estimate of a group that is empty or whose estimator fails. By default the middle
            of the bounds.
        relation: Neighboring relation: one person is added or removed, or the rows of one person
            are replaced.

    Returns:
        A mechanism. `release(rows, owners=None)` returns a number; `owners` names the person of
        each row.

    Raises:
        InvalidArgument: An argument is outside its range.

    Privacy:
        epsilon-DP for one row, or for one person if you give `owners`, whatever the estimator
        computes. An exception or warning of the estimator is not shown.

    Examples:
        >>> import discreet
        >>> mechanism = discreet.sample_and_aggregate(max, lower=0, upper=100, groups=3, epsilon=1)
        >>> 0 <= mechanism.release([12, 37, 41, 58, 93]) <= 100
        True

    See Also:
        [Any function on groups of rows](../how-to/blocks.md).

    References:
        Nissim, Raskhodnikova and Smith (2007). Smith (2011).
        [Theory](../theory/sample-and-aggregate.md).
    """
    # Theorem: epsilon-DP under `relation`.
    # Proof: groups are drawn without a look at the rows. Given them, neighbors differ in one group
    #   (an added row leaves the groups of the others as they are, in law), so in one estimate,
    #   which is set between the bounds: the sum of the estimates moves by at most `upper -
    #   lower`, and the estimates are neighbors for the quantile of a fixed number of values. A
    #   mixture over the groups keeps what each of them keeps. Empty groups, failures and NaN count
    #   as a public `default`, the middle of the bounds if not given.
    # Source: Nissim, Raskhodnikova, Smith 2007; Smith 2011. B43.
    # Needs: an estimator that depends on its argument alone: no state, no randomness that is shared
    #   between groups. Group sizes must not be published under ADD_REMOVE.
    central_relation(relation)
    low, high = bounds(lower, upper)
    many, eps = count("groups", groups), positive("epsilon", epsilon)
    exponent = max(
        exponent_below(high - low, resolution=_RESOLUTION),
        exponent_below((high - low) / eps, resolution=_SCALE_BITS) + 1,
    )
    grid = Fraction(2) ** exponent
    column = SortedColumn.of(low, high, grid)
    middle = (low + high) / 2 if default is None else finite("default", default)
    if not low <= middle <= high:
        raise InvalidArgument(f"default must lie between lower and upper, got {default}.")
    inner: AdditiveMechanism | PrivateQuantile
    one_of("summary", summary, get_args(Summary))
    if summary == "mean":
        inner = laplace(sensitivity=column.span, epsilon=eps, domain="integers", relation=relation)
    else:
        # Whatever the relation of the rows: of the estimates, one is replaced.
        inner = private_quantile(
            lower=low,
            upper=high,
            epsilon=eps,
            granularity=grid,
            relation=NeighboringRelation.REPLACE_ONE,
        )
    return SampleAndAggregate(
        estimator=estimator,
        groups=many,
        column=column,
        default=int(column.sorted([float(middle)])[0]),
        inner=inner,
        relation=relation,
    )

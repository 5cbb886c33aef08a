"""Subsample and aggregate: any estimator, run on groups of rows, with noise on the summary.

One person is in one group, so one person moves one of the estimates, between declared bounds,
whatever the estimator does: nothing has to be known about it.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.accounting.guarantee import Guarantee
from discreet.boundary.owners import NOBODY, number_owners
from discreet.boundary.rows import choose_rows
from discreet.boundary.values import listed
from discreet.core._rational import Number
from discreet.core._validate import bounds, count, exponent_below, finite, one_of, positive
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.relation import NeighboringRelation, central_relation
from discreet.mechanisms.additive import AdditiveMechanism, laplace
from discreet.mechanisms.mechanism import Certificate, Mechanism
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


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleAndAggregate(Mechanism):
    """An estimator on groups of rows. Made by `sample_aggregate`."""

    estimator: Estimator
    groups: int
    column: SortedColumn
    default: int
    """What an empty group, or one where the estimator fails, counts as; in steps."""
    inner: AdditiveMechanism | PrivateQuantile
    relation: NeighboringRelation

    @property
    def guarantee(self) -> Guarantee:
        """What one release costs."""
        return Guarantee(self.inner.guarantee.event, self.relation)

    @property
    def std(self) -> float:
        """Standard deviation of the noise; that of the estimates comes on top."""
        return self.inner.std * self._unit

    @property
    def _unit(self) -> float:
        return self.column.step / self.groups if isinstance(self.inner, AdditiveMechanism) else 1.0

    def interval(self, confidence: float) -> tuple[float, float]:
        """Bounds on the noise around the mean of the estimates; around their median, in ranks."""
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
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")  # a warning would tell about a group
            found = [self._estimate(choose_rows(data, part)) for part in np.split(order, ends)]
        return np.array(found)

    def _estimate(self, part: NDArray[Any]) -> int:
        if len(part) == 0:
            return self.default
        try:
            value = float(self.estimator(part))
        except (KeyboardInterrupt, SystemExit):
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
        """The noisy mean or the private median of the estimates.

        ``owners`` says whose a row is, where a person may have several. They are compared value by
        value (`discreet.boundary.owners`). Rows without an owner are left out.
        """
        source = resolve_rng(rng)
        data = _records(rows)
        if owners is None:
            groups = self.assign(len(data), source)
        else:
            owner, many = number_owners(owners)
            if owner.shape != (len(data),):
                raise OutOfDomain("owners must name one owner for each row.")
            groups = np.append(self.assign(many, source), NOBODY)[owner]
        found = self.estimates(data, groups)
        if isinstance(self.inner, PrivateQuantile):
            numbers = (self.column.first + found) * self.column.step
            return self.inner.release(numbers, rng=source)
        noisy = self.inner.release(int(found.sum()), rng=source)
        inside = min(max(int(noisy), 0), self.groups * self.column.span)
        return self.column.first * self.column.step + inside * self._unit

    def certify(self) -> Certificate:
        """Recompute the guarantee of the noise, or of the choice, from its exact law."""
        return self.inner.certify()

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
    """Any estimator, made private: run on groups of rows, its estimates summed up.

    The "median" of the estimates is chosen by its rank: it errs by some ``2 ln(width / spread) /
    epsilon`` ranks, width being that of the bounds and spread that of the estimates, and needs a
    few times as many groups. The "mean" gets noise of the size ``width / (groups * epsilon)``.
    More groups mean less noise, and fewer rows for an estimate.

    Theorem: epsilon-DP under ``relation``.
    Proof: groups are drawn without a look at the rows. Given them, neighbors differ in one group
        (an added row leaves the groups of the others as they are, in law), so in one estimate,
        which is set between the bounds: the sum of the estimates moves by at most ``upper -
        lower``, and the estimates are neighbors for the quantile of a fixed number of values. A
        mixture over the groups keeps what each of them keeps. Empty groups, failures and NaN count
        as a public ``default``, the middle of the bounds if not given.
    Source: Nissim, Raskhodnikova, Smith 2007; Smith 2011. B43.
    Needs: an estimator that depends on its argument alone: no state, no randomness that is shared
        between groups. Group sizes must not be published under ADD_REMOVE.
    """
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

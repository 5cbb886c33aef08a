"""DP-SGD with a budget for each privacy level: by sampling or by clipping.

Stricter levels take part less often, or with shorter gradients. The noise is the same for all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from discreet.accounting.guarantee import Guarantee
from discreet.accounting.personalized import PersonalizedGuarantee, personalized
from discreet.boundary.owners import level_places
from discreet.core import events
from discreet.core._validate import count
from discreet.core.errors import InvalidArgument, NotCertified, RelationMismatch, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.ledger.account import reserve_if_charged
from discreet.mechanisms.mechanism import Certificate, CertificateCheck
from discreet.models.dp_sgd.budget import TrainingBudget, TrainingPlan, noise_for, training_cost
from discreet.models.dp_sgd.estimators import PrivateLogisticRegression
from discreet.models.dp_sgd.losses import Floats
from discreet.models.dp_sgd.train import RATE_BITS, Batch, Steps, TrainingRun, follow, record_looks
from discreet.noise._packed_bernoulli import packed_bernoulli
from discreet.noise.random_source import RandomSource

# ── Descent ──────────────────────────────────────────────────────────────────────────────────────


Method: TypeAlias = Literal["sampling", "clipping"]

_SAFE = 1 - 2.0**-40  # more than rounding can add to a product
_PARTS = 1 << 16


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonalizedGradientDescent:
    """A run, and how often and how strongly each level takes part in it."""

    # Theorem: a record of level l costs its person `run.steps` Poisson samples, of rate
    #   `rates[l]`, of Gaussian noise that is `run.noise / clips[l]` times its length, under
    #   add/remove.
    # Proof: coins are drawn for each record with the rate of its level; its contribution is at most
    #   `clips[l]` times the clipping norm long (whole numbers, rounded down). Given the
    #   parameters so far, a step is that mechanism; then `train.descend`.
    # Source: Boenisch et al. 2023 (individualized DP-SGD); Muehl 2021.

    run: TrainingRun
    rates: Mapping[str, Fraction]
    clips: Mapping[str, Fraction]
    """Parts of the clipping norm, at most 1."""

    @property
    def guarantee(self) -> PersonalizedGuarantee:
        """What each level pays."""
        return personalized(
            {
                name: training_cost(
                    relation=NeighboringRelation.ADD_REMOVE,
                    rate=rate,
                    steps=self.run.steps,
                    noise=self.run.noise / self.clips[name],
                )
                for name, rate in self.rates.items()
            }
        )


def plan_personalized(
    run: TrainingRun,
    limits: Mapping[str, Guarantee],
    people: Mapping[str, float],
    *,
    method: Method,
) -> PersonalizedGradientDescent:
    """A run in which every level spends what it may.

    ``run.rate`` is the rate of the most generous level; ``run.noise`` and ``run.rows`` are set
    here: the least noise that keeps that level's limit, and the rows that a step is divided by.
    ``people``: public numbers of records of each level.
    """
    names = sorted(limits)
    if sorted(people) != names or not names:
        raise InvalidArgument("limits and people must name the same levels.")
    if method not in ("sampling", "clipping"):
        raise InvalidArgument(f"method must be sampling or clipping, got {method!r}.")
    needed = {name: _noise(limits[name], run) for name in names}
    noise = min(needed.values())
    rates, clips = dict.fromkeys(names, run.rate), dict.fromkeys(names, Fraction(1))
    for name in names:
        if needed[name] == noise:
            continue
        if method == "clipping":
            clips[name] = Fraction(int(noise / needed[name] * _PARTS), _PARTS)
        else:
            rates[name] = _rate(limits[name], replace(run, noise=noise))
    if min(*rates.values(), *clips.values()) <= 0:
        raise NotCertified("A level's limit is too small to take part at all.")
    # On average a step sees this part of all records at the common rate.
    rows = float(sum(people[n] * float(rates[n] / run.rate) for n in names))
    return PersonalizedGradientDescent(
        run=replace(run, noise=noise, rows=rows), rates=rates, clips=clips
    )


def descend_personalized(
    steps: Steps,
    targets: Floats,
    privacy_levels: object,
    *,
    plan: PersonalizedGradientDescent,
    rng: RandomSource,
) -> Floats:
    """The parameters after a personal run on mapped rows, one record a person.

    Theorem and proof: `PersonalizedGradientDescent`.
    """
    run = plan.run
    chosen = level_places(privacy_levels, tuple(plan.rates))
    if chosen.shape != (len(steps),):
        raise InvalidArgument("privacy_levels must name one level for each row.")
    batch = Batch(steps=steps, targets=targets, run=run)
    # Rows of a level that is not declared are in no group: never drawn.
    groups = {name: np.flatnonzero(chosen == place) for place, name in enumerate(plan.rates)}
    for name, rows in groups.items():
        batch.caps[rows] = np.floor(batch.caps[rows] * float(plan.clips[name]) * _SAFE)

    def noisy_sum(theta: Floats) -> NDArray[np.int64]:
        zeros = np.zeros(len(theta), dtype=np.int64)
        noise: NDArray[np.int64] = run.mechanism.release(zeros, rng=rng)
        return batch.sum(theta, _drawn(groups, plan, rng)) + noise

    return follow(noisy_sum, run=run, features=steps.shape[1])


def _drawn(
    groups: Mapping[str, NDArray[np.intp]], plan: PersonalizedGradientDescent, rng: RandomSource
) -> NDArray[np.intp]:
    parts = []
    for name, rows in groups.items():
        if plan.rates[name] == 1 or not len(rows):
            parts.append(rows)
            continue
        packed = packed_bernoulli(plan.rates[name], rows=1, columns=len(rows), rng=rng)[0]
        drawn = np.unpackbits(packed, count=len(rows), bitorder="little")
        parts.append(rows[drawn.view(np.bool_)])
    return np.concatenate(parts)


def _noise(limit: Guarantee, run: TrainingRun) -> Fraction:
    epsilon, delta = limit_target(limit)
    budget = TrainingBudget.of(
        relation=NeighboringRelation.ADD_REMOVE, epsilon=epsilon, delta=delta, rho=None, mu=None
    )
    return noise_for(budget, rate=run.rate, steps=run.steps)


def _rate(limit: Guarantee, run: TrainingRun) -> Fraction:
    """The largest rate, within a part of 2**-10, at which the run keeps a limit."""
    epsilon, delta = limit_target(limit)

    def kept(rate: Fraction) -> bool:
        spent = training_cost(
            relation=NeighboringRelation.ADD_REMOVE, rate=rate, steps=run.steps, noise=run.noise
        )
        return spent.delta(float(epsilon)) <= float(delta)

    unit = Fraction(1, 1 << RATE_BITS)
    low, high = Fraction(0), run.rate
    while high - low > max(unit, high / (1 << 10)):
        middle = Fraction(int((low + high) / 2 / unit)) * unit
        low, high = (middle, high) if kept(middle) else (low, middle)
    return low


def limit_target(limit: Guarantee) -> tuple[Fraction, Fraction]:
    """Epsilon and delta of a level's limit."""
    if limit.relation is not NeighboringRelation.ADD_REMOVE:
        raise Unsupported("Personalized descent is accounted under ADD_REMOVE only.")
    match limit.event:
        case events.ApproxEvent(epsilon, delta) if delta > 0:
            return epsilon, delta
        case _:
            raise Unsupported("A level's limit must be discreet.approx_dp(epsilon, delta) here.")


# ── Classifier ───────────────────────────────────────────────────────────────────────────────────


_OWN = ("limits", "people", "method")


@dataclass(kw_only=True, eq=False, repr=False)
class PersonalizedLogisticRegression(PrivateLogisticRegression):
    """Private logistic regression with a budget for each privacy level.

    People of lower levels take part in fewer steps, or with shorter gradients. After `fit`,
    `personal_guarantee_` holds the guarantee of each level.

    Args:
        epsilon: Privacy loss of a fit. Also give `delta`.
        delta: Probability parameter of (epsilon, delta)-DP.
        rho: Privacy loss in zero-concentrated DP, instead of `epsilon`. Every step uses all rows.
        mu: Privacy loss in Gaussian DP, instead of `epsilon`. Every step uses all rows.
        relation: Neighboring relation of the guarantee.
        bounds: Public bounds of the features: one pair, one pair per feature, or a mapping by name.
            Values are clipped.
        public_rows: Public number of rows, approximate. By default rows are counted with noise for
            about 1% of the budget under add/remove.
        max_rows_per_unit: Largest number of rows of one privacy unit. It is not checked.
        row_norm: Largest length of a scaled row. By default chosen from the number of features.
        clip: Largest length of a record's gradient. By default chosen from the loss and the number
            of features.
        rate: Probability that a row takes part in a step. By default chosen from public numbers.
        steps: Number of steps. By default chosen from public numbers.
        learning_rate: Learning rate. By default chosen from public numbers.
        momentum: Momentum of the descent, from 0 up to but not including 1.
        average: Share of the steps, counted from the end, whose parameters are averaged.
        l2: Strength of the L2 penalty, in scaled units.
        fit_intercept: Whether to fit an intercept.
        account: Ledger account that pays for the fit.
        label: Text for the ledger entry.
        rng: Random source. By default the operating system's.
        classes: Labels that can occur, or `"public"` if the labels in `y` are not secret.
        limits: Limit of each level, made with `discreet.approx_dp`. Leave `epsilon`, `delta`,
            `rho`, `mu` and `public_rows` unset.
        people: Public number of records of each level, approximate.
        method: `"sampling"` (fewer steps for lower levels) or `"clipping"` (shorter gradients).

    Privacy:
        A fit satisfies the limit of each person's level, for one record per person. Levels and
        `people` are public. The account is charged the guarantee of the level with the largest
        cost, before the values are read.

    Examples:
        >>> import numpy
        >>> import discreet
        >>> from discreet.models import PersonalizedLogisticRegression
        >>> X = numpy.linspace(-1, 1, 500)[:, None]
        >>> low, high = discreet.approx_dp(0.5, 1e-6), discreet.approx_dp(2, 1e-6)
        >>> model = PersonalizedLogisticRegression(
        ...     limits={"low": low, "high": high},
        ...     people={"low": 250, "high": 250},
        ...     bounds=(-1, 1),
        ...     classes=(0, 1),
        ...     method="clipping",
        ...     steps=10,
        ...     rate=1,
        ... )
        >>> y = (X[:, 0] > 0.2).astype(int)
        >>> model = model.fit(X, y, privacy_levels=["low", "high"] * 250)
        >>> sorted(model.personal_guarantee_)
        ['high', 'low']

    See Also:
        [Personalized privacy](../how-to/personal.md).

    References:
        Boenisch et al. (2023).
        [Proof](../theory/theorems.md#models.dp_sgd.personalized.PersonalizedGradientDescent).
    """

    limits: Mapping[str, Guarantee] | None = None
    people: Mapping[str, int] | None = None
    method: Method = "sampling"

    def fit(self, X: object, y: object, *, privacy_levels: object = None) -> Self:
        """Fit the model to private rows, each within the limit of its level.

        Rows of undeclared levels take no part, like rows that do not fit the declarations.

        Args:
            X: Features, one row per record: an array or a data frame.
            y: Label of each record.
            privacy_levels: Privacy level of each record. Required.

        Returns:
            The fitted model itself.

        Raises:
            BudgetExceeded: The account cannot pay. No value was read.
            InvalidArgument: Limits, bounds, classes or levels are missing or not valid, or the
                arguments do not fit together.

        Privacy:
            The fit satisfies the limit of each person's level, for one record per person. The
            account is charged before the values are read.

        Examples:
            >>> import numpy
            >>> import discreet
            >>> from discreet.models import PersonalizedLogisticRegression
            >>> X = numpy.linspace(-1, 1, 500)[:, None]
            >>> low, high = discreet.approx_dp(0.5, 1e-6), discreet.approx_dp(2, 1e-6)
            >>> model = PersonalizedLogisticRegression(
            ...     limits={"low": low, "high": high},
            ...     people={"low": 250, "high": 250},
            ...     bounds=(-1, 1),
            ...     classes=(0, 1),
            ...     method="clipping",
            ...     steps=10,
            ...     rate=1,
            ... )
            >>> y = (X[:, 0] > 0.2).astype(int)
            >>> model = model.fit(X, y, privacy_levels=["low", "high"] * 250)
            >>> model.coef_.shape
            (1, 1)
        """
        table, targets, mapped = self._start(X, y)
        if privacy_levels is None:
            raise InvalidArgument("privacy_levels must be given: the level of each record.")
        planned = self.personal_plan(features=table.shape[1])
        chosen = level_places(privacy_levels, tuple(planned.rates))
        if chosen.shape != (len(table),):
            raise InvalidArgument("privacy_levels must name one level for each row of X.")
        source, cost = self._source, planned.guarantee.worst
        with reserve_if_charged(self.account, cost, label=self.label, rng=source) as held:
            whole = self._whole_targets(targets)
            read = self._steps(table, whole, mapped)
            theta = descend_personalized(
                read, np.nan_to_num(whole), privacy_levels, plan=planned, rng=source
            )
        self.personal_plan_ = planned
        self._keep(theta, mapped, self._open_plan(table.shape[1]), planned.run.rows)
        self.personal_guarantee_ = planned.guarantee
        self.guarantee_ = cost
        self.receipt_ = None if held is None else held.receipt
        return self

    def personal_plan(self, *, features: int) -> PersonalizedGradientDescent:
        """Plan the noise and the part of each level, before a row is read.

        Args:
            features: Number of features.

        Returns:
            The plan with sampling rates, clipping factors and the guarantee of each level.

        Examples:
            >>> import discreet
            >>> from discreet.models import PersonalizedLogisticRegression
            >>> low, high = discreet.approx_dp(0.5, 1e-6), discreet.approx_dp(2, 1e-6)
            >>> model = PersonalizedLogisticRegression(
            ...     limits={"low": low, "high": high},
            ...     people={"low": 250, "high": 250},
            ...     bounds=(-1, 1),
            ...     classes=(0, 1),
            ...     method="clipping",
            ...     steps=10,
            ...     rate=1,
            ... )
            >>> sorted(model.personal_plan(features=1).clips)
            ['high', 'low']
        """
        limits, people = self._personalized_limits()
        run = self._open_plan(features).run(float(sum(people.values())))
        return plan_personalized(run, limits, people, method=self.method)

    def certify(self) -> Certificate:
        """Recompute the guarantee of each level from exact distributions.

        Returns:
            A certificate for the noise of a step and for each level.

        Raises:
            NotCertified: An exact distribution does not satisfy a guarantee.

        Examples:
            >>> import numpy
            >>> import discreet
            >>> from discreet.models import PersonalizedLogisticRegression
            >>> X = numpy.linspace(-1, 1, 500)[:, None]
            >>> low, high = discreet.approx_dp(0.5, 1e-6), discreet.approx_dp(2, 1e-6)
            >>> model = PersonalizedLogisticRegression(
            ...     limits={"low": low, "high": high},
            ...     people={"low": 250, "high": 250},
            ...     bounds=(-1, 1),
            ...     classes=(0, 1),
            ...     method="clipping",
            ...     steps=10,
            ...     rate=1,
            ... )
            >>> y = (X[:, 0] > 0.2).astype(int)
            >>> model = model.fit(X, y, privacy_levels=["low", "high"] * 250)
            >>> model.certify().holds
            True
        """
        check_is_fitted(self, "theta_")
        limits, _ = self._personalized_limits()
        run = self.personal_plan_.run
        step = run.mechanism.certify()
        checks = list(step.checks)
        for name, limit in limits.items():
            epsilon, delta = limit_target(limit)
            checks.append(
                CertificateCheck(
                    part=f"level {name}",
                    epsilon=float(epsilon),
                    claimed=float(delta),
                    exact=self.personal_guarantee_[name].delta(float(epsilon)),
                    route="composed loss distributions",
                )
            )
        return Certificate(
            mechanism=type(self).__name__,
            guarantee=self.guarantee_,
            checks=tuple(checks),
            drawn=(*step.drawn, *record_looks(run, features=self.n_features_in_)),
        ).demand()

    def _personalized_limits(self) -> tuple[Mapping[str, Guarantee], Mapping[str, int]]:
        if not self.limits or not self.people or set(self.limits) != set(self.people):
            raise InvalidArgument(
                "limits and people must name the same levels, for example "
                'limits={"strict": discreet.approx_dp(1, 1e-6)}, people={"strict": 1000}.'
            )
        unset = ("epsilon", "delta", "rho", "mu", "public_rows")
        given = [name for name in unset if getattr(self, name) is not None]
        if given:
            raise InvalidArgument(f"{', '.join(given)} must stay unset: limits and people say it.")
        if self.relation is not NeighboringRelation.ADD_REMOVE:
            raise RelationMismatch("Personalized descent is accounted under ADD_REMOVE only.")
        if self.max_rows_per_unit != 1:
            raise InvalidArgument("max_rows_per_unit must be 1: a person has one record here.")
        return self.limits, {n: count(f"people[{n!r}]", x) for n, x in self.people.items()}

    def _open_plan(self, features: int) -> TrainingPlan:
        """The plan of an ordinary fit, with the limit of the most generous level for all."""
        limits, people = self._personalized_limits()
        epsilon, delta = max(limit_target(limit) for limit in limits.values())
        shared = self.get_params(deep=False)
        for name in _OWN:
            shared.pop(name)
        rows = sum(people.values())
        same = PrivateLogisticRegression(**{**shared, "epsilon": epsilon, "delta": delta})
        if hasattr(self, "classes_"):
            same.classes_ = self.classes_
        return same.plan(features=features, public_rows=rows)

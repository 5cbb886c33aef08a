"""Logistic regression for people with budgets of their own, in the style of scikit-learn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from discreet.accounting.guarantee import Guarantee
from discreet.core.check import count
from discreet.core.errors import InvalidArgument, RelationMismatch
from discreet.core.relation import Relation
from discreet.ledger.charged import charged
from discreet.mechanisms.mechanism import Certificate, Check
from discreet.models.inputs import doubles
from discreet.models.sgd.classifier import PrivateLogisticRegression
from discreet.models.sgd.personal import (
    Method,
    PersonalDescent,
    descend_personal,
    limit_target,
    personal_descent,
)
from discreet.models.sgd.plan import Plan

_OWN = ("limits", "people", "method")


@dataclass(kw_only=True, eq=False, repr=False)
class PersonalLogisticRegression(PrivateLogisticRegression):
    """Logistic regression in which every level of people has its own epsilon and delta.

    ``limits`` maps levels to ``approx(epsilon, delta)``, ``people`` to the public number of records
    of each level, roughly. ``fit`` takes the level of each record. Stricter levels take part in
    fewer steps (``method="sampling"``) or with shorter gradients (``method="clipping"``). All else
    is as in `PrivateLogisticRegression`, whose epsilon, delta, rho, mu and rows stay unset.
    ``personal_guarantee_`` has an entry for each level; ``guarantee_`` holds for everybody, and is
    what an account is charged.

    Theorem, Proof: `PersonalDescent`. Needs: one record a person; levels and ``people`` are public.

    >>> import discreet
    >>> from discreet.noise.bits import seeded
    >>> x = np.linspace(-1, 1, 2000)[:, None]
    >>> y = (x[:, 0] > 0.2).astype(int)
    >>> model = PersonalLogisticRegression(
    ...     limits={"strict": discreet.approx(0.5, 1e-6), "open": discreet.approx(2, 1e-6)},
    ...     people={"strict": 1000, "open": 1000}, bounds=(-1, 1), classes=(0, 1), bits=seeded(1),
    ... ).fit(x, y, levels=["strict", "open"] * 1000)
    >>> bool(model.score(x, y) > 0.9 and model.personal_guarantee_["strict"].epsilon(1e-6) <= 0.5)
    True
    """

    limits: Mapping[str, Guarantee] | None = None
    people: Mapping[str, int] | None = None
    method: Method = "sampling"

    def fit(self, X: object, y: object, *, levels: object = None) -> Self:
        """Fit, privately, each record within the limit of its level.

        What can be refused without reading a value is refused before paying.
        """
        table, targets, mapped = self._start(X, y)
        if levels is None:
            raise InvalidArgument("levels must be given: the level of each record.")
        chosen = np.asarray(levels).astype(str)
        if chosen.shape != (len(table),):
            raise InvalidArgument("levels must name one level for each row of X.")
        planned = self.personal_plan(features=table.shape[1])
        if not set(np.unique(chosen).tolist()) <= set(planned.rates):
            raise InvalidArgument(f"levels must be among {', '.join(planned.rates)}.")
        source, cost = self._source, planned.guarantee.worst
        with charged(self.account, cost, label=self.label, bits=source) as held:
            read = mapped.steps(doubles("X", table))
            whole = self._whole_targets(targets)
            theta = descend_personal(read, whole, chosen, plan=planned, bits=source)
        self.personal_plan_ = planned
        self._keep(theta, mapped, self._open_plan(table.shape[1]), planned.run.rows)
        self.personal_guarantee_ = planned.guarantee
        self.guarantee_ = cost
        self.receipt_ = None if held is None else held.receipt
        return self

    def personal_plan(self, *, features: int) -> PersonalDescent:
        """Noise, rates, clips and guarantee of each level, before a row is read."""
        limits, people = self._menu()
        run = self._open_plan(features).run(float(sum(people.values())))
        return personal_descent(run, limits, people, method=self.method)

    def certify(self) -> Certificate:
        """Recompute every level's guarantee: the noise of a step from its exact law, then runs."""
        check_is_fitted(self, "theta_")
        limits, _ = self._menu()
        checks = list(self.personal_plan_.run.mechanism.certify().checks)
        for name, limit in limits.items():
            epsilon, delta = limit_target(limit)
            checks.append(
                Check(
                    part=f"level {name}",
                    epsilon=float(epsilon),
                    claimed=float(delta),
                    exact=self.personal_guarantee_[name].delta(float(epsilon)),
                    route="composed loss distributions",
                )
            )
        return Certificate(
            mechanism=type(self).__name__, guarantee=self.guarantee_, checks=tuple(checks)
        ).demand()

    def _menu(self) -> tuple[Mapping[str, Guarantee], Mapping[str, int]]:
        if not self.limits or not self.people or set(self.limits) != set(self.people):
            raise InvalidArgument(
                "limits and people must name the same levels, for example "
                'limits={"strict": discreet.approx(1, 1e-6)}, people={"strict": 1000}.'
            )
        unset = ("epsilon", "delta", "rho", "mu", "rows")
        given = [name for name in unset if getattr(self, name) is not None]
        if given:
            raise InvalidArgument(f"{', '.join(given)} must stay unset: limits and people say it.")
        if self.relation is not Relation.ADD_REMOVE:
            raise RelationMismatch("Personal descent is accounted under Relation.ADD_REMOVE only.")
        if self.rows_per_unit != 1:
            raise InvalidArgument("rows_per_unit must be 1: a person has one record here.")
        return self.limits, {n: count(f"people[{n!r}]", x) for n, x in self.people.items()}

    def _open_plan(self, features: int) -> Plan:
        """The plan of an ordinary fit, with the limit of the most generous level for all."""
        limits, people = self._menu()
        epsilon, delta = max(limit_target(limit) for limit in limits.values())
        shared = self.get_params(deep=False)
        for name in _OWN:
            shared.pop(name)
        rows = sum(people.values())
        same = PrivateLogisticRegression(**{**shared, "epsilon": epsilon, "delta": delta})
        if hasattr(self, "classes_"):
            same.classes_ = self.classes_
        return same.plan(features=features, rows=rows)

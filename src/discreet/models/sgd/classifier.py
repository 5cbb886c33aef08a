"""Private logistic regression: two classes, or several by softmax."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray
from sklearn.base import ClassifierMixin

from discreet.core.errors import InvalidArgument
from discreet.models.inputs import Floats, shaped
from discreet.models.sgd import labels
from discreet.models.sgd.estimators import PrivateDescent
from discreet.models.sgd.features import FeatureMap, usual_norm
from discreet.models.sgd.labels import Classes
from discreet.models.sgd.objectives import Logistic, Objective, Softmax
from discreet.models.sgd.plan import Plan

# Margins of a fitted classifier usually spread this much.
_SPREAD = 2.5


@dataclass(kw_only=True, eq=False, repr=False)
class PrivateLogisticRegression(ClassifierMixin, PrivateDescent):
    """Logistic regression by private gradient descent: two classes, or several by softmax.

    ``classes`` are the labels that can occur, declared; ``"public"`` says that the labels found in
    y are no secret. A declared class need not occur. Rows longer than ``row_norm`` (after scaling)
    are shrunk to it, which keeps the predicted class; a record's gradient is clipped to ``clip``,
    by default the longest one at the start: later only records on the wrong side are clipped.

    >>> import numpy as np
    >>> from discreet.noise.bits import seeded
    >>> x = np.linspace(-1, 1, 2000)[:, None]
    >>> model = PrivateLogisticRegression(
    ...     epsilon=1, delta=1e-6, bounds=(-1, 1), classes=(0, 1), bits=seeded(1)
    ... ).fit(x, (x[:, 0] > 0.2).astype(int))
    >>> bool(model.score(x, (x[:, 0] > 0.2).astype(int)) > 0.9)
    True
    """

    classes: Classes = None

    def decision_function(self, X: object) -> Floats:
        """Margins: of the second class against the first, or one for each of several classes."""
        return self._margins(X)

    def predict_proba(self, X: object) -> Floats:
        """Probabilities of the classes, one row for each of X."""
        return labels.probabilities(self._margins(X))

    def predict(self, X: object) -> NDArray[Any]:
        """The likeliest class of each row."""
        return labels.likeliest(self._margins(X), self.classes_)

    def _objective(self) -> Objective:
        number = len(self._labels())
        penalty, intercept = self._penalty(), bool(self.fit_intercept)
        if number == 2:
            return Logistic(l2=penalty, intercept=intercept)
        return Softmax(classes=number, l2=penalty, intercept=intercept)

    def _labels(self) -> NDArray[Any]:
        return labels.declared(self.classes, found=getattr(self, "classes_", None))

    def _target_array(self, y: object) -> NDArray[Any]:
        if y is None:
            raise InvalidArgument("requires y to be passed, but the target y is None.")
        given = self._one_column(shaped("y", y))
        self.classes_ = labels.classes_of(self.classes, given)
        return given

    def _whole_targets(self, y: NDArray[Any]) -> Floats:
        return labels.places(y, self.classes_)

    def _usual(self, columns: int) -> float:
        return usual_norm(columns, intercept=bool(self.fit_intercept))

    def _row_norm(self, columns: int) -> float:
        return self._declared("row_norm") or self._usual(columns)

    def _clip(self, columns: int) -> float:
        outputs = len(self._labels())
        start = 0.5 if outputs == 2 else math.sqrt(1 - 1 / outputs)
        return self._declared("clip") or start * self._row_norm(columns)

    def _spread(self) -> float:
        return _SPREAD

    def _keep(self, theta: Floats, mapped: FeatureMap, plan: Plan, rows: float) -> None:
        super()._keep(theta, mapped, plan, rows)
        self.coef_, self.intercept_ = mapped.in_units(theta)

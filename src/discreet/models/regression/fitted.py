"""What both linear regressions share: the names of the features, and rows to predict for."""

from __future__ import annotations

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.exceptions import NotFittedError

from discreet.core.errors import InvalidArgument
from discreet.models.charging import ChargingEstimator
from discreet.models.inputs import Floats, doubles, matrix_shape, names_of, shaped


class LinearEstimator(RegressorMixin, ChargingEstimator):
    """A linear regression that knows which columns it was fitted to."""

    n_features_in_: int

    def _fitted_to(self, columns: int, names: tuple[str, ...] | None) -> None:
        self.n_features_in_ = columns
        if names is not None:
            self.feature_names_in_ = np.array(names, dtype=object)
        elif hasattr(self, "feature_names_in_"):
            del self.feature_names_in_

    def _fitted(self) -> None:
        if not hasattr(self, "n_features_in_"):
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet: call fit.")

    def _new(self, x: object) -> Floats:
        """Rows to predict for, checked."""
        self._fitted()
        table = shaped("X", x)
        matrix_shape(table)
        if table.shape[1] != self.n_features_in_:
            raise InvalidArgument(
                f"X has {table.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        names = names_of(x)
        known = getattr(self, "feature_names_in_", None)
        if names is not None and known is not None and names != tuple(known):
            # In the words of scikit-learn.
            raise InvalidArgument(
                "The feature names should match those that were passed during fit, in the same "
                "order: select X[model.feature_names_in_]."
            )
        return doubles("X", table)

"""What linear estimators on mapped rows share: rows at the door, the map, margins."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from numpy.typing import NDArray
from sklearn.utils.validation import validate_data

from discreet.core.errors import InvalidArgument
from discreet.models.charging import ChargingEstimator
from discreet.models.inputs import (
    Bounds,
    Floats,
    doubles,
    matrix_shape,
    names_of,
    same_rows,
    shaped,
)
from discreet.models.sgd.features import FeatureMap
from discreet.models.sgd.objectives import Objective


class MappedEstimator(ChargingEstimator):
    """A linear model of rows that are scaled by declared ``bounds`` and shrunk to a length."""

    bounds: Bounds
    fit_intercept: bool
    theta_: Floats
    feature_map_: FeatureMap

    @abstractmethod
    def _target_array(self, y: object) -> NDArray[Any]:
        """Targets as they are given, of the right shape; no value is read for an error."""

    @abstractmethod
    def _row_norm(self, columns: int) -> float:
        """The greatest length of a mapped row."""

    def _start(self, X: object, y: object) -> tuple[NDArray[Any], NDArray[Any], FeatureMap]:
        """Rows and targets before a value is read, and the map of the rows; the old fit is gone."""
        self.__dict__.pop("theta_", None)  # a fit that fails leaves none, not half of an old one
        table = self._table(X, reset=True)
        targets = self._target_array(y)
        same_rows(table, targets)
        mapped = FeatureMap.of(
            self.bounds,
            columns=table.shape[1],
            names=names_of(X),
            intercept=bool(self.fit_intercept),
            row_norm=self._row_norm(table.shape[1]),
        )
        return table, targets, mapped

    def _table(self, X: object, *, reset: bool) -> NDArray[Any]:
        table = shaped("X", X)
        matrix_shape(table)
        validate_data(self, X, reset=reset, skip_check_array=True)
        return table

    def _margins_of(self, objective: Objective, X: object) -> Floats:
        table = self._table(X, reset=False)
        if not len(table):
            raise InvalidArgument("X has 0 sample(s) while a minimum of 1 is required.")
        return objective.margins(self.theta_, self.feature_map_.rows(doubles("X", table)))

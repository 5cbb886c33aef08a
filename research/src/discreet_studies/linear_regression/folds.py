"""Cross-validation from sums over rows: an error costs d squared, whatever n is (K27 to K29)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from discreet.noise.distribution import Floats
from discreet_studies.linear_regression.datasets import RegressionDataSet
from discreet_studies.linear_regression.preprocessing import Map, RowSplit, mapped

FOLDS = 10


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Folds:
    """What training and test rows of each fold add up to; the first axis counts folds."""

    gram: Floats
    moment: Floats
    test_gram: Floats
    test_moment: Floats
    test_square: Floats
    """Mean square of the test targets: the error of predicting zero."""

    @property
    def trivial(self) -> float:
        """The error of predicting zero (K28)."""
        return float(self.test_square.mean())

    def errors(self, theta: Floats) -> Floats:
        """Mean squared error on the test rows (K27), of coefficients (folds, draws, d)."""
        quadratic = np.einsum("krd,kde,kre->kr", theta, self.test_gram, theta, optimize=True)
        linear = np.einsum("krd,kd->kr", theta, self.test_moment)
        return np.asarray(quadratic - 2 * linear + self.test_square[:, None], dtype=np.float64)

    def ridge(self, penalty: float = 1.0) -> float:
        """The error without privacy, with a penalty in mapped units (K28)."""
        d = self.gram.shape[1]
        theta = np.linalg.solve(self.gram + penalty * np.eye(d), self.moment[:, :, None])
        rows = np.asarray(theta.transpose(0, 2, 1), dtype=np.float64)
        return float(self.errors(rows).mean())

    def least_squares(self) -> float:
        """The error without privacy or penalty; the shortest solution where there are several."""
        # Elevators has rank 17: what is left of the last eigenvalue is rounding.
        inverse = np.linalg.pinv(self.gram, rcond=1e-10, hermitian=True)
        theta = np.einsum("kde,ke->kd", inverse, self.moment)
        return float(self.errors(theta[:, None, :]).mean())


@cache
def folds(data: RegressionDataSet, how: Map) -> Folds:
    """The statistics of every fold; the split is the same in all experiments."""
    order = np.random.Generator(np.random.Philox(0)).permutation(len(data.x))
    x, target = data.x[order], data.y[order]
    made = []
    for part in np.array_split(np.arange(len(x)), FOLDS):
        keep = np.ones(len(x), dtype=bool)
        keep[part] = False
        rows = RowSplit(x[keep], target[keep], x[part], target[part])
        made.append(_statistics(mapped(rows, (x, target), how)))
    return Folds(
        gram=np.stack([one[0] for one in made]),
        moment=np.stack([one[1] for one in made]),
        test_gram=np.stack([one[2] for one in made]),
        test_moment=np.stack([one[3] for one in made]),
        test_square=np.array([one[4] for one in made]),
    )


def _statistics(split: RowSplit) -> tuple[Floats, Floats, Floats, Floats, float]:
    n = len(split.test_y)
    return (
        split.x.T @ split.x,
        split.x.T @ split.y,
        split.test_x.T @ split.test_x / n,
        split.test_x.T @ split.test_y / n,
        float(split.test_y @ split.test_y / n),
    )

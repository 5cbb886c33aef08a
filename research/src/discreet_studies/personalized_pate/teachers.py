"""What teachers and students learn with: kernel ridge on images, forests on tables (M29, M31).

The thesis trains convolutional networks on MNIST; kernel ridge on the leading components of the
images, with turned and shifted copies, is as accurate at 240 records and a hundred times faster.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from discreet_studies.personalized_pate.datasets import ClassificationDataSet

COPIES = 6
"""Turned and shifted copies of an image."""
COMPONENTS = 60
_TURN, _SHIFT = 7.5, 0.07  # degrees; parts of the side
_AT_ONCE = 4096


class KernelRidge:
    """One against all by ridge regression on Gaussian kernels, in single precision.

    A row may hold several versions of a record, ``columns`` wide each: all are learned from, and
    the first one is predicted on.
    """

    def __init__(self, columns: int, *, gamma: float = 0.02, ridge: float = 0.05) -> None:
        self.columns = columns
        self.gamma = gamma
        self.ridge = ridge

    def get_params(self, deep: bool = True) -> dict[str, Any]:  # noqa: FBT001, FBT002 - sklearn's
        """The settings, so that scikit-learn can clone it."""
        del deep
        return {"columns": self.columns, "gamma": self.gamma, "ridge": self.ridge}

    def fit(self, X: NDArray[np.float32], y: NDArray[np.int64]) -> Self:
        """Solve for all classes at once."""
        self.rows_ = np.ascontiguousarray(X.reshape(-1, self.columns))
        self.classes_ = np.unique(y)
        told = np.repeat(y, X.shape[1] // self.columns)
        wanted = np.where(told[:, None] == self.classes_, 1, -1).astype(np.float32)
        gram = self._kernel(self.rows_)
        gram[np.diag_indices(len(gram))] += np.float32(self.ridge)
        factor = scipy.linalg.cho_factor(gram, overwrite_a=True, check_finite=False)
        self.weights_ = scipy.linalg.cho_solve(factor, wanted, check_finite=False)
        return self

    def predict(self, X: NDArray[np.float32]) -> NDArray[np.int64]:
        """The class of each row."""
        first = X[:, : self.columns]
        found = [
            (self._kernel(first[start : start + _AT_ONCE]) @ self.weights_).argmax(axis=1)
            for start in range(0, len(first), _AT_ONCE)
        ]
        return np.asarray(self.classes_[np.concatenate(found)], dtype=np.int64)

    def _kernel(self, rows: NDArray[np.float32]) -> NDArray[np.float32]:
        power = rows @ self.rows_.T
        power *= 2
        power -= np.square(rows).sum(axis=1)[:, None]
        power -= np.square(self.rows_).sum(axis=1)
        power *= np.float32(self.gamma)
        return np.asarray(np.exp(power, out=power))


def forest(seed: int) -> Any:
    """A hundred trees, as in the thesis."""
    from sklearn.ensemble import RandomForestClassifier

    return RandomForestClassifier(n_estimators=100, random_state=seed)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ImageSplit:
    """Private records, public items and a test, ready to be learned from."""

    classes: int
    columns: int
    """Width of one version of a record."""
    images: bool
    private: NDArray[np.float32] = field(repr=False)
    private_y: NDArray[np.int64] = field(repr=False)
    public: NDArray[np.float32] = field(repr=False)
    public_y: NDArray[np.int64] = field(repr=False)
    test: NDArray[np.float32] = field(repr=False)
    test_y: NDArray[np.int64] = field(repr=False)

    def learner(self, seed: int = 0) -> Any:
        """An estimator without training."""
        return KernelRidge(self.columns) if self.images else forest(seed)


def split(
    data: ClassificationDataSet,
    *,
    sizes: tuple[int, int, int],
    copies: int,
    rng: np.random.Generator,
    private: bool = True,
) -> ImageSplit:
    """Private, public and test records at random, with ``copies`` of every image.

    Components are those of the public items, so that no teacher sees another's records (T8).
    Without ``private`` those are left out: what a student may see.
    """
    chosen = np.split(rng.permutation(len(data.x))[: sum(sizes)], np.cumsum(sizes)[:-1])
    chosen[0] = chosen[0] if private else chosen[0][:0]
    images = data.classes > 2
    columns = min(COMPONENTS, data.x.shape[1]) if images else data.x.shape[1]
    parts = [data.x[rows] for rows in chosen]
    if images:
        center = parts[1].mean(axis=0)
        spread = (parts[1] - center).T @ (parts[1] - center)
        axes = np.linalg.eigh(spread)[1][:, ::-1][:, :columns]
        # The test is predicted on only: its copies would not be used.
        many = (copies, copies, 0)
        parts = [
            _versions(part, center, axes, copies=times, rng=own)
            for part, times, own in zip(parts, many, rng.spawn(3), strict=True)
        ]
    told = [data.y[rows] for rows in chosen]
    return ImageSplit(
        classes=data.classes,
        columns=columns,
        images=images,
        private=parts[0],
        private_y=told[0],
        public=parts[1],
        public_y=told[1],
        test=parts[2],
        test_y=told[2],
    )


def _versions(
    images: NDArray[np.float32],
    center: NDArray[np.float32],
    axes: NDArray[np.float32],
    *,
    copies: int,
    rng: np.random.Generator,
) -> NDArray[np.float32]:
    """Components of each image and of its copies, side by side."""
    made = np.empty((len(images), copies + 1, axes.shape[1]), dtype=np.float32)
    for start in range(0, len(images), _AT_ONCE):
        part = images[start : start + _AT_ONCE]
        for i in range(copies + 1):
            moved = part if i == 0 else augmented(part, rng)
            made[start : start + len(part), i] = (moved - center) @ axes
    return made.reshape(len(images), (copies + 1) * axes.shape[1])


def augmented(images: NDArray[np.float32], rng: np.random.Generator) -> NDArray[np.float32]:
    """Each image turned by up to 7.5 degrees and shifted by up to 7 % in both directions (M29)."""
    number, side = len(images), math.isqrt(images.shape[1])
    turn = np.radians(rng.uniform(-_TURN, _TURN, (number, 1, 1))).astype(np.float32)
    shift = (rng.uniform(-_SHIFT, _SHIFT, (2, number, 1, 1)) * side).astype(np.float32)
    middle = np.float32((side - 1) / 2)
    y, x = np.meshgrid(*[np.arange(side, dtype=np.float32) - middle] * 2, indexing="ij")
    cos, sin = np.cos(turn), np.sin(turn)
    edge = side // 4  # empty pixels around, so that no corner falls outside
    wide = side + 2 * edge
    rows = cos * y + sin * x + middle + edge - shift[0]
    columns = cos * x - sin * y + middle + edge - shift[1]
    top, left = rows.astype(np.int32), columns.astype(np.int32)
    down, right = rows - top, columns - left
    padded = np.pad(images.reshape(-1, side, side), ((0, 0), (edge, edge), (edge, edge)))
    flat, place = padded.reshape(number, -1), (top * wide + left).reshape(number, -1)

    def near(step: int) -> NDArray[np.float32]:
        return np.take_along_axis(flat, place + step, axis=1).reshape(number, side, side)

    above = near(0) * (1 - right) + near(1) * right
    below = near(wide) * (1 - right) + near(wide + 1) * right
    return np.asarray(above * (1 - down) + below * down, dtype=np.float32).reshape(number, -1)

"""From rows to whole steps: public constants, a projection, and rounding that keeps the norm.

The lattice says how far one row can move the sums, in whole steps. Mapping acts on one row at a
time, by constants that are public or privately released: neighboring tables stay neighbors. All
arithmetic is elementwise, in a fixed order, so that every engine and every chunking gives the same
integers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.boundary.sums import narrow
from discreet.core._validate import count
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.models._model_inputs import Floats

# ── Lattice ──────────────────────────────────────────────────────────────────────────────────────


STEPS = 1 << 14
"""Steps between the center and the edge of the ball of features."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowLattice:
    """Integer rows, and how far one row can move the sums that are released.

    A mapped row has an intercept, one number per feature (in the unit ball) and one per target
    (between -1 and 1). All are multiples of a fixed step.

    Args:
        features: Number of features.
        outputs: Number of targets.
        steps: Steps of the radius of the unit ball.
        target_steps: Steps of the largest target.
        intercept: Steps of the intercept, 0 for no intercept.

    Examples:
        >>> from discreet.models import regression
        >>> regression.RowLattice.of(features=2).columns
        3
    """

    features: int
    outputs: int
    steps: int = STEPS
    target_steps: int
    intercept: int

    @classmethod
    def of(
        cls, *, features: int, outputs: int = 1, intercept: float = 0.5, cross: float = 1.0
    ) -> RowLattice:
        """Create a lattice from the number of columns.

        Args:
            features: Number of features.
            outputs: Number of targets.
            intercept: Size of the intercept relative to the radius of the ball, from 0 (none) to 4.
            cross: Weight of the products with the target relative to the matrix, from 1/16 to 16.

        Returns:
            The lattice.

        Raises:
            InvalidArgument: An argument is outside its range.

        Examples:
            >>> from discreet.models import regression
            >>> regression.RowLattice.of(features=2, intercept=0).intercept
            0
        """
        count("features", features)
        count("outputs", outputs)
        if not 0 <= intercept <= 4 or not 1 / 16 <= cross <= 16:
            raise InvalidArgument(
                "intercept_scale must lie in [0, 4] and cross in [1/16, 16], "
                f"got {intercept} and {cross}."
            )
        constant = round(intercept * STEPS)
        row = STEPS**2 + constant**2
        return cls(
            features=features,
            outputs=outputs,
            target_steps=math.isqrt(round(Fraction(cross) * row) // outputs),
            intercept=constant,
        )

    @property
    def columns(self) -> int:
        """Number of columns of the Gram matrix, including the intercept."""
        return self.features + (self.intercept > 0)

    @property
    def row_squared(self) -> int:
        """Largest squared norm of a row of features with the intercept, in steps."""
        return self.steps**2 + self.intercept**2

    @property
    def target_squared(self) -> int:
        """Largest squared norm of a row of targets, in steps."""
        return self.outputs * self.target_steps**2

    @property
    def count_steps(self) -> int:
        """Steps that one row adds to the count. The intercept counts by itself."""
        return 0 if self.intercept else self.row_squared // 4

    def joint(self, relation: NeighboringRelation) -> int:
        """Compute the squared sensitivity of matrix, products and count together.

        Args:
            relation: Neighboring relation, add/remove or replace-one.

        Returns:
            The largest squared change by one row, in steps.

        Raises:
            InvalidArgument: `relation` is neither of the two.

        Examples:
            >>> from discreet import NeighboringRelation
            >>> from discreet.models import regression
            >>> lattice = regression.RowLattice.of(features=2)
            >>> lattice.joint(NeighboringRelation.ADD_REMOVE) > 0
            True

        References:
            [Proof](../theory/theorems.md#models.regression._row_lattice.RowLattice.joint).
        """
        # Theorem: with T^2 and V^2 the largest squared norms of a row and of its targets, one row
        #   that is added or removed moves them by `T^4 + T^2 V^2` at most, and attains it; one
        #   that is replaced by `2 T^4 + 2 T^2 V^2 + V^4/2` if `V^2 <= 2 T^2`, else `4 T^2
        #   V^2`. (In squares; the count adds `c^2` under add/remove.)
        # Proof: docs/theory/regression.md. `|uu' - ww'|^2 = |u|^4 + |w|^4 - 2 (u.w)^2` and
        #   `|uy - wz|^2` is largest for z = -y; the best angle has `u.w = V^2/2`; the value
        #   grows with both norms.
        # Source: K4, K31.
        row, target = self.row_squared, self.target_squared
        if relation is NeighboringRelation.ADD_REMOVE:
            return row**2 + row * target + self.count_steps**2
        if relation is NeighboringRelation.REPLACE_ONE:
            if target <= 2 * row:
                return 2 * row**2 + 2 * row * target + -(-(target**2) // 2)
            return 4 * row * target
        raise InvalidArgument(f"relation must be ADD_REMOVE or REPLACE_ONE, got {relation!r}.")

    def squares(self) -> int:
        """Compute the squared sensitivity of the sums of squares of the targets.

        Returns:
            The largest squared change by one row, in steps.

        Examples:
            >>> from discreet.models import regression
            >>> regression.RowLattice.of(features=2).squares() > 0
            True
        """
        return self.outputs * self.target_steps**4


# ── Rows ─────────────────────────────────────────────────────────────────────────────────────────


Mapping: TypeAlias = Literal["ball", "row", "box", "weighted"]
Ints: TypeAlias = NDArray[np.int64]

CHUNK = 1 << 13
# Beyond this many radii a value is taken as that far: its direction is all that counts.
_FAR = 2.0**100
_MARGIN = 2.0**-6
_ONE_THREAD = 1 << 17


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RowMap:
    """How rows are clipped, centered, scaled, projected and rounded.

    Args:
        lattice: Lattice of the mapped rows.
        mapping: How features get into the unit ball: `"ball"` projects rows beyond the radius,
            `"weighted"` multiplies such rows and their targets by a factor, `"box"` uses a radius
            that holds all bounds, and `"row"` divides each row by its norm.
        lower: Lower bounds of the features.
        upper: Upper bounds of the features.
        center: Centers of the features.
        scale: Scales of the features.
        radius: Radius of the ball, in scaled units.
        target_center: Centers of the targets.
        target_half: Half-widths of the ranges of the targets.

    Raises:
        InvalidArgument: The constants are not finite or not positive.

    Examples:
        >>> import numpy
        >>> from discreet.models import PrivateLinearRegression
        >>> X = numpy.random.default_rng(1).uniform(0, 10, (500, 2))
        >>> model = PrivateLinearRegression(rho=1, bounds=(0, 10), target_bounds=(-10, 20))
        >>> model = model.fit(X, X @ [1, -0.5])
        >>> model.moments_.map.mapping
        'weighted'
    """

    lattice: RowLattice
    mapping: Mapping
    lower: Floats
    upper: Floats
    center: Floats
    scale: Floats
    radius: float
    target_center: Floats
    target_half: Floats

    def __post_init__(self) -> None:
        """Refuse constants by which a row could become no number: it would move sums without end.

        Then every product below is a number or infinite, and what is infinite is clipped.
        """
        with np.errstate(all="ignore"):
            per_unit = self.lattice.steps / (self.scale * self.radius)
            per_target = self.lattice.target_steps / self.target_half
        factors = np.concatenate((per_unit, per_target))
        centers = np.concatenate((self.center, self.target_center))
        if not (np.isfinite(factors).all() and (factors > 0).all() and np.isfinite(centers).all()):
            raise InvalidArgument(
                "center must be finite, and scale times radius positive: use other units."
            )

    @property
    def linear(self) -> bool:
        """Whether coefficients in original units exist."""
        return self.mapping != "row"

    def features(self, x: Floats) -> Floats:
        """Map features without rounding.

        Args:
            x: Features, one row per record.

        Returns:
            The mapped features, with which coefficients are multiplied in a prediction.

        Examples:
            >>> import numpy
            >>> from discreet.models import PrivateLinearRegression
            >>> X = numpy.random.default_rng(1).uniform(0, 10, (500, 2))
            >>> model = PrivateLinearRegression(rho=1, bounds=(0, 10), target_bounds=(-10, 20))
            >>> model = model.fit(X, X @ [1, -0.5])
            >>> model.moments_.map.features(X[:3]).shape
            (3, 2)
        """
        z = self._scaled(x, 1.0)
        if self.mapping != "weighted":
            z *= self._factor(z, 1.0)[:, None]
        return z

    def design(self, x: Floats) -> Floats:
        """Map features and put the intercept before them.

        Args:
            x: Features, one row per record.

        Returns:
            The design matrix of mapped rows.

        Examples:
            >>> import numpy
            >>> from discreet.models import PrivateLinearRegression
            >>> X = numpy.random.default_rng(1).uniform(0, 10, (500, 2))
            >>> model = PrivateLinearRegression(rho=1, bounds=(0, 10), target_bounds=(-10, 20))
            >>> model = model.fit(X, X @ [1, -0.5])
            >>> model.moments_.map.design(X[:3]).shape
            (3, 3)
        """
        mapped = self.features(x)
        if not self.lattice.intercept:
            return mapped
        constant = self.lattice.intercept / self.lattice.steps
        return np.column_stack((np.full(len(mapped), constant), mapped))

    def codes(self, x: Floats, y: Floats) -> Floats:
        """Map rows to integers.

        Args:
            x: Features, one row per record.
            y: Targets, one row per record and one column per target.

        Returns:
            Rows of intercept, features and targets, as whole numbers in an array of doubles.

        Examples:
            >>> import numpy
            >>> from discreet.models import PrivateLinearRegression
            >>> X = numpy.random.default_rng(1).uniform(0, 10, (500, 2))
            >>> model = PrivateLinearRegression(rho=1, bounds=(0, 10), target_bounds=(-10, 20))
            >>> model = model.fit(X, X @ [1, -0.5])
            >>> model.moments_.map.codes(X[:3], X[:3, :1]).shape
            (3, 4)

        References:
            [Proof](../theory/theorems.md#models.regression._row_lattice.RowMap.codes).
        """
        # Theorem: `|u|^2 <= steps^2` and `|v_i| <= target_steps`, in exact integers.
        # Proof: rounding moves a row by at most `sqrt(d)/2` steps, which the radius leaves room
        #   for; whatever the rounding of doubles did, rows that are still too long, by the exact
        #   sum of their squares, are cut toward zero until they are not. Targets are clipped.
        # Source: K36.
        grid = self.lattice
        room = grid.steps - math.sqrt(grid.features) / 2 - _MARGIN
        first = grid.columns - grid.features
        out = np.empty((len(x), grid.columns + grid.outputs))
        z = self._scaled(x, float(grid.steps))
        factor = self._factor(z, room)
        weight = factor if self.mapping == "weighted" else np.ones(len(x))
        if first:
            out[:, 0] = np.rint(grid.intercept * weight)
        u = out[:, first : grid.columns]
        z *= factor[:, None]
        np.rint(z, out=u)
        long = np.einsum("ij,ij->i", u, u) > grid.steps**2  # exact: below 2**53
        while long.any():
            u[long] = np.trunc(u[long] * 0.999)
            long = np.einsum("ij,ij->i", u, u) > grid.steps**2
        v = out[:, grid.columns :]
        with np.errstate(over="ignore"):
            np.subtract(y, self.target_center, out=v)
            v *= grid.target_steps / self.target_half
        # Weighted first: a row that counts for less may be as far off as its weight allows.
        v *= weight[:, None]
        np.clip(v, -grid.target_steps, grid.target_steps, out=v)
        np.rint(v, out=v)
        return out

    def _scaled(self, x: Floats, steps: float) -> Floats:
        factors = steps / (self.scale * self.radius)
        z = np.empty(x.shape, order="F")
        with np.errstate(over="ignore"):  # beyond the largest double is far away
            # Column by column: one bound at a time is several times faster than a row of bounds.
            for place, own in enumerate(z.T):
                np.clip(x[:, place], self.lower[place], self.upper[place], out=own)
                np.subtract(own, self.center[place], out=own)
                np.multiply(own, factors[place], out=own)
        return np.clip(z, -_FAR, _FAR, out=z)

    def _factor(self, z: Floats, room: float) -> Floats:
        """What brings rows to a norm of at most ``room``, or of just that; zeros stay."""
        square = np.zeros(len(z))
        for column in z.T:  # in a fixed order, whatever the layout
            square += column * column
        norm = np.sqrt(square)
        if self.mapping == "row":
            return np.divide(room, norm, out=np.zeros_like(norm), where=norm > 0)
        return np.divide(room, norm, out=np.ones_like(norm), where=norm > room)

    def coefficients(self, theta: Floats) -> tuple[Floats, Floats]:
        """Convert coefficients to original units.

        Args:
            theta: Coefficients of the mapped columns, columns x outputs.

        Returns:
            Slopes, outputs x features, and intercepts.

        Examples:
            >>> import numpy
            >>> from discreet.models import PrivateLinearRegression
            >>> X = numpy.random.default_rng(1).uniform(0, 10, (500, 2))
            >>> model = PrivateLinearRegression(rho=1, bounds=(0, 10), target_bounds=(-10, 20))
            >>> model = model.fit(X, X @ [1, -0.5])
            >>> slopes, intercepts = model.moments_.map.coefficients(model.solution_.theta)
            >>> slopes.shape
            (1, 2)

        References:
            [Proof](../theory/theorems.md#models.regression._row_lattice.RowMap.coefficients).
        """
        # Theorem: `slopes @ x + intercepts` equals `target_center + target_half * design(x) @
        #   theta` for every x within the bounds and the ball.
        # Proof: there the map is affine: `design(x)` is `(a, (x - center) / (scale radius))`.
        first = self.lattice.columns - self.lattice.features
        slopes = theta[first:].T * self.target_half[:, None] / (self.scale * self.radius)
        constant = self.lattice.intercept / self.lattice.steps
        level = constant * theta[0] if first else np.zeros(self.lattice.outputs)
        return slopes, self.target_center + self.target_half * level - slopes @ self.center

    def predictions(self, design: Floats, theta: Floats) -> Floats:
        """Predict targets in original units.

        Args:
            design: Design matrix, from `design`.
            theta: Coefficients of the mapped columns, columns x outputs.

        Returns:
            Predictions, rows x outputs.

        Examples:
            >>> import numpy
            >>> from discreet.models import PrivateLinearRegression
            >>> X = numpy.random.default_rng(1).uniform(0, 10, (500, 2))
            >>> model = PrivateLinearRegression(rho=1, bounds=(0, 10), target_bounds=(-10, 20))
            >>> model = model.fit(X, X @ [1, -0.5])
            >>> rows = model.moments_.map
            >>> rows.predictions(rows.design(X[:3]), model.solution_.theta).shape
            (3, 1)
        """
        return self.target_center + self.target_half * (design @ theta)


def box_radius(lower: Floats, upper: Floats, center: Floats, scale: Floats) -> float:
    """The radius that holds all rows between the bounds."""
    reach = np.maximum(np.abs(lower - center), np.abs(upper - center)) / scale
    return math.sqrt(float(np.square(reach).sum())) * (1 + 2.0**-40)


@dataclass(frozen=True, slots=True, eq=False)
class MomentSums:
    """Exact, private sums of products of all columns, and the number of rows.

    Args:
        total: Sums of products of all pairs of columns.
        rows: Number of rows.

    Examples:
        >>> import numpy
        >>> from discreet.models import PrivateLinearRegression
        >>> X = numpy.random.default_rng(1).uniform(0, 10, (500, 2))
        >>> model = PrivateLinearRegression(rho=1, bounds=(0, 10), target_bounds=(-10, 20))
        >>> model = model.fit(X, X @ [1, -0.5])
        >>> from discreet.models import regression
        >>> regression.sum_moments(model.moments_.map, X, X[:, :1]).rows
        500
    """

    total: NDArray[Any]
    rows: int

    def __add__(self, other: MomentSums) -> MomentSums:
        total = narrow(self.total.astype(object) + other.total)
        return MomentSums(total, self.rows + other.rows)

    def __repr__(self) -> str:
        return "Sums(private)"


def flat_sums(rows: RowMap, x: Floats, y: Floats) -> Ints:
    """The exact sums of some rows, as one array: the products, then the number of rows.

    Doubles add and multiply whole numbers exactly below 2**53, in any order; a chunk of 2**13 rows
    with products below 2**36 stays far below.
    """
    size = rows.lattice.columns + rows.lattice.outputs
    total = np.zeros(size * size + 1, dtype=np.int64)
    # So few rows at a time that the product stays in one thread: waking others costs more.
    block = max(16, _ONE_THREAD // size**2)
    for start in range(0, len(x), CHUNK):
        codes = rows.codes(x[start : start + CHUNK], y[start : start + CHUNK])
        products = np.zeros((size, size))
        for first in range(0, len(codes), block):
            part = codes[first : first + block]
            products += part.T @ part
        total[:-1] += products.astype(np.int64).ravel()
    total[-1] = len(x)
    return total


_PART = 1 << 24
"""Rows whose sums of products have room in 64 bits."""


def read_sums(lattice: RowLattice, flat: NDArray[Any]) -> MomentSums:
    """The sums in an array of `flat_sums`."""
    size = lattice.columns + lattice.outputs
    return MomentSums(flat[:-1].reshape(size, size), int(flat[-1]))


def sum_moments(rows: RowMap, x: Floats, y: Floats) -> MomentSums:
    """Sum the products of all columns exactly.

    Args:
        rows: Map of the rows.
        x: Features, one row per record.
        y: Targets, one row per record and one column per target.

    Returns:
        The sums. They are private, and sums of disjoint rows can be added.

    Examples:
        >>> import numpy
        >>> from discreet.models import PrivateLinearRegression
        >>> X = numpy.random.default_rng(1).uniform(0, 10, (500, 2))
        >>> model = PrivateLinearRegression(rho=1, bounds=(0, 10), target_bounds=(-10, 20))
        >>> model = model.fit(X, X @ [1, -0.5])
        >>> from discreet.models import regression
        >>> regression.sum_moments(model.moments_.map, X, X[:, :1]).total.shape
        (4, 4)
    """
    parts = range(0, len(x), _PART) or [0]
    flat = [flat_sums(rows, x[i : i + _PART], y[i : i + _PART]).astype(object) for i in parts]
    return read_sums(rows.lattice, narrow(np.add.reduce(flat)))

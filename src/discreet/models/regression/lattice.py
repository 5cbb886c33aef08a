"""The grid on which rows are counted: how far one of them can move the sums, in whole steps."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from discreet.core.check import count
from discreet.core.errors import InvalidArgument
from discreet.core.relation import Relation

STEPS = 1 << 14
"""Steps between the centre and the edge of the ball of features."""
LARGEST_TOTAL = 1 << 61


@dataclass(frozen=True, slots=True, kw_only=True)
class Lattice:
    """Rows ``(intercept, u, v)`` of integers: ``|u|^2 <= steps^2``, ``|v_i| <= target_steps``.

    ``u`` has one entry for each feature and ``v`` one for each output; ``intercept`` is the same
    number in each row, or 0 if there is none. Of these rows the Gram matrix of ``(intercept, u)``,
    its products with ``v``, and the squares of ``v`` are summed.
    """

    features: int
    outputs: int
    steps: int = STEPS
    target_steps: int
    intercept: int

    @classmethod
    def of(
        cls, *, features: int, outputs: int = 1, intercept: float = 0.5, cross: float = 1.0
    ) -> Lattice:
        """``cross``: the share of the products with the target relative to that of the matrix."""
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
        """Columns of the Gram matrix: the features, and the intercept if there is one."""
        return self.features + (self.intercept > 0)

    @property
    def row_squared(self) -> int:
        """The largest squared norm of a row of features with the intercept."""
        return self.steps**2 + self.intercept**2

    @property
    def target_squared(self) -> int:
        """The largest squared norm of a row of targets."""
        return self.outputs * self.target_steps**2

    @property
    def count_steps(self) -> int:
        """What a row adds to the count; the intercept counts by itself."""
        return 0 if self.intercept else self.row_squared // 4

    @property
    def most_rows(self) -> int:
        """Rows whose sums fit 64 bits for certain."""
        return LARGEST_TOTAL // max(self.row_squared, self.target_squared, 1)

    def joint(self, relation: Relation) -> int:
        """The largest squared move of (Gram matrix, products, count), all entries of the matrix.

        Theorem: with T^2 and V^2 the largest squared norms of a row and of its targets, one row
            that is added or removed moves them by ``T^4 + T^2 V^2`` at most, and attains it; one
            that is replaced by ``2 T^4 + 2 T^2 V^2 + V^4/2`` if ``V^2 <= 2 T^2``, else ``4 T^2
            V^2``. (In squares; the count adds ``c^2`` under add/remove.)
        Proof: docs/theory/regression.md. ``|uu' - ww'|^2 = |u|^4 + |w|^4 - 2 (u.w)^2`` and
            ``|uy - wz|^2`` is largest for z = -y; the best angle has ``u.w = V^2/2``; the value
            grows with both norms.
        Source: K4, K31.
        """
        row, target = self.row_squared, self.target_squared
        if relation is Relation.ADD_REMOVE:
            return row**2 + row * target + self.count_steps**2
        if relation is Relation.REPLACE_ONE:
            if target <= 2 * row:
                return 2 * row**2 + 2 * row * target + -(-(target**2) // 2)
            return 4 * row * target
        raise InvalidArgument(f"relation must be ADD_REMOVE or REPLACE_ONE, got {relation!r}.")

    def squares(self) -> int:
        """The largest squared move of the sums of squares of the targets, under both relations."""
        return self.outputs * self.target_steps**4

"""Declared columns: numbers between bounds, levels of categories, and products of columns.

Every row is encoded by itself, from what is declared alone: nothing is learned from the rows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from discreet.boundary.owners import owner_key
from discreet.boundary.values import as_double
from discreet.core._validate import finite
from discreet.core.errors import InvalidArgument
from discreet.models._labels import class_places
from discreet.models._model_inputs import (
    Floats,
    bounds_of,
    doubles,
    frame_arrays,
    frame_columns,
    names_of,
)

Declared: TypeAlias = tuple[Any, Any] | list[Any]
"""A tuple ``(lower, upper)`` of numbers, or a list of levels."""


@dataclass(frozen=True, slots=True)
class DeclaredColumns:
    """Columns as a code book declares them, and how they become numbers.

    A category becomes one 0/1 column for each level but the first, which is the base. A row with a
    missing value, or with a level that is not declared, is left out by the fit, unless `fill` says
    what stands in its place.

    Args:
        columns: For each column, in order, a tuple `(lower, upper)` of bounds or a list of levels.
        interactions: Pairs of columns whose products are added.
        fill: Values for missing and unreadable values, by column. They must come from public
            sources, not from the rows.

    Raises:
        InvalidArgument: A column is neither bounds nor levels, levels are repeated or fewer than
            two, or a pair or a value for missing ones does not fit.

    Privacy:
        Each row is encoded by itself, from declared constants. It costs no budget, and what it
        returns is as private as the rows.

    Examples:
        >>> from discreet.models import DeclaredColumns
        >>> declared = DeclaredColumns(
        ...     {"age": (18, 90), "smokes": ["no", "yes"]}, interactions=[("age", "smokes")]
        ... )
        >>> declared.terms
        ('age', 'smokes=yes', 'age:smokes=yes')
        >>> declared.encode([[40, "yes"], [30, "no"]]).tolist()
        [[40.0, 1.0, 40.0], [30.0, 0.0, 0.0]]

    See Also:
        [Fit a private linear regression](../how-to/regression.md).
    """

    columns: Mapping[str, Declared]
    interactions: Sequence[tuple[str, str]] = ()
    fill: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check what is declared."""
        if not self.columns:
            raise InvalidArgument("columns must name at least one column.")
        for name, declared in self.columns.items():
            if isinstance(declared, list):
                keys = {owner_key(level) for level in declared}
                if len(declared) < 2 or None in keys or len(keys) < len(declared):
                    raise InvalidArgument(
                        f"columns[{name!r}] must list at least two different levels."
                    )
            elif isinstance(declared, tuple):
                bounds_of(f"columns[{name!r}]", declared, columns=1)
            else:
                raise InvalidArgument(
                    f"columns[{name!r}] must be a tuple (lower, upper) or a list of levels."
                )
        for pair in self.interactions:
            if len(set(pair)) != 2 or not set(pair) <= set(self.columns):
                raise InvalidArgument("interactions must be pairs of two different columns.")
        for name, value in self.fill.items():
            if name not in self.columns:
                raise InvalidArgument(f"fill names {name!r}, which is none of the columns.")
            known = self.columns[name]
            if isinstance(known, tuple):
                finite(f"fill[{name!r}]", value)
            elif owner_key(value) not in {owner_key(level) for level in known}:
                raise InvalidArgument(f"fill[{name!r}] must be one of the levels of that column.")

    @classmethod
    def from_formula(
        cls,
        formula: str,
        columns: Mapping[str, Declared],
        *,
        fill: Mapping[str, Any] | None = None,
    ) -> Self:
        """Choose declared columns and interactions by a formula.

        Args:
            formula: Terms with `+` between them: a column, `C(column)` for one that must have
                levels, `a:b` for a product, `a * b` for both columns and their product. What is
                before a `~` is the name of the target, which is not declared here.
            columns: Bounds or levels of each column that the formula names; it may have more.
            fill: Values for missing and unreadable values, by column.

        Returns:
            The declared columns, in the order of the formula.

        Raises:
            InvalidArgument: The formula has something else, a column is not declared or named
                twice, or a product is of columns that are not terms by themselves.

        Examples:
            >>> from discreet.models import DeclaredColumns
            >>> code_book = {"age": (18, 90), "ward": ["a", "b", "c"], "trained": [0, 1]}
            >>> DeclaredColumns.from_formula("works ~ C(ward) + age * trained", code_book).terms
            ('ward=b', 'ward=c', 'age', 'trained=1', 'age:trained=1')
        """
        names, pairs = _terms_of(formula)
        for name, category in names.items():
            if name not in columns:
                raise InvalidArgument(
                    f"formula names {name!r}, which columns does not declare: {list(columns)}."
                )
            if category and not isinstance(columns[name], list):
                raise InvalidArgument(f"C({name}) needs a list of levels in columns[{name!r}].")
        lone = [name for pair in pairs for name in pair if name not in names]
        if lone:
            raise InvalidArgument(
                f"formula has a product with {lone[0]!r}, which must be a term by itself, too."
            )
        given = dict(fill or {})
        for name in given.keys() - columns.keys():
            raise InvalidArgument(f"fill names {name!r}, which is none of the columns.")
        kept = {name: value for name, value in given.items() if name in names}
        return cls({name: columns[name] for name in names}, interactions=pairs, fill=kept)

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the columns, as they come."""
        return tuple(self.columns)

    @property
    def categories(self) -> tuple[str, ...]:
        """Names of the columns that have levels."""
        return tuple(name for name, known in self.columns.items() if isinstance(known, list))

    @property
    def terms(self) -> tuple[str, ...]:
        """Names of the encoded columns."""
        found = {name: self._terms(name) for name in self.columns}
        return (
            *(term for terms in found.values() for term in terms),
            *(
                f"{one}:{other}"
                for a, b in self.interactions
                for one, other in product(found[a], found[b])
            ),
        )

    @property
    def bounds(self) -> tuple[tuple[float, float], ...]:
        """Bounds of the encoded columns."""
        found = {name: self._bounds(name) for name in self.columns}
        crossed = []
        for a, b in self.interactions:
            for one, other in product(found[a], found[b]):
                ends = [left * right for left, right in product(one, other)]
                crossed.append((min(ends), max(ends)))
        return (*(pair for pairs in found.values() for pair in pairs), *crossed)

    @property
    def dimensions(self) -> float:
        """About how many numbers a row has, for the radius of the ball.

        A category has one level at a time: its 0/1 columns together count as four at most.
        """
        # Proof: scaled by a half, the columns of a category have the mean square
        #   `sum 4 p (1 - p) <= 4`, however many there are.
        sizes = {name: min(len(self._terms(name)), 4) for name in self.columns}
        crossed = (min(sizes[a] * sizes[b], 4) for a, b in self.interactions)
        return float(sum(sizes.values()) + sum(crossed))

    def encode(self, rows: Any) -> Floats:
        """Encode rows as numbers.

        Args:
            rows: A data frame with these columns, or an array or a list of rows in their order.

        Returns:
            One row for each; NaN where a value is missing or not declared.

        Raises:
            InvalidArgument: A column is missing, or the rows have another number of columns.

        Privacy:
            Each row is encoded by itself. The result is as private as the rows.

        Examples:
            >>> import polars
            >>> from discreet.models import DeclaredColumns
            >>> declared = DeclaredColumns({"sex": ["f", "m"], "age": (0, 120)}, fill={"age": 40})
            >>> frame = polars.DataFrame({"age": [31, None], "sex": ["m", "f"]})
            >>> declared.encode(frame).tolist()
            [[1.0, 31.0], [0.0, 40.0]]
        """
        held = self._columns(rows)
        found = {name: self._encoded(name, values) for name, values in held.items()}
        crossed = [
            found[a][:, one] * found[b][:, other]
            for a, b in self.interactions
            for one, other in product(range(found[a].shape[1]), range(found[b].shape[1]))
        ]
        return np.column_stack([*found.values(), *crossed])

    def _terms(self, name: str) -> tuple[str, ...]:
        declared = self.columns[name]
        if isinstance(declared, tuple):
            return (name,)
        return tuple(f"{name}={level}" for level in declared[1:])

    def _bounds(self, name: str) -> tuple[tuple[float, float], ...]:
        declared = self.columns[name]
        if isinstance(declared, tuple):
            return ((float(declared[0]), float(declared[1])),)
        return ((0.0, 1.0),) * (len(declared) - 1)

    def _columns(self, rows: Any) -> dict[str, NDArray[Any]]:
        """Each declared column as an array, of numbers or of objects."""
        if isinstance(rows, list | tuple):
            return self._of_lists(rows)
        known = frame_columns(rows)
        if known is not None:
            names = names_of(rows)
            if names is None or not set(self.columns) <= set(names):
                raise InvalidArgument(f"the frame must have the columns {list(self.columns)}.")
            arrays = frame_arrays("X", rows)
            return {name: arrays[names.index(name)] for name in self.columns}
        array = np.asarray(rows) if isinstance(rows, np.ndarray) else None
        if array is not None and array.ndim == 1 and array.dtype.kind == "O":
            return self._of_lists(list(array))
        if array is None or array.ndim != 2 or array.shape[1] != len(self.columns):
            raise InvalidArgument(
                f"X must be a data frame, or an array with the columns {list(self.columns)}."
            )
        return {name: array[:, place] for place, name in enumerate(self.columns)}

    def _of_lists(self, rows: Sequence[Any]) -> dict[str, NDArray[Any]]:
        """Row by row: one of another length has no values at all."""
        found = {name: np.full(len(rows), None, dtype=object) for name in self.columns}
        for place, row in enumerate(rows):
            if isinstance(row, list | tuple) and len(row) == len(self.columns):
                for name, value in zip(self.columns, row, strict=True):
                    found[name][place] = value
        return found

    def _encoded(self, name: str, values: NDArray[Any]) -> Floats:
        declared = self.columns[name]
        if isinstance(declared, tuple):
            return self._number(name, declared, values)[:, None]
        levels = np.empty(len(declared), dtype=object)
        levels[:] = declared
        places = class_places(values, levels)
        if name in self.fill:
            (instead,) = class_places(np.array([self.fill[name]], dtype=object), levels)
            places = np.where(np.isnan(places), instead, places)
        flags: Floats = (places[:, None] == np.arange(1, len(declared))).astype(np.float64)
        flags[np.isnan(places)] = math.nan
        return flags

    def _number(self, name: str, declared: tuple[Any, Any], values: NDArray[Any]) -> Floats:
        if values.dtype.kind in "biuf":
            found = doubles(values)
        else:
            found = np.array([as_double(value) for value in values], dtype=np.float64)
        if name in self.fill:
            found = np.where(np.isnan(found), float(self.fill[name]), found)
        # Before products are formed, so that those lie within their bounds.
        return np.clip(found, float(declared[0]), float(declared[1]))


_NAME = re.compile(r"C\(\s*([^\W\d]\w*)\s*\)|([^\W\d]\w*)")


def _terms_of(formula: str) -> tuple[dict[str, bool], list[tuple[str, str]]]:
    """Columns of a formula, with whether they must have levels, and pairs of them."""
    if formula.count("~") > 1:
        raise InvalidArgument("formula must be a text such as 'y ~ a + C(b) + a:b'.")
    names: dict[str, bool] = {}
    pairs: list[tuple[str, str]] = []
    for term in formula.rsplit("~", maxsplit=1)[-1].split("+"):
        sign = next((one for one in "*:" if one in term), "")
        read = [_NAME.fullmatch(part.strip()) for part in (term.split(sign) if sign else [term])]
        known = [one for one in read if one is not None]
        if len(known) < len(read) or len(read) > 2:
            raise InvalidArgument(
                f"formula has the term {term.strip()!r}: terms are a column, C(column), a:b and "
                "a * b. An intercept is always there."
            )
        found = {one[1] or one[2]: one[1] is not None for one in known}
        if sign:
            pair = tuple(found)
            if len(pair) != 2 or pair in pairs or pair[::-1] in pairs:
                raise InvalidArgument(f"formula has the product {term.strip()!r} twice, or of one.")
            pairs.append((pair[0], pair[1]))
        if sign != ":":
            twice = [name for name in found if name in names]
            if twice:
                raise InvalidArgument(f"formula names {twice[0]!r} twice.")
            names.update(found)
    return names, pairs

"""Tables that were released one by one, put together by least squares with their known noise."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from discreet.accounting.guarantee import Guarantee
from discreet.core import canonical_json as canonical
from discreet.core.errors import InvalidArgument
from discreet.marginals.columns import MarginalColumn
from discreet.marginals.design import (
    EACH,
    MarginalDesign,
    Place,
    TableKey,
    places_of,
    subsets,
    support,
)
from discreet.marginals.measured_tables import MeasuredTables
from discreet.marginals.plan import check_sizes
from discreet.marginals.release import MarginalRelease, read_release, told
from discreet.marginals.spine import SpineDesign
from discreet.noise.distribution import Ints
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace

PUBLIC = DiscreteGaussian(square=Fraction(1, 1 << 20))
"""So little noise that it is none: of tables that are taken as public."""
_AGREE = 1e-9


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ReconciledRelease(MarginalRelease):
    """Hold the tables of several releases, put together by least squares.

    They agree, and no error is larger than before. Made by `discreet.reconcile`. The guarantee is
    the composition of those of the releases: reconciling reads released numbers alone.

    Attributes:
        design: What was measured, with which noise.
        measured: Noisy measurements of all releases.
        guarantee: Composition of the guarantees of the releases.
        max_rows_per_unit: Most rows of one privacy unit that were used, where a release says so.
        private: Whether the noise came from a private random source.
        interval_seed: Seed of the copies of noise that `answer_intervals` compares with.
        titles: What was put together.
        assumed: What the releases do not say, and the result needs to be right.
        public: Tables that were taken as public. They are not protected.

    Examples:
        >>> import discreet
        >>> import pandas as pd
        >>> people = discreet.table(
        ...     pd.DataFrame({"smokes": [True, False] * 200}),
        ...     columns={"smokes": discreet.boolean()},
        ...     budget=10,
        ... )
        >>> total, parts = people.count(epsilon=1), people.count(by="smokes", epsilon=1)
        >>> both = discreet.reconcile([total, parts])
        >>> bool(abs(both.table(["smokes"]).cells.sum() - both.total) < 1e-6)
        True
    """

    titles: tuple[str, ...]
    assumed: tuple[str, ...]
    public: tuple[str, ...] = ()

    def to_json(self) -> str:
        """Return the whole result as JSON text, for `from_json`.

        Returns:
            Text with the noisy measurements of all releases, and the guarantee.

        Examples:
            >>> discreet.ReconciledRelease.from_json(both.to_json()).titles
            ('count', 'count by smokes')
        """
        words = {"titles": self.titles, "assumed": self.assumed, "public": self.public}
        section = {name: list(one) for name, one in words.items()}
        return json.dumps({**json.loads(super().to_json()), "reconciled": section})

    @classmethod
    def from_json(cls, text: str) -> ReconciledRelease:
        """Read a result back from the text of `to_json`.

        Args:
            text: Text of `to_json`.

        Returns:
            The result.

        Raises:
            InvalidArgument: The text is no result of this kind.

        Examples:
            >>> discreet.ReconciledRelease.from_json(both.to_json()).total == both.total
            True
        """
        held = read_release(text)
        with canonical.reading("reconciled releases"):
            section = json.loads(text)["reconciled"]
            titles, assumed, public = (
                tuple([str(one) for one in section[name]])
                for name in ("titles", "assumed", "public")
            )
            return cls(**held, titles=titles, assumed=assumed, public=public)

    def _title(self) -> str:
        return f"{len(self.titles)} releases reconciled"

    def __str__(self) -> str:
        lines = [told(self, self._title())]
        lines += [f"  not protected, taken as public: {one}" for one in self.public]
        if self.public:
            lines.append(
                "  the guarantee holds for neighbors that agree in these numbers, besides what "
                "they tell"
            )
        return "\n".join([*lines, *[f"  assumed: {one}" for one in self.assumed]])

    __repr__ = __str__


@dataclass(frozen=True, kw_only=True)
class OneTable:
    """A released table: its cells, and the noise that is in each of them."""

    columns: tuple[MarginalColumn, ...]
    values: Ints
    noise: DiscreteGaussian | DiscreteLaplace


def put_together(
    tables: Sequence[OneTable],
    measured: Sequence[MeasuredTables],
    *,
    guarantee: Guarantee,
    titles: Sequence[str],
    assumed: Sequence[str],
    public: Sequence[OneTable] = (),
) -> ReconciledRelease:
    """All tables of one set of rows, by generalized least squares."""
    # Theorem: the result's tables are the generalized least-squares estimates; they are unbiased,
    #   agree, and have no larger variance than before. Public tables are met exactly.
    # Proof: `weighted_parts`; a public table enters with a variance that is nothing beside others.
    # Source: docs/theory/marginals.md.
    # Needs: all tables count the same rows, and their noises are independent.
    columns = _columns([*tables, *public], measured)
    numbers = {column.name: i for i, column in enumerate(columns)}
    places: list[Place] = []
    laws: list[DiscreteGaussian | DiscreteLaplace] = []
    values: list[Ints] = []
    asked: list[TableKey] = []
    for one in [*tables, *public]:
        key, found = _sorted(one.columns, one.values, columns, numbers)
        places.append(tuple([(i, EACH) for i in key]))
        laws.append(one.noise)
        values.append(found)
        asked.append(key)
    for many in measured:
        if isinstance(many.design, SpineDesign):
            raise InvalidArgument("releases with a spine agree already, and join no others.")
        design, own = many.design, [numbers[column.name] for column in many.columns]
        for place, law, group in zip(design.places, design.laws, many.measured, strict=True):
            held = [many.columns[i] for i, _ in place]
            key, found = _sorted(held, group, columns, numbers)
            levels = {own[i]: level for i, level in place}
            places.append(tuple([(i, levels[i]) for i in key]))
            laws.append(law)
            values.append(found)
        asked += [tuple(sorted(own[i] for i in key)) for key in design.tables]
    design = MarginalDesign(
        columns=columns,
        tables=tuple(dict.fromkeys(asked)),
        plain=True,
        places=tuple(places),
        laws=tuple(laws),
    )
    check_sizes(columns, design.tables)
    places_of(design.tables, columns)
    if public:
        _agree(
            [
                (support(places[len(tables) + k]), values[len(tables) + k])
                for k in range(len(public))
            ]
        )
    return ReconciledRelease(
        design=design,
        measured=tuple(values),
        guarantee=guarantee,
        max_rows_per_unit=max([one.max_rows_per_unit for one in measured], default=1),
        private=all(one.private for one in measured),
        titles=tuple(titles),
        assumed=tuple(assumed),
        public=tuple(
            [", ".join(column.name for column in one.columns) or "all rows" for one in public]
        ),
    )


def _columns(
    tables: Sequence[OneTable], measured: Sequence[MeasuredTables]
) -> tuple[MarginalColumn, ...]:
    found: dict[str, MarginalColumn] = {}
    for columns in [*[one.columns for one in measured], *[one.columns for one in tables]]:
        for column in columns:
            known = found.setdefault(column.name, column)
            if set(map(repr, known.labels)) != set(map(repr, column.labels)):
                raise InvalidArgument(
                    f"releases must have the same values of column {column.name!r}."
                )
    return tuple(found.values())


def _sorted(
    own: Sequence[MarginalColumn],
    values: Ints,
    columns: Sequence[MarginalColumn],
    numbers: Mapping[str, int],
) -> tuple[TableKey, Ints]:
    """Cells, or contrasts, in the order of all columns and of their values."""
    # Proof for contrasts: `K_n` commutes with any order of the n values.
    cells = values.reshape([column.size for column in own])
    for axis, column in enumerate(own):
        known = columns[numbers[column.name]]
        cells = np.take(cells, [column.place(label) for label in known.labels], axis=axis)
    order = sorted(range(len(own)), key=lambda axis: numbers[own[axis].name])
    key = tuple([numbers[own[axis].name] for axis in order])
    return key, np.array(cells.transpose(order))


def _agree(public: Sequence[tuple[TableKey, Ints]]) -> None:
    """Refuse public tables that contradict each other."""
    known: dict[TableKey, Ints] = {}
    for key, cells in public:
        for part in subsets(key):
            margin = cells.sum(axis=tuple([axis for axis, i in enumerate(key) if i not in part]))
            other = known.setdefault(part, margin)
            if np.any(np.abs(other - margin) > _AGREE * np.maximum(np.abs(margin), 1)):
                first, second = (np.atleast_1d(one).ravel() for one in (other, margin))
                at = int(np.flatnonzero(first != second)[0])
                raise InvalidArgument(
                    "public_tables must not contradict each other: a common number is "
                    f"{first[at]:,} in one and {second[at]:,} in another."
                )

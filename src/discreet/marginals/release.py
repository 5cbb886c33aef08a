"""Releases of many tables: noisy measurements from which every table follows, and they agree."""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

from discreet.accounting.guarantee import Guarantee, describe_epsilon
from discreet.core import _validate as check
from discreet.core import canonical_json as canonical
from discreet.core.errors import InvalidArgument
from discreet.core.number_format import number
from discreet.core.tabular import Record
from discreet.marginals._at_once import widths_at_once
from discreet.marginals.columns import MarginalColumn, cells, read_column
from discreet.marginals.design import (
    EACH,
    MarginalDesign,
    TableKey,
    closure,
    contrast,
    measured_shape,
    subsets,
    support,
    table_key,
)
from discreet.marginals.measured_tables import MarginalTable, MeasuredTables, rounding
from discreet.marginals.nonnegative import NonnegativeMarginals, nonnegative_tables
from discreet.marginals.spine import SpineDesign, design_of, read_spine
from discreet.marginals.synthetic_rows import SyntheticRows, Values, synthesize
from discreet.noise.distribution import Floats
from discreet.noise.gaussian import DiscreteGaussian
from discreet.query._noisy_integers import distribution_content, read_distribution
from discreet.query.result import Result, records
from discreet.ranges._measurements import packed, unpacked

VERSION = 1
_LEVEL = 0.95
_SEEDS = 1 << 63


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class MarginalRelease(MeasuredTables, Result):
    """Many tables of the same rows, released at once: all of them agree.

    Made by `Table.marginals`, or by the `release` of a plan. Whatever is asked of it costs nothing.

    Attributes:
        design: What was measured, with which noise.
        measured: Noisy measurements.
        guarantee: Privacy guarantee of the release.
        max_rows_per_unit: Most rows of one privacy unit that were used.
        private: Whether the noise came from a private random source.
        interval_seed: Seed of the copies of noise that `answer_intervals` compares with. It is not
            that of the noise of the release.

    Examples:
        >>> import discreet
        >>> import pandas as pd
        >>> from discreet import col
        >>> people = discreet.table(
        ...     pd.DataFrame({"age": [23, 35, 41, 67] * 100, "smokes": [True, False] * 200}),
        ...     columns={"age": discreet.integer(0, 120), "smokes": discreet.boolean()},
        ...     budget=discreet.approx_dp(100, 1e-6),
        ... )
        >>> groups = {"age group": col("age").cut([30, 50]), "smokes": "smokes"}
        >>> release = people.marginals([["age group", "smokes"]], columns=groups, rho=10)
        >>> low, high = release.table(["smokes"]).interval(0.999999)
        >>> bool((low <= 200).all() and (high >= 200).all())
        True
    """

    # Drawn when the release is made, by itself: a seed of the noise would undo all protection.
    interval_seed: int = field(default_factory=lambda: secrets.randbelow(_SEEDS))

    @property
    def total(self) -> float:
        """The estimated number of rows."""
        return float(self.design.table((), self._parts))

    def table(self, by: Iterable[str] = ()) -> MarginalTable:
        """Return one table: asked for, or any subset of the columns of one that was.

        Args:
            by: Names of its columns, in the order of the result; none for the number of all rows.

        Returns:
            The estimate of each cell, with standard deviations and intervals. Summed over a column,
            it is exactly the table without that column.

        Raises:
            InvalidArgument: The table was not planned.

        Examples:
            >>> table = release.table(["age group", "smokes"])
            >>> len(table)
            6
        """
        listed = (by,) if isinstance(by, str) else tuple(by)
        key = table_key(listed, self.columns, self.design.answered)
        return self._table(key)

    def tables(self) -> Iterator[MarginalTable]:
        """Return all tables that were asked for, one after the other.

        Returns:
            The tables, in the order of the question.

        Examples:
            >>> [len(table) for table in release.tables()]
            [6]
        """
        return map(self._table, self.design.tables)

    def answer(self, wanted: Mapping[str, object]) -> float:
        """Return the number of rows with some values.

        Args:
            wanted: For each of some columns of one table a value, a pair (first, last) for a range
                in the declared order, or a list of values.

        Returns:
            The estimate. It can be negative.

        Raises:
            InvalidArgument: The columns are not those of a table, or a value is not declared.

        Examples:
            >>> whole = release.answer({"smokes": [True, False]})
            >>> abs(whole - release.total) < 1e-6
            True
        """
        weights = self._weights(wanted)
        found = self.design.table(tuple(sorted(weights)), self._parts)
        for _, weight in sorted(weights.items()):
            found = np.tensordot(weight, found, axes=1)
        return float(found)

    def answer_std(self, wanted: Mapping[str, object]) -> float:
        """Return the exact standard deviation of an answer.

        Args:
            wanted: As in `answer`.

        Returns:
            The standard deviation of the noise.

        Raises:
            InvalidArgument: The columns are not those of a table, or a value is not declared.

        Examples:
            >>> release.answer_std({"smokes": True}) > 0
            True
        """
        return math.sqrt(self.design.answer_variance(self._weights(wanted)))

    def answer_interval(
        self, wanted: Mapping[str, object], *, confidence: float = _LEVEL
    ) -> tuple[float, float]:
        """Return bounds that hold the exact number of rows with some values.

        Args:
            wanted: As in `answer`.
            confidence: Probability with which the interval holds.

        Returns:
            The lower and the upper end.

        Raises:
            InvalidArgument: The columns are not those of a table, a value is not declared, or the
                confidence is not between 0 and 1.

        Examples:
            >>> low, high = release.answer_interval({"smokes": True})
            >>> low < release.answer({"smokes": True}) < high
            True
        """
        inside = float(check.probability("confidence", confidence, zero=False, one=False))
        value = self.answer(wanted)
        width = self.design.answer_width(self._weights(wanted), 1 - inside)
        width += rounding(np.array(self.total))
        return value - width, value + width

    def answer_intervals(
        self, wanted: Iterable[Mapping[str, object]], *, confidence: float = _LEVEL
    ) -> list[tuple[float, float]]:
        """Return bounds that hold for many answers at once.

        The answers can depend on each other, such as all ranges of a column. Fresh copies of the
        whole noise say how far off the worst of them is, whatever they have in common. Choose the
        answers before you see numbers.

        Args:
            wanted: Answers, each as in `answer`.
            confidence: Probability with which all intervals hold at once.

        Returns:
            The lower and the upper end for each answer.

        Raises:
            InvalidArgument: The columns of an answer are not those of a table, a value is not
                declared, there are too many answers, or the confidence is not between 0 and 1.

        Privacy:
            Copies are drawn from the public law of the noise and from a seed of their own, which is
            stored with the release and has nothing to do with its noise.

        Examples:
            >>> bounds = release.answer_intervals([{"smokes": True}, {"smokes": False}, {}])
            >>> len(bounds)
            3
        """
        inside = float(check.probability("confidence", confidence, zero=False, one=False))
        asked = check.as_tuple("wanted", wanted)
        if not asked or isinstance(wanted, Mapping):
            raise InvalidArgument("wanted must list answers, such as [{'sex': 'f'}, {'sex': 'm'}].")
        widths = widths_at_once(
            self.design,
            [self._weights(one) for one in asked],
            confidence=inside,
            seed=self.interval_seed,
        )
        room = rounding(np.array(self.total))
        values = [self.answer(one) for one in asked]
        pairs = zip(values, (widths + room).tolist(), strict=True)
        return [(value - width, value + width) for value, width in pairs]

    def _weights(self, wanted: Mapping[str, object]) -> dict[int, Floats]:
        if not isinstance(wanted, Mapping):
            raise InvalidArgument(
                "wanted must map columns to values, such as {'sex': 'f', 'age': (30, 44)}; got "
                f"{type(wanted).__name__}."
            )
        table_key(tuple(wanted), self.columns, self.design.answered)
        numbers = {column.name: i for i, column in enumerate(self.columns)}
        return {
            numbers[name]: self.columns[numbers[name]].weights(one) for name, one in wanted.items()
        }

    def nonnegative(self, *, integers: bool = False) -> NonnegativeMarginals:
        """Return the tables without negative cells, to print them.

        This is post-processing: it costs nothing. Totals and small tables move less than the cells
        of large ones. The numbers are biased; each table states how far they are from the unbiased
        ones, and keeps the intervals of these.

        Args:
            integers: Whether cells are whole numbers that add up. Only for tables that share no
                column.

        Returns:
            Tables that can be printed.

        Raises:
            InvalidArgument: `integers` is asked of tables that share columns.

        Examples:
            >>> bool((release.nonnegative().table(["smokes"]).cells >= 0).all())
            True
        """
        return nonnegative_tables(self, integers=check.flag("integers", integers))

    def synthesize(
        self,
        size: int | None = None,
        *,
        impossible: Iterable[Mapping[str, object]] = (),
        values: Values = "uniform",
        seed: int | None = None,
    ) -> SyntheticRows:
        """Make synthetic rows whose tables are near the released ones.

        This is post-processing: it costs nothing. Plan all pairs of columns for it. Rows are made
        after the tables that were asked for, and `fidelity` states a bound on the error of each of
        them. Nothing is promised of other tables, nor of models.

        Args:
            size: Number of rows. If None, the released estimate of the number of rows.
            impossible: Combinations that no row may have, for public reasons, such as
                `[{"age": "< 5", "status": "married"}]`: a value, a pair (first, last) or a list of
                values for each of some columns.
            values: What stands for a bin of numbers or dates: "uniform" (one of its numbers, each
                as likely), "middle" or "label".
            seed: Seed of the public randomness, to make the same rows again. If None, a fresh one.

        Returns:
            The rows.

        Raises:
            InvalidArgument: The size is no number of rows that fits, or a combination names no
                value or leaves none.

        Privacy:
            The rows have the guarantee of the release: they follow from it and from public
            randomness.

        Examples:
            >>> synthetic = release.synthesize(size=100, seed=1)
            >>> len(synthetic.to_pandas())
            100
        """
        return synthesize(self, size=size, impossible=impossible, values=values, seed=seed)

    def rows(self, confidence: float = _LEVEL, *, simultaneous: bool = False) -> list[Record]:
        """List one record for each cell of each table that was asked for.

        Args:
            confidence: Probability with which each interval holds, or all of them.
            simultaneous: Whether the intervals of all cells of all these tables hold at once.

        Returns:
            Dictionaries with `table`, `cell`, `value`, `std`, `low` and `high`. The rows of
            `table(...)` have a value of each column instead.

        Raises:
            InvalidArgument: The confidence is not between 0 and 1.

        Examples:
            >>> len(release.rows(simultaneous=True))
            6
        """
        inside = float(check.probability("confidence", confidence, zero=False, one=False))
        many = sum(cells([self.columns[i] for i in key]) for key in self.design.tables)
        found: list[Record] = []
        for table in self.tables():
            level = 1 - (1 - inside) * (len(table) / many if simultaneous else 1)
            low, high = table.interval(level, simultaneous=simultaneous)
            title = ", ".join([column.name for column in table.columns]) or "all rows"
            labels = product(*[column.labels for column in table.columns])
            found += records(
                ("table", "cell"),
                [(title, ", ".join(map(str, each))) for each in labels],
                value=table.values,
                std=np.atleast_1d(table.std),
                low=np.atleast_1d(low),
                high=np.atleast_1d(high),
            )
        return found

    def to_json(self) -> str:
        """Return the whole release as JSON text, for `from_json`.

        Returns:
            Text with the columns, the noisy measurements and the guarantee.

        Examples:
            >>> from discreet import MarginalRelease
            >>> MarginalRelease.from_json(release.to_json()).total == release.total
            True
        """
        design = self.design
        content = {
            "discreet_marginals": VERSION,
            "columns": [column.content() for column in design.columns],
            "tables": [list(table) for table in design.tables],
            "plain": design.plain,
            "places": [[list(pair) for pair in place] for place in design.places],
            "noise": [distribution_content(law) for law in design.laws],
            "measured": [packed(group.ravel()) for group in self.measured],
            "guarantee": json.loads(self.guarantee.to_json()),
            "max_rows_per_unit": self.max_rows_per_unit,
            "private": self.private,
            "interval_seed": self.interval_seed,
        }
        if isinstance(design, SpineDesign):
            content["spine"] = design.spine.content()
        return json.dumps(content)

    @classmethod
    def from_json(cls, text: str) -> MarginalRelease:
        """Read a release back from the text of `to_json`.

        Args:
            text: Text of `to_json`.

        Returns:
            The release.

        Raises:
            InvalidArgument: The text is no release of this kind.

        Examples:
            >>> from discreet import MarginalRelease
            >>> MarginalRelease.from_json(release.to_json()).guarantee == release.guarantee
            True
        """
        return MarginalRelease(**read_release(text))

    def _title(self) -> str:
        many = len(self.design.tables)
        return f"{many:,} table{'s' * (many > 1)} that agree"

    def __str__(self) -> str:
        return told(self, self._title())

    __repr__ = __str__


def told(release: MarginalRelease, title: str) -> str:
    """A release in words: not every cell of it."""
    whole = release._table(())  # noqa: SLF001 - same package
    low, high = whole.interval()
    total, low, high = (number(one, error=whole.std) for one in (whole.value, low, high))
    paid = release.guarantee
    kind = "Laplace noise on tables" if release.design.plain else "Gaussian noise on contrasts"
    note = "" if release.private else "; made with a seed: not private"
    names = [", ".join(column.name for column in t.columns) for t in _first(release)]
    left = len(release.design.tables) - len(names)
    many = len(release.measured)
    return "\n".join(
        [
            f"{title} ({describe_epsilon(paid)}, {paid.relation.value}{note})",
            f"  {many:,} {'measurement' if many == 1 else 'measurements'}, {kind}",
            f"  all rows: {total}  (95% between {low} and {high})",
            *[f"  {name or 'all rows'}" for name in names],
            *([f"  ... and {left:,} more"] if left else []),
        ]
    )


_SHOWN = 10


def _first(release: MarginalRelease) -> list[MarginalTable]:
    keys = release.design.tables[:_SHOWN]
    return [release._table(key) for key in keys]  # noqa: SLF001 - same package


def read_release(text: str) -> dict[str, Any]:
    """The fields of a release from its text; what does not fit together is refused."""
    with canonical.reading("a release of many tables"):
        content = json.loads(text)
        if content["discreet_marginals"] != VERSION:
            raise InvalidArgument("text is a release of many tables of another version.")
        columns = tuple([read_column(one) for one in content["columns"]])
        tables = tuple([tuple([_index(i, columns) for i in one]) for one in content["tables"]])
        plain = bool(content["plain"])
        places = tuple(
            [
                tuple([(_index(i, columns), int(level)) for i, level in one])
                for one in content["places"]
            ]
        )
        laws = tuple([read_distribution(law) for law in content["noise"]])
        spine = read_spine(content["spine"], columns) if "spine" in content else None
        design = design_of(
            columns=columns, tables=tables, plain=plain, places=places, laws=laws, spine=spine
        )
        _check_design(design)
        measured = []
        for place, group in zip(places, content["measured"], strict=True):
            measured.append(unpacked(group).reshape(measured_shape(place, columns, plain=plain)))
        return {
            "design": design,
            "measured": tuple(measured),
            "guarantee": Guarantee.from_json(json.dumps(content["guarantee"])),
            "max_rows_per_unit": check.count("max_rows_per_unit", content["max_rows_per_unit"]),
            "private": bool(content["private"]),
            # Texts from before copies were drawn have none: any that was not chosen will do.
            "interval_seed": check.count(
                "interval_seed", content.get("interval_seed", 0), minimum=0
            ),
        }


def _index(number_of: object, columns: tuple[MarginalColumn, ...]) -> int:
    if type(number_of) is not int or not 0 <= number_of < len(columns):
        raise InvalidArgument("text must name columns by their numbers.")
    return number_of


def _check_design(design: MarginalDesign) -> None:
    ascending = [*design.tables, *[tuple([i for i, _ in place]) for place in design.places]]
    if any(list(one) != sorted(set(one)) for one in ascending) or not design.tables:
        raise InvalidArgument("text must list the columns of each table once, in their order.")
    # Only plain tables can be measured twice: in releases that were reconciled.
    repeated = len(set(design.places)) != len(design.places) and not design.plain
    if len(design.laws) != len(design.places) or repeated:
        raise InvalidArgument("text must have one noise for each measurement.")
    if isinstance(design, SpineDesign):
        fits = design.complete()
    elif design.plain:
        known: set[TableKey] = set()
        for place in design.places:
            known.update((support(place),) if contrast(place) else subsets(support(place)))
        levels = {level for place in design.places for _, level in place}
        fits = (
            levels <= {EACH, 1}
            and known >= set(closure(design.tables))
            and all(column.chain == (1, column.size) for column in design.columns)
        )
    else:
        fits = set(design.places) == set(design.bases) and all(
            isinstance(law, DiscreteGaussian) for law in design.laws
        )
    if not fits:
        raise InvalidArgument("text must hold the measurements of all its tables.")

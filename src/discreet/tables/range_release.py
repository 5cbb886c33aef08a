"""Releases that answer every range or rectangle of a table's columns, with their receipts."""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from typing import Any, TypeAlias

from discreet.accounting.guarantee import describe_epsilon
from discreet.core.errors import InvalidArgument
from discreet.core.number_format import number
from discreet.core.relation import NeighboringRelation
from discreet.data.program import ExactResult
from discreet.ledger.account import Receipt
from discreet.noise.random_source import RandomSource
from discreet.query._release_plan import PlannedScan, TableSpec
from discreet.ranges.grid.release import GridRelease
from discreet.ranges.grid.table_query import GridQuery, PlannedGrid
from discreet.ranges.release import RangeRelease
from discreet.ranges.table_query import ROWS, PlannedRanges, with_limits
from discreet.tables._about import about_cells
from discreet.tables._public_facts import cells_facts
from discreet.tables.release import describe_protection, read_receipt, receipt_content

_SECTION = "release"
# What a section of the JSON calls the fields.
_WORDS = {
    "title": "title",
    "question": "query_text",
    "mechanism": "mechanism",
    "protects": "privacy_statement",
}


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ChargedRelease:
    """What a table adds to an artifact: the question in words, and the receipt."""

    title: str
    query_text: str
    mechanism: str
    privacy_statement: str
    receipt: Receipt
    _sentences: tuple[str, ...] = ()

    @property
    def about(self) -> tuple[str, ...]:
        """What the numbers leave out, and what their intervals cover, in sentences.

        Contribution limits, filter, bounds, and what happens with unknown values. It follows from
        the query and the declarations alone, so it is public and costs nothing.

        Examples:
            >>> import discreet
            >>> import pandas as pd
            >>> rows = pd.DataFrame({"age": [23, 35, 41] * 50})
            >>> people = discreet.table(rows, columns={"age": discreet.integer(0, 99)}, budget=10)
            >>> people.ranges("age", epsilon=1).about[-1]
            'the intervals cover the noise only'
        """
        return self._sentences or (self.privacy_statement,)  # versions before knew only that

    def _with_section(self, text: str) -> str:
        words = {word: getattr(self, name) for word, name in _WORDS.items()}
        about = {"about": list(self._sentences)} if self._sentences else {}
        section = {**words, **about, "receipt": receipt_content(self.receipt)}
        return json.dumps({**json.loads(text), _SECTION: section})


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ChargedRangeRelease(RangeRelease, ChargedRelease):
    """Hold noisy measurements of a table's column, which answer every range.

    The JSON of `to_json` can also be read by `RangeRelease.from_json`.

    Attributes:
        title: What the release is, in words.
        query_text: Query in words.
        mechanism: Mechanisms that added the noise, in words.
        privacy_statement: Who is protected, in words.
        receipt: Entry of the ledger that paid for it.

    Examples:
        >>> import discreet
        >>> import pandas as pd
        >>> rows = pd.DataFrame({"age": [23, 35, 41] * 50})
        >>> people = discreet.table(rows, columns={"age": discreet.integer(0, 99)}, budget=10)
        >>> release = people.ranges("age", epsilon=1)
        >>> release.title, release.receipt.guarantee.epsilon()
        ('ranges of age', 1.0)
    """

    def to_json(self) -> str:
        """Return the whole release as JSON text, for `from_json`.

        `RangeRelease.from_json` reads it as well.

        Returns:
            The text.

        Examples:
            >>> discreet.RangeRelease.from_json(release.to_json()).total == release.total
            True
        """
        return self._with_section(super().to_json())

    @classmethod
    def from_json(cls, text: str) -> ChargedRangeRelease:
        """Read a release back from the text of `to_json`.

        Args:
            text: What `to_json` has written.

        Returns:
            The release.

        Raises:
            InvalidArgument: The text is no release of a table.

        Examples:
            >>> type(release).from_json(release.to_json()).receipt == release.receipt
            True
        """
        held = RangeRelease.from_json(text)
        return cls(**_parts(held), **read_section(text, held.guarantee.relation))

    def __str__(self) -> str:
        whole, std = self.answer_interval(), self.answer_std()
        return _told(self, f"every range of {self.domain}", whole=whole, std=std)

    __repr__ = __str__


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ChargedGridRelease(GridRelease, ChargedRelease):
    """Hold noisy measurements of a table's columns, which answer every rectangle.

    The JSON of `to_json` can also be read by `GridRelease.from_json`.

    Attributes:
        title: What the release is, in words.
        query_text: Query in words.
        mechanism: Mechanisms that added the noise, in words.
        privacy_statement: Who is protected, in words.
        receipt: Entry of the ledger that paid for it.

    Examples:
        >>> import discreet
        >>> import pandas as pd
        >>> rows = pd.DataFrame({"age": [23, 35, 41] * 50, "sex": ["f", "m", "m"] * 50})
        >>> columns = {"age": discreet.integer(0, 99), "sex": discreet.category(["f", "m"])}
        >>> people = discreet.table(rows, columns=columns, budget=10)
        >>> release = people.ranges(["age", "sex"], epsilon=1)
        >>> release.title
        'ranges of age by sex'
    """

    def to_json(self) -> str:
        """Return the whole release as JSON text, for `from_json`.

        `GridRelease.from_json` reads it as well.

        Returns:
            The text.

        Examples:
            >>> discreet.GridRelease.from_json(release.to_json()).total == release.total
            True
        """
        return self._with_section(super().to_json())

    @classmethod
    def from_json(cls, text: str) -> ChargedGridRelease:
        """Read a release back from the text of `to_json`.

        Args:
            text: What `to_json` has written.

        Returns:
            The release.

        Raises:
            InvalidArgument: The text is no release of a table.

        Examples:
            >>> type(release).from_json(release.to_json()).receipt == release.receipt
            True
        """
        held = GridRelease.from_json(text)
        return cls(**_parts(held), **read_section(text, held.guarantee.relation))

    def __str__(self) -> str:
        spans = [None] * len(self.grid.shape)
        whole, std = self.answer_interval(*spans), self.answer_std(*spans)
        return _told(self, f"every rectangle of {self.grid}", whole=whole, std=std)

    __repr__ = __str__


AnyRangeRelease: TypeAlias = ChargedRangeRelease | ChargedGridRelease
AnyPlannedRanges: TypeAlias = PlannedRanges | PlannedGrid


def release_cells(
    planned: PlannedScan,
    table: ExactResult,
    *,
    setting: TableSpec,
    receipt: Receipt,
    rng: RandomSource,
) -> AnyRangeRelease:
    """Noise on the exact counts of the cells, by the best structure of the plan."""
    # Theorem: the artifact has the guarantee of the plan, for which the receipt was charged.
    # Proof: `RangeDesign.guarantee`, `GridDesign.guarantee`; the counts are those of the plan that
    #   was planned (`plan_query`, `plan_grid_query`).
    # Source: docs/theory/ranges.md, docs/theory/grids.md.
    # Needs: `table` holds the integers of `planned.counted`.
    noises = dict.fromkeys(map(repr, planned.ranked.best.mechanisms))
    query = planned.query
    asked = query.values if isinstance(query, GridQuery) else {query.columns: query.value}
    enforced = with_limits(setting, query.limits)
    section: dict[str, Any] = {
        "title": planned.query.title,
        "query_text": planned.query.text,
        "mechanism": f"{planned.ranked.best.describe()}; groups: {'; '.join(noises)}",
        "privacy_statement": describe_protection(enforced),
        "_sentences": about_cells(cells_facts(enforced, asked, where=query.where)),
        "receipt": receipt,
    }
    counts = table.columns[ROWS]
    if isinstance(planned, PlannedGrid):
        # Groups are numbered with the last column running fastest, as arrays are.
        cells = counts.reshape(planned.ranked.grid.shape)
        return ChargedGridRelease(**_parts(planned.ranked.best.release(cells, rng=rng)), **section)
    return ChargedRangeRelease(**_parts(planned.ranked.best.release(counts, rng=rng)), **section)


def _parts(held: RangeRelease | GridRelease) -> dict[str, Any]:
    return {field.name: getattr(held, field.name) for field in fields(held)}


def read_section(text: str, relation: NeighboringRelation) -> dict[str, Any]:
    """What a table has added to the text of a release, under the relation of the rest."""
    try:
        section = json.loads(text)[_SECTION]
        found = {name: section[word] for word, name in _WORDS.items()}
        receipt = read_receipt(section["receipt"])
        told = section.get("about", [])
        if not isinstance(told, list) or not all(isinstance(one, str) for one in told):
            raise InvalidArgument("what is told about a release must be a list of sentences.")
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, InvalidArgument):
            raise
        raise InvalidArgument(
            "text must be ranges or tables that a table has released; RangeRelease, GridRelease "
            "and MarginalRelease read those without a receipt."
        ) from None
    if receipt.guarantee.relation is not relation:
        raise InvalidArgument("text states a receipt under another relation than its numbers.")
    return {**found, "receipt": receipt, "_sentences": tuple(told)}


def _told(release: AnyRangeRelease, what: str, *, whole: tuple[float, float], std: float) -> str:
    guarantee = release.guarantee
    total, low, high = (number(one, error=std) for one in (release.total, *whole))
    return (
        f"{release.title} ({describe_epsilon(guarantee)}, {guarantee.relation.value})\n"
        f"  {what}, by {release.strategy.describe()}\n"
        f"  all of it: {total}  (95% between {low} and {high})"
    )

"""The passes of a weighted answer: the sums of each level, in as few of them as possible."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from discreet.data.expression import Expression, col
from discreet.data.plan import Key, Plan
from discreet.queries.ask import Query
from discreet.queries.personal import Level, Sums

_LABEL = "level of the person"
_MOST = 1_000_000
"""Groups beyond which levels are read one by one."""


def only(query: Query, condition: Expression) -> Query:
    """The same question about the rows that also meet a condition."""
    where = condition if query.where is None else query.where & condition
    return replace(query, where=where)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LevelPass:
    """A pass of a design, split by level: one plan with more groups, or one plan a level."""

    plans: tuple[Plan, ...]
    levels: tuple[Level, ...]
    """In the order of the sums."""
    together: bool

    def split(self, found: Sequence[Sums]) -> dict[Level, Sums]:
        """The sums of each level, from those of the plans."""
        if not self.together:
            return dict(zip(self.levels, found, strict=True))
        (sums,) = found
        return {
            level: {
                name: column.reshape(len(self.levels), -1)[place] for name, column in sums.items()
            }
            for place, level in enumerate(self.levels)
        }


def level_pass(plan: Plan, *, column: str, levels: Sequence[Level]) -> LevelPass:
    """How to read the sums of each level of a column, which is the same in all rows of a unit.

    Theorem: the sums of a level are those that the plan would give on its people's rows alone.
    Proof: all rows of a unit are in groups of one level, so the limits of a unit meet the same
        rows, in the same order, as without the level. Rows of no listed level are in no group.
    """
    program = plan.program()
    if plan.other or program.size * len(levels) > _MOST:
        conditions = [col(column) == level for level in levels]
        narrow = tuple(
            replace(plan, where=one if plan.where is None else plan.where & one)
            for one in conditions
        )
        return LevelPass(plans=narrow, levels=tuple(levels), together=False)
    # Keys come out in the order of the declared levels.
    bound = col(column).bind(plan.schema)
    locate = bound.locator()
    ordered = tuple(sorted(levels, key=locate))
    inner: Sequence[Key] = tuple(plan.labels()) if plan.by else ((),)
    whole = replace(
        plan,
        by={_LABEL: col(column), **(plan.by or {})},
        keys=tuple((level, *key) for level in ordered for key in inner),
    )
    return LevelPass(plans=(whole,), levels=ordered, together=True)


def split_all(
    passes: Sequence[LevelPass], found: Sequence[Sums], levels: Sequence[Level]
) -> Mapping[Level, list[Sums]]:
    """The sums of all passes, by level."""
    tables: dict[Level, list[Sums]] = {level: [] for level in levels}
    start = 0
    for one in passes:
        parts = one.split(found[start : start + len(one.plans)])
        start += len(one.plans)
        for level in levels:
            tables[level].append(parts[level])
    return tables

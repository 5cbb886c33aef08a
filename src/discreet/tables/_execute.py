"""Questions and ranges that are released together: reserved as one, read, and only then noisy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from discreet.accounting.guarantee import Guarantee
from discreet.core.errors import InvalidArgument
from discreet.data.program import TableScan
from discreet.ledger.account import Receipt, Reservation
from discreet.noise.random_source import RandomSource, system_rng
from discreet.query._answer import NoisyAnswer
from discreet.query._noisy_integers import NoisyIntegers
from discreet.query._release_plan import ReleasePlan
from discreet.tables._open_table import OpenTable
from discreet.tables.range_release import AnyPlannedRanges, AnyRangeRelease, release_cells
from discreet.tables.release import (
    Release,
    describe_protection,
    fresh_key,
    reserve_budget,
    value_of,
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReleaseBatch:
    """What one reservation pays for."""

    design: ReleasePlan | None = None
    ranges: tuple[AnyPlannedRanges, ...] = ()

    def __post_init__(self) -> None:
        if self.design is None and not self.ranges:
            raise InvalidArgument("There must be at least one question.")
        if self.design is not None and not isinstance(self.design, ReleasePlan):
            raise InvalidArgument(
                f"planned must be a design of questions, got {type(self.design).__name__}: "
                "ask with table.release([...])."
            )

    @property
    def guarantee(self) -> Guarantee:
        """What all of it costs together."""
        costs = [] if self.design is None else [self.design.guarantee]
        first, *others = costs + [one.guarantee for one in self.ranges]
        return sum(others, start=first)

    @property
    def passes(self) -> tuple[TableScan, ...]:
        """What engines are asked: the passes of the design, then one for each of the ranges."""
        listed = () if self.design is None else self.design.passes
        return (*listed, *(one.counted for one in self.ranges))

    @property
    def titles(self) -> tuple[str, ...]:
        """What is asked, in words."""
        asked = () if self.design is None else (q.query.title for q in self.design.questions)
        return (*asked, *(one.query.title for one in self.ranges))


def execute_batch(
    table: OpenTable,
    work: ReleaseBatch,
    *,
    label: str | None,
    rng: RandomSource,
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[tuple[Release, ...], tuple[AnyRangeRelease, ...]]:
    """Reserve, read, add noise. Bits that are not private are refused by the account.

    Theorem: all that is returned is within ``work.guarantee`` under the table's relation, which
        the account is charged before a row is read.
    Proof: `Table.release` for the questions, `charged` for the ranges; guarantees compose.
    Source: docs/theory/queries.md, docs/theory/ranges.md.
    Needs: an account; columns of the source as declared.
    """
    _check(table, work)
    if label is not None and not isinstance(label, str):
        raise InvalidArgument(f"label must be text, got {type(label).__name__}.")
    progress("reserving the budget")
    words = label or "; ".join(work.titles)
    with reserve_budget(table.account, work.guarantee, label=words, rng=rng) as held:
        return _answered(table, work, held.receipt, rng=rng, progress=progress)


def reserve_batch(
    table: OpenTable, work: ReleaseBatch, *, label: str, request_id: str
) -> Reservation:
    """Reserve the budget of work for a request, once, however often this is called.

    Nothing is read. Whoever holds it says what became of it: `Reservation.settle`.
    """
    _check(table, work)
    return reserve_budget(
        table.account, work.guarantee, label=label, rng=system_rng(), request_id=request_id
    )


def execute_reserved(
    table: OpenTable,
    work: ReleaseBatch,
    held: Reservation,
    *,
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[tuple[Release, ...], tuple[AnyRangeRelease, ...]]:
    """Read and add noise under a reservation that `hold` made.

    Theorem: if of all results for one request at most one is ever shown to anybody, and which one
        does not depend on what they say, what is shown is within ``work.guarantee``, which was
        charged once, before a row was read.
    Proof: runs have independent noise. The one that is shown is chosen without looking at results,
        so it is distributed as the result of a single run; the others are seen by nobody.
    Needs: the caller keeps both conditions.
    """
    if held.account is not table.account or held.receipt.guarantee != work.guarantee:
        raise InvalidArgument("held must be the reservation of this work, by this table's account.")
    return _answered(table, work, held.receipt, rng=system_rng(), progress=progress)


def _answered(
    table: OpenTable,
    work: ReleaseBatch,
    receipt: Receipt,
    *,
    rng: RandomSource,
    progress: Callable[[str], None],
) -> tuple[tuple[Release, ...], tuple[AnyRangeRelease, ...]]:
    from discreet.data.execute import collect  # noqa: PLC0415 - engines are slow to import

    tables = []
    for number, plan in enumerate(work.passes, start=1):
        progress(f"reading the data, pass {number} of {len(work.passes)}")
        # A fresh key each time: which rows are kept must not be known or repeated.
        tables.append(collect(plan, source=table._source, key=fresh_key(rng)))
    progress("adding noise")
    asked = 0 if work.design is None else len(work.design.passes)
    noisy: list[tuple[NoisyIntegers, ...]] = []
    if work.design is not None:
        noisy = work.design.noisy([one.columns for one in tables[:asked]], rng=rng)
    ranges = tuple(
        release_cells(one, counts, setting=table.spec, receipt=receipt, rng=rng)
        for one, counts in zip(work.ranges, tables[asked:], strict=True)
    )
    del tables
    releases = () if work.design is None else build_releases(table, work.design, noisy, receipt)
    return releases, ranges


def _check(table: OpenTable, work: ReleaseBatch) -> None:
    """Plans for another table, names and types of columns: no row is read."""
    from discreet.data.source import check_source  # noqa: PLC0415 - engines are slow to import

    declared = table.spec
    for plan in work.passes:
        # Limits may be a question's own: the noise was made for those that the plan enforces.
        if (plan.unit, plan.schema) != (declared.privacy_unit, declared.schema):
            raise InvalidArgument("planned must be designed for this table's own setting.")
        check_source(plan.program(), table._source)
    if any(one.relation is not declared.relation for one in work.ranges):
        raise InvalidArgument("planned must be designed for this table's own relation.")


def build_releases(
    table: OpenTable, planned: ReleasePlan, noisy: list[tuple[NoisyIntegers, ...]], receipt: Receipt
) -> tuple[Release, ...]:
    """The answers to a design, from its noisy parts; whoever calls has charged for them."""
    answers = [
        NoisyAnswer(
            title=question.query.title,
            names=question.names,
            keys=question.keys,
            scale=question.scale,
            parts=parts,
            independent=question.independent,
        )
        for question, parts in zip(planned.questions, noisy, strict=True)
    ]
    return tuple(
        Release(
            title=question.query.title,
            query_text=question.query.text,
            value=value_of(answer),
            guarantee=question.guarantee,
            receipt=receipt,
            mechanism=planned.words(question),
            privacy_statement=describe_protection(
                replace(table.spec, limits=question.query.limits.over(table.spec.limits))
            ),
            _noisy=answer,
        )
        for question, answer in zip(planned.questions, answers, strict=True)
    )

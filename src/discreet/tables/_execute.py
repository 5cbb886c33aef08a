"""Questions and ranges that are released together: reserved as one, read, and only then noisy."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import partial

from discreet.core.errors import InvalidArgument
from discreet.ledger.account import Receipt, Reservation
from discreet.marginals.plan import MarginalPlan
from discreet.noise.random_source import RandomSource, system_rng
from discreet.query._noisy_integers import NoisyIntegers
from discreet.query._release_plan import ReleasePlan
from discreet.tables._open_table import OpenTable
from discreet.tables._public_facts import LazyFacts, question_facts
from discreet.tables.marginals import ChargedMarginalRelease, check_marginals, release_reserved
from discreet.tables.range_release import AnyRangeRelease, release_cells
from discreet.tables.release import (
    Release,
    describe_protection,
    fresh_key,
    reserve_budget,
)


def execute(
    table: OpenTable,
    plan: ReleasePlan,
    *,
    rng: RandomSource,
    label: str | None = None,
    held: Reservation | None = None,
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[tuple[Release, ...], tuple[AnyRangeRelease, ...], tuple[ChargedMarginalRelease, ...]]:
    """Carry out a plan: reserve its cost, read the data, add noise, return the releases.

    The one place where queries and ranges read a table; each set of many tables
    reads it once more, under the same reservation. With ``held`` the cost was reserved before,
    see `reserve_plan`. Bits that are not private are refused by the account.
    """
    # Theorem: all that is returned is within `plan.guarantee` under the table's relation, which
    #   the account is charged before a row is read.
    # Proof: `Table.release` for the questions, `release_cells` for the ranges; guarantees compose.
    # Source: docs/theory/queries.md, docs/theory/ranges.md.
    # Needs: an account; columns of the source as declared.
    from discreet.data.execute import collect  # noqa: PLC0415 - engines are slow to import

    # Plan: it is complete, and what it enforces is what its noise was made for.
    _check(table, plan)
    if label is not None and not isinstance(label, str):
        raise InvalidArgument(f"label must be text, got {type(label).__name__}.")
    # Reserve: durable before the first row is read, and spent whatever happens next.
    reserved: AbstractContextManager[Reservation]
    if held is None:
        progress("reserving the budget")
        words = label or "; ".join(plan.titles)
        reserved = reserve_budget(table.account, plan.guarantee, label=words, rng=rng)
    else:
        reserved = nullcontext(held)
    with reserved as reservation:
        # Read: a fresh key each time, because which rows are kept must not be known or repeated.
        exact = []
        scans = plan.scans
        for number, scan in enumerate(scans, start=1):
            progress(f"reading the data, pass {number} of {len(scans)}")
            exact.append(collect(scan, source=table._source, key=fresh_key(rng)))
        # Noise: from here on nothing is private.
        progress("adding noise")
        receipt = reservation.receipt
        noisy = plan.noisy([one.columns for one in exact], rng=rng)
        ranges = tuple(
            [
                release_cells(one, counts, setting=table.spec, receipt=receipt, rng=rng)
                for one, counts in zip(plan.ranges, exact[len(plan.passes) :], strict=True)
            ]
        )
        del exact
        tables = []
        for one in plan.marginals:
            if isinstance(one, MarginalPlan):  # all are: `_check`
                progress("counting many tables")
                made = release_reserved(table, one, title=one.title, receipt=receipt, rng=rng)
                tables.append(made)
        return build_releases(table, plan, noisy, receipt), ranges, tuple(tables)


def reserve_plan(
    table: OpenTable, plan: ReleasePlan, *, label: str, request_id: str
) -> Reservation:
    """Reserve the budget of work for a request, once, however often this is called.

    Nothing is read. Whoever holds it says what became of it: `Reservation.settle`.
    """
    _check(table, plan)
    return reserve_budget(
        table.account, plan.guarantee, label=label, rng=system_rng(), request_id=request_id
    )


def execute_reserved(
    table: OpenTable,
    plan: ReleasePlan,
    held: Reservation,
    *,
    progress: Callable[[str], None] = lambda _: None,
) -> tuple[tuple[Release, ...], tuple[AnyRangeRelease, ...]]:
    """Read and add noise under a reservation that `hold` made."""
    # Theorem: if of all results for one request at most one is ever shown to anybody, and which one
    #   does not depend on what they say, what is shown is within `plan.guarantee`, which was
    #   charged once, before a row was read.
    # Proof: runs have independent noise. The one that is shown is chosen without looking at
    #   results, so it is distributed as the result of a single run; the others are seen by nobody.
    # Needs: the caller keeps both conditions.
    if held.account is not table.account or held.receipt.guarantee != plan.guarantee:
        raise InvalidArgument("held must be the reservation of this plan, by this table's account.")
    if plan.marginals:
        raise InvalidArgument("plan must be of queries and ranges: many tables have a place apart.")
    releases, ranges, _ = execute(table, plan, rng=system_rng(), held=held, progress=progress)
    return releases, ranges


def _check(table: OpenTable, plan: ReleasePlan) -> None:
    """Plans for another table, names and types of columns: no row is read."""
    from discreet.data.source import check_source  # noqa: PLC0415 - engines are slow to import

    if not isinstance(plan, ReleasePlan):
        raise InvalidArgument(
            f"plan must be a release plan, got {type(plan).__name__}: "
            "release queries with table.release([...])."
        )
    declared = table.spec
    for scan in plan.scans:
        # Limits may be a question's own: the noise was made for those that the plan enforces.
        if (scan.unit, scan.schema) != (declared.privacy_unit, declared.schema):
            raise InvalidArgument("plan must be made for this table and its declaration.")
        check_source(scan, table._source)
    for one in plan.marginals:
        if not isinstance(one, MarginalPlan):
            raise InvalidArgument("plan must have plans of many tables from plan_marginals.")
        check_marginals(table, one)
    if any(one.relation is not declared.relation for one in plan.ranges):
        raise InvalidArgument("plan must be made for the neighboring relation of this table.")


def build_releases(
    table: OpenTable, planned: ReleasePlan, noisy: list[tuple[NoisyIntegers, ...]], receipt: Receipt
) -> tuple[Release, ...]:
    """The answers to a design, from its noisy parts; whoever calls has charged for them."""
    releases = []
    for question, parts in zip(planned.questions, noisy, strict=True):
        query = question.query
        text = query.text
        limits = query.limits.over(table.spec.limits)
        one = Release(
            title=query.name or text,
            query_text=text,
            guarantee=question.guarantee,
            receipt=receipt,
            mechanism=planned.words(question),
            privacy_statement=describe_protection(replace(table.spec, limits=limits)),
            facts=LazyFacts(partial(question_facts, table.spec, planned, question)),
            _names=question.names,
            _keys=question.keys,
            _parts=parts,
            _estimator=question.estimator,
            _independent=question.independent,
        )
        releases.append(one)
    return tuple(releases)

"""Private key discovery (partition selection): the keys that enough units have.

The cost follows from public facts and is reserved before a row is read.
"""

from __future__ import annotations

from dataclasses import replace

from discreet.core import _validate as check
from discreet.core._rational import Number
from discreet.core.errors import InvalidArgument
from discreet.data.expression import Expression
from discreet.data.program import ContributionLimits
from discreet.mechanisms.partition_selection import Method, PartitionSelection, partition_selection
from discreet.noise.random_source import RandomSource
from discreet.query import builders
from discreet.query._estimate import SumEstimator
from discreet.query._noisy_integers import NoisyIntegers
from discreet.query._release_plan import TableSpec
from discreet.query.builders import By
from discreet.tables._open_table import OpenTable
from discreet.tables._public_facts import table_facts
from discreet.tables.release import (
    SELECTED,
    Release,
    describe_protection,
    fresh_key,
    reserve_budget,
)


def plan_key_discovery(
    table: OpenTable,
    *,
    max_groups_per_unit: int | None,
    minimum: int,
    method: Method | None,
    epsilon: Number | None,
    delta: Number | None,
    rho: Number | None,
) -> PartitionSelection:
    """The noise and the threshold that a budget buys."""
    unit = table.spec.privacy_unit
    groups = max_groups_per_unit
    if groups is None:
        groups = table.spec.limits.max_groups_per_unit or (1 if unit is None else None)
    if groups is None:
        raise InvalidArgument(
            "max_groups_per_unit must be given: how many keys of one unit count at most."
        )
    if delta is None:
        raise InvalidArgument("delta must be given: the chance that the key of one unit is shown.")
    # Laplace noise has an epsilon, and epsilons add up in every account.
    return partition_selection(
        groups=check.count("max_groups_per_unit", groups),
        minimum=minimum,
        method=method or ("laplace" if rho is None else None),
        relation=table.spec.relation,
        delta=delta,
        epsilon=epsilon,
        rho=rho,
    )


def release_keys(
    table: OpenTable,
    *,
    by: By,
    mechanism: PartitionSelection,
    where: Expression | None,
    rng: RandomSource,
    name: str = "",
) -> Release:
    """The keys that enough units have, with noisy counts of units."""
    # Theorem: the release, keys and counts, is within the mechanism's guarantee under the table's
    #   relation.
    # Proof: of each unit at most `groups` keys are counted, chosen by the unit's own rows and the
    #   key of the run; so one unit changes at most so many counts by one, and the others not at
    #   all. The rest is `partition_selection`. The order of the keys is that of their values.
    # Source: docs/theory/keys.md.
    # Needs: an account; time is not hidden (it grows with the number of keys that occur).
    from discreet.data.execute import KeyPlan, collect_keys  # noqa: PLC0415 - engines are slow
    from discreet.data.source import check_source  # noqa: PLC0415

    query = builders.count_units(where=where, by=by, name=name)
    plan = KeyPlan(
        schema=table.spec.schema,
        by=query.by,
        max_groups_per_unit=mechanism.groups,
        unit=table.spec.privacy_unit,
        where=where,
    )
    check_source(plan.program(), table._source)
    title = name or f"keys of {', '.join(query.by)}"
    with reserve_budget(table.account, mechanism.guarantee, label=title, rng=rng) as held:
        found = collect_keys(plan, source=table._source, key=fresh_key(rng))
        places, noisy = mechanism.release(found.units, rng=rng)
        shown = tuple(found.keys[place] for place in places)
        del found
    counts = NoisyIntegers(name=SELECTED, values=tuple(noisy.tolist()), noise=mechanism.noise)
    return Release(
        title=title,
        query_text=f"keys and {query.text}",
        guarantee=mechanism.guarantee,
        receipt=held.receipt,
        mechanism=f"keys: {mechanism!r}",
        privacy_statement=describe_protection(_limited(table.spec, mechanism.groups)),
        facts={**table_facts(_limited(table.spec, mechanism.groups)), "kind": "keys"},
        _names=tuple(query.by),
        _keys=shown,
        _parts=(counts,),
        _estimator=SumEstimator(kind="units", lower=0, upper=1, exponent=0, shifts=(0,)),
    )


def _limited(setting: TableSpec, groups: int) -> TableSpec:
    """What a discovery uses of a unit: keys, however many rows."""
    limits = (
        ContributionLimits()
        if setting.privacy_unit is None
        else ContributionLimits(max_groups_per_unit=groups)
    )
    return replace(setting, limits=limits)

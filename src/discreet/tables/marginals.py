"""Many tables of a private table: reserved as one, read in one pass, and only then noisy."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields

from discreet.core.errors import InvalidArgument
from discreet.data.program import NO_LIMITS
from discreet.ledger.account import Receipt
from discreet.marginals.counting import count_tables
from discreet.marginals.design import support
from discreet.marginals.plan import MarginalPlan
from discreet.marginals.release import MarginalRelease, read_release, told
from discreet.marginals.table_query import MarginalQuery
from discreet.noise.random_source import RandomSource
from discreet.tables._about import about_cells
from discreet.tables._open_table import OpenTable
from discreet.tables._public_facts import cells_facts, table_facts
from discreet.tables.range_release import ChargedRelease, read_section
from discreet.tables.release import describe_protection, fresh_key, reserve_budget


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class ChargedMarginalRelease(MarginalRelease, ChargedRelease):
    """Many tables of the same rows, released at once: all of them agree.

    Made by `Table.marginals`. Whatever is asked of it costs nothing. The JSON of `to_json` can also
    be read by `MarginalRelease.from_json`.

    Attributes:
        title: What the release is, in words.
        query_text: Query in words.
        mechanism: Mechanisms that added the noise, in words.
        privacy_statement: Who is protected, in words.
        receipt: Entry of the ledger that paid for it.
        facts: What was declared, for the card of the release.

    Examples:
        >>> import discreet
        >>> import pandas as pd
        >>> rows = pd.DataFrame({"smokes": [True, False, False] * 50})
        >>> people = discreet.table(rows, columns={"smokes": discreet.boolean()}, budget=10)
        >>> release = people.marginals([["smokes"]], epsilon=1)
        >>> release.title, release.receipt.guarantee.epsilon()
        ('counts by smokes', 1.0)
    """

    facts: Mapping[str, object] | None = None

    def to_json(self) -> str:
        """Return the whole release as JSON text, for `from_json`.

        `MarginalRelease.from_json` reads it as well.

        Returns:
            The text.

        Examples:
            >>> discreet.MarginalRelease.from_json(release.to_json()).total == release.total
            True
        """
        text = self._with_section(super().to_json())
        if self.facts is None:
            return text
        return json.dumps({**json.loads(text), "facts": dict(self.facts)})

    @classmethod
    def from_json(cls, text: str) -> ChargedMarginalRelease:
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
        held = read_release(text)
        facts = json.loads(text).get("facts")
        return cls(**held, **read_section(text, held["guarantee"].relation), facts=facts)

    def __str__(self) -> str:
        return told(self, self.title)

    __repr__ = __str__

    def _title(self) -> str:
        return self.title


def release_marginals(
    table: OpenTable, plan: MarginalPlan, *, label: str | None, rng: RandomSource
) -> ChargedMarginalRelease:
    """Carry out a plan: reserve its cost, read the rows once, add noise, return the release."""
    # Theorem: the release is within `plan.guarantee` under the table's relation, which the account
    #   is charged before a row is read.
    # Proof: `MarginalPlan.guarantee`; one pass with one fresh key collects the kept rows, and all
    #   tables are counted from them (`plan_marginals`).
    # Source: docs/theory/marginals.md.
    # Needs: an account; columns of the source as declared.
    # Plan: it is complete, and what it enforces is what its noise was made for.
    query = check_marginals(table, plan)
    if label is not None and not isinstance(label, str):
        raise InvalidArgument(f"label must be text, got {type(label).__name__}.")
    # Reserve: durable before the first row is read, and spent whatever happens next.
    with reserve_budget(
        table.account, plan.guarantee, label=label or query.text, rng=rng
    ) as reservation:
        return release_reserved(
            table, plan, title=label or query.text, receipt=reservation.receipt, rng=rng
        )


def release_reserved(
    table: OpenTable, plan: MarginalPlan, *, title: str, receipt: Receipt, rng: RandomSource
) -> ChargedMarginalRelease:
    """Read the rows once and add noise, for a checked plan whose cost is reserved."""
    from discreet.data.execute import collect_values  # noqa: PLC0415 - engines are slow to import

    query: MarginalQuery = plan._query
    # Read: one pass, one key: all tables are counted from the same kept rows.
    values = collect_values(query.program, source=table._source, key=fresh_key(rng))
    wanted = [support(place) for place in plan._design.places]
    exact = count_tables(query.chunks(values), query.sizes, wanted)
    del values
    # Noise: from here on nothing is private.
    noisy = plan.release_tables(exact, rng=rng)
    del exact
    held = {field.name: getattr(noisy, field.name) for field in fields(noisy)}
    return ChargedMarginalRelease(
        **held,
        title=title,
        query_text=query.text,
        mechanism=f"{plan.noise} noise on {len(plan.mechanisms)} groups of measurements",
        privacy_statement=describe_protection(query.setting),
        receipt=receipt,
        _sentences=about_cells(cells_facts(query.setting, query.values, where=query.where)),
        facts=table_facts(query.setting, limits=query.program.limits),
    )


def check_marginals(table: OpenTable, plan: MarginalPlan) -> MarginalQuery:
    """The question of a plan that was made for this table: no row is read."""
    from discreet.data.source import check_source  # noqa: PLC0415 - engines are slow to import

    query = getattr(plan, "_query", None)
    if not isinstance(query, MarginalQuery):
        raise InvalidArgument(
            "plan must come from this table: plan = table.plan_marginals(2, epsilon=1)."
        )
    own, asked = table.spec, query.setting
    same = (own.privacy_unit, own.schema, own.relation) == (
        asked.privacy_unit,
        asked.schema,
        asked.relation,
    )
    limits = query.program.limits
    enforced = (limits.max_rows_per_unit or 0) == plan.max_rows_per_unit or (
        own.privacy_unit is None and limits == NO_LIMITS and plan.max_rows_per_unit == 1
    )
    if not same or plan.relation is not own.relation or not enforced:
        raise InvalidArgument("plan must be made for this table's own setting.")
    check_source(query.program, table._source)
    return query

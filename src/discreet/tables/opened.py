"""An opened table: its source, what is declared about it, who pays, and what can be found out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self, TypedDict, Unpack, cast

from discreet.accounting.guarantee import Guarantee
from discreet.core import check
from discreet.core.exact import Number, rational
from discreet.data.expression import Expression
from discreet.data.schema import Plain
from discreet.ledger.account import Account
from discreet.ledger.crowd import Crowd
from discreet.mechanisms.partition import Method
from discreet.noise.bits import system
from discreet.queries.ask import By
from discreet.queries.budget import Budget, budget
from discreet.queries.design import Setting
from discreet.tables.bounds import Bounds, SuggestedLimits, suggest_bounds, suggest_limits
from discreet.tables.discover import discover, selection
from discreet.tables.joins import join, join_units
from discreet.tables.personal import Personal, personal_table
from discreet.tables.release import Release


class Amount(TypedDict, total=False):
    """What an answer may cost: epsilon, or epsilon and delta, or rho."""

    epsilon: Number
    delta: Number
    rho: Number


def amount_of(found: Budget) -> Amount:
    """A budget as it is asked for: doubles wherever they are read back as what they stand for."""
    parts = {"epsilon": found.epsilon, "delta": found.delta, "rho": found.rho}
    stated = {name: x for name, x in parts.items() if x is not None}
    return cast(
        "Amount", {name: float(x) if rational(float(x)) == x else x for name, x in stated.items()}
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Opened:
    """A private table without its questions; see `Table`."""

    source: Any = field(repr=False)
    setting: Setting = field(repr=False)
    account: Account | None = field(repr=False)

    def discover(
        self,
        by: By,
        *,
        groups_per_unit: int | None = None,
        where: Expression | None = None,
        minimum: int = 1,
        method: Method | None = None,
        **amount: Unpack[Amount],
    ) -> Release:
        """The values of columns that enough units have, with noisy counts of units.

        For groups that nobody knows beforehand: columns declared as `text`, or with too many
        values. Of one unit ``groups_per_unit`` keys count; a key that one unit alone has is shown
        with probability at most ``delta``. Use the result as ``keys`` of other questions.

        ``epsilon`` buys Laplace noise; for many groups per unit ``method="gaussian"``, or ``rho``,
        needs less of it.
        """
        check.known(amount, Amount.__annotations__)
        mechanism = selection(
            self,
            groups_per_unit=groups_per_unit,
            minimum=minimum,
            method=method,
            amount=amount,
        )
        return discover(self, by=by, mechanism=mechanism, where=where, bits=system())

    def join(
        self, public: object, *, on: str | Mapping[str, str], columns: Mapping[str, Plain]
    ) -> Self:
        """This table with declared columns of a public one, found by the value of ``on``.

        ``public`` is a frame or a file whose ``on`` is different in each row. No row is multiplied
        or dropped: what has no match gets the missing value of the declaration.
        """
        return join(self, public, on=on, columns=columns)

    def join_units(self, other: Opened, *, columns: Iterable[str]) -> Self:
        """This table with columns of each unit's row in another private table.

        If a unit has several rows there, one is used; if it has none, the missing values are. Both
        tables must have the same unit, relation and account.
        """
        return join_units(self, other, columns=columns)

    def personal(
        self,
        *,
        levels: Mapping[Any, Number | Guarantee],
        budget: str | None = None,
        crowd: Crowd | None = None,
    ) -> Personal:
        """Questions in which each person has the budget of the own level.

        ``levels`` maps levels to epsilons (or to ``zcdp`` or ``approx`` limits, all alike): what
        one answer may cost their people. ``budget`` names the column, a declared category, that
        holds each person's level; the account pays for the most open. Instead of it, a ``crowd``
        of the ledger knows the level of each member, pays for each, and leaves out who cannot.
        People of levels that are not listed are left out.
        """
        return personal_table(self, levels, budget=budget, crowd=crowd)

    def suggest_bounds(
        self,
        column: str,
        *,
        coverage: float = 0.99,
        outermost: tuple[Number, Number] | None = None,
        **amount: Unpack[Amount],
    ) -> Bounds:
        """Bounds for a column that hold about ``coverage`` of the units: charged, like any answer.

        The column need not be declared. ``outermost`` is a public range that surely holds all.
        """
        check.known(amount, Amount.__annotations__)
        return suggest_bounds(
            self,
            column,
            coverage=coverage,
            outermost=outermost,
            budget=budget(**amount),
            bits=system(),
        )

    def suggest_limits(
        self, *, by: By = None, planned_epsilon: Number = 1, **amount: Unpack[Amount]
    ) -> SuggestedLimits:
        """How many rows (and groups of ``by``) of a unit to use: charged, like any answer.

        Balances what a limit leaves out with the noise of a count at ``planned_epsilon``.
        """
        check.known(amount, Amount.__annotations__)
        amounts = budget(**amount)
        return suggest_limits(
            self, by=by, planned_epsilon=planned_epsilon, budget=amounts, bits=system()
        )

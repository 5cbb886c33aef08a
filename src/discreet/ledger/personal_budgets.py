"""Crowds: a budget for each of many people, charged together."""

from __future__ import annotations

import threading
import zlib
from dataclasses import dataclass, field
from datetime import datetime
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.accounting.guarantee import Guarantee
from discreet.accounting.individual_filter import Admitted, Grains, IndividualFilter
from discreet.accounting.personalized import PersonalizedGuarantee
from discreet.boundary.values import listed
from discreet.core.errors import BudgetExceeded, InvalidArgument, Unsupported
from discreet.ledger import _entries, _personal_budget_rows
from discreet.ledger._personal_budget_rows import PersonalBudgetRow
from discreet.ledger._sqlite import SqliteStore
from discreet.ledger.store import NO_PICKLE, Session, Store, StoreFailure


@dataclass(frozen=True, slots=True, kw_only=True)
class EligibleCharge:
    """Who takes part in a query: these are charged, everybody else must be left out of it."""

    personal_budgets: str
    sequence: int
    hash: str
    label: str
    time: datetime
    included: Admitted = field(repr=False)  # may be private: costs of single people can be


class PersonalBudgets:
    """Keep a privacy budget for each person. Made by `Ledger.personal_budgets`.

    Budgets are zCDP. Each charge is one entry of a hash chain, in one transaction for all members.
    The ledger keeps the costs; what a member has spent is their sum.

    Examples:
        >>> import discreet
        >>> budgets = discreet.Ledger().personal_budgets(
        ...     "panel",
        ...     limits={"strict": discreet.zcdp(0.1), "open": discreet.zcdp(0.5)},
        ...     members=["a", "b", "c"],
        ...     privacy_levels=["open", "strict", "open"],
        ... )
        >>> budgets
        PersonalBudgets('panel', 3 members: open, strict)
        >>> budgets.charge_eligible(discreet.zcdp(0.2), label="a count").included.tolist()
        [True, False, True]
    """

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        with store.read() as session:
            self._place = _personal_budget_rows.find(session, name)
            try:
                self._terms = _personal_budget_rows.read_terms(session, self._place)
            except (*_entries.UNREADABLE, zlib.error) as error:
                damaged = _personal_budget_rows.refusal(self._place, "has terms of no meaning")
                raise error if isinstance(error, StoreFailure) else damaged from None
            _personal_budget_rows.check(session, self._place, self._terms)
        self._filter = IndividualFilter.of_grains(self._terms.codes, self._terms.grains)
        self._seen = 0  # entries that the sums include
        self._head = _entries.GENESIS  # the hash of the last of them
        self._turn = threading.RLock()

    @property
    def name(self) -> str:
        """Name of the personal budgets in the ledger."""
        return self._place.name

    @property
    def limits(self) -> PersonalizedGuarantee:
        """Limit of the members of each privacy level."""
        return self._terms.limits

    @property
    def members(self) -> tuple[str, ...]:
        """Identifiers of the members, in the order of all arrays of this object."""
        return self._terms.members

    @property
    def levels(self) -> NDArray[np.str_]:
        """Privacy level of each member."""
        return np.array(self.limits.names)[self._terms.codes]

    @property
    def head(self) -> str:
        """Number of entries and hash of the last: kept elsewhere, it shows later tampering."""
        with self._store.read() as session:
            place = _personal_budget_rows.find(session, self.name)
        return f"{place.entries}:{place.head}"

    def __len__(self) -> int:
        return len(self._terms.codes)

    def spent(self) -> Grains:
        """Return what each member has spent.

        Returns:
            One whole number for each member, in units of 1e-12 rho.

        Privacy:
            The numbers are as private as the costs were: costs of single people can follow from
            the data.

        Examples:
            >>> (budgets.spent() * 1e-12).round(3).tolist()
            [0.2, 0.0, 0.2]
        """
        with self._turn, self._store.read() as session:
            self._catch_up(session, _personal_budget_rows.find(session, self.name))
            return self._filter.spent

    def charge_eligible(
        self, cost: Guarantee | PersonalizedGuarantee | ArrayLike, *, label: str
    ) -> EligibleCharge:
        """Charge the members with enough budget left, and say who they are.

        Queries must leave out the other members. Then all queries together, however they were
        chosen, keep the limit of each member (Feldman and Zrnic 2021).

        Args:
            cost: Guarantee for all members, a guarantee for each privacy level, or a rho for each
                member. A member whose rho is missing, infinite or negative is not charged.
            label: Text for the ledger entry.

        Returns:
            The charge; `included` says for each member whether it was charged.

        Raises:
            InvalidArgument: The cost does not fit the members.

        Privacy:
            Who has enough budget left can be private: publish it only if all costs were public.

        Examples:
            >>> budgets.charge_eligible(discreet.zcdp(0.05), label="a mean").included.tolist()
            [True, True, True]
        """
        return self._record(cost, label, everyone=False)

    def charge_all(
        self, cost: Guarantee | PersonalizedGuarantee | ArrayLike, *, label: str
    ) -> EligibleCharge:
        """Charge all members, or none of them.

        Where costs depend on the data, so does the refusal: then use `charge_eligible`.

        Args:
            cost: Guarantee for all members, a guarantee for each privacy level, or a rho for each
                member.
            label: Text for the ledger entry.

        Returns:
            The charge; `included` is True for each member.

        Raises:
            BudgetExceeded: A member has not enough budget left; nobody is charged.

        Examples:
            >>> budgets.charge_all(discreet.zcdp(0.01), label="a count").included.all()
            np.True_
        """
        return self._record(cost, label, everyone=True)

    def __copy__(self) -> Self:
        """Itself: there is one record of what each member has spent."""
        return self

    def __deepcopy__(self, memo: dict[int, object]) -> Self:
        return self

    def __reduce__(self) -> tuple[type[PersonalBudgets], tuple[Store, str]]:
        """A pickle names the ledger's file and the personal budgets, but no member."""
        if not isinstance(self._store, SqliteStore):
            raise Unsupported(NO_PICKLE)
        return PersonalBudgets, (self._store, self.name)

    def __repr__(self) -> str:
        names = ", ".join(map(str, self.limits.names))
        return f"PersonalBudgets({self.name!r}, {len(self)} members: {names})"

    def _record(
        self, cost: Guarantee | PersonalizedGuarantee | ArrayLike, label: str, *, everyone: bool
    ) -> EligibleCharge:
        words = _entries.printable("label", label)
        told, each = _personal_budget_rows.encode_cost(cost, self.limits, len(self))
        price = _personal_budget_rows.member_costs(told, each, self._terms)
        content = {"kind": "charge", "label": words, **told}
        with self._turn:
            with self._store.write() as session:
                place = _personal_budget_rows.find(session, self.name, lock=self._store.lock)
                _personal_budget_rows.check(session, place, self._terms, self._store.seen)
                self._catch_up(session, place)
                taking = self._filter.affordable(price)
                if everyone and not taking.all():
                    raise BudgetExceeded(
                        f"Personal budgets {self.name!r}: some members cannot afford this; "
                        "nobody was charged. Use charge_eligible() to go on without them."
                    )
                content["time"] = _entries.now()
                found = _personal_budget_rows.append(session, place, content, each)
            # On disk now: a failure before this line has changed nothing here.
            self._filter.take(price)
            self._seen, self._head = place.entries + 1, found
            _personal_budget_rows.remember(
                self._store.seen, place, entries=self._seen, head=self._head
            )
        return EligibleCharge(
            personal_budgets=self.name,
            sequence=place.entries + 1,
            hash=found,
            label=words,
            time=_entries.moment(content["time"]),
            included=taking,
        )

    def _catch_up(self, session: Session, place: PersonalBudgetRow) -> None:
        """Add what was charged elsewhere since we looked last."""
        for found, price in _personal_budget_rows.charges(
            session, place, self._terms, after=self._seen, head=self._head
        ):
            if price is not None:
                self._filter.take(price)
            self._seen, self._head = self._seen + 1, found
        if (place.entries, place.head) != (self._seen, self._head):
            raise _personal_budget_rows.refusal(place, "has another history than was seen here")


def check_members(
    members: ArrayLike, privacy_levels: ArrayLike, limits: PersonalizedGuarantee
) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Members as distinct texts, and the number of each one's level."""
    names, chosen = _texts(members), _texts(privacy_levels)
    if len(names) < 1 or len(chosen) != len(names):
        raise InvalidArgument(
            f"privacy_levels must name one level for each of the {len(names)} members, at least "
            "one."
        )
    if len(set(names)) < len(names):
        raise InvalidArgument("members must be distinct; a person has one budget.")
    known = {name: code for code, name in enumerate(limits.names)}
    unknown = set(chosen) - set(known)
    if unknown:
        raise InvalidArgument(
            f"privacy_levels must be among {', '.join(limits.names)}; {len(unknown)} others "
            "were given."
        )
    return names, np.array([known[level] for level in chosen], dtype=np.int64)


def _texts(values: ArrayLike) -> tuple[str, ...]:
    """The name of each member by itself: an array would cut zeros off, or give all one type."""
    return tuple(
        str(value.item() if isinstance(value, np.generic) else value) for value in listed(values)
    )

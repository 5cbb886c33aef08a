"""Crowds: a budget for each of many people, charged together."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from numpy.typing import ArrayLike, NDArray

from discreet.accounting.guarantee import Guarantee
from discreet.accounting.individual_filter import Admitted, Grains, IndividualFilter
from discreet.accounting.personalized import PersonalizedGuarantee
from discreet.core.errors import BudgetExceeded, InvalidArgument
from discreet.ledger import _entries, _personal_budget_rows
from discreet.ledger._personal_budget_rows import PersonalBudgetRow
from discreet.ledger.store import Session, Store


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
    """Budgets in zCDP of the members of a crowd. Get one from ``Ledger.crowd``.

    Every charge is one entry of a hash chain, in one durable transaction for all members. What is
    kept are the costs; what a member has spent is their sum, taken anew by whoever opens the crowd.
    """

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        with store.read() as session:
            self._place = _personal_budget_rows.find(session, name)
            self._terms = _personal_budget_rows.read_terms(session, self._place)
        self._filter = IndividualFilter.of_grains(self._terms.codes, self._terms.grains)
        self._seen = 0  # entries that the sums include
        self._turn = threading.RLock()

    @property
    def name(self) -> str:
        """Its name in the ledger."""
        return self._place.name

    @property
    def limits(self) -> PersonalizedGuarantee:
        """What members of each level may spend."""
        return self._terms.limits

    @property
    def members(self) -> tuple[str, ...]:
        """The members, in the order of every array here."""
        return self._terms.members

    @property
    def levels(self) -> NDArray[np.str_]:
        """The level of each member."""
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
        """What each member has spent, in grains of rho (10**-12); as private as the costs were."""
        with self._turn, self._store.read() as session:
            self._catch_up(session, _personal_budget_rows.find(session, self.name))
            return self._filter.spent

    def charge_eligible(
        self, cost: Guarantee | PersonalizedGuarantee | ArrayLike, *, label: str
    ) -> EligibleCharge:
        """Charge all who can afford it, durably, and say who they are; the others stay out.

        ``cost``: one guarantee for everybody, one for each level, or one rho for each member.
        Nobody's sum ever passes the own limit, so the crowd's queries, however they were chosen,
        keep every limit (Feldman, Zrnic 2021).
        """
        return self._record(cost, label, everyone=False)

    def charge_all(
        self, cost: Guarantee | PersonalizedGuarantee | ArrayLike, *, label: str
    ) -> EligibleCharge:
        """Charge everybody, or raise BudgetExceeded and charge nobody.

        Where costs depend on data, the refusal does too: then take `admit`.
        """
        return self._record(cost, label, everyone=True)

    def __repr__(self) -> str:
        return f"Crowd({self.name!r}, {len(self)} members, {self.limits!r})"

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
                _personal_budget_rows.check_head(session, place)
                self._catch_up(session, place)
                taking = self._filter.affordable(price)
                if everyone and not taking.all():
                    raise BudgetExceeded(
                        f"Crowd {self.name!r}: some members cannot afford this; nobody was "
                        "charged. Use admit() to go on without them."
                    )
                content["time"] = _entries.now()
                found = _personal_budget_rows.append(session, place, content, each)
            # On disk now: a failure before this line has changed nothing here.
            self._filter.take(price)
            self._seen = place.entries + 1
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
        if place.entries == self._seen:
            return
        for _, price in _personal_budget_rows.charges(
            session, place, self._terms, after=self._seen
        ):
            self._filter.take(price)
        self._seen = place.entries


def check_members(
    members: ArrayLike, privacy_levels: ArrayLike, limits: PersonalizedGuarantee
) -> tuple[tuple[str, ...], NDArray[np.int64]]:
    """Members as distinct texts, and the number of each one's level."""
    names = tuple(str(member) for member in np.asarray(members).tolist())
    chosen = np.asarray(privacy_levels)
    if len(names) < 1 or chosen.shape != (len(names),):
        raise InvalidArgument(
            f"privacy_levels must name one level for each of the {len(names)} members, at least "
            "one."
        )
    if len(set(names)) < len(names):
        raise InvalidArgument("members must be distinct; a person has one budget.")
    known = {name: code for code, name in enumerate(limits.names)}
    kinds, places = np.unique(chosen.astype(str), return_inverse=True)
    unknown = [kind for kind in kinds.tolist() if kind not in known]
    if unknown:
        raise InvalidArgument(
            f"privacy_levels must be among {', '.join(limits.names)}; {len(unknown)} others "
            "were given."
        )
    codes = np.array([known[kind] for kind in kinds.tolist()], dtype=np.int64)[places]
    return names, codes

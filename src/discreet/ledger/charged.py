"""The reservation of a release that may or may not have an account."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from discreet.accounting.guarantee import Guarantee
from discreet.core.errors import InvalidArgument
from discreet.ledger.account import Account, Reservation
from discreet.ledger.journal import LONGEST
from discreet.noise.bits import Bits


def charged(
    account: Account | None, guarantee: Guarantee, *, label: str, bits: Bits
) -> AbstractContextManager[Reservation | None]:
    """The budget of a release, spent now, if there is an account; then private bits are needed."""
    if account is None:
        return nullcontext()
    if not isinstance(account, Account):
        raise InvalidArgument(
            "account must come from a ledger: discreet.Ledger(...).account(name, limit=...); got "
            f"{type(account).__name__}."
        )
    return account.reserve(guarantee, label=shortened(label), private=bits.private)


def shortened(label: str) -> str:
    """A label that the journal has room for."""
    return label if len(label) <= LONGEST else label[: LONGEST - 3] + "..."

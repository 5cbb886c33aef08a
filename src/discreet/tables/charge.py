"""What every release shares: the reservation before the first row, and who is protected."""

from __future__ import annotations

from discreet.accounting.guarantee import Guarantee
from discreet.core.errors import InvalidArgument
from discreet.core.relation import Relation
from discreet.ledger.account import Account, Reservation
from discreet.ledger.charged import shortened
from discreet.noise.bits import Bits
from discreet.queries.design import Setting


def reserved(
    account: Account | None,
    guarantee: Guarantee,
    *,
    label: str,
    bits: Bits,
    request_id: str | None = None,
) -> Reservation:
    """The budget of a release, spent now. Bits that are not private are refused."""
    if account is None:
        raise InvalidArgument("account must be given to release: discreet.table(account=...).")
    words = shortened(label)
    return account.reserve(guarantee, label=words, private=bits.private, request_id=request_id)


def fresh_key(bits: Bits) -> int:
    """Which rows of a unit are kept must not be known or repeated."""
    return int.from_bytes(bits.words(2).tobytes(), "big")


def protection(setting: Setting) -> str:
    """Who is protected, and how much of each is used, in one sentence."""
    who = "any one row" if setting.unit is None else f"any one {setting.unit}, with all its rows,"
    act = {
        Relation.ADD_REMOVE: f"whether {who} is in the data at all",
        Relation.REPLACE_ONE: f"what the data say about {who} while their number is public",
    }[setting.relation]
    limits = [
        f"at most {value} {thing}{' is' if value == 1 else 's are'} used of each{where}"
        for value, thing, where in (
            (setting.limits.rows_per_unit, "row", ""),
            (setting.limits.groups_per_unit, "group", ""),
            (setting.limits.rows_per_unit_and_group, "row", " in a group"),
        )
        if value is not None
    ]
    return "; ".join([f"protects {act}", *limits])

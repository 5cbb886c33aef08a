"""Releases of other libraries, charged to our ledger and marked as claimed."""

from __future__ import annotations

from dataclasses import dataclass

from discreet.accounting.guarantee import Guarantee
from discreet.core.errors import InvalidArgument
from discreet.ledger.account import Account, Receipt, shorten_label


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimedRelease:
    """Hold the record of a release by another library. Made by `charge`.

    Its card says "claimed, not certified": discreet accounts for the event, and cannot see what was
    drawn.

    Attributes:
        title: What was released.
        claimed_by: Library and version that made the release.
        guarantee: Guarantee that the library claims.
        receipt: Entry of the ledger that paid.

    Examples:
        >>> import discreet
        >>> limit = discreet.approx_dp(8, 1e-6)
        >>> account = discreet.Ledger("memory://").account("model", limit=limit)
        >>> training = discreet.interop.from_opacus([(1.0, 0.01, 1_000)])
        >>> claim = discreet.interop.charge(
        ...     account, training, label="training of a classifier", claimed_by="opacus 1.5"
        ... )
        >>> discreet.card(claim).content["measurements"][0]["claimed_by"]
        'opacus 1.5'
    """

    title: str
    claimed_by: str
    guarantee: Guarantee
    receipt: Receipt


def charge(
    account: Account, guarantee: Guarantee, *, label: str, claimed_by: str
) -> ClaimedRelease:
    """Charge a release that another library makes, before it reads the data.

    Args:
        account: Account that pays.
        guarantee: Guarantee that the library claims, for all steps that you plan. If training stops
            early, the rest stays spent.
        label: What is released.
        claimed_by: Library and version, such as "opacus 1.5".

    Returns:
        The record, with the receipt; `discreet.card` takes it.

    Raises:
        BudgetExceeded: The account cannot pay. Nothing was spent.
        RelationMismatch: The guarantee is under another neighboring relation.
        InvalidArgument: `label` or `claimed_by` is no text.

    Privacy:
        The ledger accounts for the claimed event. Whether the library draws that noise is not
        checked.

    Examples:
        >>> import discreet
        >>> limit = discreet.approx_dp(8, 1e-6)
        >>> account = discreet.Ledger("memory://").account("model", limit=limit)
        >>> training = discreet.interop.from_opacus([(1.0, 0.01, 1_000)])
        >>> claim = discreet.interop.charge(
        ...     account, training, label="classifier", claimed_by="opacus 1.5"
        ... )
        >>> account.history[-1].label
        'classifier (claimed by opacus 1.5, not certified)'
    """
    given: dict[str, object] = {"label": label, "claimed_by": claimed_by}
    for name, text in given.items():
        if not isinstance(text, str) or not text.strip():
            raise InvalidArgument(f"{name} must be text that is not empty.")
    mark = f" (claimed by {shorten_label(claimed_by)[:80]}, not certified)"
    words = shorten_label(label)[: 190 - len(mark)]
    receipt = account.charge(guarantee, label=words + mark)
    return ClaimedRelease(title=label, claimed_by=claimed_by, guarantee=guarantee, receipt=receipt)

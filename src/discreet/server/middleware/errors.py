"""How a refusal is told over HTTP: a status, a code for programs, a sentence for people."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from discreet.core.errors import (
    BudgetExceeded,
    InvalidArgument,
    NotCertified,
    OutOfDomain,
    PrivacyError,
    RelationMismatch,
    Unsupported,
)
from discreet.ledger.store import StoreFailure


class Forbidden(PrivacyError):
    """The role of the caller may not do this."""


class NotFound(PrivacyError):
    """There is no such thing, or the caller may not know of it."""


class Conflict(PrivacyError):
    """The request contradicts an earlier one."""


class SignInNeeded(PrivacyError):
    """Nobody is signed in, or the token is no longer good."""


class Busy(PrivacyError):
    """There is too much to do at the moment; the same request may come again later."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProblemDetail:
    """What a caller is told."""

    status: int
    problem: str
    detail: str


_NONSENSE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RecursionError,
    TypeError,
    ValueError,
)
_KNOWN: tuple[tuple[type[PrivacyError], int, str], ...] = (
    (SignInNeeded, 401, "sign-in-needed"),
    (Forbidden, 403, "forbidden"),
    (NotFound, 404, "not-found"),
    (Conflict, 409, "conflict"),
    (BudgetExceeded, 409, "budget-exceeded"),
    (Busy, 429, "busy"),
    (RelationMismatch, 422, "relation-mismatch"),
    (OutOfDomain, 422, "out-of-domain"),
    (NotCertified, 422, "not-certified"),
    (Unsupported, 422, "unsupported"),
    (InvalidArgument, 422, "invalid-argument"),
    (StoreFailure, 503, "store-failure"),
)


@contextmanager
def as_invalid_argument(what: str) -> Iterator[None]:
    """Around code that sees nothing but what the caller wrote: what fails there is their words."""
    try:
        yield
    except PrivacyError:
        raise
    except _NONSENSE:
        raise InvalidArgument(f"{what}: cannot be understood; check types and sizes.") from None


def problem_of(error: PrivacyError) -> ProblemDetail:
    """The package's own errors never quote a private value, so their words may be sent."""
    for kind, status, code in _KNOWN:
        if isinstance(error, kind):
            detail = "The store does not answer." if status == 503 else str(error)
            return ProblemDetail(status=status, problem=code, detail=detail)
    return ProblemDetail(status=500, problem="failure", detail="Something went wrong.")

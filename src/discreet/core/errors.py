"""Everything that discreet refuses, under one root.

A message names the argument, what was given, what is allowed and what to do. It never quotes a
private value: only parameters, shapes and types appear in it.
"""

from __future__ import annotations

__all__ = [
    "BudgetExceeded",
    "InvalidArgument",
    "NotCertified",
    "OutOfDomain",
    "PrivacyError",
    "RelationMismatch",
    "Unsupported",
]


class PrivacyError(Exception):
    """The base class of all errors that discreet raises on purpose.

    Messages name the argument, what was given and what is allowed. They never quote a private
    value.

    Examples:
        >>> import discreet
        >>> try:
        ...     discreet.pure_dp(-1)
        ... except discreet.PrivacyError as error:
        ...     print(type(error).__name__)
        InvalidArgument
    """


class InvalidArgument(PrivacyError, ValueError):
    """An argument is outside its allowed range or has the wrong type.

    It is also a `ValueError`.

    Examples:
        >>> import discreet
        >>> discreet.pure_dp(-1)
        Traceback (most recent call last):
            ...
        discreet.core.errors.InvalidArgument: epsilon must not be negative, got -1.
    """


class OutOfDomain(PrivacyError, ValueError):
    """A private input does not have the declared shape, type or range.

    The message names the declaration, but not the value. It is also a `ValueError`.

    Examples:
        >>> import discreet
        >>> mechanism = discreet.laplace(sensitivity=1, epsilon=1, domain="integers")
        >>> try:
        ...     mechanism.release("twelve")
        ... except discreet.OutOfDomain:
        ...     print("refused")
        refused
    """


class RelationMismatch(PrivacyError, ValueError):
    """Guarantees or sensitivities under different relations were combined.

    It is also a `ValueError`.

    Examples:
        >>> import discreet
        >>> replace_one = discreet.NeighboringRelation.REPLACE_ONE
        >>> try:
        ...     discreet.pure_dp(1) + discreet.pure_dp(1, relation=replace_one)
        ... except discreet.RelationMismatch:
        ...     print("refused")
        refused
    """


class NotCertified(PrivacyError):
    """A claimed guarantee could not be verified from the noise distribution.

    Examples:
        >>> import discreet
        >>> account = discreet.Ledger("memory://").account("survey", limit=discreet.pure_dp(1))
        >>> try:
        ...     account.charge(0.5, label="only a Guarantee can be charged")
        ... except discreet.NotCertified:
        ...     print("refused")
        refused
    """


class BudgetExceeded(PrivacyError):
    """A charge would exceed the limit of an account or filter. Nothing was spent.

    Examples:
        >>> import discreet
        >>> account = discreet.Ledger("memory://").account("survey", limit=discreet.pure_dp(1))
        >>> try:
        ...     account.charge(discreet.pure_dp(2), label="too much")
        ... except discreet.BudgetExceeded:
        ...     print(account.remaining)
        1
    """


class Unsupported(PrivacyError, NotImplementedError):
    """There is no sound answer to this request, so discreet refuses it.

    It is also a `NotImplementedError`.

    Examples:
        >>> import discreet
        >>> budget = discreet.PureDPFilter(limit=1)
        >>> try:
        ...     budget.charge(discreet.gdp(1))
        ... except discreet.Unsupported:
        ...     print("Gaussian noise has no finite epsilon")
        Gaussian noise has no finite epsilon
    """

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
    """Root of the package's own errors."""


class InvalidArgument(PrivacyError, ValueError):
    """A public parameter is outside its range or of the wrong kind."""


class OutOfDomain(PrivacyError, ValueError):
    """The private input is not of the declared shape, type or range (the values are not shown)."""


class RelationMismatch(PrivacyError, ValueError):
    """Two guarantees or sensitivities under different relations were mixed."""


class NotCertified(PrivacyError):
    """A claimed guarantee could not be recomputed from the exact law."""


class BudgetExceeded(PrivacyError):
    """The limit would be passed; nothing was spent."""


class Unsupported(PrivacyError, NotImplementedError):
    """The question has no sound answer here: refused instead of guessed."""

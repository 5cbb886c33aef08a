"""Differential privacy for people who must publish."""

from discreet.accounting.guarantee import Guarantee, approx, gdp, pure, zcdp
from discreet.core.errors import (
    BudgetExceeded,
    InvalidArgument,
    NotCertified,
    OutOfDomain,
    PrivacyError,
    RelationMismatch,
    Unsupported,
)
from discreet.core.relation import PrivacyUnit, Relation
from discreet.ledger.ledger import Ledger
from discreet.mechanisms.gaussian import gaussian
from discreet.mechanisms.laplace import laplace
from discreet.mechanisms.response import randomised_response
from discreet.mechanisms.selection import exponential, noisy_max, permute_and_flip
from discreet.mechanisms.threshold import above_threshold
from discreet.mechanisms.truncated import truncated_laplace
from discreet.noise.bits import seeded, system

__version__ = "0.1.0"
__all__ = [
    "BudgetExceeded",
    "Guarantee",
    "InvalidArgument",
    "Ledger",
    "NotCertified",
    "OutOfDomain",
    "PrivacyError",
    "PrivacyUnit",
    "Relation",
    "RelationMismatch",
    "Unsupported",
    "above_threshold",
    "approx",
    "exponential",
    "gaussian",
    "gdp",
    "laplace",
    "noisy_max",
    "permute_and_flip",
    "pure",
    "randomised_response",
    "seeded",
    "system",
    "truncated_laplace",
    "zcdp",
]

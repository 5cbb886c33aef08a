"""Generalized linear models with standard errors: logit and Poisson regression.

Coefficients are found by Fisher scoring on exact integer sums with noise. Rows far from the others
are weighted down, never moved, so that coefficients keep their meaning.
"""

import discreet.models._charging  # noqa: F401 - first: it names what is missing
from discreet.models.glm.estimators import PrivateLogit, PrivatePoisson
from discreet.models.glm.fisher_scoring import ScoringPlan

__all__ = ["PrivateLogit", "PrivatePoisson", "ScoringPlan"]

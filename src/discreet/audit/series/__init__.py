"""Leakage of repeated releases about the same people with correlated values.

Every result is about a Gaussian time series model and an attacker who knows it. It is not
differential privacy. All people and times are counted from 0.
"""

from discreet.audit.series._design import design
from discreet.audit.series._fit import fit
from discreet.audit.series._leakage import cells, leakage
from discreet.audit.series._private_fit import plan_fit, private_fit
from discreet.audit.series._private_full_fit import private_full_fit
from discreet.audit.series._publish import publish, smooth
from discreet.audit.series._report import assess, report
from discreet.audit.series.exchangeable import ExchangeableVAR
from discreet.audit.series.model import VAR
from discreet.audit.series.threat_model import releases, secret_person, secret_time, secret_value
from discreet.audit.series.worst_case import stress, window, worst, worst_over_models

__all__ = [
    "VAR",
    "ExchangeableVAR",
    "assess",
    "cells",
    "design",
    "fit",
    "leakage",
    "plan_fit",
    "private_fit",
    "private_full_fit",
    "publish",
    "releases",
    "report",
    "secret_person",
    "secret_time",
    "secret_value",
    "smooth",
    "stress",
    "window",
    "worst",
    "worst_over_models",
]

"""Private linear regression: noisy moments on a grid, and what is fitted from them."""

import discreet.models.extra  # noqa: F401 - first: it names what is missing
from discreet.models.regression.best import BestLinearRegression
from discreet.models.regression.choose import Choice, choose
from discreet.models.regression.estimator import PrivateLinearRegression
from discreet.models.regression.lattice import Lattice
from discreet.models.regression.moments import MomentsPlan, PrivateMoments, plan_moments
from discreet.models.regression.rows import RowMap, Sums, sums
from discreet.models.regression.scaling import Scaling
from discreet.models.regression.select import select_features
from discreet.models.regression.shrinkage import shrunken
from discreet.models.regression.solve import Solution, adassp, penalised, psd, ssp

__all__ = [
    "BestLinearRegression",
    "Choice",
    "Lattice",
    "MomentsPlan",
    "PrivateLinearRegression",
    "PrivateMoments",
    "RowMap",
    "Scaling",
    "Solution",
    "Sums",
    "adassp",
    "choose",
    "penalised",
    "plan_moments",
    "psd",
    "select_features",
    "shrunken",
    "ssp",
    "sums",
]

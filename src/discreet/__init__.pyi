# The public names, and where each lives: `__init__.py` reads this file when a name is first used.

from discreet import disclosure, leakage, local, models
from discreet.accounting.guarantee import Guarantee, approx, gdp, pure, zcdp
from discreet.apps.client.connect import connect
from discreet.core.errors import (
    BudgetExceeded,
    InvalidArgument,
    NotCertified,
    OutOfDomain,
    PrivacyError,
    RelationMismatch,
    Unsupported,
)
from discreet.core.relation import Relation
from discreet.data.expression import col, when
from discreet.data.schema import boolean, category, date, integer, real, text
from discreet.ledger.ledger import Ledger
from discreet.mechanisms.best import best_additive
from discreet.mechanisms.blocks import sample_aggregate
from discreet.mechanisms.blocks_bins import bin_counts
from discreet.mechanisms.bounded import bounded_laplace, clamped, folded
from discreet.mechanisms.bounded_advice import advise_bounded
from discreet.mechanisms.bounded_spread import private_sd, private_variance
from discreet.mechanisms.gaussian import gaussian
from discreet.mechanisms.laplace import laplace
from discreet.mechanisms.local.response import randomised_response
from discreet.mechanisms.personal.sampling import personal_sample
from discreet.mechanisms.propose import propose_test_release
from discreet.mechanisms.quantile import private_quantile
from discreet.mechanisms.quantile_tree import private_quantiles
from discreet.mechanisms.selection import exponential, noisy_max, permute_and_flip
from discreet.mechanisms.smooth import smooth
from discreet.mechanisms.threshold import above_threshold
from discreet.mechanisms.truncated import truncated_laplace
from discreet.mechanisms.unbounded import unbounded_mean
from discreet.mechanisms.weighted import weighted
from discreet.models import learned
from discreet.noise.bits import seeded, system
from discreet.queries import ask, ranges
from discreet.queries.intervals import doors as intervals
from discreet.queries.keys import keys
from discreet.queries.ranges.grid_release import GridRelease
from discreet.queries.ranges.question import plan_ranges
from discreet.queries.ranges.release import RangeRelease
from discreet.queries.ranges.stream_plan import plan_stream
from discreet.report.plot import plot
from discreet.tables.release import Release
from discreet.tables.stream import stream
from discreet.tables.table import table

__version__: str
__all__ = [
    "BudgetExceeded",
    "GridRelease",
    "Guarantee",
    "InvalidArgument",
    "Ledger",
    "NotCertified",
    "OutOfDomain",
    "PrivacyError",
    "RangeRelease",
    "Relation",
    "RelationMismatch",
    "Release",
    "Unsupported",
    "above_threshold",
    "advise_bounded",
    "approx",
    "ask",
    "best_additive",
    "bin_counts",
    "boolean",
    "bounded_laplace",
    "category",
    "clamped",
    "col",
    "connect",
    "date",
    "disclosure",
    "exponential",
    "folded",
    "gaussian",
    "gdp",
    "integer",
    "intervals",
    "keys",
    "laplace",
    "leakage",
    "learned",
    "local",
    "models",
    "noisy_max",
    "permute_and_flip",
    "personal_sample",
    "plan_ranges",
    "plan_stream",
    "plot",
    "private_quantile",
    "private_quantiles",
    "private_sd",
    "private_variance",
    "propose_test_release",
    "pure",
    "randomised_response",
    "ranges",
    "real",
    "sample_aggregate",
    "seeded",
    "smooth",
    "stream",
    "system",
    "table",
    "text",
    "truncated_laplace",
    "unbounded_mean",
    "weighted",
    "when",
    "zcdp",
]

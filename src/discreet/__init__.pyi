# The public names, and where each lives: `__init__.py` reads this file when a name is first used.

from discreet import audit as leakage
from discreet import disclosure, intervals, local, models, ranges
from discreet.accounting.guarantee import Guarantee, approx, gdp, pure, zcdp
from discreet.client.remote_table import connect
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
from discreet.local.oracles.randomized_response import randomised_response
from discreet.mechanisms.above_threshold import above_threshold
from discreet.mechanisms.additive import gaussian, laplace
from discreet.mechanisms.bin_statistics import bin_counts
from discreet.mechanisms.bounded.compare import advise_bounded
from discreet.mechanisms.bounded.mechanism import bounded_laplace, clamped, folded
from discreet.mechanisms.bounded.spread import private_sd, private_variance
from discreet.mechanisms.data_dependent.propose_test_release import propose_test_release
from discreet.mechanisms.data_dependent.sample_and_aggregate import sample_aggregate
from discreet.mechanisms.data_dependent.smooth_sensitivity import smooth
from discreet.mechanisms.data_dependent.weighted_sensitivity import weighted
from discreet.mechanisms.mean_without_bounds import unbounded_mean
from discreet.mechanisms.personalized.sampling import personal_sample
from discreet.mechanisms.quantiles import private_quantile, private_quantiles
from discreet.mechanisms.scalar.best_noise import best_additive
from discreet.mechanisms.scalar.truncated_laplace import truncated_laplace
from discreet.mechanisms.selection import exponential, noisy_max, permute_and_flip
from discreet.models import blackbox as learned
from discreet.noise.random_source import seeded, system
from discreet.query import builders as ask
from discreet.query.key_sets import keys
from discreet.ranges.grid.release import GridRelease
from discreet.ranges.release import RangeRelease
from discreet.ranges.stream.plan import plan_stream
from discreet.ranges.table_query import plan_ranges
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

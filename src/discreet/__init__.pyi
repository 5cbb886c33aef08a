# The public names, and where each lives: `__init__.py` reads this file when a name is first used.

from discreet import audit, disclosure, intervals, local, models, query, ranges
from discreet.accounting.guarantee import Guarantee, approx_dp, gdp, pure_dp, zcdp
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
from discreet.core.relation import NeighboringRelation
from discreet.data.expression import col, when
from discreet.data.schema import boolean, category, date, integer, real, text
from discreet.ledger.ledger import Ledger
from discreet.local.oracles.randomized_response import randomized_response
from discreet.mechanisms.above_threshold import above_threshold
from discreet.mechanisms.additive import gaussian, laplace
from discreet.mechanisms.bin_statistics import private_bin_counts
from discreet.mechanisms.bounded.compare import compare_bounded_noise
from discreet.mechanisms.bounded.mechanism import bounded_laplace, clamp_output, reflect_output
from discreet.mechanisms.bounded.spread import private_std, private_variance
from discreet.mechanisms.data_dependent.propose_test_release import propose_test_release
from discreet.mechanisms.data_dependent.sample_and_aggregate import sample_and_aggregate
from discreet.mechanisms.data_dependent.smooth_sensitivity import smooth_sensitivity
from discreet.mechanisms.data_dependent.weighted_sensitivity import weighted_sensitivity
from discreet.mechanisms.mean_without_bounds import mean_without_bounds
from discreet.mechanisms.personalized.sampling import personalized_sampling
from discreet.mechanisms.quantiles import private_quantile, private_quantiles
from discreet.mechanisms.scalar.best_noise import best_additive_noise
from discreet.mechanisms.scalar.truncated_laplace import truncated_laplace
from discreet.mechanisms.selection import exponential_mechanism, permute_and_flip, report_noisy_max
from discreet.models import blackbox
from discreet.noise.random_source import seeded_rng, system_rng
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
    "NeighboringRelation",
    "NotCertified",
    "OutOfDomain",
    "PrivacyError",
    "RangeRelease",
    "RelationMismatch",
    "Release",
    "Unsupported",
    "above_threshold",
    "approx_dp",
    "audit",
    "best_additive_noise",
    "blackbox",
    "boolean",
    "bounded_laplace",
    "category",
    "clamp_output",
    "col",
    "compare_bounded_noise",
    "connect",
    "date",
    "disclosure",
    "exponential_mechanism",
    "gaussian",
    "gdp",
    "integer",
    "intervals",
    "keys",
    "laplace",
    "local",
    "mean_without_bounds",
    "models",
    "permute_and_flip",
    "personalized_sampling",
    "plan_ranges",
    "plan_stream",
    "plot",
    "private_bin_counts",
    "private_quantile",
    "private_quantiles",
    "private_std",
    "private_variance",
    "propose_test_release",
    "pure_dp",
    "query",
    "randomized_response",
    "ranges",
    "real",
    "reflect_output",
    "report_noisy_max",
    "sample_and_aggregate",
    "seeded_rng",
    "smooth_sensitivity",
    "stream",
    "system_rng",
    "table",
    "text",
    "truncated_laplace",
    "weighted_sensitivity",
    "when",
    "zcdp",
]

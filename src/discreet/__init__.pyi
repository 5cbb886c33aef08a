# The public names, and where each lives: `__init__.py` reads this file when a name is first used.

from discreet import audit as audit
from discreet import disclosure as disclosure
from discreet import interop as interop
from discreet import intervals as intervals
from discreet import local as local
from discreet import models as models
from discreet import query as query
from discreet import ranges as ranges
from discreet.accounting.filters import PrivacyOdometer as PrivacyOdometer
from discreet.accounting.filters import PureDPFilter as PureDPFilter
from discreet.accounting.filters import RenyiFilter as RenyiFilter
from discreet.accounting.filters import ZcdpFilter as ZcdpFilter
from discreet.accounting.guarantee import Guarantee as Guarantee
from discreet.accounting.guarantee import approx_dp as approx_dp
from discreet.accounting.guarantee import gdp as gdp
from discreet.accounting.guarantee import pure_dp as pure_dp
from discreet.accounting.guarantee import zcdp as zcdp
from discreet.accounting.meaning import AttackBounds as AttackBounds
from discreet.accounting.periods import PeriodCosts as PeriodCosts
from discreet.accounting.risk_budget import budget_for_risk as budget_for_risk
from discreet.cards.card import CardCheck as CardCheck
from discreet.cards.card import ReleaseCard as ReleaseCard
from discreet.cards.card import card as card
from discreet.client.remote_table import connect as connect
from discreet.core.errors import BudgetExceeded as BudgetExceeded
from discreet.core.errors import InvalidArgument as InvalidArgument
from discreet.core.errors import NotCertified as NotCertified
from discreet.core.errors import OutOfDomain as OutOfDomain
from discreet.core.errors import PrivacyError as PrivacyError
from discreet.core.errors import RelationMismatch as RelationMismatch
from discreet.core.errors import Unsupported as Unsupported
from discreet.core.relation import NeighboringRelation as NeighboringRelation
from discreet.data.expression import Expression as Expression
from discreet.data.expression import col as col
from discreet.data.expression import when as when
from discreet.data.schema import ColumnSpec as ColumnSpec
from discreet.data.schema import boolean as boolean
from discreet.data.schema import category as category
from discreet.data.schema import date as date
from discreet.data.schema import integer as integer
from discreet.data.schema import real as real
from discreet.data.schema import text as text
from discreet.ledger.account import Account as Account
from discreet.ledger.account import Receipt as Receipt
from discreet.ledger.ledger import Ledger as Ledger
from discreet.local.oracles.randomized_response import randomized_response as randomized_response
from discreet.marginals.reconciled import ReconciledRelease as ReconciledRelease
from discreet.marginals.release import MarginalRelease as MarginalRelease
from discreet.mechanisms.above_threshold import above_threshold as above_threshold
from discreet.mechanisms.additive import gaussian as gaussian
from discreet.mechanisms.additive import laplace as laplace
from discreet.mechanisms.bin_statistics import private_bin_counts as private_bin_counts
from discreet.mechanisms.bounded.compare import compare_bounded_noise as compare_bounded_noise
from discreet.mechanisms.bounded.mechanism import bounded_laplace as bounded_laplace
from discreet.mechanisms.bounded.mechanism import clamp_output as clamp_output
from discreet.mechanisms.bounded.mechanism import reflect_output as reflect_output
from discreet.mechanisms.bounded.spread import private_std as private_std
from discreet.mechanisms.bounded.spread import private_variance as private_variance
from discreet.mechanisms.data_dependent.propose_test_release import (
    propose_test_release as propose_test_release,
)
from discreet.mechanisms.data_dependent.sample_and_aggregate import (
    sample_and_aggregate as sample_and_aggregate,
)
from discreet.mechanisms.data_dependent.smooth_sensitivity import (
    smooth_sensitivity as smooth_sensitivity,
)
from discreet.mechanisms.data_dependent.weighted_sensitivity import (
    weighted_sensitivity as weighted_sensitivity,
)
from discreet.mechanisms.mean_without_bounds import mean_without_bounds as mean_without_bounds
from discreet.mechanisms.mechanism import Mechanism as Mechanism
from discreet.mechanisms.personalized.sampling import personalized_sampling as personalized_sampling
from discreet.mechanisms.quantiles import private_quantile as private_quantile
from discreet.mechanisms.quantiles import private_quantiles as private_quantiles
from discreet.mechanisms.scalar.best_noise import best_additive_noise as best_additive_noise
from discreet.mechanisms.scalar.truncated_laplace import truncated_laplace as truncated_laplace
from discreet.mechanisms.selection import exponential_mechanism as exponential_mechanism
from discreet.mechanisms.selection import permute_and_flip as permute_and_flip
from discreet.mechanisms.selection import report_noisy_max as report_noisy_max
from discreet.models import blackbox as blackbox
from discreet.noise.random_source import RandomSource as RandomSource
from discreet.noise.random_source import seeded_rng as seeded_rng
from discreet.noise.random_source import system_rng as system_rng
from discreet.query.error_forecast import ErrorForecast as ErrorForecast
from discreet.query.key_sets import keys as keys
from discreet.ranges.grid.release import GridRelease as GridRelease
from discreet.ranges.release import RangeRelease as RangeRelease
from discreet.ranges.stream.plan import plan_stream as plan_stream
from discreet.ranges.table_query import plan_ranges as plan_ranges
from discreet.report.plot import plot as plot
from discreet.tables.reconcile import reconcile as reconcile
from discreet.tables.release import Release as Release
from discreet.tables.stream import stream as stream
from discreet.tables.table import Table as Table
from discreet.tables.table import table as table

__version__: str
__all__ = [
    "Account",
    "AttackBounds",
    "BudgetExceeded",
    "CardCheck",
    "ColumnSpec",
    "ErrorForecast",
    "Expression",
    "GridRelease",
    "Guarantee",
    "InvalidArgument",
    "Ledger",
    "MarginalRelease",
    "Mechanism",
    "NeighboringRelation",
    "NotCertified",
    "OutOfDomain",
    "PeriodCosts",
    "PrivacyError",
    "PrivacyOdometer",
    "PureDPFilter",
    "RandomSource",
    "RangeRelease",
    "Receipt",
    "ReconciledRelease",
    "RelationMismatch",
    "Release",
    "ReleaseCard",
    "RenyiFilter",
    "Table",
    "Unsupported",
    "ZcdpFilter",
    "above_threshold",
    "approx_dp",
    "audit",
    "best_additive_noise",
    "blackbox",
    "boolean",
    "bounded_laplace",
    "budget_for_risk",
    "card",
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
    "interop",
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
    "reconcile",
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

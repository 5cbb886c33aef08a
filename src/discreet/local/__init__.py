"""Collect in the local model: clients randomize values, a server estimates.

A local randomizer (such as the frequency oracles `oue` and `olh`, or `square_wave`) is the public
description of a collection. A client calls `randomize` and sends the report. An `Aggregator` adds
up reports, on one machine or on many, and its `estimate` states its error.
"""

from discreet.local._heavy_hitters import heavy_hitters
from discreet.local.collection.aggregator import Aggregator
from discreet.local.collection.aggregator_state import AggregatorState
from discreet.local.collection.client import BudgetedClient, MemoizedClient
from discreet.local.collection.report_file import ReportWriter
from discreet.local.collection.spec import CollectionSpec
from discreet.local.distributed_noise import distributed_laplace
from discreet.local.distribution import square_wave
from discreet.local.longitudinal import l_osue, longitudinal_olh, rappor
from discreet.local.means.balanced_piecewise import balanced_piecewise
from discreet.local.means.hybrid import hybrid_mean
from discreet.local.means.local_laplace import local_laplace
from discreet.local.means.multidimensional import best_mean_randomizer, multidimensional_mean
from discreet.local.means.piecewise import duchi, piecewise_mean
from discreet.local.oracles.histogram_encoding import summation_histogram_encoding
from discreet.local.oracles.local_hashing import hadamard_response, olh
from discreet.local.oracles.randomized_response import grr
from discreet.local.oracles.subset_selection import subset_selection
from discreet.local.oracles.unary_encoding import oue, sue, threshold_histogram_encoding
from discreet.local.ranges._variance import best_oracle
from discreet.local.ranges.adaptive import adaptive_hierarchy
from discreet.local.ranges.haar import haar_wavelet
from discreet.local.ranges.hierarchical import flat_histogram, hierarchical_histogram
from discreet.local.ranges.hybrid_grid import hybrid_grid
from discreet.local.ranges.plan import optimal_hierarchical_histogram, plan_collection
from discreet.local.ranges.release import LocalRanges
from discreet.local.ranges.square_wave_error import simulate_square_wave_error
from discreet.local.registry import randomizer_from_json
from discreet.local.shuffle import local_epsilon_for, shuffled_guarantee
from discreet.local.trust_models import compare_trust_models, shuffled_ranges
from discreet.ranges.domain import bins, dates, integers, ordered

__all__ = [
    "Aggregator",
    "AggregatorState",
    "BudgetedClient",
    "CollectionSpec",
    "LocalRanges",
    "MemoizedClient",
    "ReportWriter",
    "adaptive_hierarchy",
    "balanced_piecewise",
    "best_mean_randomizer",
    "best_oracle",
    "bins",
    "compare_trust_models",
    "dates",
    "distributed_laplace",
    "duchi",
    "flat_histogram",
    "grr",
    "haar_wavelet",
    "hadamard_response",
    "heavy_hitters",
    "hierarchical_histogram",
    "hybrid_grid",
    "hybrid_mean",
    "integers",
    "l_osue",
    "local_epsilon_for",
    "local_laplace",
    "longitudinal_olh",
    "multidimensional_mean",
    "olh",
    "optimal_hierarchical_histogram",
    "ordered",
    "oue",
    "piecewise_mean",
    "plan_collection",
    "randomizer_from_json",
    "rappor",
    "shuffled_guarantee",
    "shuffled_ranges",
    "simulate_square_wave_error",
    "square_wave",
    "subset_selection",
    "sue",
    "summation_histogram_encoding",
    "threshold_histogram_encoding",
]


def __dir__() -> list[str]:
    """What completion offers: the public names, not the modules that hold them."""
    return __all__

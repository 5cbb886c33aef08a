"""The door of the local model: what clients send becomes an estimate, on one machine or many.

A randomiser (`oue`, `olh`, `square_wave`, `tree`, ...) is the public description of a collection:
clients `encode`, a server adds their reports into an `Aggregate`, whose `estimate` has an error.
"""

from discreet.local._heavy_hitters import heavy_hitters
from discreet.local.collection.aggregator import Aggregate
from discreet.local.collection.aggregator_state import State
from discreet.local.collection.client import FreshClient, MemoisedClient
from discreet.local.collection.report_file import Writer
from discreet.local.collection.spec import Collection
from discreet.local.distributed_noise import laplace_shares
from discreet.local.longitudinal import l_olh, l_osue, rappor
from discreet.local.means.balanced_piecewise import balanced
from discreet.local.means.hybrid import hybrid
from discreet.local.means.local_laplace import local_laplace
from discreet.local.means.multidimensional import best_mean, several
from discreet.local.means.piecewise import duchi, piecewise
from discreet.local.oracles.histogram_encoding import she
from discreet.local.oracles.local_hashing import hadamard_response, olh
from discreet.local.oracles.randomized_response import grr
from discreet.local.oracles.subset_selection import subset_selection
from discreet.local.oracles.unary_encoding import oue, sue, the
from discreet.local.ranges._variance import best_oracle
from discreet.local.ranges.adaptive import adaptive
from discreet.local.ranges.haar import haar
from discreet.local.ranges.hierarchical import flat, tree
from discreet.local.ranges.hybrid_grid import local_grid
from discreet.local.ranges.plan import optimal_tree, plan_local
from discreet.local.ranges.release import LocalRanges
from discreet.local.ranges.square_wave_error import simulated_error
from discreet.local.registry import from_description
from discreet.local.shuffle import local_epsilon, shuffled
from discreet.local.distribution import square_wave
from discreet.local.trust_models import shuffled_ranges, trust_ladder
from discreet.ranges.domain import bins, dates, integers, ordered

__all__ = [
    "Aggregate",
    "Collection",
    "FreshClient",
    "LocalRanges",
    "MemoisedClient",
    "State",
    "Writer",
    "adaptive",
    "balanced",
    "best_mean",
    "best_oracle",
    "bins",
    "dates",
    "duchi",
    "flat",
    "from_description",
    "grr",
    "haar",
    "hadamard_response",
    "heavy_hitters",
    "hybrid",
    "integers",
    "l_olh",
    "l_osue",
    "laplace_shares",
    "local_epsilon",
    "local_grid",
    "local_laplace",
    "olh",
    "optimal_tree",
    "ordered",
    "oue",
    "piecewise",
    "plan_local",
    "rappor",
    "several",
    "she",
    "shuffled",
    "shuffled_ranges",
    "simulated_error",
    "square_wave",
    "subset_selection",
    "sue",
    "the",
    "tree",
    "trust_ladder",
]


def __dir__() -> list[str]:
    """What completion offers: the public names, not the modules that hold them."""
    return __all__

"""The door of the local model: what clients send becomes an estimate, on one machine or many.

A randomiser (`oue`, `olh`, `square_wave`, `tree`, ...) is the public description of a collection:
clients `encode`, a server adds their reports into an `Aggregate`, whose `estimate` has an error.
"""

from discreet.local.aggregate import Aggregate
from discreet.local.catalogue import from_description
from discreet.local.collection import Collection
from discreet.local.files import Writer
from discreet.local.state import State
from discreet.mechanisms.local.balanced import balanced
from discreet.mechanisms.local.best import best_mean
from discreet.mechanisms.local.client import FreshClient, MemoisedClient
from discreet.mechanisms.local.hashing import hadamard_response, olh
from discreet.mechanisms.local.histogram import she
from discreet.mechanisms.local.hybrid import hybrid
from discreet.mechanisms.local.laplace import local_laplace
from discreet.mechanisms.local.longitudinal import l_osue, rappor
from discreet.mechanisms.local.memoised_hashing import l_olh
from discreet.mechanisms.local.piecewise import duchi, piecewise
from discreet.mechanisms.local.response import grr
from discreet.mechanisms.local.several import several
from discreet.mechanisms.local.shares import laplace_shares
from discreet.mechanisms.local.shuffling import local_epsilon, shuffled
from discreet.mechanisms.local.subset import subset_selection
from discreet.mechanisms.local.unary import oue, sue, the
from discreet.mechanisms.local.wave import square_wave
from discreet.queries.ranges.domain import bins, dates, integers, ordered
from discreet.queries.ranges.local.adaptive import adaptive
from discreet.queries.ranges.local.choice import best_oracle
from discreet.queries.ranges.local.grid import local_grid
from discreet.queries.ranges.local.haar import haar
from discreet.queries.ranges.local.heavy import heavy_hitters
from discreet.queries.ranges.local.ladder import trust_ladder
from discreet.queries.ranges.local.optimise import optimal_tree
from discreet.queries.ranges.local.plan import plan_local
from discreet.queries.ranges.local.release import LocalRanges
from discreet.queries.ranges.local.shuffled import shuffled_ranges
from discreet.queries.ranges.local.tree import flat, tree
from discreet.queries.ranges.local.wave import simulated_error

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

from discreet.query.builders import Query as Query
from discreet.query.builders import compare as compare
from discreet.query.builders import correlation as correlation
from discreet.query.builders import count as count
from discreet.query.builders import count_distinct as count_distinct
from discreet.query.builders import count_units as count_units
from discreet.query.builders import covariance as covariance
from discreet.query.builders import histogram as histogram
from discreet.query.builders import maximum as maximum
from discreet.query.builders import mean as mean
from discreet.query.builders import median as median
from discreet.query.builders import minimum as minimum
from discreet.query.builders import quantiles as quantiles
from discreet.query.builders import ratio as ratio
from discreet.query.builders import share as share
from discreet.query.builders import std as std
from discreet.query.builders import sum as sum
from discreet.query.builders import variance as variance
from discreet.query.builders import weighted_mean as weighted_mean
from discreet.query.key_sets import KeySet as KeySet
from discreet.query.key_sets import keys as keys

__all__ = [
    "KeySet",
    "Query",
    "compare",
    "correlation",
    "count",
    "count_distinct",
    "count_units",
    "covariance",
    "histogram",
    "keys",
    "maximum",
    "mean",
    "median",
    "minimum",
    "quantiles",
    "ratio",
    "share",
    "std",
    "sum",
    "variance",
    "weighted_mean",
]

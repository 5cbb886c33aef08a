from discreet.query.builders import (
    Query,
    count,
    count_units,
    covariance,
    histogram,
    mean,
    median,
    quantiles,
    sum,
    variance,
)
from discreet.query.key_sets import KeySet, keys

__all__ = [
    "KeySet",
    "Query",
    "count",
    "count_units",
    "covariance",
    "histogram",
    "keys",
    "mean",
    "median",
    "quantiles",
    "sum",
    "variance",
]

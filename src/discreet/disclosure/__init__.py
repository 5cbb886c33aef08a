"""Classical disclosure control, measured and never called private, and two bridges that are.

Only `sampled_table` and `private_points` are differentially private and have a guarantee.
"""

from discreet.disclosure._disclosure_risk import (
    Diversity,
    Risk,
    Utility,
    assess,
    histogram,
    ks_distance,
    utility,
    wasserstein,
)
from discreet.disclosure._k_noise import (
    AdaptiveJitter,
    Jittered,
    Points,
    PrivatePoints,
    anonymity_sets,
    crowd,
    crowd_jitter,
    expected_crowd,
    k_noise,
    likely_crowd,
    private_points,
    required_delta,
    sure_crowd,
    width_after,
)
from discreet.disclosure._safe_k_anonymity import (
    SampledTable,
    published_delta,
    sampled_table,
    worst_delta,
)
from discreet.disclosure.generalization_hierarchy import (
    Categories,
    Hierarchy,
    Intervals,
    Prefixes,
    Step,
    at,
    categories,
    intervals,
    prefixes,
)
from discreet.disclosure.k_anonymity import Anonymised, anonymise
from discreet.disclosure._pram import (
    Estimate,
    Pram,
    Redrawn,
    block_pram,
    group_sizes,
    k_pram,
    kept_with,
    pram,
)

__all__ = [
    "AdaptiveJitter",
    "Anonymised",
    "Categories",
    "Diversity",
    "Estimate",
    "Hierarchy",
    "Intervals",
    "Jittered",
    "Points",
    "Pram",
    "Prefixes",
    "PrivatePoints",
    "Redrawn",
    "Risk",
    "SampledTable",
    "Step",
    "Utility",
    "anonymise",
    "anonymity_sets",
    "assess",
    "at",
    "block_pram",
    "categories",
    "crowd",
    "crowd_jitter",
    "expected_crowd",
    "group_sizes",
    "histogram",
    "intervals",
    "k_noise",
    "k_pram",
    "kept_with",
    "ks_distance",
    "likely_crowd",
    "pram",
    "prefixes",
    "private_points",
    "published_delta",
    "required_delta",
    "sampled_table",
    "sure_crowd",
    "utility",
    "wasserstein",
    "width_after",
    "worst_delta",
]


def __dir__() -> list[str]:
    """What completion offers: the public names, not the modules that hold them."""
    return __all__

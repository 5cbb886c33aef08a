"""Classical disclosure control, measured and never called private, and two bridges that are.

Only `sampled_table` and `private_points` are differentially private and have a guarantee.
"""

from discreet.disclosure._disclosure_risk import (
    DisclosureRisk,
    Diversity,
    UtilityLoss,
    disclosure_risk,
    histogram,
    ks_distance,
    utility,
    wasserstein,
)
from discreet.disclosure._k_noise import (
    AdaptiveJitter,
    BinnedPoints,
    KNoiseRelease,
    PrivatePoints,
    adaptive_jitter,
    anonymity_set_size,
    anonymity_sets,
    expected_anonymity_set_size,
    guaranteed_anonymity_set_size,
    k_noise,
    k_noise_half_width,
    private_points,
    probable_anonymity_set_size,
    width_after_releases,
)
from discreet.disclosure._pram import (
    PRAM,
    KPramRelease,
    PramEstimate,
    block_pram,
    group_sizes,
    k_pram,
    pram,
    symmetric_pram,
)
from discreet.disclosure._safe_k_anonymity import (
    SafeKAnonymousTable,
    safe_k_anonymity,
    safe_k_delta,
    safe_k_delta_published,
)
from discreet.disclosure.generalization_hierarchy import (
    CategoryHierarchy,
    Hierarchy,
    HierarchyLevel,
    IntervalHierarchy,
    PrefixHierarchy,
    category_hierarchy,
    hierarchy_level,
    interval_hierarchy,
    prefix_hierarchy,
)
from discreet.disclosure.k_anonymity import AnonymizedTable, k_anonymize

__all__ = [
    "AdaptiveJitter",
    "AnonymizedTable",
    "CategoryHierarchy",
    "Diversity",
    "PramEstimate",
    "Hierarchy",
    "IntervalHierarchy",
    "KNoiseRelease",
    "BinnedPoints",
    "PRAM",
    "PrefixHierarchy",
    "PrivatePoints",
    "KPramRelease",
    "DisclosureRisk",
    "SafeKAnonymousTable",
    "HierarchyLevel",
    "UtilityLoss",
    "k_anonymize",
    "anonymity_sets",
    "disclosure_risk",
    "hierarchy_level",
    "block_pram",
    "category_hierarchy",
    "anonymity_set_size",
    "adaptive_jitter",
    "expected_anonymity_set_size",
    "group_sizes",
    "histogram",
    "interval_hierarchy",
    "k_noise",
    "k_pram",
    "symmetric_pram",
    "ks_distance",
    "probable_anonymity_set_size",
    "pram",
    "prefix_hierarchy",
    "private_points",
    "safe_k_delta_published",
    "k_noise_half_width",
    "safe_k_anonymity",
    "guaranteed_anonymity_set_size",
    "utility",
    "wasserstein",
    "width_after_releases",
    "safe_k_delta",
]


def __dir__() -> list[str]:
    """What completion offers: the public names, not the modules that hold them."""
    return __all__

"""Disclosure control, an audit of published tables, and two mechanisms.

Only `safe_k_anonymity` and `private_points` are differentially private and have a guarantee. The
other methods are for comparison and for data that must keep a classical format.
"""

from discreet.disclosure._audit_tables import CellFinding, TableAudit, audit_tables
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
    KNoiseRelease,
    adaptive_jitter,
    anonymity_set_size,
    anonymity_sets,
    expected_anonymity_set_size,
    guaranteed_anonymity_set_size,
    k_noise,
    k_noise_half_width,
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
from discreet.disclosure._private_points import BinnedPoints, PrivatePoints, private_points
from discreet.disclosure._safe_k_anonymity import (
    SafeKAnonymousTable,
    safe_k_anonymity,
    safe_k_delta,
    safe_k_delta_published,
)
from discreet.disclosure._suggest_suppression import SuppressionSuggestion, suggest_suppression
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
from discreet.disclosure.published_tables import PublishedCell, PublishedTable, published_table

__all__ = [
    "PRAM",
    "AdaptiveJitter",
    "AnonymizedTable",
    "BinnedPoints",
    "CategoryHierarchy",
    "CellFinding",
    "DisclosureRisk",
    "Diversity",
    "Hierarchy",
    "HierarchyLevel",
    "IntervalHierarchy",
    "KNoiseRelease",
    "KPramRelease",
    "PramEstimate",
    "PrefixHierarchy",
    "PrivatePoints",
    "PublishedCell",
    "PublishedTable",
    "SafeKAnonymousTable",
    "SuppressionSuggestion",
    "TableAudit",
    "UtilityLoss",
    "adaptive_jitter",
    "anonymity_set_size",
    "anonymity_sets",
    "audit_tables",
    "block_pram",
    "category_hierarchy",
    "disclosure_risk",
    "expected_anonymity_set_size",
    "group_sizes",
    "guaranteed_anonymity_set_size",
    "hierarchy_level",
    "histogram",
    "interval_hierarchy",
    "k_anonymize",
    "k_noise",
    "k_noise_half_width",
    "k_pram",
    "ks_distance",
    "pram",
    "prefix_hierarchy",
    "private_points",
    "probable_anonymity_set_size",
    "published_table",
    "safe_k_anonymity",
    "safe_k_delta",
    "safe_k_delta_published",
    "suggest_suppression",
    "symmetric_pram",
    "utility",
    "wasserstein",
    "width_after_releases",
]


def __dir__() -> list[str]:
    """What completion offers: the public names, not the modules that hold them."""
    return __all__

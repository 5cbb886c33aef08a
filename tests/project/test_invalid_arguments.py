"""Nonsense for each argument of the public functions: an error of our own, or an answer.

Tables, streams and models, which need data and accounts, are in test_mistakes and in their rooms.

Whoever mistypes an argument must learn its name and the remedy, not where the code broke. Errors
of functions that users hand in are theirs.
"""

import datetime as dt

import numpy as np
import polars as pl
import pytest

import discreet
from discreet import (
    NeighboringRelation,
    audit,
    blackbox,
    disclosure,
    intervals,
    laplace,
    local,
    query,
    ranges,
)
from discreet.core.errors import PrivacyError

CELLS = ranges.integers(0, 9)
NOISE = laplace(sensitivity=1, epsilon=1)
COIN = local.grr(categories=3, epsilon=1)
VALUES = [1.0, 2, 3, 4, 5, 6, 7, 8]
FRAME = pl.DataFrame({"zip": ["11", "12"], "ill": ["1", "1"]})
DIGITS = disclosure.prefix_hierarchy(2, keep=[1])
BETWEEN = {"lower": 0, "upper": 10, "epsilon": 1}
COLUMN = BETWEEN | {"public_rows": 101}
MOVED = {"sensitivity": 1, "epsilon": 1}
MANY = {"categories": 4, "epsilon": 1}
ALL = {"domain": CELLS, "workload": "all", "epsilon": 1}
APPROX = {"delta": 1e-6}
PRINTED = {"source": {"sex": ["f", "m"], "count": ["x", 12]}}
NEAR = {"half_width": 1, "window": 1}

# What is given is right: each argument in turn is replaced.
CALLS = [
    (discreet.pure_dp, {"epsilon": 1}),
    (discreet.approx_dp, {"epsilon": 1, "delta": 1e-6}),
    (discreet.zcdp, {"rho": 1}),
    (discreet.gdp, {"mu": 1, "relation": NeighboringRelation.ADD_REMOVE}),
    (discreet.budget_for_risk, {"measure": "gdp", "advantage": 0.1}),
    (discreet.budget_for_risk, {"true_positive_rate": 0.1, "false_positive_rate": 0.01}),
    (discreet.gdp(1).meaning().true_positive_rate, {"false_positive_rate": 0.1}),
    (discreet.gdp(1).meaning().posterior_probability, {"prior": 0.1, "above": 0.5}),
    (discreet.gdp(1).meaning().identification, {"candidates": 10}),
    (discreet.gdp(1).meaning().accuracy, {"prior": 0.1}),
    (discreet.gdp(1).meaning().posterior, {"prior": 0.1}),
    (discreet.gdp(1).meaning().curve, {"false_positive_rates": [0.1]}),
    (discreet.above_threshold, MOVED | {"positives": 1, "monotonic": False}),
    (
        discreet.compare_bounded_noise,
        BETWEEN | MOVED | {"delta": 0, "loss": "mse", "prior": "worst"},
    ),
    (discreet.best_additive_noise, MOVED | {"delta": 0, "loss": "mse", "domain": None}),
    (discreet.private_bin_counts, BETWEEN | {"bins": 5, "delta": 0, "granularity": 1}),
    (discreet.boolean, {"missing": False}),
    (discreet.bounded_laplace, BETWEEN | MOVED | {"delta": 0, "domain": None}),
    (discreet.category, {"categories": ["a", "b"], "include_other": True, "missing": None}),
    (discreet.clamp_output, {"mechanism": NOISE, "lower": 0, "upper": 10}),
    (discreet.reflect_output, {"mechanism": NOISE, "lower": 0, "upper": 10}),
    (discreet.col, {"name": "a"}),
    (discreet.date, {"lower": dt.date(2020, 1, 1), "upper": dt.date(2021, 1, 1), "step": "day"}),
    (discreet.exponential_mechanism, MOVED | {"monotonic": False}),
    (discreet.report_noisy_max, MOVED | {"monotonic": False}),
    (discreet.permute_and_flip, MOVED | {"monotonic": False}),
    (discreet.gaussian, MOVED | APPROX | {"norm": "l2", "dimension": 2, "granularity": None}),
    (discreet.gaussian, {"sensitivity": 1, "rho": 1}),
    (discreet.gaussian, {"sensitivity": 1, "mu": 1}),
    (discreet.gaussian, {"sensitivity": 1, "sigma": 1}),
    (discreet.integer, {"lower": 0, "upper": 10, "missing": 3}),
    (discreet.real, {"lower": 0, "upper": 10, "granularity": 1, "missing": None}),
    (discreet.keys, {"source": ["a", "b"], "columns": (), "include_other": False}),
    (discreet.laplace, MOVED | {"delta": 0, "norm": "l1", "dimension": 2, "domain": None}),
    (discreet.laplace, {"sensitivity": 1, "scale": 2}),
    (discreet.plan_ranges, ALL | {"expected_rows": 9, "max_rows_per_unit": 1, "thorough": False}),
    (discreet.plan_ranges, ALL | {"workload": [(0, 3), (2, 5)], "data_aware": False}),
    (
        ranges.plan_grid,
        {"domains": [CELLS, 3], "epsilon": 1, "expected_rows": 9, "max_rows_per_unit": 1},
    ),
    (ranges.plan_grid, {"domains": [2, 2], "workload": "all", "rho": 1, "data_aware": False}),
    (discreet.plan_stream, {"epsilon": 1, "horizon": 16, "max_rows_per_unit": 1, "keys": None}),
    (
        discreet.personalized_sampling,
        {"base": discreet.pure_dp(1), "limits": {"a": discreet.pure_dp(1)}},
    ),
    (
        discreet.private_quantile,
        BETWEEN | {"quantile": 0.5, "method": "exponential", "granularity": 1},
    ),
    (discreet.private_quantiles, BETWEEN | {"q": [0.25, 0.5], "granularity": 1}),
    (discreet.private_std, COLUMN | {"delta": 0, "method": "clamp", "direct": False}),
    (discreet.private_variance, COLUMN | {"delta": 0, "method": "clamp", "granularity": None}),
    (discreet.propose_test_release, COLUMN | APPROX | {"statistic": "median", "bound": 1}),
    (discreet.randomized_response, MANY),
    (discreet.sample_and_aggregate, BETWEEN | {"estimator": np.median, "groups": 5}),
    (discreet.sample_and_aggregate, BETWEEN | {"estimator": min, "groups": 5, "summary": "mean"}),
    (discreet.seeded_rng, {"seed": 1}),
    (
        discreet.smooth_sensitivity,
        COLUMN | APPROX | {"statistic": "median", "noise": None, "order": 4},
    ),
    (discreet.truncated_laplace, MOVED | APPROX),
    (discreet.mean_without_bounds, {"unit": 1, "epsilon": 1, "tail": None, "public_rows": None}),
    (discreet.weighted_sensitivity, COLUMN | APPROX | {"statistic": "median", "blur": None}),
    (discreet.when, {"condition": discreet.col("a") > 1}),
    (ranges.bins, {"edges": [0, 1, 2]}),
    (ranges.coarsen, {"domain": CELLS, "block": 2}),
    (ranges.dates, {"lower": "2020-01-01", "upper": "2020-02-01"}),
    (ranges.integers, {"lower": 0, "upper": 5}),
    (ranges.merge_cells, {"counts": [1, 2, 3, 4], "blocks": [2]}),
    (ranges.ordered, {"labels": ["a", "b"]}),
    (ranges.suggest_cell_count, {"expected_rows": 100, "epsilon": 1}),
    (query.count, {"where": None, "by": ["a"], "keys": ["x"], "name": "n"}),
    (query.mean, {"value": "a", "sampling": True, "where": None, "by": None, "name": ""}),
    (query.histogram, {"value": "a", "edges": [0, 1]}),
    (query.median, {"value": "a", "bins": 10, "method": None}),
    (query.quantiles, {"value": "a", "q": [0.5]}),
    (query.covariance, {"value": "a", "other": "b"}),
    (query.count_units, {"by": "a"}),
    (query.std, {"value": "a", "by": ["b"]}),
    (query.correlation, {"value": "a", "other": "b"}),
    (query.ratio, {"value": "a", "other": "b", "expected_ratio": 0.5, "sampling": True}),
    (query.weighted_mean, {"value": "a", "weight": "b", "sampling": False}),
    (query.share, {"by": "a", "value": None, "name": "n"}),
    (query.compare, {"value": "a", "by": ["b"], "to": "c", "sampling": True}),
    (query.count_distinct, {"value": "a", "at_least": 5}),
    (query.minimum, {"value": "a", "bins": 10, "method": "tree"}),
    (query.maximum, {"value": "a", "bins": 10, "method": "exponential"}),
    (intervals.compare_central_local, COLUMN | {"std": 1}),
    (intervals.compare_by_rows, BETWEEN | {"rows": [100, 200], "std": 1}),
    (
        intervals.difference,
        COLUMN | {"public_rows": (99, 99), "std": 1, "method": "safe", "confidence": 0.9},
    ),
    (intervals.mean, COLUMN | {"std": 1, "method": "safe", "assume": "normal", "delta": 0}),
    (intervals.proportion, {"public_rows": 100, "epsilon": 1, "delta": 0, "confidence": 0.95}),
    (intervals.quantile, COLUMN | {"quantile": 0.5, "confidence": 0.95, "std": 1}),
    (intervals.variance, COLUMN | {"delta": 0, "confidence": 0.95, "std": 1}),
    (intervals.leave_one_out, {"values": VALUES, "statistic": "mean"}),
    (intervals.difference_from_reports, {"first": VALUES, "second": VALUES, "confidence": 0.95}),
    (intervals.mean_from_reports, {"reports": VALUES, "confidence": 0.95}),
    (
        intervals.proportion_from_reports,
        {"reports": [0, 1, 1, 0], "epsilon": 1, "confidence": 0.95},
    ),
    (
        intervals.quantile_from_reports,
        {"reports": VALUES * 9, "quantile": 0.5, "lower": 0, "upper": 10, "scale": 1}
        | {"assume": "nothing"},
    ),
    (intervals.variance_from_reports, {"reports": VALUES, "scale": 1, "confidence": 0.95}),
    (local.adaptive_hierarchy, {"domain": CELLS, "epsilon": 1, "branching": 2}),
    (local.balanced_piecewise, BETWEEN | {"steps": None, "window": None}),
    (local.best_mean_randomizer, BETWEEN),
    (local.best_oracle, MANY | {"oracle": None, "max_report_bits": None}),
    (local.duchi, BETWEEN),
    (
        local.flat_histogram,
        {"domain": CELLS, "epsilon": 1, "oracle": None, "max_report_bits": None},
    ),
    (local.randomizer_from_json, {"description": COIN.describe()}),
    (local.grr, MANY),
    (local.haar_wavelet, {"domain": CELLS, "epsilon": 1, "workload": None}),
    (local.hadamard_response, MANY),
    (local.heavy_hitters, {"length": 8, "epsilon": 1, "hashes": 4, "first": 4, "step": 4}),
    (local.hybrid_mean, BETWEEN | {"steps": None, "window": None, "share": None}),
    (local.longitudinal_olh, MANY | {"permanent_epsilon": 2, "hashes": None}),
    (local.l_osue, MANY | {"permanent_epsilon": 2}),
    (
        local.hybrid_grid,
        {"attributes": {"a": CELLS, "b": CELLS}, "epsilon": 1, "expected_clients": 1000},
    ),
    (local.local_laplace, BETWEEN | {"steps": None}),
    (local.olh, MANY | {"hashes": None, "kept": 1}),
    (local.optimal_hierarchical_histogram, ALL | {"oracle": None}),
    (local.oue, MANY),
    (local.piecewise_mean, BETWEEN | {"steps": None, "window": None}),
    (local.plan_collection, ALL | {"expected_clients": 1000, "max_report_bits": None}),
    (local.rappor, MANY | {"permanent_epsilon": 2}),
    (
        local.multidimensional_mean,
        {"columns": {"a": (0, 1), "b": (0, 2)}, "epsilon": 1, "sampled": None},
    ),
    (local.summation_histogram_encoding, MANY | {"steps": None}),
    (
        local.shuffled_ranges,
        ALL | APPROX | {"expected_clients": 10_000, "min_honest_reports": None},
    ),
    (local.square_wave, {"cells": 8, "epsilon": 1, "lower": 0, "upper": 8, "window": None}),
    (local.subset_selection, MANY | {"chosen": None}),
    (local.sue, MANY),
    (local.threshold_histogram_encoding, MANY | {"threshold": None}),
    (local.hierarchical_histogram, {"domain": CELLS, "epsilon": 1, "branching": 2, "oracle": None}),
    (local.compare_trust_models, ALL | APPROX | {"expected_clients": 10_000, "honest_share": 1}),
    (local.CollectionSpec, {"randomizer": COIN, "labels": ("a", "b", "c")}),
    (local.Aggregator, {"randomizer": COIN}),
    (local.BudgetedClient, {"randomizer": COIN, "budget": 3}),
    (disclosure.anonymity_sets, {"values": VALUES, "released": VALUES, "half_width": 1}),
    (
        disclosure.k_anonymize,
        {
            "frame": FRAME,
            "quasi_identifiers": {"zip": DIGITS},
            "k": 2,
            "sensitive": ["ill"],
            "keep": (),
        }
        | {"suppress": 0, "method": "optimal"},
    ),
    (
        disclosure.disclosure_risk,
        {"frame": FRAME, "quasi_identifiers": ["zip"], "sensitive": ["ill"]},
    ),
    (disclosure.hierarchy_level, {"hierarchy": DIGITS, "level": 1}),
    (disclosure.block_pram, {"blocks": [([0, 1], [[0.5, 0.5], [0.5, 0.5]])]}),
    (disclosure.anonymity_set_size, {"values": VALUES, "at": VALUES, "window": 1}),
    (disclosure.adaptive_jitter, NEAR | {"values": VALUES, "cap": 2}),
    (disclosure.expected_anonymity_set_size, NEAR | {"values": VALUES, "at": VALUES}),
    (
        disclosure.group_sizes,
        {"codes": [0, 1], "matrix": disclosure.symmetric_pram(1, categories=2)},
    ),
    (disclosure.histogram, {"values": VALUES, "edges": [0, 4, 9]}),
    (disclosure.k_noise, {"values": VALUES, "k": 2}),
    (disclosure.k_noise, {"values": VALUES, "delta": 2, "half_width": None}),
    (disclosure.k_pram, {"values": VALUES, "edges": [0, 4, 9], "k": 2}),
    (disclosure.symmetric_pram, {"chance": 0.5, "categories": 3}),
    (disclosure.ks_distance, {"values": VALUES, "other": VALUES}),
    (disclosure.probable_anonymity_set_size, {"expected": VALUES, "confidence": 0.9}),
    (disclosure.pram, {"matrix": [[0.5, 0.5], [0.5, 0.5]]}),
    (disclosure.prefix_hierarchy, {"length": 3, "keep": [2, 1]}),
    (disclosure.private_points, {"edges": [0, 4, 9], "epsilon": 1, "minimum": 0, "small": "keep"}),
    (disclosure.safe_k_delta_published, {"k": 5, "rate": 0.1, "epsilon": 1}),
    (disclosure.k_noise_half_width, {"values": VALUES, "k": 2}),
    (
        disclosure.safe_k_anonymity,
        {
            "columns": {"zip": disclosure.hierarchy_level(DIGITS, 1)},
            "rate": 0.1,
            "k": 5,
            "epsilon": 1,
        },
    ),
    (
        disclosure.guaranteed_anonymity_set_size,
        {"values": VALUES, "at": VALUES, "delta": 1, "half_width": 1},
    ),
    (disclosure.published_table, PRINTED | {"columns": ["sex"], "across": None, "name": "t"}),
    (disclosure.published_table, PRINTED | {"total": ["all"], "suppressed": ["x"], "below": 5}),
    (
        disclosure.published_table,
        PRINTED | {"zeros_published": True, "rounded": 2, "rounding": "random", "population": {}},
    ),
    (
        disclosure.audit_tables,
        {
            "tables": [disclosure.published_table({"sex": ["f", "m"], "count": ["x", 12]})],
            "hierarchies": {"sex": {"all of them": ["f", "m"]}},
            "open_columns": ["sex"],
            "threshold": 5,
            "seconds": 9,
        },
    ),
    (
        disclosure.suggest_suppression,
        {
            "tables": [disclosure.published_table({"sex": ["f", "m"], "count": ["x", 12]})],
            "hierarchies": {"sex": {"all of them": ["f", "m"]}},
            "open_columns": ["sex"],
            "seconds": 9,
        },
    ),
    (disclosure.utility, {"original": VALUES, "released": VALUES, "edges": [0, 5, 9]}),
    (disclosure.wasserstein, {"values": VALUES, "other": VALUES, "order": 1}),
    (disclosure.width_after_releases, {"releases": 3, "half_width": 1}),
    (disclosure.safe_k_delta, {"k": 5, "rate": 0.1, "epsilon": 1}),
    (
        blackbox.make_private,
        {"function": np.median, "public_inputs": np.eye(12), "metric": "record", "epsilon": 1}
        | {"delta": 0, "group": 1, "bounds": (0, 1), "anchors": 9},
    ),
    (
        audit.check_sensitivity,
        {
            "claimed": 1,
            "rows": 3,
            "relation": NeighboringRelation.ADD_REMOVE,
            "norm": "l1",
            "ordered": False,
        }
        | {"query": sum, "values": [0, 1]},
    ),
]


class Odd:
    """Something that nobody expects."""


NONSENSE = [
    *(None, "x", "", b"x", True, 1j, Odd(), Odd, np.str_("x"), dt.date(2020, 1, 1)),
    *(float("nan"), float("inf"), -1, 0, 1.5, 1e300, 1e-320, 10**400, -(10**400), 10**12),
    *([], [1], ["x", None], [[1], [2, 3]], [[[1]]], (1, "a"), {}, {"x": 1}, set(), range(3)),
    *(np.array([1.0, np.nan]), np.array("x"), np.float32(1)),
]


def broken(call, given):
    """Every wrong value that ends in an error which is not ours."""
    found = []
    for name in given:
        for wrong in NONSENSE:
            try:
                call(**(given | {name: wrong}))
            except PrivacyError:
                pass
            except Exception as error:  # noqa: BLE001 - that is what is looked for
                found.append(f"{name}={wrong!r}: {type(error).__name__}: {error}"[:200])
    return found


# A function that people hand in raises what it likes, also on the values that they give for it.
THEIRS = {"query", "values", "function"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("call", "given"), CALLS, ids=[call.__name__ for call, _ in CALLS])
def test_nonsense_is_refused_in_our_own_words(call, given):
    assert call(**given) is not None
    own = call in (audit.check_sensitivity, blackbox.make_private)
    wrong = broken(call, given)
    assert [line for line in wrong if not (own and line.split("=")[0] in THEIRS)] == []


def test_what_breaks_is_found():
    """The check itself fails on a function that trusts its arguments."""
    assert broken(lambda size: 1 / size, {"size": 1}) != []


def test_flags_are_not_words():
    """To Python "False" is true: noise would be half of what it must be."""
    for wrong in ("False", "no", 0, 1, None):
        with pytest.raises(discreet.InvalidArgument, match="monotonic must be True or False"):
            discreet.report_noisy_max(sensitivity=1, epsilon=1, monotonic=wrong)
    discreet.report_noisy_max(sensitivity=1, epsilon=1, monotonic=np.bool_(1))

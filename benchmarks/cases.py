"""What is measured: the kind of work, its size, and who else does it."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.case import LOOP, MILLION, NONE, WARM, Case, Params
from benchmarks.model_cases import PATE, REGRESSION, SGD


def _laplace(scale: int, label: str) -> Case:
    peers = {"opendp": NONE, "numpy": NONE, "diffprivlib": LOOP, "pydp": LOOP}
    return Case(
        name=f"discrete Laplace, 1e6 draws, scale {label}",
        kind="laplace_int",
        params={"n": MILLION, "scale": scale},
        warm=WARM,
        size="n",
        peers=peers,
    )


def _gaussian(sigma: int) -> Case:
    return Case(
        name=f"discrete Gaussian, 1e6 draws, sigma {sigma}",
        kind="gaussian_int",
        params={"n": MILLION, "sigma": sigma},
        warm=WARM,
        size="n",
        peers={"opendp": NONE, "numpy": NONE},
    )


def _filter(queries: int) -> Case:
    return Case(
        name=f"adaptive filter, {queries} queries",
        kind="adaptive_filter",
        params={"queries": queries},
        warm={"queries": 10},
        peers={"opendp": NONE},
    )


NOISE = (
    _laplace(1, "1"),
    _laplace(1_000, "1000"),
    _laplace(MILLION, "1e6"),
    _gaussian(10),
    _gaussian(1_000),
    Case(
        name="float Laplace on a grid, 1e6 values, scale 10",
        kind="laplace_float",
        params={"n": MILLION, "scale": 10},
        warm=WARM,
        size="n",
        peers={"opendp": NONE},
    ),
    Case(
        name="discrete Laplace, 1e7 draws, scale 1000 (memory)",
        kind="laplace_int",
        params={"n": 10 * MILLION, "scale": 1_000},
        warm=WARM,
        size="n",
        peers={"numpy": NONE},
    ),
    Case(
        name="scalar release, 1e4 calls",
        kind="release_scalar",
        params={"calls": 10_000},
        warm={"calls": 100},
        peers={"opendp": NONE},
    ),
)

ACCOUNTING = (
    Case(
        name="epsilon of 1000 mixed events, delta 1e-6",
        kind="mixed_events",
        params={"count": 1_000, "delta": 1e-6},
        warm={"count": 3},
        once=True,
        peers={"dp_accounting": NONE},
    ),
    Case(
        name="DP-SGD, rate 0.01, sigma 1, 1e4 steps, delta 1e-5",
        kind="sgd",
        params={"rate": 0.01, "sigma": 1.0, "steps": 10_000, "delta": 1e-5},
        warm={"rate": 0.02, "sigma": 1.5, "steps": 10},
        once=True,
        peers={"dp_accounting": NONE, "prv_accountant": NONE},
    ),
    Case(
        name="epsilon of 200 different Gaussians, delta 1e-6",
        kind="gaussians",
        params={"count": 200, "delta": 1e-6},
        warm={"count": 3},
        once=True,
        peers={"dp_accounting": NONE},
    ),
    _filter(1_000),
    _filter(2_000),
)


def _charges(history: int, label: str, peers: Params) -> Case:
    return Case(
        name=label,
        kind="charges",
        params={"history": history, "charges": 200},
        warm={"history": 0, "charges": 5},
        once=True,
        peers={"opendp": peers, "diffprivlib": peers},
    )


# Ours are on disk when they return; those of the peers live in memory.
LEDGER = (
    _charges(0, "200 charged releases, new account", NONE),
    # The peers' time grows with every charge; 100,000 of them would take hours.
    _charges(100_000, "200 charged releases after 1e5 (peers: after 2000)", {"history": 2_000}),
)

_WARM_TABLE: Params = {"rows": 10_000, "people": 1_000}


def _table(label: str, *, rows: int, peers: Mapping[str, Params], csv: int = 0) -> Case:
    params = {"rows": rows, "people": rows // 10, "even": 0, "keys": 1_000, "csv": csv}
    return Case(
        name=f"count, sum, mean of 1000 groups, {label}",
        kind="table",
        params={**params, "limit": 5, "epsilon": 1.0},
        warm=_WARM_TABLE,
        peers=peers,
    )


def _error(label: str, budget: Params, peers: tuple[str, ...]) -> Case:
    # Nobody passes the limit, so that all libraries estimate the same numbers.
    params = {"rows": 20_000, "people": 4_000, "even": 1, "keys": 20, "limit": 5}
    return Case(
        name=f"error at {label}",
        kind="table",
        params={**params, **budget},
        peers=dict.fromkeys(peers, NONE),
        repetitions=50,  # of 20 keys each: a thousand errors
        limit_s=3_600.0,
    )


TABLES = (
    _table(
        "1e7 rows, 1e6 people, at most 5 rows each",
        rows=10 * MILLION,
        peers={"opendp_polars": NONE, "tumult": NONE, "duckdb": NONE},
    ),
    _table(
        "1e7 rows (the plain query without a limit)",
        rows=10 * MILLION,
        peers={"duckdb": {"limit": 0}},
    ),
    # Opening is part of it, which reads each line once by itself.
    _table(
        "CSV of 1e7 rows, at most 5 rows each",
        rows=10 * MILLION,
        peers={"duckdb": NONE},
        csv=1,
    ),
    # PipelineDP would take minutes and many gigabytes for ten times as many rows.
    _table(
        "1e6 rows, 1e5 people, at most 5 rows each",
        rows=MILLION,
        peers={"pipeline_dp": NONE, "opendp_polars": NONE, "tumult": NONE},
    ),
    Case(
        name="count of 1000 groups, 1e7 rows, each of another person",
        kind="grouped_count",
        params={"rows": 10 * MILLION, "people": MILLION, "even": 0, "keys": 1_000, "epsilon": 1.0},
        warm=_WARM_TABLE,
        peers={"opendp_polars": NONE, "tumult": NONE, "duckdb": NONE},
    ),
    _error("epsilon 1", {"epsilon": 1.0}, ("pipeline_dp", "opendp_polars", "tumult")),
    _error("rho 0.5", {"rho": 0.5}, ("opendp_polars", "tumult")),
)

CELLS: Params = {"cells": 2**20, "epsilon": 1.0}
_FEWER: Params = {"cells": 2**16}


def _range_error(label: str, cells: int) -> Case:
    return Case(
        name=f"error of 1e5 random ranges of {label} cells, epsilon 1, 10 releases",
        kind="range_error",
        params={"cells": cells, "epsilon": 1.0, "ranges": 100_000, "repetitions": 10},
        warm={"cells": 64, "ranges": 10, "repetitions": 1},
        peers={"opendp": NONE, "diffprivlib": NONE},
        once=True,
    )


# In a plan ours compares structures; the peers are told theirs.
RANGES = (
    Case(
        name="plan, release and make consistent, 2^20 cells",
        kind="range_release",
        params=CELLS,
        warm={"cells": 64},
        size="cells",
        peers={"opendp": _FEWER, "diffprivlib": _FEWER},
    ),
    Case(
        name="release and make consistent, 2^16 cells, structure given",
        kind="range_build",
        params={**CELLS, **_FEWER},
        warm={"cells": 64},
        peers={"opendp": NONE, "diffprivlib": NONE},
    ),
    Case(
        name="answer 1e6 random ranges of 2^20 cells",
        kind="range_answers",
        params={**CELLS, "ranges": MILLION},
        warm={"cells": 64, "ranges": 10},
        peers={"numpy": NONE},
    ),
    Case(
        name="exact standard errors of 1e6 random ranges of 2^20 cells (the limit: their sums)",
        kind="range_errors",
        params={**CELLS, "ranges": MILLION},
        warm={"cells": 64, "ranges": 10},
        peers={"numpy": NONE},
    ),
    _range_error("1024", 1024),
    _range_error("2^16", 2**16),
)


def _stream(label: str, params: Params) -> Case:
    return Case(
        name=f"stream of 1e7 events in 1e6 steps, {label}",
        kind="stream",
        params={"events": 10 * MILLION, "steps": MILLION, "batches": 10, **params},
        warm={"events": 1_000, "steps": 100},
        peers={"numpy": NONE},
        once=True,
    )


STREAMS = (
    _stream("epsilon 1", {"epsilon": 1.0}),
    _stream("rho 0.5", {"rho": 0.5}),
    _stream("epsilon 1, no end known", {"epsilon": 1.0, "endless": 1}),
)

_FEW: Params = {"n": 1_000}

# The peers' time grows faster than the rows: what is extrapolated is too kind to them.
DISCLOSURE = (
    Case(
        name="k-anonymity of 1e6 rows, one level for each column",
        kind="k_anonymity",
        params={"n": MILLION, "k": 10},
        warm=_FEW,
        size="n",
        peers={"anjana": {"n": 10_000}},
    ),
    Case(
        name="k-anonymity of 1e6 rows, levels for each class",
        kind="k_anonymity_local",
        params={"n": MILLION, "k": 10},
        warm=_FEW,
        size="n",
        peers={"anonypy": {"n": 10_000}},
    ),
    Case(
        name="k-noise on 1e6 values, with crowds and risk (the limit: noise alone)",
        kind="k_noise",
        params={"n": MILLION, "k": 10},
        warm=_FEW,
        peers={"numpy": NONE},
    ),
    Case(
        name="expected crowds of 1e6 records at 1e6 points",
        kind="crowds",
        params={"n": MILLION, "points": MILLION},
        warm={**_FEW, "points": 10},
        size="points",
        peers={"numpy": {"points": 100}},
    ),
)


def _local(kind: str, categories: int, peers: Mapping[str, Params], *, label: str = "") -> Case:
    # multi-freq-ldpy cuts shares at zero and scales the rest.
    scaled: Params = {"scaled": 1, "told": 1} if "multi_freq_ldpy" in peers else {}
    how = ", cut and scaled" if scaled else label
    return Case(
        name=f"{kind}, {categories} categories, 1e6 clients{how}",
        kind=f"local_{kind}",
        params={"n": MILLION, "categories": categories, "epsilon": 1.0, **scaled},
        warm={"n": 100},
        size="n",
        peers=peers,
    )


def _written(kind: str, label: str, hashed: int, categories: int, width: int) -> Case:
    size: Params = {"n": 100 * MILLION, "categories": categories, "width": width}
    return Case(
        name=f"1e8 reports ({label}, {width} bytes each) {kind} a file",
        kind="local_read" if kind == "from" else "local_write",
        params={**size, "hashed": hashed, "epsilon": 1.0},
        warm={"n": 100},
        peers={"numpy": NONE},
        once=True,
    )


_SHARED = " (the peer: 1000 shared functions)"

# Encode, aggregate, estimate. Peers get their own form of reports in memory, one by one.
LOCAL = (
    _local("oue", 128, {"pure_ldp": NONE}),
    _local("oue", 1_024, {"pure_ldp": NONE}),
    _local("oue", 65_536, {"pure_ldp": {"n": 5_000}}),
    _local("sue", 128, {"pure_ldp": NONE}),
    _local("sue", 1_024, {"pure_ldp": NONE}),
    _local("oue", 128, {"multi_freq_ldpy": NONE}),
    # Its reports are doubles: a million of them would take eight gigabytes.
    _local("oue", 1_024, {"multi_freq_ldpy": {"n": 100_000, "told": 0}}),
    _local("subset", 128, {"multi_freq_ldpy": NONE}),
    _local("subset", 1_024, {"multi_freq_ldpy": NONE}),
    _local("olh", 128, {"pure_ldp": {"n": 100_000}}),
    _local("olh", 1_024, {"pure_ldp": {"n": 10_000}}),
    _local("olh", 65_536, {"pure_ldp": {"n": 200}}),
    _local("olh", 128, {"multi_freq_ldpy": {"n": 100_000, "told": 0}}),
    _local("olh", 1_024, {"multi_freq_ldpy": {"n": 10_000, "told": 0}}),
    _local("olh", 128, {"pure_ldp": {"family": 1_000}}, label=_SHARED),
    _local("olh", 1_024, {"pure_ldp": {"family": 1_000}}, label=_SHARED),
    _local("hadamard", 128, {"pure_ldp": NONE}),
    _local("hadamard", 1_024, {"pure_ldp": NONE}),
    _local("hadamard", 65_536, {"pure_ldp": NONE}),
    _written("to", "oue, 128 categories", 0, 128, 16),
    _written("from", "oue, 128 categories", 0, 128, 16),
    _written("to", "olh, 1024 categories", 1, 1_024, 3),
    _written("from", "olh, 1024 categories", 1, 1_024, 3),
)


def _medians(shape: int, label: str) -> tuple[Case, ...]:
    """The error against OpenDP on one coarse grid, and against diffprivlib, which needs none."""
    params: Params = {"n": 1_001, "shape": shape, "epsilon": 1.0, "repetitions": 1_000}
    name, kind = f"error of a median, {label}, epsilon 1", "median_error"
    warm: Params = {"repetitions": 1}
    coarse: Params = {**params, "points": 1_025}
    return (
        Case(
            name=f"{name}, 1025 points", kind=kind, params=coarse, warm=warm, peers={"opendp": NONE}
        ),
        Case(name=name, kind=kind, params=params, warm=warm, peers={"diffprivlib": NONE}),
    )


_MEDIAN: Params = {"n": MILLION, "shape": 1, "epsilon": 1.0}
MEDIANS = (
    Case(
        name="median of 1e6 values, sort included",
        kind="median",
        params=_MEDIAN,
        warm=WARM,
        peers={"opendp": NONE, "diffprivlib": NONE},
    ),
    *_medians(0, "uniform"),
    *_medians(1, "normal"),
    *_medians(2, "exponential"),
    *_medians(3, "whole numbers"),
    *_medians(4, "log-normal"),
)

SUITES: Mapping[str, tuple[Case, ...]] = {
    "noise": NOISE,
    "accounting": ACCOUNTING,
    "ledger": LEDGER,
    "tables": TABLES,
    "ranges": RANGES,
    "streams": STREAMS,
    "disclosure": DISCLOSURE,
    "local": LOCAL,
    "median": MEDIANS,
    "regression": REGRESSION,
    "sgd": SGD,
    "pate": PATE,
}

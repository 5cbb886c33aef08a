"""Clients of the local model, registered for the audit: ours, and the published ones.

A client is attacked through what it sends, report by report, and its law is listed where a small
domain allows it. The published oracle and tree stand beside ours at the same claim.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.audit import exact
from discreet.audit.case import AuditCase, broken_case
from discreet.audit.cases import _range_outputs as ranges
from discreet.audit.cases._local_outputs import (
    Law,
    copies_distribution,
    memoized_distribution,
    noisy_pair,
    report_distribution,
)
from discreet.local._heavy_hitters import HeavyHitters, heavy_hitters
from discreet.local.distribution import square_wave
from discreet.local.longitudinal import MemoizedOracle, l_osue, longitudinal_olh, rappor
from discreet.local.means.balanced_piecewise import balanced_piecewise
from discreet.local.means.hybrid import hybrid_mean
from discreet.local.means.local_laplace import LocalLaplace, local_laplace
from discreet.local.means.multidimensional import multidimensional_mean
from discreet.local.means.piecewise import duchi, piecewise_mean
from discreet.local.oracles.histogram_encoding import (
    SummationHistogramEncoding,
    summation_histogram_encoding,
)
from discreet.local.oracles.local_hashing import hadamard_response, olh
from discreet.local.oracles.randomized_response import grr
from discreet.local.oracles.subset_selection import subset_selection
from discreet.local.oracles.unary_encoding import oue, sue, threshold_histogram_encoding
from discreet.local.randomizer import LocalRandomizer
from discreet.local.ranges.adaptive import PartitionOracle
from discreet.local.ranges.haar import haar_wavelet
from discreet.local.ranges.hierarchical import flat_histogram, hierarchical_histogram
from discreet.local.ranges.hybrid_grid import hybrid_grid
from discreet.noise.random_source import seeded_rng
from discreet.ranges.domain import integers

EPSILON = 1.0
SAMPLES = 60_000
_COPIES = 2
_NOMINAL = (0.2, 1.0)
_SIZES = (2, 16)


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditedClient:
    """A randomizer with the two values that it should tell apart least well."""

    name: str
    randomizer: LocalRandomizer
    left: Any
    right: Any


def oracles(epsilon: float = EPSILON) -> tuple[AuditedClient, ...]:
    """Frequency oracles, on two of a few categories."""
    last = {"left": 0, "right": 3}
    few: dict[str, Any] = {"categories": 4, "epsilon": epsilon}
    return (
        AuditedClient(name="grr", randomizer=grr(categories=5, epsilon=epsilon), **last),
        AuditedClient(name="sue", randomizer=sue(**few), **last),
        AuditedClient(name="oue", randomizer=oue(**few), **last),
        AuditedClient(name="the", randomizer=threshold_histogram_encoding(**few), **last),
        AuditedClient(
            name="she",
            randomizer=summation_histogram_encoding(categories=2, epsilon=epsilon, steps=4),
            left=0,
            right=1,
        ),
        AuditedClient(name="olh", randomizer=olh(**few), **last),
        AuditedClient(
            name="olh, 3 of 8 hashes",
            randomizer=olh(categories=8, epsilon=epsilon, hashes=8, kept=3),
            **last,
        ),
        AuditedClient(name="hadamard response", randomizer=hadamard_response(**few), **last),
        AuditedClient(name="subset selection", randomizer=subset_selection(**few), **last),
        AuditedClient(
            name="subset selection, as a list",
            randomizer=subset_selection(categories=16, epsilon=epsilon, chosen=1),
            **last,
        ),
    )


def numbers(epsilon: float = EPSILON) -> tuple[AuditedClient, ...]:
    """Clients that send a number, on the two bounds."""
    ends: dict[str, Any] = {"epsilon": epsilon, "lower": -1, "upper": 1}
    at = {"left": -1, "right": 1}
    both = multidimensional_mean(columns={"a": (-1, 1), "b": (0, 8)}, epsilon=epsilon, sampled=1)
    return (
        AuditedClient(name="duchi", randomizer=duchi(**ends), **at),
        AuditedClient(name="piecewise", randomizer=piecewise_mean(**ends, steps=6), **at),
        AuditedClient(name="balanced", randomizer=balanced_piecewise(**ends, steps=6), **at),
        AuditedClient(name="hybrid", randomizer=hybrid_mean(**ends, steps=6), **at),
        AuditedClient(name="laplace", randomizer=local_laplace(**ends, steps=16), **at),
        AuditedClient(name="several", randomizer=both, left=(-1, 0), right=(1, 8)),
        AuditedClient(
            name="square wave", randomizer=square_wave(cells=8, epsilon=epsilon), left=0, right=7
        ),
    )


def structures(epsilon: float = EPSILON) -> tuple[AuditedClient, ...]:
    """Clients that draw a level, a group or a partition besides."""
    eight: dict[str, Any] = {"domain": integers(0, 7), "epsilon": epsilon}
    ends = {"left": 0, "right": 7}
    grid = hybrid_grid(
        {"x": integers(0, 3), "y": integers(0, 3)}, epsilon=epsilon, fine=4, coarse=2
    )
    split = PartitionOracle(
        epsilon=hierarchical_histogram(**eight).epsilon, domain=integers(0, 7), starts=(0, 2, 3, 6)
    )
    return (
        AuditedClient(name="flat", randomizer=flat_histogram(**eight, oracle="oue"), **ends),
        AuditedClient(name="tree", randomizer=hierarchical_histogram(**eight), **ends),
        AuditedClient(
            name="tree, oue", randomizer=hierarchical_histogram(**eight, oracle="oue"), **ends
        ),
        AuditedClient(name="haar", randomizer=haar_wavelet(**eight), **ends),
        AuditedClient(name="adaptive, one round", randomizer=split, **ends),
        AuditedClient(name="grid", randomizer=grid, left={"x": 0, "y": 0}, right={"x": 3, "y": 3}),
        AuditedClient(
            name="heavy hitters",
            randomizer=heavy_hitters(length=1, epsilon=epsilon, hashes=1, cell_digits=8, first=8),
            left="a",
            right="b",
        ),
    )


def memoized(epsilon: float = EPSILON) -> tuple[AuditedClient, ...]:
    """Clients that are asked again and again."""
    both: dict[str, Any] = {"epsilon": epsilon / 2, "permanent_epsilon": epsilon}
    at = {"left": 0, "right": 1}
    return (
        AuditedClient(name="rappor", randomizer=rappor(categories=3, **both), **at),
        AuditedClient(name="l-osue", randomizer=l_osue(categories=3, **both), **at),
        AuditedClient(
            name="l-olh", randomizer=longitudinal_olh(categories=4, **both, hashes=4), **at
        ),
    )


def clients(epsilon: float = EPSILON) -> tuple[AuditedClient, ...]:
    """All that send one report."""
    return (*oracles(epsilon), *numbers(epsilon), *memoized(epsilon), *structures(epsilon))


def cases() -> tuple[AuditCase, ...]:
    """Every client of this library but those of `beside`; several reports where they remember."""
    shown = {case.name for case in beside()}
    one = (case for case in map(client_case, clients()) if case.name not in shown)
    again = (case for client in memoized() for case in _again(client))
    return (*one, *again)


def beside() -> tuple[AuditCase, ...]:
    """What this library has in place of the published oracle and tree."""
    names = ("grr", "olh", "flat", "tree", "tree, oue", "haar")
    return tuple(client_case(client) for client in clients() if client.name in names)


def client_case(client: AuditedClient) -> AuditCase:
    """One report, at what the randomizer claims for it."""
    return AuditCase(
        name=f"local {client.name}",
        claimed=client.randomizer.guarantee,
        draw=lambda value, n, seed: _encoded(client.randomizer, value, n, seed),
        left=client.left,
        right=client.right,
        laws=_laws(client),
        samples=SAMPLES,
        mechanism=client.randomizer,
    )


def _laws(client: AuditedClient) -> Callable[[], exact.OutputPair] | None:
    made = client.randomizer
    if isinstance(made, HeavyHitters):
        return None  # hundreds of thousands of reports; its cells are those of olh
    if isinstance(made, LocalLaplace | SummationHistogramEncoding):
        return lambda: noisy_pair(made)
    return lambda: exact.pair(
        report_distribution(made, client.left), report_distribution(made, client.right)
    )


def _encoded(randomizer: LocalRandomizer, value: Any, n: int, seed: int) -> object:
    """Reports of n clients with one value, as an observer sees them."""
    many: Any
    if isinstance(value, dict):
        many = {name: np.full(n, one) for name, one in value.items()}
    elif isinstance(value, tuple):
        many = np.tile(value, (n, 1))
    else:
        many = [value] * n if isinstance(value, str) else np.full(n, value)
    rows = randomizer.randomize(many, rng=seeded_rng(seed))
    # Entries of two bytes are numbers, and an observer reads them so.
    return rows.view("<i2") if isinstance(randomizer, SummationHistogramEncoding) else rows


def _again(client: AuditedClient) -> tuple[AuditCase, ...]:
    """Two reports of one permanent response, and that response itself: all that can be learned."""
    plan = client.randomizer
    assert isinstance(plan, MemoizedOracle)  # noqa: S101 - all of these are
    both = (client.left, client.right)

    def copied(value: Any, n: int, seed: int) -> object:
        bits = seeded_rng(seed)
        memory = plan.remember(np.full(n, value), rng=bits)
        return np.hstack([plan.report(memory, rng=bits) for _ in range(_COPIES)])

    def laws() -> exact.OutputPair:
        left, right = (copies_distribution(plan, value, _COPIES) for value in both)
        return exact.pair(left, right)

    few = AuditCase(
        name=f"local {client.name}, {_COPIES} reports",
        claimed=plan.after(_COPIES),
        draw=copied,
        left=client.left,
        right=client.right,
        laws=laws,
        samples=SAMPLES,
    )
    lasting = AuditCase(
        name=f"local {client.name}, any number of reports",
        claimed=plan.after(None),
        draw=lambda value, n, seed: plan.remember(np.full(n, value), rng=seeded_rng(seed)),
        left=client.left,
        right=client.right,
        laws=lambda: exact.pair(*(memoized_distribution(plan, value) for value in both)),
        samples=SAMPLES,
    )
    return few, lasting


# ── as published ───────────────────────────────────────────────────────────────────────────────


def published() -> tuple[AuditCase, ...]:
    """The published oracle at other sizes and epsilons, and its tree at another degree (M3)."""
    return (
        *(_published_oracle(size, nominal) for size in _SIZES for nominal in _NOMINAL),
        _published_tree(size=9, degree=3, nominal=EPSILON),
    )


def _published_oracle(size: int, nominal: float) -> AuditCase:
    return _broken(
        f"published oracle, {size} values, nominal {nominal:g}",
        lambda value, n, seed: ranges.published_oracle(
            np.full(n, value), size=size, epsilon=nominal, seed=seed
        ),
        lambda value: ranges.oracle_distribution(value, size=size, epsilon=nominal),
        (0, 1),
        nominal=nominal,
        why=f"log(1 + g e^eps / (g - 1)) = {ranges.oracle_epsilon(size, nominal):.3f} (M3)",
    )


def _published_tree(*, size: int, degree: int, nominal: float) -> AuditCase:
    # Of all levels the one below the root has the fewest values, and so the largest epsilon.
    true = ranges.oracle_epsilon(degree, nominal)
    return _broken(
        f"published local tree, degree {degree}",
        lambda value, n, seed: ranges.published_local_tree(
            np.full(n, value), size=size, epsilon=nominal, seed=seed, degree=degree
        ),
        lambda value: ranges.local_tree_distribution(
            value, size=size, epsilon=nominal, degree=degree
        ),
        (0, size - 1),
        nominal=nominal,
        why=f"the oracle at {degree} nodes: {true:.3f} (M3)",
    )


def _broken(
    name: str,
    draw: Callable[[Any, int, int], object],
    law: Callable[[int], Law | dict[Any, float]],
    values: tuple[int, int],
    *,
    nominal: float,
    why: str,
) -> AuditCase:
    left, right = values

    def laws() -> exact.OutputPair:
        return exact.pair(law(left), law(right))

    return broken_case(name, draw, left, right, why=why, laws=laws, claimed=(nominal, 0.0))

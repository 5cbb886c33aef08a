"""The published range structures and our own, registered for the audit.

`discreet audit --published` runs these and the attack on trees: what is recovered from the
published one, and what from a sound one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import reduce

import numpy as np

from discreet.audit import exact
from discreet.audit.case import AuditCase, Draw, broken_case
from discreet.audit.cases import _range_outputs as ranges
from discreet.audit.cases import local as local_cases
from discreet.audit.cases.mechanisms import integer_distributions
from discreet.audit.cases.sparse_vector import laplace_integers
from discreet.audit.lattice_distribution import discrete_laplace, point
from discreet.mechanisms.additive import laplace
from discreet.noise.random_source import seeded_rng
from discreet.ranges.stream.plan import StreamPlan, plan_stream
from discreet.ranges.stream.state import advance, begin

EPSILON = 1.0
LEAVES = 64
_LEVELS = 6  # a binary tree of 32 leaves
_REPEATS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Recovery:
    """How many leaves of a tree an attack tells exactly, and how many it should."""

    name: str
    leaves: int
    recovered: int
    broken: bool

    @property
    def ok(self) -> bool:
        """Whether the published tree falls and the sound one stands."""
        return self.recovered == (self.leaves - 1 if self.broken else 0)

    def record(self) -> dict[str, object]:
        """Plain values, for JSON."""
        return {**asdict(self), "ok": self.ok}

    def __str__(self) -> str:
        return f"{self.name}: {self.recovered} of {self.leaves} leaves recovered exactly"


def recoveries(*, seed: int = 0) -> tuple[Recovery, ...]:
    """The attack of noise that cancels, on the published tree and on a sound one."""
    leaves = np.random.default_rng(seed).integers(0, 400, LEAVES).tolist()
    return tuple(
        Recovery(
            name=name,
            leaves=LEAVES,
            recovered=ranges.recovered(build, leaves, seed=seed),
            broken=broken,
        )
        for name, build, broken in (
            ("tree as published", _published, True),
            ("tree as released here", _sound, False),
        )
    )


def cases() -> tuple[AuditCase, ...]:
    """The structures as published, which must be caught, and their sound counterparts."""
    return (*published(), *local_cases.published(), *sound(), *local_cases.beside())


def published() -> tuple[AuditCase, ...]:
    """What was published and is not what it claims."""
    scale = np.log2(_LEVELS) / EPSILON
    return (
        broken_case(
            "published tree, noise that cancels",
            _canceled(_published),
            (1, 1, 1, 0),
            (1, 1, 1, 1),
            laws=lambda: exact.pair(point(0), point(1)),
            samples=2_000,
            why="parent - first + second child carries no noise (M1)",
        ),
        broken_case(
            "published tree, scale",
            _path_of(scale),
            (0,) * _LEVELS,
            (1,) * _LEVELS,
            laws=lambda: _path_laws(scale),
            why="log2(levels) in place of the number of levels (M2)",
        ),
        broken_case(
            "published tree, fresh noise for each question",
            _path_of(1 / EPSILON),
            (0,) * _REPEATS,
            (1,) * _REPEATS,
            laws=lambda: _path_laws(1 / EPSILON, _REPEATS),
            why="every answer is a release of its own (M18)",
        ),
        broken_case(
            "published OLH",
            lambda value, n, seed: ranges.published_oracle(
                np.full(n, value), size=4, epsilon=EPSILON, seed=seed
            ),
            0,
            1,
            laws=lambda: exact.pair(_oracle(0), _oracle(1)),
            why="no hash, and a lie may be the truth (M3)",
        ),
        broken_case(
            "published local tree",
            lambda value, n, seed: ranges.published_local_tree(
                np.full(n, value), size=8, epsilon=EPSILON, seed=seed
            ),
            0,
            7,
            laws=lambda: exact.pair(_local(0), _local(7)),
            why="the same oracle on every level (M3)",
        ),
    )


def sound() -> tuple[AuditCase, ...]:
    """The tree as it should be, and our streams."""
    tree = laplace(sensitivity=_LEVELS, epsilon=EPSILON, domain="integers")

    def draw(counts: Sequence[int], n: int, seed: int) -> object:
        return tree.release(np.tile(counts, (n, 1)), rng=seeded_rng(seed))

    return (
        AuditCase(
            name="tree, the path of one leaf",
            claimed=tree.guarantee,
            draw=draw,
            left=(0,) * _LEVELS,
            right=(1,) * _LEVELS,
            laws=lambda: reduce(exact.product, [integer_distributions(tree, 1)] * _LEVELS),
        ),
        AuditCase(
            name="tree, the same differences",
            claimed=(EPSILON, 0.0),
            draw=_canceled(_sound),
            left=(1, 1, 1, 0),
            right=(1, 1, 1, 1),
            samples=500,
        ),
        _stream("stream on a tree", plan_stream(epsilon=1, horizon=6)),
        _stream("stream on a tree, without end", plan_stream(epsilon=1)),
        _stream("stream in windows", plan_stream(epsilon=1, window=3)),
        _stream("stream with Gaussian noise", plan_stream(rho=0.5, horizon=6)),
        _stream("stream with Gaussian noise, in windows", plan_stream(rho=0.5, window=3)),
    )


def _stream(name: str, plan: StreamPlan) -> AuditCase:
    """One event more, at the second of six steps; all answers are seen together."""

    def draw(counts: Sequence[int], n: int, seed: int) -> object:
        wide = _wide(plan, n)
        rows = np.repeat(np.array(counts)[:, None], n, axis=1)
        _, answers = advance(wide, begin(wide), rows, rng=seeded_rng(seed))
        return answers.values.T

    return AuditCase(
        name=name,
        claimed=plan.guarantee,
        draw=draw,
        left=(3, 0, 2, 0, 1, 0),
        right=(3, 1, 2, 0, 1, 0),
        samples=100_000 if plan.pure else 10_000,
    )


def _wide(plan: StreamPlan, lanes: int) -> StreamPlan:
    """The same stream many times side by side: a simulation of many releases."""
    return plan_stream(
        epsilon=plan.budget.epsilon,
        rho=plan.budget.rho,
        horizon=plan.horizon,
        window=plan.window,
        keys=[str(lane) for lane in range(lanes)],
    )


def _published(leaves: Sequence[int], seed: int) -> ranges.Levels:
    return ranges.published_tree(leaves, epsilon=EPSILON, seed=seed)


def _sound(leaves: Sequence[int], seed: int) -> ranges.Levels:
    return ranges.sound_tree(leaves, epsilon=EPSILON, seed=seed)


def _canceled(build: ranges.Build) -> Draw:
    """The attack's estimate of the last leaf, on a grid that hides the rounding of doubles."""

    def draw(leaves: Sequence[int], n: int, seed: int) -> object:
        return np.array(
            [round(2 * ranges.cancel(build(leaves, seed * n + k))[-1]) / 2 for k in range(n)]
        )

    return draw


def _path_of(scale: float) -> Draw:
    """The nodes above one leaf, or answers to one question: independent noise on each."""

    def draw(counts: Sequence[int], n: int, seed: int) -> object:
        noise = laplace_integers(scale, n * len(counts), np.random.default_rng(seed))
        return np.array(counts) + noise.reshape(n, -1)

    return draw


def _path_laws(scale: float, times: int = _LEVELS) -> exact.OutputPair:
    return reduce(exact.product, [exact.one_apart(discrete_laplace(scale))] * times)


def _oracle(value: int) -> dict[int, float]:
    return ranges.oracle_distribution(value, size=4, epsilon=EPSILON)


def _local(value: int) -> dict[tuple[int, int], float]:
    return ranges.local_tree_distribution(value, size=8, epsilon=EPSILON)

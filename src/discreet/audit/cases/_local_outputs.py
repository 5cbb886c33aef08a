"""Exact laws of what clients of the local model send: every report listed, for small domains.

Each law is built from the public description of a randomizer (who may send what, and how much
likelier the own value makes it), not by its sampler nor by the probabilities that it states.
Reports are the bytes that leave a client, so a law and a sampler can be compared report by report.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from discreet.audit import exact
from discreet.audit.lattice_distribution import LatticeDistribution, listed
from discreet.core.errors import InvalidArgument
from discreet.local._window_channel import WindowChannel
from discreet.local.distribution import SquareWave
from discreet.local.longitudinal import MemoizedHashing, MemoizedOracle, MemoizedUnary
from discreet.local.means.hybrid import HybridMean
from discreet.local.means.local_laplace import LocalLaplace
from discreet.local.means.multidimensional import MultidimensionalMean
from discreet.local.means.piecewise import PiecewiseMean
from discreet.local.oracles.histogram_encoding import SummationHistogramEncoding
from discreet.local.oracles.local_hashing import LocalHashing
from discreet.local.oracles.randomized_response import RandomizedResponse
from discreet.local.oracles.subset_selection import SubsetSelection
from discreet.local.oracles.unary_encoding import ONE, UnaryEncoding
from discreet.local.randomizer import LocalRandomizer
from discreet.local.ranges.adaptive import PartitionOracle
from discreet.local.ranges.haar import HaarResponse
from discreet.local.ranges.hierarchical import LevelReports
from discreet.local.ranges.hybrid_grid import HybridGrid

Law: TypeAlias = dict[bytes, float]
"""The probability of each report."""


def report_distribution(randomizer: LocalRandomizer, value: Any) -> Law:
    """The law of the report of a client with this value (numbers: a bound of their range)."""
    match randomizer:
        case MemoizedOracle():
            return copies_distribution(randomizer, value, 1)
        case RandomizedResponse() | SubsetSelection() | LocalHashing():
            return _weighted(randomizer, value)
        case UnaryEncoding():
            return _unary(randomizer, value)
        case HaarResponse():
            return _halves(randomizer, value)
        case PiecewiseMean():
            return _symbols(randomizer.window, _place(randomizer, value), randomizer.width)
        case SquareWave():
            return _symbols(randomizer.window, value, randomizer.width)
        case HybridMean():
            return _hybrid(randomizer, value)
        case MultidimensionalMean():
            return _several(randomizer, value)
        case LevelReports():
            codes = (value // block for block in randomizer.blocks)
            return _drawn(randomizer.shares, randomizer.parts, codes, width=randomizer.width)
        case PartitionOracle():
            block = sum(start <= value for start in randomizer.starts) - 1
            return report_distribution(randomizer.oracle, block)
        case HybridGrid():
            return _grid(randomizer, value)
        case _:
            raise InvalidArgument(f"The reports of {randomizer.kind} are too many to be listed.")


def copies_distribution(plan: MemoizedOracle, value: Any, reports: int) -> Law:
    """The law of several reports, one after the other, that come from one permanent response."""
    law: Law = {}
    for memory, mass in memoized_distribution(plan, value).items():
        copy = _copies(plan, memory)
        for sent in itertools.product(copy, repeat=reports):
            seen = b"".join(sent)
            law[seen] = law.get(seen, 0.0) + mass * math.prod(copy[one] for one in sent)
    return law


def noisy_pair(randomizer: LocalLaplace | SummationHistogramEncoding) -> exact.OutputPair:
    """The laws of reports with Laplace noise, on the two bounds or on two categories of two.

    Read between the two centers: beyond both the ratio is constant, so nothing is lost.
    """
    one = _moved(listed(randomizer.noise), randomizer.steps)
    return one if isinstance(randomizer, LocalLaplace) else exact.product(one, one.swapped())


def _moved(noise: LatticeDistribution, by: int) -> exact.OutputPair:
    return exact.pair(noise.clamp(0, by), noise.shift(by).clamp(0, by))


# ── one of many codes, e^epsilon times likelier if they speak for the own value ────────────────


def _weighted(randomizer: LocalRandomizer, value: int) -> Law:
    """Messages as numbers, and whether each speaks for the value."""
    speaks: Iterator[tuple[int, bool]]
    match randomizer:
        case RandomizedResponse():
            speaks = ((code, code == value) for code in range(randomizer.categories))
        case SubsetSelection():
            speaks = _subsets(randomizer, value)
        case LocalHashing():
            speaks = _hashes(randomizer, value)
        case _:
            raise InvalidArgument(f"{randomizer.kind} has no such messages.")
    likelier = math.exp(randomizer.epsilon)
    weights = {code: likelier if own else 1.0 for code, own in speaks}
    total = math.fsum(weights.values())
    width = randomizer.width
    return {code.to_bytes(width, "little"): weight / total for code, weight in weights.items()}


def _subsets(oracle: SubsetSelection, value: int) -> Iterator[tuple[int, bool]]:
    for members in itertools.combinations(range(oracle.categories), oracle.chosen):
        if oracle.listed:
            code = sum(member << (oracle.digits * j) for j, member in enumerate(members))
        else:
            code = sum(1 << member for member in members)
        yield code, value in members


def _hashes(oracle: LocalHashing, value: int) -> Iterator[tuple[int, bool]]:
    """Independent linear forms, and a set of hash values by its place in lexicographic order."""
    many = oracle.hash_digits
    sets = list(itertools.combinations(range(1 << many), oracle.kept))
    for forms in itertools.product(range(1, 1 << oracle.digits), repeat=many):
        if not _independent(forms):
            continue
        hashed = sum(((form & value).bit_count() & 1) << place for place, form in enumerate(forms))
        start = sum(form << (oracle.digits * place) for place, form in enumerate(forms))
        for number, members in enumerate(sets):
            yield start | number << (oracle.digits * many), hashed in members


def _independent(forms: Sequence[int]) -> bool:
    """No sum of some of them, modulo 2, is zero."""
    sums = {0}
    for form in forms:
        if form in sums:
            return False
        sums |= {form ^ other for other in sums}
    return True


def _halves(oracle: HaarResponse, value: int) -> Law:
    """A uniform row of the Hadamard matrix, and its sign, which is mostly right."""
    wrong = 1 / (1 + math.exp(oracle.epsilon))
    law = {}
    for row in range(oracle.pairs):
        sign = ((row & (value >> 1)).bit_count() + value) & 1
        for sent in (0, 1):
            chance = (1 - wrong if sent == sign else wrong) / oracle.pairs
            law[(2 * row + sent).to_bytes(oracle.width, "little")] = chance
    return law


def _unary(oracle: UnaryEncoding, value: int) -> Law:
    """Independent bits, by the integers of their coins."""
    keep, other = (coin / ONE for coin in oracle.coins)
    ones = [keep if place == value else other for place in range(oracle.categories)]
    return _bits(ones, oracle.width)


def _bits(ones: Sequence[float], width: int) -> Law:
    law = {}
    for row in range(1 << len(ones)):
        chances = (p if row >> place & 1 else 1 - p for place, p in enumerate(ones))
        law[row.to_bytes(width, "little")] = math.prod(chances)
    return law


# ── numbers: a symbol from a window ────────────────────────────────────────────────────────────


def _symbols(window: WindowChannel, index: int, width: int, *, first: int = 0) -> Law:
    """Every symbol by its whole weight; numbered from ``first``."""
    weights = [window.far] * window.symbols
    weights[index : index + window.width] = [window.near] * window.width
    total = sum(weights)
    return {(first + s).to_bytes(width, "little"): w / total for s, w in enumerate(weights)}


def _place(randomizer: PiecewiseMean | HybridMean, value: float) -> int:
    """The grid point of a bound: no coin is thrown there."""
    if value not in (randomizer.lower, randomizer.upper):
        raise InvalidArgument("value must be a bound of the range: others are rounded at random.")
    return randomizer.steps if value == randomizer.upper else 0


def _hybrid(randomizer: HybridMean, value: float) -> Law:
    wide, bit, share = randomizer.wide, randomizer.bit, randomizer.share / (1 << 16)
    width = randomizer.width
    likely = _symbols(wide.window, _place(wide, value), width)
    rare = _symbols(bit.window, _place(bit, value), width, first=wide.window.symbols)
    return {report: share * mass for report, mass in likely.items()} | {
        report: (1 - share) * mass for report, mass in rare.items()
    }


def _several(randomizer: MultidimensionalMean, values: Sequence[float]) -> Law:
    """Columns in every order, each with the symbol of its place between its bounds."""
    every = [
        report_distribution(randomizer.part, float(value == high))
        for value, (_, _, high) in zip(values, randomizer.columns, strict=True)
    ]
    orders = list(itertools.permutations(range(len(every)), randomizer.sampled))
    law: Law = {}
    for order in orders:
        for told in itertools.product(*(every[column].items() for column in order)):
            fields = (
                bytes((column,)) + symbol for column, (symbol, _) in zip(order, told, strict=True)
            )
            law[b"".join(fields)] = math.prod(mass for _, mass in told) / len(orders)
    return law


# ── levels and groups: which one is drawn in public, then its report ───────────────────────────


def _drawn(
    shares: Sequence[Any], parts: Sequence[LocalRandomizer], codes: Iterable[int], *, width: int
) -> Law:
    law: Law = {}
    tagged = len(parts) > 1
    for level, (share, part, code) in enumerate(zip(shares, parts, codes, strict=True)):
        for report, mass in report_distribution(part, code).items():
            whole = bytes((level,)) * tagged + report
            law[whole.ljust(width, b"\0")] = float(share) * mass
    return law


def _grid(randomizer: HybridGrid, value: Mapping[str, int]) -> Law:
    parts, codes = [], []
    for group in randomizer.groups:
        parts.append(randomizer.oracle(group))
        code = 0
        for name in group:
            edges = randomizer.edges(name, group)
            code = code * (len(edges) - 1) + int(np.sum(edges <= value[name])) - 1
        codes.append(code)
    return _drawn([1 / len(parts)] * len(parts), parts, codes, width=randomizer.width)


# ── memory: a permanent response, and copies of it ─────────────────────────────────────────────


def memoized_distribution(plan: MemoizedOracle, value: Any) -> Law:
    """The law of a permanent response: all that any number of copies can tell."""
    if isinstance(plan, MemoizedUnary | MemoizedHashing):
        return report_distribution(plan.response, value)
    raise InvalidArgument(f"The memory of {plan.kind} is not known here.")


def _copies(plan: MemoizedOracle, memory: bytes) -> Law:
    """The law of one copy of a permanent response."""
    if isinstance(plan, MemoizedUnary):
        held, flip = int.from_bytes(memory, "little"), float(plan.flip)
        ones = [1 - flip if held >> k & 1 else flip for k in range(plan.categories)]
        return _bits(ones, plan.width)
    if not isinstance(plan, MemoizedHashing):
        raise InvalidArgument(f"The copies of {plan.kind} are not known here.")
    places = plan.digits * plan.hash_digits
    forms, held = divmod(int.from_bytes(memory, "little"), 1 << places)[::-1]
    wrong = _second(plan.hashes, float(plan.epsilon), float(plan.permanent_epsilon))
    return {
        (forms | shown << places).to_bytes(plan.width, "little"): (
            1 - (plan.hashes - 1) * wrong if shown == held else wrong
        )
        for shown in range(plan.hashes)
    }


def _second(hashes: int, epsilon: float, permanent: float) -> float:
    """Probability of each wrong value in a copy, so that both steps together have epsilon.

    Randomized response over g values at epsilon keeps the difference of two values by
    (e^eps - 1) / (e^eps + g - 1), and two in a row keep the product.
    """

    def kept(loss: float) -> float:
        return math.expm1(loss) / (math.expm1(loss) + hashes)

    return (1 - kept(epsilon) / kept(permanent)) / hashes

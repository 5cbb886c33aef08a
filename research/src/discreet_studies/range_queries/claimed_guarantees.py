"""E0: what the published code promises, and what it keeps."""

from __future__ import annotations

import math
from collections.abc import Sequence

from discreet.audit.cases import _range_outputs as ranges
from discreet_studies.checks import Claims
from discreet_studies.range_queries import reference_values as stated
from discreet_studies.range_queries.example_counts import visits
from discreet_studies.range_queries.local_model import published, response
from discreet_studies.range_queries.tree_cover import height
from discreet_studies.study import Findings, StudyCheck, StudySetting, StudyTable

_SCALE = Claims(
    source="M2",
    why="The text asks for noise of scale (h + 1)/epsilon; the code takes log2(h + 1)/epsilon.",
)
_ORACLE = Claims(
    source="M3",
    why="The text claims epsilon; the oracle draws its lies from all values, the truth included.",
)
_LEAVES = 64


def claimed_guarantees(setting: StudySetting) -> Findings:
    """Noise scales, true epsilons, and the leaves that range queries give away."""
    del setting  # exact, but for an attack that always succeeds
    return Findings(
        checks=(*_scales(), *_oracle(), *_canceled()),
        tables=(_scale_table(), _oracle_table()),
    )


def _used(domain: int, degree: int) -> tuple[float, int]:
    levels = height(domain, degree=degree) + 1
    return math.log2(levels), levels


def _scales() -> list[StudyCheck]:
    made = []
    for domain, by_degree in stated.SCALES.items():
        for degree, (used, needed, factor) in zip(stated.DEGREES, by_degree, strict=True):
            got, levels = _used(domain, degree)
            where = f"D={domain}, B={degree}"
            made += [
                _SCALE.number(
                    f"E0/scale used/{where}",
                    f"scale of the published tree times epsilon, {where}",
                    expected=used,
                    got=got,
                    absolute=0.0006,
                ),
                _SCALE.equal(
                    f"E0/scale needed/{where}",
                    f"scale that epsilon needs, {where}",
                    expected=needed,
                    got=levels,
                ),
                _SCALE.number(
                    f"E0/factor/{where}",
                    f"true epsilon of such noise over the nominal one, {where}",
                    expected=factor,
                    got=levels / got,
                    absolute=0.006,
                ),
            ]
    return made


def _oracle() -> list[StudyCheck]:
    made = []
    for size, printed in stated.TRUE_EPSILON.items():
        for epsilon, expected in zip(stated.NOMINAL, printed, strict=True):
            where = f"epsilon {epsilon:g}, {_many(size)}"
            made.append(
                _ORACLE.number(
                    f"E0/oracle/{where}",
                    f"true epsilon of the published oracle at {where}",
                    expected=expected,
                    got=published(epsilon).true_epsilon(size),
                    absolute=0.0006,
                )
            )
    worst = max(
        abs(response(epsilon).true_epsilon(size) - epsilon)
        for size in (2, 16, 2048)
        for epsilon in stated.EPSILONS
    )
    made.append(
        Claims(source="F13").at_most(
            "E0/response",
            "randomized response that lies with another value keeps epsilon",
            expected=1e-9,
            got=worst,
        )
    )
    return made


def _canceled() -> list[StudyCheck]:
    claims = Claims(
        source="M1, F22b",
        why="The text claims epsilon-DP; in the code the noise of a node, its first and its second "
        "child cancels, whatever epsilon is.",
    )
    leaves = visits(_LEAVES).tolist()
    return [
        claims.equal(
            f"E0/leaves, {name} tree",
            f"leaves of 64 that range queries give away exactly at epsilon 0.1, {name} tree",
            expected=expected,
            got=ranges.recovered(build, leaves),
        )
        for name, build, expected in (
            ("published", _published_tree, 63),
            ("corrected", _sound_tree, 0),
        )
    ]


def _published_tree(leaves: Sequence[int], seed: int) -> ranges.Levels:
    return ranges.published_tree(leaves, epsilon=0.1, seed=seed)


def _sound_tree(leaves: Sequence[int], seed: int) -> ranges.Levels:
    return ranges.sound_tree(leaves, epsilon=0.1, seed=seed)


def _many(size: int) -> str:
    return f"{size} values" if size < 1 << 30 else "many values"


def _scale_table() -> StudyTable:
    rows: list[tuple[int | float, ...]] = []
    for domain in stated.DOMAINS:
        row: list[int | float] = [domain]
        for degree in stated.DEGREES:
            used, needed = _used(domain, degree)
            row += [used, needed, needed / used]
        rows.append(tuple(row))
    return StudyTable(
        id="E0/scales",
        title="Noise of the published tree: scale used, scale needed, true over nominal epsilon",
        columns=(
            "D",
            *(f"B={b}, {what}" for b in stated.DEGREES for what in ("used", "needed", "factor")),
        ),
        rows=tuple(rows),
    )


def _oracle_table() -> StudyTable:
    sizes = (2, 4, 16, 256, 2048)
    return StudyTable(
        id="E0/oracle",
        title="True epsilon of the published oracle",
        columns=("nominal epsilon", *(f"{size} values" for size in sizes)),
        rows=tuple(
            (epsilon, *(published(epsilon).true_epsilon(size) for size in sizes))
            for epsilon in stated.NOMINAL
        ),
        note="It never falls below log 2, however small the nominal epsilon is.",
    )

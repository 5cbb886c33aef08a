"""Margins of error that hold for many answers at once, however they depend on each other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.core.number_format import short
from discreet.marginals.design import MarginalDesign, TableKey, measured_shape
from discreet.noise.distribution import Floats
from discreet.noise.random_source import seeded_rng

COPIES = 399
"""Copies of the noise that answers are compared with."""
MOST_COPIES = 9_999
MOST_WEIGHTS = 1 << 25
"""Answers times the cells that they are made of."""


def widths_at_once(
    design: MarginalDesign,
    answers: Sequence[Mapping[int, Floats]],
    *,
    confidence: float,
    seed: int,
) -> Floats:
    """Half-widths within which the errors of all answers stay at once."""
    # Theorem: with Z_q the noise of the release in answer q, of deviation d_q, and T_(k) the k-th
    #   smallest of M values `max_q |Z_q| / d_q` of fresh copies of all noise, `|Z_q| <= T_(k) d_q`
    #   holds for all q at once with probability at least `k / (M + 1)`.
    # Proof: the noise of the release and its copies are exchangeable, so the rank of its own
    #   maximum among all M + 1 is at least uniform; ties help. The probability includes the draw of
    #   the copies. Answers whose noise is none are exact.
    # Source: docs/theory/marginals.md.
    # Needs: answers chosen before the numbers are seen; copies that are drawn once, from a seed
    #   that has nothing to do with the noise of the release.
    deviations = np.sqrt([design.answer_variance(one) for one in answers])
    noisy = deviations > 0
    many = _copies(confidence)
    largest = np.sort(_largest(design, answers, np.where(noisy, deviations, np.inf), many, seed))
    factor = float(largest[math.ceil(confidence * (many + 1)) - 1])
    return deviations * factor


def _copies(confidence: float) -> int:
    """So many that the rank of the level is one of theirs."""
    many = max(COPIES, math.floor(confidence / (1 - confidence)))
    while math.ceil(confidence * (many + 1)) > many:
        many += 1
    if many > MOST_COPIES:
        raise InvalidArgument(f"confidence must be at most {short(1 - 1 / MOST_COPIES)} here.")
    return many


def _largest(
    design: MarginalDesign,
    answers: Sequence[Mapping[int, Floats]],
    deviations: Floats,
    copies: int,
    seed: int,
) -> Floats:
    """For each copy of the noise, its largest error in an answer, in deviations."""
    groups: dict[TableKey, list[int]] = {}
    for k, one in enumerate(answers):
        groups.setdefault(tuple(sorted(one)), []).append(k)
    cells = {key: math.prod([design.columns[i].size for i in key]) for key in groups}
    if sum(len(held) * cells[key] for key, held in groups.items()) > MOST_WEIGHTS:
        raise InvalidArgument("wanted must be fewer answers, or of smaller tables.")
    weights = {
        key: np.array([_outer(answers[k], key) / deviations[k] for k in held])
        for key, held in groups.items()
    }
    source = seeded_rng(seed)
    shapes = [measured_shape(place, design.columns, plain=design.plain) for place in design.places]
    drawn = [
        law.sample(copies * math.prod(shape), rng=source).reshape(copies, *shape)
        for law, shape in zip(design.laws, shapes, strict=True)
    ]
    found = np.zeros(copies)
    for copy in range(copies):
        parts = design.parts([one[copy] for one in drawn])
        for key, held in weights.items():
            errors = held @ design.table(key, parts).ravel()
            found[copy] = max(found[copy], float(np.abs(errors).max()))
    return found


def _outer(one: Mapping[int, Floats], key: TableKey) -> Floats:
    found: Floats = np.ones(1)
    for i in key:
        found = np.multiply.outer(found, one[i])
    return found.ravel()

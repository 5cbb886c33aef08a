"""Which features to keep: chosen from released moments, so the choice costs nothing."""

from __future__ import annotations

import math

import numpy as np

from discreet.core.check import count
from discreet.core.errors import InvalidArgument
from discreet.models.regression.moments import PrivateMoments


def select_features(moments: PrivateMoments, *, keep: int, output: int = 0) -> tuple[int, ...]:
    """The features that explain most, one after the other, by the noisy moments.

    Use the result with `PrivateMoments.subset`: noise in a small matrix does less harm.

    Theorem: post-processing (K39): the moments were paid for, the choice is free.
    Proof: only released numbers are used. At each step the feature is taken whose residual product
        with the target, over the root of its own square, is largest: forward selection, with the
        penalty that lifts the matrix above its noise (K33).
    """
    many = count("keep", keep)
    first = moments.columns - len(moments.kept)
    if many > len(moments.kept):
        raise InvalidArgument(f"keep must be at most {len(moments.kept)}, got {keep}.")
    if not 0 <= output < moments.cross.shape[1]:
        raise InvalidArgument(f"output must be below {moments.cross.shape[1]}, got {output}.")
    edge = moments.sigma * (math.sqrt(2 * moments.columns) + 1)
    least = float(np.linalg.eigvalsh(moments.gram)[0])
    matrix = moments.gram + max(0.0, edge - least) * np.eye(moments.columns)
    products = moments.cross[:, output]
    inside = list(range(first))
    left = list(range(first, moments.columns))
    for _ in range(many):
        gains = []
        for place in left:
            gain = float(products[place])
            square = float(matrix[place, place])
            if inside:
                known = np.linalg.solve(
                    matrix[np.ix_(inside, inside)],
                    np.column_stack((products[inside], matrix[inside, place])),
                )
                gain -= float(matrix[place, inside] @ known[:, 0])
                square -= float(matrix[place, inside] @ known[:, 1])
            gains.append(abs(gain) / math.sqrt(max(square, edge * 1e-6, 1e-300)))
        best = left.pop(int(np.argmax(gains)))
        inside.append(best)
    return tuple(moments.kept[place - first] for place in inside[first:])

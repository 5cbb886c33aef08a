"""Two-level randomisers, described for amplification by shuffling.

A report is drawn from a public law U, except that the outputs in a set T(x) are more likely by one
factor, at most e^epsilon. Two numbers are all that matters (S3, docs/theory/shuffle.md): ``share``,
the U-mass of T(x), the same for every value x; and ``differ``, the largest U-mass of T(x) without
T(x') over two values. A randomiser may first draw a public part (a level of a tree, say), each
with its own pair of numbers.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction

from discreet.accounting.shuffle import Parts
from discreet.core import check
from discreet.core.errors import InvalidArgument
from discreet.core.exact import Number


def blocks(*, points: int, chosen: int = 1) -> Parts:
    """Reports that are blocks of a 2-design: sets of ``chosen`` of ``points`` points.

    Theorem: share = k/v and differ = k (v - k)/(v (v - 1)).
    Proof: U is uniform on the blocks; a point lies in k/v of them, two points in
        k (k - 1)/(v (v - 1)).
    Needs: 1 <= chosen < points. Randomised response has chosen = 1 (two points: Warner's),
        subset selection all sets, hashing to g = v/k values by linear forms the flats.
    """
    v = check.count("points", points, minimum=2)
    k = check.count("chosen", chosen)
    if k >= v:
        raise InvalidArgument(f"chosen must be below points={v}, got {k}.")
    return ((Fraction(1), Fraction(k, v), Fraction(k * (v - k), v * (v - 1))),)


def unary(other: Number) -> Parts:
    """Unary encodings whose bits other than the own are one with probability ``other``.

    Theorem: share = q and differ = q (1 - q).
    Proof: U is independent coins of bias q; T(x) are the rows with a one at x.
    Needs: 0 < other < 1, the coin as it is thrown.
    """
    q = check.probability("other", other, zero=False, one=False)
    return ((Fraction(1), q, q * (1 - q)),)


def window(*, inputs: int, width: int) -> Parts:
    """A symbol of a line, likelier within a window of ``width`` that starts at the input.

    Theorem: with m + w - 1 symbols, share = w/(m + w - 1) and differ = min(w, m - 1)/(m + w - 1).
    Proof: U is uniform on the symbols; windows that start d apart differ in min(w, d) each way.
    Needs: inputs >= 2, width >= 1. Rounding a number to an input at random beforehand is covered.
    """
    m = check.count("inputs", inputs, minimum=2)
    w = check.count("width", width)
    symbols = m + w - 1
    return ((Fraction(1), Fraction(w, symbols), Fraction(min(w, m - 1), symbols)),)


def levels(parts: Iterable[tuple[Number, Parts]]) -> Parts:
    """A randomiser that draws one of several with the given probability and says which.

    Theorem: the parts of all, their weights multiplied.
    Needs: the probabilities sum to one and do not depend on the client: who is *assigned* to a
        level in public is shuffled among those of the level only.
    """
    return check.two_level(
        tuple(
            (check.probability("weight", weight) * inner, share, differ)
            for weight, described in parts
            for inner, share, differ in described
        )
    )

"""How far gradients in double precision are from the true ones: a bound that holds for all data.

Theorems about sensitivity speak of exact arithmetic. Their sensitivities are enlarged by what
rounding can add, so that what is claimed is true of what is computed. Rows are whole numbers of a
public unit and parameters have two pieces of few bits, so that margins are exact but for one
addition.
"""

from __future__ import annotations

import math

import numpy as np

from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.models.sgd.objectives import Floats, Norm, Objective

# Twice the unit of rounding, which leaves room for terms of the second order.
UNIT = 2.0**-52
# Rows summed at once, in any order; the sums of these are added without rounding.
CHUNK = 1 << 10
# Bits of an entry of a row, and of an exact sum of products.
ROW_BITS = 20
_SUM_BITS = 52
_FEWEST_BITS = 15
# Numbers in a table; where the number of rows is private, bounds hold for all tables up to here.
_MOST_CELLS = 1 << 33


def clipped_rows(x: Floats, row_norm: float, *, norm: Norm = "l2", bits: int = ROW_BITS) -> Floats:
    """Rows shrunk to the declared length, each by itself, on a public grid (towards zero)."""
    if x.size > _MOST_CELLS:
        raise OutOfDomain("X is too large for a fit in memory: at most 2**33 numbers.")
    exponent = bits - math.frexp(row_norm)[1]
    rows: Floats = np.empty_like(x)
    for start in range(0, len(x), CHUNK):
        part = x[start : start + CHUNK]
        # By the largest entry first: squares of any doubles then neither vanish nor overflow.
        top = np.maximum(np.abs(part).max(axis=1), np.finfo(np.float64).tiny)
        unit = part / top[:, None]
        # A row of zeros stays one, whatever its length is taken for.
        norms = np.maximum(_lengths(unit, norm), 0.5)
        most = row_norm / norms
        shrunk = np.where((top > most)[:, None], unit * most[:, None], part)
        rows[start : start + CHUNK] = np.ldexp(np.trunc(np.ldexp(shrunk, exponent)), -exponent)
    return rows


def _lengths(rows: Floats, norm: Norm) -> Floats:
    """The norm of each row, column by column: the same bits wherever a row stands.

    NumPy's own sums may take another order for a single row than for many.
    """
    total = np.zeros(len(rows))
    for column in rows.T:
        total += np.abs(column) if norm == "l1" else column * column
    return total if norm == "l1" else np.sqrt(total)


def widened(row_norm: float, features: int) -> float:
    """A bound on the true length of `clipped_rows`."""
    return row_norm * (1 + (2 * features + 8) * UNIT)


def largest_share(rows: int, features: int) -> float:
    """How many times more records than ``rows`` there can be."""
    return max(1.0, _MOST_CELLS / features / rows)


def representable(theta: Floats, features: int) -> Floats:
    """Parameters rounded to two pieces: each by at most `piece_error` of the largest."""
    first, second = _pieces(theta, features)
    return first + second


def piece_error(features: int) -> float:
    """What `representable` may take from a parameter, in units of the largest."""
    return 2.0 ** (-2 * _piece_bits(features))


def _piece_bits(features: int) -> int:
    bits = _SUM_BITS - ROW_BITS - math.ceil(math.log2(features + 1))
    if bits < _FEWEST_BITS:
        raise InvalidArgument("features must be at most 2**16: margins would not be exact.")
    return bits


def _pieces(theta: Floats, features: int) -> tuple[Floats, Floats]:
    """The leading bits of parameters, and the bits after them."""
    bits = _piece_bits(features)
    place = bits - math.frexp(float(np.abs(theta).max()))[1]
    first = np.ldexp(np.rint(np.ldexp(theta, place)), -place)
    second = np.ldexp(np.rint(np.ldexp(theta - first, place + bits)), -place - bits)
    return first, second


def exact_margins(objective: Objective, theta: Floats, rows: Floats) -> Floats:
    """Margins, exact but for one addition: the same for a row wherever it stands."""
    first, second = _pieces(theta, rows.shape[1])
    return objective.margins(first, rows) + objective.margins(second, rows)


def data_gradient(objective: Objective, theta: Floats, x: Floats, y: Floats) -> Floats:
    """The sum of the records' gradients without the penalty, as `gradient_error` assumes.

    Needs: rows from `clipped_rows`, parameters that are `representable`.
    """
    parts = []
    for start in range(0, len(x), CHUNK):
        rows = x[start : start + CHUNK]
        slopes = objective.slopes(exact_margins(objective, theta, rows), y[start : start + CHUNK])
        parts.append((slopes.reshape(len(rows), objective.outputs).T @ rows).ravel())
    if not parts:
        return np.zeros_like(theta)
    return np.array([math.fsum(column) for column in np.stack(parts, axis=1)])


def gradient_error(objective: Objective, *, row_norm: float, radius: float, share: float) -> float:
    """A bound on the L2 error of ``data_gradient / rows`` plus the penalty's gradient.

    For parameters within ``radius`` of zero, rows of length up to ``row_norm`` and at most
    ``share`` times as many records as they are divided by.

    Proof: margins are a sum of two exact numbers (error u ||x|| ||theta||, twice that for the two
        pieces); slopes move by the curvature times that, and by a few units for their own
        evaluation; a chunk's sum errs by at most CHUNK u times the sum of the norms, in any order
        (Higham 2002, section 3.1).
    """
    slope = objective.slope_bound("l2")
    margin = 2 * UNIT * row_norm * radius
    slope_error = objective.curvature * margin + 16 * (objective.outputs + 1) * UNIT * (1 + slope)
    record = row_norm * (slope_error + (CHUNK + 4) * UNIT * slope)
    return share * record + 8 * UNIT * objective.l2 * radius

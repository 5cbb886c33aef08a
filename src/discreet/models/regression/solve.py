"""From released moments to coefficients: nothing here sees a row (K10, K12, K32, K33)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from discreet.core.errors import InvalidArgument, Unsupported
from discreet.models.inputs import Floats
from discreet.models.regression.moments import PrivateMoments

ADASSP_RHO = 0.05


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Solution:
    """Coefficients in mapped units (columns x outputs), and the penalty they were found with."""

    theta: Floats
    penalty: float
    method: str
    smallest: float
    """The smallest eigenvalue of the noisy matrix with the penalty."""
    condition: float

    @property
    def stable(self) -> bool:
        """Whether the matrix that was inverted is positive definite (else it is garbage: M23)."""
        return self.smallest > 0


def penalised(moments: PrivateMoments, penalty: float, *, method: str = "ridge") -> Solution:
    """``(G + penalty I)^-1 b`` (K3)."""
    if not 0 <= penalty < math.inf:
        raise InvalidArgument(f"penalty must be finite and not negative, got {penalty}.")
    matrix = moments.gram + penalty * np.eye(moments.columns)
    values = np.linalg.eigvalsh(matrix)
    largest = float(np.abs(values).max())
    try:
        theta = np.linalg.solve(matrix, moments.cross)
    except np.linalg.LinAlgError:
        raise Unsupported("The noisy matrix is singular: use another method.") from None
    least = float(np.abs(values).min())
    return Solution(
        theta=np.asarray(theta, dtype=np.float64),
        penalty=float(penalty),
        method=method,
        smallest=float(values[0]),
        condition=largest / least if least > 0 else math.inf,
    )


def ssp(moments: PrivateMoments) -> Solution:
    """Plain sufficient-statistics perturbation, without any penalty: unstable (K10)."""
    return penalised(moments, 0.0, method="ssp")


def edge(moments: PrivateMoments) -> float:
    """Where the eigenvalues of the noise end: a matrix above it is surely definite (K9, K33)."""
    return moments.sigma * (math.sqrt(2 * moments.columns) + 1)


def psd(moments: PrivateMoments) -> Solution:
    """The least penalty that lifts the noisy matrix above the edge of its own noise (K33).

    Theorem: post-processing; the penalty is a function of the released matrix, so the smallest
        eigenvalue costs nothing.
    """
    least = float(np.linalg.eigvalsh(moments.gram)[0])
    return penalised(moments, max(0.0, edge(moments) - least), method="psd")


def adassp(moments: PrivateMoments) -> Solution:
    """The penalty from a separately released smallest eigenvalue (K11, K12, K32).

    With the exact joint calibration the target is the edge of the noise, ``sigma (sqrt(2 d) + 2)``,
    and two deviations are taken off the eigenvalue; with the published constants both are as
    published.
    """
    if moments.smallest is None or moments.sigma_smallest is None:
        raise InvalidArgument("moments must hold a smallest eigenvalue: plan them for AdaSSP.")
    d = moments.columns
    if moments.published_log is None:
        target = moments.sigma * (math.sqrt(2 * d) + 2)
        shift = 2 * moments.sigma_smallest
    else:
        target = moments.sigma * math.sqrt(d * math.log(2 * d * d / ADASSP_RHO))
        shift = math.sqrt(moments.published_log) * moments.sigma_smallest
    least = max(0.0, moments.smallest - shift)
    return penalised(moments, max(0.0, target - least), method="adassp")

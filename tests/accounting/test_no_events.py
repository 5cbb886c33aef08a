"""Nothing costs nothing, atoms weigh what the law says, and a delta of one is no target."""

import math

import numpy as np
import pytest

from discreet.accounting import calibrate, renyi
from discreet.accounting.dominating_pairs import LatticeLaplacePair
from discreet.accounting.pld import atoms_of
from discreet.core import events
from discreet.core.errors import InvalidArgument


def test_nothing_has_no_divergence():
    assert renyi.divergence(events.NOTHING, order=2.0) == 0.0


@pytest.mark.parametrize("shift", [1, 2, 5])
def test_atoms_of_a_discrete_laplace_have_its_masses(shift):
    """The loss at x is ``(|x - shift| - |x|) / scale``, for noise of mass r^|x| (1 - r)/(1 + r)."""
    decay = 0.7
    found = atoms_of(LatticeLaplacePair(decay=decay, shift=shift))
    r = math.exp(-decay)
    masses = np.zeros(shift + 1)
    for x in range(-400, 401):
        loss = abs(x - shift) - abs(x)
        masses[(loss + shift) // 2] += r ** abs(x) * (1 - r) / (1 + r)
    assert found.losses == pytest.approx(decay * np.arange(-shift, shift + 1, 2))
    assert found.masses == pytest.approx(masses, rel=1e-12)


def test_a_delta_of_one_is_no_target():
    with pytest.raises(InvalidArgument, match="delta"):
        calibrate._pair((1.0, 1.0))
    assert calibrate._pair((1.0, 0.5)) == (1.0, 0.5)

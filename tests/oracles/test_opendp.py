"""OpenDP as an oracle: the same laws and the same prices from an independent implementation."""

import numpy as np
import pytest

import discreet
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace
from tests.distributions import follows

dp = pytest.importorskip("opendp.prelude")
dp.enable_features("contrib", "honest-but-curious")
N = 30_000


def integer_vectors():
    return dp.vector_domain(dp.atom_domain(T=int))


@pytest.mark.parametrize("scale", [1.0, 7.5, 300.0])
def test_the_same_laplace_law_and_price(scale):
    peer = dp.m.make_laplace(integer_vectors(), dp.l1_distance(T=int), scale=scale)
    assert follows(np.array(peer([0] * N)), DiscreteLaplace(scale).cdf)
    ours = discreet.laplace(sensitivity=3, scale=scale, domain="integers").guarantee
    assert ours.epsilon() == pytest.approx(peer.map(3), rel=1e-12)


@pytest.mark.parametrize("sigma", [1.0, 12.5])
def test_the_same_gaussian_law_and_price(sigma):
    peer = dp.m.make_gaussian(integer_vectors(), dp.l2_distance(T=float), scale=sigma)
    assert follows(np.array(peer([0] * N)), DiscreteGaussian(sigma).cdf)
    ours = discreet.gaussian(sensitivity=2, sigma=sigma, domain="integers").guarantee
    # OpenDP states rho; ours is the same Rényi curve, rho * order.
    assert ours.rdp(5.0) == pytest.approx(5 * peer.map(2.0), rel=1e-9)


def test_the_oracle_would_see_another_law():
    peer = dp.m.make_laplace(integer_vectors(), dp.l1_distance(T=int), scale=10.0)
    assert not follows(np.array(peer([0] * N)), DiscreteLaplace(13).cdf)

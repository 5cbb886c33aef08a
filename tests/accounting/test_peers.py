"""dp-accounting as oracle: the same events, within the discretization of both."""

import dp_accounting
import numpy as np
import pytest
from dp_accounting import pld, rdp

from discreet.accounting.guarantee import Guarantee
from discreet.core.events import GaussianEvent, LaplaceEvent, SampledEvent, compose, repeat


def peer_event(event):
    match event:
        case LaplaceEvent(scale):
            return dp_accounting.LaplaceDpEvent(float(scale))
        case GaussianEvent(sigma):
            return dp_accounting.GaussianDpEvent(float(sigma))
        case SampledEvent(rate, inner):
            return dp_accounting.PoissonSampledDpEvent(float(rate), peer_event(inner))


CASES = [
    [(GaussianEvent(4), 10)],
    [(LaplaceEvent(10), 100)],
    [(SampledEvent(0.01, GaussianEvent(1)), 1000)],
    [(SampledEvent(0.2, LaplaceEvent(2)), 20)],
    [
        (LaplaceEvent(7), 5),
        (GaussianEvent(3), 2),
        (SampledEvent(0.05, GaussianEvent(1.5)), 30),
        (LaplaceEvent(3), 1),
    ],
]


@pytest.mark.parametrize("parts", CASES)
@pytest.mark.parametrize("delta", [1e-4, 1e-6])
def test_privacy_loss_distributions_agree(parts, delta):
    peer = pld.PLDAccountant(value_discretization_interval=1e-4)
    for event, count in parts:
        peer.compose(peer_event(event), count)
    theirs = peer.get_epsilon(delta)
    low, high = Guarantee(compose(repeat(e, k) for e, k in parts)).bounds(delta)
    assert low <= theirs * (1 + 1e-6)
    assert high == pytest.approx(theirs, rel=1e-3)
    assert high - low < 0.01 * high


def test_deltas_agree():
    peer = pld.PLDAccountant()
    peer.compose(peer_event(SampledEvent(0.05, GaussianEvent(1))), 50)
    ours = Guarantee(repeat(SampledEvent(0.05, GaussianEvent(1)), 50))
    for epsilon in (0.5, 1.0, 2.0, 4.0):
        assert ours.delta(epsilon) == pytest.approx(peer.get_delta(epsilon), rel=1e-2)


def test_many_mixed_events_agree():
    random = np.random.default_rng(11)
    events = []
    for _ in range(8):
        events.append(LaplaceEvent(round(float(random.uniform(5, 15)), 3)))
        events.append(GaussianEvent(round(float(random.uniform(5, 15)), 3)))
        rate, sigma = (
            round(float(random.uniform(0.01, 0.05)), 4),
            round(float(random.uniform(0.8, 2)), 3),
        )
        events.append(SampledEvent(rate, GaussianEvent(sigma)))
    peer = pld.PLDAccountant()
    for event in events:
        peer.compose(peer_event(event))
    low, high = Guarantee(compose(events)).bounds(1e-6)
    theirs = peer.get_epsilon(1e-6)
    assert low <= theirs * (1 + 1e-6)
    assert high == pytest.approx(theirs, rel=1e-3)
    assert high - low < 0.01 * high


@pytest.mark.parametrize("order", [2, 3, 8, 32])
@pytest.mark.parametrize(
    "event",
    [
        GaussianEvent(2),
        LaplaceEvent(3),
        SampledEvent(0.01, GaussianEvent(1)),
        SampledEvent(0.3, GaussianEvent(4)),
    ],
)
def test_renyi_divergences_agree(order, event):
    peer = rdp.RdpAccountant(orders=[order])
    peer.compose(peer_event(event))
    theirs = float(peer._rdp[0])
    ours = Guarantee(event).rdp(order)
    assert ours == pytest.approx(theirs, rel=2e-2)
    assert ours >= theirs * (1 - 1e-6)

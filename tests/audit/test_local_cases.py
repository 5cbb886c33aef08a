"""Clients of the local model: laws listed by hand, samplers that follow them, mutants accused."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter

import numpy as np
import pytest
from scipy import stats

from discreet.audit import exact
from discreet.audit.cases import _range_outputs as ranges
from discreet.audit.cases import local as local_cases
from discreet.audit.cases import ranges as range_cases
from discreet.audit.cases._local_outputs import (
    copies_distribution,
    memoized_distribution,
    noisy_pair,
    report_distribution,
)
from discreet.audit.cases.local import AuditedClient, client_case, clients
from discreet.audit.runner import FAMILY, audit_case, registered
from discreet.core.errors import InvalidArgument
from discreet.local.longitudinal import longitudinal_olh, rappor
from discreet.local.means.local_laplace import LocalLaplace
from discreet.local.means.piecewise import duchi
from discreet.local.oracles.histogram_encoding import SummationHistogramEncoding
from discreet.local.oracles.local_hashing import olh
from discreet.local.oracles.randomized_response import RandomizedResponse, grr
from discreet.local.oracles.unary_encoding import oue
from discreet.local.registry import KINDS
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import seeded_rng
from discreet.noise.uniform import bernoulli_real, uniform_integers
from tests.distributions import ALPHA

OURS = (*local_cases.cases(), *local_cases.beside())
CLIENTS = clients()
NOISY = (LocalLaplace, SummationHistogramEncoding)
LISTED = [one for one in CLIENTS if one.name != "heavy hitters"]


def named(one):
    return one.name


def verdict(case):
    return audit_case(case, failure_probability=FAMILY / 200, samples=case.samples, seed=7).verdict


def test_every_kind_of_client_is_registered_once():
    assert {client.randomizer.kind for client in CLIENTS} == set(KINDS)
    names = [case.name for case in registered()]
    assert len(set(names)) == len(names)
    assert {case.name for case in (*OURS, *local_cases.published())} <= set(names)


@pytest.mark.parametrize("case", OURS, ids=named)
def test_ours_hold(case):
    """By their listed laws, and against the attack; only one is attacked alone."""
    expected = "not refuted" if case.name == "local heavy hitters" else "holds"
    assert verdict(case) == expected


@pytest.mark.parametrize("case", [case for case in OURS if case.laws], ids=named)
def test_no_client_wastes_what_it_may_tell(case):
    """All of the claim is used on these inputs, but for the one that is known to use less."""
    claimed = case.claimed.epsilon(0.0)
    found = exact.epsilon(case.laws())
    assert found.upper <= claimed * (1 + 1e-9)
    assert found.lower >= (0.89 if case.name == "local the" else 0.999999) * claimed


def seen(client, n=40_000):
    """How often each listed report was sent."""
    sent = local_cases._encoded(client.randomizer, client.left, n, 3)
    if not isinstance(client.randomizer, NOISY):
        return n, Counter(row.tobytes() for row in sent)
    # Read as the laws are: between the two centers.
    if isinstance(client.randomizer, SummationHistogramEncoding):
        steps = client.randomizer.steps
        # The own entry falls from steps as the first of the pair rises from 0.
        return n, Counter(map(tuple, np.clip(sent[:, ::-1], 0, steps).tolist()))
    symbol = sent.astype(np.int64) @ (256 ** np.arange(sent.shape[1]))
    shifted = np.clip(symbol - client.randomizer.reach, 0, client.randomizer.grid)
    return n, Counter(shifted.tolist())


def law_of(client):
    if isinstance(client.randomizer, NOISY):
        laws = noisy_pair(client.randomizer)
        return dict(zip(laws.outcomes, laws.left.tolist(), strict=True))
    return report_distribution(client.randomizer, client.left)


def fits(found, n, law):
    """Every report, and the likelier half of them together, as often as the law says."""
    chances = np.minimum(list(law.values()), 1.0)
    counts = np.array([found[report] for report in law])
    likely = chances > np.median(chances)
    chances = np.append(chances, min(chances[likely].sum(), 1.0))
    counts = np.append(counts, counts[likely].sum())
    tails = np.minimum(stats.binom.cdf(counts, n, chances), stats.binom.sf(counts - 1, n, chances))
    return set(found) <= set(law) and bool((2 * tails > ALPHA / len(chances)).all())


def follows(client, law):
    n, found = seen(client)
    return fits(found, n, law)


@pytest.mark.parametrize("client", LISTED, ids=named)
def test_reports_follow_their_listed_law(client):
    law = law_of(client)
    assert math.fsum(law.values()) == pytest.approx(1, abs=1e-12)
    assert follows(client, law)


@pytest.mark.parametrize("client", LISTED, ids=named)
def test_the_law_of_another_epsilon_is_not_followed(client):
    """The check can fail: half as much again, with the same reports."""
    other = next(one for one in clients(1.5) if one.name == client.name)
    if set(law_of(other)) == set(law_of(client)):
        assert not follows(client, law_of(other))
    else:
        assert client.name in {"balanced", "hybrid", "piecewise", "square wave"}


def copied(plan, value, n, times):
    bits = seeded_rng(4)
    memory = plan.remember(np.full(n, value), rng=bits)
    return Counter(
        row.tobytes() for row in np.hstack([plan.report(memory, rng=bits) for _ in range(times)])
    )


@pytest.mark.parametrize(
    "plan",
    [
        rappor(categories=2, epsilon=0.5, permanent_epsilon=1),
        longitudinal_olh(categories=4, epsilon=0.5, permanent_epsilon=1, hashes=2),
    ],
    ids=["rappor", "l-olh"],
)
def test_copies_follow_their_joint_law(plan):
    n, law = 40_000, copies_distribution(plan, 1, 2)
    found = copied(plan, 1, n, 2)
    assert fits(found, n, law)
    # Independent copies of fresh responses would be another law.
    once = copies_distribution(plan, 1, 1)
    assert not fits(found, n, {a + b: once[a] * once[b] for a in once for b in once})


def test_one_copy_of_a_hash_is_the_law_of_hashing():
    plan = longitudinal_olh(categories=4, epsilon=0.5, permanent_epsilon=1, hashes=4)
    alone = report_distribution(olh(categories=4, epsilon=0.5, hashes=4), 2)
    assert copies_distribution(plan, 2, 1) == pytest.approx(alone, abs=1e-14)
    lasting = report_distribution(olh(categories=4, epsilon=1, hashes=4), 2)
    assert memoized_distribution(plan, 2) == pytest.approx(lasting, abs=1e-14)


@pytest.mark.parametrize("kind", NOISY)
def test_the_law_of_noisy_reports_is_that_of_the_noise_that_is_drawn(kind, monkeypatch):
    """With half of the noise the exact epsilon is twice the claimed one."""
    right = next(one.randomizer for one in CLIENTS if isinstance(one.randomizer, kind))
    scale = right.noise.scale / 2
    monkeypatch.setattr(kind, "noise", property(lambda _: DiscreteLaplace(scale)))
    assert exact.epsilon(noisy_pair(right)).lower > 1.99 * float(right.epsilon)


WEAKER = 1.3
WEAK = [one for one in clients(WEAKER) if one.name != "heavy hitters"]


@pytest.mark.parametrize("weak", WEAK, ids=named)
def test_a_client_that_tells_more_is_accused_by_samples_alone(weak):
    honest = next(one for one in CLIENTS if one.name == weak.name)
    mutant = dataclasses.replace(
        client_case(weak), claimed=honest.randomizer.guarantee, laws=None, samples=120_000
    )
    assert verdict(mutant) == "ACCUSED"


class AsPublished(RandomizedResponse):
    """A lie may be the truth."""

    def _answers(self, own, rng):
        lies = bernoulli_real(self._lie, own.size, rng)
        return np.where(lies, uniform_integers(self.categories, own.size, rng), own)


def test_the_published_mistake_in_our_own_client_is_accused():
    right = grr(categories=5, epsilon=1)
    wrong = AsPublished(categories=5, epsilon=right.epsilon)
    client = AuditedClient(name="wrong", randomizer=wrong, left=0, right=3)
    assert verdict(dataclasses.replace(client_case(client), laws=None)) == "ACCUSED"


@pytest.mark.parametrize("case", local_cases.published(), ids=named)
def test_the_published_clients_are_caught_at_their_true_epsilon(case):
    row = audit_case(case, failure_probability=FAMILY / 200, samples=case.samples, seed=2)
    assert row.verdict == "BROKEN"
    assert row.exact is not None
    stated = float(case.why.split(":")[-1].split("=")[-1].removesuffix("(M3)"))
    assert row.exact.upper == pytest.approx(stated, abs=6e-4)
    assert row.claimed.epsilon < row.attacked.epsilon <= row.exact.upper


@pytest.mark.parametrize(("size", "degree"), [(8, 2), (9, 3), (16, 4)])
def test_the_published_tree_is_as_bad_as_its_oracle_below_the_root(size, degree):
    laws = [
        ranges.local_tree_distribution(v, size=size, epsilon=1, degree=degree)
        for v in (0, size - 1)
    ]
    found = exact.epsilon(exact.pair(*laws)).upper
    assert found == pytest.approx(ranges.oracle_epsilon(degree, 1.0))


def test_both_sides_are_shown_together():
    names = {case.name for case in range_cases.cases()}
    assert {
        "published oracle, 16 values, nominal 1",
        "local grr",
        "local tree",
        "local haar",
    } <= names


def test_what_cannot_be_listed_is_refused():
    with pytest.raises(InvalidArgument, match="too many"):
        report_distribution(next(c for c in CLIENTS if c.name == "heavy hitters").randomizer, "a")
    with pytest.raises(InvalidArgument, match="bound"):
        report_distribution(duchi(epsilon=1, lower=0, upper=1), 0.5)
    assert len(report_distribution(oue(categories=3, epsilon=1), 0)) == 8

"""Where randomness comes from: the bits that are given decide everything; else the system's."""

import numpy as np
import pytest

import discreet
from discreet.core.relation import NeighboringRelation
from discreet.local.distributed_noise import distributed_laplace
from discreet.local.distribution import square_wave
from discreet.local.longitudinal import l_osue, longitudinal_olh
from discreet.local.means.multidimensional import multidimensional_mean
from discreet.local.means.piecewise import piecewise_mean
from discreet.local.oracles.histogram_encoding import summation_histogram_encoding
from discreet.local.oracles.local_hashing import olh
from discreet.local.oracles.randomized_response import grr
from discreet.local.oracles.subset_selection import subset_selection
from discreet.local.oracles.unary_encoding import oue
from discreet.mechanisms.bin_statistics import bin_statistics, private_bin_counts
from discreet.mechanisms.bounded.mechanism import bounded_laplace, reflect_output
from discreet.mechanisms.data_dependent.propose_test_release import propose_test_release
from discreet.mechanisms.data_dependent.sample_and_aggregate import sample_and_aggregate
from discreet.mechanisms.data_dependent.smooth_sensitivity import smooth_sensitivity
from discreet.mechanisms.data_dependent.weighted_sensitivity import weighted_sensitivity
from discreet.mechanisms.mean_without_bounds import mean_without_bounds
from discreet.mechanisms.partition_selection import partition_selection
from discreet.mechanisms.personalized.exponential_mechanism import (
    personalized_count,
    personalized_quantile,
)
from discreet.mechanisms.personalized.sampling import personalized_sampling
from discreet.mechanisms.personalized.stretching import stretched_quantile, stretched_sum
from discreet.mechanisms.quantiles import private_quantile, private_quantiles
from discreet.mechanisms.scalar.grafted import grafted
from discreet.mechanisms.scalar.staircase import staircase
from discreet.noise.random_source import seeded_rng

ONE = {"sensitivity": 1, "epsilon": 0.01}
SPAN = {"lower": 0, "upper": 1000, "epsilon": 0.01}
DATA = np.arange(99) * 10
PEOPLE = ["a"] * 99
MENU = {"a": discreet.pure_dp(0.01, relation=NeighboringRelation.REPLACE_ONE)}
OPEN = {"a": discreet.pure_dp(5, relation=NeighboringRelation.REPLACE_ONE)}
CODES = np.arange(99) % 9

RELEASES = {
    "laplace": (discreet.laplace(**ONE).release, (0,)),
    "laplace on reals": (discreet.laplace(**ONE, domain="reals").release, (0,)),
    "gaussian": (discreet.gaussian(**ONE, delta=1e-6).release, (0,)),
    "staircase": (staircase(**ONE).release, (0,)),
    "grafted": (grafted(sensitivity=1000, epsilon=1, delta=1e-6).release, (0,)),
    "exponential": (discreet.exponential_mechanism(**ONE).release, (np.zeros(1000),)),
    "permute_and_flip": (discreet.permute_and_flip(**ONE).release, (np.zeros(1000),)),
    "noisy_max": (discreet.report_noisy_max(**ONE).release, (np.zeros(1000),)),
    "above_threshold": (
        lambda values, **more: discreet.above_threshold(**ONE, positives=99).release(
            values, threshold=0, **more
        ),
        (np.zeros(99),),
    ),
    "partition_selection": (
        partition_selection(groups=1, epsilon=0.1, delta=1e-3).release,
        (np.full(99, 60),),
    ),
    "bounded_laplace": (bounded_laplace(**SPAN, sensitivity=1).release, (500,)),
    "folded": (reflect_output(discreet.laplace(**ONE), lower=0, upper=1000).release, (500,)),
    "bin_statistics": (bin_statistics(**SPAN, bins=50).release, (DATA,)),
    "bin_counts": (
        lambda values, **more: private_bin_counts(**SPAN, bins=5).release(values, **more).counts,
        (DATA,),
    ),
    "sample_aggregate": (sample_and_aggregate(np.mean, **SPAN, groups=5).release, (DATA,)),
    "private_quantile": (private_quantile(**SPAN).release, (DATA,)),
    "flipped quantile": (
        private_quantile(**SPAN, method="permute_and_flip", granularity=1).release,
        (DATA,),
    ),
    "private_quantiles": (private_quantiles([0.25, 0.75], **SPAN).release, (DATA,)),
    "smooth": (smooth_sensitivity(**{**SPAN, "epsilon": 5}, public_rows=99).release, (DATA,)),
    "weighted": (
        weighted_sensitivity(**{**SPAN, "epsilon": 20}, public_rows=99, delta=1e-6).release,
        (DATA,),
    ),
    "propose_test_release": (
        lambda values, **more: propose_test_release(
            **{**SPAN, "epsilon": 40}, bound=100, public_rows=99, delta=1e-3
        ).release(values, **more),
        (DATA,),
    ),
    "unbounded_mean": (mean_without_bounds(unit=1, epsilon=0.5).release, (DATA,)),
    "personal_count": (personalized_count(MENU).release, (CODES > 4, PEOPLE)),
    "personal_quantile": (personalized_quantile(MENU, lower=0, upper=1000).release, (DATA, PEOPLE)),
    "stretched_sum": (stretched_sum(MENU, lower=0, upper=1000).release, (DATA, PEOPLE)),
    "stretched_quantile": (
        stretched_quantile(OPEN, lower=-1000, upper=2000).release,
        (DATA, PEOPLE),
    ),
    "personal_sample": (
        personalized_sampling(discreet.pure_dp(1), {"a": discreet.pure_dp(0.5)}).draw,
        (PEOPLE,),
    ),
    "grr": (grr(categories=9, epsilon=1).randomize, (CODES,)),
    "oue": (oue(categories=9, epsilon=1).randomize, (CODES,)),
    "she": (summation_histogram_encoding(categories=9, epsilon=1).randomize, (CODES,)),
    "olh": (olh(categories=9, epsilon=1).randomize, (CODES,)),
    "subset_selection": (subset_selection(categories=9, epsilon=1).randomize, (CODES,)),
    "piecewise": (piecewise_mean(lower=0, upper=1000, epsilon=1).randomize, (DATA,)),
    "several": (
        multidimensional_mean(columns={"x": (0, 1000), "y": (0, 9)}, epsilon=1).randomize,
        (np.stack((DATA, CODES), axis=1),),
    ),
    "square_wave": (square_wave(cells=64, upper=1000, epsilon=1).randomize, (DATA,)),
    "l_osue": (l_osue(categories=9, epsilon=0.5, permanent_epsilon=1).randomize, (CODES,)),
    "l_olh": (longitudinal_olh(categories=9, epsilon=0.5, permanent_epsilon=1).randomize, (CODES,)),
    "l_osue, remembered": (
        l_osue(categories=9, epsilon=0.5, permanent_epsilon=1).report,
        (
            l_osue(categories=9, epsilon=0.5, permanent_epsilon=1).remember(
                CODES, rng=seeded_rng(3)
            ),
        ),
    ),
    "l_olh, remembered": (
        longitudinal_olh(categories=9, epsilon=0.5, permanent_epsilon=1).report,
        (
            longitudinal_olh(categories=9, epsilon=0.5, permanent_epsilon=1).remember(
                CODES, rng=seeded_rng(3)
            ),
        ),
    ),
    "laplace_shares": (
        distributed_laplace(sensitivity=1, epsilon=0.5, min_honest_reports=2).randomize,
        (CODES,),
    ),
}


def plain(released):
    return np.asarray(released).tolist() if not hasattr(released, "value") else released


@pytest.mark.parametrize("name", RELEASES)
def test_given_bits_decide_everything(name):
    """A seed gives the same again; another seed, and the system, give something else."""
    release, given = RELEASES[name]
    first, second, other = (plain(release(*given, rng=seeded_rng(n))) for n in (1, 1, 2))
    assert first == second
    assert other != first
    assert any(plain(release(*given)) != first for _ in range(4))

"""The study of Biswal 2024, chapters 1 to 5.5: mechanisms as published, and as they should be."""

from __future__ import annotations

from discreet_studies.noise_mechanisms.blocked_medians import block_medians
from discreet_studies.noise_mechanisms.claimed_guarantees import claimed_guarantees
from discreet_studies.noise_mechanisms.disclosure_control import attacks, noisy_ages, tables_of_six
from discreet_studies.noise_mechanisms.median_ranking import median_ranking
from discreet_studies.noise_mechanisms.mixed_noise import mixed_means, mixed_medians
from discreet_studies.noise_mechanisms.noise_sums import bounded, normal_laplace, textbook
from discreet_studies.noise_mechanisms.smooth_guarantees import smooth_guarantees
from discreet_studies.noise_mechanisms.textbook_numbers import basics
from discreet_studies.noise_mechanisms.weighted_sensitivity import weighted_sensitivity
from discreet_studies.study import Experiment, StudyPlan

BISWAL_MECHANISMS = StudyPlan(
    name="biswal-mechanisms",
    title="Less noise: mixed, smooth, weighted, in blocks, bounded",
    source="Biswal 2024, Contributions to probabilistic and statistical foundations of "
    "differential privacy, PhD thesis, University of Ottawa, chapters 1 to 5.5.",
    summary="The experiments can be run again and most printed numbers come out. But what makes "
    "them look good is often missing noise: the mixed noise mechanism has a true delta of 0.0396 "
    "at epsilon 1 whatever delta it claims, noise for the sensitivity at hand tells data apart "
    "with certainty, and blocks of values estimate the middle of the range, not the median. "
    "Exact calibration repairs smooth and weighted sensitivity, with half of the published noise.",
    experiments=(
        Experiment(id="E0", title="What is promised, and what is kept", run=claimed_guarantees),
        Experiment(id="E1", title="k-PRAM and k-noise on ages", run=noisy_ages),
        Experiment(id="E2", title="Tables of six rows", run=tables_of_six),
        Experiment(id="E3", title="Normal plus Laplace noise", run=normal_laplace),
        Experiment(id="E4", title="Weighted sensitivity", run=weighted_sensitivity),
        Experiment(id="E5", title="Mixed noise on means", run=mixed_means),
        Experiment(id="E6", title="Mixed noise on medians", run=mixed_medians),
        Experiment(id="E7", title="Gaussian noise of the textbook", run=textbook),
        Experiment(id="E8", title="Medians from blocks", run=block_medians),
        Experiment(id="E9", title="Bounded noise", run=bounded),
        Experiment(id="E10", title="Attacks, and PRAM", run=attacks),
        Experiment(id="E11", title="Sensitivities, divergences, sums", run=basics),
        Experiment(id="E12", title="Noise on smooth sensitivity", run=smooth_guarantees),
        Experiment(id="E13", title="Private medians over shapes of data", run=median_ranking),
    ),
    seed=2024,
)

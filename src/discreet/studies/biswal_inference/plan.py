"""The study of Biswal 2024, chapters 5.6 to 8: inference, time series, gradient descent."""

from __future__ import annotations

from discreet.studies.biswal_inference.calibration import calibrations, compositions
from discreet.studies.biswal_inference.coverage import coverages
from discreet.studies.biswal_inference.figures import figures
from discreet.studies.biswal_inference.medians import medians
from discreet.studies.biswal_inference.series import vectors
from discreet.studies.biswal_inference.variances import variances
from discreet.studies.biswal_inference.widths import widths
from discreet.studies.study import Experiment, Plan

BISWAL_INFERENCE = Plan(
    name="biswal-inference",
    title="Inference, time series and gradient descent under privacy",
    source="Biswal 2024, Contributions to probabilistic and statistical foundations of "
    "differential privacy, PhD thesis, University of Ottawa, sections 5.6 to 5.9, chapters 6 to 8.",
    summary="Ideas hold, formulas often do not. Noise on the median wins only with a hundredth of "
    "the noise it needs; intervals with a released variance fall to a coverage of 0.75; a mean's "
    "variance with n for n^2 understates what a time series leaks by the root of n.",
    experiments=(
        Experiment(id="E1", title="The median: noise before and after", run=medians),
        Experiment(id="E2", title="The variance of noisy rows", run=variances),
        Experiment(id="E3", title="Coverage of intervals for a mean", run=coverages),
        Experiment(id="E4", title="Laplace and Gaussian intervals", run=widths),
        Experiment(id="E5", title="How much Gaussian noise", run=calibrations),
        Experiment(id="E6", title="Many Gaussian releases", run=compositions),
        Experiment(id="E7", title="Figures of adjusted epsilon", run=figures),
        Experiment(id="E8", title="Leakage of a series, exactly", run=vectors),
    ),
    seed=2024,
)

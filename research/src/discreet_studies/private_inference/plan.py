"""The study of Biswal 2024, chapters 5.6 to 8: inference, time series, gradient descent."""

from __future__ import annotations

from discreet_studies.optional_models import lazy_experiment
from discreet_studies.private_inference.calibration import calibrations, compositions
from discreet_studies.private_inference.interval_coverage import coverages
from discreet_studies.private_inference.interval_widths import widths
from discreet_studies.private_inference.median_comparison import medians
from discreet_studies.private_inference.series_figures import figures
from discreet_studies.private_inference.series_leakage import vectors
from discreet_studies.private_inference.variance_comparison import variances
from discreet_studies.study import Experiment, StudyPlan

_HERE = "discreet_studies.private_inference"

BISWAL_INFERENCE = StudyPlan(
    name="biswal-inference",
    title="Inference, time series and gradient descent under privacy",
    source="Biswal 2024, Contributions to probabilistic and statistical foundations of "
    "differential privacy, PhD thesis, University of Ottawa, sections 5.6 to 5.9, chapters 6 to 8.",
    summary="The questions are good; many of the formulas are not. Noise on the median wins only "
    "with a hundredth of the noise that it needs. Intervals with a released variance fall to a "
    "coverage of 0.75, and an upper end for it brings them back. A variance with n for n^2 "
    "understates what a time series leaks by the root of n. The private gradient descent holds its "
    "promise for one iterate, not for the average that converges, and learns nothing at epsilon 1, "
    "where Gaussian mini-batches come within 0.002 of the least loss.",
    experiments=(
        Experiment(id="E1", title="The median: noise before and after", run=medians),
        Experiment(id="E2", title="The variance of noisy rows", run=variances),
        Experiment(id="E3", title="Coverage of intervals for a mean", run=coverages),
        Experiment(id="E4", title="Laplace and Gaussian intervals", run=widths),
        Experiment(id="E5", title="How much Gaussian noise", run=calibrations),
        Experiment(id="E6", title="Many Gaussian releases", run=compositions),
        Experiment(id="E7", title="Figures of adjusted epsilon", run=figures),
        Experiment(id="E8", title="Leakage of a series, exactly", run=vectors),
        Experiment(
            id="E9",
            title="Which schedules converge",
            run=lazy_experiment(_HERE, "schedules", "exponents"),
        ),
        Experiment(
            id="E10",
            title="The bound on what is lost",
            run=lazy_experiment(_HERE, "schedules", "convergence"),
        ),
        Experiment(
            id="E11",
            title="What is learned",
            run=lazy_experiment(_HERE, "gradient_descent", "learning"),
        ),
        Experiment(
            id="E12",
            title="What a run costs",
            run=lazy_experiment(_HERE, "schedule_costs", "trajectories"),
        ),
    ),
    seed=2024,
)

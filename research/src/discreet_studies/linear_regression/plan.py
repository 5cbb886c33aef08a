"""The study of Kalaja 2020: private linear regression, as published and with true epsilons."""

from __future__ import annotations

from discreet_studies.linear_regression.claimed_guarantees import claimed_guarantees
from discreet_studies.linear_regression.clipping import train_and_test, train_only
from discreet_studies.linear_regression.datasets import SIZES
from discreet_studies.linear_regression.discreet_results import discreet_results
from discreet_studies.linear_regression.joint_release import balls, together
from discreet_studies.linear_regression.perturbed_sums import adaptive, plain
from discreet_studies.linear_regression.posterior import posterior
from discreet_studies.linear_regression.preprocessing_comparison import (
    before_or_after,
    intercepts,
    of_rows,
    of_targets,
)
from discreet_studies.linear_regression.published_errors import wang
from discreet_studies.linear_regression.scaling_leakage import scaling_leakage
from discreet_studies.linear_regression.valid_guarantees import valid_guarantees
from discreet_studies.study import Experiment, StudyPlan

KALAJA = StudyPlan(
    name="kalaja",
    title="Private linear regression and what is done to rows before",
    source="Kalaja 2020, Differentially private linear regression, master's thesis, University of "
    "Helsinki; Wang 2018, Revisiting differentially private linear regression, UAI.",
    summary="The orderings of the thesis come out on every set: a private penalty saves noisy "
    "least squares, rows of length one beat the largest norm, clipping helps light tails. But its "
    "noise is three times what is needed, because three releases are one Gaussian vector: at a "
    "nominal epsilon of 1 its algorithm is worth 0.418 and Wang's 0.596. And no variant has that "
    "epsilon: all scale with exact statistics of the rows, so that one row moves everything. "
    "Errors that grow with epsilon are no bug: rows are clipped in training and not in the test.",
    experiments=(
        Experiment(id="E0", title="Noise, and what it is worth", run=claimed_guarantees),
        Experiment(id="E1", title="Noisy sums alone (Figure 4.1)", run=plain),
        Experiment(id="E2", title="With a private penalty (Figure 4.2)", run=adaptive),
        Experiment(id="E3", title="Row norm or largest norm (Figure 4.3)", run=of_rows),
        Experiment(id="E4", title="Targets scaled with the row (Figure 4.4)", run=of_targets),
        Experiment(id="E5", title="Before or after the split (Figure 4.5)", run=before_or_after),
        Experiment(id="E6", title="An intercept (Figure 4.6)", run=intercepts),
        Experiment(id="E7", title="Clipped training rows (Figure 4.7)", run=train_only),
        Experiment(id="E8", title="All rows clipped (Figure 4.8)", run=train_and_test),
        Experiment(id="E9", title="The errors of Wang 2018", run=wang),
        Experiment(id="E10", title="Releases accounted for together", run=together),
        Experiment(id="E11", title="A ball of declared radius", run=balls),
        Experiment(id="E12", title="What scaling by the data gives away", run=scaling_leakage),
        Experiment(id="E13", title="Scales that are paid for", run=valid_guarantees),
        Experiment(id="E14", title="Our own regression", run=discreet_results),
        Experiment(id="E15", title="Posterior samples, risk, simulated thresholds", run=posterior),
    ),
    seed=2020,
    files=tuple(f"{name}.csv.gz" for name in SIZES),
)

"""The study of Muehl 2021: votes of teachers with personal budgets."""

from __future__ import annotations

from discreet_studies.optional_models import lazy_experiment
from discreet_studies.study import Experiment, StudyPlan

FILES = (
    *(f"{part}-ubyte.gz" for part in ("train-images-idx3", "train-labels-idx1",
                                      "t10k-images-idx3", "t10k-labels-idx1")),
    "adult.data",
    "adult.test",
)  # fmt: skip
"""What a folder may hold; images also without compression."""


_HERE = "discreet_studies.personalized_pate"

MUEHL = StudyPlan(
    name="muehl",
    title="Teachers that vote under personal budgets",
    source="Muehl 2021, Personalizing private aggregation of teacher ensembles, master's thesis, "
    "Freie Universitaet Berlin; Boenisch et al. 2023, Individualized PATE, PoPETs.",
    summary="The counts of the thesis come out: upsampling and weighting give the same number of "
    "labels, within a tenth of what is printed, and vanishing is worse. A law of one line predicts "
    "them. But none of its epsilons is a guarantee: the bound holds in one direction only, and a "
    "run that ends when a data-dependent cost reaches the budget tells about private votes by its "
    "length. With guarantees that are fixed beforehand there are fewer labels, and a rule that "
    "is searched on simulated votes has half as many again as the thesis's.",
    experiments=(
        Experiment(
            id="E0",
            title="Formulas, and both faults",
            run=lazy_experiment(_HERE, "accounting_errors", "accounting_errors"),
        ),
        Experiment(
            id="E1",
            title="Teachers, labels, rejections",
            run=lazy_experiment(_HERE, "utility", "utility"),
        ),
        Experiment(
            id="E2", title="Best orders", run=lazy_experiment(_HERE, "cost_growth", "best_orders")
        ),
        Experiment(
            id="E3", title="Ratio of costs", run=lazy_experiment(_HERE, "cost_growth", "ratios")
        ),
        Experiment(
            id="E4", title="Cost curves", run=lazy_experiment(_HERE, "cost_growth", "spending")
        ),
        Experiment(
            id="E5",
            title="Labels until a budget is spent",
            run=lazy_experiment(_HERE, "labels", "labels"),
        ),
        Experiment(id="E6", title="Students", run=lazy_experiment(_HERE, "students", "students")),
        Experiment(
            id="E7",
            title="Menus of three levels",
            run=lazy_experiment(_HERE, "privacy_levels", "privacy_levels"),
        ),
        Experiment(
            id="E8",
            title="Guarantees fixed beforehand",
            run=lazy_experiment(_HERE, "valid_guarantees", "valid_guarantees"),
        ),
        Experiment(
            id="E9",
            title="Other accounts",
            run=lazy_experiment(_HERE, "exact_costs", "exact_costs"),
        ),
    ),
    seed=2021,
    files=FILES,
)

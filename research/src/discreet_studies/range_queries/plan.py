"""The study of Friis 2021: four structures that answer range counts, as published and corrected."""

from __future__ import annotations

from discreet_studies.range_queries.claimed_guarantees import claimed_guarantees
from discreet_studies.range_queries.crossover import crossover
from discreet_studies.range_queries.data_dependent import by_data
from discreet_studies.range_queries.discreet_reports import same_experiments
from discreet_studies.range_queries.example_counts import SEED
from discreet_studies.range_queries.flat_histogram import central_flat, local_flat
from discreet_studies.range_queries.local_against_central import local_against_central
from discreet_studies.range_queries.local_tables import all_ranges
from discreet_studies.range_queries.long_ranges import long_ranges
from discreet_studies.range_queries.sanity import sanity
from discreet_studies.range_queries.short_ranges import central_short, local_short
from discreet_studies.range_queries.trees import central_tree, local_tree
from discreet_studies.range_queries.trust_models import trust
from discreet_studies.study import Experiment, StudyPlan

FRIIS = StudyPlan(
    name="friis",
    title="Range counting by four structures",
    source="Friis 2021, Implementation and examination of four differential privacy models, "
    "bachelor thesis, University of Copenhagen.",
    summary="Most orderings that the thesis reports are what its code does, and can be computed "
    "without running it. But its central tree has too little noise, which cancels besides, and its "
    "local oracle keeps more than the stated epsilon: with the right noise the plain tree loses "
    "to flat at every length where it was found to win. Inference and well-chosen blocks win. In "
    "the local model right oracles, levels chosen for them and inference take the error down by "
    "five to fifteen times on the largest domains, at an epsilon that is kept.",
    experiments=(
        Experiment(id="E0", title="What the published code promises", run=claimed_guarantees),
        Experiment(id="E1", title="A hundred structures, one range", run=sanity),
        Experiment(id="E2", title="Central flat against length", run=central_flat),
        Experiment(id="E3", title="Local flat against length", run=local_flat),
        Experiment(id="E4", title="Central tree against epsilon and degree", run=central_tree),
        Experiment(id="E5", title="Local tree against epsilon and degree", run=local_tree),
        Experiment(id="E6", title="Where a tree beats flat", run=crossover),
        Experiment(id="E7", title="Short ranges, central", run=central_short),
        Experiment(id="E8", title="Short ranges, local", run=local_short),
        Experiment(id="E9", title="Long ranges, central and local", run=long_ranges),
        Experiment(id="E10", title="Local against central", run=local_against_central),
        Experiment(id="E11", title="The same with clients that keep epsilon", run=same_experiments),
        Experiment(id="E12", title="Local structures over all ranges", run=all_ranges),
        Experiment(id="E13", title="Local estimates that depend on the data", run=by_data),
        Experiment(id="E14", title="The ladder of trust", run=trust),
    ),
    seed=SEED,
)

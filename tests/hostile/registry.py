"""All doors, and why the rest of what is public has none.

To register a door, write a function that draws honest data and a configuration from a seed and
returns a `Session`, wrap it in a `Door` with the public callables that it covers, and list it in
the module of its kind. A new public callable is noticed by its parameters: one of `PRIVATE_NAMES`,
or a name that is in no list here, needs a door or a reason.
"""

from __future__ import annotations

from tests.hostile import (
    apps,
    budgets,
    cells,
    clients,
    columns,
    frames,
    learning,
    releases,
    server,
    tables,
)
from tests.hostile.harness import Door
from tests.hostile.public import parameters, public

DOORS: list[Door] = [
    *columns.DOORS,
    *tables.DOORS,
    *cells.DOORS,
    *learning.DOORS,
    *clients.DOORS,
    *releases.DOORS,
    *frames.DOORS,
    *budgets.DOORS,
    *apps.DOORS,
    *server.DOORS,
]

_PUBLIC = """
_closed _levels _noisy _source _store a account accuracy adaptive adjacency after against
aggregate aggregator all_or_none alpha alternative alternatives anchors anonymity
anonymity_set_size answer answered answered_share answers args asked assignment assume at
attacker_knows attributes average axis b base batch before below best bias bias_error bind bins
block blocks blur bound boundary bounds box branching broken budget by ca_file candidates cap
cases categories cell cell_digits cells center chance changed chosen claimed classes clients clip
clip_predictions clock closeness coarse collection combine composition condition confidence
constants contribution coordinates copies correlation count counted covariance coverage cross cuts
data_aware decay default delimiter delta description design digest dimension direct distance
distinct domain domains draw dtype durable dynamics edges end enforce_limits engine entropy epoch
epsilon error errors estimate estimator event every expected expected_clients expected_rows
expires facts failure_probability features fed fewest fine fit_intercept function gram granularity
grid group group_size groups growth guarantee habits half_width hash hashes heads heights
hierarchy high honest_share horizon huber_threshold include_other intercept intercept_scale items
joint k keep kept key key_columns kind ks kwargs l2 label lags lattice laws learning_rate least
left length lengths level levels limit limits listed local longest loss low lower make map mapping
maps matrix max_groups_per_unit max_report_bits max_rows_per_unit max_rows_per_unit_per_group mean
measure mechanism method metric min_honest_reports minimum miss missing model models module
modulus momentum monotonic most moved mse mu n_jobs name names noise noisy norm number objective
on oracle order ordered orders origin others outermost output pairs parent parts parts_of path
penalty permanent_epsilon person personal_budgets place places plan planned_epsilon plausible
population positives post_process posterior power prior privacy_statement privacy_unit products
progress projected public_inputs public_outputs public_rows published published_log q qualname
quantile quasi_identifiers query_text radius randomizer rate rates reason receipt records relation
release releases renewals repetitions replayed replicates request_id reservation result rho right
risk rng rounds row_norm run runs sampled samples sampling scale scaling scaling_share schedule
schema second_value seconds secret seed semi_supervised sensitive sensitivities sensitivity
sequence shape share shares shrink sigma sigma_cross sigma_rows sigma_smallest sigma_squares
sigma_threshold sigma_votes signal single size sizes slack small smallest smallest_share smooth
smoothness spans spark spec spent spread squares squares_share stages start statistic std step
strategy stride structure summary suppress suppressed t table tail target target_bounds
target_center target_half target_steps teachers test thorough threshold time timeout times title to
token tolerance tree trials trim truth type unique unit unknown upper url utility variance verdict
wasserstein wave weight where why width widths window with_row within without workload workloads
zero at_least expected_ratio required
"""
PUBLIC_NAMES = frozenset(_PUBLIC.split())
"""Parameters that are the choices of whoever releases: no private value comes in by them."""

_LEARNED = "computes on rows within a release, and what it returns is private: models call it"
_AUDITED = "for audits and planning: it says that what it returns is private"
_REPORTED = "reads reports, which are noisy already, or what was made of them"
_DESCRIBED = "reads a query, a plan or a result, which hold nothing private"

METHODS_WITHOUT_DATA: dict[str, tuple[str, ...]] = {
    _REPORTED: (
        "tally", "estimate", "supports", "error_bound", "decode", "merge", "from_bytes",
        "from_frame", "write", "states", "after", "loss_after", "ratio_after", "detects",
        "same_teachers", "mean", "variance",
    ),
    _AUDITED: (
        "probabilities", "places", "bound", "assign", "estimates", "statistics", "noisy", "steps",
        "error", "choose", "simulate", "answers", "read", "solve", "iterates", "deal",
    ),
    _DESCRIBED: (
        "from_json", "covariance", "nonnegative", "synthesize", "budget_for", "budget_for_ranges",
        "plan_ranges", "plan_marginals", "plan_sql", "plan_large_domain_quantiles", "plan", "then",
        "isin", "divide", "first",
        "last", "half_width", "std", "interval", "forecast", "sampled", "shuffled", "of",
        "growths", "rates", "over_periods", "pair", "model", "with_noise", "full", "coefficients",
        "publish",
        "passes_threshold", "predict", "predict_proba", "predict_interval", "decision_function",
    ),
    _LEARNED: (
        "gradient", "loss", "losses", "margins", "mean_gradient", "mean_loss", "penalty",
        "penalty_gradient", "slopes", "minimizer", "codes", "design", "features", "predictions",
        "arrays", "between", "cleaned", "coordinates", "distances", "parts",
    ),
}  # fmt: skip
"""Methods of that name take nothing private, wherever they are; with the reason."""

WITHOUT_DATA: dict[str, tuple[str, ...]] = {
    "it is a result, a choice or a plan: whoever makes one has released, or read nothing": (
        "discreet.AttackBounds", "discreet.budget_for_risk",
        "discreet.card", "discreet.PeriodCosts", "discreet.CardCheck", "discreet.ReleaseCard",
        "discreet.Expression", "discreet.GridRelease", "discreet.RangeRelease",
        "discreet.Expression.bind.label", "discreet.Account.statement.shown",
        "discreet.MarginalRelease", "discreet.Table.marginals.answer",
        "discreet.Table.marginals.answer_interval", "discreet.Table.marginals.answer_std",
        "discreet.Table.marginals.answer_intervals",
        "discreet.Table.marginals.rows", "discreet.Table.plan_marginals.width",
        "discreet.Table.with_personal_budgets.trades", "discreet.models.InferenceTable",
        "discreet.models.DeclaredColumns", "discreet.ReconciledRelease", "discreet.reconcile",
        "discreet.NeighboringRelation", "discreet.Release", "discreet.RenyiFilter",
        "discreet.query", "discreet.keys", "discreet.plot", "discreet.col", "discreet.when",
        "discreet.plan_stream", "discreet.Receipt", "discreet.ErrorForecast",
        "discreet.boolean", "discreet.category", "discreet.date", "discreet.integer",
        "discreet.real", "discreet.text", "discreet.ranges.grid", "discreet.ranges.coarsen",
        "discreet.models.pate.plan_labels", "discreet.models.pate.LabelPlan",
        "discreet.models.pate.LabelRelease", "discreet.models.pate.TeacherAssignment",
        "discreet.models.pate.assign_hybrid", "discreet.models.pate.assign_weighting",
        "discreet.models.pate.expected_label_ratio", "discreet.models.dp_sgd.analyze_schedule",
        "discreet.models.blackbox.BlackBoxRelease", "discreet.models.blackbox.PrivateExamples",
        "discreet.models.blackbox.WindowPlan", "discreet.models.blackbox.WindowGroups",
        "discreet.models.InferenceTable", "discreet.models.regression.NoisySufficientStatistics",
        "discreet.models.regression.Coefficients", "discreet.models.regression.MethodChoice",
        "discreet.models.regression.RowLattice", "discreet.models.regression.RowMap",
        "discreet.models.regression.ColumnScaling",
        "discreet.models.regression.SufficientStatisticsPlan",
        "discreet.models.regression.plan_sufficient_statistics",
        "discreet.local.LocalRanges", "discreet.local.CollectionSpec",
        "discreet.local.MemoizedClient.report", "discreet.local.l_osue.report",
        "discreet.local.longitudinal_olh.report", "discreet.local.rappor.report",
        "discreet.Account.reserve", "discreet.Ledger.personal_budgets",
        "discreet.models.dp_sgd.ScheduleAnalysis",
    ),
    "the constructor takes public parameters; the data come with a method that has a door": (
        "discreet.Table", "discreet.private_quantiles", "discreet.models.PATEClassifier",
        "discreet.models.AutoLinearRegression", "discreet.models.PrivateLinearRegression",
        "discreet.models.PrivateLogisticRegression", "discreet.models.PrivateHuberRegressor",
        "discreet.models.PrivateRidge", "discreet.models.PersonalizedLogisticRegression",
        "discreet.models.PrivateLogit", "discreet.models.PrivatePoisson",
        "discreet.models.OutputPerturbationLogisticRegression",
        "discreet.models.dp_sgd.LaplaceGradientDescent",
        "discreet.models.dp_sgd.NoisyGradientDescent", "discreet.models.dp_sgd.OutputPerturbation",
        "discreet.models.dp_sgd.laplace_descent", "discreet.models.dp_sgd.noisy_descent",
        "discreet.models.pate.ConfidentGNMax", "discreet.local.balanced_piecewise",
        "discreet.local.hybrid_mean", "discreet.local.local_laplace",
        "discreet.local.piecewise_mean", "discreet.local.multidimensional_mean",
        "discreet.local.summation_histogram_encoding", "discreet.local.heavy_hitters",
        "discreet.local.MemoizedClient", "discreet.local.BudgetedClient",
        "discreet.disclosure.safe_k_anonymity", "discreet.disclosure.SafeKAnonymousTable",
        "discreet.local.bins", "discreet.local.dates", "discreet.local.integers",
        "discreet.local.ordered", "discreet.disclosure.interval_hierarchy",
    ),
    "audits work on models and on simulated or published data, never on private rows": (
        "discreet.audit.check_sensitivity", "discreet.audit.AuditCase", "discreet.audit.attack",
        "discreet.audit.gaussian_lower_bound", "discreet.audit.series.VAR",
        "discreet.audit.series.ExchangeableVAR", "discreet.audit.series.assess",
        "discreet.audit.series.fit", "discreet.audit.series.plan_fit",
        "discreet.audit.series.releases", "discreet.audit.series.report",
        "discreet.audit.series.smooth", "discreet.audit.series.worst_over_models",
    ),
    "exact by intent and no release: for the owner of the data alone, in words and never kept": (
        "discreet.Table.check",
    ),
    "statistical disclosure control measures, and never claims a guarantee": (
        "discreet.disclosure.PRAM", "discreet.disclosure.AdaptiveJitter",
        "discreet.disclosure.AnonymizedTable", "discreet.disclosure.BinnedPoints",
        "discreet.disclosure.CategoryHierarchy", "discreet.disclosure.DisclosureRisk",
        "discreet.disclosure.HierarchyLevel", "discreet.disclosure.IntervalHierarchy",
        "discreet.disclosure.KNoiseRelease", "discreet.disclosure.KPramRelease",
        "discreet.disclosure.PramEstimate", "discreet.disclosure.PrefixHierarchy",
        "discreet.disclosure.adaptive_jitter", "discreet.disclosure.anonymity_set_size",
        "discreet.disclosure.anonymity_sets", "discreet.disclosure.disclosure_risk",
        "discreet.disclosure.expected_anonymity_set_size", "discreet.disclosure.group_sizes",
        "discreet.disclosure.guaranteed_anonymity_set_size", "discreet.disclosure.histogram",
        "discreet.disclosure.k_anonymize", "discreet.disclosure.k_noise",
        "discreet.disclosure.k_noise_half_width", "discreet.disclosure.k_pram",
        "discreet.disclosure.ks_distance", "discreet.disclosure.utility",
        "discreet.disclosure.wasserstein", "discreet.intervals.leave_one_out",
    ),
    "it reads tables of counts that are published: everybody has them": (
        "discreet.disclosure.CellFinding", "discreet.disclosure.PublishedCell",
        "discreet.disclosure.PublishedTable", "discreet.disclosure.TableAudit",
        "discreet.disclosure.audit_tables", "discreet.disclosure.published_table",
        "discreet.disclosure.SuppressionSuggestion", "discreet.disclosure.suggest_suppression",
    ),
    "it reads reports or examples that are noisy, public or made up": (
        "discreet.local.Aggregator", "discreet.local.AggregatorState",
        "discreet.local.ReportWriter", "discreet.local.shuffled_guarantee",
        "discreet.local.local_epsilon_for", "discreet.local.simulate_square_wave_error",
        "discreet.intervals.difference_from_reports", "discreet.intervals.mean_from_reports",
        "discreet.intervals.proportion_from_reports", "discreet.intervals.quantile_from_reports",
        "discreet.intervals.variance_from_reports", "discreet.intervals.compare_by_rows",
        "discreet.intervals.coverage", "discreet.intervals.per_column",
        "discreet.models.dp_sgd.check_objective",
        "discreet.models.pate.expected_label_quality", "discreet.models.pate.tune_aggregator",
        "discreet.models.pate.train_student", "discreet.models.blackbox.make_private",
    ),
    "within a release: a door stands before it": (
        "discreet.models.pate.data_dependent_cost", "discreet.models.pate.count_votes",
        "discreet.models.pate.ConfidentGNMax.answers", "discreet.models.regression.sum_moments",
        "discreet.models.regression.MomentSums", "discreet.models.regression.adassp",
        "discreet.models.regression.project_psd", "discreet.models.regression.ridge",
        "discreet.models.regression.select_features", "discreet.models.regression.shrink",
        "discreet.models.regression.ssp", "discreet.ranges.merge_cells",
        "discreet.models.PATEClassifier.label",
        "discreet.models.regression.SufficientStatisticsPlan.release",
        "discreet.Table.plan_large_domain_quantiles.walk",
    ),
    "the server holds the data: it is the client of what the table's doors cover": (
        "discreet.connect",
    ),
}  # fmt: skip
"""Other callables, and all methods of a class or of what a function returns; with the reason."""

_RELEASING = frozenset(
    (
        "release", "randomize", "remember", "report", "memoize", "fit", "fit_source", "feed",
        "events", "draw", "votes", "label",
    )
)  # fmt: skip
"""By these data come in, whatever they belong to: a reason for a class does not cover them."""


def covered() -> set[str]:
    """What doors cover: what they name, and the method by which an object of it releases."""
    names = public()
    found: set[str] = set()
    for door in DOORS:
        for one in door.covers:
            methods = {f"{one}.{method}" for method in _RELEASING}
            found |= {one, *(methods & set(names))}
    return found


def excused(name: str) -> bool:
    """Whether a callable takes nothing private, by its parameters or for a reason given here."""
    made = public().get(name)
    if made is not None and set(parameters(made)) <= PUBLIC_NAMES:
        return True
    method = name.rpartition(".")[2]
    listed = [one for group in WITHOUT_DATA.values() for one in group]
    if name in listed:
        return True
    if method in _RELEASING:
        return any(name.startswith(f"{one}.") for one in WITHOUT_DATA[_CLIENT])
    if made is not None and any(method in group for group in METHODS_WITHOUT_DATA.values()):
        return True
    return any(name.startswith(f"{one}.") for one in listed if one != "discreet.Table")


_CLIENT = "the server holds the data: it is the client of what the table's doors cover"

"""Where what was published is shown to be wrong, for each statement that corrects it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """A check on a page of the evidence, or a test."""

    where: str
    what: str

    def __str__(self) -> str:
        if self.where.endswith(".py"):
            return f"`{self.where}`, `{self.what}`"
        experiment, _, check = self.what.partition("/")
        anchor = f"#{experiment.lower()}" if check else ""
        return f"[{self.what}](../evidence/{self.where}.md{anchor})"


_MECHANISMS, _INFERENCE, _AOUTOUF = "biswal-mechanisms", "biswal-inference", "aoutouf"
COUNTEREXAMPLES = {
    "noise_mechanisms.normal_laplace.NormalLaplace": Shown(
        where="research/tests/noise_mechanisms/test_normal_laplace.py",
        what="test_density_distribution_and_quantile_agree",
    ),
    "noise_mechanisms.location_scale_pairs.smooth_laplace_delta": Shown(
        where=_MECHANISMS, what="E0/refuted/smooth Laplace noise at epsilon 10 (M22)"
    ),
    "oracles.local_hashing.olh": Shown(where="audit-published", what="published OLH"),
    "data_dependent.weighted_sensitivity.weighted_delta": Shown(
        where=_MECHANISMS, what="E4/delta/epsilon 1, b 0.5"
    ),
    "central_vs_local.compare_central_local": Shown(where=_INFERENCE, what="E2/error"),
    "_mean.mean_interval": Shown(where=_INFERENCE, what="E3/plug-in/n 1000, epsilon 0.9 and 0.02"),
    "blackbox_ranges.area_tables.ranges": Shown(where=_AOUTOUF, what="E3/three cells"),
    "blackbox_ranges.clique_ranges.intersections": Shown(where=_AOUTOUF, what="E3/three cells"),
    "blackbox.interval_fit.IntervalClip": Shown(where=_AOUTOUF, what="E3/next cells"),
    "blackbox.mechanism.BlackBoxMechanism": Shown(where=_AOUTOUF, what="E3/any reading"),
    "blackbox_ranges.prototypes.Prototype": Shown(where=_AOUTOUF, what="E2/listing, gap"),
    "blackbox._make_private.make_private": Shown(where=_AOUTOUF, what="E6/published, delta"),
    "dp_sgd._laplace_rates.marginal_epsilons": Shown(where=_INFERENCE, what="E12/expansive"),
    "private_inference.published_series.total_dependence": Shown(
        where=_INFERENCE, what="E7/dependence"
    ),
    "_k_noise.k_noise": Shown(
        where="disclosure/test_k_noise.py", what="test_the_factor_one_half_is_tight"
    ),
}

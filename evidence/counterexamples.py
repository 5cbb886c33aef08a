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
    "normal_laplace.NormalLaplace": Shown(
        where="accounting/test_normal_laplace.py",
        what="test_density_distribution_and_quantile_agree",
    ),
    "scales.smooth_laplace_delta": Shown(
        where=_MECHANISMS, what="E0/refuted/smooth Laplace noise at epsilon 10 (M22)"
    ),
    "local.hashing.olh": Shown(where="audit-published", what="published OLH"),
    "weighted.weighted_delta": Shown(where=_MECHANISMS, what="E4/delta/epsilon 1, b 0.5"),
    "intervals.compare.central_and_local": Shown(where=_INFERENCE, what="E2/error"),
    "intervals.mean.mean_interval": Shown(
        where=_INFERENCE, what="E3/plug-in/n 1000, epsilon 0.9 and 0.02"
    ),
    "learned.areas.ranges": Shown(where=_AOUTOUF, what="E3/three cells"),
    "learned.cliques.intersections": Shown(where=_AOUTOUF, what="E3/three cells"),
    "learned.intervals.IntervalClip": Shown(where=_AOUTOUF, what="E3/next cells"),
    "learned.mechanism.LearnedMechanism": Shown(where=_AOUTOUF, what="E3/any reading"),
    "learned.prototypes.Prototype": Shown(where=_AOUTOUF, what="E2/listing, gap"),
    "learned.wrap.wrap": Shown(where=_AOUTOUF, what="E6/published, delta"),
    "sgd.laplace.marginal_epsilons": Shown(where=_INFERENCE, what="E12/expansive"),
    "series.published.total_dependence": Shown(where=_INFERENCE, what="E7/dependence"),
    "knoise.k_noise": Shown(
        where="disclosure/test_knoise.py", what="test_the_factor_one_half_is_tight"
    ),
}

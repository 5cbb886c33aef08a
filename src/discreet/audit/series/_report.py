"""From a panel to a table: how much each person's series leaks, and what noise would fix it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from discreet.accounting.conversion import gaussian_mu
from discreet.accounting.guarantee import Guarantee
from discreet.audit.series._design import NoiseDesign, Shape, design
from discreet.audit.series._fit import Dynamics, checked_panel, fit
from discreet.audit.series._leakage import CellLeakage, cells, epsilon_of
from discreet.audit.series._private_fit import price
from discreet.audit.series.exchangeable import ExchangeableVAR
from discreet.audit.series.model import VAR, Floats
from discreet.audit.series.threat_model import Known, SeriesReleases, releases
from discreet.core._validate import count, finite, positive, probability
from discreet.core.errors import InvalidArgument, NotCertified
from discreet.core.number_format import percent, short
from discreet.core.tabular import Record
from discreet.query.result import Result, records

Origin: TypeAlias = Literal["given", "fitted", "private"]

PUBLICATION: dict[Origin, str] = {
    "fitted": (
        "Not for publication: the model was fitted to the panel without noise, so these numbers, "
        "and noise chosen by them, are private themselves. Give a public model, or a budget for "
        "a private fit, to get numbers that may be published."
    ),
    "given": (
        "The model was given: what leaks, and noise chosen by it, is as public as the model."
    ),
    "private": (
        "The model was fitted with differential privacy: these numbers may be published, and cost "
        "what that fit cost."
    ),
}
"""What may be done with a report, by where its model comes from."""

# Releases up to which better noise than equal is looked for: it takes seconds.
_CORRELATED = 12
_STATIONARY = 60
_INDEPENDENT = 60
_SHOWN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonLeakage:
    """One person's worst moment."""

    person: int
    """Of the panel; where all are alike, person 0 stands for everybody."""
    time: int
    """When their value leaks most."""
    mu: float
    epsilon: float
    """Of that value, under the model."""
    promised: float
    """The epsilon that the noise alone guarantees for one value of theirs."""
    user: float
    """The epsilon that the noise alone guarantees for all their values together."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class LeakageReport(Result):
    """How much a series leaks, for whom, and what noise would do; `publication` says to whom."""

    cells: CellLeakage
    people: tuple[PersonLeakage, ...]
    """The worst first."""
    number: int
    """Of people in the panel."""
    delta: float
    target: float
    """The epsilon that the designs below keep for every value."""
    model: VAR | ExchangeableVAR = field(repr=False)
    """That was fitted or given."""
    releases: SeriesReleases = field(repr=False)
    fixes: tuple[NoiseDesign, ...] = field(repr=False)
    """Noise that meets the target: equal; for few releases independent and correlated noise too."""
    origin: Origin
    clipped: float | None = None
    """The share of values outside the bounds: the model does not know that they are clipped."""
    guarantee: Guarantee | None = None
    """What a private fit of the model cost."""
    plausible: tuple[float, ...] = ()
    """The worst epsilon under each model that could as well be true."""

    def rows(self, confidence: float = 0.95) -> list[Record]:  # noqa: ARG002 - it is computed
        """List the epsilon that each person's worst value leaks, the worst first.

        Args:
            confidence: Without effect: the leakage is computed, not estimated.

        Returns:
            One record for each person: person, time, value, std, low and high, the last three
            None.
        """
        keys = ((one.person, one.time) for one in self.people)
        return records(("person", "time"), keys, value=[one.epsilon for one in self.people])

    @property
    def alike(self) -> bool:
        """Whether one line stands for everybody."""
        return len(self.people) < self.number

    @property
    def publication(self) -> str:
        """What may be done with this report."""
        words = PUBLICATION[self.origin]
        if self.origin == "given" and self.clipped is not None:
            words += " The share of values outside the bounds is not for publication."
        if self.guarantee is None:
            return words
        return f"{words} Cost: {price(self.guarantee, delta=self.delta)}."

    def __str__(self) -> str:
        head = f"{'person':>8} {'time':>6} {'leaks':>8} {'guaranteed':>10} {'all values':>11}"
        rows = [
            f"{'all' if self.alike else p.person:>8} {p.time:>6} {short(p.epsilon, digits=3):>8} "
            f"{short(p.promised, digits=3):>10} {short(p.user, digits=3):>11}"
            for p in self.people[:_SHOWN]
        ]
        rest = len(self.people) - len(rows)
        return "\n".join(
            [
                f"epsilon at delta {self.delta:g} of one value, the worst people first",
                head,
                *rows,
                *([f"and {rest} more"] if rest else []),
                *self.remarks(),
                f"to keep epsilon {short(self.target)} for every value:",
                *(f"  {fix}" for fix in self.fixes),
                *(f"assumed: {line}" for line in self.cells.assumptions),
                self.publication,
            ]
        )

    def remarks(self) -> list[str]:
        """What else is to be known, one sentence a line."""
        lines = ["leaks: under the model; guaranteed and all values: from the noise alone"]
        if self.plausible:
            lines.append(
                f"under {len(self.plausible)} models that could as well be true, one value leaks "
                f"between epsilon {short(min(self.plausible), digits=3)} and "
                f"{short(max(self.plausible), digits=3)}"
            )
        if self.clipped is not None:
            lines.append(f"{percent(self.clipped)} of the values are outside the bounds")
        return lines


def report(  # noqa: PLR0913 (one question with many knobs, all with a default but the first three)
    panel: ArrayLike,
    *,
    bounds: tuple[float, float],
    std: ArrayLike,
    released: Iterable[int] | None = None,
    delta: float = 1e-6,
    target: float | None = None,
    attacker_knows: Known = "time",
    model: VAR | None = None,
    order: int = 1,
    dynamics: Dynamics = "own",
) -> LeakageReport:
    """Measure how much the published means of a panel reveal about each value.

    Args:
        panel: Private values, people x times, without gaps.
        bounds: Public lower and upper bound to which values are clipped.
        std: Standard deviation of the noise of each published mean: one number, or one per time.
        released: Indices of the times that are published. By default all.
        delta: Probability parameter at which epsilon is reported.
        target: Epsilon that designed noise shall satisfy for every value. By default the epsilon
            that the noise gives if values are independent.
        attacker_knows: `"time"` (all other values at the time of the secret), `"none"`, or `"all"`
            (every value but the secret).
        model: Public model of the values. By default a model is fitted to the panel.
        order: Order of the fitted model.
        dynamics: Dynamics of the fitted model, `"own"` or `"full"`.

    Returns:
        A report with the leakage of each person, and noise that meets the target.

    Raises:
        InvalidArgument: An argument is outside its range.
        OutOfDomain: The panel has gaps, or no model can be fitted.

    Privacy:
        The report depends on the panel without noise. Do not publish it. For a report that may be
        published, use `private_fit` and `assess`.

    Examples:
        >>> import discreet
        >>> from discreet.audit import series
        >>> alike = series.ExchangeableVAR(habits=(0.5,), variance=1.0, correlation=0.2)
        >>> panel = alike.simulate(people=3, times=12, rng=discreet.seeded_rng(1))
        >>> report = series.report(panel, bounds=(-4, 4), std=2, released=[0, 1])
        >>> report.people[0].epsilon > 0
        True

    See Also:
        [Releases about the same people](../how-to/series.md).
    """
    # Needs: a data holder's eyes only. The answer depends on the panel without noise.
    values = checked_panel(panel)
    low, high = _range(bounds)
    people, times = values.shape
    used = (
        fit(np.clip(values, low, high), order=order, dynamics=dynamics) if model is None else model
    )
    return _assessed(
        used,
        people=people,
        times=times,
        width=high - low,
        std=std,
        released=released,
        wanted=_Wanted.of(delta, target, attacker_knows),
        origin="given",
        clipped=float(((values < low) | (values > high)).mean()),
    )


def assess(  # noqa: PLR0913 (the same question, without a panel)
    model: VAR | ExchangeableVAR,
    *,
    people: int,
    times: int,
    bounds: tuple[float, float],
    std: ArrayLike,
    released: Iterable[int] | None = None,
    delta: float = 1e-6,
    target: float | None = None,
    attacker_knows: Known = "time",
    guarantee: Guarantee | None = None,
    plausible: Sequence[VAR | ExchangeableVAR] = (),
) -> LeakageReport:
    """Measure what published means reveal under a model, without reading a panel.

    Args:
        model: Model of the values.
        people: Number of people.
        times: Number of times.
        bounds: Public lower and upper bound to which values are clipped.
        std: Standard deviation of the noise of each published mean: one number, or one per time.
        released: Indices of the times that are published. By default all.
        delta: Probability parameter at which epsilon is reported.
        target: Epsilon that designed noise shall satisfy for every value. By default the epsilon
            that the noise gives if values are independent.
        attacker_knows: `"time"` (all other values at the time of the secret), `"none"`, or `"all"`
            (every value but the secret).
        guarantee: Guarantee of the private fit that gave the model, if any.
        plausible: Other models that could be true.

    Returns:
        A report with the leakage of each person, and noise that meets the target.

    Raises:
        InvalidArgument: An argument is outside its range.

    Privacy:
        No panel is read. The report is as private as the model.

    Examples:
        >>> from discreet.audit import series
        >>> alike = series.ExchangeableVAR(habits=(0.5,), variance=1.0, correlation=0.2)
        >>> report = series.assess(alike, people=50, times=2, bounds=(-4, 4), std=0.5)
        >>> report.people[0].epsilon > 0
        True

    See Also:
        `report`.
    """
    low, high = _range(bounds)
    n, t = count("people", people), count("times", times)
    return _assessed(
        model,
        people=n,
        times=t,
        width=high - low,
        std=std,
        released=released,
        wanted=_Wanted.of(delta, target, attacker_knows),
        origin="given" if guarantee is None else "private",
        guarantee=guarantee,
        plausible=plausible,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    delta: float
    target: float | None
    attacker_knows: Known

    @classmethod
    def of(cls, delta: float, target: float | None, attacker_knows: Known) -> _Wanted:
        return cls(
            delta=float(probability("delta", delta, zero=False, one=False)),
            target=None if target is None else float(positive("target", target)),
            attacker_knows=attacker_knows,
        )


def _assessed(  # noqa: PLR0913 (private: what the two doors above have in common)
    model: VAR | ExchangeableVAR,
    *,
    people: int,
    times: int,
    width: float,
    std: ArrayLike,
    released: Iterable[int] | None,
    wanted: _Wanted,
    origin: Origin,
    clipped: float | None = None,
    guarantee: Guarantee | None = None,
    plausible: Sequence[VAR | ExchangeableVAR] = (),
) -> LeakageReport:
    at = tuple(range(times) if released is None else released)

    def looked(one: VAR | ExchangeableVAR) -> tuple[VAR, SeriesReleases, CellLeakage]:
        used, weights = _reduced(one, people)
        published = releases(times=at, width=width, people=used.people, std=std, weights=weights)
        found = cells(used, releases=published, attacker_knows=wanted.attacker_knows, times=times)
        return used, published, found if weights is None else _first(found)

    used, published, found = looked(model)
    mu = float(found.direct.max())
    if wanted.target is not None:
        mu = gaussian_mu(wanted.target, delta=wanted.delta)
    others = [looked(one)[2].worst for one in plausible]
    return LeakageReport(
        cells=found,
        people=_people(found, wanted.delta),
        number=people,
        delta=wanted.delta,
        target=epsilon_of(mu, delta=wanted.delta),
        model=model,
        releases=published,
        fixes=_fixes(
            used,
            published,
            mu,
            times=times,
            attacker_knows=wanted.attacker_knows,
            people=len(found.mu),
        ),
        # Whatever it is passed as: a model that was fitted without noise knows private values.
        origin=origin if all(_public(one) for one in (model, *plausible)) else "fitted",
        clipped=clipped,
        guarantee=guarantee,
        plausible=tuple(epsilon_of(other, delta=wanted.delta) for other in others),
    )


def _fixes(
    model: VAR,
    published: SeriesReleases,
    mu: float,
    *,
    times: int,
    attacker_knows: Known,
    people: int,
) -> tuple[NoiseDesign, ...]:
    many = len(published.times)
    shapes: list[Shape] = ["independent"] if many <= _INDEPENDENT else []
    shapes += ["stationary"] if _CORRELATED < many <= _STATIONARY else []
    shapes += ["correlated"] if many <= _CORRELATED else []
    asked: dict[str, Any] = {
        "releases": published,
        "mu": mu,
        "times": times,
        "people": range(people),
    }
    found = [design(model, attacker_knows=attacker_knows, shape="equal", **asked)]
    for shape in shapes:
        with suppress(NotCertified):  # then the others will have to do
            found.append(design(model, attacker_knows=attacker_knows, shape=shape, **asked))
    return tuple(found)


def _reduced(model: VAR | ExchangeableVAR, people: int) -> tuple[VAR, Floats | None]:
    """The model; where all are alike, of a person and the mean of the others."""
    if isinstance(model, VAR):
        if model.people != people:
            raise InvalidArgument(
                f"model must have the panel's {people} people, got {model.people}."
            )
        return model, None
    return (model.model(1), None) if people == 1 else model.pair(people)


def _public(model: VAR | ExchangeableVAR) -> bool:
    return isinstance(model, ExchangeableVAR) or model.public


def _first(found: CellLeakage) -> CellLeakage:
    """One person instead of everybody."""
    return CellLeakage(
        model=found.model[:1],
        direct=found.direct[:1],
        user=found.user[:1],
        everything=found.everything,
        assumptions=found.assumptions,
    )


def _range(bounds: tuple[float, float]) -> tuple[float, float]:
    low, high = (float(finite("bounds", end)) for end in bounds)
    if not low < high:
        raise InvalidArgument(f"bounds must be increasing, got {low:g} and {high:g}.")
    return low, high


def _people(found: CellLeakage, delta: float) -> tuple[PersonLeakage, ...]:
    worst = found.mu.argmax(axis=1)
    top = found.mu.max(axis=1)
    return tuple(
        PersonLeakage(
            person=int(i),
            time=int(worst[i]),
            mu=float(top[i]),
            epsilon=epsilon_of(float(top[i]), delta=delta),
            promised=epsilon_of(float(found.direct[i].max()), delta=delta),
            user=epsilon_of(float(found.user[i]), delta=delta),
        )
        for i in np.argsort(-top, kind="stable")
    )

"""Events of dp-accounting, training histories of Opacus, and measurements of OpenDP.

Nothing here sees how the other library draws its noise: what it says is *claimed*. Only kinds whose
meaning is known are read; all others are refused by name.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, Literal, TypeAlias

from discreet.accounting.guarantee import Guarantee
from discreet.core import _validate as check
from discreet.core import events
from discreet.core._rational import round_down, round_up
from discreet.core.errors import InvalidArgument, RelationMismatch, Unsupported
from discreet.core.events import Event
from discreet.core.relation import NeighboringRelation, central_relation

MultiplierPer: TypeAlias = Literal["add_remove", "replace_one"]
_ADD = NeighboringRelation.ADD_REMOVE
_REPLACE = NeighboringRelation.REPLACE_ONE


# ── dp-accounting ────────────────────────────────────────────────────────────────────────────────


def from_dp_event(
    event: object,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
    *,
    multiplier_per: MultiplierPer | None = None,
) -> Guarantee:
    """Read an event of the library dp-accounting.

    Args:
        event: A `DpEvent`: NoOp, Gaussian, Laplace, DiscreteLaplace, ZCDp, RandomizedResponse,
            Composed, SelfComposed, PoissonSampled or SampledWithoutReplacement.
        relation: Neighboring relation that the event is meant under.
        multiplier_per: Sensitivity that noise multipliers refer to. Required under replace-one,
            where accountants differ: "replace_one" if the multiplier is noise per distance of two
            neighbors, "add_remove" if it is noise per contribution of one unit. Under add/remove
            there is one meaning.

    Returns:
        The guarantee of the event.

    Raises:
        Unsupported: The kind of event is not known here, or has no privacy.
        RelationMismatch: The kind of sampling has no theorem under this relation.
        InvalidArgument: `multiplier_per` is missing under replace-one, or a number is out of range.

    Examples:
        >>> from dp_accounting import GaussianDpEvent, SelfComposedDpEvent
        >>> import discreet
        >>> event = SelfComposedDpEvent(GaussianDpEvent(10.0), 100)
        >>> round(discreet.interop.from_dp_event(event).epsilon(1e-6), 6)
        4.886554

    See Also:
        `to_dp_event`, [Other libraries](../how-to/other-libraries.md).
    """
    # Theorem: the event has the meaning that dp-accounting documents for it; a multiplier is noise
    #   per sensitivity, and under replace-one a unit moves by twice its contribution.
    # Needs: the other library draws what it says.
    central_relation(relation)
    if multiplier_per not in {None, "add_remove", "replace_one"}:
        raise InvalidArgument(
            f"multiplier_per must be 'add_remove' or 'replace_one', got {multiplier_per!r}."
        )
    if relation is _ADD and multiplier_per == "replace_one":
        raise InvalidArgument("multiplier_per='replace_one' has no meaning under add/remove.")
    return Guarantee(_read(event, relation, multiplier_per, 60), relation)


def _read(  # noqa: C901, PLR0912 - one branch for each kind
    event: Any, relation: NeighboringRelation, per: MultiplierPer | None, depth: int
) -> Event:
    name = type(event).__name__.removesuffix("DpEvent")
    if not type(event).__module__.startswith("dp_accounting") or depth == 0:
        raise Unsupported(f"{type(event).__name__} is no event of dp-accounting that can be read.")

    def inner(one: object) -> Event:
        return _read(one, relation, per, depth - 1)

    match name:
        case "NoOp":
            return events.NOTHING
        case "Gaussian":
            return events.GaussianEvent(_noise(event.noise_multiplier) / _doubled(relation, per))
        case "Laplace":
            return events.LaplaceEvent(_noise(event.noise_multiplier) / _doubled(relation, per))
        case "DiscreteLaplace":
            shift = check.count("sensitivity", event.sensitivity) * _doubled(relation, per)
            return events.DiscreteLaplaceEvent(1 / _noise(event.noise_parameter), shift)
        case "ZC":  # the class is ZCDpEvent
            if event.xi:
                raise Unsupported("ZCDpEvent with xi other than 0 is not read.")
            return events.ZcdpEvent(_decimal(event.rho))
        case "RandomizedResponse":
            return _response(event, relation)
        case "Composed":
            return events.compose([inner(one) for one in event.events])
        case "SelfComposed":
            return events.repeat(inner(event.event), check.count("count", event.count, minimum=0))
        case "PoissonSampled":
            if relation is not _ADD:
                raise RelationMismatch("PoissonSampledDpEvent is read under add/remove only.")
            return events.SampledEvent(_decimal(event.sampling_probability), inner(event.event))
        case "SampledWithoutReplacement":
            if relation is not _REPLACE:
                raise RelationMismatch(
                    "SampledWithoutReplacementDpEvent is read under replace-one only."
                )
            sizes = event.sample_size, event.source_dataset_size
            return events.SampledWithoutReplacementEvent(*sizes, inner(event.event))
        case "NonPrivate":
            raise Unsupported("NonPrivateDpEvent has no guarantee.")
        case _:
            raise Unsupported(f"{type(event).__name__} is not read: its meaning is not known here.")


def _doubled(relation: NeighboringRelation, per: MultiplierPer | None) -> int:
    """How far a step of the relation moves, in units of what the multiplier refers to."""
    if relation is _ADD:
        return 1
    if per is None:
        raise InvalidArgument(
            "multiplier_per must say under replace-one what noise multipliers refer to: "
            "'replace_one' (the distance of two neighbors) or 'add_remove' (one contribution)."
        )
    return 2 if per == "add_remove" else 1


def _decimal(value: object) -> Fraction:
    """A double as its shortest decimal, which is what somebody wrote."""
    return check.non_negative("number", value)


def _noise(value: object) -> Fraction:
    return check.positive("noise", value)


def _response(event: Any, relation: NeighboringRelation) -> Event:
    """P(truth) = 1 - p + p/k and p/k for each other: the log of the ratio, rounded up."""
    if relation is not _REPLACE:
        raise RelationMismatch("RandomizedResponseDpEvent is read under replace-one only.")
    flip = check.probability("noise_parameter", event.noise_parameter, zero=False)
    buckets = check.count("num_buckets", event.num_buckets)
    ratio = (1 - flip + flip / buckets) / (flip / buckets)
    return events.PureEvent(Fraction(math.log(round_up(ratio)) * (1 + 1e-15)))


def to_dp_event(guarantee: Guarantee, *, multiplier_per: MultiplierPer | None = None) -> Any:
    """Write a guarantee as an event of the library dp-accounting.

    Numbers that no double holds are rounded in the safe direction.

    Args:
        guarantee: Guarantee under add/remove or replace-one.
        multiplier_per: Sensitivity that noise multipliers refer to, as for `from_dp_event`.

    Returns:
        A `DpEvent`.

    Raises:
        Unsupported: dp-accounting has no such event, or is not installed.

    Examples:
        >>> import discreet
        >>> discreet.interop.to_dp_event(discreet.gdp(0.5))
        GaussianDpEvent(noise_multiplier=2.0)
    """
    central_relation(guarantee.relation)
    if guarantee.group_size != 1:
        raise Unsupported("The guarantee of a group has no event in dp-accounting.")
    try:
        from dp_accounting import dp_event  # noqa: PLC0415 - only who has it needs it
    except ModuleNotFoundError:
        raise Unsupported("to_dp_event needs dp-accounting: pip install dp-accounting.") from None
    return _write(guarantee.event, guarantee.relation, multiplier_per, dp_event)


def _write(
    event: Event, relation: NeighboringRelation, per: MultiplierPer | None, library: Any
) -> Any:
    def inner(one: Event) -> Any:
        return _write(one, relation, per, library)

    match event:
        case events.ComposedEvent(()):
            return library.NoOpDpEvent()
        case events.ComposedEvent(parts):
            made = [
                inner(part) if many == 1 else library.SelfComposedDpEvent(inner(part), many)
                for part, many in parts
            ]
            return made[0] if len(made) == 1 else library.ComposedDpEvent(made)
        case events.GaussianEvent(sigma):
            return library.GaussianDpEvent(_down(sigma * _doubled(relation, per)))
        case events.GdpEvent(mu) if mu:
            return library.GaussianDpEvent(_down(_doubled(relation, per) / mu))
        case events.LaplaceEvent(scale):
            return library.LaplaceDpEvent(_down(scale * _doubled(relation, per)))
        case events.DiscreteLaplaceEvent(scale, shift):
            moved = _doubled(relation, per)
            if shift % moved:
                raise Unsupported("A shift that is odd is no replacement of whole contributions.")
            return library.DiscreteLaplaceDpEvent(_up(1 / scale), shift // moved)
        case events.ZcdpEvent(rho, xi) if xi == 0:
            return library.ZCDpEvent(_up(rho))
        case events.SampledEvent(rate, core):
            return library.PoissonSampledDpEvent(_up(rate), inner(core))
        case events.SampledWithoutReplacementEvent(sample, population, core):
            return library.SampledWithoutReplacementDpEvent(population, sample, inner(core))
        case _:
            raise Unsupported(f"dp-accounting has no event for {events.label(event)}.")


def _down(value: Fraction) -> float:
    """The double that prints as the number, else the next one below."""
    return float(value) if Fraction(repr(float(value))) == value else round_down(value)


def _up(value: Fraction) -> float:
    """The double that prints as the number, else the next one above."""
    return float(value) if Fraction(repr(float(value))) == value else round_up(value)


# ── Opacus and OpenDP ────────────────────────────────────────────────────────────────────────────


def from_opacus(history: Sequence[Any]) -> Guarantee:
    """Read the history of an accountant of Opacus.

    Args:
        history: List of (noise multiplier, sample rate, steps), as in `accountant.history`.

    Returns:
        The guarantee of the training under `NeighboringRelation.ADD_REMOVE`. It holds if batches
        are drawn by Poisson sampling; Opacus itself assumes so.

    Raises:
        InvalidArgument: The history is no list of such triples.

    Examples:
        >>> import discreet
        >>> training = discreet.interop.from_opacus([(1.0, 0.01, 10_000)])
        >>> round(training.epsilon(1e-6), 4)
        6.9078
    """
    parts = []
    for one in check.as_tuple("history", history):
        if not isinstance(one, tuple | list) or len(one) != 3:
            raise InvalidArgument(
                "history must be a list of (noise multiplier, sample rate, steps)."
            )
        noise, rate, steps = one
        sampled = events.SampledEvent(
            check.probability("sample rate", rate),
            events.GaussianEvent(check.positive("noise multiplier", noise)),
        )
        parts.append(events.repeat(sampled, check.count("steps", steps, minimum=0)))
    return Guarantee(events.compose(parts), _ADD)


def from_opendp(
    measurement: Any,
    d_in: object,
    *,
    relation: NeighboringRelation = NeighboringRelation.ADD_REMOVE,
) -> Guarantee:
    """Read what a measurement of OpenDP states for a distance of its input.

    Args:
        measurement: A `Measurement` whose output measure is max divergence, zero-concentrated
            divergence, or approximate max divergence.
        d_in: Distance of neighboring data in the input metric of the measurement.
        relation: Neighboring relation that `d_in` stands for. OpenDP does not say it.

    Returns:
        The guarantee: pure, zero-concentrated or approximate.

    Raises:
        Unsupported: The output measure is another one.
        InvalidArgument: `measurement` is none, or states no finite number.

    Examples:
        >>> import opendp.prelude as dp
        >>> import discreet
        >>> dp.enable_features("contrib")
        >>> noise = dp.m.make_laplace(dp.atom_domain(T=int), dp.absolute_distance(T=int), scale=2.0)
        >>> discreet.interop.from_opendp(noise, d_in=1).epsilon()
        0.5
    """
    central_relation(relation)
    if not callable(getattr(measurement, "map", None)):
        raise InvalidArgument("measurement must be a Measurement of OpenDP.")
    kind, found = str(measurement.output_measure), measurement.map(d_in)
    readers: dict[str, Callable[[Any], Event]] = {
        "MaxDivergence": lambda x: events.PureEvent(_exactly(x)),
        "ZeroConcentratedDivergence": lambda x: events.ZcdpEvent(_exactly(x)),
        "Approximate(MaxDivergence)": lambda x: events.ApproxEvent(_exactly(x[0]), _exactly(x[1])),
    }
    reader = readers.get(kind.removesuffix("()").replace("()", ""))
    if reader is None:
        raise Unsupported(f"The output measure {kind} is not read.")
    return Guarantee(reader(found), relation)


def _exactly(value: Any) -> Fraction:
    """What OpenDP rounded up already is taken as the double that it is."""
    return check.exact_value("what the measurement states", value)

"""Events: what happened, exactly enough to account for it, and nothing about what it costs.

The world is closed: an accountant refuses an event it does not know. The meaning of an event never
changes, so that what a ledger stores today can be accounted more tightly tomorrow. Numbers are
rationals. Every event has one canonical form, in memory and as JSON.

Each event speaks of *one* step of the relation that its guarantee names (one unit added or
removed, one unit replaced). ``SampledEvent`` is meant for add/remove,
``SampledWithoutReplacementEvent`` and
what is shuffled for replace-one; all others mean the same under every relation.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Any, TypeAlias

from discreet.core import _validate as check
from discreet.core import canonical_json as canonical
from discreet.core.errors import InvalidArgument, Unsupported

VERSION = 1
"""Version of the JSON form; a reader refuses a version it does not know."""
_RATIO = re.compile(r"-?[0-9]+(/0*[1-9][0-9]*)?")


def _set(event: object, name: str, value: object) -> None:
    object.__setattr__(event, name, value)


@dataclass(frozen=True, slots=True)
class PureEvent:
    """A declared epsilon-DP mechanism, nothing else known."""

    epsilon: Fraction

    def __post_init__(self) -> None:
        _set(self, "epsilon", check.non_negative("epsilon", self.epsilon))


@dataclass(frozen=True, slots=True)
class ApproxEvent:
    """A declared (epsilon, delta)-DP mechanism."""

    epsilon: Fraction
    delta: Fraction

    def __post_init__(self) -> None:
        _set(self, "epsilon", check.non_negative("epsilon", self.epsilon))
        _set(self, "delta", check.probability("delta", self.delta, one=False))


@dataclass(frozen=True, slots=True)
class ZcdpEvent:
    """A declared (xi, rho)-zCDP mechanism: every Rényi divergence is at most ``xi + rho*order``."""

    rho: Fraction
    xi: Fraction = Fraction(0)

    def __post_init__(self) -> None:
        _set(self, "rho", check.non_negative("rho", self.rho))
        _set(self, "xi", check.non_negative("xi", self.xi))


@dataclass(frozen=True, slots=True)
class GdpEvent:
    """A declared mu-GDP mechanism: no easier to attack than N(0, 1) against N(mu, 1)."""

    mu: Fraction

    def __post_init__(self) -> None:
        _set(self, "mu", check.non_negative("mu", self.mu))


@dataclass(frozen=True, slots=True)
class LaplaceEvent:
    """Continuous Laplace noise, ``scale`` per unit of L1 sensitivity (idealized arithmetic)."""

    scale: Fraction

    def __post_init__(self) -> None:
        _set(self, "scale", check.positive("scale", self.scale))


@dataclass(frozen=True, slots=True)
class GaussianEvent:
    """Continuous Gaussian noise, ``sigma`` per unit of L2 sensitivity (idealized arithmetic)."""

    sigma: Fraction

    def __post_init__(self) -> None:
        _set(self, "sigma", check.positive("sigma", self.sigma))


@dataclass(frozen=True, slots=True)
class DiscreteLaplaceEvent:
    """Integer noise, P(k) ~ exp(-|k|/scale) per coordinate; the vector moves ``shift`` in L1."""

    scale: Fraction
    shift: int

    def __post_init__(self) -> None:
        _set(self, "scale", check.positive("scale", self.scale))
        _set(self, "shift", check.count("shift", self.shift, minimum=0))


@dataclass(frozen=True, slots=True)
class DiscreteGaussianEvent:
    """Integer noise, P(k) ~ exp(-k^2 / (2 variance)) per coordinate of an integer vector.

    ``variance`` is the parameter sigma^2 (the variance of the law is a little smaller). The vector
    has ``dimension`` coordinates and moves by at most ``shift_squared`` in squared L2 norm.
    """

    variance: Fraction
    shift_squared: Fraction
    dimension: int = 1

    def __post_init__(self) -> None:
        _set(self, "variance", check.positive("variance", self.variance))
        _set(self, "shift_squared", check.non_negative("shift_squared", self.shift_squared))
        _set(self, "dimension", check.count("dimension", self.dimension))


@dataclass(frozen=True, slots=True)
class TruncatedLaplaceEvent:
    """Discrete Laplace noise conditioned on |k| <= bound, on one integer that moves ``shift``."""

    scale: Fraction
    shift: int
    bound: int

    def __post_init__(self) -> None:
        _set(self, "scale", check.positive("scale", self.scale))
        _set(self, "shift", check.count("shift", self.shift, minimum=0))
        _set(self, "bound", check.count("bound", self.bound, minimum=0))


@dataclass(frozen=True, slots=True)
class BoundedRangeEvent:
    """A mechanism whose log-ratio of probabilities ranges over an interval of length epsilon.

    The exponential mechanism is one (Dong, Durfee, Rogers 2020).
    """

    epsilon: Fraction

    def __post_init__(self) -> None:
        _set(self, "epsilon", check.non_negative("epsilon", self.epsilon))


@dataclass(frozen=True, slots=True)
class EitherEvent:
    """One of these, fixed in advance but not known here: the accountant covers the worst."""

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        branches = {branch: None for event in self.events for branch in _branches(_event(event))}
        if not branches:
            raise InvalidArgument("events must name at least one event, got none.")
        _set(self, "events", tuple(sorted(branches, key=_order)))


@dataclass(frozen=True, slots=True)
class ComposedEvent:
    """All of these, each with its count, chosen adaptively.

    Normalized: flattened, equal events merged, canonical order; the cost of composition is that
    of the distinct events.
    """

    parts: tuple[tuple[Event, int], ...]

    def __post_init__(self) -> None:
        _set(self, "parts", _merged(self.parts))


@dataclass(frozen=True, slots=True)
class SampledEvent:
    """The event on a Poisson sample: each unit takes part with probability ``rate``."""

    rate: Fraction
    inner: Event

    def __post_init__(self) -> None:
        _set(self, "rate", check.probability("rate", self.rate))
        _event(self.inner)


@dataclass(frozen=True, slots=True)
class SampledWithoutReplacementEvent:
    """The event on ``sample`` units drawn without replacement from a public ``population``."""

    sample: int
    population: int
    inner: Event

    def __post_init__(self) -> None:
        _set(self, "population", check.count("population", self.population))
        _set(self, "sample", check.count("sample", self.sample, minimum=0))
        if self.sample > self.population:
            raise InvalidArgument(
                f"sample must not exceed population={self.population}, got {self.sample}."
            )
        _event(self.inner)


@dataclass(frozen=True, slots=True)
class GroupEvent:
    """The event seen by a group: ``size`` steps of the relation instead of one."""

    size: int
    inner: Event

    def __post_init__(self) -> None:
        _set(self, "size", check.count("size", self.size))
        _event(self.inner)


@dataclass(frozen=True, slots=True)
class ShuffledEvent:
    """``reports`` epsilon-LDP reports of one randomizer, in random order, nothing tied to them."""

    epsilon: Fraction
    reports: int

    def __post_init__(self) -> None:
        _set(self, "epsilon", check.non_negative("epsilon", self.epsilon))
        _set(self, "reports", check.count("reports", self.reports))


@dataclass(frozen=True, slots=True)
class ShuffledTwoLevelEvent:
    """The same, each report of two levels: a value makes the outputs of its set e^epsilon likelier.

    A part is ``(weight, share, differ)``: it is drawn with probability ``weight``, a set holds
    ``share`` of the law of its outputs, and the sets of the two values are ``differ`` apart (each
    way). More on what this means: docs/theory/shuffle.md.
    """

    epsilon: Fraction
    reports: int
    parts: tuple[tuple[Fraction, Fraction, Fraction], ...]

    def __post_init__(self) -> None:
        _set(self, "epsilon", check.non_negative("epsilon", self.epsilon))
        _set(self, "reports", check.count("reports", self.reports))
        _set(self, "parts", check.two_level(self.parts))


Event: TypeAlias = (
    PureEvent
    | ApproxEvent
    | ZcdpEvent
    | GdpEvent
    | LaplaceEvent
    | GaussianEvent
    | DiscreteLaplaceEvent
    | DiscreteGaussianEvent
    | TruncatedLaplaceEvent
    | BoundedRangeEvent
    | EitherEvent
    | ComposedEvent
    | SampledEvent
    | SampledWithoutReplacementEvent
    | GroupEvent
    | ShuffledEvent
    | ShuffledTwoLevelEvent
)

# The place of a kind in this table is its place in the canonical order; append only.
_KINDS: dict[str, type[Any]] = {
    "pure": PureEvent,
    "approx": ApproxEvent,
    "zcdp": ZcdpEvent,
    "gdp": GdpEvent,
    "laplace_noise": LaplaceEvent,
    "gaussian_noise": GaussianEvent,
    "discrete_laplace": DiscreteLaplaceEvent,
    "discrete_gaussian": DiscreteGaussianEvent,
    "truncated_laplace": TruncatedLaplaceEvent,
    "bounded_range": BoundedRangeEvent,
    "either": EitherEvent,
    "composed": ComposedEvent,
    "sampled": SampledEvent,
    "sampled_without_replacement": SampledWithoutReplacementEvent,
    "group": GroupEvent,
    "shuffled": ShuffledEvent,
    "shuffled_two_level": ShuffledTwoLevelEvent,
}
_NAMES = {kind: name for name, kind in _KINDS.items()}
_RANKS = {kind: rank for rank, kind in enumerate(_KINDS.values())}


def label(event: Event) -> str:
    """What an event is called in texts: the name of its kind in JSON, in one word."""
    return _NAMES[type(event)].title().replace("_", "")


def compose(events: Iterable[Event]) -> Event:
    """All events together, in canonical form; a single one stays itself."""
    composed = ComposedEvent(tuple([(event, 1) for event in events]))
    if len(composed.parts) == 1 and composed.parts[0][1] == 1:
        return composed.parts[0][0]
    return composed


def repeat(event: Event, count: int) -> Event:
    """``count`` runs of one event."""
    times = check.count("count", count, minimum=0)
    return event if times == 1 else ComposedEvent(((event, times),))


def check_event(event: object) -> None:
    """Refuse what is not an event."""
    _event(event)


def to_json(event: Event) -> str:
    """The canonical text of an event: sorted keys, rationals as "p/q", a version."""
    return canonical.text(event_content(event))


def event_content(event: Event) -> dict[str, Any]:
    """The content of the canonical text."""
    return {"version": VERSION, **_encode(_event(event))}


def from_json(text: str) -> Event:
    """The event of a canonical text; kinds, fields and versions that are unknown are refused."""
    with canonical.reading("an event"):
        content = json.loads(text)
        if not isinstance(content, dict) or content.pop("version", None) != VERSION:
            raise Unsupported(f"This is not an event of version {VERSION}.")
        event: Event = _event(_decode(content))
    return event


def _event(value: object) -> Any:
    if type(value) not in _RANKS:
        raise Unsupported(f"{type(value).__name__} is not a known kind of event.")
    return value


def _branches(event: Event) -> tuple[Event, ...]:
    return event.events if isinstance(event, EitherEvent) else (event,)


def _merged(parts: Iterable[tuple[Event, int]]) -> tuple[tuple[Event, int], ...]:
    counts: dict[Event, int] = {}
    for event, number in parts:
        times = check.count("count", number, minimum=0)
        _event(event)
        inner = event.parts if isinstance(event, ComposedEvent) else ((event, 1),)
        for part, repeats in inner:
            counts[part] = counts.get(part, 0) + repeats * times
    kept = [(event, number) for event, number in counts.items() if number]
    return tuple(sorted(kept, key=lambda part: _order(part[0]))) if len(kept) > 1 else tuple(kept)


def _order(value: object) -> tuple[Any, ...]:
    """A total order on events: kind first, then the fields in turn."""
    if isinstance(value, tuple):
        return (len(value), *map(_order, value))
    if type(value) in _RANKS:
        held = [getattr(value, field.name) for field in fields(value)]  # type: ignore[arg-type]
        return (_RANKS[type(value)], *map(_order, held))
    return (value,)


def _encode(value: Any) -> Any:
    if isinstance(value, Fraction):
        return canonical.ratio(value)
    if isinstance(value, tuple):
        return [_encode(item) for item in value]
    if type(value) in _NAMES:
        content = {field.name: _encode(getattr(value, field.name)) for field in fields(value)}
        return {"kind": _NAMES[type(value)], **content}
    return value


def _decode(content: Any) -> Any:
    if isinstance(content, str):
        if not _RATIO.fullmatch(content):  # nor a power, which could be endless
            raise InvalidArgument("A number of an event must be a rational 'p/q'.")
        return Fraction(content)
    if isinstance(content, list):
        return tuple(_decode(item) for item in content)
    if isinstance(content, dict):
        kind = _KINDS.get(content.get("kind", ""))
        if kind is None:
            raise Unsupported(f"{content.get('kind')!r} is not a known kind of event.")
        names = {field.name for field in fields(kind)}
        given = set(content) - {"kind"}
        if given != names:
            raise Unsupported(f"{content['kind']!r} takes {sorted(names)}, got {sorted(given)}.")
        return kind(**{name: _decode(content[name]) for name in names})
    return content


NOTHING = ComposedEvent(())
"""The event in which nothing happens."""

"""Releases: a value with its error, its guarantee and the receipt of the ledger."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from discreet.accounting.guarantee import Guarantee
from discreet.core import _validate as check
from discreet.core import canonical_json as canonical
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.data.program import Key
from discreet.data.schema import OTHER
from discreet.ledger.account import Account, Receipt, Reservation, shorten_label
from discreet.noise.random_source import RandomSource
from discreet.query._answer import NoisyAnswer
from discreet.query._bound_suggestions import sum_width
from discreet.query._measure import SumEstimator
from discreet.query._release_plan import TableSpec

# ── Reservation and privacy statement ────────────────────────────────────────────────────────────


def reserve_budget(
    account: Account | None,
    guarantee: Guarantee,
    *,
    label: str,
    rng: RandomSource,
    request_id: str | None = None,
) -> Reservation:
    """The budget of a release, spent now. Bits that are not private are refused."""
    if account is None:
        raise InvalidArgument("account must be given to release: discreet.table(account=...).")
    words = shorten_label(label)
    return account.reserve(guarantee, label=words, private=rng.private, request_id=request_id)


def fresh_key(rng: RandomSource) -> int:
    """Which rows of a unit are kept must not be known or repeated."""
    return int.from_bytes(rng.words(2).tobytes(), "big")


def describe_protection(setting: TableSpec) -> str:
    """Who is protected, and how much of each is used, in one sentence."""
    who = (
        "any one row"
        if setting.privacy_unit is None
        else f"any one {setting.privacy_unit}, with all its rows,"
    )
    act = {
        NeighboringRelation.ADD_REMOVE: f"whether {who} is in the data at all",
        NeighboringRelation.REPLACE_ONE: (
            f"what the data say about {who} while their number is public"
        ),
    }[setting.relation]
    limits = [
        f"at most {value} {thing}{' is' if value == 1 else 's are'} used of each{where}"
        for value, thing, where in (
            (setting.limits.max_rows_per_unit, "row", ""),
            (setting.limits.max_groups_per_unit, "group", ""),
            (setting.limits.max_rows_per_unit_per_group, "row", " in a group"),
        )
        if value is not None
    ]
    return "; ".join([f"protects {act}", *limits])


# ── Merged small groups ──────────────────────────────────────────────────────────────────────────


_LEVEL = 0.95
SELECTED = "units of shown keys"
"""The name of counts that were selected by a threshold, among others that stay hidden."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedRelease:
    """A release of counts or sums whose small groups are one, the last: see `Release.fold`."""

    release: Release
    kept: tuple[int, ...]
    merged: tuple[int, ...]

    @property
    def keys(self) -> tuple[Key, ...]:
        """The keys of the groups."""
        known = tuple(self.release.keys[place] for place in self.kept)
        return (*known, (OTHER,) * len(self.release.key_columns)) if self.merged else known

    @property
    def value(self) -> tuple[Any, ...]:
        """The published numbers in the order of the keys."""
        return self._picked(self.release.value, sum)

    @property
    def std(self) -> tuple[float, ...]:
        """Deviation of the noise as it was drawn; choosing small groups picks negative noise."""
        return self._picked(self.release.std, lambda many: math.hypot(*many))

    def interval(self, confidence: float = _LEVEL) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Bounds that hold the answer without noise, each with probability at least ``confidence``.

        Theorem: also for the merged group, although its members were chosen by their noisy values.
        Proof: with n groups there are C(n, k) choices of k members. The bound on the sum of k
            noises holds for all of these sums at once, and for all k at once (`sum_width`).
        """
        inside = float(check.probability("confidence", confidence, zero=False, one=False))
        low, high = self.release.interval(inside)
        n, k = len(low), len(self.merged)
        part, scale = _measured(self.release)
        ways = math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1) + math.log(n)
        width = sum_width(part.law, k, inside, choices=ways * (1 + 1e-12))
        step = scale.exponent + scale.shifts[0]
        # Values that were divided by a power of two were also rounded, each by less than a step.
        reach = math.ldexp(width + (k if scale.shifts[0] else 0), step)
        total = sum(self.release.value[place] for place in self.merged)
        ends = (total - reach, total + reach) if self.merged else (0, 0)
        return (
            self._picked(low, lambda _: ends[0]),
            self._picked(high, lambda _: ends[1]),
        )

    def rows(self, confidence: float = _LEVEL) -> list[dict[str, Any]]:
        """One record for each group: keys, value, std, low, high."""
        names = self.release.key_columns
        columns = zip(self.keys, self.value, self.std, *self.interval(confidence), strict=True)
        return [
            {**dict(zip(names, key, strict=True)), "value": v, "std": s, "low": a, "high": b}
            for key, v, s, a, b in columns
        ]

    def _picked(self, numbers: Sequence[Any], together: Any) -> tuple[Any, ...]:
        kept = tuple(numbers[place] for place in self.kept)
        if not self.merged:
            return kept
        return (*kept, together([numbers[place] for place in self.merged]))


def merge_small_groups(release: Release, *, below: float) -> MergedRelease:
    """Put all groups whose published number is below this into one, the last."""
    _measured(release)
    if not release.key_columns:
        raise InvalidArgument("fold needs a release with groups.")
    limit = float(check.finite("below", below))
    rest = (OTHER,) * len(release.key_columns)
    small = [
        key == rest or value < limit for key, value in zip(release.keys, release.value, strict=True)
    ]
    return MergedRelease(
        release=release,
        kept=tuple(place for place, one in enumerate(small) if not one),
        merged=tuple(place for place, one in enumerate(small) if one),
    )


def _measured(release: Release) -> tuple[Any, SumEstimator]:
    answer = release._noisy
    if answer is None or not isinstance(answer.scale, SumEstimator) or len(answer.parts) != 1:
        raise Unsupported("Only counts and sums that were measured directly can be folded.")
    if answer.parts[0].name == SELECTED:
        raise Unsupported("Ask for counts by these keys, and fold those: hidden keys bias these.")
    return answer.parts[0], answer.scale


# ── Releases ─────────────────────────────────────────────────────────────────────────────────────


VERSION = 1
DELTA = 1e-6
"""Where epsilon is told of guarantees that have no pure one."""
_LARGEST_DELTA = 0.01
_SHOWN = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A published answer with its error, its guarantee and the receipt of the ledger.

    ``value`` is one number without groups, else a tuple of numbers in the order of ``keys``.
    """

    title: str
    query_text: str
    value: Any
    guarantee: Guarantee
    receipt: Receipt
    mechanism: str
    privacy_statement: str
    _noisy: NoisyAnswer | None = None

    @property
    def keys(self) -> tuple[Key, ...]:
        """The public keys of the groups."""
        return self._answer.keys

    @property
    def key_columns(self) -> tuple[str, ...]:
        """What the keys are values of."""
        return self._answer.names

    @property
    def std(self) -> Any:
        """Standard deviation of the noise, in the shape of the value; None for quantiles."""
        return self._shaped(self._answer.std)

    def interval(self, confidence: float = _LEVEL, *, sampling: bool = False) -> tuple[Any, Any]:
        """Bounds that hold the answer without noise, each with probability at least ``confidence``.

        With ``sampling`` they hold what the answer estimates in the population, if the units were
        drawn independently: for counts, means and quantiles, with one row of each unit in a group.
        """
        low, high = self._answer.interval(confidence, sampling=sampling)
        return self._shaped(low), self._shaped(high)

    def rows(self, confidence: float = _LEVEL) -> list[dict[str, Any]]:
        """One record for each group: keys, value, std, low, high (None where there is none)."""
        answer = self._answer
        none = [None] * len(answer.keys)
        low, high = answer.interval(confidence) if answer.has_interval else (none, none)
        columns = zip(answer.keys, answer.values, answer.std, low, high, strict=True)
        return [
            {**dict(zip(answer.names, key, strict=True)), "value": v, "std": s, "low": a, "high": b}
            for key, v, s, a, b in columns
        ]

    def _repr_html_(self) -> str:
        """The first groups as a table, for notebooks; errors stand beside the numbers."""
        if self._noisy is None:
            return f"<pre>{escape(str(self))}</pre>"
        rows = self.rows()
        table: list[Iterable[object]] = [(*self.key_columns, "value", "low", "high")]
        for row in rows[:_SHOWN]:
            numbers = ("" if row[x] is None else _short(row[x]) for x in ("value", "low", "high"))
            table.append((*(row[name] for name in self.key_columns), *numbers))
        title = escape(
            f"{self.title} ({describe_epsilon(self.guarantee)}, {self.guarantee.relation.value})"
        )
        more = f"<p>... and {len(rows) - _SHOWN:,} more</p>" if len(rows) > _SHOWN else ""
        return f"<p>{title}</p><table>{''.join(map(_html_row, table))}</table>{more}"

    def map(self, function: Callable[[Any], Any]) -> Release:
        """Post-processing: any function of the value, at no cost. The error bars are lost."""
        return replace(self, value=function(self.value), _noisy=None)

    def merge_small_groups(self, *, below: float) -> MergedRelease:
        """Post-processing: all groups whose number is below this as one last group, "(other)"."""
        return merge_small_groups(self, below=below)

    def to_json(self) -> str:
        """The whole release as text; ``from_json`` reads it back."""
        content = {
            "discreet_release": VERSION,
            "title": self.title,
            "question": self.query_text,
            "value": self.value,
            "guarantee": json.loads(self.guarantee.to_json()),
            "receipt": receipt_content(self.receipt),
            "mechanism": self.mechanism,
            "protects": self.privacy_statement,
            "answer": None if self._noisy is None else self._answer.content(),
        }
        try:
            return json.dumps(content, indent=1)
        except TypeError:
            raise Unsupported("A mapped value must be made of what JSON knows.") from None

    @classmethod
    def from_json(cls, text: str) -> Release:
        """The release of a text; numbers that do not follow from its noisy sums are refused."""
        with canonical.reading("a release"):
            content = json.loads(text)
            if content["discreet_release"] != VERSION:
                raise InvalidArgument("text is a release of another version.")
            held = content["answer"]
            answer = None if held is None else NoisyAnswer.read(held)
            made = cls(
                title=content["title"],
                query_text=content["question"],
                value=content["value"] if answer is None else value_of(answer),
                guarantee=Guarantee.from_json(json.dumps(content["guarantee"])),
                receipt=read_receipt(content["receipt"]),
                mechanism=content["mechanism"],
                privacy_statement=content["protects"],
                _noisy=answer,
            )
        stated = content["value"]
        if answer is not None and made.value != (tuple(stated) if answer.names else stated):
            raise InvalidArgument("text states a value that its noisy sums do not give.")
        return made

    def __str__(self) -> str:
        lines = [
            f"{self.title} ({describe_epsilon(self.guarantee)}, {self.guarantee.relation.value})"
        ]
        if self._noisy is None:
            return "\n".join([*lines, f"  {self.value}  (mapped: no error bars)"])
        rows = self.rows()
        for row in rows[:_SHOWN]:
            key = ", ".join(str(row[name]) for name in self.key_columns)
            bars = "no interval: chosen by rank"
            if row["low"] is not None:
                bars = f"95% between {_short(row['low'])} and {_short(row['high'])}"
            lines.append(f"  {key + ': ' if key else ''}{_short(row['value'])}  ({bars})")
        if not rows:
            lines.append("  none")
        if len(rows) > _SHOWN:
            lines.append(f"  ... and {len(rows) - _SHOWN} more")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return str(self)

    @property
    def _answer(self) -> NoisyAnswer:
        if self._noisy is None:
            raise Unsupported("A mapped release has no error bars: ask the one it came from.")
        return self._noisy

    def _shaped(self, numbers: Sequence[float] | Sequence[None]) -> Any:
        return tuple(numbers) if self._answer.names else numbers[0]


def describe_epsilon(guarantee: Guarantee, *, delta: float = DELTA) -> str:
    """Epsilon in words, with a delta where there must be one."""
    pure = guarantee.epsilon(0.0)
    if math.isfinite(pure):
        return f"epsilon {pure:.4g}"
    shown = stated_delta(guarantee, delta=delta)
    return f"epsilon {guarantee.epsilon(shown):.4g} at delta {shown:g}"


def stated_delta(guarantee: Guarantee, *, delta: float = DELTA) -> float:
    """The delta at which epsilon is told: larger where a mechanism itself has a larger one."""
    while delta < _LARGEST_DELTA and not math.isfinite(guarantee.epsilon(delta)):
        delta = float(f"{10 * delta:.3g}")
    return delta


def value_of(answer: NoisyAnswer) -> Any:
    """A number without groups, a tuple with."""
    return tuple(answer.values) if answer.names else answer.values[0]


def _short(number: float) -> str:
    return f"{number:,}" if isinstance(number, int) else f"{number:,.6g}"


def _html_row(cells: Iterable[object]) -> str:
    return f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in cells)}</tr>"


def receipt_content(receipt: Receipt) -> dict[str, Any]:
    """The receipt as JSON."""
    return {
        "account": receipt.account,
        "sequence": receipt.sequence,
        "hash": receipt.hash,
        "guarantee": json.loads(receipt.guarantee.to_json()),
        "label": receipt.label,
        "time": receipt.time.isoformat(),
        "request_id": receipt.request_id,
        "replayed": receipt.replayed,
    }


def read_receipt(content: Mapping[str, Any]) -> Receipt:
    """The inverse of ``receipt_content``."""
    return Receipt(
        account=content["account"],
        sequence=check.count("sequence", content["sequence"]),
        hash=content["hash"],
        guarantee=Guarantee.from_json(json.dumps(content["guarantee"])),
        label=content["label"],
        time=dt.datetime.fromisoformat(content["time"]),
        request_id=content["request_id"],
        replayed=content["replayed"],
    )

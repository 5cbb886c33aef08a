"""Releases: a value with its error, its guarantee and the receipt of the ledger."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

from discreet.accounting.guarantee import Guarantee, describe_epsilon
from discreet.core import _validate as check
from discreet.core import canonical_json as canonical
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.core.relation import NeighboringRelation
from discreet.core.tabular import Record
from discreet.data.program import Key
from discreet.data.schema import OTHER
from discreet.data.unit import unit_words
from discreet.ledger.account import Account, Receipt, Reservation, shorten_label
from discreet.noise.random_source import RandomSource
from discreet.query._answer import answer_content, read_estimator, read_keys, read_parts
from discreet.query._bound_suggestions import sum_width
from discreet.query._estimate import Estimator, SumEstimator
from discreet.query._noisy_integers import NoisyIntegers
from discreet.query._release_plan import TableSpec, name_noise, noise_words
from discreet.query.result import Result, records, row_lines
from discreet.tables._about import about_facts

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
        else f"any one {unit_words(setting.privacy_unit)}, with all its rows,"
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
class MergedRelease(Result):
    """Hold a release whose small groups are merged. See `Release.merge_small_groups`.

    Attributes:
        release: Release before merging.
        kept: Positions of the groups that stay.
        merged: Positions of the groups that are merged into the last one.

    Examples:
        >>> import discreet
        >>> import pandas as pd
        >>> account = discreet.Ledger("memory://").account("demo", limit=discreet.pure_dp(50))
        >>> rows = pd.DataFrame({"pet": ["cat"] * 900 + ["dog"] * 90 + ["newt", "owl"]})
        >>> columns = {"pet": discreet.category(["cat", "dog", "newt", "owl"], include_other=False)}
        >>> people = discreet.table(rows, columns=columns, account=account)
        >>> merged = people.count(by="pet", epsilon=5).merge_small_groups(below=50)
        >>> merged.keys
        (('cat',), ('dog',), ('(other)',))
    """

    release: Release
    kept: tuple[int, ...]
    merged: tuple[int, ...]

    @property
    def keys(self) -> tuple[Key, ...]:
        """The keys of the groups."""
        known = tuple(self.release.keys[place] for place in self.kept)
        return (*known, (OTHER,) * len(self.release.key_columns)) if self.merged else known

    @property
    def guarantee(self) -> Guarantee:
        """That of the release; merging costs nothing."""
        return self.release.guarantee

    @property
    def about(self) -> tuple[str, ...]:
        """What the numbers leave out, in sentences; see `Release.about`."""
        return self.release.about

    @property
    def value(self) -> tuple[int | float, ...]:
        """The published numbers in the order of the keys."""
        return self._picked(self.release.value, sum)

    @property
    def std(self) -> tuple[float, ...]:
        """Noise standard deviation; it does not include that small groups were chosen."""
        return self._picked(self.release.std, lambda many: math.hypot(*many))

    def interval(self, confidence: float = _LEVEL) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Return bounds that hold the numbers without noise.

        They hold for the merged group too, although its members were chosen by their noisy numbers.

        Args:
            confidence: Probability with which each interval holds, between 0 and 1.

        Returns:
            Lower and upper ends, in the order of the keys.

        Raises:
            InvalidArgument: The confidence is not between 0 and 1.

        Examples:
            >>> low, high = merged.interval(0.9)
            >>> all(a <= b for a, b in zip(low, high))
            True
        """
        # Theorem: also for the merged group, although its members were chosen by their noisy
        #   values.
        # Proof: with n groups there are C(n, k) choices of k members. The bound on the sum of k
        #   noises holds for all of these sums at once, and for all k at once (`sum_width`).
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

    def rows(self, confidence: float = _LEVEL) -> list[Record]:
        """List one record for each group.

        Args:
            confidence: Probability with which each interval holds, between 0 and 1.

        Returns:
            Dictionaries with the keys, and `value`, `std`, `low` and `high`.

        Examples:
            >>> [row["pet"] for row in merged.rows()]
            ['cat', 'dog', '(other)']
        """
        low, high = self.interval(confidence)
        return records(
            self.release.key_columns, self.keys, value=self.value, std=self.std, low=low, high=high
        )

    def __str__(self) -> str:
        merged = f"{len(self.merged)} small groups merged into {OTHER!r}"
        return "\n".join([f"{_heading(self.release)}; {merged}", *row_lines(self.rows())])

    __repr__ = __str__

    def _picked(self, numbers: Sequence[Any], together: Any) -> tuple[Any, ...]:
        kept = tuple(numbers[place] for place in self.kept)
        if not self.merged:
            return kept
        return (*kept, together([numbers[place] for place in self.merged]))


def merge_small_groups(release: Release, *, below: float) -> MergedRelease:
    """Put all groups whose published number is below this into one, the last."""
    _measured(release)
    if not release.key_columns:
        raise InvalidArgument("merge_small_groups needs a release with groups.")
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


def _measured(release: Release) -> tuple[NoisyIntegers, SumEstimator]:
    estimator = release._estimator
    if not isinstance(estimator, SumEstimator) or len(release._parts) != 1:
        raise Unsupported("Only counts and sums that were measured directly can be merged.")
    if release._parts[0].name == SELECTED:
        raise Unsupported("Ask for counts by these keys, and merge those: hidden keys bias these.")
    return release._parts[0], estimator


# ── Releases ─────────────────────────────────────────────────────────────────────────────────────


VERSION = 1
_RANKED = "no interval: chosen by rank"


@dataclass(frozen=True, slots=True, kw_only=True)
class Release(Result):
    """Hold a published result with its error, its guarantee and its receipt.

    The methods of `Table` return releases. Everything that you compute from a release is
    post-processing and costs nothing.

    Attributes:
        title: Title of the query.
        query_text: Query in words.
        value: Published number, or a tuple of numbers in the order of `keys` if there are groups.
        guarantee: Privacy guarantee of this release.
        receipt: Entry of the ledger that paid for it.
        mechanism: Mechanisms that added the noise, in words.
        privacy_statement: Who is protected, and how much of each privacy unit is used, in words.
        facts: What was declared and planned, for the card of the release: columns, limits, events
            and noise. None for releases of version 0.1.

    Raises:
        InvalidArgument: The noisy sums, the names and the keys do not fit each other.

    Examples:
        >>> import discreet
        >>> import pandas as pd
        >>> account = discreet.Ledger("memory://").account("demo", limit=discreet.pure_dp(50))
        >>> rows = pd.DataFrame({"age": [23, 35, 41, 67] * 50, "smokes": [True, False] * 100})
        >>> columns = {"age": discreet.integer(0, 120), "smokes": discreet.boolean()}
        >>> people = discreet.table(rows, columns=columns, account=account)
        >>> release = people.count(by="smokes", epsilon=1)
        >>> release.keys, release.key_columns
        (((False,), (True,)), ('smokes',))
        >>> release.guarantee.epsilon()
        1.0
    """

    title: str
    query_text: str
    value: Any = None
    guarantee: Guarantee
    receipt: Receipt
    mechanism: str
    privacy_statement: str
    facts: Mapping[str, object] | None = field(default=None, repr=False, compare=False)
    _names: tuple[str, ...] = ()
    _keys: tuple[Key, ...] = ()
    _parts: tuple[NoisyIntegers, ...] = ()
    """What was measured, with noise, for each key."""
    _estimator: Estimator | None = None
    """How values, errors and intervals follow from it; None if the value was mapped."""
    _independent: bool = False
    """Whether a unit gives at most one row to a group, so that rows are as independent as units."""

    def __post_init__(self) -> None:
        estimator = self._estimator
        if estimator is None:
            return
        if not {len(key) for key in self._keys} <= {len(self._names)}:
            raise InvalidArgument("An answer needs a value for each name in each key.")
        estimator.check(self._parts, len(self._keys))
        # The value follows from what was measured: it cannot be stated otherwise.
        object.__setattr__(self, "value", self._shaped(estimator.values(self._parts)))

    @property
    def keys(self) -> tuple[Key, ...]:
        """Public keys of the groups: tuples with one value for each of `key_columns`."""
        self._read_by  # noqa: B018 - the groups of a mapped value are not known
        return self._keys

    @property
    def key_columns(self) -> tuple[str, ...]:
        """Names of the grouping columns."""
        self._read_by  # noqa: B018 - as for `keys`
        return self._names

    @property
    def std(self) -> Any:
        """Noise standard deviation, in the shape of `value`; None for quantiles."""
        return self._shaped(self._read_by.std(self._parts))

    @property
    def about(self) -> tuple[str, ...]:
        """What the number leaves out, and what its interval covers, in sentences.

        Contribution limits, filter, bounds, and what happens with unknown values. It follows from
        the query and the declarations alone, so it is public and costs nothing.

        Examples:
            >>> for sentence in people.mean("age", epsilon=1).about:
            ...     print(sentence)
            no contribution limit leaves rows out
            values of age below 0 or above 120 count as the bound
            values of age are rounded to whole numbers
            rows in which age is unknown are left out
            the interval covers the noise only
        """
        # Releases of version 0.1 have no facts.
        told = (self.privacy_statement,) if self.facts is None else tuple(about_facts(self.facts))
        if self._estimator is None:
            covers = "the value was mapped, so it has no interval"
        elif not self._has_interval:
            covers = "the value was chosen by rank, so it has no interval"
        else:
            covers = "the interval covers the noise only"
        return (*told, covers)

    @property
    def noise(self) -> str:
        """The noise: "laplace", "gaussian", or "exponential" for a choice by rank."""
        self._read_by  # noqa: B018 - a mapped value has none
        return name_noise([part.noise for part in self._parts])

    def interval(self, confidence: float = _LEVEL, *, sampling: bool = False) -> tuple[Any, Any]:
        """Return bounds that hold the number without noise.

        Without `sampling` the interval covers the noise only, not clipping and not the sampling of
        the rows. Each group's interval holds on its own.

        Args:
            confidence: Probability with which the interval holds the exact number, between 0 and 1.
            sampling: Whether the interval also covers sampling error. Then it holds what the
                release estimates in the population, if the privacy units were drawn independently.
                For counts, means and quantiles, with one row per privacy unit in each group.

        Returns:
            Lower and upper ends, each in the shape of `value`.

        Raises:
            Unsupported: There is no interval: the value was mapped, or chosen by rank.

        Examples:
            >>> release = people.count(epsilon=1)
            >>> low, high = release.interval(0.99)
            >>> low <= release.value <= high
            True
        """
        low, high = self._ends(confidence, sampling=sampling)
        return self._shaped(low), self._shaped(high)

    def rows(self, confidence: float = _LEVEL) -> list[Record]:
        """Return one record for each group.

        Args:
            confidence: Probability with which the interval holds the exact number, between 0 and 1.

        Returns:
            Dictionaries with the keys, and `value`, `std`, `low` and `high` (None where there is
            none).

        Examples:
            >>> list(people.count(by="smokes", epsilon=1).rows()[0])
            ['smokes', 'value', 'std', 'low', 'high']
        """
        estimator = self._read_by
        low, high = self._ends(confidence) if self._has_interval else (None, None)
        return records(
            self._names,
            self._keys,
            value=self.value if self._names else [self.value],
            std=estimator.std(self._parts),
            low=low,
            high=high,
        )

    def to_html(self, confidence: float | None = None) -> str:
        """Return the first groups as an HTML table, with `about` below it.

        Args:
            confidence: Probability with which each interval holds; 0.95 if None.

        Returns:
            A table and a paragraph with the sentences of `about`.

        Raises:
            Unsupported: The value was mapped.

        Examples:
            >>> "count as the bound" in people.mean("age", epsilon=1).to_html()
            True
        """
        # Dataclasses with slots are made twice, and `super()` would know the first one.
        return f"{Result.to_html(self, confidence)}<p>{escape('; '.join(self.about))}</p>"

    def _repr_html_(self) -> str:
        """The first groups as a table, for notebooks; errors stand beside the numbers."""
        return f"<pre>{escape(str(self))}</pre>" if self._estimator is None else self.to_html()

    def map(self, function: Callable[[Any], Any]) -> Release:
        """Apply a function to the value.

        This is post-processing: it costs nothing. The intervals are lost.

        Args:
            function: Function of `value`, for example `round`.

        Returns:
            A release with the new value, and the same guarantee and receipt.

        Examples:
            >>> people.count(epsilon=1).map(lambda count: max(count, 0)).value >= 0
            True
        """
        bare = replace(self, _names=(), _keys=(), _parts=(), _estimator=None, _independent=False)
        return replace(bare, value=function(self.value))

    def merge_small_groups(self, *, below: float) -> MergedRelease:
        """Merge the groups with small published numbers into one, "(other)".

        This is post-processing: it costs nothing. For counts and sums with groups.

        Args:
            below: Groups whose published number is below this are merged.

        Returns:
            A release whose last group holds the sum of the merged ones. Its intervals hold although
            the groups were chosen by their noisy numbers.

        Raises:
            InvalidArgument: The release has no groups.
            Unsupported: The release is not of counts or sums.

        Examples:
            >>> people.count(by="smokes", epsilon=1).merge_small_groups(below=1000).keys
            (('(other)',),)
        """
        return merge_small_groups(self, below=below)

    def to_json(self) -> str:
        """Return the whole release as JSON text, for `from_json`.

        Returns:
            Text with the value, the error, the guarantee and the receipt.

        Raises:
            Unsupported: A mapped value is of a type that JSON does not have.

        Examples:
            >>> release = people.count(epsilon=1)
            >>> discreet.Release.from_json(release.to_json()).value == release.value
            True
        """
        content = {
            "discreet_release": VERSION,
            "title": self.title,
            "question": self.query_text,
            "value": self.value,
            "guarantee": json.loads(self.guarantee.to_json()),
            "receipt": receipt_content(self.receipt),
            "mechanism": self.mechanism,
            "protects": self.privacy_statement,
            "answer": self._content(),
        }
        if self.facts is not None:
            content["facts"] = dict(self.facts)
            content["about"] = list(self.about)  # for other readers: it follows from the facts
        try:
            return json.dumps(content, indent=1)
        except TypeError:
            raise Unsupported("A mapped value must be made of what JSON knows.") from None

    @classmethod
    def from_json(cls, text: str) -> Release:
        """Read a release back from the text of `to_json`.

        Args:
            text: Text of `to_json`.

        Returns:
            The release.

        Raises:
            InvalidArgument: The text is no release, or states numbers that do not follow from its
                noisy sums.

        Examples:
            >>> text = people.count(epsilon=1).to_json()
            >>> discreet.Release.from_json(text).title
            'count'
        """
        with canonical.reading("a release"):
            content = json.loads(text)
            if content["discreet_release"] != VERSION:
                raise InvalidArgument("text is a release of another version.")
            held = content["answer"]
            answer: dict[str, Any] = {"value": content["value"]}
            if held is not None:
                answer = {
                    "_names": tuple(held["names"]),
                    "_keys": read_keys(held),
                    "_parts": read_parts(held),
                    "_estimator": read_estimator(held["scale"]),
                    "_independent": held.get("independent", False) is True,
                }
            made = cls(
                title=content["title"],
                query_text=content["question"],
                guarantee=Guarantee.from_json(json.dumps(content["guarantee"])),
                receipt=read_receipt(content["receipt"]),
                mechanism=content["mechanism"],
                privacy_statement=content["protects"],
                facts=content.get("facts"),
                **answer,
            )
            made.about  # noqa: B018 - facts without what every sentence needs are no release
        stated = content["value"]
        if held is not None and made.value != (tuple(stated) if made._names else stated):
            raise InvalidArgument("text states a value that its noisy sums do not give.")
        return made

    def __str__(self) -> str:
        if self._estimator is None:
            return f"{_heading(self)}\n  {self.value}  (mapped: no error bars)"
        return "\n".join([_heading(self), *row_lines(self.rows(), none=_RANKED)])

    def __repr__(self) -> str:
        return str(self)

    def _title(self) -> str:
        return self.title

    @property
    def _read_by(self) -> Estimator:
        if self._estimator is None:
            raise Unsupported("A mapped release has no error bars: ask the one it came from.")
        return self._estimator

    @property
    def _has_interval(self) -> bool:
        """Whether there are bounds at all: a choice has none."""
        return all(part.noise is not None for part in self._parts)

    def _ends(
        self, confidence: float, *, sampling: bool = False
    ) -> tuple[Sequence[float], Sequence[float]]:
        """Bounds that hold the answer without noise, each with probability at least ``confidence``.

        With ``sampling`` they hold what the answer estimates in the population.
        """
        estimator = self._read_by
        if not self._keys:  # a discovery that found none
            return [], []
        inside = float(check.probability("confidence", confidence, zero=False, one=False))
        if sampling and not self._independent:
            raise Unsupported(
                "sampling=True needs independent rows, but a unit may have several in a group, and "
                "rows of one unit are alike: use max_rows_per_unit=1 or "
                "max_rows_per_unit_per_group=1."
            )
        return estimator.interval(self._parts, inside, sampling=sampling)

    def _content(self) -> dict[str, Any] | None:
        """What was measured, as JSON."""
        if self._estimator is None:
            return None
        return answer_content(
            self.title,
            self._names,
            self._keys,
            estimator=self._estimator,
            parts=self._parts,
            independent=self._independent,
        )

    def _shaped(self, numbers: Sequence[float] | Sequence[None]) -> Any:
        return tuple(numbers) if self._names else numbers[0]


def _heading(release: Release) -> str:
    guarantee = release.guarantee
    told = [describe_epsilon(guarantee), guarantee.relation.value]
    if release._estimator is not None:
        told.append(noise_words(release.noise))
    return f"{release.title} ({', '.join(told)})"


def receipt_content(receipt: Receipt) -> dict[str, Any]:
    """The receipt as JSON; that it is not durable is told, that it is goes without saying."""
    return ({} if receipt.durable else {"durable": False}) | {
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
        durable=content.get("durable", True),
    )

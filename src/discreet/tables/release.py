"""What leaves the house: a value with its error, its guarantee and its receipt."""

from __future__ import annotations

import datetime as dt
import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from discreet.accounting.guarantee import Guarantee
from discreet.core import canonical, check
from discreet.core.errors import InvalidArgument, Unsupported
from discreet.data.plan import Key
from discreet.ledger.account import Receipt
from discreet.queries.answer import Answer
from discreet.tables.fold import Folded, fold

VERSION = 1
DELTA = 1e-6
"""Where epsilon is told of guarantees that have no pure one."""
_LARGEST_DELTA = 0.01
_SHOWN = 20
_LEVEL = 0.95


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A published answer with its error, its guarantee and the receipt of the ledger.

    ``value`` is one number without groups, else a tuple of numbers in the order of ``keys``.
    """

    title: str
    question: str
    value: Any
    guarantee: Guarantee
    receipt: Receipt
    mechanism: str
    protects: str
    answer: Answer | None = None

    @property
    def keys(self) -> tuple[Key, ...]:
        """The public keys of the groups."""
        return self._answer.keys

    @property
    def names(self) -> tuple[str, ...]:
        """What the keys are values of."""
        return self._answer.names

    @property
    def std(self) -> Any:
        """Standard deviation of the noise, in the shape of the value; None for quantiles."""
        return self._shaped(self._answer.std)

    def interval(self, level: float = _LEVEL, *, sampling: bool = False) -> tuple[Any, Any]:
        """Bounds that hold the answer without noise, each with probability at least ``level``.

        With ``sampling`` they hold what the answer estimates in the population, if the units were
        drawn independently: for counts, means and quantiles, with one row of each unit in a group.
        """
        low, high = self._answer.interval(level, sampling=sampling)
        return self._shaped(low), self._shaped(high)

    def rows(self, level: float = _LEVEL) -> list[dict[str, Any]]:
        """One record for each group: keys, value, std, low, high (None where there is none)."""
        answer = self._answer
        none = [None] * len(answer.keys)
        low, high = answer.interval(level) if answer.has_interval else (none, none)
        columns = zip(answer.keys, answer.values, answer.std, low, high, strict=True)
        return [
            {**dict(zip(answer.names, key, strict=True)), "value": v, "std": s, "low": a, "high": b}
            for key, v, s, a, b in columns
        ]

    def _repr_html_(self) -> str:
        """The first groups as a table, for notebooks; errors stand beside the numbers."""
        if self.answer is None:
            return f"<pre>{escape(str(self))}</pre>"
        rows = self.rows()
        table: list[Iterable[object]] = [(*self.names, "value", "low", "high")]
        for row in rows[:_SHOWN]:
            numbers = ("" if row[x] is None else _short(row[x]) for x in ("value", "low", "high"))
            table.append((*(row[name] for name in self.names), *numbers))
        title = escape(f"{self.title} ({worth(self.guarantee)}, {self.guarantee.relation.value})")
        more = f"<p>... and {len(rows) - _SHOWN:,} more</p>" if len(rows) > _SHOWN else ""
        return f"<p>{title}</p><table>{''.join(map(_html_row, table))}</table>{more}"

    def map(self, function: Callable[[Any], Any]) -> Release:
        """Post-processing: any function of the value, at no cost. The error bars are lost."""
        return replace(self, value=function(self.value), answer=None)

    def fold(self, *, below: float) -> Folded:
        """Post-processing: all groups whose number is below this as one last group, "(other)"."""
        return fold(self, below=below)

    def to_json(self) -> str:
        """The whole release as text; ``from_json`` reads it back."""
        content = {
            "discreet_release": VERSION,
            "title": self.title,
            "question": self.question,
            "value": self.value,
            "guarantee": json.loads(self.guarantee.to_json()),
            "receipt": receipt_content(self.receipt),
            "mechanism": self.mechanism,
            "protects": self.protects,
            "answer": None if self.answer is None else self.answer.content(),
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
            answer = None if held is None else Answer.read(held)
            made = cls(
                title=content["title"],
                question=content["question"],
                value=content["value"] if answer is None else value_of(answer),
                guarantee=Guarantee.from_json(json.dumps(content["guarantee"])),
                receipt=read_receipt(content["receipt"]),
                mechanism=content["mechanism"],
                protects=content["protects"],
                answer=answer,
            )
        stated = content["value"]
        if answer is not None and made.value != (tuple(stated) if answer.names else stated):
            raise InvalidArgument("text states a value that its noisy sums do not give.")
        return made

    def __str__(self) -> str:
        lines = [f"{self.title} ({worth(self.guarantee)}, {self.guarantee.relation.value})"]
        if self.answer is None:
            return "\n".join([*lines, f"  {self.value}  (mapped: no error bars)"])
        rows = self.rows()
        for row in rows[:_SHOWN]:
            key = ", ".join(str(row[name]) for name in self.names)
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
    def _answer(self) -> Answer:
        if self.answer is None:
            raise Unsupported("A mapped release has no error bars: ask the one it came from.")
        return self.answer

    def _shaped(self, numbers: Sequence[float] | Sequence[None]) -> Any:
        return tuple(numbers) if self._answer.names else numbers[0]


def worth(guarantee: Guarantee, *, delta: float = DELTA) -> str:
    """Epsilon in words, with a delta where there must be one."""
    pure = guarantee.epsilon(0.0)
    if math.isfinite(pure):
        return f"epsilon {pure:.4g}"
    shown = told_delta(guarantee, delta=delta)
    return f"epsilon {guarantee.epsilon(shown):.4g} at delta {shown:g}"


def told_delta(guarantee: Guarantee, *, delta: float = DELTA) -> float:
    """The delta at which epsilon is told: larger where a mechanism itself has a larger one."""
    while delta < _LARGEST_DELTA and not math.isfinite(guarantee.epsilon(delta)):
        delta = float(f"{10 * delta:.3g}")
    return delta


def value_of(answer: Answer) -> Any:
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

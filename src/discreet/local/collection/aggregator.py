"""The aggregator: a sum of reports that can be split, merged, stored and resumed."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Sequence
from functools import partial
from hashlib import sha256
from typing import Any

import numpy as np

from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument
from discreet.data.source import SparkSource, run_sealed
from discreet.local.collection._report_frames import Piece, open_reports, pieces, rows
from discreet.local.randomizer import LocalRandomizer, Reports
from discreet.local.registry import randomizer_from_json

_MAGIC = b"discreet aggregate 1\n"
# Reports, refused, length of the description, number of counts: all little-endian.
_HEAD = struct.Struct("<QQQQ")
_DIGEST = 16
_LARGEST = (1 << 63) - 1


class Aggregator:
    """Count reports of a local randomizer.

    Aggregators of disjoint reports merge by addition. The order of reports and merges does not
    matter.

    Args:
        randomizer: Local randomizer that made the reports.

    Raises:
        InvalidArgument: `randomizer` is no local randomizer.

    Examples:
        >>> from discreet import local
        >>> randomizer = local.grr(categories=4, epsilon=1)
        >>> aggregator = local.Aggregator(randomizer)
        >>> aggregator.add(randomizer.randomize([0, 1, 2, 2] * 100)).reports
        400
    """

    __slots__ = ("counts", "randomizer", "refused", "reports")
    __hash__ = None  # type: ignore[assignment]  # it changes

    def __init__(self, randomizer: LocalRandomizer) -> None:
        if not isinstance(randomizer, LocalRandomizer):
            raise InvalidArgument(
                "randomizer must be one, such as discreet.local.oue(categories=9, epsilon=1); got "
                f"{type(randomizer).__name__}."
            )
        self.randomizer = randomizer
        self.counts = np.zeros(randomizer.size, dtype=np.int64)
        self.reports = 0
        self.refused = 0

    def add(self, reports: Reports | bytes | Sequence[bytes]) -> Aggregator:
        """Count reports. Malformed ones are refused and counted in `refused`.

        Args:
            reports: Array with one row of bytes for each report, a bytes object with many reports
                one after the other, or a list of single reports.

        Returns:
            This aggregator.

        Examples:
            >>> aggregator.add(randomizer.randomize([3])).reports
            401
        """
        lines = self._rows(reports)
        if lines.shape[1] != self.randomizer.width:
            self.refused += len(lines)
            return self
        tally = self.randomizer.tally(lines)
        self.counts += tally.counts
        self.reports += tally.accepted
        self.refused += tally.refused
        return self

    @classmethod
    def from_frame(
        cls, frame: object, randomizer: LocalRandomizer, *, column: str = "report"
    ) -> Aggregator:
        """Count the reports in a column of a frame, relation, file or Arrow stream.

        Args:
            frame: What `discreet.table` takes: DuckDB, Polars, pandas, PyArrow, a path. Each
                partition of a Spark frame is counted where it is.
            randomizer: Local randomizer that made the reports.
            column: Name of the column with the reports.

        Returns:
            A new aggregator.

        Examples:
            >>> import pandas as pd
            >>> reports = [bytes(row) for row in randomizer.randomize([0, 1])]
            >>> local.Aggregator.from_frame(pd.DataFrame({"report": reports}), randomizer).reports
            2
        """
        source = open_reports(frame, column)
        if isinstance(source, SparkSource):
            return _sum_spark(source, randomizer, column)
        return run_sealed("reading the reports", lambda: _count(pieces(source, column), randomizer))

    def _rows(self, reports: Reports | bytes | Sequence[bytes]) -> Reports:
        width = self.randomizer.width
        if isinstance(reports, np.ndarray):
            if reports.ndim != 2 or reports.dtype != np.uint8:
                raise InvalidArgument(
                    "reports must be rows of bytes: an array of two dimensions of uint8, "
                    f"got {reports.ndim} of {reports.dtype}."
                )
            return reports
        if isinstance(reports, (bytes, bytearray, memoryview)):
            joined = bytes(reports)
            whole = len(joined) - len(joined) % width
            self.refused += whole < len(joined)  # the last one was cut off
            return np.frombuffer(joined[:whole], dtype=np.uint8).reshape(-1, width)
        listed: tuple[object, ...] = check.as_tuple("reports", reports)
        # What one client sent, of whatever type, must not stop the count of all.
        sent = [bytes(one) for one in listed if isinstance(one, bytes | bytearray | memoryview)]
        if listed and not sent:
            raise InvalidArgument("reports must be bytes, a list of bytes, or an array of uint8.")
        fitting = [report for report in sent if len(report) == width]
        self.refused += len(listed) - len(fitting)
        return np.frombuffer(b"".join(fitting), dtype=np.uint8).reshape(-1, width)

    def merge(self, other: Aggregator) -> Aggregator:
        """Add the counts of another aggregator of the same collection.

        Args:
            other: Aggregator of other reports.

        Returns:
            This aggregator.

        Raises:
            InvalidArgument: The other aggregator is of another collection.

        Examples:
            >>> aggregator.merge(aggregator.copy()).reports
            802
        """
        if not isinstance(other, Aggregator):
            raise InvalidArgument(f"other must be an aggregate, got {type(other).__name__}.")
        if self.randomizer != other.randomizer:
            raise InvalidArgument(
                "Both aggregates must belong to the same collection, got "
                f"{self.randomizer.fingerprint} and {other.randomizer.fingerprint}."
            )
        self.counts += other.counts
        self.reports += other.reports
        self.refused += other.refused
        return self

    def empty(self) -> Aggregator:
        """Create an aggregator of the same collection without reports.

        Returns:
            A new aggregator.

        Examples:
            >>> aggregator.empty().reports
            0
        """
        return Aggregator(self.randomizer)

    def copy(self) -> Aggregator:
        """Copy the counts into a new aggregator.

        Returns:
            A new aggregator.

        Examples:
            >>> aggregator.copy().reports
            802
        """
        return self.empty().merge(self)

    def __add__(self, other: Aggregator) -> Aggregator:
        return self.copy().merge(other)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Aggregator):
            return NotImplemented
        return (
            self.randomizer == other.randomizer
            and (self.reports, self.refused) == (other.reports, other.refused)
            and np.array_equal(self.counts, other.counts)
        )

    def estimate(self) -> Any:
        """Estimate what the randomizer collects, with its error.

        Returns:
            The estimate of the randomizer, for example the shares of the categories.

        Examples:
            >>> estimate = aggregator.estimate()
            >>> len(estimate.shares)
            4
        """
        return self.randomizer.estimate(self.counts, self.reports)

    def to_bytes(self) -> bytes:
        """Save the counts as bytes, for `from_bytes`.

        Returns:
            Bytes to store, or to send to where they are merged.

        Examples:
            >>> local.Aggregator.from_bytes(aggregator.to_bytes()).reports
            802
        """
        description = json.dumps(self.randomizer.describe(), sort_keys=True).encode()
        head = _HEAD.pack(self.reports, self.refused, len(description), len(self.counts))
        body = _MAGIC + head + description + self.counts.astype("<i8").tobytes()
        return body + sha256(body).digest()[:_DIGEST]

    @classmethod
    def from_bytes(cls, state: bytes, randomizer: LocalRandomizer | None = None) -> Aggregator:
        """Read an aggregator from the bytes of `to_bytes`.

        Args:
            state: Bytes of `to_bytes`.
            randomizer: Local randomizer that the counts must belong to. If None, any.

        Returns:
            The aggregator.

        Raises:
            InvalidArgument: The bytes are no aggregator, or of another collection.

        Examples:
            >>> local.Aggregator.from_bytes(aggregator.to_bytes(), randomizer).refused
            0
        """
        body, digest = state[:-_DIGEST], state[-_DIGEST:]
        if not body.startswith(_MAGIC):
            raise InvalidArgument("state is no aggregate of this version of the format.")
        start = len(_MAGIC) + _HEAD.size
        if len(body) < start or sha256(body).digest()[:_DIGEST] != digest:
            raise InvalidArgument("state is cut off or damaged: use the last whole copy.")
        reports, refused, described, size = _HEAD.unpack_from(body, len(_MAGIC))
        text, counts = body[start : start + described], body[start + described :]
        if max(reports, refused) > _LARGEST or len(counts) != 8 * size:
            raise InvalidArgument("state does not hold what it says it holds.")
        try:
            written = json.loads(text)
        except (ValueError, RecursionError):
            raise InvalidArgument("state does not hold what it says it holds.") from None
        found = randomizer_from_json(written) if randomizer is None else randomizer
        if written != json.loads(json.dumps(found.describe())) or size != found.size:
            raise InvalidArgument(
                f"state belongs to another collection than {found.fingerprint}, the one asked for."
            )
        made = cls(found)
        made.counts += np.frombuffer(counts, dtype="<i8")
        made.reports, made.refused = reports, refused
        return made

    def __repr__(self) -> str:
        kind = self.randomizer.kind
        return f"Aggregator({kind}, reports={self.reports:,}, refused={self.refused:,})"


def _count(values: Iterable[Piece], randomizer: LocalRandomizer) -> Aggregator:
    """The sum of the values of a column."""
    total = Aggregator(randomizer)
    for piece in values:
        reports = rows(piece, width=randomizer.width)
        total.add(reports)
        total.refused += len(piece) - len(reports)
    return total


def _merge(states: Iterable[bytes], randomizer: LocalRandomizer) -> Aggregator:
    total = Aggregator(randomizer)
    for state in states:
        total.merge(Aggregator.from_bytes(state, randomizer))
    return total


def _sum_spark(source: SparkSource, randomizer: LocalRandomizer, column: str) -> Aggregator:
    """Each partition is counted where it is; nothing but sums comes back."""
    from discreet.local.collection import _spark_reports  # noqa: PLC0415 - PySpark is optional

    states = _spark_reports.sum_partitions(
        source.frame,
        column,
        count=partial(_count_state, randomizer=randomizer),
        merge=partial(_merge_states, randomizer=randomizer),
    )
    return _merge(states, randomizer)


def _count_state(values: Iterable[Piece], randomizer: LocalRandomizer) -> bytes | None:
    return _state(_count(values, randomizer))


def _merge_states(states: Iterable[bytes], randomizer: LocalRandomizer) -> bytes | None:
    return _state(_merge(states, randomizer))


def _state(total: Aggregator) -> bytes | None:
    """To be sent, unless nothing was seen."""
    return total.to_bytes() if total.reports or total.refused else None

"""Reports in files and pipes: one header that says of which collection, then rows of bytes.

    offset  bytes  what
    0       8      89 44 4C 52 0D 0A 1A 0A: no text file begins so, and no transfer as text keeps it
    8       4      version of this format, 1 (numbers are unsigned, little-endian)
    12      4      width: bytes of one report
    16      4      length of the description
    20      16     identity of this file, drawn when it was begun
    36      16     fingerprint of the description: the first 16 hexadecimal digits of its SHA-256
    52      length description of the collection: JSON in UTF-8
    then           reports, one after the other, until the file ends

A file grows at its end. An unfinished report at the end is not read: its rest may still come. Since
a file keeps its identity when it is copied, moved or sent through a pipe, a server can tell how
much of it has been counted.
"""

from __future__ import annotations

import importlib
import os
import secrets
import struct
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Self

import numpy as np

from discreet.core.errors import InvalidArgument, PrivacyError
from discreet.local.collection.spec import CollectionSpec
from discreet.local.randomizer import Reports

MAGIC = b"\x89DLR\r\n\x1a\n"
VERSION = 1
CHUNK = 1 << 22
"""Bytes that are read at once, give or take a report."""
_FIXED = struct.Struct("<8sIII16s16s")
_LONGEST_DESCRIPTION = 1 << 26
_WIDEST = 1 << 24


class NotReports(PrivacyError):
    """What was read is no file of reports, or one of a version that is not known here."""


class Unfinished(NotReports):
    """The file ends within its header: whoever began it was stopped. It holds no report."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """The beginning of a file of reports: all that is needed to cut the rest into reports."""

    width: int
    identity: str
    fingerprint: str
    description: str

    @property
    def length(self) -> int:
        """Where the first report begins."""
        return _FIXED.size + len(self.description.encode())

    def to_bytes(self) -> bytes:
        """As it stands in the file."""
        text = self.description.encode()
        names = bytes.fromhex(self.identity), self.fingerprint.encode()
        return _FIXED.pack(MAGIC, VERSION, self.width, len(text), *names) + text


def header(collection: CollectionSpec) -> Header:
    """Of a new file, with an identity of its own."""
    return Header(
        width=collection.randomizer.width,
        identity=secrets.token_hex(16),
        fingerprint=collection.fingerprint,
        description=collection.to_json(),
    )


def read_header(stream: BinaryIO) -> Header:
    """Read a header, and leave the stream at the first report."""
    fixed = _read(stream, _FIXED.size)
    if fixed[: len(MAGIC)] != MAGIC[: len(fixed)]:
        raise NotReports("does not begin as a file of reports does.")
    if len(fixed) < _FIXED.size:
        raise Unfinished("ends within its header.")
    _, version, width, length, identity, digits = _FIXED.unpack(fixed)
    if version != VERSION:
        raise NotReports(f"has version {version} of the format; known here is {VERSION}.")
    if not 0 < width <= _WIDEST or length > _LONGEST_DESCRIPTION:
        raise NotReports("has a header with impossible lengths.")
    text = _read(stream, length)
    if len(text) < length:
        raise Unfinished("ends within its header.")
    if sha256(text).hexdigest()[:16].encode() != digits:
        raise NotReports("has a damaged header: description and fingerprint disagree.")
    try:
        description = text.decode()
    except UnicodeDecodeError:
        raise NotReports("has a description that is no text.") from None
    return Header(
        width=width,
        identity=identity.hex(),
        fingerprint=digits.decode(),
        description=description,
    )


def chunks(
    stream: BinaryIO, head: Header, *, skip: int = 0, rows: int | None = None
) -> Iterator[Reports]:
    """All whole reports behind a header but the first ``skip``, so many ``rows`` at a time."""
    per_chunk = rows or max(1, CHUNK // head.width)
    left = skip * head.width
    if left and stream.seekable():
        stream.seek(left, os.SEEK_CUR)
    else:
        while left and (some := stream.read(min(left, CHUNK))):
            left -= len(some)
    while data := _read(stream, per_chunk * head.width):
        whole = len(data) // head.width
        if whole:
            found = np.frombuffer(data, dtype=np.uint8, count=whole * head.width)
            yield found.reshape(whole, head.width)


def _read(stream: BinaryIO, many: int) -> bytes:
    """So many bytes, fewer only at the end: a pipe hands out what it has."""
    parts = []
    while many > 0 and (some := stream.read(many)):
        parts.append(some)
        many -= len(some)
    return parts[0] if len(parts) == 1 else b"".join(parts)


class ReportWriter:
    """Append reports to a file or an open pipe, one writer at a time.

    What an earlier writer left unfinished at the end of the file is cut off. If a `with` block ends
    in an error, the reports that were written in it are removed from a file: repeating the block
    would send them twice.

    Args:
        target: File, which is created if it does not exist, or an open pipe.
        collection: Specification of the collection.
        all_or_none: Whether the reports are also removed if the writer is killed. Until the writer
            is done, readers leave the file out.

    Examples:
        >>> from discreet import local
        >>> from tempfile import TemporaryDirectory
        >>> collection = local.CollectionSpec(randomizer=local.grr(categories=4, epsilon=1))
        >>> with TemporaryDirectory() as folder:
        ...     with local.ReportWriter(f"{folder}/reports", collection) as writer:
        ...         writer.write(collection.randomizer.randomize([0, 1]))
    """

    def __init__(
        self,
        target: str | Path | BinaryIO,
        collection: CollectionSpec,
        *,
        all_or_none: bool = False,
    ) -> None:
        self.width = collection.randomizer.width
        self.written = 0
        self._owned = isinstance(target, str | Path)
        self._mark: Path | None = None
        if isinstance(target, str | Path):
            path = Path(target)
            self._stream = _opened(path, collection)
            try:
                if all_or_none:
                    self._mark = marked(path)
                    _take_back(self._stream, self._mark)
                    _remember(self._mark, self._stream.tell())
            except BaseException:
                self._stream.close()
                raise
            self._start = self._stream.tell()
        else:
            self._stream = target
            self._stream.write(header(collection).to_bytes())

    def write(self, reports: Reports) -> None:
        """Append reports.

        Args:
            reports: Array with one row of bytes for each report.

        Raises:
            InvalidArgument: The reports are not of this collection's size.

        Examples:
            >>> with TemporaryDirectory() as folder:
            ...     with local.ReportWriter(f"{folder}/reports", collection) as writer:
            ...         writer.write(collection.randomizer.randomize([2]))
        """
        try:
            rows = np.ascontiguousarray(reports, dtype=np.uint8)
        except (TypeError, ValueError, OverflowError):
            rows = np.empty(0, dtype=np.uint8)
        if rows.ndim != 2 or rows.shape[1] != self.width:
            raise InvalidArgument(f"reports must be rows of {self.width} bytes, as encode makes.")
        self._stream.write(rows.data if rows.size else b"")
        self.written += len(rows)

    def close(self) -> None:
        """Write everything to the disk and close the file.

        Examples:
            >>> with TemporaryDirectory() as folder:
            ...     writer = local.ReportWriter(f"{folder}/reports", collection)
            ...     writer.close()
        """
        self._stream.flush()
        if self._owned:
            os.fsync(self._stream.fileno())
            if self._mark is not None:
                self._mark.unlink(missing_ok=True)
            self._stream.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is not None and self._owned:
            self._stream.seek(self._start)
            self._stream.truncate()
        self.close()


def marked(path: Path) -> Path:
    """The mark of a file that is being written all or none."""
    return path.with_name(path.name + ".unfinished")


def _take_back(stream: BinaryIO, mark: Path) -> None:
    """Cut off what a writer that was killed left behind its mark."""
    try:
        start = int(mark.read_text())
    except FileNotFoundError:
        return
    except ValueError:
        raise InvalidArgument(f"{mark} is no mark of a writer: remove it.") from None
    if start < stream.tell():
        stream.truncate(start)
        stream.seek(start)


def _remember(mark: Path, start: int) -> None:
    """Bring a mark to the disk, whole, before the first report."""
    new = mark.with_name(mark.name + ".new")
    with new.open("w") as file:
        file.write(str(start))
        file.flush()
        os.fsync(file.fileno())
    new.replace(mark)
    with suppress(OSError):  # a folder cannot be opened everywhere
        folder = os.open(mark.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def _opened(path: Path, collection: CollectionSpec) -> BinaryIO:
    """A file at its end, behind the last whole report."""
    try:
        with suppress(FileExistsError):
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o666))
        stream = path.open("r+b")
    except OSError as error:
        raise InvalidArgument(f"{path} cannot be written ({type(error).__name__}).") from None
    try:
        _lock(stream, path)
        if _begun(stream, path, collection):
            return stream
        stream.seek(0)
        stream.truncate()
        stream.write(header(collection).to_bytes())
        stream.flush()
    except BaseException:
        stream.close()
        raise
    return stream


def _lock(stream: BinaryIO, path: Path) -> None:
    """Until it is closed, where the system can: two writers would cut each other's reports."""
    try:
        fcntl = importlib.import_module("fcntl")
    except ImportError:
        return
    try:
        fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise InvalidArgument(
            f"{path} is being written by someone else: wait, or choose another file."
        ) from None


def _begun(stream: BinaryIO, path: Path, collection: CollectionSpec) -> bool:
    """Whether there is a header; one that a crash cut short may be written again."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(0)
    try:
        head = read_header(stream)
    except Unfinished:
        return False
    except NotReports as error:
        raise InvalidArgument(f"{path} {error} Choose another file.") from None
    if head.description != collection.to_json() or head.width != collection.randomizer.width:
        raise InvalidArgument(
            f"{path} holds reports of another collection ({head.fingerprint}): choose another file."
        )
    tail = (size - head.length) % head.width
    stream.truncate(size - tail)
    stream.seek(size - tail)
    return True

"""Records of a CSV file: the meaning of each follows from its own bytes.

With ``records="lines"`` a record ends at LF, CRLF or CR, whatever stands in it, so that no quote of
one person can reach into another's record. Blank lines are no records. A line with another number
of fields, with an open quote, with text behind a closing quote, that is not UTF-8, holds NUL, or is
longer than `LONGEST` bytes is *malformed*: one record whose values are all missing.

With ``records="quoted"`` a quoted field may hold line breaks. Then one open quote changes all later
records, so the whole file is checked before it is opened, and refused if it is not of RFC 4180.
"""

# Theorem: let x be a record, inserted anywhere between two records of a file. The other records are
#   read as before, and reading cannot fail with x or without it.
# Proof: the file is cut at CR and LF alone, and what a piece between two cuts becomes is a function
#   of its own bytes. Only an LF behind a CR that ends x could join with it to one line end, and
#   before x came that LF ended an empty line, which is no record. An engine is shown the file
#   itself only if all of it is in the dialect that this definition and the engine share, else a
#   copy in that dialect.

from __future__ import annotations

import codecs
import os
import re
import shutil
import tempfile
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from discreet.core.errors import InvalidArgument

Records: TypeAlias = Literal["lines", "quoted"]
Bytes: TypeAlias = NDArray[np.uint8]
Ints: TypeAlias = NDArray[np.int64]
Flags: TypeAlias = NDArray[np.bool_]
T = TypeVar("T")

LONGEST = 2**20
"""Bytes of a record without its line end; a longer one is malformed."""
LONGEST_COPY = 4 * LONGEST
"""Bytes of a record in a copy: each quote may be doubled, and each field put in quotes."""
# A few of these, and the marks of their bytes, stay in a processor's cache.
_BLOCK = 2**18
_LF, _CR, _QUOTE, _SPACE = 10, 13, 34, 32


class PrivateFolder:
    """A folder for copies that only this user can read; it is removed with this object."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="discreet-"))
        weakref.finalize(self, _remove, self.path, os.getpid())


def _remove(path: Path, owner: int) -> None:
    if os.getpid() == owner:  # a forked process must not take it away from its parent
        shutil.rmtree(path, ignore_errors=True)


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvHeader:
    """The first line of a file, and where the rows begin."""

    line: bytes
    end: bytes
    """LF, CRLF, CR, or nothing at the end of the file."""

    @property
    def size(self) -> int:
        """Bytes before the first row."""
        return len(self.line) + len(self.end)


def read_header(path: Path) -> CsvHeader:
    """The first line alone: no row is read."""
    with path.open("rb") as file:
        start = file.read(LONGEST + 2)
    found = re.search(rb"\r\n|\r|\n", start)
    if found is None:
        if len(start) > LONGEST:
            raise InvalidArgument("the first line of a CSV must hold its column names.")
        return CsvHeader(line=start, end=b"")
    return CsvHeader(line=start[: found.start()], end=found[0])


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How a record is cut into fields, and how many of them it has."""

    delimiter: str
    fields: int

    @property
    def separator(self) -> bytes:
        """The delimiter as it stands in the file."""
        return self.delimiter.encode()

    @property
    def field_pattern(self) -> str:
        """One field: quoted, with spaces around it, or as it stands; for Python and for Java."""
        # Possessive: going back would take a stack as deep as the text is long.
        apart, gap = re.escape(self.delimiter), "" if self.delimiter == " " else " *+"
        return rf'{gap}"[^"]*+(?:""[^"]*+)*+"{gap}|(?!{gap}")[^{apart}]*+'

    @property
    def line_pattern(self) -> str:
        """A whole well-formed line."""
        one = f"(?:{self.field_pattern})"
        return rf"{one}(?:{re.escape(self.delimiter)}{one}){{{self.fields - 1}}}"

    @property
    def missing(self) -> bytes:
        """A record without any value."""
        return self.separator * (self.fields - 1) if self.fields > 1 else b'""'


# ── Lines ────────────────────────────────────────────────────────────────────────────────────────


def is_plain(path: Path, dialect: Dialect, header: CsvHeader) -> bool:
    """Whether each line is well-formed and in the dialect that every reader of CSV shares."""
    if header.end not in (b"\n", b"\r\n", b"") or len(dialect.separator) > 1:
        return False
    end = header.end or b"\n"
    names = header.line.removeprefix(codecs.BOM_UTF8) + end
    with path.open("rb") as file:
        file.seek(header.size)
        pieces = _pieces(file, end=end)
        return _plain(names, dialect, end) and all(
            _in_threads(lambda piece: _plain(piece, dialect, end), pieces)
        )


def write_clean(path: Path, target: Path, dialect: Dialect, header: CsvHeader) -> None:
    """Copy a file into the shared dialect; a malformed line becomes a record without values."""
    whole, one = (re.compile(pattern) for pattern in (dialect.line_pattern, dialect.field_pattern))

    def rewritten(line: bytes) -> bytes:
        """The same fields, quoted; or no value at all."""
        text = _decoded(line)
        if len(line) > LONGEST or text is None or "\0" in text or not whole.fullmatch(text):
            return dialect.missing
        fields, place = [], 0
        while place <= len(text) and (found := one.match(text, place)) is not None:
            plain = found[0] if dialect.delimiter == " " else found[0].strip(" ")
            quoted = plain if plain[:1] == '"' else '"' + found[0].replace('"', '""') + '"'
            fields.append(quoted)
            place = found.end() + 1
        return dialect.delimiter.join(fields).encode()

    with path.open("rb") as file, target.open("xb") as out:
        file.seek(header.size)
        out.write(dialect.separator.join(b"c%d" % i for i in range(dialect.fields)) + b"\n")
        pieces = _pieces(file, end=b"\n")
        for piece in _in_threads(lambda piece: _cleaned(piece, dialect, rewritten), pieces):
            out.write(piece)


def numbered_records(
    path: Path, dialect: Dialect, header: CsvHeader
) -> Iterator[tuple[int, list[str] | None]]:
    """Each record of a file of lines: the number of its line, and its fields as they stand.

    A malformed line has no fields. Line 1 is the header; blank lines are no records, but count.
    """
    fields_of = _fields_of(dialect)
    number = 1
    with path.open("rb") as file:
        file.seek(header.size)
        for piece in _pieces(file, end=b"\n"):
            for line in piece.splitlines():
                number += 1
                if _is_text(line):
                    yield number, fields_of(line)


def _fields_of(dialect: Dialect) -> Callable[[bytes], list[str] | None]:
    """The fields of one line, without their quotes; None if it is malformed."""
    whole, one = (re.compile(pattern) for pattern in (dialect.line_pattern, dialect.field_pattern))

    def fields_of(line: bytes) -> list[str] | None:
        text = _decoded(line)
        if len(line) > LONGEST or text is None or "\0" in text or not whole.fullmatch(text):
            return None
        fields, place = [], 0
        while place <= len(text) and (found := one.match(text, place)) is not None:
            plain = found[0] if dialect.delimiter == " " else found[0].strip(" ")
            is_quoted = plain[:1] == '"'
            fields.append(plain[1:-1].replace('""', '"') if is_quoted else found[0])
            place = found.end() + 1
        return fields

    return fields_of


def _pieces(file: BinaryIO, *, end: bytes) -> Iterator[bytes]:
    """Some whole lines at a time; ``end`` is put behind the last line if it has none.

    A line of more than `LONGEST` bytes is not held in memory: NUL, which is malformed as well,
    stands for what was read of it, with a letter if that was not blank. Where a block ends must
    decide nothing: it depends on the lines before.
    """
    rest = b""
    while block := file.read(_BLOCK):
        data = rest + block
        # Behind the last line end; not behind a last CR, which LF may follow.
        cut = max(data.rfind(b"\n"), data.rfind(b"\r", 0, -1)) + 1
        rest = data[cut:]
        if len(rest) > LONGEST + 1:
            mark = b"\0x" if _is_text(rest) else b"\0"
            rest = mark + b"\r" if rest.endswith(b"\r") else mark
        if cut:
            yield data[:cut]
    if rest:
        yield rest if rest.endswith(b"\r") else rest + end


def _is_text(part: bytes) -> bool:
    """Whether there is more than spaces, tabs and other control characters."""
    return bool((np.frombuffer(part, dtype=np.uint8) > _SPACE).any())


def _in_threads(function: Callable[[bytes], T], pieces: Iterator[bytes]) -> Iterator[T]:
    """The results in the order of the pieces, of which only a few are held at once."""
    threads = min(os.cpu_count() or 1, 4)
    with ThreadPoolExecutor(threads) as pool:
        waiting: deque[Future[T]] = deque()
        for piece in pieces:
            waiting.append(pool.submit(function, piece))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()


def _plain(piece: bytes, dialect: Dialect, end: bytes) -> bool:
    """Whether all lines of a piece are plain and end in the same way."""
    a = np.frombuffer(piece, dtype=np.uint8)
    breaks = a == _LF
    many = int(np.count_nonzero(breaks))
    separator = dialect.separator[0]
    marks = a == separator
    marks |= breaks
    if b'"' not in piece:
        places = np.flatnonzero(marks)
    else:
        marks |= a == _QUOTE
        found = np.flatnonzero(marks)
        quote = a[found] == _QUOTE
        # 8 bits: only whether the quotes so far are even in number matters.
        inside = (np.cumsum(quote.view(np.uint8), dtype=np.uint8) & 1).view(np.bool_)
        quotes = found[quote]
        opening, closing = quotes[0::2], quotes[1::2]
        beside = _beside(separator)
        if not (beside[a[opening - 1]].all() and beside[a[closing + 1]].all()):
            return False
        places = found[~(quote | inside)]
    # Then: fields - 1 separators and a line break, again and again.
    ends = places[dialect.fields - 1 :: dialect.fields]
    if many * dialect.fields != len(places) or not (a[ends] == _LF).all():
        return _ends_in(a, ends=np.flatnonzero(breaks), end=end) and _all_plain(a, piece, dialect)
    if not _ends_in(a, ends=ends, end=end) or b"\0" in piece or _decoded(piece) is None:
        return False
    if (separator <= _SPACE or dialect.fields == 1) and (a[_starts(ends)] <= _SPACE).any():
        return _all_plain(a, piece, dialect)  # a line may be blank
    return int(np.diff(ends, prepend=-1).max()) <= LONGEST


def _ends_in(a: Bytes, *, ends: Ints, end: bytes) -> bool:
    """Whether there is no other CR than those before each LF, if they belong there."""
    returns = int(np.count_nonzero(a == _CR))
    if end != b"\r\n":
        return not returns
    return returns == len(ends) and bool((a[ends - 1] == _CR).all())


def _starts(ends: Ints) -> Ints:
    return np.concatenate(([0], ends[:-1] + 1))


def _all_plain(a: Bytes, piece: bytes, dialect: Dialect) -> bool:
    lines = _lines(a, piece, dialect)
    # Readers pass over empty lines, but not in files of one column.
    skipped = (lines.start == lines.end) & (dialect.fields > 1)
    return bool((skipped | (lines.plain & ~lines.blank)).all())


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lines:
    """Where the lines of a piece are, and what they are."""

    start: Ints
    end: Ints
    """Without the line end."""
    after: Ints
    """Where the next line begins."""
    plain: Flags
    blank: Flags
    """Nothing but spaces, tabs and other control characters."""


def _lines(a: Bytes, piece: bytes, dialect: Dialect) -> _Lines:
    breaks = (a == _LF) | (a == _CR)
    pairs = np.flatnonzero((a[1:] == _LF) & (a[:-1] == _CR))
    breaks[pairs + 1] = False
    single = len(dialect.separator) == 1
    separator = dialect.separator[0]
    places = np.flatnonzero(breaks | (a == _QUOTE) | (a == separator))
    kinds, ended = a[places], breaks[places]
    at = np.flatnonzero(ended)
    end = places[at]
    after = end + 1
    after[np.searchsorted(end, pairs)] += 1
    start = np.concatenate(([0], after[:-1]))
    # Within each line: the quotes before a place say whether it is inside of a field.
    quote = kinds == _QUOTE
    quotes = np.cumsum(quote)
    line = np.cumsum(ended) - ended
    before = quotes - quote - np.concatenate(([0], quotes[at][:-1]))[line]
    outside = before % 2 == 0
    fields = np.diff(np.cumsum((kinds == separator) & outside)[at], prepend=0) + 1
    plain = (fields == dialect.fields) & outside[at] & (end - start <= LONGEST) & single
    q = np.flatnonzero(quote)
    plain[line[q][_stray(a, places[q], outside[q], separator)]] = False
    if b"\0" in piece:
        plain[np.searchsorted(end, np.flatnonzero(a == 0))] = False
    if _decoded(piece) is None:
        for i in np.unique(np.searchsorted(end, np.flatnonzero(a > 127))).tolist():
            plain[i] &= _decoded(piece[start[i] : end[i]]) is not None
    blank = ~np.logical_or.reduceat(a > _SPACE, start)
    return _Lines(start=start, end=end, after=after, plain=plain, blank=blank)


def _stray(a: Bytes, places: Ints, opening: Flags, separator: int) -> Flags:
    """Quotes that open within a field, or close before its end; a doubled quote does neither."""
    # Before the first byte comes the last one, which ends a line.
    return ~_beside(separator)[a[np.where(opening, places - 1, places + 1)]]


def _beside(separator: int) -> Flags:
    """What may stand before a quote that opens, and behind one that closes."""
    table = np.zeros(256, dtype=np.bool_)
    table[[separator, _LF, _CR, _QUOTE]] = True
    return table


def _cleaned(piece: bytes, dialect: Dialect, rewritten: Callable[[bytes], bytes]) -> bytes:
    line_end = b"\r\n" if b"\r" in piece else b"\n"
    if len(dialect.separator) == 1 and _plain(piece, dialect, line_end):
        return _with_lf(piece)
    lines = _lines(np.frombuffer(piece, dtype=np.uint8), piece, dialect)
    parts, place = [], 0
    for i in np.flatnonzero(lines.blank | ~lines.plain).tolist():
        start, end = int(lines.start[i]), int(lines.end[i])
        parts.append(_with_lf(piece[place:start]))
        if not lines.blank[i]:
            parts.append(rewritten(piece[start:end]) + b"\n")
        place = int(lines.after[i])
    parts.append(_with_lf(piece[place:]))
    return b"".join(parts)


def _with_lf(lines: bytes) -> bytes:
    return lines.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in lines else lines


def _decoded(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


# ── Quoted line breaks ───────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotedFile:
    """A file of RFC 4180 that was checked as a whole."""

    records: int
    has_breaks: bool
    """Whether a field holds a line break."""


class _Check:
    """What is known after some blocks of a file."""

    def __init__(self, dialect: Dialect, *, crlf: bool) -> None:
        self.dialect, self.crlf = dialect, crlf
        self.records = 0
        self.has_breaks = False
        self.inside = False
        self.line = 1
        """Where the current record begins."""
        self._breaks = 0
        self._fields = 1
        self._size = 0
        self._previous = _LF
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def is_cut(self) -> bool:
        """Whether a quote is open, or a character is cut off."""
        return self.inside or bool(self._decoder.getstate()[0])

    def read(self, block: bytes, path: Path) -> None:
        """Read one more block; it ends in a quote or CR only at the end of the file."""
        a = np.frombuffer(bytes([self._previous]) + block + b"\n", dtype=np.uint8)
        body = a[1:-1]
        separator = self.dialect.separator[0]
        marks = (body == _LF) | (body == _CR) | (body == _QUOTE) | (body == separator)
        places = np.flatnonzero(marks)
        kinds = body[places]
        quote = kinds == _QUOTE
        inside = (np.cumsum(quote.view(np.uint8), dtype=np.uint8) + self.inside) % 2 == 1
        quotes, opening = places[quote], inside[quote]
        beside = _beside(separator)
        wrong = [quotes[~beside[a[np.where(opening, quotes, quotes + 2)]]]]
        breaks = places[(kinds == _LF) & ~inside]
        returns = places[(kinds == _CR) & ~inside]
        if self.crlf:
            wrong += [breaks[a[breaks] != _CR], returns[a[returns + 2] != _LF]]
        else:
            wrong += [returns]
        wrong += [np.flatnonzero(body == 0), self._undecodable(block)]
        ragged, size = self._records(places[(kinds == separator) & ~inside], breaks, len(body))
        wrong += [ragged]
        first = min((int(one[0]) for one in wrong if len(one)), default=None)
        lines = np.flatnonzero(body == _LF)
        ended = breaks if first is None else breaks[breaks < first]
        if len(ended):
            self.line = self._breaks + int(np.searchsorted(lines, ended[-1])) + 2
        if first is not None or size > LONGEST:
            raise _refused(path, self.line)
        self.records += len(breaks)
        self.has_breaks |= bool(inside[(kinds == _LF) | (kinds == _CR)].any())
        self.inside ^= bool(len(quotes) % 2)
        self._breaks += len(lines)
        self._previous, self._size = int(a[-2]), size

    def _records(self, separators: Ints, breaks: Ints, many: int) -> tuple[Ints, int]:
        """Where records of a wrong size end, and how long the record at the end is so far."""
        fields = np.diff(np.searchsorted(separators, breaks), prepend=0) + 1
        sizes = np.diff(breaks, prepend=-1) - 1 - self.crlf
        if not len(breaks):
            self._fields += len(separators)
            return breaks, self._size + many
        fields[0] += self._fields - 1
        sizes[0] += self._size
        empty = (sizes == 0) & (self.dialect.fields > 1)
        bad = ~empty & ((fields != self.dialect.fields) | (sizes > LONGEST))
        # Readers take an empty line in a file of one column for a record.
        bad |= (sizes == 0) & (self.dialect.fields == 1)
        self.records -= int(empty.sum())
        self._fields = 1 + len(separators) - int(np.searchsorted(separators, breaks[-1]))
        return breaks[bad], many - int(breaks[-1]) - 1

    def _undecodable(self, block: bytes) -> Ints:
        held = len(self._decoder.getstate()[0])
        if block.isascii() and not held:
            return np.zeros(0, dtype=np.int64)
        try:
            self._decoder.decode(block)
        except UnicodeDecodeError as error:
            return np.array([max(error.start - held, 0)])
        return np.zeros(0, dtype=np.int64)


def check_quoted(path: Path, dialect: Dialect, header: CsvHeader) -> QuotedFile:
    """Refuse a file whose records are not of RFC 4180, with LF or CRLF; name the first bad line."""
    if header.end == b"\r":
        raise _refused(path, 1)
    check = _Check(dialect, crlf=header.end == b"\r\n")
    check.read(header.line.removeprefix(codecs.BOM_UTF8) + (header.end or b"\n"), path)
    if check.records != 1 or check.is_cut():
        raise _refused(path, 1)  # names with line breaks
    with path.open("rb") as file:
        file.seek(header.size)
        rest, last = b"", b"\n"
        while block := file.read(_BLOCK):
            data = rest + block
            # A quote or CR at the end says nothing without what follows.
            rest = data[len(data.rstrip(b'"\r')) :]
            if len(rest) > LONGEST:
                raise _refused(path, check.line)
            if len(data) > len(rest):
                check.read(data[: len(data) - len(rest)], path)
            last = data[-1:]
        if rest:
            check.read(rest, path)
        if last == b"\r":
            raise _refused(path, check.line)
        if last != b"\n" and not check.is_cut():
            check.read(b"\r\n" if check.crlf else b"\n", path)
    if check.is_cut():
        raise _refused(path, check.line)
    return QuotedFile(records=check.records - 1, has_breaks=check.has_breaks)


def _refused(path: Path, line: int) -> InvalidArgument:
    return InvalidArgument(
        f"line {line} of {path.name!r} begins a record that is not of RFC 4180 (a stray or open "
        "quote, another number of fields, another line end, NUL, not UTF-8, or more than "
        f"{LONGEST} bytes): mend it, or say records='lines' if no field holds a line break."
    )

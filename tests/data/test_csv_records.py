"""A record of a CSV, however strange, changes nothing but itself. All bytes are written here."""

from __future__ import annotations

import gc
import os
import random
import re
import shutil
import stat
import tempfile
from collections import Counter
from pathlib import Path

import pytest

import discreet
from discreet.core.errors import InvalidArgument
from discreet.data import csv_records
from discreet.data._duckdb.engine import open_files, spilling
from discreet.data.csv_records import Dialect, is_plain, read_header, write_clean
from discreet.data.execute import collect
from discreet.data.expression import col
from discreet.data.program import ContributionLimits, compile_program, count, total, units
from discreet.data.schema import category, integer
from discreet.data.source import open_source

HEADER = b"who,x,t\n"
BASE = [b"%d,%d,%s" % (i, i % 7, b"ab"[i % 2 : i % 2 + 1]) for i in range(300)]
COLUMNS = {"x": integer(lower=0, upper=10, missing=0), "t": category(["a", "b"])}

# Each line of one person, and the records (who, x, t) that it holds; "" is missing.
MISSING = ("", 0, "")
KINDS: dict[str, tuple[bytes, list[tuple[str, int, str]]]] = {
    "not UTF-8": (b"9999,3,Z\xfcrich", [MISSING]),
    "not UTF-8 in the unit": (b"99\xff,3,a", [MISSING]),
    "a surrogate": (b"9999,3,\xed\xa0\x80", [MISSING]),
    "cut UTF-8": (b"9999,3,\xc3", [MISSING]),
    "an overlong NUL": (b"9999,3,\xc0\x80", [MISSING]),
    "extra field": (b"9999,3,a,5", [MISSING]),
    "many fields": (b"9999,3,a" + b",5" * 5000, [MISSING]),
    "missing field": (b"9999,3", [MISSING]),
    "one field": (b"9999", [MISSING]),
    "lone opening quote": (b'9999,3,"a', [MISSING]),
    "lone quote in the unit": (b'"9999,3,a', [MISSING]),
    "text behind a quote": (b'9999,"3"x,a', [MISSING]),
    "a number behind a quote": (b'9999,"3"4,a', [MISSING]),
    "backslash": (b'9999,3,"a\\",b"', [MISSING]),
    "only a quote": (b'"', [MISSING]),
    "three quotes": (b'9999,3,"""', [MISSING]),
    "NUL": (b"9999,3,a\0", [MISSING]),
    "NUL alone within commas": (b"\0,\0,\0", [MISSING]),
    "bare CR": (b"9999,3\r,a", [MISSING, MISSING]),
    "CR between records": (b"9999,3,a\r9998,4,b", [("9999", 3, "a"), ("9998", 4, "b")]),
    "CR alone": (b"\r", []),
    "CR at the end": (b"9999,3,a\r", [("9999", 3, "a")]),
    "two CR": (b"9999,3,a\r\r", [("9999", 3, "a")]),
    "blank": (b"", []),
    "spaces": (b"   ", []),
    "tabs": (b"\t\t", []),
    "only commas": (b",,", [("", 0, "")]),
    "quoted empty": (b'"","",""', [("", 0, "")]),
    "quoted": (b'"9999","3","a"', [("9999", 3, "a")]),
    "spaces around quotes": (b' "9999" , "3", "a" ', [("9999", 3, "a")]),
    "doubled quote": (b'9999,3,"a"""', [("9999", 3, "?")]),
    "comma within quotes": (b'9999,3,"a,b"', [("9999", 3, "?")]),
    "quote within a field": (b'9999,3,5" pipe', [("9999", 3, "?")]),
    "quote at the end of a field": (b'9999,3,z"', [("9999", 3, "?")]),
    "byte order mark": (b"\xef\xbb\xbf9999,3,a", [("\ufeff9999", 3, "a")]),
    "comment": (b"#9999,3,a", [("#9999", 3, "a")]),
    "next line (U+0085)": (b"9999,3,\xc2\x85", [("9999", 3, "?")]),
    "line separator (U+2028)": (b"9999,3,\xe2\x80\xa8", [("9999", 3, "?")]),
    "vertical tab, form feed": (b"9999,3,\x0b\x0c\x1c", [("9999", 3, "?")]),
    "emoji": ("9999,3,🙂".encode(), [("9999", 3, "?")]),
    "start of heading": (b"9999,3,\x01", [("9999", 3, "?")]),
    "a formula": (b"9999,3,=1+1", [("9999", 3, "?")]),
    "the header again": (b"who,x,t", [("who", 0, "?")]),
}
PLACES = (0, 150, 300)


def _file(tmp_path, lines, end=b"\n", final=True):
    path = tmp_path / "d.csv"
    path.write_bytes(HEADER.replace(b"\n", end) + end.join(lines) + (end if final else b""))
    return path


@pytest.fixture(scope="module")
def base(tmp_path_factory):
    """The exact numbers without any strange line, by unit and width."""
    path = _file(tmp_path_factory.mktemp("base"), BASE)
    return {
        (unit, wide): _asked(path, unit=unit, wide=wide)
        for unit in (False, True)
        for wide in (False, True)
    }


def _asked(path, *, unit, wide):
    """Exact numbers: rows, units and sum, in all or by the category."""
    plan = compile_program(
        schema=COLUMNS,
        unit="who" if unit else None,
        by={"t": col("t")} if wide else {},
        aggregates={"n": count(), "u": units(), "x": total(col("x"))},
        limits=ContributionLimits(max_rows_per_unit=2) if unit else ContributionLimits(),
    )
    found = collect(plan, source=open_source(path), key=1).columns
    return [list(map(int, found[name])) for name in ("n", "u", "x")]


def _with(base, records, *, unit, wide):
    """The exact numbers that these records add to those of the others."""
    found = [list(one) for one in base]
    for who, x, t in records:
        if unit and not who:
            continue
        place = {"a": 0, "b": 1}.get(t, 2) if wide else 0
        for one, more in zip(found, (1, 1, x), strict=True):
            one[place] += more
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_one_strange_line_changes_nothing_else(tmp_path, base, kind):
    line, records = KINDS[kind]
    for place in PLACES:
        path = _file(tmp_path, [*BASE[:place], line, *BASE[place:]])
        for (unit, wide), others in base.items():
            assert sum(others[0]) == 300
            expected = _with(others, records, unit=unit, wide=wide)
            assert _asked(path, unit=unit, wide=wide) == expected, (unit, wide, place)


@pytest.mark.parametrize("final", [False, True])
def test_a_strange_last_line_in_a_file_of_other_line_ends(tmp_path, base, final):
    for line, records in KINDS.values():
        path = _file(tmp_path, [*BASE, line], b"\n" if not final else b"\r\n", final)
        expected = _with(base[False, True], records, unit=False, wide=True)
        assert _asked(path, unit=False, wide=True) == expected


@pytest.mark.parametrize("size", [2**20 - 8, 2**20, 3 * 10**6, 31 * 10**6])
def test_long_fields(tmp_path, base, size):
    field = b"9999,3," + b"z" * size
    known = [] if len(field) > 2**20 else [("9999", 3, "?")]
    for line in (field, b"9999,3,a\r" + b"z" * size, b"9999,3,a\r" + b'"' * size + b"\r"):
        extra = known if line is field else [("9999", 3, "a")]
        for place in PLACES:
            path = _file(tmp_path, [*BASE[:place], line, *BASE[place:]])
            expected = _with(base[True, True], extra, unit=True, wide=True)
            assert _asked(path, unit=True, wide=True) == expected


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_where_blocks_end_does_not_decide_about_a_long_line(tmp_path, end):
    dialect = Dialect(delimiter=",", fields=3)
    for line, records in (
        (b"x" + b" " * (2**20 + 150_000), 1),
        (b" " * (2**20 + 150_000) + b"x", 1),
        (b" " * (2**20 + 150_000), 0),
    ):
        for before in range(0, csv_records._BLOCK, 50_000):
            path = _file(tmp_path, [b"1,2," + b"a" * before, line, b"3,4,b"], end)
            copy = tmp_path / "copy.csv"
            write_clean(path, copy, dialect, read_header(path))
            lines = copy.read_bytes().splitlines()[2:]
            assert lines == [b",,"] * records + [b"3,4,b"], before
            copy.unlink()


def test_a_line_of_quotes_that_doubles_in_the_copy_stops_nobody(tmp_path):
    for field in (b"z" + b'"' * (2**20 - 20), b"z" + b'"' * 999_990):
        line = b"9999,3," + field
        assert _asked(_file(tmp_path, [*BASE, line]), unit=True, wide=True)[0] == [150, 150, 1]


def test_two_quotes_of_one_person_swallow_nobody(tmp_path):
    for lines, own in (
        ([b'9999,3,"z', *BASE, b'9999,3,z"'], 1),
        ([b'"9999', *BASE, b'9999"'], 0),
        ([b'9999,"', *BASE, b'",3'], 0),
    ):
        n, _, _ = _asked(_file(tmp_path, lines), unit=True, wide=False)
        assert n == [300 + own]


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_all_line_ends(tmp_path, base, end):
    expected = base[True, True]
    assert _asked(_file(tmp_path, BASE, end), unit=True, wide=True) == expected
    assert _asked(_file(tmp_path, BASE, end, final=False), unit=True, wide=True) == expected
    mixed = HEADER + b"".join(line + (b"\n", b"\r\n", b"\r")[i % 3] for i, line in enumerate(BASE))
    (tmp_path / "d.csv").write_bytes(mixed)
    assert _asked(tmp_path / "d.csv", unit=True, wide=True) == expected


# ── Against another reader ───────────────────────────────────────────────────────────────────────


def _fields(line, delimiter):
    """The fields of one line, character by character; None: malformed."""
    found, place = [], 0
    while True:
        gap = place
        while delimiter != " " and line[gap : gap + 1] == " ":
            gap += 1
        if line[gap : gap + 1] == '"':
            value, place = "", gap + 1
            while True:
                if place >= len(line):
                    return None
                if line[place] != '"':
                    value += line[place]
                    place += 1
                elif line[place : place + 2] == '""':
                    value += '"'
                    place += 2
                else:
                    break
            place += 1
            while delimiter != " " and line[place : place + 1] == " ":
                place += 1
        else:
            value = line[place:].split(delimiter)[0]
            place += len(value)
        found.append(value or None)
        if place == len(line):
            return found
        if line[place] != delimiter:
            return None
        place += 1


def _reference(data, many, delimiter=","):
    """All records of a file, by the definition alone."""
    records = []
    for raw in re.split(rb"\r\n|\r|\n", data)[1:]:
        if all(byte <= 32 for byte in raw):
            continue
        try:
            fields = _fields(raw.decode(), delimiter)
        except UnicodeDecodeError:
            fields = None
        if fields is None or len(fields) != many or b"\0" in raw:
            fields = [None] * many
        records.append(tuple(fields))
    return Counter(records)


def _read(path, **how):
    source = open_source(path, **how)
    with spilling() as connection:
        return Counter(open_files(source, connection).fetchall())


ALPHABET = [b",", b'"', b'"', b'""', b'","', b"\n", b"\r", b"\r\n", b" ", b"a", b"1", b"\\"]
ALPHABET += [b"\0", b"\xff", "é".encode(), b"\xc3", b"\t", b";", b"'", b"#", b",,\n"]


@pytest.mark.parametrize("many", [1, 2, 3])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", " ", "|", "§"])
def test_random_bytes(tmp_path, many, delimiter):
    draw = random.Random(many)
    path = tmp_path / "r.csv"
    apart = delimiter.encode()
    for _ in range(30):
        parts = [draw.choice(ALPHABET).replace(b",", apart) for _ in range(draw.randint(0, 60))]
        data = apart.join(b"abc"[:many][i : i + 1] for i in range(many)) + b"\n" + b"".join(parts)
        path.write_bytes(data)
        assert _read(path, delimiter=delimiter) == _reference(data, many, delimiter), data


def test_random_records_between_others(tmp_path, monkeypatch):
    # Blocks of a few bytes: what stands across two of them is read like everything else.
    path = tmp_path / "r.csv"
    draw = random.Random(5)
    for _ in range(150):
        monkeypatch.setattr(csv_records, "_BLOCK", draw.choice([1, 2, 3, 7, 16, 64]))
        clean = [
            b",".join(draw.choice([b"", b"a", b'"b,c"', b'"""x"""', b"12"]) for _ in range(3))
            for _ in range(6)
        ]
        strange = b"".join(draw.choice(ALPHABET) for _ in range(draw.randint(0, 12)))
        ends = [draw.choice([b"\n", b"\r\n"]) for _ in range(8)]
        place = draw.randint(0, 6)
        lines = [line + end for line, end in zip(clean, ends, strict=False)]
        path.write_bytes(b"a,b,c\n" + b"".join(lines))
        without = _read(path)
        inserted = b"".join([*lines[:place], strange, draw.choice([b"\n", b"\r"]), *lines[place:]])
        path.write_bytes(b"a,b,c\n" + inserted)
        found = _read(path)
        assert found == _reference(b"a,b,c\n" + inserted, 3)
        assert without - found == Counter()


def test_both_routes_read_the_same(tmp_path):
    # Well-formed files are read in place, all others from a copy: what is well-formed means the
    # same in both.
    draw = random.Random(7)
    fields = [b"", b"a", b'"b,c"', b'"""x"""', b"12", b'""', b" 5 ", "é".encode(), b'",""\t"']
    for end in (b"\n", b"\r\n"):
        lines = [b",".join(draw.choice(fields) for _ in range(3)) for _ in range(50_000)]
        path = _file(tmp_path, lines, end)
        header, dialect = read_header(path), Dialect(delimiter=",", fields=3)
        assert is_plain(path, dialect, header)
        assert open_source(path).copies is None
        target = tmp_path / f"{len(end)}.csv"
        write_clean(path, target, dialect, header)
        assert _read(path) == _read(target) == _reference(path.read_bytes(), 3)
        (tmp_path / "more.csv").write_bytes(path.read_bytes() + b'"' + end)
        copied = open_source(tmp_path / "more.csv")
        assert copied.copies is not None
        assert _read(tmp_path / "more.csv") == _read(path) + Counter([(None, None, None)])


# ── Opening ──────────────────────────────────────────────────────────────────────────────────────


def test_copies_are_private_and_removed(tmp_path):
    path = _file(tmp_path, [*BASE, b'"'])
    source = open_source(path)
    folder = Path(source.copies.paths[0]).parent
    assert folder.parent == Path(tempfile.gettempdir())
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert str(folder) not in repr(source)
    del source
    gc.collect()
    assert not folder.exists()


def test_a_fork_does_not_remove_the_copies(tmp_path):
    source = open_source(_file(tmp_path, [*BASE, b'"']))
    folder = Path(source.copies.paths[0]).parent
    csv_records._remove(folder, os.getpid() + 1)
    assert folder.exists()


@pytest.mark.parametrize(
    "change",
    [
        lambda path: path.write_bytes(path.read_bytes() + b"1,1,a\n"),
        lambda path: os.utime(path, ns=(1, 1)),
        lambda path: path.unlink(),
        lambda path: shutil.copy(path, path.with_suffix(".new")).replace(path),
    ],
)
@pytest.mark.parametrize("strange", [False, True])
def test_a_file_that_changed_is_refused_before_anything_is_charged(tmp_path, change, strange):
    path = _file(tmp_path, [*BASE, b'"'] if strange else BASE)
    with discreet.Ledger(f"sqlite:///{tmp_path}/b.db") as ledger:
        account = ledger.account("a", limit=discreet.pure_dp(10))
        table = discreet.table(str(path), columns=COLUMNS, account=account)
        table.count(epsilon=1)
        change(path)
        with pytest.raises(InvalidArgument, match="the file changed since it was opened; open it"):
            table.count(epsilon=1)
        with pytest.raises(InvalidArgument, match="the file changed"):
            table.suggest_bounds("x", epsilon=1)
        assert account.spent.epsilon() == 1


@pytest.mark.parametrize(
    "first", [b'who,"x,t\n', b'who,"x"y,t\n', b"who,x\0,t\n", b"wh\xff,x,t\n", b"\nwho,x,t\n"]
)
def test_a_malformed_first_line_is_refused(tmp_path, first):
    path = tmp_path / "d.csv"
    path.write_bytes(first + b"1,2,a\n")
    with pytest.raises(InvalidArgument, match="first line"):
        open_source(path)
    with pytest.raises(InvalidArgument, match="first line"):
        open_source(path, records="quoted")


def test_an_endless_first_line_is_refused(tmp_path):
    path = tmp_path / "d.csv"
    path.write_bytes(b"who," * 2**19)
    with pytest.raises(InvalidArgument, match="first line"):
        open_source(path)


def test_what_records_may_be(tmp_path):
    path = _file(tmp_path, BASE)
    for wrong in ("rows", None, 3):
        with pytest.raises(InvalidArgument, match="records must be 'lines' or 'quoted'"):
            open_source(path, records=wrong)
    with pytest.raises(InvalidArgument, match="ASCII"):
        open_source(path, records="quoted", delimiter="§")
    with pytest.raises(InvalidArgument, match="delimiter"):
        open_source(path, delimiter="\0")


# ── Quoted line breaks ───────────────────────────────────────────────────────────────────────────


def _rows(path):
    source = open_source(path, records="quoted")
    with spilling() as connection:
        return open_files(source, connection).fetchall()


TEXTS = ["", "a", "x,y", 'he said "no"', "two\nlines", "\n", "\r\n", "a\r\nb", '"\n"']
TEXTS += ["1,2,3\n4,5,6\n", '",', '\n","', "\r", "é\n🙂"]


def _quote(text):
    return '"' + text.replace('"', '""') + '"'


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_quoted_line_breaks(tmp_path, monkeypatch, end):
    draw = random.Random(3)
    path = tmp_path / "q.csv"
    for block in (1, 2, 5, 64, 2**22):
        monkeypatch.setattr(csv_records, "_BLOCK", block)
        rows = [[draw.choice(TEXTS) for _ in range(3)] for _ in range(40)]
        lines = ["a,b,c", *(",".join(map(_quote, row)) for row in rows)]
        path.write_bytes((end.join(lines) + draw.choice([end, ""])).encode())
        expected = Counter(tuple(text or None for text in row) for row in rows)
        assert Counter(_rows(path)) == expected


def test_quoted_line_breaks_beyond_one_buffer(tmp_path):
    # Long texts whose lines look like records, and like their beginnings and ends.
    text = 'x\n7,"8",9\n"",""\n","\n' * 25_000
    rows = [(str(i), text if i % 10 == 0 else "7\n8", "z") for i in range(900)]
    path = tmp_path / "q.csv"
    path.write_text("a,b,c\n" + "".join(f"{a},{_quote(b)},{c}\n" for a, b, c in rows))
    assert path.stat().st_size > 50_000_000
    assert Counter(_rows(path)) == Counter(rows)
    path.unlink()


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        (b'1,2,"3\n4,5,6\n', 2),
        (b'1,2,3\n4,5,"6\n', 3),
        (b'1,"2\n2",3\n4,5\n', 4),
        (b'1,"2\n2",3\n4,5,6,7\n8,9,10\n', 4),
        (b'1,2,3\n"4"x,5,6\n', 3),
        (b'1,2,3\nx"4",5,6\n', 3),
        (b"1,2,3\n4,5\r,6\n", 3),
        (b"1,2,3\r\n", 2),
        (b"1,2,3\n4,5,6\r", 3),
        (b"1,2,3\n4,\0,6\n", 3),
        (b'1,2,3\n"\n\n\n",\xff,6\n', 3),
        (b'1,2,3\n"\n\n\n",5,6\n7,\xff,9\n', 7),
        (b"1,2,3\n4,5,\xc3", 3),
        (b"1,2,3\n4,5," + b"6" * 2**21 + b"\n", 3),
        (b'1,2,3\n4,5,"' + b"6\n" * 2**20, 3),
        (b'1,2,3\n4,5,"' + b'""' * 2**20 + b"\n", 3),
    ],
)
def test_a_bad_line_is_named_when_opening(tmp_path, monkeypatch, rows, line):
    path = tmp_path / "q.csv"
    path.write_bytes(b"a,b,c\n" + rows)
    for block in (*([1, 2, 3, 7] if len(rows) < 100 else []), 2**22):
        monkeypatch.setattr(csv_records, "_BLOCK", block)
        with pytest.raises(InvalidArgument, match=f"line {line} of 'q.csv'") as error:
            open_source(path, records="quoted")
        assert error.value.__context__ is None

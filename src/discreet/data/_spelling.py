"""How a file writes its values, where a column says so: missing ones, truth, numbers, dates.

A declared spelling turns a text into the text that stands for the same value without a declaration
(`_text_parsing`), and is the same function of a text on every engine. Words are compared without
spaces and tabs around them and without regard to ASCII case, except among categories and open
texts. What a declaration names as a number or a date is compared by its value.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from zoneinfo import ZoneInfo

from discreet.core import _validate as check
from discreet.core.errors import InvalidArgument

SPACES = " \t"
"""What is ignored around a number, a date or a boolean."""
_EXPONENT = r"([eE][+-]?[0-9]{1,3})?"
_INFINITE = r"(?i:inf|infinity)"
NUMBER = rf"[+-]?(([0-9]+(\.[0-9]*)?|\.[0-9]+){_EXPONENT}|{_INFINITE})"
WHOLE = r"[+-]?[0-9]{1,38}"
DAY = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
TIME = r"([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9](\.[0-9]{1,9})?)?"
ZONE = r"Z|[+-]([01][0-9]|2[0-3]):[0-5][0-9]"
MOMENT = rf"{DAY}([T ]{TIME}({ZONE})?)?"
SINGLE_DIGIT = r"\b([0-9])\b"
MISFIT = "?"
"""A text that is no value under any declaration."""
UPPER_CASE, LOWER_CASE = "ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"

_number, _moment, _single = (re.compile(one, re.ASCII) for one in (NUMBER, MOMENT, SINGLE_DIGIT))
_lower = str.maketrans(UPPER_CASE, LOWER_CASE)
_EXACT = 2**53
_EPOCH = dt.date(1970, 1, 1)
_SEPARATORS = (".", ",", "'", "_", " ", "\u00a0", "\u202f", "\u2019")
_DIRECTIVES = {"Y": 4, "m": 2, "d": 2, "H": 2, "M": 2, "S": 2}
_LONGEST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    """Texts that mean one thing: words as they are compared, numbers by their value."""

    texts: tuple[str, ...] = ()
    numbers: tuple[float, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.texts or self.numbers)

    def has(self, text: str) -> bool:
        """Whether a text is one of them."""
        plain = text.strip(SPACES)
        if plain.translate(_lower) in self.texts:
            return True
        return bool(self.numbers) and number_of(plain) in self.numbers


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalTime:
    """Minutes from UTC by local time: ``offsets[i]`` before ``starts[i]``, the last one after."""

    starts: tuple[int, ...]
    offsets: tuple[int, ...]

    def utc(self, minutes: int) -> int:
        """The same moment, in minutes since 1970 in UTC."""
        return minutes - self.offsets[sum(start <= minutes for start in self.starts)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spelling:
    """What a column declares about its texts."""

    given: tuple[tuple[str, object], ...]
    """The arguments as they were declared."""
    missing: Words = Words()
    codes: tuple[int, ...] = ()
    """Codes of moments that are declared missing."""
    true: Words = Words()
    false: Words = Words()
    decimal: str = "."
    thousands: str | None = None
    format: str | None = None
    strip: bool = False
    local: LocalTime | None = None

    def __repr__(self) -> str:
        return ", ".join(f"{name}={value!r}" for name, value in self.content().items())

    def content(self) -> dict[str, object]:
        """The arguments as they were declared, for JSON."""
        return {name: _listed(value) for name, value in self.given}

    @property
    def number(self) -> str | None:
        """The pattern of a number, if it is not the usual one."""
        if self.decimal == "." and self.thousands is None:
            return None
        point, whole = escaped(self.decimal), "[0-9]+"
        if self.thousands is not None:
            whole = f"(?:[0-9]{{1,3}}(?:{escaped(self.thousands)}[0-9]{{3}})+|[0-9]+)"
        return rf"[+-]?(({whole}({point}[0-9]*)?|{point}[0-9]+){_EXPONENT}|{_INFINITE})"

    @property
    def moment(self) -> str | None:
        """The pattern of a date or time with one group for each directive, if one is declared."""
        return None if self.format is None else _pattern(self.format)[0]

    def as_iso(self, mark: str) -> str:
        """A replacement that writes the groups of `moment` as ISO 8601; ``mark`` names a group."""
        at = {name: f"{mark}{i + 1}" for i, name in enumerate(_pattern(self.format)[1])}
        day = f"{at['Y']}-{at['m']}-{at['d']}"
        if "H" not in at:
            return day
        seconds = f":{at['S']}" if "S" in at else ""
        return f"{day} {at['H']}:{at.get('M', '00')}{seconds}"


def number_of(plain: str) -> float | None:
    """The number that a text says in the usual way."""
    return float(plain) if _number.fullmatch(plain) else None


def minutes_of(plain: str) -> tuple[int, bool] | None:
    """Minutes since 1970 that an ISO text says, and whether they are in a zone it does not name."""
    if not _moment.fullmatch(plain):
        return None
    try:
        days = (dt.date.fromisoformat(plain[:10]) - _EPOCH).days
    except ValueError:
        return None
    minutes = 1440 * days + 60 * int(plain[11:13] or 0) + int(plain[14:16] or 0)
    if len(plain) > 16 and plain[-6] in "+-":  # 10:00+02:00 is 08:00 UTC
        ahead = 60 * int(plain[-5:-3]) + int(plain[-2:])
        return minutes - (ahead if plain[-6] == "+" else -ahead), False
    return minutes, len(plain) > 10 and not plain.endswith("Z")


def escaped(literal: str) -> str:
    """A text as a pattern for RE2, Java and Python alike."""
    return "".join(
        one if one.isalnum() or one == "_" or ord(one) > 127 else f"\\{one}" for one in literal
    )


# ── One text ─────────────────────────────────────────────────────────────────────────────────────


def respelled_number(spelling: Spelling) -> Callable[[str], str]:
    """The usual text of a number; what is missing is empty, what is none is a misfit."""
    pattern = None if spelling.number is None else re.compile(spelling.number, re.ASCII)

    def respelled(text: str) -> str:
        plain = text.strip(SPACES)
        if plain.translate(_lower) in spelling.missing.texts:
            return ""
        if pattern is None or not plain:
            return plain
        if not pattern.fullmatch(plain):
            return MISFIT
        return plain.replace(spelling.thousands or "", "").replace(spelling.decimal, ".")

    return respelled


def respelled_moment(spelling: Spelling) -> Callable[[str], str]:
    """The ISO text of a date or time."""
    pattern = None if spelling.moment is None else re.compile(spelling.moment, re.ASCII)

    def respelled(text: str) -> str:
        plain = text.strip(SPACES)
        if plain.translate(_lower) in spelling.missing.texts:
            return ""
        if pattern is None or not plain:
            return plain
        found = pattern.fullmatch(plain)
        return MISFIT if found is None else _single.sub(r"0\1", found.expand(spelling.as_iso("\\")))

    return respelled


def respelled_truth(spelling: Spelling) -> Callable[[str], str]:
    """``"1"``, ``"0"``, empty or a misfit, where truth is declared; else what is not missing."""

    def respelled(text: str) -> str:
        if spelling.missing.has(text) or not text.strip(SPACES):
            return ""
        if not spelling.true:
            return text
        if spelling.true.has(text):
            return "1"
        return "0" if spelling.false.has(text) else MISFIT

    return respelled


def respelled_text(spelling: Spelling) -> Callable[[str], str]:
    """A text as it is compared with levels; empty if it is declared missing."""

    def respelled(text: str) -> str:
        plain = text.strip(SPACES) if spelling.strip else text
        return "" if plain in spelling.missing.texts else plain

    return respelled


# ── Declarations ─────────────────────────────────────────────────────────────────────────────────


def spelling_of_numbers(
    missing_values: Iterable[object] | None, decimal: object, thousands: object
) -> Spelling | None:
    """The spelling of a column of numbers; None if nothing is declared."""
    given: list[tuple[str, object]] = []
    if not isinstance(decimal, str) or decimal not in (".", ","):
        raise InvalidArgument(f"decimal must be '.' or ',', got {decimal!r}.")
    if thousands is not None and (thousands not in _SEPARATORS or thousands == decimal):
        raise InvalidArgument(
            f"thousands must be one of {list(_SEPARATORS)} and differ from decimal={decimal!r}, "
            f"got {thousands!r}."
        )
    if decimal != ".":
        given.append(("decimal", decimal))
    if thousands is not None:
        given.append(("thousands", thousands))
    plain = Spelling(given=(), decimal=decimal, thousands=thousands)
    listed = _declared("missing_values", missing_values)
    words = _words(listed, respelled_number(plain))
    return _made(plain, given, listed, words)


def spelling_of_levels(
    missing_values: Iterable[object] | None, strip: object, levels: tuple[str | int, ...]
) -> Spelling | None:
    """The spelling of a column of categories, or of open text if there are no levels."""
    listed = _declared("missing_values", missing_values)
    stripped = check.flag("strip", strip)
    whole = bool(levels) and not isinstance(levels[0], str)
    if stripped and whole:
        raise InvalidArgument("strip is for categories of text: whole numbers are read so anyway.")
    outer = [one for one in levels if isinstance(one, str) and one != one.strip(SPACES)]
    if stripped and outer:
        raise InvalidArgument(
            f"categories must have no spaces around them with strip=True: {outer}."
        )
    if whole:
        words = _words(listed, lambda text: text.strip(SPACES))
        clash = [one for one in levels if float(one) in words.numbers]
    else:
        texts = [one.strip(SPACES) if stripped else one for one in listed]
        words = Words(texts=tuple(dict.fromkeys(texts)))
        clash = [one for one in levels if one in words.texts]
    if clash:
        raise InvalidArgument(f"missing_values must not contain categories: {clash}.")
    given: list[tuple[str, object]] = [("strip", True)] if stripped else []
    return _made(Spelling(given=(), strip=stripped), given, listed, words)


def spelling_of_truth(
    missing_values: Iterable[object] | None,
    true: Iterable[object] | None,
    false: Iterable[object] | None,
) -> Spelling | None:
    """The spelling of a column of truth values."""
    if (true is None) != (false is None):
        raise InvalidArgument("true and false must be given together: list what each means.")
    listed = _declared("missing_values", missing_values)
    lists = [_declared(name, one) for name, one in (("true", true), ("false", false))]
    yes, no = (_words(one, lambda text: text.strip(SPACES)) for one in lists)
    words = _words(listed, lambda text: text.strip(SPACES))
    if true is not None and not (yes and no):
        raise InvalidArgument("true and false must each hold at least one text.")
    if _shared(yes, no) or _shared(yes, words) or _shared(no, words):
        raise InvalidArgument("true, false and missing_values must have no value in common.")
    given = [(name, one) for name, one in zip(("true", "false"), lists, strict=True) if one]
    return _made(Spelling(given=(), true=yes, false=no), list(given), listed, words)


def spelling_of_moments(
    missing_values: Iterable[object] | None,
    format: object,  # noqa: A002
    zone: object,
    *,
    first: dt.date,
    last: dt.date,
    code: Callable[[int], int],
) -> Spelling | None:
    """The spelling of a column of dates; ``code`` is that of minutes since 1970."""
    given: list[tuple[str, object]] = []
    if format is not None:
        _pattern(format)
        given.append(("format", format))
    local = None
    if zone is not None:
        local = local_time(zone, first, last)
        given.append(("zone", zone))
    plain = Spelling(given=(), format=format, local=local)  # type: ignore[arg-type]
    respelled = respelled_moment(plain)
    listed, texts, codes = [], [], []
    for one in () if missing_values is None else check.as_tuple("missing_values", missing_values):
        if isinstance(one, dt.date):
            text = iso = one.isoformat()
        else:
            (text,) = _declared("missing_values", [one])
            iso = respelled(text)
        listed.append(text)
        found = minutes_of(iso)
        if found is None:
            texts.append(text.strip(SPACES).translate(_lower))
        else:
            minutes, is_local = found
            codes.append(code(local.utc(minutes) if local and is_local else minutes))
    words = Words(texts=tuple(dict.fromkeys(texts)))
    made = _made(plain, given, tuple(listed), words)
    if made is None:
        return None
    return Spelling(
        given=made.given,
        missing=made.missing,
        codes=tuple(dict.fromkeys(codes)),
        format=made.format,
        local=made.local,
    )


def _made(
    plain: Spelling, given: list[tuple[str, object]], listed: tuple[str, ...], words: Words
) -> Spelling | None:
    if listed:
        given = [("missing_values", listed), *given]
    if not given:
        return None
    return Spelling(
        given=tuple(given),
        missing=words,
        true=plain.true,
        false=plain.false,
        decimal=plain.decimal,
        thousands=plain.thousands,
        format=plain.format,
        strip=plain.strip,
        local=plain.local,
    )


def _listed(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value


def _shared(one: Words, other: Words) -> bool:
    return bool({*one.texts, *one.numbers} & {*other.texts, *other.numbers})


def _declared(name: str, values: Iterable[object] | None) -> tuple[str, ...]:
    """A public list of texts and numbers, as texts."""
    found = () if values is None else check.as_tuple(name, values)
    texts = [one if isinstance(one, str) else repr(one) for one in found]
    wrong = any(isinstance(one, bool) or not isinstance(one, str | int | float) for one in found)
    if wrong or any(not _is_plain(text) for text in texts):
        raise InvalidArgument(
            f"{name} must be a list of texts or numbers of at most {_LONGEST} characters, without "
            "line breaks or NUL."
        )
    return tuple(dict.fromkeys(texts))


def _is_plain(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return len(text) <= _LONGEST and not any(one in text for one in "\0\r\n")


def _words(listed: tuple[str, ...], respelled: Callable[[str], str]) -> Words:
    texts, numbers = [], []
    for one in listed:
        number = number_of(respelled(one))
        if number is None:
            texts.append(one.strip(SPACES).translate(_lower))
        elif abs(number) >= _EXACT and number == number // 1 and abs(number) < float("inf"):
            raise InvalidArgument(f"{one!r} must be closer to zero than 2**53.")
        else:
            numbers.append(number + 0.0)
    return Words(texts=tuple(dict.fromkeys(texts)), numbers=tuple(dict.fromkeys(numbers)))


@lru_cache(maxsize=64)
def _pattern(format: object) -> tuple[str, tuple[str, ...]]:  # noqa: A002
    """A pattern for the texts of a format, and the directive of each of its groups."""
    if not isinstance(format, str) or not _is_plain(format):
        raise InvalidArgument(f"format must be a text such as '%d/%m/%Y', got {format!r}.")
    parts = re.split(r"(%.?)", format)
    names = [part[1:] for part in parts[1::2]]
    if any(name not in _DIRECTIVES for name in names) or len(set(names)) != len(names):
        raise InvalidArgument(
            f"format must hold each of %Y %m %d %H %M %S at most once, and no other directive: "
            f"got {format!r}."
        )
    needed = (
        {"Y", "m", "d"} | ({"H"} if "M" in names else set()) | ({"M"} if "S" in names else set())
    )
    if not needed <= set(names):
        raise InvalidArgument(
            f"format must hold {', '.join('%' + one for one in sorted(needed))}: got {format!r}."
        )
    if any(one.isdigit() for part in parts[0::2] for one in part):
        raise InvalidArgument(f"format must hold no digits of its own: got {format!r}.")
    pattern = escaped(parts[0])
    for i, name in enumerate(names):
        before, after = parts[2 * i], parts[2 * i + 2]
        # Side by side with another one, a directive has all its digits: else two could share them.
        beside = (i > 0 and not before) or (i + 1 < len(names) and not after)
        many = _DIRECTIVES[name]
        pattern += f"([0-9]{{{many}}})" if many == 4 or beside else "([0-9]{1,2})"
        pattern += escaped(after)
    return pattern, tuple(names)


@lru_cache(maxsize=64)
def local_time(zone: object, first: dt.date, last: dt.date) -> LocalTime:
    """The offsets of an IANA zone between two dates, in whole minutes.

    A local time that does not exist, or that there is twice, has the offset from before.
    """
    try:
        found = ZoneInfo(zone) if isinstance(zone, str) and _is_plain(zone) else None
    except (ValueError, KeyError, OSError):
        found = None
    if found is None:
        raise InvalidArgument(
            f"zone must be the name of a time zone such as 'Europe/Berlin', got {zone!r}."
        )
    start = dt.datetime(1, 1, 3, tzinfo=dt.UTC)
    day = 1440

    def offset(minutes: int) -> int:
        at = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(minutes=minutes)
        ahead = at.astimezone(found).utcoffset() or dt.timedelta()
        return round(ahead.total_seconds() / 60)

    least = (start.date() - _EPOCH).days
    most = (dt.date(9999, 12, 29) - _EPOCH).days
    low = min(max((first - _EPOCH).days - 2, least), most) * day
    high = min(max((last - _EPOCH).days + 2, least), most) * day
    starts, offsets = [], [offset(low)]
    for here in range(low, high, day):
        before, after = offset(here), offset(here + day)
        if before == after:
            continue
        near, far = here, here + day  # the offset changes in between
        while far - near > 1:
            middle = (near + far) // 2
            near, far = (middle, far) if offset(middle) == before else (near, middle)
        starts.append(far + max(before, after))
        offsets.append(after)
    return LocalTime(starts=tuple(starts), offsets=tuple(offsets))

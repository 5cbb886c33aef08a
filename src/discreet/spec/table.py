"""What a table is, in the words of a release file: columns, limits, relation, addresses."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from inspect import signature
from pathlib import Path
from typing import Any

from discreet.accounting.guarantee import Guarantee, approx_dp, gdp, pure_dp, zcdp
from discreet.core.errors import InvalidArgument, PrivacyError
from discreet.core.relation import NeighboringRelation
from discreet.data import schema
from discreet.data.program import ContributionLimits
from discreet.data.schema import ColumnSpec, NumericColumn
from discreet.data.unit import read_unit
from discreet.query._release_plan import TableSpec

_COLUMNS: Mapping[str, Callable[..., ColumnSpec]] = {
    "integer": schema.integer,
    "real": schema.real,
    "category": schema.category,
    "date": schema.date,
    "boolean": schema.boolean,
    "text": schema.text,
}
LIMITS = ("max_rows_per_unit", "max_groups_per_unit", "max_rows_per_unit_per_group")
_WORDS_OF_0_1: Mapping[str, tuple[str, ...]] = {
    "unit": ("privacy_unit",),
    "rows_per_unit": ("max_rows_per_unit",),
    "groups_per_unit": ("max_groups_per_unit",),
    "rows_per_unit_and_group": ("max_rows_per_unit_per_group",),
    "levels": ("q", "categories"),
    "other": ("include_other",),
    "rows": ("expected_rows",),
    "grid": ("granularity",),
}
"""What settings were called in version 0.1: jobs and files that were written then still load."""
TABLE = ("source", "delimiter", "records", "engine", "spark", "privacy_unit", "relation", *LIMITS)


def read(path: Path, sections: Sequence[str]) -> Mapping[str, Any]:
    """The content of a TOML file with no other sections than these."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise InvalidArgument(f"{path}: cannot be read.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"{path}: is not TOML: {error}.") from None
    return known("file", content, sections)


def table_spec(table: Mapping[str, Any], columns: object) -> TableSpec:
    """What is declared about a table; nothing is opened."""
    given = {} if columns is None else columns
    if not isinstance(given, Mapping):
        raise InvalidArgument("columns: must be a table of settings.")
    declared = {name: _column(name, one) for name, one in given.items()}
    return TableSpec(
        schema=declared,
        privacy_unit=read_unit(table.get("privacy_unit"), declared),
        limits=ContributionLimits(**{name: table.get(name) for name in LIMITS}),
        relation=_relation(table.get("relation", "add_remove")),
    )


def _column(name: str, given: object) -> ColumnSpec:
    arguments = dict(given) if isinstance(given, Mapping) else {}
    make = _COLUMNS.get(arguments.pop("kind", ""))
    if make is None:
        raise InvalidArgument(f"columns.{name}: kind must be one of {', '.join(_COLUMNS)}.")
    settings = signature(make).parameters
    arguments = dict(known(f"columns.{name}", arguments, ("kind", *settings)))
    needed = [n for n, one in settings.items() if one.default is one.empty and n not in arguments]
    if needed:
        raise InvalidArgument(f"columns.{name}: {' and '.join(needed)} must be given.")
    try:
        return make(**arguments)
    except PrivacyError as error:
        raise InvalidArgument(f"columns.{name}: {error}") from None


def column_bounds(column: NumericColumn) -> tuple[Fraction, Fraction]:
    """The declared bounds of a numeric column, as exact numbers."""
    step = Fraction(2) ** column.exponent
    return column.lower * step, column.upper * step


def column_granularity(column: NumericColumn) -> float | None:
    """The spacing of real numbers; None for whole numbers."""
    return None if column.exponent == 0 else 2.0**column.exponent


def column_value(column: NumericColumn, code: int) -> int | float:
    """The number that a code of a numeric column stands for."""
    return code if column.exponent == 0 else code * 2.0**column.exponent


def limit(given: object, relation: NeighboringRelation) -> Guarantee:
    """The limit of an account."""
    match given:
        case {"epsilon": epsilon, "delta": delta, **rest} if not rest:
            return approx_dp(epsilon, delta, relation=relation)
        case {"epsilon": epsilon, **rest} if not rest:
            return pure_dp(epsilon, relation=relation)
        case {"rho": rho, **rest} if not rest:
            return zcdp(rho, relation=relation)
        case {"mu": mu, **rest} if not rest:
            return gdp(mu, relation=relation)
        case _:
            raise InvalidArgument(
                "account.limit must be {epsilon}, {epsilon, delta}, {rho} or {mu}."
            )


def _relation(given: object) -> NeighboringRelation:
    known = {
        "add_remove": NeighboringRelation.ADD_REMOVE,
        "replace_one": NeighboringRelation.REPLACE_ONE,
    }
    if given not in known:
        raise InvalidArgument(f"table.relation must be one of {', '.join(known)}, got {given!r}.")
    return known[str(given)]


def source(given: str, folder: Path) -> str:
    """An address, or a path that stands beside the release file."""
    return given if "://" in given else str(folder / given)


def ledger(url: str, folder: Path) -> str:
    """A relative SQLite file stands beside the release file."""
    scheme, _, rest = url.partition(":///")
    if scheme == "sqlite" and rest and not rest.startswith("/"):
        return f"sqlite:///{(folder / rest).absolute()}"
    if url.startswith("memory:"):
        raise InvalidArgument(
            "A ledger in memory forgets what was spent when the command ends: name a file, "
            "sqlite:///FILE."
        )
    return url


def section(content: Mapping[str, Any], name: str, allowed: Sequence[str]) -> Mapping[str, Any]:
    """A section that must be there."""
    if name not in content:
        raise InvalidArgument(f"The file needs a section [{name}].")
    return known(name, content[name], allowed)


def known(where: str, given: object, allowed: Sequence[str]) -> Mapping[str, Any]:
    """A table of settings, none of which is unknown; names of version 0.1 become today's."""
    if not isinstance(given, Mapping):
        raise InvalidArgument(f"{where}: must be a table of settings.")
    given = current_words(given, allowed)
    unknown = sorted(str(name) for name in set(given) - set(allowed))
    if unknown:
        raise InvalidArgument(f"{where}: unknown {unknown}; known are {', '.join(allowed)}.")
    return given


def current_words(given: Mapping[Any, Any], allowed: Sequence[str]) -> dict[Any, Any]:
    """The same settings, where names of version 0.1 are replaced by today's."""
    return {_current(name, given, allowed): one for name, one in given.items()}


def _current(name: Any, given: Mapping[Any, Any], allowed: Sequence[str]) -> Any:
    """What a setting is called here; both names at once stay, and the old one is refused."""
    if name in allowed:
        return name
    new = [one for one in _WORDS_OF_0_1.get(name, ()) if one in allowed and one not in given]
    return new[0] if new else name


def text(section: Mapping[str, Any], where: str, name: str) -> str:
    """A setting that must be text."""
    value = section.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidArgument(f"{where}: {name} must be text.")
    return value

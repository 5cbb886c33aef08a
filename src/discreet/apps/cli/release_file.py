"""The release file: TOML that names a table, its columns, an account and statistics."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from discreet.accounting.guarantee import Guarantee, approx, gdp, pure, zcdp
from discreet.apps.cli import range_statistic
from discreet.apps.cli.range_statistic import RangeStatistic, is_ranges
from discreet.core import check
from discreet.core.errors import InvalidArgument, PrivacyError
from discreet.core.relation import Relation
from discreet.data import schema
from discreet.data.expression import Expression, col
from discreet.data.plan import Limits
from discreet.data.schema import Declared
from discreet.queries import ask
from discreet.queries.ask import KeySet, Query
from discreet.queries.budget import Budget, budget
from discreet.queries.design import Design, Setting, design, join
from discreet.queries.targets import amount_for
from discreet.table.work import Work

_COLUMNS: Mapping[str, Callable[..., Declared]] = {
    "integer": schema.integer,
    "real": schema.real,
    "category": schema.category,
    "date": schema.date,
    "boolean": schema.boolean,
    "text": schema.text,
}
_LIMITS = ("rows_per_unit", "groups_per_unit", "rows_per_unit_and_group")
_TABLE = ("source", "delimiter", "engine", "spark", "unit", "relation", *_LIMITS)
_TESTS: Mapping[str, Callable[[Expression, Any], Expression]] = {
    "is": lambda column, value: column == value,
    "is_not": lambda column, value: column != value,
    "in": lambda column, values: column.isin(values),
    "at_least": lambda column, value: column >= value,
    "above": lambda column, value: column > value,
    "at_most": lambda column, value: column <= value,
    "below": lambda column, value: column < value,
}
_AMOUNTS = ("epsilon", "delta", "rho")
_SUMS = ("sum", "mean", "variance", "covariance")
_KINDS = ("count", "units", "histogram", *_SUMS, "median", "quantiles", "ranges")
_RANKS = ("levels", "bins", "method")
_ROWS = ("by", "keys", "edges", "where", "rows")
_ASKED = ("name", "kind", "of", *_ROWS, *_RANKS, *_LIMITS, "within", *_AMOUNTS)
_OWN: Mapping[str, tuple[str, ...]] = {
    "edges": ("histogram",),
    "levels": ("quantiles",),
    "bins": ("median", "quantiles"),
    "method": ("median", "quantiles"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistic:
    """One statistic of the file: the question, what it may cost, the rows that are expected.

    ``within`` is the half-width (95%) that is wanted. Without an amount the budget is the smallest
    that meets it, and ``found`` says so.
    """

    query: Query
    budget: Budget
    rows: int | None
    within: Fraction | None = None
    found: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseFile:
    """A checked release file. Nothing has been opened yet."""

    title: str
    source: str
    delimiter: str
    engine: Literal["spark"] | None
    spark: str | None
    setting: Setting
    ledger: str
    account: str
    limit: Guarantee | None
    statistics: tuple[Statistic, ...]
    ranges: tuple[RangeStatistic, ...] = ()

    def work(self) -> Work:
        """Statistics and ranges together; structures for ranges are chosen here."""
        return Work(
            design=self.design() if self.statistics else None,
            ranges=tuple(one.planned(self.setting) for one in self.ranges),
        )

    def relaxed(self, factor: Fraction) -> ReleaseFile:
        """The same file with targets so many times as wide, where amounts follow from them."""
        return replace(
            self,
            statistics=tuple(
                _targeted(one, one.within * factor, setting=self.setting)
                if one.found and one.within is not None
                else one
                for one in self.statistics
            ),
        )

    def design(self) -> Design:
        """All statistics together; those that share rows and groups also share a pass."""
        return join([part for part, _ in self._parts()])

    def order(self) -> list[int]:
        """The place in the file of each question of the design."""
        return [place for _, places in self._parts() for place in places]

    def _parts(self) -> list[tuple[Design, list[int]]]:
        """Amounts of one kind add up, so they are designed together; deltas stay apart."""
        bundles: dict[object, list[int]] = {}
        for place, one in enumerate(self.statistics):
            kind = (place,) if one.budget.delta is not None else one.budget.rho is None
            bundles.setdefault(kind, []).append(place)
        return [(self._bundle(places), places) for places in bundles.values()]

    def _bundle(self, places: Sequence[int]) -> Design:
        chosen = [self.statistics[place] for place in places]
        if len(chosen) == 1:
            whole, weights = chosen[0].budget, None
        else:
            weights = [one.budget.rho or one.budget.epsilon or Fraction(0) for one in chosen]
            total = sum(weights, start=Fraction(0))
            rho = chosen[0].budget.rho is not None
            whole = Budget(rho=total) if rho else Budget(epsilon=total)
        queries = [one.query for one in chosen]
        return design(queries, setting=self.setting, budget=whole, weights=weights)


def read(path: Path) -> ReleaseFile:
    """Read and check a release file; every error names its section."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError:
        raise InvalidArgument(f"{path}: cannot be read.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidArgument(f"{path}: is not TOML: {error}.") from None
    _known("file", content, ("title", "table", "columns", "account", "statistic"))
    table = _section(content, "table", _TABLE)
    account = _section(content, "account", ("ledger", "name", "limit"))
    statistics = content.get("statistic", [])
    if not isinstance(statistics, list) or not statistics:
        raise InvalidArgument("The file needs at least one [[statistic]].")
    relation = _relation(table.get("relation", "add_remove"))
    setting = Setting(
        schema={name: _column(name, given) for name, given in _columns(content).items()},
        unit=table.get("unit"),
        limits=Limits(**{name: table.get(name) for name in _LIMITS}),
        relation=relation,
    )
    return ReleaseFile(
        title=str(content.get("title", path.stem)),
        source=_source(_text(table, "table", "source"), path.parent),
        delimiter=table.get("delimiter", ","),
        engine=table.get("engine"),
        spark=table.get("spark"),
        setting=setting,
        ledger=_ledger(_text(account, "account", "ledger"), path.parent),
        account=_text(account, "account", "name"),
        limit=None if "limit" not in account else _limit(account["limit"], relation),
        statistics=tuple(
            _statistic(i, one, path.parent, setting=setting, limit=account.get("limit"))
            for i, one in enumerate(statistics, 1)
            if not is_ranges(one)
        ),
        ranges=tuple(
            _ranges(i, one, setting=setting, limit=account.get("limit"))
            for i, one in enumerate(statistics, 1)
            if is_ranges(one)
        ),
    )


def _columns(content: Mapping[str, Any]) -> Mapping[str, Any]:
    columns = content.get("columns", {})
    return _known("columns", columns, tuple(columns))


def _statistic(
    number: int, given: Mapping[str, Any], folder: Path, *, setting: Setting, limit: object
) -> Statistic:
    where = f"statistic {number}"
    _known(where, given, _ASKED)
    try:
        query = _query(given, folder).limited(**{name: given.get(name) for name in _LIMITS})
        within, rows = given.get("within"), given.get("rows")
        wanted = None if within is None else check.positive("within", within)
        amounts = {name: given.get(name) for name in _AMOUNTS}
        if wanted is None or amounts["epsilon"] is not None or amounts["rho"] is not None:
            return Statistic(query=query, budget=budget(**amounts), rows=rows, within=wanted)
        kind = budget(epsilon=1, delta=amounts["delta"])
        if _concentrated(limit) and kind.delta is None:
            kind = budget(rho=1)
        found = Statistic(query=query, budget=kind, rows=rows, found=True)
        return _targeted(found, wanted, setting=setting)
    except (PrivacyError, TypeError) as error:
        raise InvalidArgument(f"{where}: {error}") from None


def _concentrated(limit: object) -> bool:
    """Whether the account counts in rho, as far as the file says it."""
    return isinstance(limit, Mapping) and bool({"rho", "mu"} & set(limit))


def _ranges(
    number: int, given: Mapping[str, Any], *, setting: Setting, limit: object
) -> RangeStatistic:
    _known(f"statistic {number}", given, range_statistic.KNOWN)
    try:
        return range_statistic.range_statistic(
            given,
            where=_condition(given.get("where")),
            setting=setting,
            currency="rho" if _concentrated(limit) else "epsilon",
        )
    except (PrivacyError, TypeError) as error:
        raise InvalidArgument(f"statistic {number}: {error}") from None


def _targeted(one: Statistic, within: Fraction, *, setting: Setting) -> Statistic:
    """The statistic at the smallest amount, of the kind that it has, that meets a target."""
    found = amount_for(
        one.query,
        setting=setting,
        within=within,
        rows=one.rows,
        currency="epsilon" if one.budget.rho is None else "rho",
        delta=one.budget.delta,
    )
    return replace(one, budget=found, within=within)


def _query(given: Mapping[str, Any], folder: Path) -> Query:
    kind, name = given.get("kind"), given.get("name", "")
    where, of = _condition(given.get("where")), given.get("of")
    keys = _keys(given.get("keys"), folder)
    if kind not in _KINDS:
        raise InvalidArgument(f"kind must be one of {', '.join(_KINDS)}; got {kind!r}.")
    for setting, kinds in _OWN.items():
        if setting in given and kind not in kinds:
            raise InvalidArgument(f"{setting} belongs to {' and '.join(kinds)}, not to a {kind}.")
    if kind == "histogram":
        if "by" in given:
            raise InvalidArgument("a histogram takes of and edges, not by.")
        return ask.histogram(of, edges=given.get("edges"), where=where, keys=keys, name=name)  # type: ignore[arg-type]  # checked there
    by = _groups(given.get("by", []))
    more: dict[str, Any] = {"where": where, "by": by, "keys": keys, "name": name}
    if (kind in ("count", "units")) != (of is None):
        which = "no of" if of is not None else "of, the name of a column"
        raise InvalidArgument(f"a {kind} takes {which}.")
    pair = of if isinstance(of, list) else [of]
    if (kind == "covariance") != (len(pair) == 2):
        raise InvalidArgument('a covariance takes of = ["one", "other"], the rest one column.')
    ranks = {name: given.get(name) for name in ("bins", "method")}
    made: dict[object, Callable[[], Query]] = {
        "count": lambda: ask.count(**more),
        "units": lambda: ask.units(**more),
        "sum": lambda: ask.total(of, **more),  # type: ignore[arg-type]  # checked there
        "mean": lambda: ask.mean(of, **more),  # type: ignore[arg-type]  # checked there
        "variance": lambda: ask.variance(of, **more),  # type: ignore[arg-type]  # checked there
        "covariance": lambda: ask.covariance(*pair, **more),
        "median": lambda: ask.median(of, **ranks, **more),  # type: ignore[arg-type]  # checked there
        "quantiles": lambda: ask.quantiles(of, given.get("levels", ()), **ranks, **more),  # type: ignore[arg-type]  # checked there
    }
    return made[kind]()


def _keys(given: object, folder: Path) -> KeySet | None:
    """A list, or a table {values} or {file, columns}, and whether the rest is a group."""
    if given is None:
        return None
    settings = {"values": given} if isinstance(given, list) else given
    found = _known("keys", settings, ("values", "file", "columns", "other"))
    other = found.get("other", False)
    if "file" in found:
        path = folder / _text(found, "keys", "file")
        return ask.keys(path, columns=found.get("columns", ()), other=other)
    values = found.get("values", [])
    return ask.keys([tuple(k) if isinstance(k, list) else k for k in values], other=other)


def _groups(given: object) -> dict[str, Expression]:
    """Names of columns, or tables {column, cut}."""
    found: dict[str, Expression] = {}
    for one in given if isinstance(given, list) else [given]:
        settings = _known("by", {"column": one} if isinstance(one, str) else one, ("column", "cut"))
        name = _text(settings, "by", "column")
        if name in found:
            raise InvalidArgument(f"by names {name!r} twice.")
        found[name] = col(name).cut(settings["cut"]) if "cut" in settings else col(name)
    return found


def _condition(given: object) -> Expression | None:
    """A list of {column, test = value} that must all hold."""
    if given is None:
        return None
    found: Expression | None = None
    for one in given if isinstance(given, list) else [given]:
        settings = _known("where", one, ("column", *_TESTS))
        column = col(_text(settings, "where", "column"))
        tests = [_TESTS[name](column, value) for name, value in settings.items() if name in _TESTS]
        if not tests:
            raise InvalidArgument(f"where needs one of {', '.join(_TESTS)}.")
        for test in tests:
            found = test if found is None else found & test
    return found


def _column(name: str, given: object) -> Declared:
    arguments = dict(given) if isinstance(given, Mapping) else {}
    make = _COLUMNS.get(arguments.pop("kind", ""))
    if make is None:
        raise InvalidArgument(f"columns.{name}: kind must be one of {', '.join(_COLUMNS)}.")
    try:
        if make is schema.category:
            return make(arguments.pop("levels", ()), **arguments)
        return make(**arguments)
    except TypeError:
        raise InvalidArgument(
            f"columns.{name}: wrong or missing settings: {sorted(arguments)}."
        ) from None
    except PrivacyError as error:
        raise InvalidArgument(f"columns.{name}: {error}") from None


def _limit(given: object, relation: Relation) -> Guarantee:
    match given:
        case {"epsilon": epsilon, "delta": delta, **rest} if not rest:
            return approx(epsilon, delta, relation=relation)
        case {"epsilon": epsilon, **rest} if not rest:
            return pure(epsilon, relation=relation)
        case {"rho": rho, **rest} if not rest:
            return zcdp(rho, relation=relation)
        case {"mu": mu, **rest} if not rest:
            return gdp(mu, relation=relation)
        case _:
            raise InvalidArgument(
                "account.limit must be {epsilon}, {epsilon, delta}, {rho} or {mu}."
            )


def _relation(given: object) -> Relation:
    known = {"add_remove": Relation.ADD_REMOVE, "replace_one": Relation.REPLACE_ONE}
    if given not in known:
        raise InvalidArgument(f"table.relation must be one of {', '.join(known)}, got {given!r}.")
    return known[str(given)]


def _source(given: str, folder: Path) -> str:
    """An address, or a path that stands beside the release file."""
    return given if "://" in given else str(folder / given)


def _ledger(url: str, folder: Path) -> str:
    """A relative SQLite file stands beside the release file."""
    scheme, _, rest = url.partition(":///")
    if scheme == "sqlite" and rest and not rest.startswith("/"):
        return f"sqlite:///{(folder / rest).absolute()}"
    return url


def _section(content: Mapping[str, Any], name: str, known: Sequence[str]) -> Mapping[str, Any]:
    if name not in content:
        raise InvalidArgument(f"The file needs a section [{name}].")
    return _known(name, content[name], known)


def _known(where: str, given: object, known: Sequence[str]) -> Mapping[str, Any]:
    if not isinstance(given, Mapping):
        raise InvalidArgument(f"{where}: must be a table of settings.")
    unknown = sorted(set(given) - set(known))
    if unknown:
        raise InvalidArgument(f"{where}: unknown {unknown}; known are {', '.join(known)}.")
    return given


def _text(section: Mapping[str, Any], where: str, name: str) -> str:
    value = section.get(name)
    if not isinstance(value, str) or not value:
        raise InvalidArgument(f"{where}: {name} must be text.")
    return value

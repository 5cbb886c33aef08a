"""What `discreet series` does: read a panel, fit or take a model, tell what leaks."""

from __future__ import annotations

import csv
import gzip
import json
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from discreet.accounting.conversion import gaussian_sigma
from discreet.audit import series
from discreet.audit.series._fit import Dynamics
from discreet.audit.series._report import LeakageReport
from discreet.audit.series.exchangeable import ExchangeableVAR
from discreet.audit.series.model import VAR
from discreet.audit.series.threat_model import Known
from discreet.audit.series.worst_case import StressTest
from discreet.cli._console import literal
from discreet.cli.release import EXIT_SHORT
from discreet.core._validate import positive, probability
from discreet.core.errors import BudgetExceeded, InvalidArgument, NotCertified, OutOfDomain
from discreet.data.source import sealed
from discreet.ledger.account import Account
from discreet.ledger.ledger import Ledger
from discreet.noise.distribution import Floats
from discreet.noise.random_source import system_rng
from discreet.report.leakage_report import SeriesPage, as_csv, as_html, as_json

# ── Panel file ───────────────────────────────────────────────────────────────────────────────────
# A panel from a CSV: a line for each person (wide), or for each value (long).


_MISSING = frozenset({"", "na", "nan", "n/a", "null", "none", "."})


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PanelFile:
    """People x times, and what both are called."""

    values: Floats = field(repr=False)
    names: tuple[str, ...] = field(repr=False)
    times: tuple[str, ...]
    dropped: int = 0
    """People who were left out because a value of theirs is missing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Which columns hold what. Wide, unless ``time`` and ``value`` are named."""

    person: str | None = None
    time: str | None = None
    value: str | None = None
    delimiter: str = ","
    drop: bool = False
    """Whether people with missing values are left out."""

    @property
    def long(self) -> bool:
        """Whether a line is one value."""
        return self.time is not None or self.value is not None


def read(path: Path, layout: Layout) -> PanelFile:
    """Read a panel; no value appears in an error, only how many are wrong, and in which line."""
    if len(layout.delimiter) != 1:
        raise InvalidArgument("--delimiter must be one character.")
    lines = sealed("reading the panel", lambda: list(_lines(path, layout.delimiter)))
    if len(lines) < 2:
        raise OutOfDomain(
            "The panel needs a first line with names of columns, and at least one more."
        )
    head, rows = lines[0][1], lines[1:]
    for number, row in rows:
        if len(row) != len(head):
            raise OutOfDomain(
                f"Line {number} has {len(row)} cells, the first line has {len(head)}: "
                "everybody needs as many times."
            )
    names, times, values = (_long if layout.long else _wide)(head, rows, layout)
    whole = np.asarray(np.isfinite(values).all(axis=1))
    if whole.all():
        return PanelFile(values=values, names=names, times=times)
    missing = int(np.isnan(values).sum())
    if not layout.drop:
        raise OutOfDomain(
            f"{missing:,} values of {int((~whole).sum()):,} people are missing. Fill them, cut the "
            "series to times that all have, or leave those people out with --drop-incomplete."
        )
    if not whole.any():
        raise OutOfDomain("Everybody has missing values: no panel is left.")
    kept = tuple(name for name, ok in zip(names, whole, strict=True) if ok)
    return PanelFile(values=values[whole], names=kept, times=times, dropped=len(names) - len(kept))


def _lines(path: Path, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    packed = path.suffix == ".gz"
    with (gzip.open if packed else open)(path, "rt", encoding="utf-8-sig", newline="") as stream:
        reader = csv.reader(stream, delimiter=delimiter)
        for row in reader:
            if row:
                yield reader.line_num, row


_Read = tuple[tuple[str, ...], tuple[str, ...], Floats]


def _wide(head: Sequence[str], rows: Sequence[tuple[int, list[str]]], layout: Layout) -> _Read:
    """The first column, or the named one, says who; all others are times."""
    place = 0 if layout.person is None else _place(head, layout.person)
    times = tuple(name for i, name in enumerate(head) if i != place)
    if not times:
        raise OutOfDomain("The panel has one column: names of people, and no times.")
    names = tuple(row[place] for _, row in rows)
    if len(set(names)) < len(names):
        raise OutOfDomain(
            "The first column must name each person once; if a line is one value, name the columns "
            "with --person, --time and --value."
        )
    values = [
        [_number(cell, line) for i, cell in enumerate(row) if i != place] for line, row in rows
    ]
    return names, times, np.array(values)


def _long(head: Sequence[str], rows: Sequence[tuple[int, list[str]]], layout: Layout) -> _Read:
    if layout.person is None or layout.time is None or layout.value is None:
        raise InvalidArgument("A panel with one value a line needs --person, --time and --value.")
    who, when, what = (_place(head, name) for name in (layout.person, layout.time, layout.value))
    people = {name: i for i, name in enumerate(dict.fromkeys(row[who] for _, row in rows))}
    moments = {name: t for t, name in enumerate(_ordered({row[when] for _, row in rows}))}
    values = np.full((len(people), len(moments)), math.nan)
    seen = np.zeros(values.shape, dtype=bool)
    for number, row in rows:
        cell = people[row[who]], moments[row[when]]
        if seen[cell]:
            raise OutOfDomain(f"Line {number} repeats a person and time: one value for each.")
        seen[cell] = True
        values[cell] = _number(row[what], number)
    return tuple(people), tuple(moments), values


def _ordered(times: set[str]) -> list[str]:
    """As numbers, if they are; otherwise as text, which is right for dates like 2024-05-01."""
    try:
        return sorted(times, key=float)
    except ValueError:
        return sorted(times)


def _place(head: Sequence[str], column: str) -> int:
    if head.count(column) != 1:
        raise InvalidArgument(f"column {column!r} must be in the first line once: check its name.")
    return head.index(column)


def _number(text: str, line: int) -> float:
    word = text.strip()
    if word.lower() in _MISSING:
        return math.nan
    try:
        value = float(word)
    except ValueError:
        raise OutOfDomain(
            f"Line {line} has a cell that is no number. In a wide panel the first column names "
            "people, all others are times."
        ) from None
    if math.isinf(value):
        raise OutOfDomain(f"Line {line} has an infinite value.")
    return value


# ── Panel leaks ──────────────────────────────────────────────────────────────────────────────────


_PLAUSIBLE = 20
_STRESSED = 200  # people; each change is a model of its own


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesOptions:
    """What is published, what is to be kept, and how the model is found."""

    bounds: tuple[float, float]
    noise: float | None
    promise: float | None
    released: str | None
    delta: float
    target: float | None
    attacker_knows: Known
    order: int
    dynamics: Dynamics
    model: Path | None

    def std(self, people: int) -> float:
        """The noise on each mean: given, or what keeps the promise for one value."""
        if (self.noise is None) == (self.promise is None):
            raise InvalidArgument("Give --noise, or --promise: what is on each published mean.")
        if self.noise is not None:
            return float(positive("--noise", self.noise))
        promise = float(positive("--promise", self.promise))
        width = self.bounds[1] - self.bounds[0]
        return gaussian_sigma(promise, delta=self.delta, sensitivity=width / people)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesBudgetOptions:
    """The budget of a private fit."""

    epsilon: float | None
    delta: float | None
    spread: float | None
    ledger: str | None
    account: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesOutputOptions:
    """Where the answer goes."""

    as_json: bool
    html: Path | None
    csv: Path | None


def run(
    path: Path,
    *,
    layout: Layout,
    asked: SeriesOptions,
    paid: SeriesBudgetOptions,
    written: SeriesOutputOptions,
) -> int:
    """Read the panel, fit or take a model, and tell."""
    for target in (written.html, written.csv):
        if target is not None and not target.parent.is_dir():
            raise InvalidArgument(f"{target} cannot be written: there is no such folder.")
    if paid.epsilon is None and (paid.ledger or paid.account or paid.delta or paid.spread):
        raise InvalidArgument("--fit-delta, --spread, --ledger and --account need --epsilon.")
    if paid.epsilon is not None and layout.drop:
        raise InvalidArgument(
            "--drop-incomplete makes the number of people depend on their values: leave it out "
            "with --epsilon, and complete the panel first."
        )
    columns = SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn()
    try:
        with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
            progress.add_task("reading, fitting, looking for noise")
            panel = read(path, layout)
            tell = _plain if paid.epsilon is None else _private
            told = tell(path, panel, asked, paid)
    except BudgetExceeded as refusal:
        if written.as_json:
            print(json.dumps({"refused": str(refusal)}))
        print(f"discreet: the budget is short. {refusal} Nothing was fitted.", file=sys.stderr)
        return EXIT_SHORT
    if written.html is not None:
        written.html.write_text(as_html(told), encoding="utf-8")
    if written.csv is not None:
        written.csv.write_text(as_csv(told), encoding="utf-8")
    _show(told, panel, written)
    return 0


def _plain(
    path: Path, panel: PanelFile, asked: SeriesOptions, _: SeriesBudgetOptions
) -> SeriesPage:
    people, times = panel.values.shape
    common = _common(asked, panel)
    given = None if asked.model is None else _model(asked.model)
    if isinstance(given, ExchangeableVAR):
        report = series.assess(given, people=people, times=times, **common)
        return _told(path, panel, report, model=given)
    report = series.report(
        panel.values, model=given, order=asked.order, dynamics=asked.dynamics, **common
    )
    stressed: tuple[StressTest, ...] = ()
    if people <= _STRESSED and isinstance(report.model, VAR):
        stressed = series.stress(
            report.model,
            releases=report.releases,
            attacker_knows=asked.attacker_knows,
            times=times,
            delta=asked.delta,
        )
    return _told(path, panel, report, names=panel.names, stressed=stressed)


def _private(
    path: Path, panel: PanelFile, asked: SeriesOptions, paid: SeriesBudgetOptions
) -> SeriesPage:
    if asked.model is not None:
        raise InvalidArgument("Give --model, or --epsilon for a private fit, not both.")
    people, times = panel.values.shape
    common = _common(asked, panel)  # before anything is spent
    with ExitStack() as stack:
        found = series.private_fit(
            panel.values,
            bounds=asked.bounds,
            epsilon=paid.epsilon,
            delta=paid.delta,
            spread=paid.spread,
            order=asked.order,
            account=_account(paid, stack),
            label=f"model of {path.name}",
        )
    others: tuple[ExchangeableVAR, ...] = ()
    with suppress(NotCertified):  # what was paid for is shown all the same
        others = found.plausible(_PLAUSIBLE, rng=system_rng())
    report = series.assess(
        found.alike,
        people=people,
        times=times,
        guarantee=found.guarantee,
        plausible=others,
        **common,
    )
    return _told(path, panel, report, model=found.alike)


def _common(asked: SeriesOptions, panel: PanelFile) -> dict[str, Any]:
    """What is asked of any model, checked."""
    probability("--delta", asked.delta, zero=False, one=False)
    return {
        "bounds": asked.bounds,
        "std": asked.std(len(panel.values)),
        "released": _released(asked.released, panel.times),
        "delta": asked.delta,
        "target": None if asked.target is None else float(positive("--target", asked.target)),
        "known": asked.attacker_knows,
    }


def _account(paid: SeriesBudgetOptions, stack: ExitStack) -> Account | None:
    if paid.ledger is None and paid.account is None:
        return None
    if paid.ledger is None or paid.account is None:
        raise InvalidArgument("Give --ledger and --account together.")
    ledger = stack.enter_context(Ledger(paid.ledger))
    return ledger.account(paid.account)


def _told(path: Path, panel: PanelFile, report: LeakageReport, **more: Any) -> SeriesPage:
    return SeriesPage(report=report, title=f"What {path.name} leaks", times=panel.times, **more)


def _released(text: str | None, times: Sequence[str]) -> list[int] | None:
    """Times by what the file calls them."""
    if text is None:
        return None
    wanted = [name.strip() for name in text.split(",")]
    unknown = [name for name in wanted if name not in times]
    if unknown:
        raise InvalidArgument(f"--released must name times of the panel; {unknown[0]!r} is none.")
    return [times.index(name) for name in wanted]


def _model(path: Path) -> VAR | ExchangeableVAR:
    """A public model: habits, variance and correlation; or lags and noise."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, ValueError):
        raise InvalidArgument(f"{path} cannot be read as JSON.") from None
    if isinstance(content, dict) and isinstance(content.get("model"), dict):
        content = content["model"]  # what this command writes
    match content:
        case {"habits": [*habits], "variance": variance, "correlation": correlation}:
            return ExchangeableVAR(habits=tuple(habits), variance=variance, correlation=correlation)
        case {"lags": lags, "noise": noise}:
            return VAR(lags=lags, noise=noise)
    raise InvalidArgument(
        f"{path} must hold habits, variance and correlation (people who are alike), "
        "or lags and noise (matrices)."
    )


def _show(told: SeriesPage, panel: PanelFile, written: SeriesOutputOptions) -> None:
    if written.as_json:
        print(as_json(told))
        return
    if panel.dropped:
        print(f"{panel.dropped:,} people with missing values were left out.", file=sys.stderr)
    literal(soft_wrap=True).print(_text(told), highlight=False)
    if written.html is not None:
        print(f"The report, to be opened in a browser: {written.html.resolve().as_uri()}")


def _text(told: SeriesPage) -> str:
    report = told.report
    rows = told.rows()
    wide = max(len("person"), *(len(row["person"]) for row in rows[:10]))
    lines = [
        f"{report.number:,} people, {len(told.times)} times; the worst people first",
        f"epsilon of one value at delta {report.delta:g}",
        f"{'person':<{wide}} {'time':>12} {'leaks':>8} {'promised':>9} {'all values':>11}",
    ]
    lines += [
        f"{row['person']:<{wide}} {row['time']:>12} {row['leaks']:>8.3g} {row['promised']:>9.3g} "
        f"{row['all_values']:>11.3g}"
        for row in rows[:10]
    ]
    lines += [f"and {len(rows) - 10:,} more"] if len(rows) > 10 else []
    lines += report.remarks()
    lines += [f"the model: {told.model}"] if told.model is not None else []
    lines.append(f"to keep epsilon {report.target:.4g} for every value:")
    lines += [f"  {fix}" for fix in report.fixes]
    if told.stressed:
        first = told.stressed[0]
        lines.append(f"if the model is wrong, up to epsilon {first.epsilon:.3g}: {first.change}")
    lines += [f"assumed: {line}" for line in report.cells.assumptions]
    return "\n".join([*lines, "", report.publication])

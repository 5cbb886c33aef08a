"""What `discreet series` does: read a panel, fit or take a model, tell what leaks."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from discreet.audit import series
from discreet.audit.series._fit import Dynamics
from discreet.audit.series._mean_noise import mean_noise
from discreet.audit.series._report import LeakageReport
from discreet.audit.series.exchangeable import ExchangeableVAR
from discreet.audit.series.model import VAR
from discreet.audit.series.threat_model import Known
from discreet.audit.series.worst_case import StressTest
from discreet.cli._console import literal_console
from discreet.cli.release import EXIT_SHORT
from discreet.core._validate import positive, probability
from discreet.core.errors import BudgetExceeded, InvalidArgument, NotCertified
from discreet.core.number_format import number, short
from discreet.ledger.account import Account
from discreet.ledger.ledger import Ledger
from discreet.noise.random_source import system_rng
from discreet.report.leakage_report import SeriesPage, as_csv, as_html, as_json
from discreet.spec.panel_csv import PanelFile, PanelLayout, read, read_private

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
        return mean_noise(self.bounds, people=people, epsilon=promise, delta=self.delta)


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
    layout: PanelLayout,
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
            panel = read(path, layout) if paid.epsilon is None else read_private(path, layout)
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
        "attacker_knows": asked.attacker_knows,
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
    literal_console(soft_wrap=True).print(_text(told), highlight=False)
    if written.html is not None:
        print(f"The report, to be opened in a browser: {written.html.resolve().as_uri()}")


def _text(told: SeriesPage) -> str:
    report = told.report
    rows = told.rows()
    wide = max(len("person"), *(len(row["person"]) for row in rows[:10]))
    lines = [
        f"{report.number:,} people, {len(told.times)} times; the worst people first",
        f"epsilon of one value at delta {number(report.delta)}",
        f"{'person':<{wide}} {'time':>12} {'leaks':>8} {'guaranteed':>10} {'all values':>11}",
    ]
    lines += [
        f"{row['person']:<{wide}} {row['time']:>12} {short(row['leaks'], digits=3):>8} "
        f"{short(row['promised'], digits=3):>10} "
        f"{short(row['all_values'], digits=3):>11}"
        for row in rows[:10]
    ]
    lines += [f"and {len(rows) - 10:,} more"] if len(rows) > 10 else []
    lines += report.remarks()
    lines += [f"the model: {told.model}"] if told.model is not None else []
    lines.append(f"to keep epsilon {short(report.target)} for every value:")
    lines += [f"  {fix}" for fix in report.fixes]
    if told.stressed:
        first = told.stressed[0]
        lines.append(
            f"if the model is wrong, up to epsilon {short(first.epsilon, digits=3)}: {first.change}"
        )
    lines += [f"assumed: {line}" for line in report.cells.assumptions]
    return "\n".join([*lines, "", report.publication])

"""E10: what it costs to trust nobody, local against central."""

from __future__ import annotations

from discreet_studies.checks import Claims
from discreet_studies.public_data import births
from discreet_studies.range_queries import central_model
from discreet_studies.range_queries import reference_values as stated
from discreet_studies.range_queries.example_counts import even
from discreet_studies.range_queries.local_model import rmse
from discreet_studies.range_queries.short_ranges import local_models
from discreet_studies.study import Figure, Findings, Line, StudyCheck, StudySetting, StudyTable


def local_against_central(setting: StudySetting) -> Findings:
    """E10: the local model costs a factor that grows with the square root of the users."""
    del setting  # closed forms
    checks: list[StudyCheck] = []
    rows = []
    for domain in stated.DOMAINS:
        length = stated.FLAT_WINS[domain]
        central = {
            "as coded": central_model.coded(length=length, domain=domain, degree=2),
            "unary": central_model.plain(length=length, domain=domain, degree=2),
        }
        errors = {}
        for kind, beside in central.items():
            model = local_models(kind)["B=2"]
            errors[kind] = rmse(model, even(domain), length=length)
            more = rmse(model, even(domain, per_day=1200), length=length)
            checks.append(
                Claims(source="Friis 2021, Figures 24 and 25; E10").number(
                    f"E10/users, {kind}/D={domain}",
                    f"four times the users, twice the ratio, {kind}, domain {domain}",
                    expected=2.0,
                    got=more / errors[kind],
                    absolute=1e-9,
                )
            )
            if domain >= 256:
                checks.append(
                    Claims(source="Friis 2021, Figures 24 and 25; E10").at_least(
                        f"E10/ratio, {kind}/D={domain}",
                        f"local over central RMSE, trees of degree 2, {kind}, domain {domain}",
                        expected=100.0,
                        got=errors[kind] / beside,
                    )
                )
        rows.append(_row(domain, length, central, errors))
    checks += _sizes()
    return Findings(checks=tuple(checks), tables=(_ratio_table(rows),), figures=(_figure(rows),))


def _row(
    domain: int, length: int, central: dict[str, float], local: dict[str, float]
) -> tuple[float, ...]:
    counts = births(domain)
    real = rmse(local_models("unary")["B=2"], counts, length=length)
    inside = length * float(counts.mean())
    return (
        domain,
        length,
        central["unary"],
        2 * central["unary"],
        local["unary"],
        local["unary"] / central["unary"],
        real,
        100 * real / inside,
        100 * central["unary"] / inside,
    )


def _sizes() -> list[StudyCheck]:
    claims = Claims(source="Friis 2021, Figures 24 and 25")
    smallest = min(stated.EPSILONS)
    largest = max(
        central_model.coded(length=length, domain=domain, degree=2) / smallest
        for domain, length in stated.FLAT_WINS.items()
    )
    least = min(
        rmse(local_models("as coded")["B=2"], even(d), length=stated.FLAT_WINS[d])
        for d in (512, 1024, 2048)
    )
    return [
        claims.at_most(
            "E10/central size", "central errors as coded lie between 0 and 200: largest",
            expected=200.0, got=largest,
        ),
        claims.at_least(
            "E10/local size", "local errors are tens of thousands from 512 days on: least",
            expected=1e4, got=least,
        ),
    ]  # fmt: skip


def _ratio_table(rows: list[tuple[float, ...]]) -> StudyTable:
    return StudyTable(
        id="E10/ratio",
        title="Local against central at epsilon 1: trees of degree 2, lengths of Table 3",
        columns=(
            "D",
            "r",
            "central",
            "central, replace-one",
            "local, 300 a day",
            "ratio",
            "local, births",
            "% of the range",
            "central, % of the range",
        ),
        rows=tuple(rows),
        note="Exact RMSE of plain trees with the right noise and of unary encoding. The local "
        "promise is about replacing a value, for which the central noise is twice as large.",
    )


def _figure(rows: list[tuple[float, ...]]) -> Figure:
    domains = tuple(row[0] for row in rows)
    return Figure(
        id="E10/errors",
        title="Local against central: error against the domain",
        x="domain (days)",
        y="RMSE (visits)",
        lines=(
            Line(label="central, add-remove", x=domains, y=tuple(row[2] for row in rows)),
            Line(label="central, replace-one", x=domains, y=tuple(row[3] for row in rows)),
            Line(label="local, 300 a day", x=domains, y=tuple(row[4] for row in rows)),
            Line(label="local, births", x=domains, y=tuple(row[6] for row in rows)),
        ),
        note="epsilon 1, trees of degree 2, lengths of Table 3, right noise, exact",
        log_x=True,
        log_y=True,
    )

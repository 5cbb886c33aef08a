"""E7 and E8: flat against trees at the short lengths of Table 3, central and local."""

from __future__ import annotations

import math

from discreet.noise.distribution import Ints
from discreet_studies.checks import Claims
from discreet_studies.public_data import births
from discreet_studies.range_queries import central_model, simulation
from discreet_studies.range_queries import reference_values as stated
from discreet_studies.range_queries.example_counts import even, visits
from discreet_studies.range_queries.local_model import (
    Flat,
    Levels,
    LocalModel,
    PublishedUnary,
    published,
    rmse,
)
from discreet_studies.study import Figure, Findings, Line, StudyCheck, StudySetting, StudyTable

_SAMPLED = (
    "Printed from simulated structures and sampled ranges; here is the exact mean over all ranges "
    "of the length."
)
_NAMES = ("flat", "B=2", "B=3", "B=4")
_UNARY_WHY = (
    "The thesis finds flat beaten by trees from 256 days on. That is the oracle, whose variance "
    "grows with the domain; by unary encoding flat is best up to 512 days."
)


def central_short(setting: StudySetting) -> Findings:
    """E7: flat wins, and the largest degree is the best tree."""
    del setting  # closed forms: nothing to shorten
    right = {d: _central(d, as_coded=False) for d in stated.DOMAINS}
    coded = {d: _central(d, as_coded=True) for d in stated.DOMAINS}
    checks: list[StudyCheck] = []
    for domain in stated.DOMAINS:
        checks += Claims(source="E7").numbers(
            f"E7/corrected/D={domain}",
            f"RMSE at epsilon 1, right noise, domain {domain}",
            expected=dict(
                zip(
                    _NAMES,
                    (stated.FLAT_CENTRAL[domain], *stated.TREES_RIGHT[domain]),
                    strict=True,
                )
            ),
            got=right[domain],
            absolute=0.0501,  # printed to one place
        )
        checks += Claims(source="E7").sampled(
            f"E7/as coded/D={domain}",
            f"RMSE at epsilon 1, as coded, domain {domain}",
            expected=dict(zip(_NAMES[1:], stated.TREES_CODED[domain], strict=True)),
            got={name: coded[domain][name] for name in _NAMES[1:]},
            fine=0.01,
            coarse=0.07,
            why=_SAMPLED,
        )
        for name, errors in (("as coded", coded[domain]), ("corrected", right[domain])):
            checks.append(
                Claims(source="Friis 2021, Figure 20").order(
                    f"E7/order, {name}/D={domain}",
                    f"flat wins, the largest degree is the best tree, {name}, domain {domain}",
                    expected=("flat", "B=4", "B=3", "B=2"),
                    got=errors,
                )
            )
    return Findings(
        checks=tuple(checks),
        tables=(_central_table(right, coded),),
        figures=(
            _figure(
                "E7",
                "Central model, short ranges: error against the domain",
                {"corrected": right, "as coded": coded},
                note="epsilon 1, lengths of Table 3 (6 to 64 days), exact; flat is the same twice",
            ),
        ),
    )


def _central(domain: int, *, as_coded: bool) -> dict[str, float]:
    length = stated.FLAT_WINS[domain]
    error = central_model.coded if as_coded else central_model.plain
    trees = {f"B={b}": error(length=length, domain=domain, degree=b) for b in stated.DEGREES}
    return {"flat": math.sqrt(2 * length), **trees}


def local_short(setting: StudySetting) -> Findings:
    """E8: as coded flat wins on 32 days alone; by a right oracle up to 512."""
    tables = {
        name: {d: local_errors(even(d), name, length=stated.FLAT_WINS[d]) for d in stated.DOMAINS}
        for name in ("as coded", "unary")
    }
    checks: list[StudyCheck] = []
    for domain in stated.DOMAINS:
        for name, printed in zip(tables, stated.LOCAL_SHORT[domain], strict=True):
            expected = dict(zip(_NAMES, map(float, printed), strict=True))
            claim = f"RMSE at epsilon 1, local, {name}, domain {domain}"
            spaced = local_errors(
                even(domain), name, length=stated.FLAT_WINS[domain], ranges=stated.SPACED
            )
            checks += Claims(source="E8").numbers(
                f"E8/{name}, spaced ranges/D={domain}",
                f"{claim}, 60 spaced ranges",
                expected={key: expected[key] for key in _NAMES[1:]},
                got={key: spaced[key] for key in _NAMES[1:]},
                absolute=0.51,
            )
            checks += Claims(source="E8").sampled(
                f"E8/{name}/D={domain}",
                claim,
                expected=expected,
                got=tables[name][domain],
                fine=0.0001,
                coarse=0.05,
                why="Printed as a mean over 60 evenly spaced ranges (flat by unary encoding: "
                "without the variance of the user's own bit); here is the mean over all ranges.",
            )
    data = {
        "even counts": {d: even(d) for d in stated.DOMAINS},
        "visits": {d: visits(d) for d in stated.DOMAINS},
        "births": {d: births(d) for d in stated.DOMAINS},
    }
    for name, by_domain in data.items():
        checks += _orders(name, by_domain)
    checks += _simulated(setting)
    return Findings(
        checks=tuple(checks),
        tables=(_local_table(tables),),
        figures=(
            _figure(
                "E8",
                "Local model, short ranges: error against the domain",
                tables,
                note="epsilon 1 (nominal as coded), 300 visits a day, lengths of Table 3, exact",
            ),
        ),
    )


def local_models(name: str, *, epsilon: float = 1.0) -> dict[str, LocalModel]:
    """Flat and the three trees, as coded (with root) or by unary encoding (without)."""
    coded = name == "as coded"
    oracle = published(epsilon) if coded else PublishedUnary(epsilon=epsilon)
    trees = {f"B={b}": Levels(oracle=oracle, degree=b, root=coded) for b in stated.DEGREES}
    return {"flat": Flat(oracle=oracle), **trees}


def local_errors(
    counts: Ints, name: str, *, length: int, ranges: int | None = None
) -> dict[str, float]:
    """RMSE at epsilon 1 of flat and the three trees over ranges of a length."""
    return {
        key: rmse(model, counts, length=length, ranges=ranges)
        for key, model in local_models(name).items()
    }


def _orders(data: str, by_domain: dict[int, Ints]) -> list[StudyCheck]:
    claims = Claims(source="Friis 2021, Figure 21; E8")
    coded = {
        d: local_errors(by_domain[d], "as coded", length=stated.FLAT_WINS[d])
        for d in (32, 512, 2048)
    }
    made = [
        claims.equal(
            f"E8/best, as coded/{data}, D=32",
            f"the best as coded on 32 days, {data}",
            expected="flat",
            got=_best(coded[32]),
        ),
        claims.order(
            f"E8/order, as coded/{data}, D=512",
            f"as coded on 512 days, {data}",
            expected=("B=2", "B=3", "flat", "B=4"),
            got=coded[512],
        ),
        claims.equal(
            f"E8/worst, as coded/{data}, D=2048",
            f"the worst as coded on 2048 days, {data}",
            expected="flat",
            got=max(coded[2048], key=coded[2048].__getitem__),
        ),
    ]
    for domain in (32, 128, 256, 512):
        errors = local_errors(by_domain[domain], "unary", length=stated.FLAT_WINS[domain])
        made.append(
            Claims(source="E8, M4", why=_UNARY_WHY).equal(
                f"E8/best, unary/{data}, D={domain}",
                f"the best by unary encoding on {domain} days, {data}",
                expected="flat",
                got=_best(errors),
            )
        )
    return made


def _best(errors: dict[str, float]) -> str:
    return min(errors, key=errors.__getitem__)


def _simulated(setting: StudySetting) -> list[StudyCheck]:
    rng = setting.rng("E8")
    made = []
    for domain in (128,) if setting.quick else (128, 512, 2048):
        for kind in ("as coded", "unary"):
            for name, model in local_models(kind).items():
                made.append(
                    simulation.local(
                        Claims(source="F15, F16"),
                        f"E8/simulated, {kind}/D={domain}, {name}",
                        f"local, {kind}, {name}, births of {domain} days",
                        model,
                        births(domain),
                        length=stated.FLAT_WINS[domain],
                        structures=setting.times(300, quick=100),
                        rng=rng,
                    )
                )
    return made


def _central_table(
    right: dict[int, dict[str, float]], coded: dict[int, dict[str, float]]
) -> StudyTable:
    return StudyTable(
        id="E7/errors",
        title="Central RMSE at epsilon 1 and the lengths of Table 3",
        columns=(
            "D",
            "r",
            "flat",
            *(f"{name}, corrected" for name in _NAMES[1:]),
            *(f"{name}, as coded" for name in _NAMES[1:]),
        ),
        rows=tuple(
            (
                d,
                stated.FLAT_WINS[d],
                *right[d].values(),
                *(coded[d][name] for name in _NAMES[1:]),
            )
            for d in stated.DOMAINS
        ),
        note="Exact, mean over all ranges; at another epsilon divide by it. As coded the noise is "
        "too little: the promise is broken (E0).",
    )


def _local_table(tables: dict[str, dict[int, dict[str, float]]]) -> StudyTable:
    return StudyTable(
        id="E8/errors",
        title="Local RMSE at epsilon 1 and the lengths of Table 3, 300 visits a day",
        columns=("D", "r", *(f"{name}, {kind}" for kind in tables for name in _NAMES)),
        rows=tuple(
            (d, stated.FLAT_WINS[d], *(error for by in tables.values() for error in by[d].values()))
            for d in stated.DOMAINS
        ),
        note="Exact, mean over all ranges; as coded epsilon is nominal and the true one larger.",
    )


def _figure(
    name: str, title: str, tables: dict[str, dict[int, dict[str, float]]], *, note: str
) -> Figure:
    return Figure(
        id=f"{name}/errors",
        title=title,
        x="domain (days)",
        y="RMSE (visits)",
        lines=tuple(
            Line(
                label=f"{key}, {kind}",
                x=tuple(map(float, stated.DOMAINS)),
                y=tuple(by_domain[d][key] for d in stated.DOMAINS),
            )
            for kind, by_domain in tables.items()
            for key in _NAMES
        ),
        note=note,
        log_x=True,
        log_y=True,
    )

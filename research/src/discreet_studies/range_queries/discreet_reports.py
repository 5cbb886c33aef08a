"""E11: the local experiments of the thesis again, with the clients of this library beside them."""

from __future__ import annotations

import numpy as np

from discreet.local.oracles.base import FrequencyOracle
from discreet.local.oracles.randomized_response import grr
from discreet.local.oracles.unary_encoding import oue
from discreet.local.ranges.hierarchical import flat_histogram, hierarchical_histogram
from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import seeded_rng
from discreet_studies.checks import Claims, explained
from discreet_studies.range_queries import client_reports as clients
from discreet_studies.range_queries import reference_values as stated
from discreet_studies.range_queries import simulation
from discreet_studies.range_queries.example_counts import PER_DAY, even, visits
from discreet_studies.range_queries.local_model import (
    Flat,
    LocalModel,
    PublishedUnary,
    response,
    rmse,
)
from discreet_studies.range_queries.short_ranges import local_models
from discreet_studies.study import Figure, Findings, Line, StudyCheck, StudySetting, StudyTable

_DOMAIN = 256
_DAYS, _LENGTH = 512, 35
_SHORT = {(domain, 2): length for domain, length in stated.FLAT_WINS.items()}
_NAMES = ("as coded", "unary", "consistent", "chosen")
Errors = dict[tuple[int, int], dict[str, float]]


def same_experiments(setting: StudySetting) -> Findings:
    """E11: the laws that the thesis looked for, and how far below its errors one can go."""
    short = {cell: _cell(*cell, length=length) for cell, length in _SHORT.items()}
    long = {
        cell: _cell(*cell, length=stated.TREE_WINS[cell])
        for cell in stated.LOCAL_LONG
        if cell[1] == 2 or not setting.quick
    }
    by_epsilon = _by_epsilon()
    return Findings(
        checks=(
            *_ellipse(),
            *_oracles(setting),
            *_growth(by_epsilon),
            *_gains("short", short),
            *_gains("long", long),
            *_reports(setting),
        ),
        tables=(
            _table("short", "Table 3", short, _SHORT),
            _table("long", "Table 2", long, stated.TREE_WINS),
        ),
        figures=(_figure(by_epsilon),),
    )


# ── E3: half an ellipse ────────────────────────────────────────────────────────────────────────


def _ellipse() -> list[StudyCheck]:
    """Sums of reports that exclude each other, or of shares that were projected on the total."""
    r = np.arange(1, _DOMAIN + 1)
    curves = {
        "grr": grr(categories=_DOMAIN, epsilon=1).range_variance(r, r / _DOMAIN),
        "oue, projected": flat_histogram(
            domain=clients.days(_DOMAIN), epsilon=1, oracle="oue"
        ).law.by_length(r),
    }
    made = []
    x = r / _DOMAIN
    for name, variance in curves.items():
        claims = Claims(source="E3, F15; M7")
        errors = np.sqrt(np.maximum(variance, 0))
        made += [
            claims.number(
                f"E11/peak/{name}",
                f"share of the domain at which the error of {name} is largest",
                expected=0.5,
                got=float(x[int(np.argmax(errors))]),
                absolute=0.05,
            ),
            claims.at_least(
                f"E11/ellipse/{name}",
                f"R^2 of the error of {name} against sqrt(x(1 - x))",
                expected=0.9999,
                got=explained(np.sqrt(x * (1 - x)), errors),
            ),
            claims.at_most(
                f"E11/whole/{name}",
                f"the error of {name} on the whole domain",
                expected=1e-6,
                got=float(errors[-1]),
            ),
        ]
    return made


def _oracles(setting: StudySetting) -> list[StudyCheck]:
    """Real reports against the closed forms of the study's own models."""
    counts = visits(_DOMAIN)
    pairs: dict[str, tuple[FrequencyOracle, LocalModel]] = {
        "grr": (grr(categories=_DOMAIN, epsilon=1), Flat(oracle=response(1))),
        "oue": (oue(categories=_DOMAIN, epsilon=1), Flat(oracle=PublishedUnary(epsilon=1))),
    }
    made = []
    for name, (oracle, model) in pairs.items():
        for length in (16,) if setting.quick else (16, 128):
            first = simulation.asked(_DOMAIN, length=length, rng=setting.rng("E11"))
            drawn = clients.errors(
                oracle,
                counts,
                first,
                first + length - 1,
                structures=setting.times(80, quick=12),
                rng=seeded_rng(setting.seed + length),
            )
            made.append(
                clients.squared(
                    Claims(source="F13, F44, F48"),
                    f"E11/simulated, {name}/r={length}",
                    f"reports of {name} clients, visits of {_DOMAIN} days, length {length}",
                    drawn,
                    model.covariance(counts, first, length=length),
                )
            )
    return made


# ── E5: against epsilon ────────────────────────────────────────────────────────────────────────


def _by_epsilon() -> dict[str, Floats]:
    users, found = PER_DAY * _DAYS, {}
    for kind in ("as coded", "unary"):
        models = [local_models(kind, epsilon=e)["B=2"] for e in stated.EPSILONS]
        found[kind] = [rmse(model, even(_DAYS), length=_LENGTH) for model in models]
    found["consistent"] = [
        clients.rmse(
            hierarchical_histogram(domain=clients.days(_DAYS), epsilon=e, oracle="oue"),
            length=_LENGTH,
            users=users,
        )
        for e in stated.EPSILONS
    ]
    found["chosen"] = [
        clients.rmse(
            clients.best_for(_LENGTH, domain=_DAYS, epsilon=e), length=_LENGTH, users=users
        )
        for e in stated.EPSILONS
    ]
    return {name: np.array(errors) for name, errors in found.items()}


def _growth(found: dict[str, Floats]) -> list[StudyCheck]:
    inverse = 1 / np.array(stated.EPSILONS)
    claims = Claims(
        source="E5; M11",
        why="The thesis sees 1/epsilon^2. The error of clients that keep epsilon goes with "
        "1/epsilon, and with 1/(e^(epsilon/2) - e^(-epsilon/2)) exactly but for small terms.",
    )
    exact = 1 / np.sinh(np.array(stated.EPSILONS) / 2)
    made = []
    for name in ("consistent", "chosen"):
        made += [
            claims.at_least(
                f"E11/inverse/{name}",
                f"R^2 of the error, {name}, against 1/epsilon",
                expected=0.999,
                got=explained(inverse, found[name]),
            ),
            claims.at_least(
                f"E11/sinh/{name}",
                f"R^2 of the error, {name}, against 1/sinh(epsilon/2)",
                expected=0.99999,
                got=explained(exact, found[name]),
            ),
        ]
    return made


# ── E8 and E9: the lengths of the thesis ───────────────────────────────────────────────────────


def _cell(domain: int, degree: int, *, length: int) -> dict[str, float]:
    """The better of flat and tree by both oracles of the study; then the house's."""
    users, found = PER_DAY * domain, {}
    for kind in ("as coded", "unary"):
        models = local_models(kind)
        found[kind] = min(
            rmse(models[key], even(domain), length=length) for key in ("flat", f"B={degree}")
        )
    same = hierarchical_histogram(
        domain=clients.days(domain), epsilon=1, branching=degree, oracle="oue"
    )
    found["consistent"] = clients.rmse(same, length=length, users=users)
    chosen = clients.best_for(length, domain=domain, epsilon=1)
    found["chosen"] = clients.rmse(chosen, length=length, users=users)
    return found


def _gains(name: str, errors: Errors) -> list[StudyCheck]:
    claims = Claims(source="F28, F49, F50")
    made = [
        claims.at_least(
            f"E11/{name}/least",
            f"{name} ranges: chosen levels and oracles beat plain unary encoding by at least",
            expected={"short": 1.2, "long": 1.7}[name],
            got=min(by["unary"] / by["chosen"] for by in errors.values()),
        ),
        claims.at_least(
            f"E11/{name}/consistent",
            f"{name} ranges: and the same tree made consistent, by at least",
            expected=1.0,
            got=min(by["consistent"] / by["chosen"] for by in errors.values()),
        ),
    ]
    largest = max(errors, key=lambda cell: cell[0])
    made.append(
        Claims(source="F50, M3, M4").at_least(
            f"E11/{name}/as coded",
            f"{name} ranges, {largest[0]} days: and the published code, that keeps less, by",
            expected=5.0,
            got=errors[largest]["as coded"] / errors[largest]["chosen"],
        )
    )
    return made


def _reports(setting: StudySetting) -> list[StudyCheck]:
    """Real reports of the chosen structures, on uneven counts."""
    made = []
    for domain in (128,) if setting.quick else (128, 512):
        counts = visits(domain)
        for kind, length in (("short", stated.FLAT_WINS[domain]), ("long", domain // 2)):
            first = simulation.asked(domain, length=length, rng=setting.rng("E11 reports"))
            ranges: tuple[Ints, Ints] = (first, first + length - 1)
            for name, made_of in (
                (
                    "tree, oue",
                    hierarchical_histogram(domain=clients.days(domain), epsilon=1, oracle="oue"),
                ),
                ("chosen", clients.best_for(length, domain=domain, epsilon=1)),
            ):
                made.append(
                    clients.simulated(
                        Claims(source="F50"),
                        f"E11/simulated, {name}/{kind}, D={domain}",
                        f"reports, {name}, visits of {domain} days, length {length}",
                        made_of,
                        counts,
                        ranges=ranges,
                        structures=setting.times(80, quick=12),
                        rng=seeded_rng(setting.seed + domain + length),
                    )
                )
    return made


def _table(
    name: str, lengths: str, errors: Errors, asked: dict[tuple[int, int], int]
) -> StudyTable:
    return StudyTable(
        id=f"E11/{name}",
        title=f"Local RMSE at epsilon 1 and the lengths of {lengths}, {PER_DAY} visits a day",
        columns=("D", "B", "r", *_NAMES, "as coded / chosen", "unary / chosen"),
        rows=tuple(
            (
                *cell,
                asked[cell],
                *(by[key] for key in _NAMES),
                by["as coded"] / by["chosen"],
                by["unary"] / by["chosen"],
            )
            for cell, by in errors.items()
        ),
        note="Exact, mean over all ranges. As coded and unary: the better of flat and tree, not "
        "consistent. Consistent: the tree by unary encoding with inference. Chosen: blocks, "
        "levels and oracles for the length. As coded epsilon is nominal: the true one is larger.",
    )


def _figure(found: dict[str, Floats]) -> Figure:
    labels = {
        "as coded": "tree as coded (nominal epsilon)",
        "unary": "tree, unary encoding",
        "consistent": "the same, consistent",
        "chosen": "levels and oracles chosen",
    }
    return Figure(
        id="E11/errors",
        title="Local ranges: error against epsilon, the thesis's and this library's",
        x="epsilon",
        y="RMSE (visits)",
        lines=tuple(
            Line(label=labels[name], x=stated.EPSILONS, y=tuple(map(float, errors)))
            for name, errors in found.items()
        ),
        note=f"{PER_DAY} visits a day, {_DAYS} days, length {_LENGTH}, degree 2, exact",
        log_y=True,
    )

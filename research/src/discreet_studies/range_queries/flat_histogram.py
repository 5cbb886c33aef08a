"""E2 and E3: error against the length of the range, flat, in the central and the local model."""

from __future__ import annotations

import math

import numpy as np

from discreet.noise.distribution import Floats, Ints
from discreet.noise.random_source import seeded_rng
from discreet.ranges.strategies import hierarchical_histogram as blocks
from discreet_studies.checks import Claims, explained
from discreet_studies.public_data import births
from discreet_studies.range_queries import central_model, simulation
from discreet_studies.range_queries import discreet_results as house
from discreet_studies.range_queries import reference_values as stated
from discreet_studies.range_queries.example_counts import even, visits
from discreet_studies.range_queries.local_model import (
    Flat,
    LocalModel,
    PublishedUnary,
    published,
    response,
    rmse,
)
from discreet_studies.range_queries.tree_cover import starts
from discreet_studies.study import Figure, Findings, Line, StudyCheck, StudySetting, StudyTable

_LINEAR = (
    "The thesis calls the error linear in the length, all R^2 at least .9715. The variance is; the "
    "error goes with the square root, which a straight line fits just as well on these lengths."
)
_ELLIPSE = (
    "The thesis finds a second-degree polynomial and doubts the theory. The law is "
    "sqrt(x(1 - x)) in the share x of the domain; a polynomial of degree two fits it well."
)


def central_flat(setting: StudySetting) -> Findings:
    """E2: the error is sqrt(2r)/epsilon."""
    rng = setting.rng("E2")
    structures = setting.times(4000, quick=600)
    checks: list[StudyCheck] = []
    found: dict[int, list[float]] = {}
    for domain, lengths in stated.LENGTHS.items():
        # The same structures answer all lengths, as anybody would ask them.
        noise = rng.laplace(size=(structures, domain))
        found[domain] = []
        for length in lengths:
            first = simulation.asked(domain, length=length, rng=rng)
            model = central_model.flat(first, length=length, domain=domain, epsilon=1)
            errors = noise @ model.weights.T
            found[domain].append(math.sqrt(np.square(errors).mean()))
            checks.append(
                simulation.squared(
                    Claims(source="F8, E2"),
                    f"E2/simulated/D={domain}, r={length}",
                    f"flat histogram at epsilon 1, domain {domain}, length {length}",
                    errors,
                    model,
                )
            )
    checks += _straight(found)
    checks += _on_births(setting)
    return Findings(
        checks=tuple(checks),
        tables=(_flat_table(found, structures),),
        figures=(_flat_figure(found, structures),),
    )


def _straight(found: dict[int, list[float]]) -> list[StudyCheck]:
    made: list[StudyCheck] = []
    for domain, lengths in stated.LENGTHS.items():
        roots = np.sqrt(lengths)
        made += [
            Claims(source="Friis 2021, Table 1; M6", why=_LINEAR).number(
                f"E2/line/D={domain}",
                f"R^2 of a straight line through sqrt(r), domain {domain}",
                expected=stated.STRAIGHT[domain],
                got=explained(lengths, roots),
                absolute=0.001,
            ),
            Claims(source="Friis 2021, Figures 8, 9, 26, 27").at_least(
                f"E2/line seen/D={domain}",
                f"a straight line fits the simulated errors, domain {domain}: R^2",
                expected=0.9715,
                got=explained(lengths, found[domain]),
            ),
            Claims(source="E2").at_least(
                f"E2/root/D={domain}",
                f"R^2 of the simulated errors against sqrt(r), domain {domain}",
                expected=0.99,
                got=explained(roots, found[domain]),
            ),
        ]
    errors = {f"epsilon {e:g}": math.sqrt(2 * 80) / e for e in stated.EPSILONS}
    made.append(
        Claims(source="Friis 2021, Figures 8 and 9").order(
            "E2/epsilon",
            "smaller epsilon, larger error, from the smallest error on",
            expected=[f"epsilon {e:g}" for e in stated.EPSILONS],
            got=errors,
        )
    )
    return made


def _on_births(setting: StudySetting) -> list[StudyCheck]:
    """The house's histogram of real daily counts, with its own discrete noise."""
    made = []
    for domain, length in ((512, 100), (2048, 1000)):
        first = simulation.asked(domain, length=length, rng=setting.rng("births"))
        errors = house.simulate(
            blocks.flat(domain),
            births(domain),
            first,
            length=length,
            epsilon=1,
            structures=setting.times(400, quick=60),
            rng=seeded_rng(setting.seed + domain),
        )
        made.append(
            simulation.squared(
                Claims(source="F8, F24"),
                f"E2/births/D={domain}, r={length}",
                f"flat histogram of births with discrete noise, {domain} days, length {length}",
                errors,
                house.model(blocks.flat(domain), first, length=length, epsilon=1),
            )
        )
    return made


def _flat_table(found: dict[int, list[float]], structures: int) -> StudyTable:
    return StudyTable(
        id="E2/errors",
        title="Central flat at epsilon 1: RMSE simulated, and sqrt(2r)",
        columns=("D", "r", "simulated", "exact", "ratio"),
        rows=tuple(
            (domain, length, got, math.sqrt(2 * length), got / math.sqrt(2 * length))
            for domain, lengths in stated.LENGTHS.items()
            for length, got in zip(lengths, found[domain], strict=True)
        ),
        note=f"{structures} structures, up to {simulation.RANGES} random ranges each.",
    )


def _flat_figure(found: dict[int, list[float]], structures: int) -> Figure:
    lines = []
    for epsilon in (0.2, 0.4, 1.0, 2.0):
        lengths = range(1, 1025, 8)
        lines.append(
            Line(
                label=f"epsilon {epsilon:g}, exact",
                x=tuple(map(float, lengths)),
                y=tuple(math.sqrt(2 * r) / epsilon for r in lengths),
            )
        )
    lines.append(
        Line(
            label="epsilon 1, simulated",
            x=tuple(map(float, stated.LENGTHS[1024])),
            y=tuple(found[1024]),
            points=True,
        )
    )
    return Figure(
        id="E2/errors",
        title="Central flat: error against the length of the range",
        x="length of the range (days)",
        y="RMSE (visits)",
        lines=tuple(lines),
        note=f"domain of 1024 days, {structures} structures, {simulation.RANGES} ranges each",
    )


def local_flat(setting: StudySetting) -> Findings:
    """E3: randomized response gives half an ellipse, unary encoding a square root."""
    return Findings(
        checks=(*_fits(), *_peaks(), *_whole_domain(setting), *_simulated(setting)),
        figures=(_local_figure(),),
    )


def _fits() -> list[StudyCheck]:
    made: list[StudyCheck] = []
    for name, oracle in {"as coded": published(1), "randomized response": response(1)}.items():
        lines = []
        for domain, lengths in stated.LENGTHS.items():
            errors = [rmse(Flat(oracle=oracle), even(domain), length=r) for r in lengths]
            lines.append(explained(lengths, errors))
            made.append(
                Claims(source="Friis 2021, Figures 10 to 12; M7", why=_ELLIPSE).at_least(
                    f"E3/quadratic, {name}/D={domain}",
                    f"R^2 of a polynomial of degree two, {name}, domain {domain}",
                    expected=0.98,
                    got=explained(lengths, errors, degree=2),
                )
            )
            x = np.array(lengths) / domain
            made.append(
                Claims(source="M7", why=_ELLIPSE).at_least(
                    f"E3/ellipse, {name}/D={domain}",
                    f"R^2 against sqrt(x(1 - x)), {name}, domain {domain}",
                    expected=0.9999,
                    got=explained(np.sqrt(x * (1 - x)), errors),
                )
            )
        claims = Claims(source="Friis 2021, Figures 10 to 12; M7")
        made += claims.numbers(
            f"E3/line, {name}",
            f"R^2 of a straight line, {name}",
            expected={"the worst domain": 0.19, "the best domain": 0.93},
            got={"the worst domain": min(lines), "the best domain": max(lines)},
            absolute=0.006,
        )
    roots = [math.sqrt(r) for r in range(1, 257)]
    errors = [
        rmse(Flat(oracle=PublishedUnary(epsilon=1)), even(256), length=r) for r in range(1, 257)
    ]
    made.append(
        Claims(source="E3").at_least(
            "E3/unary",
            "R^2 of unary encoding against sqrt(r), domain 256",
            expected=0.9999,
            got=explained(roots, errors),
        )
    )
    made.append(
        Claims(source="E3").equal(
            "E3/unary peak",
            "unary encoding errs most on the whole domain, 256 days",
            expected=256,
            got=int(np.argmax(errors)) + 1,
        )
    )
    return made


def _by_length(model: LocalModel, counts: Ints) -> Floats:
    return np.array([rmse(model, counts, length=r) for r in range(1, len(counts) + 1)])


def _projected(counts: Ints) -> Floats:
    """RMSE of unary encoding after projection on the known total, by length.

    The error of a range is the sum of (w_i - r/D) times independent errors of the bins.
    """
    domain = len(counts)
    bins = Flat(oracle=PublishedUnary(epsilon=1)).variances(
        counts, starts(domain, length=1), length=1
    )
    shares = np.arange(1, domain + 1) / domain
    inside = np.array(
        [np.convolve(bins, np.ones(r), mode="valid").mean() for r in range(1, domain + 1)]
    )
    found: Floats = np.sqrt(inside * (1 - 2 * shares) + bins.sum() * shares**2)
    return found


def _peaks() -> list[StudyCheck]:
    domain = 256
    spike = np.zeros(domain, dtype=np.int64)
    spike[40] = 300 * domain
    claims = Claims(
        source="Friis 2021, open questions; M7",
        why="The thesis asks whether the error turns down by the share of the domain or of the "
        "users: by the share of the domain, with all users on one day as with none there.",
    )
    data = {
        "even counts": even(domain),
        "visits": visits(domain),
        "births": births(domain),
        "all on one day": spike,
    }
    made = []
    for name, counts in data.items():
        for oracle in (published(1), response(1)):
            kind = "as coded" if oracle.published else "randomized response"
            peak = (int(np.argmax(_by_length(Flat(oracle=oracle), counts))) + 1) / domain
            made.append(
                claims.number(
                    f"E3/peak, {kind}/{name}",
                    f"share of the domain at which the error is largest, {kind}, {name}",
                    expected=0.5,
                    got=peak,
                    absolute=0.05,
                )
            )
    made.append(
        claims.number(
            "E3/peak, unary projected",
            "the same for unary encoding projected on the known total, even counts",
            expected=0.5,
            got=(int(np.argmax(_projected(even(domain)))) + 1) / domain,
            absolute=0.05,
        )
    )
    return made


def _whole_domain(setting: StudySetting) -> list[StudyCheck]:
    counts = visits(256)
    first = np.array([0])
    drawn = Flat(oracle=published(1)).simulate(
        counts, first, length=256, structures=20, rng=setting.rng("E3 whole")
    )
    return [
        Claims(
            source="Friis 2021, Figures 10 to 12; M8",
            why="The thesis takes the exact answer as a reason to doubt the oracle. The number of "
            "users is public in the local model, and the answer says nothing else.",
        ).at_most(
            "E3/whole domain",
            "the answer for the whole domain is exact: largest error of 20 rounds",
            expected=1e-6,
            got=float(np.abs(drawn).max()),
        )
    ]


def _simulated(setting: StudySetting) -> list[StudyCheck]:
    rng = setting.rng("E3")
    counts = visits(256)
    models: dict[str, LocalModel] = {
        "as coded": Flat(oracle=published(1)),
        "randomized response": Flat(oracle=response(1)),
        "unary encoding": Flat(oracle=PublishedUnary(epsilon=1)),
    }
    return [
        simulation.local(
            Claims(source="F13, F44, F48"),
            f"E3/simulated, {name}/r={length}",
            f"local flat, {name}, visits of 256 days, length {length}",
            model,
            counts,
            length=length,
            structures=setting.times(2000, quick=300),
            rng=rng,
        )
        for name, model in models.items()
        for length in (16, 64, 128, 192)
    ]


def _local_figure() -> Figure:
    domain = 256
    counts = visits(domain)
    share = tuple(r / domain for r in range(1, domain + 1))
    curves: dict[str, Floats] = {
        "as coded": _by_length(Flat(oracle=published(1)), counts),
        "randomized response": _by_length(Flat(oracle=response(1)), counts),
        "unary encoding": _by_length(Flat(oracle=PublishedUnary(epsilon=1)), counts),
        "unary, projected": _projected(counts),
    }
    return Figure(
        id="E3/errors",
        title="Local flat: error against the share of the domain that a range covers",
        x="length of the range / domain",
        y="RMSE (visits)",
        lines=tuple(Line(label=name, x=share, y=tuple(y)) for name, y in curves.items()),
        note=f"epsilon 1 (nominal), {int(counts.sum()):,} visits on {domain} days, exact",
    )

"""E8: what releases at several times give away about one value, exactly."""

from __future__ import annotations

import math

import numpy as np

from discreet.accounting.conversion import gaussian_epsilon
from discreet.audit.series import (
    VAR,
    cells,
    leakage,
    releases,
    secret_person,
    secret_time,
    secret_value,
)
from discreet.audit.series._leakage import brute_factor
from discreet.audit.series.threat_model import Known, Secret, SeriesReleases
from discreet.noise.distribution import Floats
from discreet.noise.random_source import seeded_rng
from discreet_studies.checks import Claims
from discreet_studies.private_inference import reference_values as stated
from discreet_studies.private_inference.published_series import claim, noise_std
from discreet_studies.study import Figure, Findings, Line, StudyCheck, StudySetting, StudyTable

_PEOPLE = 2
_DELTA = 0.05
_STD = noise_std(1.0, delta=_DELTA, sensitivity=0.5)
_SIGMA = ((1.0, 0.3), (0.3, 1.0))
_MODEL = VAR(lags=((0.5, 0.1), (0.0, 0.5)), noise=_SIGMA)
_TARGETS: dict[str, Secret] = {
    "A1": secret_value(0, time=0),
    "A2": secret_value(0, time=1),
    "A3 at t=1": secret_time(time=0),
    "A3 at t=2": secret_time(time=1),
    "A4": secret_person(0, times=(0, 1)),
}
_SIDES: tuple[Known, ...] = ("time", "none")
_KNOWLEDGE = {"N1": (0,), "N2": (1,), "N3": (0, 1)}
_PRIOR = (
    "Theorem 6.3.6 inverts the model and forgets where values come from: as dependence goes to "
    "zero its epsilon stays above 1, while the truth goes to zero."
)


def vectors(setting: StudySetting) -> Findings:
    """The whole grid of targets and knowledge for one model, and how leakage fades."""
    return Findings(
        checks=(
            *_grid(),
            *_rows(),
            *_bounds(),
            *_brute(setting),
            *_regression(setting),
            *_fading(),
        ),
        tables=(_table(), _fading_table()),
        figures=(_figure(),),
    )


def mu(target: str, *, knowledge: str, known: Known = "time", model: VAR = _MODEL) -> float:
    """How far apart two values of a target are, given what is released."""
    return leakage(
        model,
        releases=_released(_KNOWLEDGE[knowledge]),
        secret=_TARGETS[target],
        attacker_knows=known,
    ).model


def _released(times: tuple[int, ...]) -> SeriesReleases:
    return releases(times=times, width=1.0, people=_PEOPLE, std=_STD)


def _grid() -> list[StudyCheck]:
    exact = Claims(source="C29, E8")
    back = Claims(source="C26, C29, E8", why=_PRIOR)
    made: list[StudyCheck] = []
    for (target, known), values in stated.LEAKAGE.items():
        for knowledge, value in zip(_KNOWLEDGE, values, strict=True):
            claims = back if (target, knowledge) == ("A2", "N1") else exact
            side = known if target in ("A1", "A2") else "none"
            made.append(
                claims.number(
                    f"E8/{target}+{knowledge}, {known}",
                    f"mu of {target} from {knowledge}, known: {known}",
                    expected=value,
                    got=mu(target, knowledge=knowledge, known=_known(side)),
                    absolute=1e-5,
                )
            )
    for target, values in stated.EPSILONS.items():
        made += exact.numbers(
            f"E8/{target}, epsilon",
            f"epsilon of {target} at delta 1e-5",
            expected=dict(zip(_KNOWLEDGE, values, strict=True)),
            got={
                name: gaussian_epsilon(1e-5, mu=mu(target, knowledge=name)) for name in _KNOWLEDGE
            },
            absolute=0.0001,
        )
    return made


def _known(word: str) -> Known:
    return "none" if word == "none" else "time"


def _rows() -> list[StudyCheck]:
    flat = _MODEL.initial
    return [
        *Claims(source="C19, E8").numbers(
            "E8/stationary", "stationary covariance",
            expected={"11": 1.416296, "12": 0.488889, "22": 1.333333},
            got={"11": float(flat[0, 0]), "12": float(flat[0, 1]), "22": float(flat[1, 1])},
            absolute=1e-6),
        Claims(source="E8").number("E8/noise", "deviation of the noise", expected=1.270205,
                                   got=_STD, absolute=1e-6),
        Claims(source="C27, E8").number(
            "E8/A4+N3, all", "mu of both values of a person, all others known", expected=0.556687,
            got=mu("A4", knowledge="N3", known="all"), absolute=1e-5),
        Claims(
            source="C27", why="Theorem 6.3.7 lets the model drop out; correlated people add to it."
        ).number("E8/A4+N3, none", "the same with nobody's values known", expected=0.677833,
                 got=mu("A4", knowledge="N3", known="none"), absolute=1e-5),
    ]  # fmt: skip


def _bounds() -> list[StudyCheck]:
    """C29: none of the numbers without a model bounds the model's."""
    twins = VAR(lags=np.zeros((2, 2)), noise=((1.0, 0.99), (0.99, 1.0)))
    growing = VAR(lags=((3.0, 0.0), (0.0, 0.1)), noise=0.01 * np.eye(2), start=np.eye(2))
    free = leakage(
        _MODEL, releases=_released((0, 1)), secret=_TARGETS["A1"], attacker_knows="time"
    ).free  # fmt: skip
    why = "Levels without a model are no bounds on what dependence gives away."
    claims = Claims(source="C29", why=why)
    return [
        claims.number("E8/user level", "mu of a person's two values, without a model",
                      expected=0.557, got=free.user, absolute=0.0005),
        claims.number("E8/all rows", "mu of everybody's values, without a model", expected=1.113,
                      got=free.everything, absolute=0.0005),
        claims.number("E8/twins", "mu of one value of near twins, first release only",
                      expected=0.782, got=mu("A1", knowledge="N1", known="none", model=twins),
                      absolute=0.0005),
        claims.number("E8/growing", "mu of one value of a growing model", expected=1.243,
                      got=mu("A1", knowledge="N3", model=growing), absolute=0.0005),
    ]  # fmt: skip


def _brute(setting: StudySetting) -> list[StudyCheck]:
    """The fast engine against the covariance of all cells, on 40 random models."""
    rng = setting.rng("E8 brute")
    largest_gap = 0.0
    for _ in range(40):
        people, times = int(rng.integers(1, 7)), int(rng.integers(2, 9))
        lags = rng.normal(size=(people, people))
        lags *= rng.uniform(0.1, 0.95) / np.abs(np.linalg.eigvals(lags)).max()
        root = rng.normal(size=(people, people + 2))
        model = VAR(lags=lags, noise=root @ root.T + 0.1 * np.eye(people))
        shown = releases(
            times=range(times), width=1.0, people=people, std=rng.uniform(0.5, 2, times)
        )
        for known in _SIDES:
            fast = cells(model, releases=shown, attacker_knows=known).model
            slow = [
                [_slow(model, shown, secret_value(i, time=t), known) for t in range(times)]
                for i in range(people)
            ]
            largest_gap = max(largest_gap, float(np.abs(fast - np.array(slow)).max()))
    return [
        Claims(source="C29").at_most(
            "E8/brute force", "largest difference of the fast engine, 40 random models",
            expected=1e-10, got=largest_gap)
    ]  # fmt: skip


def _slow(model: VAR, shown: SeriesReleases, secret: Secret, known: Known) -> float:
    return float(
        np.linalg.norm(brute_factor(model, releases=shown, secret=secret, attacker_knows=known))
    )


def _regression(setting: StudySetting) -> list[StudyCheck]:
    """M18: the first release regressed on the second values, from a simulated panel."""
    runs = setting.times(2_000_000, quick=200_000)
    panel = _MODEL.simulate(times=2, rng=seeded_rng(setting.seed), runs=runs)
    slopes, left = _fitted(panel[:, :, 1], panel[:, :, 0].mean(axis=1))
    exact, variance = backward()
    theorem, printed = _inverted()
    right = Claims(source="M18, C26", why=_PRIOR)
    text = Claims(source="Biswal 2024, Theorem 6.3.6")
    one_percent = 0.01 * math.sqrt(2_000_000 / runs)
    return [
        *right.numbers(
            "E8/slopes", "slope of the first release on the second values",
            expected={"own": 0.3237, "other": 0.2230},
            got={"own": float(exact[0]), "other": float(exact[1])}, absolute=0.0001),
        right.number("E8/residual", "its variance given them", expected=2.260, got=variance,
                     absolute=0.0005),
        *right.numbers(
            "E8/slopes, simulated", f"slope of the first release on them, {runs} panels",
            expected={"own": float(exact[0]), "other": float(exact[1])},
            got={"own": float(slopes[0]), "other": float(slopes[1])}, relative=one_percent),
        right.number("E8/residual, simulated", f"its variance, {runs} panels", expected=variance,
                     got=left + _STD**2, relative=one_percent),
        *text.numbers(
            "E8/slopes, as_text", "slope by the inverse of the model",
            expected={"own": 1.0, "other": 0.8},
            got={"own": float(theorem[0]), "other": float(theorem[1])}, absolute=1e-9),
        text.number("E8/residual, as_text", "the variance that the theorem has", expected=5.85,
                    got=printed, absolute=0.005),
    ]  # fmt: skip


def backward() -> tuple[Floats, float]:
    """Slopes and variance of the first noisy mean given the second values (C26)."""
    A, G = np.array(_MODEL.lags), _MODEL.initial
    gain = np.linalg.solve(A @ G @ A.T + np.array(_SIGMA), A @ G).T
    left = G - gain @ A @ G
    return gain.sum(axis=0) / _PEOPLE, float(left.sum()) / _PEOPLE**2 + _STD**2


def _inverted() -> tuple[Floats, float]:
    """The same as printed: the inverse of the model, and n where n^2 belongs."""
    sums: Floats = np.linalg.solve(np.array(_MODEL.lags).T, np.ones(_PEOPLE))
    return sums / _PEOPLE, float(sums @ np.array(_SIGMA) @ sums) / _PEOPLE + _STD**2


def _fitted(x: Floats, y: Floats) -> tuple[Floats, float]:
    slopes: Floats = np.asarray(np.linalg.solve(x.T @ x, x.T @ y), dtype=np.float64)
    return slopes, float(np.mean((y - x @ slopes) ** 2))


def fading(strength: float) -> tuple[float, float]:
    """The exact mu of A2+N1 for a model ``a I``, and the thesis's epsilon."""
    model = VAR(lags=strength * np.eye(_PEOPLE), noise=_SIGMA)
    text = claim(
        model, scenario="A2+N1", width=1.0, epsilons=(1.0, 1.0), deltas=(_DELTA, _DELTA),
        mode="as_text",
    )  # fmt: skip
    return mu("A2", knowledge="N1", model=model), text.epsilon


def _fading() -> list[StudyCheck]:
    found = {a: fading(a) for a in stated.DECAY}
    return [
        *Claims(source="M18, C26", why=_PRIOR).numbers(
            "E8/fading", "mu of the second value from the first release, model a I",
            expected={f"a {a:g}": row[0] for a, row in stated.DECAY.items()},
            got={f"a {a:g}": found[a][0] for a in stated.DECAY}, absolute=0.0005, relative=0.002),
        *Claims(source="Biswal 2024, Theorem 6.3.6").numbers(
            "E8/fading, as_text", "the theorem's epsilon",
            expected={f"a {a:g}": row[1] for a, row in stated.DECAY.items()},
            got={f"a {a:g}": found[a][1] for a in stated.DECAY}, absolute=0.005),
    ]  # fmt: skip


def _table() -> StudyTable:
    return StudyTable(
        id="E8/mu",
        title="How far apart two values of a target are, given the releases (GDP mu)",
        columns=("target", "known", "N1: first", "N2: second", "N3: both"),
        rows=tuple(
            (target, known, *(mu(target, knowledge=n, known=_known(known)) for n in _KNOWLEDGE))
            for target, known in stated.LEAKAGE
        ),
        note="Exact, corrected. Two people, A = [[.5, .1], [0, .5]], noise correlated by 0.3.",
    )


def _fading_table() -> StudyTable:
    return StudyTable(
        id="E8/fading",
        title="The second value from the first release, as dependence fades",
        columns=("a", "mu, corrected", "epsilon at delta 0.05, corrected", "epsilon, as_text"),
        rows=tuple(
            (a, exact, gaussian_epsilon(_DELTA, mu=exact), text)
            for a, (exact, text) in ((a, fading(a)) for a in stated.DECAY)
        ),
    )


def _figure() -> Figure:
    at = tuple(0.01 * 1.25**k for k in range(21))
    found = [fading(a) for a in at]
    return Figure(
        id="E8/fading",
        title="What the first release says about the second value",
        x="dependence a, model a I",
        y="epsilon at delta 0.05, or mu",
        lines=(
            Line(label="mu, corrected", x=at, y=tuple(exact for exact, _ in found)),
            Line(label="epsilon, as_text", x=at, y=tuple(text for _, text in found)),
        ),
        note="exact; two people, noise for epsilon 1 at delta 0.05; epsilon itself is 0 below "
        "mu 0.125",
        log_x=True,
        log_y=True,
    )

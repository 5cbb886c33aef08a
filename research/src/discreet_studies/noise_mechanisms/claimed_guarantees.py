"""E0: what the mechanisms of the thesis promise, and what they keep."""

from __future__ import annotations

import math
from collections.abc import Sequence

from discreet.mechanisms.scalar.grafted import grafted
from discreet.mechanisms.scalar.truncated_laplace import truncated_laplace
from discreet_studies.audits import published_distributions as laws
from discreet_studies.audits.published_claims import PublishedClaim, claims
from discreet_studies.audits.refuted_claims import refuted
from discreet_studies.checks import Claims
from discreet_studies.study import Figure, Findings, Line, StudyCheck, StudySetting, StudyTable

_MIXED = Claims(
    source="M35, B39c",
    why="Theorem 5.3.2 claims any delta for small sensitivities; the ratio to sigma "
    "is epsilon/sqrt(2) whatever the sensitivity is.",
)


def claimed_guarantees(setting: StudySetting) -> Findings:
    """Exact deltas of mixed noise and blocks, and events that refute all claims."""
    del setting  # exact
    found = claims()
    return Findings(
        checks=(*_mixed(), *_blocks(), *refuted("E0", found), *_better_noise()),
        tables=(_refuted_table(found),),
        figures=(_mixed_figure(),),
    )


# ── mixed noise ───────────────────────────────────────────────────────────────────────────────


def mixed_delta(epsilon: float) -> float:
    """The true delta of the mixed noise mechanism."""
    sigma = math.sqrt(2) / epsilon
    return laws.gaussian_delta(epsilon, left=sigma, right=sigma, shift=1.0)


def _mixed() -> list[StudyCheck]:
    true = {0.1: 0.00264, 0.5: 0.01595, 1.0: 0.0396, 2.0: 0.1145, 5.0: 0.530, 10.0: 0.975}
    paid = {1 / 500: 1.89, 1 / 1000: 2.05, 500**-1.5: 2.55, 500**-2: 3.09}
    factors = {1 / 500: 20.0, 1 / 1000: 40.0, 500**-1.5: 443.0, 500**-2: 9908.0}
    lemma = {0.01: 0.0245, 1e-5: 0.27}
    return [
        *_MIXED.numbers(
            "E0/mixed",
            "true delta of mixed noise",
            expected={f"epsilon {e:g}": value for e, value in true.items()},
            got={f"epsilon {e:g}": mixed_delta(e) for e in true},
            relative=0.004,
        ),
        *_MIXED.numbers(
            "E0/mixed, epsilon paid",
            "epsilon that mixed noise pays, nominal epsilon 1",
            expected={f"delta {d:.3g}": value for d, value in paid.items()},
            got={f"delta {d:.3g}": laws.gaussian_epsilon(d, mu=1 / math.sqrt(2)) for d in paid},
            absolute=0.006,
        ),
        *_MIXED.numbers(
            "E0/mixed, factor",
            "true over claimed delta of mixed noise at epsilon 1",
            expected={f"delta {d:.3g}": value for d, value in factors.items()},
            got={f"delta {d:.3g}": mixed_delta(1) / d for d in factors},
            relative=0.02,
        ),
        *Claims(
            source="M35, M36",
            why="The lemma bounds densities; (epsilon, delta)-DP is about probabilities.",
        ).numbers(
            "E0/mixed, lemma",
            "true delta where the lemma with a free sigma admits Gaussian noise, claimed 0.01",
            expected={f"sigma {s:g}": value for s, value in lemma.items()},
            got={f"sigma {s:g}": _lemma(s) for s in lemma},
            relative=0.02,
        ),
    ]


def _lemma(sigma: float, *, delta: float = 0.01, epsilon: float = 1.0) -> float:
    room = 2 * math.sqrt(2) * sigma**3 / (math.sqrt(math.pi) * delta)
    admitted = math.sqrt(room + 2 * sigma**2 * epsilon) - math.sqrt(room)
    return laws.gaussian_delta(epsilon, left=sigma, right=sigma, shift=admitted)


def _mixed_figure() -> Figure:
    x = tuple(0.05 * 1.1**k for k in range(57))
    return Figure(
        id="E0/mixed",
        title="Mixed noise: what it claims and what is true",
        x="epsilon",
        y="delta",
        lines=(
            Line(label="true delta", x=x, y=tuple(map(mixed_delta, x))),
            *(
                Line(label=f"claimed {name}", x=(x[0], x[-1]), y=(delta, delta))
                for name, delta in (("1/500", 1 / 500), ("500^-2", 500**-2))
            ),
        ),
        note="exact; epsilon from 0.05 to 10; the sensitivity does not matter",
        log_x=True,
        log_y=True,
    )


# ── blocks ────────────────────────────────────────────────────────────────────────────────────


def _blocks() -> list[StudyCheck]:
    wrong = Claims(
        source="M42, B42",
        why="The proof dilates a scale that never changes; the release is pure (epsilon/2) e^beta.",
    )
    at = {(10, 0.75): (0.189, 0.254), (10, 0.8): (0.287, 0.431), (10, 0.9): (0.574, 0.683),
          (15, 0.75): (0.082, 0.355)}  # fmt: skip
    made: list[StudyCheck] = []
    for (epsilon, beta), (claimed, true) in at.items():
        where = f"epsilon {epsilon}, beta {beta}"
        loss = epsilon / 2 * math.exp(beta)
        made += [
            Claims(source="Biswal 2024, Theorem 5.4.3").number(
                f"E0/blocks, claimed/{where}", f"delta that the theorem claims, {where}",
                expected=claimed, got=laws.general_claim(epsilon, beta), absolute=0.0006,
            ),
            wrong.number(
                f"E0/blocks, true/{where}", f"true delta, {where}",
                expected=true, got=-math.expm1((epsilon - loss) / 2), absolute=0.0006,
            ),
        ]  # fmt: skip
    small = Claims(
        source="M43",
        why="The thesis lets the law of large numbers bound beta; it must hold for all data, and a "
        "block may hold one record.",
    )
    # Noise of scale 2 (L/n)/epsilon, and one record moves its block's mean by L/m or half of that.
    n, m = 1000, 5
    return [
        *made,
        small.number("E0/blocks, one record replaced", "loss over epsilon at n 1000, 5 blocks",
                     expected=100, got=(1 / m) / (2 / n)),
        small.number("E0/blocks, one record removed", "loss over epsilon at n 1000, 5 blocks",
                     expected=50, got=(1 / (2 * m)) / (2 / n)),
    ]  # fmt: skip


# ── all of them, refuted ──────────────────────────────────────────────────────────────────────


def _refuted_table(found: Sequence[PublishedClaim]) -> StudyTable:
    return StudyTable(
        id="E0/refuted",
        title="Claims, their true delta, and the exact delta of what replaces them",
        columns=("claim", "epsilon", "claimed", "true", "instead", "exact"),
        rows=tuple(
            (c.name, c.epsilon, c.claimed, c.true, c.repaired.partition(";")[0], c.repaired_delta)
            for c in found
        ),
        note="An event and its probability on both inputs is kept with every check.",
    )


# ── better than mixing ────────────────────────────────────────────────────────────────────────


def _better_noise() -> list[StudyCheck]:
    grafts = {(0.5, 0.01): 5.876, (0.1, 0.01): 76.35, (1.0, 0.01): 1.704}
    cut = {(0.1, 0.002): 133.0, (0.5, 0.05): 3.02, (1.0, 0.05): 1.17}
    claimed = Claims(source="B49")
    credit = {(0.5, 0.01): 7.39, (0.1, 0.01): 138.7, (1.0, 0.01): 1.92}
    normal = {(0.5, 0.01): 9.90, (0.1, 0.01): 91.0, (1.0, 0.01): 3.53}
    return [
        *claimed.numbers(
            "E0/Laplace with delta",
            "variance of Laplace noise with the credit of delta",
            expected={f"epsilon {e:g}, delta {d:g}": value for (e, d), value in credit.items()},
            got={
                f"epsilon {e:g}, delta {d:g}": 2 / (e - 2 * math.log1p(-d)) ** 2 for e, d in credit
            },
            relative=0.003,
        ),
        *claimed.numbers(
            "E0/Gaussian, exact",
            "variance of Gaussian noise",
            expected={f"epsilon {e:g}, delta {d:g}": value for (e, d), value in normal.items()},
            got={f"epsilon {e:g}, delta {d:g}": laws.analytic_sigma(e, d) ** 2 for e, d in normal},
            relative=0.003,
        ),
        *claimed.numbers(
            "E0/grafted",
            "variance of grafted noise",
            expected={f"epsilon {e:g}, delta {d:g}": value for (e, d), value in grafts.items()},
            got={
                f"epsilon {e:g}, delta {d:g}": grafted(
                    sensitivity=1, epsilon=e, delta=d, domain="reals"
                ).std
                ** 2
                for e, d in grafts
            },
            relative=0.002,
        ),
        *claimed.numbers(
            "E0/truncated",
            "variance of truncated Laplace noise",
            expected={f"epsilon {e:g}, delta {d:g}": value for (e, d), value in cut.items()},
            got={
                f"epsilon {e:g}, delta {d:g}": truncated_laplace(
                    sensitivity=1024, epsilon=e, delta=d
                ).std
                ** 2
                / 1024**2
                for e, d in cut
            },
            relative=0.004,
        ),
    ]

"""Models and bridges for the audit: `leakage` knows neither, so they are attacked from here."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np

from discreet import blackbox, disclosure
from discreet.accounting.guarantee import Guarantee
from discreet.audit import exact
from discreet.audit.case import AuditCase, one_by_one
from discreet.core.relation import NeighboringRelation
from discreet.models.dp_sgd import PrivateLogisticRegression
from discreet.models.dp_sgd._output_perturbation import output_perturbation
from discreet.models.dp_sgd.laplace_gradient_descent import laplace_descent
from discreet.models.dp_sgd.losses import Logistic
from discreet.models.dp_sgd.noisy_gradient_descent import noisy_descent
from discreet.models.glm import PrivateLogit, PrivatePoisson
from discreet.models.pate.aggregators import ConfidentGNMax, LNMax
from discreet.models.pate.teacher_assignment import UNITS, TeacherAssignment
from discreet.models.regression import PrivateLinearRegression
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.random_source import RandomSource, seeded_rng

_FITS = 500
"""Fits, each of a model of its own."""
_ROWS = 8
Records = tuple[tuple[float, float], ...]
"""A regressor and a target each."""
_QUIET: Records = ((0.0, 0.0), (0.0, 1.0)) * (_ROWS // 2)
_ADDED: Records = (*_QUIET, (1.0, 1.0))
# The target of one record, as far out as it may be, is replaced.
_NO: Records = (*_QUIET[:-1], (1.0, 0.0))
_YES: Records = (*_QUIET[:-1], (1.0, 1.0))


def cases() -> tuple[AuditCase, ...]:
    """Each on neighbors that move it far."""
    return (*_votes(), *_descents(), *_estimators(), _learned(), *_bridges())


# ── teachers that vote ────────────────────────────────────────────────────────────────────────


def _votes() -> tuple[AuditCase, ...]:
    """One owner's teacher turns its whole vote: units of it leave one class and reach another."""
    rule = ConfidentGNMax(threshold=6, sigma_threshold=2, sigma_votes=2)
    plain = LNMax(scale=2)
    # Ten teachers of one vote each; an owner's data reach one of them.
    weights = np.full(10, UNITS, dtype=np.int64)
    teachers = TeacherAssignment(names=("all",), copies=(1,), blocks=((0, 10),), weights=weights)
    tied, turned = (5 * UNITS, 5 * UNITS), (4 * UNITS, 6 * UNITS)

    def asked(counts: Sequence[int], n: int, seed: int) -> object:
        return rule.passes_threshold(np.tile(counts, (n, 1)), rng=seeded_rng(seed)).astype(np.int64)

    def law(counts: Sequence[int]) -> dict[int, float]:
        noise = DiscreteGaussian(square=Fraction((2 * UNITS) ** 2))
        below = float(noise.cdf(6 * UNITS - 1 - max(counts)))
        return {0: below, 1: 1 - below}

    def answered(way: ConfidentGNMax | LNMax, counts: Sequence[int], n: int, seed: int) -> object:
        return way.answers(np.tile(counts, (n, 1)), rng=seeded_rng(seed))

    def voted(name: str, way: ConfidentGNMax | LNMax, claimed: Guarantee) -> AuditCase:
        return AuditCase(
            name=name, claimed=claimed, draw=partial(answered, way), left=tied, right=turned
        )

    return (
        AuditCase(
            name="PATE, whether a question is answered",
            claimed=rule.query_cost(teachers).worst,
            draw=asked,
            left=tied,
            right=turned,
            laws=lambda: exact.pair(law(tied), law(turned)),
        ),
        voted("PATE, the answer", rule, rule.answer_cost(teachers, classes=2).worst),
        voted("PATE, the answer with Laplace noise", plain, plain.answer_cost(teachers).worst),
    )


# ── descent ───────────────────────────────────────────────────────────────────────────────────


def _descents() -> tuple[AuditCase, ...]:
    loss = Logistic(l2=0.5)
    one = NeighboringRelation.REPLACE_ONE
    pure_steps = laplace_descent(
        loss, features=1, public_rows=_ROWS, row_norm=1, epsilon=4, steps=3, relation=one
    )
    last = noisy_descent(loss, features=1, public_rows=_ROWS, row_norm=1, mu=2, steps=3)
    minimizer = output_perturbation(
        loss, features=1, public_rows=_ROWS, row_norm=1, epsilon=4, relation=one
    )
    return tuple(
        one_by_one(
            name,
            partial(_released, made.release),
            _NO,
            _YES,
            claimed=made.guarantee,
            mechanism=made,
        )
        for name, made in (
            ("descent with Laplace noise", pure_steps),
            ("descent, the last iterate", last),
            ("noise on a minimizer", minimizer),
        )
    )


def _released(release: Callable[..., Any], records: Records, *, rng: RandomSource) -> Any:
    x, y = np.array(records).T
    return release(x[:, None], y, rng=rng)


# ── estimators ────────────────────────────────────────────────────────────────────────────────


def _estimators() -> tuple[AuditCase, ...]:
    line = partial(
        PrivateLinearRegression, epsilon=4, delta=1e-3, bounds=(0, 1), target_bounds=(0, 1)
    )
    curve = partial(
        PrivateLogisticRegression,
        epsilon=4,
        delta=1e-3,
        bounds=[(0, 1)],
        public_rows=_ROWS,
        classes=[0, 1],
        steps=5,
        rate=1,
    )
    logit = partial(PrivateLogit, epsilon=4, delta=1e-3, bounds=[(0, 1)], classes=[0, 1])
    poisson = partial(PrivatePoisson, epsilon=4, delta=1e-3, bounds=[(0, 1)], target_bounds=(0, 1))
    return (
        _fits("linear regression", line),
        _fits("logistic regression by descent", curve),
        _fits("logit regression by Fisher scoring", logit),
        _fits("Poisson regression by Fisher scoring", poisson),
    )


def _fits(name: str, make: Callable[..., Any]) -> AuditCase:
    def fitted(records: Records, *, rng: RandomSource) -> Any:
        x, y = np.array(records).T
        model = make(rng=rng).fit(x[:, None], y)
        return *np.ravel(model.coef_), *np.ravel(model.intercept_)

    x, y = np.array(_QUIET).T
    model = make(rng=seeded_rng(0)).fit(x[:, None], y)
    return one_by_one(
        name,
        fitted,
        _QUIET,
        _ADDED,
        claimed=model.guarantee_,
        samples=_FITS,
        mechanism=model if hasattr(model, "certify") else None,
    )


# ── learned from public data, and bridges from disclosure control ─────────────────────────────


def _learned() -> AuditCase:
    public = np.random.default_rng(7).integers(0, 11, (60, 3)).astype(np.float64)
    made = blackbox.make_private(
        lambda entries: float(np.sum(entries)),
        public_inputs=public,
        metric="record",
        epsilon=2,
        bounds=(0, 30),
    )
    return one_by_one(
        "a function with learned ranges",
        made.release,
        (0.0, 5.0, 5.0),
        (10.0, 5.0, 5.0),
        claimed=made.guarantee,
        mechanism=made,
    )


def _bridges() -> tuple[AuditCase, ...]:
    points = disclosure.private_points(edges=(0, 1, 2), epsilon=1)

    def counted(values: Sequence[float], *, rng: RandomSource) -> Any:
        return points.release(values, rng=rng).counts

    drawn = one_by_one(
        "points in bins",
        counted,
        (0.5,) * 3,
        (0.5,) * 4,
        claimed=points.guarantee,
        mechanism=points,
    )
    return (drawn,) if find_spec("polars") is None else (drawn, _sampled())


def _sampled() -> AuditCase:
    """Rows come in a frame, of a library that need not be there."""
    import polars as pl  # noqa: PLC0415 - a library that need not be there

    kept = {"x": disclosure.hierarchy_level(disclosure.category_hierarchy(), 0)}
    rows = disclosure.safe_k_anonymity(columns=kept, rate=Fraction(1, 2), k=3, epsilon=2)

    def shown(many: int, *, rng: RandomSource) -> int:
        return len(rows.release(pl.DataFrame({"x": ["a"] * many}), rng=rng))

    def law(many: int) -> dict[int, float]:
        """A group of fewer than three is left out."""
        masses = [math.comb(many, k) / 2**many for k in range(many + 1)]
        return {0: math.fsum(masses[:3])} | {k: masses[k] for k in range(3, many + 1)}

    return one_by_one(
        "rows of a sample",
        shown,
        5,
        6,
        claimed=(2.0, float(rows.delta)),
        laws=lambda: exact.pair(law(5), law(6)),
        samples=_FITS,
        mechanism=rows,
    )

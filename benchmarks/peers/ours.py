"""discreet itself, measured in the same way as everyone else."""

from __future__ import annotations

import atexit
import math
import shutil
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, TypeAlias

import numpy as np
import polars as pl
from numpy.typing import NDArray

import discreet
from discreet import ask, disclosure
from discreet.accounting.filters import ZcdpFilter
from discreet.accounting.guarantee import Guarantee
from discreet.core.events import Event, GaussianNoise, LaplaceNoise, Sampled, compose
from discreet.core.exact import rational
from discreet.local.aggregate import Aggregate
from discreet.local.collection import Collection
from discreet.local.files import Writer
from discreet.local.state import State
from discreet.mechanisms.local.hashing import hadamard_response, olh
from discreet.mechanisms.local.oracle import Oracle
from discreet.mechanisms.local.subset import subset_selection
from discreet.mechanisms.local.unary import oue, sue
from discreet.mechanisms.quantile import private_quantile
from discreet.models.pate.aggregate import Confident
from discreet.models.pate.costs import diagnose
from discreet.models.regression.best import BestLinearRegression
from discreet.models.regression.estimator import PrivateLinearRegression
from discreet.models.sgd import PerturbedLogisticRegression, PrivateLogisticRegression
from discreet.noise.bits import system
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.law import Ints

_Round: TypeAlias = Callable[[], float]


def laplace_int(*, n: int, scale: float) -> Callable[[], None]:
    """Discrete Laplace noise."""
    law, bits = DiscreteLaplace(scale), system()
    return lambda: _drop(law.sample(n, bits))


def gaussian_int(*, n: int, sigma: float) -> Callable[[], None]:
    """Discrete Gaussian noise."""
    law, bits = DiscreteGaussian(sigma), system()
    return lambda: _drop(law.sample(n, bits))


def laplace_float(*, n: int, scale: float) -> Callable[[], None]:
    """Laplace noise on floats, released as multiples of a public grid."""
    mechanism = discreet.laplace(sensitivity=1.0, epsilon=1 / scale)
    data = np.zeros(n)
    return lambda: _drop(mechanism.release(data))


def release_scalar(*, calls: int) -> Callable[[], None]:
    """One integer at a time."""
    mechanism = discreet.laplace(sensitivity=1, epsilon=1.0)

    def work() -> None:
        for _ in range(calls):
            mechanism.release(0)

    return work


def adaptive_filter(*, queries: int) -> Callable[[], None]:
    """Gaussian queries through a zCDP filter, each charged before it is answered."""
    mechanism = discreet.gaussian(sensitivity=1.0, sigma=1000.0, on="reals")
    data = np.zeros(4)

    def work() -> None:
        budget = ZcdpFilter(limit=Fraction(10**9))
        for _ in range(queries):
            budget.charge(mechanism.guarantee)
            mechanism.release(data)

    return work


def mixed_events(*, count: int, delta: float) -> Callable[[], tuple[float, float]]:
    """Laplace, Gaussian and Poisson-sampled Gaussian events, all different; a proven bracket."""
    spread = [Fraction(i, count) for i in range(count)]
    kinds: tuple[Callable[[Fraction], Event], ...] = (
        lambda u: LaplaceNoise(50 + 50 * u),
        lambda u: GaussianNoise(50 + 50 * u),
        lambda u: Sampled(Fraction(1, 100), GaussianNoise(1 + u)),
    )
    events = [kinds[i % 3](u) for i, u in enumerate(spread)]
    return lambda: Guarantee(compose(events)).bounds(delta)


def sgd(*, rate: float, sigma: float, steps: int, delta: float) -> Callable[[], float]:
    """Noisy gradient descent with Poisson batches."""
    step = Guarantee(Sampled(rational(rate), GaussianNoise(rational(sigma))))
    return lambda: (step * steps).epsilon(delta)


def gaussians(*, count: int, delta: float) -> Callable[[], float]:
    """Gaussian events, all different."""
    events = [GaussianNoise(20 + Fraction(20 * i, count)) for i in range(count)]
    return lambda: Guarantee(compose(events)).epsilon(delta)


def charges(*, history: int, charges: int) -> Callable[[], None]:
    """Gaussian queries charged to a ledger in a file, each on disk before it is answered."""
    ledger = _ledger()
    account = ledger.account("survey", limit=discreet.zcdp(10**9))
    mechanism = discreet.gaussian(sensitivity=1.0, sigma=1000.0, on="reals")
    store = ledger._store  # noqa: SLF001 — the history is built without waiting for the disk
    with store.write() as session:
        for _ in range(history):
            account._record_in(session, "charge", mechanism.guarantee, label="h")  # noqa: SLF001
    data = np.zeros(4)

    def work() -> None:
        for _ in range(charges):
            account.charge(mechanism.guarantee, label="benchmark")
            mechanism.release(data)

    return work


def table(
    *, file: str, limit: int, keys: int, epsilon: float = 0.0, rho: float = 0.0
) -> Callable[[], dict[str, list[float]]]:
    """Count, sum and mean of each shop in one release, charged to a ledger in a file."""
    kind = discreet.pure if epsilon else discreet.zcdp
    account = _ledger().account("visits", limit=kind(10**6))
    columns = {
        "shop": discreet.integer(lower=0, upper=keys - 1),
        "amount": discreet.integer(lower=0, upper=100),
    }
    questions = {
        "count": ask.count(by="shop"),
        "sum": ask.total("amount", by="shop"),
        "mean": ask.mean("amount", by="shop"),
    }

    def work() -> dict[str, list[float]]:
        visits = discreet.table(
            file, unit="person", rows_per_unit=limit, columns=columns, account=account
        )
        answers = visits.release(list(questions.values()), epsilon=epsilon or None, rho=rho or None)
        return {name: list(one.value) for name, one in zip(questions, answers, strict=True)}

    return work


def grouped_count(*, file: str, keys: int, epsilon: float) -> Callable[[], None]:
    """How many rows each shop has, every row another person's."""
    account = _ledger().account("visits", limit=discreet.pure(10**6))
    columns = {"shop": discreet.integer(lower=0, upper=keys - 1)}

    def work() -> None:
        discreet.table(file, columns=columns, account=account).count(by="shop", epsilon=epsilon)

    return work


def range_release(*, cells: int, epsilon: float) -> Callable[[], None]:
    """Choose a structure for all ranges, measure with noise, make it consistent."""
    counts = np.full(cells, 20)

    def work() -> None:
        _drop(discreet.plan_ranges(cells, epsilon=epsilon).best.release(counts).cells)

    return work


def range_build(*, cells: int, epsilon: float) -> Callable[[], None]:
    """The same for a structure that was chosen before."""
    counts, design = np.full(cells, 20), discreet.plan_ranges(cells, epsilon=epsilon).best
    return lambda: _drop(design.release(counts).cells)


def range_answers(*, cells: int, epsilon: float, ranges: int) -> Callable[[], None]:
    """Answers to arrays of ends."""
    released, (first, last) = _released(cells, epsilon), _ends(cells, ranges)
    return lambda: _drop(released.answer_many(first, last))


def range_errors(*, cells: int, epsilon: float, ranges: int) -> Callable[[], None]:
    """Exact standard deviations for arrays of ends."""
    released, (first, last) = _released(cells, epsilon), _ends(cells, ranges)
    return lambda: _drop(released.std(first, last))


def range_error(
    *, cells: int, epsilon: float, ranges: int, repetitions: int
) -> Callable[[], float]:
    """The root of the mean squared error of random ranges."""
    counts, (first, last) = np.full(cells, 20), _ends(cells, ranges)
    design = discreet.plan_ranges(cells, epsilon=epsilon).best

    def work() -> float:
        found = [design.release(counts).answer_many(first, last) for _ in range(repetitions)]
        errors = np.stack(found) - 20 * (last - first + 1)
        return float(np.sqrt(np.mean(np.square(errors))))

    return work


def stream(
    *,
    events: int,
    steps: int,
    batches: int,
    epsilon: float = 0.0,
    rho: float = 0.0,
    endless: int = 0,
) -> Callable[[], None]:
    """Count events as they come, in batches, with every state on disk; one total for each step."""
    kind = discreet.pure if epsilon else discreet.zcdp
    account = _ledger().account("events", limit=kind(10**6))
    at = np.sort(np.random.default_rng(1).integers(1, steps + 1, events))
    marks = [steps * k // batches for k in range(batches + 1)]
    cuts = np.searchsorted(at, marks, side="right")

    def work() -> None:
        with (
            tempfile.TemporaryDirectory() as folder,
            discreet.stream(
                Path(folder) / "stream.db",
                account=account,
                epsilon=epsilon or None,
                rho=rho or None,
                horizon=None if endless else steps,
            ) as flow,
        ):
            for k in range(batches):
                flow.events(at[cuts[k] : cuts[k + 1]], end=marks[k + 1])

    return work


def k_anonymity(*, n: int, k: int) -> Callable[[], None]:
    """The best levels of all, with risk, diversity and closeness measured."""
    frame, quasi = _people(n)
    return lambda: _drop(
        disclosure.anonymise(frame, quasi=quasi, sensitive=["ill"], k=k, suppress=0.01)
    )


def k_anonymity_local(*, n: int, k: int) -> Callable[[], None]:
    """Levels of its own for each class, with the same measures."""
    frame, quasi = _people(n)
    return lambda: _drop(
        disclosure.anonymise(frame, quasi=quasi, sensitive=["ill"], k=k, method="local")
    )


def k_noise(*, n: int, k: int) -> Callable[[], None]:
    """The smallest noise for k, the values, and their expected crowds, risk and utility."""
    values = np.random.default_rng(1).normal(50, 15, n)
    return lambda: _drop(disclosure.k_noise(values, k=k))


def crowds(*, n: int, points: int) -> Callable[[], None]:
    """Expected crowds, exactly."""
    rng = np.random.default_rng(1)
    values, at = rng.normal(50, 15, n), rng.normal(50, 15, points)
    return lambda: _drop(disclosure.expected_crowd(values, at=at, half_width=1, window=2))


def _people(n: int) -> tuple[pl.DataFrame, dict[str, disclosure.Hierarchy]]:
    rng = np.random.default_rng(1)
    frame = pl.DataFrame(
        {
            "age": rng.integers(0, 100, n),
            "postcode": [f"{code:05d}" for code in rng.integers(0, 20_000, n)],
            "sex": rng.choice(["f", "m"], n),
            "ill": rng.choice(["no", "yes"], n, p=[0.8, 0.2]),
        }
    )
    widths = [range(0, 101, width) for width in (5, 10, 20)]
    return frame, {
        "age": disclosure.intervals(*widths),
        "postcode": disclosure.prefixes(5, keep=[4, 3, 2, 1]),
        "sex": disclosure.categories(),
    }


def local_oue(*, categories: int, epsilon: float, **given: int) -> _Round:
    """Optimised unary encoding."""
    return _round(oue(categories=categories, epsilon=epsilon), **given)


def local_sue(*, categories: int, epsilon: float, **given: int) -> _Round:
    """Symmetric unary encoding."""
    return _round(sue(categories=categories, epsilon=epsilon), **given)


def local_subset(*, categories: int, epsilon: float, **given: int) -> _Round:
    """Subset selection."""
    return _round(subset_selection(categories=categories, epsilon=epsilon), **given)


def local_olh(*, categories: int, epsilon: float, **given: int) -> _Round:
    """Local hashing, with a hash function for each client."""
    return _round(olh(categories=categories, epsilon=epsilon), **given)


def local_hadamard(*, categories: int, epsilon: float, **given: int) -> _Round:
    """Hadamard response."""
    return _round(hadamard_response(categories=categories, epsilon=epsilon), **given)


def local_write(*, n: int, categories: int, **given: int) -> Callable[[], None]:
    """Encode as many clients, and write their reports into a file."""
    target, collection = _reports(categories, **given)

    def work() -> None:
        target.unlink(missing_ok=True)
        with Writer(target, collection) as writer:
            for start in range(0, n, 1 << 20):
                codes = np.arange(start, min(n, start + (1 << 20))) % categories
                writer.write(collection.randomiser.encode(codes))

    return work


def local_read(*, n: int, categories: int, **given: int) -> Callable[[], None]:
    """Count the reports of a file, restartable, and estimate."""
    target, collection = _reports(categories, **given)
    with Writer(target, collection) as writer:
        some = collection.randomiser.encode(np.arange(min(n, 1 << 20)) % categories)
        for start in range(0, n, len(some)):
            writer.write(some[: n - start])

    def work() -> None:
        with State(target.with_name(f"{time.monotonic_ns()}.agg"), collection) as state:
            state.count([target])
            if state.aggregate.reports != n:
                raise ValueError(f"{state.aggregate.reports} reports were counted, not {n}")
            _drop(state.aggregate.estimate())

    return work


def _reports(
    categories: int, *, epsilon: float, hashed: int, width: int
) -> tuple[Path, Collection]:
    oracle = (olh if hashed else oue)(categories=categories, epsilon=epsilon)
    if oracle.width != width:
        raise ValueError(f"a report has {oracle.width} bytes, not {width}")
    return _folder() / "reports.dlr", Collection(randomiser=oracle)


def _round(oracle: Oracle, *, n: int, scaled: int = 0, told: int = 1) -> _Round:
    """Encode, aggregate and estimate; the root mean squared error of shares times sqrt(n)."""
    del told  # an answer costs nothing
    categories = oracle.categories
    codes = (categories * np.random.default_rng(1).random(n) ** 2).astype(np.int64)
    truth = np.bincount(codes, minlength=categories) / n
    some = max(1, (1 << 24) // oracle.width)

    def work() -> float:
        total = Aggregate(oracle)
        for start in range(0, n, some):
            total.add(oracle.encode(codes[start : start + some]))
        found = total.estimate()
        shares = found.norm_mul().shares if scaled else found.shares
        return float(np.sqrt(np.mean((shares - truth) ** 2) * n))

    return work


def _released(cells: int, epsilon: float) -> discreet.RangeRelease:
    made = discreet.plan_ranges(cells, epsilon=epsilon).best.release(np.full(cells, 20))
    _drop(made.total)
    return made


def _ends(cells: int, ranges: int) -> tuple[Ints, Ints]:
    first, last = np.sort(np.random.default_rng(1).integers(0, cells, (2, ranges)), axis=0)
    return first, last


def _ledger() -> discreet.Ledger:
    return discreet.Ledger(f"sqlite:///{_folder()}/budget.db")


def _folder() -> Path:
    folder = mkdtemp(prefix="ours-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def median(*, n: int, shape: int, epsilon: float) -> Callable[[], None]:
    """A quantile chosen by inverse sensitivity on a fine grid."""
    values = _column(n, shape)
    choice = private_quantile(lower=0, upper=128, epsilon=epsilon)
    return lambda: _drop(choice.release(values))


def median_error(
    *, n: int, shape: int, epsilon: float, repetitions: int, points: int = 0
) -> Callable[[], float]:
    """The root of the mean squared error: on a fine grid, or on one of so many points."""
    values = _column(n, shape)
    if points:
        choice = private_quantile(
            lower=0,
            upper=128,
            epsilon=epsilon,
            grid=128 / (points - 1),
            method="permute_and_flip",
        )
    else:
        choice = private_quantile(lower=0, upper=128, epsilon=epsilon)
    truth = float(np.median(values))
    return lambda: _rmse(lambda: choice.release(values), truth, repetitions)


def _column(n: int, shape: int) -> NDArray[np.float64]:
    rng = np.random.default_rng(shape)
    draws = (
        rng.uniform(0, 100, n),
        rng.normal(50, 10, n),
        rng.exponential(10, n),
        rng.normal(40, 20, n).round(),
        rng.lognormal(3, 1, n),
    )
    return np.clip(draws[shape], 0, 128)


def _rmse(median: Callable[[], float], truth: float, repetitions: int) -> float:
    return math.sqrt(sum((median() - truth) ** 2 for _ in range(repetitions)) / repetitions)


def _drop(_: object) -> None:
    """The answer is the time."""


def adult_descent(  # noqa: PLR0913 - the public choices of a run
    *,
    file: str,
    batches: int,
    epochs: int,
    clip: float,
    learning_rate: float,
    momentum: float,
    epsilon: float,
    delta: float,
    fits: int,
    fastest: int,  # noqa: ARG001 - there is one way only
) -> Callable[[], float]:
    """Mean accuracy of several fits of logistic regression, everything chosen."""
    model = PrivateLogisticRegression(
        epsilon=epsilon,
        delta=delta,
        bounds=(0, 1),
        classes=(0, 1),
        rows=32_561,
        rate=Fraction(1, batches),
        steps=batches * epochs,
        clip=clip,
        learning_rate=learning_rate,
        momentum=momentum,
    )
    return _accuracy(model, file, fits)


def adult_pure(*, file: str, epsilon: float, delta: float, fits: int) -> Callable[[], float]:
    """Mean accuracy under pure epsilon, as diffprivlib's."""
    del delta
    model = PerturbedLogisticRegression(
        epsilon=epsilon, bounds=(0, 1), classes=(0, 1), rows=len(np.load(file)["x"])
    )
    return _accuracy(model, file, fits)


def adult_untuned(*, file: str, epsilon: float, delta: float, fits: int) -> Callable[[], float]:
    """The same with nothing chosen but the budget, the bounds and the classes."""
    model = PrivateLogisticRegression(
        epsilon=epsilon, delta=delta, bounds=(0, 1), classes=(0, 1), rows=32_561
    )
    return _accuracy(model, file, fits)


def _accuracy(
    model: PrivateLogisticRegression | PerturbedLogisticRegression, file: str, fits: int
) -> Callable[[], float]:
    held = np.load(file)
    x, y, x_test, y_test = (held[name] for name in ("x", "y", "x_test", "y_test"))
    if isinstance(model, PrivateLogisticRegression):
        # The noise is found beforehand, as it is for the peer.
        model.plan(features=x.shape[1], rows=len(x))

    def work() -> float:
        return sum(float(model.fit(x, y).score(x_test, y_test)) for _ in range(fits)) / fits

    return work


def regression_error(
    *, table: int, epsilon: float, delta: float, fits: int, given: int
) -> Callable[[], float]:
    """The mean error over splits and fits, in multiples of least squares without privacy."""
    held = np.load(f".bench/data/regression-{'given' if given else 'own'}-{table}.npz")
    x, y = held["x"], held["y"]

    def work() -> float:
        errors = []
        for train in held["train"]:
            model = BestLinearRegression(
                epsilon=epsilon,
                delta=delta,
                bounds=list(zip(held["lower"].tolist(), held["upper"].tolist(), strict=True)),
                target_bounds=tuple(held["target"].tolist()),
                rows=int(train.sum()),
            )
            for _ in range(fits):
                seen = model.fit(x[train], y[train]).predict(x[~train])
                errors.append(float(np.mean(np.square(seen - y[~train]))))
        return float(np.mean(errors) / np.mean(held["least"])) if errors else 0.0

    return work


def regression_fit(*, n: int, d: int, epsilon: float, best: int) -> Callable[[], None]:
    """A fit of rows in memory: from moments, or by the method that is chosen."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-1, 1, (n, d))
    y = np.clip(x @ rng.uniform(-1, 1, d) / d + rng.normal(0, 0.1, n), -1, 1)
    budget: dict[str, Any] = {"epsilon": epsilon, "delta": 1e-6}
    budget |= {"bounds": (-1, 1), "target_bounds": (-1, 1)}
    model = BestLinearRegression(**budget, rows=n) if best else PrivateLinearRegression(**budget)
    return lambda: _drop(model.fit(x, y))


def regression_file(*, file: str, n: int, d: int, epsilon: float) -> Callable[[], None]:
    """A fit of rows in files, through DuckDB."""
    del n  # under add/remove nobody tells
    names = [f"x{i}" for i in range(d)]
    model = PrivateLinearRegression(
        epsilon=epsilon, delta=1e-6, bounds=(-1, 1), target_bounds=(-1, 1)
    )
    return lambda: _drop(model.fit_source(file, features=names, target="y"))


def vote_costs(*, n: int, classes: int) -> Callable[[], None]:
    """Two-sided costs for the noise that is drawn, of all rows at once; two levels."""
    rng = np.random.default_rng(1)
    votes = rng.multinomial(250, rng.dirichlet(np.full(classes, 0.1), size=n)) * 1000
    rule = Confident(threshold=200, sigma_threshold=150, sigma_votes=40)
    told = np.ones(n, dtype=bool)
    return lambda: _drop(diagnose(votes, told, rule=rule, shares={"low": 667, "high": 1333}))

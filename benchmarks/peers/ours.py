"""discreet itself, measured in the same way as everyone else."""

from __future__ import annotations

import atexit
import shutil
import tempfile
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from tempfile import mkdtemp
from typing import TypeAlias

import numpy as np
import polars as pl

import discreet
from benchmarks.peers.our_models import (  # noqa: F401 - the worker finds them here
    adult_descent,
    adult_pure,
    adult_untuned,
    regression_error,
    regression_file,
    regression_fit,
    vote_costs,
)
from benchmarks.tasks import codes, column, drop, ends, rmse
from discreet import disclosure, query
from discreet.accounting.filters import ZcdpFilter
from discreet.accounting.guarantee import Guarantee
from discreet.core._rational import rational
from discreet.core.events import Event, GaussianEvent, LaplaceEvent, SampledEvent, compose
from discreet.local.collection.aggregator import Aggregator
from discreet.local.collection.aggregator_state import AggregatorState
from discreet.local.collection.report_file import ReportWriter
from discreet.local.collection.spec import CollectionSpec
from discreet.local.oracles.base import FrequencyOracle
from discreet.local.oracles.local_hashing import hadamard_response, olh
from discreet.local.oracles.subset_selection import subset_selection
from discreet.local.oracles.unary_encoding import oue, sue
from discreet.mechanisms.quantiles import private_quantile
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace
from discreet.noise.random_source import system_rng

_Round: TypeAlias = Callable[[], float]


def laplace_int(*, n: int, scale: float) -> Callable[[], None]:
    """Discrete Laplace noise."""
    law, bits = DiscreteLaplace(scale), system_rng()
    return lambda: drop(law.sample(n, bits))


def gaussian_int(*, n: int, sigma: float) -> Callable[[], None]:
    """Discrete Gaussian noise."""
    law, bits = DiscreteGaussian(sigma), system_rng()
    return lambda: drop(law.sample(n, bits))


def laplace_float(*, n: int, scale: float) -> Callable[[], None]:
    """Laplace noise on floats, released as multiples of a public grid."""
    mechanism = discreet.laplace(sensitivity=1, epsilon=1 / scale, domain="reals")
    data = np.zeros(n)
    return lambda: drop(mechanism.release(data))


def release_scalar(*, calls: int) -> Callable[[], None]:
    """One integer at a time."""
    mechanism = discreet.laplace(sensitivity=1, epsilon=1.0)

    def work() -> None:
        for _ in range(calls):
            mechanism.release(0)

    return work


def adaptive_filter(*, queries: int) -> Callable[[], None]:
    """Gaussian queries through a zCDP filter, each charged before it is answered."""
    mechanism = discreet.gaussian(sensitivity=1.0, sigma=1000.0, domain="reals")
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
        lambda u: LaplaceEvent(50 + 50 * u),
        lambda u: GaussianEvent(50 + 50 * u),
        lambda u: SampledEvent(Fraction(1, 100), GaussianEvent(1 + u)),
    )
    events = [kinds[i % 3](u) for i, u in enumerate(spread)]
    return lambda: Guarantee(compose(events)).bounds(delta)


def sgd(*, rate: float, sigma: float, steps: int, delta: float) -> Callable[[], float]:
    """Noisy gradient descent with Poisson batches."""
    step = Guarantee(SampledEvent(rational(rate), GaussianEvent(rational(sigma))))
    return lambda: (step * steps).epsilon(delta)


def gaussians(*, count: int, delta: float) -> Callable[[], float]:
    """Gaussian events, all different."""
    events = [GaussianEvent(20 + Fraction(20 * i, count)) for i in range(count)]
    return lambda: Guarantee(compose(events)).epsilon(delta)


def charges(*, history: int, charges: int) -> Callable[[], None]:
    """Gaussian queries charged to a ledger in a file, each on disk before it is answered."""
    ledger = _ledger()
    account = ledger.account("survey", limit=discreet.zcdp(10**9))
    mechanism = discreet.gaussian(sensitivity=1.0, sigma=1000.0, domain="reals")
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
    kind = discreet.pure_dp if epsilon else discreet.zcdp
    account = _ledger().account("visits", limit=kind(10**6))
    columns = {
        "shop": discreet.integer(lower=0, upper=keys - 1),
        "amount": discreet.integer(lower=0, upper=100),
    }
    questions = {
        "count": query.count(by="shop"),
        "sum": query.sum("amount", by="shop"),
        "mean": query.mean("amount", by="shop"),
    }

    def work() -> dict[str, list[float]]:
        visits = discreet.table(
            file, privacy_unit="person", max_rows_per_unit=limit, columns=columns, account=account
        )
        answers = visits.release(list(questions.values()), epsilon=epsilon or None, rho=rho or None)
        return {name: list(one.value) for name, one in zip(questions, answers, strict=True)}

    return work


def grouped_count(*, file: str, keys: int, epsilon: float) -> Callable[[], None]:
    """How many rows each shop has, every row another person's."""
    account = _ledger().account("visits", limit=discreet.pure_dp(10**6))
    columns = {"shop": discreet.integer(lower=0, upper=keys - 1)}

    def work() -> None:
        discreet.table(file, columns=columns, account=account).count(by="shop", epsilon=epsilon)

    return work


def range_release(*, cells: int, epsilon: float) -> Callable[[], None]:
    """Choose a structure for all ranges, measure with noise, make it consistent."""
    counts = np.full(cells, 20)

    def work() -> None:
        drop(discreet.plan_ranges(cells, epsilon=epsilon).best.release(counts).cells)

    return work


def range_build(*, cells: int, epsilon: float) -> Callable[[], None]:
    """The same for a structure that was chosen before."""
    counts, design = np.full(cells, 20), discreet.plan_ranges(cells, epsilon=epsilon).best
    return lambda: drop(design.release(counts).cells)


def range_answers(*, cells: int, epsilon: float, ranges: int) -> Callable[[], None]:
    """Answers to arrays of ends."""
    released, (first, last) = _released(cells, epsilon), ends(cells, ranges)
    return lambda: drop(released.answer_many(first, last))


def range_errors(*, cells: int, epsilon: float, ranges: int) -> Callable[[], None]:
    """Exact standard deviations for arrays of ends."""
    released, (first, last) = _released(cells, epsilon), ends(cells, ranges)
    return lambda: drop(released.answer_std(first, last))


def range_error(
    *, cells: int, epsilon: float, ranges: int, repetitions: int
) -> Callable[[], float]:
    """The root of the mean squared error of random ranges."""
    counts, (first, last) = np.full(cells, 20), ends(cells, ranges)
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
    kind = discreet.pure_dp if epsilon else discreet.zcdp
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
    return lambda: drop(
        disclosure.k_anonymize(
            frame, quasi_identifiers=quasi, sensitive=["ill"], k=k, suppress=0.01
        )
    )


def k_anonymity_local(*, n: int, k: int) -> Callable[[], None]:
    """Levels of its own for each class, with the same measures."""
    frame, quasi = _people(n)
    return lambda: drop(
        disclosure.k_anonymize(
            frame, quasi_identifiers=quasi, sensitive=["ill"], k=k, method="local"
        )
    )


def k_noise(*, n: int, k: int) -> Callable[[], None]:
    """The smallest noise for k, the values, and their expected crowds, risk and utility."""
    values = np.random.default_rng(1).normal(50, 15, n)
    return lambda: drop(disclosure.k_noise(values, k=k))


def crowds(*, n: int, points: int) -> Callable[[], None]:
    """Expected crowds, exactly."""
    rng = np.random.default_rng(1)
    values, at = rng.normal(50, 15, n), rng.normal(50, 15, points)
    return lambda: drop(
        disclosure.expected_anonymity_set_size(values, at=at, half_width=1, window=2)
    )


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
        "age": disclosure.interval_hierarchy(*widths),
        "postcode": disclosure.prefix_hierarchy(5, keep=[4, 3, 2, 1]),
        "sex": disclosure.category_hierarchy(),
    }


def local_oue(*, categories: int, epsilon: float, **given: int) -> _Round:
    """Optimized unary encoding."""
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
        with ReportWriter(target, collection) as writer:
            for start in range(0, n, 1 << 20):
                codes = np.arange(start, min(n, start + (1 << 20))) % categories
                writer.write(collection.randomizer.randomize(codes))

    return work


def local_read(*, n: int, categories: int, **given: int) -> Callable[[], None]:
    """Count the reports of a file, restartable, and estimate."""
    target, collection = _reports(categories, **given)
    with ReportWriter(target, collection) as writer:
        some = collection.randomizer.randomize(np.arange(min(n, 1 << 20)) % categories)
        for start in range(0, n, len(some)):
            writer.write(some[: n - start])

    def work() -> None:
        with AggregatorState(target.with_name(f"{time.monotonic_ns()}.agg"), collection) as state:
            state.count([target])
            if state.aggregate.reports != n:
                raise ValueError(f"{state.aggregate.reports} reports were counted, not {n}")
            drop(state.aggregate.estimate())

    return work


def _reports(
    categories: int, *, epsilon: float, hashed: int, width: int
) -> tuple[Path, CollectionSpec]:
    oracle = (olh if hashed else oue)(categories=categories, epsilon=epsilon)
    if oracle.width != width:
        raise ValueError(f"a report has {oracle.width} bytes, not {width}")
    return _folder() / "reports.dlr", CollectionSpec(randomizer=oracle)


def _round(oracle: FrequencyOracle, *, n: int, scaled: int = 0, told: int = 1) -> _Round:
    """Encode, aggregate and estimate; the root mean squared error of shares times sqrt(n)."""
    del told  # an answer costs nothing
    categories = oracle.categories
    held = codes(categories, n)
    truth = np.bincount(held, minlength=categories) / n
    some = max(1, (1 << 24) // oracle.width)

    def work() -> float:
        total = Aggregator(oracle)
        for start in range(0, n, some):
            total.add(oracle.randomize(held[start : start + some]))
        found = total.estimate()
        shares = found.norm_mul().shares if scaled else found.shares
        return float(np.sqrt(np.mean((shares - truth) ** 2) * n))

    return work


def _released(cells: int, epsilon: float) -> discreet.RangeRelease:
    made = discreet.plan_ranges(cells, epsilon=epsilon).best.release(np.full(cells, 20))
    drop(made.total)
    return made


def _ledger() -> discreet.Ledger:
    return discreet.Ledger(f"sqlite:///{_folder()}/budget.db")


def _folder() -> Path:
    folder = mkdtemp(prefix="ours-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return Path(folder)


def median(*, n: int, shape: int, epsilon: float) -> Callable[[], None]:
    """A quantile chosen by inverse sensitivity on a fine grid."""
    values = column(n, shape)
    choice = private_quantile(lower=0, upper=128, epsilon=epsilon)
    return lambda: drop(choice.release(values))


def median_error(
    *, n: int, shape: int, epsilon: float, repetitions: int, points: int = 0
) -> Callable[[], float]:
    """The root of the mean squared error: on a fine grid, or on one of so many points."""
    values = column(n, shape)
    if points:
        choice = private_quantile(
            lower=0,
            upper=128,
            epsilon=epsilon,
            granularity=128 / (points - 1),
            method="permute_and_flip",
        )
    else:
        choice = private_quantile(lower=0, upper=128, epsilon=epsilon)
    truth = float(np.median(values))
    return lambda: rmse(lambda: choice.release(values), truth, repetitions)

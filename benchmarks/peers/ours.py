"""discreet itself, measured in the same way as everyone else."""

from __future__ import annotations

import atexit
import shutil
from collections.abc import Callable
from fractions import Fraction
from tempfile import mkdtemp

import numpy as np

import discreet
from discreet import ask
from discreet.accounting.filters import ZcdpFilter
from discreet.accounting.guarantee import Guarantee
from discreet.core.events import Event, GaussianNoise, LaplaceNoise, Sampled, compose
from discreet.core.exact import rational
from discreet.noise.bits import system
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace


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


def _ledger() -> discreet.Ledger:
    folder = mkdtemp(prefix="ledger-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return discreet.Ledger(f"sqlite:///{folder}/budget.db")


def _drop(_: object) -> None:
    """The answer is the time."""

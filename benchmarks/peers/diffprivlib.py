"""diffprivlib: scalar mechanisms in Python, and a budget in memory."""

from __future__ import annotations

from collections.abc import Callable

from diffprivlib import BudgetAccountant
from diffprivlib.mechanisms import GaussianAnalytic, Geometric


def laplace_int(*, n: int, scale: float) -> Callable[[], None]:
    """The two-sided geometric mechanism, one integer at a time."""
    mechanism = Geometric(epsilon=1 / scale, sensitivity=1)

    def work() -> None:
        for _ in range(n):
            mechanism.randomise(0)

    return work


def charges(*, history: int, charges: int) -> Callable[[], None]:
    """Scalar Gaussian queries charged to the accountant in memory, composed with a slack."""
    accountant = BudgetAccountant(epsilon=1e9, delta=0.99, slack=1e-6)
    cost = 0.01, 1e-9
    mechanism = GaussianAnalytic(epsilon=cost[0], delta=cost[1], sensitivity=1.0)
    for _ in range(history):
        accountant.spend(*cost)

    def work() -> None:
        for _ in range(charges):
            accountant.spend(*cost)
            mechanism.randomise(0.0)

    return work

"""A classifier that may be published: planned, fitted, charged and checked."""

import numpy as np

import discreet
from discreet.models import PrivateLogisticRegression

BOUNDS = [(18, 90), (0, 80), (0, 1), (0, 1)]  # declared, never taken from the data


def people(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Simulated people: age, weekly hours, two yes/no columns; and whether they moved."""
    rng = np.random.default_rng(18)
    age, hours = rng.integers(18, 91, n), rng.integers(0, 81, n)
    rents, studies = rng.random((2, n)) < [[0.4], [0.2]]
    pull = 1.5 * rents + studies - (age - 30) / 25 + rng.logistic(size=n)
    return np.column_stack([age, hours, rents, studies]), np.where(pull > 0, "moved", "stayed")


def main() -> None:
    """Fit at three budgets, all charged to one account."""
    x, moved = people(20_000)
    x_test, moved_test = people(5_000)
    with discreet.Ledger("sqlite:///sgd.db") as ledger:
        account = ledger.account("movers", limit=discreet.approx_dp(2, 1e-6))
        for epsilon in (0.02, 0.1, 1):
            model = PrivateLogisticRegression(
                epsilon=epsilon,
                delta=1e-7,
                bounds=BOUNDS,
                classes=("moved", "stayed"),
                account=account,
                label=f"movers at epsilon {epsilon}",
            )
            plan = model.plan(features=4)
            model.fit(x, moved)
            print(
                f"epsilon {epsilon}: {model.score(x_test, moved_test):.3f} right; "
                f"{plan.steps} steps, rate {float(plan.rate):.3f}, noise {float(plan.noise):.2f}"
            )
        print(f"spent: epsilon {account.spent.epsilon(1e-6):.3f} at delta 1e-6")
    print("coefficients:", model.coef_.round(3), model.intercept_.round(2))
    print(model.certify())


if __name__ == "__main__":
    main()

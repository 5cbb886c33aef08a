"""Private statistics with confidence intervals that hold their level: planned, released, tested."""

# %%
import numpy as np

from discreet import intervals

generator = np.random.default_rng(1)
ages = generator.normal(41, 12, 2_000).clip(16, 99)
declared = {"lower": 0, "upper": 110, "public_rows": 2_000}

# %% Before any data are touched: what would it cost, and how wide would it be?
for epsilon in (0.1, 0.5, 2):
    plan = intervals.mean(**declared, epsilon=epsilon, std=12)
    print(f"epsilon {epsilon}:", plan.forecast(12))

# %% The release.
plan = intervals.mean(**declared, epsilon=0.5, std=12)
answer = plan.release(ages)
print(answer, "with epsilon", plan.guarantee.epsilon())

# %% For any distribution of the rows, with a proof instead of "about normal".
sure = intervals.mean(**declared, epsilon=0.5, std=12, assume="nothing")
print(sure.release(ages))

# %% A share, a variance, a median, and the difference of two groups.
print("under 25:", intervals.proportion(public_rows=2_000, epsilon=0.5).release(ages < 25))
print("variance:", intervals.variance(**declared, epsilon=1, std=12).release(ages))
print("median:", intervals.quantile(0.5, **declared, epsilon=1, std=12).release(ages))
groups = intervals.difference(lower=0, upper=110, public_rows=(1_200, 800), epsilon=0.5, std=12)
print("difference:", groups.release(ages[:1_200], ages[1_200:]))


# %% Does it hold? The published interval does not.
def uniform(rng: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    """Simulated columns whose mean is 1/2."""
    return rng.random(size)


published = {
    "lower": 0,
    "upper": 1,
    "public_rows": 1_000,
    "epsilon": 5.01,
    "share": 0.002,
    "delta": 1e-5,
}
for method in ("published", "safe"):
    plan = intervals.mean(**published, method=method)
    found = intervals.coverage(
        plan.simulate, draw=uniform, truth=0.5, rows=1_000, confidence=0.95, trials=2_000
    )
    print(f"{method}: {found}")

# %% What would it cost to trust no server?
print(intervals.compare_by_rows(lower=0, upper=110, rows=[100, 1_000, 10_000], epsilon=1, std=12))

"""A private mean with a confidence interval that holds its level, planned, released and tested."""

# %%
import numpy as np

from discreet.queries.intervals.coverage import coverage
from discreet.queries.intervals.mean import mean_interval

made_up = np.random.default_rng(1)
ages = made_up.normal(41, 12, 2_000).clip(16, 99)
declared = {"lower": 0, "upper": 110, "rows": 2_000}

# %% Before any data are touched: what would it cost, and how wide would it be?
for epsilon in (0.1, 0.5, 2):
    plan = mean_interval(**declared, epsilon=epsilon, std=12)
    print(f"epsilon {epsilon}:", plan.forecast(12))

# %% The release.
plan = mean_interval(**declared, epsilon=0.5, std=12)
answer = plan.release(ages)
print(answer, "with epsilon", plan.guarantee.epsilon())

# %% For any law of the rows, with a proof instead of "about normal".
sure = mean_interval(**declared, epsilon=0.5, std=12, assume="nothing")
print(sure.release(ages))


# %% Does it hold? The published interval does not.
def uniform(rng: np.random.Generator, size: tuple[int, int]) -> np.ndarray:
    """Made-up columns whose mean is 1/2."""
    return rng.random(size)


published = {"lower": 0, "upper": 1, "rows": 1_000, "epsilon": 5.01, "share": 0.002, "delta": 1e-5}
for method in ("published", "safe"):
    plan = mean_interval(**published, method=method)
    found = coverage(plan.simulate, draw=uniform, truth=0.5, rows=1_000, level=0.95, trials=2_000)
    print(f"{method}: {found}")

"""Daily visits of a year: plan, release once, answer any range."""

# %%
import numpy as np

from discreet import RangeRelease, plan_ranges, ranges

days = ranges.dates("2023-01-01", "2023-12-31")
season = 300 + 120 * np.sin(np.arange(days.size) / 58)
visits = np.random.default_rng(1).poisson(season)  # simulated

# %% Which structure is best? Nothing is read or spent for this.
plan = plan_ranges(days, "all", epsilon=0.5, expected_rows=100_000)
print(plan, "\n")

# %% Noise is drawn once.
release = plan.best.release(visits)
print(release, "\n")

# %% Any range, with its error.
for first, last in [("2023-03-01", "2023-05-31"), ("2023-07-14", "2023-07-14")]:
    low, high = release.answer_interval(first, last)
    truth = visits[np.arange(days.size)[days.first(first) : days.last(last) + 1]].sum()
    print(f"{first} .. {last}: {release.answer(first, last):,.0f} ({low:,.0f} .. {high:,.0f})")
    print(f"   (in truth {truth:,}: only an example may say so)")
median = release.quantile(0.5)
print(f"half of all visits by {median.label} ({median.low} .. {median.high})")
print("surely more than 400 visits on", len(release.cells_above(400)), "days")

# %% What was published answers on its own.
again = RangeRelease.from_json(release.to_json())
assert again.answer("2023-03-01", None) == release.answer("2023-03-01", None)

"""A year of visits by region: plan, release once, answer any rectangle."""

# %%
import numpy as np

from discreet import GridRelease, ranges

days = ranges.dates("2023-01-01", "2023-12-31")
regions = ranges.ordered([f"region {number:02}" for number in range(1, 51)])
source = np.random.default_rng(1)
season = 1 + 0.5 * np.sin(np.arange(days.size) / 58)
share = source.dirichlet(np.full(regions.size, 3.0))
chances = np.outer(season / season.sum(), share)
visits = source.multinomial(100_000, chances.ravel()).reshape(chances.shape)  # simulated

# %% Which structure is best? Nothing is read or spent for this.
plan = ranges.plan_grid([days, regions], "all", epsilon=1, expected_rows=100_000)
print(plan, "\n")

# %% Noise is drawn once.
release = plan.best.release(visits)
print(release, "\n")

# %% Any rectangle, with its error.
spring, south = ("2023-03-01", "2023-05-31"), ("region 31", "region 50")
low, high = release.answer_interval(spring, south)
print(f"spring in the south: {release.answer(spring, south):,.0f} ({low:,.0f} .. {high:,.0f})")
print(f"   (in truth {visits[59:151, 30:].sum():,}: only an example may say so)")
totals = release.marginal(1)
largest = int(np.argmax(totals.values))
print(
    f"largest: {totals.labels[largest]}, {totals.values[largest]:,.0f} ± {totals.std[largest]:.1f}"
)

# %% What was published answers on its own; its cells make a heat map.
again = GridRelease.from_json(release.to_json())
assert again.answer(spring, None) == release.answer(spring, None)
print("cells", again.cells.shape, "from", again.labels[0][0], "to", again.labels[0][-1])

"""Private medians of one column: chosen, smooth, proposed; and a mean without bounds."""

# %%
import numpy as np

from discreet import mean_without_bounds, private_quantile, propose_test_release, smooth_sensitivity
from discreet_studies.noise_mechanisms.median_errors import median_errors

generator = np.random.default_rng(1)
incomes = generator.lognormal(10.3, 0.6, 9_999)
declared = {"lower": 0, "upper": 1_000_000}
print("In truth:", np.median(incomes).round(), "(only an example may say so)")

# %% Chosen among all points of a grid: the most exact, and the number of rows may be secret.
median = private_quantile(**declared, epsilon=0.5)
print(median.certify())
print("Chosen:", median.release(incomes))

# %% Smooth sensitivity. How much noise it was is private; on simulated data it can be forecast.
public = {**declared, "public_rows": 9_999}
median = smooth_sensitivity("median", **public, epsilon=0.5)
print("Smooth:", median.release(incomes), "forecast:", median.forecast(incomes))

# %% A proposed sensitivity, tested privately: nothing comes back if the data are too wild for it.
for bound in (20, 500):
    median = propose_test_release("median", bound=bound, **public, epsilon=0.5, delta=1e-6)
    print(f"Proposed {bound}:", median.release(incomes), "noise:", round(median.std))

# %% A mean of which no bounds are known.
print(mean_without_bounds(unit=1, epsilon=1).release(incomes))

# %% Which is best, before any data are touched.
for row in median_errors(rows=501, trials=3):
    if row.shape in ("normal", "whole numbers"):
        print(f"{row.shape:15} {row.mechanism:22} {row.mean_absolute:8.3f}")

"""A wage regression on people's rows: what it costs, what it finds, how sure it is."""

# %%
import tempfile

import numpy as np

import discreet
from discreet.models import PrivateLinearRegression
from discreet.models.regression import project_psd

rng = np.random.default_rng(7)
people = 30_000
age = rng.uniform(18, 70, people)
years = np.clip(rng.normal(13, 3, people), 6, 25)  # of education
hours = np.clip(rng.normal(36, 8, people), 5, 60)
wage = 200 + 12 * (age - 40) + 90 * years + 30 * hours + rng.normal(0, 300, people)
X = np.column_stack((age, years, hours))

# %% Bounds come from the questionnaire, not from the rows.
ledger = discreet.Ledger(f"sqlite:///{tempfile.mkdtemp()}/budget.db")
account = ledger.account("survey", limit=discreet.approx_dp(1, 1e-5))
model = PrivateLinearRegression(
    epsilon=0.5,
    delta=1e-6,
    bounds=[(15, 100), (0, 30), (0, 100)],
    target_bounds=(0, 20_000),
    scaling="private",
    account=account,
    label="wages",
).fit(X, wage)
print("R2", round(model.score(X, wage), 3), "at epsilon", round(model.guarantee_.epsilon(1e-6), 3))
for statistic in model.released_:
    print("  released:", statistic)

# %% Slopes with intervals that cover the noise and the sample.
found = model.intervals(confidence=0.95)
for name, slope, low, high in zip(
    ("age", "education", "hours"), model.coef_, found.low[0], found.high[0], strict=True
):
    print(f"{name:10} {slope:8.1f}   95 % within {low:8.1f} to {high:8.1f}")

# %% Another model from the same release costs nothing.
without_age = model.moments_.subset([1, 2])
slopes, level = without_age.coefficients(project_psd(without_age).theta)
print("without age:", slopes[0].round(1), "spent", round(account.spent.epsilon(1e-6), 3))

"""A weekly mean of the same people: what it leaks beyond what is claimed, and better noise."""

# %%
import numpy as np

from discreet import seeded_rng
from discreet.audit import series

people, weeks = 40, 10
model = series.VAR(
    lags=np.diag(np.linspace(0.2, 0.9, people)),  # creatures of habit, some more than others
    noise=0.9 * np.eye(people) + 0.1,  # and a common shock
)
panel = model.simulate(times=weeks, rng=seeded_rng(1))[0]

# %% One value: last week's, from this week's mean alone.
this_week = series.releases(times=[1], width=8, people=people, std=0.5)
last_week = series.secret_value(people - 1, time=0)
for known in ("time", "none", "all"):
    print(series.leakage(model, releases=this_week, secret=last_week, attacker_knows=known), "\n")

# %% Everybody, every week, and what noise would keep the guarantee.
print(series.report(panel, bounds=(-4, 4), std=0.5, model=model), "\n")

# %% Without a model one is fitted; that takes a longer series.
longer = model.simulate(times=200, rng=seeded_rng(2))[0]
fitted = series.fit(longer)
error = np.diag(fitted.matrices[0]) - np.diag(model.matrices[0])
print(fitted, f"habits found to within {np.abs(error).max():.2f}")

# %% A model that may be published: one person's whole row is protected, so all are alike in it.
alike = series.ExchangeableVAR(habits=(0.7,), variance=1.0, correlation=0.1)
many = alike.simulate(people=2000, times=weeks, rng=seeded_rng(3))
private = series.private_fit(many, bounds=(-6, 6), spread=2, epsilon=2)
print(private)

# %% If the model is wrong: one change at a time, and all that keep at most 0.9 of the past.
weekly = series.releases(times=range(weeks), width=8, people=people, std=0.5)
for change in series.stress(model, releases=weekly)[:3]:
    print(f"{change.change}: epsilon {change.epsilon:.2f}")
print(f"any habit up to 0.9: mu {series.worst_over_models(releases=weekly, radius=0.9).worst:.2f}")

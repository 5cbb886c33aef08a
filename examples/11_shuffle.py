"""Favorite stations of 100,000 listeners: alone, and behind a shuffler."""

# %%
import numpy as np

import discreet
from discreet.local import local_epsilon_for, shuffled_guarantee, subset_selection

listeners, stations = 100_000, 64
popularity = 1 / np.arange(1, stations + 1)
generator = np.random.default_rng(1)
favorites = generator.choice(stations, size=listeners, p=popularity / popularity.sum())


# %% How much may a report say, if 100,000 of them are mixed?
local = local_epsilon_for(
    lambda epsilon: subset_selection(categories=stations, epsilon=epsilon),
    epsilon=1,
    delta=1e-6,
    reports=listeners,
)
reporter = subset_selection(categories=stations, epsilon=local)
together = shuffled_guarantee(reporter, reports=listeners)
print(f"each report: epsilon {local:.2f} on its own")
print(together.explain(delta=1e-6), "\n")

# %% Clients report, the shuffler mixes, the server adds up.
rng = discreet.seeded_rng(1)  # an example may be repeated; a client uses system_rng()
alone = subset_selection(categories=stations, epsilon=1)
for name, client in (("alone", alone), ("shuffled", reporter)):
    reports = client.randomize(favorites, rng=rng)
    mixed = generator.permutation(reports)
    tally = client.tally(mixed)
    estimate = client.estimate(tally.counts, tally.accepted)
    truth = np.bincount(favorites, minlength=stations) / listeners
    error = np.abs(estimate.shares - truth).max()
    std = client.std / listeners**0.5
    print(f"{name:>8}: largest error of a share {error:.2%}, expected std {std:.2%}")

# %% A report every day of a week.
print(f"\na week of it: epsilon {(together * 7).epsilon(1e-6):.2f} at delta 1e-6")

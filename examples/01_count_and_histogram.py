"""Publish a count and a histogram of ages, with error bars that were known beforehand."""

# %%
import numpy as np

import discreet

# The cells are fixed in advance: choosing them from the data would tell who is there.
cells = ["0-17", "18-34", "35-49", "50-64", "65-79", "80+"]
people = np.array([310, 842, 1120, 655, 98, 3])

# %% One person adds one to one cell: L1 sensitivity 1 under add/remove.
mechanism = discreet.laplace(sensitivity=1, epsilon=0.5)
low, high = mechanism.interval(0.95)
print(f"before any release: noise between {low} and {high}, 95 times in 100\n")

# %%
published = np.maximum(mechanism.release(people), 0)
for cell, number in zip(cells, published, strict=True):
    print(f"{cell:>6} {number:>6}")

# %% The total is another release: the two guarantees add up.
total = mechanism.release(int(people.sum()))
spent = mechanism.guarantee * 2
print(f"\n total {total:>6}")
print(f"\nspent: epsilon {spent.epsilon(0):g}, or {spent.epsilon(1e-6):.3f} at delta 1e-6")

"""Telemetry without a trusted server: from one client's few bytes to any range."""

# %%
import numpy as np

from discreet.local import (
    Aggregator,
    compare_trust_models,
    integers,
    plan_collection,
    randomizer_from_json,
)

minutes = integers(0, 1023)  # how long an app was used today; clients clip

# %% The plan is public and reads nothing.
plan = plan_collection(minutes, "all", epsilon=1, expected_clients=200_000)
print(plan, "\n")
description = plan.best.describe()  # ship this to the clients, as JSON

# %% A client: all that leaves it are these bytes.
client = randomizer_from_json(description)
print("a report:", client.randomize(37).tobytes().hex(), "\n")

# %% Two servers, each with a part of the clients. The values are simulated; no server sees them.
used = np.random.default_rng(1).gamma(3, 80, size=200_000).astype(int).clip(0, 1023)
east = Aggregator(plan.best).add(client.randomize(used[:120_000]))
west = Aggregator(plan.best).add(client.randomize(used[120_000:]))
west.add([b"\xff\xff\xff\xff", b"nonsense"])  # refused and counted
both = east + west
print(both, "\n")

# %% Any range, with its error.
release = both.estimate()
for first, last in [(0, 59), (60, 239), (240, None)]:
    low, high = release.answer_interval(first, last)
    truth = np.count_nonzero((used >= first) & (used <= (1023 if last is None else last)))
    name = f"{first} .. {'' if last is None else last}"
    print(f"{name}: {release.answer(first, last):,.0f} ({low:,.0f} .. {high:,.0f})")
    print(f"   (in truth {truth:,}: only an example may say so)")
median = release.quantile(0.5)
print(f"median {median.label} minutes ({median.low} .. {median.high})\n")

# %% What trusting somebody would buy.
print(compare_trust_models(minutes, "all", epsilon=1, delta=1e-6, expected_clients=100_000))

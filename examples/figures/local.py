"""Incomes in the local model: 300,000 noisy reports of a few bytes, any range."""

from importlib.resources import files

import duckdb
import numpy as np

import discreet
from discreet import local, seeded_rng

source = files("discreet.spec") / "demo_data" / "health.parquet"
families = duckdb.read_parquet(str(source)).filter("year = 1").order("person").fetchnumpy()
hundreds = np.minimum(families["income"] // 100, 255)
clients = np.random.default_rng(1).choice(hundreds, size=300_000)  # each family stands for fifty

plan = local.plan_collection(local.integers(0, 255), "all", epsilon=1, expected_clients=300_000)
reports = plan.best.randomize(clients, rng=seeded_rng(1))
discreet.plot(local.Aggregator(plan.best).add(reports), "local.svg")

"""All tables of a survey at once: plan, release, print, synthetic rows, and what is out already."""

# %%
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd

import discreet
from discreet import col

source = np.random.default_rng(1)
many = 20_000
age = source.integers(18, 90, many)
people = pd.DataFrame(  # simulated
    {
        "age": age,
        "region": source.choice(["north", "south", "west"], many, p=[0.5, 0.3, 0.2]),
        "sex": source.choice(["female", "male"], many),
        "retired": source.random(many) < np.clip((age - 55) / 20, 0, 1),
    }
)
table = discreet.table(
    people,
    columns={
        "age": discreet.integer(18, 99),
        "region": discreet.category(["north", "south", "west"], include_other=False),
        "sex": discreet.category(["female", "male"], include_other=False),
        "retired": discreet.boolean(),
    },
    budget=discreet.approx_dp(3, 1e-6),
)

# %% The error of every table, before anything is spent.
columns = {"age": col("age").cut([30, 45, 55, 65, 75]), **{k: k for k in ("region", "sex")}}
columns["retired"] = "retired"
plan = table.plan_marginals(2, columns=columns, epsilon=1, delta=1e-9, expected_rows=many)
print(plan, "\n")

# %% One charge, one reading: all tables agree.
release = table.marginals(plan)
crossed = release.table(["region", "sex"])
assert np.allclose(crossed.cells.sum(axis=1), release.table(["region"]).cells)
print(crossed, "\n")
low, high = release.answer_interval({"age": ("[65, 75)", ">= 75"), "sex": "female"})
print(f"women of 65 and more: {low:,.0f} .. {high:,.0f}\n")

# %% To print: no negative cells, and what that did.
print(release.nonnegative().table(["age", "retired"]).statement, "\n")

# %% Synthetic rows follow from the tables: nothing more is charged.
rows = release.synthesize(impossible=[{"age": "< 30", "retired": True}], seed=7)
print(rows.fidelity(), "\n")
with TemporaryDirectory() as folder:
    rows.to_parquet(Path(folder) / "rows.parquet")
    rows.to_csv(Path(folder) / "rows.csv")

# %% Counts that were released one by one are put together, with tables that are out already.
total, sexes = table.count(epsilon=0.5), table.count(by="sex", epsilon=0.5)
both = discreet.reconcile([total, sexes, release])
print(both)
print(f"std of the number of men: {sexes.std[1]:.1f} alone, {both.table(['sex']).std[1]:.1f} now")

"""Publish statistics from a table: declare, forecast, ask, keep."""

# %%
import random
from pathlib import Path
from tempfile import TemporaryDirectory

import discreet
from discreet import col, query

folder = TemporaryDirectory()
home = Path(folder.name)
generator = random.Random(7)  # noqa: S311 - only for simulated data
lines = ["person,age,sex,income"]
for visit in range(4_000):
    income = generator.gauss(30_000, 9_000)
    lines.append(f"{visit // 2},{generator.randint(0, 99)},{generator.choice('fm')},{income:.2f}")
(home / "people.csv").write_text("\n".join(lines))

# %% Bounds and categories are declared, never looked up in the data.
ledger = discreet.Ledger(f"sqlite:///{home}/budget.db")
people = discreet.table(
    home / "people.csv",
    privacy_unit="person",
    max_rows_per_unit=2,
    columns={
        "age": discreet.integer(lower=0, upper=120),
        "sex": discreet.category(["f", "m"], include_other=False),
        "income": discreet.real(lower=0, upper=100_000, granularity=0.25),
    },
    account=ledger.account("survey", limit=discreet.approx_dp(2, 1e-6)),
)

# %% How exact will it be? Nothing is read or spent for this.
print(people.forecast(query.mean("income", by="sex"), epsilon=0.5, expected_rows=2_000), "\n")

# %% Every answer is charged before a row is read.
print(people.count_units(where=col("age") >= 18, epsilon=0.2), "\n")
print(people.histogram("age", edges=[18, 35, 65], epsilon=0.3), "\n")
for release in people.release([query.count(by="sex"), query.mean("income", by="sex")], epsilon=0.6):
    print(release, "\n")

# %%
print(f"left: a pure epsilon of {float(people.account.remaining):.3f}")
ledger.close()
folder.cleanup()

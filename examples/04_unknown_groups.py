"""Groups that are not known beforehand: discover keys, query, keep the rest together."""

# %%
import random
from pathlib import Path
from tempfile import TemporaryDirectory

import discreet
from discreet import query

folder = TemporaryDirectory()
home = Path(folder.name)
generator = random.Random(11)  # noqa: S311 - only for simulated data
cities = ["Ulm", "Rome", "Ghent", "Oslo", *(f"hamlet {i}" for i in range(300))]
weights = [500, 300, 100, 40, *[0.2] * 300]
lines = ["person,city,cost"]
for visit in range(8_000):
    city = generator.choices(cities, weights)[0]
    lines.append(f"{visit // 4},{city},{generator.randint(0, 90)}")
(home / "visits.csv").write_text("\n".join(lines))

# %% The values of a text column are unknown, and stay so until they are discovered.
ledger = discreet.Ledger(f"sqlite:///{home}/budget.db")
visits = discreet.table(
    home / "visits.csv",
    privacy_unit="person",
    max_rows_per_unit=4,
    columns={"city": discreet.text(), "cost": discreet.integer(lower=0, upper=100)},
    account=ledger.account("visits", limit=discreet.approx_dp(4, 1e-5)),
)

# %% A city that one person alone visited is shown with probability 1e-6 at most.
found = visits.discover_keys("city", max_groups_per_unit=4, epsilon=1, delta=1e-6)
print(found, "\n")
print(found.mechanism, "\n")

# %% What was released is public: ask about these cities, and about all others together.
keys = discreet.keys(found, include_other=True)
for release in visits.release(
    [query.count(by="city", keys=keys), query.mean("cost", by="city", keys=keys)], epsilon=2
):
    print(release, "\n")

# %% Bounds can be found privately, too. This is charged like any answer.
print(visits.suggest_bounds("cost", epsilon=0.5))

# %%
print(f"left: a pure epsilon of {float(visits.account.remaining):.3f}")
ledger.close()
folder.cleanup()

"""Any function made private: a forest that predicts tomorrow from a week of readings.

A utility predicts a household's consumption from its last seven days. The forest was trained on a
public panel; other households of the panel serve as public inputs. One day is to be hidden.
"""

# %%
from tempfile import TemporaryDirectory

import numpy as np
from sklearn.ensemble import RandomForestRegressor

import discreet
from discreet import blackbox

rng = np.random.default_rng(0)


def weeks(many: int) -> np.ndarray:
    """Eight days of consumption, kWh (simulated)."""
    habit = rng.gamma(6, 2, size=(many, 1))
    return np.clip(habit * rng.lognormal(0, 0.25, size=(many, 8)), 0, 40)


panel, examples, customers = weeks(800), weeks(200), weeks(50)
forest = RandomForestRegressor(10, max_depth=5, random_state=0)
forest.fit(panel[:, :7], panel[:, 7])

# %% One call. What is hidden is one whole day of the week.
private = blackbox.make_private(
    forest, public_inputs=examples[:, :7], metric="record", epsilon=1, bounds=(0, 40)
)
print(private.explain())

# %% The guarantee, recomputed.
print(private.certify())

# %% Answers are charged, and come with error bars.
with (
    TemporaryDirectory() as folder,
    discreet.Ledger(f"sqlite:///{folder}/budget.db") as ledger,
):
    limit = discreet.pure_dp(3, relation=discreet.NeighboringRelation.REPLACE_ONE)
    account = ledger.account("customer 17", limit=limit)
    answer = private.charged_to(account, label="tomorrow").answer(customers[17, :7])
    print(f"tomorrow: {answer.value:.1f} kWh, receipt {answer.receipt.sequence}")

# %% Is it any good? On customers that nothing was fitted to:
said = forest.predict(customers[:, :7])
released = np.array([private.release(x) for x in customers[:, :7]])
constant = np.abs(said - np.median(forest.predict(examples[:, :7]))).mean()
print(f"error {np.abs(released - said).mean():.2f} kWh, expected {private.expected.error:.2f}")
print(f"a public constant instead: {constant:.2f}")

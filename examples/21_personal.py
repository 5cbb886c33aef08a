"""Three consent levels: what each gains and costs, before anybody's data are used.

A hospital lets patients choose how well their records are hidden. An ensemble of models, each
trained on some of the records, labels public cases by noisy votes. The more labels, the better the
model that can be published in the end.
"""

# %%
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import polars as pl

import discreet
from discreet import query
from discreet.models.pate import ConfidentGNMax, assign_weighting, plan_labels, vote_weights

people = {"strict": 34, "usual": 43, "open": 23}  # per cent of the patients
epsilons = {"strict": 1, "usual": 2, "open": 3}  # epsilon, at delta = 1e-6
limits = {level: discreet.approx_dp(epsilon, 1e-6) for level, epsilon in epsilons.items()}
rule = ConfidentGNMax(threshold=200, sigma_threshold=150, sigma_votes=40)


def labels(
    limits: dict[str, discreet.Guarantee], people: dict[str, int] = people
) -> tuple[int, dict[str, float]]:
    """Labels that everybody's budget pays for, and the weight of a record of each level."""
    roots = vote_weights({level: limits[level] for level in people})
    teachers = assign_weighting(250, people=people, sensitivities=roots)
    plan = plan_labels(teachers, rule, limits, classes=10, answered_share=0.58)
    return plan.answers, {level: share / 1000 for level, share in teachers.shares.items()}


# %% One guarantee for all must be the strictest; or only those take part who ask for less.
everyone_strict, _ = labels(dict.fromkeys(limits, limits["strict"]))
personal, weights = labels(limits)
print(f"everybody as strict as the strictest: {everyone_strict} labels")
print(f"everybody as they chose:              {personal} labels")
for level in people:
    print(f"  {level:>6}: epsilon {epsilons[level]}, one record weighs {weights[level]:.2f} votes")

# %% What if patients moved from one level to the next?
moved = {
    "as it is": people,
    "10 % more open": {"strict": 34, "usual": 33, "open": 33},
    "10 % more strict": {"strict": 44, "usual": 33, "open": 23},
}
gains = {name: labels(limits, shares)[0] for name, shares in moved.items()}
print(gains)

# %% The same choice in a table: the share of smokers, each patient with their epsilon.
rng = np.random.default_rng(0)
patients = pl.DataFrame(
    {
        "consent": rng.choice(list(people), 10_000, p=[0.34, 0.43, 0.23]),
        "smokes": rng.random(10_000) < 0.28,
    }
)
ledger = discreet.Ledger(f"sqlite:///{tempfile.mkdtemp()}/budget.db")
table = discreet.table(
    patients,
    columns={"consent": discreet.category(list(people)), "smokes": discreet.boolean()},
    account=ledger.account("patients", limit=discreet.pure_dp(5)),
)
view = table.with_personal_budgets(
    budget="consent", privacy_levels={"strict": 0.02, "usual": 0.1, "open": 1}
)
rows = {level: 100 * share for level, share in people.items()}
for trade in view.trades(query.mean("smokes"), expected_rows=rows, max_difference=0.05):
    print(
        f"at most the budget of {trade.max_privacy_level:>6}: within {trade.error:.4f} of the truth"
    )
print(view.mean("smokes", expected_rows=rows, max_difference=0.05))

# %% One picture.
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.2), layout="constrained")
left.bar(["all strict", *gains], [everyone_strict, *gains.values()], color="#4477aa")
left.set_ylabel("labels for the same guarantees")
left.tick_params(axis="x", rotation=20)
right.bar(list(people), [epsilons[level] for level in people], color="#cc6677")
right.set_ylabel("epsilon that is guaranteed")
twin = right.twinx()
twin.plot(list(people), [weights[level] for level in people], "ko-")
twin.set_ylabel("votes that one record can move")
path = Path(tempfile.mkdtemp()) / "consent.svg"
figure.savefig(path)
print(f"the picture is in {path}")

"""Plan a private run before spending, then train: pure epsilon, or only the end published."""

# %%
import numpy as np

from discreet import NeighboringRelation
from discreet.models import OutputPerturbationLogisticRegression
from discreet.models.dp_sgd import ConvergenceProblem, PowerSchedule, analyze_schedule
from discreet_studies.private_inference.trajectory_cost import costs

# %% Constants from public knowledge: ten features, rows of length 1, a guess of the rest.
facts = ConvergenceProblem(dimension=10, smoothness=0.25, variance=0.2, distance=5)

# %% One epsilon for the whole run, one secret record of 5,000 in each step.
steps = [10, 100, 1_000, 10_000]
print(
    analyze_schedule(
        facts,
        schedule=PowerSchedule(start=0.03),
        sensitivity=2,
        epsilon=1,
        public_rows=5_000,
        budget="run",
        steps=steps,
    )
)

# %% A published schedule claims epsilon for each iterate. What do all of them cost?
found = costs(np.ones(100), epsilon=1, diameter=2, rows=1_000, delta=1e-6)
print(f"claimed for one iterate: {found.marginal:.3g}, all of 100: {found.basic:.3g},")
print(f"composed at delta 1e-6: {found.composed:.3g}, records secret: {found.sampled_basic:.3g}")

# %% Simulated people.
generator = np.random.default_rng(1)
rows = generator.uniform(-1, 1, (20_000, 5))
chance = 1 / (1 + np.exp(-(rows @ [3, -2, 1, 0, 0] + 0.5)))
labels = np.where(generator.random(20_000) < chance, "yes", "no")
declared = {"bounds": (-1, 1), "classes": ("no", "yes"), "epsilon": 1}

# %% Pure epsilon.
model = OutputPerturbationLogisticRegression(**declared, public_rows=20_000).fit(rows, labels)
print(f"pure: accuracy {model.score(rows, labels):.3f}, {model.guarantee_}")

# %% Noise on the minimizer; noise in every step of which only the last is published.
for method in ("output", "last iterate"):
    model = OutputPerturbationLogisticRegression(
        **declared, delta=1e-6, method=method, relation=NeighboringRelation.REPLACE_ONE, steps=100
    ).fit(rows, labels)
    print(f"{method}: accuracy {model.score(rows, labels):.3f}, {model.guarantee_}")

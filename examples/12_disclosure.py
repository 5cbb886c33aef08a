"""A survey made coarser, swapped and jittered: what it risks; and what is private instead."""

# %%
import numpy as np
import polars as pl

from discreet import disclosure as dc

made_up = np.random.default_rng(1)
n = 20_000
survey = pl.DataFrame(
    {
        "age": made_up.integers(18, 90, n),
        "postcode": [str(z) for z in made_up.integers(10_000, 10_900, n)],
        "sex": made_up.choice(["f", "m"], n),
        "smokes": made_up.choice(["yes", "no"], n, p=[0.25, 0.75]),
    }
)
print("As it is:", dc.assess(survey, quasi=["age", "postcode", "sex"]), sep="\n", end="\n\n")

# %% k-anonymity: one level for each column, or levels of its own for each class.
quasi = {
    "age": dc.intervals(range(15, 96, 5), range(15, 96, 20)),
    "postcode": dc.prefixes(5, keep=[4, 3]),
    "sex": dc.categories(),
}
for method in ("optimal", "local"):
    safer = dc.anonymise(survey, quasi=quasi, sensitive=["smokes"], k=10, method=method)
    print(safer, "\n")

# %% Answers changed at random, and estimated back.
matrix = dc.kept_with(0.9, categories=2)
truth = (survey["smokes"] == "yes").cast(int).to_numpy()
print(matrix)
print("estimated no, yes:", matrix.estimate(np.bincount(matrix.apply(truth))))
print("in truth:", np.bincount(truth), "(only an example may say so)\n")

# %% Noise on numbers, and how a second release undoes it.
ages = survey["age"].to_numpy() + made_up.uniform(0, 1, n)
print(dc.k_noise(ages, k=50), "\n")
print("A record is known up to", [round(dc.width_after(m, half_width=2.5), 2) for m in (1, 5, 25)])

# %% What is private: a secret sample with a threshold, and points around noisy counts.
bridge = dc.sampled_table(
    columns={
        "age": dc.at(quasi["age"], 2),
        "sex": dc.at(quasi["sex"], 0),
        "smokes": dc.at(dc.categories(), 0),
    },
    rate=0.1,
    k=15,
    epsilon=1,
)
print(bridge.certify())
print(bridge.release(survey.drop("postcode")).group_by(pl.all()).len().sort("len").tail(3))
points = dc.private_points(edges=range(15, 96, 5), epsilon=1)
print(points.certify())
print(points.release(ages))

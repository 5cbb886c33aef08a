"""A survey made coarser, swapped and jittered: what it risks; and what is private instead."""

# %%
import numpy as np
import polars as pl

from discreet import disclosure as dc

generator = np.random.default_rng(1)
n = 20_000
survey = pl.DataFrame(
    {
        "age": generator.integers(18, 90, n),
        "postcode": [str(z) for z in generator.integers(10_000, 10_900, n)],
        "sex": generator.choice(["f", "m"], n),
        "smokes": generator.choice(["yes", "no"], n, p=[0.25, 0.75]),
    }
)
print(
    "As it is:",
    dc.disclosure_risk(survey, quasi_identifiers=["age", "postcode", "sex"]),
    sep="\n",
    end="\n\n",
)

# %% k-anonymity: one level for each column, or levels of its own for each class.
quasi = {
    "age": dc.interval_hierarchy(range(15, 96, 5), range(15, 96, 20)),
    "postcode": dc.prefix_hierarchy(5, keep=[4, 3]),
    "sex": dc.category_hierarchy(),
}
for method in ("optimal", "local"):
    safer = dc.k_anonymize(
        survey, quasi_identifiers=quasi, sensitive=["smokes"], k=10, method=method
    )
    print(safer, "\n")

# %% Answers changed at random, and estimated back.
matrix = dc.symmetric_pram(0.9, categories=2)
truth = (survey["smokes"] == "yes").cast(int).to_numpy()
print(matrix)
print("estimated no, yes:", matrix.estimate(np.bincount(matrix.apply(truth))))
print("in truth:", np.bincount(truth), "(only an example may say so)\n")

# %% Noise on numbers, and how a second release undoes it.
ages = survey["age"].to_numpy() + generator.uniform(0, 1, n)
print(dc.k_noise(ages, k=50), "\n")
print(
    "A record is known up to",
    [round(dc.width_after_releases(m, half_width=2.5), 2) for m in (1, 5, 25)],
)

# %% What is private: a secret sample with a threshold, and points around noisy counts.
bridge = dc.safe_k_anonymity(
    columns={
        "age": dc.hierarchy_level(quasi["age"], 2),
        "sex": dc.hierarchy_level(quasi["sex"], 0),
        "smokes": dc.hierarchy_level(dc.category_hierarchy(), 0),
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

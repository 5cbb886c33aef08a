"""Numbers that are blurred before they leave their owners: a mean, a distribution, two columns."""

# %%
import numpy as np

from discreet.local import Aggregator, best_mean_randomizer, multidimensional_mean, square_wave

source = np.random.default_rng(1)
minutes = source.gamma(3, 20, size=200_000)  # simulated
age = source.integers(10, 90, size=200_000)

# %% The mean. What the error will be is known beforehand, at worst.
survey = best_mean_randomizer(epsilon=1, lower=0, upper=180)
print(f"{survey.kind}: {survey.width} byte a report, error {survey.std / 200_000**0.5:.2f}")
mean = Aggregator(survey).add(survey.randomize(minutes)).estimate()
print(f"mean {mean.value:.2f} ± {mean.std:.2f}, surely {mean.guaranteed(0.99)}")
print(f"   (in truth {minutes.clip(0, 180).mean():.2f}: only an example may say so)\n")

# %% The distribution: reports may be counted in parts and merged.
wave = square_wave(cells=90, epsilon=1, lower=0, upper=180)
parts = [Aggregator(wave).add(wave.randomize(part)) for part in np.array_split(minutes, 4)]
whole = parts[0].merge(parts[1]).merge(parts[2]).merge(parts[3])
estimate = whole.estimate()
for low in range(0, 180, 20):
    share = float(estimate.range(low, low + 20))
    print(f"{low:3}-{low + 20:3} minutes {share:6.1%} {'#' * round(100 * share)}")
print(f"median {estimate.quantile(0.5):.1f} (in truth {np.median(minutes):.1f})\n")

# %% Two numbers of each client for one epsilon.
both = multidimensional_mean(columns={"minutes": (0, 180), "age": (0, 110)}, epsilon=1)
for name, one in (
    Aggregator(both).add(both.randomize({"minutes": minutes, "age": age})).estimate().items()
):
    print(f"{name}: {one.value:.2f} ± {one.std:.2f} from {one.reports:,} clients")

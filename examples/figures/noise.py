"""Which noise for one number: every noise distribution, by its expected error."""

import discreet

best = discreet.best_additive_noise(
    sensitivity=1, epsilon=0.5, delta=1e-6, domain="reals", loss="mae"
)
discreet.plot(best, "noise.svg")

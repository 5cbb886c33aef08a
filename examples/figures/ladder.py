"""The ladder of trust: one guarantee, four models, and the error of a range in each."""

import discreet
from discreet.local import compare_trust_models, integers

ladder = compare_trust_models(
    integers(0, 1023), "all", epsilon=1, delta=1e-6, expected_clients=100_000
)
discreet.plot(ladder, "ladder.svg")

"""The ladder of trust: one guarantee, four models, and the error of a range in each."""

import discreet
from discreet.queries.ranges import workload
from discreet.queries.ranges.domain import integers
from discreet.queries.ranges.local.ladder import trust_ladder

ladder = trust_ladder(
    integers(0, 1023), workload.all_ranges(), epsilon=1, delta=1e-6, clients=100_000
)
discreet.plot(ladder, "ladder.svg")

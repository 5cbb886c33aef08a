"""Which words do keyboards not know? The server learns the frequent ones, no client's own."""

import numpy as np

import discreet
from discreet import local

CLIENTS = 100_000


def main() -> None:
    """Collect one noisy report from each of 100,000 keyboards, on two machines."""
    collection = local.heavy_hitters(length=6, epsilon=3)
    print(collection)
    print(f"{collection.width} bytes a report; found 9 times of 10 from a share of", end=" ")
    print(f"{collection.detects(CLIENTS):.1%} on")

    rng = np.random.default_rng(1)
    words = np.array(["skibid", "rizz", "yeet", "grok", "doomsc", "vibing"])
    known = rng.choice(words, CLIENTS // 2, p=[0.4, 0.25, 0.15, 0.1, 0.06, 0.04]).tolist()
    rare = ["".join(rng.choice(list("abcdefghij"), 6)) for _ in range(CLIENTS // 2)]

    # A real client leaves `rng` out and draws from its operating system.
    east = local.Aggregator(collection).add(collection.randomize(known, rng=discreet.seeded_rng(1)))
    west = local.Aggregator(collection).add(collection.randomize(rare, rng=discreet.seeded_rng(2)))
    print(east.merge(west).estimate())


if __name__ == "__main__":
    main()

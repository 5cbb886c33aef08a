"""Exact laws of whole messages, level and report, on small domains."""

import itertools
import math

from discreet.local.ranges.haar import HaarResponse


def message_laws(randomizer):
    """For each value the probability of every message: level, then what the level's part sends."""
    for cell in range(randomizer.domain.size):
        law = {}
        for level, (share, block, part) in enumerate(
            zip(randomizer.shares, randomizer.blocks, randomizer.parts, strict=True)
        ):
            code = cell // block
            if isinstance(part, HaarResponse):
                keep = 1 / (1 + math.exp(-part.epsilon))
                for row, sign in itertools.product(range(part.pairs), range(2)):
                    true = ((row & code >> 1).bit_count() + code) & 1
                    chance = (keep if sign == true else 1 - keep) / part.pairs
                    law[level, 2 * row + sign] = float(share) * chance
            else:
                for seen in range(part.categories):
                    chance = part.keep if seen == code else part.other
                    law[level, seen] = float(share) * chance
        yield law

"""Work, measured without a clock."""

from discreet.noise.random_source import seeded_rng


class CountedBits:
    """Counts the words that are drawn: a clock that runs with the work alone."""

    width = 64
    private = False

    def __init__(self, seed):
        self._bits = seeded_rng(seed)
        self.drawn = 0

    def words(self, count):
        self.drawn += count
        return self._bits.words(count)

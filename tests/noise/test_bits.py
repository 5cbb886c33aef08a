"""No two processes, threads or releases ever see the same random words."""

import os
import threading

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument
from discreet.noise.bits import SeededBits, seeded, system


class Buffered:
    """A deliberately wrong source: a buffer that a fork duplicates."""

    width = 64

    def __init__(self):
        self._buffer = np.frombuffer(os.urandom(8 * 4096), dtype=np.uint64)
        self._next = 0

    def words(self, count):
        self._next += count
        return self._buffer[self._next - count : self._next]


def words_of_two_processes(bits):
    bits.words(16)  # anything that could be buffered is buffered before the fork
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, bits.words(256).tobytes())
        finally:
            os._exit(0)
    os.close(write)
    mine = bits.words(256)
    theirs = np.frombuffer(os.read(read, 8 * 256), dtype=np.uint64)
    os.close(read)
    os.waitpid(child, 0)
    return mine, theirs


def test_a_forked_process_draws_other_words():
    mine, theirs = words_of_two_processes(system())
    assert len(theirs) == 256
    assert not np.intersect1d(mine, theirs).size


def test_the_fork_test_catches_a_buffer():
    mine, theirs = words_of_two_processes(Buffered())
    assert np.array_equal(mine, theirs)


def test_threads_draw_other_words():
    bits = system()
    drawn = [None] * 8
    start = threading.Barrier(8)

    def draw(i):
        start.wait()
        drawn[i] = np.concatenate([bits.words(7) for _ in range(500)])

    threads = [threading.Thread(target=draw, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    everything = np.concatenate(drawn)
    assert len(np.unique(everything)) == 8 * 500 * 7


def test_two_releases_draw_other_words():
    bits = system()
    assert not np.intersect1d(bits.words(1000), bits.words(1000)).size
    assert not np.intersect1d(system().words(1000), system().words(1000)).size


def test_seeded_words_repeat_and_are_marked():
    assert np.array_equal(seeded(7).words(100), seeded(7).words(100))
    assert not np.array_equal(seeded(7).words(100), seeded(8).words(100))
    assert seeded(7).private is False
    assert system().private is True
    assert int(SeededBits(3, width=8).words(1000).max()) <= 255


@pytest.mark.parametrize("seed", [-1, 0.5, True, "7"])
def test_a_bad_seed_is_refused(seed):
    with pytest.raises(InvalidArgument, match="seed"):
        seeded(seed)

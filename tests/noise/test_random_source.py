"""No two processes, threads or releases ever see the same random words."""

import os
import threading

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument
from discreet.mechanisms.additive import laplace
from discreet.noise.random_source import SeededRandomSource, resolve_rng, seeded_rng, system_rng
from tests.distributions import frequency


class Buffered:
    """A deliberately wrong source: a buffer that a fork duplicates."""

    width = 64

    def __init__(self):
        self._buffer = np.frombuffer(os.urandom(8 * 4096), dtype=np.uint64)
        self._next = 0

    def words(self, count):
        self._next += count
        return self._buffer[self._next - count : self._next]


def words_of_two_processes(rng, count):
    rng.words(count)  # anything that could be buffered is buffered before the fork
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, rng.words(count)[-256:].tobytes())
        finally:
            os._exit(0)
    os.close(write)
    mine = rng.words(count)[-256:]
    theirs = np.frombuffer(os.read(read, 8 * 256), dtype=np.uint64)
    os.close(read)
    os.waitpid(child, 0)
    return mine, theirs


@pytest.mark.parametrize("count", [256, 100_000], ids=["kernel", "OpenSSL"])
def test_a_forked_process_draws_other_words(count):
    mine, theirs = words_of_two_processes(system_rng(), count)
    assert len(theirs) == 256
    assert not np.intersect1d(mine, theirs).size


def test_the_fork_test_catches_a_buffer():
    mine, theirs = words_of_two_processes(Buffered(), 256)
    assert np.array_equal(mine, theirs)


@pytest.mark.parametrize(("count", "times"), [(7, 500), (2_000, 10)], ids=["kernel", "OpenSSL"])
def test_threads_draw_other_words(count, times):
    rng = system_rng()
    drawn = [None] * 8
    start = threading.Barrier(8)

    def draw(i):
        start.wait()
        drawn[i] = np.concatenate([rng.words(count) for _ in range(times)])

    threads = [threading.Thread(target=draw, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    everything = np.concatenate(drawn)
    assert len(np.unique(everything)) == 8 * times * count


@pytest.mark.parametrize("count", [1000, 50_000])
def test_two_releases_draw_other_words(count):
    rng = system_rng()
    assert not np.intersect1d(rng.words(count), rng.words(count)).size
    assert not np.intersect1d(system_rng().words(count), system_rng().words(count)).size


def test_a_long_request_is_filled_to_its_end():
    # Every bit of every word is fair: 70,001 words cross the size of a piece twice.
    words = system_rng().words(70_001)
    ones = np.unpackbits(words.view(np.uint8).reshape(-1, 8), axis=1).sum(axis=0)
    assert all(frequency(number, 70_001, 0.5) for number in ones)
    last = np.unpackbits(words[-2_000:].view(np.uint8))
    assert frequency(last.sum(), last.size, 0.5)


def test_seeded_words_repeat_and_are_marked():
    assert np.array_equal(seeded_rng(7).words(100), seeded_rng(7).words(100))
    assert not np.array_equal(seeded_rng(7).words(100), seeded_rng(8).words(100))
    assert seeded_rng(7).private is False
    assert system_rng().private is True
    assert int(SeededRandomSource(3, width=8).words(1000).max()) <= 255


@pytest.mark.parametrize("seed", [-1, 0.5, True, "7"])
def test_a_bad_seed_is_refused(seed):
    with pytest.raises(InvalidArgument, match="seed"):
        seeded_rng(seed)


def test_without_a_source_the_operating_systems_are_used():
    assert resolve_rng(None).private
    mine = seeded_rng(3)
    assert resolve_rng(mine) is mine
    assert resolve_rng(system_rng()).private


class Wordless:
    width = 64
    words = 3


@pytest.mark.parametrize("rng", [5, "seed", np.random.default_rng(1), Wordless(), seeded_rng, True])
def test_what_gives_no_words_is_refused_before_anything_is_drawn(rng):
    said = f"rng must be left out, or seeded_rng(n) for a simulation, not {type(rng).__name__}."
    with pytest.raises(InvalidArgument) as refused:
        resolve_rng(rng)
    assert str(refused.value) == said
    with pytest.raises(InvalidArgument) as refused:
        laplace(sensitivity=1, epsilon=1).release(3, rng=rng)
    assert str(refused.value) == said

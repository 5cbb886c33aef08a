"""A count that is killed again and again; a script, so that it forks without threads.

python counting.py FOLDER [careless]    prints how often it was killed before it came to an end

Careless: the sum is written before the position. The test must notice.
"""

import os
import random
import signal
import sys
import time
from pathlib import Path

from discreet.local.collection import aggregator_state as module
from discreet.local.collection.aggregator_state import AggregatorState
from discreet.local.collection.spec import CollectionSpec


def patched(channel, *, careless):
    save = AggregatorState.save

    def telling(self):
        if careless:
            moved, self._moved = self._moved, {}
            save(self)
            os.write(channel, b"h")
            time.sleep(0.002)
            self._moved = moved
        save(self)
        os.write(channel, b"s")

    AggregatorState.save = telling
    module.CHUNK, module._LONGEST_CHUNK = 100, 100


def work(folder, collection):
    with AggregatorState(folder / "s.agg", collection) as state:
        state.count(sorted(folder.glob("*.dlr")), every=0)


def main(folder, *, careless):
    chance = random.Random(7)
    collection = CollectionSpec.from_json((folder / "c.json").read_text())
    for kills in range(1000):
        out, channel = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(out)
            patched(channel, careless=careless)
            work(folder, collection)
            os._exit(0)
        os.close(channel)
        for _ in range(chance.randint(1, 4)):
            if not os.read(out, 1):
                break
        time.sleep(chance.uniform(0, 0.01))
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        os.close(out)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0
            print(kills)
            return
    raise AssertionError("it never came to an end")


if __name__ == "__main__":
    main(Path(sys.argv[1]), careless="careless" in sys.argv)

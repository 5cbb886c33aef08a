"""A stream that is killed again and again; a script, so that it forks without threads.

python killed_release.py FOLDER KILLS SEED AMOUNT [careless]    prints what was published, line by
line

Careless: answers are told before they are on disk. The test must notice.
"""

import io
import json
import os
import random
import signal
import sys
import time

import numpy as np

import discreet
from discreet.ranges.stream.file import KeyValueFile
from discreet.tables.stream import stream


def told(channel, first, values):
    os.write(channel, (json.dumps([first, list(values)]) + "\n").encode())


def work(folder, amount, channel):
    """Publish what may have been lost, then go on."""
    ledger = discreet.Ledger(f"sqlite:///{folder}/budget.db")
    account = ledger.account("visits")
    with stream(f"{folder}/visits.db", account=account, **amount) as visits:
        if visits.last is not None:
            told(channel, visits.last.first, visits.last.values)
        while True:
            first = visits.steps + 1
            answers = visits.feed([step % 7 for step in range(first, first + first % 3 + 1)])
            told(channel, answers.first, answers.values)


def tell_before_it_is_on_disk(channel):
    """A deliberately wrong version."""
    put = KeyValueFile.put

    def careless(self, name, value):
        if name == "last":
            with np.load(io.BytesIO(value)) as held:
                told(channel, int(held["first"]), held["values"].tolist())
            time.sleep(0.02)  # most kills fall between the telling and the writing, on any machine
        put(self, name, value)

    KeyValueFile.put = careless


def _paid(folder):
    return discreet.Ledger(f"sqlite:///{folder}/other.db").account("x", limit=discreet.zcdp(100))


def main(folder, kills, seed, amount, *, careless):
    delay = random.Random(seed)
    with stream(account=_paid(folder), **amount) as trial:
        trial.feed([1] * 30)  # all that is computed once is computed before the forks
    ledger = discreet.Ledger(f"sqlite:///{folder}/budget.db")
    ledger.account("visits", limit=discreet.zcdp(100))
    for _ in range(kills):
        out, channel = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(out)
            if careless:
                tell_before_it_is_on_disk(channel)
            work(folder, amount, channel)
        os.close(channel)
        with os.fdopen(out, "rb") as pipe:
            if delay.random() < 0.7:  # else it may be killed while it opens the stream
                for _ in range(delay.randint(1, 4)):
                    sys.stdout.write(pipe.readline().decode())
            time.sleep(delay.uniform(0, 0.03))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            sys.stdout.write(pipe.read().decode())


if __name__ == "__main__":
    main(
        sys.argv[1],
        int(sys.argv[2]),
        int(sys.argv[3]),
        json.loads(sys.argv[4]),
        careless="careless" in sys.argv,
    )

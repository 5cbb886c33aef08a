"""Processes that race for a budget or are killed; a script, so that it forks without threads.

python personal_budgets_process.py race URL PROCESSES            prints how many grants each
process got
python personal_budgets_process.py outlive URL                   prints how much is stored after
the parent has left
python personal_budgets_process.py kill URL KILLS SEED           prints what the dead had been told
and what is stored
"""

import json
import os
import random
import select
import signal
import sys
import time

import discreet

STEP = discreet.pure_dp(0.01)


def race(url, processes):
    """All start at once and charge until refused."""
    account = discreet.Ledger(url).account("shared")  # inherited: the fork must be noticed
    account.charge(STEP, label="before the fork")
    gate_out, gate_in = os.pipe()
    results_out, results_in = os.pipe()
    children = []
    for number in range(processes):
        child = os.fork()
        if child == 0:
            os.read(gate_out, 1)
            grants = 0
            try:
                while True:
                    account.charge(STEP, label=f"racer {number}")
                    grants += 1
            except discreet.BudgetExceeded:
                os.write(results_in, f"{grants}\n".encode())
            except BaseException as error:  # noqa: BLE001
                os.write(results_in, f"{type(error).__name__}: {error}\n".encode())
            os._exit(0)
        children.append(child)
    time.sleep(0.2)
    os.write(gate_in, b"x" * processes)
    for child in children:
        os.waitpid(child, 0)
    os.close(results_in)
    with os.fdopen(results_out) as lines:
        print(json.dumps([line.strip() for line in lines]))


def outlive(url):
    """The child goes on after the parent, from whom it has the ledger, closed its own half."""
    ledger = discreet.Ledger(url)
    account = ledger.account("shared")
    account.charge(STEP, label="parent")
    to_child, to_parent = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        account.charge(STEP, label="child, parent open")
        os.write(to_parent[1], b"x")
        os.read(to_child[0], 1)
        for _ in range(8):
            account.charge(STEP, label="child, parent closed")
        os._exit(0)
    os.read(to_parent[0], 1)
    ledger.close()
    os.write(to_child[1], b"x")
    os.waitpid(child, 0)
    print(json.dumps(round(account.spent.epsilon(0) * 100)))


def charge_until_killed(url, acknowledge):
    """Half charges, half reservations that are settled; told after each grant."""
    account = discreet.Ledger(url).account("shared")
    os.write(acknowledge, b"r")
    while True:
        account.charge(STEP, label="one")
        os.write(acknowledge, b".")
        reservation = account.reserve(STEP, label="two")
        os.write(acknowledge, b".")
        reservation.settle("released")


def kill(url, kills, seed):
    """Two at a time, each killed at its own random instant after it is ready."""
    ledger = discreet.Ledger(url)
    account = ledger.account("shared")
    delay = random.Random(seed)
    told = 0
    for _ in range(kills // 2):
        pair = []
        for _ in range(2):
            out, acknowledge = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(out)
                charge_until_killed(url, acknowledge)
            os.close(acknowledge)
            pair.append((child, out))
        for child, out in pair:
            select.select([out], [], [], 60)
            time.sleep(delay.uniform(0, 0.03))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            with os.fdopen(out, "rb") as pipe:
                told += pipe.read().count(b".")
        stored = round(account.spent.epsilon(0) * 100)
        assert stored >= told, "an acknowledged grant is not stored"
    found = ledger.verify()
    print(json.dumps({"told": told, "stored": stored, "problems": found.problems}))


if __name__ == "__main__":
    if sys.argv[1] == "race":
        race(sys.argv[2], int(sys.argv[3]))
    elif sys.argv[1] == "outlive":
        outlive(sys.argv[2])
    else:
        kill(sys.argv[2], int(sys.argv[3]), int(sys.argv[4]))

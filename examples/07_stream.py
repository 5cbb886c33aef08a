"""Publish counts as they happen, be killed, and go on."""

# %%
import random
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import discreet

folder = TemporaryDirectory()
home = Path(folder.name)
generator = random.Random(7)  # noqa: S311 - only for simulated data
hours = [generator.randint(0, 40) for _ in range(72)]

# %% How good will it be? Nothing is read or spent for this.
terms = {"epsilon": 1, "window": 24}
print(discreet.plan_stream(**terms).forecast(72), "\n")

# %% Three days, hour by hour. The first process does not live to see the end.
ledger = discreet.Ledger(f"sqlite:///{home}/budget.db")
account = ledger.account("visits", limit=discreet.pure_dp(1))
WORK = f"""
import os, signal, discreet
account = discreet.Ledger("sqlite:///{home.as_posix()}/budget.db").account("visits")
with discreet.stream("{home.as_posix()}/visits.db", account=account, **{terms}) as visits:
    for hour in {hours[:30]}:
        visits.feed([hour])
    os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
"""
subprocess.run([sys.executable, "-c", WORK], check=False)  # noqa: S603 - our own words

# %% The next one goes on where it stopped.
with discreet.stream(home / "visits.db", account=account, **terms) as visits:
    print(f"{visits.steps} hours were counted before; charged again: {not visits.receipt.replayed}")
    answers = visits.feed(hours[visits.steps :])

low, high = answers.interval()
for at in (0, 20, len(answers) - 1):
    step = int(answers.steps[at])
    true = sum(hours[max(0, step - 24) : step])
    print(
        f"24 hours to hour {step}: {answers.values[at]:.1f} "
        f"(95% between {low[at]:.1f} and {high[at]:.1f}; the secret truth is {true})"
    )

# %%
print(f"left: {float(account.remaining):g}")
ledger.close()
folder.cleanup()

"""A notebook against a server: the verbs of a local table, the data somewhere else.

Here the server is that of `discreet serve --demo`, started beside this script and stopped at the
end. In real life it runs where the data are, and its owner has given you an address and a token.
"""

# %%
import atexit
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import discreet
from discreet import col, query
from discreet.server.demo import prepare

with socket.socket() as free:
    free.bind(("127.0.0.1", 0))
    address = f"127.0.0.1:{free.getsockname()[1]}"
folder = tempfile.TemporaryDirectory()
demo = prepare(Path(folder.name), address=address, warm=False)
command = [sys.executable, "-c", "from discreet.cli.main import main; main()"]
server = subprocess.Popen(  # noqa: S603 - our own command
    [*command, "serve", str(demo.config)], stderr=subprocess.DEVNULL
)
atexit.register(server.kill)  # should something go wrong before the end

# %% An address and a token instead of a file; the client waits until the server is there.
health = discreet.connect(demo.url, demo.tokens["analyst"])
print(health)
print(f"limit: {health.limit}; left: {health.remaining}")

# %% What is public is computed here, and costs nothing.
old = col("age") >= 50
by_plan = query.mean("visits", by="plan")
print(health.forecast(by_plan, epsilon=0.3, expected_rows=4_000))
print("for an error of 0.5:", health.budget_for(by_plan, within=0.5, expected_rows=4_000))

# %% What reads the data is asked of the server, charged to your account there.
print(health.count_units(where=old, epsilon=0.1))
people, visits = health.release(
    [query.count_units(name="People"), query.mean("visits", by="plan")],
    epsilon=0.5,
    weights=[1, 4],
)
print(people)
print(visits)
print("charged to", visits.receipt.account, "entry", visits.receipt.sequence)
print(f"left: {health.remaining:.3g}")

# %% One request id is one charge and one answer, however often it is sent.
first, again = (
    health.release([query.count()], epsilon=0.05, request_id="my first query") for _ in range(2)
)
assert first[0].to_json() == again[0].to_json()

# %% More than is left is refused, by the same error as at home.
try:
    health.count(epsilon=100)
except discreet.BudgetExceeded as refusal:
    print("refused:", refusal)

# %%
server.send_signal(signal.SIGTERM)
server.wait()
folder.cleanup()

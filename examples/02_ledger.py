"""Two analysts share a budget: a charge beyond it is refused, and everything can be checked."""

# %%
from pathlib import Path
from tempfile import TemporaryDirectory

import discreet

folder = TemporaryDirectory()
ledger = discreet.Ledger(f"sqlite:///{Path(folder.name)}/budget.db")

# %% The institute may spend (2, 1e-6) on these data; no analyst more than epsilon 1.5.
institute = ledger.account("institute", limit=discreet.approx_dp(2, 1e-6))
anna = ledger.account("anna", limit=discreet.pure_dp(1.5), parent=institute)
ben = ledger.account("ben", limit=discreet.pure_dp(1.5), parent=institute)

# %% Budget is reserved before the data are read.
count = discreet.laplace(sensitivity=1, epsilon=0.5)
for analyst, question in ((anna, "children"), (anna, "adults"), (ben, "pensioners")):
    with analyst.reserve(count.guarantee, label=question):
        print(f"{analyst.name:>5}: about {count.release(1000)} {question}")

# %% What is left, and what is refused.
print(f"\nleft: {float(institute.remaining):.3f} for the institute, {float(ben.remaining)} for ben")
try:
    ben.charge(discreet.pure_dp(1), label="everything else")
except discreet.BudgetExceeded as refusal:
    print(refusal)

# %% The chain can be checked by anyone who kept its head.
found = ledger.verify(heads={"institute": institute.head})
print(f"\n{found.entries} entries of {found.accounts} accounts, intact: {found.ok}")
print(ledger.export(kind="csv").splitlines()[0])
assert found

ledger.close()
folder.cleanup()

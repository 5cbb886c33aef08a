"""`discreet serve --demo`: a working service with real data in one command."""

from __future__ import annotations

import secrets
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from discreet.accounting.guarantee import zcdp
from discreet.server.config import read
from discreet.server.service import Service
from discreet.server.users import Role, User
from discreet.spec.demo_folder import prepare_folder

# One for each role, called by it.
_PEOPLE: tuple[Role, ...] = ("owner", "analyst", "auditor")
_GIVEN = ("health.parquet", "README.md")
_WRITTEN = ("serve.toml", "service.db", "budget.db")
_CROWD = "made-up consents"
_MEMBERS = 400
_WAIT_S = 30.0
_ASKED = (
    {"kind": "units", "name": "People", "epsilon": 0.05},
    {"kind": "count", "name": "Person-years by plan", "by": ["plan"], "epsilon": 0.1},
    {
        "kind": "mean",
        "name": "Mean visits to a physician by year",
        "of": "visits",
        "by": ["year"],
        "expected_rows": 4000,
        "epsilon": 0.2,
    },
)
_CONFIG = """# A service over one table. See docs: how-to/serve.
[server]
address = "{address}"
workers = {workers}
store = "sqlite:///service.db"    # people, tokens (as hashes), releases
ledger = "sqlite:///budget.db"    # what was spent

[[table]]
name = "health"
title = "Health care in six places"
description = "20,190 person-years of 5,912 people in a study of health insurance."
source = "health.parquet"
privacy_unit = "person"                   # who is protected: a person with all years together
max_rows_per_unit = 5
expected_rows = 20_000                     # public, for forecasts
account = "health study"
limit = {{ epsilon = 6, delta = 1e-6 }}
analyst_limit = {{ epsilon = 2, delta = 1e-6 }}

[table.columns]                   # declared, never read from the data
year = {{ kind = "category", categories = [1, 2, 3, 4, 5], include_other = false }}
site = {{ kind = "category", categories = [1, 2, 3, 4, 5, 6], include_other = false }}
sex = {{ kind = "category", categories = ["female", "male"], include_other = false }}
age = {{ kind = "integer", lower = 0, upper = 64 }}
income = {{ kind = "integer", lower = 0, upper = 25_000 }}
visits = {{ kind = "integer", lower = 0, upper = 20 }}
admissions = {{ kind = "integer", lower = 0, upper = 3 }}
spending = {{ kind = "real", lower = 0, upper = 1_000, granularity = 0.25 }}

[table.columns.plan]
kind = "category"
categories = ["free", "25 percent", "50 percent", "95 percent", "deductible"]
include_other = false

[table.columns.health]
kind = "category"
categories = ["excellent", "good", "fair", "poor"]
include_other = false
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Demo:
    """A service that is ready to run, and the tokens of its people."""

    config: Path
    url: str
    tokens: Mapping[Role, str] = field(repr=False)
    """By role."""


def prepare(
    folder: Path, *, address: str = "127.0.0.1:8337", workers: int = 1, warm: bool = True
) -> Demo:
    """Data, configuration, three people and, if ``warm``, a few releases in a folder.

    What an earlier demo left there is taken away: a demo begins with a full budget.
    """
    prepare_folder(folder, given=_GIVEN, written=_WRITTEN)
    path = folder / "serve.toml"
    path.write_text(_CONFIG.format(address=address, workers=workers), encoding="utf-8")
    config = read(path)
    service = Service(config)
    try:
        tokens = {role: service.users.add(role, role)[0] for role in _PEOPLE}
        _crowd(service)
        if warm:
            _release(service)
    finally:
        service.close()
    return Demo(config=path, url=config.url, tokens=tokens)


def _release(service: Service) -> None:
    analyst = User(name="analyst", role="analyst")
    service.start()
    jobs = [
        service.submit(analyst, "health", [asked], request_id=secrets.token_hex(8))
        for asked in _ASKED
    ]
    ends = time.monotonic() + _WAIT_S
    while time.monotonic() < ends:
        if all(service.job(analyst, job.id).state not in ("queued", "running") for job in jobs):
            return
        time.sleep(0.05)


def _crowd(service: Service) -> None:
    """Consents of people who do not exist, to show what personal budgets look like."""
    random = np.random.default_rng(2026)
    menu = {"strict": zcdp(0.01), "usual": zcdp(0.1), "generous": zcdp(0.5)}
    crowd = service.shared_ledger.personal_budgets(
        _CROWD,
        limits=menu,
        members=[f"person {i}" for i in range(1, _MEMBERS + 1)],
        privacy_levels=random.choice(list(menu), size=_MEMBERS, p=[0.2, 0.5, 0.3]),
    )
    for number in range(1, 9):
        cost = random.gamma(2.0, 0.008, size=_MEMBERS)
        crowd.charge_eligible(cost, label=f"made-up query {number}")

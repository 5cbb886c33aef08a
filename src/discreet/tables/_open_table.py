"""A table as the functions of this package take it: its source, its declaration, its account."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from discreet.ledger.account import Account
from discreet.query._release_plan import TableSpec


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OpenTable:
    """A private table without its queries; see `Table`."""

    _source: Any = field(repr=False)
    spec: TableSpec = field(repr=False)
    account: Account | None = field(repr=False)

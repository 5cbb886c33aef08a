"""The release file: TOML that names a table, its columns, an account and statistics."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from discreet.accounting.guarantee import Guarantee
from discreet.apps import declared
from discreet.apps.asked import Asked, asked


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseFile(Asked):
    """A checked release file. Nothing has been opened yet."""

    title: str
    source: str
    delimiter: str
    engine: Literal["spark"] | None
    spark: str | None
    ledger: str
    account: str
    limit: Guarantee | None


def read(path: Path) -> ReleaseFile:
    """Read and check a release file; every error names its section."""
    content = declared.read(path, ("title", "table", "columns", "account", "statistic"))
    table = declared.section(content, "table", declared.TABLE)
    account = declared.section(content, "account", ("ledger", "name", "limit"))
    setting = declared.setting(table, content.get("columns"))
    given = account.get("limit")
    questions = asked(content.get("statistic"), setting=setting, limit=given, folder=path.parent)
    return ReleaseFile(
        title=str(content.get("title", path.stem)),
        source=declared.source(declared.text(table, "table", "source"), path.parent),
        delimiter=table.get("delimiter", ","),
        engine=table.get("engine"),
        spark=table.get("spark"),
        setting=setting,
        ledger=declared.ledger(declared.text(account, "account", "ledger"), path.parent),
        account=declared.text(account, "account", "name"),
        limit=None if given is None else declared.limit(given, setting.relation),
        statistics=questions.statistics,
        ranges=questions.ranges,
    )

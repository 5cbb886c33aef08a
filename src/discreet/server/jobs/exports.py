"""Finished releases as objects, as records and as files."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

from discreet.core.errors import InvalidArgument
from discreet.report import release_report as page
from discreet.report.range_section import shown
from discreet.server import plans as planning
from discreet.server.config import TableConfig
from discreet.server.jobs.release_jobs import JobRow
from discreet.server.schemas import DownloadInfo, JobInfo, ResultInfo
from discreet.tables.range_release import AnyRangeRelease, ChargedGridRelease, ChargedRangeRelease
from discreet.tables.release import Release

Kind: TypeAlias = Literal["json", "csv", "html"]
_TYPES = {"json": "application/json", "csv": "text/csv", "html": "text/html"}


def job(row: JobRow, *, stage: str | None) -> JobInfo:
    """A job for its owner."""
    words = {"queued": "waiting for its turn", "running": stage or "running"}
    return JobInfo(
        id=row.id,
        request_id=row.request,
        table=row.subject,
        person=row.person,
        title=row.title,
        state=row.state,
        progress=words.get(row.state, row.state),
        asked=_time(row.made),
        finished=None if row.finished is None else _time(row.finished),
        account=row.account,
        worth=row.worth,
        error=row.error,
        problem=row.problem,
        statistics=tuple(json.loads(row.asked)),
        result=None if row.result is None else _result(row.result),
    )


def _result(text: str) -> ResultInfo:
    content = json.loads(text)
    return ResultInfo(releases=tuple(content["releases"]), ranges=tuple(content["ranges"]))


def objects(row: JobRow) -> tuple[list[Release], list[AnyRangeRelease]]:
    """The released numbers, read and checked."""
    content = json.loads(row.result or "{}")
    releases = [Release.from_json(json.dumps(one)) for one in content["releases"]]
    return releases, [_ranges(one) for one in content["ranges"]]


def download(row: JobRow, table: TableConfig, kind: Kind) -> DownloadInfo:
    """A file; what a spreadsheet would take for a formula is disarmed in the CSV."""
    if kind not in _TYPES:
        raise InvalidArgument(f"format must be one of {', '.join(_TYPES)}.")
    found = planning.price_request(table, json.loads(row.asked))
    releases, ranges = objects(row)
    report = page.ReleaseReport(
        title=row.title,
        releases=tuple(releases),
        guarantee=[*releases, *ranges][0].receipt.guarantee,  # as it was charged
        account=f"Charged to account {row.account!r}.",
        ranges=tuple(
            shown(one, plan, file=f"{row.id}.json")
            for one, plan in zip(ranges, found.plan.ranges, strict=True)
        ),
    )
    if kind == "csv":
        text = page.as_csv(report.releases, report.sections)
    else:
        text = page.as_html(report) if kind == "html" else row.result or ""
    name = f"{row.subject}-{row.id[:8]}.{kind}"
    return DownloadInfo(name=name, media_type=_TYPES[kind], text=text)


def _ranges(content: dict[str, Any]) -> AnyRangeRelease:
    text = json.dumps(content)
    if "discreet_grid" in content:
        return ChargedGridRelease.from_json(text)
    return ChargedRangeRelease.from_json(text)


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, tz=UTC).isoformat(timespec="milliseconds")

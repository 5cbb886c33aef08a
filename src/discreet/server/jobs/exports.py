"""Finished releases as objects, as records and as files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

from discreet.core.errors import InvalidArgument
from discreet.report import html_page as document
from discreet.report import release_report as page
from discreet.report.range_section import shown
from discreet.server import plans as planning
from discreet.server.config import TableConfig
from discreet.server.jobs.release_jobs import JobRow
from discreet.server.schemas import DownloadInfo, JobInfo, ResultInfo
from discreet.tables.range_release import AnyRangeRelease, ChargedGridRelease, ChargedRangeRelease
from discreet.tables.release import Release

Kind: TypeAlias = Literal["json", "csv", "html", "card.json", "card.md", "card.html"]
TYPES: Mapping[str, str] = {
    "json": "application/json",
    "csv": "text/csv",
    "html": "text/html",
    "card.json": "application/json",
    "card.md": "text/markdown",
    "card.html": "text/html",
}
"""Files of a finished release, by their ending."""


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
    if kind not in TYPES:
        raise InvalidArgument(f"format must be one of {', '.join(TYPES)}.")
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
    name = f"{row.subject}-{row.id[:8]}.{kind}"
    return DownloadInfo(name=name, media_type=TYPES[kind], text=_text(row, report, kind))


def _text(row: JobRow, report: page.ReleaseReport, kind: Kind) -> str:
    match kind:
        case "json":
            return row.result or ""
        case "csv":
            return page.as_csv(report.releases, report.sections)
        case "html":
            return page.as_html(report)
        case "card.json":
            return page.report_card(report).to_json()
        case "card.md":
            return page.report_card(report).to_markdown()
        case "card.html":
            return document.page(report.title, page.report_card(report).to_html())


def _ranges(content: dict[str, Any]) -> AnyRangeRelease:
    text = json.dumps(content)
    if "discreet_grid" in content:
        return ChargedGridRelease.from_json(text)
    return ChargedRangeRelease.from_json(text)


def _time(milliseconds: int) -> str:
    return datetime.fromtimestamp(milliseconds / 1000, tz=UTC).isoformat(timespec="milliseconds")

"""Releases: what was asked, how far it is, and its answer."""

from __future__ import annotations

import json
from typing import Any, cast

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, Response

from discreet.accounting.guarantee import describe_epsilon
from discreet.report.html_page import plainly
from discreet.server.jobs import exports as downloads
from discreet.server.middleware.auth import Serving, Who
from discreet.server.middleware.errors import NotFound
from discreet.server.pages import charts
from discreet.server.pages.render import page
from discreet.tables.range_release import AnyRangeRelease, ChargedRangeRelease
from discreet.tables.release import Release

router = APIRouter()


@router.get("/releases")
def releases(request: Request, who: Who, service: Serving) -> HTMLResponse:
    """All releases that the caller may see."""
    jobs = service.releases(who)
    return page(request, "releases.html", jobs=jobs, everybody=who.role == "owner")


@router.get("/releases/{number}")
def release(request: Request, who: Who, service: Serving, number: str, seen: str = "") -> Response:
    """One release: its progress, or its answer; nothing, if that has been ``seen``."""
    job = service.job(who, number)
    if seen == f"{job.state}:{job.progress}" and "hx-request" in request.headers:
        return Response(status_code=204)  # what is not replaced is not read out again
    found: dict[str, Any] = {"results": [], "ranges": []}
    if job.state == "done":
        numbers, ranges = service.result(who, number)
        first = [*numbers, *ranges][0]
        found = {
            "results": [_result(one) for one in numbers],
            "ranges": [_ranges(one) for one in ranges],
            "promise": plainly(first.receipt.guarantee),
            "protects": first.privacy_statement,
            "receipt": first.receipt,
        }
    asked = json.dumps([dict(one) for one in job.statistics])
    return page(request, "release.html", job=job, statistics=asked, **found)


@router.get("/releases/{number}/{kind}")
def file(who: Who, service: Serving, number: str, kind: str) -> Response:
    """A file to be saved."""
    if kind not in downloads.TYPES:
        raise NotFound("There is no such file.")
    made = service.release_file(who, number, cast("downloads.Kind", kind))
    headers = {"Content-Disposition": f'attachment; filename="{made.name}"'}
    return Response(made.text, media_type=made.media_type, headers=headers)


def _result(release: Release) -> dict[str, Any]:
    rows = release.rows()
    return {
        "release": release,
        "rows": rows,
        "names": release.key_columns,
        "only": not release.key_columns,
        "picture": charts.result(release),
        "worth": describe_epsilon(release.guarantee),
    }


def _ranges(release: AnyRangeRelease) -> dict[str, Any]:
    one = isinstance(release, ChargedRangeRelease)
    whole = (release.total, *release.interval()) if one else None
    return {"release": release, "picture": charts.ranges(release), "whole": whole}

"""Ledger, audits and personal budgets: what is on record."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from discreet.report.drawing import responsive as fluid
from discreet.server.middleware.auth import Serving, Who
from discreet.server.middleware.errors import Forbidden
from discreet.server.pages import charts
from discreet.server.pages.render import page

router = APIRouter()


@router.get("/ledger")
def ledger(request: Request, who: Who, service: Serving) -> HTMLResponse:
    """Budgets over time, who spent what, how long it will last."""
    found = service.ledger(who)
    return page(
        request,
        "ledger.html",
        ledger=found,
        over_time=charts.over_time(found.accounts),
        spenders=charts.spenders(found.accounts),
        meters=[charts.budget_meter(one.budget) for one in found.accounts],
        may_verify=who.role != "analyst",
    )


@router.get("/ledger/chain")
def chain(request: Request, who: Who, service: Serving) -> HTMLResponse:
    """Whether every hash and every sum holds, computed anew: a part of the page."""
    found = service.ledger(who, verify=True).verification
    if found is None:
        raise Forbidden("This is for owner and auditor.")
    return page(request, "chain.html", chain=found)


@router.get("/audit")
def audit(request: Request, who: Who, service: Serving) -> HTMLResponse:
    """What is claimed, exact and attacked."""
    found = service.audit(who)
    done = len(found.rows) / max(found.total, 1)
    meter = fluid.meter([("this", done)], words=f"{len(found.rows)} of {found.total} are done")
    return page(request, "audit.html", audit=found, meter=meter, may_run=who.role != "analyst")


@router.post("/audit")
def run_audit(who: Who, service: Serving) -> Response:
    """Audit again, in the background."""
    service.start_audit(who)
    return RedirectResponse("/audit", status_code=303)


@router.get("/personal")
def personal(request: Request, who: Who, service: Serving) -> HTMLResponse:
    """How budgets are spent, by level of consent."""
    crowds = [
        {
            "name": crowd.name,
            "members": crowd.members,
            "entries": crowd.entries,
            "pictures": [(level, charts.consent(level)) for level in crowd.levels],
        }
        for crowd in service.personal(who)
    ]
    return page(request, "personal.html", crowds=crowds)

"""Tables, plans, and the way from a plan to a release."""

from __future__ import annotations

import json
import uuid
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from discreet.core.errors import InvalidArgument, PrivacyError
from discreet.core.number_format import number, percent
from discreet.data.unit import content_words
from discreet.server.middleware.auth import Serving, Who
from discreet.server.pages import charts
from discreet.server.pages import query_form as builder
from discreet.server.pages.query_form import Fields
from discreet.server.pages.render import Form, navigation, page, rough
from discreet.server.schemas import ErrorPoint, PlanInfo, TableInfo
from discreet.server.service import Service
from discreet.server.users import User
from discreet.spec.query_size import rows_per_group

router = APIRouter()


@router.get("/")
def home(who: Who) -> Response:
    """The first page of a role."""
    return RedirectResponse(navigation(who.role)[0][0], status_code=303)


@router.get("/tables")
def tables(request: Request, who: Who, service: Serving) -> HTMLResponse:
    """What can be asked."""
    shown = [
        (one, "" if one.budget is None else charts.budget_meter(one.budget))
        for one in service.tables(who)
    ]
    return page(request, "tables.html", tables=shown)


@router.get("/tables/{name}")
def table(request: Request, who: Who, service: Serving, name: str) -> HTMLResponse:
    """What is declared about a table."""
    shown = service.table(who, name)
    return page(
        request,
        "table.html",
        table=shown,
        unit="" if shown.unit is None else content_words(shown.unit),
        meter="" if shown.budget is None else charts.budget_meter(shown.budget),
        table_meter=charts.budget_meter(shown.table_budget),
    )


@router.get("/tables/{name}/plan")
def new_plan(request: Request, who: Who, service: Serving, name: str) -> HTMLResponse:
    """A form with a first question."""
    return _planned(request, who, service, service.table(who, name), builder.FIRST)


@router.post("/tables/{name}/plan")
def plan(request: Request, who: Who, service: Serving, name: str, form: Form) -> HTMLResponse:
    """The plan of what a form asks; nothing is read or spent."""
    shown = service.table(who, name)
    given = _back(form) if "back" in form else _edited(form, shown)
    return _planned(request, who, service, shown, _aimed(given, who, service, shown))


@router.post("/tables/{name}/confirm")
def confirm(request: Request, who: Who, service: Serving, name: str, form: Form) -> HTMLResponse:
    """What would be spent for what, once more, before it is."""
    shown = service.table(who, name)
    try:
        statistics = [*builder.kept_queries(form), _question(form, shown)]
        planned = service.plan(who, name, statistics)
    except PrivacyError:
        return _planned(request, who, service, shown, form)
    return page(
        request,
        "confirm.html",
        table=shown,
        planned=planned,
        price=charts.cost_words(planned),
        unit=_unit(planned),
        meter=_meter(planned),
        statistics=json.dumps(statistics),
        request_id=str(uuid.uuid4()),
    )


@router.post("/tables/{name}/release")
def release(who: Who, service: Serving, name: str, form: Form) -> Response:
    """Ask for the release; the same form twice is one release."""
    try:
        statistics = json.loads(builder.first(form, "statistics"))
    except (ValueError, RecursionError):
        raise InvalidArgument("statistics must be a list of questions.") from None
    job = service.submit(who, name, statistics, request_id=builder.first(form, "request_id"))
    return RedirectResponse(f"/releases/{job.id}", status_code=303)


def _question(form: Fields, table: TableInfo) -> dict[str, Any]:
    """What a form asks; for a target, with a guess of the rows if there is none: alike groups."""
    asked = builder.query_of_form(form, table.columns)
    needed = "expected_rows" in builder.kind_of(form).fields and "expected_rows" not in asked
    if "within" not in asked or not needed or table.rows is None:
        return asked
    groups = builder.group_counts(asked, table.columns)
    return {**asked, "expected_rows": rows_per_group(table.rows, groups)}


def _edited(form: Fields, table: TableInfo) -> Fields:
    """The form with a question added to those that are kept, or one of these left out."""
    drop = builder.first(form, "drop")
    try:
        kept = builder.kept_queries(form)
        if drop in map(str, range(len(kept))):
            del kept[int(drop)]
            return {**form, "kept": [json.dumps(kept)]}
        if "add" in form:
            kept.append(_question(form, table))
            return {**builder.FIRST, "kept": [json.dumps(kept)]}
    except PrivacyError:
        pass  # told beside the form
    return form


def _aimed(form: Fields, who: User, service: Service, table: TableInfo) -> Fields:
    """Whoever turns from a price to an error begins with the error of the price."""
    if builder.first(form, "aim") != "within" or builder.first(form, "within"):
        return form
    priced = {**_chosen(form, table), "aim": ["amount"]}
    try:
        planned = service.plan(who, table.name, [_question(priced, table)])
    except PrivacyError:
        return form
    widths = [*(one.width for one in planned.statistics), *(one.width for one in planned.ranges)]
    return {**form, "within": [f"{widths[0]:.2g}"]} if widths[0] else form


def _back(form: Fields) -> Fields:
    """The form as it was before it was to be confirmed."""
    asked = builder.kept_queries({"kept": form.get("statistics", [])})
    return {
        **(builder.fields_of(asked[-1]) if asked else builder.FIRST),
        "kept": [json.dumps(asked[:-1])],
    }


def _planned(
    request: Request, who: User, service: Service, table: TableInfo, form: Fields
) -> HTMLResponse:
    kind = builder.kind_of(form)
    measure = builder.first(form, "measure", "epsilon")
    _, *ends = builder.MEASURES.get(measure, builder.MEASURES["epsilon"])
    kept: list[Any] = []
    found: dict[str, Any]
    try:
        kept = builder.kept_queries(form)
        asked = _question(_chosen(form, table), table)
        planned = service.plan(who, table.name, [*kept, asked], compare=True)
        found = _shown(planned, ranges=asked["kind"] == "ranges")
        found["heading"] = builder.query_words(asked)
    except PrivacyError as error:
        found = {"problem": str(error)}
    columns = [(c.name, c.name) for c in builder.columns_for(kind, table.columns)]
    return page(
        request,
        "plan.html",
        table=table,
        given=form,
        kind=kind,
        kinds=builder.KINDS,
        kept=[builder.query_words(one) for one in kept],
        kept_text=json.dumps(kept) if kept else "",
        measure=measure,
        ends=ends,
        aim=builder.first(form, "aim", "amount"),
        columns=columns,
        groups=[c.name for c in table.columns if c.kind in ("category", "boolean")],
        cuttable=[(c.name, c.name) for c in table.columns if c.kind in ("integer", "real", "date")],
        conditions=builder.CONDITIONS,
        listed={c.name: levels for c in table.columns if (levels := builder.listed(c))},
        tests=builder.TESTS,
        workloads=list(builder.WORKLOADS.items()),
        methods=list(builder.METHODS.items()),
        limits=builder.LIMITS,
        declared=builder.declared_limits(table),
        filtered=any(builder.first(form, f"where_column_{i}") for i in (1, 2, 3)),
        more=any(builder.first(form, name) for name in ("name", "cut", "delta", *builder.LIMITS)),
        may_release=True,
        **found,
    )


def _chosen(form: Fields, table: TableInfo) -> Fields:
    """The form with the first column that fits, where the list of columns has just changed."""
    columns = [c.name for c in builder.columns_for(builder.kind_of(form), table.columns)]
    made = dict(form)
    for place, field in enumerate(("of", "also")):
        if columns and builder.first(form, field) not in columns:
            made[field] = [columns[min(place, len(columns) - 1)]]
    return made


def _shown(planned: PlanInfo, *, ranges: bool) -> dict[str, Any]:
    if ranges:
        one = planned.ranges[-1]
        pictures = [charts.structures(one)]
    else:
        last = planned.statistics[-1]
        measure = "rho" if "rho" in last.amount else "epsilon"
        unit = "error, ±" if last.step is None else "error in rank, share of rows"
        now = ErrorPoint(amount=last.amount.get(measure, 0.0), std=last.std, width=last.width)
        curve = charts.curve(last.curve, now=now, measure=measure, unit=unit)
        pictures = [curve, charts.alternatives(last)]
    return {
        "problem": "",
        "planned": planned,
        "showing_ranges": ranges,
        "price": charts.cost_words(planned),
        "unit": _unit(planned),
        "width": _width(planned, ranges=ranges),
        "meter": _meter(planned),
        "pictures": pictures,
    }


def _unit(planned: PlanInfo) -> str:
    """What the price is counted in."""
    if planned.budget is None or planned.budget.delta is None:
        return "epsilon" if planned.budget is None else planned.budget.currency
    return f"epsilon, at delta {number(planned.budget.delta)}"


def _width(planned: PlanInfo, *, ranges: bool) -> str:
    """The error of what the form asks, in a few letters."""
    if ranges:
        width = planned.ranges[-1].width
        return "" if width is None else f"±{rough(width)}"
    last = planned.statistics[-1]
    if last.width is None:
        return ""
    return f"±{rough(last.width)}" if last.step is None else f"±{percent(last.width)} in rank"


def _meter(planned: PlanInfo) -> str:
    if planned.budget is None:
        return ""
    return charts.budget_meter(planned.budget, now=planned.cost)

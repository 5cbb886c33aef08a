"""What a series leaks under a public model; no data are read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse

from discreet.core.errors import InvalidArgument, PrivacyError
from discreet.server.middleware.auth import Serving, Who
from discreet.server.pages import charts
from discreet.server.pages.query_form import Fields, first, number, whole_number
from discreet.server.pages.render import Form, page

router = APIRouter()
_MODEL = ("habits", "variance", "correlation")
_KNOWN = {
    "time": "everybody else’s values at that time",
    "none": "nobody’s values",
    "all": "every value but the one",
}


@router.get("/leakage")
def leakage_form(request: Request, who: Who, service: Serving, begin: str = "") -> HTMLResponse:
    """A form, filled with a model to begin with."""
    models = service.models(who)
    chosen = begin if begin in models else next(iter(models))
    return _page(request, models, chosen=chosen, given=_fields(models[chosen]))


@router.post("/leakage")
def leakage(request: Request, who: Who, service: Serving, form: Form) -> HTMLResponse:
    """The leakage of what a form describes."""
    models = service.models(who)
    given: Fields = form
    try:
        given = _with_file(form)
        found = service.leakage(who, _model(given))
    except PrivacyError as error:
        return _page(request, models, chosen="", given=given, problem=str(error))
    return _page(request, models, chosen="", given=given, found=found, picture=charts.leaks(found))


def _page(request: Request, models: Mapping[str, Any], **context: Any) -> HTMLResponse:
    empty = {"problem": "", "found": None, "picture": ""}
    return page(request, "leakage.html", models=list(models), known=_KNOWN, **{**empty, **context})


def _fields(model: Mapping[str, Any]) -> dict[str, list[str]]:
    return {
        name: [", ".join(map(str, value)) if isinstance(value, list) else str(value)]
        for name, value in model.items()
    }


def _with_file(form: Fields) -> Fields:
    """The form with the model of a file, if there is one."""
    text = first(form, "file")
    if not text:
        return form
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        content = None
    if isinstance(content, dict) and isinstance(content.get("model"), dict):
        content = content["model"]  # what `discreet leakage --json` writes
    if not isinstance(content, dict) or not set(_MODEL) <= set(content):
        raise InvalidArgument(f"The file must be JSON with {', '.join(_MODEL)}.")
    return {**form, **_fields({name: content[name] for name in _MODEL})}


def _model(form: Fields) -> dict[str, Any]:
    habits = [one for one in first(form, "habits").replace(";", ",").split(",") if one.strip()]
    found: dict[str, Any] = {
        "habits": [number(one, "habits") for one in habits],
        "people": whole_number(first(form, "people"), "people"),
        "times": whole_number(first(form, "times"), "times"),
        "known": first(form, "known", "time"),
    }
    for name in ("variance", "correlation", "lower", "upper", "promise", "delta", "target"):
        if text := first(form, name):
            found[name] = number(text, name)
    return found

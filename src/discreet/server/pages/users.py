"""Login and logout, and the users: the owner adds and revokes them, and opens their accounts."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request
from fastapi.responses import HTMLResponse, RedirectResponse, Response

from discreet.core.errors import PrivacyError
from discreet.server.middleware.auth import COOKIE, Serving, Who
from discreet.server.middleware.errors import Forbidden
from discreet.server.pages.query_form import first, number, whole_number
from discreet.server.pages.render import Form, page
from discreet.server.service import Service
from discreet.server.users import SESSION_LIFE, User

# ── Login ────────────────────────────────────────────────────────────────────────────────────────
# A token is pasted once, and the browser gets a session.


router = APIRouter()


@router.get("/login")
def login_form(request: Request) -> Response:
    """The form for a token."""
    return page(request, "login.html", problem="")


@router.post("/login")
def login(request: Request, service: Serving, form: Form) -> Response:
    """A session for a good token."""
    made = service.users.sign_in(first(form, "token"))
    if made is None:
        words = "This token is not known here, has expired or was revoked."
        return page(request, "login.html", status=401, problem=words)
    secret, _ = made
    answer = RedirectResponse("/", status_code=303)
    answer.set_cookie(
        COOKIE,
        secret,
        max_age=int(SESSION_LIFE.total_seconds()),
        httponly=True,
        samesite="strict",
        secure=service.config.secure,
    )
    return answer


@router.post("/logout")
def logout(request: Request, service: Serving) -> Response:
    """End the session."""
    secret = request.cookies.get(COOKIE)
    if secret:
        service.users.sign_out(secret)
    answer = RedirectResponse("/login", status_code=303)
    answer.delete_cookie(COOKIE)
    return answer


# ── Users ────────────────────────────────────────────────────────────────────────────────────────


@router.get("/people")
def people(request: Request, who: Who, service: Serving) -> HTMLResponse:
    """Everybody, with role and budgets."""
    return _page(request, who, service)


@router.post("/people")
def add(request: Request, who: Who, service: Serving, form: Form) -> HTMLResponse:
    """A token, shown once."""
    name = first(form, "name")
    try:
        days = whole_number(first(form, "days", "90"), "days")
        token = service.add_person(who, name, first(form, "role"), days=days)
    except Forbidden:
        raise
    except PrivacyError as error:
        return _page(request, who, service, status=422, problem=str(error), given={"name": name})
    return _page(request, who, service, token=token)


@router.post("/people/revoke")
def revoke(request: Request, who: Who, service: Serving, form: Form) -> Response:
    """End all tokens of somebody."""
    try:
        service.revoke(who, first(form, "name"))
    except Forbidden:
        raise
    except PrivacyError as error:
        return _page(request, who, service, status=422, problem=str(error))
    return RedirectResponse("/people", status_code=303)


@router.post("/people/limit")
def limit(request: Request, who: Who, service: Serving, form: Form) -> Response:
    """A new account with a limit."""
    try:
        measure = "rho" if first(form, "measure") == "rho" else "epsilon"
        given = {measure: number(first(form, "amount"), "amount")}
        if text := first(form, "delta"):
            given["delta"] = number(text, "delta")
        service.set_limit(who, first(form, "name"), first(form, "table"), given)
    except Forbidden:
        raise
    except PrivacyError as error:
        return _page(request, who, service, status=422, problem=str(error))
    return RedirectResponse("/people", status_code=303)


def _page(
    request: Request, who: User, service: Service, *, status: int = 200, **context: Any
) -> HTMLResponse:
    empty: dict[str, Any] = {"token": None, "problem": "", "given": {}}
    return page(
        request,
        "people.html",
        status=status,
        people=service.people(who),
        tables=service.tables(who),
        **{**empty, **context},
    )

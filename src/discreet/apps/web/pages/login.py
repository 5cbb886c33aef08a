"""In and out: a token is pasted once, and the browser gets a session."""

from __future__ import annotations

from fastapi import APIRouter, Request
from fastapi.responses import RedirectResponse, Response

from discreet.apps.web.guard import COOKIE, Serving
from discreet.apps.web.pages.builder import first
from discreet.apps.web.pages.render import Form, page
from discreet.apps.web.people import SESSION_LIFE

router = APIRouter()


@router.get("/login")
def ask(request: Request) -> Response:
    """The door."""
    return page(request, "login.html", problem="")


@router.post("/login")
def enter(request: Request, service: Serving, form: Form) -> Response:
    """A session for a good token."""
    made = service.people_known.sign_in(first(form, "token"))
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
def leave(request: Request, service: Serving) -> Response:
    """End the session."""
    secret = request.cookies.get(COOKIE)
    if secret:
        service.people_known.sign_out(secret)
    answer = RedirectResponse("/login", status_code=303)
    answer.delete_cookie(COOKIE)
    return answer

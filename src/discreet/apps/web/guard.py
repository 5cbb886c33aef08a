"""The door of the server: who is it, and may this request come in."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from discreet.apps.web.people import Person
from discreet.apps.web.problems import SignInNeeded
from discreet.apps.web.service import Service

COOKIE = "discreet_session"


def service_of(request: Request) -> Service:
    """The service that the application serves."""
    found: Service = request.app.state.service
    return found


def caller(request: Request) -> Person:
    """Who asks; SignInNeeded if nobody is signed in."""
    found: Person | None = getattr(request.state, "who", None)
    if found is None:
        raise SignInNeeded("Sign in with a token.")
    return found


def csrf_of(request: Request) -> str:
    """What forms of this session must send along as ``csrf`` (or as the header X-CSRF-Token)."""
    return str(getattr(request.state, "csrf", ""))


Who = Annotated[Person, Depends(caller)]
Serving = Annotated[Service, Depends(service_of)]

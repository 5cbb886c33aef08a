"""The pages: they read a form, call the service and show what it says."""

from __future__ import annotations

from fastapi import APIRouter, FastAPI
from fastapi.staticfiles import StaticFiles

from discreet.server.pages import leakage, releases, tables
from discreet.server.pages import ledger as records
from discreet.server.pages import users as login
from discreet.server.pages import users as people
from discreet.server.pages.render import STATIC, problem_page

__all__ = ["install", "problem_page", "router"]

router = APIRouter()
for _part in (login, tables, releases, records, leakage, people):
    router.include_router(_part.router)


def install(app: FastAPI) -> None:
    """Pages, and the files that they need."""
    app.include_router(router, include_in_schema=False)
    app.mount("/static", StaticFiles(directory=str(STATIC)), name="static")

"""The application: the service behind its guard, with pages and the JSON interface."""

from __future__ import annotations

from importlib import import_module

from fastapi import APIRouter, FastAPI

from discreet.apps.web import api
from discreet.apps.web.config import Config
from discreet.apps.web.service import Service


def build(config: Config) -> FastAPI:
    """The application of one worker."""
    app = FastAPI(title="discreet", docs_url=None, redoc_url=None, openapi_url="/api/openapi.json")
    app.state.service = Service(config)
    app.include_router(api.router)
    _add_pages(app)
    return app


def _add_pages(app: FastAPI) -> None:
    """Pages are a package of their own: ``pages.router``, and ``pages.install(app)`` if it is."""
    try:
        pages = import_module("discreet.apps.web.pages")
    except ModuleNotFoundError:
        return
    router = getattr(pages, "router", None)
    if isinstance(router, APIRouter):
        app.include_router(router, include_in_schema=False)

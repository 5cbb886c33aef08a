"""The application: the service behind its guard, with pages and the JSON interface."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from anyio import to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException

from discreet.core.errors import PrivacyError
from discreet.server import api, pages
from discreet.server.config import Config
from discreet.server.middleware.auth import AuthMiddleware, Serving, Who
from discreet.server.middleware.errors import Forbidden, ProblemDetail, problem_of
from discreet.server.middleware.monitoring import ServerMetrics
from discreet.server.service import Service

_THREADS = 16
"""Plans and looks at the ledger at a time; the rest waits its turn."""
_HTTP = {404: "not-found", 405: "wrong-method"}


def build(config: Config) -> FastAPI:
    """The application of one worker."""
    service, metrics = Service(config), ServerMetrics()
    app = FastAPI(
        title="discreet",
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        lifespan=_lifespan,
    )
    app.state.service = service
    app.state.metrics = metrics
    app.add_middleware(AuthMiddleware, service=service, metrics=metrics)
    app.add_exception_handler(PrivacyError, _own)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _http)
    app.include_router(api.router)
    _add_health(app)
    pages.install(app)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    service: Service = app.state.service
    to_thread.current_default_thread_limiter().total_tokens = _THREADS
    service.start()
    yield
    await to_thread.run_sync(service.close)


def _add_health(app: FastAPI) -> None:
    @app.get("/health/live", include_in_schema=False)
    async def live() -> Response:
        return PlainTextResponse("alive\n")

    @app.get("/health/ready", include_in_schema=False)
    def ready(service: Serving) -> Response:
        good = service.ready()
        return PlainTextResponse("ready\n" if good else "not ready\n", 200 if good else 503)

    @app.get("/metrics", include_in_schema=False)
    def metrics(request: Request, who: Who, service: Serving) -> Response:
        if who.role == "analyst":
            raise Forbidden("This is for owner and auditor.")
        seen: ServerMetrics = request.app.state.metrics
        text = seen.text(waiting=service.queue.waiting())
        return PlainTextResponse(text, media_type="text/plain; version=0.0.4")


def _told(request: Request, problem: ProblemDetail) -> Response:
    wait = {"retry-after": "1"} if problem.status in (429, 503) else {}
    if request.url.path.startswith(("/api/", "/health/", "/metrics")):
        content = {"problem": problem.problem, "detail": problem.detail}
        return JSONResponse(content, problem.status, headers=wait)
    answer = pages.problem_page(request, problem)
    answer.headers.update(wait)
    return answer


def _own(request: Request, error: Exception) -> Response:
    if not isinstance(error, PrivacyError):  # pragma: no cover - handlers are found by class
        raise error
    return _told(request, problem_of(error))


def _invalid(request: Request, error: Exception) -> Response:
    """Where the request does not fit; what was sent is not repeated."""
    found = error.errors() if isinstance(error, RequestValidationError) else []
    places = ["/".join(str(part) for part in one["loc"][:4]) + ": " + one["msg"] for one in found]
    detail = "; ".join(places[:5])[:500] or "The request does not fit."
    return _told(request, ProblemDetail(status=422, problem="invalid-argument", detail=detail))


def _http(request: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    code = _HTTP.get(status, "failure")
    detail = {404: "There is nothing here.", 405: "This cannot be done here."}
    words = detail.get(status, "The request does not fit.")
    return _told(request, ProblemDetail(status=status, problem=code, detail=words))

"""Templates and what every page needs: who is there, the menu, the token of forms."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from hashlib import sha256
from importlib.resources import files
from typing import Annotated, Any

from fastapi import Depends, Request
from fastapi.responses import HTMLResponse
from jinja2 import Environment, PackageLoader, StrictUndefined

from discreet.core.number_format import number, percent, short
from discreet.server.middleware.csrf import csrf_of
from discreet.server.middleware.errors import ProblemDetail
from discreet.server.users import Role, User

STATIC = files("discreet.server") / "static"
_EVERY: tuple[Role, ...] = ("owner", "analyst", "auditor")
_MENU: tuple[tuple[str, str, tuple[Role, ...]], ...] = (
    ("/tables", "Tables", ("owner", "analyst")),
    ("/releases", "Releases", ("owner", "analyst")),
    ("/ledger", "Ledger", _EVERY),
    ("/audit", "Audit", _EVERY),
    ("/leakage", "Leakage", ("owner", "analyst")),
    ("/personal", "Personal budgets", ("owner",)),
    ("/people", "People", ("owner",)),
)
_TITLES = {
    401: "Sign in first",
    403: "Not for you",
    404: "Not found",
    409: "That does not go together",
    422: "Not understood",
    429: "A little later, please",
    503: "The store does not answer",
}


async def _fields(request: Request) -> dict[str, list[str]]:
    """The fields of a form as texts; files too."""
    found: dict[str, list[str]] = {}
    async with request.form(max_files=1, max_fields=200) as form:
        for name, value in form.multi_items():
            text = (
                value if isinstance(value, str) else (await value.read()).decode("utf-8", "replace")
            )
            found.setdefault(name, []).append(text)
    return found


Form = Annotated[dict[str, list[str]], Depends(_fields)]


def page(request: Request, template: str, *, status: int = 200, **context: Any) -> HTMLResponse:
    """A page in its frame."""
    who: User | None = getattr(request.state, "who", None)
    frame = {
        "who": who,
        "csrf": csrf_of(request),
        "menu": [] if who is None else navigation(who.role),
        "here": "/" + request.url.path.split("/")[1],
    }
    made = _TEMPLATES.get_template(template).render({**frame, **context})
    return HTMLResponse(made, status_code=status)


def navigation(role: Role) -> list[tuple[str, str]]:
    """The pages of a role; the first is its home."""
    return [(path, words) for path, words, roles in _MENU if role in roles]


def problem_page(request: Request, problem: ProblemDetail) -> HTMLResponse:
    """A refusal for people; the login page, if nobody is logged in."""
    if getattr(request.state, "who", None) is None:
        return page(request, "login.html", status=problem.status, problem="")
    title = _TITLES.get(problem.status, "Something went wrong")
    return page(request, "problem.html", status=problem.status, title=title, words=problem.detail)


def _short(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return short(value) if isinstance(value, float) else number(value)


def rough(value: float) -> str:
    """Three digits: a forecast is no more exact."""
    return short(value, digits=3)


def _percent(value: float) -> str:
    return percent(value).replace("%", "\u00a0%")


def _when(value: str | datetime) -> str:
    moment = datetime.fromisoformat(value) if isinstance(value, str) else value
    return f"{moment.astimezone(UTC):%-d %b %Y, %H:%M} UTC"


def _sentence(words: str) -> str:
    """With a capital and a full stop."""
    return f"{words[:1].upper()}{words[1:].removesuffix('.')}."


def _environment() -> Environment:
    made = Environment(
        loader=PackageLoader("discreet.server"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    filters: Mapping[str, Any] = {
        "n": _short,
        "pct": _percent,
        "r": rough,
        "when": _when,
        "sentence": _sentence,
    }
    made.filters.update(filters)
    made.globals["shipped"] = _fingerprint()
    return made


def _fingerprint() -> str:
    """Of the files that are shipped: a browser that keeps old ones asks for the new."""
    found = sha256()
    for name in ("app.js", "htmx.min.js", "style.css"):
        found.update((STATIC / name).read_bytes())
    return found.hexdigest()[:12]


_TEMPLATES = _environment()

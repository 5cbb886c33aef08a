"""The JSON interface: parse, call the service, send what it says."""

from __future__ import annotations

import time
from typing import Annotated, Any

from anyio import sleep, to_thread
from fastapi import APIRouter, Depends, Path, Query, Response
from fastapi.security import HTTPBearer
from pydantic import BaseModel, ConfigDict, Field

from discreet.server.jobs.exports import Kind
from discreet.server.middleware.auth import Serving, Who
from discreet.server.schemas import (
    AuditStatusInfo,
    BudgetInfo,
    JobInfo,
    LeakageInfo,
    LedgerInfo,
    NewToken,
    PersonalBudgetsInfo,
    PlanInfo,
    TableInfo,
    UserInfo,
)
from discreet.server.service import Service
from discreet.server.users import Role, User

Statistics = Annotated[list[dict[str, Any]], Field(min_length=1, max_length=50)]
Name = Annotated[str, Path(min_length=1, max_length=64, pattern="^[A-Za-z0-9_-]+$")]
Seconds = Annotated[float, Field(ge=0, le=25, allow_inf_nan=False)]
Amount = Annotated[float, Field(gt=0, allow_inf_nan=False)]
_LOOK_S, _LOOK_STORE_S = 0.02, 0.2
OPEN = ("queued", "running")


class ProblemBody(BaseModel):
    """A refusal: a code for programs, a sentence for people."""

    problem: str
    detail: str


_PROBLEMS: dict[int | str, dict[str, Any]] = {
    status: {"model": ProblemBody}
    for status in (400, 401, 403, 404, 408, 409, 413, 421, 422, 429, 503)
}
# The guard has looked at the token already; this says in the schema that there must be one.
_TOKEN = Depends(HTTPBearer(auto_error=False, description="A token that the owner has given."))
router = APIRouter(prefix="/api/v1", responses=_PROBLEMS, dependencies=[_TOKEN])


class Strict(BaseModel):
    """Unknown fields are mistakes."""

    model_config = ConfigDict(extra="forbid")


class PlanRequest(Strict):
    """Questions in the words of a release file's [[statistic]]."""

    statistics: Statistics
    compare: bool = False


class ReleaseRequest(Strict):
    """Questions to be answered and charged, once for each ``request_id``."""

    statistics: Statistics
    request_id: Annotated[str, Field(min_length=1, max_length=200)]
    wait: Seconds = 0
    """Seconds to wait for the result before the job is returned as it is."""


class AddUserRequest(Strict):
    """A person who gets a token."""

    name: Annotated[str, Field(min_length=1, max_length=64, pattern="^[A-Za-z0-9_-]+$")]
    role: Role
    days: Annotated[int, Field(ge=1, le=3660)] = 90


class SetLimitRequest(Strict):
    """What a person may spend from a table: epsilon, epsilon and delta, rho, or mu."""

    table: Annotated[str, Field(min_length=1, max_length=64, pattern="^[A-Za-z0-9_-]+$")]
    epsilon: Amount | None = None
    delta: Amount | None = None
    rho: Amount | None = None
    mu: Amount | None = None


@router.get("/me")
def me(who: Who, service: Serving) -> UserInfo:
    """Who the token belongs to, and their budgets."""
    return service.me(who)


@router.get("/tables")
def tables(who: Who, service: Serving) -> tuple[TableInfo, ...]:
    """All tables, as they are declared: no data."""
    return service.tables(who)


@router.get("/tables/{table}")
def table(who: Who, service: Serving, table: Name) -> TableInfo:
    """One table, as it is declared: no data."""
    return service.table(who, table)


@router.post("/tables/{table}/plan")
def plan(who: Who, service: Serving, table: Name, body: PlanRequest) -> PlanInfo:
    """What questions would cost and how exact they would be: nothing is read or spent."""
    return service.plan(who, table, body.statistics, compare=body.compare)


@router.post("/tables/{table}/releases")
async def release(who: Who, service: Serving, table: Name, body: ReleaseRequest) -> JobInfo:
    """Ask for a release. The same request_id again is the same release, charged once."""
    job = await to_thread.run_sync(
        lambda: service.submit(who, table, body.statistics, request_id=body.request_id)
    )
    return await wait_for_job(service, who, job, body.wait)


@router.get("/releases")
def releases(who: Who, service: Serving) -> tuple[JobInfo, ...]:
    """Releases, newest first, without results."""
    return service.releases(who)


@router.get("/releases/{number}")
async def job(
    who: Who, service: Serving, number: Name, wait: Annotated[Seconds, Query()] = 0
) -> JobInfo:
    """A release, with its result if it is done."""
    found = await to_thread.run_sync(service.job, who, number)
    return await wait_for_job(service, who, found, wait)


@router.get("/releases/{number}/file", response_class=Response)
def file(
    who: Who,
    service: Serving,
    number: Name,
    kind: Annotated[Kind, Query(alias="format")] = "json",
) -> Response:
    """A finished release as a file."""
    found = service.release_file(who, number, kind)
    return Response(
        found.text,
        media_type=found.media_type,
        headers={"content-disposition": f'attachment; filename="{found.name}"'},
    )


@router.get("/ledger")
def ledger(
    who: Who,
    service: Serving,
    verify: Annotated[bool, Query()] = False,  # noqa: FBT002
) -> LedgerInfo:
    """Budgets over time: one's own, or all of them for owner and auditor."""
    return service.ledger(who, verify=verify)


@router.get("/audit")
def audit(who: Who, service: Serving) -> AuditStatusInfo:
    """Mechanisms: epsilon claimed, exact and attacked."""
    return service.audit(who)


@router.post("/audit")
def start_audit(who: Who, service: Serving) -> AuditStatusInfo:
    """Audit every mechanism again, in the background."""
    return service.start_audit(who)


@router.post("/leakage")
def leakage(who: Who, service: Serving, model: dict[str, Any]) -> LeakageInfo:
    """What published means leak under a public model: no data are read."""
    return service.leakage(who, model)


@router.get("/personal")
def personal(who: Who, service: Serving) -> tuple[PersonalBudgetsInfo, ...]:
    """Personal budgets by level of consent."""
    return service.personal(who)


@router.get("/people")
def people(who: Who, service: Serving) -> tuple[UserInfo, ...]:
    """Everybody."""
    return service.people(who)


@router.post("/people")
def add_person(who: Who, service: Serving, body: AddUserRequest) -> NewToken:
    """A token for somebody, who is added if unknown. It is shown this once."""
    return service.add_person(who, body.name, body.role, days=body.days)


@router.post("/people/{name}/revoke", status_code=204)
def revoke(who: Who, service: Serving, name: Name) -> None:
    """End all tokens and sessions of a person."""
    service.revoke(who, name)


@router.put("/people/{name}/limit")
def set_limit(who: Who, service: Serving, name: Name, body: SetLimitRequest) -> BudgetInfo:
    """From now on a person may spend this much, in a new account under the table's."""
    limit = body.model_dump(exclude={"table"}, exclude_none=True)
    return service.set_limit(who, name, body.table, limit)


async def wait_for_job(service: Service, who: User, found: JobInfo, seconds: float) -> JobInfo:
    """The job when it is over, or as it is after a while; no thread waits."""
    ends = time.monotonic() + seconds
    looked = time.monotonic()
    while found.state in OPEN and time.monotonic() < ends:
        await sleep(_LOOK_S)
        moment = time.monotonic()
        if service.over(found.id) or moment - looked > _LOOK_STORE_S:
            looked = moment
            found = await to_thread.run_sync(service.job, who, found.id)
    return found

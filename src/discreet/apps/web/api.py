"""The JSON interface: parse, call the service, send what it says."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field

from discreet.apps.web.answers import Planned, TableShown
from discreet.apps.web.guard import Serving, Who

router = APIRouter(prefix="/api/v1")
Statistics = Annotated[list[dict[str, Any]], Field(min_length=1, max_length=50)]


class ToPlan(BaseModel):
    """Questions in the words of a release file's [[statistic]]."""

    model_config = ConfigDict(extra="forbid")
    statistics: Statistics
    compare: bool = False


@router.get("/tables")
def tables(who: Who, service: Serving) -> tuple[TableShown, ...]:
    """All tables, as they are declared: no data."""
    return service.tables(who)


@router.get("/tables/{table}")
def table(who: Who, service: Serving, table: str) -> TableShown:
    """One table, as it is declared: no data."""
    return service.table(who, table)


@router.post("/tables/{table}/plan")
def plan(who: Who, service: Serving, table: str, body: ToPlan) -> Planned:
    """What questions would cost and how exact they would be: nothing is read or spent."""
    return service.plan(who, table, body.statistics, compare=body.compare)

"""`discreet ranges`: any range of a released artifact; and how plans of ranges are shown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from discreet.core.errors import InvalidArgument
from discreet.core.number_format import percent, short
from discreet.core.tabular import cell
from discreet.local.ranges.release import LocalRanges
from discreet.ranges.domain import BinnedDomain, DateDomain, Domain, IntegerDomain
from discreet.ranges.grid.release import GridRelease
from discreet.ranges.release import RangeRelease

OPEN = "-"
_SHOWN = 6


def run(path: Path, ends: Sequence[str], *, confidence: float, as_json: bool) -> int:
    """Answer one range or rectangle; neither the data nor the ledger are needed."""
    release = _read(path)
    domains = release.grid.domains if isinstance(release, GridRelease) else (release.domain,)
    spans = _spans(domains, ends)
    asked: tuple[Any, ...] = spans if isinstance(release, GridRelease) else spans[0]
    low, high = release.answer_interval(*asked, confidence=confidence)
    content = {
        "ranges": [[None if end is None else str(end) for end in span] for span in spans],
        "value": release.answer(*asked),
        "std": release.answer_std(*asked),
        "low": low,
        "high": high,
        "level": confidence,
        "private": isinstance(release, LocalRanges) or release.private,
    }
    if as_json:
        print(json.dumps(content))
        return 0
    what = "; ".join(
        "all" if span == (None, None) else " .. ".join("" if e is None else str(e) for e in span)
        for span in spans
    )
    print(
        f"{what}: {cell(content, 'value')}  ({percent(confidence)} between {cell(content, 'low')} "
        f"and {cell(content, 'high')}; std {short(content['std'])})"
    )
    return 0


def _read(path: Path) -> RangeRelease | GridRelease | LocalRanges:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        raise InvalidArgument(f"{path}: cannot be read.") from None
    try:
        return RangeRelease.from_json(text)
    except InvalidArgument:
        if '"discreet_grid"' in text:
            return GridRelease.from_json(text)
        if '"discreet_local_ranges"' in text:
            return LocalRanges.from_json(text)
        raise


def _spans(domains: Sequence[Domain], ends: Sequence[str]) -> tuple[tuple[Any, Any], ...]:
    """A pair of labels for each axis."""
    if not ends:
        return ((None, None),) * len(domains)
    if len(ends) == len(domains) == 1 and not isinstance(domains[0], BinnedDomain):
        ends = (*ends, *ends)
    if len(ends) != 2 * len(domains):
        raise InvalidArgument(f"give FIRST and LAST for each of {len(domains)} columns, or none.")
    pairs = zip(domains, ends[::2], ends[1::2], strict=True)
    return tuple((_label(domain, a), _label(domain, b)) for domain, a, b in pairs)


def range_table(one: dict[str, Any]) -> Table:
    """The best structures and their errors."""
    share = "?" if one["share"] is None else percent(one["share"])
    widest = "" if one["width"] is None else f" The widest is within ±{short(one['width'])} (95%)."
    made = Table(
        title=f"{one['name']}: {one['cells']} cells, {one['budget']}, {share} of the limit",
        caption=f"Standard errors; the first is used. Mean over: {one['workload']}.{widest}",
    )
    made.add_column("structure", overflow="fold")
    for head in ("mean", *one["shown"]):
        made.add_column(head, justify="right")
    for candidate in one["structures"][:_SHOWN]:
        numbers = (candidate["rmse"], *candidate["errors"])
        made.add_row(candidate["structure"], *(short(number) for number in numbers))
    return made


def _label(domain: Domain, text: str | None) -> Any:
    """What was typed as a label of the domain; None is an open end."""
    if text is None or text == OPEN:
        return None
    try:
        match domain:
            case IntegerDomain():
                return int(text)
            case BinnedDomain():
                return float(text)
            case DateDomain():
                return text
            case _:
                return text if text in domain.labels else int(text)
    except ValueError:
        raise InvalidArgument(f"{text!r} is no label of {domain}.") from None

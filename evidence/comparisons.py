"""Our seconds and errors beside those of the peers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from benchmarks.page import COLUMNS, ERRORS
from evidence.markdown import number, table
from evidence.part import Open, Part, Record, made, records, unfinished, write
from evidence.steps import Outcome

_ABOUT = (
    "The same work by discreet and by its peers, in the same run, by turns, best of several; each "
    "peer in an environment of its own. *Ratio*: the peer's time divided by ours, so more than 1 "
    "means that ours is faster. What is compared, and why so: [Benchmarks](../benchmarks.md)."
)
_EXTRAPOLATED = "extrapolated from"


def part(outcomes: Sequence[Outcome]) -> Part:
    """A row for each suite and each comparison; all numbers on a page of their own."""
    rows: list[Sequence[object]] = []
    found: list[Open] = []
    lines = ["# Benchmarks: every number", "", _ABOUT, ""]
    for one in outcomes:
        read = records(one)
        title = one.step.name.replace("-", " ")
        if not read or one.code != 0:
            found.append(unfinished(one))
            rows.append((title, f"**{found[-1].what}**", *[""] * 3))
            continue
        shown, summary = _SPECIAL.get(one.step.name, (_suite, _ratios))
        rows.append(
            (
                f"[{title}](benchmarks.md#{one.step.name})",
                len(read),
                summary(read),
                f"{one.seconds / 60:.1f}",
                made(one),
            )
        )
        found += [_open(title, record) for record in read if _telling(record)]
        lines += [f"## {title}", "", f"*{one.machine}; {one.version}*", ""]
        lines += shown(one.step.name, read)
    write("benchmarks", lines)
    heads = ["suite", "comparisons", "in short", "minutes", "run"]
    return Part(title="Benchmarks", lines=table(heads, rows), open=found)


def ratios(found: Sequence[Record]) -> list[float]:
    """The ratios of times to peers that are private too."""
    return [one["ratio"] for one in found if one.get("ratio") and not _limit(one)]


def _limit(record: Record) -> bool:
    """Whether the peer does without privacy: a limit of speed, not a competitor."""
    return "not private" in str(record["peer"])


def _ratios(found: Sequence[Record]) -> str:
    told = []
    if values := ratios(found):
        mean = math.exp(math.fsum(map(math.log, values)) / len(values))
        faster = sum(value >= 1 for value in values)
        told.append(
            f"faster in {faster} of {len(values)}, {_span(values)}, geometric mean {mean:.3g}"
        )
    if limits := [one["ratio"] for one in found if one.get("ratio") and _limit(one)]:
        told.append(f"without privacy, as a limit: {_span(limits)}")
    return "; ".join(told) or "no ratio: see the notes"


def _span(values: Sequence[float]) -> str:
    return f"ratio from {min(values):.3g} to {max(values):.3g}"


def _suite(name: str, found: Sequence[Record]) -> list[str]:
    """Only columns that hold something."""
    used = {
        head.format(ERRORS.get(name, "answer")): key
        for head, key in COLUMNS.items()
        if any(one.get(key) is not None for one in found)
    }
    return table(list(used), ([one.get(key) for key in used.values()] for one in found))


def _telling(record: Record) -> str:
    """A note that says more than how a number was made."""
    notes = str(record.get("note") or "").split("; ")
    return "; ".join(note for note in notes if note and not note.startswith(_EXTRAPOLATED))


def _open(title: str, record: Record) -> Open:
    return Open(
        where=title,
        what=f"{record['name']}: {record['peer']}",
        why=_telling(record),
        failed=_telling(record).startswith("ours failed"),
    )


def _served(found: Sequence[Record]) -> str:
    one = found[0]
    return (
        f"{one['answered']} releases by analysts at once, {one['charged']} charges, "
        f"{one['failures']} failures; median {one['plan']['median_ms']:.0f} ms for a plan, "
        f"{one['release']['median_ms']:.0f} ms for a release"
    )


def _serve(_: str, found: Sequence[Record]) -> list[str]:
    rows = [(kind, *found[0][kind].values()) for kind in ("plan", "release")]
    rest = {key: value for key, value in found[0].items() if key not in ("plan", "release")}
    return [
        *table(["as analysts see it", *(key for key in found[0]["plan"])], rows),
        *table(["what", "number"], rest.items()),
    ]


def _learned(_: str, found: Sequence[Record]) -> list[str]:
    heads = ["function", "ε", "ours", "forecast", "best baseline", "ours / best", "chosen"]
    rows = []
    for one in found:
        least = min(one["baselines"], key=one["baselines"].__getitem__)
        best = one["baselines"][least]
        shown = f"{number(best)} ({least})"
        ratio = one["ours"] / best
        rows.append(
            (one["box"], one["epsilon"], one["ours"], one["expected"], shown, ratio, one["chosen"])
        )
    return ["[About this comparison](../learned-comparison.md)", "", *table(heads, rows)]


def _learned_short(found: Sequence[Record]) -> str:
    values = [one["ours"] / min(one["baselines"].values()) for one in found]
    lower = sum(value < 1 for value in values)
    return f"lowest error in {lower} of {len(values)}; at worst {max(values):.3f} of the best other"


def _regression(_: str, found: Sequence[Record]) -> list[str]:
    names = list(dict.fromkeys(name for one in found for name in one["errors"]))
    heads = ["table", "rows", "features", "ε", *names, "midpoint", "method", "forecast"]
    rows = [
        (
            *(one[key] for key in ("table", "rows", "features", "epsilon")),
            *(one["errors"].get(name, "–") for name in names),
            *(one[key] for key in ("midpoint", "chosen", "forecast")),
        )
        for one in found
    ]
    return ["[About this comparison](../regression-comparison.md)", "", *table(heads, rows)]


def _regression_short(found: Sequence[Record]) -> str:
    lowest = sum(one["errors"]["discreet"] <= min(one["errors"].values()) for one in found)
    return f"lowest error in {lowest} of {len(found)}"


_SPECIAL: Mapping[
    str, tuple[Callable[[str, Sequence[Record]], list[str]], Callable[[Sequence[Record]], str]]
] = {
    "serve": (_serve, _served),
    "learned-comparison": (_learned, _learned_short),
    "regression-comparison": (_regression, _regression_short),
}

"""The evidence as pages: an index with every verdict counted, and a page for each collection."""

from __future__ import annotations

from collections.abc import Sequence

from evidence import audits, comparisons, figures, part, studies
from evidence.markdown import table
from evidence.part import Open
from evidence.steps import Outcome

_ABOUT = (
    "Every study of the theses, every audit and every benchmark, run by one command, "
    "`make evidence`. Nothing on these pages is written by hand. Beside them: the [index of "
    "theorems](../theory/theorems.md), collected from the code."
)
_FAILED = (
    "**{} of the following failed or did not run.** A check that fails is never called reproduced."
)
_SETTLED = (
    "Nothing failed and everything ran. What follows is what cannot be shown here, or was shown "
    "with less than could be; each with why."
)


def write(outcomes: Sequence[Outcome]) -> bool:
    """Write all pages; whether everything ran and every check came out as expected."""
    part.FOLDER.mkdir(parents=True, exist_ok=True)
    parts = (
        studies.part([one for one in outcomes if one.step.kind == "study"]),
        audits.part([one for one in outcomes if one.step.kind == "audit"]),
        comparisons.part([one for one in outcomes if one.step.kind == "benchmark"]),
    )
    found = [one for each in parts for one in each.open]
    failed = sum(one.failed for one in found)
    lines = ["# Evidence", "", _ABOUT, "", *_time(outcomes), "", "## What is open", ""]
    lines += [_FAILED.format(failed) if failed else _SETTLED, "", *_open(found)]
    for each in parts:
        lines += [f"## {each.title}", "", *each.lines]
        if (drawn := figures.draw(each.title, outcomes)) is not None:
            lines += [f"![{drawn.words}]({drawn.file.name})", ""]
    part.write("index", lines)
    return not failed


def _time(outcomes: Sequence[Outcome]) -> list[str]:
    """How long it took, which is why some of it may be older than the rest."""
    ran = [one for one in outcomes if one.day]
    minutes = {
        kind: sum(one.seconds for one in ran if one.step.kind == kind) / 60
        for kind in ("study", "audit", "benchmark")
    }
    both = (minutes["study"] + minutes["audit"]) / 2 + minutes["benchmark"]
    return [
        (
            f"{len(ran)} of {len(outcomes)} steps: studies {minutes['study']:.0f} minutes, audits "
            f"{minutes['audit']:.0f}, both in two lanes; benchmarks {minutes['benchmark']:.0f}, "
            f"one at a time: {both:.0f} minutes on two cores, and on a first run those that it "
            "takes to install the peers and to train the teachers of the study of votes, which "
            "are kept."
        )
    ]


def _open(found: Sequence[Open]) -> list[str]:
    """Failures first."""
    rows = [
        (one.where, f"**{one.what}**" if one.failed else one.what, one.why)
        for one in sorted(found, key=lambda one: not one.failed)
    ]
    return table(["where", "what", "why"], rows) if rows else []

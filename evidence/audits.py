"""What mechanisms claim, what is exact and what attacks show."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from evidence.markdown import number, table
from evidence.part import Open, Part, Record, made, records, unfinished, write
from evidence.steps import Outcome

_ABOUT = (
    "Epsilon at the stated delta: *claimed*, *exact* from the distribution of what is released "
    "(where it is known and finite), and *attacked*: what samples prove, wrong with "
    "probability 1e-6 for the whole table. An attack that fails proves nothing; the exact "
    "column does."
)
_ELSEWHERE = (
    "Claims about black-box mechanisms, PATE, gradient descent and time series are judged "
    "by computation, without samples: they are the *corrected* checks of the studies [aoutouf]"
    "(aoutouf.md), [muehl](muehl.md) and [biswal-inference](biswal-inference.md)."
)
_WORDS = {
    "holds": "holds, exactly",
    "not refuted": "not refuted",
    "BROKEN": "**broken**",
    "MISSED": "**missed**: broken, and not caught",
    "ACCUSED": "**accused**: claimed less than was shown",
}
_SORTED = ("ACCUSED", "MISSED", "holds", "not refuted", "BROKEN")
_HEADS = ["mechanism", "δ", "ε claimed", "ε exact", "ε attacked", "verdict", "expected", "why"]


def part(outcomes: Sequence[Outcome]) -> Part:
    """A row for each audit."""
    rows: list[Sequence[object]] = []
    found: list[Open] = []
    for one in outcomes:
        read = records(one)
        right = sum(record["ok"] for record in read)
        if not read or (one.code != 0 and right == len(read)):
            found.append(unfinished(one))
            rows.append((one.step.name, f"**{found[-1].what}**", *[""] * 5))
            continue
        title, about, page = _PAGES[one.step.name]
        broken = sum(_broken(record) for record in read)
        rows.append(
            (
                f"[{title}](audit-{one.step.name}.md)",
                len(read),
                broken,
                right,
                len(read) - right,
                f"{one.seconds / 60:.1f}",
                made(one),
            )
        )
        found += [_open(title, record) for record in read if not record["ok"]]
        lines = [f"# {title}", "", f"*{len(read)} cases; {made(one)}.*", "", about, ""]
        write(f"audit-{one.step.name}", [*lines, *page(read)])
    heads = ["audit", "cases", "broken", "as expected", "**wrong verdicts**", "minutes", "run"]
    return Part(title="Audits", lines=table(heads, rows), open=found)


def _broken(record: Record) -> bool:
    return bool(record.get("verdict") == "BROKEN" or record.get("broken") or "true" in record)


def _open(title: str, record: Record) -> Open:
    what = f"{record['name']}: {record.get('verdict', 'not as expected')}"
    return Open(where=title, what=what, why=record.get("why", ""), failed=True)


def _mechanisms(found: Sequence[Record]) -> list[str]:
    wrong = [one for one in found if one["verdict"] == "BROKEN"]
    right = [one for one in found if one["verdict"] != "BROKEN"]
    return [
        "## Mechanisms",
        "",
        *table(_HEADS, map(_row, _in_order(right))),
        "## Deliberately wrong versions",
        "",
        "They show that the attacks bite: each must be found broken.",
        "",
        *table(_HEADS, map(_row, _in_order(wrong))),
    ]


def _published(found: Sequence[Record]) -> list[str]:
    attacked = _in_order([one for one in found if "verdict" in one])
    exact = [one for one in found if "true" in one]
    trees = [one for one in found if "leaves" in one]
    return [
        "## Claims that samples refute",
        "",
        *table(
            [*_HEADS, "by the event"],
            ([*_row(one), one["witness"]] for one in attacked if one["verdict"] == "BROKEN"),
        ),
        "## What keeps the same guarantee",
        "",
        "Claims that hold, and our own mechanism beside a claim that does not.",
        "",
        *table(_HEADS, (_row(one) for one in attacked if one["verdict"] != "BROKEN")),
        "## Claims that the exact distribution refutes",
        "",
        (
            "At a large epsilon or a small delta an attack would need billions of samples. The "
            "distributions are known: the event that tells neighbors apart is computed, with its "
            "two probabilities."
        ),
        "",
        *table(
            ["claim", "ε", "δ claimed", "δ exact", "by the event", "instead", "its exact δ"],
            (
                [
                    one["name"],
                    one["epsilon"],
                    one["claimed"],
                    one["true"],
                    one["event"],
                    one["repaired"],
                    one["repaired_delta"],
                ]
                for one in exact
            ),
        ),
        "## Leaves that are read out of a tree",
        "",
        *table(
            ["tree", "leaves", "read exactly", "expected"],
            ([one["name"], one["leaves"], one["recovered"], _expected(one)] for one in trees),
        ),
        "## Claims that are judged elsewhere",
        "",
        _ELSEWHERE,
    ]


def _in_order(found: Sequence[Record]) -> list[Record]:
    return sorted(found, key=lambda one: (_SORTED.index(one["verdict"]), one["name"].lower()))


def _row(one: Record) -> list[object]:
    return [
        one["name"],
        one["delta"],
        one["claimed"],
        "–" if one["exact"] is None else one["exact"],
        "∞" if one["attacked"] is None else f"> {number(one['attacked'])}",
        _WORDS[one["verdict"]],
        _expected(one),
        one["why"],
    ]


def _expected(one: Record) -> str:
    return "yes" if one["ok"] else "**NO**"


_PAGES: Mapping[str, tuple[str, str, Callable[[Sequence[Record]], list[str]]]] = {
    "mechanisms": ("Audit of every mechanism", _ABOUT, _mechanisms),
    "published": ("Audit of published claims", _ABOUT, _published),
}

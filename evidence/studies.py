"""Every check of every study, with its verdict."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from evidence.markdown import number, table
from evidence.part import Open, Part, Record, made, records, unfinished, write
from evidence.steps import ROOT, Outcome

_ABOUT = (
    "*Reproduced*: what was stated came out here. *Corrected*: what was published is wrong or was "
    "only sampled; the last column says how, and the corrected claim holds. *Not reproducible*: "
    "it cannot be checked; the last column says why."
)
_HEADS = ["check", "claim", "stated by", "expected", "got", "verdict", "why"]
_LIMITS = {"at least": "≥ ", "at most": "≤ "}


def part(outcomes: Sequence[Outcome]) -> Part:
    """A row for each study."""
    rows: list[Sequence[object]] = []
    found: list[Open] = []
    for one in outcomes:
        read = records(one)
        if not read:
            found.append(unfinished(one))
            rows.append((one.step.name, *[""] * 7, f"**{found[-1].what}**"))
            continue
        rows.append(_row(one, read[0]))
        found += _open(one, read[0])
        write(one.step.name, _page(one, read[0]))
    heads = ["study", "checks", "reproduced", "corrected", "not reproducible", "**failed**"]
    heads += ["minutes", "run", "more"]
    return Part(title="Studies", lines=table(heads, rows), open=found)


def _row(one: Outcome, study: Record) -> tuple[object, ...]:
    checks = study["checks"]
    counts = Counter(check["verdict"] for check in checks if check["ok"])
    return (
        f"[{study['title']}]({one.step.name}.md)",
        len(checks),
        counts["reproduced"],
        counts["corrected"],
        counts["not reproducible"],
        sum(not check["ok"] for check in checks),
        f"{one.seconds / 60:.1f}",
        made(one),
        " ".join(_pages(one)),
    )


def _pages(one: Outcome) -> Iterator[str]:
    """Links to what is written about the study, which is shorter and has figures."""
    for path in sorted((ROOT / "docs" / "studies").glob(f"{one.step.name}*.md")):
        yield f"[{path.stem}](../studies/{path.name})"


def _open(one: Outcome, study: Record) -> Iterator[Open]:
    for check in study["checks"]:
        if not check["ok"] or check["verdict"] == "not reproducible":
            what = f"{check['id']}: {check['claim']}"
            yield Open(where=one.step.name, what=what, why=check["why"], failed=not check["ok"])
    if one.step.lacks:
        yield Open(
            where=one.step.name,
            what=f"read no {', '.join(f'`{name}`' for name in one.step.lacks)}",
            why=f"Not in the folder that was given. From packages, simulated or left out: as said "
            f"in {', '.join(_pages(one))}.",
            failed=False,
        )
    if one.step.quick:
        why = "Run by `make evidence ARGS=--quick`."
        yield Open(where=one.step.name, what="less simulation", why=why, failed=False)


def _page(one: Outcome, study: Record) -> list[str]:
    checks = study["checks"]
    wrong = [check for check in checks if not check["ok"]]
    lines = [
        f"# {study['title']}: every check",
        "",
        f"{study['source']} In short, and with figures: {', '.join(_pages(one))}.",
        "",
        f"*{len(checks)} checks, {len(wrong)} failed; seed {study['seed']}; {made(one)}.*",
        "",
        _ABOUT,
        "",
    ]
    if wrong:
        lines += ["## Failed", "", *table(_HEADS, map(_check, wrong))]
    groups: dict[str, list[Record]] = {}
    for check in checks:
        groups.setdefault(check["id"].partition("/")[0], []).append(check)
    for name, group in groups.items():
        lines += [f"## {name}", "", *table(_HEADS, map(_check, group))]
    return lines


def _check(check: Record) -> list[object]:
    within = "" if not check["tolerance"] else f" ± {check['tolerance']:.2g}"
    return [
        check["id"].partition("/")[2] or check["id"],
        check["claim"],
        check["source"],
        f"{_LIMITS.get(check['rule'], '')}{number(check['expected'])}{within}",
        check["got"],
        check["verdict"] if check["ok"] else "**FAILED**",
        check["why"],
    ]

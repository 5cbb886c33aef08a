"""One self-contained HTML page: tables, values for spreadsheets and JSON, guarantees in words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from html import escape
from string import Template

from discreet.accounting.guarantee import SHOWN_DELTA, Guarantee, describe_epsilon, stated_delta
from discreet.core.number_format import number, short
from discreet.core.relation import NeighboringRelation

_PAGE = Template("""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>$title</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>
body{font:15px/1.5 sans-serif;max-width:$width;margin:2rem auto;padding:0 1rem;color:#111}
table{border-collapse:collapse;margin:.6rem 0}
caption{text-align:left;font-weight:bold;padding:.3rem 0}
td,th{border-bottom:1px solid #ccc;padding:.2rem .7rem;text-align:right}
td.k,th.k{text-align:left} svg{max-width:100%;height:auto}
code{font-size:.85em;word-break:break-all}
section{margin:2.2rem 0} .box{border:1px solid #999;padding:.6rem 1rem} .bad{font-weight:bold}
details{margin:.6rem 0} summary{cursor:pointer}
</style></head><body>
<h1>$title</h1>
$body
</body></html>
""")


def page(title: str, body: str, *, width: str = "52rem") -> str:
    """A page without a single outside address; ``body`` is HTML, the title is escaped here."""
    return _PAGE.substitute(title=escape(title), width=width, body=body)


def table(
    heads: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    words: int = 1,
    caption: str = "",
) -> str:
    """Cells side by side, all escaped; the first columns, so many, are words and stand left."""
    titled = f"<caption>{escape(caption)}</caption>" if caption else ""
    lines = "\n".join(_row("td", row, words) for row in rows)
    return f"<table>{titled}{_row('th', heads, words)}\n{lines}</table>"


def _row(kind: str, cells: Sequence[str], words: int) -> str:
    left = f'<{kind} class="k">'
    inside = "".join(
        f"{left if i < words else f'<{kind}>'}{escape(cell)}</{kind}>"
        for i, cell in enumerate(cells)
    )
    return f"<tr>{inside}</tr>"


def finite(value: object) -> object:
    """The same for JSON: what is not finite becomes null."""
    match value:
        case float():
            return value if math.isfinite(value) else None
        case dict():
            return {key: finite(one) for key, one in value.items()}
        case list() | tuple():
            return [finite(one) for one in value]
        case _:
            return value


# ── Guarantees in words
# ────────────────────────────────────────────────────────────────────────────


def plainly(guarantee: Guarantee, *, delta: float = SHOWN_DELTA) -> str:
    """What the guarantee promises to one person."""
    pure = guarantee.epsilon(0.0)
    epsilon = pure
    if not math.isfinite(pure):
        delta = stated_delta(guarantee, delta=delta)
        epsilon = guarantee.epsilon(delta)
    factor = short(math.exp(epsilon), digits=3) if epsilon < 700 else "beyond all use many"
    plus = "" if math.isfinite(pure) else f", plus a probability of {number(delta)} at most"
    other = {
        NeighboringRelation.ADD_REMOVE: "with one unit in the data as without it",
        NeighboringRelation.REPLACE_ONE: (
            "with the data of one unit as with any other data in their place"
        ),
        NeighboringRelation.LOCAL: "with one value of a client as with any other",
    }[guarantee.relation]
    return (
        "Whatever anybody knows or will learn elsewhere: anything that these numbers could show is "
        f"at most {factor} times as likely {other}, and the other way round{plus} "
        f"({describe_epsilon(guarantee, delta=delta)}; {guarantee.relation.value})."
    )

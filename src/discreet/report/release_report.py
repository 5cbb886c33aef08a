"""Releases as one self-contained HTML page, as CSV and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from string import Template
from typing import Any

from discreet.accounting.guarantee import SHOWN_DELTA, Guarantee, describe_epsilon
from discreet.cards.card import ReleaseCard, card
from discreet.core._plugins import SECTIONS, load, plugins, warn_of
from discreet.core.number_format import UNKNOWN
from discreet.core.tabular import Record, cell, csv_text
from discreet.ledger.account import Account, Receipt
from discreet.ledger.ledger import plain
from discreet.ledger.statement import Statement
from discreet.report import html_page as document
from discreet.report.html_page import plainly, table
from discreet.report.marginal_section import MarginalSection
from discreet.report.plot import panel
from discreet.report.range_section import GridSection, RangeSection
from discreet.tables.marginals import ChargedMarginalRelease
from discreet.tables.range_release import AnyRangeRelease
from discreet.tables.release import Release

_MOST_ROWS = 1000
_BODY = Template("""<div class="box"><p><strong>What is promised.</strong> $promise</p>
<p><strong>What an attacker gains.</strong> $gain</p>
<p><strong>Who is protected.</strong> $protects.</p>
<p><strong>The account.</strong> $account</p></div>
$statement
$sections
<section><h2>What is protected, and what is not</h2><ul>
<li>Protected: the part of any one unit in these numbers, whoever looks at them and whatever they
know from elsewhere.</li>
<li>Not protected: what is true of a whole group. If a study shows that a habit harms, that is
known of every person with the habit, whether they are in the data or not.</li>
<li>Not protected: anything else that was published from the same data and not charged to this
account.</li>
<li>Rows of a unit beyond the limits are not used, and values beyond the declared bounds are
clipped. Both change the numbers, not the promise.</li>
<li>The intervals speak of the noise that was added, each by itself. They do not say how the data
were sampled or collected.</li>
</ul></section>
$card
<section><h2>Provenance</h2>$provenance</section>""")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseReport:
    """Releases that were made together, and what the account says afterwards."""

    title: str
    releases: tuple[Release, ...]
    guarantee: Guarantee
    account: str
    """A sentence about the budget."""
    statement: Statement | None = None
    """What each release of the account cost, and what is left."""
    delta: float = SHOWN_DELTA
    ranges: tuple[RangeSection | GridSection, ...] = ()
    marginals: tuple[MarginalSection, ...] = ()

    @property
    def sections(self) -> tuple[RangeSection | GridSection | MarginalSection, ...]:
        """What has a part of the page of its own beside single releases."""
        return (*self.ranges, *self.marginals)


def report_card(report: ReleaseReport, *, account: Account | None = None) -> ReleaseCard:
    """The card of all that is in a report."""
    ranges = [one.release for one in report.sections]
    return card([*report.releases, *ranges], title=report.title, account=account)


def csv_metadata(report: ReleaseReport, *, csv: str, card: str) -> str:
    """What stands beside the CSV (W3C, metadata for tabular data): the promise, and the card.

    And what each statistic leaves out.
    """
    return json.dumps(
        {
            "@context": "http://www.w3.org/ns/csvw",
            "url": csv,
            "dc:title": report.title,
            "dc:description": plainly(report.guarantee, delta=report.delta),
            "dc:relation": card,
            "notes": [{"statistic": one.title, "about": one.about} for one in report.releases],
        },
        indent=1,
    )


def as_html(report: ReleaseReport, *, card: ReleaseCard | None = None) -> str:
    """One page without a single outside address; everything is escaped."""
    all_of_it: list[Release | AnyRangeRelease | ChargedMarginalRelease] = [*report.releases]
    first = [*all_of_it, *(one.release for one in report.sections)][0]
    body = _BODY.substitute(
        promise=escape(plainly(report.guarantee, delta=report.delta)),
        gain=escape(report.guarantee.meaning().words()),
        protects=escape(first.privacy_statement[:1].upper() + first.privacy_statement[1:]),
        account=escape(report.account),
        statement="" if report.statement is None else _statement(report.statement),
        sections="\n".join(
            [
                *map(_section, report.releases),
                *(one.section() for one in report.sections),
                *_of_guests(report.releases),
            ]
        ),
        card=(card or report_card(report)).to_html(),
        provenance=_provenance(first),
    )
    return document.page(report.title, body)


def _statement(told: Statement) -> str:
    """The statement of account: it adds up."""
    shown = table(
        ("entry", "release", "alone", "added", "total"),
        (
            [
                str(line.entry),
                line.label,
                *map(told.shown, (line.alone, line.added, line.total)),
            ]
            for line in told.lines
        ),
        words=2,
    )
    words = " ".join(f"{one[:1].upper()}{one[1:]}." for one in told.words)
    return f"<section><h2>Statement of account</h2>{shown}<p>{escape(words)}</p></section>"


def as_csv(
    releases: Sequence[Release], shown: Sequence[RangeSection | GridSection | MarginalSection] = ()
) -> str:
    """One line for each number: statistic, a column for each grouping column, and the numbers.

    Cells of ranges have one column, ``cell``. Columns that a statistic is not grouped by are empty.
    The numbers are value, std, low and high (95%).
    """
    numbers = ("value", "std", "low", "high")
    groups = list(dict.fromkeys([name for one in releases for name in one.key_columns]))
    groups += ["cell"] if shown and "cell" not in groups else []
    taken = {"statistic", *numbers}
    names = [plain(f"{name} (group)" if name in taken else name) for name in groups]
    lines: list[tuple[Any, ...]] = [("statistic", *names, *numbers)]
    for release in releases:
        for key, row in zip(release.keys, release.rows(), strict=True):
            known = dict(zip(release.key_columns, key, strict=True))
            cells = [plain(str(known[name])) if name in known else "" for name in groups]
            lines.append((plain(release.title), *cells, *[row[name] for name in numbers]))
    for one in shown:
        for label, *values in one.cells():
            cells = [plain(label) if name == "cell" else "" for name in groups]
            lines.append((plain(one.release.title), *cells, *values))
    return csv_text(lines)


def as_json(report: ReleaseReport) -> str:
    """Everything, complete enough to be read back by `Release.from_json`, one by one."""
    return json.dumps(
        {
            "title": report.title,
            "guarantee": json.loads(report.guarantee.to_json()),
            "releases": [
                {**json.loads(release.to_json()), "rows": _rows(release)}
                for release in report.releases
            ],
            "ranges": [one.summary() for one in report.ranges],
            "marginals": [one.summary() for one in report.marginals],
        },
        indent=1,
    )


def _rows(release: Release) -> list[dict[str, object]]:
    return [
        {
            name: value if isinstance(value, int | float | None) else str(value)
            for name, value in row.items()
        }
        for row in release.rows()
    ]


def _section(release: Release) -> str:
    rows = release.rows()
    numbers = ("value", "low", "high", "std")
    shown = table(
        (*release.key_columns, *numbers),
        (
            [
                *(str(row[name]) for name in release.key_columns),
                *(_number(row, name) for name in numbers),
            ]
            for row in rows[:_MOST_ROWS]
        ),
        words=len(release.key_columns),
    )
    more = (
        "" if len(rows) <= _MOST_ROWS else f"<p>{len(rows) - _MOST_ROWS} more are in the CSV.</p>"
    )
    return (
        f"<section><h2>{escape(release.title)}</h2>\n{panel(release).svg()}\n"
        f"{shown}{more}<p>Asked: {escape(release.query_text)}. Cost: "
        f"{escape(describe_epsilon(release.guarantee))}. {_promise(release)}</p>"
        f"<p>What it leaves out: {escape('; '.join(release.about))}.</p>"
        f"<p><code>{escape(release.mechanism)}</code></p></section>"
    )


def _of_guests(releases: tuple[Release, ...]) -> Iterator[str]:
    """What other installed packages write about published numbers: text, which is escaped."""
    for point in plugins(SECTIONS).values():
        write = load(point)
        if write is None:
            continue
        try:
            title, paragraphs = write(releases)
            told = [f"<p>{escape(str(one))}</p>" for one in paragraphs]
            yield f"<section><h2>{escape(str(title))}</h2>{''.join(told)}</section>"
        except Exception as error:  # noqa: BLE001 - code of others may fail in any way
            warn_of(point, error)


def _promise(release: Release) -> str:
    if release._estimator is None or release._has_interval:
        return "Low and high hold the value without noise with probability at least 95%."
    return "The values were chosen by their rank, so there is no interval."


def _kept(receipt: Receipt) -> str:
    if receipt.durable:
        return ""
    return " This ledger was in memory: it is not durable, and no later question counts this one."


def _provenance(release: Release | AnyRangeRelease | ChargedMarginalRelease) -> str:
    receipt = release.receipt
    return (
        f"<p>Charged to account {escape(receipt.account)}, entry {receipt.sequence}, "
        f"{escape(receipt.time.isoformat(timespec='seconds'))}, before the data were read. "
        f"Hash of the entry: <code>{escape(receipt.hash)}</code>.{_kept(receipt)}</p>"
    )


def _number(row: Record, name: str) -> str:
    return UNKNOWN if row[name] is None else cell(row, name)

"""Releases as one self-contained HTML page, as CSV and as JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from string import Template

from discreet.accounting.guarantee import Guarantee
from discreet.ledger.ledger import plain
from discreet.report import html_page as document
from discreet.report.html_page import plainly, table
from discreet.report.plot import picture
from discreet.report.range_section import GridSection, RangeSection
from discreet.tables.range_release import AnyRangeRelease
from discreet.tables.release import DELTA, Release, describe_epsilon

_MOST_ROWS = 1000
_BODY = Template("""<div class="box"><p><strong>What is promised.</strong> $promise</p>
<p><strong>Who is protected.</strong> $protects.</p>
<p><strong>The account.</strong> $account</p></div>
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
<section><h2>Provenance</h2>$provenance</section>""")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseReport:
    """Releases that were made together, and what the account says afterwards."""

    title: str
    releases: tuple[Release, ...]
    guarantee: Guarantee
    account: str
    """A sentence about the budget."""
    delta: float = DELTA
    ranges: tuple[RangeSection | GridSection, ...] = ()


def as_html(report: ReleaseReport) -> str:
    """One page without a single outside address; everything is escaped."""
    all_of_it: list[Release | AnyRangeRelease] = [*report.releases]
    first = [*all_of_it, *(one.release for one in report.ranges)][0]
    body = _BODY.substitute(
        promise=escape(plainly(report.guarantee, delta=report.delta)),
        protects=escape(first.privacy_statement[:1].upper() + first.privacy_statement[1:]),
        account=escape(report.account),
        sections="\n".join(
            [*map(_section, report.releases), *(one.section() for one in report.ranges)]
        ),
        provenance=_provenance(first),
    )
    return document.page(report.title, body)


def as_csv(releases: Sequence[Release], shown: Sequence[RangeSection | GridSection] = ()) -> str:
    """One line for each number: statistic, group, value, std, low, high (95%)."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(("statistic", "group", "value", "std", "low", "high"))
    for release in releases:
        for key, row in zip(release.keys, release.rows(), strict=True):
            group = ", ".join(map(str, key))
            numbers = (row[name] for name in ("value", "std", "low", "high"))
            writer.writerow((plain(release.title), plain(group), *numbers))
    for one in shown:
        for label, *values in one.cells():
            writer.writerow((plain(one.release.title), plain(label), *values))
    return out.getvalue()


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
                *(_number(row[name]) for name in numbers),
            ]
            for row in rows[:_MOST_ROWS]
        ),
        words=len(release.key_columns),
    )
    more = (
        "" if len(rows) <= _MOST_ROWS else f"<p>{len(rows) - _MOST_ROWS} more are in the CSV.</p>"
    )
    return (
        f"<section><h2>{escape(release.title)}</h2>\n{picture(release)}\n"
        f"{shown}{more}<p>Asked: {escape(release.query_text)}. Cost: "
        f"{escape(describe_epsilon(release.guarantee))}. {_promise(release)}</p>"
        f"<p><code>{escape(release.mechanism)}</code></p></section>"
    )


def _promise(release: Release) -> str:
    if release._noisy is None or release._answer.has_interval:
        return "Low and high hold the value without noise with probability at least 95%."
    return "The values were chosen by their rank, so there is no interval."


def _provenance(release: Release | AnyRangeRelease) -> str:
    receipt = release.receipt
    return (
        f"<p>Charged to account {escape(receipt.account)}, entry {receipt.sequence}, "
        f"{escape(receipt.time.isoformat(timespec='seconds'))}, before the data were read. "
        f"Hash of the entry: <code>{escape(receipt.hash)}</code>.</p>"
    )


def _number(value: float | None) -> str:
    if value is None:
        return "–"
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"

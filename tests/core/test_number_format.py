"""Numbers for people: two digits of the noise, no digit too many, none lost."""

import ast
import math
import re
from pathlib import Path

import pytest

import discreet
from discreet.core.number_format import at_most, number, percent, short


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (41.23456, 1.3, "41.2"),
        (41.23456, 0.013, "41.235"),
        (41.23456, 130, "40"),
        (123_456, 1400, "123,500"),
        (-123_456, 14, "-123,456"),
        (19, 1.4, "19"),
        (16.0, 1.4, "16"),
        (0.99951, 0.0996, "1.00"),
        (12.3, 0.0996, "12.30"),
        (0.000012345, 0.000001, "1.23e-05"),
        (0.4, 10**12, "0"),
        (3, 0, "3"),
        (3.14159265, math.inf, "3.14159"),
        (3.14159265, None, "3.14159"),
        (1234567.0, None, "1,234,567"),
        (2**70, None, "1,180,591,620,717,411,303,424"),
        (math.inf, 1.0, "∞"),
        (-math.inf, None, "-∞"),
        (math.nan, None, "–"),
        (None, 1.0, ""),
        (True, 1.0, "True"),
        ("m", 1.0, "m"),
    ],
)
def test_a_value_is_rounded_to_its_noise(value, error, text):
    assert number(value, error=error) == text


@pytest.mark.parametrize("error", [1e-9, 0.0095, 0.0995, 0.3, 1.0, 9.96, 34.0, 99.6, 1e5])
@pytest.mark.parametrize("value", [0.123456789, 7.77777, 98.7654321, 123456.789])
def test_rounding_is_below_a_twentieth_of_the_noise(value, error):
    shown = float(number(value, error=error).replace(",", ""))
    assert abs(shown - value) <= error / 10 * (1 + 1e-9)
    # And no digit is shown that is far below it.
    places = number(value, error=error).partition(".")[2]
    assert error >= 0.95 * 10.0 ** (1 - len(places)) or not places


@pytest.mark.parametrize("digits", [2, 4])
@pytest.mark.parametrize("value", [0.1, 0.123451, 1 / 3, 2.0, 9999.99, 12345.6, 1e-7, 5e-324, 0.0])
def test_at_most_is_never_less_and_hardly_more(value, digits):
    shown = float(at_most(value, digits=digits).replace(",", ""))
    assert value <= shown <= value * (1 + 10.0 ** (1 - digits)) + 5e-324


def test_short_numbers_and_shares():
    assert [short(x) for x in (0.123456, 9999.7, 123456.7, 2.0, 1e16)] == [
        "0.1235",
        "10,000",
        "123,457",
        "2",
        "1e+16",
    ]
    assert [percent(x) for x in (0.95, 0.12345, 1, 0)] == ["95%", "12.3%", "100%", "0%"]


ROOT = Path(discreet.__file__).parent
READ = ("report", "server", "cli", "cards", "tables", "query", "ranges", "intervals", "ledger")
"""What people read is made here: no format of a number, be it of a budget, a bound or a level."""
OWN = {
    # Labels have no separators: 1990 is a year.
    "report/local_section.py {label:g}",
    "report/range_section.py {first:g}",
    "report/range_section.py {last:g}",
    "ranges/domain.py {self.edges[0]:g}",
    "ranges/domain.py {self.edges[-1]:g}",
    # What is read again.
    "cards/_numbers.py {decimal:f}",
    "cards/_numbers.py {decimal:e}",
    "server/middleware/monitoring.py {edge:g}",
    "server/middleware/monitoring.py {self._sums[route]:.6f}",
    "server/pages/tables.py {widths[0]:.2g}",
    "tables/suggest.py {self.lower:.17g}",
    "tables/suggest.py {self.upper:.17g}",
    "tables/suggest.py {self.granularity:.17g}",
    # No text, but a number of so many digits.
    "ledger/statement.py {amount:.12g}",
    "ranges/grid/plan.py {one.mean:.9g}",
    "accounting/guarantee.py {10 * delta:.3g}",
    "models/pate/_tune_aggregator.py {",
    # What is left, rounded by the ledger, and statements with as many digits as the limit has.
    "ledger/_filter_rules.py {",
    "ledger/statement.py {self.total:.{places}f}",
    "ledger/statement.py {self.left:.{places}f}",
    "ledger/statement.py {self.grant:.{places}f}",
    "ledger/statement.py {amount:.{_places(self.limit)}f}",
    "ledger/statement.py {one:>{size}.{places}f}",
    # Two places for an association between 0 and 1, in cells of a picture.
    "report/marginal_section.py {strength:.2f}",
    # Scales and steps that identify a mechanism, nine digits; a difference with its sign.
    "mechanisms/additive.py {",
    "mechanisms/scalar/best_noise.py {",
    # Formulas of the catalog.
    "audit/cases/local.py {",
    # Three places for statistics and p-values, as tables print them.
    "models/_inference_table.py {",
}


def test_what_is_shown_takes_its_numbers_from_one_module():
    """No format of digits stands anywhere else, but where it is argued above."""
    found = set()
    for path in ROOT.rglob("*.py"):
        name = path.relative_to(ROOT).as_posix()
        if name == "core/number_format.py" or name.startswith("report/drawing/"):
            continue
        digits = r"[gGeEfFn%]$" if name.startswith(READ) else r"\.\d+[gfe%]|%$"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
                spec = ast.unparse(node.format_spec)[2:-1]
                if re.search(digits, spec):
                    found.add(f"{name} {{{ast.unparse(node.value)}:{spec}}}")
    argued = {text: [one for one in OWN if text.startswith(one)] for text in found}
    assert [text for text, own in argued.items() if not own] == []
    assert OWN - {one for own in argued.values() for one in own} == set()


def test_pages_take_their_numbers_from_the_same_module():
    pages = (ROOT / "server" / "templates").glob("*.html")
    shown = "\n".join(page.read_text(encoding="utf-8") for page in pages)
    assert "| n }}" in shown
    assert not re.search(r"\|\s*(format|round)\b|%\.\d", shown)

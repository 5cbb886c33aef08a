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


OWN = {
    "core/number_format.py": "the formatters themselves",
    "report/drawing/": "coordinates",
    "server/middleware/monitoring.py": "for machines",
    "server/pages/tables.py": "what a form field holds, and reads again",
    "tables/suggest.py": "TOML, which is read again: all digits",
    "accounting/guarantee.py": "steps from one delta to the next, and no text",
    "ranges/grid/plan.py": "compares means to nine digits, and no text",
    "models/pate/_tune_aggregator.py": "rounds a parameter, and no text",
    "ledger/_filter_rules.py": "what is left, rounded down by the ledger",
    "mechanisms/additive.py": "scales and steps that identify a mechanism, nine digits",
    "mechanisms/scalar/best_noise.py": "a difference with its sign",
    "audit/cases/local.py": "formulas of the catalog",
    "ledger/statement.py": "reads an amount to twelve digits, and no text",
    "report/marginal_section.py": "two places for an association between 0 and 1, in cells",
    "models/_inference_table.py": "three places for statistics and p-values, as tables print them",
}


def test_what_is_shown_takes_its_numbers_from_one_module():
    """No format of digits stands anywhere else, but where it is argued above."""
    root = Path(discreet.__file__).parent
    found, used = [], set()
    for path in root.rglob("*.py"):
        name = path.relative_to(root).as_posix()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FormattedValue) and node.format_spec is not None:
                parts = node.format_spec.values
                spec = "".join(x.value for x in parts if isinstance(x, ast.Constant))
                if re.search(r"\.\d+[gfe%]|%$", spec):
                    own = [one for one in OWN if name.startswith(one)]
                    used.update(own)
                    found += [] if own else [f"{name}:{node.lineno} {spec}"]
    assert found == []
    assert set(OWN) - used == set()

"""What a page says that its code prints is compared with what is printed."""

import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest

compare = runpy.run_path(str(Path(__file__).parents[2] / "conftest.py"))["compare"]


def page(kind, *, says, prints):
    region = SimpleNamespace(lexemes={"arguments": kind})
    return SimpleNamespace(parsed=says, namespace={"__printed__": prints}, region=region)


@pytest.mark.parametrize(
    ("kind", "says", "prints"),
    [
        ("output", "12 people\n", "12 people\n"),
        ("output", "12 people of ...\n", "12 people of 40, and so on\n"),
        ("noisy", "12 people (-3.5 to 1,200)\n", "  7 people (1e-9 to 44)\n"),
    ],
)
def test_a_true_page_passes(kind, says, prints):
    compare(page(kind, says=says, prints=prints))


@pytest.mark.parametrize(
    ("kind", "says", "prints"),
    [
        ("output", "12 people\n", "13 people\n"),
        ("output", "12 people\n", ""),
        ("noisy", "12 people\n", "12 rows\n"),
        ("noisy", "12 people\n", "12 people of 40\n"),
    ],
)
def test_a_false_page_fails(kind, says, prints):
    with pytest.raises(AssertionError, match="The page says"):
        compare(page(kind, says=says, prints=prints))

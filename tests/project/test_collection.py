"""Code that silently stops being collected would look like a green run."""

from pathlib import Path

import pytest

from conftest import COLLECTED, WHOLE_TREE

ROOT = Path(__file__).parents[2]
FEWEST_TESTS = 1000  # raise it as the suite grows


@pytest.fixture
def collected(request):
    if not request.config.stash[WHOLE_TREE]:
        pytest.skip("only part of the tree was asked for")
    return request.config.stash[COLLECTED]


def test_the_whole_suite_was_collected(collected):
    assert collected.total() >= FEWEST_TESTS


def test_every_test_file_was_collected(collected):
    assert set(ROOT.glob("tests/**/test_*.py")) <= set(collected)


def test_every_code_block_of_the_pages_was_collected(collected):
    for page in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]:
        assert collected[page] == page.read_text(encoding="utf-8").count("```python"), page


def test_every_docstring_example_was_collected(collected):
    for module in ROOT.glob("src/**/*.py"):
        assert (collected[module] > 0) == (">>> " in module.read_text(encoding="utf-8")), module

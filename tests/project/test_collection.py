"""Code that silently stops being collected would look like a green run."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FEWEST_TESTS = 15_000  # raise it as the suite grows


@pytest.fixture
def collected(request):
    # The conftest that pytest loaded; importing it again would make other keys.
    keys = request.config.pluginmanager.get_plugin(str(ROOT / "conftest.py"))
    if not request.config.stash[keys.WHOLE_TREE]:
        pytest.skip("only part of the tree was asked for")
    return request.config.stash[keys.COLLECTED]


def test_the_whole_suite_was_collected(collected):
    assert collected.total() >= FEWEST_TESTS


def test_every_test_file_was_collected(collected):
    for pattern in ("tests/**/test_*.py", "research/tests/**/test_*.py"):
        assert set(ROOT.glob(pattern)) <= set(collected)


def test_every_code_block_of_the_pages_was_collected(collected):
    for page in [ROOT / "README.md", *ROOT.glob("docs/**/*.md")]:
        text = page.read_text(encoding="utf-8")
        kinds = ("```python", "```output", "```noisy", "<!-- skip: next -->")
        wanted = sum(map(text.count, kinds))
        assert collected[page] == wanted, page


def test_every_docstring_example_was_collected(collected):
    for module in [*ROOT.glob("src/**/*.py"), *ROOT.glob("research/src/**/*.py")]:
        assert (collected[module] > 0) == (">>> " in module.read_text(encoding="utf-8")), module

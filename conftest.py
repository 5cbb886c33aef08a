"""How every test run is set up: fixed examples, executed documentation, a guard on collection."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import settings
from sybil import Sybil
from sybil.document import PythonDocStringDocument
from sybil.parsers.doctest import DocTestParser
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser

ROOT = Path(__file__).parent
COLLECTED = pytest.StashKey[int]()
WHOLE_TREE = pytest.StashKey[bool]()

# "ci" draws the same examples every time; HYPOTHESIS_PROFILE=fresh looks for new ones.
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("fresh", deadline=None, print_blob=True, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

pages = Sybil(
    parsers=[PythonCodeBlockParser(), SkipParser()],
    patterns=["README.md", "docs/**/*.md"],
)
docstrings = Sybil(
    parsers=[DocTestParser()],
    patterns=["src/**/*.py"],
    document_types={".py": PythonDocStringDocument},
)
pytest_collect_file = (pages + docstrings).pytest()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the blocks of a page together, and count before any marker deselects."""
    for item in items:
        if item.path.suffix == ".md" or "src" in item.path.parts:
            item.add_marker(pytest.mark.xdist_group(str(item.path)))
    whole = {(ROOT / path).resolve() for path in config.getini("testpaths")}
    asked = {(config.invocation_params.dir / str(arg)).resolve() for arg in config.args}
    config.stash[WHOLE_TREE] = asked in (whole, {ROOT})
    config.stash[COLLECTED] = len(items)

"""How every test run is set up: fixed examples, executed documentation, a guard on collection."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings
from sybil import Sybil
from sybil.document import PythonDocStringDocument
from sybil.parsers.doctest import DocTestParser
from sybil.parsers.markdown import PythonCodeBlockParser, SkipParser
from sybil.sybil import SybilCollection

ROOT = Path(__file__).parent
COLLECTED = pytest.StashKey[Counter[Path]]()
WHOLE_TREE = pytest.StashKey[bool]()

# "ci" draws the same examples every time; HYPOTHESIS_PROFILE=fresh looks for new ones.
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("fresh", deadline=None, print_blob=True, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

BLOCKS = [PythonCodeBlockParser(), SkipParser()]
documentation = SybilCollection(
    [
        Sybil(parsers=BLOCKS, patterns=["README.md"]),
        Sybil(parsers=BLOCKS, path="docs", patterns=["*.md"]),
        Sybil(
            parsers=[DocTestParser()],
            path="src",
            patterns=["*.py"],
            document_types={".py": PythonDocStringDocument},
        ),
    ]
)
pytest_collect_file = documentation.pytest()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Count before any marker deselects."""
    whole = {(ROOT / path).resolve() for path in config.getini("testpaths")}
    asked = {(config.invocation_params.dir / str(arg)).resolve() for arg in config.args}
    config.stash[WHOLE_TREE] = asked in (whole, {ROOT})
    config.stash[COLLECTED] = Counter(item.path for item in items)

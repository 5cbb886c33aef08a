"""How every test run is set up: fixed examples, executed documentation, a guard on collection."""

from __future__ import annotations

import doctest
import io
import os
import re
from collections import Counter
from contextlib import redirect_stdout
from pathlib import Path

import pytest
from hypothesis import settings
from sybil import Example, Sybil
from sybil.document import PythonDocStringDocument
from sybil.evaluators.python import PythonEvaluator
from sybil.parsers.doctest import DocTestParser
from sybil.parsers.markdown import CodeBlockParser, SkipParser
from sybil.sybil import SybilCollection

ROOT = Path(__file__).parent
COLLECTED = pytest.StashKey[Counter[Path]]()
WHOLE_TREE = pytest.StashKey[bool]()

# "ci" draws the same examples every time; HYPOTHESIS_PROFILE=fresh looks for new ones.
settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile("fresh", deadline=None, print_blob=True, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))

NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e-?\d+)?")
python = PythonEvaluator()


def run(example: Example) -> None:
    """A block of code; what it prints may be shown below it."""
    with redirect_stdout(io.StringIO()) as printed:
        python(example)
    example.namespace["__printed__"] = printed.getvalue()


def compare(example: Example) -> None:
    """An `output` block is what the code above it prints; where it is `noisy`, but for numbers."""
    texts = [str(example.parsed), example.namespace["__printed__"]]
    if example.region.lexemes["arguments"] == "noisy":
        # Columns are as wide as the numbers in them.
        texts = [" ".join(NUMBER.sub("#", text).split()) for text in texts]
    want, got = (f"{text.rstrip()}\n" for text in texts)
    if not doctest.OutputChecker().check_output(want, got, doctest.ELLIPSIS):
        raise AssertionError(f"The page says:\n{want}\nThe code prints:\n{got}")


BLOCKS = [
    CodeBlockParser(language="python", evaluator=run),
    CodeBlockParser(language="output", evaluator=compare),
    CodeBlockParser(language="noisy", evaluator=compare),
    SkipParser(),
]
documentation = SybilCollection(
    [
        Sybil(parsers=BLOCKS, patterns=["README.md"]),
        Sybil(parsers=BLOCKS, path="docs", patterns=["*.md"]),
        *(
            Sybil(
                parsers=[DocTestParser()],
                path=path,
                patterns=["*.py"],
                document_types={".py": PythonDocStringDocument},
            )
            for path in ("src", "research/src")
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

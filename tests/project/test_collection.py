"""A folder that silently stops being collected would look like a green run."""

import pytest

from conftest import COLLECTED, WHOLE_TREE

FEWEST_TESTS = 40  # raise it as the suite grows


def test_the_whole_suite_was_collected(request):
    if not request.config.stash[WHOLE_TREE]:
        pytest.skip("only part of the tree was asked for")
    assert request.config.stash[COLLECTED] >= FEWEST_TESTS

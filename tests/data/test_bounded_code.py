"""Labels and codes: looked up, there and back."""

import numpy as np
import pytest

from discreet.core.errors import InvalidArgument
from discreet.data._integer_ops import BoundedCode, CodeRef, category_code

LABELS = ("a", "b", "a b", "(other)")


def number(exponent):
    return BoundedCode(code=CodeRef("x"), lower=-4, upper=7, kind="number", exponent=exponent)


def test_a_listed_label_is_its_position():
    bound = category_code(CodeRef("x"), LABELS)
    find = bound.locator()
    for place, label in enumerate(LABELS):
        assert find(label) == bound.locate(label) == place
    assert category_code(CodeRef("x"), (3, 5)).locate(np.int64(5)) == 1


@pytest.mark.parametrize("label", ["c", "", None, True, 1, ["a"], ("a", ["b"]), b"a"])
def test_what_is_no_label_is_refused(label):
    with pytest.raises(InvalidArgument, match="none that this expression can take"):
        category_code(CodeRef("x"), LABELS).locate(label)
    with pytest.raises(InvalidArgument, match="none that this expression can take"):
        category_code(CodeRef("x"), (0, 2)).locate(label)


@pytest.mark.parametrize("exponent", [-3, 0, 4])
def test_numbers_come_back(exponent):
    bound = number(exponent)
    for code in range(-4, 8):
        label = bound.label(code)
        assert label == code * 2.0**exponent
        assert isinstance(label, int) == (exponent >= 0 or code % 8 == 0)
        assert bound.locate(label) == code

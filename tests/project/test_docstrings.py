"""The help of a mechanism holds its theorem, the proof, the source and the conditions."""

import inspect
import typing

import pytest

import discreet
from discreet.mechanisms.mechanism import Mechanism


def constructors():
    for name in discreet.__all__:
        thing = getattr(discreet, name)
        if inspect.isfunction(thing):
            made = typing.get_type_hints(thing).get("return")
            if inspect.isclass(made) and issubclass(made, Mechanism):
                yield thing


MECHANISMS = sorted(constructors(), key=lambda function: function.__name__)


def test_the_mechanisms_are_found():
    assert {"gaussian", "laplace"} <= {function.__name__ for function in MECHANISMS}


@pytest.mark.parametrize("function", MECHANISMS, ids=lambda function: function.__name__)
@pytest.mark.parametrize("part", ["Theorem:", "Proof:", "Source:", "Needs:"])
def test_a_mechanism_states(function, part):
    assert part in function.__doc__


@pytest.mark.parametrize("name", [name for name in discreet.__all__ if name != "__version__"])
def test_what_is_public_is_documented(name):
    assert inspect.getdoc(getattr(discreet, name))

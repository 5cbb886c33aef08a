"""One word for one thing: what public functions call their arguments."""

import inspect
from types import ModuleType

import pytest

import discreet
from discreet.models import dp_sgd as sgd
from discreet.models import pate, regression
from discreet.tables.table import Table

# The word on the left has one name in this house, the one on the right.
OTHER_NAMES = {
    "confidence": "level",
    "eps": "epsilon",
    "how": "method",
    "n": "rows or clients",
    "n_rows": "rows",
    "num_rows": "rows",
    "per_unit": "max_rows_per_unit",
    "random_state": "bits, or seed for a simulation",
    "rng": "bits, or seed for a simulation",
    "size": "rows or clients",
    "way": "method",
}


def public():
    places = [discreet, discreet.local, discreet.disclosure, discreet.leakage, discreet.models]
    places += [discreet.ranges, discreet.intervals, discreet.learned, discreet.ask]
    for place in (*places, regression, sgd, pate):
        for name in place.__all__:
            found = getattr(place, name)
            if callable(found) and not isinstance(found, ModuleType):
                yield f"{place.__name__}.{name}", found
    for name, verb in vars(Table).items():
        if not name.startswith("_") and inspect.isfunction(verb):
            yield f"Table.{name}", verb


FOUND = dict(public())


def arguments(function) -> set[str]:
    try:
        return set(inspect.signature(function).parameters)
    except ValueError:  # an error's own class
        return set()


def test_there_are_many():
    assert len(FOUND) > 150


@pytest.mark.parametrize("name", FOUND)
def test_arguments_have_the_names_of_the_house(name):
    foreign = arguments(FOUND[name]) & set(OTHER_NAMES)
    assert not foreign, {word: OTHER_NAMES[word] for word in foreign}


@pytest.mark.parametrize("name", FOUND)
def test_bits_are_always_a_source_of_randomness(name):
    function = FOUND[name]
    if "bits" in arguments(function):
        said = inspect.signature(function).parameters["bits"].annotation
        assert "Bits" in str(said)


def test_a_foreign_word_is_noticed():
    assert arguments(lambda *, n, confidence: (n, confidence)) & set(OTHER_NAMES)

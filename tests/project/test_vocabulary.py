"""One word for one thing: names of arguments, and of the functions that messages recommend."""

import ast
import inspect
import re
from pathlib import Path
from types import ModuleType

import pytest

import discreet
from discreet.ledger.personal_budgets import PersonalBudgets
from discreet.models import dp_sgd, pate, regression
from discreet.tables.personalized_table import PersonalizedTable
from discreet.tables.table import Table
from tests.hostile.public import exported
from tests.hostile.public import public as callables

# The word on the left has one name here, the one on the right.
OTHER_NAMES = {
    "bits": "rng",
    "clients": "expected_clients",
    "currency": "measure",
    "eps": "epsilon",
    "how": "method",
    "n": "public_rows or expected_rows",
    "n_rows": "public_rows or expected_rows",
    "num_rows": "public_rows or expected_rows",
    "quasi": "quasi_identifiers",
    "random_state": "rng, or seed for a simulation",
    "rows_per_unit": "max_rows_per_unit",
    "size": "public_rows or expected_rows",
    "way": "method",
}


def public():
    places = [discreet, discreet.local, discreet.disclosure, discreet.audit, discreet.models]
    places += [discreet.ranges, discreet.intervals, discreet.blackbox, discreet.query]
    for place in (*places, regression, dp_sgd, pate):
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
def test_arguments_have_the_names_of_the_guide(name):
    foreign = arguments(FOUND[name]) & set(OTHER_NAMES)
    assert not foreign, {word: OTHER_NAMES[word] for word in foreign}


@pytest.mark.parametrize("name", FOUND)
def test_rng_is_always_a_random_source(name):
    function = FOUND[name]
    if "rng" in arguments(function):
        said = inspect.signature(function).parameters["rng"].annotation
        assert "RandomSource" in str(said)


def test_a_foreign_word_is_noticed():
    assert arguments(lambda *, n, quasi: (n, quasi)) & set(OTHER_NAMES)


# ── Remedies ─────────────────────────────────────────────────────────────────────────────────────

SOURCE = Path(discreet.__file__).parent
CALLED = re.compile(r"(?<![\w/])([a-z_]\w*)\(")
FORMULAS_AND_OTHERS = {
    *("ln", "feature", "sample", "split"),
    *("astype", "asarray", "reshape", "timedelta64", "toarray"),
}
"""In messages: formulas, plurals as "feature(s)", and functions of NumPy and pandas."""


def messages(tree):
    """The texts in what a module raises."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            for part in ast.walk(node.exc):
                if isinstance(part, ast.Constant) and isinstance(part.value, str):
                    yield part.value


def named_remedies(known):
    """Functions that a message tells the reader to call, and that nobody can call."""
    for path in SOURCE.rglob("*.py"):
        for message in messages(ast.parse(path.read_text(encoding="utf-8"))):
            for name in CALLED.findall(message):
                if name not in known:
                    yield f"{path.relative_to(SOURCE)}: {name}() in {message!r}"


def test_messages_name_functions_that_exist():
    known = {name.rpartition(".")[2] for name in (*callables(), *exported())}
    known |= {*dir(PersonalizedTable), *dir(PersonalBudgets)}
    assert not set(named_remedies(known | FORMULAS_AND_OTHERS))
    assert set(named_remedies(FORMULAS_AND_OTHERS))

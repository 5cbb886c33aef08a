"""What is not private has no guarantee: every public call is made, and all that it gives walked."""

import ast
import dataclasses
import inspect
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import discreet
from discreet import disclosure
from discreet.accounting.guarantee import Guarantee
from discreet.core.errors import NotCertified
from discreet.disclosure import (
    category_hierarchy,
    hierarchy_level,
    interval_hierarchy,
    pram,
    symmetric_pram,
)
from discreet.mechanisms.mechanism import Mechanism
from discreet.noise.random_source import seeded_rng

VALUES = np.linspace(0, 10, 40)
TABLE = pl.DataFrame({"age": [1, 2, 3, 4] * 3, "ill": list("abc") * 4})
AGE = interval_hierarchy([0, 2.5, 5])
MATRIX = pram([[0.8, 0.2], [0.2, 0.8]])

CALLS = {
    "k_anonymize": lambda: disclosure.k_anonymize(
        TABLE, quasi_identifiers={"age": AGE}, sensitive=["ill"], k=3
    ),
    "anonymity_sets": lambda: disclosure.anonymity_sets(VALUES, released=VALUES, half_width=1),
    "disclosure_risk": lambda: disclosure.disclosure_risk(
        TABLE, quasi_identifiers=["age"], sensitive=["ill"]
    ),
    "hierarchy_level": lambda: hierarchy_level(AGE, 1),
    "block_pram": lambda: disclosure.block_pram([([0], [[1]])]),
    "category_hierarchy": lambda: category_hierarchy({"a": "b"}),
    "anonymity_set_size": lambda: disclosure.anonymity_set_size(VALUES, at=VALUES, window=1),
    "adaptive_jitter": lambda: disclosure.adaptive_jitter(
        VALUES, half_width=1, window=1, cap=2, rng=seeded_rng(1)
    ),
    "expected_anonymity_set_size": lambda: disclosure.expected_anonymity_set_size(
        VALUES, at=VALUES, half_width=1, window=1
    ),
    "group_sizes": lambda: disclosure.group_sizes([0, 1], matrix=MATRIX),
    "histogram": lambda: disclosure.histogram(VALUES, edges=[0, 5, 10]),
    "interval_hierarchy": lambda: AGE,
    "k_noise": lambda: disclosure.k_noise(VALUES, k=3, rng=seeded_rng(1)),
    "k_pram": lambda: disclosure.k_pram(VALUES, edges=[0, 5, 10], k=3, rng=seeded_rng(1)),
    "symmetric_pram": lambda: symmetric_pram(0.9, categories=3),
    "ks_distance": lambda: disclosure.ks_distance(VALUES, other=VALUES),
    "probable_anonymity_set_size": lambda: disclosure.probable_anonymity_set_size([10]),
    "pram": lambda: (MATRIX, MATRIX.apply([0, 1], rng=seeded_rng(1)), MATRIX.estimate([5, 5])),
    "prefix_hierarchy": lambda: disclosure.prefix_hierarchy(3, keep=[1]),
    "safe_k_delta_published": lambda: disclosure.safe_k_delta_published(k=5, rate=0.1, epsilon=1),
    "k_noise_half_width": lambda: disclosure.k_noise_half_width(VALUES, k=3),
    "guaranteed_anonymity_set_size": lambda: disclosure.guaranteed_anonymity_set_size(
        VALUES, at=VALUES, delta=1, half_width=1
    ),
    "utility": lambda: disclosure.utility(VALUES, released=VALUES + 1),
    "published_table": lambda: disclosure.published_table({"sex": ["f"], "count": ["x"]}),
    "audit_tables": lambda: disclosure.audit_tables(
        [disclosure.published_table({"sex": ["f", "m", "Total"], "count": ["x", 12, 13]})]
    ),
    "suggest_suppression": lambda: disclosure.suggest_suppression(
        [disclosure.published_table({"sex": ["f", "m", "x", "Total"], "count": ["x", 12, 30, 44]})]
    ),
    "wasserstein": lambda: disclosure.wasserstein(VALUES, other=VALUES),
    "width_after_releases": lambda: disclosure.width_after_releases(2, half_width=1),
    "safe_k_delta": lambda: disclosure.safe_k_delta(k=5, rate=0.1, epsilon=1),
}
BRIDGES = {
    "safe_k_anonymity": lambda: disclosure.safe_k_anonymity(
        columns={"age": hierarchy_level(AGE, 1)}, rate=0.1, k=3, epsilon=1
    ),
    "private_points": lambda: disclosure.private_points(edges=[0, 5, 10], epsilon=1),
}


def public():
    return {name: getattr(disclosure, name) for name in disclosure.__all__}


def parts(thing, depth=4):
    """A thing, all its fields and properties, and theirs."""
    yield thing
    if depth == 0:
        return
    if isinstance(thing, tuple | list):
        inner = list(thing)
    elif isinstance(thing, dict):
        inner = list(thing.values())
    elif dataclasses.is_dataclass(thing):
        inner = [
            getattr(thing, name)
            for name in dir(thing)
            # A result's `guarantee` is listed for all of them, and missing here.
            if not name.startswith("_") and not inspect.ismethod(getattr(thing, name, parts))
            if hasattr(thing, name)
        ]
    else:
        return
    for one in inner:
        yield from parts(one, depth - 1)


def test_every_public_function_is_called_here():
    functions = {name for name, thing in public().items() if inspect.isfunction(thing)}
    assert functions == {*CALLS, *BRIDGES}


@pytest.fixture(scope="module")
def account(tmp_path_factory):
    ledger = discreet.Ledger(f"sqlite:///{tmp_path_factory.mktemp('ledger')}/budget.db")
    return ledger.account("a", limit=discreet.pure_dp(1))


@pytest.mark.parametrize("name", CALLS)
def test_what_is_not_private_holds_no_guarantee(name, account):
    made = CALLS[name]()
    for part in parts(made):
        assert not isinstance(part, Guarantee | Mechanism)
        assert not hasattr(part, "guarantee")
        assert not hasattr(part, "certify")
    with pytest.raises(NotCertified):
        account.charge(made, label="x")
    assert len(account.history) == 1  # opened, and nothing else


@pytest.mark.parametrize("name", BRIDGES)
def test_the_walk_would_find_a_guarantee(name):
    assert any(isinstance(part, Guarantee) for part in parts(BRIDGES[name]()))


def test_only_the_two_classes_of_bridges_know_guarantees():
    known = {
        name
        for name, thing in public().items()
        if inspect.isclass(thing) and (issubclass(thing, Mechanism) or hasattr(thing, "guarantee"))
    }
    assert known == {"SafeKAnonymousTable", "PrivatePoints", "BinnedPoints"}


def test_only_the_two_modules_of_bridges_import_what_makes_one():
    folder = Path(disclosure.__file__).parent
    for module in folder.glob("*.py"):
        tree = ast.parse(module.read_text(encoding="utf-8"))
        imported = {
            node.module
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom) and node.module
        }
        packages = {name.split(".")[1] for name in imported if name.startswith("discreet.")}
        allowed = {"_safe_k_anonymity.py", "_private_points.py"}
        forbidden = {"accounting", "mechanisms", "ledger", "tables"}
        assert module.name in allowed or not packages & forbidden
    assert allowed <= {module.name for module in folder.glob("*.py")}

"""`Any` in what public names return: each one has a reason, and none is there without one."""

import inspect
import re

import pytest

import discreet
from tests.hostile.public import exported, public

_SHAPE = (
    "a number for a result that is one number, otherwise one for each row: which of both is known "
    "when the result is made. `float(result)` and `result.values` have one type"
)
_CELL = "a cell has the type of its column: number, text, boolean, date or nothing"
_ENDS = "a number for one range, an array for arrays of ends; labels are of any type"
_JSON = "an object to be written by `json.dumps`: what it holds differs from kind to kind"
_GIVEN = "of the kind that the caller gave: a frame, an estimator, labels"

REASONS = {
    "value": _SHAPE,
    "std": _SHAPE,
    "interval": _SHAPE,
    "keys": _CELL,
    "to_dict": _CELL,
    "answer": _ENDS,
    "answer_std": _ENDS,
    "answer_interval": _ENDS,
    "describe": _JSON,
    "parameters": _JSON,
    "content": _JSON,
    "release": _GIVEN,
    "predict": _GIVEN,
    "train_student": _GIVEN,
    "estimate": "each kind of randomizer has an estimate of its own class",
    "parse": "an array of the integers or doubles that the kind of report has",
    "to_matplotlib": "a figure of a library that is optional",
}


def untyped():
    """Public callables and properties whose result a type checker knows nothing about."""
    found = {}
    for name, made in public().items():
        function = made.__init__ if inspect.isclass(made) else made
        found[name] = getattr(function, "__annotations__", {}).get("return", "")
    for name, made in exported().items():
        if not inspect.isclass(made):
            continue
        for member in (one for one in dir(made) if not one.startswith("_")):
            stored = inspect.getattr_static(made, member)
            # Properties, cached ones, and those that fields of a subclass may replace.
            getter = next(
                (g for g in (getattr(stored, n, None) for n in ("fget", "func", "_find")) if g),
                None,
            )
            if getter is not None:
                found[f"{name}.{member}"] = getattr(getter, "__annotations__", {}).get("return", "")
    return {name: str(kind) for name, kind in found.items() if re.search(r"\bAny\b", str(kind))}


def test_each_any_has_a_reason():
    unargued = {n: k for n, k in untyped().items() if n.rpartition(".")[2] not in REASONS}
    assert not unargued


def test_each_reason_is_needed():
    assert set(REASONS) == {name.rpartition(".")[2] for name in untyped()}


@pytest.mark.parametrize("name", ["count", "mean", "quantiles", "forecast", "release", "ranges"])
def test_an_editor_knows_what_a_table_returns(name):
    kind = getattr(discreet.Table, name).__annotations__["return"]
    assert not re.search(r"\bAny\b|\bobject\b", kind), kind

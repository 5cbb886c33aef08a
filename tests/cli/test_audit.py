"""Every mechanism of the package is attacked by `discreet audit`, models and bridges too."""

import dataclasses
import functools
import importlib
import inspect
import pkgutil

import pytest

import discreet
from discreet.audit.case import AuditCase
from discreet.audit.cases import models as model_cases
from discreet.audit.runner import FAMILY, audit_case
from discreet.cli.audit import all_cases
from discreet.mechanisms.mechanism import Mechanism

# What lets numbers out; of an interval that is planned, also many at once.
VERBS = ("release", "randomize", "answer", "answers", "choose")
MODELS = {case.name: case for case in model_cases.cases()}


def subclasses(kind):
    for one in kind.__subclasses__():
        yield one
        yield from subclasses(one)


def mechanisms():
    for module in pkgutil.walk_packages(discreet.__path__, "discreet."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    # Tests and benchmarks make some of their own.
    return {one for one in subclasses(Mechanism) if one.__module__.startswith("discreet.")}


def test_every_mechanism_is_attacked(monkeypatch):
    kinds, seen = mechanisms(), set()

    def watched(method):
        @functools.wraps(method)
        def called(self, *arguments, **named):
            seen.add(type(self))
            return method(self, *arguments, **named)

        return called

    for kind in kinds:
        for verb in VERBS:
            if inspect.isfunction(kind.__dict__.get(verb)):
                monkeypatch.setattr(kind, verb, watched(kind.__dict__[verb]))
    for case in all_cases():
        case.draw(case.left, 2, 1)
    names = {f"{kind.__module__}.{kind.__name__}" for kind in kinds if not inspect.isabstract(kind)}
    assert len(names) > 40
    assert names - {f"{kind.__module__}.{kind.__name__}" for kind in seen} == set()


def test_names_are_their_own():
    names = [case.name for case in all_cases()]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("case", MODELS.values(), ids=lambda case: case.name)
def test_no_model_is_accused(case: AuditCase) -> None:
    row = audit_case(case, failure_probability=FAMILY / 100, samples=min(case.samples, 300), seed=5)
    assert row.verdict in ("holds", "not refuted")


@pytest.mark.parametrize(
    ("name", "claim"),
    [
        ("PATE, whether a question is answered", (0.1, 0.0)),
        ("PATE, the answer", (0.1, 0.0)),
        ("a function with learned ranges", (0.2, 0.0)),
        ("points in bins", (0.1, 0.0)),
    ],
)
def test_a_smaller_claim_is_refuted(name, claim):
    case = MODELS[name]
    wrong = dataclasses.replace(case, claimed=claim, laws=None, broken=True)
    samples = min(case.samples, 20_000)
    assert (
        audit_case(wrong, failure_probability=FAMILY, samples=samples, seed=5).verdict == "BROKEN"
    )

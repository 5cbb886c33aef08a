"""The names of the package: loaded when they are used, complete, and where the stub says."""

import subprocess
import sys

import pytest

import discreet


def python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_importing_loads_nothing_that_is_slow():
    loaded = python("import sys, discreet; print(*sys.modules)").split()
    ours = {name for name in loaded if name.startswith("discreet.")}
    slow = {"numpy", "scipy", "duckdb", "narwhals", "sklearn", "click", "rich"}
    assert ours == {"discreet.core", "discreet.core._lazy_import"}
    assert slow.isdisjoint(loaded)


def test_every_name_can_be_the_first():
    # Each in a process that has used no other one; the libraries are loaded once, for all.
    told = python("""
import os, sys
import duckdb, narwhals, numpy, scipy.optimize, scipy.special, scipy.stats, sklearn.linear_model
import discreet
for name in discreet.__all__:
    child = os.fork()
    if not child:
        os._exit(getattr(discreet, name) is None)
    if os.waitpid(child, 0)[1]:
        print(name)
""")
    assert told == ""


@pytest.mark.parametrize(
    "package",
    [discreet.models, discreet.audit, discreet.ranges, discreet.intervals],
    ids=lambda package: package.__name__,
)
def test_packages_offer_their_names_too(package):
    assert dir(package) == package.__all__
    assert all(getattr(package, name) is not None for name in package.__all__)


def test_completion_offers_the_public_names_and_no_others():
    assert set(dir(discreet)) == {*discreet.__all__, "__version__"}
    assert {"table", "connect", "Ledger", "local", "disclosure", "blackbox"} <= set(dir(discreet))


def test_the_stub_lists_what_it_imports():
    namespace = {}
    exec("from discreet import *", namespace)
    assert set(discreet.__all__) <= set(namespace)


def test_a_wrong_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'tabel'"):
        _ = discreet.tabel

"""Names that are imported when they are first used."""

import importlib

import pytest

import discreet
from discreet.core._lazy_import import lazy_exports


def test_a_package_offers_what_its_stub_names():
    find, names, public = lazy_exports("discreet")
    assert public == sorted(discreet.__all__)
    assert names() == [*public, "__version__"]
    for name in public:
        assert find(name) is getattr(discreet, name)
    with pytest.raises(AttributeError, match="module 'discreet' has no attribute 'nothing'"):
        find("nothing")


def test_a_module_is_found_as_a_name():
    modules = [name for name in discreet.__all__ if importlib.util.find_spec(f"discreet.{name}")]
    assert modules
    for name in modules:
        assert getattr(discreet, name) is importlib.import_module(f"discreet.{name}")

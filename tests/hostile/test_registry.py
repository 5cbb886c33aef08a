"""No public callable takes private data without a door, or without a reason why it needs none."""

from __future__ import annotations

import pytest

from tests.hostile.public import public
from tests.hostile.registry import DOORS, METHODS_WITHOUT_DATA, WITHOUT_DATA, covered, excused


def test_every_public_callable_has_a_door_or_a_reason():
    known = covered()
    missing = sorted(name for name in public() if name not in known and not excused(name))
    assert not missing, (
        "say in tests/hostile/registry.py why these take no private data, or register doors: "
        + ", ".join(missing)
    )


def test_doors_cover_what_there_is():
    assert not sorted(covered() - set(public()))


def test_reasons_are_about_what_there_is():
    names = public()
    last = {name.rpartition(".")[2] for name in names}
    for reason, listed in METHODS_WITHOUT_DATA.items():
        assert set(listed) <= last, (reason, sorted(set(listed) - last))
    for reason, listed in WITHOUT_DATA.items():
        unused = [
            one for one in listed if not any(n == one or n.startswith(one + ".") for n in names)
        ]
        assert not unused, (reason, unused)


def test_a_new_callable_would_be_noticed():
    assert not excused("discreet.private_mode.release")
    assert not excused("discreet.Table.mode")
    assert not excused("discreet.local.new_oracle.randomize")


def test_doors_have_names_of_their_own():
    names = [door.name for door in DOORS]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("door", DOORS, ids=lambda door: door.name)
def test_a_door_names_what_it_covers(door):
    assert door.covers

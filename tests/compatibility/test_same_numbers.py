"""Planned errors, sensitivities, costs and seeded releases are those of version 0.1, bit by bit.

What goes through linear algebra (models, estimates of ranges) is compared to ten digits: its last
bits differ between processors. To record: ``python -m tests.compatibility.record numbers``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.compatibility import planned, seeded_releases
from tests.compatibility.example import read_json, same, write_rows

RECORDED: dict[str, Any] = read_json("same_numbers.json")
MODELS: dict[str, Any] = read_json("same_to_ten_digits.json")


@pytest.mark.parametrize(
    ("setting", "amount", "names"), planned.cases(), ids=lambda part: str(part)
)
def test_planned_questions(setting: str, amount: str, names: tuple[str, ...]) -> None:
    name = f"planned: {setting} / {amount} / {' + '.join(names)}"
    assert planned.planned(setting, amount, names) == RECORDED[name]


def test_whole_queries() -> None:
    assert planned.queries_as_sql() == RECORDED["sql"]


def test_every_planned_question_is_tried() -> None:
    recorded = [name for name in RECORDED if name.startswith("planned: ")]
    assert len(recorded) == len(planned.cases()) >= 90


def test_tables(tmp_path: Path) -> None:
    found = seeded_releases.of_tables(write_rows(tmp_path / "rows.csv"))
    assert len(found) >= 25
    recorded = RECORDED["tables"]
    assert found.keys() == recorded.keys()
    assert [one for one in found if not _equal(one, found[one], recorded[one])] == []


@pytest.mark.parametrize("name", sorted(seeded_releases.EXACT))
def test_seeded(name: str) -> None:
    found = seeded_releases.EXACT[name]()
    recorded = RECORDED[name]
    assert found.keys() == recorded.keys()
    different = [one for one in found if not _equal(name, found[one], recorded[one])]
    assert different == []


def _equal(name: str, found: object, recorded: object) -> bool:
    """Bit by bit; plans of ranges and grids are searched for by linear algebra: to nine digits."""
    return same(found, recorded) if name.startswith(("ranges", "grid")) else found == recorded


def test_a_digit_that_differs_is_noticed() -> None:
    assert same({"a": [(1.0).hex(), 2]}, {"a": [(1 + 1e-12).hex(), 2]})
    assert not same({"a": [(1.0).hex(), 2]}, {"a": [(1 + 1e-6).hex(), 2]})
    assert not same({"a": [(1.0).hex(), 2]}, {"a": [(1.0).hex(), 3]})


def test_models() -> None:
    found = seeded_releases.of_models()
    assert found.keys() == MODELS.keys()
    different = {one: (found[one], MODELS[one]) for one in found if found[one] != MODELS[one]}
    assert different == {}

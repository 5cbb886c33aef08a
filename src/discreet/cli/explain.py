"""`discreet explain`: what a guarantee means for an attacker."""

from __future__ import annotations

import json
from pathlib import Path

from discreet.accounting.guarantee import Guarantee, approx_dp, describe, gdp, pure_dp, zcdp
from discreet.core import canonical_json as canonical
from discreet.core.errors import InvalidArgument
from discreet.core.relation import NeighboringRelation
from discreet.report.plot import plot

Budget = tuple[float | None, float | None, float | None, float | None]
"""Epsilon, delta, rho and mu."""


def run(
    budget: Budget, file: Path | None, *, relation: str, picture: Path | None, as_json: bool
) -> int:
    """Print what any attacker gains from a release with this guarantee, at most."""
    guarantee = _stated(budget, NeighboringRelation[relation]) if file is None else _read(file)
    if file is not None and any(one is not None for one in budget):
        raise InvalidArgument("Give a file, or a budget, not both.")
    meaning = guarantee.meaning()
    if picture is not None:
        plot(meaning, picture)
    if as_json:
        content = {
            "guarantee": json.loads(guarantee.to_json()),
            "words": meaning.words(),
            "rows": meaning.rows(),
        }
        print(json.dumps(content, indent=1, allow_nan=False))
    else:
        print(f"{describe(guarantee.event)}, {guarantee.relation.value}\n\n{meaning}")
    return 0


def _stated(budget: Budget, relation: NeighboringRelation) -> Guarantee:
    epsilon, delta, rho, mu = budget
    match (epsilon is not None, delta is not None, rho is not None, mu is not None):
        case (True, False, False, False):
            return pure_dp(_known(epsilon), relation=relation)
        case (True, True, False, False):
            return approx_dp(_known(epsilon), _known(delta), relation=relation)
        case (False, False, True, False):
            return zcdp(_known(rho), relation=relation)
        case (False, False, False, True):
            return gdp(_known(mu), relation=relation)
        case _:
            raise InvalidArgument(
                "Give --epsilon, --epsilon with --delta, --rho, --mu, or the JSON of a release."
            )


def _known(value: float | None) -> float:
    assert value is not None  # noqa: S101 - the case says so
    return value


def _read(path: Path) -> Guarantee:
    """The guarantee in the JSON of a card, a release, a result or a report."""
    with canonical.reading("the JSON of a release with a guarantee"):
        content = json.loads(path.read_text(encoding="utf-8"))
        found = content.get("privacy") or content.get("guarantee", content)
        found = {name: found[name] for name in ("event", "relation")}
        return Guarantee.from_json(json.dumps(found))

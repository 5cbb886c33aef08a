"""Other mechanisms that could answer instead, judged on the same public inputs (A42)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from discreet.core.errors import InvalidArgument, RelationMismatch
from discreet.core.relation import Relation
from discreet.mechanisms.mechanism import Mechanism
from discreet.models.learned.blackbox import Shape
from discreet.models.learned.choose import Task
from discreet.models.learned.mechanism import ask_alternative
from discreet.noise.bits import seeded

RUNS = 6
_MOST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Rated:
    """A mechanism with its mean absolute error on public inputs."""

    name: str
    mechanism: Mechanism
    error: float


def check(name: str, mechanism: Mechanism, task: Task) -> None:
    """Refuse what is under another relation, or promises less than is asked for."""
    if task.adjacency.group > 1:
        raise InvalidArgument("alternatives protect one record: leave them out for a group.")
    if not isinstance(mechanism, Mechanism):
        raise InvalidArgument(f"The alternative {name!r} must be a mechanism.")
    guarantee = mechanism.guarantee
    if guarantee.relation is not Relation.REPLACE_ONE:
        raise RelationMismatch(
            f"The alternative {name!r} must be under {Relation.REPLACE_ONE!r}, "
            f"is under {guarantee.relation!r}."
        )
    if guarantee.epsilon(float(task.delta)) > float(task.epsilon) * (1 + 1e-12):
        raise InvalidArgument(f"The alternative {name!r} promises less than what is asked for.")


def rate(name: str, mechanism: Mechanism, task: Task, *, shape: Shape, origin: float) -> Rated:
    """Release public inputs a few times, with bits that are good for nothing else."""
    few, bits = task.sample(_MOST), seeded(0)
    errors = [
        abs(ask_alternative(mechanism, shape.given(rows), bits) - origin - said)
        for rows, said in zip(few.inputs, few.said, strict=True)
        for _ in range(RUNS)
    ]
    return Rated(name=name, mechanism=mechanism, error=float(np.mean(errors)))

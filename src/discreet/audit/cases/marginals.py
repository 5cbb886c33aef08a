"""Many tables at once, registered for the audit; and the mistakes that their noise invites."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from discreet.audit.case import AuditCase, broken_case
from discreet.core.relation import NeighboringRelation
from discreet.marginals.columns import MarginalColumn
from discreet.marginals.counting import count_tables
from discreet.marginals.design import TableKey, measured, support
from discreet.marginals.plan import MarginalPlan, plan_tables
from discreet.marginals.spine import Spine
from discreet.noise.distribution import Ints
from discreet.noise.random_source import seeded_rng
from discreet.query.budget import QueryBudget, budget

_SIZES = (3, 5)
_TABLES: tuple[TableKey, ...] = ((0, 1),)
_ROWS = 8
_SAMPLES = 20_000
ADD, REPLACE = NeighboringRelation.ADD_REMOVE, NeighboringRelation.REPLACE_ONE
Rows = tuple[tuple[int, int], ...]
NOBODY: Rows = ()
FIRST: Rows = ((0, 0),) * _ROWS
LAST: Rows = ((0, 2),) * _ROWS
"""In the same cell, or as far away as the smallest column allows: what moves contrasts most."""


def cases() -> tuple[AuditCase, ...]:
    """Each on the neighbors that move it most."""
    return (
        _sound("many tables, gaussian", _plan(budget(rho=0.1)), NOBODY, FIRST),
        _sound("many tables, gaussian, replace one", _plan(budget(rho=0.1), REPLACE), FIRST, LAST),
        _sound("many tables, laplace", _plan(budget(epsilon=1)), NOBODY, FIRST),
        _sound("many tables, spine", _tree(budget(rho=0.1)), NOBODY, FIRST),
        _sound("many tables, spine, replace one", _tree(budget(rho=0.1), REPLACE), FIRST, LAST),
        *_mistakes(),
    )


def _mistakes() -> tuple[AuditCase, ...]:
    """What must be caught: the releases differ from ours in one place."""
    plan = _plan(budget(rho=0.02))
    replaced = _plan(budget(rho=0.02), REPLACE)
    once = _plan(budget(rho=0.02), rows=1)
    last = len(plan.mechanisms) - 1

    def shared(rows: Rows, n: int, seed: int) -> object:
        # The same draw in every group: the cell less the total carries no noise.
        exact = _exact(plan, rows)
        noise = np.asarray(plan.mechanisms[0].release(np.zeros(n, np.int64), rng=seeded_rng(seed)))
        return (exact[-1].ravel()[0] + noise) - (exact[0] + noise)

    def twice(rows: Rows, n: int, seed: int) -> object:
        place, values = plan._design.places[last], _exact(plan, rows)[last]  # noqa: SLF001 - audited from inside
        for axis, (i, level) in enumerate(place):
            values = plan.columns[i].contrasts(values, axis, level)
        return _along(plan, last, values, n, seed)

    def few(rows: Rows, n: int, seed: int) -> object:
        return _along(once, last, _exact(once, rows)[last], n, seed)

    def public_total(rows: Rows, n: int, seed: int) -> object:  # noqa: ARG001 - there is no noise
        return np.full(n, int(_exact(replaced, rows)[0]))

    def wrapped(rows: Rows, n: int, seed: int) -> object:
        # Contrasts are cut, and not counts: at this count 64 bits end before that.
        place, most = ((1, 1),), 1 << 61
        table = np.array([(1 << 61) - 1 + len(rows), 0, 0, 0, 0])
        found = np.clip(plan.columns[1].contrasts(table, 0, 1), -most, most)
        at = plan._design.places.index(place)  # noqa: SLF001 - audited from inside
        noisy = plan.mechanisms[at].release(np.zeros((n, 5), np.int64), rng=seeded_rng(seed))
        return np.sign((np.asarray(noisy) + found)[:, 0])

    return (
        _broken("many tables, noise shared", shared, plan, why="one draw for all groups"),
        _broken("many tables, centered twice", twice, plan, why="contrasts of contrasts"),
        _broken("many tables, limit of one row", few, plan, why="R rows charged as one"),
        _broken(
            "many tables, total left out", public_total, replaced, why="a filter makes it private"
        ),
        _broken("many tables, wrapped counts", wrapped, plan, why="cut after 64 bits ended"),
    )


def _plan(
    amount: QueryBudget, relation: NeighboringRelation = ADD, *, rows: int = _ROWS
) -> MarginalPlan:
    columns = tuple(
        [
            MarginalColumn(name=name, labels=tuple(range(size)), chain=(1, size))
            for name, size in zip("ab", _SIZES, strict=True)
        ]
    )
    return plan_tables(columns, _TABLES, budget=amount, relation=relation, rows=rows)


def _tree(amount: QueryBudget, relation: NeighboringRelation = ADD) -> MarginalPlan:
    """Of the second column, its halves above it."""
    plan = _plan(amount, relation)
    halves = MarginalColumn(name="half", labels=(0, 1), chain=(1, 2))
    tree = Spine(columns=(2, 1), parents=(np.zeros(2, np.int64), np.array([0, 0, 1, 1, 1])))
    return plan_tables(
        (*plan.columns, halves),
        _TABLES,
        budget=amount,
        relation=relation,
        rows=_ROWS,
        spine=tree,
    )


def _exact(plan: MarginalPlan, rows: Rows) -> tuple[Ints, ...]:
    """What is measured, without noise, as the plan measures it."""
    design = plan._design  # noqa: SLF001 - audited from inside
    codes = np.array(rows, dtype=np.int64).reshape(-1, len(_SIZES)).T
    more = len(plan.columns) - len(_SIZES)
    codes = design.coded(np.vstack([codes, np.zeros((more, codes.shape[1]), dtype=np.int64)]))
    sizes = [column.size for column in plan.columns]
    counted = count_tables([codes], sizes, [support(place) for place in design.places])
    return tuple(
        [
            measured(place, counted[support(place)], plan.columns, plain=design.plain)
            for place in design.places
        ]
    )


def _along(plan: MarginalPlan, place: int, values: Ints, n: int, seed: int) -> NDArray[np.int64]:
    """Noisy contrasts of one group, along those of one row in the first cell."""
    drawn = plan.mechanisms[place].release(np.tile(values.ravel(), (n, 1)), rng=seeded_rng(seed))
    found: NDArray[np.int64] = np.asarray(drawn) @ _exact(plan, FIRST)[place].ravel()
    return found


def _sound(name: str, plan: MarginalPlan, left: Rows, right: Rows) -> AuditCase:
    """All groups, along the direction in which neighbors differ, each weighed by its noise."""
    ends = [_exact(plan, rows) for rows in (left, right)]
    away = [b - a for a, b in zip(*ends, strict=True)]
    laws = plan._design.laws  # noqa: SLF001 - audited from inside

    def draw(rows: Rows, n: int, seed: int) -> object:
        source, total = seeded_rng(seed), np.zeros(n)
        exact = _exact(plan, rows)
        for mechanism, values, way, law in zip(plan.mechanisms, exact, away, laws, strict=True):
            drawn = mechanism.release(np.tile(values.ravel(), (n, 1)), rng=source)
            total += np.asarray(drawn).reshape(n, -1) @ way.ravel() / law.variance
        return total

    return AuditCase(
        name=name,
        claimed=plan.guarantee,
        draw=draw,
        left=left,
        right=right,
        samples=_SAMPLES,
        mechanism=plan,
    )


def _broken(
    name: str, draw: Callable[[Rows, int, int], object], plan: MarginalPlan, *, why: str
) -> AuditCase:
    return broken_case(name, draw, NOBODY, FIRST, claimed=plan.guarantee, why=why, samples=_SAMPLES)

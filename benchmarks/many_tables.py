"""Many tables of Adult at (1, 1e-9): errors, coverage, agreement, printed tables, rows; and growth.

`python -m benchmarks.many_tables [accuracy | growth]` prints what docs/theory/marginals.md tells.
"""

from __future__ import annotations

import resource
import sys
import time
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks import adult
from discreet import seeded_rng
from discreet.core.relation import NeighboringRelation
from discreet.marginals.columns import MarginalColumn
from discreet.marginals.counting import count_tables
from discreet.marginals.design import support
from discreet.marginals.plan import MarginalPlan, plan_tables
from discreet.query.budget import budget

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
SEEDS = (1, 2, 3)
_TEXTS = (1, 3, 5, 6, 7, 8, 9, 13, 14)
_GAINS, _LOSSES = (1, 2000, 5000, 10000, 20000), (1, 1500, 2000, 2500)
_ADD = NeighboringRelation.ADD_REMOVE


def codes() -> Ints:
    """Thirteen columns of 48,842 rows: ages by five years, hours by ten, gains and losses cut."""
    rows = [*adult.read("adult.data"), *adult.read("adult.test")]
    numbers = {i: np.array([float(row[i]) for row in rows]) for i in (0, 10, 11, 12)}
    # Incomes of the second file end with a dot.
    words = {
        i: np.unique([row[i].rstrip(".") for row in rows], return_inverse=True)[1] for i in _TEXTS
    }
    columns = [
        np.clip((numbers[0] - 17) // 5, 0, 14),
        *(words[i] for i in _TEXTS),
        np.clip(numbers[12] // 10, 0, 9),
        np.searchsorted(_GAINS, numbers[10], side="right"),
        np.searchsorted(_LOSSES, numbers[11], side="right"),
    ]
    return np.array(columns).T.astype(np.int64)


def planned(sizes: list[int], tables: Any, objective: str, **amount: Any) -> MarginalPlan:
    """A plan for columns of so many values."""
    columns = [
        MarginalColumn(name=f"c{i}", labels=tuple(range(size)), chain=(1, size))
        for i, size in enumerate(sizes)
    ]
    return plan_tables(
        columns,
        tables,
        budget=budget(**amount),
        relation=_ADD,
        rows=1,
        objective=objective,  # type: ignore[arg-type]
    )


def accuracy() -> None:
    """Each number for each seed, and their mean."""
    rows = codes()
    sizes = (rows.max(axis=0) + 1).tolist()
    pairs = list(combinations(range(len(sizes)), 2))
    exact = count_tables([rows.T], sizes, [*pairs, *[(i,) for i in range(len(sizes))], ()])
    for name, amount in (("gaussian", {"epsilon": 1, "delta": 1e-9}), ("laplace", {"epsilon": 1})):
        plan = planned(sizes, pairs, "cells", **amount)
        for seed in SEEDS:
            found = measures(plan, rows, exact, pairs, seed, print_them=name == "gaussian")
            told = "  ".join(f"{key} {value:.5g}" for key, value in found.items())
            print(f"{name}, seed {seed}: {told}", flush=True)


def measures(
    plan: MarginalPlan, rows: Ints, exact: Any, pairs: Any, seed: int, *, print_them: bool
) -> dict[str, float]:
    """What one release shows."""
    design = plan._design  # noqa: SLF001 - the arrays themselves
    wanted = [support(place) for place in design.places]
    counted = count_tables([rows.T], [one.size for one in plan.columns], wanted)
    release = plan.release_tables(counted, rng=seeded_rng(seed))
    tables = {key: release._table(key) for key in design.answered}  # noqa: SLF001
    off, stated, held, apart, simple = 0.0, 0.0, [], 0.0, []
    for key in pairs:
        cells, truth = tables[key].cells, exact[key]
        std = np.broadcast_to(np.reshape(tables[key].std, cells.shape), cells.shape)
        off += float(np.square(cells - truth).sum())
        stated += float(np.square(std).sum())
        low, high = tables[key].interval()
        held.append((low <= truth.ravel()) & (truth.ravel() <= high))
        for axis in (0, 1):
            margin = tables[key[1 - axis],].cells
            apart = max(apart, float(np.abs(cells.sum(axis=axis) - margin).max()))
        simple.append(_distance(_simplex(cells, float(len(rows))), truth))
    found = {
        "realized/stated": float(np.sqrt(off / stated)),
        "coverage": float(np.concatenate(held).mean()),
        "contradiction": apart,
        "simplex TV": float(np.mean(simple)),
    }
    if print_them:
        printed = release.nonnegative()
        names = [one.name for one in plan.columns]
        smooth = [printed.table([names[i] for i in key]).cells for key in pairs]
        found["printed TV"] = float(
            np.mean([_distance(one, exact[key]) for one, key in zip(smooth, pairs, strict=True)])
        )
        start = time.perf_counter()
        made = release.synthesize(seed=seed).codes
        found["seconds of rows"] = time.perf_counter() - start
        for order in (2, 3):
            sets = list(combinations(range(len(names)), order))
            sizes = [one.size for one in plan.columns]
            ours, theirs = (count_tables([one.T], sizes, sets) for one in (made, rows))
            found[f"rows TV {order}"] = float(
                np.mean([_distance(ours[key], theirs[key]) for key in sets])
            )
    return found


def _distance(cells: Floats | Ints, truth: Ints) -> float:
    return float(np.abs(cells / cells.sum() - truth / truth.sum()).sum() / 2)


def _simplex(cells: Floats, total: float) -> Floats:
    falling = -np.sort(-cells.ravel())
    offs = (falling.cumsum() - total) / np.arange(1, len(falling) + 1)
    found: Floats = np.maximum(cells - offs[np.flatnonzero(falling > offs)[-1]], 0)
    return found


def growth() -> None:
    """Seconds and memory of all pairs, as columns, levels and rows grow."""
    for columns, levels, many in (
        *((30, 10, n) for n in (10**5, 10**6, 10**7)),
        *((m, 10, 10**6) for m in (10, 20, 40)),
        *((30, k, 10**6) for k in (5, 20)),
    ):
        rng = np.random.default_rng(1)
        held: Any = rng.integers(0, levels, (columns, many), dtype=np.int8)
        start = time.perf_counter()
        plan = planned([levels] * columns, list(combinations(range(columns), 2)), "cells", rho=0.1)
        ready = time.perf_counter()
        wanted = [support(place) for place in plan._design.places]  # noqa: SLF001
        counted = count_tables([held], [levels] * columns, wanted)
        read = time.perf_counter()
        release = plan.release_tables(counted, rng=seeded_rng(1))
        answered = sum(table.cells.size for table in release.tables())
        done = time.perf_counter()
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(
            f"{columns} columns, {levels} levels, {many:,} rows: {len(plan.tables):,} tables, "
            f"{answered:,} cells; plan {ready - start:.2f} s, count {read - ready:.2f} s, noise "
            f"and tables {done - read:.2f} s; {memory:,.0f} MB at most so far",
            flush=True,
        )


def main() -> None:
    """Run what is named, or all."""
    for name in sys.argv[1:] or ("accuracy", "growth"):
        {"accuracy": accuracy, "growth": growth}[name]()


if __name__ == "__main__":
    main()

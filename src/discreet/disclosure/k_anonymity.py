"""k-anonymity: make quasi-identifiers coarser until every row has company.

This is disclosure control, not differential privacy: the risk is bounded only against somebody who
knows the quasi-identifiers and nothing else. There is no guarantee to charge.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import narwhals.stable.v2 as nw
import numpy as np

from discreet.core.check import count, listed, mapped, one_of, probability
from discreet.core.errors import InvalidArgument, OutOfDomain
from discreet.core.exact import Number
from discreet.disclosure.classes import Flags, Ints, together
from discreet.disclosure.hierarchy import Categories, Coded, Hierarchy, Intervals, Prefixes
from discreet.disclosure.lattice import Lattice, Node, greedy, optimal
from discreet.disclosure.local import recode
from discreet.disclosure.risk import Frame, Risk, Series, measured, named, opened

Method: TypeAlias = Literal["optimal", "greedy", "local"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Anonymised:
    """A table that was made coarser, with what is left of risk and of information."""

    frame: Any = field(repr=False)
    """The released rows, as the kind of frame that was given."""
    method: Method
    asked: int
    levels: Mapping[str, int] | None
    """The level of each column; None for local recoding, where every class has its own."""
    heights: Mapping[str, int]
    suppressed: int
    """Rows that were left out."""
    loss: float
    """Information lost, from 0 (nothing) to 1 (all), averaged over the cells of the table."""
    before: Risk
    risk: Risk

    @property
    def k(self) -> int:
        """The size of the smallest class that was released."""
        return self.risk.k

    @property
    def discernibility(self) -> int:
        """Sum of squared class sizes; a row left out counts as many as there were rows."""
        kept = int((self.risk.sizes.astype(np.float64) ** 2).sum())
        return kept + self.suppressed * self.before.rows

    def __repr__(self) -> str:
        how = "levels of each class" if self.levels is None else _levels(self.levels, self.heights)
        return "\n".join(
            [
                f"Anonymised(k = {self.k}, asked {self.asked}; {self.method}: {how})",
                f"  {self.suppressed:,} rows left out; information lost: {self.loss:.1%}",
                *(f"  {line}" for line in str(self.risk).splitlines()),
                "  Not differentially private: whoever knows more can learn more.",
            ]
        )


def anonymise(
    frame: object,
    *,
    quasi: Mapping[str, Hierarchy],
    k: int,
    sensitive: Sequence[str] = (),
    keep: Sequence[str] = (),
    suppress: Number = 0,
    method: Method = "optimal",
    progress: Callable[[str], None] = lambda _: None,
) -> Anonymised:
    """Release a table in which every row agrees with k - 1 others in all quasi-identifiers.

    ``quasi`` gives the public hierarchy of each column that somebody may know. ``sensitive``
    columns are released as they are, and how much a class tells about them is reported; so are the
    columns named in ``keep``. All others are left out. At most the share ``suppress`` of the rows
    may be left out as well. ``method``: "optimal" and "greedy" choose one level for each column
    (optimal: with the smallest loss of all), "local" gives every class its own. ``progress`` is
    told what is being done.

    Theorem: the classes of the released table have at least k rows. Against somebody who knows
        only the quasi-identifiers, a row is found with probability at most 1/k.
    Proof: classes are counted again on the released labels; smaller ones are left out.
    Source: Sweeney 2002; B8. Search: after Samarati 2001, and Kohlmayer et al. 2012.
    Needs: nothing of the attacker can be enforced. Equal sensitive values in a class, other
        releases, or knowledge of another column break it: not differential privacy (M8).
    """
    wanted = count("k", k)
    share = probability("suppress", suppress)
    one_of("method", method, ("optimal", "greedy", "local"))
    secret = listed("sensitive", sensitive)
    others = [*secret, *listed("keep", keep)]
    table = _checked(frame, quasi, others)
    if 0 < len(table) < wanted:
        raise OutOfDomain("frame must have at least k rows: with fewer, nobody has company.")
    progress("reading")
    coded = {name: hierarchy.code(table[name]) for name, hierarchy in quasi.items()}
    columns = list(coded.values())
    before = together([one.codes for one in columns], [one.size(0) for one in columns])
    allowed = math.floor(share * len(table))
    node, levels = _chosen(columns, wanted, allowed, method, progress)
    progress("writing")
    released = [_released(one, level) for one, level in zip(columns, levels, strict=True)]
    classes = together(released, [_labels(one) for one in columns])
    kept = (classes.sizes >= wanted)[classes.of]
    shown = [name for name in table.columns if name in {*quasi, *others}]
    made = _frame(table.select(shown), coded, released, node, np.flatnonzero(kept))
    return Anonymised(
        frame=made.to_native(),
        method=method,
        asked=wanted,
        levels=None if node is None else dict(zip(quasi, node, strict=True)),
        heights={name: one.height for name, one in coded.items()},
        suppressed=int((~kept).sum()),
        loss=_loss(columns, levels, kept),
        before=measured(before, {}),
        risk=measured(
            together([classes.of[kept]], [len(classes.sizes)]),
            {name: made[name] for name in secret},
        ),
    )


def _chosen(
    columns: Sequence[Coded],
    k: int,
    allowed: int,
    method: Method,
    progress: Callable[[str], None],
) -> tuple[Node | None, tuple[Ints, ...]]:
    """The levels of all columns, if they are the same in every row, and the levels of each row."""
    rows = len(columns[0].codes)
    if method == "local" or not rows:
        return None, recode(columns, k=k, progress=progress).levels
    lattice = Lattice(columns, k, allowed, progress)
    node = (optimal if method == "optimal" else greedy)(lattice).node
    return node, tuple(np.full(rows, level, dtype=np.int64) for level in node)


def _checked(frame: object, quasi: Mapping[str, Hierarchy], others: Sequence[str]) -> Frame:
    table = opened(frame)
    if not mapped("quasi", quasi):
        raise InvalidArgument("quasi must name at least one column with its hierarchy.")
    named(table, "quasi", list(quasi))
    named(table, "sensitive and keep", others)
    for name, hierarchy in quasi.items():
        if not isinstance(hierarchy, Intervals | Categories | Prefixes):
            raise InvalidArgument(
                f"quasi[{name!r}] must be made by intervals(), categories() or prefixes(), "
                f"got {type(hierarchy).__name__}."
            )
    twice = set(quasi) & set(others)
    if twice or len(set(others)) < len(others):
        raise InvalidArgument("a column is either quasi, sensitive or kept: name each once.")
    return table


def _labels(one: Coded) -> int:
    return sum(one.size(level) for level in range(one.height + 1))


def _released(one: Coded, levels: Ints) -> Ints:
    """The number of each row's label: levels one after the other."""
    starts = np.cumsum([0, *(one.size(level) for level in range(one.height))])
    number: Ints = starts[levels] + np.stack(one.up)[levels, one.codes]
    return number


def _loss(columns: Sequence[Coded], levels: Sequence[Ints], kept: Flags) -> float:
    if not len(kept):
        return 0.0
    lost = np.zeros(len(kept))
    for one, level in zip(columns, levels, strict=True):
        table = np.stack([one.loss[i][one.up[i]] for i in range(one.height + 1)])
        lost += table[level, one.codes]
    return float(np.where(kept, lost / len(columns), 1.0).mean())


def _frame(
    table: Frame,
    coded: Mapping[str, Coded],
    released: Sequence[Ints],
    node: Node | None,
    rows: Ints,
) -> Frame:
    """The table, its quasi-identifiers replaced by labels, without the rows left out."""
    # An index of pandas may name rows; it is no column and is not released.
    narrow = nw.maybe_reset_index(table if len(rows) == len(table) else table[rows, :])
    made: list[Series] = []
    for place, (name, one) in enumerate(coded.items()):
        if node is None or node[place] > 0:
            used, codes = np.unique(released[place][rows], return_inverse=True)
            labels = nw.new_series(name, _texts(one, used), nw.String, backend=table.implementation)
            made.append(labels[codes])
        else:
            # What counts as equal must look equal: -0.0 like 0.0, and one kind of missing.
            head = np.zeros(len(one.exact), dtype=np.int64)
            head[one.codes] = np.arange(len(one.codes))
            made.append(table[name][head[one.codes[rows]]])
    return narrow.with_columns(*made)


def _texts(one: Coded, used: Ints) -> list[str]:
    """The labels of these numbers."""
    starts = np.cumsum([0, *(one.size(level) for level in range(one.height))])
    level = np.searchsorted(starts, used, side="right") - 1
    exact = None
    texts = []
    for number, at in zip(used.tolist(), level.tolist(), strict=True):
        if at == 0:
            exact = one.names(0) if exact is None else exact
            texts.append(exact[number])
        else:
            texts.append(one.labels[at][number - int(starts[at])])
    return texts


def _levels(levels: Mapping[str, int], heights: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {level} of {heights[name]}" for name, level in levels.items())

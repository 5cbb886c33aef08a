"""Reconcile releases of the same rows: what each of them says, weighed by its noise."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import TypeAlias

import numpy as np

from discreet.accounting.guarantee import Guarantee
from discreet.core import _validate as check
from discreet.core import events
from discreet.core.errors import InvalidArgument
from discreet.ledger.account import Receipt
from discreet.marginals.columns import MarginalColumn
from discreet.marginals.measured_tables import MeasuredTables
from discreet.marginals.reconciled import PUBLIC, OneTable, ReconciledRelease, put_together
from discreet.noise.gaussian import DiscreteGaussian
from discreet.noise.laplace import DiscreteLaplace
from discreet.query._estimate import SumEstimator
from discreet.tables.marginals import ChargedMarginalRelease
from discreet.tables.release import Release

PublicTables: TypeAlias = Mapping[str | tuple[str, ...], Mapping[object, int] | int]
_SAME_ROWS = "the data did not change between the releases"
_SAME_KEPT = (
    "no privacy unit has more than these limits, since releases that were asked for one by one "
    "choose its rows anew"
)


def reconcile(
    releases: Iterable[Release | ChargedMarginalRelease],
    *,
    public_tables: PublicTables | None = None,
) -> ReconciledRelease:
    """Put releases of the same rows together: they agree, and errors shrink.

    This is post-processing: it reads released numbers alone and costs nothing. Each number of the
    result is the best linear unbiased estimate from all releases, with its exact error.

    Args:
        releases: Counts by all values of their columns, and releases of many tables, of one table
            with the same limits and the same condition `where`.
        public_tables: Tables that are public already and count the *used* rows, which the result
            meets exactly, such as `{("site",): {"a": 120, "b": 80}, (): 200}`. They are not
            protected.

    Returns:
        All tables, with standard deviations and intervals. Its guarantee is the composition of
        those of the releases, each once.

    Raises:
        InvalidArgument: There are fewer than two releases, one is not of counts with noise, they
            are about other rows, share their noise, or public tables contradict each other.

    Privacy:
        Nothing is charged. Public tables are taken as they are: the guarantee then is that for
        neighbors which agree in them.

    Examples:
        >>> import discreet
        >>> import pandas as pd
        >>> people = discreet.table(
        ...     pd.DataFrame({"smokes": [True, False] * 200}),
        ...     columns={"smokes": discreet.boolean()},
        ...     budget=10,
        ... )
        >>> total, parts = people.count(epsilon=1), people.count(by="smokes", epsilon=1)
        >>> both = discreet.reconcile([total, parts])
        >>> bool(both.table().std < total.std)
        True
    """
    listed = check.as_tuple("releases", releases)
    if len(listed) < 2 and not (listed and public_tables):
        raise InvalidArgument("releases must be two or more.")
    tables: list[OneTable] = []
    measured: list[MeasuredTables] = []
    for one in listed:
        if isinstance(one, ChargedMarginalRelease):
            measured.append(_unordered(one))
        elif isinstance(one, Release):
            tables.append(_counts(one))
        else:
            raise InvalidArgument(
                "releases must be counts of a table, or releases of its marginals; got "
                f"{type(one).__name__}."
            )
    _same_rows(listed)
    limited = "used of each" in listed[0].privacy_statement
    public = [_public(names, cells, tables, measured) for names, cells in _given(public_tables)]
    return put_together(
        tables,
        measured,
        guarantee=_composed(listed),
        titles=[one.title for one in listed],
        assumed=[_SAME_ROWS, *([_SAME_KEPT] if limited else [])],
        public=public,
    )


def _same_rows(listed: tuple[Release | ChargedMarginalRelease, ...]) -> None:
    """Refuse what the releases themselves show to be about other rows, or the same noise."""
    first = listed[0]
    for one in listed[1:]:
        for what, mine, other in (
            ("condition where", _where(first), _where(one)),
            ("privacy unit and limits", first.privacy_statement, one.privacy_statement),
            ("neighboring relation", first.guarantee.relation, one.guarantee.relation),
            ("account", first.receipt.account, one.receipt.account),
        ):
            if mine != other:
                raise InvalidArgument(
                    f"releases must be of the same rows: {first.title!r} and {one.title!r} differ "
                    f"in the {what}."
                )
    seen: set[tuple[str, object]] = set()
    for one in listed:
        names = one.key_columns if isinstance(one, Release) else None
        asked = (one.receipt.hash, None if names is None else tuple(sorted(names)))
        if asked in seen:
            raise InvalidArgument(
                f"releases must have noise of their own: {one.title!r} is given twice."
            )
        seen.add(asked)


def _where(one: Release | ChargedMarginalRelease) -> str:
    return one.query_text.partition(" where ")[2]


def _composed(listed: tuple[Release | ChargedMarginalRelease, ...]) -> Guarantee:
    """What was charged for all of them, each receipt once."""
    receipts: dict[str, Receipt] = {one.receipt.hash: one.receipt for one in listed}
    parts = [receipt.guarantee.event for receipt in receipts.values()]
    return Guarantee(events.compose(parts), listed[0].guarantee.relation)


def _unordered(one: ChargedMarginalRelease) -> MeasuredTables:
    if any(column.chain != (1, column.size) for column in one.columns):
        raise InvalidArgument(
            f"{one.title!r} was planned with ranges=, which cannot be reconciled: leave it out."
        )
    return one


def _counts(one: Release) -> OneTable:
    """A count of all combinations of the values of its columns."""
    estimator, parts = one._estimator, one._parts
    if (
        not isinstance(estimator, SumEstimator)
        or estimator.kind != "count"
        or estimator.exponent != 0
        or len(parts) != 1
        or parts[0].name != "rows"
    ):
        raise InvalidArgument(
            f"releases must be counts of rows as they were released; {one.title!r} is none."
        )
    noise = parts[0].noise
    if not isinstance(noise, DiscreteLaplace | DiscreteGaussian):
        raise InvalidArgument(f"the noise of {one.title!r} cannot be weighed: leave it out.")
    columns = []
    for place, name in enumerate(one.key_columns):
        labels = tuple(dict.fromkeys(key[place] for key in one.keys))
        if len(labels) < 2:
            raise InvalidArgument(f"column {name!r} of {one.title!r} must have two values or more.")
        columns.append(MarginalColumn(name=name, labels=labels, chain=(1, len(labels))))
    many = math.prod([column.size for column in columns])
    if many != len(one.keys):
        raise InvalidArgument(
            f"releases must count all combinations of values; {one.title!r} has {len(one.keys):,} "
            f"of {many:,}."
        )
    cells = np.zeros([column.size for column in columns], dtype=np.int64)
    for key, value in zip(one.keys, parts[0].values, strict=True):
        cells[tuple([c.place(label) for c, label in zip(columns, key, strict=True)])] = value
    return OneTable(columns=tuple(columns), values=cells, noise=noise)


def _given(
    public: PublicTables | None,
) -> list[tuple[tuple[str, ...], Mapping[object, int] | int]]:
    if public is None:
        return []
    if not isinstance(public, Mapping):
        raise InvalidArgument(
            "public_tables must map columns to counts, such as {(): 200} for a public total."
        )
    return [
        (tuple([names] if isinstance(names, str) else names), cells)
        for names, cells in public.items()
    ]


def _public(
    names: tuple[str, ...],
    cells: Mapping[object, int] | int,
    tables: list[OneTable],
    measured: list[MeasuredTables],
) -> OneTable:
    known = {column.name: column for one in measured for column in one.columns}
    known |= {column.name: column for one in tables for column in one.columns}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise InvalidArgument(f"public_tables must have columns of releases, got {unknown[0]!r}.")
    own = tuple([known[name] for name in names])
    made = np.full([column.size for column in own], -1, dtype=np.int64)
    listed = {(): cells} if isinstance(cells, int) and not names else cells
    if not isinstance(listed, Mapping):
        raise InvalidArgument("public_tables must give a count for each value of its columns.")
    for key, value in listed.items():
        labels = key if isinstance(key, tuple) else (key,)
        if len(labels) != len(own):
            raise InvalidArgument(
                f"public_tables must have one value for each column, got {key!r}."
            )
        at = tuple([column.place(label) for column, label in zip(own, labels, strict=True)])
        made[at] = check.count("public_tables", value, minimum=0)
    if (made < 0).any():
        raise InvalidArgument("public_tables must have a count for each value of their columns.")
    return OneTable(columns=own, values=made, noise=PUBLIC)

"""SQL that keeps at most so many rows and groups of each unit: the same ones on every engine.

Most of the time of a query goes into sorting the rows of each unit by their content. So group and
values are packed into one integer where their public bounds allow it, and unpacked afterwards.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from discreet.data._duckdb.encode import text
from discreet.data._text_parsing import UNIT
from discreet.data.program import LIMB, PRIME, Program, mixer
from discreet.data.schema import INT64

_HASHED = (
    f"coalesce(CASE WHEN regexp_full_match(decode(u), {text(UNIT)}) "
    "THEN TRY_CAST(decode(u) AS BIGINT) END, CAST(md5_number_lower(u) >> 1 AS BIGINT))"
)


def limited(program: Program, query: str, *, textual: bool, key: int) -> str:
    """The rows ``u, g, v0, v1, ...`` of a query that the program's limits leave."""
    limits = program.limits
    chooser = _SqlChooser(key=key, number=_HASHED if textual else "u", content=content(program))
    if limits.max_groups_per_unit is not None and limits.max_groups_per_unit < program.size:
        query = chooser.groups(query, limit=limits.max_groups_per_unit)
    if limits.max_rows_per_unit_per_group is not None:
        query = chooser.rows_in_group(query, limit=limits.max_rows_per_unit_per_group)
    if limits.max_rows_per_unit is not None:
        query = chooser.rows(query, limit=limits.max_rows_per_unit)
    return query


def limited_keys(query: str, *, order: list[str], limit: int, textual: bool, key: int) -> str:
    """At most ``limit`` of the different rows of each unit, the keys that it has."""
    ascending = ", ".join(f"{column} ASC" for column in order)
    place = f"row_number() OVER (PARTITION BY u ORDER BY {ascending}) - 1 AS place"
    query = f"SELECT *, {place}, count(*) OVER (PARTITION BY u) AS many FROM ({query})"  # noqa: S608
    chooser = _SqlChooser(key=key, number=_HASHED if textual else "u", content=())
    return chooser.choose(query, kept=order, limit=limit, purpose="groups")


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlField:
    """A column of the content, at least ``-shift`` and one of ``width`` values."""

    name: str
    shift: int
    width: int


def content(program: Program) -> tuple[SqlField, ...]:
    """Group and values with bounds that follow from the declared ones."""
    fields = [SqlField(name="g", shift=0, width=program.size)]
    for i in range(len(program.values)):
        # No product of whole numbers but zero is smaller than one of its factors.
        sums = [total for total in program.sums if i in total.factors]
        known = [t.weight for t in sums if t.weight or len(t.factors) == 1]
        known += [math.isqrt(t.weight) for t in sums if t.factors == (i, i)]
        if program.bins is not None and program.bins[0] == i:
            known.append(program.bins[1] - 1)
        most = min(known, default=INT64)
        fields.append(SqlField(name=f"v{i}", shift=most, width=2 * most + 1))
    return tuple(fields)


def _packed(fields: tuple[SqlField, ...]) -> tuple[str, list[str]]:
    """One integer in the order of all fields, and how to read the fields from it (``p``)."""
    packed, size = "CAST(0 AS BIGINT)", math.prod(field.width for field in fields)
    # Half as long a key, where it suffices, is sorted faster.
    kind = "INTEGER" if size < 2**31 else "BIGINT"
    found = []
    divisor = size
    for field in fields:
        packed = f"({packed} * {field.width} + ({field.name} + {field.shift}))"
        rest = "p" if divisor == size else f"(p % {divisor})"  # without the fields before
        divisor //= field.width
        own = rest if divisor == 1 else f"{rest} // {divisor}"
        found.append(f"CAST({own} AS BIGINT) - {field.shift} AS {field.name}")
    return f"CAST({packed} AS {kind})", found


@dataclass(frozen=True, slots=True, kw_only=True)
class _SqlChooser:
    """Keeps evenly spaced places of each unit, from a start that key and unit decide."""

    key: int
    number: str
    content: tuple[SqlField, ...]

    def groups(self, query: str, *, limit: int) -> str:
        """Keep ``limit`` groups of each unit."""
        ranks = "dense_rank() OVER (PARTITION BY u ORDER BY g ASC) - 1 AS place"
        query = f"SELECT *, {ranks} FROM ({query})"  # noqa: S608
        query = f"SELECT *, 1 + max(place) OVER (PARTITION BY u) AS many FROM ({query})"  # noqa: S608
        kept = [field.name for field in self.content]
        return self.choose(query, kept=kept, limit=limit, purpose="groups")

    def rows_in_group(self, query: str, *, limit: int) -> str:
        """Keep ``limit`` rows of each unit in each group."""
        group, *values = self.content
        fixed = [group.name]
        return self._rows(query, fixed, tuple(values), limit=limit, purpose="rows in group")

    def rows(self, query: str, *, limit: int) -> str:
        """Keep ``limit`` rows of each unit."""
        return self._rows(query, [], self.content, limit=limit, purpose="rows")

    def _rows(
        self,
        query: str,
        fixed: list[str],
        fields: tuple[SqlField, ...],
        *,
        limit: int,
        purpose: str,
    ) -> str:
        part = ", ".join(["u", *fixed])
        order = kept = [field.name for field in fields]
        if math.prod(field.width for field in fields) <= INT64:
            packed, kept = _packed(fields)
            order = ["p"]
            query = f"SELECT {part}, {packed} AS p FROM ({query})"  # noqa: S608
        # ASC is said because a connection may have another default.
        ascending = ", ".join(f"{column} ASC" for column in order)
        place = f"row_number() OVER (PARTITION BY {part} ORDER BY {ascending}) - 1 AS place"
        many = f"count(*) OVER (PARTITION BY {part}) AS many"
        query = f"SELECT *, {place}, {many} FROM ({query})"  # noqa: S608
        return self.choose(query, kept=[*fixed, *kept], limit=limit, purpose=purpose)

    def choose(self, query: str, *, kept: list[str], limit: int, purpose: str) -> str:
        """Keep ``limit`` of ``many`` places, evenly spaced."""
        mix = mixer(self.key, purpose=purpose)
        # Numbers that fit into one limb are most of all; the others of theirs are zero.
        short = f"CASE WHEN w BETWEEN 0 AND {LIMB} THEN w * {mix.unit[0]} % {PRIME}"
        total = f"{short} ELSE {_combined('w', mix.unit)} END"
        if purpose == "rows in group":
            total += f" + {_combined('g', mix.group)}"
        # Units within the limit need no start: their text is not even hashed.
        start = f"CASE WHEN many > {limit} THEN {self.number} ELSE 0 END AS w"
        query = f"SELECT *, {start} FROM ({query})"  # noqa: S608
        query = f"SELECT *, {total} AS h0 FROM ({query})"  # noqa: S608
        for i, constant in enumerate(mix.rounds):
            query = f"SELECT *, (h{i} + {constant}) % {PRIME} AS x{i} FROM ({query})"  # noqa: S608
            query = f"SELECT *, x{i} * x{i} % {PRIME} AS y{i} FROM ({query})"  # noqa: S608
            fifth = f"(y{i} * y{i} % {PRIME}) * x{i} % {PRIME}"
            query = f"SELECT *, {fifth} AS h{i + 1} FROM ({query})"  # noqa: S608
        h = f"h{len(mix.rounds)}"
        chosen = f"many <= {limit} OR (place * {limit} + {h} % many) % many < {limit}"
        return f"SELECT u, {', '.join(kept)} FROM ({query}) WHERE {chosen}"  # noqa: S608


def _combined(value: str, factors: tuple[int, int, int]) -> str:
    """A linear map of the three limbs of a number."""
    limbs = f"({value} & {LIMB})", f"(({value} >> 31) & {LIMB})", f"(({value} >> 62) & 3)"
    terms = (f"({limb} * {factor} % {PRIME})" for limb, factor in zip(limbs, factors, strict=True))
    return " + ".join(terms)

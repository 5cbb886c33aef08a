"""Spark columns that keep at most so many rows and groups of each unit: the same as `limit_sql`."""

from __future__ import annotations

from dataclasses import dataclass
from functools import reduce
from operator import add

from pyspark.sql import Column as Value
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f
from pyspark.sql.types import BinaryType

from discreet.data._spark.encode import matches, whole, whole_of
from discreet.data._text_parsing import UNIT
from discreet.data.program import LIMB, PRIME, Program, mixer


def limited(program: Program, frame: DataFrame, *, key: int) -> DataFrame:
    """The rows ``u, g, v0, v1, ...`` of a frame that the program's limits leave."""
    limits, chooser = program.limits, _chooser(frame, key)
    if limits.max_groups_per_unit is not None and limits.max_groups_per_unit < program.size:
        frame = chooser.groups(frame, limit=limits.max_groups_per_unit)
    if limits.max_rows_per_unit_per_group is not None:
        limit = limits.max_rows_per_unit_per_group
        frame = chooser.rows(frame, part=["u", "g"], limit=limit, purpose="rows in group")
    if limits.max_rows_per_unit is not None:
        frame = chooser.rows(frame, part=["u"], limit=limits.max_rows_per_unit, purpose="rows")
    return frame


def chosen_keys(frame: DataFrame, *, limit: int, key: int) -> DataFrame:
    """At most ``limit`` of the different keys of each unit; each row is one of them."""
    return _chooser(frame, key).rows(frame, part=["u"], limit=limit, purpose="groups")


def _chooser(frame: DataFrame, key: int) -> _SparkChooser:
    textual = isinstance(frame.schema["u"].dataType, BinaryType)
    return _SparkChooser(key=key, number=_hashed() if textual else f.col("u"))


def _hashed() -> Value:
    """A number for a unit that is text: itself if it is one, else 63 bits of its MD5."""
    name = f.col("u").cast("string")
    digest = f.md5(f.col("u"))
    # The last eight bytes, least significant first, shifted right by one.
    pairs = [f.substring(digest, place, 2) for place in range(31, 16, -2)]
    high, low = (f.conv(f.concat(*half), 16, 10).cast("bigint") for half in (pairs[:4], pairs[4:]))
    hashed = high * whole(2**31) + f.shiftright(low, 1)
    return f.coalesce(f.when(matches(name, UNIT), name.try_cast("bigint")), hashed)


@dataclass(frozen=True, slots=True, kw_only=True)
class _SparkChooser:
    """Keeps evenly spaced places of each unit, from a start that key and unit decide."""

    key: int
    number: Value

    def groups(self, frame: DataFrame, *, limit: int) -> DataFrame:
        """Keep ``limit`` groups of each unit."""
        unit = Window.partitionBy("u")
        place = f.dense_rank().over(unit.orderBy("g")).cast("bigint") - 1
        many = f.max("place").over(unit) + 1
        ranked = frame.withColumn("place", place).withColumn("many", many)
        return self._choose(frame, ranked, limit=limit, purpose="groups")

    def rows(self, frame: DataFrame, *, part: list[str], limit: int, purpose: str) -> DataFrame:
        """Keep ``limit`` rows of each part, in the order of their content."""
        content = [column for column in frame.columns if column != "u"]
        window = Window.partitionBy(*part)
        place = f.row_number().over(window.orderBy(*content)).cast("bigint") - 1
        many = f.count(f.lit(1)).over(window)
        ranked = frame.withColumns({"place": place, "many": many})
        return self._choose(frame, ranked, limit=limit, purpose=purpose)

    def _choose(
        self, frame: DataFrame, ranked: DataFrame, *, limit: int, purpose: str
    ) -> DataFrame:
        place, many = f.col("place"), f.col("many")
        # Units within the limit need no start: their text is not even hashed.
        start = f.when(many > limit, self.number).otherwise(whole(0))
        ranked = _mixed(ranked.withColumn("w", start), key=self.key, purpose=purpose)
        chosen = (place * limit + f.col("h") % many) % many < limit
        # Spark numbers places in 32 bits; who has more rows than that has none counted.
        ranked = ranked.where((many <= limit) | ((many < 2**31) & chosen))
        return ranked.select(*frame.columns)


def _mixed(frame: DataFrame, *, key: int, purpose: str) -> DataFrame:
    """Add the keyed hash ``h`` of the number ``w`` (and the group); see `engine.KeyMixer`."""
    mix = mixer(key, purpose=purpose)
    limbs = [*zip(_limbs("w"), mix.unit, strict=True)]
    if purpose == "rows in group":
        limbs += zip(_limbs("g"), mix.group, strict=True)
    parts = [limb * factor % PRIME for limb, factor in limbs]
    frame = frame.withColumn("h", reduce(add, parts) % PRIME)
    x, y = f.col("x"), f.col("y")
    for constant in mix.rounds:
        frame = frame.withColumn("x", (f.col("h") + constant) % PRIME)
        frame = frame.withColumn("y", x * x % PRIME)
        frame = frame.withColumn("h", (y * y % PRIME) * x % PRIME)
    return frame


def _limbs(name: str) -> tuple[Value, Value, Value]:
    value, mask = whole_of(name), whole(LIMB)
    return (
        value.bitwiseAND(mask),
        f.shiftright(value, 31).bitwiseAND(mask),
        f.shiftright(value, 62).bitwiseAND(whole(3)),
    )

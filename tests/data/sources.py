"""The same table in every kind of source."""

from __future__ import annotations

import csv
import itertools

import duckdb
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

_files = itertools.count()
_PANDAS = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}


def arrow(rows, types):
    return pa.table({n: pa.array([row[n] for row in rows], t) for n, t in types.items()})


def polars(table, folder):
    return pl.from_arrow(table)


def polars_lazy(table, folder):
    return pl.from_arrow(table).lazy()


def pandas(table, folder):
    return table.to_pandas(types_mapper=_PANDAS.get)


def pandas_objects(table, folder):
    return pd.DataFrame(
        {n: pd.Series(table[n].to_pylist(), dtype=object) for n in table.column_names}
    )


def pyarrow_table(table, folder):
    return table


def parquet(table, folder):
    path = folder / f"{next(_files)}.parquet"
    pa.parquet.write_table(table, path)
    return path


def partitioned(table, folder):
    """A folder of three files, one of them empty."""
    path = folder / str(next(_files))
    path.mkdir()
    third = table.num_rows // 3
    for i, part in enumerate([table[third:], table[:0], table[:third]]):
        pa.parquet.write_table(part, path / f"part-{i}.parquet")
    return path


def drifting(table, folder):
    """A folder of three files with other columns in another order, one of them with wider ones."""
    path = folder / str(next(_files))
    path.mkdir()
    half = table.num_rows // 2
    names = table.column_names
    # A unit may be no decimal number.
    whole = [n for n in names if table.schema.field(n).type == pa.int64() and n != "who"]
    wide = table[half:].select(names[::-1])
    for name in whole:
        place = wide.column_names.index(name)
        wide = wide.set_column(place, name, wide[name].cast(pa.decimal128(38, 0)))
    for place, part in enumerate([table[:half], wide, table[:0].select(names[:2])]):
        pa.parquet.write_table(part, path / f"part-{place}.parquet")
    return path


def arrow_file(table, folder):
    path = folder / f"{next(_files)}.arrow"
    pa.feather.write_feather(table, path)
    return path


def csv_file(table, folder):
    path = folder / f"{next(_files)}.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(table.column_names)
        writer.writerows(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return path


def relation(table, folder):
    return duckdb.connect().from_arrow(table)


def ibis_table(table, folder):
    import ibis

    return ibis.duckdb.connect().read_parquet(parquet(table, folder))


def ibis_polars(table, folder):
    """A backend that is not DuckDB: its batches are streamed."""
    import ibis

    return ibis.polars.connect({"t": pl.from_arrow(table)}).table("t")


def spark_frame(table, folder):
    """Three partitions, and moments without a zone."""
    from pyspark.sql import SparkSession

    names = {pa.timestamp("us"): "timestamp_ntz", pa.int64(): "bigint", pa.bool_(): "boolean"}
    names |= {pa.float64(): "double", pa.string(): "string", pa.date32(): "date"}
    schema = ", ".join(f"`{field.name}` {names[field.type]}" for field in table.schema)
    rows = list(zip(*(column.to_pylist() for column in table.columns), strict=True))
    return SparkSession.getActiveSession().createDataFrame(rows, schema).repartition(3)


EVERY = [
    polars,
    polars_lazy,
    pandas,
    pandas_objects,
    pyarrow_table,
    parquet,
    partitioned,
    arrow_file,
    csv_file,
    relation,
]
IBIS = [ibis_table, ibis_polars]
SPARK_FILES = [parquet, partitioned, csv_file]

"""Frames of Spark, and files that Spark reads: names and types, from the catalog or a footer."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from discreet.core.errors import InvalidArgument, Unsupported
from discreet.data.csv_records import LONGEST, Dialect, read_header
from discreet.data.source import FileSource, SparkSource, Type, run_sealed

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_TYPES: Mapping[str, Type] = {
    "ByteType": "integer",
    "ShortType": "integer",
    "IntegerType": "integer",
    "LongType": "integer",
    "DecimalType": "exact",
    "FloatType": "float",
    "DoubleType": "float",
    "StringType": "text",
    "CharType": "text",
    "VarcharType": "text",
    "BooleanType": "boolean",
    "DateType": "date",
    "TimestampType": "time",
    "TimestampNTZType": "time",
}
_STRICT: Mapping[str, Any] = {
    # A setting of the session must not leave out rows, or shift old dates.
    "ignoreCorruptFiles": False,
    "ignoreMissingFiles": False,
    "recursiveFileLookup": True,  # no columns from the names of folders
}
_PARQUET: Mapping[str, Any] = {
    "mergeSchema": False,
    "datetimeRebaseMode": "CORRECTED",
    "int96RebaseMode": "CORRECTED",
}
_CSV: Mapping[str, Any] = {
    "header": True,
    "enforceSchema": False,  # the names in each header are compared
    "quote": '"',
    "escape": '"',
    "nullValue": "",
    "emptyValue": "",
    "multiLine": True,  # a quoted field may hold line breaks
    "mode": "FAILFAST",
    "columnPruning": False,  # else a broken line passes when its rest is not needed
    "ignoreLeadingWhiteSpace": False,
    "ignoreTrailingWhiteSpace": False,
    "maxCharsPerColumn": -1,
    "encoding": "UTF-8",
}


def open_frame(frame: DataFrame) -> SparkSource:
    """A Spark frame; nothing is run."""
    fields = run_sealed("reading the schema", lambda: frame.schema.fields)
    types = {field.name: _TYPES.get(type(field.dataType).__name__, "other") for field in fields}
    if len(types) != len(fields):
        raise InvalidArgument("the columns of a Spark frame must have different names.")
    return SparkSource(frame=frame, columns=MappingProxyType(types))


def read_files(files: FileSource, *, master: str | None) -> SparkSource:
    """Parquet or CSV files, read by Spark: every worker must see the same paths."""
    if files.parts:
        raise Unsupported(
            "Spark reads the files of a folder if all have the same columns in the same order, of "
            "exactly the same types: leave engine out, or write them with one schema."
        )
    session = _session(master)
    reader = session.read.options(**_STRICT)
    # A scheme, so that a cluster whose default is another file system looks here.
    paths = [f"file://{os.path.abspath(path)}" for path in files.paths]  # noqa: PTH100
    if files.format == "arrow":
        raise Unsupported("Spark reads no Arrow files: convert them to Parquet.")
    texts = ", ".join(f"`{name.replace('`', '``')}` STRING" for name in files.stored)
    options = {**_CSV, "sep": files.delimiter}

    def read() -> DataFrame:
        if files.format == "parquet":
            return reader.options(**_PARQUET).parquet(*paths)
        if files.records == "quoted":  # the files were checked: each line is of RFC 4180
            return reader.options(**options).schema(texts).csv(paths)
        return _records(reader.text(paths), files)

    source = open_frame(run_sealed("reading the header", read))
    return replace(source, paths=files.paths, stamps=files.stamps)


def _records(lines: DataFrame, files: FileSource) -> DataFrame:
    """The records of CSV files, each line by its own bytes, as `csv_records` says.

    A line that is a header is no record, in whatever file it stands.
    """
    from pyspark.sql import functions as f  # noqa: PLC0415 - optional

    names = list(files.stored)
    dialect = Dialect(delimiter=files.delimiter, fields=len(names))
    heads = [read_header(Path(path)).line.decode() for path in files.paths]
    line = f.col("value")
    stored = line.cast("binary")
    # What is not UTF-8 is replaced before it is compared: the bytes decide whether it was.
    is_blank = f.call_function("regexp_like", line, f.lit(r"\A[\x00-\x20]*\z"))
    is_plain = (
        f.is_valid_utf8(stored.cast("string"))
        & ~f.contains(line, f.lit("\0"))
        & (f.octet_length(stored) <= LONGEST)
        & f.call_function("regexp_like", line, f.lit(rf"\A(?:{dialect.line_pattern})\z"))
    )
    kept = lines.where(~line.isin(*dict.fromkeys(heads)) & ~is_blank)
    one = rf"\G({dialect.field_pattern})(?:{re.escape(dialect.delimiter)}|\z)"
    fields = f.when(is_plain, f.regexp_extract_all(line, f.lit(one), f.lit(1)))
    split = kept.select(fields.alias("fields"))
    gap = "" if dialect.delimiter == " " else " "
    values = []
    for place, name in enumerate(names):
        raw = f.get(f.col("fields"), f.lit(place))
        bare = f.trim(raw, f.lit(gap)) if gap else raw
        inner = f.substr(bare, f.lit(2), f.length(bare) - 2)
        unquoted = f.replace(inner, f.lit('""'), f.lit('"'))
        values.append(f.when(f.startswith(bare, f.lit('"')), unquoted).otherwise(raw).alias(name))
    return split.select(*values)


def _session(master: str | None) -> SparkSession:
    """The active session, or a new one on the master that is asked for or configured."""
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415 - optional
    except ImportError:
        raise Unsupported("engine='spark' needs PySpark: pip install 'discreet[spark]'.") from None
    active = SparkSession.getActiveSession()
    if active is not None:
        given = active.conf.get("spark.master", None)
        if master is not None and master != given:
            raise InvalidArgument(f"spark is {master!r}, but a session on {given!r} is active.")
        return active
    if "SPARK_REMOTE" not in os.environ and not _java():
        raise Unsupported(
            "Spark needs Java 17 or newer: install it (Debian: apt-get install "
            "openjdk-17-jre-headless) or set JAVA_HOME."
        )
    builder = SparkSession.builder.appName("discreet").config("spark.ui.enabled", "false")
    builder = builder.config("spark.ui.showConsoleProgress", "false")
    if master is not None:
        builder = builder.master(master)
    if master is not None and master.startswith("local"):
        for name in ("spark.driver.bindAddress", "spark.driver.host"):
            builder = builder.config(name, "127.0.0.1")  # else it listens to the network
    session = run_sealed("starting Spark", builder.getOrCreate)
    session.sparkContext.setLogLevel("OFF")  # when a row fails, its log quotes it
    return session


def _java() -> bool:
    home = os.environ.get("JAVA_HOME")
    return shutil.which("java", path=None if home is None else f"{home}/bin") is not None

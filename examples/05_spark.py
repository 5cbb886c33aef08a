"""The same statistics on Spark: exact sums on the workers, noise in this process."""

# %%
from pathlib import Path
from tempfile import TemporaryDirectory

import duckdb

import discreet

COLUMNS = {
    "ward": discreet.category(["A", "B", "C"], include_other=False),
    "hours": discreet.real(lower=0, upper=24, granularity=0.25),
}


def main() -> None:
    with (
        TemporaryDirectory() as folder,
        discreet.Ledger(f"sqlite:///{folder}/budget.db") as ledger,
    ):
        path = Path(folder) / "visits.parquet"
        duckdb.sql(
            "SELECT i % 5000 AS person, chr(CAST(65 + i % 3 AS INTEGER)) AS ward, "
            "i % 97 / 4 AS hours FROM range(20000) t(i)"
        ).write_parquet(str(path))
        try:
            # On a cluster: spark="spark://head:7077", and files that all workers see.
            visits = discreet.table(
                path,
                engine="spark",
                spark="local[2]",
                privacy_unit="person",
                max_rows_per_unit=3,
                columns=COLUMNS,
                account=ledger.account("visits", limit=discreet.pure_dp(2)),
            )
            print(visits.sum("hours", by="ward", epsilon=1))
            print(visits.count_units(epsilon=0.5))
        except discreet.Unsupported as reason:
            print(f"This example needs Spark. {reason}")
            return
        stop()


def stop() -> None:
    from pyspark.sql import SparkSession  # noqa: PLC0415 - only after it is known to be there

    session = SparkSession.getActiveSession()
    if session is not None:
        session.stop()


if __name__ == "__main__":
    main()

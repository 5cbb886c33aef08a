"""The folder of a demo: what an earlier demo left there is taken away, and nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path

from discreet.core.errors import InvalidArgument

_DATA = "health.parquet"


def prepare_folder(folder: Path, *, given: Sequence[str], written: Sequence[str]) -> None:
    """Files that are shipped in a folder, without those that an earlier demo has written.

    A demo begins with a full budget. A real ledger is never thrown away.
    """
    shipped = files("discreet.spec") / "demo_data"
    _only_ours(folder, (*given, *written), (shipped / _DATA).read_bytes())
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InvalidArgument(
            f"{str(folder)!r} cannot be made ({error.strerror}): name another with --folder."
        ) from None
    for name in written:
        for left in folder.glob(f"{name}*"):
            left.unlink()
    for name in given:
        (folder / name).write_bytes((shipped / name).read_bytes())


def _only_ours(folder: Path, names: Sequence[str], data: bytes) -> None:
    """Refuse a folder where files of the demo's names are somebody else's."""
    there = [name for name in names if (folder / name).exists()]
    own = folder / _DATA
    if there and not (own.is_file() and own.read_bytes() == data):
        raise InvalidArgument(
            f"{str(folder)!r} holds {there[0]} of something else, which the demo would replace: "
            "name another with --folder."
        )

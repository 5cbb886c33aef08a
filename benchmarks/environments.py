"""An environment for each peer, made on first use and kept under ``.bench``."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parent
CACHE = ROOT / ".bench"


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """A library to compare with. Without packages it runs in our own environment."""

    name: str
    label: str
    packages: tuple[str, ...] = ()

    @property
    def script(self) -> Path:
        """The file with its side of every case."""
        return HERE / "peers" / f"{self.name}.py"

    @property
    def folder(self) -> Path:
        """Where its environment is kept."""
        return CACHE / self.name

    @property
    def python(self) -> Path:
        """The interpreter that runs it."""
        return self.folder / "bin" / "python" if self.packages else Path(sys.executable)

    def install(self, say: Callable[[str], None]) -> None:
        """Make the environment unless it is there with exactly these pins.

        Raises ``subprocess.CalledProcessError`` when the packages cannot be installed.
        """
        stamp, pins = self.folder / "pins.txt", "\n".join(self.packages)
        if not self.packages or (stamp.exists() and stamp.read_text(encoding="utf-8") == pins):
            return
        say(f"installing {self.label} into {self.folder.relative_to(ROOT)} (once)")
        _quiet(sys.executable, "-m", "venv", "--clear", str(self.folder))
        _quiet(str(self.python), "-m", "pip", "install", "--quiet", *self.packages)
        stamp.write_text(pins, encoding="utf-8")


def _quiet(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)


def peers() -> dict[str, Peer]:
    """Every library that can be compared with, ourselves included."""
    pins = tomllib.loads((HERE / "peers.toml").read_text(encoding="utf-8"))
    known = {
        name: Peer(name=name, label=entry["label"], packages=tuple(entry["packages"]))
        for name, entry in pins.items()
    }
    known["ours"] = Peer(name="ours", label="discreet")
    known["noisy_descent"] = Peer(name="noisy_descent", label="plain noisy gradient descent")
    known["gnmax_2018"] = Peer(name="gnmax_2018", label="analysis of 2018, query by query")
    known["numpy"] = Peer(name="numpy", label="NumPy (limit, not private)")
    known["duckdb"] = Peer(name="duckdb", label="DuckDB (plain SQL, not private)")
    return known

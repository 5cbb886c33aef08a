"""The packages whose mutants are tried: the folders and files of which each consists."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = (ROOT / "src", ROOT / "research" / "src")
_STUDIES = "discreet_studies/noise_mechanisms"
PACKAGES = {
    "core": ("discreet/core",),
    "noise": ("discreet/noise",),
    "accounting": (
        "discreet/accounting",
        f"{_STUDIES}/location_scale_pairs.py",
        f"{_STUDIES}/normal_laplace.py",
        f"{_STUDIES}/parallel_composition.py",
        "discreet_studies/private_inference/subsampling_amplification.py",
    ),
    "mechanisms": ("discreet/mechanisms", "discreet/local", f"{_STUDIES}/median_errors.py"),
    "ledger": ("discreet/ledger",),
}
"""Accounting and mechanisms include the modules that only studies need."""


def files(package: str) -> list[Path]:
    """The modules of a package."""
    found = [source / part for part in PACKAGES[package] for source in SOURCES]
    inside = {path for folder in found if folder.is_dir() for path in folder.rglob("*.py")}
    return sorted(inside | {path for path in found if path.is_file()})


def below_source(path: Path) -> str:
    """How a file is named: its path below the source folder."""
    (source,) = (folder for folder in SOURCES if path.is_relative_to(folder))
    return path.relative_to(source).as_posix()


def located(file: str) -> Path:
    """The file that is named so; in ``src`` if there is none."""
    paths = [folder / file for folder in SOURCES]
    return next((path for path in paths if path.exists()), paths[0])

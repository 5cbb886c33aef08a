"""Public data that come with other packages."""

from __future__ import annotations

import importlib.util
from pathlib import Path


def installed(package: str, inside: str) -> Path | None:
    """A file of an installed package, which is not imported."""
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        return None
    path = Path(next(iter(spec.submodule_search_locations))) / inside
    return path if path.is_file() else None

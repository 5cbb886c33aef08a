"""Experiments on models, which are an extra: imported only when they are run."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from discreet.core.errors import Unsupported
from discreet_studies.study import Findings, StudySetting

_EXTRA = ("sklearn", "joblib")


def lazy_experiment(package: str, module: str, name: str) -> Callable[[StudySetting], Findings]:
    """The experiment ``name`` in a module of a study's package."""

    def run(setting: StudySetting) -> Findings:
        try:
            found = import_module(f"{package}.{module}")
        except ModuleNotFoundError as missing:
            if missing.name not in _EXTRA:
                raise
            raise Unsupported(
                "Experiments on models need scikit-learn: pip install 'discreet[models]'."
            ) from missing
        findings: Findings = getattr(found, name)(setting)
        return findings

    return run

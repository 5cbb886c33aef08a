"""Every public callable, found by looking: functions, classes, methods of what they make."""

from __future__ import annotations

import importlib
import inspect
import re
import types
import typing
from collections.abc import Iterator
from functools import cache

import discreet

PACKAGES = (
    "discreet",
    "discreet.audit",
    "discreet.audit.series",
    "discreet.disclosure",
    "discreet.intervals",
    "discreet.local",
    "discreet.models",
    "discreet.models.blackbox",
    "discreet.models.dp_sgd",
    "discreet.models.pate",
    "discreet.models.regression",
    "discreet.query",
    "discreet.ranges",
    "discreet.ranges.grid",
)
"""Where people find names: `discreet` itself, and the packages that it offers."""


def exported() -> dict[str, object]:
    """Functions and classes by their shortest public name."""
    found: dict[int, str] = {}
    objects: dict[str, object] = {}
    for package in PACKAGES:
        module = importlib.import_module(package)
        for name in module.__all__:
            made = getattr(module, name)
            if isinstance(made, types.ModuleType) or not callable(made):
                continue
            if not str(getattr(made, "__module__", "")).startswith("discreet"):
                continue
            if id(made) not in found:
                found[id(made)] = f"{package}.{name}"
                objects[f"{package}.{name}"] = made
    return objects


def returned(function: object) -> Iterator[type]:
    """Classes of this library that an annotation says are returned."""
    annotation = getattr(function, "__annotations__", {}).get("return", "")
    module = importlib.import_module(getattr(function, "__module__", "discreet"))
    for word in re.findall(r"[A-Za-z_]\w*", str(annotation)):
        made = getattr(module, word, None)
        if inspect.isclass(made) and made.__module__.startswith("discreet"):
            yield made


def methods(kind: type) -> Iterator[str]:
    """Public methods that are this library's own."""
    for name in dir(kind):
        if name.startswith("_"):
            continue
        made = inspect.getattr_static(kind, name)
        if isinstance(made, classmethod | staticmethod):
            made = made.__func__
        if inspect.isfunction(made) and made.__module__.startswith("discreet"):
            yield name


@cache
def public() -> dict[str, object]:
    """All names that can be called: `package.function` or `package.Class.method`.

    Methods of a class that is not exported, but that an exported function returns, are named by
    the function: `discreet.laplace.release`.
    """
    objects = exported()
    names: dict[str, object] = {}
    for name, made in objects.items():
        names[name] = made
        if inspect.isclass(made):
            for method in methods(made):
                names[f"{name}.{method}"] = getattr(made, method)
                for kind in returned(getattr(made, method)):
                    if kind not in objects.values():
                        for further in methods(kind):
                            names[f"{name}.{method}.{further}"] = getattr(kind, further)
        else:
            for kind in returned(made):
                if kind in objects.values():
                    continue
                for method in methods(kind):
                    names[f"{name}.{method}"] = getattr(kind, method)
    return names


def parameters(made: object) -> tuple[str, ...]:
    """Names of the parameters, without self."""
    try:
        listed = list(inspect.signature(typing.cast(typing.Any, made)).parameters)
    except (TypeError, ValueError):
        return ()
    return tuple(name for name in listed if name not in ("self", "cls"))


_ = discreet

"""What prepares rows before a private model must not have learned from them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

from discreet.core.errors import InvalidArgument

_FITTING = ("fit", "fit_transform", "fit_predict", "_fit")
_REMEDY = (
    "which is not private: leave it out (private models scale rows by declared bounds, or "
    "privately), declare the columns with DeclaredColumns (bounds, levels, values for missing "
    "ones), or, if it was fitted to public data, give it as sklearn.frozen.FrozenEstimator(it)."
)


def refuse_learned_preparation() -> None:
    """Refuse a fit inside of a pipeline that has just fitted a transformer to the same rows.

    A pipeline does not say to its last step what came before. Which one is fitting is seen from the
    calls that led here; that reads no value, and it is the same for all data.
    """
    if "sklearn.pipeline" not in sys.modules and "sklearn.compose" not in sys.modules:
        return
    frame = sys._getframe(1)  # noqa: SLF001 - nothing else knows who calls
    while frame is not None:
        if frame.f_code.co_name in _FITTING:
            for step in _before(frame.f_locals.get("self")):
                if _learns(step):
                    raise InvalidArgument(
                        f"{type(step).__name__} was fitted to the rows before this model, {_REMEDY}"
                    )
        if frame.f_back is None:
            return
        frame = frame.f_back


def _before(caller: Any) -> Iterator[Any]:
    """The steps of a pipeline before its last one, or what transforms the targets."""
    kinds = {one.__name__ for one in type(caller).__mro__}
    if "Pipeline" in kinds:
        yield from (step for _, step in caller.steps[:-1])
    elif "TransformedTargetRegressor" in kinds:
        yield caller.transformer


def _learns(step: Any) -> bool:
    """Whether fitting a step reads rows: scikit-learn's own tag says so."""
    if step is None or isinstance(step, str):
        return False
    inner = _inside(step)
    if inner is not None:
        return any(_learns(one) for one in inner)
    if "FrozenEstimator" in {one.__name__ for one in type(step).__mro__}:
        return False
    if _is_declared_encoder(step):
        return False
    tags = getattr(step, "__sklearn_tags__", None)
    return True if tags is None else bool(tags().requires_fit)


def _is_declared_encoder(step: Any) -> bool:
    """An encoder whose levels are all listed: fitting it stores them, and fails for no row."""
    if not {one.__name__ for one in type(step).__mro__} & {"OneHotEncoder", "OrdinalEncoder"}:
        return False
    return bool(
        not isinstance(step.categories, str)
        and step.handle_unknown != "error"
        and step.min_frequency is None
        and step.max_categories is None
    )


def _inside(step: Any) -> list[Any] | None:
    """The transformers of what only puts some together."""
    kinds = {one.__name__ for one in type(step).__mro__}
    if "Pipeline" in kinds:
        return [one for _, one in step.steps]
    if "FeatureUnion" in kinds:
        return [one for _, one in step.transformer_list]
    if "ColumnTransformer" in kinds:
        return [one for _, one, _ in step.transformers] + [step.remainder]
    return None

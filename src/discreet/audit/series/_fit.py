"""A model from a panel. What comes out knows the panel: it is no release (C19, C31)."""

from __future__ import annotations

from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from discreet.audit.series.model import VAR, Floats
from discreet.core._validate import count
from discreet.core.errors import InvalidArgument, OutOfDomain

Dynamics: TypeAlias = Literal["own", "full"]


def checked_panel(panel: ArrayLike) -> Floats:
    """People x times without gaps; its content appears in no error."""
    try:
        array = np.array(panel, dtype=np.float64)
    except (TypeError, ValueError):
        raise OutOfDomain(
            "panel must be numbers, people x times, with as many times for everybody. "
            "Cut the series to the times that all have."
        ) from None
    if array.ndim != 2 or not array.size:
        raise OutOfDomain(f"panel must be people x times, got shape {array.shape}.")
    if not np.isfinite(array).all():
        raise OutOfDomain("panel must have no missing or infinite cells. Fill or drop them first.")
    return array


def fit(panel: ArrayLike, *, order: int = 1, dynamics: Dynamics = "own") -> VAR:
    """Fit a model to a panel by least squares.

    Values are taken around each person's mean. Correlations of shocks are shrunk toward zero, so
    that any number of people can be fitted.

    Args:
        panel: Private values, people x times, without gaps.
        order: Number of earlier times on which a value depends.
        dynamics: `"own"` if a person depends on their own past only, `"full"` if on everybody's
            past. The latter needs more times than people x order.

    Returns:
        The model, with `public=False`.

    Raises:
        OutOfDomain: The panel has gaps or too few times, a person's values never change, or the
            model is not stationary.
        InvalidArgument: `order` or `dynamics` is not valid.

    Privacy:
        The model depends on private values without noise. Do not publish it or anything computed
        from it. Use `private_fit` instead.

    Examples:
        >>> import discreet
        >>> from discreet.audit import series
        >>> alike = series.ExchangeableVAR(habits=(0.5,), variance=1.0, correlation=0.2)
        >>> panel = alike.simulate(people=3, times=40, rng=discreet.seeded_rng(1))
        >>> series.fit(panel).public
        False
    """
    array = checked_panel(panel)
    p = count("order", order)
    people, times = array.shape
    if dynamics not in ("own", "full"):
        raise InvalidArgument(f"dynamics must be own or full, got {dynamics!r}.")
    parameters = p if dynamics == "own" else p * people
    free = times - p - parameters - 1
    if free < 1:
        raise OutOfDomain(
            f"panel must have at least {p + parameters + 2} times for this model, got {times}. "
            "Use dynamics='own' or a smaller order."
        )
    if (np.ptp(array, axis=1) == 0).any():
        raise OutOfDomain(
            "panel must have no person whose values never change: no model tells how such a "
            "person could differ. Leave them out, or give a model."
        )
    x = array - array.mean(axis=1, keepdims=True)
    now = x[:, p:]
    past = np.array([x[:, p - k : times - k] for k in range(1, p + 1)])  # order x people x times
    lags = _own(now, past) if dynamics == "own" else _full(now, past)
    residual = now - np.einsum("kij,kjt->it", lags, past)
    noise = _shrunk(residual, free)
    if VAR(lags=lags, noise=noise, start=np.eye(people * p)).radius >= 1:
        raise OutOfDomain(
            "panel gives a model that is not stationary: some values drift. Take differences "
            "(np.diff) or remove the trend first, or give a model."
        )
    return VAR(lags=lags, noise=noise, public=False)


def _own(now: Floats, past: Floats) -> Floats:
    gram = np.einsum("kit,lit->ikl", past, past)
    right = np.einsum("kit,it->ik", past, now)
    own = np.einsum("ikl,il->ki", np.linalg.pinv(gram, hermitian=True), right)
    result: Floats = own[:, :, None] * np.eye(now.shape[0])
    return result


def _full(now: Floats, past: Floats) -> Floats:
    p, people, _ = past.shape
    solved, *_ = np.linalg.lstsq(past.reshape(p * people, -1).T, now.T)
    return np.ascontiguousarray(solved.T.reshape(people, p, people).transpose(1, 0, 2))


def _shrunk(residual: Floats, free: int) -> Floats:
    """Residual variances as they are, correlations times ``1 - lambda``."""
    people, times = residual.shape
    square = (residual**2).sum(axis=1)
    if not (square > 1e-12 * square.max()).all():
        raise OutOfDomain(
            "panel must have no person whose past determines their values. "
            "Leave them out, or give a model."
        )
    z = residual * np.sqrt(times / square)[:, None]
    r = z @ z.T / times
    spread = (z**2) @ (z**2).T / times - r**2
    off = ~np.eye(people, dtype=bool)
    strength = float((r[off] ** 2).sum())
    share = float(spread[off].sum()) / (times - 1) / strength if strength else 1.0
    r[off] *= 1 - min(1.0, max(share, 1e-6))
    scale = np.sqrt(square / free)
    result: Floats = r * np.outer(scale, scale)
    return result

"""Who wants to know what: secrets, releases, and what is known beside them (C20).

People and times are counted from 0, as in NumPy. With two times, the thesis's targets A1 and A2
are ``cell(i, time=0)`` and ``cell(i, time=1)``, A3 is ``everyone(time=t)``, A4 is
``row(i, times=[0, 1])``; its knowledge N1, N2, N3 is what is released: times [0], [1], [0, 1].
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from discreet.audit.series.model import Floats, covariance, numbers
from discreet.core._validate import as_tuple, count, positive
from discreet.core.errors import InvalidArgument

Known: TypeAlias = Literal["time", "none", "all"]

KNOWN: dict[Known, str] = {
    "time": "the attacker knows everybody else's values at the time of the secret",
    "none": "the attacker knows the model and the releases, and nobody's values",
    "all": "the attacker knows every value but the secret",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Secret:
    """Values that may each be anywhere in the range: these people (None: all) at these times."""

    people: tuple[int, ...] | None
    times: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class SeriesReleases:
    """What is published: ``weights @ values + SmoothGaussian noise`` at each of these times."""

    times: tuple[int, ...]
    covariance: Floats
    """Of the noise, releases x releases."""
    weights: Floats
    """Of the people: 1/n each for the mean."""
    width: float
    """Of the public range that values are clipped to: how far a secret can move."""
    public: bool = True
    """False if the noise was chosen by a model that knows private values."""

    @property
    def std(self) -> Floats:
        """The standard deviation of the noise at each time."""
        return np.sqrt(np.diag(self.covariance))

    def with_noise(self, covariance: Floats, *, public: bool = True) -> SeriesReleases:
        """The same releases with other noise, which may have been chosen by private values."""
        return replace(self, covariance=covariance, public=public)


def secret_value(person: int, *, time: int) -> Secret:
    """Declare one person's value at one time as the secret.

    Args:
        person: Index of the person, from 0.
        time: Index of the time, from 0.

    Returns:
        The secret, for `leakage`.

    Raises:
        InvalidArgument: An index is not a non-negative integer.

    Examples:
        >>> from discreet.audit import series
        >>> series.secret_value(0, time=3)
        Secret(people=(0,), times=(3,))
    """
    return Secret(people=(_index("person", person),), times=(_index("time", time),))


def secret_time(*, time: int) -> Secret:
    """Declare the values of all people at one time as the secret.

    Args:
        time: Index of the time, from 0.

    Returns:
        The secret, for `leakage`.

    Raises:
        InvalidArgument: The index is not a non-negative integer.

    Examples:
        >>> from discreet.audit import series
        >>> series.secret_time(time=3)
        Secret(people=None, times=(3,))
    """
    return Secret(people=None, times=(_index("time", time),))


def secret_person(person: int, *, times: Iterable[int]) -> Secret:
    """Declare one person's values at several times as the secret.

    Args:
        person: Index of the person, from 0.
        times: Indices of the times, from 0.

    Returns:
        The secret, for `leakage`.

    Raises:
        InvalidArgument: An index is not a non-negative integer, or a time is repeated.

    Examples:
        >>> from discreet.audit import series
        >>> series.secret_person(0, times=[3, 4])
        Secret(people=(0,), times=(3, 4))
    """
    return Secret(people=(_index("person", person),), times=_times("times", times))


def releases(
    *,
    times: Iterable[int],
    width: float,
    people: int,
    std: ArrayLike | None = None,
    covariance: ArrayLike | None = None,
    weights: ArrayLike | None = None,
) -> SeriesReleases:
    """Describe which means are published, and with what noise.

    Give either `std` or `covariance`, in the order of `times`.

    Args:
        times: Indices of the times at which a mean is published.
        width: Width of the public range to which values are clipped.
        people: Number of people.
        std: Standard deviation of independent noise: one number, or one per time.
        covariance: Covariance matrix of correlated noise.
        weights: Weight of each person. By default 1 / people, for the mean.

    Returns:
        The releases, sorted by time.

    Raises:
        InvalidArgument: Both or neither of `std` and `covariance` are given, or an argument is
            outside its range.

    Examples:
        >>> from discreet.audit import series
        >>> means = series.releases(times=[0, 1], width=1, people=2, std=1.27)
        >>> means.std.round(2).tolist()
        [1.27, 1.27]
    """
    given = [_index("times", time) for time in as_tuple("times", times)]
    at = _times("times", given)
    people = count("people", people)
    if (std is None) == (covariance is None):
        raise InvalidArgument("Give either std or covariance.")
    if weights is None:
        weights = np.full(people, 1 / people)
    w = numbers("weights", weights)
    if w.shape != (people,) or not np.any(w):
        raise InvalidArgument("weights must be one number for each person, not all zero.")
    order = np.argsort(given)
    return SeriesReleases(
        times=at,
        covariance=_noise(len(at), std, covariance)[np.ix_(order, order)],
        weights=w,
        width=float(positive("width", width)),
    )


def _noise(size: int, std: ArrayLike | None, full: ArrayLike | None) -> Floats:
    if full is not None:
        return covariance("covariance", full, size=size)
    scale = numbers("std", 0.0 if std is None else std)
    if scale.shape not in ((), (size,)) or not (scale > 0).all():
        raise InvalidArgument(f"std must be positive: one number, or {size} of them.")
    return np.diag(np.broadcast_to(scale, size) ** 2)


def _times(name: str, times: Iterable[int]) -> tuple[int, ...]:
    found = tuple(sorted(_index(name, t) for t in as_tuple(name, times)))
    if not found or len(set(found)) < len(found):
        raise InvalidArgument(f"{name} must be at least one time, and none twice.")
    return found


def _index(name: str, value: int) -> int:
    return count(name, value, minimum=0)

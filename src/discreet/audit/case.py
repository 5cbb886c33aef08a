"""What is audited: a mechanism as a black box, two neighboring inputs, and what it claims."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np

from discreet.audit._attack import Claimed
from discreet.audit.exact import OutputPair
from discreet.noise.random_source import seeded_rng

Draw: TypeAlias = Callable[[Any, int, int], object]
"""``draw(input, n, seed)`` returns n independent outputs: a simulation, never a release."""

ONE_BY_ONE = 2_000
"""Outputs where each is a release of its own."""


class Certifiable(Protocol):
    """What can be certified: its laws recomputed, and its own release looked at."""

    def certify(self) -> object:
        """A certificate, or NotCertified."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AuditCase:
    """A mechanism to audit: two neighboring inputs, and what is claimed.

    Args:
        name: Name of the case in the report.
        claimed: Claimed guarantee, a `Guarantee` or a pair `(epsilon, delta)`.
        draw: Function `(input, n, seed)` that returns n independent outputs of a simulation.
        left: Input.
        right: Neighboring input.
        laws: Function that returns the exact distributions on both inputs, or None if they cannot
            be listed.
        broken: Whether the claim is known to be false. Then the audit must refute it.
        samples: Number of outputs per input.
        why: Reason for which the claim is false.
        mechanism: Mechanism whose `certify` is run besides. A certificate that fails accuses it,
            whatever the samples say.

    Examples:
        >>> import numpy
        >>> from discreet import audit
        >>> case = audit.AuditCase(
        ...     name="too little noise",
        ...     claimed=(1, 0),
        ...     draw=lambda value, n, seed: numpy.random.default_rng(seed).laplace(value, 0.1, n),
        ...     left=0,
        ...     right=1,
        ...     broken=True,
        ...     samples=1_000,
        ... )
        >>> audit.run_audit([case])[0].verdict
        'BROKEN'
    """

    name: str
    claimed: Claimed
    draw: Draw
    left: object
    right: object
    laws: Callable[[], OutputPair] | None = None
    broken: bool = False
    samples: int = 400_000
    why: str = ""
    mechanism: Certifiable | None = None


class Demonstration(Protocol):
    """A published claim, or an attack on one, that is shown by exact numbers and not by samples."""

    @property
    def name(self) -> str: ...

    @property
    def ok(self) -> bool:
        """Whether it comes out as expected."""
        ...

    def record(self) -> dict[str, object]:
        """Plain values, for JSON."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditSuite:
    """Cases that another package adds to the audit (entry points of `discreet.audits`)."""

    cases: Callable[[], tuple[AuditCase, ...]]
    """What the audit runs beside the cases of this package."""
    published: Callable[[], tuple[AuditCase, ...]]
    """What ``discreet audit --published`` runs."""
    demonstrations: Callable[[], tuple[Demonstration, ...]]
    """What ``discreet audit --published`` shows without samples."""


def broken_case(
    name: str,
    draw: Draw,
    left: object,
    right: object,
    *,
    why: str,
    laws: Callable[[], OutputPair] | None = None,
    claimed: Claimed = (1.0, 0.0),
    samples: int = 400_000,
) -> AuditCase:
    """A case that must be caught; unless told otherwise it claims epsilon 1."""
    return AuditCase(
        name=name,
        claimed=claimed,
        draw=draw,
        left=left,
        right=right,
        laws=laws,
        broken=True,
        samples=samples,
        why=why,
    )


def one_by_one(
    name: str,
    release: Callable[..., Any],
    left: object,
    right: object,
    *,
    claimed: Claimed,
    laws: Callable[[], OutputPair] | None = None,
    samples: int = ONE_BY_ONE,
    mechanism: Certifiable | None = None,
) -> AuditCase:
    """``release(data, bits=...)`` answers once, with a number or several."""

    def draw(data: Any, n: int, seed: int) -> object:
        bits = seeded_rng(seed)
        return np.array([release(data, rng=bits) for _ in range(n)])

    return AuditCase(
        name=name,
        claimed=claimed,
        draw=draw,
        left=left,
        right=right,
        laws=laws,
        samples=samples,
        mechanism=mechanism,
    )

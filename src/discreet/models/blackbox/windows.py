"""Windows of a stream: how often a reading is used, what that costs, and a stop in time."""

from __future__ import annotations

import threading
from collections import deque
from dataclasses import dataclass, field
from fractions import Fraction
from typing import NoReturn

import numpy as np

from discreet.accounting.composition import basic
from discreet.accounting.guarantee import Guarantee
from discreet.core import events
from discreet.core._validate import count
from discreet.core.errors import InvalidArgument, NotCertified
from discreet.ledger.account import Account, Reservation
from discreet.models._model_inputs import Floats
from discreet.models.blackbox.mechanism import BlackBoxMechanism, BlackBoxRelease
from discreet.noise.random_source import RandomSource, resolve_rng

_PARTS = {"attribute": "attribute", "count": "event"}


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowPlan:
    """One answer for every `stride`-th window of a stream, and its total cost.

    Args:
        mechanism: Mechanism for one window, made by `make_private`.
        stride: Number of readings between the starts of two windows.
        group: Number of consecutive readings that are protected together.

    Raises:
        InvalidArgument: A number is not positive, or the mechanism does not protect such groups.

    Examples:
        >>> import numpy
        >>> from discreet import blackbox
        >>> public = numpy.random.default_rng(0).uniform(0, 10, size=(20, 4))
        >>> mechanism = blackbox.make_private(
        ...     numpy.mean, public_inputs=public, metric="record", epsilon=1, bounds=(0, 10)
        ... )
        >>> plan = blackbox.WindowPlan(mechanism=mechanism, stride=2)
        >>> plan.uses
        2

    References:
        Kellaris, Papadopoulos, Xiao and Papadias (2014).
        [Proof](../theory/theorems.md#models.blackbox.windows.WindowPlan).
    """

    # Theorem: a stream of any length keeps `guarantee` for `group` consecutive readings (one by
    #   default) replaced by anything, or for what else the mechanism hides of one reading: an
    #   attribute, an event.
    # Proof: windows start `stride` readings apart, so a run of w readings meets at most
    #   ceil((n + w - 1) / stride) windows of length n. All other answers have the same law for
    #   both streams, and those that are met compose, also adaptively. A mechanism that hides runs
    #   of w at once is charged once for each window met. Behind one that hides single records the
    #   two streams are joined by a chain of streams, each reading replaced in turn, and epsilons
    #   along it add up over the windows that hold the reading: epsilon w ceil(n / stride). That is
    #   one bounded loss, not a composition: neighbors of neighbors shift the same noise further,
    #   and no delta makes up for it. So it is stated as pure, and a delta is refused.
    # Source: Dwork, Roth 2014, 3.5; Kellaris et al. 2014 (w-event). A46.
    # Needs: one answer for each window; another horizon, model or a retry is another plan.

    mechanism: BlackBoxMechanism
    stride: int = 1
    group: int = 1

    def __post_init__(self) -> None:
        count("stride", self.stride)
        count("group", self.group)
        hidden = self.mechanism.adjacency.group
        if self.group > 1 and hidden not in (1, self.group):
            raise InvalidArgument(f"The mechanism hides runs of {hidden}, not of {self.group}.")
        if self.group > 1 and self.mechanism.adjacency.level != "record":
            raise InvalidArgument("group is for a mechanism that hides whole records.")
        if self._chained and self._epsilon() is None:
            raise InvalidArgument(
                f"A mechanism with a delta hides runs of {self.group} only if it is made for them: "
                f"make_private(..., group={self.group})."
            )

    @property
    def _chained(self) -> bool:
        """Whether a run is hidden reading by reading."""
        return self.group > 1 and self.mechanism.adjacency.group == 1

    def _epsilon(self) -> Fraction | None:
        """The largest loss of one answer, exactly; None if it is larger with some chance."""
        found, failure = basic(self.mechanism.guarantee.event)
        return None if failure else found

    @property
    def length(self) -> int:
        """Number of readings of a window."""
        return self.mechanism.box.shape.positions

    @property
    def uses(self) -> int:
        """Number of charges for each protected unit, whatever the length of the stream."""
        if self._chained:
            return self.group * -(-self.length // self.stride)
        run = max(self.group, self.mechanism.adjacency.group)
        return -(-(self.length + run - 1) // self.stride)

    @property
    def guarantee(self) -> Guarantee:
        """Privacy guarantee of the whole stream for each protected unit."""
        one, loss = self.mechanism.guarantee, self._epsilon()
        if self._chained and loss is not None:
            return Guarantee(events.PureEvent(loss * self.uses), one.relation)
        return one * self.uses

    def explain(self) -> str:
        """Describe the cost of the stream in one sentence.

        Returns:
            The sentence.

        Examples:
            >>> text = blackbox.WindowPlan(mechanism=mechanism, stride=2).explain()
            >>> text.startswith("Windows of 4 readings, one every 2")
            True
        """
        one = self.mechanism.guarantee.epsilon(0.0)
        level = self.mechanism.adjacency.level
        run = max(self.group, self.mechanism.adjacency.group)
        unit = "reading" if run == 1 else f"run of {run} readings"
        unit = unit if level == "record" else f"{_PARTS[level]} of a reading"
        return (
            f"Windows of {self.length} readings, one every {self.stride}: each {unit} is charged "
            f"{self.uses} times, epsilon {one:g} each, {self.guarantee.epsilon(0.0):g} in all."
        )

    def start(self, *, account: Account | None = None, label: str = "windows") -> Windows:
        """Charge the whole stream and start it.

        Args:
            account: Ledger account that pays. By default that of the mechanism, if it has one.
            label: Text for the ledger entry.

        Returns:
            A stream to which you `feed` readings.

        Raises:
            BudgetExceeded: The account cannot pay.

        Privacy:
            The stream satisfies `guarantee`. The account is charged once, before the first reading.

        Examples:
            >>> stream = blackbox.WindowPlan(mechanism=mechanism, stride=2).start()
            >>> stream.fed
            0
        """
        reservation = None
        payer = self.mechanism.account if account is None else account
        if payer is not None:
            reservation = payer.reserve(self.guarantee, label=label, private=True)
        return Windows(plan=self, reservation=reservation)


@dataclass(slots=True, kw_only=True)
class Windows:
    """A stream to which readings are fed one by one. Made by `WindowPlan.start`.

    Attributes:
        plan: Plan of the stream.
        reservation: Reservation of the charge, or None.
        fed: Number of readings so far.

    Examples:
        >>> stream = blackbox.WindowPlan(mechanism=mechanism).start()
        >>> [stream.feed(5.0) is None for _ in range(4)]
        [True, True, True, False]
    """

    plan: WindowPlan
    reservation: Reservation | None = None
    fed: int = 0
    _last: deque[Floats] = field(init=False, repr=False)
    _closed: bool = False
    _turn: threading.Lock = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._last = deque(maxlen=self.plan.length)
        self._turn = threading.Lock()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise InvalidArgument(
            "A stream cannot be copied: what was paid is for one answer to each window."
        )

    def feed(self, reading: object, *, rng: RandomSource | None = None) -> BlackBoxRelease | None:
        """Add one reading, and release an answer if a window ends here.

        Args:
            reading: Private reading: a number, or one number per attribute. Anything else counts as
                missing.
            rng: Random source. By default the operating system's.

        Returns:
            The answer for the window that ends here, or None.

        Raises:
            InvalidArgument: The stream is closed.
            NotCertified: The stream was charged, and the noise comes from a seed.

        Privacy:
            The whole stream was charged at its start. Every window is answered once.

        Examples:
            >>> stream = blackbox.WindowPlan(mechanism=mechanism).start()
            >>> answers = [stream.feed(5.0) for _ in range(4)]
            >>> answers[-1].guarantee.epsilon()
            1.0
        """
        source = resolve_rng(rng)
        if self._closed:
            raise InvalidArgument("This stream is closed.")
        if self.reservation is not None and not source.private:
            raise NotCertified("A stream that is charged takes system_rng() only.")
        shape = self.plan.mechanism.box.shape
        taken = shape.read_one(reading)
        with self._turn:  # two threads must not see one window
            self._last.append(taken)
            self.fed += 1
            if self.fed < self.plan.length or (self.fed - self.plan.length) % self.plan.stride:
                return None
            window = shape.as_argument(np.stack(self._last))
        return self.plan.mechanism.charged_to(None).answer(window, rng=source)

    def close(self) -> None:
        """End the stream. The charge is not refunded.

        Examples:
            >>> stream = blackbox.WindowPlan(mechanism=mechanism).start()
            >>> stream.close()
        """
        if not self._closed and self.reservation is not None:
            self.reservation.settle("released")
        self._closed = True

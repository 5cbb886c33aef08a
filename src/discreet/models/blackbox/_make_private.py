"""One call: a function and public inputs in, a private mechanism out."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from discreet.core._rational import Number
from discreet.core._validate import as_mapping, count, positive, probability
from discreet.core.errors import InvalidArgument, RelationMismatch
from discreet.core.relation import NeighboringRelation
from discreet.ledger.account import Account
from discreet.mechanisms.mechanism import Mechanism
from discreet.models._model_inputs import LARGEST, Bounds, Floats
from discreet.models.blackbox.choose import (
    KnownSensitivityMethod,
    Score,
    SelectionTask,
    choose,
    tree_methods,
    trees_of,
)
from discreet.models.blackbox.examples import NoisyValuePosterior
from discreet.models.blackbox.mechanism import (
    BlackBox,
    BlackBoxMechanism,
    ExpectedError,
    InputShape,
    cube,
    distribution_of,
    make_noise,
    refuse_if_contradicted,
    release_alternative,
)
from discreet.models.blackbox.metrics import Adjacency, AdjacencyLevel, Metric
from discreet.noise.random_source import seeded_rng

# ── Alternatives ─────────────────────────────────────────────────────────────────────────────────
# Other mechanisms that could answer instead, judged on the same public inputs (A42).


RUNS = 6
_MOST = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class RatedMechanism:
    """A mechanism with its mean absolute error on public inputs."""

    name: str
    mechanism: Mechanism
    error: float


def check_alternative(name: str, mechanism: Mechanism, task: SelectionTask) -> None:
    """Refuse what is under another relation, or guarantees less than is asked for."""
    if task.adjacency.group > 1:
        raise InvalidArgument("alternatives protect one record: leave them out for a group.")
    if not isinstance(mechanism, Mechanism):
        raise InvalidArgument(f"The alternative {name!r} must be a mechanism.")
    guarantee = mechanism.guarantee
    if guarantee.relation is not NeighboringRelation.REPLACE_ONE:
        raise RelationMismatch(
            f"The alternative {name!r} must be under {NeighboringRelation.REPLACE_ONE!r}, "
            f"is under {guarantee.relation!r}."
        )
    if guarantee.epsilon(float(task.delta)) > float(task.epsilon) * (1 + 1e-12):
        raise InvalidArgument(f"The alternative {name!r} guarantees less than what is asked for.")


def rate_alternative(
    name: str, mechanism: Mechanism, task: SelectionTask, *, shape: InputShape, origin: float
) -> RatedMechanism:
    """Release public inputs a few times, with a random source for this alone."""
    few, rng = task.sample(_MOST), seeded_rng(0)
    errors = [
        abs(release_alternative(mechanism, shape.as_argument(rows), rng) - origin - said)
        for rows, said in zip(few.inputs, few.said, strict=True)
        for _ in range(RUNS)
    ]
    return RatedMechanism(name=name, mechanism=mechanism, error=float(np.mean(errors)))


# ── The mechanism ────────────────────────────────────────────────────────────────────────────────


ANCHORS = 400
FEWEST = 10
"""Public inputs below which nothing can be chosen."""


def make_private(  # noqa: PLR0913 - each has a default and a name
    function: object,
    *,
    public_inputs: ArrayLike,
    public_outputs: ArrayLike | None = None,
    metric: AdjacencyLevel | Metric,
    epsilon: Number,
    delta: Number = 0,
    group: int = 1,
    sensitivity: Number | None = None,
    bounds: Bounds | None = None,
    anchors: int = ANCHORS,
    post_process: bool = True,
    alternatives: Mapping[str, Mechanism] | None = None,
    seconds: float | None = None,
    account: Account | None = None,
    label: str = "learned mechanism",
) -> BlackBoxMechanism:
    """Make any function of a short, ordered input private.

    Ranges, distances and the balance between clipping and noise are learned from public inputs.

    Args:
        function: Callable of one input, or an object with `predict`. It must keep nothing between
            calls.
        public_inputs: Public examples, examples x positions, or examples x positions x attributes.
            They must not be about the people to be protected.
        public_outputs: Outputs of the function on the public inputs. By default the function is
            called.
        metric: What one person can change in an input: `"record"` (one position), `"attribute"`
            (one number), `"count"` (one event in a table of counts), or a `Metric`.
        epsilon: Privacy loss of one answer.
        delta: Probability parameter of (epsilon, delta)-DP.
        group: Number of consecutive records that are protected together, for `"record"`.
        sensitivity: Largest change of the output between neighboring inputs, if you know it: the
            Lipschitz constant of the function times the distance of neighbors under `metric`. Noise
            of this sensitivity then answers where it is better. The guarantee rests on it.
        bounds: Public bounds of the attributes: one pair, or one pair per attribute. By default a
            range three times as wide as the public inputs.
        anchors: Largest number of public examples from which ranges are computed.
        post_process: Whether to improve released numbers with public data. It costs no budget.
        alternatives: Other mechanisms for the same input, by name. One of them answers if it is
            better on public data.
        seconds: Fixed duration of an answer, in seconds, so that the running time reveals nothing.
            By default the function takes its time.
        account: Ledger account that pays for each answer.
        label: Text for the ledger entries.

    Returns:
        A mechanism with `answer(private)`, `release(private)`, `expected`, `protects` and
        `explain()`.

    Raises:
        InvalidArgument: An argument is outside its range, the public inputs do not have the right
            shape, or the function changes by more than `sensitivity` between two public inputs.
        RelationMismatch: An alternative is not under the replace-one relation.

    Privacy:
        Every answer is (epsilon, delta)-DP for what `metric` describes, whatever the function
        computes; if `chosen` is `"known sensitivity"`, provided that `sensitivity` is true.
        `make_private` itself reads public data only.

    Examples:
        >>> import numpy
        >>> from discreet import blackbox
        >>> public = numpy.random.default_rng(0).uniform(0, 10, size=(50, 20))
        >>> mechanism = blackbox.make_private(
        ...     numpy.mean, public_inputs=public, metric="record", epsilon=1
        ... )
        >>> mechanism.expected.error < mechanism.expected.constant
        True

    See Also:
        [Make any function private](../how-to/learned.md), [theory](../theory/blackbox.md).

    References:
        Aoutouf (2021), corrected.
        [Proof](../theory/theorems.md#models.blackbox._make_private.make_private).
    """
    # Theorem: every answer is (epsilon, delta)-DP for neighbors under `metric`, for any function.
    # Proof: `BlackBoxMechanism`. Nothing private is read here.
    # Source: Aoutouf 2021, corrected (A30-A37, A42, A43, A50).
    # Needs: public inputs that are public; see `does_not_protect` of the result.
    eps, dlt = positive("epsilon", epsilon), probability("delta", delta, one=False)
    table = _examples(public_inputs)
    adjacency = Adjacency.of(metric, group=group)
    shape = InputShape.of(table, bounds=bounds)
    box = BlackBox.of(function, shape=shape, seconds=seconds)
    inputs, said = _public(box, cube(table), public_outputs)
    origin = float(np.median(said))
    task = SelectionTask(
        inputs=inputs,
        said=said - origin,
        adjacency=adjacency,
        epsilon=eps,
        delta=dlt,
        post_process=post_process,
    )
    others = as_mapping("alternatives", alternatives or {})
    for name, one in others.items():
        check_alternative(name, one, task)
    extra = list(tree_methods(task, trees_of(function), origin=origin))
    if sensitivity is not None:
        known = KnownSensitivityMethod.of(positive("sensitivity", sensitivity))
        refuse_if_contradicted(box, adjacency, inputs, known.build(inputs, said))
        extra.append(known)
    scores = choose(task, extra=extra)
    rated = [
        rate_alternative(name, one, task, shape=shape, origin=origin)
        for name, one in others.items()
    ]
    made = _mechanism(task.sample(count("anchors", anchors)), box, scores)
    better = min(rated, key=lambda one: one.error, default=None)
    if better is not None and better.error < scores[0].error:
        made = replace(
            made,
            alternative=better.mechanism,
            chosen=better.name,
            expected=replace(made.expected, error=better.error, bias=math.nan, noise=better.error),
        )
    return replace(made, origin=origin, account=account, label=label)


def _mechanism(task: SelectionTask, box: BlackBox, scores: list[Score]) -> BlackBoxMechanism:
    """The best candidate, fitted to all anchors; its estimates come from pairs it did not see."""
    best = scores[0]
    noise = make_noise(best.candidate.width, epsilon=task.epsilon, delta=task.delta)
    posterior = None
    if noise is not None and best.estimates:
        posterior = NoisyValuePosterior(
            clipped=best.pairs[0], said=best.pairs[1], distribution=distribution_of(noise)
        )
    constant = next(one.error for one in scores if one.candidate.width == 0)
    return BlackBoxMechanism(
        box=box,
        model=best.candidate.build(task.inputs, task.said),
        noise=noise,
        posterior=posterior,
        expected=ExpectedError(
            error=best.error, bias=best.bias, noise=best.noise, constant=constant
        ),
        chosen=best.candidate.name,
        adjacency=task.adjacency,
    )


def _examples(public_inputs: ArrayLike) -> Floats:
    """Public inputs as finite numbers of two or three dimensions."""
    try:
        table = np.asarray(public_inputs, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        table = np.empty(0)
    if table.ndim not in (2, 3) or 0 in table.shape:
        raise InvalidArgument(
            "public_inputs must be numbers of shape (examples, positions) or "
            "(examples, positions, attributes)."
        )
    if not np.isfinite(table).all():
        raise InvalidArgument("public_inputs must be finite: leave out what is missing.")
    return table


def _public(
    box: BlackBox, inputs: Floats, public_outputs: ArrayLike | None
) -> tuple[Floats, Floats]:
    """Public inputs, clean, with what the function says; those it does not answer are left out."""
    clean = np.stack([box.shape.clean(rows) for rows in inputs])
    if public_outputs is None:
        said = box.evaluate_public(clean)
    else:
        try:
            said = np.asarray(public_outputs, dtype=np.float64).reshape(-1)
        except (TypeError, ValueError, OverflowError):
            raise InvalidArgument("public_outputs must be numbers.") from None
    if len(said) != len(clean):
        raise InvalidArgument(
            f"public_outputs must be {len(clean)} numbers, one for each public input, "
            f"got {len(said)}."
        )
    kept = np.isfinite(said) & (np.abs(said) < LARGEST)
    if kept.sum() < FEWEST:
        raise InvalidArgument(
            f"The function must answer at least {FEWEST} public inputs with finite numbers."
        )
    return clean[kept], said[kept]

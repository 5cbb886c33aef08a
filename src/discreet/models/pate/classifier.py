"""PATE: teachers on parts of the private data, the labels they publish, and the student."""

from __future__ import annotations

import hashlib
import warnings
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any, Protocol, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, clone
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.utils import Tags, get_tags

from discreet.accounting.personalized import PersonalizedGuarantee
from discreet.boundary.foreign_code import alone
from discreet.core import events
from discreet.core._validate import count, probability
from discreet.core.errors import InvalidArgument, NotCertified, Unsupported
from discreet.core.tabular import Record
from discreet.ledger.account import Account
from discreet.ledger.personal_budgets import PersonalBudgets
from discreet.models._preparation import refuse_learned_preparation
from discreet.models.pate._records import read_classes, read_features, record_type
from discreet.models.pate.aggregators import UNANSWERED
from discreet.models.pate.binary_labels import BinaryLabelPlan
from discreet.models.pate.label_plan import LabelPlan
from discreet.models.pate.teacher_assignment import TeacherAssignment, count_votes
from discreet.noise.random_source import RandomSource, resolve_rng
from discreet.query.result import Result, records

# ── Teachers ─────────────────────────────────────────────────────────────────────────────────────


# Made-up records that an estimator is tried on, at most.
_REHEARSED = 2000


class LabelPlanProtocol(Protocol):
    """A plan that publishes from votes by itself: `StagedPlan`, `TurnPlan`."""

    @property
    def assignment(self) -> TeacherAssignment: ...

    @property
    def classes(self) -> int: ...

    @property
    def guarantee(self) -> PersonalizedGuarantee: ...

    def publish(self, votes: ArrayLike, *, rng: RandomSource) -> LabelRelease: ...


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class LabelRelease(Result):
    """Labels of public items that an ensemble released.

    Attributes:
        labels: Class of each item that was asked, or -1 if it was not answered.
        guarantee: Cost for each privacy level. It was fixed before the first vote.

    Examples:
        >>> import numpy
        >>> import discreet
        >>> from discreet.models import pate
        >>> guarantee = discreet.models.pate.ConfidentGNMax(
        ...     threshold=60, sigma_threshold=20, sigma_votes=10
        ... ).query_cost(pate.assign_upsampling(100, copies={"all": 1}))
        >>> release = pate.LabelRelease(labels=numpy.array([2, -1, 0]), guarantee=guarantee)
        >>> release.answered.tolist()
        [0, 2]
    """

    labels: NDArray[np.int64] = field(repr=False)
    guarantee: PersonalizedGuarantee

    def rows(self, confidence: float = 0.95) -> list[Record]:  # noqa: ARG002 - labels have no error
        """List the label of each item that was asked.

        Args:
            confidence: Without effect: a label has no interval.

        Returns:
            One record for each item: item, value (None without an answer), std, low and high, the
            last three None.

        Examples:
            >>> [row["value"] for row in release.rows()]
            [2, None, 0]
        """
        labels = [None if label == UNANSWERED else label for label in self.labels.tolist()]
        return records(("item",), ((item,) for item in range(len(labels))), value=labels)

    def _title(self) -> str:
        return f"{len(self.answered):,} labels for {self.query_count:,} items"

    @property
    def query_count(self) -> int:
        """Number of items that were asked before the plan ended."""
        return len(self.labels)

    @property
    def answered(self) -> NDArray[np.intp]:
        """Indices of the items that have a label."""
        return np.flatnonzero(self.labels != UNANSWERED)


class PATEClassifier(BaseEstimator):
    """An ensemble of teachers, trained on private records, that labels public items.

    After `fit`, `classes_` and `estimators_`, the private teachers, are set. Each depends on
    its own records only. Records that do not fit the declared type are
    dropped, and a teacher whose training or prediction fails votes for class 0.

    Args:
        estimator: Classifier in the style of scikit-learn. Each teacher gets a copy. Scale features
            by declared constants or inside the estimator.
        assignment: Assignment of people to teachers.
        classes: Number of classes. Labels are 0 to `classes - 1`.
        dtype: Type of all features: a numeric type, `str`, or `object` for records of any kind.
        columns: Number of values of a record, for lists of records.
        seed: Public number from which the random numbers of teachers are derived.
        n_jobs: Number of parallel jobs, as in joblib.

    Raises:
        InvalidArgument: An argument is outside its range.

    Privacy:
        Training publishes nothing and costs nothing. `label` charges the whole plan before the
        first vote is counted.

    Examples:
        >>> import numpy
        >>> from sklearn.dummy import DummyClassifier
        >>> from discreet.models import PATEClassifier, pate
        >>> teachers = pate.assign_upsampling(10, copies={"all": 1})
        >>> ensemble = PATEClassifier(DummyClassifier(), assignment=teachers, classes=2)
        >>> X, y = numpy.zeros((100, 1)), numpy.ones(100)
        >>> ensemble = ensemble.fit(X, y, owners=range(100), privacy_levels=["all"] * 100)

    See Also:
        [Train a student with PATE](../how-to/pate.md), [theory](../theory/pate.md).

    References:
        Papernot et al. (2017, 2018). Boenisch et al. (2023).
    """

    # Theorem: a teacher is a function of its own records and of what is public.
    # Proof: records are read one by one, and a record that does not fit is left out. A teacher has
    #   a copy of the estimator, its own random numbers (NumPy's and Python's global generators are
    #   seeded for it and set back after it), and no way to fail: one whose training or prediction
    #   fails says class 0. Its warnings are dropped.
    # Needs: an estimator that keeps nothing outside of itself, and uses no global generator where
    #   joblib runs teachers in threads of one process.

    def __init__(
        self,
        estimator: Any,
        *,
        assignment: TeacherAssignment,
        classes: int,
        dtype: Any = np.float64,
        columns: int | None = None,
        seed: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.estimator = estimator
        self.assignment = assignment
        count("classes", classes, minimum=2)
        record_type(dtype)
        if columns is not None:
            count("columns", columns)
        count("seed", seed, minimum=0)
        # As they were given: scikit-learn clones an estimator from its parameters.
        self.classes = classes
        self.dtype = dtype
        self.columns = columns
        self.seed = seed
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Tags:
        """Of a classifier; there is no `predict`, because what teachers say is private."""
        tags = super().__sklearn_tags__()
        tags.estimator_type = "classifier"
        return tags

    @property
    def _type(self) -> np.dtype[Any]:
        return record_type(self.dtype)

    def fit(self, X: object, y: object, *, owners: object, privacy_levels: object) -> Self:
        """Train every teacher on its own records. Nothing is published.

        Records with missing or unreadable values, another length, a label that is no class, no
        owner or an undeclared level are dropped.

        Args:
            X: Private features, one row per record.
            y: Private labels, 0 to `classes - 1`.
            owners: Person of each record.
            privacy_levels: Privacy level of each record's person. A person whose records name
                several levels takes no part.

        Returns:
            The ensemble itself.

        Raises:
            InvalidArgument: The arguments have different numbers of records.

        Examples:
            >>> import numpy
            >>> from sklearn.dummy import DummyClassifier
            >>> from discreet.models import PATEClassifier, pate
            >>> teachers = pate.assign_upsampling(10, copies={"all": 1})
            >>> ensemble = PATEClassifier(DummyClassifier(), assignment=teachers, classes=2)
            >>> X, y = numpy.zeros((100, 1)), numpy.ones(100)
            >>> ensemble = ensemble.fit(X, y, owners=range(100), privacy_levels=["all"] * 100)
            >>> ensemble.failed_teachers()
            0
        """
        # Needs: every scaling inside `estimator` by declared constants or by its own records.
        refuse_learned_preparation()
        features, fits = self._features(X)
        targets = read_classes(y, self.classes)
        if len(features) != len(targets):
            raise InvalidArgument("X and y must have one row and one label for each record.")
        parts, members = self.assignment.deal(owners, privacy_levels)
        if _length(owners) != len(features):
            raise InvalidArgument("owners and privacy_levels must have an entry for every record.")
        self._rehearse(features.shape[1:])
        kept = fits & (targets >= 0)
        own = [rows[kept[rows]] for rows in parts]
        self.estimators_ = Parallel(n_jobs=self.n_jobs)(
            delayed(_teacher)(self.estimator, features[rows], targets[rows], (self.seed, place))
            for place, rows in enumerate(own)
        )
        self._owners = members
        self.classes_ = np.arange(self.classes)
        return self

    def votes(self, X: object) -> NDArray[np.int64]:
        """Return the vote of every teacher on every item.

        Args:
            X: Public items, one row per item.

        Returns:
            Classes, items x teachers. They are private; use `label` for a release.

        Raises:
            InvalidArgument: The ensemble was not trained, or an item does not fit.

        Examples:
            >>> import numpy
            >>> from sklearn.dummy import DummyClassifier
            >>> from discreet.models import PATEClassifier, pate
            >>> teachers = pate.assign_upsampling(10, copies={"all": 1})
            >>> ensemble = PATEClassifier(DummyClassifier(), assignment=teachers, classes=2)
            >>> X, y = numpy.zeros((100, 1)), numpy.ones(100)
            >>> ensemble = ensemble.fit(X, y, owners=range(100), privacy_levels=["all"] * 100)
            >>> ensemble.votes(X[:3]).shape
            (3, 10)
        """
        return self._votes(self._items(X))

    def _items(self, x: object) -> NDArray[Any]:
        items, fits = self._features(x)
        if not fits.all():
            raise InvalidArgument("X must hold public items with a number in each place.")
        return items

    def _votes(self, items: NDArray[Any]) -> NDArray[np.int64]:
        teachers = self._taught()
        said = Parallel(n_jobs=self.n_jobs)(
            delayed(_said)(teacher, items, self.classes, (self.seed, place))
            for place, teacher in enumerate(teachers)
        )
        return np.stack(said, axis=1)

    def failed_teachers(self) -> int:
        """Count the teachers that could not be trained and vote for class 0.

        Returns:
            The number of teachers. It is private and meant for the data owner.

        Examples:
            >>> import numpy
            >>> from sklearn.dummy import DummyClassifier
            >>> from discreet.models import PATEClassifier, pate
            >>> teachers = pate.assign_upsampling(10, copies={"all": 1})
            >>> ensemble = PATEClassifier(DummyClassifier(), assignment=teachers, classes=2)
            >>> X, y = numpy.zeros((100, 1)), numpy.ones(100)
            >>> ensemble = ensemble.fit(X, y, owners=range(100), privacy_levels=["all"] * 100)
            >>> ensemble.failed_teachers()
            0
        """
        return sum(isinstance(teacher, _Failed) for teacher in self._taught())

    def _features(self, x: object) -> tuple[NDArray[Any], NDArray[np.bool_]]:
        missing = False
        with suppress(Exception):  # what has no tags says nothing of missing values
            missing = bool(get_tags(self.estimator).input_tags.allow_nan)
        return read_features(x, self._type, columns=self.columns, missing=missing)

    def _rehearse(self, shape: tuple[int, ...]) -> None:
        """Warn if the estimator fails on made-up records: on private ones it fails in silence."""
        if self._type.kind == "O":
            return
        labels = np.repeat(np.arange(self.classes), max(2, min(10, _REHEARSED // self.classes)))
        drawn = np.random.default_rng(self.seed).random((len(labels), *shape))
        made = drawn.astype(self._type) if self._type.kind == "f" else np.rint(drawn)
        if self._type.kind == "U":
            made = np.where(drawn > 0.5, "one or two words", "other words").astype(object)
        trained = _teacher(self.estimator, made.astype(_seen(self._type)), labels, (self.seed, -1))
        if isinstance(trained, _Failed):
            warnings.warn(
                "estimator fails on made-up records of this shape and type "
                f"({trained.why}). A teacher that fails says class 0.",
                stacklevel=3,
            )

    def label(
        self,
        X: object,
        *,
        plan: LabelPlan | BinaryLabelPlan | LabelPlanProtocol,
        personal_budgets: PersonalBudgets | None = None,
        account: Account | None = None,
        rng: RandomSource | None = None,
    ) -> LabelRelease:
        """Release labels of public items, in order, until the plan ends.

        Args:
            X: Public items, one row per item.
            plan: Plan for the same assignment and classes, for example from `plan_labels`.
            personal_budgets: Personal budgets to charge. Every owner must be a member, at the same
                level. Plans whose cost has a delta of its own take an account instead.
            account: Ledger account to charge. It pays for the level with the largest cost.
            rng: Random source. By default the operating system's.

        Returns:
            The labels, with the guarantee of each privacy level.

        Raises:
            BudgetExceeded: The account cannot pay. No vote was counted.
            InvalidArgument: The plan is for another assignment, the ensemble was not trained, or an
                owner is not a member of `personal_budgets`.
            NotCertified: Personal budgets cannot be charged for noise from a seed.

        Privacy:
            The release satisfies `plan.guarantee` for the data of one person, level by level.
            Budgets are charged for the whole plan before the first vote is counted.

        Examples:
            >>> import numpy
            >>> import discreet
            >>> from sklearn.dummy import DummyClassifier
            >>> from discreet.models import PATEClassifier, pate
            >>> teachers = pate.assign_upsampling(100, copies={"all": 1})
            >>> ensemble = PATEClassifier(DummyClassifier(), assignment=teachers, classes=2)
            >>> X, y = numpy.zeros((300, 1)), numpy.ones(300)
            >>> ensemble = ensemble.fit(X, y, owners=range(300), privacy_levels=["all"] * 300)
            >>> aggregator = pate.ConfidentGNMax(threshold=60, sigma_threshold=10, sigma_votes=10)
            >>> limits = {"all": discreet.approx_dp(2, 1e-5)}
            >>> plan = pate.plan_labels(teachers, aggregator, limits, classes=2, answered_share=1)
            >>> release = ensemble.label(X[:3], plan=plan)
            >>> release.query_count
            3

        See Also:
            `train_student`.
        """
        source = resolve_rng(rng)
        if plan.assignment != self.assignment or plan.classes != self.classes:
            raise InvalidArgument("plan must be made for this ensemble's assignment and classes.")
        self._taught()
        items = self._items(X)
        if personal_budgets is not None:
            if not source.private:
                raise NotCertified("Labels from a seeded source are not private: not charged.")
            _check_rho(plan.guarantee)
            if not self._owners <= set(
                zip(personal_budgets.members, personal_budgets.levels.tolist(), strict=True)
            ):
                raise InvalidArgument(
                    "Every owner must be a member of personal_budgets, at the same level: others "
                    "would not be charged."
                )
        with ExitStack() as stack:
            if account is not None:
                cost = plan.guarantee.worst
                stack.enter_context(account.reserve(cost, label="labels", private=source.private))
            if personal_budgets is not None:
                personal_budgets.charge_all(plan.guarantee, label="labels")
            said = self._votes(items)
            if not isinstance(plan, LabelPlan | BinaryLabelPlan):
                return plan.publish(said, rng=source)
            counts = count_votes(said, self.assignment, classes=self.classes)
            return publish_labels(counts, plan, rng=source)

    def _taught(self) -> list[Any]:
        teachers: list[Any] | None = getattr(self, "estimators_", None)
        if teachers is None:
            raise InvalidArgument("The ensemble has no teachers yet; call fit first.")
        return teachers

    def __repr__(self) -> str:
        return f"PATEClassifier({self.assignment.teachers} teachers, {self.classes} classes)"


def _check_rho(cost: PersonalizedGuarantee) -> None:
    """Personal budgets add up rho, which a cost of epsilon with a delta does not have."""
    if any(
        isinstance(each.event, events.ApproxEvent) and each.event.delta
        for _, each in cost.privacy_levels
    ):
        raise Unsupported(
            "The costs of this plan have a delta, and personal budgets count rho: charge an "
            "account (account=...), whose limit is an epsilon with a delta, or take a LabelPlan."
        )


def publish_labels(
    counts: NDArray[np.int64], plan: LabelPlan | BinaryLabelPlan, *, rng: RandomSource
) -> LabelRelease:
    """Labels from counts of votes, in units, one row for each public item, in order."""
    if counts.ndim != 2 or counts.shape[1] != plan.classes:
        raise InvalidArgument(f"counts must have a column for each of the {plan.classes} classes.")
    held = counts[: plan.queries]
    answered = np.flatnonzero(plan.aggregator.passes_threshold(held, rng=rng))[: plan.answers]
    # After the last answer nothing more is asked.
    asked = int(answered[-1]) + 1 if len(answered) == plan.answers else len(held)
    labels = np.full(asked, UNANSWERED, dtype=np.int64)
    labels[answered] = plan.aggregator.answers(held[answered], rng=rng)
    return LabelRelease(labels=labels, guarantee=plan.guarantee)


@dataclass(frozen=True, slots=True)
class _Failed:
    """A teacher that could not be trained. Why can quote records: it is never shown."""

    why: str = field(repr=False)


def _own_seed(public: tuple[int, int], use: str) -> int:
    """Of the public seed and the teacher's place, for one use."""
    digest = hashlib.blake2b(f"{use}:{public[0]}:{public[1]}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big")


def _teacher(
    estimator: Any, features: NDArray[Any], targets: NDArray[Any], public: tuple[int, int]
) -> Any:
    """A trained teacher; one that saw a single class, or nothing, says the same of everything."""
    kinds = np.unique(targets)
    if len(kinds) < 2:
        return int(kinds[0]) if len(kinds) else 0
    seed = _own_seed(public, "fit")
    with alone(seed):
        try:
            own = clone(estimator)
            if names := _unset_seeds(own):  # an estimator need not have `set_params` otherwise
                own.set_params(**dict.fromkeys(names, seed))
            return own.fit(features, targets)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001 - whatever it is, it is this teacher's alone
            return _Failed(f"{type(error).__name__}: {error}"[:500] if public[1] < 0 else "")


def _unset_seeds(estimator: Any) -> list[str]:
    """Parameters that would draw from NumPy's global generator."""
    return [
        name
        for name, value in estimator.get_params(deep=True).items()
        if name.rpartition("__")[2] == "random_state" and (value is None or value is np.random)
    ]


def _said(
    teacher: Any, items: NDArray[Any], classes: int, public: tuple[int, int]
) -> NDArray[np.int64]:
    """What a teacher says of every item; class 0 where that is no class."""
    if isinstance(teacher, int):
        return np.full(len(items), teacher, dtype=np.int64)
    said = np.zeros(len(items), dtype=np.int64)
    if isinstance(teacher, _Failed):
        return said
    with alone(_own_seed(public, "predict")):
        try:
            found = read_classes(np.asarray(teacher.predict(items.copy())), classes)
        except KeyboardInterrupt:
            raise
        except BaseException:  # noqa: BLE001 - as above
            return said
    return np.maximum(found, 0) if found.shape == said.shape else said


def _seen(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The type of the arrays that teachers see: texts are held as objects."""
    return np.dtype(object) if dtype.kind == "U" else dtype


def _length(values: Any) -> int:
    return len(values) if hasattr(values, "__len__") else -1


# ── Student ──────────────────────────────────────────────────────────────────────────────────────
# The student learns from the labels alone, so it costs nothing more.


def train_student(
    estimator: Any,
    X: ArrayLike,
    labels: LabelRelease,
    *,
    semi_supervised: bool = False,
    threshold: float = 0.9,
) -> Any:
    """Train a classifier on the public items that have a label.

    Args:
        estimator: Classifier in the style of scikit-learn.
        X: All public items, in the order in which they were asked.
        labels: Labels that an ensemble released.
        semi_supervised: Whether to use items without a label too (self-training). The estimator
            needs `predict_proba`.
        threshold: Probability from which the student labels an item itself, between 0 and 1.

    Returns:
        The trained classifier.

    Raises:
        InvalidArgument: There are fewer items than labels, no item has a label, or the estimator
            has no `predict_proba`.

    Privacy:
        The student has the guarantee of the labels and costs no further budget (post-processing).

    Examples:
        >>> import numpy
        >>> from sklearn.dummy import DummyClassifier
        >>> from discreet.models import pate
        >>> cost = pate.ConfidentGNMax(threshold=60, sigma_threshold=20, sigma_votes=10)
        >>> guarantee = cost.query_cost(pate.assign_upsampling(100, copies={"all": 1}))
        >>> labels = pate.LabelRelease(labels=numpy.array([1, -1, 1]), guarantee=guarantee)
        >>> student = pate.train_student(DummyClassifier(), numpy.zeros((3, 1)), labels)
        >>> student.predict([[0.0]]).tolist()
        [1]
    """
    # Theorem: the student has the guarantee of the labels. Proof: post-processing.
    items = np.asarray(X)
    if len(items) < labels.query_count:
        raise InvalidArgument(f"X must hold the {labels.query_count} items that were asked.")
    target = np.full(len(items), UNANSWERED, dtype=np.int64)
    target[: labels.query_count] = labels.labels
    told = np.flatnonzero(target != UNANSWERED)
    if not len(told):
        raise InvalidArgument("No item has a label; the student has nothing to learn from.")
    if not semi_supervised:
        return clone(estimator).fit(items[told], target[told])
    if not hasattr(estimator, "predict_proba"):
        raise InvalidArgument("semi_supervised needs an estimator with predict_proba.")
    probability("threshold", threshold, zero=False, one=False)
    learner = SelfTrainingClassifier(clone(estimator), threshold=threshold)
    return learner.fit(items, target)

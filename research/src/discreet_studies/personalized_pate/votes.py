"""Votes of trained teachers, kept between runs; and imagined ones for a quick run.

Teachers take minutes, so their votes are kept in the user's cache folder, under a name that tells
data and parameters apart.
"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from zipfile import BadZipFile

import numpy as np
from numpy.typing import NDArray

from discreet.models.pate._tune_aggregator import simulate_votes
from discreet.models.pate.aggregators import ConfidentGNMax
from discreet.models.pate.classifier import PATEClassifier
from discreet.models.pate.teacher_assignment import (
    TeacherAssignment,
    assign_upsampling,
    assign_weighting,
)
from discreet_studies.personalized_pate import datasets as sets
from discreet_studies.personalized_pate.teachers import COPIES, ImageSplit, split
from discreet_studies.study import StudySetting

TEACHERS = 250
DELTA = 1e-5
_VERSION = 1  # of the votes that are kept: another one when teachers change


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A data set with the parameters that the thesis chose for it (Table 6.3)."""

    name: str
    read: Callable[[Path | None], sets.ClassificationDataSet]
    sizes: tuple[int, int, int]
    """Private, public, test."""
    rule: ConfidentGNMax
    imagined: tuple[float, float]
    """Accuracy and spread of simulated votes with the rejections and the costs of the real ones."""
    classes: int


MNIST = World(
    name="MNIST",
    read=sets.mnist,
    sizes=(60_000, 9_000, 1_000),
    rule=ConfidentGNMax(threshold=200, sigma_threshold=150, sigma_votes=40),
    imagined=(0.905, 2.0),
    classes=10,
)
ADULT = World(
    name="Adult",
    read=sets.adult,
    sizes=(37_222, 7_000, 1_000),
    rule=ConfidentGNMax(threshold=300, sigma_threshold=200, sigma_votes=40),
    imagined=(0.81, 0.65),
    classes=2,
)
WORLDS = (MNIST, ADULT)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Votes:
    """What each teacher (a column) says of each public item (a row), and what is true."""

    said: NDArray[np.uint8] = field(repr=False)
    truth: NDArray[np.int64] = field(repr=False)
    classes: int

    @property
    def accuracies(self) -> NDArray[np.float64]:
        """Of each teacher."""
        return np.asarray((self.said == self.truth[:, None]).mean(axis=0))


def plain(setting: StudySetting, world: World, *, run: int = 0, copies: int = COPIES) -> Votes:
    """Votes of 250 teachers on disjoint records; simulated in a quick run."""
    if setting.quick:
        return imagined(world, teachers=TEACHERS, run=run)
    one = plain_assignment(level="all", key=f"muehl {run}")
    return _votes(world, setting.data, one, levels={"all": 1.0}, run=run, copies=copies, items=0)


def plain_assignment(*, level: str = "low", key: str = "") -> TeacherAssignment:
    """250 teachers, one level."""
    return assign_weighting(TEACHERS, people={level: 1}, sensitivities={level: 1}, key=key)


def upsampled(
    setting: StudySetting,
    world: World,
    *,
    times: Mapping[str, int],
    share: float,
    teachers: int,
    items: int,
) -> tuple[Votes, TeacherAssignment]:
    """Votes on the first items of teachers that share records: ``times[level]`` for each owner."""
    made = assign_upsampling(teachers, copies=times, key="muehl")
    if setting.quick:
        found = imagined(world, teachers=teachers, run=0)
        return replace(found, said=found.said[:items], truth=found.truth[:items]), made
    levels = {"high": share, "low": 1 - share}
    return _votes(world, setting.data, made, levels=levels, run=0, copies=COPIES, items=items), made


@cache
def imagined(world: World, *, teachers: int, run: int) -> Votes:
    """Simulated votes on as many items as there are."""
    accuracy, spread = world.imagined
    found = simulate_votes(
        world.sizes[1], teachers=teachers, classes=world.classes, accuracy=accuracy, spread=spread,
        seed=run,
    )  # fmt: skip
    return Votes(said=found.votes.astype(np.uint8), truth=found.truth, classes=world.classes)


@cache
def public_split(world: World, folder: Path | None, run: int, copies: int) -> ImageSplit:
    """The records of a run without the private ones: what a student may see."""
    return _split(world, folder, run, copies, private=False)


@cache
def _data(world: World, folder: Path | None) -> sets.ClassificationDataSet:
    return world.read(folder)


def _split(
    world: World, folder: Path | None, run: int, copies: int, *, private: bool = True
) -> ImageSplit:
    rng = np.random.default_rng([2021, run])
    return split(_data(world, folder), sizes=world.sizes, copies=copies, rng=rng, private=private)


@cache
def _truth(world: World, folder: Path | None, run: int) -> NDArray[np.int64]:
    return public_split(world, folder, run, 0).public_y


_whole: dict[tuple[str, int, int], ImageSplit] = {}


def _votes(
    world: World,
    folder: Path | None,
    assignment: TeacherAssignment,
    *,
    levels: Mapping[str, float],
    run: int,
    copies: int,
    items: int,
) -> Votes:
    """Train and ask, or take what was kept."""
    truth = _truth(world, folder, run)[: items or None]
    key = (_VERSION, world.name, world.sizes, assignment.copies, assignment.teachers, run, copies,
           items, sorted(levels.items()))  # fmt: skip
    name = hashlib.sha256(repr(key).encode()).hexdigest()[:20]
    kept = _kept(name, shape=(len(truth), assignment.teachers))
    if kept is None:
        _say(f"muehl: {assignment.teachers} teachers learn {world.name}; their votes are kept")
        at = (world.name, run, copies)
        if at not in _whole:
            _whole.clear()  # one at a time: each takes 100 MB
            _whole[at] = _split(world, folder, run, copies)
        kept = _asked(_whole[at], assignment, levels=levels, items=items, seed=run)
        _keep(name, kept)
    return Votes(said=kept, truth=truth, classes=world.classes)


def _asked(
    data: ImageSplit,
    assignment: TeacherAssignment,
    *,
    levels: Mapping[str, float],
    items: int,
    seed: int,
) -> NDArray[np.uint8]:
    """Votes of an ensemble on the public items, by the way of every release: keyed owners."""
    names = list(levels)
    chosen = np.random.default_rng([7, seed]).choice(
        names, size=len(data.private), p=list(levels.values())
    )
    ensemble = PATEClassifier(
        data.learner(seed), assignment=assignment, classes=data.classes, n_jobs=-1
    )
    ensemble.fit(data.private, data.private_y, owners=np.arange(len(chosen)), privacy_levels=chosen)
    public = np.ascontiguousarray(data.public[: items or None, : data.columns])
    return ensemble.votes(public).astype(np.uint8)


# ── kept between runs ─────────────────────────────────────────────────────────────────────────


def cache_folder() -> Path:
    """Where votes are kept: the user's cache."""
    for variable in ("XDG_CACHE_HOME", "LOCALAPPDATA"):
        if os.environ.get(variable):
            return Path(os.environ[variable]) / "discreet"
    return Path.home() / ".cache" / "discreet"


def _kept(name: str, *, shape: tuple[int, int]) -> NDArray[np.uint8] | None:
    try:
        with np.load(cache_folder() / f"muehl-{name}.npz", allow_pickle=False) as found:
            said = np.asarray(found["said"], dtype=np.uint8)
    except (OSError, ValueError, KeyError, BadZipFile):
        return None
    return said if said.shape == shape else None


def _keep(name: str, said: NDArray[np.uint8]) -> None:
    with suppress(OSError):  # a cache that cannot be written costs time, nothing else
        cache_folder().mkdir(parents=True, exist_ok=True)
        unfinished = cache_folder() / f"muehl-{name}.{os.getpid()}.npz"
        np.savez_compressed(unfinished, said=said)
        unfinished.replace(cache_folder() / f"muehl-{name}.npz")


def _say(text: str) -> None:
    if sys.stderr.isatty():
        sys.stderr.write(f"{text}\n")

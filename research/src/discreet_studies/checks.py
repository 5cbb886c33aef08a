"""How a stated number or ordering is held against what came out."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist

import numpy as np

from discreet.core.errors import InvalidArgument
from discreet.noise.distribution import Floats
from discreet_studies.study import Cell, Rule, StudyCheck, Value, Verdict

MOST_SIMULATED = 500
"""Simulated checks of one study: together they fail by chance with probability 1e-6 at most."""
_Z = -NormalDist().inv_cdf(1e-6 / (2 * MOST_SIMULATED))
_OTHERWISE = "It came out otherwise."


@dataclass(frozen=True, slots=True, kw_only=True)
class Claims:
    """Checks of statements with one source and one verdict.

    ``why`` says what was corrected: then the claim is the corrected one and what was published is
    quoted in ``why``. A check that fails is never called reproduced.
    """

    source: str
    why: str = ""

    def number(
        self,
        name: str,
        claim: str,
        *,
        expected: float,
        got: float,
        relative: float = 0.0,
        absolute: float = 0.0,
    ) -> StudyCheck:
        """A number, within a relative or an absolute tolerance (the larger counts)."""
        tolerance = max(relative * abs(expected), absolute)
        ok = math.isfinite(got) and abs(got - expected) <= tolerance
        return self._made(name, claim, "within", expected, got, ok, tolerance=tolerance)

    def numbers(
        self,
        name: str,
        claim: str,
        *,
        expected: Mapping[str, float],
        got: Mapping[str, float],
        relative: float = 0.0,
        absolute: float = 0.0,
    ) -> tuple[StudyCheck, ...]:
        """A table of numbers: a check for each, under the same keys."""
        if expected.keys() != got.keys():
            raise InvalidArgument(f"{name}: expected and got must have the same keys.")
        return tuple(
            self.number(
                f"{name}/{key}",
                f"{claim}, {key}",
                expected=value,
                got=got[key],
                relative=relative,
                absolute=absolute,
            )
            for key, value in expected.items()
        )

    def sampled(
        self,
        name: str,
        claim: str,
        *,
        expected: Mapping[str, float],
        got: Mapping[str, float],
        fine: float,
        coarse: float,
        why: str,
    ) -> tuple[StudyCheck, ...]:
        """Numbers that were printed from a simulation, against exact ones.

        Within the relative tolerance ``fine`` they are reproduced; within ``coarse``, which is what
        the simulation can be off, they are corrected.
        """
        made = []
        for check in self.numbers(name, claim, expected=expected, got=got, relative=fine):
            if check.ok:
                made.append(check)
                continue
            key = check.id.removeprefix(f"{name}/")
            better = Claims(source=self.source, why=why)
            made.append(
                better.number(
                    check.id, check.claim, expected=expected[key], got=got[key], relative=coarse
                )
            )
        return tuple(made)

    def simulated(
        self, name: str, claim: str, *, values: Floats, expected: float, spread: float
    ) -> StudyCheck:
        """A mean of ``values``, one from each structure, against the exact value.

        ``spread`` is the exact standard deviation of one of them. The tolerance is that of a
        normal mean, at a family-wise error of 1e-6 over all simulated checks of a study.
        """
        tolerance = _Z * spread / math.sqrt(len(values))
        got = float(np.mean(values))
        ok = math.isfinite(got) and abs(got - expected) <= tolerance
        return self._made(name, claim, "within", expected, got, ok, tolerance=tolerance)

    def order(
        self, name: str, claim: str, *, expected: Sequence[str], got: Mapping[str, float]
    ) -> StudyCheck:
        """Names from the smallest to the largest value; equal values have no order."""
        found = tuple(sorted(got, key=got.__getitem__))
        finite = all(math.isfinite(value) for value in got.values())
        ok = finite and found == tuple(expected) and len(set(got.values())) == len(got)
        return self._made(name, claim, "order", tuple(expected), found, ok)

    def at_least(self, name: str, claim: str, *, expected: float, got: float) -> StudyCheck:
        """A lower limit."""
        return self._made(name, claim, "at least", expected, got, got >= expected)

    def at_most(self, name: str, claim: str, *, expected: float, got: float) -> StudyCheck:
        """An upper limit."""
        return self._made(name, claim, "at most", expected, got, got <= expected)

    def equal(self, name: str, claim: str, *, expected: Cell, got: Cell) -> StudyCheck:
        """Exactly the same."""
        return self._made(name, claim, "equal", expected, got, expected == got)

    def beyond(self, name: str, claim: str) -> StudyCheck:
        """A statement that nobody can check; ``why`` says what is missing."""
        if not self.why:
            raise InvalidArgument(f"{name}: say why it cannot be reproduced.")
        return self._made(name, claim, "none", None, None, ok=True, verdict="not reproducible")

    def _made(
        self,
        name: str,
        claim: str,
        rule: Rule,
        expected: Value,
        got: Value,
        ok: bool,  # noqa: FBT001
        *,
        tolerance: float | None = None,
        verdict: Verdict | None = None,
    ) -> StudyCheck:
        settled: Verdict = verdict or ("corrected" if self.why else "reproduced")
        return StudyCheck(
            id=name,
            claim=claim,
            source=self.source,
            rule=rule,
            expected=expected,
            got=got,
            tolerance=tolerance,
            ok=ok,
            verdict=settled if ok else "not reproducible",
            why=self.why if ok else f"{_OTHERWISE} {self.why}".strip(),
        )


def explained(
    x: Sequence[float] | Floats, y: Sequence[float] | Floats, *, degree: int = 1
) -> float:
    """R squared of a polynomial fitted by least squares."""
    fit = np.polynomial.Polynomial.fit(x, y, degree)
    values = np.asarray(y, dtype=np.float64)
    left = np.square(values - fit(np.asarray(x, dtype=np.float64))).sum()
    return float(1 - left / np.square(values - values.mean()).sum())

"""The table that a private model prints: coefficients, standard errors, tests and intervals.

Linear and generalized linear models share it. What it holds is post-processing of a release.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import chain
from textwrap import wrap

import numpy as np
from scipy.special import stdtr, stdtrit

from discreet.accounting.guarantee import Guarantee, describe_epsilon
from discreet.core._validate import probability
from discreet.core.errors import InvalidArgument
from discreet.core.number_format import number
from discreet.core.tabular import Record, cell
from discreet.models._model_inputs import Floats
from discreet.query.result import Result, records

_WIDTH = 78
_LEVEL = 0.95
_NUMBERS = 6
"""Columns of numbers in the printed table."""
_UNKNOWN = "not determined"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class InferenceTable(Result):
    """Coefficients of a private model with standard errors, tests and intervals.

    The standard errors cover the noise and the sampling of the rows. A coefficient that the release
    does not determine has an infinite standard error: its interval is the whole line.

    Attributes:
        model: Name of the model, for the title.
        key_columns: Names of the key columns: `term`, or `output` and `term`.
        terms: The key of each coefficient.
        coefficients: Estimates.
        standard_errors: Standard errors of the estimates, noise and sampling together.
        degrees_of_freedom: Degrees of freedom of Student's distribution; infinite for the normal.
        estimand: What the coefficients estimate, in words.
        facts: Public facts for the head of the table: a name and a text each.
        notes: Remarks and warnings below the table.
        guarantee: Privacy guarantee of the release.

    Raises:
        InvalidArgument: The columns have different lengths.

    Examples:
        >>> import numpy
        >>> from discreet.models import InferenceTable
        >>> table = InferenceTable(
        ...     model="Private linear regression",
        ...     terms=(("age",), ("intercept",)),
        ...     coefficients=numpy.array([2.5, 0.3]),
        ...     standard_errors=numpy.array([0.5, 0.4]),
        ... )
        >>> table.p_values.round(3).tolist()
        [0.0, 0.453]
        >>> table["age"]
        2.5
    """

    model: str
    key_columns: tuple[str, ...] = ("term",)
    terms: tuple[tuple[str, ...], ...]
    coefficients: Floats
    standard_errors: Floats
    degrees_of_freedom: float = np.inf
    estimand: str = ""
    facts: tuple[tuple[str, str], ...] = ()
    notes: tuple[str, ...] = ()
    guarantee: Guarantee | None = None

    def __post_init__(self) -> None:
        """Refuse columns of different lengths."""
        if not len(self.terms) == len(self.coefficients) == len(self.standard_errors):
            raise InvalidArgument("terms, coefficients and standard_errors must have one length.")

    @property
    def statistics(self) -> Floats:
        """Each coefficient in standard errors: what tests that it is zero are made of."""
        with np.errstate(all="ignore"):
            found = self.coefficients / self.standard_errors
        return np.where(np.isnan(found), 0.0, found)

    @property
    def p_values(self) -> Floats:
        """Two-sided p-values of the tests that each coefficient is zero."""
        return np.asarray(2 * stdtr(self.degrees_of_freedom, -np.abs(self.statistics)))

    def rows(self, confidence: float = _LEVEL) -> list[Record]:
        """List each coefficient.

        Args:
            confidence: Probability with which each interval holds.

        Returns:
            One record for each: its key, then value, std, low and high. Data frames, CSV and HTML
            also have `statistic` and `p_value`.

        Raises:
            InvalidArgument: `confidence` is not between 0 and 1.

        Examples:
            >>> import numpy
            >>> from discreet.models import InferenceTable
            >>> table = InferenceTable(
            ...     model="Private linear regression",
            ...     terms=(("age",), ("intercept",)),
            ...     coefficients=numpy.array([2.5, 0.3]),
            ...     standard_errors=numpy.array([0.5, 0.4]),
            ... )
            >>> round(table.rows(0.9)[0]["low"], 2)
            1.68
        """
        inside = float(probability("confidence", confidence, zero=False, one=False))
        half = float(stdtrit(self.degrees_of_freedom, (1 + inside) / 2)) * self.standard_errors
        return records(
            self.key_columns,
            self.terms,
            value=self.coefficients,
            std=self.standard_errors,
            low=self.coefficients - half,
            high=self.coefficients + half,
        )

    def _frame_rows(self, confidence: float | None) -> list[Record]:
        tests = zip(self.statistics.tolist(), self.p_values.tolist(), strict=True)
        return [
            {
                **{name: row[name] for name in (*self.key_columns, "value", "std")},
                "statistic": statistic,
                "p_value": p,
                "low": row["low"],
                "high": row["high"],
            }
            for row, (statistic, p) in zip(self._rows_at(confidence), tests, strict=True)
        ]

    def _cell(self, row: Record, name: str) -> str:
        if name in ("statistic", "p_value"):
            return f"{row[name]:.3f}"
        if name == "value" and np.isinf(row["std"]):
            return _UNKNOWN
        if name in ("value", "std", "low", "high"):
            return _number(row, name)
        return str(row[name])

    def _html_names(self, names: Sequence[str]) -> list[str]:
        return list(names)

    def to_html(self, confidence: float | None = None) -> str:
        """Return the table with its notes as HTML.

        Args:
            confidence: Probability with which each interval holds, 0.95 by default.

        Returns:
            A table, and what it says of itself below it.

        Examples:
            >>> import numpy
            >>> from discreet.models import InferenceTable
            >>> table = InferenceTable(
            ...     model="Private linear regression",
            ...     terms=(("age",), ("intercept",)),
            ...     coefficients=numpy.array([2.5, 0.3]),
            ...     standard_errors=numpy.array([0.5, 0.4]),
            ... )
            >>> "<td>0.453</td>" in table.to_html()
            True
        """
        # Not `super()`: a dataclass with slots is not the class that the compiler knows.
        table = Result.to_html(self, confidence)
        said = (f"{name}: {text}" for name, text in self._head())
        return table + "".join(f"<p>{escape(one)}</p>" for one in chain(said, self.notes))

    def as_text(self, confidence: float = _LEVEL) -> str:
        """Return the table as text, in the form of statsmodels.

        Args:
            confidence: Probability with which each interval holds.

        Returns:
            The title, facts, coefficients and notes.

        Raises:
            InvalidArgument: `confidence` is not between 0 and 1.

        Examples:
            >>> import numpy
            >>> from discreet.models import InferenceTable
            >>> table = InferenceTable(
            ...     model="Private linear regression",
            ...     terms=(("age",), ("intercept",)),
            ...     coefficients=numpy.array([2.5, 0.3]),
            ...     standard_errors=numpy.array([0.5, 0.4]),
            ... )
            >>> print(table.as_text().splitlines()[-3])  # doctest: +NORMALIZE_WHITESPACE
            age  2.50  0.50  5.000  0.000  1.52  3.48
        """
        tail = (1 - float(probability("confidence", confidence, zero=False, one=False))) / 2
        letter = "z" if np.isinf(self.degrees_of_freedom) else "t"
        ends = f"[{number(tail)}", f"{number(1 - tail)}]"
        head = ("", "coef", "std err", letter, f"P>|{letter}|", *ends)
        lines = [head, *(self._line(row) for row in self._frame_rows(confidence))]
        widths = [max(len(line[place]) for line in lines) + 2 for place in range(1, len(head))]
        label = max([_WIDTH - sum(widths), *(len(line[0]) for line in lines)])
        wide = label + sum(widths)
        printed = [
            line[0].ljust(label)
            + "".join(text.rjust(size) for text, size in zip(line[1:], widths, strict=True))
            for line in lines
        ]
        printed = [line.rstrip() for line in printed]
        double, single = "=" * wide, "-" * wide
        facts = [one for name, text in self._head() for one in _folded(f"{name}: {text}", wide)]
        notes = [one for note in self.notes for one in _folded(note, wide)]
        return "\n".join(
            [
                self._caption().center(wide).rstrip(),
                double,
                *facts,
                *([double] if facts else []),
                printed[0],
                single,
                *printed[1:],
                double,
                *notes,
            ]
        )

    def _line(self, row: Record) -> tuple[str, ...]:
        label = ", ".join(str(row[name]) for name in self.key_columns)
        if np.isinf(row["std"]):
            return (label, _UNKNOWN, *[""] * (_NUMBERS - 1))
        names = ("value", "std", "statistic", "p_value", "low", "high")
        return (label, *(self._cell(row, name) for name in names))

    def _head(self) -> Sequence[tuple[str, str]]:
        said = [("Estimand", self.estimand)] if self.estimand else []
        return [*self.facts, *said]

    def _title(self) -> str:
        return self.model

    def _caption(self) -> str:
        cost = "" if self.guarantee is None else f" ({describe_epsilon(self.guarantee)})"
        return f"{self.model}{cost}"

    def __str__(self) -> str:
        return self.as_text()

    # A dataclass would take its own.
    __repr__ = __str__


def _number(row: Record, name: str) -> str:
    if name == "std":
        return number(row["std"], error=row["std"])
    return cell(row, name)


def _folded(text: str, width: int) -> list[str]:
    return wrap(text, width, subsequent_indent="  ")

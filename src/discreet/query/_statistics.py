"""Each kind of query: which vectors it is read from, with which shares, keys and estimator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

from discreet.core.errors import InvalidArgument
from discreet.data import program as data
from discreet.data._integer_ops import OPEN
from discreet.data.expression import BoundedCode, Expression
from discreet.data.program import Key
from discreet.data.schema import OTHER, Schema
from discreet.query._estimate import CovarianceEstimator, Estimator, SumEstimator
from discreet.query._measure import (
    DataScan,
    MeasuredVector,
    TableSpec,
    bins_of,
    bounds,
    measured_vectors,
    rank_parts_of,
    settle_quantiles,
)
from discreet.query._quantile_estimate import QuantileEstimator
from discreet.query._shared_sums import (
    CorrelationEstimator,
    DifferenceEstimator,
    DistinctEstimator,
    RatioEstimator,
    ShareEstimator,
)
from discreet.query.budget import QueryBudget
from discreet.query.builders import Query

_MEAN = Fraction(35, 100), Fraction(45, 100), Fraction(20, 100)
_BOOLEAN = Fraction(45, 100), Fraction(55, 100)
_CORRELATION = tuple(Fraction(one, 100) for one in (10, 15, 15, 20, 20, 20))
_WEIGHTED = tuple(Fraction(one, 10) for one in (4, 3, 1, 1, 1))
_UNKNOWN = (OTHER, "(missing)")
"""Groups of values that are no declared ones; they come last."""


def _as_mean(query: Query) -> Query:
    return replace(query, kind="mean")


def _spread_is_known(query: Query, schema: Schema) -> bool:
    """Whether a value is one of two: then its squares say nothing new."""
    value = bounds(query, schema)
    return value.upper - value.lower <= 1


def settle_together(
    queries: Sequence[Query], *, setting: TableSpec, budget: QueryBudget
) -> list[Query]:
    """Queries with what quantiles need; those of one column are read from one tree.

    Several choices by rank, or a choice and a tree, would each be right alone, and could cross.
    """
    settled = [settle_quantiles(query, setting=setting, budget=budget) for query in queries]
    groups: dict[object, list[int]] = {}
    for place, query in enumerate(settled):
        if query.q and query.value is not None and queries[place].method is None:
            rows = (
                None if query.where is None else query.where.bind(setting.schema).code,
                tuple((name, one.bind(setting.schema)) for name, one in query.by.items()),
                query.value.bind(setting.schema).code,
                query.keys,
                query.include_other,
                query.limits,
                query.bins,
            )
            groups.setdefault(rows, []).append(place)
    for places in groups.values():
        if len(places) > 1:
            for place in places:
                settled[place] = replace(settled[place], method="tree")
    return settled


def vectors_of(query: Query, collected: DataScan) -> tuple[MeasuredVector, ...]:
    """What must be measured, in the order in which the estimator reads it."""
    if query.q:
        return rank_parts_of(query, collected)
    schema = collected.setting.schema
    match query.kind:
        case "std":
            return measured_vectors(replace(query, kind="variance"), collected)
        case "mean" | "compare":
            if not query.sampling or _spread_is_known(query, schema):
                return measured_vectors(_as_mean(query), collected)
            return measured_vectors(replace(query, kind="variance"), collected)
        case "correlation":
            _different(query, schema)
            first = replace(query, kind="variance")
            second = replace(first, value=query.second_value)
            rows, x, squares = measured_vectors(first, collected)
            _, y, others = measured_vectors(second, collected)
            product = measured_vectors(replace(query, kind="covariance"), collected)[3]
            return rows, x, y, squares, others, product
        case "ratio" | "weighted_mean":
            return _ratio_vectors(query, collected)
        case "share":
            counted = query.value is None
            if not counted and bounds(query, schema).lower < 0:
                raise InvalidArgument(
                    f"value must not be negative where it is shared out: declare {query.value!r} "
                    "from zero on."
                )
            return measured_vectors(replace(query, kind="count" if counted else "sum"), collected)
        case "count_distinct":
            return measured_vectors(replace(query, kind="units"), collected)
        case "count" if query.value is not None and query.value.bind(schema).kind == "text":
            raise InvalidArgument(OPEN)
        case _:
            return measured_vectors(query, collected)


def part_shares(query: Query, collected: DataScan, *, gaussian: bool) -> tuple[Fraction, ...]:
    """The share of each part, where they are not alike; they sum to one."""
    schema = collected.setting.schema
    match query.kind:
        case "mean" | "compare" if query.sampling:
            return _BOOLEAN if _spread_is_known(query, schema) else _MEAN
        case "correlation":
            return _CORRELATION
        case "weighted_mean" if query.sampling:
            return _WEIGHTED
        case "ratio":
            return _ratio_shares(query, schema, gaussian=gaussian)
        case _:
            return ()


def _ratio_shares(query: Query, schema: Schema, *, gaussian: bool) -> tuple[Fraction, ...]:
    """Least variance at the expected ratio: ``w_y`` and ``r w_x``, for Laplace to the 2/3."""
    y, x = _pair(query, schema)
    expected = query.expected_ratio
    if expected is None:
        middle = abs(x.lower + x.upper) or 2 * _largest(x)
        steps = Fraction(abs(y.lower + y.upper) or 2 * _largest(y), middle)
    else:
        steps = abs(expected) / Fraction(2) ** (y.exponent - x.exponent)
    power = 1.0 if gaussian else 2 / 3
    weights = float(_largest(y)) ** power, float(steps * _largest(x)) ** power
    # Within a fifth and four fifths: the expected ratio is a guess.
    share = Fraction(round(100 * weights[0] / sum(weights)), 100)
    share = min(max(share, Fraction(1, 5)), Fraction(4, 5))
    both = share, 1 - share
    if not query.sampling:
        return both
    return (*[one * Fraction(7, 10) for one in both], *[Fraction(1, 10)] * 3)


def _largest(value: BoundedCode) -> int:
    return max(abs(value.lower), abs(value.upper), 1)


def _pair(query: Query, schema: Schema) -> tuple[BoundedCode, BoundedCode]:
    return bounds(query, schema), bounds(replace(query, value=query.second_value), schema)


def _ratio_vectors(query: Query, collected: DataScan) -> tuple[MeasuredVector, ...]:
    """Numerator and denominator; with sampling also y**2, x y and x**2 (of the residuals)."""
    schema = collected.setting.schema
    y, x = _values(query)
    value, weight = _pair(query, schema)
    if query.kind == "ratio":
        _different(query, schema)
        found = [_total(collected, "sum", [(1, (y,))], schema), _total_of(collected, x, schema)]
        if query.sampling:
            found += [
                _total(collected, "squares", [(1, (y, y))], schema),
                _total(collected, "products", [(1, (y, x))], schema),
                _total(collected, "squares", [(1, (x, x))], schema),
            ]
        return tuple(found)
    if weight.lower < 0:
        raise InvalidArgument(f"weight must not be negative: declare {x!r} from zero on.")
    middle, h, w = value.lower + value.upper, value.upper - value.lower, weight.upper
    made = [
        _vector(collected, "weighted sum", [(2, (x, y)), (-middle, (x,))], (-w * h, w * h)),
        _vector(collected, "weights", [(1, (x,))], (0, w)),
    ]
    if query.sampling:
        # w**2 d**2, w**2 d and w**2 with d = 2 c - middle.
        xx = x * x
        squares = [(4, (xx, y * y)), (-4 * middle, (xx, y)), (middle**2, (x, x))]
        made += [
            _vector(collected, "weighted squares", squares, (0, w**2 * h**2)),
            _vector(
                collected,
                "weighted products",
                [(2, (xx, y)), (-middle, (x, x))],
                (-(w**2) * h, w**2 * h),
            ),
            _vector(collected, "squared weights", [(1, (x, x))], (0, w**2)),
        ]
    return tuple(made)


def _different(query: Query, schema: Schema) -> None:
    """Of a value and itself both sums would be one, with one noise."""
    if len({one.code for one in _pair(query, schema)}) < 2:
        raise InvalidArgument(f"a {query.kind} takes two different columns.")


def _values(query: Query) -> tuple[Expression, Expression]:
    if query.value is None or query.second_value is None:
        raise InvalidArgument(f"a {query.kind} takes two columns.")
    return query.value, query.second_value


def _vector(
    collected: DataScan,
    name: str,
    terms: Sequence[tuple[int, tuple[Expression, ...]]],
    ends: tuple[int, int],
) -> MeasuredVector:
    return MeasuredVector(
        place=collected.place,
        name=name,
        terms=tuple((factor, collected.name(data.total(*of))) for factor, of in terms if factor),
        lower=min(ends[0], 0),
        upper=max(ends[1], 0),
    )


def _total_of(collected: DataScan, value: Expression, schema: Schema) -> MeasuredVector:
    return _total(collected, "sum", [(1, (value,))], schema)


def _total(
    collected: DataScan,
    name: str,
    terms: Sequence[tuple[int, tuple[Expression, ...]]],
    schema: Schema,
) -> MeasuredVector:
    """An uncentered sum of a value, a square or a product, with the extremes that a row adds."""
    (_, factors) = terms[0]
    found = [one.bind(schema) for one in factors]
    if len(found) == 1:
        ends = found[0].lower, found[0].upper
    else:
        a, b = found
        corners = [p * q for p in (a.lower, a.upper) for q in (b.lower, b.upper)]
        square = a.code == b.code
        ends = (0 if square else min(corners)), max(corners)
    return _vector(collected, name, terms, ends)


def answer_keys(query: Query, labels: tuple[Key, ...]) -> tuple[tuple[str, ...], tuple[Key, ...]]:
    """The names and the keys of the published numbers, from those of the measured groups."""
    names = tuple(query.by)
    match query.kind:
        case "quantiles":
            return (*names, "quantile"), tuple(
                (*key, float(level)) for key in labels for level in query.q
            )
        case "compare":
            return names, tuple(key for key in labels if key != query.to)
        case "count_distinct":
            return names[:-1], tuple(dict.fromkeys(key[:-1] for key in labels))
        case _:
            return names, labels


def estimator_of(
    query: Query, shifts: tuple[int, ...], schema: Schema, labels: tuple[Key, ...]
) -> Estimator:
    """How the noisy vectors of a query are read."""
    if query.q:
        bins = bins_of(query, schema)
        return QuantileEstimator(
            q=query.q,
            method=query.method or "tree",
            lower=bins.lower,
            upper=bins.upper,
            exponent=bins.exponent,
            width=bins.width,
            branching=query.branching or 2,
            isotonic=True,
        )
    match query.kind:
        case "share":
            return ShareEstimator(counted=query.value is None, shifts=shifts)
        case "count_distinct":
            levels = list(dict.fromkeys(key[-1] for key in labels))
            known = sum(one not in _UNKNOWN for one in levels)
            return DistinctEstimator(
                at_least=query.at_least or 1, levels=len(levels), counted=known
            )
        case "compare":
            if query.to not in labels:
                raise InvalidArgument(
                    f"to must be one of the groups, such as {labels[0] if labels else ()}; got "
                    f"{query.to}."
                )
            mean = estimator_of(_as_mean(query), shifts, schema, labels)
            if not isinstance(mean, SumEstimator):
                raise InvalidArgument("compare takes one number or boolean.")
            return DifferenceEstimator(mean=mean, to=labels.index(query.to))
        case "ratio" | "weighted_mean":
            return _ratio_estimator(query, shifts, schema)
    if query.value is None or query.kind == "count":
        return SumEstimator(kind=query.kind, lower=0, upper=1, exponent=0, shifts=shifts)
    value = bounds(query, schema)
    if query.second_value is not None:
        other = bounds(replace(query, value=query.second_value), schema)
        if query.kind == "correlation":
            return CorrelationEstimator(
                width=value.upper - value.lower, other=other.upper - other.lower, shifts=shifts
            )
        return CovarianceEstimator(
            width=value.upper - value.lower,
            other=other.upper - other.lower,
            exponent=value.exponent + other.exponent,
            shifts=shifts,
        )
    return SumEstimator(
        kind=query.kind,
        lower=value.lower,
        upper=value.upper,
        exponent=value.exponent,
        shifts=shifts,
        population=query.sampling,
    )


def _ratio_estimator(query: Query, shifts: tuple[int, ...], schema: Schema) -> RatioEstimator:
    y, x = _pair(query, schema)
    if query.kind == "weighted_mean":
        h = Fraction(y.upper - y.lower)
        return RatioEstimator(
            lower=-h,
            upper=h,
            offset=y.lower + y.upper,
            exponent=y.exponent - 1,
            positive=True,
            denominator=x.upper,
            numerator=x.upper * (y.upper - y.lower),
            population=query.sampling,
            shifts=shifts,
        )
    ends: tuple[Fraction | None, Fraction | None] = (None, None)
    if x.lower > 0:
        corners = [Fraction(p, q) for p in (y.lower, y.upper) for q in (x.lower, x.upper)]
        ends = min(corners), max(corners)
    elif x.lower == 0:
        ends = (Fraction(0) if y.lower >= 0 else None), (Fraction(0) if y.upper <= 0 else None)
    return RatioEstimator(
        lower=ends[0],
        upper=ends[1],
        offset=0,
        exponent=y.exponent - x.exponent,
        positive=x.lower >= 0,
        denominator=_largest(x),
        numerator=_largest(y),
        population=query.sampling,
        shifts=shifts,
    )

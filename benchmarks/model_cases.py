"""What is measured of models."""

from __future__ import annotations

from benchmarks.case import MILLION, NONE, WARM, Case, Params

_ADULT: Params = {"adult": 1, "epsilon": 1.0, "delta": 1e-5, "fits": 5}
_STEPS: Params = {
    **_ADULT,
    "batches": 20,
    "epochs": 15,
    "clip": 1.9,
    "learning_rate": 0.5,
    "momentum": 0.9,
}
_FIT: Params = {"fits": 1}
SGD = (
    Case(
        name="logistic regression, Adult, 300 steps at rate 1/20, 5 fits",
        kind="adult_descent",
        params={**_STEPS, "fastest": 0},
        warm={**_FIT, "epochs": 1},
        peers={"opacus": NONE},
        once=True,
    ),
    Case(
        name="the same, Opacus with ghost clipping and batches loaded at once",
        kind="adult_descent",
        params={**_STEPS, "fastest": 1},
        warm={**_FIT, "epochs": 1},
        peers={"opacus": NONE},
        once=True,
    ),
    Case(
        name="logistic regression, Adult, nothing chosen, 5 fits",
        kind="adult_untuned",
        params=_ADULT,
        warm=_FIT,
        peers={"diffprivlib": NONE},
        once=True,
    ),
    Case(
        name="the same, pure epsilon on both sides",
        kind="adult_pure",
        params=_ADULT,
        warm=_FIT,
        peers={"diffprivlib": NONE},
        once=True,
    ),
)

# Tables in `regression_data`: how many regressors decides who can take part.
_TABLES = (
    "concrete",
    "wine",
    "smokers",
    "grades",
    "computers",
    "California",
    "wages",
    "diamonds",
    "flights",
    "Galton",
    "schooling",
    "heights",
    "carats",
    "Ames",
    "incomes",
    "storms",
    "workers",
    "households",
    "weather",
)
_SINGLE = {"Galton", "schooling", "heights", "carats"}


def regression(number: int, name: str, *, given: bool = False) -> tuple[Case, ...]:
    """The error of predictions for one table, at four epsilons."""
    peers = {"diffprivlib": NONE, "noisy_descent": NONE}
    if name in _SINGLE and not given:
        peers["opendp"] = NONE
    return tuple(
        Case(
            name=f"regression, {name}, epsilon {epsilon}",
            kind="regression_error",
            params={"table": number, "epsilon": epsilon, "delta": 1e-6, "fits": 2, "given": given},
            warm={"fits": 0},
            peers=peers,
            once=True,
        )
        for epsilon in (0.1, 0.3, 1.0, 3.0)
    )


_SIZE: Params = {"n": MILLION, "d": 20, "epsilon": 1.0}
REGRESSION = (
    Case(
        name="linear regression, 1e6 rows x 20, from moments",
        kind="regression_fit",
        params={**_SIZE, "best": 0},
        warm=WARM,
        peers={"diffprivlib": NONE},
    ),
    Case(
        name="linear regression, 1e6 rows x 20, method chosen",
        kind="regression_fit",
        params={**_SIZE, "best": 1},
        warm=WARM,
        peers={"diffprivlib": NONE},
    ),
    Case(
        name="linear regression, 1e7 rows x 20 in Parquet; peer: the sums without privacy",
        kind="regression_file",
        params={**_SIZE, "n": 10 * MILLION},
        warm=WARM,
        peers={"duckdb": NONE},
    ),
    *(case for number, name in enumerate(_TABLES) for case in regression(number, name)),
)

PATE = (
    Case(
        name="costs of 1e6 votes x 10 classes, two levels, 116 orders",
        kind="vote_costs",
        params={"n": MILLION, "classes": 10},
        warm=WARM,
        size="n",
        peers={"gnmax_2018": {"n": 5_000}},
    ),
)

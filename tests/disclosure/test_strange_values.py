"""One strange value: an answer, or a refusal that does not quote it. Nothing here is private."""

import warnings

import numpy as np
import pandas as pd
import pytest

from discreet import disclosure
from discreet.core.errors import PrivacyError
from discreet.noise.random_source import seeded_rng
from tests.hostile.catalogue import STRANGE

VALUES = np.linspace(0, 10, 40).tolist()
MATRIX = disclosure.pram([[0.8, 0.2], [0.2, 0.8]])


def table(value):
    column = np.empty(13, dtype=object)
    column[:12] = list("abcabcabcabc")
    column[12] = value
    return pd.DataFrame({"age": [1, 2, 3, 4] * 3 + [1], "ill": pd.Series(column, dtype=object)})


CALLS = {
    "k_anonymize": lambda v: disclosure.k_anonymize(
        table(v),
        quasi_identifiers={"age": disclosure.interval_hierarchy([0, 2.5, 5])},
        sensitive=["ill"],
        k=3,
    ),
    "k_anonymize of categories": lambda v: disclosure.k_anonymize(
        table(v), quasi_identifiers={"ill": disclosure.category_hierarchy()}, k=3
    ),
    "disclosure_risk": lambda v: disclosure.disclosure_risk(
        table(v), quasi_identifiers=["ill"], sensitive=["age"]
    ),
    "anonymity_sets": lambda v: disclosure.anonymity_sets(
        [*VALUES, v], released=[*VALUES, v], half_width=1
    ),
    "k_noise": lambda v: disclosure.k_noise([*VALUES, v], k=3, rng=seeded_rng(1)),
    "k_pram": lambda v: disclosure.k_pram([*VALUES, v], edges=[0, 5, 10], k=3, rng=seeded_rng(1)),
    "adaptive_jitter": lambda v: disclosure.adaptive_jitter(
        [*VALUES, v], half_width=1, window=1, cap=2, rng=seeded_rng(1)
    ),
    "pram": lambda v: MATRIX.apply([0, 1, v], rng=seeded_rng(1)),
    "group_sizes": lambda v: disclosure.group_sizes([0, 1, v], matrix=MATRIX),
    "histogram": lambda v: disclosure.histogram([*VALUES, v], edges=[0, 5, 10]),
    "ks_distance": lambda v: disclosure.ks_distance([*VALUES, v], other=VALUES),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_strange_value_is_answered_or_refused_without_quoting_it(name):
    refusals, answers = set(), 0
    for value in STRANGE.values():
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            try:
                CALLS[name](value)
                answers += 1
            except PrivacyError as refused:
                refusals.add(str(refused))
    assert answers
    assert len(refusals) <= 3
    # No refusal has anything of a value in it: each is of fixed words and public numbers.
    assert not any(word in text for text in refusals for word in ("secret", "nan", "a\0", "e+"))

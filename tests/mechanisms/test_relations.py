"""A mechanism names whom it protects when it is made."""

import pytest

import discreet


@pytest.mark.parametrize(
    "make",
    [
        discreet.laplace,
        discreet.truncated_laplace,
        discreet.exponential_mechanism,
        discreet.permute_and_flip,
        discreet.report_noisy_max,
        discreet.above_threshold,
    ],
)
def test_what_is_no_relation_is_refused_where_it_is_written(make):
    delta = {"delta": 1e-6} if make is discreet.truncated_laplace else {}
    given = {"sensitivity": 1, "epsilon": 1, **delta}
    assert make(**given, relation=discreet.NeighboringRelation.REPLACE_ONE).relation
    with pytest.raises(
        discreet.InvalidArgument, match="one of discreet.NeighboringRelation, got str"
    ):
        make(**given, relation="add")

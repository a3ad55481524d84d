"""Sentences and numbers on pairs of models that several assessments share."""

from advrisk.assess.pairs import samples_that_decide


def test_samples_that_would_decide_are_named_where_the_data_set_may_have_them() -> None:
    assert samples_that_decide(1200) == "about 1,200 more samples would probably decide"
    assert samples_that_decide(50, 50) == "about 50 more samples would probably decide"
    assert samples_that_decide(50, 1) == "the data set has 1 more sample, probably too few to decide"
    assert samples_that_decide(50, 0) == "these samples do not decide, and the data set has no more"

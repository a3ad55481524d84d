"""The worst-case ROC against every threshold tried by hand: at least one success, and every success detected."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from advrisk.risk.detection import detection_performance, worst_case_scores
from advrisk.risk.detection.entries import Scored, Settings
from advrisk.risk.detection.groups import ScoredArm
from advrisk.risk.detection.table import detection_table

# Few distinct scores, so that there are ties, within and between clean and attacked inputs.
SCORES = st.integers(-2, 2).map(float) | st.floats(-3, 3, allow_nan=False)


@st.composite
def watched(draw: st.DrawFn) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Clean scores, scores of arms and their successes; at least one sample is broken."""
    n, n_arms = draw(st.integers(1, 8)), draw(st.integers(1, 5))
    clean = draw(st.lists(SCORES, min_size=n, max_size=n))
    scores = draw(st.lists(st.lists(SCORES, min_size=n, max_size=n), min_size=n_arms, max_size=n_arms))
    flags = st.lists(st.booleans(), min_size=n, max_size=n)
    success = np.array(draw(st.lists(flags, min_size=n_arms, max_size=n_arms)))
    success[draw(st.integers(0, n_arms - 1)), draw(st.integers(0, n - 1))] = True
    return np.array(clean), np.array(scores), success


def detected(scores: np.ndarray, success: np.ndarray, sample: int, threshold: float) -> bool:
    """At least one success, and every success detected: the definition, arm by arm."""
    hits = [arm for arm in range(len(scores)) if success[arm, sample]]
    return bool(hits) and all(scores[arm, sample] >= threshold for arm in hits)


@given(watched())
def test_the_worst_case_roc_is_the_definition_at_every_threshold(given: tuple[np.ndarray, ...]) -> None:
    clean, scores, success = given
    found = detection_performance(clean, worst_case_scores(scores, success), rng=np.random.default_rng(0), resamples=2)
    broken = [sample for sample in range(clean.size) if success[:, sample].any()]
    for fpr, tpr, threshold in zip(*found.roc, strict=True):
        assert fpr == (clean >= threshold).mean()
        assert tpr == np.mean([detected(scores, success, sample, threshold) for sample in broken])
    thresholds = set(found.roc.threshold[1:])
    assert thresholds >= set(clean), "every clean score is a threshold"
    tried = {float(score) for score in scores[success]} | set(clean) | {np.inf, -np.inf}
    points = set(zip(found.roc.fpr, found.roc.tpr, strict=True))
    for threshold in tried:
        point = (clean >= threshold).mean(), np.mean([detected(scores, success, s, threshold) for s in broken])
        assert point in points, "no threshold leads beside the curve"


@given(watched())
def test_rates_of_the_roc_only_rise_and_hold_the_auroc(given: tuple[np.ndarray, ...]) -> None:
    clean, scores, success = given
    found = detection_performance(clean, worst_case_scores(scores, success), rng=np.random.default_rng(0), resamples=2)
    fpr, tpr, threshold = found.roc
    assert (fpr[0], tpr[0], fpr[-1], tpr[-1]) == (0, 0, 1, 1)
    assert (np.diff(fpr) >= 0).all()
    assert (np.diff(tpr) >= 0).all()
    assert (np.diff(threshold) < 0).all()
    assert np.isclose(np.trapezoid(tpr, fpr), found.auroc.value)
    assert 0 <= found.auroc.low <= found.auroc.value <= found.auroc.high <= 1
    enough = tpr >= 0.95
    assert found.fpr_at_tpr.value == fpr[enough][0]


@given(watched())
def test_more_arms_on_the_same_samples_never_help_the_detector(given: tuple[np.ndarray, ...]) -> None:
    """With another arm that breaks a sample that was broken already, no point of the ROC rises."""
    clean, scores, success = given
    again = np.vstack([scores, np.flip(scores, axis=0)[:1]])
    more = np.vstack([success, success.any(axis=0)])
    rng = np.random.default_rng(0)
    before = detection_performance(clean, worst_case_scores(scores, success), rng=rng, resamples=2)
    after = detection_performance(clean, worst_case_scores(again, more), rng=rng, resamples=2)
    assert after.auroc.value <= before.auroc.value + 1e-12
    assert after.fpr_at_tpr.value >= before.fpr_at_tpr.value


@given(watched())
def test_only_the_order_of_scores_matters(given: tuple[np.ndarray, ...]) -> None:
    clean, scores, success = given
    values = np.unique(np.concatenate([clean, scores.ravel()]))
    cubed = {float(value): float(place**3) for place, value in enumerate(values)}
    found, bent = (
        detection_performance(f(clean), worst_case_scores(f(scores), success), rng=np.random.default_rng(0))
        for f in (np.asarray, np.vectorize(lambda value: cubed[float(value)], otypes=[float]))
    )
    assert bent.auroc == found.auroc
    assert bent.fpr_at_tpr == found.fpr_at_tpr


@given(watched(), st.data())
def test_arms_that_know_the_detector_never_help_it(given: tuple[np.ndarray, ...], data: st.DataObject) -> None:
    """Also where they break samples that no other arm did, or gave no verdict on some."""
    clean, scores, success = given
    judged = np.ones_like(success)
    judged[-1] = data.draw(st.lists(st.booleans(), min_size=clean.size, max_size=clean.size))
    usual = [ScoredArm(f"pgd {place}", family="pgd", norm="linf", eps=0.1) for place in range(len(scores) - 1)]
    knowing = ScoredArm("adaptive", family="adaptive", norm="linf", eps=0.1, against="eye@1")
    scored = Scored((*usual, knowing), success & judged, scores, clean, judged)
    (found,) = detection_table(scored, "eye@1", Settings(0.95, 0.95, 2, 0)).adaptive
    assert found.together.n_broken == found.without.n_broken == (success[:-1] & judged[-1]).any(axis=0).sum()
    assert found.alone.n_broken == (success[-1] & judged[-1]).sum()
    assert (found.together.auroc is None) == (found.without.auroc is None)
    if found.together.auroc and found.without.auroc and found.together.fpr_at_tpr and found.without.fpr_at_tpr:
        assert found.together.auroc.value <= found.without.auroc.value
        assert found.together.fpr_at_tpr.value >= found.without.fpr_at_tpr.value
        assert found.together.chance_auroc <= found.without.chance_auroc

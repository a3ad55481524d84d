"""Which picture comes next."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import pytest

from advrisk.answers.records import Shown, TrialRow
from advrisk.assess.damage.answers import fit_answers
from advrisk.assess.damage.people import walk_order
from advrisk.core.errors import RunError
from advrisk.risk.labelling import informative_sizes
from advrisk.web.history import LabellerHistory, TrialHistory
from advrisk.web.labelling import Labelling
from advrisk.web.stimuli import Pool
from advrisk.web.trials import Asking, at_size, is_catch, n_to_walk, next_shown


def seen_by(pool: Pool, own: Iterable[Shown], others: Iterable[Shown] = (), *, labeller: int = 1) -> LabellerHistory:
    """What a labeller was shown, and somebody else before."""
    history = TrialHistory([example.sample for example in pool.examples])
    trials = [*((0, one) for one in others), *((labeller, one) for one in own)]
    places = Counter[int]()
    for n, (who, shown) in enumerate(trials):
        history.put(TrialRow(n, who, places[who], shown, "stands"))
        places[who] += 1
    return history.of(labeller)


def sequence(pool: Pool, asking: Asking, n: int, *, labeller: int = 1, others: tuple[Shown, ...] = ()) -> list[Shown]:
    curve = fit_answers([], design=asking.design, plausible=pool.plausible, few=True)
    sizes = informative_sizes(curve, pool.sizes)
    shown: list[Shown] = []
    for place in range(n):
        one = next_shown(
            pool, asking, sizes, labeller=labeller, place=place, seen=seen_by(pool, shown, others, labeller=labeller)
        )
        if one is None:
            break
        shown.append(one)
    return shown


@pytest.mark.parametrize(("share", "expected"), [(0.0, 0), (1 / 6, 100), (0.5, 300)])
def test_catch_trials_have_their_share_and_no_fixed_place(share: float, expected: int) -> None:
    places = [place for place in range(600) if is_catch(share, 7, 1, place)]
    assert len(places) == expected
    if 0 < share < 0.5:
        assert len(set(np.diff(places))) > 3
        assert places != [place for place in range(600) if is_catch(share, 7, 2, place)]


def test_catch_trials_show_unchanged_pictures(labelling: Labelling) -> None:
    shown = sequence(labelling.pool, Asking("yes-no"), 36)
    catch = [one for one in shown if one.catch]
    assert len(catch) == 6
    assert all(one.size == 0 and one.cell is None and one.model is None for one in catch)
    assert all(one.cell is not None for one in shown if not one.catch)


def test_in_a_forced_choice_catch_trials_are_easy_and_sides_balanced(labelling: Labelling) -> None:
    shown = sequence(labelling.pool, Asking("forced-choice"), 120)
    easy = [one.size for one in shown if one.catch]
    assert len(easy) == 20
    assert min(easy) > 0.5 * labelling.pool.sizes[-1]
    first = sum(one.changed_first for one in shown)
    assert 40 <= first <= 80, "120 throws of a coin"
    assert not any(one.changed_first for one in sequence(labelling.pool, Asking("yes-no"), 30))


def test_the_same_original_does_not_come_again_and_again(labelling: Labelling) -> None:
    shown = sequence(labelling.pool, Asking("yes-no", catch=0.0), 60)
    counts = Counter(one.sample for one in shown)
    assert max(counts.values()) <= 4, "60 pictures of 38 originals"
    for place in range(60 - 12):
        assert len({one.sample for one in shown[place : place + 12]}) >= 11


def test_the_order_is_not_that_of_another_labeller(labelling: Labelling) -> None:
    first, second = (sequence(labelling.pool, Asking("yes-no"), 12, labeller=n) for n in (1, 2))
    assert first != second
    assert first == sequence(labelling.pool, Asking("yes-no"), 12, labeller=1)


def test_a_kept_example_is_preferred_and_the_size_met(labelling: Labelling) -> None:
    rng = np.random.default_rng(0)
    as_kept = 0
    for size in np.geomspace(0.02, 0.35, 30):
        shown = at_size(labelling.pool, float(size), seen_by(labelling.pool, []), rng)
        assert shown.size == pytest.approx(size, rel=0.12, abs=0.5 / 255)
        as_kept += shown.factor == 1.0
    assert as_kept >= 15
    beyond = at_size(labelling.pool, 0.7, seen_by(labelling.pool, []), rng)
    assert beyond.factor > 1
    assert beyond.size > 0.5


def test_what_others_saw_is_often_shown_too(labelling: Labelling) -> None:
    pool, rng = labelling.pool, np.random.default_rng(0)
    others = [pool.as_it_is(pool.examples[30])]
    size = others[0].size
    alike = [at_size(pool, size, seen_by(pool, [], others), rng) == others[0] for _ in range(40)]
    alone = [at_size(pool, size, seen_by(pool, []), rng) == others[0] for _ in range(40)]
    assert sum(alike) > 12 > sum(alone)
    mine = [others[0], *[Shown(f"s{n}", 0.1) for n in range(20)]]
    assert others[0] not in [at_size(pool, size, seen_by(pool, mine, others), rng) for _ in range(40)], (
        "not to the same labeller"
    )


def test_two_labellers_share_pictures(labelling: Labelling) -> None:
    first = sequence(labelling.pool, Asking("yes-no"), 30)
    second = sequence(labelling.pool, Asking("yes-no"), 30, labeller=2, others=tuple(first))
    assert len({(one.sample, one.size) for one in first} & {(one.sample, one.size) for one in second}) >= 6


def test_a_walk_goes_through_all_samples_once(labelling: Labelling) -> None:
    pool = labelling.pool
    asking = Asking("yes-no", "random", "hard", catch=0.0).checked(pool)
    shown = sequence(pool, asking, 100)
    assert len(shown) == n_to_walk(pool, "hard") == 39
    order = [sample for sample in walk_order(pool.distances.samples, seed=pool.seed) if sample != "s01"]
    assert [one.sample for one in shown] == order
    wrong = next(one for one in shown if one.sample == "s00")
    assert (wrong.size, wrong.cell, wrong.model) == (0.0, None, "hard")
    others = [one for one in shown if one.sample != "s00"]
    assert all(one.factor == 1.0 and one.cell == "c1" and one.trials == "random" for one in others)


@pytest.mark.parametrize(
    ("asking", "complaint"),
    [
        (Asking("yes-no", "random"), "needs --model, one of hard, plain"),
        (Asking("yes-no", "random", "plane"), "did you mean 'plain'"),
        (Asking("yes-no", "adaptive", "plain"), "--model belongs to --trials random"),
        (Asking("forced-choice", "random", "plain"), "use --design yes-no or side-by-side"),
    ],
)
def test_questions_that_cannot_be_asked_are_refused(labelling: Labelling, asking: Asking, complaint: str) -> None:
    with pytest.raises(RunError, match=complaint):
        asking.checked(labelling.pool)


def test_a_walk_needs_every_nearest_success(labelling: Labelling) -> None:
    pool = labelling.pool
    nearest = {key: example for key, example in pool.nearest.items() if key != ("plain", "s07")}
    with pytest.raises(RunError, match="nearest success of plain on s07 was not kept"):
        Asking("yes-no", "random", "plain").checked(replace(pool, nearest=nearest))


def test_the_only_model_need_not_be_named(labelling: Labelling) -> None:
    pool = labelling.pool
    one = replace(pool, distances=replace(pool.distances, by_model={"plain": pool.distances.by_model["plain"]}))
    assert Asking("yes-no", "random").checked(one).model == "plain"

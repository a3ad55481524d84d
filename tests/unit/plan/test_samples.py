"""Splits and shards: which samples, in which order, and what must never move."""

from typing import Any

import pytest

from advrisk.core.errors import DataError, LedgerError
from advrisk.plan import RecordedSample, Shard, choose_splits, cut_shards, refuse_moved, samples_left
from advrisk.study import DataSpec

IDS = [f"s{i}" for i in range(10)]
HASHES = {name: f"h-{name}" for name in IDS}


def splits(*, given: list[str] | None = None, seed: int = 0, **keys: Any) -> dict[str, list[str]]:
    """Split -> its samples, in the order in which they were chosen."""
    chosen = choose_splits(DataSpec(source="digits", **keys), IDS, given, seed=seed)
    return {split: [name for name in chosen if chosen[name] == split] for split in ("evaluate", "calibrate", "tune")}


def known(shards: list[Shard], *, split: str = "evaluate") -> dict[str, RecordedSample]:
    return {
        name: RecordedSample(HASHES[name], split, shard.id, place)
        for shard in shards
        for place, name in enumerate(shard.samples)
    }


def test_in_file_order_evaluate_is_the_front_and_the_others_the_back() -> None:
    assert splits(order="file", evaluate=3, calibrate=2, tune=4) == {
        "evaluate": ["s0", "s1", "s2"],
        "calibrate": ["s8", "s9"],
        "tune": ["s4", "s5", "s6", "s7"],
    }


def test_all_is_every_sample() -> None:
    assert sorted(splits(evaluate="all")["evaluate"]) == IDS


def test_shuffling_depends_on_the_seed_alone() -> None:
    first = splits(evaluate="all", seed=1)["evaluate"]
    assert first == splits(evaluate="all", seed=1)["evaluate"]
    assert first != splits(evaluate="all", seed=2)["evaluate"]
    assert first != IDS
    assert splits(evaluate="all", seed=2, order="file")["evaluate"] == IDS


def test_shuffling_does_not_depend_on_the_order_in_the_file() -> None:
    data = DataSpec(source="digits", evaluate=4, calibrate=2)
    assert choose_splits(data, IDS[::-1], None, seed=5) == choose_splits(data, IDS, None, seed=5)


def test_balanced_takes_classes_in_turn_each_in_shuffled_order() -> None:
    labels = [0, 0, 0, 0, 0, 0, 1, 1, 1, 2]
    data = DataSpec(source="digits", evaluate="all", order="balanced")
    chosen = list(choose_splits(data, IDS, None, seed=1, labels=labels))
    classes = [labels[IDS.index(name)] for name in chosen]
    assert [sorted(classes[start:end]) for start, end in ((0, 3), (3, 5), (5, 7), (7, 10))] == [
        [0, 1, 2],
        [0, 1],
        [0, 1],
        [0, 0, 0],
    ]
    shuffled = splits(evaluate="all", seed=1)["evaluate"]
    for one in range(3):
        assert [name for name in chosen if labels[IDS.index(name)] == one] == [
            name for name in shuffled if labels[IDS.index(name)] == one
        ]
    backwards = choose_splits(data, IDS[::-1], None, seed=1, labels=labels[::-1])
    assert list(backwards) == chosen, "whatever the order in the file"


def test_a_source_s_own_splits_are_kept() -> None:
    given = ["train", "train", "test", "test", "test", "evaluate", "evaluate", "tune", "test", "train"]
    found = splits(order="file", given=given, evaluate=1, calibrate=3, tune=1)
    assert found == {"evaluate": ["s5"], "calibrate": ["s3", "s4", "s8"], "tune": ["s7"]}


@pytest.mark.parametrize(
    ("keys", "complaint"),
    [
        ({"evaluate": 11}, "evaluate: the study needs 11 samples, but 10 of 10 are left"),
        ({"evaluate": 8, "calibrate": 3}, "calibrate: the study needs 3 samples, but 2 of 10 are left"),
        ({"evaluate": 5, "calibrate": 3, "tune": 3}, "tune: the study needs 3 samples, but 2 of 10 are left"),
        ({"evaluate": "all", "tune": 1}, "tune: the study needs 1 samples, but 0 of 10 are left"),
        ({"evaluate": 1, "given": ["train"] * 10}, "evaluate: the study needs 1 samples, but 0 of 10 are left"),
        (
            {"evaluate": 3, "given": ["evaluate"] * 2 + ["test"] * 8},
            "evaluate: the study needs 3 samples, but 2 of 10 are left",
        ),
    ],
)
def test_more_samples_than_there_are_is_refused(keys: dict[str, Any], complaint: str) -> None:
    with pytest.raises(DataError) as caught:
        splits(**keys)
    assert str(caught.value) == complaint


def test_marks_must_be_as_many_as_samples() -> None:
    with pytest.raises(ValueError, match="shorter"):
        splits(evaluate=1, given=["test"] * 9)


def test_new_samples_are_cut_in_order_into_shards_of_the_asked_size() -> None:
    shards = cut_shards(IDS, HASHES, {}, size=4)
    assert [shard.samples for shard in shards] == [tuple(IDS[:4]), tuple(IDS[4:8]), tuple(IDS[8:])]
    assert len({shard.id for shard in shards}) == 3


def test_no_samples_no_shards() -> None:
    assert cut_shards([], HASHES, {}, size=4) == []


def test_a_shard_is_named_by_the_ids_and_contents_of_its_samples() -> None:
    (shard,) = cut_shards(IDS[:2], HASHES, {}, size=4)
    assert shard == cut_shards(IDS[:2], HASHES | {"s5": "other"}, {}, size=2)[0]
    assert shard.id != cut_shards(IDS[:2], HASHES | {"s1": "other"}, {}, size=4)[0].id
    assert shard.id != cut_shards(["s1", "s0"], HASHES, {}, size=4)[0].id
    assert shard.id != cut_shards(["s0"], HASHES, {}, size=4)[0].id


def test_shards_that_were_cut_stay_whole_and_new_samples_make_new_ones() -> None:
    before = cut_shards(IDS[:3], HASHES, {}, size=2)
    after = cut_shards(IDS[:6], HASHES, known(before), size=4)
    assert set(before) <= set(after)
    assert [shard.samples for shard in after if shard not in before] == [("s3", "s4", "s5")]


def test_the_order_in_which_samples_are_remembered_does_not_matter() -> None:
    before = cut_shards(IDS, HASHES, {}, size=3)
    remembered = known(before)
    assert cut_shards(IDS, HASHES, dict(reversed(remembered.items())), size=3) == cut_shards(
        IDS, HASHES, remembered, size=3
    )
    assert {shard.samples for shard in cut_shards(IDS, HASHES, dict(reversed(remembered.items())), size=3)} == {
        shard.samples for shard in before
    }


def test_a_shard_is_kept_whole_if_one_of_its_samples_is_asked_for_and_left_out_if_none_is() -> None:
    before = cut_shards(IDS[:6], HASHES, {}, size=2)
    after = cut_shards(["s0", "s3", "s2"], HASHES, known(before), size=2)
    assert {shard.samples for shard in after} == {("s0", "s1"), ("s2", "s3")}


def test_known_samples_without_a_shard_are_cut_like_new_ones() -> None:
    held = {"s1": RecordedSample("h-s1", "dropped")}
    assert cut_shards(IDS[:2], HASHES, held, size=2) == cut_shards(IDS[:2], HASHES, {}, size=2)


@pytest.mark.parametrize("asked", [["s1"], ["s5"]])
def test_a_sample_that_changed_is_refused(asked: list[str]) -> None:
    held = known(cut_shards(IDS[:2], HASHES, {}, size=2))
    with pytest.raises(LedgerError, match="sample s1 changed since this run began; choose another folder"):
        cut_shards(asked, HASHES | {"s1": "other"}, held, size=2)


def test_a_sample_that_vanished_is_refused_where_its_shard_is_needed() -> None:
    held = known(cut_shards(IDS[:4], HASHES, {}, size=2))
    left = {name: value for name, value in HASHES.items() if name != "s1"}
    with pytest.raises(LedgerError, match="sample s1 is in this run but no longer in the data"):
        cut_shards(["s0"], left, held, size=2)
    assert [shard.samples for shard in cut_shards(["s2"], left, held, size=2)] == [("s2", "s3")]


@pytest.mark.parametrize(
    ("before", "now"), [("evaluate", "tune"), ("tune", "calibrate"), ("calibrate", "evaluate"), ("train", "evaluate")]
)
def test_a_sample_never_moves_from_one_split_to_another(before: str, now: str) -> None:
    with pytest.raises(LedgerError, match=f"sample s1 was used as '{before}' in this run and is now '{now}'"):
        refuse_moved({"s0": now, "s1": now}, {"s1": RecordedSample("h", before)})


def test_a_sample_may_stay_come_or_go() -> None:
    held = {
        "s0": RecordedSample("h", "tune"),
        "s1": RecordedSample("h", "evaluate"),
        "s2": RecordedSample("h", "dropped"),
    }
    refuse_moved({"s0": "tune", "s2": "evaluate", "s3": "calibrate"}, held)


def test_a_larger_calibrate_takes_from_tune_and_a_run_that_used_it_says_so() -> None:
    before = choose_splits(DataSpec(source="d", order="file", evaluate=1, calibrate=2, tune=2), IDS, None, seed=0)
    after = choose_splits(DataSpec(source="d", order="file", evaluate=1, calibrate=3, tune=2), IDS, None, seed=0)
    held = {name: RecordedSample(HASHES[name], split) for name, split in before.items()}
    with pytest.raises(LedgerError, match="sample s7 was used as 'tune' in this run and is now 'calibrate'"):
        refuse_moved(after, held)


def test_an_unknown_mark_or_an_empty_evaluation_is_refused() -> None:
    with pytest.raises(DataError, match="unknown split 'evalute'; did you mean 'evaluate'"):
        splits(evaluate=1, given=["evalute"] * 10)
    with pytest.raises(DataError, match="evaluate: the study needs 0 samples"):
        splits(evaluate="all", given=["train"] * 10)


def test_a_dropped_sample_was_evaluated_and_cannot_become_another_split() -> None:
    with pytest.raises(LedgerError, match="was used as 'evaluate'"):
        refuse_moved({"s1": "calibrate"}, {"s1": RecordedSample("h", "dropped")})
    refuse_moved({"s1": "evaluate"}, {"s1": RecordedSample("h", "dropped")})


@pytest.mark.parametrize(
    ("keys", "given", "left"),
    [
        ({"evaluate": 3, "tune": 2}, None, 5),
        ({"evaluate": "all"}, None, 0),
        ({"evaluate": 2, "calibrate": 1}, ["evaluate"] * 4 + ["test"] * 6, 2),  # of those that are marked for it
        ({"evaluate": 3}, ["train"] * 6 + ["test"] * 4, 1),
    ],
)
def test_samples_that_could_still_be_evaluated(keys: dict[str, Any], given: list[str] | None, left: int) -> None:
    chosen = choose_splits(DataSpec(source="digits", **keys), IDS, given, seed=0)
    assert samples_left(IDS, given, chosen) == left
    if left:
        more = choose_splits(
            DataSpec(source="digits", **keys | {"evaluate": keys["evaluate"] + left}), IDS, given, seed=0
        )
        assert len(more) == len(chosen) + left
    beyond = keys | {"evaluate": list(chosen.values()).count("evaluate") + left + 1}
    with pytest.raises(DataError):
        choose_splits(DataSpec(source="digits", **beyond), IDS, given, seed=0)

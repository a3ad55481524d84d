"""Optimality by hand, and what is said of arms that could be dropped."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from advrisk.assess.attacks.envelope import arm_optimality
from advrisk.assess.damage.distances import arm_distances, smallest_distances
from advrisk.ledger import Ledger
from advrisk.ledger import ledger as reading
from advrisk.ledger.exchange.importing import import_outcomes

INF = float("inf")
MakeLedger = Callable[..., Ledger]

# Sample 0 is wrong from the start and 4 resists; the envelope is 0, .1, .2, .4, inf, so that ε0 = .4 and all
# arms together gain .3 + .2 + 0 + 0.
BY_HAND = {
    "near": [0, 0.1, 0.3, INF, INF],  # gains .3 + .1
    "wide": [0, 0.4, 0.2, 0.4, INF],  # gains 0 + .2
    "same": [0, 0.1, INF, INF, INF],  # gains .3
    "none": [0, INF, INF, INF, INF],
}


def test_optimality_by_hand(found_by: MakeLedger) -> None:
    found = arm_optimality(found_by({"m": BY_HAND}), norm="linf")
    rows = {row.name: row for row in found.by_model["m"]}
    assert {name: row.optimality for name, row in rows.items()} == {
        "near": pytest.approx(0.4 / 0.5),
        "wide": pytest.approx(0.2 / 0.5),
        "same": pytest.approx(0.3 / 0.5),
        "none": 0.0,
    }
    assert {name: row.broken for name, row in rows.items()} == {"near": 0.6, "wide": 0.8, "same": 0.4, "none": 0.2}
    assert {name: (row.nearest, row.only) for name, row in rows.items()} == {
        "near": (1, 0),  # of sample 1, as `same`
        "wide": (2, 2),
        "same": (1, 0),
        "none": (0, 0),
    }
    assert rows["wide"].lost == pytest.approx(0.1 / 0.5)  # sample 2 at .3; sample 3 at inf is no nearer than ε0 = .4
    assert rows["near"].lost == rows["same"].lost == rows["none"].lost == 0.0


def test_of_two_arms_that_found_the_same_the_cheaper_stays(found_by: MakeLedger) -> None:
    facts = {name: {"n_forward": 3, "n_backward": 1} for name in BY_HAND} | {"near": {"n_forward": 9, "n_backward": 1}}
    found = arm_optimality(found_by({"m": BY_HAND}, facts), norm="linf")
    assert found.spare == ("near", "none")
    assert (found.n_passes, found.n_passes_spare) == (5 * (10 + 3 * 4), 5 * (10 + 4))
    assert [row.name for row in found.overall] == ["same", "wide", "near", "none"], "those that could go are last"


def test_without_counts_passes_are_not_known(found_by: MakeLedger) -> None:
    found = arm_optimality(found_by({"m": BY_HAND}), norm="linf")
    assert {row.passes for row in found.overall} == {None}
    assert (found.n_passes, found.n_passes_spare) == (None, None)
    assert found.spare


def test_over_all_models_shares_are_means_and_counts_are_sums(found_by: MakeLedger) -> None:
    unlike = {"near": [0.1, 0.2], "far": [0.3, 0.2]}
    ledger = found_by(
        {"m": unlike, "n": {"near": [0.2, 0.2], "far": [0.1, 0.1]}, "whole": {"near": [INF] * 2, "far": [INF] * 2}}
    )
    found = arm_optimality(ledger, norm="linf")
    rows = {row.name: row for row in found.overall}
    assert [row.optimality for row in found.by_model["whole"]] == [None, None]
    assert [row.optimality for row in found.by_model["n"]] == [None, None], "all at one distance"
    assert (rows["near"].optimality, rows["far"].optimality) == (1.0, 0.0), "of m alone, which tells them apart"
    assert (rows["near"].nearest, rows["far"].nearest) == (2, 3)
    assert (rows["near"].only, rows["far"].only) == (1, 2)
    assert rows["near"].broken == pytest.approx(2 / 3)
    assert found.spare == ()


def test_a_family_is_as_near_as_its_nearest_arm_and_takes_all_their_passes(found_by: MakeLedger) -> None:
    counts = {"n_forward": 2, "n_backward": 2}
    facts = {name: {"family": "f" if name in ("wide", "same") else "g", **counts} for name in BY_HAND}
    f, g = arm_optimality(found_by({"m": BY_HAND}, facts), norm="linf").families
    assert (f.name, f.optimality, f.passes) == ("f", 1.0, 8.0)
    assert (g.name, g.optimality, g.only) == ("g", pytest.approx(0.8), 0)


def test_samples_are_left_out_as_from_the_smallest_distances(found_by: MakeLedger) -> None:
    ledger = found_by({"m": {"a": [0.1, None, 0.3], "b": [0.2, 0.1, INF]}, "n": {"a": [0.1, 0.1, 0.1], "b": [0.1] * 3}})
    found, together = arm_distances(ledger, norm="linf"), smallest_distances(ledger, norm="linf")
    assert found.envelope.samples == together.samples == ("0", "2")
    assert found.envelope.n_without_verdict == 1
    np.testing.assert_array_equal(found.distance[0], [[0.1, 0.3], [0.2, INF]])
    np.testing.assert_array_equal(found.distance.min(1), [*together.by_model.values()])
    assert arm_optimality(ledger, norm="linf").as_dict()["n_without_verdict"] == 1


def test_passes_are_the_mean_over_samples_that_were_all_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several draws the nearest distance counts, and all passes; rows come in pieces of any size."""
    lines = ["model,arm,sample,repeat,d_linf,n_forward,n_backward"]
    lines += ["m,all,1,0,0.5,3,1", "m,all,1,1,0.25,2,0", "m,all,2,0,,4,0", "m,all,2,1,0,,"]
    lines += ["m,some,1,0,0.5,3,1", "m,some,1,1,,3,1", "m,some,2,0,0.5,,1", "m,some,2,1,0.75,,1"]
    (tmp_path / "theirs.csv").write_text("\n".join(lines))
    import_outcomes(tmp_path / "theirs.csv", tmp_path / "run")
    monkeypatch.setattr(reading, "_PIECE_ROWS", 3)
    found = arm_distances(Ledger.open(tmp_path / "run"), norm="linf")
    np.testing.assert_array_equal(found.distance, [[[0.25, 0.0], [0.5, 0.5]]])
    np.testing.assert_array_equal(found.passes, [[(6 + 4) / 2, np.nan]])


def test_only_the_arms_that_are_named_make_the_envelope(found_by: MakeLedger) -> None:
    found = arm_optimality(found_by({"m": BY_HAND}), norm="linf", arms=["near", "no*"])
    assert [row.name for row in found.overall] == ["near", "none"]
    assert found.overall[0].optimality == 1.0


def test_flags_of_cells_stand_beside_their_arms(found_by: MakeLedger) -> None:
    found = arm_optimality(found_by({"m": BY_HAND}, flags={"wide": ["still-gaining"]}), norm="linf")
    assert {row.name: row.flags for row in found.overall if row.flags} == {"wide": ("still-gaining",)}


def test_spare_arms_of_another_norm_are_told(found_by: MakeLedger) -> None:
    found = arm_optimality(found_by({"m": BY_HAND}, {"none": {"norm": "l2"}}), norm="linf")
    assert found.other_norms == ("l2",)

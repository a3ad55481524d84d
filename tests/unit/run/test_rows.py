import dataclasses
import pickle

import pytest
import torch

from advrisk.core.flags import FLAGS, NO_START_MESSAGE
from advrisk.engine import Trust
from advrisk.ledger import TABLES
from advrisk.run.judge import judge
from advrisk.run.perturb import Attempt, perturb
from advrisk.run.rows import DOUBTFUL, MAX_CLASSES, TOP_K, failed_result, judged_result
from advrisk.run.walk_back import LINE
from advrisk.study import TargetSpec
from advrisk.testing import toys

COMMON = {"run": "run1", "criterion": "label"}


def told(cell, target, attempt, **changes):
    verdict = judge(target, attempt, cell.arm)
    return judged_result(cell, target, attempt, verdict, **(COMMON | {"wall_s": 1.5, "process_s": 0.5} | changes))


def rows_of(result, table="outcomes"):
    return result.tables[table].to_pylist()


@pytest.fixture
def mixed(scene):
    """One sample of each fate: success, resisted, already wrong, error."""

    def attack(probe):
        x = torch.tensor([[1.0, 3.0], [1.0, 0.5], [1.0, 11.0]])
        probe.forward(x, torch.arange(3)).gradient()
        probe.forward(x[[1]] + 0.25, torch.tensor([1]))

    x0 = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 0.0]])
    target = scene.target(x0=x0)
    cell = scene.cell(scene.arm(objective="ace"), 4, repeat=2)
    return cell, target, perturb(target, cell, scene.registries(attack), seed=0, max_cell_s=None)


class TestJudged:
    def test_every_sample_has_a_row_that_says_what_happened(self, mixed):
        rows = rows_of(told(*mixed))
        assert [row["sample"] for row in rows] == ["s0", "s1", "s2", "s3"]
        assert [row["outcome"] for row in rows] == ["success", "resisted", "already_wrong", "error"]
        for row in rows:
            assert (row["run"], row["cell"], row["model"], row["criterion"]) == ("run1", "c" * 32, "larger", "label")
            assert (row["arm"], row["kind"], row["family"]) == ("mine-linf-5", "attack", "mine")
            assert (row["norm"], row["eps"], row["objective"], row["repeat"]) == ("linf", 5.0, "ace", 2)

    def test_numbers_of_a_success(self, mixed):
        row = rows_of(told(*mixed))[0]
        assert (row["clean_prediction"], row["prediction"]) == (0, 1)
        assert row["confidence"] == pytest.approx(torch.tensor([1.0, 3.0]).softmax(0)[1].item())
        assert row["success_rate"] == 1
        assert (row["d_l0"], row["d_l1"], row["d_l2"], row["d_linf"]) == (1, 3, 3, 3)
        assert 1 < row["near_linf"] == row["near_l1"] < 1.1, "(1, a) is a success for a > 1"
        assert (row["n_forward"], row["n_backward"], row["n_judge"], row["n_rejected"]) == (1, 1, 1 + LINE, 0)
        assert (row["n_forward_first"], row["n_backward_first"]) == (1, 0)
        assert row["first_s"] > 0
        assert row["survives_8bit"] is None  # no image
        assert row["message"] is None

    def test_numbers_of_a_resisted_sample(self, mixed):
        row = rows_of(told(*mixed))[1]
        assert row["prediction"] == 0
        assert row["success_rate"] == 0
        assert row["d_linf"] == 0.75
        assert (row["n_forward"], row["n_backward"]) == (2, 1)
        assert row["n_forward_first"] is row["n_backward_first"] is row["first_s"] is None

    def test_numbers_of_a_sample_that_was_wrong_before(self, mixed):
        row = rows_of(told(*mixed))[2]
        assert (row["clean_prediction"], row["prediction"]) == (1, 1)
        assert (row["d_l0"], row["d_l1"], row["d_l2"], row["d_linf"]) == (0, 0, 0, 0)
        assert (row["n_forward"], row["n_backward"], row["n_judge"]) == (0, 0, 0)
        assert row["n_forward_first"] is None

    def test_an_error_tells_nothing_but_what_was_spent_and_why(self, mixed):
        row = rows_of(told(*mixed))[3]
        assert "left the space" in row["message"]
        for name in ("prediction", "confidence", "success_rate", "d_l0", "d_l1", "d_l2", "d_linf", "survives_8bit"):
            assert row[name] is None
        assert row["clean_prediction"] == 0
        assert row["n_forward"] == 0

    def test_outputs_hold_the_answers_that_can_be_trusted(self, mixed):
        outputs = rows_of(told(*mixed), "outputs")
        assert [row["sample"] for row in outputs] == ["s0", "s1", "s2"]
        assert [row["logits"] for row in outputs] == [[1, 3], [1.25, 0.75], [0, 1]]
        assert {row["classes"] for row in outputs} == {None}

    def test_the_cell_is_summed_up(self, mixed):
        result = told(*mixed)
        (row,) = rows_of(result, "cells")
        assert (row["cell"], row["recipe"], row["shard"]) == ("c" * 32, "r" * 32, "shard")
        assert (row["n_samples"], row["n_errors"], row["accounting"]) == (4, 1, "sample")
        assert (row["wall_s"], row["process_s"]) == (1.5, 0.5)
        # The one sample that resisted was asked at a lead of 0.5 twice: its objective stood still.
        assert (row["zero_gradients"], row["not_increasing"], row["still_gaining"]) == (0.0, 1.0, None)
        assert row["flags"] == ["not-increasing"]
        assert (result.n_rows, result.n_errors) == (4, 1)
        assert result.n_passes == 3 + 2 + 2 + LINE  # forwards, backwards, and those of the judge, who walks one back
        assert len(result.messages) == 1
        assert "left the space" in result.messages[0]

    def test_tables_have_the_columns_of_the_ledger(self, mixed):
        for name, table in told(*mixed).tables.items():
            assert table.schema.equals(TABLES[name])

    def test_a_claim_that_the_judge_does_not_confirm_is_flagged(self, scene):
        target, cell = scene.target(), scene.cell(scene.arm())
        attempt = Attempt(target.x0.clone(), torch.tensor([True, False, False]))
        (row,) = rows_of(told(cell, target, attempt), "cells")
        assert row["flags"] == ["unconfirmed"]

    @pytest.mark.parametrize(
        ("trust", "flags"),
        [
            (Trust(None, None, None), []),
            (Trust(0.0, 0.0, 0.0), []),
            (Trust(DOUBTFUL, DOUBTFUL, DOUBTFUL), []),
            (Trust(0.11, None, 0.05), ["zero-gradients"]),
            (Trust(0.0, 0.2, None), ["not-increasing"]),
            (Trust(None, 0.1, 1.0), ["still-gaining"]),
            (Trust(1.0, 1.0, 1.0), ["zero-gradients", "not-increasing", "still-gaining"]),
        ],
    )
    def test_shares_are_told_and_flagged_where_they_are_more_than_a_tenth(self, scene, trust, flags):
        target, cell = scene.target(), scene.cell(scene.arm())
        attempt = Attempt(target.x0.clone(), torch.zeros(3, dtype=torch.bool), trust=trust)
        (row,) = rows_of(told(cell, target, attempt), "cells")
        assert {name: row[name] for name in dataclasses.asdict(trust)} == dataclasses.asdict(trust)
        assert row["flags"] == flags
        assert set(flags) <= set(FLAGS)

    def test_a_single_sample_without_a_start_is_flagged(self, scene):
        target, cell = scene.target(), scene.cell(scene.arm())
        settled = {1: ("resisted", NO_START_MESSAGE)}
        claimed, trust = torch.zeros(3, dtype=torch.bool), Trust(no_start=0.01)
        result = told(cell, target, Attempt(target.x0.clone(), claimed, settled=settled, trust=trust))
        (row,) = rows_of(result, "cells")
        assert (row["flags"], row["no_start"]) == (["no-start"], 0.01)
        assert [row["message"] for row in rows_of(result)] == [None, NO_START_MESSAGE, None]
        assert result.n_errors == 0

    def test_other_flags_stand_beside_them(self, scene):
        target, cell = scene.target(model=toys.noisy(scene.model, sigma=1e-6)), scene.cell(scene.arm())
        attempt = Attempt(
            target.x0.clone(), torch.tensor([True, False, False]), trust=Trust(1.0, None, None), cut_short=True
        )
        (row,) = rows_of(told(cell, target, attempt), "cells")
        assert sorted(row["flags"]) == ["cut-short", "random-model", "unconfirmed", "zero-gradients"]

    def test_without_a_target_the_column_is_empty(self, mixed):
        assert [row["target"] for row in rows_of(told(*mixed))] == [None] * 4

    def test_with_a_target_rows_name_it(self, scene):
        """Class 0 must become 1; the last sample is of class 1 itself."""
        x0 = torch.tensor([[1.0, 0.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
        label = torch.tensor([0, 0, 0, 1])
        target = scene.target(x0=x0, label=label, criterion=TargetSpec(target=1))
        cell = scene.cell(scene.arm(), 4)
        points = torch.tensor([[1.0, 3.0], [1.0, 0.5]])
        attack = scene.registries(lambda probe: probe.forward(points, torch.arange(2)))
        attempt = perturb(target, cell, attack, seed=0, max_cell_s=None)
        rows = rows_of(told(cell, target, attempt, criterion="target"))
        assert [row["criterion"] for row in rows] == ["target"] * 4
        assert [row["target"] for row in rows] == [1, 1, 1, 1]
        assert [row["outcome"] for row in rows] == ["success", "resisted", "already_wrong", "resisted"]
        assert [row["message"] for row in rows] == [None, None, None, "the target is the sample's own class"]
        assert [row["n_forward"] for row in rows] == [1, 1, 0, 0]
        assert [row["prediction"] for row in rows] == [1, 0, 1, 1]
        assert [row["d_linf"] for row in rows] == [3, 0.5, 0, 0]

    def test_a_random_model_is_flagged(self, scene):
        target = scene.target(model=toys.noisy(scene.model, sigma=1e-6))
        attempt = Attempt(target.x0.clone(), torch.zeros(3, dtype=torch.bool))
        (row,) = rows_of(told(scene.cell(scene.arm()), target, attempt), "cells")
        assert row["flags"] == ["random-model"]

    def test_what_a_random_model_said_in_each_draw_is_stored(self, scene):
        toy = toys.linear(features=12, classes=MAX_CLASSES + 50)
        x0 = toy.inputs(3)
        target = scene.target(x0=x0, model=toys.noisy(toy.model, sigma=0.5), criterion="prediction")
        attempt = Attempt(x0.clone(), torch.zeros(3, dtype=torch.bool), settled={1: ("resisted", "left alone")})
        result = told(scene.cell(scene.arm()), target, attempt)
        outcomes, outputs = rows_of(result), rows_of(result, "outputs")
        assert outcomes[1]["draws"] is outputs[1]["draws"] is None, "the judge did not ask"
        for row, output in ((outcomes[0], outputs[0]), (outcomes[2], outputs[2])):
            assert len(row["draws"]) == 11
            changed = [said != row["clean_prediction"] for said in row["draws"]]
            assert row["success_rate"] == pytest.approx(sum(changed) / 11)
            scores = torch.tensor(output["draws"]).view(11, TOP_K)
            assert scores.exp().mean(0).log().tolist() == pytest.approx(output["logits"], abs=1e-4)
            largest = [output["classes"][place] for place in scores.argmax(1).tolist()]
            inside = [said in output["classes"] for said in row["draws"]]
            assert any(inside)
            assert all(one == said for one, said, there in zip(largest, row["draws"], inside, strict=True) if there)

    def test_a_model_that_does_not_draw_has_no_draws(self, mixed):
        assert {row["draws"] for table in ("outcomes", "outputs") for row in rows_of(told(*mixed), table)} == {None}

    def test_a_label_model_has_no_confidence_and_no_outputs(self, scene):
        target = scene.target(model=toys.label_only(scene.model))
        attempt = Attempt(target.x0.flip(1), torch.ones(3, dtype=torch.bool))
        result = told(scene.cell(scene.arm()), target, attempt)
        assert "outputs" not in result.tables
        assert [(row["prediction"], row["confidence"]) for row in rows_of(result)] == [(1, None)] * 3

    def test_images_say_whether_a_success_survives_storage(self, scene):
        x0 = torch.tensor([[0.5, 0.2]] * 2).view(2, 1, 1, 2)
        kept = torch.tensor([[0.5, 0.9], [0.5, 0.3]]).view(2, 1, 1, 2)
        target = scene.target(x0=x0, model=scene.model)
        result = told(scene.cell(scene.arm(), 2), target, Attempt(kept, torch.tensor([True, False])))
        assert [row["survives_8bit"] for row in rows_of(result)] == [True, None]

    def test_arms_without_eps_leave_it_empty(self, scene):
        target = scene.target()
        attempt = Attempt(target.x0.clone(), torch.zeros(3, dtype=torch.bool))
        row = rows_of(told(scene.cell(scene.clean), target, attempt))[0]
        assert (row["kind"], row["norm"], row["eps"], row["objective"]) == ("clean", None, None, None)
        assert (row["n_forward"], row["n_judge"], row["d_linf"]) == (0, 1, 0)

    def test_past_a_hundred_classes_only_the_largest_logits_are_kept(self, scene):
        toy = toys.linear(features=12, classes=MAX_CLASSES + 50)
        x0 = toy.inputs(3)
        target = scene.target(x0=x0, model=toy.model, criterion="prediction")
        attempt = Attempt(x0.clone(), torch.zeros(3, dtype=torch.bool))
        for row, answer in zip(
            rows_of(told(scene.cell(scene.arm()), target, attempt), "outputs"), toy.model.ask(x0), strict=True
        ):
            assert len(row["logits"]) == len(row["classes"]) == TOP_K
            assert row["classes"] == answer.argsort(descending=True)[:TOP_K].tolist()
            assert row["logits"] == pytest.approx(answer[row["classes"]].tolist())


class TestFailed:
    @pytest.mark.parametrize("outcome", ["error", "timeout"])
    def test_every_sample_has_a_row_with_the_reason(self, scene, outcome):
        cell = scene.cell(scene.arm(), repeat=1)
        result = failed_result(cell, **COMMON, outcome=outcome, message="the worker process died")
        rows = rows_of(result)
        assert [row["sample"] for row in rows] == ["s0", "s1", "s2"]
        for row in rows:
            assert (row["outcome"], row["message"], row["repeat"]) == (outcome, "the worker process died", 1)
            assert row["prediction"] is row["d_linf"] is row["n_forward_first"] is None
            assert (row["n_forward"], row["n_backward"], row["n_judge"]) == (0, 0, 0)
        assert (result.n_rows, result.n_errors, result.messages) == (3, 3, ("the worker process died",))
        (row,) = rows_of(result, "cells")
        assert row["n_errors"] == 3
        assert row["flags"] == []
        assert row["zero_gradients"] is row["not_increasing"] is row["still_gaining"] is None
        assert "outputs" not in result.tables

    def test_tables_have_the_columns_of_the_ledger(self, scene):
        result = failed_result(scene.cell(scene.arm()), **COMMON, outcome="error", message="x")
        for name, table in result.tables.items():
            assert table.schema.equals(TABLES[name])


def test_results_can_be_sent_between_processes(mixed):

    result = told(*mixed)
    again = pickle.loads(pickle.dumps(result))
    assert dataclasses.asdict(again)["n_passes"] == result.n_passes
    assert all(again.tables[name].equals(table) for name, table in result.tables.items())

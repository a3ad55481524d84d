"""From a study and its material to a plan."""

import numpy as np
import pytest

from advrisk.core.errors import StudyError
from advrisk.engine import Space
from advrisk.ledger import Ledger, Storage
from advrisk.parts import REGISTRIES
from advrisk.parts.data import Dataset
from advrisk.run.cell import run_cell
from advrisk.run.loading import Material
from advrisk.run.planning import outline_study, plan_study
from advrisk.run.workbench import Workbench
from advrisk.study import load_study
from advrisk.testing import toys

STUDY = """\
name: toy
data: {source: digits, evaluate: 6}
models: {linear: {source: object}}
success: SUCCESS
arms:
  - {attack: pgd, norm: linf, eps: 1/10, objective: OBJECTIVE}
"""
TARGETS = ["3", "next", "least-likely", "{0: 3, 1: 2, 2: 0}"]


@pytest.fixture
def asked(tmp_path):
    """A study file with that success, and a bench of six samples of classes 0, 1 and 2 and a model of four classes."""

    def make(success, *, objective="ace", classes=4, labels=(0, 1, 2, 0, 1, 2)):
        file = tmp_path / "mine.yaml"
        file.write_text(STUDY.replace("SUCCESS", success).replace("OBJECTIVE", objective))
        study = load_study(file)
        model = toys.linear(features=2, classes=classes).model
        names = tuple(f"s{number}" for number in range(6))
        x = np.random.default_rng(0).random((6, 2), dtype=np.float32)
        data = Dataset("toy", x, np.array(labels), 3, ids=names, low=-10, high=10)
        material = Material(data, Space.box(-10, 10), {"linear": model}, {name: row for row, name in enumerate(names)})
        return study, Workbench(study, REGISTRIES, material, tmp_path, "run1")

    return make


def planned(study, bench):
    return plan_study(outline_study(bench), Ledger(Storage(bench.folder)), bench)


def refusal(study, bench):
    with pytest.raises(StudyError) as caught:
        planned(study, bench)
    file = str(study.where.path)
    assert str(caught.value).startswith(f"{file}:")
    return str(caught.value).removeprefix(f"{file}:")


class TestTargets:
    @staticmethod
    def by_hand(bench):
        """Sample -> its class, and the target that each spelling means for it."""
        data, toy = bench.material.data, toys.linear(features=2, classes=4)
        scores = data.x @ toy.weight.numpy().T + toy.bias.numpy()
        found = {}
        for name, own, row in zip(data.ids, data.y.tolist(), scores, strict=True):
            unlikely = min((score, number) for number, score in enumerate(row) if number != own)[1]
            found[name] = own, dict(zip(TARGETS, (3, own + 1, unlikely, {0: 3, 1: 2, 2: 0}[own]), strict=True))
        return found

    @pytest.mark.parametrize("target", TARGETS)
    def test_of_every_spelling_are_planned_and_run(self, asked, target):
        """Every row names criterion and target, and its outcome follows from them."""
        study, bench = asked(f"{{target: {target}}}")
        wanted = self.by_hand(bench)
        cells = list(planned(study, bench).cells())
        assert [cell.arm.id for cell in cells] == ["clean", "pgd-linf-0.1-ace"]
        for cell in cells:
            for row in run_cell(cell, bench).tables["outcomes"].to_pylist():
                own, targets = wanted[row["sample"]]
                assert row["criterion"] == "target"
                assert row["target"] == targets[target]
                assert row["target"] != own
                if row["outcome"] in ("success", "already_wrong"):
                    assert row["prediction"] == row["target"]
                else:
                    assert (row["outcome"], row["message"]) == ("resisted", None)
                    assert row["prediction"] != row["target"]

    def test_samples_of_the_target_class_resist_with_a_message(self, asked):
        study, bench = asked("{target: 1}")
        attack = list(planned(study, bench).cells())[1]
        label = dict(zip(bench.material.data.ids, bench.material.data.y.tolist(), strict=True))
        rows = run_cell(attack, bench).tables["outcomes"].to_pylist()
        own = [row for row in rows if label[row["sample"]] == 1]
        assert len(own) == 2
        for row in own:
            assert (row["outcome"], row["target"]) == ("resisted", 1)
            assert row["message"] == "the target is the sample's own class"
            assert row["n_forward"] == 0
        assert all(row["message"] is None for row in rows if label[row["sample"]] != 1)

    @pytest.mark.parametrize(
        ("written", "missing"), [("{}", 0), ("{0: 3, 1: 2}", 2), ("{2: 1, 0: 1}", 1), ("{0: 1, 3: 1}", 1)]
    )
    def test_a_map_that_misses_a_class_is_refused(self, asked, written, missing):
        said = refusal(*asked(f"{{target: {written}}}"))
        assert said == f"4: success.target: names no target for class {missing}, which is evaluated"

    def test_a_class_that_is_not_evaluated_needs_no_target(self, asked):
        assert planned(*asked("{target: {0: 3}}", labels=(0,) * 6)).n_cells == 2

    @pytest.mark.parametrize(("target", "number"), [("4", 4), ("{0: 1, 1: 9, 2: 0}", 9)])
    def test_a_class_beyond_those_of_the_model_is_refused(self, asked, target, number):
        said = refusal(*asked(f"{{target: {target}}}"))
        assert said == f"4: success.target: found class {number}, but linear has 0 to 3"

    @pytest.mark.parametrize("objective", ["kl", "fisher-rao", "gini"])
    def test_an_objective_that_leads_to_no_class_is_refused(self, asked, objective):
        said = refusal(*asked("{target: next}", objective=objective))
        assert said.startswith(
            f"4: success: pgd-linf-0.1-{objective}: the objective {objective} cannot aim at a target"
        )
        assert {"ace", "dlr", "margin"} <= set(said.rpartition("; use ")[2].split(", "))

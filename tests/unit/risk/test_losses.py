"""Losses from stored answers."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advrisk.core.errors import AdvriskError, RegistryError, RiskError, StudyError
from advrisk.risk.losses import Answers, Loss, bound_loss, bound_losses, custom_loss, losses


def answers(**changes: Any) -> Answers:
    """Four answers of a model with three classes."""
    logits = np.array([[2.0, 1.0, 0.0], [0.0, 3.0, 0.0], [1.0, 0.0, 5.0], [0.0, 0.0, 1.0]])
    clean = np.array([[4.0, 0.0, 0.0], [3.0, 0.0, 0.0], [0.0, 0.0, 5.0], [0.0, 2.0, 0.0]])
    fields: dict[str, Any] = {
        "prediction": logits.argmax(1),
        "label": np.array([0, 0, 1, 1]),
        "clean_prediction": clean.argmax(1),
        "confidence": softmax(logits).max(1),
        "clean_confidence": softmax(clean).max(1),
        "logits": logits,
        "clean_logits": clean,
    }
    return Answers(**(fields | changes))


def softmax(logits: Any) -> Any:
    return np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)


def test_misclassified_and_class_change() -> None:
    assert bound_loss("misclassified")(answers()).tolist() == [0, 1, 1, 1]
    assert bound_loss("class-change")(answers()).tolist() == [0, 1, 0, 1]
    unknown = answers(clean_prediction=np.array([0, 0, -1, 1]))
    assert np.isnan(bound_loss("class-change")(unknown)).tolist() == [False, False, True, False]


def test_confidence_drop_is_what_the_label_lost() -> None:
    given = answers()
    rows = np.arange(4)
    before, now = (softmax(logits)[rows, given.label] for logits in (given.clean_logits, given.logits))
    assert bound_loss("confidence-drop")(given) == pytest.approx(np.maximum(before - now, 0))
    assert bound_loss("confidence-drop")(answers(logits=given.clean_logits)).tolist() == [0, 0, 0, 0]


def test_confidence_drop_from_the_largest_logits_is_exact_where_the_label_is_among_them() -> None:
    rng = np.random.default_rng(0)
    n, k = 50, 120
    logits, clean = rng.normal(size=(n, k)) * 3, rng.normal(size=(n, k)) * 3
    label = clean.argsort(1)[:, -2]
    top = {name: np.argsort(-table, axis=1)[:, :20] for name, table in (("now", logits), ("clean", clean))}
    stored = Answers(
        prediction=logits.argmax(1),
        label=label,
        clean_prediction=clean.argmax(1),
        confidence=softmax(logits).max(1),
        clean_confidence=softmax(clean).max(1),
        logits=np.take_along_axis(logits, top["now"], 1),
        classes=top["now"],
        clean_logits=np.take_along_axis(clean, top["clean"], 1),
        clean_classes=top["clean"],
    )
    rows = np.arange(n)
    now = np.where((top["now"] == label[:, None]).any(1), softmax(logits)[rows, label], 0.0)
    expected = np.maximum(softmax(clean)[rows, label] - now, 0)
    assert bound_loss("confidence-drop")(stored) == pytest.approx(expected)


def test_a_loss_that_needs_scores_is_refused_for_labels() -> None:
    with pytest.raises(RiskError, match=r"confidence-drop needs scores.*returns labels only.*misclassified"):
        bound_loss("confidence-drop")(answers(logits=None))


def test_samples_without_a_label() -> None:
    with pytest.raises(RiskError, match="1 of 4 answers belong to samples without a label; use class-change"):
        bound_loss("misclassified")(answers(label=np.array([0, -1, 1, 1])))


def test_cost_matrix_from_rows_and_from_a_file(tmp_path: Path) -> None:
    rows = [[0, 1, 9], [2, 0, 5], [3, "1/2", 0]]
    inline = bound_loss({"name": "cost-matrix", "costs": rows})
    assert inline(answers()).tolist() == [0, 1, 5, 5]
    assert inline.range == (0, 9)
    file = tmp_path / "costs.csv"
    file.write_text("true,2,0,1\n1,5,2,0\n0,9,0,1\n2,0,3,0.5\n")
    from_file = bound_loss({"name": "cost-matrix", "path": "costs.csv"}, folder=tmp_path)
    assert from_file(answers()).tolist() == [0, 1, 5, 5]
    assert from_file.params["costs"] == inline.params["costs"]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("true,0,1\n0,0,1\n", "must both be 0 to 0"),
        ("true,0,1\n0,0,1\n1,-2,0\n", "true class 1, predicted 0: a cost cannot be negative, found -2"),
        ("true,0,1\n0,0,nan\n1,2,0\n", "true class 0, predicted 1: .*finite"),
        ("true,0,1\n0,0,inf\n1,2,0\n", "finite"),
        ("true,0,1\n0,0\n1,2,0\n", "row 2: 2 entries, but the header has 3"),
        ("true,a,1\n0,0,1\n1,2,0\n", "header: classes are whole numbers from 0, found 'a'"),
        ("true,0,1\n0,0,x\n1,2,0\n", "a number or a fraction"),
        ("", "a header with the predicted classes"),
    ],
)
def test_cost_files_that_are_wrong(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "c.csv").write_text(text)
    with pytest.raises(StudyError, match=complaint):
        bound_loss({"name": "cost-matrix", "path": "c.csv"}, folder=tmp_path)


@pytest.mark.parametrize(
    ("entry", "complaint"),
    [
        ({"name": "cost-matrix"}, "either `path`.*or `costs`"),
        ({"name": "cost-matrix", "path": "nowhere.csv"}, "nowhere.csv: cannot be read"),
        ({"name": "cost-matrix", "costs": [[0, 1], [1]]}, "row 1 has 1 costs; it must be square"),
        ({"name": "cost-matrix", "costs": []}, "there is no row"),
        ({"name": "class-cost", "costs": {"stop": 2}}, "whole numbers from 0, found 'stop'"),
        ({"name": "class-cost", "costs": {0: -1}}, "class-cost.costs.0: a cost cannot be negative"),
        ({"name": "class-cost", "costs": {0: 1e308}}, "class-cost.costs.0: a cost must be at most 1e\\+100"),
        ({"name": "class-cost"}, "class-cost needs costs"),
        ({"name": "class-cost", "costs": {}, "ohter": 1}, "did you mean 'other'"),
        ({"nmae": "misclassified"}, "a loss is a name"),
        ({"name": "misclassified", "as": 3}, "a name is needed"),
        (3, "a loss is a name"),
        ("misclasified", "did you mean 'misclassified'"),
    ],
)
def test_losses_that_are_wrong(entry: object, complaint: str) -> None:
    with pytest.raises(AdvriskError, match=complaint):
        bound_loss(entry)


def test_costs_must_fit_the_classes() -> None:
    entry = {"name": "cost-matrix", "costs": [[0, 1], [1, 0]]}
    with pytest.raises(StudyError, match="2 x 2 costs, but there are 3 classes"):
        bound_loss(entry, n_classes=3)
    with pytest.raises(RiskError, match="found class 2, but there are 2 classes, 0 to 1"):
        bound_loss(entry)(answers())


def test_costs_of_classes_that_there_are_not() -> None:
    costs = {"name": "class-cost", "costs": {0: 2, 99: 5, 10: 1}}
    with pytest.raises(StudyError, match=r"class-cost\.costs names class 10, 99, but the 10 classes are 0 to 9"):
        bound_loss(costs, n_classes=10)
    assert bound_loss(costs, n_classes=100).range == (0, 5)
    assert bound_loss({"name": "class-cost", "costs": {9: 5}}, n_classes=10).range == (0, 5)


def test_class_costs() -> None:
    loss = bound_loss({"name": "class-cost", "costs": {0: 5}, "other": 0.5})
    assert loss(answers()).tolist() == [0, 5, 0.5, 0.5]
    assert loss.range == (0, 5)


def test_a_function_of_ones_own() -> None:
    def twice(answers: Answers) -> Any:
        return 2.0 * (answers.prediction != answers.label)

    assert bound_loss(twice).label == "twice"
    assert bound_loss(twice)(answers()).tolist() == [0, 2, 2, 2]
    with pytest.raises(RiskError, match=r"gave 2.0, outside of its stated range \[0, 1\]"):
        custom_loss("twice", twice, range=(0, 1))(answers())
    with pytest.raises(RiskError, match="an array of shape"):
        custom_loss("short", lambda answers: np.zeros(2))(answers())
    with pytest.raises(RiskError, match="gave no numbers"):
        custom_loss("words", lambda answers: ["a"] * len(answers))(answers())
    with pytest.raises(RiskError, match="must be a function"):
        custom_loss("none", None)  # type: ignore[arg-type]
    with pytest.raises(RiskError, match="cannot lie between"):
        custom_loss("none", twice, range=(1, 1))


def test_several_losses() -> None:
    assert [loss.label for loss in bound_losses([])] == ["misclassified"]
    first = {"name": "class-cost", "costs": {0: 5}}
    with pytest.raises(StudyError, match="2 are called 'class-cost'; give one of them another name by `as"):
        bound_losses([first, {"name": "class-cost", "costs": {1: 5}}])
    found = bound_losses([first, {"name": "class-cost", "costs": {1: 5}, "as": "ones"}])
    assert [loss.label for loss in found] == ["class-cost", "ones"]
    assert isinstance(bound_loss(found[0]), Loss)


def test_every_loss_is_registered_with_its_use() -> None:
    names = [part.name for part in losses]
    assert names == ["class-change", "class-cost", "confidence-drop", "cost-matrix", "misclassified", "rejected"]
    assert all(part.traits.use_when and part.summary for part in losses)
    with pytest.raises(RegistryError):
        losses.get("regret")

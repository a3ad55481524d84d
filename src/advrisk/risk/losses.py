"""Losses: the damage of one answer, computed from stored answers, so that a new loss needs no inference.

A loss is a function of `Answers` (one row per answer of a model) that returns one number per row; its keyword-only
arguments are its parameters. Nothing here knows a ledger or a scenario.
"""

import csv
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from advrisk.core.containment import exits_as_errors
from advrisk.core.errors import RiskError, StudyError
from advrisk.core.files import regular
from advrisk.core.numbers import parse_number
from advrisk.core.registry import Registry
from advrisk.core.traits import LossTraits

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Function = Callable[..., Any]

losses: Registry[LossTraits] = Registry("losses")

DEFAULT = "misclassified"
_FLAGS = (0.0, 1.0)
_LARGEST_COST = 1e100  # its square is finite


@dataclass(frozen=True, eq=False)
class Answers:
    """Answers of a model, one row each, with the answers to the clean inputs in the same rows.

    For a model that returns labels only, `logits` is None and confidences are nan. If only the largest logits were
    stored, `classes` names their classes. `rejected` marks refused inputs, whose row holds the answer that the model
    would have given; None means that no input was refused.
    """

    prediction: Integers
    label: Integers  # -1 if the sample has no label
    clean_prediction: Integers
    confidence: Floats  # the probability of the prediction
    clean_confidence: Floats
    logits: Floats | None = None  # (n, classes), or (n, k)
    classes: Integers | None = None  # (n, k)
    clean_logits: Floats | None = None
    clean_classes: Integers | None = None
    rejected: NDArray[np.bool_] | None = None

    def __len__(self) -> int:
        return len(self.prediction)


@dataclass(frozen=True, eq=False)
class Loss:
    """A loss with its parameters: called with answers, it returns one number for each."""

    label: str  # its name in tensors and tables
    function: Function
    params: Mapping[str, Any] = field(default_factory=dict)
    needs: Literal["labels", "scores"] = "labels"
    range: tuple[float, float] = (-math.inf, math.inf)
    custom: bool = False  # a user's function
    counts_refusals: bool = False  # whether a refused input has a cost
    of_change: bool = False  # whether it compares the answer with the clean one

    @property
    def of_error(self) -> bool:
        """Whether it is 1 exactly where the answer is incorrect."""
        return self.function is misclassified

    def __call__(self, answers: Answers) -> Floats:
        """Compute the loss of each answer; refuse a result of another shape or outside the stated range.

        A refused input is not a wrong answer: it costs 0, or the minimum of the loss.
        """
        if self.needs == "scores" and answers.logits is None:
            raise RiskError(
                f"the loss {self.label} needs scores, but this model returns labels only, or its scores were not "
                "stored; choose a loss that needs labels only, such as misclassified or class-change"
            )
        result = self._computed(answers)
        try:
            values = np.asarray(result, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise RiskError(f"the loss {self.label} gave no numbers: {error}") from None
        if values.shape != (len(answers),):
            raise RiskError(f"the loss {self.label} gave an array of shape {values.shape} for {len(answers)} answers")
        low, high = self.range
        if answers.rejected is not None and not self.counts_refusals:
            values = np.where(answers.rejected, max(low, 0.0), values)
        if self.custom and bool(np.isnan(values).any()):
            raise RiskError(
                f"the loss {self.label} gave nan for {int(np.isnan(values).sum())} of {len(answers)} answers"
            )
        if bool(np.isinf(values).any()):
            raise RiskError(f"the loss {self.label} gave {values[np.isinf(values)][0]}; finite numbers are needed")
        if bool((values < low).any() or (values > high).any()):
            wrong = values[(values < low) | (values > high)][0]
            raise RiskError(f"the loss {self.label} gave {wrong}, outside of its stated range [{low}, {high}]")
        return values

    def _computed(self, answers: Answers) -> Any:
        """Result of the function; errors of a user's function name the loss."""
        if not self.custom:
            return self.function(answers, **self.params)
        try:
            with exits_as_errors(f"the loss {self.label}", RiskError):
                return self.function(answers)
        except Exception as error:  # foreign code
            raise RiskError(f"the loss {self.label} failed: {type(error).__name__}: {error}") from error


def bound_loss(entry: object, *, folder: Path = Path(), n_classes: int | None = None) -> Loss:
    """Bind a loss of a study: `misclassified`, `{name: cost-matrix, path: costs.csv, as: road}`, or a function.

    `as` renames a loss, so that a study can contain it twice. Relative paths are resolved against `folder`.
    """
    if isinstance(entry, Loss):
        return entry
    if callable(entry):
        return custom_loss(getattr(entry, "__name__", "function"), entry)
    fields = {"name": entry} if isinstance(entry, str) else entry
    if not isinstance(fields, Mapping) or not isinstance(fields.get("name"), str):
        raise StudyError(f"a loss is a name, or a mapping with `name` and its parameters, found {entry!r}")
    part = losses.get(fields["name"])
    label = fields.get("as", part.name)
    if not isinstance(label, str) or not label:
        raise StudyError(f"losses.{part.name}.as: a name is needed, found {label!r}")
    beside = ("name", "as")
    params = part.bind(
        {name: value for name, value in fields.items() if name not in beside}, folder=folder, beside=beside
    )
    if part.function is cost_matrix:
        params = _read_costs(params, n_classes)
    elif part.function is class_cost and n_classes is not None:
        _refuse_unknown(_class_costs(params), n_classes)
    return Loss(
        label,
        part.function,
        params,
        part.traits.needs,
        part.traits.bounds(params),
        counts_refusals=part.function is rejected,
        of_change=part.traits.of_change,
    )


def bound_losses(entries: Sequence[object], *, folder: Path = Path(), n_classes: int | None = None) -> tuple[Loss, ...]:
    """Bind all losses of a study, `misclassified` if it names none; duplicate names are refused."""
    bound = tuple(bound_loss(entry, folder=folder, n_classes=n_classes) for entry in entries or (DEFAULT,))
    labels = [loss.label for loss in bound]
    for label in labels:
        if labels.count(label) > 1:
            raise StudyError(
                f"losses: {labels.count(label)} are called {label!r}; give one of them another name by `as: …`"
            )
    return bound


def without_files(entry: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """Replace the path of a loss by the content of the file, so that the entry does not depend on its folder."""
    if entry.get("path") is None:
        return dict(entry)
    costs = bound_loss(dict(entry), folder=folder).params["costs"]
    return {name: value for name, value in entry.items() if name != "path"} | {"costs": [list(row) for row in costs]}


def custom_loss(
    label: str,
    function: Function,
    *,
    needs: Literal["labels", "scores"] = "labels",
    range: tuple[float, float] | None = None,  # noqa: A002 - the word for it
) -> Loss:
    """Make a loss from your own function of `Answers`; with its range, intervals do not rely on the observed spread."""
    if not callable(function):
        raise RiskError(f"the loss {label} must be a function of the answers, found {function!r}")
    low, high = range or (-math.inf, math.inf)
    if not low < high:
        raise RiskError(f"the loss {label} cannot lie between {low} and {high}")
    return Loss(label, function, {}, needs, (low, high), custom=True)


@losses.register("misclassified", traits=LossTraits("an answer is correct or incorrect", range=_FLAGS))
def misclassified(answers: Answers) -> Floats:
    """1 where the predicted class is not the label, else 0."""
    return np.asarray(answers.prediction != _labels(answers), dtype=np.float64)


@losses.register(
    "class-change", traits=LossTraits("the answer must not change, correct or not", of_change=True, range=_FLAGS)
)
def class_change(answers: Answers) -> Floats:
    """1 where the predicted class is not that of the clean input, else 0; nan without a clean prediction."""
    changed = np.asarray(answers.prediction != answers.clean_prediction, dtype=np.float64)
    return np.where(answers.clean_prediction < 0, np.nan, changed)


@losses.register("rejected", traits=LossTraits("a refused input has a cost", range=_FLAGS))
def rejected(answers: Answers) -> Floats:
    """1 where the model refused to answer, else 0; all other losses count a refused input as 0."""
    return np.zeros(len(answers)) if answers.rejected is None else answers.rejected.astype(np.float64)


@losses.register(
    "confidence-drop", traits=LossTraits("doubt counts before the class changes", needs="scores", range=_FLAGS)
)
def confidence_drop(answers: Answers) -> Floats:
    """max(0, p_clean(label) - p(label)), with p the softmax of the logits: by how much the label became less probable.

    If only the largest logits were stored, the stored confidence gives their probabilities; a label that is not among
    them has probability 0.
    """
    label = _labels(answers)
    if answers.logits is None or answers.clean_logits is None:
        raise RiskError("the loss confidence-drop needs the scores of perturbed and of clean inputs")
    now = _probability(answers.logits, answers.classes, answers.confidence, label)
    before = _probability(answers.clean_logits, answers.clean_classes, answers.clean_confidence, label)
    return np.asarray(np.maximum(before - now, 0.0), dtype=np.float64)


@losses.register(
    "cost-matrix",
    traits=LossTraits("different mistakes have different costs", range=lambda params: _spread(params["costs"])),
)
def cost_matrix(
    answers: Answers, *, path: Path | None = None, costs: tuple[tuple[float, ...], ...] | None = None
) -> Floats:
    """costs[label][prediction]: from a CSV file (header: predicted classes, first column: true class), or as rows."""
    matrix = np.asarray(costs if costs is not None else _matrix_of(path))
    label = _labels(answers)
    _refuse_beyond(len(matrix), label, answers.prediction)
    return np.asarray(matrix[label, answers.prediction], dtype=np.float64)


@losses.register(
    "class-cost",
    traits=LossTraits(
        "some classes are more costly to miss than others",
        range=lambda params: (0.0, max(_class_costs(params).values(), default=0.0) or 1.0),
    ),
)
def class_cost(answers: Answers, *, costs: Mapping[Any, Any], other: float = 1.0) -> Floats:
    """costs[label] where the predicted class is not the label, else 0; `other` for labels without a cost."""
    cost = _class_costs({"costs": costs, "other": other})
    label = _labels(answers)
    classes, index = np.unique(label, return_inverse=True)
    each = np.array([cost.get(int(name), cost[None]) for name in classes])
    return np.asarray(np.where(answers.prediction != label, each[index], 0.0), dtype=np.float64)


def _labels(answers: Answers) -> Integers:
    if (answers.label < 0).any():
        n = int((answers.label < 0).sum())
        raise RiskError(f"{n} of {len(answers)} answers belong to samples without a label; use class-change instead")
    return answers.label


def _probability(logits: Floats, classes: Integers | None, confidence: Floats, label: Integers) -> Floats:
    """Softmax of the label's logit; 0 where it is not among those stored."""
    rows = np.arange(len(label))
    largest = logits.max(axis=1)
    with np.errstate(invalid="ignore", over="ignore"):
        relative = np.exp(logits - largest[:, None])
    if classes is None:
        _refuse_beyond(logits.shape[1], label)
        return np.asarray(relative[rows, label] / relative.sum(axis=1), dtype=np.float64)
    of_largest = np.where(np.isnan(confidence), 1 / relative.sum(axis=1), confidence)
    own = np.where(classes == label[:, None], relative, 0.0).sum(axis=1)
    return np.asarray(own * of_largest, dtype=np.float64)


def _refuse_beyond(size: int, *columns: Integers) -> None:
    for column in columns:
        if column.size and not 0 <= column.min() <= column.max() < size:
            raise RiskError(f"found class {column.max()}, but there are {size} classes, 0 to {size - 1}")


# Costs


def _read_costs(params: Mapping[str, Any], n_classes: int | None) -> dict[str, Any]:
    """Parameters of a cost matrix with the costs in them, checked."""
    path, costs = params["path"], params["costs"]
    if (path is None) == (costs is None):
        raise StudyError("cost-matrix needs either `path`, a CSV file, or `costs`, a list of rows")
    matrix = _matrix_of(path) if costs is None else _checked_matrix(costs, "cost-matrix.costs")
    if n_classes is not None and len(matrix) != n_classes:
        source = path or "cost-matrix.costs"
        raise StudyError(f"{source}: {len(matrix)} x {len(matrix)} costs, but there are {n_classes} classes")
    return {"path": path, "costs": matrix}


def _matrix_of(path: Path | None) -> tuple[tuple[float, ...], ...]:
    """Read a CSV file: its header names the predicted classes, the first column the true ones, in any order."""
    try:
        rows = [
            row for row in csv.reader(regular(Path(str(path))).read_text(encoding="utf-8-sig").splitlines()) if any(row)
        ]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise StudyError(f"{path}: cannot be read as a table of costs: {error}") from None
    if len(rows) < 2:
        raise StudyError(f"{path}: a header with the predicted classes and a row for each true class are needed")
    predicted = _class_names(rows[0][1:], f"{path}, header")
    true = _class_names([row[0] for row in rows[1:]], f"{path}, first column")
    for number, row in enumerate(rows):
        if len(row) != len(rows[0]):
            raise StudyError(f"{path}, row {number + 1}: {len(row)} entries, but the header has {len(rows[0])}")
    if sorted(predicted) != sorted(true) or sorted(true) != list(range(len(true))):
        raise StudyError(
            f"{path}: true and predicted classes must both be 0 to {len(true) - 1}, found rows "
            f"{_few(true)} and columns {_few(predicted)}"
        )
    order = [predicted.index(name) + 1 for name in range(len(true))]
    body = {name: [row[column] for column in order] for name, row in zip(true, rows[1:], strict=True)}
    return _checked_matrix([body[name] for name in range(len(true))], str(path))


def _checked_matrix(rows: Sequence[Sequence[Any]], source: str) -> tuple[tuple[float, ...], ...]:
    if not rows:
        raise StudyError(f"{source}: there is no row")
    matrix = []
    for number, row in enumerate(rows):
        if len(row) != len(rows):
            raise StudyError(f"{source}: {len(rows)} rows, but row {number} has {len(row)} costs; it must be square")
        matrix.append(tuple(_cost(cost, f"{source}, true class {number}, predicted {k}") for k, cost in enumerate(row)))
    return tuple(matrix)


def _cost(value: object, source: str) -> float:
    try:
        cost = parse_number(value)
    except ValueError as error:
        raise StudyError(f"{source}: {error}") from None
    if cost < 0:
        raise StudyError(f"{source}: a cost cannot be negative, found {value}")
    if cost > _LARGEST_COST:
        raise StudyError(f"{source}: a cost must be at most {_LARGEST_COST:g}, found {value}")
    return cost


def _class_costs(params: Mapping[str, Any]) -> dict[int | None, float]:
    """Class -> cost of missing it; None -> cost for the other classes."""
    costs: dict[int | None, float] = {None: _cost(params["other"], "class-cost.other")}
    for name, cost in params["costs"].items():
        (number,) = _class_names([name], "class-cost.costs")
        costs[number] = _cost(cost, f"class-cost.costs.{name}")
    return costs


def _refuse_unknown(costs: Mapping[int | None, float], n_classes: int) -> None:
    """Refuse costs of classes that do not exist."""
    if beyond := sorted(name for name in costs if name is not None and name >= n_classes):
        raise StudyError(
            f"class-cost.costs names class {_few(beyond)}, but the {n_classes} classes are 0 to {n_classes - 1}"
        )


def _class_names(names: Sequence[object], source: str) -> list[int]:
    for name in names:
        if isinstance(name, bool) or not str(name).strip().isdecimal():
            raise StudyError(f"{source}: classes are whole numbers from 0, found {name!r}")
    return [int(str(name)) for name in names]


def _few(names: Sequence[int]) -> str:
    return ", ".join(map(str, names[:12])) + (", …" if len(names) > 12 else "")


def _spread(costs: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Range from 0 to the greatest cost, or to 1 if all costs are 0."""
    return 0.0, max(max(row) for row in costs) or 1.0

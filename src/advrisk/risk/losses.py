"""Losses: the damage of one answer, computed from stored answers, so that a new loss needs no inference.

A loss is a function of `Answers`, one row for each answer of a model, that gives one number for each; its keyword-only
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

DEFAULT = "misclassified"  # the loss where nobody names one
_FLAGS = (0.0, 1.0)
_LARGEST_COST = 1e100  # whose square is a number, too


@dataclass(frozen=True, eq=False)
class Answers:
    """What a model said, one row for each answer; the same rows of the clean inputs they were made from.

    Of a model that says its class only, logits and confidences are not known: `logits` is None, confidences are nan.
    Where only the largest logits were stored, `classes` says whose they are. `rejected` marks answers that the model
    refused to give: what stands there is what it would have said. None: there are none.
    """

    prediction: Integers
    label: Integers  # -1 where nobody knows
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
    """A loss with its parameters: called with answers, it gives one number for each."""

    label: str  # its name in tensors and tables
    function: Function
    params: Mapping[str, Any] = field(default_factory=dict)
    needs: Literal["labels", "scores"] = "labels"
    range: tuple[float, float] = (-math.inf, math.inf)
    own: bool = False  # a function that a user handed over
    counts_refusals: bool = False  # it says what a refused input costs; of others that is nothing
    of_change: bool = False  # it asks whether the answer stays as it was

    @property
    def of_error(self) -> bool:
        """Whether it is 1 exactly where the answer is incorrect."""
        return self.function is misclassified

    def __call__(self, answers: Answers) -> Floats:
        """The loss of each answer; what is no number for each, or out of the range it states, is refused.

        An input that the model refuses to answer is no wrong answer: it costs 0, or the least the loss can be.
        """
        if self.needs == "scores" and answers.logits is None:
            raise RiskError(
                f"the loss {self.label} needs scores, but this model says its class only, or its scores were not "
                "stored; choose a loss that needs no more than the class, such as misclassified or class-change"
            )
        found = self._called(answers)
        try:
            values = np.asarray(found, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise RiskError(f"the loss {self.label} gave no numbers: {error}") from None
        if values.shape != (len(answers),):
            raise RiskError(f"the loss {self.label} gave an array of shape {values.shape} for {len(answers)} answers")
        low, high = self.range
        if answers.rejected is not None and not self.counts_refusals:
            values = np.where(answers.rejected, max(low, 0.0), values)
        if self.own and bool(np.isnan(values).any()):
            raise RiskError(
                f"the loss {self.label} gave nan for {int(np.isnan(values).sum())} of {len(answers)} answers"
            )
        if bool(np.isinf(values).any()):
            raise RiskError(f"the loss {self.label} gave {values[np.isinf(values)][0]}; finite numbers are needed")
        if bool((values < low).any() or (values > high).any()):
            wrong = values[(values < low) | (values > high)][0]
            raise RiskError(f"the loss {self.label} gave {wrong}, outside of [{low}, {high}], which it promises")
        return values

    def _called(self, answers: Answers) -> Any:
        """What the function gives; of a user's own, whatever goes wrong is told with the name of the loss."""
        if not self.own:
            return self.function(answers, **self.params)
        try:
            with exits_as_errors(f"the loss {self.label}", RiskError):
                return self.function(answers)
        except Exception as error:  # foreign code
            raise RiskError(f"the loss {self.label} failed: {type(error).__name__}: {error}") from error


def bound_loss(entry: object, *, folder: Path = Path(), n_classes: int | None = None) -> Loss:
    """A loss as a study names it: `misclassified`, or `{name: cost-matrix, path: costs.csv, as: road}`, or a function.

    `as` is another name for it, where one loss is asked for twice. Relative paths are meant against `folder`.
    """
    if isinstance(entry, Loss):
        return entry
    if callable(entry):
        return custom_loss(getattr(entry, "__name__", "function"), entry)
    given = {"name": entry} if isinstance(entry, str) else entry
    if not isinstance(given, Mapping) or not isinstance(given.get("name"), str):
        raise StudyError(f"a loss is a name, or a mapping with `name` and its parameters, found {entry!r}")
    part = losses.get(given["name"])
    label = given.get("as", part.name)
    if not isinstance(label, str) or not label:
        raise StudyError(f"losses.{part.name}.as: a name is needed, found {label!r}")
    beside = ("name", "as")
    params = part.bind(
        {name: value for name, value in given.items() if name not in beside}, folder=folder, beside=beside
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
    """All of them; two of one name are refused, and none at all means `misclassified`."""
    found = tuple(bound_loss(entry, folder=folder, n_classes=n_classes) for entry in entries or (DEFAULT,))
    labels = [loss.label for loss in found]
    for label in labels:
        if labels.count(label) > 1:
            raise StudyError(
                f"losses: {labels.count(label)} are called {label!r}; give one of them another name by `as: …`"
            )
    return found


def without_files(entry: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """A loss as a study names it, with what its file holds in place of the path: it means the same wherever it lies."""
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
    """A loss of your own: a function of `Answers`. With its range, intervals do not rest on the spread seen alone."""
    if not callable(function):
        raise RiskError(f"the loss {label} must be a function of the answers, found {function!r}")
    low, high = range or (-math.inf, math.inf)
    if not low < high:
        raise RiskError(f"the loss {label} cannot lie between {low} and {high}")
    return Loss(label, function, {}, needs, (low, high), own=True)


@losses.register("misclassified", traits=LossTraits("an answer is right or wrong", range=_FLAGS))
def misclassified(answers: Answers) -> Floats:
    """1 where the predicted class is not the label, else 0."""
    return np.asarray(answers.prediction != _labels(answers), dtype=np.float64)


@losses.register(
    "class-change", traits=LossTraits("what matters is that the answer stays as it was", of_change=True, range=_FLAGS)
)
def class_change(answers: Answers) -> Floats:
    """1 where the predicted class is not that of the clean input, else 0; nan where nobody asked about that."""
    changed = np.asarray(answers.prediction != answers.clean_prediction, dtype=np.float64)
    return np.where(answers.clean_prediction < 0, np.nan, changed)


@losses.register("rejected", traits=LossTraits("an answer that is withheld costs something, too", range=_FLAGS))
def rejected(answers: Answers) -> Floats:
    """1 where the model refused to answer, else 0; of all other losses a refused input has none."""
    return np.zeros(len(answers)) if answers.rejected is None else answers.rejected.astype(np.float64)


@losses.register(
    "confidence-drop", traits=LossTraits("doubt counts before the class changes", needs="scores", range=_FLAGS)
)
def confidence_drop(answers: Answers) -> Floats:
    """max(0, p_clean(label) - p(label)), with p the softmax of the logits: by how much the label became less probable.

    It is 0 for clean inputs, and where the label became more probable. Where only the largest logits were stored, their
    probabilities are known from the stored confidence; a label that is not among them counts as probability 0.
    """
    label = _labels(answers)
    if answers.logits is None or answers.clean_logits is None:
        raise RiskError("the loss confidence-drop needs the scores of perturbed and of clean inputs")
    now = _probability(answers.logits, answers.classes, answers.confidence, label)
    before = _probability(answers.clean_logits, answers.clean_classes, answers.clean_confidence, label)
    return np.asarray(np.maximum(before - now, 0.0), dtype=np.float64)


@losses.register(
    "cost-matrix",
    traits=LossTraits("mistakes cost differently", range=lambda params: _spread(params["costs"])),
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
        "missing some classes costs more than missing others",
        range=lambda params: (0.0, max(_class_costs(params).values(), default=0.0) or 1.0),
    ),
)
def class_cost(answers: Answers, *, costs: Mapping[Any, Any], other: float = 1.0) -> Floats:
    """costs[label] where the predicted class is not the label, else 0; `other` for labels that are not named."""
    cost = _class_costs({"costs": costs, "other": other})
    label = _labels(answers)
    classes, place = np.unique(label, return_inverse=True)
    each = np.array([cost.get(int(name), cost[None]) for name in classes])
    return np.asarray(np.where(answers.prediction != label, each[place], 0.0), dtype=np.float64)


def _labels(answers: Answers) -> Integers:
    if (answers.label < 0).any():
        n = int((answers.label < 0).sum())
        raise RiskError(f"{n} of {len(answers)} answers belong to samples without a label; class-change needs none")
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
            raise RiskError(f"there are {size} classes, 0 to {size - 1}, but class {column.max()} was found")


# Costs


def _read_costs(params: Mapping[str, Any], n_classes: int | None) -> dict[str, Any]:
    """Parameters of a cost matrix with the costs in them, checked."""
    path, costs = params["path"], params["costs"]
    if (path is None) == (costs is None):
        raise StudyError("cost-matrix needs either `path`, a CSV file, or `costs`, a list of rows")
    matrix = _matrix_of(path) if costs is None else _checked_matrix(costs, "cost-matrix.costs")
    if n_classes is not None and len(matrix) != n_classes:
        place = path or "cost-matrix.costs"
        raise StudyError(f"{place}: {len(matrix)} x {len(matrix)} costs, but there are {n_classes} classes")
    return {"path": path, "costs": matrix}


def _matrix_of(path: Path | None) -> tuple[tuple[float, ...], ...]:
    """A CSV file: its header names the predicted classes, the first column the true ones; in any order."""
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
    body = {name: [row[place] for place in order] for name, row in zip(true, rows[1:], strict=True)}
    return _checked_matrix([body[name] for name in range(len(true))], str(path))


def _checked_matrix(rows: Sequence[Sequence[Any]], place: str) -> tuple[tuple[float, ...], ...]:
    if not rows:
        raise StudyError(f"{place}: there is no row")
    matrix = []
    for number, row in enumerate(rows):
        if len(row) != len(rows):
            raise StudyError(f"{place}: {len(rows)} rows, but row {number} has {len(row)} costs; it must be square")
        matrix.append(tuple(_cost(cost, f"{place}, true class {number}, predicted {k}") for k, cost in enumerate(row)))
    return tuple(matrix)


def _cost(value: object, place: str) -> float:
    try:
        cost = parse_number(value)
    except ValueError as error:
        raise StudyError(f"{place}: {error}") from None
    if cost < 0:
        raise StudyError(f"{place}: a cost cannot be negative, found {value}")
    if cost > _LARGEST_COST:
        raise StudyError(f"{place}: a cost of more than {_LARGEST_COST:g} cannot be reckoned with, found {value}")
    return cost


def _class_costs(params: Mapping[str, Any]) -> dict[int | None, float]:
    """Class -> what it costs to miss it; None -> that of the others."""
    found: dict[int | None, float] = {None: _cost(params["other"], "class-cost.other")}
    for name, cost in params["costs"].items():
        (number,) = _class_names([name], "class-cost.costs")
        found[number] = _cost(cost, f"class-cost.costs.{name}")
    return found


def _refuse_unknown(costs: Mapping[int | None, float], n_classes: int) -> None:
    """A class that cannot be missed: most likely its number is wrong."""
    if beyond := sorted(name for name in costs if name is not None and name >= n_classes):
        raise StudyError(
            f"class-cost.costs names class {_few(beyond)}, but the {n_classes} classes are 0 to {n_classes - 1}"
        )


def _class_names(names: Sequence[object], place: str) -> list[int]:
    for name in names:
        if isinstance(name, bool) or not str(name).strip().isdecimal():
            raise StudyError(f"{place}: classes are whole numbers from 0, found {name!r}")
    return [int(str(name)) for name in names]


def _few(names: Sequence[int]) -> str:
    return ", ".join(map(str, names[:12])) + (", …" if len(names) > 12 else "")


def _spread(costs: Sequence[Sequence[float]]) -> tuple[float, float]:
    """From 0 to the greatest cost; to 1 where nothing costs anything."""
    return 0.0, max(max(row) for row in costs) or 1.0

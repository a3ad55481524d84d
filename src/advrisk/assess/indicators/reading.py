"""Risk tensors from a run's ledger, one model at a time, on first access; vectorised over rows."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from advrisk.core.errors import RiskError
from advrisk.core.names import did_you_mean, matches, no_match
from advrisk.ledger import Ledger
from advrisk.risk.indicators.draws import n_early
from advrisk.risk.indicators.tensor import CLEAN, Flags, Floats, Integers, RiskTensor
from advrisk.risk.losses import Answers, Loss, bound_losses

_OUTCOMES = """
    SELECT cell, sample, outcome, prediction, clean_prediction, confidence, criterion, success_rate, draws
    FROM outcomes WHERE model = $model AND arm IN (SELECT unnest($arms))
"""
_CELLS = "SELECT cell, arm, coalesce(repeat, 0) AS repeat FROM cells WHERE model = $model"
_OUTPUTS = "SELECT cell, sample, logits, classes, draws FROM outputs WHERE cell IN (SELECT unnest($cells))"

_NONE, _ANSWERED, _UNCHANGED, _FAILED, _REJECTED = range(5)  # `unchanged`: the clean answer stands
_CODES = {"already_wrong": _UNCHANGED, "rejected": _REJECTED, "error": _FAILED, "timeout": _FAILED}
_CRITERIA = ("label", "prediction", "target")
_MOST_LOGITS = 50_000_000  # in memory at a time


@dataclass(frozen=True)
class LedgerTensors(Mapping[str, RiskTensor]):
    """The tensors of a run by model; each is read on first access."""

    ledger: Ledger
    losses: tuple[Loss, ...]
    arms: tuple[str, ...] | None
    models: tuple[str, ...]
    _read: dict[str, RiskTensor] = field(default_factory=dict, repr=False)

    def __getitem__(self, model: str) -> RiskTensor:
        if model not in self.models:
            raise KeyError(model)
        if model not in self._read:
            self._read[model] = read_tensor(self.ledger, model, self.losses, arms=self.arms)
        return self._read[model]

    def __iter__(self) -> Iterator[str]:
        return iter(self.models)

    def __len__(self) -> int:
        return len(self.models)


@dataclass(frozen=True, eq=False)
class _Rows:
    """Answers as dense arrays: arms x repeats x samples, flattened; the clean answers are separate."""

    classes: Integers  # (draws, rows): the class of each draw; one draw for a deterministic model; -1: none
    refused: Flags  # (draws, rows)
    confidence: Floats
    rate: Floats  # of draws that met the criterion of success
    criterion: Integers  # index in _CRITERIA; -1 if not stored
    is_drawn: bool  # whether the draws of a model that answers at random are stored
    outcome: NDArray[np.int8]  # _NONE where there is no row
    clean_prediction: Integers  # (samples,)
    clean_confidence: Floats
    starts: Mapping[str, int]  # cell -> index of its first sample
    n: int

    @property
    def answered(self) -> Flags:
        """Whether each row has an answer."""
        return np.asarray((self.classes[0] >= 0) | self.refused[0])


def read_tensors(
    ledger: Ledger,
    losses: Sequence[object] = (),
    *,
    models: Sequence[str] | None = None,
    arms: Sequence[str] | None = None,
) -> LedgerTensors:
    """The tensors of a run's models, by default of all but surrogates."""
    attacked = sorted({row["model"] for row in _arm_rows(ledger, arms) if row["kind"] != CLEAN})
    for model in models or ():
        if model not in attacked:
            raise RiskError(f"no model called {model!r} in this run; {did_you_mean(model, attacked)}")
    if not attacked:
        raise RiskError("this run holds no corruption and no attack, so there is no risk to assess")
    return LedgerTensors(ledger, bound_losses(losses), tuple(arms) if arms else None, tuple(models or attacked))


def read_tensor(
    ledger: Ledger, model: str, losses: Sequence[object] = (), *, arms: Sequence[str] | None = None
) -> RiskTensor:
    """The losses of one model on the evaluation split.

    `arms` are names or patterns; by default those of the study, or the imported ones without a study; clean inputs are
    always included. Rows with an error or a timeout, and missing rows, are nan. Where the clean input is incorrect and
    an attack had nothing to do, the clean answer counts; under a loss of change the value is nan. A refused input has
    the loss 0, except under the loss `rejected`. For a model that answers at random a value is the mean over the
    judge's draws.
    """
    bound = bound_losses(losses)
    chosen = [row for row in _arm_rows(ledger, arms) if row["model"] == model]
    if not chosen:
        models = {row["model"] for row in _arm_rows(ledger, arms)}
        raise RiskError(f"no model called {model!r} in this run; {did_you_mean(model, models)}")
    samples = ledger.query("SELECT sample, label, weight, strata FROM samples WHERE split = 'evaluate' ORDER BY sample")
    if not len(samples):
        raise RiskError("this run holds no sample in the split `evaluate`")
    label = pc.fill_null(samples["label"], -1).to_numpy().astype(np.int64)
    _refuse_without_scores(ledger, model, bound, chosen)
    rows = _read_rows(ledger, model, chosen, samples["sample"].combine_chunks())
    repeats = np.array([row["repeats"] or 1 for row in chosen], dtype=np.int64)
    early, late = _losses(
        ledger, rows, bound, label, samples["sample"].combine_chunks(), len(chosen), int(repeats.max())
    )
    attacks = np.array([row["kind"] == "attack" for row in chosen])
    if chosen[0]["kind"] == CLEAN:
        _leave_harmed(rows, bound, label, attacks, (early, late))
    unasked = _hide_unasked(rows, bound, [row["arm"] for row in chosen], attacks, (early, late))
    share = n_early(len(rows.classes)) / len(rows.classes)
    values = share * early + (1 - share) * late if rows.is_drawn else late
    failed = (rows.outcome == _FAILED).reshape(len(chosen), -1, rows.n).any(axis=1).T
    return RiskTensor.from_arrays(
        values,
        losses=[loss.label for loss in bound],
        samples=samples["sample"].to_pylist(),
        arms=[row["arm"] for row in chosen],
        kind=[row["kind"] for row in chosen],
        family=[row["family"] for row in chosen],
        cause=[row.get("cause") for row in chosen],
        label=label,
        weight=samples["weight"].to_numpy(),
        strata=_strata(samples["strata"].to_pylist()),
        repeats=repeats,
        failed=failed,
        ranges={loss.label: loss.range for loss in bound},
        model=model,
        early=early if rows.is_drawn else None,
        early_share=share,
        unasked=unasked,
    )


def _leave_harmed(
    rows: _Rows, losses: Sequence[Loss], label: Integers, attacks: Flags, values: tuple[Floats, Floats]
) -> None:
    """Keep attacks from lowering the loss of incorrect clean inputs: an attacker would leave those unchanged.

    With the criterion `prediction`, an attack moves them nonetheless, perhaps to the correct class. For a model that
    answers at random the clean answer counts, as with the criterion `label`: the larger of two means over few draws
    would be biased upwards. Which inputs are incorrect comes from draws other than the recorded ones.
    """
    wrong = (rows.clean_prediction >= 0) & (label >= 0) & (rows.clean_prediction != label)
    wrong &= rows.outcome[: rows.n] != _REJECTED
    shape = len(attacks), -1, rows.n
    answered = np.isin(rows.outcome, (_ANSWERED, _REJECTED)) & (rows.criterion > 0)
    moved = answered.reshape(shape).transpose(2, 0, 1) & attacks[None, :, None] & wrong[:, None, None]
    for index, loss in enumerate(losses):
        if loss.of_change or loss.counts_refusals:
            continue
        for part in values:
            clean = np.broadcast_to(part[index][:, :1, :1], part[index].shape)
            larger = moved & (rows.is_drawn | (clean > part[index]))
            part[index][larger] = clean[larger]


def _hide_unasked(
    rows: _Rows, losses: Sequence[Loss], arms: Sequence[str], attacks: Flags, values: tuple[Floats, Floats]
) -> dict[str, list[str]]:
    """Set answers that attacks skipped to nan, under losses of change; returns loss -> these attacks."""
    left = (rows.outcome == _UNCHANGED).reshape(len(arms), -1, rows.n).transpose(2, 0, 1) & attacks[None, :, None]
    missing = [arm for arm, some in zip(arms, left.any(axis=(0, 2)), strict=True) if some]
    unasked: dict[str, list[str]] = {}
    for index, loss in enumerate(losses):
        if loss.of_change and missing:
            unasked[loss.label] = missing
            for part in values:
                part[index][left] = np.nan
    return unasked


def _arm_rows(ledger: Ledger, patterns: Sequence[str] | None) -> list[dict[str, Any]]:
    """The arms of each model that count, the clean one first."""
    table: list[dict[str, Any]] = ledger.query(
        "SELECT * FROM arms WHERE origin IN ('study', 'import') ORDER BY model, kind <> 'clean', arm"
    ).to_pylist()
    for row in table:
        row["kind"] = row["kind"] or "attack"
    if patterns is None:
        own = "study" if any(row["origin"] == "study" for row in table) else "import"
        return [row for row in table if row["origin"] == own]
    for pattern in patterns:
        if complaint := no_match(pattern, {row["arm"] for row in table}):
            raise RiskError(complaint)
    models = {row["model"] for row in table if row["kind"] != CLEAN and matches(row["arm"], patterns)}
    return [row for row in table if row["model"] in models and (row["kind"] == CLEAN or matches(row["arm"], patterns))]


def _refuse_without_scores(
    ledger: Ledger, model: str, losses: Sequence[Loss], arms: Sequence[Mapping[str, Any]]
) -> None:
    needing = [loss.label for loss in losses if loss.needs == "scores"]
    rows = ledger.query("SELECT capability FROM models WHERE model = $model", {"model": model}).to_pylist()
    if needing and rows and rows[0]["capability"] == "labels":
        raise RiskError(
            f"the loss {needing[0]} needs scores, but {model} returns labels only; choose a loss that needs no more, "
            "such as misclassified or class-change, or leave this model out"
        )
    if needing and arms[0]["kind"] != CLEAN:
        raise RiskError(f"the loss {needing[0]} needs the scores of clean inputs, but this run holds none of {model}")


def _read_rows(ledger: Ledger, model: str, arms: Sequence[Mapping[str, Any]], samples: pa.Array) -> _Rows:
    n, n_repeats = len(samples), max(row["repeats"] or 1 for row in arms)
    arm_index = {row["arm"]: index for index, row in enumerate(arms)}
    cells = ledger.query(_CELLS, {"model": model}).to_pylist()
    starts = {
        row["cell"]: (arm_index[row["arm"]] * n_repeats + row["repeat"]) * n
        for row in cells
        if row["arm"] in arm_index and row["repeat"] < n_repeats
    }
    table = ledger.query(_OUTCOMES, {"model": model, "arms": list(arm_index)})
    where = _where(table, starts, samples)
    table, where = table.filter(pa.array(where >= 0)), where[where >= 0]
    size = len(arms) * n_repeats * n
    prediction, clean_of_row = (np.full(size, -1, dtype=np.int64) for _ in range(2))
    confidence, rate = np.full(size, np.nan), np.full(size, np.nan)
    outcome = np.full(size, _NONE, dtype=np.int8)
    criterion = np.full(size, -1, dtype=np.int64)
    prediction[where] = _ints(table["prediction"])
    clean_of_row[where] = _ints(table["clean_prediction"])
    for column, values in (("confidence", confidence), ("success_rate", rate)):
        values[where] = table[column].cast(pa.float64()).to_numpy(zero_copy_only=False)
    outcome[where] = np.array([*_CODES.values(), _ANSWERED])[_index(table["outcome"], pa.array(list(_CODES)))]
    criterion[where] = _index(table["criterion"], pa.array(_CRITERIA))
    clean, sure = _clean(arms, prediction, confidence, clean_of_row, n_repeats, n)
    if (prediction < 0).all() and (outcome == _ANSWERED).any():
        raise RiskError(
            f"the rows of {model} hold no predictions, so the loss of its answers is unknown; import the predictions"
        )
    classes, refused = _drawn(table["draws"], where, prediction, outcome)
    unchanged = np.flatnonzero(outcome == _UNCHANGED)
    own = arms[0]["kind"] == CLEAN and outcome[unchanged % n] != _NONE  # the clean arm is the first
    for of_draw, marks in zip(classes, refused, strict=True):
        of_draw[unchanged] = np.where(own, of_draw[unchanged % n], clean[unchanged % n])
        marks[unchanged] = own & marks[unchanged % n]
        of_draw[marks] = np.maximum(clean[np.flatnonzero(marks) % n], 0)  # any class: it is not used
    confidence[unchanged] = sure[unchanged % n]
    classes[:, outcome == _FAILED] = -1
    return _Rows(classes, refused, confidence, rate, criterion, len(classes) > 1, outcome, clean, sure, starts, n)


def _drawn(draws: pa.ChunkedArray, where: Integers, prediction: Integers, outcome: Any) -> tuple[Integers, Flags]:
    """The class and the refusal of each draw; those of the row where draws are not stored."""
    stored = np.flatnonzero(~np.asarray(draws.is_null()))
    most = int(pc.max(pc.list_value_length(draws)).as_py() or 1)
    classes = np.broadcast_to(prediction, (most, prediction.size)).copy()
    refused = np.broadcast_to(outcome == _REJECTED, classes.shape).copy()
    if stored.size and most > 1:
        if pc.any(pc.not_equal(pc.list_value_length(draws), most)).as_py():
            raise RiskError("rows of this run hold different numbers of draws; run the study again")
        of_row = pc.list_flatten(draws).to_numpy().reshape(-1, most).T.astype(np.int64)
        classes[:, where[stored]], refused[:, where[stored]] = of_row, of_row < 0
    return classes, refused


def _clean(
    arms: Sequence[Mapping[str, Any]],
    prediction: Integers,
    confidence: Floats,
    clean_of_row: Integers,
    n_repeats: int,
    n: int,
) -> tuple[Integers, Floats]:
    """The clean answers: of the clean arm, or else as stored in the rows of other arms."""
    predictions = clean_of_row.reshape(-1, n).max(axis=0)
    confidences = np.full(n, np.nan)
    for index, row in enumerate(arms):
        if row["kind"] == CLEAN:
            first = index * n_repeats * n
            own = prediction[first : first + n]
            predictions, confidences = np.where(own >= 0, own, predictions), confidence[first : first + n].copy()
    return predictions, confidences


def _losses(
    ledger: Ledger,
    rows: _Rows,
    losses: Sequence[Loss],
    label: Integers,
    samples: pa.Array,
    n_arms: int,
    n_repeats: int,
) -> tuple[Floats, Floats]:
    """Means over the early draws and over the late ones: (losses, samples, arms, repeats) each.

    Logits are read only if a loss needs them, some arms at a time.
    """
    n, n_draws = rows.n, len(rows.classes)
    split = n_early(n_draws)
    parts = [np.full((len(losses), n_arms * n_repeats * n), np.nan) for _ in range(2)]
    scored = any(loss.needs == "scores" for loss in losses)
    clean = _read_logits(ledger, rows, samples, (0, n)) if scored else None
    step = n_arms
    if clean is not None:
        step = max(1, _MOST_LOGITS // (n_repeats * n * clean.width * n_draws))
    for first in range(0, n_arms, step):
        ends = first * n_repeats * n, min(first + step, n_arms) * n_repeats * n
        logits = _read_logits(ledger, rows, samples, ends) if scored else None
        answered = np.flatnonzero(rows.answered[ends[0] : ends[1]]) + ends[0]
        for part, draws in zip(parts, (range(split), range(split, n_draws)), strict=True):
            for index, means in enumerate(_mean_losses(rows, losses, label, answered, ends[0], logits, clean, draws)):
                part[index, answered] = means
    early, late = (part.reshape(len(losses), n_arms, n_repeats, n).transpose(0, 3, 1, 2) for part in parts)
    return np.asarray(early), np.asarray(late)


def _mean_losses(
    rows: _Rows,
    losses: Sequence[Loss],
    label: Integers,
    answered: Integers,
    start: int,
    logits: "_Logits | None",
    clean: "_Logits | None",
    draws: range,
) -> list[Floats]:
    """The mean loss of the rows over some draws, for each loss."""
    totals = [np.zeros(answered.size) for _ in losses]
    for draw in draws:
        answers, scored = _answers(rows, label, answered, start, logits, clean, draw)
        for total, loss in zip(totals, losses, strict=True):
            values = loss(answers)
            missing = ~scored if answers.rejected is None else ~scored & ~answers.rejected
            total += np.where(missing, np.nan, values) if loss.needs == "scores" else values
    means = [total / max(len(draws), 1) for total in totals]
    return (
        means
        if rows.is_drawn
        else [_by_rate(rows, loss, answered, one) for loss, one in zip(losses, means, strict=True)]
    )


def _by_rate(rows: _Rows, loss: Loss, answered: Integers, values: Floats) -> Floats:
    """For ledgers without draws: the share of draws that met the criterion, if that is what the loss counts."""
    rate = rows.rate[answered]
    counts = ((rows.criterion[answered] == 0) & loss.of_error) | ((rows.criterion[answered] == 1) & loss.of_change)
    some = (rate > 0) & (rate < 1) & (rows.outcome[answered] == _ANSWERED) & counts
    return np.where(some, rate, values)


@dataclass(frozen=True, eq=False)
class _Logits:
    """Scores of a range of rows, their classes, and whether they are stored."""

    values: Floats  # (draws, rows, width): one draw if all are equal, or only their mean is stored
    classes: Integers | None  # (rows, width)
    stored: Flags

    @property
    def width(self) -> int:
        return int(self.values.shape[2])

    def of(self, draw: int) -> Floats:
        return np.asarray(self.values[draw if draw < len(self.values) else 0])

    @cached_property
    def mean(self) -> Floats:
        """The mean over the draws of a model that answers at random."""
        if len(self.values) == 1:
            return self.of(0)
        return np.asarray(np.logaddexp.reduce(self.values, axis=0) - np.log(len(self.values)))


def _answers(
    rows: _Rows,
    label: Integers,
    answered: Integers,
    start: int,
    scores: _Logits | None,
    clean: _Logits | None,
    draw: int,
) -> tuple[Answers, Flags]:
    """The answered rows in one draw, and whether their scores are stored."""
    sample = answered % rows.n
    common: dict[str, Any] = {
        "prediction": rows.classes[draw][answered],
        "label": label[sample],
        "clean_prediction": rows.clean_prediction[sample],
        "confidence": rows.confidence[answered],
        "clean_confidence": rows.clean_confidence[sample],
    }
    if (refused := rows.refused[draw][answered]).any():
        common["rejected"] = refused
    scored = np.ones(answered.size, dtype=np.bool_)
    if scores is None or clean is None:
        return Answers(**common), scored
    logits, stored = scores.of(draw)[answered - start], scores.stored[answered - start]
    classes = scores.classes[answered - start] if scores.classes is not None else None
    unchanged = rows.outcome[answered] == _UNCHANGED
    logits[unchanged], stored[unchanged] = clean.of(draw)[sample[unchanged]], clean.stored[sample[unchanged]]
    if classes is not None and clean.classes is not None:
        classes[unchanged] = clean.classes[sample[unchanged]]
    if rows.is_drawn:  # log-probabilities: the largest is the answer of this draw
        common["confidence"] = np.exp(logits.max(axis=1))
    scored = stored & clean.stored[sample]
    more: dict[str, Any] = {
        "logits": logits,
        "classes": classes,
        "clean_logits": clean.mean[sample],
        "clean_classes": clean.classes[sample] if clean.classes is not None else None,
    }
    return Answers(**common, **more), scored


def _read_logits(ledger: Ledger, rows: _Rows, samples: pa.Array, ends: tuple[int, int]) -> _Logits:
    """The scores of the rows in a half-open range."""
    cells = [cell for cell, start in rows.starts.items() if ends[0] <= start < ends[1]]
    table = ledger.query(_OUTPUTS, {"cells": cells})
    if not len(table):
        raise RiskError(
            "this run holds no scores of some arm, or of the clean inputs; choose a loss that needs no scores"
        )
    where = _where(table, rows.starts, samples)
    table, where = table.filter(pa.array(where >= 0)), where[where >= 0] - ends[0]
    width = len(table["logits"][0]) if len(table) else 1
    if len(table) and pc.any(pc.not_equal(pc.list_value_length(table["logits"]), width)).as_py():
        raise RiskError(
            "rows of this run hold scores of different numbers of classes; choose a loss that needs no scores"
        )
    size = ends[1] - ends[0]
    draws = len(rows.classes) if rows.is_drawn and len(table) else 1
    logits, stored = np.full((draws, size, width), np.nan), np.zeros(size, dtype=np.bool_)
    logits[:, where] = _flattened(table["logits"], width)
    if draws > 1:
        has = ~np.asarray(table["draws"].is_null())
        of_draw = pc.list_flatten(table["draws"]).to_numpy().reshape(-1, draws, width)
        logits[:, where[has]] = of_draw.transpose(1, 0, 2)
    stored[where] = True
    classes = None
    if len(table) and table["classes"].null_count == 0:
        classes = np.full((size, width), -1, dtype=np.int64)
        classes[where] = _flattened(table["classes"], width)
    return _Logits(logits, classes, stored)


def _flattened(column: pa.ChunkedArray, width: int) -> NDArray[Any]:
    values: NDArray[Any] = pc.list_flatten(column).to_numpy().reshape(-1, width)
    return values


def _where(table: pa.Table, starts: Mapping[str, int], samples: pa.Array) -> Integers:
    """The dense index of each row of a table; -1 if it has none."""
    begins = np.append(np.array(list(starts.values()), dtype=np.int64), -1)
    cell = _index(table["cell"], pa.array(list(starts), pa.string()))
    sample = _index(table["sample"], samples)
    return np.where((cell >= 0) & (sample >= 0), begins[cell] + sample, -1)


def _index(column: pa.ChunkedArray, among: pa.Array) -> Integers:
    indices = pc.fill_null(pc.index_in(column, value_set=among), -1).to_numpy()
    return np.asarray(indices, dtype=np.int64)


def _ints(column: pa.ChunkedArray) -> Integers:
    return np.asarray(pc.fill_null(column, -1).to_numpy(), dtype=np.int64)


def _strata(column: Sequence[str | None]) -> dict[str, list[str]]:
    """Stratum -> values, "" where a sample has none."""
    rows = [json.loads(text or "{}") for text in column]
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: ["" if row.get(name) is None else str(row[name]) for row in rows] for name in names}

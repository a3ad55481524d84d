"""Risk tensors from a run's ledger: one model at a time, when it is asked for; no loop over rows."""

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

_NONE, _TOLD, _UNCHANGED, _FAILED, _REJECTED = range(5)  # `unchanged`: the clean answer stands
_CODES = {"already_wrong": _UNCHANGED, "rejected": _REJECTED, "error": _FAILED, "timeout": _FAILED}
_CRITERIA = ("label", "prediction", "target")
_MOST_LOGITS = 50_000_000  # held at a time


@dataclass(frozen=True)
class LedgerTensors(Mapping[str, RiskTensor]):
    """The tensors of a run by model: each is read when it is asked for first."""

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
    """Answers as dense arrays: arms x repeats x samples, flattened; the clean ones apart."""

    said: Integers  # (draws, places): the class of each draw; one draw of a model that does not draw; -1: none
    refused: Flags  # (draws, places)
    confidence: Floats
    rate: Floats  # of draws that met the criterion of success
    criterion: Integers  # what success meant: its place in _CRITERIA, -1 where it is not stated
    is_drawn: bool  # the draws of a model that answers at random are known
    outcome: NDArray[np.int8]  # _NONE where there is no row
    clean_prediction: Integers  # (samples,)
    clean_confidence: Floats
    place: Mapping[str, int]  # cell -> where its samples begin
    n: int

    @property
    def told(self) -> Flags:
        """Where there is an answer."""
        return np.asarray((self.said[0] >= 0) | self.refused[0])


def read_tensors(
    ledger: Ledger,
    losses: Sequence[object] = (),
    *,
    models: Sequence[str] | None = None,
    arms: Sequence[str] | None = None,
) -> LedgerTensors:
    """The models of a run, or those named; surrogates that nobody asked about are none of them."""
    known = sorted({row["model"] for row in _arm_rows(ledger, arms) if row["kind"] != CLEAN})
    for model in models or ():
        if model not in known:
            raise RiskError(f"no model called {model!r} in this run; {did_you_mean(model, known)}")
    if not known:
        raise RiskError("this run holds no corruption and no attack, so there is no risk to speak of")
    return LedgerTensors(ledger, bound_losses(losses), tuple(arms) if arms else None, tuple(models or known))


def read_tensor(
    ledger: Ledger, model: str, losses: Sequence[object] = (), *, arms: Sequence[str] | None = None
) -> RiskTensor:
    """What the answers of one model cost, on the samples to be evaluated.

    `arms` are names or patterns; by default those of the study, or those imported where there is no study; the clean
    inputs are always there. Rows that ended with an error or a timeout, and those not there yet, are nan. Where an
    attack had nothing to do, since the clean input is wrong already, the clean answer stands: but under a loss that
    asks whether the answer changed, where nothing is known. What the model refused to answer costs nothing, but under
    the loss `rejected`. Of a model that answers at random a value is the mean over the judge's draws.
    """
    bound = bound_losses(losses)
    chosen = [row for row in _arm_rows(ledger, arms) if row["model"] == model]
    if not chosen:
        known = {row["model"] for row in _arm_rows(ledger, arms)}
        raise RiskError(f"no model called {model!r} in this run; {did_you_mean(model, known)}")
    samples = ledger.query("SELECT sample, label, weight, strata FROM samples WHERE split = 'evaluate' ORDER BY sample")
    if not len(samples):
        raise RiskError("this run holds no sample to be evaluated")
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
    share = n_early(len(rows.said)) / len(rows.said)
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
    """Of clean inputs that are wrong, no attack lowers the loss: an attacker would leave them as they are.

    Judged against the clean prediction, an attack moves them all the same, perhaps to the correct class. Of a model
    that answers at random the clean answer stands, as where attacks are judged by the label: the larger of two means
    over few draws would be too large. What is wrong was decided by other draws than those that are recorded.
    """
    wrong = (rows.clean_prediction >= 0) & (label >= 0) & (rows.clean_prediction != label)
    wrong &= rows.outcome[: rows.n] != _REJECTED
    shape = len(attacks), -1, rows.n
    told = np.isin(rows.outcome, (_TOLD, _REJECTED)) & (rows.criterion > 0)
    moved = told.reshape(shape).transpose(2, 0, 1) & attacks[None, :, None] & wrong[:, None, None]
    for place, loss in enumerate(losses):
        if loss.of_change or loss.counts_refusals:
            continue
        for part in values:
            clean = np.broadcast_to(part[place][:, :1, :1], part[place].shape)
            larger = moved & (rows.is_drawn | (clean > part[place]))
            part[place][larger] = clean[larger]


def _hide_unasked(
    rows: _Rows, losses: Sequence[Loss], arms: Sequence[str], attacks: Flags, values: tuple[Floats, Floats]
) -> dict[str, list[str]]:
    """Make nan what attacks did not ask, of losses that need it; loss -> such attacks."""
    left = (rows.outcome == _UNCHANGED).reshape(len(arms), -1, rows.n).transpose(2, 0, 1) & attacks[None, :, None]
    missing = [arm for arm, some in zip(arms, left.any(axis=(0, 2)), strict=True) if some]
    found: dict[str, list[str]] = {}
    for place, loss in enumerate(losses):
        if loss.of_change and missing:
            found[loss.label] = missing
            for part in values:
                part[place][left] = np.nan
    return found


def _arm_rows(ledger: Ledger, patterns: Sequence[str] | None) -> list[dict[str, Any]]:
    """The arms that count against each model, the clean one first."""
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
    asked = {row["model"] for row in table if row["kind"] != CLEAN and matches(row["arm"], patterns)}
    return [row for row in table if row["model"] in asked and (row["kind"] == CLEAN or matches(row["arm"], patterns))]


def _refuse_without_scores(
    ledger: Ledger, model: str, losses: Sequence[Loss], arms: Sequence[Mapping[str, Any]]
) -> None:
    needing = [loss.label for loss in losses if loss.needs == "scores"]
    rows = ledger.query("SELECT capability FROM models WHERE model = $model", {"model": model}).to_pylist()
    if needing and rows and rows[0]["capability"] == "labels":
        raise RiskError(
            f"the loss {needing[0]} needs scores, but {model} says its class only; choose a loss that needs no more, "
            "such as misclassified or class-change, or leave this model out"
        )
    if needing and arms[0]["kind"] != CLEAN:
        raise RiskError(f"the loss {needing[0]} needs the scores of clean inputs, but this run holds none of {model}")


def _read_rows(ledger: Ledger, model: str, arms: Sequence[Mapping[str, Any]], samples: pa.Array) -> _Rows:
    n, n_repeats = len(samples), max(row["repeats"] or 1 for row in arms)
    number = {row["arm"]: place for place, row in enumerate(arms)}
    cells = ledger.query(_CELLS, {"model": model}).to_pylist()
    place = {
        row["cell"]: (number[row["arm"]] * n_repeats + row["repeat"]) * n
        for row in cells
        if row["arm"] in number and row["repeat"] < n_repeats
    }
    table = ledger.query(_OUTCOMES, {"model": model, "arms": list(number)})
    where = _where(table, place, samples)
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
    outcome[where] = np.array([*_CODES.values(), _TOLD])[_index(table["outcome"], pa.array(list(_CODES)))]
    criterion[where] = _index(table["criterion"], pa.array(_CRITERIA))
    clean, sure = _clean(arms, prediction, confidence, clean_of_row, n_repeats, n)
    if (prediction < 0).all() and (outcome == _TOLD).any():
        raise RiskError(
            f"the rows of {model} hold no predictions, so nobody knows what its answers cost; import them, too"
        )
    said, refused = _drawn(table["draws"], where, prediction, outcome)
    unchanged = np.flatnonzero(outcome == _UNCHANGED)
    own = arms[0]["kind"] == CLEAN and outcome[unchanged % n] != _NONE  # the clean arm is the first
    for of_draw, marks in zip(said, refused, strict=True):
        of_draw[unchanged] = np.where(own, of_draw[unchanged % n], clean[unchanged % n])
        marks[unchanged] = own & marks[unchanged % n]
        of_draw[marks] = np.maximum(clean[np.flatnonzero(marks) % n], 0)  # any class: it is not used
    confidence[unchanged] = sure[unchanged % n]
    said[:, outcome == _FAILED] = -1
    return _Rows(said, refused, confidence, rate, criterion, len(said) > 1, outcome, clean, sure, place, n)


def _drawn(draws: pa.ChunkedArray, where: Integers, prediction: Integers, outcome: Any) -> tuple[Integers, Flags]:
    """What was said, and what was refused, in each draw; what stands in the row, where the draws are not known."""
    known = np.flatnonzero(~np.asarray(draws.is_null()))
    most = int(pc.max(pc.list_value_length(draws)).as_py() or 1)
    said = np.broadcast_to(prediction, (most, prediction.size)).copy()
    refused = np.broadcast_to(outcome == _REJECTED, said.shape).copy()
    if known.size and most > 1:
        if pc.any(pc.not_equal(pc.list_value_length(draws), most)).as_py():
            raise RiskError("rows of this run hold different numbers of draws; run the study again")
        of_row = pc.list_flatten(draws).to_numpy().reshape(-1, most).T.astype(np.int64)
        said[:, where[known]], refused[:, where[known]] = of_row, of_row < 0
    return said, refused


def _clean(
    arms: Sequence[Mapping[str, Any]],
    prediction: Integers,
    confidence: Floats,
    clean_of_row: Integers,
    n_repeats: int,
    n: int,
) -> tuple[Integers, Floats]:
    """The clean answers: of the clean arm, or what other rows say of them."""
    known = clean_of_row.reshape(-1, n).max(axis=0)
    sure = np.full(n, np.nan)
    for place, row in enumerate(arms):
        if row["kind"] == CLEAN:
            first = place * n_repeats * n
            own = prediction[first : first + n]
            known, sure = np.where(own >= 0, own, known), confidence[first : first + n].copy()
    return known, sure


def _losses(
    ledger: Ledger,
    rows: _Rows,
    losses: Sequence[Loss],
    label: Integers,
    samples: pa.Array,
    n_arms: int,
    n_repeats: int,
) -> tuple[Floats, Floats]:
    """Means over the first part of the draws, and over the rest: (losses, samples, arms, repeats) each.

    Logits are read only where a loss needs them, some arms at a time.
    """
    n, n_draws = rows.n, len(rows.said)
    split = n_early(n_draws)
    parts = [np.full((len(losses), n_arms * n_repeats * n), np.nan) for _ in range(2)]
    scored = any(loss.needs == "scores" for loss in losses)
    clean = _read_logits(ledger, rows, samples, (0, n)) if scored else None
    step = n_arms
    if clean is not None:
        step = max(1, _MOST_LOGITS // (n_repeats * n * clean.width * n_draws))
    for first in range(0, n_arms, step):
        ends = first * n_repeats * n, min(first + step, n_arms) * n_repeats * n
        held = _read_logits(ledger, rows, samples, ends) if scored else None
        told = np.flatnonzero(rows.told[ends[0] : ends[1]]) + ends[0]
        for part, draws in zip(parts, (range(split), range(split, n_draws)), strict=True):
            for place, found in enumerate(_mean_losses(rows, losses, label, told, ends[0], held, clean, draws)):
                part[place, told] = found
    early, late = (part.reshape(len(losses), n_arms, n_repeats, n).transpose(0, 3, 1, 2) for part in parts)
    return np.asarray(early), np.asarray(late)


def _mean_losses(
    rows: _Rows,
    losses: Sequence[Loss],
    label: Integers,
    told: Integers,
    start: int,
    held: "_Logits | None",
    clean: "_Logits | None",
    draws: range,
) -> list[Floats]:
    """The mean loss of the rows over some draws, for each loss."""
    totals = [np.zeros(told.size) for _ in losses]
    for draw in draws:
        answers, there = _answers(rows, label, told, start, held, clean, draw)
        for total, loss in zip(totals, losses, strict=True):
            found = loss(answers)
            missing = ~there if answers.rejected is None else ~there & ~answers.rejected
            total += np.where(missing, np.nan, found) if loss.needs == "scores" else found
    means = [total / max(len(draws), 1) for total in totals]
    return (
        means if rows.is_drawn else [_by_rate(rows, loss, told, one) for loss, one in zip(losses, means, strict=True)]
    )


def _by_rate(rows: _Rows, loss: Loss, told: Integers, found: Floats) -> Floats:
    """Of ledgers that hold no draws: the share of them that met the criterion, where that is what the loss counts."""
    rate = rows.rate[told]
    counts = ((rows.criterion[told] == 0) & loss.of_error) | ((rows.criterion[told] == 1) & loss.of_change)
    some = (rate > 0) & (rate < 1) & (rows.outcome[told] == _TOLD) & counts
    return np.where(some, rate, found)


@dataclass(frozen=True, eq=False)
class _Logits:
    """Scores of a range of places, whose they are, and whether they are known."""

    values: Floats  # (draws, places, width): one draw where they are the same in each, or the mean of them is known
    classes: Integers | None  # (places, width)
    known: Flags

    @property
    def width(self) -> int:
        return int(self.values.shape[2])

    def of(self, draw: int) -> Floats:
        return np.asarray(self.values[draw if draw < len(self.values) else 0])

    @cached_property
    def mean(self) -> Floats:
        """What a model that answers at random says on average."""
        if len(self.values) == 1:
            return self.of(0)
        return np.asarray(np.logaddexp.reduce(self.values, axis=0) - np.log(len(self.values)))


def _answers(
    rows: _Rows,
    label: Integers,
    told: Integers,
    start: int,
    held: _Logits | None,
    clean: _Logits | None,
    draw: int,
) -> tuple[Answers, Flags]:
    """The rows with an answer, and where its scores are known, in one draw."""
    sample = told % rows.n
    common: dict[str, Any] = {
        "prediction": rows.said[draw][told],
        "label": label[sample],
        "clean_prediction": rows.clean_prediction[sample],
        "confidence": rows.confidence[told],
        "clean_confidence": rows.clean_confidence[sample],
    }
    if (refused := rows.refused[draw][told]).any():
        common["rejected"] = refused
    there = np.ones(told.size, dtype=np.bool_)
    if held is None or clean is None:
        return Answers(**common), there
    logits, known = held.of(draw)[told - start], held.known[told - start]
    classes = held.classes[told - start] if held.classes is not None else None
    unchanged = rows.outcome[told] == _UNCHANGED
    logits[unchanged], known[unchanged] = clean.of(draw)[sample[unchanged]], clean.known[sample[unchanged]]
    if classes is not None and clean.classes is not None:
        classes[unchanged] = clean.classes[sample[unchanged]]
    if rows.is_drawn:  # log-probabilities: the largest is the answer of this draw
        common["confidence"] = np.exp(logits.max(axis=1))
    there = known & clean.known[sample]
    more: dict[str, Any] = {
        "logits": logits,
        "classes": classes,
        "clean_logits": clean.mean[sample],
        "clean_classes": clean.classes[sample] if clean.classes is not None else None,
    }
    return Answers(**common, **more), there


def _read_logits(ledger: Ledger, rows: _Rows, samples: pa.Array, ends: tuple[int, int]) -> _Logits:
    """The scores of all places from the first end to before the second."""
    cells = [cell for cell, place in rows.place.items() if ends[0] <= place < ends[1]]
    table = ledger.query(_OUTPUTS, {"cells": cells})
    if not len(table):
        raise RiskError(
            "this run holds no scores of some arm, or of the clean inputs; choose a loss that needs no scores"
        )
    where = _where(table, rows.place, samples)
    table, where = table.filter(pa.array(where >= 0)), where[where >= 0] - ends[0]
    width = len(table["logits"][0]) if len(table) else 1
    if len(table) and pc.any(pc.not_equal(pc.list_value_length(table["logits"]), width)).as_py():
        raise RiskError(
            "rows of this run hold scores of different numbers of classes; choose a loss that needs no scores"
        )
    size = ends[1] - ends[0]
    draws = len(rows.said) if rows.is_drawn and len(table) else 1
    logits, known = np.full((draws, size, width), np.nan), np.zeros(size, dtype=np.bool_)
    logits[:, where] = _flattened(table["logits"], width)
    if draws > 1:
        has = ~np.asarray(table["draws"].is_null())
        of_draw = pc.list_flatten(table["draws"]).to_numpy().reshape(-1, draws, width)
        logits[:, where[has]] = of_draw.transpose(1, 0, 2)
    known[where] = True
    classes = None
    if len(table) and table["classes"].null_count == 0:
        classes = np.full((size, width), -1, dtype=np.int64)
        classes[where] = _flattened(table["classes"], width)
    return _Logits(logits, classes, known)


def _flattened(column: pa.ChunkedArray, width: int) -> NDArray[Any]:
    found: NDArray[Any] = pc.list_flatten(column).to_numpy().reshape(-1, width)
    return found


def _where(table: pa.Table, place: Mapping[str, int], samples: pa.Array) -> Integers:
    """The place of each row of a table; -1 where it belongs to none."""
    begins = np.append(np.array(list(place.values()), dtype=np.int64), -1)
    cell = _index(table["cell"], pa.array(list(place), pa.string()))
    sample = _index(table["sample"], samples)
    return np.where((cell >= 0) & (sample >= 0), begins[cell] + sample, -1)


def _index(column: pa.ChunkedArray, among: pa.Array) -> Integers:
    found = pc.fill_null(pc.index_in(column, value_set=among), -1).to_numpy()
    return np.asarray(found, dtype=np.int64)


def _ints(column: pa.ChunkedArray) -> Integers:
    return np.asarray(pc.fill_null(column, -1).to_numpy(), dtype=np.int64)


def _strata(column: Sequence[str | None]) -> dict[str, list[str]]:
    """Stratum -> values, "" where a sample has none."""
    rows = [json.loads(text or "{}") for text in column]
    names = dict.fromkeys(name for row in rows for name in row)
    return {name: ["" if row.get(name) is None else str(row[name]) for row in rows] for name in names}

"""Integer failures from a run's ledger: the samples that each attack of a frozen list broke, and clean errors.

- A sample *fails* under an attack when it was not wrong clean and the attack succeeded against it.
- A sample that was answered wrongly when clean is no failure but clean error, which stands beside every certificate.
- A row that ended with an error or a timeout counts as a failure: the attack may have succeeded. The loss so counted is
  never below the true one, so a certificate stays valid.
- Of an attack with a target, an input that it makes the model read as some other wrong class is no failure; but it is
  wrong in the end.
- What a model refuses to answer is no failure, clean or attacked; but it is not answered rightly, and counts as wrong
  in the end. Whatever class stands behind a refused clean input, nobody was told it: an attack that makes the model
  answer it, and wrongly, succeeds, and the sample fails.
- Of a random attack with r repeats, a single try is its first repeat; with r tries a sample fails if any of them
  breaks it.
- Of a model that answers at random, the risk is that of a query. One draw of the judge decides of each sample, the
  first, whose seed was settled before: one of the clean input and one of each attacked one. A sample so fails with
  exactly the probability that is tested, and counts are binomial; the mean over draws would be no count, and most of
  the draws another risk. What no attack was run on, as most clean draws are wrong, fails where this draw is correct.
"""

import hashlib
import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from advrisk.assess.certificate.calibration import CalibrationSet
from advrisk.core.errors import RiskError
from advrisk.core.names import matches, no_match
from advrisk.ledger import Ledger
from advrisk.ledger.frozen import FrozenList, asked_question, frozen_lists

Flags = NDArray[np.bool_]

_ARMS = """
    SELECT model, arm, recipe, origin, kind, family, norm, eps, objective, keep, max_queries, version,
           coalesce(repeats, 1) AS repeats, params
    FROM arms WHERE origin IN ('study', 'search', 'frozen') ORDER BY model, norm, eps, arm
"""
_ROWS = """
    SELECT arm, sample, coalesce(repeat, 0) AS repeat, outcome, clean_prediction, prediction, criterion, target,
           draws[1] AS first_draw, draws[2] AS second_draw
    FROM outcomes WHERE model = $model AND arm IN (SELECT unnest($arms))
    AND sample IN (SELECT sample FROM samples WHERE split = 'calibrate')
"""
_FLAGS = """
    SELECT arm, list_sort(list_distinct(flatten(list(flags)))) AS flags FROM cells
    WHERE model = $model AND shard IN (SELECT DISTINCT shard FROM samples WHERE split = 'calibrate') GROUP BY arm
"""
_STRENGTH = """
    SELECT arm, avg(CASE norm WHEN 'l0' THEN d_l0 WHEN 'l1' THEN d_l1 WHEN 'l2' THEN d_l2 ELSE d_linf END) AS moved,
           sum(n_forward + n_backward) / count(DISTINCT sample) AS passes
    FROM outcomes WHERE model = $model AND arm IN (SELECT unnest($arms)) AND outcome = 'resisted'
    AND sample IN (SELECT sample FROM samples WHERE split = 'calibrate') GROUP BY arm
"""
_TARGETS = """
    SELECT DISTINCT coalesce(s.label, -1) AS label, o.target FROM outcomes o JOIN samples s USING (sample)
    WHERE s.split = 'calibrate' AND o.model = $model AND o.target IS NOT NULL ORDER BY ALL
"""
_RANDOM = "SELECT 1 FROM models WHERE model = $model AND random"
_UNTOLD = ("error", "timeout")
_NO_DRAW = -9  # no query
CLEAN = "clean"


@dataclass(frozen=True, eq=False)
class AttackRows:
    """The outcomes of one attack of the list on the calibration samples, in their order; a row for each try."""

    arm: str
    origin: str  # study | frozen
    family: str | None
    norm: str | None
    eps: float | None
    params: Mapping[str, Any]
    objective: str | None
    failed: Flags  # (repeats, n)
    there: Flags  # (repeats, n): false if a row is missing, as the run is not finished
    untold: Flags  # (repeats, n): ended with an error or a timeout
    refused: Flags  # (repeats, n): the model refuses to answer the attacked input
    incorrect: Flags  # (repeats, n): no success, but answered incorrectly: as another class than the target
    flags: tuple[str, ...] = ()  # reasons not to trust it
    keep: str | None = None
    max_queries: int | None = None
    version: int | None = None  # of the registered attack
    moved: float | None = None  # mean distance of the kept points of tries that broke nothing; None: there is none
    passes: float | None = None  # mean passes that such tries spent on a sample

    @property
    def tries(self) -> int:
        """The number of tries on each sample."""
        return len(self.failed)

    @property
    def broken(self) -> Flags:
        """Samples that some try broke."""
        return np.asarray(self.failed.any(axis=0))

    @property
    def finished(self) -> Flags:
        """Samples with a row for every try."""
        return np.asarray(self.there.all(axis=0))


@dataclass(frozen=True, eq=False)
class ModelRows:
    """One model on the calibration samples."""

    model: str
    wrong: Flags  # (n,): clean error
    refused: Flags  # (n,): the model refuses to answer the clean input
    recorded: Flags  # (n,): whether the clean outcome is recorded
    attacks: tuple[AttackRows, ...]
    criterion: str
    digest: str  # of every deciding row
    targets: Mapping[int, tuple[int, ...]] = field(default_factory=dict)  # class -> target classes


def read_rows(
    ledger: Ledger,
    calibration: CalibrationSet,
    *,
    arms: Sequence[str] | None = None,
    asked: bool = False,
) -> tuple[ModelRows, ...]:
    """Every model of the study with the attacks of its list: those of the study, and those from searches.

    The lists are those that were frozen before the test; where nothing was frozen, all attacks of the study within some
    eps. `arms` are names or patterns of those that count; what a search found always does. `asked`
    says that the study asks for a certificate, so that a run without rows is merely not finished.
    """
    lists = frozen_lists(ledger)
    _refuse_other_samples(lists, calibration)
    listed = _listed(ledger, arms, lists)
    return tuple(_model_rows(ledger, calibration, model, listed[model], asked=asked) for model in listed)


def _refuse_other_samples(lists: Sequence[FrozenList], calibration: CalibrationSet) -> None:
    for one in lists:
        if one.samples != calibration.fingerprint:
            raise RiskError(
                f"the attacks on {one.model} within {one.norm} {one.eps:g} were frozen for {one.n_samples} samples to "
                f"calibrate, and the run now has {calibration.n} or others; counts of different samples are not mixed: "
                "run the same study again"
            )


def _listed(
    ledger: Ledger, patterns: Sequence[str] | None, lists: Sequence[FrozenList]
) -> dict[str, list[dict[str, Any]]]:
    """Model -> its list of attacks."""
    table = [row for row in ledger.query(_ARMS).to_pylist() if row["kind"] == "attack"]
    if not table:
        raise RiskError("this run holds no attack, so there is nothing to certify against")
    sized = [row for row in _frozen(table, lists, ledger.ids) if row["norm"] is not None and row["eps"] is not None]
    if not sized:
        raise RiskError(
            "no attack of this run has both a norm and an eps, so there is no threat model to certify against; give "
            "one an eps and run the study again"
        )
    for pattern in patterns or ():
        if complaint := no_match(pattern, {row["arm"] for row in sized}):
            raise RiskError(complaint)
    listed: dict[str, list[dict[str, Any]]] = {}
    for row in sized:
        if patterns is None or row["origin"] == "frozen" or matches(row["arm"], patterns):
            listed.setdefault(row["model"], []).append(row)
    return listed


def _frozen(
    table: Sequence[dict[str, Any]], lists: Sequence[FrozenList], ids: Mapping[str, str]
) -> list[dict[str, Any]]:
    """The attacks of the frozen lists, those from searches marked; those of the study if nothing was frozen."""
    if not lists:
        return [row for row in table if row["origin"] in ("study", "frozen")]
    listed = {
        (one.model, arm): (recipe, tries)
        for one in lists
        for arm, recipe, tries in zip(one.arms, one.recipes, one.tries, strict=True)
    }
    searched = {(one.model, arm) for one in lists for arm in one.searched}
    places = [(row["model"], ids.get(row["arm"], row["arm"])) for row in table]  # lists hold ids
    if missing := listed.keys() - set(places):
        model, arm = min(missing)
        raise RiskError(f"{arm} against {model} was to be certified and is gone; run the same study again")
    for row, place in zip(table, places, strict=True):
        if listed.get(place, (row["recipe"], row["repeats"])) != (row["recipe"], row["repeats"]):
            raise RiskError(
                f"{row['arm']} against {row['model']} is not what was frozen before the test: the model, the attack or "
                "its number of tries are others now; run the study again"
            )
    return [
        row | {"origin": "frozen" if place in searched else "study"}
        for row, place in zip(table, places, strict=True)
        if place in listed
    ]


def _model_rows(
    ledger: Ledger, calibration: CalibrationSet, model: str, arms: Sequence[Mapping[str, Any]], *, asked: bool
) -> ModelRows:
    names = [row["arm"] for row in arms]
    table = ledger.query(_ROWS, {"model": model, "arms": [CLEAN, *names]})
    if not len(table):
        raise RiskError(
            f"the attacks on {model} were not run on the samples to calibrate yet; {_next_step(ledger, asked=asked)}"
        )
    criterion = _criterion(table, model)
    number = {name: place for place, name in enumerate([CLEAN, *names])}
    most = max(row["repeats"] for row in arms)
    where = (
        _index(table["arm"], list(number)),
        table["repeat"].to_numpy().astype(np.int64),
        _index(table["sample"], list(calibration.samples)),
    )
    inside = (where[1] < most) & (where[2] >= 0)
    where = tuple(axis[inside] for axis in where)
    table = table.filter(pa.array(inside))
    shape = (len(number), most, calibration.n)
    is_random = len(ledger.query(_RANDOM, {"model": model})) > 0
    if is_random:
        table = _one_draw(ledger, model, table, where, calibration)
    table = table.drop_columns(["first_draw", "second_draw"])
    outcome = {name: _marked(shape, where, _is(table, *kinds)) for name, kinds in _KINDS.items()}
    outcome["incorrect"] = _marked(shape, where, _read_as_others(ledger, table, where, calibration))
    wrong, refused, recorded = _clean(ledger, table, where, calibration, shape, "draw" if is_random else criterion)
    flags = {row["arm"]: tuple(row["flags"] or ()) for row in ledger.query(_FLAGS, {"model": model}).to_pylist()}
    spent = {row["arm"]: row for row in ledger.query(_STRENGTH, {"model": model, "arms": names}).to_pylist()}
    return ModelRows(
        model=model,
        wrong=wrong,
        refused=refused,
        recorded=recorded,
        attacks=tuple(
            replace(
                _attack(row, {name: marks[number[row["arm"]]] for name, marks in outcome.items()}, wrong, flags),
                moved=spent.get(row["arm"], {}).get("moved"),
                passes=spent.get(row["arm"], {}).get("passes"),
            )
            for row in arms
        ),
        criterion=criterion,
        digest=_digest(model, table, arms),
        targets=_targets(ledger, model),
    )


def _next_step(ledger: Ledger, *, asked: bool) -> str:
    """The next step: the same command, once the study has a certificate."""
    if asked or asked_question(ledger) is not None:
        return f"resume the run: advrisk run STUDY --out {shlex.quote(str(ledger.path.parent))}"
    return "run the same study again to go on (it must hold `assess: {certificate: {alpha: 0.1, zeta: 0.05}}`, say)"


_KINDS: Mapping[str, tuple[str, ...]] = {
    "there": (),
    "success": ("success",),
    "untold": _UNTOLD,
    "refused": ("rejected",),
}


def _one_draw(
    ledger: Ledger, model: str, table: pa.Table, where: tuple[Any, ...], calibration: CalibrationSet
) -> pa.Table:
    """The rows of a model that answers at random, with the outcomes and predictions of its first draw.

    An attack that kept the clean input, having found nowhere to start, is judged by the clean input's second draw.
    """
    first, second, clean, target = (
        pc.fill_null(table[name], _NO_DRAW).to_numpy().astype(np.int64)
        for name in ("first_draw", "second_draw", "clean_prediction", "target")
    )
    outcome = np.array(table["outcome"].to_pylist(), dtype=object)
    is_clean = where[0] == 0
    if is_clean.any() and (first[is_clean & ~np.isin(outcome, _UNTOLD)] == _NO_DRAW).any():
        raise RiskError(
            f"{model} answers at random, and this run does not hold what it said in each draw; a certificate is about "
            "single queries: run the same study again with this version"
        )
    other = np.full(calibration.n, _NO_DRAW, dtype=np.int64)
    own = np.full(calibration.n, _NO_DRAW, dtype=np.int64)
    own[where[2][is_clean]], other[where[2][is_clean]] = first[is_clean], second[is_clean]
    label = _labels(ledger, calibration)[where[2]]
    said = np.where((first == _NO_DRAW) & (outcome == "resisted"), other[where[2]], first)
    wanted = np.where(is_clean, "label", np.array(table["criterion"].fill_null("label").to_pylist(), dtype=object))
    hit = np.select(
        [wanted == "prediction", wanted == "target"],
        [said != clean, (said == target) & (target != label)],
        said != label,
    )
    drawn = np.where(said == -1, "rejected", np.where(hit & (said >= 0), "success", "resisted"))
    drawn = np.where(outcome == "already_wrong", "success", drawn)  # it was not attacked: it may well be broken
    drawn = np.where(is_clean & (drawn == "success"), "already_wrong", drawn)
    drawn = np.where(np.isin(outcome, _UNTOLD), outcome, drawn)
    columns = {"outcome": drawn.tolist(), "prediction": np.maximum(said, -1).tolist()}
    columns["clean_prediction"] = np.maximum(own[where[2]], -1).tolist()
    for name, values in columns.items():
        column = pa.array([None if value == -1 else value for value in values])
        table = table.set_column(table.column_names.index(name), name, column)
    return table


def _read_as_others(ledger: Ledger, table: pa.Table, where: tuple[Any, ...], calibration: CalibrationSet) -> Flags:
    """Rows of failed targeted attacks whose answer is incorrect nonetheless."""
    answer = pc.fill_null(table["prediction"], -1).to_numpy().astype(np.int64)
    true = _labels(ledger, calibration)[where[2]]
    aimed = pc.is_in(table["criterion"].cast(pa.string()), value_set=pa.array(["target"]))
    aimed = np.asarray(aimed.to_numpy(zero_copy_only=False), dtype=np.bool_)
    return np.asarray(_is(table, "resisted") & aimed & (answer >= 0) & (true >= 0) & (answer != true))


def _attack(
    row: Mapping[str, Any], marks: Mapping[str, Flags], wrong: Flags, flags: Mapping[str, tuple[str, ...]]
) -> AttackRows:
    tries = {name: found[: row["repeats"]] for name, found in marks.items()}
    return AttackRows(
        arm=row["arm"],
        origin=row["origin"],
        family=row["family"],
        norm=row["norm"],
        eps=row["eps"],
        params=json.loads(row["params"] or "{}"),
        objective=row["objective"],
        failed=(tries["success"] | tries["untold"]) & ~wrong,
        there=tries["there"],
        untold=tries["untold"],
        refused=tries["refused"],
        incorrect=tries["incorrect"],
        flags=flags.get(row["arm"], ()),
        keep=row["keep"],
        max_queries=row["max_queries"],
        version=row["version"],
    )


def _clean(
    ledger: Ledger,
    table: pa.Table,
    where: tuple[Any, ...],
    calibration: CalibrationSet,
    shape: tuple[int, ...],
    criterion: str,
) -> tuple[Flags, Flags, Flags]:
    """Whether each sample is incorrect clean, refused clean, and recorded by some row.

    Of a refused input no row's clean prediction counts. Where success is a wrong class, a sample that some attack
    succeeded against was not wrong before, whatever another row says.
    """
    label = _labels(ledger, calibration)
    clean = pc.fill_null(table["clean_prediction"], -1).to_numpy().astype(np.int64)
    own = pc.fill_null(table["prediction"], -1).to_numpy().astype(np.int64)
    clean = np.where(where[0] == 0, np.where(own >= 0, own, clean), clean)
    true = label[where[2]]

    def some(marks: Flags) -> Flags:
        return np.asarray(_marked(shape, where, marks).any(axis=(0, 1)))

    wrong = some(_is(table, "already_wrong"))
    refused = some(_is(table, "rejected") & (where[0] == 0)) & ~wrong
    wrong |= some((clean >= 0) & (true >= 0) & (clean != true)) & ~refused
    if criterion == "label":
        wrong &= ~some(_is(table, "success") & (where[0] > 0))
    return wrong, refused, some(~_is(table, *_UNTOLD) | (clean >= 0))


def _labels(ledger: Ledger, calibration: CalibrationSet) -> NDArray[np.int64]:
    """The labels of the calibration samples, in their order; -1: unknown."""
    labels = ledger.query("SELECT sample, coalesce(label, -1) AS label FROM samples WHERE split = 'calibrate'")
    label = np.full(calibration.n, -1, dtype=np.int64)
    label[_index(labels["sample"], list(calibration.samples))] = labels["label"].to_numpy()
    return label


def _criterion(table: pa.Table, model: str) -> str:
    found = [name for name in pc.unique(table["criterion"]).to_pylist() if name is not None]
    if len(found) > 1:
        raise RiskError(
            f"rows of {model} were judged by different criteria of success, {' and '.join(sorted(found))}; a "
            "certificate is about one; choose another folder for the other study"
        )
    return found[0] if found else "label"


def _targets(ledger: Ledger, model: str) -> dict[int, tuple[int, ...]]:
    found: dict[int, list[int]] = {}
    for row in ledger.query(_TARGETS, {"model": model}).to_pylist():
        found.setdefault(row["label"], []).append(row["target"])
    return {label: tuple(targets) for label, targets in found.items()}


def _marked(shape: tuple[int, ...], where: tuple[Any, ...], marks: Flags) -> Flags:
    found = np.zeros(shape, dtype=np.bool_)
    found[where] = marks
    return found


def _is(table: pa.Table, *kinds: str) -> Flags:
    """Whether each row has one of these outcomes; all rows without a name."""
    if not kinds:
        return np.ones(len(table), dtype=np.bool_)
    found = pc.is_in(table["outcome"].cast(pa.string()), value_set=pa.array(kinds, pa.string()))
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.bool_)


def _index(column: pa.ChunkedArray, among: Sequence[str]) -> NDArray[np.int64]:
    found = pc.index_in(column.cast(pa.string()), value_set=pa.array(among, pa.string()))
    return np.asarray(pc.fill_null(found, -1).to_numpy(), dtype=np.int64)


def _digest(model: str, table: pa.Table, arms: Sequence[Mapping[str, Any]]) -> str:
    """A digest of the deciding rows and attacks, independent of their order."""
    hasher = hashlib.blake2b(digest_size=16)
    for row in arms:
        hasher.update(json.dumps([model, dict(row)], sort_keys=True).encode())
    columns = [table[name].cast(pa.string()) for name in sorted(table.column_names)]
    lines = pc.binary_join_element_wise(*columns, "\x1f", null_handling="replace", null_replacement="\x1e")
    ordered = lines.take(pc.sort_indices(lines))
    hasher.update("\n".join(ordered.to_pylist()).encode())
    return hasher.hexdigest()

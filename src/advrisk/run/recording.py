"""Records of the study with a run: models, arms and samples in the ledger, the study file in its folder."""

import json
from collections.abc import Mapping, Sequence, Set
from pathlib import Path
from typing import Any

import yaml

from advrisk.core.digest import digest
from advrisk.core.errors import RunError
from advrisk.core.files import regular, whole_file
from advrisk.core.labels import Labels
from advrisk.ledger import Ledger, table_from
from advrisk.ledger.inputs import calibrate_inputs, write_bounds, write_inputs
from advrisk.ledger.known_detectors import write_study_detectors
from advrisk.ledger.layout import DATA_FILE, EVASION_FILE, STUDY_FILE, data_text
from advrisk.plan import Plan, dropped_from, samples_left
from advrisk.risk.losses import without_files
from advrisk.run.planning import EVASION, extent_of, splits
from advrisk.run.workbench import Workbench
from advrisk.study import Arm, StudySpec, as_written, load_study


def record_question(study: StudySpec, ledger: Ledger, plan: Plan, bench: Workbench) -> None:
    """Append new or changed models, arms and samples, and write study and detectors into the run's folder."""
    tables = {
        "models": _models(bench),
        "arms": _arms(study, plan) + _dropped_arms(ledger, plan),
        "samples": _samples(study, plan, bench, ledger),
    }
    fresh = {name: _new_rows(rows, ledger.query(f"SELECT * FROM {name}").to_pylist()) for name, rows in tables.items()}
    changed = {
        name: table_from(name, {column: [row[column] for row in rows] for column in rows[0]})
        for name, rows in fresh.items()
        if rows
    }
    write_study(study, bench.folder)  # before the first segment, so that every reader of segments finds it
    _keep_evasion(study, bench.folder)
    _keep_data(study, bench)
    if changed:
        ledger.append(changed)
    _keep_to_calibrate(study, bench)
    _keep_bounds(bench)
    write_study_detectors(bench.folder, list(bench.detectors), bench.detector_names)


def _keep_to_calibrate(study: StudySpec, bench: Workbench) -> None:
    """Store the clean inputs of the calibration split, which no cell keeps, for detectors on other machines."""
    data = bench.material.data
    names = sorted(name for name, split in splits(study, bench).items() if split == "calibrate")
    if not names or study.keep_inputs == "none":
        return
    rows = [bench.material.rows[name] for name in names]
    target = calibrate_inputs(
        bench.folder, digest([[name, data.hash_of(row)] for name, row in zip(names, rows, strict=True)])
    )
    if not target.exists():
        write_inputs(target, names, data.x[rows])


def _keep_bounds(bench: Workbench) -> None:
    """Write the bounds of stored inputs: a stopped run may have lost them in a copy."""
    if (bench.folder / "inputs").is_dir():
        space = bench.material.space
        write_bounds(bench.folder, space.low.cpu().numpy(), space.high.cpu().numpy())


def _new_rows(rows: list[dict[str, Any]], stored: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows that are not stored yet with the same content."""
    contents = {json.dumps(row, sort_keys=True) for row in stored}
    return [row for row in rows if json.dumps(row, sort_keys=True) not in contents]


def _models(bench: Workbench) -> list[dict[str, Any]]:
    return [
        {
            "model": name,
            "digest": model.digest,
            "capability": model.capability,
            "n_classes": model.n_classes,
            "input_shape": list(model.input_shape),
            "random": model.random,
            "train_s": model.train_s,
            "train_process_s": model.train_process_s,
            "train_samples": model.train_samples,
            "train_cost": model.train_cost,
            "tags": json.dumps(dict(bench.material.tags[name]), sort_keys=True),
            "source_digest": model.source_digest,
        }
        for name, model in bench.material.models.items()
    ]


def record_arms(
    study: StudySpec,
    ledger: Ledger,
    pairs: Sequence[tuple[str, Arm]],
    recipes: Mapping[tuple[str, str], str],
    *,
    origin: str,
    like: Sequence[str] = (),
) -> None:
    """Append arms outside the plan; stored arms of this origin, or of one in `like`, stay unchanged."""
    stored = ledger.query("FROM arms").to_pylist()
    equivalent = [row | {"origin": origin} for row in stored if row["origin"] in like]
    _append_arms(ledger, _new_rows(_arm_rows(study, pairs, recipes, origin), [*stored, *equivalent]))


def settle_searched_arms(ledger: Ledger, frozen: Set[tuple[str, str]], tried: Set[tuple[str, str]]) -> None:
    """Update the origins of searched arms: frozen, tried by a search, or dropped."""
    rows = []
    for row in ledger.query("FROM arms WHERE origin IN ('search', 'frozen')").to_pylist():
        pair = row["model"], row["arm"]
        origin = "frozen" if pair in frozen else "search" if pair in tried else "dropped"
        rows += [row | {"origin": origin}] if origin != row["origin"] else []
    _append_arms(ledger, rows)


def _append_arms(ledger: Ledger, rows: Sequence[Mapping[str, Any]]) -> None:
    if rows:
        ledger.append({"arms": table_from("arms", {column: [row[column] for row in rows] for column in rows[0]})})


def _arms(study: StudySpec, plan: Plan) -> list[dict[str, Any]]:
    return [
        *_arm_rows(study, plan.assessed, plan.recipes, "study"),
        *_arm_rows(study, plan.crafting, plan.recipes, "surrogate"),
    ]


def _arm_rows(
    study: StudySpec, pairs: Sequence[tuple[str, Arm]], recipes: Mapping[tuple[str, str], str], origin: str
) -> list[dict[str, Any]]:
    return [
        {
            "model": model,
            "arm": arm.id,
            "name": arm.name,
            "recipe": recipes[model, arm.id],
            "origin": origin,
            "kind": arm.kind,
            "family": arm.family,
            "cause": arm.cause,
            "norm": arm.norm,
            "eps": arm.eps,
            "objective": arm.objective,
            "keep": arm.keep,
            "max_queries": arm.max_queries,
            "version": arm.version,
            "repeats": arm.repeats,
            "params": json.dumps({**arm.params, **({"draws": arm.draws} if arm.draws > 1 else {})}, sort_keys=True),
            "seed": study.seed,
        }
        for model, arm in pairs
    ]


def _dropped_arms(ledger: Ledger, plan: Plan) -> list[dict[str, Any]]:
    """Arms of an earlier version of the study that are no longer in it: kept, but not assessed."""
    stored = ledger.query("SELECT * FROM arms WHERE origin IN ('study', 'surrogate')").to_pylist()
    return [row | {"origin": "dropped"} for row in stored if (row["model"], row["arm"]) not in plan.recipes]


def _samples(study: StudySpec, plan: Plan, bench: Workbench, ledger: Ledger) -> list[dict[str, Any]]:
    """Every sample of the study; one that an earlier version used is `dropped`, whatever the data contain."""
    data = bench.material.data
    chosen = splits(study, bench)
    stored = ledger.query("FROM samples").to_pylist()
    positions = {row["sample"]: (row["shard"], row["place"]) for row in stored}  # shards are never cut again
    positions |= {name: (shard.id, number) for shard in plan.all_shards for number, name in enumerate(shard.samples)}
    rows = [
        row | {"split": dropped_from(row["split"])}
        for row in stored
        if row["split"] in ("evaluate", "tune", "calibrate") and row["sample"] not in chosen
    ]
    for name, split in chosen.items():
        row = bench.material.rows[name]
        shard, number = positions.get(name, (None, None))
        rows.append(
            {
                "sample": name,
                "hash": data.hash_of(row),
                "label": int(data.y[row]),
                "split": split,
                "weight": 1.0 if data.weights is None else float(data.weights[row]),
                "strata": json.dumps({column: str(values[row]) for column, values in data.strata.items()}),
                "shard": shard,
                "place": number,
            }
        )
    return rows


def write_study(study: StudySpec, folder: Path) -> None:
    """Write the validated study into the run's folder, for the report and for later runs."""
    content = study.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)
    content |= study.model_dump(include={"success"}, exclude_unset=True)  # JSON makes text of a map's class numbers
    if study.losses:
        content["losses"] = [without_files(entry, study.where.folder) for entry in study.loss_entries()]
    content = as_written(content, study.written)
    text = f"# Relative paths are meant against {study.where.folder.resolve()}\n"
    text += yaml.safe_dump(content, sort_keys=False, allow_unicode=True, default_flow_style=None, width=110)
    _write(folder / STUDY_FILE, text)


def _keep_data(study: StudySpec, bench: Workbench) -> None:
    """Store properties of the data for assessments: the samples left, and the largest distances of inputs."""
    data = bench.material.data
    marks = None if data.split is None else [str(mark) for mark in data.split]
    left = samples_left(data.ids, marks, splits(study, bench))
    _write(bench.folder / DATA_FILE, data_text(left, extent_of(bench), Labels(data.class_names, data.feature_names)))


def _keep_evasion(study: StudySpec, folder: Path) -> None:
    """Store a copy of the evasion curve, so that the run gives the same answers wherever it is moved."""
    if (name := study.assess.damage.evasion_file) is None:
        (folder / EVASION_FILE).unlink(missing_ok=True)
        return
    try:
        text = regular(study.where.resolve(name)).read_text(encoding="utf-8")
    except OSError as error:
        raise study.where.error(EVASION, f"{name} cannot be read: {error.strerror}") from None
    _write(folder / EVASION_FILE, text)


def _write(target: Path, text: str) -> None:
    try:
        with whole_file(target) as file:
            file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise RunError(f"{target}: cannot be written: {error.strerror}") from None


def refuse_another_study(study: StudySpec, folder: Path) -> None:
    """Refuse a folder of another study: this one would drop its arms and samples."""
    path = folder / STUDY_FILE
    name = load_study(path).name if path.is_file() else study.name
    if name != study.name:
        raise RunError(f"{folder}: holds the study {name!r}, and this is {study.name!r}; choose another folder")

"""The plan of a run: arms, models and samples, with all checks before anything runs."""

from collections.abc import Callable, Sequence
from functools import partial

import torch

from advrisk.assess.survival.covariates import CLASS
from advrisk.core.digest import digest
from advrisk.core.errors import DataError, ModelError
from advrisk.core.extent import Extent
from advrisk.core.mistakes import Mistakes
from advrisk.core.names import one_or_many
from advrisk.core.seeds import calibration_key
from advrisk.engine import Model
from advrisk.engine.layers import hidden_layers, named_layers, refuse_without_dropout
from advrisk.engine.norms import NORMS
from advrisk.ledger import Ledger
from advrisk.parts.data import Dataset
from advrisk.plan import (
    ConfiguredDetector,
    ModelCard,
    Plan,
    RecordedSample,
    choose_splits,
    cut_shards,
    expand_detectors,
    in_interim_order,
    make_plan,
    outline_plan,
    refuse_moved,
    refuse_sizes,
)
from advrisk.risk.absolute import absolute_curve
from advrisk.risk.evasion import read_evasion
from advrisk.run.checks.gate import refuse_gate
from advrisk.run.checks.overlaps import refuse_overlaps
from advrisk.run.checks.scenarios import refuse_losses, refuse_scenarios
from advrisk.run.checks.survival import refuse_survival
from advrisk.run.workbench import Workbench
from advrisk.study import StoppingTarget, StudySpec, TargetSpec

EVASION = ("assess", "damage", "evasion")


def outline_study(bench: Workbench, detectors: Sequence[ConfiguredDetector] = ()) -> Plan:
    """The pairs of models and arms, without samples and recipes; refuses arms that the models cannot answer."""
    return outline_plan(bench.study, bench.registries, models=_cards(bench, detectors), detectors=detectors)


def plan_study(outline: Plan, ledger: Ledger, bench: Workbench) -> Plan:
    """The cells of a study, on shards that continue those in the ledger."""
    study, data = bench.study, bench.material.data
    recorded = recorded_samples(ledger)
    chosen = splits(study, bench)
    refuse_moved(chosen, recorded)
    hashes = {name: data.hash_of(row) for row, name in enumerate(data.ids) if name in chosen or name in recorded}
    used = used_splits(study)
    _refuse_untargeted(
        study, {int(data.y[bench.material.rows[name]]) for name, split in chosen.items() if split in used}
    )
    wanted = {split: [name for name in chosen if chosen[name] == split] for split in used}
    if "calibrate" in wanted:  # interim analyses follow an order that does not depend on the data's own
        wanted["calibrate"].sort(key=lambda name: calibration_key(hashes[name], name))
    shards = {split: cut_shards(names, hashes, recorded, size=study.shard) for split, names in wanted.items()}
    return make_plan(
        outline,
        study,
        bench.registries,
        models=_cards(bench),
        shards=shards["evaluate"],
        space=bench.material.space_digest,
        tune=shards.get("tune", ()),
        calibrate=in_interim_order(shards.get("calibrate", ()), hashes),
    )


def used_splits(study: StudySpec) -> list[str]:
    """The splits whose samples have cells."""
    return [
        "evaluate",
        *(["tune"] if study.search else []),
        *(["calibrate"] if study.assess.certificate is not None else []),
    ]


def refuse_impossible(
    outline: Plan,
    bench: Workbench,
    detectors: Sequence[ConfiguredDetector] = (),
    targets: Sequence[StoppingTarget] = (),
) -> None:
    """Refuse questions that the study's arms and samples cannot answer, before anything is written."""
    study, data = bench.study, bench.material.data
    arms = list({arm.id: arm for _, arm in outline.assessed}.values())
    chosen = splits(study, bench)
    evaluated = [bench.material.rows[name] for name, split in chosen.items() if split == "evaluate"]
    assessed = {model for model, _ in outline.assessed}
    tags = {model: own for model, own in bench.material.tags.items() if model in assessed}
    refuses = any(bench.material.models[model].rejects for model in assessed)
    mistakes = Mistakes()
    checks: list[Callable[[], None]] = [
        lambda: refuse_sizes(study, bench.registries, extent_of(bench)),
        lambda: refuse_losses(study, _cards(bench), arms),
        lambda: refuse_overlaps(study, data, chosen),
        lambda: refuse_scenarios(study, arms, data, evaluated, bench.registries),
        lambda: refuse_survival(study, arms, tags, _strata(bench, evaluated)),
        lambda: refuse_gate(study, sorted(assessed), arms, detectors, refuses=refuses, targets=targets),
        lambda: _refuse_evasion(study),
    ]
    for check in checks:
        with mistakes.collect():
            check()
    mistakes.refuse()


def _refuse_evasion(study: StudySpec) -> None:
    """A file that holds no evasion curve of the norm of damage."""
    if (name := study.assess.damage.evasion_file) is not None:
        with study.where.at(EVASION):
            absolute_curve(read_evasion(study.where.resolve(name), norm=study.assess.damage.norm))


def _strata(bench: Workbench, rows: Sequence[int]) -> dict[str, set[str]]:
    """The values of each stratum in these rows, and the labels as `class` unless a stratum has that name."""
    data = bench.material.data
    columns = {CLASS: data.y, **data.strata}
    return {name: {str(column[row]) for row in rows} for name, column in columns.items()}


def extent_of(bench: Workbench) -> Extent:
    """The largest distances between two inputs of the data."""
    space, shape = bench.material.space, tuple(bench.material.data.x.shape[1:])
    low, high = (bound.expand(1, *shape).double() for bound in (space.low, space.high))
    high = high if space.immutable is None else torch.where(space.immutable, low, high)
    farthest = {norm: float(space.distance(high, low, norm)) for norm in NORMS}
    unit = bool((space.scale == 1).all())
    return Extent(float(low.min()), float(space.high.max()), farthest, len(shape) == 3, unit)


def configured_detectors(bench: Workbench) -> list[ConfiguredDetector]:
    """The detectors of a study; the digests of those that learn depend on their examples, too."""
    data = bench.material.data
    examples = [[name, data.hash_of(bench.material.rows[name])] for name in train_samples(bench)]
    return expand_detectors(bench.study, bench.registries, examples=digest([examples, bench.material.space_digest]))


def train_samples(bench: Workbench) -> list[str]:
    """The samples that detectors learn from."""
    return [name for name, split in splits(bench.study, bench).items() if split == "train"]


def _refusal(inspect: Callable[[Model], object], model: Model) -> str:
    """The reason why `inspect` fails for a model; "" if it does not."""
    try:
        inspect(model)
    except ModelError as error:
        return str(error)
    return ""


def _layers(one: ConfiguredDetector) -> Callable[[Model], object]:
    """A function that returns the layers of a detector: those it names (`layers` or `layer`), or the default ones."""
    names = one.params.get("layers") or one.params.get("layer")
    if not names:
        return hidden_layers
    return partial(named_layers, names=one_or_many(names))


def _cards(bench: Workbench, detectors: Sequence[ConfiguredDetector] = ()) -> list[ModelCard]:
    parts = bench.registries.detectors
    named = [one for one in detectors if not one.from_python]
    inside = [one for one in named if parts.get(one.name).traits.inside]
    dropout = any(parts.get(one.name).traits.dropout for one in named)
    surrogates = bench.material.surrogates
    return [
        ModelCard(
            model.name,
            model.digest,
            model.capability,
            model.n_classes,
            takes_images=len(model.input_shape) == 3,
            surrogate=model.name in surrogates,
            opaque={} if model.name in surrogates else {one.id: _refusal(_layers(one), model) for one in inside},
            undropped=_refusal(refuse_without_dropout, model) if dropout and model.name not in surrogates else "",
            random=model.random,
        )
        for model in bench.material.models.values()
    ]


def _refuse_untargeted(study: StudySpec, labels: set[int]) -> None:
    """Refuse a map of targets without a target for a class that occurs."""
    targets = study.success.target if isinstance(study.success, TargetSpec) else None
    missing = sorted(labels - set(targets)) if isinstance(targets, dict) else []
    if missing:
        raise study.where.error(("success", "target"), f"names no target for class {missing[0]}, which is evaluated")


def splits(study: StudySpec, bench: Workbench) -> dict[str, str]:
    """Sample id -> split, for the samples this study uses."""
    return splits_of(study, bench.material.data)


def splits_of(study: StudySpec, data: Dataset) -> dict[str, str]:
    """Sample id -> split, for the samples of `data` that this study uses."""
    marks = None if data.split is None else [str(mark) for mark in data.split]
    try:
        return choose_splits(study.data, data.ids, marks, seed=study.seed, labels=data.y.tolist())
    except DataError as error:
        raise study.where.error(("data",), str(error)) from None


def recorded_samples(ledger: Ledger) -> dict[str, RecordedSample]:
    """Sample id -> its record in the ledger."""
    rows = ledger.query("SELECT sample, hash, split, shard, place FROM samples ORDER BY shard, place").to_pylist()
    return {row.pop("sample"): RecordedSample(**row) for row in rows}

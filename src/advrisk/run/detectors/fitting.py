"""Fitting detectors: crafting what they learn from, letting them learn, and keeping what they learned.

For each model anew, before any cell is run: a detector that finds too little to learn from says so before the work.
Samples come from the split `train`. What is fitted already is left as it is.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from advrisk.core.containment import exits_as_errors
from advrisk.core.errors import AdvriskError, RunError
from advrisk.core.names import counted
from advrisk.core.seeds import key
from advrisk.core.version import VERSION
from advrisk.engine import OutOfTimeError
from advrisk.engine.threads import one_thread
from advrisk.ledger.inputs import detector_state
from advrisk.parts.detectors import Examples, LearningDetector, State
from advrisk.plan import Cell, ConfiguredDetector, ModelCard, cut_shards, example_cell
from advrisk.run.cell import craft_examples
from advrisk.run.detectors.ready import read_state, write_state
from advrisk.run.planning import train_samples
from advrisk.run.progress import Progress
from advrisk.run.workbench import Workbench
from advrisk.study import Arm

MIN_SUCCESSES = 10
OnProgress = Callable[[float], None]  # receives how much of a piece of work is done, from 0 to 1


@dataclass(frozen=True)
class Lesson:
    """One detector, one model: what is still to be learned."""

    detector: ConfiguredDetector
    model: str


def lessons(bench: Workbench, detectors: Sequence[ConfiguredDetector]) -> list[Lesson]:
    """What is not learned yet; those that learn from the same examples, together."""
    parts = bench.registries.detectors
    learning = [one for one in detectors if not one.from_python and parts.get(one.name).traits.learns]
    assessed = [name for name in bench.material.models if name not in bench.material.surrogates]
    pairs = [Lesson(one, model) for model in assessed for one in learning]
    return sorted(
        (lesson for lesson in pairs if not _is_learned(lesson, bench)),
        key=lambda lesson: (lesson.model, [arm.id for arm in lesson.detector.arms]),
    )


def _is_learned(lesson: Lesson, bench: Workbench) -> bool:
    path = detector_state(bench.folder, lesson.detector.id, lesson.model)
    return path.is_file() and read_state(path)[1].get("model") == bench.material.models[lesson.model].digest


def fit_detectors(
    bench: Workbench,
    detectors: Sequence[ConfiguredDetector],
    progress: Progress,
    *,
    deadline: float = float("inf"),
    on_progress: Callable[[Progress], None],
) -> None:
    """Let every detector learn what it has not; `on_progress` receives what is being learned, and how much is done.

    Past the deadline, on time.monotonic's clock, nothing more is begun: OutOfTimeError.
    """

    def report(what: str, share: float) -> None:
        on_progress(progress.while_learning(what, share))

    crafted: tuple[str, tuple[Arm, ...], Examples] | None = None
    for lesson in lessons(bench, detectors):
        of = lesson.model, lesson.detector.arms
        if crafted is None or crafted[:2] != of:
            on_share = partial(report, f"crafting examples from {lesson.model} for detectors")
            crafted = (*of, examples(bench, *of, deadline=deadline, on_progress=on_share))
        if time.monotonic() > deadline:
            raise OutOfTimeError
        on_share = partial(report, f"fitting {lesson.detector.readable} to {lesson.model}")
        on_share(0.0)
        _fit(lesson, crafted[2], bench, on_share)


def _fit(lesson: Lesson, given: Examples, bench: Workbench, on_progress: OnProgress) -> None:
    study, one, model = bench.study, lesson.detector, bench.material.models[lesson.model]
    _refuse_too_few(lesson, given, bench)
    part = bench.registries.detectors.get(one.name)
    began = time.perf_counter()
    seed = key("detector", study.seed, one.id, model.digest) % 2**63
    try:
        learner: LearningDetector = part.function(**one.params)
        with exits_as_errors(f"the detector {one.name}", RunError), one_thread(), torch.random.fork_rng(devices=()):
            torch.manual_seed(seed)  # of a model that answers at random
            given = replace(given, seed=seed)
            state = learner.fit(given, model.original, on_progress=on_progress)
    except AdvriskError as error:
        raise study.where.error(one.loc, f"{one.name} could not learn from {lesson.model}: {error}") from None
    except Exception as error:  # a detector is foreign code, as an attack is
        raise RunError(
            f"the detector {one.name} failed to learn from {lesson.model}: {type(error).__name__}: {error}"
        ) from error
    _check_state(lesson, state)
    _refuse_doubtful(lesson, learner, given, state, bench)
    note = {
        "detector": one.id,
        "model": model.digest,
        "n_clean": str(len(given.clean)),
        "n_adversarial": str(len(given.adversarial)),
        "fit_s": f"{time.perf_counter() - began:.3f}",
        "version": VERSION,
    }
    write_state(detector_state(bench.folder, one.id, lesson.model), state, note)


def _refuse_too_few(lesson: Lesson, examples: Examples, bench: Workbench) -> None:
    one, n = lesson.detector, len(examples.adversarial)
    if one.arms and n < MIN_SUCCESSES:
        names = ", ".join(arm.id for arm in one.arms)
        raise bench.study.where.error(
            one.loc,
            f"{one.name} learns from successful attacks, but of {counted(len(examples.clean), 'sample')} of `train` "
            f"{names} made {n} of {lesson.model}'s wrong; at least {MIN_SUCCESSES} are needed: name stronger arms, "
            f"as in {{name: {one.name}, arms: [{{attack: pgd, norm: linf, eps: (a larger one), keep: last}}]}}, or add "
            "samples to `train`",
        )


def _refuse_doubtful(
    lesson: Lesson, learner: LearningDetector, given: Examples, state: State, bench: Workbench
) -> None:
    """What a detector itself says is worth nothing, where it can tell."""
    name, model = lesson.detector.name, bench.material.models[lesson.model]
    if not callable(ask := getattr(learner, "doubt", None)):
        return
    try:
        with bench.containment.around(f"the detector {name}", RunError), one_thread(), torch.no_grad():
            doubt = ask(given, model.original, state)
    except Exception as error:  # a detector is foreign code, as an attack is
        raise RunError(
            f"the detector {name} failed to look at what it learned of {lesson.model}: {type(error).__name__}: {error}"
        ) from error
    if doubt:
        raise bench.study.where.error(lesson.detector.loc, f"{name} learned nothing of {lesson.model}: {doubt}")


def _check_state(lesson: Lesson, state: State) -> None:
    name = lesson.detector.name
    for key_, tensor in state.items():
        if not isinstance(tensor, Tensor):
            raise RunError(f"the detector {name} learned {key_!r}, a {type(tensor).__name__}; tensors are needed")
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise RunError(f"the detector {name} learned {key_!r} of {lesson.model} with numbers that are not finite")


def examples(
    bench: Workbench,
    model: str,
    arms: Sequence[Arm],
    *,
    deadline: float = float("inf"),
    on_progress: OnProgress = lambda _: None,
) -> Examples:
    """The samples of the split `train`, and what the arms made of those that the model had right."""
    names = train_samples(bench)
    rows = np.array([bench.material.rows[name] for name in names], dtype=np.int64)
    x, y = torch.from_numpy(bench.material.data.x[rows]), torch.from_numpy(bench.material.data.y[rows])
    device = bench.material.models[model].device
    crafted, origin = [x[:0]], [torch.empty(0, dtype=torch.int64)]
    cells = list(_cells(bench, names, model, arms))
    place = {name: row for row, name in enumerate(names)}
    with one_thread():
        for done, cell in enumerate(cells, start=1):
            if time.monotonic() > deadline:
                raise OutOfTimeError
            points = craft_examples(cell, bench)
            crafted += [torch.from_numpy(point)[None] for point in points.values()]
            origin.append(torch.tensor([place[name] for name in points], dtype=torch.int64))
            on_progress(done / len(cells))
    return Examples(
        x.to(device), y.to(device), torch.cat(crafted).to(device), torch.cat(origin).to(device), bench.study.seed
    )


def _cells(bench: Workbench, names: Sequence[str], model: str, arms: Sequence[Arm]) -> Iterator[Cell]:
    """Cells whose rows are not recorded: what they craft is learned from."""
    study, material = bench.study, bench.material
    hashes = {name: material.data.hash_of(material.rows[name]) for name in names}
    shards = cut_shards(names, hashes, {}, size=study.shard)
    of = material.models[model]
    card = ModelCard(of.name, of.digest, of.capability, of.n_classes, random=of.random)
    for arm in arms:
        for shard in shards:
            yield example_cell(study, bench.registries, card, arm, shard, space=material.space_digest)

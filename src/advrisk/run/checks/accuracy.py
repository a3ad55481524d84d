"""A model that is wired up wrongly is refused before the attacks: it would make every number worthless.

The models of a study are asked about clean samples. One that is no better than chance, far below what the study or its
own training notes state, or clearly better with inputs or labels given in another way, stops the run.
"""

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from advrisk.core.containment import Containment
from advrisk.core.flags import BATCH_DEPENDENT, FLAGS
from advrisk.core.mistakes import joined
from advrisk.core.numbers import percent_text
from advrisk.engine import Model, predicted
from advrisk.engine.threads import one_thread
from advrisk.ledger import Ledger
from advrisk.plan import size_doubts
from advrisk.risk.accuracy import Classes, chance_accuracy, is_below, is_far_below, is_near_chance, probability_at_most
from advrisk.run.checks.miswiring import CLEAR_GAIN, Ask, WiringTrial, other_inputs, other_labels
from advrisk.run.identity.asking import asked_aside
from advrisk.run.planning import extent_of, splits
from advrisk.run.redrawing import finite
from advrisk.run.workbench import Workbench
from advrisk.study import ModelSpec

MOST_SAMPLES = 1000
MOST_QUERIED = 200  # with large inputs, by models that may charge for queries, and in every way to give inputs
SMALL_INPUT = 3 * 64 * 64  # features
MOST_LOOKED_FOR = 100  # where nothing is wrong so far
_TRIES_S, _LOOKED_FOR_S = 20.0, 5.0
_MOST_SHOWN = 3
_BATCH = 64
LOW = 0.5  # share of clean samples below which a model is doubted where nothing is expected of it
_CAUSES = "normalisation (`mean`, `std`), order of channels, scale of inputs, order of labels, weights"


@dataclass(frozen=True)
class CheckedAnswers:
    """What a model says of clean samples, those left out that it answered with numbers that are not finite."""

    x: NDArray[np.float32]
    predicted: Classes
    labels: Classes

    @property
    def n(self) -> int:
        return len(self.labels)

    @property
    def n_correct(self) -> int:
        return int((self.predicted == self.labels).sum())

    def some(self, most: int) -> "CheckedAnswers":
        """At most so many of them, spread evenly over their order, which may be one of classes."""
        rows = _spread(self.n, most)
        return CheckedAnswers(self.x[rows], self.predicted[rows], self.labels[rows])

    def __str__(self) -> str:
        share = percent_text(self.n_correct / self.n, 1)
        return f"{self.n_correct} of {self.n} clean samples are classified correctly ({share})"


def doubts_about(bench: Workbench) -> tuple[str, ...]:
    """What is doubtful about a study now that its data and models are there; what is surely wrong is refused."""
    sizes = size_doubts(bench.study, bench.registries, extent_of(bench))
    return (*sizes, *_batch_doubts(bench), *refuse_miswired(bench))


def _batch_doubts(bench: Workbench) -> list[str]:
    models = [name for name in bench.study.models if bench.material.models[name].batch_dependent]
    return [
        str(bench.study.where.error(("models", name), f"{BATCH_DEPENDENT}: {FLAGS[BATCH_DEPENDENT]}"))
        for name in models
    ]


def refuse_miswired(bench: Workbench) -> list[str]:
    """Refuse models that are wired up wrongly, all in one error; returns doubts about others.

    A model behind a defence is not asked: what the defence costs is a result, and the model inside is asked. A model
    that the run holds already was examined when it came; it is examined again only if the study states an accuracy.
    """
    refused, doubts, held = [], [], _held(bench)
    for name, spec in bench.study.models.items():
        examined_before = (name, bench.material.models[name].digest) in held
        if spec.expect_accuracy == 0 or (spec.expect_accuracy is None and examined_before):
            continue
        with one_thread():
            examined = Examination(bench, spec, bench.material.models[name])
            complaint, doubt = examined.complaint(), examined.doubt()
        if complaint:
            refused.append(bench.study.where.error(("models", name), complaint))
        elif doubt:
            doubts.append(str(bench.study.where.error(("models", name), doubt)))
    if refused:
        raise joined(refused)
    return doubts


def _held(bench: Workbench) -> set[tuple[str, str]]:
    """Models that the run has asked already, by name and digest."""
    if not (bench.folder / "ledger" / "segments").is_dir():
        return set()
    rows = Ledger.open(bench.folder).query("SELECT model, digest FROM models").to_pylist()
    return {(row["model"], row["digest"]) for row in rows}


class Examination:
    """A model and what it says of clean samples to evaluate."""

    def __init__(self, bench: Workbench, spec: ModelSpec, model: Model) -> None:
        self.data, self.spec, self.model = bench.material.data, spec, model
        self.ask = _asking(model, bench.containment)
        names = [name for name, split in splits(bench.study, bench).items() if split == "evaluate"]
        is_cheap = model.capability == "gradients" and self.data.x[0].size <= SMALL_INPUT
        places = _spread(len(names), MOST_SAMPLES if is_cheap else MOST_QUERIED)
        rows = [bench.material.rows[names[place]] for place in places]
        self.answers = _answers(self.ask, self.data.x[rows], self.data.y[rows])

    def complaint(self) -> str:
        """What is wrong; empty where nothing is, or where the samples do not suffice to say so."""
        answers = self.answers
        if answers is None:
            return ""
        if wrong := self._too_few(answers):
            tried = self._tried(answers, max_s=_TRIES_S)
            return _message(wrong, [one for one in tried if one.helps], self._causes(tried))
        if self.spec.expect_accuracy is None and answers.n_correct <= (1 - CLEAR_GAIN) * answers.n:
            clear = [one for one in self._looked_for(answers) if one.is_clear]
            if clear:
                return _message(str(answers), clear)
        return ""

    def doubt(self) -> str:
        """What may be wrong: significantly below what is stated, but not far; or low, where nothing is stated."""
        expected = self._expected()
        if self.answers is None:
            return ""
        if expected is None and self.answers.n_correct < LOW * self.answers.n:
            return f"{self.answers}, which is low; if it should be higher, state `expect_accuracy` and check {_CAUSES}"
        if expected is None or not is_below(self.answers.n_correct, self.answers.n, expected[0]):
            return ""
        return f"{self.answers}, and {expected[1]}{_surprise(self.answers, expected[0])}; check {_CAUSES}"

    def _expected(self) -> tuple[float, str] | None:
        """The accuracy that is stated, and where; None where there is only chance to compare with."""
        if (stated := self.spec.expect_accuracy) is not None:
            return stated, f"`expect_accuracy` is {percent_text(stated, 1)}"
        if (noted := self.model.test_accuracy) is not None:
            return noted, f"its training noted {percent_text(noted, 1)} on test samples"
        return None

    def _too_few(self, answers: CheckedAnswers) -> str:
        expected = self._expected()
        if expected is not None and is_far_below(answers.n_correct, answers.n, expected[0]):
            return f"{answers}, and {expected[1]}{_surprise(answers, expected[0])}"
        chance = chance_accuracy(answers.predicted, answers.labels, self.model.n_classes)
        if self.spec.expect_accuracy is None and is_near_chance(answers.n_correct, answers.n, chance):
            return f"{answers}, no better than chance ({percent_text(chance, 1)})"
        return ""

    def _looked_for(self, answers: CheckedAnswers) -> list[WiringTrial]:
        """What is tried where nothing is wrong so far: only labels, if a pass may be charged for."""
        if self.model.capability == "gradients":
            return self._tried(answers, max_s=_LOOKED_FOR_S, most=MOST_LOOKED_FOR)
        return other_labels(answers.predicted, answers.labels)

    def _tried(self, answers: CheckedAnswers, *, max_s: float, most: int = MOST_QUERIED) -> list[WiringTrial]:
        some = answers.some(most)
        given = some.x, some.predicted, some.labels
        return [
            *other_labels(answers.predicted, answers.labels),
            *other_inputs(self.ask, *given, self.data, self.spec, max_s=max_s),
        ]

    def _causes(self, tried: list[WiringTrial]) -> str:
        unloaded = "factory" in self.spec.params and "weights" not in self.spec.params
        best = max(tried, key=lambda one: one.after - one.before)
        shown = f"; the best: {best}" if best.after > best.before else ""
        return (
            f"  tried, none significantly better: {', '.join(one.what for one in tried)}{shown}\n"
            f"  likely causes: {_CAUSES}{' (the study names none)' if unloaded else ''}\n"
        )


def _spread(n: int, most: int) -> NDArray[np.int64]:
    return np.unique(np.linspace(0, n - 1, min(n, most)).round().astype(np.int64))


def _asking(model: Model, containment: Containment) -> Ask:
    """Asks the model as it was given, without a trace in the run."""
    model = asked_aside(model)

    def ask(x: NDArray[np.float32]) -> Classes:
        with containment.around(model.name), torch.random.fork_rng(devices=()):
            torch.manual_seed(0)
            parts = [torch.from_numpy(x[start : start + _BATCH]) for start in range(0, len(x), _BATCH)]
            answer = torch.cat([model.ask_owner(part.to(model.device)).cpu() for part in parts])
        said: Classes = torch.where(finite(answer), predicted(model, answer), -1).numpy()
        return said

    return ask


def _answers(ask: Ask, x: NDArray[np.float32], labels: Classes) -> CheckedAnswers | None:
    """None where the model fails: that becomes rows of the run, like any failure."""
    try:
        said = ask(x)
    except Exception:  # whatever the user's model does with real samples
        return None
    answered = said >= 0
    return CheckedAnswers(x[answered], said[answered], labels[answered]) if answered.any() else None


def _surprise(answers: CheckedAnswers, expected: float) -> str:
    probability = probability_at_most(answers.n_correct, answers.n, expected)
    shown = f"{probability:.1g}" if probability >= 1e-6 else "less than 1e-6"
    return f", under which so few would be seen with probability {shown}"


def _message(wrong: str, helping: list[WiringTrial], causes: str = "") -> str:
    """The complaint, what explains it (without what brings less than half of the best), and the remedy."""
    most = max((one.after for one in helping), default=0.0)
    shown = sorted((one for one in helping if one.after > most / 2), key=lambda one: -one.after)
    measured = "".join(f"  measured: {one}\n" for one in shown[:_MOST_SHOWN])
    remedy = "  to attack it all the same, write `expect_accuracy: 0` beside its source"
    return f"{wrong}; a model that is wired up wrongly makes every number worthless.\n{measured or causes}{remedy}"

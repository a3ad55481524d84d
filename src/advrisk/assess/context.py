"""The view of a run that assessments read, with access to other assessments; a snapshot, as a run is."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from advrisk.core.errors import LedgerError, RegistryError, RiskError, StudyError
from advrisk.core.names import did_you_mean
from advrisk.core.sections import Unanswered
from advrisk.core.seeds import generator
from advrisk.ledger import Ledger
from advrisk.ledger.frozen import LostQuestionError
from advrisk.ledger.layout import read_samples_left
from advrisk.ledger.stopping import Stopping
from advrisk.ledger.views import ALL, View
from advrisk.study import OPTIONS, Norm, StudySpec, assessments, validated
from advrisk.study.fields import Strict

if TYPE_CHECKING:
    from advrisk.assess.protocol import Assessment
    from advrisk.assess.status import Status
    from advrisk.risk.indicators import MissingArmsError

LEVEL = 0.95  # default level of intervals
T = TypeVar("T")


@dataclass(frozen=True)
class Context:
    """A run, or a part of it, as an assessment reads it; `name`, `level` and `rng` are of the question at hand."""

    ledger: Ledger
    study: StudySpec | None = None
    folder: Path = Path()
    run_name: str = ""
    models: tuple[str, ...] = ()  # of the whole run; the n-th has the n-th colour in every figure
    view: View = ALL  # the selected models and samples
    asked: Mapping[str, Any] = field(default_factory=dict)  # options of a part: see `follows` of traits
    stopping: Stopping | None = None  # interim analyses, and where the run stopped
    decision_level: float | None = None  # of all intervals, after an interim analysis of a decision
    whole: Ledger | None = None  # the whole run, if this is a part
    name: str = ""  # of the question
    level: float = LEVEL
    rng: np.random.Generator = field(default_factory=lambda: generator("assessment", 0), repr=False)
    # The remedy for a scenario without arms, which depends on plans and parts.
    what_to_run: "Callable[[MissingArmsError, Ledger], str]" = field(default=lambda *_: "", repr=False)
    memory: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)  # cached answers and facts

    @property
    def seed(self) -> int:
        """The study's seed; 0 without a study."""
        return self.study.seed if self.study else 0

    @property
    def written(self) -> Mapping[float, str]:
        """Size -> its spelling in the study, if a fraction."""
        return self.study.written if self.study else {}

    @property
    def norm(self) -> Norm:
        """The norm to assess in: the study's, or the only one of the run."""
        if self.study:
            return self.study.assess.damage.norm
        norms = self.ledger.query("SELECT DISTINCT norm FROM arms WHERE norm IS NOT NULL")["norm"].to_pylist()
        if len(norms) != 1:
            raise LedgerError(f"{self.folder}: holds attacks in {norms or 'no norm'}; name the norm to assess")
        only: Norm = norms[0]
        return only

    @property
    def arms(self) -> list[str] | None:
        """The attacks that the study selects for damage."""
        return self.study.assess.damage.arms if self.study else None

    @property
    def scenarios_stated(self) -> bool:
        """Whether the study describes deployments, which then come first."""
        return bool(self.study and self.study.scenarios)

    @property
    def samples_left(self) -> int | None:
        """Samples that are not evaluated yet; None if unknown.

        These are samples of the data set in no split, and those that a run stopped before. With a filter of samples
        (`where`), the number is unknown.
        """
        if self.study is None or self.view.where:
            return None
        beyond = 0 if self.study.data.evaluate == "all" else read_samples_left(self.folder)
        if beyond is None:
            return None
        stopping = self.stopping
        return beyond + (stopping.n_samples - stopping.n_samples_run if stopping and stopping.rests else 0)

    @property
    def flags(self) -> list[dict[str, Any]]:
        """Flags by model and arm, with the number of flagged cells and the evidence."""
        from advrisk.assess.attacks.flags import run_flags

        return self._once("flags", lambda: run_flags(self))

    @property
    def status(self) -> "Status":
        """The progress of the cells, and their outcomes."""
        from advrisk.assess.status import run_status

        return self._once("status", lambda: run_status(self.ledger, self.study, self.flags, self.stopping))

    @property
    def as_study_asks(self) -> "Context":
        """This run without the options of a part."""
        return replace(self, asked={}, memory={}) if self.asked else self

    def result(self, name: str, **options: Any) -> Any:
        """The result of a question, with the study's options unless changed; options that are None do not count.

        Raises a RiskError with the reason if there is no answer.
        """
        options = {option: value for option, value in options.items() if value is not None}
        key = (name, repr(sorted(options.items())))
        _, answer = self._once(key, lambda: (options, self._answer(name, options)))  # the key keeps the options alive
        if isinstance(answer, Unanswered):
            raise RiskError(str(answer))
        return answer

    def attempt(self, name: str, **options: Any) -> Any:
        """The result of a question, or why there is none, such as an unfinished run, missing scores, or a lost file."""
        try:
            return self.result(name, **options)
        except LostQuestionError as error:
            return Unanswered(error.reason, error.remedy)
        except (RiskError, StudyError) as error:
            return Unanswered(str(error))

    def for_page(self, name: str) -> Any:
        """The result of a question as the study asks it, or why there is none; None if the study does not ask."""
        options = assessment_named(name).asked(self.about(name))
        return self.attempt(name, **options) if isinstance(options, Mapping) else options

    def about(self, name: str, level: float | None = None) -> "Context":
        """This run with a current question."""
        if level is not None and not 0 < level < 1:
            raise RiskError(f"level must lie between 0 and 1, found {level}")
        level = level or self.decision_level or LEVEL
        return replace(self, name=name, level=level, rng=generator("assessment", name, self.seed))

    def _answer(self, name: str, options: Mapping[str, Any]) -> Any:
        assessment, own = assessment_named(name), self.about(name, options.get("level"))
        return assessment.assess(own, assessment.question(own, options))

    def _once(self, key: Any, make: Callable[[], T]) -> T:
        if key not in self.memory:
            self.memory[key] = make()
        value: T = self.memory[key]
        return value


def assessment_named(name: str) -> "Assessment":
    """A registered assessment; an unknown name raises an error that suggests the nearest."""
    if name not in assessments:
        raise RegistryError(f"no assessment called {name!r}; {did_you_mean(name, [part.name for part in assessments])}")
    made: Assessment = assessments.get(name).function()
    return made


def asked_spec(context: Context, options: Mapping[str, Any]) -> Any:
    """The options of the current question: the study's, then those of a part that it follows, then the given ones."""
    name = context.name
    traits = assessments.get(name).traits
    stated: Any = None
    if context.study is not None:
        own = context.study.assess
        stated = getattr(own, name) if name in assessments.built_in else own.brought.get(name)
    stated = stated.model_dump() if isinstance(stated, Strict) else stated or {}
    followed = {key: value for key, value in context.asked.items() if key in traits.follows}
    changed = {key: value for key, value in options.items() if value is not None}
    if "level" not in traits.accepts.model_fields:
        changed.pop("level", None)  # the context has it
    elif context.decision_level is not None:
        changed = {"level": context.decision_level} | changed
    return validated(traits.accepts, {**stated, **followed, **changed}, OPTIONS, within=(name,))

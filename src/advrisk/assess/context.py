"""What an assessment may read of a run, and how it asks another one: a run is a snapshot, and so is this."""

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

LEVEL = 0.95  # of intervals, where nobody says another
T = TypeVar("T")


@dataclass(frozen=True)
class Context:
    """A run, or a part of it, as an assessment reads it; `name`, `level` and `rng` are of the question at hand."""

    ledger: Ledger
    study: StudySpec | None = None
    folder: Path = Path()
    run_name: str = ""
    models: tuple[str, ...] = ()  # of the whole run; the n-th has the n-th colour in every figure
    view: View = ALL  # the models and samples that this is about
    asked: Mapping[str, Any] = field(default_factory=dict)  # options of a part: see `follows` of traits
    stopping: Stopping | None = None  # interim analyses, and where the run stopped early
    decision_level: float | None = None  # of all intervals, once an interim analysis looked for a decision
    whole: Ledger | None = None  # of the run that this is a part of
    name: str = ""  # of the question
    level: float = LEVEL
    rng: np.random.Generator = field(default_factory=lambda: generator("assessment", 0), repr=False)
    # What a scenario that lacks arms needs: plans and parts know, assessments do not.
    what_to_run: "Callable[[MissingArmsError, Ledger], str]" = field(default=lambda *_: "", repr=False)
    memory: dict[Any, Any] = field(default_factory=dict, repr=False, compare=False)  # answers and facts, each made once

    @property
    def seed(self) -> int:
        """The study's seed; 0 without a study."""
        return self.study.seed if self.study else 0

    @property
    def written(self) -> Mapping[float, str]:
        """Size -> how the study writes it, where as a fraction."""
        return self.study.written if self.study else {}

    @property
    def norm(self) -> Norm:
        """The norm to assess in: the study's, or the only one there is."""
        if self.study:
            return self.study.assess.damage.norm
        norms = self.ledger.query("SELECT DISTINCT norm FROM arms WHERE norm IS NOT NULL")["norm"].to_pylist()
        if len(norms) != 1:
            raise LedgerError(f"{self.folder}: holds attacks in {norms or 'no norm'}; say which norm to assess")
        only: Norm = norms[0]
        return only

    @property
    def arms(self) -> list[str] | None:
        """The attacks that the study asks about."""
        return self.study.assess.damage.arms if self.study else None

    @property
    def scenarios_stated(self) -> bool:
        """Whether the study describes deployments, which then lead."""
        return bool(self.study and self.study.scenarios)

    @property
    def samples_left(self) -> int | None:
        """Samples that the data set still has to evaluate; None where that is unknown.

        Those that the data set holds and no split took, and those that a run which stopped early did not come to. Of
        some kinds of samples only (`where`), it is unknown.
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
        """Reasons not to trust cells: how many of each model and arm are flagged, and what was seen there."""
        from advrisk.assess.attacks.flags import run_flags

        return self._once("flags", lambda: run_flags(self))

    @property
    def status(self) -> "Status":
        """How many cells are done, and what came of them."""
        from advrisk.assess.status import run_status

        return self._once("status", lambda: run_status(self.ledger, self.study, self.flags, self.stopping))

    @property
    def as_study_asks(self) -> "Context":
        """The same run without the options of a part."""
        return replace(self, asked={}, memory={}) if self.asked else self

    def result(self, name: str, **given: Any) -> Any:
        """What a question answers, with the study's options unless others are given; None is not given.

        A question without an answer is a RiskError that says why.
        """
        given = {option: value for option, value in given.items() if value is not None}
        key = (name, repr(sorted(given.items())))
        _, found = self._once(key, lambda: (given, self._answer(name, given)))  # what was given lives on in the key
        if isinstance(found, Unanswered):
            raise RiskError(str(found))
        return found

    def attempt(self, name: str, **given: Any) -> Any:
        """What a question answers, or why it does not: a run is not finished, not all is scored, or a file is lost."""
        try:
            return self.result(name, **given)
        except LostQuestionError as error:
            return Unanswered(error.reason, error.remedy)
        except (RiskError, StudyError) as error:
            return Unanswered(str(error))

    def for_page(self, name: str) -> Any:
        """What a question answers as the study asks it, or why it does not; None where it is not asked."""
        options = assessment_named(name).asked(self.about(name))
        return self.attempt(name, **options) if isinstance(options, Mapping) else options

    def about(self, name: str, level: float | None = None) -> "Context":
        """The same run, with a question at hand."""
        if level is not None and not 0 < level < 1:
            raise RiskError(f"level must lie between 0 and 1, found {level}")
        level = level or self.decision_level or LEVEL
        return replace(self, name=name, level=level, rng=generator("assessment", name, self.seed))

    def _answer(self, name: str, given: Mapping[str, Any]) -> Any:
        assessment, own = assessment_named(name), self.about(name, given.get("level"))
        return assessment.assess(own, assessment.question(own, given))

    def _once(self, key: Any, make: Callable[[], T]) -> T:
        if key not in self.memory:
            self.memory[key] = make()
        held: T = self.memory[key]
        return held


def assessment_named(name: str) -> "Assessment":
    """A registered assessment; an unknown name is refused with the nearest."""
    if name not in assessments:
        raise RegistryError(f"no assessment called {name!r}; {did_you_mean(name, [part.name for part in assessments])}")
    made: Assessment = assessments.get(name).function()
    return made


def asked_spec(context: Context, given: Mapping[str, Any]) -> Any:
    """The options of the question at hand: the study's, then those of a part that it follows, then those given."""
    name = context.name
    traits = assessments.get(name).traits
    stated: Any = None
    if context.study is not None:
        own = context.study.assess
        stated = getattr(own, name) if name in assessments.built_in else own.brought.get(name)
    stated = stated.model_dump() if isinstance(stated, Strict) else stated or {}
    followed = {key: value for key, value in context.asked.items() if key in traits.follows}
    changed = {key: value for key, value in given.items() if value is not None}
    if "level" not in traits.accepts.model_fields:
        changed.pop("level", None)  # it is the context's
    elif context.decision_level is not None:
        changed = {"level": context.decision_level} | changed
    return validated(traits.accepts, {**stated, **followed, **changed}, OPTIONS, within=(name,))

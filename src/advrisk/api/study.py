"""`Study`: the question, as users hold it."""

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from advrisk.api.run import Run
from advrisk.assess.gate import RequirementResult
from advrisk.assess.gate.quantities import Quantities
from advrisk.assess.gate.question import run_ground
from advrisk.assess.interim import InterimResult, look_level
from advrisk.core.containment import exits_as_errors
from advrisk.core.durations import parse_duration
from advrisk.core.errors import RiskError, RunError, StudyError
from advrisk.core.estimate import Estimate
from advrisk.core.extras import extras_named
from advrisk.core.numbers import level_text
from advrisk.ledger import Ledger, readable_storage, writable_storage
from advrisk.render.progress import ProgressBar, best_display
from advrisk.study import (
    Requirement,
    StoppingTarget,
    StudySpec,
    Term,
    load_study,
    parse_requirement,
    parse_targets,
    study_from,
)
from advrisk.study.target import DECIDED, NOT_ANALYSED, target_terms

if TYPE_CHECKING:
    from torch import nn

    from advrisk.run.detectors.ready import Scores
    from advrisk.run.dry import DryRun
    from advrisk.run.progress import Progress


class Study:
    """A question about models: which data, which models, which arms, what to assess.

    >>> run = Study.load("study.yaml").run("runs/signs")   # resumes what is there
    >>> run.damage().estimates["hardened"]
    """

    def __init__(self, spec: StudySpec) -> None:
        self.spec = spec

    @classmethod
    def load(cls, path: str | Path) -> "Study":
        """Read and check a study file."""
        return cls(load_study(path))

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> "Study":
        """Check a study given as nested dicts and lists, as the YAML file would hold them."""
        return cls(study_from(content))

    @extras_named("Study.run")
    def run(
        self,
        folder: str | Path,
        *,
        workers: int | None = None,
        device: str | None = None,
        max_time: str | timedelta | None = None,
        retry_errors: bool = False,
        publish_every_s: float = 3.0,
        modules: "Mapping[str, nn.Module] | None" = None,
        detectors: "Mapping[str, Scores] | None" = None,
        on: Literal["local", "ray"] = "local",
        address: str | None = None,
        target: Sequence[str] | str | None = (),
        max_passes: int | None = None,
        progress: bool = True,
        on_progress: "Callable[[Progress], None]" = lambda _: None,
    ) -> Run:
        """Run the cells that the folder's ledger does not hold yet, and open the result. The folder may be a URL.

        `modules` gives the models whose source is `object`: torch modules that exist in this process.
        `detectors` gives detectors beside those that the study names: name -> any object with `score(x)`.
        `on="ray"` runs the cells on the Ray cluster at `address` (host:port, ray://host:port or auto), by
        default on that of the variable RAY_ADDRESS, or on one that is started here and ended with the run.
        `target` is what is to be known before it may stop, as in `"damage ±0.02"`, `"decided"` or `"gate"`; of several,
        all. `max_passes` is what this call may spend. After `max_time` (`"90m"`, `"2h"`, `"1h30m"`, or a timedelta) no
        cell is begun: `Run.status().done` says whether the run is finished, and the same call resumes it.
        `progress` shows a bar in a terminal or a notebook, and nothing elsewhere; `on_progress` is called beside it.
        """
        from advrisk.run.campaign import run_study
        from advrisk.run.options import Options

        targets, max_passes, max_s = parse_targets(target), _checked_passes(max_passes), _checked_time(max_time)
        bar = ProgressBar(best_display if progress else lambda: None)

        def report(state: "Progress") -> None:
            bar.update(state)
            on_progress(state)

        given: dict[str, Any] = {"modules": modules, "detectors": detectors, "on_progress": report}
        options = Options(workers, device, max_s, retry_errors, publish_every_s, on, address, max_passes, targets)
        inputs = _inputs_read(self.spec, detectors)
        with bar, exits_as_errors("the study", RunError), writable_storage(folder, inputs=inputs) as storage:
            interim = interim_analysis(self.spec, storage.folder)
            run_study(self.spec, storage, options=options, interim=interim, **given)
        return Run.open(folder)

    def doubts(self) -> list[str]:
        """What the study asks and cannot get, whatever the models do; said before anything is run."""
        from advrisk.api.certificates import certificate_doubts

        return certificate_doubts(self.spec)

    @extras_named("Study.dry_run")
    def dry_run(
        self,
        folder: str | Path,
        *,
        workers: int | None = None,
        device: str | None = None,
        retry_errors: bool = False,
        modules: "Mapping[str, nn.Module] | None" = None,
        detectors: "Mapping[str, Scores] | None" = None,
        on: Literal["local", "ray"] = "local",
        address: str | None = None,
        target: Sequence[str] | str | None = (),
        max_passes: int | None = None,
    ) -> "DryRun":
        """What `run` would do at most, and about how long that would take here; nothing is written.

        It refuses what `run` would refuse; a Ray cluster is asked whether it is there, and none is started.
        """
        from advrisk.run.dry import dry_run
        from advrisk.run.options import Options

        given: dict[str, Any] = {"on": on, "address": address, "max_passes": _checked_passes(max_passes)}
        options = Options(workers, device, retry_errors=retry_errors, targets=parse_targets(target), **given)
        inputs = None if _inputs_read(self.spec, detectors) is None else ()  # clean ones come from the data
        home = readable_storage(folder, inputs=inputs).folder
        with exits_as_errors("the study", RunError):
            return dry_run(self.spec, home, options=options, modules=modules, detectors=detectors)


def _inputs_read(spec: StudySpec, detectors: object) -> tuple[str, ...] | None:
    """The folders of kept inputs that a run of a study reads; None: all of them.

    Clean inputs always: what somebody deleted of them is not kept again. Others are crafted again where they are not
    here, so this decides how long it takes, and nothing else.
    """
    transfers = any(entry.surrogates for entry in spec.arms)
    return None if spec.detectors or detectors or transfers else ("shards", "calibrate")


def _checked_passes(given: object) -> int | None:
    if given is None or (type(given) is int and given >= 1):
        return given
    raise StudyError(f"`max_passes` is a whole number from 1 up, or None for no limit; found {given!r}")


def _checked_time(given: object) -> float | None:
    """Seconds."""
    if given is None:
        return None
    try:
        return parse_duration(given)
    except ValueError as error:
        raise StudyError(f"`max_time`: {error}") from None


def interim_analysis(study: StudySpec, folder: Path) -> Callable[[StoppingTarget, Ledger, float], InterimResult]:
    """Analyses the targets of a run in a folder; the ledger that it receives holds the samples that count."""

    def analyse(target: StoppingTarget, ledger: Ledger, share: float) -> InterimResult:
        run = Run(folder, ledger, study)
        run.decision_level = look_level(target, study, share, n_models=len(run_ground(run.context).models))
        try:
            if not target.decides:
                return _precision(run, target)
            return _decided(run) if target.text == DECIDED else _gate(run)
        except (RiskError, StudyError) as error:  # no sample has a verdict yet, say
            return InterimResult(met=False, said=str(error), level=run.decision_level or study.assess.damage.level)

    return analyse


def _precision(run: Run, target: StoppingTarget) -> InterimResult:
    """Whether every interval lies within the margin of its value, on both sides."""
    found = _estimates(run, target_terms(target, run_ground(run.context)))
    sides = {str(term): max(one.high - one.value, one.value - one.low) for term, one in found.items()}
    widest = max(sides, key=sides.__getitem__)
    level = next(iter(found.values())).level
    said = f"{'each' if len(sides) > 1 else widest} is known to ±{_shown(sides[widest])} at {level_text(level)}"
    if (wide := sides[widest]) > target.margin:
        return InterimResult(met=False, said=f"{widest} is known to ±{_shown(wide)}", level=level)
    return InterimResult(met=True, said=said, level=level)


def _estimates(run: Run, terms: list[Term]) -> Mapping[Term, Estimate]:
    if terms[0].quantity == "damage":  # relative damage, too, which no requirement may be about
        estimates = run.damage().estimates
        return {term: estimates[str(term.subject)] for term in terms}
    quantities, found = Quantities(run.context, None), {}
    for term in terms:
        measured = quantities.of(Requirement(term, "<="))
        if measured.estimate is None:
            raise RiskError(f"{term}: {measured.why_not or measured.pending}")
        if term.size is not None and measured.untried:
            raise RiskError(f"{term}: {measured.untried}")
        found[term] = measured.estimate
    return found


def _decided(run: Run) -> InterimResult:
    """Whether one model is told apart from all others."""
    found = run.damage()
    said = (
        f"{found.least_bad} is the least bad"
        if found.decided
        else f"{found.models[0].model} is {found.models[0].verdict}"
    )
    return InterimResult(met=found.decided, said=said, level=found.level)


def _gate(run: Run) -> InterimResult:
    """Whether every requirement that more samples decide passes or fails."""
    assert run.decision_level is not None  # a gate is a decision
    results = [
        one for one in run.gate().results if parse_requirement(one.requirement).left.quantity not in NOT_ANALYSED
    ]
    undecided = [one.requirement for one in results if one.verdict == "undecided"]
    said = f"undecided are {', '.join(undecided)}" if undecided else _verdicts(results)
    return InterimResult(met=not undecided, said=said, level=run.decision_level)


def _verdicts(results: Sequence[RequirementResult]) -> str:
    return ", ".join(f"{one.requirement}: {one.verdict}" for one in results)


def _shown(number: float) -> str:
    return f"{number:.2g}"

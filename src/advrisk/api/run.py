"""`Run`: the answers, as users hold them. Everything here reads the ledger; nothing needs torch."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from advrisk.answers.file import AnswerRows
from advrisk.answers.records import Answer, read_answers
from advrisk.api.certificates import FOLDER, WrittenCertificate, write_certificates
from advrisk.api.comparing import compare_runs
from advrisk.api.evidence.pack import write_pack
from advrisk.api.findings import not_installed, run_findings
from advrisk.api.part import part_of
from advrisk.api.reporting import Form, run_record, write_form
from advrisk.api.scenarios import what_to_run
from advrisk.api.selection import Selection, select_model
from advrisk.api.verifying import replay_run
from advrisk.assess.attacks.envelope import ArmComparison
from advrisk.assess.certificate.question import ON_FILTERS
from advrisk.assess.certificate.records import AnyMethod, CertificateAssessment
from advrisk.assess.compare import RunComparison
from advrisk.assess.context import Context
from advrisk.assess.damage.assessment import DamageAssessment
from advrisk.assess.damage.question import AnyEvasion, answers_of_detector
from advrisk.assess.detection.assessment import DetectionAssessment
from advrisk.assess.failures.modes import FailureModes
from advrisk.assess.gate import GateResult
from advrisk.assess.indicators.assessment import IndicatorAssessment
from advrisk.assess.indicators.question import named_losses, stated_losses
from advrisk.assess.indicators.reading import read_tensor
from advrisk.assess.indicators.scenarios import AnyScenarios
from advrisk.assess.protocol import Finding, ask
from advrisk.assess.search.question import searches_of
from advrisk.assess.status import Status, run_status
from advrisk.assess.survival.assessment import SurvivalAssessment
from advrisk.core.errors import LedgerError, RiskError
from advrisk.core.names import counted
from advrisk.core.sections import Unanswered
from advrisk.ledger import Ledger
from advrisk.ledger.frozen import FrozenList, frozen_lists
from advrisk.ledger.layout import STUDY_FILE
from advrisk.ledger.searches import SearchRecord, read_searches
from advrisk.ledger.stopping import Stopping, resting_ledger
from advrisk.ledger.sync.files import output_folder
from advrisk.ledger.sync.remote import last_part, url_of
from advrisk.ledger.views import ALL, AnyWhere, View
from advrisk.report import Findings, arm_shares
from advrisk.report.plots import figure_specs, named_spec, plotly_figures
from advrisk.risk.convergence import Convergence
from advrisk.risk.indicators import RiskTensor
from advrisk.risk.monte_carlo import Threshold
from advrisk.study import Norm, StudySpec, assessments, load_study

if TYPE_CHECKING:
    import plotly.graph_objects as go
    from torch import nn

    from advrisk.api.mlflow import LoggedRun
    from advrisk.run.replay.record import Replay

Result = TypeVar("Result")


class Run:
    """A folder with a ledger, the study it answers, and the inputs that were kept."""

    # Looks at the run, what they saw, and where it rests if it stopped early; None where nobody looked.
    stopping: Stopping | None = None
    # Of all intervals that are not asked for at another, once somebody looked for a decision; None: the study's levels.
    decision_level: float | None = None
    view: View = ALL  # the models and samples that this is about
    asked: Mapping[str, Any] = MappingProxyType({})  # options of `damage` that every answer follows
    whole: "Run | None" = None  # the run that this is a part of

    def __init__(self, folder: Path, ledger: Ledger, study: StudySpec | None, url: str | None = None) -> None:
        self.folder, self.ledger, self.study = folder, ledger, study
        self.url = url  # of a run on object storage, of which `folder` is a copy

    def __repr__(self) -> str:
        """The folder, how many models were asked, and whether that is all of it."""
        state = run_status(self.ledger, self.study, (), self.stopping)
        far = state.rested or ("complete" if state.complete else f"{state.so_far} done")
        return f"Run({self.url or str(self.folder)!r}: {counted(state.n_models, 'model')}, {far})"

    @classmethod
    def open(cls, folder: str | Path) -> "Run":
        """A run that was made before, as it is now; of one that stopped early, the samples that it came to."""
        ledger, stopping = resting_ledger(folder)
        home = ledger.path.parent
        study = load_study(home / STUDY_FILE, installed=False) if (home / STUDY_FILE).is_file() else None
        run = cls(home, ledger, study, url_of(folder))
        run.stopping = stopping
        run.decision_level = stopping.decision_level if stopping else None
        return run

    def part(
        self,
        *,
        models: Sequence[str] | str | None = None,
        where: AnyWhere | None = None,
        norm: Norm | None = None,
        arms: list[str] | None = None,
        thresholds: list[float] | None = None,
        evasion: AnyEvasion | None = None,
        detector: Mapping[str, Any] | None = None,
        cost: float | None = None,
        answers: str | None = None,
    ) -> "Run":
        """A part of this run: some of its models, or the samples of some classes and strata (`"class=3,site=a"`).

        Everything that is asked of it is about that part: relative damage depends on which models are compared. The
        other options are those of `damage`; findings and reports of the part follow them.
        """
        asked: dict[str, Any] = {"norm": norm, "arms": arms, "thresholds": thresholds, "evasion": evasion}
        asked |= {"detector": detector, "cost": cost, "answers": answers}
        return part_of(self, models=models, where=where, asked=asked)

    @property
    def samples_left(self) -> int | None:
        """Samples that the data set still has to evaluate; None where that is unknown."""
        return self.context.samples_left

    def query(self, sql: str, parameters: Mapping[str, Any] | None = None) -> pa.Table:
        """SQL over outcomes, outputs, scores, cells, arms, models and samples."""
        return self.ledger.query(sql, parameters)

    def outcomes(self) -> pa.Table:
        """Every outcome row."""
        return self.ledger.outcomes()

    def damage(
        self,
        *,
        norm: Norm | None = None,
        arms: list[str] | None = None,
        thresholds: list[float] | None = None,
        evasion: AnyEvasion | None = None,
        detector: Mapping[str, Any] | None = None,
        cost: float | None = None,
        answers: str | None = None,
        level: float | None = None,
        models: Sequence[str] | str | None = None,
        where: AnyWhere | None = None,
    ) -> DamageAssessment:
        """Damage and what belongs to it, as the study asks; arguments override the study.

        `evasion` is a curve, a file with one, a size above which everything is detected, or `average`: damage is then
        relative to the compared models, as it is without any. `detector`, as in `{"name": "confidence", "threshold":
        0.4}` or `{"name": …, "false_alarms": 0.05}`, must be one that has scored this run. `answers` is the address of
        the database with the answers of people, if they do not lie in the run's folder. `models` and `where` are those
        of `part`.
        """
        given: dict[str, Any] = {"norm": norm, "arms": arms, "thresholds": thresholds, "evasion": evasion}
        given |= {"detector": detector, "cost": cost, "answers": answers, "level": level}
        return part_of(self, models=models, where=where)._result(DamageAssessment, "damage", **given)

    def select(
        self,
        *,
        scenario: list[str] | None = None,
        loss: str | None = None,
        models: Sequence[str] | str | None = None,
        where: AnyWhere | None = None,
    ) -> Selection:
        """Name the least bad model: by the study's scenarios where it states some, else by damage.

        `scenario` and `loss` say by which of them. To select by damage with an evasion curve, a cost or a detector, ask
        a `part`: `run.part(evasion="evasion.json").select()`.
        """
        return select_model(part_of(self, models=models, where=where), scenario=scenario, loss=loss)

    def detector_answers(
        self, detector: Mapping[str, Any], *, norm: Norm | None = None, arms: list[str] | None = None
    ) -> tuple[AnswerRows, Norm]:
        """What a detector says of clean inputs and nearest successes, to fit a curve to; and the norm of the sizes."""
        return answers_of_detector(self.context, detector, norm=norm, arms=arms)

    def convergence(
        self,
        *,
        norm: Norm | None = None,
        arms: list[str] | None = None,
        thresholds: list[float] | None = None,
        evasion: AnyEvasion | None = None,
        detector: Mapping[str, Any] | None = None,
        points: int | None = None,
        resamples: int | None = None,
        models: Sequence[str] | str | None = None,
        where: AnyWhere | None = None,
    ) -> Convergence:
        """How damage, attack success rates and distances settle as samples are added; arguments as in `damage`."""
        asked: dict[str, Any] = {"norm": norm, "arms": arms, "thresholds": thresholds, "evasion": evasion}
        asked |= {"detector": detector}
        part = part_of(self, models=models, where=where, asked=asked)
        return part._result(Convergence, "convergence", points=points, resamples=resamples)

    def attacks(
        self,
        *,
        norm: Norm | None = None,
        arms: list[str] | None = None,
        models: Sequence[str] | str | None = None,
        where: AnyWhere | None = None,
    ) -> ArmComparison:
        """Which arms earn their passes: each against the smallest distances that all arms found together."""
        return part_of(self, models=models, where=where)._result(ArmComparison, "attacks", norm=norm, arms=arms)

    def detection(
        self,
        *,
        detectors: list[str] | str | None = None,
        models: list[str] | str | None = None,
        arms: list[str] | str | None = None,
        tpr: float | None = None,
        level: float | None = None,
        resamples: int | None = None,
        threshold: Threshold | None = None,
        where: AnyWhere | None = None,
    ) -> DetectionAssessment:
        """How well detectors that scored this run hold against all arms that broke a sample (MEAD), as the study asks.

        Arguments override the study; by default all detectors, all models and the study's own attacks. `threshold`, a
        score or `{"false_alarms": 0.05}`, is where it is asked which arm defeats a detector.
        """
        given: dict[str, Any] = {"detectors": detectors, "models": models, "arms": arms, "tpr": tpr, "level": level}
        given |= {"resamples": resamples, "threshold": threshold}
        return part_of(self, where=where)._result(DetectionAssessment, "detection", **given)

    def indicators(
        self,
        *,
        scenarios: AnyScenarios | None = None,
        scenario: list[str] | None = None,
        losses: Sequence[object] | None = None,
        models: list[str] | None = None,
        arms: list[str] | None = None,
        level: float | None = None,
        what_if: Mapping[str, Any] | None = None,
        where: AnyWhere | None = None,
    ) -> IndicatorAssessment:
        """How large the risk is in a described deployment, and what drives it (Schwerdtner et al.), as the study asks.

        `scenarios` are others than the study's: a mapping of names to trees of likelihoods, or a YAML file that holds
        one; `scenario` names those to be assessed. `what_if` changes weights, `{"wet": 0.5, "wet.rain": 0.9}`; the
        scenarios stand beside what they were. `losses` are names, mappings as in a study, or functions of the answers.
        """
        given: dict[str, Any] = {"scenarios": scenarios, "scenario": scenario, "losses": losses, "models": models}
        given |= {"arms": arms, "level": level, "what_if": what_if}
        return part_of(self, where=where)._result(IndicatorAssessment, "indicators", **given)

    def assess(
        self, name: str, *, level: float | None = None, where: AnyWhere | None = None, **options: Any
    ) -> Finding:
        """The answer of an assessment for people and machines, with the study's options unless others are given.

        `advrisk list assessments` shows which there are, and their options. A question without an answer is a RiskError
        that says why.
        """
        found = part_of(self, where=where).finding(name, level=level, **options)
        if isinstance(found, Unanswered):
            raise RiskError(str(found))
        return found

    def finding(self, name: str, *, level: float | None = None, **options: Any) -> Finding | Unanswered:
        """The answer of an assessment, or why there is none; it is asked once for the same options."""
        if name not in assessments and self.study and name in self.study.assess.brought:
            return not_installed(name)
        return ask(self._snapshot, name, level=level, **options)

    @property
    def context(self) -> Context:
        """This run as an assessment reads it; each has its own memory, as people may answer in between."""
        return Context(
            ledger=self.ledger,
            study=self.study,
            folder=self.folder,
            run_name=self.name,
            models=tuple(self.model_names),
            view=self.view,
            asked=self.asked,
            stopping=self.stopping,
            decision_level=self.decision_level,
            whole=self.whole.ledger if self.whole else None,
            what_to_run=what_to_run,
        )

    @cached_property
    def _snapshot(self) -> Context:
        """The context of findings, reports and flags: every question of it is answered once."""
        return self.context

    def _result(self, kind: type[Result], name: str, **given: Any) -> Result:
        """The result of a built-in question; None is not given."""
        found = self.context.result(name, **given)
        assert isinstance(found, kind)
        return found

    def replay(
        self,
        k: int,
        *,
        study: str | Path | None = None,
        seed: int | None = None,
        device: str | None = None,
        modules: "Mapping[str, nn.Module] | None" = None,
    ) -> "Replay":
        """Attack `k` random samples again from the stored seeds, and compare the rows: were they made by attacks?

        `study` is a study file that says where models and data are here; without, the run's own. The samples are drawn
        with `seed`, or with a new random one that the result names. `modules` are those of `Study.run`.
        """
        return replay_run(self, k, study=study, seed=seed, device=device, modules=modules)

    def certificate(
        self,
        *,
        alpha: float | None = None,
        zeta: float | None = None,
        method: AnyMethod | None = None,
        models: list[str] | None = None,
        arms: list[str] | None = None,
    ) -> CertificateAssessment:
        """Whether the attacks break at most alpha of inputs, said wrongly at most zeta of the time (PROSAC).

        As the study asks; arguments override it. `models` are those to tell of; all of the run share zeta.
        """
        given: dict[str, Any] = {"alpha": alpha, "zeta": zeta, "method": method, "arms": arms, "models": models}
        return self._result(CertificateAssessment, "certificate", **given)

    def certify(
        self,
        out: str | Path | None = None,
        *,
        alpha: float | None = None,
        zeta: float | None = None,
        method: AnyMethod | None = None,
        models: list[str] | None = None,
        norm: Norm | None = None,
        eps: float | None = None,
        key: str | Path | None = None,
        signer: str | None = None,
        replace: bool = False,
    ) -> list[WrittenCertificate]:
        """Write a certificate of each model, for people (HTML) and for machines (JSON), certified or not.

        Into `certificates` of the run's folder, unless `out` is given. `norm` and `eps` say what to make claims about:
        that norm, and sizes up to that eps. `key` is the file of a private key to sign with, `signer` the name that
        the signer states. A signed certificate is not replaced by one that is unsigned or answers another question,
        unless `replace` is set.
        """
        if self.url and out is None:
            raise LedgerError(f"{self.url}: certificates cannot be written there; say into which folder (`out`)")
        if self.view.where:
            raise RiskError(ON_FILTERS)
        return write_certificates(
            (self.whole or self).ledger,
            self.study,
            {"alpha": alpha, "zeta": zeta, "method": method},
            name=self.name,
            models=models or (None if self.view.models is None else list(self.view.models)),
            norm=norm,
            eps=eps,
            out=output_folder(out, "certificates") if out else self.folder / FOLDER,
            key=Path(key) if key else None,
            signer=signer,
            replace=replace,
        )

    def failures(
        self,
        scenario: str | None = None,
        loss: str | None = None,
        model: str | None = None,
        samples: int | None = None,
        where: AnyWhere | None = None,
    ) -> FailureModes:
        """For each model (or one), the branches of a scenario that contribute most to its risk, and the samples (12,
        unless the study says another number) that each of them hurts most. By default the study's first scenario and
        its first loss."""
        given: dict[str, Any] = {"scenario": scenario, "loss": loss, "model": model, "samples": samples}
        (found,) = part_of(self, where=where)._result(tuple, "failures", **given)
        assert isinstance(found, FailureModes)
        return found

    def survival(
        self,
        *,
        measure: str | None = None,
        covariates: list[str] | None = None,
        shape_covariates: list[str] | None = None,
        reference: Mapping[str, str] | None = None,
        units: Mapping[str, float | str] | None = None,
        tolerance: float | None = None,
        family: str | None = None,
        norm: Norm | None = None,
        models: list[str] | None = None,
        arms: list[str] | None = None,
        level: float | None = None,
        until: float | None = None,
        eps_max: float | None = None,
        broken_factor: float | None = None,
        hardware: Mapping[str, Any] | None = None,
        where: AnyWhere | None = None,
    ) -> SurvivalAssessment:
        """How long until each model breaks, what that depends on, and what it costs (Meyers et al.), as the study asks.

        `measure` is forward, gradient, seconds or process-seconds; `covariates` are things known before the attack, by
        default those that differ; `shape_covariates` change the shape of the law, too; `reference` is as in
        `{"defence": "none"}`, `units` as in `{"eps": "1/255"}`; a law that is off by more than `tolerance` is not
        quoted; `family` is weibull, lognormal, loglogistic or auto; `hardware` is as in
        `{"name": "one GPU", "per_hour": 2.5}`.
        """
        given: dict[str, Any] = {"measure": measure, "covariates": covariates, "family": family, "norm": norm}
        given |= {"arms": arms, "level": level, "until": until, "eps_max": eps_max, "hardware": hardware}
        given |= {"broken_factor": broken_factor, "shape_covariates": shape_covariates, "tolerance": tolerance}
        given |= {"reference": reference, "units": units, "models": models}
        return part_of(self, where=where)._result(SurvivalAssessment, "survival", **given)

    def tensor(
        self, model: str, *, losses: Sequence[object] | None = None, arms: list[str] | None = None
    ) -> RiskTensor:
        """What every answer of a model costs, by loss, sample, arm and repeat; from what is stored, nothing is run."""
        return read_tensor(self.ledger, model, stated_losses(self.study, losses), arms=arms)

    def named_losses(self, names: list[str] | None) -> list[object] | None:
        """Those losses of the study that are called so, by `as` or by name; others by their names alone."""
        return None if names is None else named_losses(self.study, names)

    def searches(self, *, models: list[str] | None = None) -> list[SearchRecord]:
        """What searches tried on the samples to tune: every setting, by round, and how many samples it broke; of all
        searches, or those against these models."""
        return searches_of(read_searches(self.ledger), models)

    def frozen_lists(self) -> list[FrozenList]:
        """The attacks that are certified, for each model, norm and eps, as they were frozen before their test."""
        return frozen_lists(self.ledger)

    def status(self) -> Status:
        """How many cells are done, and what came of them."""
        return replace(run_status(self.ledger, self.study, self._snapshot.flags, self.stopping), study=self.name)

    def arms(self, *, arms: list[str] | None = None) -> list[dict[str, Any]]:
        """What each arm (or those of these names or patterns) did to each model: share of samples left wrong, passes
        per sample."""
        return arm_shares(self.ledger, arms)

    def flags(self) -> list[dict[str, Any]]:
        """Reasons not to trust cells: how many of each model and arm are flagged, and what was seen there."""
        return list(self._snapshot.flags)

    def gate(
        self,
        require: Sequence[str] | str | None = None,
        *,
        level: float | None = None,
        evasion: AnyEvasion | None = None,
        cost: float | None = None,
        strict_flags: bool = False,
    ) -> GateResult:
        """Whether what the study requires (`gate`) is met: pass, fail or undecided, decided by intervals.

        `require` are requirements beside those of the study, as in `"damage.hardened <= 0.2"`; `level` is that of all
        intervals, `evasion` and `cost` are those of `damage`; by default they are the study's, and the level is that of
        the last look at a decision, if there was one. With `strict_flags` nothing passes that rests on flagged cells.
        """
        given: dict[str, Any] = {"require": require, "level": level, "evasion": evasion, "cost": cost}
        return self._result(GateResult, "gate", strict_flags=strict_flags or None, **given)

    def compare(
        self,
        new: "Run",
        *,
        margin: float | None = None,
        models: Mapping[str, str] | None = None,
        sizes: Sequence[float | str] | None = None,
        norm: Norm | None = None,
        arms: Sequence[str] | None = None,
        evasion: AnyEvasion | None = None,
        level: float | None = None,
    ) -> RunComparison:
        """Whether a new run is worse than this one by more than a margin, on the samples and arms that both hold.

        The margin is 0.02 unless given. Models of the same digest pass; `word` is `identical`, `better`, `not worse`,
        `worse` or `undecided`.

        `models` says which belong together (old -> new) where their names differ; `sizes` are those within which
        samples may be broken, as numbers or written (`8/255`), by default every eps that both runs share; `arms`
        names the attacks to compare by (by default all that count in the old run: one that is missing in the new run
        leaves it undecided); `evasion` is a curve for both, by default that of both studies, if it is the same.
        """
        given: dict[str, Any] = {"margin": margin, "models": models, "sizes": sizes, "norm": norm, "arms": arms}
        return compare_runs(self, new, evasion=evasion, level=level, **given)

    def models(self) -> list[dict[str, Any]]:
        """The models of the run: digest, capability, training time, tags."""
        return self.query("FROM models ORDER BY model").to_pylist()  # type: ignore[no-any-return]

    def answers(self, url: str | None = None) -> list[Answer]:
        """What labellers said of this run's pictures (`advrisk label`), from its own database or the one at `url`."""
        return read_answers(self.folder, url)

    def findings(self) -> Findings:
        """Everything this run answers, as the study asks; `Unanswered` in place of an answer says why there is none.

        Of a `part`, everything is about that part.
        """
        return self._found

    @cached_property
    def _found(self) -> Findings:
        """Assessed once: a run is a snapshot, and reports of all forms, figures and MLflow tell of it."""
        return run_findings(self, self._snapshot)

    def record(self) -> dict[str, Any]:
        """Everything this run answers, and from what, as plain values: what `report(form="json")` writes."""
        return run_record(self)

    def report(
        self,
        path: str | Path | None = None,
        *,
        form: Form = "html",
        models: Sequence[str] | str | None = None,
        where: AnyWhere | None = None,
        norm: Norm | None = None,
        arms: list[str] | None = None,
        thresholds: list[float] | None = None,
        evasion: AnyEvasion | None = None,
        detector: Mapping[str, Any] | None = None,
        cost: float | None = None,
        answers: str | None = None,
    ) -> Path:
        """Write the report: one self-contained HTML file, or the same in another form.

        By default into the run's folder: `report.html`, `.pdf`, `.md`, `.json`, `summary.pdf` (two pages), or for csv
        the folder `report-csv`. Of one that is put to a URL, a copy is returned. `models`, `where` and what follows
        are those of `part`.
        """
        asked: dict[str, Any] = {"norm": norm, "arms": arms, "thresholds": thresholds, "evasion": evasion}
        part = self.part(models=models, where=where, detector=detector, cost=cost, answers=answers, **asked)
        return write_form(part, path, form)

    def figures(self) -> "dict[str, go.Figure]":
        """The figures of the report by name, as plotly objects."""
        return plotly_figures(figure_specs(self.ledger, self.findings()))

    def figure(self, name: str) -> "go.Figure":
        """One of them."""
        return plotly_figures({name: named_spec(figure_specs(self.ledger, self.findings()), name)})[name]

    def log_to_mlflow(
        self,
        experiment: str | None = None,
        tracking_uri: str | None = None,
        *,
        run_name: str | None = None,
    ) -> "LoggedRun":
        """Log study, numbers, report and certificates as a new run of MLflow (`pip install "advrisk[mlflow]"`).

        Into the experiment of that name (default: the study's), at the address that MLflow is set to unless another is
        given.
        """
        from advrisk.api.mlflow import log_run

        return log_run(self, experiment, tracking_uri, run_name=run_name)

    def _repr_html_(self) -> str:
        from advrisk.report.notebook import run_html

        return run_html(self.name, self.folder, self.status(), self.models())

    def evidence(
        self, path: str | Path | None = None, *, key: str | Path | None = None, signer: str | None = None
    ) -> Path:
        """Write an evidence pack: report, certificates, study, digests, and which clauses of regulation they speak to.

        A folder, or a zip if the name ends so (default: evidence in the run's folder). `key` is the file of a private
        key to sign its manifest with, `signer` the name that the signer states. At a URL there is room for a zip, of
        which a copy is returned.
        """
        if self.view:
            raise RiskError("an evidence pack is about a whole run, and this is a part of one; ask the run itself")
        return write_pack(self, path, key=Path(key) if key else None, signer=signer)

    @property
    def name(self) -> str:
        """The study's, or else the folder's."""
        if self.study:
            return self.study.name
        return last_part(self.url) if self.url else self.folder.name

    @property
    def seed(self) -> int:
        """The study's seed; 0 without a study."""
        return self.study.seed if self.study else 0

    @property
    def model_names(self) -> list[str]:
        """All models of the whole run; the n-th has the n-th colour in every figure."""
        return sorted((self.whole or self).query("SELECT model FROM models")["model"].to_pylist())

    @property
    def norm(self) -> Norm:
        """The norm to assess in: the study's, or the only one there is."""
        return self.context.norm

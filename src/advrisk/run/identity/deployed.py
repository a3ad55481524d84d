"""Is a model that lies somewhere the one that a certificate names?"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from advrisk.assess.certificate.identity import answers_of
from advrisk.assess.certificate.verification import Verification
from advrisk.core.containment import Containment
from advrisk.core.digest import digest
from advrisk.core.errors import RunError
from advrisk.core.names import counted, did_you_mean
from advrisk.engine import Model
from advrisk.ledger import Ledger
from advrisk.parts import REGISTRIES
from advrisk.parts.data import Dataset
from advrisk.plan import expand_defences
from advrisk.run.executors.choice import local_device
from advrisk.run.identity.asking import ask_again, clean_classes
from advrisk.run.identity.comparing import AnswerComparison
from advrisk.run.identity.recorded import recorded_shards
from advrisk.run.loading import Material, load_data, load_material
from advrisk.run.options import DEFAULTS
from advrisk.run.planning import splits_of
from advrisk.study import ModelSpec, StudySpec

_RECIPE = "SELECT recipe FROM arms WHERE model = $model AND kind = 'clean' AND origin IS DISTINCT FROM 'dropped'"
_BY_DIGEST = (
    "weights, architecture and answers to 8 noise inputs agree; whether it answers the certified samples alike was not "
    "checked: {remedy}"
)
_ADD = "add --run or the study's data (--study)"
_ADD_RUN = "the certificate holds no answers of it, so add --run"


@dataclass(frozen=True)
class CertifiedAnswers:
    """Whether a model gives the classes that a certificate holds a digest of: of `n` samples, near ties left out."""

    n: int
    n_left_out: int
    same: bool


@dataclass(frozen=True)
class DeployedModel:
    """A model beside the certified one: digests, answers to the certified samples, and to a run's clean ones.

    Of answers, None: the samples are not at hand.
    """

    name: str
    digest: str
    certified: str
    on_certified: CertifiedAnswers | None = None
    answers: AnswerComparison | None = None
    remedy: str = _ADD
    notes: tuple[str, ...] = field(default=())

    def verification(self) -> Verification:
        """Whether it is the certified model, as far as was checked."""
        same = self.digest == self.certified
        said = f"{self.name} has the digest {self.digest}"
        problems = [] if same else [f"This is not the certified model: {said}, and the certificate {self.certified}."]
        notes, own = list(self.notes), self.on_certified
        if self.answers is not None and self.answers.differs:
            others = f"{counted(len(self.answers.others), 'clean sample')} of {self.answers.n}"
            problems.append(f"{self.name} answers {others} otherwise than the run says; {self.answers.shown}.")
        elif self.answers is not None and not same:
            notes.append(
                f"Its answers to {counted(self.answers.n, 'clean sample')} of the run are the same but for "
                "rounding: it may be the certified model in another format or from other code."
            )
        if own is not None and not own.same:
            problems.append(
                f"This is not the certified model: {self.name} answers the {own.n:,} samples of the certificate that "
                "are no near ties otherwise than it says."
            )
        held = () if problems else (self._held(said),)
        return Verification(held, tuple(problems), tuple(notes))

    def _held(self, said: str) -> str:
        """What agrees, and no more."""
        compared = [f"answers {counted(self.answers.n, 'clean sample')} as recorded"] if self.answers else []
        if (own := self.on_certified) is not None:
            ties = f" ({counted(own.n_left_out, 'near tie')} left out)" if own.n_left_out else ""
            compared.append(f"gives the classes of the certificate on {counted(own.n, 'sample')}{ties}")
        if not compared:
            return f"{said}, that of the certificate: {_BY_DIGEST.format(remedy=self.remedy)}."
        return f"This is the certified model: {said}, and {' and '.join(compared)}."

    @property
    def _same(self) -> bool | None:
        """Whether it is the certified model; None where its answers were not compared."""
        if not self.verification().holds:
            return False
        return True if self.answers or self.on_certified else None

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "name": self.name,
            "digest": self.digest,
            "certified_digest": self.certified,
            "n_compared": self.answers.n if self.answers else None,
            "n_different": len(self.answers.others) if self.answers else None,
            "certified_answers": None if self.on_certified is None else vars(self.on_certified),
            "same": self._same,
        }


def examine_deployed(
    study: StudySpec,
    name: str,
    certificate: Mapping[str, Any],
    *,
    file: Path | None = None,
    ledger: Ledger | None = None,
    beside: StudySpec | None = None,
) -> DeployedModel:
    """Load the model `name` of a study, or the same with another file of weights, and compare it.

    The certified samples are those of the study, or of the one `beside` it.
    """
    device, containment = local_device(study, DEFAULTS), Containment()
    material = load_material(_only(study, name, file), REGISTRIES, device=device, containment=containment)
    model, certified = material.models[name], certificate["model"]
    with containment.around(name):
        own = _on_certified(model, certificate, study, material.data, beside)
        found = DeployedModel(name, model.digest, certified["digest"], own)
        if ledger is not None:
            found = _beside_run(found, model, material, ledger, study)
    remedy = _ADD if certified["answers"] else _ADD_RUN
    sources = {certified["source_digest"], model.source_digest}
    note = () if None in sources or len(sources) == 1 else ("Its source files are not those of the certified model.",)
    return replace(found, remedy=remedy, notes=(*found.notes, *note))


def _on_certified(
    model: Model, certificate: Mapping[str, Any], study: StudySpec, data: Dataset, beside: StudySpec | None
) -> CertifiedAnswers | None:
    """The answers to the samples that the certificate was made on, where a study draws the same."""
    held, wanted = certificate["model"]["answers"], certificate["calibration"]["fingerprint"]
    if held is None or model.random:
        return None
    samples = _calibrate(study, data, wanted)
    if samples is None and beside is not None:
        data = load_data(beside.data, REGISTRIES, beside.where)
        samples = _calibrate(beside, data, wanted)
    if samples is None:
        return None
    classes = clean_classes(model, data.x[list(samples.values())])
    again = answers_of(dict(zip(samples, classes, strict=True)), tuple(held["left_out"]))
    return CertifiedAnswers(held["n"], len(held["left_out"]), again.digest == held["digest"])


def _calibrate(study: StudySpec, data: Dataset, fingerprint: str) -> dict[str, int] | None:
    """The samples to calibrate of a study and their rows, if they are those that are named so."""
    rows = {name: row for row, name in enumerate(data.ids)}
    names = [name for name, split in splits_of(study, data).items() if split == "calibrate"]
    found = digest(sorted([name, data.hash_of(rows[name])] for name in names))
    return {name: rows[name] for name in names} if found == fingerprint else None


def _beside_run(
    found: DeployedModel, model: Model, material: Material, ledger: Ledger, study: StudySpec
) -> DeployedModel:
    certified = found.certified
    held = ledger.query("SELECT model, digest FROM models").to_pylist()
    (own,) = [row for row in held if row["digest"] == certified][:1] or [None]
    if own is None:
        raise RunError(
            f"{ledger.path.parent}: holds no model with the certified digest {certified}; give its own --run"
        )
    recipes = ledger.query(_RECIPE, {"model": own["model"]})["recipe"].to_pylist()
    shards = recorded_shards(ledger, recipes[0]) if recipes else []
    material, n_unlike = _with_same_contents(material, ledger)
    answers = ask_again(model, shards, ledger, material, seed=study.seed)
    if not answers.n:
        raise RunError(
            f"{ledger.path.parent}: none of its clean samples are in the data of the study; give --study FILE"
        )
    notes = []
    if n_unlike:
        notes.append(f"{counted(n_unlike, 'sample')} of the run are not in the data here, or not the same: left out.")
    return replace(found, answers=answers, notes=tuple(notes))


def _with_same_contents(material: Material, ledger: Ledger) -> tuple[Material, int]:
    """The samples of the run that are in the data with the same contents, and how many are not."""
    hashes = ledger.query("SELECT sample, hash FROM samples WHERE shard IS NOT NULL").to_pylist()
    rows = {
        row["sample"]: material.rows[row["sample"]]
        for row in hashes
        if row["sample"] in material.rows and material.data.hash_of(material.rows[row["sample"]]) == row["hash"]
    }
    return replace(material, rows=rows), len(hashes) - len(rows)


def _only(study: StudySpec, name: str, file: Path | None) -> StudySpec:
    """The study with one model, so that no other one need be there; behind a defence, with all that it may need."""
    if name in study.models:
        spec = study.models[name]
        spec = spec if file is None else _from_file(study, name, spec, file)
        return study.model_copy(update={"models": {name: spec}, "defences": {}})
    defended = [one.name for one in expand_defences(study, REGISTRIES)]
    if name not in defended:
        known = [*study.models, *defended]
        raise study.where.error(("models",), f"there is no model called {name!r}; {did_you_mean(name, known)}")
    if file is not None:
        raise RunError(f"{name} is a model behind a defence, which no file holds; give a study: --model STUDY:{name}")
    return study


def _from_file(study: StudySpec, name: str, spec: ModelSpec, file: Path) -> ModelSpec:
    """The same entry of a study, with another file in place of its own."""
    key = "weights" if spec.source == "torch" else "path"
    if key == "path" and key not in spec.params:
        found = f"its source {spec.source} reads no file that {file} could stand in for; give a study: --model STUDY"
        raise study.where.error(("models", name), found)
    return spec.model_copy(update={key: str(file.resolve())})

"""Is a model that lies somewhere the one that a certificate names?"""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from advrisk.assess.certificate.verification import Verification
from advrisk.core.containment import Containment
from advrisk.core.errors import RunError
from advrisk.core.names import counted, did_you_mean
from advrisk.engine import Model
from advrisk.ledger import Ledger
from advrisk.parts import REGISTRIES
from advrisk.plan import expand_defences
from advrisk.run.executors.choice import local_device
from advrisk.run.identity.asking import ask_again
from advrisk.run.identity.comparing import AnswerComparison
from advrisk.run.identity.recorded import recorded_shards
from advrisk.run.loading import Material, load_material
from advrisk.run.options import DEFAULTS
from advrisk.study import ModelSpec, StudySpec

_RECIPE = "SELECT recipe FROM arms WHERE model = $model AND kind = 'clean' AND origin IS DISTINCT FROM 'dropped'"
_BY_DIGEST = "Its digest holds weights, layers and answers to 8 fixed inputs; --run compares clean samples, too."


@dataclass(frozen=True)
class DeployedModel:
    """A model beside the certified one: digests, and answers to the run's clean samples where a run was given."""

    name: str
    digest: str
    certified: str
    answers: AnswerComparison | None = None
    notes: tuple[str, ...] = field(default=())

    def verification(self) -> Verification:
        """Whether it is the certified model."""
        same = self.digest == self.certified
        said = f"{self.name} has the digest {self.digest}"
        problems = [] if same else [f"This is not the certified model: {said}, and the certificate {self.certified}."]
        notes = list(self.notes)
        if self.answers is None:
            notes.append(_BY_DIGEST)
        elif self.answers.differs:
            others = f"{counted(len(self.answers.others), 'clean sample')} of {self.answers.n}"
            problems.append(f"{self.name} answers {others} otherwise than the run says; {self.answers.shown}.")
        elif not same:
            notes.append(
                f"Its answers to {counted(self.answers.n, 'clean sample')} of the run are the same but for "
                "rounding: it may be the certified model in another format or from other code."
            )
        compared = f", and answers {counted(self.answers.n, 'clean sample')} as recorded" if self.answers else ""
        held = () if problems else (f"This is the certified model: {said}{compared}.",)
        return Verification(held, tuple(problems), tuple(notes))

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "name": self.name,
            "digest": self.digest,
            "certified_digest": self.certified,
            "n_compared": self.answers.n if self.answers else None,
            "n_different": len(self.answers.others) if self.answers else None,
            "same": self.verification().holds,
        }


def examine_deployed(
    study: StudySpec, name: str, certified: str, *, file: Path | None = None, ledger: Ledger | None = None
) -> DeployedModel:
    """Load the model `name` of a study, or the same with another file of weights, and compare it."""
    device = local_device(study, DEFAULTS)
    material = load_material(_only(study, name, file), REGISTRIES, device=device, containment=Containment())
    model = material.models[name]
    if ledger is None:
        return DeployedModel(name, model.digest, certified)
    return _beside_run(model, certified, material, ledger, study)


def _beside_run(model: Model, certified: str, material: Material, ledger: Ledger, study: StudySpec) -> DeployedModel:
    held = ledger.query("SELECT model, digest, source_digest FROM models").to_pylist()
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
    if None not in (own["source_digest"], model.source_digest) and own["source_digest"] != model.source_digest:
        notes.append("Its source files are not those of the run.")
    return DeployedModel(model.name, model.digest, certified, answers, tuple(notes))


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

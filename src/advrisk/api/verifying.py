"""What a certificate's own numbers cannot show: which model is deployed, and whether attacks made the rows.

Both need torch and the study's data, so they are asked for. The rest of `verify` is in `api.certificates`.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from advrisk.assess.certificate.verification import Verification
from advrisk.core.errors import AdvriskError, RunError
from advrisk.core.extras import extras_named
from advrisk.study import StudySpec, load_study

if TYPE_CHECKING:
    from torch import nn

    from advrisk.api.run import Run
    from advrisk.run.identity.deployed import DeployedModel
    from advrisk.run.replay.record import Replay

_YAML = (".yaml", ".yml")


def joined(*found: Verification) -> Verification:
    """What several checks of one document found, together."""
    names = [one.name for one in fields(Verification)]
    return Verification(*(tuple(sentence for one in found for sentence in getattr(one, name)) for name in names))


@extras_named("comparing a model with a certificate")
def deployed_model(
    content: Mapping[str, Any], target: str | Path, *, run: "Run | None" = None, study: str | Path | None = None
) -> "DeployedModel":
    """Compare a model with the one that a certificate names.

    `target` is a study file, `study.yaml` or `study.yaml:model`, or a file of weights or of a whole model; its other
    settings and the data are then those of `study`, or else of the run's study. These also give the certified samples
    where the target's own data do not.
    """
    from advrisk.run.identity.deployed import examine_deployed

    certified = content["model"]
    path, name = _target(str(target))
    ledger = None if run is None else run.ledger.by_id()
    if path.suffix in _YAML:
        beside = load_study(study) if study is not None else None if run is None else run.study
        return examine_deployed(load_study(path), name or certified["name"], content, ledger=ledger, beside=beside)
    spec = _study(run, study, f"--model {path}: how such a file is to be read, and the data,")
    with _advised(run, study):
        return examine_deployed(spec, certified["name"], content, file=path, ledger=ledger)


@extras_named("replaying a run")
def replay_run(
    run: "Run",
    k: int,
    *,
    certificate: Mapping[str, Any] | None = None,
    study: str | Path | None = None,
    seed: int | None = None,
    device: str | None = None,
    modules: "Mapping[str, nn.Module] | None" = None,
) -> "Replay":
    """Attack `k` samples of a run again; with a certificate, of those that it was calibrated on, its model alone."""
    from advrisk.run.replay.choosing import EVERYTHING, Scope
    from advrisk.run.replay.replaying import replay

    scope = EVERYTHING if certificate is None else Scope(certificate["model"]["name"], "calibrate")
    spec = _study(run, study, "where models and data are")
    with _advised(run, study):
        return replay(spec, run.ledger, k, seed=seed, scope=scope, device=device, modules=modules)


def _target(target: str) -> tuple[Path, str | None]:
    """A path, and what stands after its colon."""
    path, colon, name = target.rpartition(":")
    whole = Path(target)
    if not whole.is_file() and colon and Path(path).is_file():
        whole = Path(path)
    elif not whole.is_file():
        raise RunError(f"--model {target}: there is no such file; give a study, STUDY:MODEL, or a file of weights")
    else:
        name = ""
    if name and whole.suffix not in _YAML:
        raise RunError(f"--model {target}: a model's name stands after a study file (.yaml) alone")
    return whole, name or None


def _study(run: "Run | None", study: str | Path | None, what: str) -> StudySpec:
    if study is not None:
        return load_study(study)
    if run is None or run.study is None:
        raise RunError(f"{what} says a study: give it with --study FILE, or with --run a run that holds one")
    return run.study


@contextmanager
def _advised(run: "Run | None", study: str | Path | None) -> Iterator[None]:
    """Add to a complaint about the run's own copy of its study that another one can be given."""
    try:
        yield
    except AdvriskError as error:
        if run is None or study is not None or str(run.folder) not in str(error):
            raise
        remedy = "if models and data lie elsewhere, give a study that says where: --study FILE"
        raise type(error)(f"{error}; {remedy}") from None

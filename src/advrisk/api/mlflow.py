"""A run logged to MLflow: what was asked, every number that leads with its interval, and the report.

MLflow is an extra and is imported when it is used. One run of ours is one run of MLflow, found again by a tag.
"""

import math
import re
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any

from sqlalchemy.exc import SQLAlchemyError

from advrisk.api.certificates import FOLDER
from advrisk.core.digest import digest
from advrisk.core.errors import RunError
from advrisk.core.estimate import NamedEstimate
from advrisk.ledger.layout import STUDY_FILE
from advrisk.report import Findings, write_report
from advrisk.report.records import findings_record, lasting, write_json

if TYPE_CHECKING:
    from advrisk.api.run import Run

TAG = "advrisk.digest"
_KEY = 230  # characters of a name: MLflow takes 250, and `.high` is still to come
_VALUE = 500  # characters of a parameter or tag that every version of MLflow takes
_BATCH = 500  # metrics that are sent at once
_NEEDED = "logging to MLflow needs more packages: pip install 'advrisk[mlflow]'"
_STRANGE = re.compile(r"[^\w.\- ]")


@dataclass(frozen=True)
class LoggedRun:
    """Where a run lies in MLflow; `new` is false where it had been logged before, and nothing was done."""

    run_id: str
    experiment: str
    tracking_uri: str
    new: bool


def log_run(
    run: "Run", experiment: str | None, tracking_uri: str | None, *, run_name: str | None, again: bool
) -> LoggedRun:
    """Log a run, unless the same one is there already."""
    with _complaints():
        client = _client(tracking_uri)
        name = experiment or run.name
        place = _experiment(client, name)
        found = run.findings()
        record = findings_record(run.name, run.ledger, run.study, found)
        identity = run_identity(record)
        if not again and (known := _logged(client, place, identity)):
            return LoggedRun(known, name, client.tracking_uri, new=False)
        tags = {TAG: identity, "advrisk.run": run.name, "advrisk.headline": " ".join(record["headlines"])}
        made = client.create_run(place, run_name=run_name or run.name, tags=_short(tags))
        try:
            _log(client, made.info.run_id, run, found, record)
        except BaseException:
            client.set_terminated(made.info.run_id, status="FAILED")  # half of a run is not taken for the whole
            raise
        client.set_terminated(made.info.run_id)
        return LoggedRun(made.info.run_id, name, client.tracking_uri, new=True)


def run_identity(record: Mapping[str, Any]) -> str:
    """Names what would be logged: everything that the report says."""
    return digest(lasting(record))


def metrics(numbers: Iterable[NamedEstimate]) -> dict[str, float]:
    """Every estimate as three numbers: `damage.plain`, `damage.plain.low`, `damage.plain.high`.

    An end that is infinite is left out. Letters that MLflow does not take become `_`; names that are too long, or
    would then be alike, end in a few digits that tell them apart.
    """
    numbers = list(numbers)
    names = metric_names([one.name for one in numbers])
    told = {}
    for name, one in zip(names, numbers, strict=True):
        for end, key in (("value", name), ("low", f"{name}.low"), ("high", f"{name}.high")):
            if math.isfinite(limit := getattr(one.estimate, end)):
                told[key] = float(limit)
    return told


def metric_names(names: list[str]) -> list[str]:
    """Names that MLflow takes, all different where the given ones are."""
    clean = [_STRANGE.sub("_", name) for name in names]
    of_each: dict[str, set[str]] = {}
    for name, given in zip(clean, names, strict=True):
        of_each.setdefault(name.casefold(), set()).add(given)  # some stores make files of them

    def is_own(name: str) -> bool:
        ends = name.casefold().endswith((".low", ".high"))  # it would be taken for the end of an interval
        return len(name) <= _KEY and len(of_each[name.casefold()]) == 1 and not ends

    return [
        name if is_own(name) else f"{name[:_KEY]}-{digest(given)[:8]}" for name, given in zip(clean, names, strict=True)
    ]


def _log(client: Any, run_id: str, run: "Run", found: Findings, record: Mapping[str, Any]) -> None:
    from mlflow.entities import Metric, Param

    now = round(time() * 1000)
    told = metrics(number for one in found.answered for number in one.quantities)
    numbers = iter([Metric(name, value, now, 0) for name, value in told.items()])
    client.log_batch(run_id, params=[Param(name, value) for name, value in _short(_params(record)).items()])
    while batch := list(islice(numbers, _BATCH)):
        client.log_batch(run_id, metrics=batch)
    with tempfile.TemporaryDirectory() as made:
        write_report(run.folder, run.ledger, run.study, Path(made) / "report.html", found)
        write_json(Path(made) / "report.json", dict(record))
        client.log_artifacts(run_id, made)
    if (run.folder / STUDY_FILE).is_file():
        client.log_artifact(run_id, str(run.folder / STUDY_FILE))
    if (run.folder / FOLDER).is_dir():
        client.log_artifacts(run_id, str(run.folder / FOLDER), FOLDER)


def _params(record: Mapping[str, Any]) -> dict[str, Any]:
    """What was asked, and what made the answer."""
    origin = record["provenance"]
    told = {"study": record["run"], "seed": origin["seed"], "advrisk": origin["versions"]["advrisk"]}
    told |= {"torch": ", ".join(origin["versions"]["torch"]), "python": origin["versions"]["python"]}
    told |= {f"samples.{split}": held["n"] for split, held in origin["samples"].items()}
    models = [row["model"] for row in origin["models"]]
    digests = [row["digest"] for row in origin["models"]]
    return told | dict(zip(metric_names([f"digest.{model}" for model in models]), digests, strict=True))


def _short(texts: Mapping[str, Any]) -> dict[str, str]:
    return {
        name: text if len(text) <= _VALUE else f"{text[: _VALUE - 1]}…"
        for name, text in ((name, str(value)) for name, value in texts.items())
        if text
    }


def _client(tracking_uri: str | None) -> Any:
    from mlflow import MlflowClient

    return MlflowClient(tracking_uri)


def _experiment(client: Any, name: str) -> str:
    """The experiment of that name; made if there is none."""
    found = client.get_experiment_by_name(name)
    if found is None:
        return str(client.create_experiment(name))
    if found.lifecycle_stage == "deleted":
        raise RunError(f"MLflow's experiment {name!r} is deleted; restore it, or name another (`experiment`)")
    return str(found.experiment_id)


def _logged(client: Any, experiment: str, identity: str) -> str | None:
    """The run that was logged from the same, if it was logged to its end."""
    found = client.search_runs([experiment], filter_string=f"tags.`{TAG}` = '{identity}' and status = 'FINISHED'")
    return str(found[0].info.run_id) if found else None


@contextmanager
def _complaints() -> Iterator[None]:
    """What MLflow complains of, as an error of the user's: an address that is none, a server that is not there."""
    try:
        from mlflow.exceptions import MlflowException
    except ImportError:
        raise RunError(_NEEDED) from None
    try:
        yield
    except ImportError as error:  # MLflow's stores import what they need once they are asked
        raise RunError(f"{_NEEDED} ({error})") from None
    except (MlflowException, SQLAlchemyError, OSError) as error:
        raise RunError(f"MLflow cannot take this run: {error}") from None

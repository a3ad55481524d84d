"""A run logged to MLflow: what was asked, every number that leads with its interval, and the report.

MLflow is an extra and is imported when it is used. Each call makes one run of MLflow.
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

from advrisk.api.certificates import FOLDER
from advrisk.core.digest import digest
from advrisk.core.errors import RunError
from advrisk.core.estimate import NamedEstimate
from advrisk.core.extras import needs_extra
from advrisk.ledger.layout import STUDY_FILE
from advrisk.report import Findings, write_report
from advrisk.report.records import findings_record, write_json

if TYPE_CHECKING:
    from advrisk.api.run import Run

_KEY = 230  # characters of a name: MLflow takes 250, and digits and `.high` are still to come
_VALUE = 500  # characters of a parameter or tag that every version of MLflow takes
_BATCH = 500  # metrics that are sent at once
_NEEDED = needs_extra("logging to MLflow", "more packages", "mlflow")
_STRANGE = re.compile(r"[^\w.\- ]")


@dataclass(frozen=True)
class LoggedRun:
    """Where a run lies in MLflow."""

    run_id: str
    experiment: str
    tracking_uri: str


def log_run(run: "Run", experiment: str | None, tracking_uri: str | None, *, run_name: str | None) -> LoggedRun:
    """Log a run as a new run of MLflow."""
    with _complaints():
        client = _client(tracking_uri)
        name = experiment or run.name
        place = _experiment(client, name)
        found = run.findings()
        record = findings_record(run.name, run.ledger, run.study, found)
        tags = {"advrisk.run": run.name, "advrisk.headline": " ".join(record["headlines"])}
        made = client.create_run(place, run_name=run_name or run.name, tags=_short(tags))
        try:
            _log(client, made.info.run_id, run, found, record)
        except BaseException:
            client.set_terminated(made.info.run_id, status="FAILED")  # half of a run is not taken for the whole
            raise
        client.set_terminated(made.info.run_id)
        return LoggedRun(made.info.run_id, name, client.tracking_uri)


def metrics(numbers: Iterable[NamedEstimate]) -> dict[str, float]:
    """Every estimate as three numbers: `damage.plain`, `damage.plain.low`, `damage.plain.high`.

    An end that is infinite is left out. A name that MLflow does not take, or that ends as the end of an interval does,
    is changed and ends in a few digits that tell it from others.
    """
    values = {}
    for one in numbers:
        name = _key(one.name)
        for key, value in (
            (name, one.estimate.value),
            (f"{name}.low", one.estimate.low),
            (f"{name}.high", one.estimate.high),
        ):
            if math.isfinite(value):
                values[key] = float(value)
    return values


def _key(name: str) -> str:
    """A name that MLflow takes; different names stay different."""
    key = _STRANGE.sub("_", name)[:_KEY]
    is_own = key == name and not name.casefold().endswith((".low", ".high"))
    return key if is_own else f"{key}-{digest(name)[:8]}"


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
    return told | {_key(f"digest.{row['model']}"): row["digest"] for row in origin["models"]}


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


@contextmanager
def _complaints() -> Iterator[None]:
    """What MLflow complains of, as an error of the user's: an address that is none, a server that is not there."""
    try:
        from mlflow.exceptions import MlflowException
        from sqlalchemy.exc import SQLAlchemyError
    except ImportError:
        raise RunError(_NEEDED) from None
    try:
        yield
    except ImportError as error:  # MLflow's stores import what they need once they are asked
        raise RunError(f"{_NEEDED} ({error})") from None
    except (MlflowException, SQLAlchemyError, OSError) as error:
        raise RunError(f"MLflow cannot take this run: {error}") from None

"""`advrisk export RUN --mlflow URI`: a run logged to MLflow."""

from advrisk.core.errors import StudyError


def export_to_mlflow(folder: str, uri: str, experiment: str | None, *, target: str | None, again: bool) -> None:
    """Log a run, and say where it is; or that it is there already."""
    from advrisk.api import Run

    if target is not None:
        raise StudyError(f"--mlflow writes no file; leave {target} out")
    found = Run.open(folder).log_to_mlflow(experiment, uri, again=again)
    place = f"run {found.run_id} of experiment {found.experiment!r} at {found.tracking_uri}"
    print(f"logged as {place}" if found.new else f"logged before, as {place}; --again logs it once more")

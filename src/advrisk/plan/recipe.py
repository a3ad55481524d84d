"""The recipe of a cell: a digest of everything besides its samples that decides its result."""

from advrisk.core.digest import digest
from advrisk.core.registries import Registries
from advrisk.study import Arm, StudySpec

# Raise it when the probe or the judge change the content of rows: older cells then run again.
RUNNER_VERSION = 4
REDRAWING_VERSION = 4  # the same, only for models that answer at random


def recipe_of(
    study: StudySpec,
    registries: Registries,
    model_digest: str,
    arm: Arm,
    space: str,
    *,
    crafted: str | None = None,
    random: bool = False,
) -> str:
    """A digest of everything that decides an arm's result on a sample; `random`: the model answers at random."""
    decisive = {
        "runner": RUNNER_VERSION,
        "seed": study.seed,
        "criterion": study.model_dump(mode="json", include={"success"}),
        "space": space,
        "model": model_digest,
        "arm": arm.identity(),
        "objective": arm.objective and registries.objectives.get(arm.objective).version,
    }
    if random:
        decisive["redrawing"] = REDRAWING_VERSION
    return digest(decisive if crafted is None else decisive | {"crafted": crafted})

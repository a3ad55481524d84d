"""What decides the result of a cell beside its samples, as one name."""

from advrisk.core.digest import digest
from advrisk.core.registries import Registries
from advrisk.study import Arm, StudySpec

# Rises when the probe or the judge change what a row says: older cells are then run again.
RUNNER_VERSION = 4
REDRAWING_VERSION = 4  # the same, for models that answer at random alone


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
    """Names everything that decides what an arm does to a sample of a model; `random`: one that answers at random."""
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

"""AutoAttack: four attacks in turn, each on the samples that the others left unbroken."""

from collections.abc import Mapping
from typing import Annotated, Any

from annotated_types import Ge

from advrisk.core.traits import AttackTraits
from advrisk.engine import Probe
from advrisk.engine.objectives import objectives
from advrisk.parts.attacks.apgd import Aim, climb
from advrisk.parts.attacks.fab import fab_t
from advrisk.parts.attacks.moves import towards_classes
from advrisk.parts.attacks.registry import attacks
from advrisk.parts.attacks.square import PAPER_QUERIES, search

_L1_RESTARTS, _L1_TARGETS = 5, 5  # of APGD in l1, where it needs more starts; in other norms one, and all targets
_P_INIT = 0.8


def _passes(settings: Mapping[str, Any], classes: int) -> tuple[int, int]:
    """The sum of the four, in the norm that takes the most."""
    steps, targets = settings["steps"], settings["targets"]
    by_attack: dict[str, dict[str, Any]] = {
        "apgd": {"steps": steps, "restarts": _L1_RESTARTS},
        "apgd-t": {"steps": steps, "targets": targets},
        "fab-t": {"steps": steps, "targets": targets, "restarts": 1},
        "square": {"queries": settings["queries"]},
    }
    counts = {name: attacks.get(name).traits.passes for name in by_attack}
    passes = [count(by_attack[name], classes) for name, count in counts.items() if count is not None]
    return sum(forward for forward, _ in passes), sum(backward for _, backward in passes)


@attacks.register(
    "autoattack",
    traits=AttackTraits(
        needs="gradients",
        norms=("linf", "l2", "l1"),
        passes=_passes,
        use_when="others must be able to compare the verdict: is there a success within eps, whatever it costs?",
        within_eps=False,  # FAB walks beyond it
        random=True,
    ),
    version=2,
)
def autoattack(
    probe: Probe,
    *,
    steps: Annotated[int, Ge(2)] = 100,
    targets: Annotated[int, Ge(1)] = 9,
    queries: Annotated[int, Ge(1)] = 5000,
) -> None:
    """AutoAttack, standard version (Croce & Hein 2020, arXiv:2003.01690; in l1: Croce & Hein 2021, arXiv:2103.01208).

    APGD on the cross-entropy, APGD towards the best wrong classes on the difference of logits ratio, FAB towards the
    same classes, and Square. With `keep: first` each attacks only the samples that the ones before it left unbroken.
    Square's sizes fall as if it had 10,000 queries. The ratio needs four classes; for fewer, the objective is the
    margin.
    """
    restarts, aimed = (_L1_RESTARTS, min(targets, _L1_TARGETS)) if probe.norm == "l1" else (1, targets)
    for _ in range(restarts):
        climb(probe, Aim(probe.active(), objective="ace"), steps)
    objective = _aimed_objective(probe)
    for rows, towards in towards_classes(probe, aimed):
        climb(probe, Aim(rows, towards, objective), steps)
    fab_t(probe, steps=steps, targets=targets)
    search(probe, queries, _P_INIT, schedule=PAPER_QUERIES)


def _aimed_objective(probe: Probe) -> str:
    _, fewest = objectives.get("dlr").traits.classes
    return "dlr" if probe.model.n_classes >= fewest else "margin"

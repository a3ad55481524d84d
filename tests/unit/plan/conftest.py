"""Parts that only say what they are: planning runs none of them."""

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Annotated, Any

import pytest
from annotated_types import Ge

from advrisk.core.errors import StudyError
from advrisk.core.registries import Registries
from advrisk.core.registry import Registry
from advrisk.core.traits import AttackTraits, CorruptionTraits, Norm, ObjectiveTraits, Resolved, SourceTraits
from advrisk.study import StudySpec, study_from


def one_pass(_: object, __: int) -> tuple[int, int]:
    return 1, 1


def resolve(params: Mapping[str, Any], norm: Norm | None, eps: float | None) -> Resolved:
    """A parameter `method` of up to three words: needs, and `away` or `towards` where it leads one way only."""
    needs, *only = params["method"].split()
    if eps == 0:
        raise StudyError("nothing fits into nothing")
    return Resolved({**params, "version": "1.2"}, needs, away=only != ["towards"], towards=only != ["away"])


@pytest.fixture
def registries() -> Registries:
    made: dict[str, Any] = {field.name: Registry(field.name) for field in fields(Registries)}
    found = Registries(**made)

    @found.attacks.register("push", traits=AttackTraits("gradients", ("linf",), one_pass, "always", objective="ace"))
    def push(probe: object) -> None:
        """One step, one norm, no randomness."""

    @found.attacks.register(
        "walk",
        traits=AttackTraits(
            "gradients", ("linf", "l2", "l1"), one_pass, "often", objective="ace", keep="first", random=True
        ),
        version=2,
    )
    def walk(
        probe: object,
        *,
        steps: Annotated[int, Ge(1)] = 40,
        size: float | None = None,
        start: bool = True,
        widths: tuple[int, ...] = (1, 2),
    ) -> None:
        """Several steps, several norms, a random start."""

    @found.attacks.register(
        "guess",
        traits=AttackTraits("labels", ("l2",), one_pass, "seldom", keep="smallest", within_eps=False, needs_eps=False),
    )
    def guess(probe: object) -> None:
        """Needs labels only, looks for the smallest distance, has no objective."""

    @found.corruptions.register("fog", traits=CorruptionTraits("misty", "weather", random=False, inputs="images"))
    def fog(*, density: int = 1) -> None:
        """The same every time."""

    @found.corruptions.register("noise", traits=CorruptionTraits("grainy", "noise", levels={"sigma": (0.1, 0.2, 0.3)}))
    def noise(*, sigma: float) -> None:
        """Another draw every time."""

    @found.attacks.register(
        "aim", traits=AttackTraits("gradients", ("l2",), one_pass, "with a target", objective="ace", aims=True)
    )
    def aim(probe: object) -> None:
        """Climbs towards classes of its own choice."""

    @found.attacks.register(
        "turn", traits=AttackTraits("labels", (), one_pass, "upright", keep="strongest", needs_eps=False, images=True)
    )
    def turn(probe: object, *, angle: float = 30.0) -> None:
        """For images only; no norm measures what it does."""

    @found.attacks.register("few", traits=AttackTraits("scores", ("l0",), one_pass, "few features"))
    def few(probe: object) -> None:
        """Counts features."""

    @found.attacks.register(
        "transfer", traits=AttackTraits("labels", ("linf", "l2"), one_pass, "from elsewhere", needs_eps=False)
    )
    def transfer(probe: object) -> None:
        """Takes over what another arm crafted."""

    @found.attacks.register(
        "borrow",
        traits=AttackTraits(
            "labels", ("l2",), None, "elsewhere", keep="last", needs_eps=False, accounting="batch", resolve=resolve
        ),
    )
    def borrow(probe: object, *, method: str, settings: Mapping[str, Any] | None = None) -> None:
        """What it needs, and where it leads, depends on its name."""

    for name, traits in {
        "ace": ObjectiveTraits("always", targeted=True),
        "kl": ObjectiveTraits("away from the clean prediction", from_clean=True),
        "ratio": ObjectiveTraits("logits only", targeted=True, logits=True, classes=(3, 4)),
    }.items():
        found.objectives.register(name, traits=traits)(lambda scores, goal: None)

    @found.presets.register("quick", traits=SourceTraits("in a hurry"))
    def quick(*, norm: str = "linf", eps: tuple[float, ...], steps: int = 5) -> list[dict[str, Any]]:
        return [{"attack": "walk", "norm": norm, "eps": list(eps), "steps": steps}, {"corruption": "noise", "sigma": 1}]

    @found.presets.register("fixed", traits=SourceTraits("as in a paper"))
    def fixed() -> list[dict[str, Any]]:
        return [{"attack": "walk", "norm": "l2", "eps": [1, 2]}]

    @found.presets.register("moved", traits=SourceTraits("from elsewhere"))
    def moved(*, origin: str) -> list[dict[str, Any]]:
        return [{"attack": "transfer", "from": origin, "arm": {"attack": "walk", "norm": "l2", "eps": 1}}]

    @found.presets.register("broken", traits=SourceTraits("never"))
    def broken() -> list[dict[str, Any]]:
        return [{"attack": "walk", "norm": "l7", "eps": 1}]

    return found


@pytest.fixture
def study() -> Callable[..., StudySpec]:
    """A study of the given arms; other keys as given."""

    def make(*arms: dict[str, Any], **keys: Any) -> StudySpec:
        content: dict[str, Any] = {
            "name": "signs",
            "data": {"source": "digits", "evaluate": 10},
            "models": {"plain": {"source": "torch"}},
            "arms": list(arms) or [{"attack": "push", "eps": 0.1}],
        }
        return study_from(content | keys)

    return make

"""Mistakes that are reported before data and models are loaded."""

from typing import Any

import pytest

from advrisk.core.errors import StudyError
from advrisk.parts import REGISTRIES
from advrisk.run.checks.written import refuse_miswritten
from advrisk.study import study_from

STUDY: dict[str, Any] = {
    "name": "written",
    "data": {"source": "digits", "evaluate": 10},
    "models": {"plain": {"source": "demo", "name": "plain"}, "other": {"source": "demo", "name": "trades"}},
    "arms": [{"attack": "pgd", "norm": "linf", "eps": 0.1}],
}


def _complaints(**changed: Any) -> list[str]:
    with pytest.raises(StudyError) as caught:
        refuse_miswritten(study_from(STUDY | changed), REGISTRIES)
    return str(caught.value).splitlines()


def test_a_study_without_mistakes_passes() -> None:
    refuse_miswritten(study_from(STUDY | {"gate": ["robust_accuracy.plain at 0.1 >= 0.5"]}), REGISTRIES)


def test_every_part_of_a_study_is_checked_in_one_go() -> None:
    found = _complaints(
        data={"source": "digitz", "evaluate": 10},
        models={"plain": {"source": "demo", "nam": "plain"}},
        defences={"safe": {"of": "plain", "name": "jpeg", "quality": 0}},
        detectors=["lidd", {"detector": "lid", "neighbours": "many"}],
        measures=["clevr"],
        scenarios={"town": {"wet": {"weight": -1}}},
        search=[{"attack": "nes", "norm": "linf", "eps": 0.1}],
    )
    fields = ("data:", "models.plain:", "defences.safe:", "detectors[0]:", "detectors[1]:", "measures[0]:", "search:")
    for field in (*fields, "scenarios.town.wet"):
        assert sum(f"<study>: {field}" in line for line in found) == 1, (field, found)


def test_every_arm_and_every_requirement_is_checked() -> None:
    arms = [{"attack": "pgd", "norm": "linf"}, {"attack": "pgd", "norm": "l0", "eps": 1}, STUDY["arms"][0]]
    needs, has_no_norm = _complaints(arms=arms)
    assert "arms[0]: pgd needs eps" in needs
    assert "arms[1]: pgd has no norm l0" in has_no_norm
    unknown, untried = _complaints(gate=["robust_accuracy.plane at 0.1 >= 0.5", "broken.plain at 0.5 <= 0.2"])
    assert "gate[0]" in unknown
    assert "gate[1]" in untried

"""From the lines of `measures` to configured measures, and what is refused before anything runs."""

import re
from typing import Any

import pytest

from advrisk.core.errors import StudyError
from advrisk.core.registries import Registries
from advrisk.core.traits import MeasureTraits
from advrisk.plan import ModelCard, expand_measures, outline_plan
from advrisk.study import StudySpec, study_from


@pytest.fixture
def known(registries: Registries) -> Registries:
    @registries.measures.register("steepness", traits=MeasureTraits("always"), version=2)
    def steepness(*, points: int = 10, norm: str = "l2") -> float:
        """Needs gradients."""

    @registries.measures.register("surprise", traits=MeasureTraits("labels are all there is", needs="labels"))
    def surprise() -> float:
        """Needs labels."""

    return registries


def study(*measures: Any) -> StudySpec:
    return study_from(
        {
            "name": "a",
            "data": {"source": "digits", "evaluate": 1},
            "models": {"plain": {"source": "torch"}},
            "arms": [{"corruption": "fog"}],
            "measures": list(measures),
        }
    )


def test_names_say_what_differs_from_the_defaults(known: Registries) -> None:
    found = expand_measures(study("steepness", {"name": "steepness", "points": [20, 30]}, "surprise"), known)
    assert [one.readable for one in found] == ["steepness", "steepness,points=20", "steepness,points=30", "surprise"]
    assert [dict(one.params) for one in found][1] == {"points": 20, "norm": "l2"}
    assert all(re.fullmatch(r"[^@]+@[0-9a-f]{8}", one.id) for one in found)
    assert len({one.id for one in found}) == 4


def test_how_many_samples_is_no_part_of_the_name(known: Registries) -> None:
    """So that more of them can be asked for later."""
    (few,) = expand_measures(study({"name": "steepness", "samples": 5}), known)
    (every,) = expand_measures(study("steepness"), known)
    assert few.id == every.id
    assert (few.samples, every.samples) == (5, None)


@pytest.mark.parametrize(("samples", "most"), [((5, 9, 7), 9), ((5, None, 7), None)])
def test_the_same_one_twice_is_taken_where_either_asks_for_it(
    known: Registries, samples: tuple[int | None, ...], most: int | None
) -> None:
    lines = [{"name": "steepness"} | ({"samples": n} if n else {}) for n in samples]
    (one,) = expand_measures(study(*lines), known)
    assert one.samples == most


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("stepness", "measures[0]: no measures called 'stepness'; did you mean 'steepness'?"),
        ({"name": "steepness", "point": 3}, "measures[0]: steepness has no parameter 'point'; did you mean 'points'?"),
        ({"name": "steepness", "points": "many"}, "measures[0]: steepness.points: a whole number is needed"),
        ({"points": 3}, "measures[0].name: is missing"),
        (7, "must be a name, or a mapping with a name and parameters; found 7"),
        ({"name": "steepness", "samples": 0}, "measures[0].samples"),
    ],
)
def test_mistakes_are_named_with_their_place(known: Registries, line: Any, complaint: str) -> None:
    with pytest.raises(StudyError, match=re.escape(complaint)):
        expand_measures(study(line), known)


def test_a_model_that_cannot_answer_is_refused_before_anything_runs(known: Registries) -> None:
    labels, full = ModelCard("boxed", "d1", "labels", 3), ModelCard("open", "d2", "gradients", 3)
    outline_plan(study("surprise"), known, models=[labels, full])
    outline_plan(study("steepness"), known, models=[full])
    complaint = (
        "measures[0]: steepness needs gradients of a model, but boxed gives labels only; remove it, or that model"
    )
    with pytest.raises(StudyError, match=re.escape(complaint)):
        outline_plan(study("steepness"), known, models=[full, labels])

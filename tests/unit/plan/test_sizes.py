"""An eps that means nothing on the data."""

from typing import Any

import pytest

from advrisk.core.errors import StudyError
from advrisk.core.extent import Extent
from advrisk.parts import REGISTRIES
from advrisk.plan import refuse_sizes, size_doubts
from advrisk.study import Source, study_from

UNIT = Extent(0.0, 1.0, {"l0": 64.0, "l1": 64.0, "l2": 8.0, "linf": 1.0})
BYTES = Extent(0.0, 255.0, {"l0": 64.0, "l1": 64 * 255.0, "l2": 8 * 255.0, "linf": 255.0})


def study(**content: Any) -> Any:
    base = {
        "name": "sizes",
        "data": {"source": "digits", "evaluate": 8},
        "models": {"net": {"source": "object"}},
        "arms": [{"attack": "fgsm", "norm": "linf", "eps": 0.1}],
    }
    return study_from(base | content, Source(lines={("arms", 1, "eps"): 7}))


def arms(*entries: dict[str, Any]) -> Any:
    return study(arms=[{"attack": "fgsm", "norm": "linf", "eps": 0.1}, *entries])


PGD: dict[str, Any] = {"attack": "pgd", "norm": "linf"}


@pytest.mark.parametrize(
    ("asked", "complaint"),
    [
        (arms(PGD | {"eps": 8}),
         r"<study>:7: arms\[1\].eps: found 8 on data in \[0, 1\];.* 1 in linf; did you mean 8/255\?"),
        (arms(PGD | {"eps": [0.1, 1.01]}), "found 1.01 on data"),
        (arms(PGD | {"norm": "l2", "eps": 8.1}), "farther apart than 8 in l2"),
        (arms(PGD | {"norm": ["l2", "linf"], "eps": 2}), "than 1 in linf"),
        (arms(PGD | {"norm": "l1", "eps": 65}), "than 64 in l1"),
        (arms({"attack": "pixel", "eps": 65}), "found 65 in l0, which counts features, and inputs have 64"),
        (arms({"preset": "autoattack", "eps": [8]}), r"arms\[1\].eps: found 8"),
        (arms({"attack": "transfer", "from": "net", "arm": PGD | {"eps": 8}}), r"arms\[1\].arm.eps: found 8"),
        (study(detectors=[{"name": "nss", "arms": [PGD | {"eps": 8}]}]), r"detectors\[0\].arms\[0\].eps: found 8"),
        (study(search=[PGD | {"eps": 8, "over": {"steps": [1, 9]}}]), r"search\[0\].eps: found 8"),
        (study(search=[PGD | {"over": {"eps": [0.1, 8]}}]), r"search\[0\].over.eps: found 8"),
        (study(assess={"damage": {"evasion": 4}}), r"assess.damage.evasion: found 4 .* did you mean 4/255\?"),
        (study(assess={"damage": {"thresholds": [0.1, 8]}}), r"assess.damage.thresholds: found 8"),
    ],
)  # fmt: skip
def test_a_size_beyond_the_data_is_refused_with_its_line(asked: Any, complaint: str) -> None:
    with pytest.raises(StudyError, match=complaint):
        refuse_sizes(asked, REGISTRIES, UNIT)


@pytest.mark.parametrize(
    "entry",
    [
        PGD | {"eps": [0, "8/255", 1]},
        PGD | {"norm": "l2", "eps": 8},
        {"attack": "deepfool", "norm": "l2"},
        {"attack": "pixel", "eps": 64},
        {"preset": "damage-paper"},  # which has 3 in it, as the paper
    ],
)
def test_others_are_not(entry: dict[str, Any]) -> None:
    refuse_sizes(arms(entry), REGISTRIES, UNIT)
    refuse_sizes(arms(PGD | {"eps": 8}), REGISTRIES, BYTES)


def test_a_scale_has_its_own_units() -> None:
    scaled = Extent(0.0, 1.0, {"l0": 4.0, "l1": 40.0, "l2": 20.0, "linf": 10.0}, images=False, unit_scale=False)
    refuse_sizes(arms(PGD | {"eps": 8}), REGISTRIES, scaled)
    with pytest.raises(StudyError, match=r"found 11 on data in \[0, 1\], in units of its scale; .*; write at most 10"):
        refuse_sizes(arms(PGD | {"eps": 11}), REGISTRIES, scaled)


def test_a_size_for_unit_data_on_bytes_is_doubted() -> None:
    asked = arms(PGD | {"eps": "8/255"})
    (doubt,) = [text for text in size_doubts(asked, REGISTRIES, BYTES) if "arms[1]" in text]
    assert doubt == (
        "<study>:7: arms[1].eps: found 0.03137 on data in [0, 255], less than half a gray level; did you mean 8?"
    )
    assert size_doubts(asked, REGISTRIES, UNIT) == []
    assert size_doubts(study(arms=[PGD | {"eps": 8}]), REGISTRIES, BYTES) == []

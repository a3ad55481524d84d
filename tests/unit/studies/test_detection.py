"""`python -m studies.detection` on a small run: what the interface says is printed, drawn and written into a page."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from advrisk import Run, Study
from studies import detection
from studies.detection_damage import adaptive_arms, damage
from studies.detection_findings import findings
from studies.detection_sections import survivals
from tests.stamps import restamp

PLACES = "<!-- detection -->\nwritten before\n<!-- /detection -->\nBetween.\n<!-- compared -->\n<!-- /compared -->\n"


class Brightness:
    """Attacks make these images brighter or darker, which this detector notices."""

    def score(self, x: np.ndarray) -> np.ndarray:
        return np.abs(x.mean(axis=(1, 2, 3)) - 0.5)


class Grain:
    def score(self, x: np.ndarray) -> np.ndarray:
        return np.abs(np.diff(x, axis=-1)).mean(axis=(1, 2, 3))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A linear model of 4×4 images: two classes, by the half that is brighter."""
    home = tmp_path_factory.mktemp("detection")
    rng = np.random.default_rng(0)
    x = rng.uniform(0.3, 0.7, (60, 1, 4, 4)).astype(np.float32)
    net = nn.Sequential(nn.Flatten(), nn.Linear(16, 2))
    half = np.tile([1.0, 1.0, -1.0, -1.0], 4).astype(np.float32)
    net.load_state_dict({"1.weight": torch.from_numpy(np.stack([half, -half]) * 4), "1.bias": torch.zeros(2)})
    np.savez(home / "images.npz", x=x, y=np.where((x.reshape(60, 16) @ half) > 0, 0, 1), low=0.0, high=1.0)
    study = {
        "name": "small",
        "device": "cpu",
        "data": {"source": "npz", "path": str(home / "images.npz"), "evaluate": 40, "calibrate": 20, "layout": "nchw"},
        "models": {"linear": {"source": "object"}},
        "arms": [
            {"attack": "pgd", "norm": "linf", "eps": [0.1, 0.3], "objective": ["ace", "gini"], "keep": "last"},
            {"attack": "deepfool", "norm": "l2"},
            {"attack": "adaptive", "norm": "linf", "eps": 0.3, "detector": "grain", "rounds": 1, "steps": 5},
        ],
        "shard": 40,
    }
    modules, detectors = {"linear": net}, {"brightness": Brightness(), "grain": Grain()}
    Study.from_dict(study).run(home / "run", modules=modules, detectors=detectors, workers=1)
    return home / "run"


def test_findings_are_what_the_interface_says(folder: Path) -> None:
    (found,) = findings(folder)
    assessment = Run.open(folder).detection()
    assert (found.name, found.model, found.n, found.accuracy) == ("small", "linear", 40, 1.0)
    assert [each.name for each in found.judged] == [one.name for one in assessment.tables]
    for each, one in zip(found.judged, assessment.tables, strict=True):
        assert each.columns == one.table.average.entries
        assert set(each.norms) == {"linf", "l2"}
        assert each.norms["l2"] == one.table.row("l2 deepfool").entries["multi-armed"]
        assert each.norms["linf"] == one.table.row("linf, average").entries["multi-armed"]
    assert [group.name for group in found.groups] == ["l2 deepfool", "linf 0.1", "linf 0.3"]


def test_damage_is_that_of_the_detector_at_its_threshold(folder: Path) -> None:
    run = Run.open(folder)
    for detector in ("brightness", "grain"):
        (full,) = [one.detector for one in run.detection(detectors=[detector]).tables]
        asked = {"name": detector, "false_alarms": 0.05}
        usual, all_arms = (
            run.damage(norm="linf", detector=asked, arms=arms).models[0].by_detector
            for arms in (["pgd*", "deepfool*"], ["*-*"])
        )
        assert usual is not None
        assert all_arms is not None
        cells = [cell.strip() for cell in damage(run, "linear", [full])[-1].split("   ") if cell.strip()]
        assert cells[:4] == [detector, *map(str, (usual.false_alarms, usual.monte_carlo, usual.any_arm))]
        assert cells[4:] == ([str(all_arms.any_arm)] if detector == "grain" else [])
        assert len(adaptive_arms(run, full)) == (detector == "grain")


def test_what_is_left_once_the_attacker_knows_is_told_of_the_known_detector(folder: Path) -> None:
    (found,) = findings(folder)
    (kept,) = next(each.survival for each in found.judged if each.name == "grain")
    line = survivals(found)[-1]
    assert line.split()[:3] == ["grain", "linf", "0.3"]
    for entry in (kept.without, kept.alone, kept.together):
        assert str(entry.auroc) in line
    assert kept.together.auroc is not None
    assert kept.without.auroc is not None
    assert kept.together.auroc.value <= kept.without.auroc.value
    assert [each.survival for each in found.judged if each.name == "brightness"] == [()]


def test_the_page_holds_what_is_printed(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text(PLACES)
    assert detection.main([str(folder), "--page", str(page)]) == 0
    said, text = capsys.readouterr().out, page.read_text()
    assert "small: linear, 40 samples, 100.0% classified correctly" in said
    assert "### small\n\n```text\nsmall: linear" in text
    told, claims = (text.split(f"<!-- {name} -->\n")[1].split(f"<!-- /{name} -->")[0] for name in detection.PLACES)
    assert told.split("```text\n")[1].split("\n```")[0] in said
    assert claims in said
    assert "written before" not in told


def test_pictures_are_drawn_beside_the_page(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = {}
    monkeypatch.setattr("studies.detection_figure.photograph", drawn.update)
    page = tmp_path / "page.md"
    page.write_text(PLACES)
    assert detection.main([str(folder), "--figures", str(tmp_path / "images"), "--page", str(page)]) == 0
    (figure,) = drawn.values()
    assert list(drawn) == [tmp_path / "images" / "small.png"]
    assert {trace["name"] for trace in figure["data"]} >= {"ACE", "Gini", "multi-armed"}
    assert "](images/small.png)" in page.read_text()
    assert "wrote" in capsys.readouterr().out


@pytest.mark.browser
@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed: the figure was not drawn")
def test_a_picture_is_photographed(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from PIL import Image

    assert detection.main([str(folder), "--figures", str(tmp_path)]) == 0
    with Image.open(tmp_path / "small.png") as picture:
        colours = {colour for _, colour in picture.convert("RGB").getcolors(1_000_000)}
    assert (34, 34, 34) in colours, "the multi-armed marks are missing"
    assert "wrote" in capsys.readouterr().out


@pytest.mark.parametrize(("run", "complaint"), [("nowhere", "nowhere"), ("unscored", "no detector has scored")])
def test_mistakes_are_told_and_the_page_stays(
    folder: Path, tmp_path: Path, run: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text(PLACES)
    if run == "unscored":
        shutil.copytree(folder, tmp_path / run)
        for path in (tmp_path / run).rglob("scores.parquet"):
            path.unlink()
            restamp(path.parent)
    assert detection.main([str(folder), str(tmp_path / run), "--page", str(page)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("studies.detection: ")
    assert complaint in said.err
    assert page.read_text() == PLACES

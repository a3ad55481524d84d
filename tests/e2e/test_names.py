"""Arms and detectors with names: shown everywhere, and renamed without running anything again."""

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from advrisk import Run, Study
from advrisk.ledger import Ledger
from advrisk.run.progress import Progress

from .conftest import Command, study_of

ID = "pgd-linf-0.2-ace,steps=3"


def study(nets: Path, name: str | None, detector: str | None) -> dict[str, Any]:
    """With these names, or with none."""
    called = {"name": name} if name else {}
    kept = {"detector": "feature-squeezing", "bits": 2} | ({"name": detector} if detector else {})
    knowing = {"attack": "adaptive", "norm": "linf", "eps": 0.2, "steps": 2}
    return study_of(nets) | {
        "arms": [
            {"attack": "pgd", "norm": "linf", "eps": 0.2, "steps": 3} | called,
            {"attack": "fgsm", "norm": "linf", "eps": [0.1, "51/255"]} | ({"name": f"{name}-quick"} if name else {}),
            knowing | {"detector": detector or "feature-squeezing,bits=2"},
        ],
        "detectors": [kept],
        "data": {"source": "digits", "evaluate": 24, "calibrate": 24},
        "assess": {"damage": {"arms": [name or ID]}},
        "gate": [f"auroc.{detector}[plain] >= 0"] if detector else [],
    }


@pytest.fixture(scope="module")
def finished(nets: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A run without names, and a copy that was given names afterwards."""
    home = tmp_path_factory.mktemp("names")
    Study.from_dict(study(nets, None, None)).run(home / "plain")
    shutil.copytree(home / "plain", home / "named")
    seen: list[Progress] = []
    Study.from_dict(study(nets, "strong", "squeezed")).run(home / "named", on_progress=seen.append)
    assert max(now.n_cells for now in seen) == 0, "a name decides nothing, so nothing is run again"
    assert max(now.n_to_score for now in seen) == 0
    return home / "plain", home / "named"


def test_rows_stay_and_readers_see_names(finished: tuple[Path, Path]) -> None:
    plain, named = (Run.open(folder) for folder in finished)
    stored = [Ledger.open(folder).outcomes().to_pylist() for folder in finished]
    assert stored[0] == stored[1], "rows are stored by id"
    arms = {row["arm"] for row in named.outcomes().to_pylist()}
    assert {"strong", "strong-quick-0.1", "strong-quick-0.2"} <= arms
    assert not [arm for arm in arms if "feature-squeezing" in arm or arm == ID]
    of_id = {row["sample"]: row["d_linf"] for row in plain.outcomes().to_pylist() if row["arm"] == ID}
    assert of_id == {row["sample"]: row["d_linf"] for row in named.outcomes().to_pylist() if row["arm"] == "strong"}
    assert named.ledger.ids["strong"] == ID


def test_numbers_are_the_same_under_other_names(finished: tuple[Path, Path]) -> None:
    plain, named = (Run.open(folder) for folder in finished)
    before, after = (run.detection().tables for run in (plain, named))
    assert {one.name for one in after} == {"squeezed"}
    assert {one.name for one in before} == {"feature-squeezing,bits=2"}
    assert [one.overall for one in before] == [one.overall for one in after]
    assert [one.table.n_adaptive for one in before] == [one.table.n_adaptive for one in after] == [1] * len(after)
    assert plain.damage().models == named.damage().models
    assert named.gate().results


def test_names_stand_in_terminal_page_files_and_status(
    finished: tuple[Path, Path], advrisk: Command, tmp_path: Path
) -> None:
    folder = str(finished[1])
    for words in (
        ["show", "detection", folder, "--details"],
        ["show", "attacks", folder],
        ["show", "arms", folder],
        ["show", "detection", folder, "--detector", "squeezed", "--arm", "strong*", "--json"],
        ["show", "detection", folder, "--csv", "all.csv"],
        ["status", folder],
        ["status", folder, "--json"],
        ["ledger", "sql", folder, "SELECT DISTINCT arm FROM arms"],
    ):
        said = advrisk(*words, env={"COLUMNS": "200"})
        assert said.returncode == 0, said.stderr
        assert "feature-squeezing,bits" not in said.stdout, words
        assert ID not in said.stdout, words
    with (tmp_path / "all.csv").open(newline="") as file:
        assert {line["detector"].partition("@")[0] for line in csv.DictReader(file)} == {"squeezed"}
    page = Run.open(folder).report(tmp_path / "report.html").read_text()
    visible = page.partition('id="provenance"')[0]
    assert "squeezed" in visible
    assert ID not in visible
    wrong = advrisk("show", "attacks", folder, "--arm", "stronk")
    assert "no arm is called 'stronk'; did you mean 'strong'?" in wrong.stderr


def test_an_arm_that_was_renamed_is_compared_with_itself(finished: tuple[Path, Path]) -> None:
    plain, named = (Run.open(folder) for folder in finished)
    for old, new, name in ((plain, named, "strong"), (named, plain, ID)):
        found = old.compare(new)
        (arms,) = {tuple(names) for names in found.arms.values()}
        assert name in arms
        assert len(arms) == len({row["arm"] for row in new.outcomes().to_pylist()} - {"clean"})
        assert not [note for note in found.notes if "left out" in note]


def test_a_dry_run_and_the_stored_study_have_the_names(
    nets: Path, finished: tuple[Path, Path], advrisk: Command, tmp_path: Path
) -> None:
    kept = yaml.safe_load((finished[1] / "study.yaml").read_text())
    assert kept["arms"][0]["name"] == "strong"
    assert kept["detectors"] == [{"detector": "feature-squeezing", "name": "squeezed", "bits": 2}]
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(study(nets, "strong", "squeezed")))
    said = advrisk("run", "study.yaml", "--dry-run", "--json")
    assert said.returncode == 0, said.stderr
    assert "strong" in json.loads(said.stdout)["by_arm"]

"""`python -m studies.certificate` on two small runs: what the interface says is printed and written into a page."""

import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
import torch
from scipy.stats import binom
from torch import nn

import studies
from advrisk import Run, Study
from studies import certificate
from studies.certificate_figures import curves as figure
from studies.certificate_findings import Findings, findings
from studies.certificate_sections import claims, curves, price, printed, search, sizes
from studies.page import places
from tests.stamps import restamp

PAGE = "# Title\n" + "".join(f"<!-- {name} -->\nold\n<!-- /{name} -->\nBetween.\n" for name in certificate.PLACES)
SIZES = [0.02, 0.4]
N = 120
COUNTED = """
    SELECT count(*) FILTER (outcome = 'success') AS failures, count(*) AS n FROM outcomes JOIN samples USING (sample)
    JOIN (SELECT DISTINCT model, arm, origin FROM arms) USING (model, arm)
    WHERE model = $model AND eps = $eps AND split = 'calibrate' AND origin IN ('study', 'frozen')
"""


def linear(weights: np.ndarray) -> nn.Sequential:
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 2))
    net.load_state_dict({"1.weight": torch.from_numpy(np.stack([weights, -weights])), "1.bias": torch.zeros(2)})
    return net


def study_of(home: Path, **changes: Any) -> dict[str, Any]:
    data = {"source": "npz", "path": str(home / "images.npz"), "layout": "nchw"}
    data |= {"evaluate": 10, "tune": 20, "calibrate": N}
    return {
        "name": "small",
        "device": "cpu",
        "data": data,
        "models": {
            "whole": {"source": "object", "tags": {"training": "all pixels"}},
            "few": {"source": "object", "tags": {"training": "few pixels"}},
        },
        "arms": [{"corruption": "gaussian-noise", "sigma": 0.1}],
        "assess": {"certificate": {"alpha": 0.1, "zeta": 0.05}},
        "shard": 60,
    } | changes


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs on 8×8 images in two classes, by the half that is brighter: `searched` and `stronger`."""
    home = tmp_path_factory.mktemp("certificates")
    rng = np.random.default_rng(0)
    half = np.repeat(np.where(np.arange(8) < 4, 1.0, -1.0)[None], 8, axis=0).astype(np.float32).reshape(-1)
    y = rng.integers(2, size=N + 40)
    x = rng.uniform(0.35, 0.65, (len(y), 1, 8, 8)).astype(np.float32)
    x += (0.12 * (1 - 2 * y)[:, None] * half).reshape(x.shape).astype(np.float32)
    np.savez(home / "images.npz", x=x, y=y, low=0.0, high=1.0)
    entry = {"attack": "nes", "norm": "linf", "eps": SIZES, "steps": 2, "samples": 4, "over": ["sigma", "step_size"]}
    pgd = {"attack": "pgd", "norm": "linf", "eps": SIZES, "steps": 3}
    runs = {
        "searched": study_of(home, search=[entry | {"method": "random", "rounds": 3}]),
        "stronger": study_of(home, name="small-pgd", arms=[pgd]),
    }
    few = half * (np.arange(64) < 16).astype(np.float32)
    for name, study in runs.items():
        modules = {"whole": linear(half), "few": linear(few)}
        Study.from_dict(study).run(home / name, modules=modules, workers=0)
    return home


@pytest.fixture(scope="module")
def found(home: Path) -> Findings:
    return findings(home / "searched", home / "stronger")


def cells(lines: list[str], *names: str) -> list[str]:
    """The row of a table that begins with these words."""
    (row,) = [line.split() for line in lines if line.split()[: len(names)] == list(names)]
    return row[len(names) :]


@pytest.mark.parametrize("model", ["whole", "few"])
@pytest.mark.parametrize("eps", SIZES)
def test_failures_and_p_are_those_of_the_rows(home: Path, found: Findings, model: str, eps: float) -> None:
    row = cells(curves(found), model, f"{eps:g}")
    for place, name in ((0, "searched"), (4, "stronger")):
        counted = Run.open(home / name).query(COUNTED, {"model": model, "eps": eps}).to_pylist()[0]
        assert counted["n"] == N
        assert int(row[place]) == counted["failures"]
        p = binom.cdf(counted["failures"], N, 0.1)
        told = row[place + 2]
        assert p < 1e-4 if told == "<" else float(told) == pytest.approx(p, rel=0.06)
        if told == "<":
            row.pop(place + 3)  # `< 1e-4` is two words


def test_the_largest_sizes_stand_beside_the_clean_error(found: Findings) -> None:
    lines = sizes(found)
    weak, strong = found.both
    for model in ("whole", "few"):
        row = cells(lines, model)
        assert f"{100 * weak.found.of(model).n_wrong / N:.1f}%" in row
        told = ["–" if one.largest(model) is None else f"{one.largest(model):g}" for one in found.both]
        assert row[-4:-2] == told
        assert (strong.largest(model) or 0) <= (weak.largest(model) or 0)
    assert strong.largest("whole") == SIZES[0]  # its margin is far above the smaller size and below the larger one


def test_wrong_answers_are_a_question_of_their_own(found: Findings) -> None:
    for one in found.both:
        for model, right in one.right.items():
            wrong = [each.certificate.wrong for each in one.lists(model) if each.certificate is not None]
            assert list(right.p) == [each.p for each in wrong if each is not None]
            assert (right.largest or 0) <= (one.largest(model) or 0)


def test_a_search_is_told_with_what_its_setting_did_elsewhere(found: Findings) -> None:
    lines = search(found)
    for one in found.searched.searches:
        row = cells(lines, one.model, f"{one.eps:g}")
        assert int(row[0]) == len(one.trials) == 3
        assert int(row[3]) == max(trial.failures for trial in one.trials)
        failures = found.searched.found.of(one.model).of(one.norm, one.eps).attacks[0].failures
        assert row[-1] == f"{100 * failures / N:.1f}%"


def test_the_mean_of_p_is_never_above_the_largest(found: Findings) -> None:
    rows = [re.split(r"\s{2,}", line.strip()) for line in printed(found)[2:]]
    told = [row for row in rows if row[0] in ("whole", "few")]
    assert len(told) == 4
    for row in told:
        mean, largest = (0.0 if text.startswith("<") else float(text) for text in (row[2], row[4]))
        assert mean <= largest
        assert row[5] == ("yes" if largest <= 0.05 else "no")


def test_the_price_counts_passes(home: Path, found: Findings) -> None:
    sql = "SELECT sum(n_forward)::BIGINT AS n FROM outcomes JOIN samples USING (sample) WHERE split = 'tune'"
    n_passes = Run.open(home / "searched").query(sql)["n"][0].as_py()
    assert found.searched.spent.tuning == n_passes
    assert found.stronger.spent.tuning == 0
    assert "12 settings were tried; 50 rounds of one setting each would try 200" in price(found)[-1]


def test_what_differs_is_said(found: Findings) -> None:
    lost = [model for model in ("whole", "few") if found.searched.largest(model) != found.stronger.largest(model)]
    said = claims(found)[0]
    assert all(f"`{model}`" in said for model in lost)
    assert f"({len(lost)} of 2)" in said


def test_the_figure_has_a_line_of_p_and_of_shares_for_each_model(found: Findings) -> None:
    drawn = figure(found)
    named = [line for line in drawn["data"] if line["name"] in ("whole", "few")]
    assert len(named) == 8
    shares = [line for line in named if line["yaxis"] in ("y3", "y4")]
    for line in shares:
        one = found.both[int(line["yaxis"][1:]) - 3]
        assert line["y"] == [each.attacks[0].failures / N for each in one.lists(line["name"])]


def test_everything_is_written_into_the_page(home: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    assert certificate.main([str(home / "searched"), str(home / "stronger"), "--page", str(page)]) == 0
    said, text = capsys.readouterr().out, page.read_text()
    assert text.count("old") == 1  # the picture, which was not asked for
    assert all(line in said for line in text.splitlines() if line.startswith("  "))


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("stronger", "searched"), "has no search"),
        (("searched", "nowhere"), "nowhere"),
        (("unfinished", "stronger"), "is not finished"),
        (("searched", "other"), "different samples"),
        (("searched", "larger"), "different models or sizes"),
    ],
)
def test_runs_that_do_not_fit_leave_the_page_as_it_is(
    home: Path, tmp_path: Path, words: tuple[str, str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    folders = []
    for word in words:
        folder = tmp_path / word
        if word in ("searched", "stronger", "unfinished"):
            shutil.copytree(home / word.replace("unfinished", "searched"), folder)
        if word == "unfinished":
            _lose_a_row(folder)
        if word in ("other", "larger"):
            changes: dict[str, Any] = {"seed": 5} if word == "other" else {}
            arms = [{"attack": "fgsm", "norm": "linf", "eps": SIZES[: 1 if word == "larger" else 2]}]
            modules = {"whole": linear(np.ones(64, np.float32)), "few": linear(np.ones(64, np.float32))}
            Study.from_dict(study_of(home, arms=arms, **changes)).run(folder, modules=modules, workers=0)
        folders.append(str(folder))
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    assert certificate.main([*folders, "--page", str(page)]) == 2
    said = capsys.readouterr().err
    assert said.startswith("studies.certificate: ")
    assert complaint in said
    assert page.read_text() == PAGE


def _lose_a_row(folder: Path) -> None:
    """The last that was written, which is one on samples to calibrate."""
    path = sorted(folder.rglob("outcomes.parquet"))[-1]
    pq.write_table(pq.read_table(path)[:-1], path)
    restamp(path.parent)


def test_the_case_study_has_the_places_that_the_program_fills() -> None:
    page = Path(studies.__file__).parent.parent / "docs" / "case-study-certificate.md"
    assert sorted(places(page.read_text())) == sorted(certificate.PLACES)

"""`python -m studies.damage` prints what the interface says of a made-up run, draws it, and refuses what it cannot."""

import csv
import math
import shutil
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest

from advrisk import Run
from advrisk.ledger.exchange.importing import import_outcomes
from advrisk.risk.convergence import DAMAGE, MEAN, SMALLEST
from advrisk.risk.damage import compare_damage, success_ratio
from advrisk.risk.evasion import threshold
from studies import damage, figures, sections
from studies.page import places

EPS = (0.05, 0.2)
INF = math.inf
# B is ahead of C, and behind it without A (docs/damage-method.md); each sample 25 times.
SWAPPED = {"A": [5, 5, 7, 9], "B": [1, 2, 8, 9], "C": [3, 3, 4, 8]}


def write_run(folder: Path, distances: dict[str, np.ndarray]) -> Path:
    with (folder / "theirs.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["model", "sample", "distance"])
        for model, values in distances.items():
            writer.writerows([model, f"s{place:04}", "" if d == INF else d] for place, d in enumerate(values))
    import_outcomes(folder / "theirs.csv", folder / "run", norm="linf")
    return folder / "run"


@pytest.fixture
def distances() -> dict[str, np.ndarray]:
    """`late` is broken less than `early` at 0.05 and more at 0.2, on every draw of so many samples."""
    rng = np.random.default_rng(0)
    early = np.where(rng.random(150) < 0.5, rng.uniform(0.001, 0.05, 150), INF)
    late = np.where(rng.random(150) < 0.1, 0, rng.uniform(0.06, 0.22, 150))
    return {"early": early, "late": late, "weak": rng.exponential(0.04, 150)}


@pytest.fixture
def run(tmp_path: Path, distances: dict[str, np.ndarray]) -> Path:
    return write_run(tmp_path, distances)


def printed(capsys: pytest.CaptureFixture[str], *words: str | Path) -> list[str]:
    assert damage.main([str(word) for word in words]) == 0
    return capsys.readouterr().out.splitlines()


def rows_after(lines: list[str], start: str) -> dict[str, list[str]]:
    """The table under a sentence, by its first column; cells stand three blanks or more apart."""
    place = next(place for place, line in enumerate(lines) if line.startswith(start))
    head = next(i for i in range(place + 1, len(lines)) if lines[i].startswith("  ") and "   " in lines[i].strip())
    rows = {}
    for line in lines[head + 1 :]:
        if not line.startswith("  "):
            break
        first, *cells = (cell for cell in line.strip().split("   ") if cell.strip())
        rows[first.strip()] = [cell.strip() for cell in cells]
    return rows


def found_order(run: Path) -> list[str]:
    return [row.model for row in Run.open(run).damage().models]


def test_the_decision_table_is_the_assessment(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(capsys, run, "--eps", *map(str, EPS))
    assessment = Run.open(run).damage(thresholds=list(EPS))
    rows = rows_after(lines, "Which model?")
    assert list(rows) == [row.model for row in assessment.models]
    for row in assessment.models:
        assert row.minimal_size is not None
        assert row.mean_size is not None
        size = row.mean_size.estimate
        assert rows[row.model] == [
            str(row.relative_damage),
            f"{row.clean_error_part:.3f}",
            f"{row.probability_best:.1%}",
            "–",  # the file holds no clean rows
            *(f"{ratio.value:.1%}" for ratio in row.success_ratio.values()),
            f"{row.minimal_size.value:.3g}",
            f"{size.value:.3g} [{size.low:.3g}, {size.high:.3g}]",
        ]
        assert f"{row.model}: {row.verdict}." in lines


def test_disagreement_beyond_noise_is_told(
    run: Path, distances: dict[str, np.ndarray], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed(capsys, run, "--eps", *map(str, EPS))
    assert any(
        line.startswith("ASR at 0.05 and at 0.2 disagree on the order of 1 of 3 pairs; for 1 of") for line in lines
    )
    row = rows_after(lines, "ASR at 0.05")["late, early"]
    broken = {(m, eps): np.asarray(distances[m]) <= eps for m in ("late", "early") for eps in EPS}
    for place, eps in zip((0, 2), EPS, strict=True):
        late, early = broken["late", eps], broken["early", eps]
        assert row[place] == f"{late.mean():.1%}, {early.mean():.1%}"
        assert row[place + 1] == f"{(late & ~early).sum()}, {(early & ~late).sum()}"
    assert row[-2] == "< 1e-4"


def test_smallest_sizes_fall_with_the_samples(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = rows_after(printed(capsys, run, "--eps", *map(str, EPS)), "Minimal perturbation size")
    found = sections.findings(run, EPS)
    for model, cells in rows.items():
        band = found.settled.bands[model][SMALLEST]
        places = [int(np.abs(found.settled.n - n).argmin()) for n in (10, 100, 150)]
        assert cells[:3] == [f"{band.middle[p]:.3g} [{band.low[p]:.3g}, {band.high[p]:.3g}]" for p in places]
        medians = [float(cell.split()[0]) for cell in cells[:3]]
        assert medians == sorted(medians, reverse=True)
        assert float(cells[4]) <= float(cells[5])


def test_a_third_model_that_swaps_two_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = write_run(tmp_path, {model: np.tile(np.array(values) / 10, 25) for model, values in SWAPPED.items()})
    lines = printed(capsys, run, "--eps", "0.2", "0.5")
    assert "Without A, the order of B and C reverses." in lines
    comparison = Run.open(run).damage().comparison
    assert comparison is not None
    assert "The order of 1 of 3 pairs can be turned round by leaving out others." in lines
    row = rows_after(lines, "The smallest set that does it")["B, C"]
    assert (row[0], row[2:]) == (str(comparison.difference("B", "C")), ["A"])
    among = rows_after(lines, "Relative damage depends")
    polled = rows_after(lines, "The mean of a row is")["B, C"]
    assert np.mean([float(vote) for vote in polled]) == pytest.approx(comparison.difference("B", "C").value, abs=1e-3)
    assert {model: row[0] for model, row in among.items()} == {
        model: f"{estimate.value:.3f}" for model, estimate in comparison.estimates.items()
    }


def test_damage_under_given_curves_is_the_interfaces(
    run: Path, distances: dict[str, np.ndarray], capsys: pytest.CaptureFixture[str]
) -> None:
    lines = printed(capsys, run, "--eps", *map(str, EPS))
    rows = rows_after(lines, "Damage under given evasion curves")
    for place, curve in enumerate(sections.given_curves(*EPS).values()):
        found = compare_damage(distances, curve, rng=np.random.default_rng(0)).estimates
        assert {model: rows[model][place].split()[0] for model in distances} == {
            model: f"{estimate.value:.3f}" for model, estimate in found.items()
        }
    assert {m: rows[m][0].split()[0] for m in distances} == {
        m: f"{np.mean(np.asarray(d) <= EPS[0]):.3f}" for m, d in distances.items()
    }
    assert "Leaving out any one model changes these numbers by at most 0." in lines
    told = compare_damage(distances, threshold(EPS[0]), rng=np.random.default_rng(0))
    unsure = [pair for pair in combinations(found_order(run), 2) if told.undecided(*pair)]
    named = "; ".join(f"{one}, {other}" for one, other in unsure) or "no pair"
    assert f"Undecided, sees > 0.05: {named}." in lines
    assert "Order depends on the curve: early, late." in lines


def test_half_of_all_changes_of_the_given_size_are_noticed() -> None:
    values = sections.half_noticed(0.1)([0, 0.1, 0.2, 1e6, INF])
    assert values == pytest.approx([1 / (1 + math.exp(-5)), 0.5, 1 / (1 + math.exp(5)), 0, 0])


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["nowhere"], "nowhere"),
        (["RUN"], "has 0 sizes to compare success at; give two with --eps"),
        (["RUN", "--eps", "0.1", "0.1"], "has 1 size to compare"),
        (["RUN", "--eps", "-1", "0.1"], "greater than or equal to 0"),
    ],
)
def test_mistakes_are_told_without_a_traceback(
    run: Path, words: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert damage.main([str(run) if word == "RUN" else word for word in words]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("studies.damage: ")
    assert complaint in said.err


def test_one_model_alone_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    alone = write_run(tmp_path, {"only": np.array([0.1, 0.2])})
    assert damage.main([str(alone), "--eps", "0.1", "0.2"]) == 2
    assert "holds one model" in capsys.readouterr().err


def test_curves_are_drawn_from_the_distances(run: Path, distances: dict[str, np.ndarray]) -> None:
    found = sections.findings(run, EPS)
    psi, *lines = figures.success_and_evasion(found.damage)["data"]
    assert [line["name"] for line in lines] == found.models
    for line in lines:
        assert line["y"] == success_ratio(distances[line["name"]], line["x"]).tolist()
    mean = np.mean([success_ratio(values, psi["x"]) for values in distances.values()], axis=0)
    assert psi["y"] == pytest.approx((1 - mean).tolist())


def test_settling_shows_four_measures_of_every_model(run: Path) -> None:
    found = sections.findings(run, EPS)
    traces = figures.settling(found.settled, found.models)["data"]
    lines = [trace for trace in traces if "name" in trace]
    assert [line["name"] for line in lines] == found.models * 4
    shown = found.settled.n >= 5
    for place, measure in enumerate((DAMAGE, "attack success rate at 0.05", SMALLEST, MEAN)):
        line = lines[place * 3]
        assert line["y"] == found.settled.bands[found.models[0]][measure].middle[shown].tolist()


@pytest.mark.browser
@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed: the figures were not drawn")
def test_figures_are_photographed(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from PIL import Image

    printed(capsys, run, "--eps", *map(str, EPS), "--figures", tmp_path / "drawn")
    assert sorted(path.name for path in (tmp_path / "drawn").iterdir()) == ["run-curves.png", "run-settling.png"]
    for path in (tmp_path / "drawn").iterdir():
        with Image.open(path) as picture:
            colours = {colour for _, colour in picture.convert("RGB").getcolors(1_000_000)}
        assert {(0, 114, 178), (213, 94, 0), (0, 158, 115)} <= colours, "a model's line is missing"


def test_figures_without_a_browser_are_refused(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert damage.main([str(run), "--eps", *map(str, EPS), "--figures", str(tmp_path / "drawn")]) == 2
    assert "chromium" in capsys.readouterr().err
    assert not (tmp_path / "drawn").exists()


def test_every_section_is_written_into_its_place(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = [f"run-{section.__name__}" for section in sections.SECTIONS]
    page = tmp_path / "page.md"
    page.write_text("".join(f"<!-- {name} -->\nold\n<!-- /{name} -->\nBetween.\n" for name in names))
    printed(capsys, run, "--eps", *map(str, EPS), "--page", page)
    found = sections.blocks_of(sections.findings(run, EPS))
    assert page.read_text() == "".join(
        "\n".join([f"<!-- {name} -->", *found[name], f"<!-- /{name} -->", "Between.", ""]) for name in names
    )


def test_the_case_study_has_every_place() -> None:
    page = Path(__file__).parents[3] / "docs" / "case-study-damage.md"
    studies = ("damage-mnist", "damage-cifar10")
    assert set(places(page.read_text())) == {f"{one}-{each.__name__}" for one in studies for each in sections.SECTIONS}

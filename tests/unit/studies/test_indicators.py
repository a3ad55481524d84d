"""`python -m studies.indicators` on a small run: what the interface says is printed, drawn and written into a page."""

import re
import shutil
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import studies
from advrisk import Run, Study
from advrisk.assess.indicators.words import loss_interval, loss_text
from advrisk.ledger.history import remove
from advrisk.risk.indicators import what_if
from studies import indicators
from studies.indicators_figures import all_arms, causes, final_risks, rank_lines, single_indicators
from studies.indicators_findings import Findings, findings
from studies.indicators_orders import agreement, rank_correlation, risk_ranks, turned
from studies.indicators_robustness import columns, hidden
from studies.page import places

PAGE = "# Title\n" + "".join(f"<!-- {name} -->\nold\n<!-- /{name} -->\nBetween.\n" for name in indicators.PLACES)


class Slow(nn.Module):
    """Logits a thousand times as large: the same answers, but the slopes of the cross-entropy are lost in rounding."""

    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 3000 * self.inner(x)


def linear(half: np.ndarray) -> nn.Sequential:
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 2))
    net.load_state_dict({"1.weight": torch.from_numpy(np.stack([half, -half])), "1.bias": torch.zeros(2)})
    return net


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_run(tmp_path_factory.mktemp("indicators"))


def small_run(home: Path, *, success: str = "label") -> Path:
    """Three models of 8×8 images in two classes, by the half that is brighter; one looks at few pixels, one hides."""
    rng = np.random.default_rng(0)
    half = np.repeat(np.where(np.arange(8) < 4, 1.0, -1.0)[None], 8, axis=0).astype(np.float32).reshape(-1)
    few = half * (np.arange(64) < 16)
    x = rng.uniform(0.35, 0.65, (40, 1, 8, 8)).astype(np.float32)
    y = rng.integers(2, size=40)
    x += (0.12 * (1 - 2 * y)[:, None] * half).reshape(40, 1, 8, 8).astype(np.float32)
    y[:3] = 1 - y[:3]  # wrong without an attack
    np.savez(home / "images.npz", x=x, y=y, low=0.0, high=1.0)
    study = {
        "name": "small",
        "device": "cpu",
        "data": {"source": "npz", "path": str(home / "images.npz"), "evaluate": 40, "layout": "nchw"},
        "models": {name: {"source": "object"} for name in ("whole", "few", "hiding")},
        "arms": [
            {"corruption": ["rain", "fog", "rotation", "gaussian-noise", "shot-noise"], "level": [3, 5]},
            {"attack": "pgd", "norm": "linf", "eps": [0.05, 0.3], "steps": 5},
            {"attack": "square", "norm": "linf", "eps": 0.3, "queries": 30},
            {"attack": "transfer", "from": "whole", "arm": {"attack": "pgd", "norm": "linf", "eps": 0.3, "steps": 5}},
            {"attack": "deepfool", "norm": "l2"},
            {"attack": "fmn", "norm": "linf", "steps": 10},
        ],
        "success": success,
        "losses": ["misclassified", "confidence-drop"],
        "scenarios": {
            "street": {
                "weather": {"weight": 0.5, "dirichlet": True, "of": {"rain": 200, "fog": 100, "clean": 65}},
                "noise": {"weight": 0.1, "of": ["gaussian-noise", "shot-noise"]},
            },
            "street-attacked": {"rotation": 0.4, "attacks": {"weight": 0.2, "arms": ["pgd-linf-0.3*", "square*"]}},
        },
        "shard": 40,
    }
    modules = {"whole": linear(half), "few": linear(few), "hiding": Slow(linear(half))}
    Study.from_dict(study).run(home / "run", modules=modules, workers=1)
    return home / "run"


@pytest.fixture(scope="module")
def found(folder: Path) -> Findings:
    return findings(folder)


def rows_after(lines: list[str], start: str) -> dict[str, list[str]]:
    """The table under a sentence, by its first column; cells stand three blanks or more apart."""
    place = next(place for place, line in enumerate(lines) if line.startswith(start))
    head = next(i for i in range(place, len(lines)) if re.match(r"  (model|branch|indicator) ", lines[i]))
    rows = {}
    for line in lines[head + 1 :]:
        if not line.startswith("  "):
            break
        first, *cells = re.split(r" {3,}", line.strip())
        rows[first] = cells
    return rows


def test_risks_are_what_the_interface_says(folder: Path, found: Findings) -> None:
    assessment = Run.open(folder).indicators()
    rows = rows_after(indicators.risks(found), "Risk under the loss")
    assert list(rows) == [one.model for one in assessment.of("street").models]
    for name, (street, first, attacked, second) in rows.items():
        for scenario, text, rank in (("street", street, first), ("street-attacked", attacked, second)):
            result = assessment.of(scenario)
            assert text == loss_interval(result.of(name).risk, (0.0, 1.0))
            assert int(rank) == 1 + sum(one.risk.value < result.of(name).risk.value for one in result.models)


def test_every_loss_of_a_scenario_is_told_with_its_rank(folder: Path, found: Findings) -> None:
    assessment = Run.open(folder).indicators()
    rows = rows_after(indicators.losses(found), "street-attacked: mean loss")
    for model, cells in rows.items():
        risks = [assessment.of("street-attacked", loss).of(model).risk for loss in ("misclassified", "confidence-drop")]
        assert [cell.rpartition(" (")[0] for cell in cells] == [loss_text(risk.value, (0.0, 1.0)) for risk in risks]


def test_contributions_are_means_over_the_models(folder: Path, found: Findings) -> None:
    result = Run.open(folder).indicators().of("street")
    rows = rows_after(indicators.drivers(found), "street: the largest contributors")
    whole = np.mean([one.risk.value for one in result.models])
    assert set(rows) == {leaf.path for leaf in result.models[0].contributors}
    for path, cells in rows.items():
        part = np.mean([one.tree.at(path).contribution.value for one in result.models])
        assert cells[-2:] == [loss_text(float(part), (0.0, 1.0)), f"{100 * part / whole:.0f} %"]
        given = {one.model: one.tree.at(path).value.value for one in result.models}
        assert cells[1].rpartition(" ")[0].split()[1] == loss_text(min(given.values()), (0.0, 1.0)).split()[0]


def test_what_ifs_are_scenarios_with_other_weights(folder: Path, found: Findings) -> None:
    run = Run.open(folder)
    stated = next(one.scenario for one in run.indicators().results if one.scenario.name == "street")
    rainy = what_if(stated, {"weather.rain": 240, "weather.clean": 33})
    expected = run.indicators(scenarios=[rainy], losses=["misclassified"]).results[0]
    rows = rows_after(indicators.what_ifs(found), "street, what if?")
    for model in found.models:
        assert rows[model][1].rpartition(" (")[0] == loss_text(expected.of(model).risk.value, (0.0, 1.0))
    assert [question.words for question, _ in found.answers] == [
        "rain on twice as many days",
        "twice as much noise",
        "one input in ten tampered with",
        "nobody attacks",
    ]


def test_robustness_stands_beside_the_risks(folder: Path, found: Findings) -> None:
    run = Run.open(folder)
    distances = run.damage(norm="linf", arms=["*linf*"]).distances.by_model
    numbers = {one.name: one for one in columns(found)}
    assert list(numbers) == ["mean distance", "ρ1", "ρ2 at 0.05", "ρ2 at 0.3"]
    for eps in (0.05, 0.3):
        assert numbers[f"ρ2 at {eps}"].danger == {m: float(np.mean(own <= eps)) for m, own in distances.items()}
    for model, own in distances.items():
        sized = own[(own > 0) & np.isfinite(own)]
        assert numbers["mean distance"].danger[model] == pytest.approx(-sized.mean())
        assert numbers["ρ1"].danger[model] == pytest.approx(-own[np.isfinite(own)].mean())
    rows = rows_after(indicators.robustness(found), "Robustness numbers")
    assert {model: int(cells[-1]) for model, cells in rows.items()} == risk_ranks(found.found.of("street-attacked"))


def test_a_model_that_hides_its_slopes_is_told(found: Findings) -> None:
    told = indicators.masked(found)
    assert "hiding" in hidden(found)
    assert "whole" not in hidden(found)
    assert any(line.startswith("hiding: the best attack on its cross-entropy") for line in told)
    assert any(line.startswith("Flag `zero-gradients`: hiding (") for line in told)
    rows = rows_after(told, "Wrong under each attack within 0.3")
    shares = {(row["model"], row["arm"]): row["share"] for row in found.run.arms()}
    arms = [attack.arm for attack in found.attacks]
    assert len(arms) == 3
    for model, cells in rows.items():
        assert cells[:-1] == [loss_text(shares[model, arm], (0.0, 1.0)) for arm in arms]


def test_orders_are_compared_pair_by_pair(found: Findings) -> None:
    street, attacked = found.ranked
    decided = {(p.lower, p.higher) for p in street.pairs if not p.undecided}
    other = {(p.lower, p.higher) for p in attacked.pairs if not p.undecided}
    assert turned(street, attacked) == [pair for pair in combinations([m.model for m in street.models], 2)
                                        if pair in decided and pair[::-1] in other]  # fmt: skip
    risk = {one.model: one.risk.value for one in street.models}
    same = agreement(street.pairs, risk)
    assert (same.same, same.opposite, same.tied) == (len(decided), (), 0)
    assert set(agreement(street.pairs, {m: -value for m, value in risk.items()}).opposite) == decided
    assert agreement(street.pairs, dict.fromkeys(risk, 1.0)).tied == len(decided)


def test_rank_correlation_counts_pairs() -> None:
    rng = np.random.default_rng(1)
    a, b = ({f"m{place}": float(value) for place, value in enumerate(rng.permutation(9))} for _ in range(2))
    signs = [np.sign((a[i] - a[j]) * (b[i] - b[j])) for i, j in combinations(a, 2)]
    found = rank_correlation(a, b)
    assert found is not None
    assert found.tau == pytest.approx(np.mean(signs))
    assert rank_correlation(a, dict.fromkeys(a, 0.0)) is None


def test_figures_show_the_numbers(found: Findings) -> None:
    result = found.ranked[0]
    bars = [trace for trace in final_risks(found)["data"] if trace["type"] == "bar" and trace["xaxis"] == "x1"]
    summed = np.sum([trace["x"] for trace in bars], axis=0)
    assert summed == pytest.approx([result.of(model).risk.value for model in found.models])
    indicator = single_indicators(found)
    assert [note["text"] for note in indicator["layout"]["annotations"]] == [
        f"<b>{name}</b>" for name in ("rain", "rotation", "gaussian-noise", "attacks")
    ]
    means = [found.uniform.branches["weather.rain"].estimates[model].value for model in found.models]
    assert indicator["data"][0]["x"] == means
    assert {trace["name"] for trace in causes(found)["data"]} >= {"weather", "sensor", "noise", "shot-noise"}
    (heat,) = all_arms(found)["data"]
    assert "deepfool-l2" not in heat["y"]
    assert heat["z"][heat["y"].index("fog 5")] == [
        found.found.arms["misclassified"][model]["fog-level-5"].value for model in found.models
    ]
    lines = {trace["name"]: trace for trace in rank_lines(found)["data"]}
    assert {model: int(line["text"][-1]) for model, line in lines.items()} == risk_ranks(found.ranked[-1])


def test_the_page_holds_what_is_printed_and_stays_as_it_is_the_second_time(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn: dict[Path, object] = {}
    monkeypatch.setattr("studies.indicators_figures.photograph", lambda figures, **_: drawn.update(figures))
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    words = [str(folder), "--figures", str(tmp_path / "images"), "--page", str(page)]
    assert indicators.main(words) == 0
    said, text = capsys.readouterr().out, page.read_text()
    for name in indicators.SECTIONS:
        block = text.split(f"<!-- {name} -->\n```text\n")[1].split(f"\n```\n<!-- /{name} -->")[0]
        assert block in said
    assert text.split("<!-- compared -->\n")[1].split("<!-- /compared -->")[0] in said
    assert "](images/small-risks.png)" in text
    assert sorted(path.name for path in drawn) == [
        f"small-{kind}.png" for kind in ("arms", "causes", "indicators", "ranks", "risks")
    ]
    assert "old" not in text.split()
    assert indicators.main([str(folder), "--page", str(page)]) == 0, "pictures stay where none are drawn"
    assert page.read_text() == text
    assert "wrote" in capsys.readouterr().out


@pytest.mark.browser
@pytest.mark.skipif(shutil.which("chromium") is None, reason="chromium is not installed: the figures were not drawn")
def test_pictures_are_photographed(found: Findings, tmp_path: Path) -> None:
    from PIL import Image

    from studies.indicators_figures import draw

    for path in draw(found, tmp_path).values():
        with Image.open(path) as picture:
            assert len(picture.convert("RGB").getcolors(1_000_000)) > 3, f"{path.name} is empty"


@pytest.mark.parametrize(
    ("kind", "complaint"),
    [("nowhere", "nowhere"), ("unfinished", "cells are done; finish the run"), ("unstated", "states no scenario")],
)
def test_mistakes_are_told_and_the_page_stays(
    folder: Path, tmp_path: Path, kind: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.md"
    page.write_text(PAGE)
    run = tmp_path / kind
    if kind != "nowhere":
        shutil.copytree(folder, run)
    if kind == "unfinished":
        for path in sorted(run.rglob("cells.parquet"))[:1]:
            shutil.rmtree(path.parent)
            remove(run / "ledger", [path.parent.name])
    if kind == "unstated":
        text = (run / "study.yaml").read_text()
        (run / "study.yaml").write_text(re.sub(r"(?ms)^scenarios:\n( .*?\n)+", "", text))
    assert indicators.main([str(run), "--page", str(page)]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("studies.indicators: ")
    assert complaint in said.err
    assert page.read_text() == PAGE


def test_the_case_study_has_the_places_that_the_program_fills() -> None:
    page = Path(studies.__file__).parent.parent / "docs" / "case-study-indicators.md"
    assert sorted(places(page.read_text())) == sorted(indicators.PLACES)


def test_samples_that_are_wrong_without_an_attack_are_wrong_under_each(found: Findings, tmp_path: Path) -> None:
    """Also where success is judged by the prediction, so that an attack may make them right."""
    changed = findings(small_run(tmp_path, success="prediction")).wrong
    assert changed["clean"]["whole"].value == 3 / 40
    assert changed == found.wrong

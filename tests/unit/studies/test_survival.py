"""`python -m studies.survival` on two small runs: what their ledgers say is fitted, told, drawn, and written down."""

import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

import studies
from advrisk import Study
from advrisk.core.errors import RunError
from advrisk.risk.survival import fit_survival
from advrisk.study import load_recipe
from studies import survival, survival_clock
from studies.survival_figures import factor_plot, network_dots, survival_curves
from studies.survival_findings import PASSES, SECONDS, Findings, Reading, defence_of, depth_factor, findings
from studies.survival_networks import arm_survival, kinds_of, network_survival, spent_per_pass
from studies.survival_pictures import curves, dots
from studies.survival_sections import best_family, costs, defences, factors_of, families, networks, one_step, rows

PAGE = "# Title\n" + "".join(f"<!-- {name} -->\nSTALE\n<!-- /{name} -->\nBetween.\n" for name in survival.PLACES)
DEPTHS, NOISES = (8, 14, 20), (0, 0.5)
N = 36


def linear(rng: np.random.Generator, *, strength: float) -> nn.Sequential:
    """Class 0 where the left half is brighter, with some luck of its own."""
    half = np.repeat(np.where(np.arange(8) < 4, 1.0, -1.0)[None], 8, axis=0).astype(np.float32).reshape(-1)
    weight = strength * half + rng.normal(0, 0.4, 64).astype(np.float32)
    net = nn.Sequential(nn.Flatten(), nn.Linear(64, 2))
    net.load_state_dict({"1.weight": torch.from_numpy(np.stack([weight, -weight])), "1.bias": torch.zeros(2)})
    return net


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run `networks` of twelve linear models, two of each kind, and a run `defences` of two, bare and defended."""
    folder = tmp_path_factory.mktemp("survival")
    rng = np.random.default_rng(0)
    y = np.arange(N) % 2
    x = rng.uniform(0.35, 0.65, (N, 1, 8, 8)).astype(np.float32)
    x += 0.1 * (1 - 2 * y)[:, None, None, None] * np.where(np.arange(8) < 4, 1, -1).astype(np.float32)
    np.savez(folder / "images.npz", x=x, y=y, low=0.0, high=1.0)
    study = {
        "name": "networks",
        "device": "cpu",
        "data": {"source": "npz", "path": str(folder / "images.npz"), "evaluate": N, "layout": "nchw"},
        "models": {
            f"d{depth}-{noise}-{number}": {"source": "object", "tags": {"depth": depth, "noise": noise}}
            for depth in DEPTHS
            for noise in NOISES
            for number in (1, 2)
        },
        "arms": [
            {"attack": "fgsm", "norm": "linf", "eps": 0.1},
            {"attack": "pgd", "norm": "linf", "eps": [0.08, 0.14], "steps": 6, "step_size": 0.03},
        ],
        "keep_inputs": "none",
        "shard": N,
    }
    modules = {name: linear(rng, strength=1.0 + int(name[1:].split("-")[0]) / 20) for name in study["models"]}
    Study.from_dict(study).run(folder / "networks", modules=modules, workers=1)
    bare = {name: modules[name] for name in ("d8-0-1", "d20-0-1")}
    study |= {
        "name": "defences",
        "models": {name: {"source": "object", "tags": {"depth": int(name[1:].split("-")[0])}} for name in bare},
        "defences": {
            "conf": {"of": [*bare], "name": "conf", "threshold": 0.7},
            "squeezing": {"of": [*bare], "name": "feature-squeezing", "bits": 3},
        },
    }
    Study.from_dict(study).run(folder / "defences", modules=bare, workers=1)
    return folder


@pytest.fixture(scope="module")
def trained(home: Path) -> Findings:
    return findings(home / "networks")


@pytest.fixture(scope="module")
def defended(home: Path) -> Findings:
    return findings(home / "defences")


def test_rows_carry_what_is_known_of_their_models(trained: Findings, defended: Findings) -> None:
    frame = trained.frames[PASSES]
    assert set(frame["depth"]) == {8.0, 14.0, 20.0}
    assert set(frame["noise"]) == {"0", "0.5"}
    assert trained.beside == ("noise", "arm")
    assert set(defended.frames[SECONDS]["defence"]) == {"none", "conf 0.7", "feature-squeezing 3"}
    assert defended.beside == ("defence", "arm")
    assert all(seconds > 0 for seconds in defended.inference.values())
    assert "fgsm-linf-0.1-ace, as it takes one step" in " ".join(" ".join(rows(trained)).split())


def test_a_reading_is_a_fit_of_these_rows_and_the_factor_is_of_ten_layers(trained: Findings) -> None:
    for reading in (Reading(PASSES), Reading(SECONDS, True, "sample")):
        fit = fit_survival(
            trained.frames[reading.measure],
            duration="duration",
            event="event",
            lower="lower" if reading.measure == PASSES else None,
            covariates=["depth", "noise", "arm", *(["inference_s"] if reading.inference else [])],
            family="lognormal",
            cluster=reading.unit,
        )
        found = trained.fit(reading, "lognormal")
        assert found.log_likelihood == pytest.approx(fit.log_likelihood)
        slope = fit.coefficient("depth").natural.estimate
        factor = depth_factor(found)
        assert (factor.value, factor.low) == pytest.approx((np.exp(10 * slope.value), np.exp(10 * slope.low)))


def test_a_network_s_survival_is_the_mean_of_what_was_spent_geometric_over_arms(trained: Findings) -> None:
    frame = trained.frames[PASSES]
    by_arm = arm_survival(trained)
    assert len(by_arm) == 2, "one step has no duration"
    for arm, means in by_arm.items():
        for model, mean in means.items():
            own = frame["duration"][(frame["arm"] == arm) & (frame["model"] == model)]
            assert mean == pytest.approx(own.mean()), "all are tried for as long, so nothing is lost by censoring"
    first = trained.models[0]
    assert network_survival(trained)[first] == pytest.approx(np.sqrt(np.prod([own[first] for own in by_arm.values()])))
    assert {len(models) for models in kinds_of(trained).values()} == {2}
    assert next(iter(kinds_of(trained))) == "8 layers, noise 0"


def test_the_time_of_a_pass_is_all_seconds_over_all_passes(trained: Findings) -> None:
    model = trained.models[3]
    passes, seconds = (trained.frames[measure] for measure in (PASSES, SECONDS))
    taken = seconds["duration"][seconds["model"] == model].sum() / passes["duration"][passes["model"] == model].sum()
    assert spent_per_pass(trained)[model] == pytest.approx(taken)


def test_families_stand_by_aic_in_all_three_readings(trained: Findings) -> None:
    lines = families(trained)
    fits = trained.fits(Reading(PASSES, unit="sample"))
    assert best_family(trained) == min(fits, key=lambda name: fits[name].aic)
    assert [line.split()[0] for line in lines[2:5]] == list(fits)
    assert sum(line.startswith("In ") for line in lines) == 3
    assert f"{fits[best_family(trained)].bic:.0f}" in lines[2]


def test_defences_stand_beside_what_they_do_to_clean_inputs(defended: Findings) -> None:
    told = defences(defended)
    lines = {line.split("  ")[1]: line for line in told[2:5]}
    assert list(lines) == ["none", "conf 0.7", "feature-squeezing 3"]
    frame = defended.frames[PASSES]
    own = frame["event"][(frame["defence"] == "none") & (frame["arm"] == next(iter(defended.durations[PASSES].arms)))]
    assert told[7].split()[:2] == ["none", f"{own.mean():.0%}"]
    facts = [defended.durations[PASSES].facts[model] for model in defended.models if "conf" in model]
    assert f"{sum(one.n_clean_rejected for one in facts) / (2 * N):.1%}" in lines["conf 0.7"]
    assert set(factors_of(defended)) == {"10 layers more", "conf 0.7", "feature-squeezing 3"}


def test_one_step_is_told_by_kind(trained: Findings) -> None:
    told = {row["model"]: row["share"] for row in trained.run.arms() if row["arm"].startswith("fgsm")}
    mean = np.mean([told["d14-0.5-1"], told["d14-0.5-2"]])
    assert next(line for line in one_step(trained) if "14 layers, noise 0.5" in line).endswith(f"{mean:.1%}")


def test_costs_need_seconds_of_training_and_take_those_of_the_processor(trained: Findings, home: Path) -> None:
    assert "nobody says how long" in costs(trained)[0]
    table = home / "clock.csv"
    kinds = [f"d{depth}-{noise}" for depth in DEPTHS for noise in NOISES]
    table.write_text("networks,train_s_per_sample\n" + "".join(f"{kind},0.5\n" for kind in kinds))
    lines = costs(findings(home / "networks", table))
    found = [line.split("  ") for line in lines if "layers, noise" in line]
    assert len(found) == len(kinds)
    fit = trained.fit(Reading(PASSES, unit="sample"), best_family(trained))
    speed = np.mean([spent_per_pass(trained)[f"d14-0.5-{number}"] for number in (1, 2)])
    ratio = 0.5 / (fit.mean(at={"depth": 14, "noise": "0.5"}, until=fit.longest).value * speed)
    line = next(line for line in lines if "14 layers, noise 0.5" in line)
    assert f" {ratio:.3g} [" in line
    assert " 500 " in line
    for text, complaint in (("networks\n", "has no rows"), ("networks\nd8\n", "needs the columns")):
        table.write_text(text)
        with pytest.raises(RunError, match=complaint):
            findings(home / "networks", table)


def test_networks_are_told_with_trends(trained: Findings) -> None:
    text = "\n".join(networks(trained))
    assert "14 layers, noise 0.5" in text
    assert "10 layers more, pgd-linf-0.14" in text
    assert "noise 0.5 against none" in text
    assert "all attacks" in text
    assert "without" not in text, "there is one attack, and nothing is left without it"


def test_pictures_show_what_was_found(trained: Findings, defended: Findings) -> None:
    own = curves(defended)
    assert [curve.name for curve in own] == ["8 layers", "20 layers"]
    assert all((np.diff(curve.seen) <= 0).all() and (np.diff(curve.fitted) <= 0).all() for curve in own)
    assert len(survival_curves({"one": own, "two": curves(trained)}, unit="passes")["data"]) == 2 * (2 + 3)
    panels = {"one": {name: pair[0] for name, pair in factors_of(defended).items()}}
    assert factor_plot(panels)["data"][0]["y"] == ["10 layers more", "conf 0.7", "feature-squeezing 3"]
    drawn = network_dots(dots(trained), titles=("passes", "ms"))["data"]
    assert sum(len(trace["x"]) for trace in drawn if trace["mode"] == "markers") == 2 * 12


def test_the_program_prints_and_fills_a_page(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = home / "page.md"
    page.write_text(PAGE)
    words = [str(home / "defences"), str(home / "networks"), "--page", str(page)]
    assert survival.main(words) == 0
    printed, text = capsys.readouterr().out, page.read_text()
    for line in ("Behind each defence", "Networks as units", "Do deeper networks last longer?"):
        assert line in printed
        assert line in text
    assert text.count("STALE") == len(survival.FIGURES), "without pictures, those of the page stay"


def test_a_run_that_cannot_be_read_leaves_the_page(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = home / "left.md"
    page.write_text(PAGE)
    assert survival.main([str(home / "nowhere"), str(home / "networks"), "--page", str(page)]) == 2
    assert "nowhere" in capsys.readouterr().err
    assert page.read_text() == PAGE


def test_a_model_without_depth_is_named(home: Path, tmp_path: Path) -> None:
    study = Study.load(home / "defences" / "study.yaml").spec.model_dump(mode="json", exclude_none=True)
    net = linear(np.random.default_rng(1), strength=1.0)
    short = {key: study[key] for key in ("name", "device", "data", "arms", "keep_inputs", "shard")}
    short["models"] = {"flat": {"source": "object"}}
    Study.from_dict(short).run(tmp_path / "flat", modules={"flat": net}, workers=1)
    with pytest.raises(Exception, match="the model flat has no depth"):
        findings(tmp_path / "flat")


def test_defences_are_called_with_their_level() -> None:
    assert defence_of({"depth": 20}) == "none"
    assert defence_of({"defence": "gauss-out", "sigma": 0.1, "noise_on": "probabilities"}) == "gauss-out 0.1"
    assert defence_of({"defence": "own"}) == "own"


def test_the_clock_times_an_epoch_of_each_kind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(
        "name: r\nseed: 1\ndata: {source: digits, train: 64}\nmodels:\n"
        "  a-1: &net {factory: 'advrisk.parts.models.small:SmallCnn', args: {size: 8}, method: plain, epochs: 5}\n"
        "  a-2: *net\n  b-1: *net\n"
    )
    assert survival_clock.main([str(recipe), "--out", str(tmp_path / "clock.csv")]) == 0
    assert "a" in capsys.readouterr().out
    seconds = survival_clock.train_seconds(tmp_path / "clock.csv")
    assert list(seconds) == ["a", "b"]
    assert all(value > 0 for value in seconds.values())
    assert load_recipe(recipe).models["a-1"].epochs == 5
    assert survival_clock.main([str(tmp_path / "none.yaml")]) == 2


@pytest.mark.skipif(shutil.which("chromium") is None, reason="pictures are drawn by chromium")
def test_pictures_are_drawn(home: Path) -> None:
    from studies.survival_pictures import draw

    drawn = draw(findings(home / "defences"), findings(home / "networks"), home / "images")
    assert set(drawn) == set(survival.FIGURES)
    assert all(1000 < path.stat().st_size < 200_000 for path in drawn.values())


def test_the_page_has_a_place_for_everything() -> None:
    page = Path(studies.__file__).parents[1] / "docs" / "case-study-survival.md"
    from studies.page import places

    assert set(places(page.read_text())) == set(survival.PLACES)

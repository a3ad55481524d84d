"""The Python API as a user's script meets it."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from torch import nn

from advrisk import Run, Study
from advrisk.core.errors import RiskError
from advrisk.core.flags import NO_START_MESSAGE
from advrisk.ledger.exchange.importing import import_outcomes
from advrisk.parts.models.torch_module import build, load_weights
from advrisk.testing.ledgers import outcome_rows

FACTORY = "advrisk.parts.models.small:SmallCnn"


def module_of(nets: Path, name: str) -> nn.Module:
    module = build(FACTORY, {"size": 8, "width": 8})
    load_weights(module, nets / f"{name}.safetensors", name)
    return module


def test_a_module_in_memory_gives_the_same_rows_as_its_file(study: dict[str, Any], nets: Path, tmp_path: Path) -> None:
    Study.from_dict(study).run(tmp_path / "from files")
    modules = {name: module_of(nets, name) for name in study["models"]}
    study["models"] = {name: {"source": "object"} for name in modules}
    Study.from_dict(study).run(tmp_path / "from memory", modules=modules)
    assert outcome_rows(tmp_path / "from memory") == outcome_rows(tmp_path / "from files")


def test_an_attack_of_ones_own_needs_no_package(study: dict[str, Any], tmp_path: Path) -> None:
    script = tmp_path / "mine.py"
    script.write_text(
        f"""
from advrisk import Study
from advrisk.core.traits import AttackTraits
from advrisk.parts.attacks.registry import attacks

traits = AttackTraits(needs="labels", norms=("linf",), passes=lambda *_: (1, 0), use_when="trying")

@attacks.register("negate", traits=traits)
def negate(probe):
    rows = probe.active()
    probe.forward(probe.project(1 - probe.x0[rows], rows), rows, gradient=False)

study = {study!r} | {{"arms": [{{"attack": "negate", "norm": "linf", "eps": 0.3}}]}}
run = Study.from_dict(study).run({str(tmp_path / "run")!r})
print(sorted(run.status().outcomes))
"""
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "error" not in done.stdout
    assert "success" in done.stdout


def test_corruptions_alone_are_a_study_without_damage(study: dict[str, Any], tmp_path: Path) -> None:
    study["arms"] = study["arms"][-1:]
    run = Study.from_dict(study).run(tmp_path / "run")
    with pytest.raises(RiskError, match="no attack with a norm"):
        run.damage()
    assert "No answer: this run has no attack with a norm" in run.report().read_text(encoding="utf-8")


def test_one_model_has_no_relative_damage_but_everything_else(study: dict[str, Any], tmp_path: Path) -> None:
    del study["models"]["noisy"]
    run = Study.from_dict(study).run(tmp_path / "run")
    found = run.damage()
    assert found.models[0].relative_damage is None
    assert found.models[0].success_ratio[0.2].n == 64
    with pytest.raises(RiskError, match="compares models"):
        _ = found.estimates
    assert run.report().is_file()


def test_success_against_the_own_prediction_leaves_nothing_wrong_from_the_start(
    study: dict[str, Any], tmp_path: Path
) -> None:
    study["success"] = "prediction"
    run = Study.from_dict(study).run(tmp_path / "run")
    clean = run.query("SELECT DISTINCT outcome FROM outcomes WHERE kind = 'clean'")["outcome"].to_pylist()
    assert clean == ["resisted"]
    assert run.query("SELECT count(*) AS n FROM outcomes WHERE outcome = 'already_wrong'")["n"].to_pylist() == [0]
    wrong = run.query("SELECT count(*) AS n FROM outcomes WHERE outcome = 'success' AND prediction = clean_prediction")
    assert wrong["n"].to_pylist() == [0]


def test_a_table_with_integers_and_immutable_features(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = np.stack([rng.normal(size=200), rng.integers(0, 9, 200), rng.integers(0, 2, 200)], 1).astype(np.float32)
    y = (x[:, 0] + 0.3 * x[:, 1] > 1).astype(np.int64)
    np.savez(
        tmp_path / "table.npz",
        x=x,
        y=y,
        low=np.array([-5.0, 0, 0]),
        high=np.array([5.0, 9, 1]),
        integer=np.array([False, True, False]),
        immutable=np.array([False, False, True]),
    )
    net = nn.Linear(3, 2)
    net.weight.data[:] = 0
    net.weight.data[1, :2] = net.weight.data.new_tensor([1.0, 0.3])
    net.bias.data[:] = net.bias.data.new_tensor([1.0, 0.0])
    study = {
        "name": "table",
        "data": {"source": "npz", "path": str(tmp_path / "table.npz"), "evaluate": 100},
        "models": {"linear": {"source": "object"}},
        "arms": [{"attack": "pgd", "norm": "linf", "eps": 2.5, "keep": "smallest"}],
    }
    run = Study.from_dict(study).run(tmp_path / "run", modules={"linear": net})
    outcomes = run.status().outcomes
    assert "error" not in outcomes
    assert outcomes["success"] > 50
    kept = run.query("SELECT survives_8bit FROM outcomes WHERE outcome = 'success'")["survives_8bit"].to_pylist()
    assert set(kept) == {None}, "a table has no 8-bit file to survive"


def test_an_imported_row_does_not_join_the_study_uninvited(study: dict[str, Any], tmp_path: Path) -> None:
    from advrisk.ledger.exchange.importing import import_outcomes

    run = Study.from_dict(study).run(tmp_path / "run")
    before = run.damage().as_dict()
    sample = run.damage().distances.samples[0]
    (tmp_path / "theirs.csv").write_text(f"model,sample,arm,distance\nplain,{sample},theirs,0.001\n")
    import_outcomes(tmp_path / "theirs.csv", tmp_path / "run", norm="linf")
    again = Run.open(tmp_path / "run")
    assert again.damage().as_dict() == before
    assert again.status().complete
    assert again.status().n_imported == 1


def test_arms_are_compared_in_any_norm(study: dict[str, Any], tmp_path: Path) -> None:
    run = Study.from_dict(study).run(tmp_path / "run")
    found = run.attacks()
    assert found.distances.norm == "linf"
    assert {row.name for row in found.overall} == {row["arm"] for row in run.arms() if row["kind"] == "attack"}
    in_l2 = run.attacks(norm="l2", arms=["pgd-*"])
    assert {row.name for row in in_l2.overall} == {"pgd-l2-0.2-ace,steps=10", "pgd-linf-0.2-ace,steps=10"}
    assert all(0 <= row.optimality <= 1 for row in (*found.overall, *in_l2.overall) if row.optimality is not None)


def test_an_attack_without_gradients_that_does_better_is_flagged(tmp_path: Path) -> None:
    """A ledger from elsewhere that says how many passes were taken is enough."""
    lines = ["model,arm,sample,norm,eps,d_linf,n_forward,n_backward"]
    lines += [f"hidden,pgd,{n},linf,0.1,,10,10" for n in range(10)]
    lines += [f"hidden,square,{n},linf,0.1,{'0.1' if n < 4 else ''},100,0" for n in range(10)]
    (tmp_path / "theirs.csv").write_text("\n".join(lines))
    import_outcomes(tmp_path / "theirs.csv", tmp_path / "run")
    run = Run.open(tmp_path / "run")
    flag = {"flag": "black-box-beats-white-box", "model": "hidden", "arm": "square"}
    assert run.flags() == [flag | {"n_flagged": 1, "n_cells": 1, "share": 0.4}]
    assert run.status().flags == {"black-box-beats-white-box": 1}
    assert "black-box-beats-white-box" in run.report().read_text(encoding="utf-8")


def test_samples_without_a_start_are_counted(study: dict[str, Any], tmp_path: Path) -> None:
    """One random input is rarely of a certain class: such samples resist, say why, and flag their cells."""
    arm = {"attack": "hopskipjump", "norm": "l2", "steps": 1, "initial_evaluations": 1, "starts": 1}
    run = Study.from_dict(study | {"arms": [arm], "success": {"target": 0}, "shard": 64}).run(tmp_path / "run")
    flags = {row["model"]: row for row in run.flags() if row["flag"] == "no-start"}
    rows = run.query("FROM outcomes WHERE kind = 'attack'").to_pylist()
    lost = [row for row in rows if row["message"] == NO_START_MESSAGE]
    assert {(row["outcome"], row["d_l2"], row["n_forward"]) for row in lost} == {("resisted", 0.0, 1)}
    assert set(flags) == {row["model"] for row in lost}
    for model, flag in flags.items():
        n_lost = sum(row["model"] == model for row in lost)
        n_attacked = sum(row["model"] == model and row["n_forward"] > 0 for row in rows)
        assert (flag["n_flagged"], flag["n_cells"], flag["share"]) == (1, 1, n_lost / n_attacked)

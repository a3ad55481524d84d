"""Attacks of Foolbox and ART in a study, as a user meets them."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from torch import nn

from advrisk import Study
from advrisk.core.errors import StudyError
from advrisk.parts.models.torch_module import build, load_weights
from advrisk.testing.ledgers import outcome_rows

ARMS = [
    {"attack": "foolbox", "method": "LinfPGD", "norm": "linf", "eps": [0.05, 0.1], "settings": {"steps": [3, 5]}},
    {"attack": "art", "method": "HopSkipJump", "norm": "l2", "settings": {"max_iter": 1, "init_eval": 10}},
]
HOME = '''
from advrisk import adapters
from art.attacks.evasion import ProjectedGradientDescent
from foolbox.attacks import LinfPGD


@adapters.foolbox("twice-pgd", norm="linf", use_when="two starts are better than one")
def twice_pgd(*, steps: int = 3):
    """PGD from two random starts."""
    return LinfPGD(steps=steps).repeat(2)


@adapters.art("arts-pgd", norm="linf")
def arts_pgd(classifier):
    return ProjectedGradientDescent(classifier, eps_step=0.02, max_iter=3, verbose=False)
'''
OWN_ARMS = [
    {"attack": "twice-pgd", "eps": 0.1, "steps": [2, 3]},
    {"attack": "arts-pgd", "eps": 0.1},
]


def module_of(nets: Path, name: str) -> nn.Module:
    module = build("advrisk.parts.models.small:SmallCnn", {"size": 8, "width": 8})
    load_weights(module, nets / f"{name}.safetensors", name)
    return module


@pytest.fixture
def small(study: dict[str, Any]) -> dict[str, Any]:
    return study | {"data": {"source": "digits", "evaluate": 32}, "arms": ARMS}


@pytest.mark.usefixtures("in_workers")
def test_workers_and_this_process_write_the_same_rows(small: dict[str, Any], nets: Path, tmp_path: Path) -> None:
    run = Study.from_dict(small).run(tmp_path / "workers", workers=1)
    modules = {name: module_of(nets, name) for name in small["models"]}
    small["models"] = {name: {"source": "object"} for name in modules}
    Study.from_dict(small).run(tmp_path / "here", modules=modules)
    assert outcome_rows(tmp_path / "workers") == outcome_rows(tmp_path / "here")
    assert "error" not in run.status().outcomes
    arms = {row["arm"] for row in run.arms() if row["kind"] == "attack"}
    assert arms == {
        "art-l2,method=HopSkipJump,init_eval=10,max_iter=1",
        *(f"foolbox-linf-{eps},method=LinfPGD,steps={steps}" for eps in (0.05, 0.1) for steps in (3, 5)),
    }
    counted = run.query(
        "SELECT DISTINCT accounting, kind FROM cells JOIN outcomes USING (cell) ORDER BY kind"
    ).to_pylist()
    assert counted == [{"accounting": "batch", "kind": "attack"}, {"accounting": "sample", "kind": "clean"}]
    first = run.query("SELECT count(n_forward_first) + count(n_backward_first) + count(first_s) AS n FROM outcomes")
    assert first["n"].to_pylist() == [0]
    assert run.query("SELECT flags FROM cells WHERE len(flags) > 0")["flags"].to_pylist() == []


@pytest.mark.parametrize("home", ["a module", "the script itself"])
def test_attack_objects_need_no_package(home: str, small: dict[str, Any], tmp_path: Path) -> None:
    (tmp_path / "borrowed_home.py").write_text(HOME)
    begin = "import borrowed_home\n" if home == "a module" else HOME
    script = tmp_path / "script.py"
    script.write_text(
        f"""{begin}
from advrisk import Study
run = Study.from_dict({small | {"arms": OWN_ARMS}!r}).run({str(tmp_path / "run")!r}, workers=1)
print(sorted(run.status().outcomes), sorted({{row["arm"] for row in run.arms()}}))
"""
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "'resisted', 'success']" in done.stdout
    assert "['arts-pgd-linf-0.1', 'clean', 'twice-pgd-linf-0.1', 'twice-pgd-linf-0.1,steps=2']" in done.stdout


@pytest.mark.parametrize(
    ("arm", "success", "message"),
    [
        ({"method": "LinfPDG", "norm": "linf", "eps": 0.1}, "label", "arms.*did you mean 'LinfPGD'"),
        ({"method": "LinfPGD", "norm": "linf", "eps": 0.1, "max_queries": 9}, "label", "arms.*fewer steps"),
        (
            {"method": "LinfPGD", "norm": "linf", "eps": 0.1, "keep": "smallest"},
            "label",
            "arms.*keep last, not smallest",
        ),
        ({"method": "LinfPGD", "norm": "linf", "eps": 0.1, "objective": "ace"}, "label", "arms.*no objective"),
        ({"method": "FGSM", "norm": "linf", "eps": 0.1}, {"target": "next"}, "arms.*cannot aim at a target"),
        ({"method": "GenAttack", "norm": "linf", "eps": 0.1}, "label", "arms.*can only aim at a target"),
        ({"norm": "linf", "eps": 0.1}, "label", "arms.*needs method"),
        ({"method": "LinfPGD", "eps": 0.1}, "label", "arms.*needs a norm"),
        (
            {"method": "LinfPGD", "norm": "linf", "eps": 0.1, "settings": {"steps": []}},
            "label",
            "arms.*steps: an empty",
        ),
    ],
)
def test_what_cannot_be_is_refused_with_its_place(
    arm: dict[str, Any], success: Any, message: str, small: dict[str, Any], tmp_path: Path
) -> None:
    small |= {"arms": [{"attack": "foolbox"} | arm], "success": success}
    with pytest.raises(StudyError, match=message):
        Study.from_dict(small).run(tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_library_that_is_not_installed_is_named_with_the_remedy(
    small: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "foolbox", None)  # as if there were none
    with pytest.raises(StudyError, match=r'pip install "advrisk\[foolbox\]"'):
        Study.from_dict(small).run(tmp_path / "run")


def test_nothing_is_imported_before_it_is_needed() -> None:
    code = "import sys, advrisk.api; print([name for name in ('foolbox', 'art', 'eagerpy') if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_command_line_shows_them(small: dict[str, Any], tmp_path: Path, advrisk: Any) -> None:
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(small))
    shown = " ".join(advrisk("list", "attacks").stdout.split())
    assert "an attack that only Foolbox has" in shown
    assert "needs what the attack needs; norms linf, l2, l1, l0" in shown
    dry = " ".join(advrisk("run", str(tmp_path / "study.yaml"), "--dry-run").stdout.split())
    assert "The passes of 5 arms are not known before they run" in dry
    assert "art-l2,method=HopSkipJump,init_eval=10,max_iter=1 not known" in dry

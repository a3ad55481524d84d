"""`verify --model`, `verify --replay` and `ledger replay`: which model is deployed, and do attacks give the rows?"""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from advrisk import Run, Study
from advrisk.cli import main
from advrisk.run.executors import choice
from tests.unit.run.identity.nets import PLAIN, ROLLED, SAME, write_net
from tests.unit.run.replay.rewriting import Row, resisted, rewrite_rows

Call = Callable[..., tuple[int, str, str]]
STUDY: dict[str, Any] = {
    "name": "certified",
    "device": "cpu",
    "data": {"source": "digits", "evaluate": 8, "tune": 8, "calibrate": 64},
    "models": {
        name: {"source": "torch", "factory": "nets_of_a_test:Plain", "weights": f"{name}.pt", "expect_accuracy": 0}
        for name in ("plain", "other")
    },
    "defences": {"squeezed": {"of": "plain", "name": "feature-squeezing", "bits": 4}},
    "success": "prediction",
    "arms": [{"attack": "fgsm", "norm": "linf", "eps": [0.01, 0.3]}],
    "search": [{"attack": "pgd", "norm": "linf", "eps": 0.01, "steps": 2, "method": "random", "rounds": 1}],
    "assess": {"certificate": {"alpha": 0.5, "zeta": 0.05}},
    "shard": 32,
}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study with its weights, a finished run beside it, and certificates."""
    home = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(home)
        patch.setattr("sys.dont_write_bytecode", True)
        patch.setattr(choice, "worker_count", lambda *_: 0)
        write_net(home, PLAIN)
        import nets_of_a_test  # type: ignore[import-not-found]

        for seed, name in enumerate(("plain", "other")):
            torch.manual_seed(seed)
            torch.save(nets_of_a_test.Plain().state_dict(), home / f"{name}.pt")
        (home / "study.yaml").write_text(yaml.safe_dump(STUDY))
        Study.load(home / "study.yaml").run(home / "run").certify()
    return home


@pytest.fixture
def home(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    shutil.copytree(made, tmp_path / "home")
    monkeypatch.chdir(tmp_path / "home")
    monkeypatch.syspath_prepend(tmp_path / "home")
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    monkeypatch.setenv("COLUMNS", "200")
    write_net(tmp_path / "home", PLAIN)
    return tmp_path / "home"


@pytest.fixture
def call(home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    def words(*given: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["advrisk", *given])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), " ".join(said.out.split()), said.err

    return words


CERTIFICATE = "run/certificates/plain.json"
WITH_RUN = ("--run", "run", "--study", "study.yaml")


@pytest.mark.parametrize("target", ["study.yaml", "study.yaml:plain"])
def test_the_certified_model_is_recognised(call: Call, target: str) -> None:
    code, out, _ = call("verify", CERTIFICATE, "--model", target)
    assert code == 0
    assert "This is the certified model: plain has the digest" in out
    assert re.search(r"gives the classes of the certificate on \d\d samples \(\d+ near ties? left out\)", out)
    code, out, _ = call("verify", CERTIFICATE, "--model", target, "--run", "run")
    assert code == 0
    assert "and answers 72 clean samples as recorded" in out


def test_weights_in_another_format_are_the_same_model(call: Call, home: Path) -> None:
    from safetensors.torch import save_file

    save_file(torch.load(home / "plain.pt", weights_only=True), home / "deployed.safetensors")
    code, out, _ = call("verify", CERTIFICATE, "--model", "deployed.safetensors", *WITH_RUN)
    assert code == 0
    assert "This is the certified model" in out


def test_another_model_is_refused_with_both_digests_and_a_sample(call: Call, home: Path) -> None:
    code, out, _ = call("verify", CERTIFICATE, "--model", "other.pt", *WITH_RUN, "--json")
    assert code == 1
    found = json.loads(out)
    assert found["holds"] is False
    assert found["model"]["n_compared"] == 72
    assert found["model"]["n_different"] > 60
    assert found["model"]["same"] is False
    assert "is not the certified model: plain has the digest" in found["problems"][0]
    assert "recorded class" in found["problems"][1]
    code, out, _ = call("verify", CERTIFICATE, "--model", "study.yaml:other")
    assert (code, "This is not the certified model: other has the digest" in out) == (1, True)


def test_a_forward_that_changed_on_dark_images_alone_is_another_model(call: Call, home: Path) -> None:
    write_net(home, ROLLED)
    code, out, _ = call("verify", CERTIFICATE, "--model", "study.yaml")
    assert code == 1, "weights, layers and answers to noise are the same, those to the certified samples are not"
    assert "This is not the certified model: plain answers the" in out
    assert "Its source files are not those of the certified model." in out
    write_net(home, ROLLED)
    code, out, _ = call("verify", CERTIFICATE, "--model", "study.yaml", "--run", "run")
    assert code == 1
    assert "of 72 otherwise than the run says; sample digits/" in out
    write_net(home, SAME)
    code, out, _ = call("verify", CERTIFICATE, "--model", "study.yaml", "--run", "run")
    assert code == 0
    assert "Its source files are not those of the certified model." in out


def test_without_the_certified_samples_no_more_is_said_than_is_known(call: Call, home: Path) -> None:
    elsewhere = STUDY | {"data": STUDY["data"] | {"calibrate": 60}}
    (home / "elsewhere.yaml").write_text(yaml.safe_dump(elsewhere))
    write_net(home, ROLLED)
    code, out, _ = call("verify", CERTIFICATE, "--model", "elsewhere.yaml", "--json")
    assert code == 0, "nothing that was compared differs"
    found = json.loads(out)
    assert (found["model"]["same"], found["model"]["certified_answers"]) == (None, None)
    (said,) = [text for text in found["held"] if text.startswith("plain has the digest")]
    assert "weights, architecture and answers to 8 noise inputs agree; whether it answers the certified samples" in said
    assert "was not checked: add --run or the study's data" in said
    assert "This is the certified model" not in out
    write_net(home, ROLLED)
    code, out, _ = call("verify", CERTIFICATE, "--model", "elsewhere.yaml", "--study", "study.yaml", "--json")
    found = json.loads(out)["model"]
    assert (code, found["same"], found["certified_answers"]["same"]) == (1, False, False), "the samples of --study"
    assert found["certified_answers"]["n"] + found["certified_answers"]["n_left_out"] == 64


def test_the_answers_of_a_certificate_are_bound_to_its_samples(call: Call, home: Path) -> None:
    content = json.loads((home / CERTIFICATE).read_text())
    assert content["model"]["source_digest"]
    content["model"]["answers"]["left_out"] = list(range(64))
    (home / "odd.json").write_text(json.dumps(content))
    code, out, _ = call("verify", "odd.json")
    assert (code, "model.answers: found" in out) == (1, True)
    content["model"]["answers"] = None
    (home / "odd.json").write_text(json.dumps(content))
    code, out, _ = call("verify", "odd.json", "--run", "run")
    assert (code, "The run says otherwise: model.answers is missing" in out) == (1, True)
    code, out, _ = call("verify", "odd.json", "--model", "study.yaml")
    assert (code, "the certificate holds no answers of it, so add --run" in out) == (0, True)


@pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")
def test_an_exported_copy_is_another_digest_with_the_same_answers(call: Call, home: Path) -> None:
    import nets_of_a_test

    net = nets_of_a_test.Plain().eval()
    net.load_state_dict(torch.load(home / "plain.pt", weights_only=True))
    torch.jit.save(torch.jit.trace(net, torch.rand(2, 1, 8, 8)), str(home / "plain.jit"))  # type: ignore[no-untyped-call]
    content = STUDY | {"models": {"plain": {"source": "torchscript", "path": "plain.jit"}}}
    (home / "jit.yaml").write_text(yaml.safe_dump(content))
    code, out, _ = call("verify", CERTIFICATE, "--model", "jit.yaml", "--run", "run")
    assert code == 1
    assert "This is not the certified model" in out
    assert "Its answers to 72 clean samples of the run are the same but for rounding" in out


def test_a_defended_model_is_compared_behind_its_defence(call: Call) -> None:
    code, out, _ = call("verify", "run/certificates/squeezed.json", "--model", "study.yaml", "--run", "run")
    assert (code, "This is the certified model: squeezed" in out) == (0, True)
    code, _, err = call("verify", "run/certificates/squeezed.json", "--model", "other.pt", *WITH_RUN)
    assert (code, "behind a defence, which no file holds" in err) == (2, True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--model", "missing.pt"), "there is no such file; give a study"),
        (("--model", "other.pt"), "says a study: give it with --study FILE"),
        (("--model", "other.pt:plain"), "stands after a study file"),
        (("--model", "study.yaml:plane"), "did you mean 'plain'"),
        (("--replay", "3"), "say which one, with --run RUN"),
        (("--replay-seed", "3"), "add --replay K"),
    ],
)
def test_what_cannot_be_asked_is_refused_with_what_to_do(call: Call, options: tuple[str, ...], words: str) -> None:
    code, _, err = call("verify", CERTIFICATE, *options)
    assert (code, words in " ".join(err.split())) == (2, True), err


@pytest.mark.parametrize("content", [{}, {"version": 2, "model": "plain"}])
def test_no_model_is_compared_with_a_document_that_cannot_be_read(
    call: Call, home: Path, content: dict[str, Any]
) -> None:
    (home / "odd.json").write_text(json.dumps({"advrisk": "certificate"} | content))
    code, out, _ = call("verify", "odd.json", "--model", "study.yaml", *WITH_RUN, "--replay", "3")
    assert code == 1
    assert "It does not hold together" in out
    assert "No model and no row was compared with it" in out


def test_a_certificate_is_replayed_on_its_own_samples(call: Call) -> None:
    code, out, _ = call("verify", CERTIFICATE, *WITH_RUN, "--replay", "5", "--replay-seed", "1", "--json")
    assert code == 0
    found = json.loads(out)
    assert (found["replay"]["seed"], found["replay"]["n_eligible"]) == (1, 64)
    assert found["replay"]["n_rows"] == found["replay"]["n_equal"] == 5 * 4, (
        "clean, two fgsm, and what the search froze"
    )
    assert "Attacked again, 5 samples gave the same 20 rows bit by bit." in found["held"]


def test_rows_of_an_operator_are_found_on_a_certificate(call: Call, home: Path) -> None:
    def change(row: Row) -> Row | None:
        return resisted(row) if row["outcome"] == "success" and row["model"] == "plain" else None

    assert rewrite_rows(home / "run", change) > 20
    Run.open(home / "run").certify()
    assert call("ledger", "check", "run")[0] == 0
    assert call("verify", CERTIFICATE, *WITH_RUN)[0] == 0, "counting again finds nothing"
    code, out, _ = call("verify", CERTIFICATE, *WITH_RUN, "--replay", "10", "--replay-seed", "1")
    assert code == 1
    assert "Do not trust this certificate." in out
    assert "against plain: recorded resisted, class" in out
    assert "replayed success, class" in out


def test_a_run_without_certificate_is_replayed_by_a_verb_of_the_ledger(call: Call, home: Path) -> None:
    code, out, _ = call("ledger", "replay", "run", "4", "--study", "study.yaml", "--seed", "2")
    assert code == 0
    assert "Replayed: 4 of 80 samples, drawn with the seed 2." in out
    rewrite_rows(home / "run", lambda row: resisted(row) if row["outcome"] == "success" else None)
    code, out, _ = call("ledger", "replay", "run", "20", "--study", "study.yaml", "--seed", "2", "--json")
    assert code == 1
    found = json.loads(out)
    assert found["differences"][0]["recorded"].startswith("resisted")
    assert found["holds"] is False


def test_packs_are_about_several_models(call: Call) -> None:
    Run.open("run").evidence("pack.zip")
    code, _, err = call("verify", "pack.zip", "--model", "study.yaml")
    assert (code, "are about one certificate" in err) == (2, True)

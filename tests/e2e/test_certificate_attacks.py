"""What an operator might try who wants a certificate at any price, and what readers are shown of it."""

import fcntl
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from sklearn.datasets import load_digits
from torch import Tensor

from advrisk import Run, Study
from advrisk.ledger import table_from
from advrisk.parts.models.small import SmallCnn

from .conftest import Command, study_of

WEAK, STRONG = "square-linf-0.3-ace,max_queries=2", "pgd-linf-0.3-ace,steps=5"


class Useless(SmallCnn):
    """Names the class after the one that it sees: wrong nearly always, and hardly ever made so by an attack."""

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x).roll(1, dims=1)


class Silent(SmallCnn):
    """Answers NaN where one pixel is white, which no noise makes it."""

    def forward(self, x: Tensor) -> Tensor:
        white = x[:, :, 2, 4] == 1
        return super().forward(x).masked_fill(white, torch.nan)


def content_of(nets: Path, **changes: Any) -> dict[str, Any]:
    """One model, an attack that breaks most and one that breaks little, tested on 90 samples."""
    content = study_of(nets)
    content |= {
        "data": {"source": "digits", "evaluate": 16, "calibrate": 90},
        "models": {"plain": content["models"]["plain"] | {"expect_accuracy": 0}},
        "arms": [
            {"attack": "pgd", "norm": "linf", "eps": 0.3, "steps": 5, "name": "strong"},
            {"attack": "square", "norm": "linf", "eps": 0.3, "max_queries": 2, "name": "weak"},
        ],
        "shard": 90,
        "assess": {"certificate": {"alpha": 0.3, "zeta": 0.05}},
    }
    return content | changes


@pytest.fixture(scope="module")
def finished(nets: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("operator") / "run"
    Study.from_dict(content_of(nets)).run(folder, workers=0)
    return folder


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Run:
    shutil.copytree(finished, tmp_path / "run")
    return Run.open(tmp_path / "run")


def shorten(folder: Path) -> None:
    """Take the attack that broke the model off the list that is to be certified."""
    path = folder / "study.yaml"
    study = yaml.safe_load(path.read_text())
    study["assess"]["certificate"]["arms"] = ["weak"]
    path.write_text(yaml.safe_dump(study))


def joined(text: str) -> str:
    return " ".join(text.split())


def test_a_shortened_list_is_refused_wherever_it_is_asked_for(run: Run, advrisk: Command, tmp_path: Path) -> None:
    honest = advrisk("certify", "run", "--out", "before")
    assert (honest.returncode, "is not certified within linf 0.3: the worst attack" in joined(honest.stdout)) == (
        1,
        True,
    )
    shorten(run.folder)
    for words in (("certify", "run"), ("show", "certificate", "run")):
        done = advrisk(*words)
        assert done.returncode == 2
        assert 'assess.certificate.arms was not said and is ["weak"]' in joined(done.stderr)
    done = advrisk("gate", "run", "--require", "certificate.plain")
    assert (done.returncode, "does not ask what was frozen" in joined(done.stdout)) == (4, True)
    done = advrisk("verify", "before/plain.json", "--run", "run")
    assert (done.returncode, "does not ask what was frozen" in joined(done.stdout)) == (1, True)
    done = advrisk("evidence", "run", "--out", "pack")
    index = json.loads((tmp_path / "pack/index.json").read_text())
    assert "does not ask what was frozen" in json.dumps(index)
    assert not (tmp_path / "pack/certificates").exists()


def test_a_shortened_list_that_is_run_again_is_certified_with_the_caveat_everywhere(
    nets: Path, run: Run, advrisk: Command, tmp_path: Path
) -> None:
    asked = {"alpha": 0.3, "zeta": 0.05, "arms": ["weak"]}
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(content_of(nets, assess={"certificate": asked})))
    done = advrisk("run", "study.yaml", "--out", "run", "--workers", "1")
    assert done.returncode == 0, done.stderr
    caveat = "Samples to calibrate were met before by another question"

    done = advrisk("certify", "run", "--out", "out", "--json")
    (written,) = json.loads(done.stdout)
    assert (done.returncode, written["certified"]) == (4, False)
    assert caveat in written["caveats"][0]
    assert "other attacks: plain within linf 0.3" in written["caveats"][0]
    assert "plain is certified, with caveats, within linf 0.3" in written["headline"]
    page = (tmp_path / "out/plain.html").read_text()
    assert "Certified, with caveats" in page
    assert caveat in page

    said = joined(advrisk("show", "certificate", "run").stdout)
    assert caveat in said
    assert json.loads(advrisk("show", "certificate", "run", "--json").stdout)["models"][0]["caveats"]

    done = advrisk("gate", "run", "--require", "certificate.plain", "--json")
    (one,) = json.loads(done.stdout)["results"]
    assert (done.returncode, one["verdict"], caveat in one["reason"]) == (4, "undecided", True)
    done = advrisk("gate", "run", "--require", "certificate.plain with caveats", "--json")
    (one,) = json.loads(done.stdout)["results"]
    assert (done.returncode, one["verdict"]) == (0, "pass")
    assert any(caveat in caution for caution in one["cautions"])

    done = advrisk("verify", "out/plain.json", "--run", "run")
    said = joined(done.stdout)
    assert done.returncode == 0
    assert "Nothing is wrong" not in said
    assert f"Caveat: {caveat}" in said
    for term in ("30 % (alpha, ", "at most 5 % of the time (zeta, ", "Method: exact.", "the 90 calibration samples"):
        assert term in said
    assert "Clean error" in said
    found = json.loads(advrisk("verify", "out/plain.json", "--run", "run", "--json").stdout)
    assert (found["holds"], caveat in found["caveats"][0], "5 % of the time (zeta, " in found["says"]) == (
        True,
        True,
        True,
    )

    assert advrisk("evidence", "run", "--out", "pack").returncode == 0
    index = (tmp_path / "pack/index.json").read_text()
    assert caveat in index
    done = advrisk("verify", "pack", "--run", "run")
    assert (done.returncode, f"Caveat: certificates/plain.json: {caveat}" in joined(done.stdout)) == (0, True)


def test_a_level_that_is_chosen_after_the_test_is_a_caveat(run: Run, advrisk: Command, tmp_path: Path) -> None:
    done = advrisk("certify", "run", "--zeta", "0.96", "--alpha", "0.99", "--out", "out")
    assert done.returncode == 4
    assert "Caveat: zeta = 0.96 was chosen later; 0.05 was frozen before the test." in joined(done.stdout)
    done = advrisk("verify", "out/plain.json", "--run", "run")
    assert done.returncode == 0
    assert "at most 96 % of the time (zeta, " in joined(done.stdout)
    assert "Caveat: zeta = 0.96 was chosen later" in joined(done.stdout)
    content = json.loads((tmp_path / "out/plain.json").read_text())
    content["claim"]["caveats"] = []
    (tmp_path / "bare.json").write_text(json.dumps(content))
    assert advrisk("verify", "bare.json", "--run", "run").returncode == 1


def test_each_attack_has_a_claim_of_its_own(run: Run) -> None:
    found = run.certificate()
    (one,) = found.lists
    assert not one.certified
    claims = {claim.attack.partition(",")[0]: claim for claim in found.claims}
    assert (claims["square"].largest, claims["square"].together) == (0.3, 0.3)
    assert (claims["pgd"].largest, claims["pgd"].together) == (None, None)
    assert one.certificate is not None
    p = {test.name: test.p for test in one.certificate.arms}
    assert (claims["square"].p, claims["pgd"].p) == ((p["weak"],), (p["strong"],))


def other_model(nets: Path, tmp_path: Path, name: str) -> Run:
    content = content_of(nets)
    content["models"]["plain"]["factory"] = f"{__name__}:{name}"
    content["arms"] = content["arms"][1:]
    Study.from_dict(content).run(tmp_path / name, workers=0)
    return Run.open(tmp_path / name)


def test_a_useless_model_is_shown_as_such_and_gates_can_refuse_it(nets: Path, tmp_path: Path, advrisk: Command) -> None:
    run = other_model(nets, tmp_path, "Useless")
    found = run.certificate().of("plain")
    assert found.clean_error.value > 0.9
    assert (found.lists[0].certified, found.certified, found.verdict) == (True, False, "certified, with caveats")
    done = advrisk("certify", "Useless")
    said = joined(done.stdout)
    assert done.returncode == 4
    assert said.startswith(
        "plain is certified, with caveats, within linf 0.3: under these attacks it is wrong on at most 100 %"
    )
    assert "Caveat: It is wrong on most inputs without any attack" in said
    for requirement, code in (
        ("certificate.plain", 4),
        ("certified_broken.plain <= 0.3", 4),
        ("certified_broken.plain <= 0.3 with caveats", 0),
        ("certified_wrong.plain <= 0.3 with caveats", 1),
    ):
        assert advrisk("gate", "Useless", "--require", requirement).returncode == code, requirement
    gated = joined(advrisk("gate", "Useless", "--require", "certificate.plain").stdout)
    assert "because few are right; do what the caveat asks for, or let it pass with `with caveats`" in gated
    caveat = "certificates/plain.json: It is wrong on most inputs without any attack"
    assert f"Caveat: {caveat}" in joined(advrisk("evidence", "Useless", "--out", "pack").stdout)
    (told,) = json.loads(advrisk("evidence", "Useless", "--out", "pack", "--json").stdout)["caveats"]
    assert told.startswith(caveat)


def test_answers_that_are_no_numbers_count_as_failures_and_are_shown(
    nets: Path, tmp_path: Path, advrisk: Command
) -> None:
    run = other_model(nets, tmp_path, "Silent")
    rows = run.query(
        "SELECT message::VARCHAR AS message, count(*) AS n FROM outcomes JOIN samples USING (sample) "
        "WHERE split = 'calibrate' AND kind = 'attack' AND outcome = 'error' GROUP BY ALL"
    ).to_pylist()
    errors = {row["message"]: row["n"] for row in rows}
    attacked, clean = "the model answered with a number that", "the model answered the clean input with a number that"
    assert set(errors) == {f"{attacked} is not finite", f"{clean} is not finite"}
    found = run.certificate()
    (one,) = found.lists
    assert one.attacks[0].untold == errors[f"{attacked} is not finite"]
    assert one.attacks[0].failures > one.attacks[0].untold
    assert one.certificate is not None
    assert one.certificate.wrong is not None
    assert one.certificate.wrong.count.failures >= sum(errors.values()), "a clean answer that is none is not right"
    (note,) = [note for note in found.notes if note.startswith("Rows of attacks that ended with an error")]
    assert all(f"{n}: {message}" in note for message, n in errors.items())
    assert f"{one.attacks[0].untold} count as failures; the rest were incorrect or unanswered when clean" in note

    advrisk("certify", "Silent", "--out", "out")
    advrisk("evidence", "Silent", "--out", "pack")
    told = {
        "certify": json.loads(advrisk("certify", "Silent", "--json").stdout)[0]["notes"],
        "verify": json.loads(advrisk("verify", "out/plain.json", "--json").stdout)["certificate_notes"],
        "pack": json.loads(advrisk("verify", "pack", "--json").stdout)["certificate_notes"],
        "evidence": json.loads(advrisk("evidence", "Silent", "--out", "pack", "--json").stdout)["notes"],
    }
    for requirement in ("certificate.plain", "certified_broken.plain <= 0.9"):
        done = advrisk("gate", "Silent", "--require", requirement, "--json")
        told[requirement] = json.loads(done.stdout)["results"][0]["cautions"]
    for place, notes in told.items():
        assert any(text.endswith(note) for text in notes), place
    for words in (("verify", "out/plain.json"), ("verify", "pack"), ("evidence", "Silent", "--out", "pack")):
        assert note in joined(advrisk(*words).stdout), words
    gated = joined(advrisk("gate", "Silent", "--require", "certificate.plain").stdout)
    assert note.removesuffix(".") in gated
    assert note in (tmp_path / "pack/index.json").read_text()


def test_flagged_attacks_are_told_of_wherever_the_verdict_stands(run: Run, advrisk: Command, tmp_path: Path) -> None:
    (note,) = [note for note in run.certificate().notes if note.startswith("Some attacks on samples to calibrate")]
    run.certify(tmp_path / "out")
    assert note in json.loads(advrisk("verify", "out/plain.json", "--run", "run", "--json").stdout)["certificate_notes"]
    assert f"Note: {note}" in joined(advrisk("verify", "out/plain.json").stdout)
    (one,) = json.loads(advrisk("gate", "run", "--require", "certificate.plain", "--json").stdout)["results"]
    assert note in one["cautions"]


def test_trying_until_it_succeeds_is_a_caveat_everywhere(nets: Path, tmp_path: Path, advrisk: Command) -> None:
    """Four seeds draw samples of which none is drawn twice; the certificate counts the others."""
    content = content_of(nets, assess={"certificate": {"alpha": 0.5, "zeta": 0.05}})
    content["arms"], content["data"] = content["arms"][1:], {"source": "digits", "evaluate": 1, "calibrate": 30}
    for seed in (2, 11, 67, 68):
        Study.from_dict(content | {"seed": seed}).run(tmp_path / "tried", workers=0)
    caveat = "3 other questions of this run met other samples before. Of 4 tests, some are wrong up to 20 % of the time"
    done = advrisk("certify", "tried", "--out", "out", "--json")
    (written,) = json.loads(done.stdout)
    assert (done.returncode, written["certified"]) == (4, False)
    assert any(text.startswith(caveat) for text in written["caveats"])
    for requirement, code in (("certificate.plain", 4), ("certificate.plain with caveats", 0)):
        done = advrisk("gate", "tried", "--require", requirement, "--json")
        (one,) = json.loads(done.stdout)["results"]
        assert (done.returncode, caveat in json.dumps(one)) == (code, True), requirement
    for requirement in ("certificate.plain", "certificate.plain with caveats"):
        assert ".." not in advrisk("gate", "tried", "--require", requirement).stdout.replace("...", "")
    found = json.loads(advrisk("verify", "out/plain.json", "--run", "tried", "--json").stdout)
    assert (found["holds"], any(text.startswith(caveat) for text in found["caveats"])) == (True, True)
    done = advrisk("evidence", "tried", "--out", "pack")
    assert f"Caveat: certificates/plain.json: {caveat}" in joined(done.stdout)
    assert caveat in (tmp_path / "pack/index.json").read_text()


def test_samples_that_were_attacked_under_another_name_before_are_a_caveat(
    nets: Path, tmp_path: Path, advrisk: Command
) -> None:
    """One file of samples, evaluated with all attacks; the same under new names, certified with the weak one."""
    digits = load_digits()
    x, y = (digits.images[1400:1480, None] / 16).astype(np.float32), digits.target[1400:1480]
    content = content_of(nets)
    for name, arms, splits in (
        ("first", content["arms"], {"evaluate": 80}),
        ("second", content["arms"][1:], {"evaluate": 20, "calibrate": 60}),
    ):
        np.savez(tmp_path / f"{name}.npz", x=x, y=y, id=[f"{name}-{place}" for place in range(len(x))])
        data = {"source": "npz", "path": str(tmp_path / f"{name}.npz"), "bounds": [0, 1], "order": "file", **splits}
        asked = {"certificate": {"alpha": 0.5, "zeta": 0.05}} if "calibrate" in splits else {}
        Study.from_dict(content | {"data": data, "arms": arms, "assess": asked}).run(tmp_path / "tried", workers=0)
    done = advrisk("certify", "tried", "--out", "out", "--json")
    (written,) = json.loads(done.stdout)
    assert (done.returncode, written["certified"]) == (4, False)
    assert "attacks, or attacked, under another name: 60." in written["caveats"][0]
    assert advrisk("gate", "tried", "--require", "certificate.plain").returncode == 4


def lose_question(run: Run) -> None:
    (segment,) = [path.parent for path in (run.folder / "ledger").rglob("questions.parquet")]
    shutil.rmtree(segment)


def test_a_run_that_lost_its_question_says_so_and_answers_the_others(
    nets: Path, run: Run, advrisk: Command, tmp_path: Path
) -> None:
    run.certify(tmp_path / "out")
    lose_question(run)
    done = advrisk("ledger", "check", "run", "--repair")
    said = joined(done.stdout)
    assert "samples to calibrate were met, but no question is frozen; which attacks were tested" in said
    assert "Next: advrisk run STUDY.yaml, without `assess: certificate`, --out run, which does it again" in said
    done = advrisk("ledger", "check", "run", "--json")
    (finding,) = json.loads(done.stdout)["findings"]
    assert (done.returncode, finding["kind"]) == (1, "question")
    assert advrisk("ledger", "check", "run", "--repair").returncode == 0
    assert "damaged: " in advrisk("ledger", "check", "run").stdout, "no repair brings it back"

    certain = "samples to calibrate were met, but no question is frozen"
    remedy = "choose another folder and other samples for a certificate"
    assert advrisk("status", "run").returncode == 0
    assert advrisk("report", "run", "--json", "--out", "report.json").returncode == 0
    told = json.dumps(json.loads((tmp_path / "report.json").read_text()))
    assert certain in told
    assert remedy in told
    assert "relative_damage" in told
    assert advrisk("evidence", "run", "--out", "pack").returncode == 0
    index = (tmp_path / "pack/index.json").read_text()
    assert certain in index
    assert "clean inputs answered rightly" in index
    done = advrisk(
        "gate", "run", "--require", "certificate.plain", "--require", "clean_accuracy.plain >= 0.5", "--json"
    )
    first, second = json.loads(done.stdout)["results"]
    assert (first["verdict"], certain in first["reason"], second["estimate"]["n"]) == ("undecided", True, 16)
    for words, code in (
        (("certify", "run"), 2),
        (("verify", "out/plain.json", "--run", "run"), 1),
        (("show", "certificate", "run"), 2),
    ):
        done = advrisk(*words)
        assert (done.returncode, certain in joined(done.stdout + done.stderr)) == (code, True), words

    content = content_of(nets)
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(content))
    assert advrisk("run", "study.yaml", "--out", "run", "--workers", "1").returncode == 2
    del content["assess"]
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(content))
    assert advrisk("run", "study.yaml", "--out", "run", "--workers", "1").returncode == 0, "as the advice says"


def test_a_certificate_in_a_run_that_lost_its_question_stays_out_of_packs(run: Run, advrisk: Command) -> None:
    run.certify()
    lose_question(run)
    advrisk("ledger", "check", "run", "--repair")
    done = advrisk("evidence", "run", "--out", "pack")
    assert done.returncode == 0, done.stderr
    assert not (run.folder.parent / "pack/certificates").exists()
    assert "no question is frozen" in (run.folder.parent / "pack/index.json").read_text()


def test_a_bogus_question_is_found_by_a_check(run: Run, advrisk: Command) -> None:
    row = {"question": ["other"], "previous": [""], "content": ["{}"]}
    run.ledger.append({"questions": table_from("questions", row)})
    done = advrisk("ledger", "check", "run")
    assert (done.returncode, "questions that were frozen do not follow each other" in joined(done.stdout)) == (1, True)
    assert advrisk("certify", "run").returncode == 2
    assert advrisk("status", "run").returncode == 0
    assert advrisk("report", "run", "--out", "page.html").returncode == 0


def cut_tail(run: Run, first: Path) -> None:
    """Remove a segment and all that came later, with their lines of the history."""
    history = run.folder / "ledger" / "history.jsonl"
    gone = {path.name for path in first.parent.iterdir() if path.name >= first.name}
    for name in gone:
        shutil.rmtree(first.parent / name)
    lines = [line for line in history.read_text().splitlines() if json.loads(line).get("segment") not in gone]
    history.write_text("".join(f"{line}\n" for line in lines))


def test_a_cut_tail_leaves_inputs_behind_that_are_a_caveat(
    nets: Path, run: Run, advrisk: Command, tmp_path: Path
) -> None:
    (segment,) = [path.parent for path in (run.folder / "ledger").rglob("questions.parquet")]
    cut_tail(run, segment)
    assert not json.loads(advrisk("ledger", "check", "run", "--json").stdout)["damaged"], "nothing contradicts it"
    content = content_of(nets)
    Study.from_dict(content | {"arms": content["arms"][1:]}).run(run.folder, workers=0)
    found = Run.open(run.folder).certificate().of("plain")
    caveat, weak = found.caveats
    assert (found.certified, found.verdict) == (False, "certified, with caveats")
    assert weak.startswith("These attacks are weak")
    assert caveat.startswith("Inputs are kept of 1 cell on samples to calibrate that the ledger does not hold")
    assert advrisk("gate", "run", "--require", "certificate.plain").returncode == 4


def test_a_lock_that_is_held_hides_no_inputs_from_before(nets: Path, run: Run) -> None:
    (segment,) = [path.parent for path in (run.folder / "ledger").rglob("questions.parquet")]
    cut_tail(run, segment)
    content = content_of(nets)
    Study.from_dict(content | {"arms": content["arms"][1:]}).run(run.folder, workers=0)
    with (run.folder / "lock").open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        caveats = Run.open(run.folder).certificate().of("plain").caveats
    assert caveats[0].startswith("Inputs are kept of 1 cell on samples to calibrate that the ledger does not hold")


def test_a_stopped_run_that_is_resumed_leaves_no_caveat(nets: Path, run: Run) -> None:
    """Inputs are kept before their rows are published; the next run does the same cells."""
    (asked,) = [path.parent for path in (run.folder / "ledger").rglob("questions.parquet")]
    later = sorted(path for path in asked.parent.iterdir() if path.name > asked.name)
    kept = set((run.folder / "inputs/cells").rglob("*.npz"))
    cut_tail(run, later[0])
    Study.from_dict(content_of(nets)).run(run.folder, workers=0)
    assert set((run.folder / "inputs/cells").rglob("*.npz")) == kept
    assert Run.open(run.folder).certificate().of("plain").caveats == ()


def test_a_shortened_list_in_another_folder_is_seen_by_the_fingerprint_alone(
    nets: Path, run: Run, tmp_path: Path
) -> None:
    content = content_of(nets)
    Study.from_dict(content | {"arms": content["arms"][1:]}).run(tmp_path / "elsewhere", workers=0)
    elsewhere = Run.open(tmp_path / "elsewhere")
    assert not run.certificate().of("plain").certified
    (caveat,) = elsewhere.certificate().of("plain").caveats
    assert caveat.startswith("These attacks are weak"), "nothing tells of the other folder, but of the list itself"
    (one,), (other,) = (each.certify(tmp_path / name) for each, name in ((run, "one"), (elsewhere, "other")))
    assert one.content["calibration"]["fingerprint"] == other.content["calibration"]["fingerprint"]

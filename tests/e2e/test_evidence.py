"""`advrisk evidence` and `advrisk verify` on a run that holds everything, and the page in a real browser."""

import json
import re
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from advrisk import Run, Study
from advrisk.core.errors import RunError
from advrisk.parts.data.builtin import digits
from advrisk.report.evidence.clauses import TEXTS

from .conftest import Command, study_of
from .visits import CHROMIUM

TOPICS = {
    "accuracy",
    "success",
    "damage",
    "comparison",
    "corruptions",
    "scenarios",
    "groups",
    "detection",
    "survival",
    "certificates",
    "measures",
    "trust",
    "study",
    "provenance",
    "compute",
}


@pytest.fixture(scope="module")
def finished(nets: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Damage, corruptions, a scenario, strata, a detector, a measure and certificates; nobody was asked."""
    folder = tmp_path_factory.mktemp("everything")
    data = digits()
    light = np.where(np.arange(len(data.x)) % 2, "day", "night")
    np.savez(folder / "signs.npz", x=data.x, y=data.y, light=light)
    content = study_of(nets) | {
        "data": {
            "source": "npz",
            "path": str(folder / "signs.npz"),
            "strata": ["light"],
            "bounds": [0, 1],
            "evaluate": 48,
            "calibrate": 60,
        },
        "arms": [
            {"attack": "fgsm", "norm": "linf", "eps": [0.02, 0.2]},
            {"attack": "pgd", "norm": "linf", "eps": 0.2, "steps": 5},
            {"corruption": "gaussian-noise", "sigma": 0.3},
        ],
        "shard": 60,
        "detectors": ["confidence"],
        "measures": [{"name": "clever", "norm": "linf", "radius": 0.5, "batches": 10, "batch": 4, "samples": 4}],
        "scenarios": {
            "town": {"grain": {"weight": 0.4, "of": {"gaussian-noise": 1.0}}, "evil": {"weight": 0.1, "of": ["pgd"]}}
        },
    }
    content["assess"] = {
        "survival": {},
        "damage": {"norm": "linf", "thresholds": [0.1, 0.2], "resamples": 200, "evasion": 0.1},
        "detection": {"resamples": 100},
        "certificate": {"alpha": 0.2, "zeta": 0.05},
    }
    Study.from_dict(content).run(folder / "run")
    return folder / "run"


@pytest.fixture(scope="module")
def written(finished: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Run.open(finished).evidence(tmp_path_factory.mktemp("written") / "pack")


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Run:
    shutil.copytree(finished, tmp_path / "run")
    return Run.open(tmp_path / "run")


def clauses_of(index: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(text["id"], clause["id"]): clause for text in index["texts"] for clause in text["clauses"]}


def test_a_run_that_holds_everything_says_what_the_api_says(written: Path, finished: Path) -> None:
    index = json.loads((written / "index.json").read_text())
    run = Run.open(finished)
    numbers = {topic["id"]: topic["numbers"] for topic in index["numbers"]}
    assert {name for name, found in numbers.items() if found} == TOPICS
    assert not numbers["people"]
    damage, town, certificate = run.damage(), run.indicators().of("town"), run.certificate()
    detection, survival = run.detection(), run.survival()

    def said(topic: str, model: str, what: str) -> dict[str, Any]:
        (found,) = (one for one in numbers[topic] if one["model"] == model and one["what"] == what)
        estimate: dict[str, Any] = found["estimate"]
        return estimate

    for row in damage.models:
        assert said("accuracy", row.model, "clean inputs answered rightly") == row.clean_accuracy.as_dict()
        assert said("damage", row.model, "probability that an attack does damage") == row.damage.as_dict()
        assert said("success", row.model, "robust accuracy at linf 0.1") == row.robust_accuracy[0.1].as_dict()
        assert said("success", row.model, "attack success rate at linf 0.1") == row.success_ratio[0.1].as_dict()
    for model in town.models:
        assert said("scenarios", model.model, "misclassified in town") == model.risk.as_dict()
        night = model.by_stratum["light"]["night"]
        assert said("groups", model.model, "misclassified in town where light is night") == night.as_dict()
    for one in certificate.lists:
        what = f"calibration samples broken by the worst attack at linf {one.eps:.4g}"
        assert said("certificates", one.model, what) == one.certificate.worst.risk.as_dict()
    for table in detection.tables:
        assert (
            said("detection", table.model, "AUROC of confidence against all attacks") == table.overall.auroc.as_dict()
        )
    for lasting in survival.models:
        what = f"mean {survival.unit} until a sample breaks, up to {survival.until:g}"
        assert said("survival", lasting.model, what) == lasting.mean.as_dict()
    clauses = clauses_of(index)
    assert clauses.keys() == {(text.id, clause.id) for text in TEXTS for clause in text.clauses}
    for text in TEXTS:
        for clause in text.clauses:
            held = [name for name in clause.topics if name in TOPICS]
            expected = clause.degree if held else "left to others"
            assert clauses[text.id, clause.id]["degree"] == expected
            assert clauses[text.id, clause.id]["numbers"] == held
    assert index["unfinished"] == ""


def test_links_lead_to_files_and_sections(written: Path) -> None:
    page, report = (written / "index.html").read_text(), (written / "report.html").read_text()
    ids, in_report = (set(re.findall(r' id="([^"]+)"', text)) for text in (page, report))
    links = set(re.findall(r'href="([^"]+)"', page))
    for link in links:
        file, _, section = link.partition("#")
        assert not file or (written / file).is_file()
        assert not section or section in (in_report if file else ids)
    sections = {"damage", "indicators", "detection", "survival", "certificate", "health", "provenance"}
    assert {f"report.html#{section}" for section in sections} <= links
    named = {path.relative_to(written).as_posix() for path in written.rglob("*") if path.is_file()}
    assert named <= links | {"index.html", "index.md"}


def test_the_commands_write_sign_and_check_a_pack(run: Run, advrisk: Command, tmp_path: Path) -> None:
    assert advrisk("certify", "--new-key", "key.pem").returncode == 0
    done = advrisk("evidence", "run", "--out", "signs.zip", "--sign", "key.pem")
    assert (done.returncode, done.stderr) == (0, "")
    assert "This is no legal advice and no conformity assessment." in done.stdout
    assert done.stdout.rstrip().endswith("Check it: advrisk verify signs.zip")
    with zipfile.ZipFile(tmp_path / "signs.zip") as archive:
        names = archive.namelist()
        study = yaml.safe_load(archive.read("study.yaml"))
    certificates = [f"certificates/{model}.{form}" for model in ("noisy", "plain") for form in ("html", "json")]
    assert set(names) >= {*certificates, "report.html", "study.yaml", "ledger-digest.json", "manifest.json"}
    assert study["name"] == "digits-study"
    checked = advrisk("verify", "signs.zip", "--key", "key.pub.pem", "--run", "run")
    assert checked.returncode == 0, checked.stdout
    assert "It holds. It says: Of 43 clauses" in checked.stdout
    for told in ("numbers of the index were counted again", "certificates/plain.json: it holds"):
        assert told in checked.stdout
    facts = json.loads(advrisk("evidence", "run", "--json").stdout)
    assert (facts["path"], facts["signed"]) == ("run/evidence", False)
    found = json.loads(advrisk("verify", "run/evidence", "--json").stdout)
    assert found["holds"]
    (tmp_path / "run" / "evidence" / "index.md").write_text("All is well.")
    found = advrisk("verify", "run/evidence")
    assert (found.returncode, found.stderr) == (1, "")
    assert "Do not trust this evidence pack." in found.stdout
    (tmp_path / "photos").mkdir()
    (tmp_path / "photos" / "cat.png").write_text("cat")
    refused = advrisk("evidence", "run", "--out", "photos")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "is there already, and no evidence pack; choose another name" in refused.stderr
    (tmp_path / "letter.txt").write_text("Dear auditor")
    (tmp_path / "package.json").write_text('{"name": "mine"}')
    for name in ("photos", "run", "letter.txt", "package.json"):
        refused = advrisk("verify", name)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "no evidence pack" in refused.stderr or "neither a certificate nor an evidence pack" in refused.stderr
    (tmp_path / "cut.zip").write_bytes((tmp_path / "signs.zip").read_bytes()[:5000])
    assert advrisk("verify", "cut.zip").returncode == 1
    assert advrisk("verify", "nothing.zip").returncode == 2


def test_certificates_of_the_run_are_taken_if_they_still_hold(run: Run, tmp_path: Path) -> None:
    (written, _) = run.certify()
    pack = run.evidence(tmp_path / "pack")
    assert (pack / "certificates" / written.document.name).read_bytes() == written.document.read_bytes()
    text = written.document.read_text()
    written.document.write_text(text.replace('"zeta": 0.05', '"zeta": 0.04'))
    with pytest.raises(RunError, match=r"does not hold any more\..* Write it anew: advrisk certify"):
        run.evidence(tmp_path / "other")
    assert not (tmp_path / "other").exists()


@pytest.mark.browser
@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: the browser tests did not run")
@pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (390, "dark")])
def test_the_page_in_a_real_browser(browser: Any, written: Path, width: int, scheme: str) -> None:
    complaints: list[str] = []
    requests: list[str] = []
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.on("console", lambda message: complaints.append(message.text))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto((written / "index.html").as_uri())
    index = json.loads((written / "index.json").read_text())
    assert page.inner_text("h1") == index["summary"]["text"]
    assert "no legal advice" in page.inner_text(".notice")
    assert page.locator(".clauses tbody tr").count() == index["summary"]["clauses"]
    for link in page.locator("nav a[href^='#']").all():
        link.click()
        assert page.locator(link.get_attribute("href")).is_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "the page scrolls sideways"
    assert len(requests) == 1
    page.locator(".clauses a[href='#numbers-damage']").first.click()
    assert page.locator("#numbers-damage").is_visible()
    page.locator("#numbers-damage a[href^='report.html']").click()
    page.wait_for_selector(".figure .chart", state="attached")
    assert page.url.endswith("report.html#damage")
    assert complaints == []
    page.close()

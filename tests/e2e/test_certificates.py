"""Certificates of a real run: `advrisk certify`, `verify` and `show`, the report, and what Python says."""

import csv
import json
import shutil
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from scipy.stats import binom

from advrisk import Run, Study
from advrisk.cli import main
from tests.stamps import resist, restamp

from .conftest import study_of
from .visits import Visit

Call = Callable[..., tuple[int, str, str]]
COUNTED = """
    SELECT model, arm, eps, any_value(norm) AS norm, count(*) FILTER (outcome = 'success') AS failures, count(*) AS n
    FROM outcomes JOIN samples USING (sample) JOIN (SELECT DISTINCT model, arm, origin FROM arms) USING (model, arm)
    WHERE split = 'calibrate' AND kind = 'attack' AND origin IN ('study', 'frozen') GROUP BY model, arm, eps
"""


@pytest.fixture(scope="module")
def finished(nets: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that asks for a certificate: one attack of the study at two sizes, and one whose step a search chose."""
    content = study_of(nets)
    content["models"] = {"plain": content["models"]["plain"], "soft": content["models"]["noisy"]}
    content |= {
        "data": {"source": "digits", "evaluate": 16, "tune": 16, "calibrate": 90},
        "arms": [{"attack": "pgd", "norm": "linf", "eps": [0.01, 0.3], "steps": 5}],
        "search": [{"attack": "pgd", "norm": "linf", "eps": 0.01, "steps": 3, "method": "random", "rounds": 2}],
        "shard": 45,
    }
    content["assess"] |= {"certificate": {"alpha": 0.1, "zeta": 0.05}}
    folder = tmp_path_factory.mktemp("certified") / "run"
    Study.from_dict(content).run(folder, workers=0)
    return folder


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Run:
    shutil.copytree(finished, tmp_path / "run")
    return Run.open(tmp_path / "run")


@pytest.fixture
def call(run: Run, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Call:
    """The command line in this process, in the folder that holds the run; code, output and complaints."""
    monkeypatch.chdir(run.folder.parent)
    monkeypatch.setenv("COLUMNS", "100")

    def words(*given: str) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["advrisk", *given])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        return int(ended.value.code or 0), said.out, said.err

    return words


def test_counts_and_p_are_what_sql_and_scipy_say(run: Run) -> None:
    found = run.certificate()
    rows = run.query(COUNTED).to_pylist()
    assert len(rows) == 2 * 3, "two sizes of the study's attack, and one that was found, for each model"
    for row in rows:
        one = found.of(row["model"]).of(row["norm"], row["eps"])
        (attack,) = [attack for attack in one.attacks if attack.arm == row["arm"]]
        assert one.certificate is not None
        (test,) = [test for test in one.certificate.arms if test.name == row["arm"]]
        assert (attack.failures, row["n"]) == (row["failures"], 90)
        assert test.p == pytest.approx(binom.cdf(row["failures"], 90, 0.1), rel=1e-9)
    small = found.of("plain").of("linf", 0.01)
    assert {attack.origin for attack in small.attacks} == {"study", "frozen"}
    assert small.p == max(test.p for test in small.certificate.arms)  # type: ignore[union-attr]
    assert found.of("plain").of("linf", 0.3).verdict == "not certified"


def test_certify_sign_and_verify(run: Run, call: Call, tmp_path: Path) -> None:
    assert call("certify", "--new-key", "key.pem")[0] == 0
    assert stat.S_IMODE((tmp_path / "key.pem").stat().st_mode) == 0o600
    assert call("certify", "--new-key", "key.pem")[0] == 2
    code, said, _ = call("certify", "run", "--sign", "key.pem", "--model", "plain")
    assert code == 1, "not all sizes are certified"
    assert "plain is certified in part, within linf 0.01: under these attacks it is wrong on at most" in " ".join(
        said.split()
    )
    code, said, _ = call("certify", "run", "--sign", "key.pem", "--eps", "0.01", "--out", "small", "--json")
    written = json.loads(said)
    assert (code, [one["certified"] for one in written]) == (0, [True, True])
    assert {path.name for path in (tmp_path / "small").iterdir()} == {
        f"{m}.{e}" for m in ("plain", "soft") for e in ("html", "json")
    }
    code, said, _ = call("verify", "small/plain.json", "--key", "key.pub.pem", "--run", "run")
    assert (code, "It holds. It says: plain is certified within linf 0.01: under these attacks" in said) == (0, True)
    assert "The run gives the same certificate" in said
    content = json.loads((tmp_path / "small/plain.json").read_text())
    assert content["signature"]["algorithm"] == "ed25519"
    content["lists"][0]["attacks"][0]["failures"] = 0
    (tmp_path / "forged.json").write_text(json.dumps(content))
    code, said, _ = call("verify", "forged.json", "--key", "key.pub.pem")
    assert code == 1
    assert "changed after it was signed" in " ".join(said.split())
    del content["signature"]
    (tmp_path / "forged.json").write_text(json.dumps(content))
    code, said, _ = call("verify", "forged.json", "--json")
    assert (code, json.loads(said)["holds"]) == (1, False)
    whole = (tmp_path / "small/plain.json").read_bytes()
    for cut in (b"", b"{", whole[: len(whole) // 2], whole + b"\xff"):
        (tmp_path / "cut.json").write_bytes(cut)
        code, said, complaint = call("verify", "cut.json")
        assert (code, said) == (2, "")
        assert "cut.json: is neither a certificate nor an evidence pack" in complaint
    (tmp_path / "forged.json").write_bytes(whole.replace(b'"version":', b'"version": 0, "version":', 1))
    assert call("verify", "forged.json")[0] == 1
    assert call("verify", "nowhere.json")[0] == 2


def test_a_signed_certificate_is_replaced_only_by_a_signed_answer_to_the_same_question(
    call: Call, tmp_path: Path
) -> None:
    """None of several is replaced, where one of them must stay."""
    call("certify", "--new-key", "key.pem")
    call("certify", "run", "--sign", "key.pem", "--model", "soft")
    folder = tmp_path / "run/certificates"
    before = {path: path.read_bytes() for path in folder.iterdir()}
    for words, difference in (
        ((), "is not signed"),
        (("--alpha", "0.2"), "is not signed and is about alpha 0.2 instead of 0.1"),
        (("--sign", "key.pem", "--alpha", "0.2"), "is about alpha 0.2 instead of 0.1"),
        (("--sign", "key.pem", "--eps", "0.01"), "is about sizes linf 0.01 instead of linf 0.01, linf 0.3"),
    ):
        code, said, complaint = call("certify", "run", *words)
        assert (code, said) == (2, "")
        assert f"soft.json: is signed, and the new certificate {difference};" in complaint
        assert "--out FOLDER, or replace the signed one with --replace" in complaint
        assert {path: path.read_bytes() for path in folder.iterdir()} == before
    assert call("certify", "run", "--alpha", "20 %", "--out", "elsewhere")[0] in (1, 4)
    assert call("certify", "run", "--sign", "key.pem")[0] == 1
    assert call("certify", "run", "--alpha", "0.2", "--replace")[0] in (1, 4)
    assert "signature" not in json.loads((folder / "soft.json").read_text())


def flip_bits(segment: Path) -> None:
    file = segment / "outcomes.parquet"
    content = bytearray(file.read_bytes())
    content[len(content) // 3] ^= 4
    file.write_bytes(content)


def forge(segment: Path) -> None:
    resist(segment)
    restamp(segment, history=False)


@pytest.mark.parametrize(
    ("alter", "says"),
    [
        (flip_bits, "outcomes.parquet: was altered"),
        (resist, "outcomes.parquet: was altered"),
        (forge, "segment.json: is not the one that was published"),
        (lambda segment: (segment / "outcomes.parquet").unlink(), "outcomes.parquet: is missing"),
        (shutil.rmtree, ": is lost: it was published"),
    ],
)
def test_nothing_is_said_of_rows_that_are_not_those_that_were_written(
    run: Run, call: Call, tmp_path: Path, alter: Callable[[Path], None], says: str
) -> None:
    """Whichever segment it is: a run has few of them, and certificates need the last."""
    call("certify", "--new-key", "key.pem")
    run.certify(models=["plain"])
    shutil.copy(run.folder / "certificates/plain.json", tmp_path / "plain.json")
    rows = run.query("SELECT DISTINCT parse_path(filename)[-2] AS segment FROM all_outcomes WHERE outcome = 'success'")
    alter(run.folder / "ledger" / "segments" / max(rows["segment"].to_pylist()))
    before = sorted(path for path in tmp_path.rglob("*") if path.is_file())
    for words in (
        ("status", "run"),
        ("show", "run"),
        ("show", "damage", "run"),
        ("show", "certificate", "run"),
        ("report", "run", "--out", "report.html"),
        ("report", "run", "--json"),
        ("gate", "run", "--require", "damage.plain <= 1"),
        ("select", "run"),
        ("compare", "run", "run"),
        ("certify", "run", "--sign", "key.pem", "--out", "signed"),
        ("evidence", "run", "--sign", "key.pem", "--out", "pack"),
        ("verify", "plain.json", "--run", "run"),
        ("export", "run", "rows.csv"),
        ("ledger", "sql", "run", "FROM outcomes"),
        ("ledger", "compact", "run"),
    ):
        code, said, complaint = call(*words)
        assert (code, said) == (2, ""), words
        assert says in complaint, words
        assert "advrisk ledger check RUN --repair" in complaint, words
    assert sorted(path for path in tmp_path.rglob("*") if path.is_file()) == before
    code, said, _ = call("ledger", "check", "run", "--json")
    assert (code, json.loads(said)["damaged"]) == (1, True)


def test_a_run_whose_rows_changed_does_not_give_the_certificate_any_more(run: Run, call: Call, tmp_path: Path) -> None:
    run.certify(models=["plain"])
    shutil.copy(run.folder / "certificates/plain.json", tmp_path / "plain.json")
    content = json.loads((tmp_path / "plain.json").read_text())
    content["provenance"]["ledger"] = "0" * 32
    (tmp_path / "plain.json").write_text(json.dumps(content))
    code, said, _ = call("verify", "plain.json", "--run", "run")
    assert code == 1
    assert "The rows of the run are not those that the certificate was made from" in " ".join(said.split())


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("certify",), "say which run to certify"),
        (("certify", "run", "--new-key", "k.pem"), "makes a key and certifies nothing"),
        (("certify", "run", "--alpha", "1"), "--alpha: a number between 0 and 1, both excluded, or per cent is needed"),
        (("certify", "run", "--alpha", "10"), "found '10'; did you mean 10 % (0.1)?"),
        (("certify", "run", "--zeta", "0"), "--zeta: a number between 0 and 1, both excluded, or per cent is needed"),
        (("certify", "run", "--zeta", "x %"), "--zeta: a number or a fraction such as 8/255 is needed, found 'x'"),
        (("show", "certificate", "run", "--alpha", "10"), "found '10'; did you mean 10 % (0.1)?"),
        (("certify", "run", "--zeta", "1e-17"), "zeta must be at least 1e-15, found 1e-17"),
        (("certify", "run", "--model", "plan"), "no certificate of 'plan'; did you mean 'plain'?"),
        (("certify", "run", "--eps", "0.02"), "was not attacked within eps = 0.02; known: 0.01, 0.3"),
        (("certify", "run", "--norm", "l2"), "was not attacked in l2"),
        (
            ("certify", "run", "--norm", "l7"),
            "Invalid value for '--norm': 'l7' is not one of 'l0', 'l1', 'l2', 'linf'.",
        ),
        (("certify", "run", "--out", "run/study.yaml"), "run/study.yaml is a file, and a folder is needed; choose"),
        (("export", "run", "x.jpg"), "must end in .csv or .parquet for a table, .npz for inputs, .nc for the risk"),
        (
            ("ledger", "sql", "run", "FROM nothing"),
            "no table called 'nothing'; known: arms, cells, evaluated, measures",
        ),
        (("ledger", "sql", "run", "FROM outcome"), "no table called 'outcome'; did you mean 'outcomes'?"),
        (("certify", "run", "--sign", "no.pem"), "no.pem: the key cannot be read"),
        (("show", "certificate", "run", "--tpr", "0.9"), "No such option: --tpr"),
        (("show", "damage", "run", "--alpha", "0.9"), "No such option: --alpha"),
    ],
)
def test_mistakes_are_named(call: Call, words: tuple[str, ...], complaint: str, tmp_path: Path) -> None:
    code, _, said = call(*words)
    assert (code, complaint in said) == (2, True), said
    assert not (tmp_path / "run/certificates").exists()


def test_show_says_the_same_as_python(run: Run, call: Call, tmp_path: Path) -> None:
    found = run.certificate(alpha=0.2)
    code, said, _ = call("show", "certificate", "run", "--alpha", "0.2", "--json", "--csv", "all.csv")
    assert (code, json.loads(said)) == (0, json.loads(json.dumps(found.as_dict())))
    assert (
        found.models[0]
        .caveats[0]
        .startswith(
            "alpha = 0.2 was chosen later; 0.1 was frozen before the test. Chosen after the results, it holds for"
        )
    )
    with (tmp_path / "all.csv").open() as file:
        assert len(list(csv.DictReader(file))) == len(found.rows())
    code, said, _ = call("show", "certificate", "run")
    assert code == 0
    assert max(map(len, said.splitlines())) <= 100
    assert "certifies a model with a larger share at most 5 % of the time (zeta, its error rate)" in " ".join(
        said.split()
    )
    assert "every attack" not in said
    assert "plain: every attack" in call("show", "certificate", "run", "--details")[1]


def test_too_few_samples_are_told_before_the_run(nets: Path) -> None:
    content = study_of(nets) | {"data": {"source": "digits", "evaluate": 8, "calibrate": 20}}
    assert Study.from_dict(content).doubts() == []
    content["assess"] |= {"certificate": {"alpha": 0.1, "zeta": 0.05}}
    (doubt,) = Study.from_dict(content).doubts()
    needed = min(n for n in range(1, 200) if 0.9**n <= 0.05 / 4)  # two models in two norms
    assert (
        f"20 samples to calibrate can never certify a risk of 0.1 at 0.05: with what else is tested, at least {needed}"
        in doubt
    )
    content["data"]["calibrate"] = needed
    assert Study.from_dict(content).doubts() == []


@pytest.mark.browser
def test_the_page_and_the_report_show_it_and_load_nothing(run: Run, browser: Any) -> None:
    (written,) = run.certify(models=["plain"])
    page = browser.new_page(viewport={"width": 390, "height": 800})
    page.goto(written.page.as_uri())
    text = page.inner_text("main")
    assert "What is not claimed" in text
    assert written.content["claim"]["text"] in text
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    visit = Visit(browser, run.report())
    section = visit.page.locator("#certificate")
    assert section.locator(".figure .chart").count() >= 2
    assert "certified in part" in visit.page.inner_text("#reasons")
    assert (visit.complaints, visit.left_the_machine()) == ([], [])

"""Survival of a real study: from the ledger, in the terminal, in files, and on the report's page in a browser."""

import csv
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import yaml

from advrisk import Run, Study
from advrisk.assess.survival.question import Survival
from advrisk.assess.survival.words import survival_headline
from advrisk.cli import main
from advrisk.core.errors import RiskError, StudyError
from advrisk.core.values import number_text

from .conftest import study_of
from .visits import CHROMIUM, Visit

in_browser = [
    pytest.mark.browser,
    pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed: the browser tests did not run"),
]
NAMES = ("survival_curves", "calibration", "accuracy_against_failures", "cost_ratio_by_attack")


def asked(nets: Path) -> dict[str, Any]:
    study = study_of(nets)
    for name, model in study["models"].items():
        model["tags"] = {"kind": f"<b>{name}</b>"}
    return study | {
        "arms": [
            {"attack": "fgsm", "norm": "linf", "eps": 0.1},
            {"attack": "pgd", "norm": "linf", "eps": [0.05, 0.1, 0.2], "steps": 10},
            {"attack": "pgd", "norm": "l2", "eps": 0.5, "steps": 10, "keep": "last"},
        ],
        "assess": {"survival": {"hardware": {"name": "one core", "per_hour": 0.5}, "eps_max": 0.1}},
    }


@pytest.fixture(scope="module")
def run(nets: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Study.from_dict(asked(nets)).run(tmp_path_factory.mktemp("survival") / "run", workers=1)


@pytest.fixture(scope="module")
def report(run: Run) -> Path:
    return run.report()


@dataclass(frozen=True)
class Printed:
    """What a command left behind."""

    returncode: Any
    stdout: str
    stderr: str


@pytest.fixture
def advrisk(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Printed]:
    """The command line in this process: a new one takes seconds to start."""

    def call(*words: str | Path, columns: int = 160) -> Printed:
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr("sys.argv", ["advrisk", *map(str, words)])
        with pytest.raises(SystemExit) as ended:
            main()
        return Printed(ended.value.code, *capsys.readouterr())

    return call


class TestLedger:
    def test_durations_are_those_of_the_ledger(self, run: Run) -> None:
        found = run.survival()
        sql = "SELECT count(*) FILTER (outcome = 'success') AS broken, count(*) FILTER (outcome = 'resisted') AS held, "
        sql += "sum(coalesce(n_forward_first, n_forward)) AS passes FROM outcomes "
        sql += "WHERE arm LIKE 'pgd-linf%' AND model = $model"
        for one in found.models:
            (row,) = run.query(sql, {"model": one.model}).to_pylist()
            assert (one.tally.events, one.tally.censored) == (row["broken"], row["held"])
            _, spent = found.durations.by_sample(one.model)
            assert spent.sum() == row["passes"]
        assert found.covariates == ("eps", "model")
        assert list(found.durations.left_out) == ["fgsm-linf-0.1-ace"]

    def test_an_arm_that_keeps_its_last_point_broke_what_it_broke_first(self, run: Run) -> None:
        found = run.survival(arms=["pgd-l2*"], covariates=["model"])
        (row,) = run.query("SELECT count(n_forward_first) AS n FROM outcomes WHERE arm LIKE 'pgd-l2%'").to_pylist()
        assert sum(one.tally.events for one in found.models) == row["n"]

    def test_seconds_and_gradients(self, run: Run) -> None:
        for measure in ("gradient", "seconds", "process-seconds"):
            found = run.survival(measure=measure)
            assert found.fit is not None
        assert all(one.facts.inference_s is not None for one in found.models)
        assert all(one.cost is not None and one.cost.adversarial is not None for one in found.models)

    def test_a_tag_may_explain_it(self, run: Run) -> None:
        found = run.survival(covariates=["eps", "kind"])
        assert found.of("plain").at == {"kind": "<b>plain</b>"}
        with pytest.raises(RiskError, match="collinear"):
            run.survival(covariates=["kind", "model"])


def test_training_may_be_stated_of_any_model(nets: Path, tmp_path: Path) -> None:
    """The nets here know what their training took; the study knows better."""
    study = asked(nets)
    first, second = list(study["models"])[:2]
    study["models"][first] |= {"train_s": 500, "train_process_s": 900, "train_samples": 1000, "train_cost": 7.2}
    study["data"] = study["data"] | {"evaluate": 20}
    study["arms"] = [{"attack": "pgd", "norm": "linf", "eps": [0.1, 0.2], "steps": 10}]
    study["assess"] = {"survival": None}
    run = Study.from_dict(study).run(tmp_path / "run", workers=1)
    sql = "SELECT train_s, train_process_s, train_samples, train_cost FROM models WHERE model = $model"
    assert run.query(sql, {"model": first}).to_pylist()[0] == dict(
        zip(("train_s", "train_process_s", "train_samples", "train_cost"), (500.0, 900.0, 1000, 7.2), strict=True)
    )
    for measure, seconds in (("seconds", 500.0), ("process-seconds", 900.0)):
        cost = run.survival(measure=measure).of(first).cost
        assert cost is not None
        assert (cost.break_s is not None, cost.adversarial is not None) == (True, True)
        assert cost.adversarial.value * cost.break_s.value == pytest.approx(seconds / 1000)  # type: ignore[union-attr]
    priced = run.survival(measure="seconds", hardware={"name": "one core", "per_hour": 3.6}).of(first).cost
    assert priced is not None
    assert priced.train_cost == 7.2  # and not 0.5, which 500 s of that core cost
    assert priced.adversarial.value * priced.break_cost.value == pytest.approx(7.2 / 1000)  # type: ignore[union-attr]
    assert run.survival().of(second).facts.train_s != 500


class TestCommandLine:
    def test_it_prints_what_the_library_says(self, run: Run, advrisk: Callable[..., Printed]) -> None:
        done = advrisk("show", "survival", run.folder)
        found = run.survival()
        assert not done.returncode, done.stderr
        assert survival_headline(found) in " ".join(done.stdout.split())
        assert "one core at 0.5 an hour" in " ".join(done.stdout.split())

    def test_files_for_machines(self, run: Run, advrisk: Callable[..., Printed], tmp_path: Path) -> None:
        done = advrisk("show", "survival", run.folder, "--measure", "gradient", "--json", "--csv", tmp_path / "s.csv")
        assert not done.returncode, done.stderr
        told = json.loads(done.stdout)
        assert told["unit"] == "gradient passes"
        with (tmp_path / "s.csv").open() as file:
            lines = list(csv.DictReader(file))
        means = {
            line["model"]: float(line["value"])
            for line in lines
            if (line["what"], line["name"]) == ("survival", "mean")
        }
        assert means == {one["model"]: pytest.approx(one["mean"]["value"]) for one in told["models"]}

    def test_the_reference_and_the_unit_may_be_named(self, run: Run, advrisk: Callable[..., Printed]) -> None:
        models = [one.model for one in run.survival().models]
        for name in models:
            done = advrisk(
                "show", "survival", run.folder, "--reference", f"model={name}", "--unit", "eps=0.01", "--json"
            )
            found = json.loads(done.stdout)["fit"]["coefficients"]
            assert {one["reference"] for one in found} == {None, name}
            assert [one["unit_text"] for one in found if one["name"] == "eps"] == ["0.01"]

    def test_no_line_is_too_long_for_a_narrow_terminal(self, run: Run, advrisk: Callable[..., Printed]) -> None:
        done = advrisk("show", "survival", run.folder, "--model", "plain", columns=60)
        assert max(map(len, done.stdout.splitlines())) <= 60

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            (("--covariate", "n_forward"), "comes from the outcome"),
            (("--covariate", "epz"), "did you mean 'eps'"),
            (("--arm", "fgsm*"), "no arm has a duration in forward passes"),
            (("--until", "-3"), "until"),
            (("--reference", "model"), "--reference is NAME=VALUE, as in model=plain; found 'model'"),
            (("--reference", "model=nobody"), "'nobody' does not occur"),
            (("--unit", "eps=none"), "eps"),
            (("--tolerance", "3"), "tolerance"),
            (("--detector", "lid"), "No such option: --detector"),
        ],
    )
    def test_mistakes_are_told_without_a_traceback(
        self, run: Run, advrisk: Callable[..., Printed], words: tuple[str, ...], message: str
    ) -> None:
        done = advrisk("show", "survival", run.folder, *words)
        assert done.returncode == 2
        assert message in done.stderr
        assert "Traceback" not in done.stderr

    def test_others_have_no_use_for_its_options(self, run: Run, advrisk: Callable[..., Printed]) -> None:
        done = advrisk("show", "damage", run.folder, "--measure", "seconds")
        assert done.returncode == 2
        assert "No such option: --measure" in done.stderr


class TestInBrowser:
    """The page itself."""

    pytestmark = in_browser

    @pytest.mark.parametrize(("width", "scheme"), [(1200, "light"), (390, "dark")])
    def test_everything_draws_and_nothing_is_complained_of(
        self, browser: Any, report: Path, run: Run, width: int, scheme: str
    ) -> None:
        visit = Visit(browser, report, width=width, scheme=scheme)
        section = visit.page.locator("#survival")
        visit.page.evaluate("for (const folded of document.querySelectorAll('details')) folded.open = true")
        visit.until("[...document.querySelectorAll('.figure')].every(one => one.querySelector('.chart'))")
        figures = section.locator(".figure")
        shown = set(run.figures()) & {figures.nth(n).get_attribute("data-figure") for n in range(figures.count())}
        assert len(shown) == figures.count()
        assert shown >= {f"survival {name}" for name in NAMES}
        for place in range(figures.count()):
            assert figures.nth(place).locator(".trace").count() > 0, "an empty plot"
        visit.page.locator("nav a[href='#survival']").click()
        assert section.is_visible()
        choice = section.locator("select")
        for option in choice.locator("option").all_inner_texts():
            choice.select_option(label=option)
            assert section.locator(f"#{choice.get_attribute('data-shows')} .trace").count() > 0
        assert visit.page.evaluate("document.documentElement.scrollWidth") <= width, "the page scrolls sideways"
        assert visit.complaints == []
        assert visit.left_the_machine() == []

    def test_the_page_shows_what_the_api_says(self, browser: Any, report: Path, run: Run) -> None:
        text = Visit(browser, report).page.text_content("#survival")
        found = run.survival()
        for one in found.models:
            assert one.mean is not None
            assert one.cost is not None
            assert one.cost.adversarial is not None
            assert number_text(one.mean.value, "magnitude") in text
            assert number_text(one.cost.adversarial.value, "magnitude") in text


def test_a_study_without_durations_says_nothing_of_them(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run.study is not None
    unasked = type(run.study.assess)(damage=run.study.assess.damage)
    other = Run(run.folder, run.ledger, run.study.model_copy(update={"assess": unasked}))
    assert 'id="survival"' not in other.report(tmp_path / "unasked.html").read_text()  # though there are durations
    assert "survives longest" not in json.dumps(other.record()["executive"])
    assert not [name for name in other.figures() if name.startswith("survival")]

    def nothing(*_: Any, **__: Any) -> None:
        from advrisk.risk.survival.durations import NoDurationsError

        raise NoDurationsError("no arm has a duration in forward passes. fgsm: it takes one step")

    monkeypatch.setattr(Survival, "assess", nothing)
    page = Run.open(run.folder).report(tmp_path / "asked.html").read_text()
    assert "No answer: no arm has a duration" in page  # the study asks


@pytest.mark.parametrize(
    ("survival", "message"),
    [
        ({"arms": ["pdg*"]}, r"assess.survival.arms.*no arm is called 'pdg\*'"),
        (
            {"covariates": ["eps", "knid"]},
            r"assess.survival.covariates.*no covariate is called 'knid'; did you mean 'kind'",
        ),
        ({"covariates": ["n_forward"]}, r"assess.survival.covariates.*comes from the outcome"),
        ({"shape_covariates": ["knid"]}, r"assess.survival.shape_covariates.*no covariate is called 'knid'"),
        ({"reference": {"kind": "nobody"}}, r"assess.survival.reference.*no kind is 'nobody'"),
        (
            {"reference": {"model": "plian"}},
            r"assess.survival.reference.model: no model is 'plian'; did you mean 'plain'",
        ),
        ({"reference": {"attack": "pdg"}}, r"assess.survival.reference.attack: no attack is 'pdg'; did you mean 'pgd'"),
        ({"reference": {"arm": "fgms-linf-0.1-ace"}}, r"reference.arm: no arm is .*did you mean 'fgsm-linf-0.1-ace'"),
        ({"reference": {"objective": "aec"}}, r"reference.objective: no objective is 'aec'; did you mean 'ace'"),
        ({"reference": {"class": 10}}, r"reference.class: no class is '10'"),
        ({"reference": {"eps": 0.1}}, r"reference.eps: eps is a number, and only text has a reference level"),
        ({"reference": {"colour": "red"}}, r"assess.survival.reference.*no covariate is called 'colour'"),
        ({"units": {"esp": "1/255"}}, r"assess.survival.units.*no covariate is called 'esp'; did you mean 'eps'"),
        ({"units": {"model": 2}}, r"assess.survival.units.model: model is text, and only numbers have a unit"),
        ({"norm": "l1"}, r"assess.survival.norm.*no attack that counts is in l1; there are attacks in l2, linf"),
    ],
)
def test_what_cannot_be_answered_is_refused_before_anything_runs(
    nets: Path, tmp_path: Path, survival: dict[str, Any], message: str
) -> None:
    study = Study.from_dict(asked(nets) | {"assess": {"survival": survival}})
    with pytest.raises(StudyError, match=message):
        study.run(tmp_path / "run", workers=1)
    assert not (tmp_path / "run" / "outcomes").exists()


def test_a_misspelt_reference_is_found_by_a_dry_run_with_file_and_line(
    nets: Path, tmp_path: Path, advrisk: Callable[..., Printed]
) -> None:
    study = asked(nets) | {"assess": {"survival": {"reference": {"model": "plian"}}}}
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(study, sort_keys=False))
    line = next(n for n, text in enumerate(path.read_text().splitlines(), start=1) if "plian" in text)
    done = advrisk("run", path, "--out", tmp_path / "run", "--dry-run")
    assert done.returncode == 2
    place = f"{path}:{line}: assess.survival.reference.model"
    assert f"{place}: no model is 'plian'; did you mean 'plain'?" in " ".join(done.stderr.split())

"""What a run says to machines and in notebooks: JSON, CSV, tables, figures, MLflow; all as Python says it."""

import csv
import io
import json
import re
from collections.abc import Iterator
from dataclasses import replace
from html import escape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from jsonschema import Draft202012Validator, ValidationError
from rich.console import Console

from advrisk import Estimate, Run, Study
from advrisk.assess.protocol import Finding, fault_of
from advrisk.core.errors import RiskError, RunError, StudyError
from advrisk.core.plain import json_text, plain, plain_fields
from advrisk.core.sections import Table, Unanswered, every
from advrisk.core.tables import Tabular
from advrisk.core.values import value_lines
from advrisk.ledger.exchange.importing import import_outcomes
from advrisk.render.markdown import escaped
from advrisk.render.page import page_figures
from advrisk.render.records import arrow_tables, tables_record
from advrisk.render.terminal import print_sections
from advrisk.report.evidence.topics import evidence_topics
from advrisk.report.html import report_page
from advrisk.report.markdown import report_markdown
from advrisk.report.records import damage_record, findings_record, findings_tables
from advrisk.study.registered import BUILT_IN as QUESTIONS

from .conftest import Command, study_of

HOSTILE = ['<script>alert("1")</script>', "</td></table>'\"&amp;", "{{7*7}}\u202e", "x" * 10_000]
ESTIMATE = ("value", "low", "high", "level", "n", "method")


@pytest.fixture(scope="module")
def finished(nets: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that holds everything: damage, detectors, a scenario, durations, a search and certificates."""
    content = study_of(nets)
    content["models"] = {"plain": content["models"]["plain"], "soft": content["models"]["noisy"]}
    content |= {
        "data": {"source": "digits", "evaluate": 32, "tune": 8, "calibrate": 40},
        "arms": [
            {"attack": "fgsm", "norm": "linf", "eps": [0.05, 0.2]},
            {"attack": "pgd", "norm": "linf", "eps": 0.2, "steps": 5},
            {"corruption": "gaussian-noise", "sigma": 0.3},
        ],
        "search": [{"attack": "pgd", "norm": "linf", "eps": 0.05, "steps": 2, "method": "random", "rounds": 1}],
        "detectors": ["confidence"],
        "scenarios": {"town": {"grain": {"weight": 0.4, "of": ["gaussian-noise"]}}},
        "shard": 40,
    }
    content["assess"] |= {"certificate": {"alpha": 0.2, "zeta": 0.05}, "survival": {}}
    content["gate"] = ["clean_accuracy.* >= 10 %", "broken.plain at 0.2 <= 1 %"]
    folder = tmp_path_factory.mktemp("everything") / "run"
    Study.from_dict(content).run(folder, workers=0).certify()
    return folder


@pytest.fixture(scope="module")
def everything(finished: Path) -> Run:
    return Run.open(finished)


@pytest.fixture(scope="module")
def little(nets: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of one model under one corruption."""
    content = study_of(nets)
    content["models"].pop("noisy")
    content |= {"arms": [{"corruption": "gaussian-noise", "sigma": 0.3}], "data": {"source": "digits", "evaluate": 16}}
    return Study.from_dict(content).run(tmp_path_factory.mktemp("little") / "run", workers=0)


@pytest.fixture(scope="module")
def forms(everything: Run, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("forms")
    csv_folder = everything.report(folder / "csv", form="csv")
    return {
        "page": everything.report(folder / "page.html").read_text(encoding="utf-8"),
        "markdown": everything.report(folder / "page.md", form="markdown").read_text(encoding="utf-8"),
        "json": strict(everything.report(folder / "page.json", form="json").read_text(encoding="utf-8")),
        "csv": {path.stem: path.read_text(encoding="utf-8") for path in csv_folder.glob("*.csv")},
    }


def strict(text: str) -> Any:
    def refuse(word: str) -> None:
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


def answers(run: Run) -> Iterator[Tabular]:
    found = run.findings()
    for one in found.answered:
        yield from one.result if isinstance(one.result, tuple) else (one.result,)
    yield from (found, run.status())


class TestEveryFinding:
    """Each question goes through each renderer: with its answer, and without one."""

    @pytest.fixture
    def found(self, everything: Run, question: str) -> Finding:
        found = everything.findings().answers[question]
        assert isinstance(found, Finding)
        assert found.headline
        return found

    @pytest.mark.parametrize("question", QUESTIONS)
    @pytest.mark.parametrize("width", [60, 80, 200])
    def test_a_terminal_shows_every_table(self, found: Finding, width: int) -> None:
        console = Console(file=io.StringIO(), width=width)
        print_sections(found.sections, console, details=True)
        shown = console.file.getvalue()  # type: ignore[attr-defined]
        assert found.headline.split()[0] in shown
        longest = max(len(word) for word in shown.split())
        assert max(map(len, shown.splitlines())) <= max(width, longest + 8)
        words = "".join(shown.split())
        for table in (one for one in every(found.sections) if isinstance(one, Table)):
            for row in table.rows:
                for value, column in zip(row, table.columns, strict=True):
                    for line in value_lines(value, column):
                        assert all(part in words for part in line.split()), (table.title, line)

    @pytest.mark.parametrize("question", QUESTIONS)
    def test_the_page_holds_every_table_and_figure(self, found: Finding, question: str, forms: dict[str, Any]) -> None:
        page = forms["page"]
        assert page.count(f'<section id="{question}">') == 1
        assert f'<a href="#{question}">{escape(found.title)}</a>' in page
        for one in every(found.sections):
            if isinstance(one, Table) and one.rows:
                assert f"<caption>{escape(one.title)}</caption>" in page
        drawn = json.loads(re.findall(r'<script type="application/json" id="figures">(.*?)</script>', page, re.S)[0])
        assert set(page_figures(question, found.sections)) <= set(drawn)

    @pytest.mark.parametrize("question", QUESTIONS)
    def test_markdown_and_notebooks_say_the_headline(
        self, found: Finding, question: str, forms: dict[str, Any]
    ) -> None:
        assert f"### {escaped(found.title)}\n" in forms["markdown"]
        assert escaped(found.headline) in forms["markdown"]
        assert escape(found.headline) in found._repr_html_()

    @pytest.mark.parametrize("question", QUESTIONS)
    def test_machines_get_its_numbers(self, found: Finding, question: str, forms: dict[str, Any]) -> None:
        record = forms["json"]
        assert record["searches" if question == "search" else question]
        assert len(forms["csv"][question].splitlines()) > 1
        named = {(row["quantity"], row["model"], row["of"], row["eps"]) for row in record["numbers"]}
        for one in found.quantities:
            assert (one.quantity, one.model, one.of, one.eps) in named
        rows = tables_record(found.sections)
        strict(json_text(rows))
        tables = arrow_tables(question, found.sections).values()
        assert [table.num_rows for table in tables] == [len(held) for held in rows.values()]

    @pytest.mark.parametrize("question", QUESTIONS)
    def test_its_quantities_are_those_that_its_traits_name(self, found: Finding, question: str) -> None:
        assert fault_of(found.sections, found.quantities, QUESTIONS[question]) == ""
        names = [one.name for one in found.quantities]
        assert len(set(names)) == len(names)
        assert names or QUESTIONS[question].quantities.keys() <= {"error_rows", "flagged"}  # which a gate counts

    @pytest.mark.parametrize("question", QUESTIONS)
    def test_evidence_holds_every_quantity(self, everything: Run, found: Finding, question: str) -> None:
        topics = evidence_topics(everything.ledger, everything.study, everything.findings())
        held = {(one.quantity, one.model, one.estimate) for topic in topics for one in topic.numbers}
        assert {(one.quantity, one.model, one.estimate) for one in found.quantities} <= held

    @pytest.mark.parametrize("question", QUESTIONS)
    def test_without_an_answer_every_form_says_why(self, everything: Run, question: str) -> None:
        why = Unanswered("the moon is <full>", "wait a week")
        found = everything.findings()
        found = replace(found, answers={**found.answers, question: why})
        place = everything.folder, everything.ledger, everything.study, found
        text = "the moon is <full>; wait a week"
        assert f"No answer: {escape(text)}." in report_page(*place)
        assert escaped(text) in report_markdown(*place)
        assert findings_record(everything.name, *place[1:])["unanswered"] == {question: text}
        assert escape(f"no answer: {text}") in found._repr_html_()
        assert question not in {one.name for one in found.answered}


class TestRecord:
    def test_it_holds_every_answer_as_python_gives_it(self, everything: Run, tmp_path: Path) -> None:
        record = strict(everything.report(tmp_path / "all.json", form="json").read_text(encoding="utf-8"))
        damage = everything.damage()
        assert record["damage"] == plain(damage_record(damage))
        for name in ("detection", "indicators", "survival", "certificate", "convergence", "attacks"):
            assert record[name] == getattr(everything, name)().as_dict(), name
        assert record["searches"] == [one.as_dict() for one in everything.searches()]
        assert record["failures"][0]["scenario"] == "town"
        assert record["flags"] == plain(everything.flags())
        assert record["arms"] == plain(everything.arms())
        assert record["unanswered"] == {}
        assert record["headlines"][0].startswith("In the scenario town, ")
        shown = {row["model"]: row["relative_damage"]["value"] for row in record["damage"]["models"]}
        assert shown == {model: estimate.value for model, estimate in damage.estimates.items()}

    def test_it_says_what_it_was_made_from(self, everything: Run) -> None:
        record = everything.record()
        origin = record["provenance"]
        assert (record["schema"], record["run"], origin["seed"]) == ("advrisk.report/2", "digits-study", 5)
        assert {row["model"]: row["digest"] for row in origin["models"]} == {
            row["model"]: row["digest"] for row in everything.models()
        }
        assert {split: held["n"] for split, held in origin["samples"].items()} == {
            "calibrate": 40,
            "evaluate": 32,
            "tune": 8,
        }
        assert len({held["digest"] for held in origin["samples"].values()}) == 3
        assert Study.from_dict(origin["study"]).spec.name == "digits-study"
        assert origin["versions"]["torch"]

    def test_it_is_what_its_schema_says(self, everything: Run, little: Run, advrisk: Command) -> None:
        schema = strict(advrisk("schema", "report").stdout)
        Draft202012Validator.check_schema(schema)
        for run in (everything, little):
            record = run.record()
            assert set(record) == set(schema["properties"])
            Draft202012Validator(schema).validate(record)
            with pytest.raises(ValidationError):
                Draft202012Validator(schema).validate(record | {"schema": "another"})

    def test_a_run_that_holds_little_says_why(self, little: Run, tmp_path: Path) -> None:
        record = strict(little.report(tmp_path / "few.json", form="json").read_text(encoding="utf-8"))
        assert record["damage"] is None
        assert record["certificate"] is None
        assert "attack" in record["unanswered"]["damage"]
        assert {row["quantity"] for row in record["numbers"]} == {"risk", "branch_risk", "corruption_risk"}
        assert record["headline"].startswith("The evidence names no model: this run has no attack with a norm")
        assert record["executive"]["ship"][0] == record["headlines"][0] == record["headline"]
        (tmp_path / "folder.json").mkdir()
        with pytest.raises(RunError, match="it is no file"):
            little.report(tmp_path / "folder.json", form="json")
        (tmp_path / "key.pem").write_text("secret")
        with pytest.raises(RunError, match=r"such a report is called \*\.html; choose another name, or another form"):
            little.report(tmp_path / "key.pem")
        assert (tmp_path / "key.pem").read_text() == "secret"
        (little.folder / "evasion.json").write_text("{}")
        with pytest.raises(RunError, match="belongs to the run, and is not written over"):
            little.report(little.folder / "evasion.json", form="json")
        (little.folder / "evasion.json").unlink()
        with pytest.raises(StudyError, match="a report has no form 'jsn'; did you mean 'json'"):
            little.report(form="jsn")  # type: ignore[arg-type]


class TestTables:
    def test_every_answer_has_its_file(self, everything: Run, tmp_path: Path) -> None:
        folder = everything.report(tmp_path / "tables", form="csv")
        tables = findings_tables(everything.findings())
        assert set(tables) == {"numbers", *QUESTIONS, "flags"}
        for name, table in tables.items():
            with (folder / f"{name}.csv").open(newline="", encoding="utf-8") as file:
                lines = list(csv.DictReader(file))
            written = [
                {column: "" if cell is None else str(cell) for column, cell in row.items()} for row in table.to_pylist()
            ]
            assert lines == written, name

    def test_arrow_pandas_and_polars_are_equal(self, everything: Run) -> None:
        for found in answers(everything):
            table = found.to_arrow()
            assert table.column_names == list(found.columns)
            assert table.num_rows == len(found.rows()) > 0
            assert found.to_polars().to_dicts() == table.to_pylist()
            frame = found.to_pandas().astype(object)
            assert frame.where(frame.notna(), None).to_dict("records") == table.to_pylist()
            assert all(set(row) <= set(found.columns) for row in found.rows())

    def test_numbers_are_those_of_the_answers(self, everything: Run) -> None:
        rows = everything.findings().rows()

        def number(quantity: str, model: str, of: str | None = None, eps: float | None = None) -> Estimate:
            (row,) = [
                row
                for row in rows
                if (row["quantity"], row["model"], row["of"], row["eps"]) == (quantity, model, of, eps)
            ]
            return Estimate(*(row[name] for name in ESTIMATE))

        damage = {one.model: one for one in everything.damage().models}
        detected, risks, certified = everything.detection(), everything.indicators(), everything.certificate()
        lasting = everything.survival()
        for model in ("plain", "soft"):
            assert number("relative_damage", model) == damage[model].relative_damage
            assert number("clean_accuracy", model) == damage[model].clean_accuracy
            assert number("broken", model, "linf", 0.2) == damage[model].success_ratio[0.2]
            assert number("auroc", model, "confidence") == detected.of(model, "confidence").overall.auroc
            assert number("risk", model, "town.misclassified") == risks.of("town").of(model).risk
            tested = certified.of(model).of("linf", 0.2).certificate
            assert tested is not None
            assert number("calibration_broken_by_worst", model, "linf", 0.2) == tested.worst.risk
            assert number("survival", model, "forward") == lasting.of(model).mean

    def test_a_run_that_holds_little(self, little: Run, tmp_path: Path) -> None:
        folder = little.report(tmp_path / "tables", form="csv")
        assert {path.stem for path in folder.iterdir()} >= {"numbers", "indicators", "flags"}
        assert not (folder / "damage.csv").exists()

    def test_show_writes_the_same_rows(self, finished: Path, everything: Run, advrisk: Command, tmp_path: Path) -> None:
        for what in ("damage", "attacks", "failures"):
            said = advrisk("show", what, finished, "--csv", "rows.csv", "--json")
            with (tmp_path / "rows.csv").open(newline="", encoding="utf-8") as file:
                assert len(list(csv.DictReader(file))) == len(getattr(everything, what)().rows())
            assert strict(said.stdout)
            assert "lines written to rows.csv" in said.stderr


class TestNotebook:
    def test_everything_has_a_page_without_scripts(self, everything: Run) -> None:
        for found in (everything, *answers(everything)):
            parsed = ElementTree.fromstring(found._repr_html_())
            assert {element.tag for element in parsed.iter()}.isdisjoint({"script", "style", "img", "a"})

    def test_names_from_elsewhere_are_text(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with (tmp_path / "theirs.csv").open("w", newline="", encoding="utf-8") as file:
            lines = [(name, n, HOSTILE[0], 0.1 * n) for name in HOSTILE for n in range(1, 9)]
            csv.writer(file).writerows([("model", "sample", "arm", "distance"), *lines])
        import_outcomes(tmp_path / "theirs.csv", tmp_path / "run", norm="linf")
        run = Run.open(tmp_path / "run")
        for found in (run.damage(), run.attacks(), run.convergence()):
            parsed = ElementTree.fromstring(found._repr_html_())
            cells = [cell.text for cell in parsed.iter("td")]
            assert any(name in (cell or "") for name in HOSTILE for cell in cells)
            assert "script" not in {element.tag for element in parsed.iter()}
        assert {row["model"] for row in run.findings().rows()} == set(HOSTILE)
        with (run.report(form="csv") / "damage.csv").open(newline="", encoding="utf-8") as file:
            assert {line["model"] for line in csv.DictReader(file)} == set(HOSTILE)
        record = strict(run.report(form="json").read_text(encoding="utf-8"))
        assert record["provenance"]["study"] is None
        assert {row["model"] for row in record["damage"]["models"]} == set(HOSTILE)
        monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        assert run.log_to_mlflow(tracking_uri=(tmp_path / "store").as_uri()).run_id

    def test_it_shows_what_python_says(self, everything: Run) -> None:
        shown = "".join(ElementTree.fromstring(everything.damage()._repr_html_()).itertext())
        for estimate in everything.damage().estimates.values():
            assert str(estimate) in shown
        certified = "".join(ElementTree.fromstring(everything.certificate()._repr_html_()).itertext())
        assert all(one.verdict in certified for one in everything.certificate().lists)

    def test_a_run_that_holds_little(self, little: Run) -> None:
        assert "not asked" in little.findings()._repr_html_()
        assert "16 samples" in little._repr_html_()
        assert repr(little) == f"Run({str(little.folder)!r}: 1 model, complete)"


class TestFigures:
    def test_they_are_those_of_the_report(self, everything: Run, little: Run) -> None:
        figures = everything.figures()
        page = everything.report().read_text(encoding="utf-8")
        assert {"damage intervals", "damage samples_broken_by_size", "arms", "survival survival_curves"} < set(figures)
        for name, figure in figures.items():
            assert json.dumps(name) in page, name
            assert name == name.strip(), name
            assert not re.search(r"\brisk\d", name), name
            assert figure.to_dict()["data"], name
        (estimate,) = [one.x[0] for one in figures["damage intervals"].data if one.y[0] == "plain"]
        assert estimate == everything.damage().estimates["plain"].value
        assert everything.figure("damage intervals") == figures["damage intervals"]
        with pytest.raises(RiskError, match="no figure called 'damage interval'; did you mean 'damage intervals'"):
            everything.figure("damage interval")
        assert "damage intervals" not in little.figures()


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::sqlalchemy.exc.SADeprecationWarning")
class TestMlflow:
    @pytest.fixture(params=["files", "sqlite"])
    def store(self, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
        """A real store on disk."""
        monkeypatch.chdir(tmp_path)  # of a database, MLflow keeps files in the working folder
        if request.param == "files":
            monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
            return (tmp_path / "store").as_uri()
        pytest.importorskip("alembic")
        return f"sqlite:///{tmp_path / 'mlflow.db'}"

    def test_numbers_words_and_files_arrive(
        self, finished: Path, everything: Run, store: str, advrisk: Command
    ) -> None:
        from mlflow import MlflowClient

        logged = everything.log_to_mlflow(tracking_uri=store)
        client = MlflowClient(store)
        found = client.get_run(logged.run_id)
        assert found.info.status == "FINISHED"
        assert client.get_experiment(found.info.experiment_id).name == "digits-study"
        assert (found.data.params["study"], found.data.params["seed"]) == ("digits-study", "5")
        estimate = everything.damage().estimates["plain"]
        told = [found.data.metrics[f"relative_damage.plain{end}"] for end in ("", ".low", ".high")]
        assert told == [estimate.value, estimate.low, estimate.high]
        assert len(found.data.metrics) == 3 * len(everything.findings().rows())
        names = {one.path for one in client.list_artifacts(logged.run_id)}
        assert names == {"report.html", "report.json", "study.yaml", "certificates"}
        again = advrisk("export", finished, "--mlflow", store)
        assert (again.returncode, again.stderr) == (0, "")
        assert "of experiment 'digits-study'" in again.stdout
        assert len(client.search_runs([found.info.experiment_id])) == 2

    def test_half_of_a_run_is_not_taken_for_the_whole(
        self, little: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        from mlflow import MlflowClient

        monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
        store = (tmp_path / "store").as_uri()
        with monkeypatch.context() as patch:
            patch.setattr("advrisk.api.mlflow.write_json", lambda *_: (_ for _ in ()).throw(OSError("disk full")))
            with pytest.raises(RunError, match="MLflow cannot take this run: disk full"):
                little.log_to_mlflow("own", store)
        little.log_to_mlflow("own", store)
        client = MlflowClient(store)
        place = client.get_experiment_by_name("own").experiment_id
        assert sorted(one.info.status for one in client.search_runs([place])) == ["FAILED", "FINISHED"]

    def test_mistakes_are_told(self, finished: Path, advrisk: Command, monkeypatch: pytest.MonkeyPatch) -> None:
        for words, complaint in {
            ("--mlflow", "nowhere://x"): "MLflow cannot take this run",
            ("all.csv", "--mlflow", "sqlite:///m.db"): "--mlflow writes no file; leave all.csv out",
            (): "name a file to write to",
        }.items():
            said = advrisk("export", finished, *words)
            assert said.returncode == 2
            assert complaint in said.stderr
        monkeypatch.setitem(__import__("sys").modules, "mlflow.exceptions", None)
        said = advrisk("export", finished, "--mlflow", "sqlite:///m.db")
        assert 'pip install "advrisk[mlflow]"' in said.stderr


@pytest.fixture(scope="module")
def label(everything: Run) -> int:
    """The class with the most samples to evaluate."""
    rows = everything.query("SELECT label, count(*) AS n FROM samples WHERE split = 'evaluate' GROUP BY 1 ORDER BY 2")
    return int(rows["label"][-1].as_py())


class TestPart:
    """A part of a run: every answer is about the same models and samples, and says so."""

    def test_damage_is_that_of_the_samples_alone(self, everything: Run, label: int) -> None:
        found = everything.damage(where=f"class={label}")
        rows = everything.query(
            "SELECT o.model, o.sample, "
            "min(CASE outcome WHEN 'success' THEN d_linf WHEN 'already_wrong' THEN 0 END) AS d "
            f"FROM outcomes o JOIN samples s USING (sample) WHERE s.label = {label} AND s.split = 'evaluate' "
            "AND o.kind = 'attack' AND o.arm NOT LIKE '%steps=2%' GROUP BY ALL"
        ).to_pylist()
        for one in found.models:
            own = [row["d"] for row in rows if row["model"] == one.model]
            broken = sum(d is not None and d <= 0.2 for d in own)
            assert one.robust_accuracy[0.2].value == pytest.approx(1 - broken / len(own)), one.model
            assert one.robust_accuracy[0.2].n == len(own)
        assert len(found.part) == 1
        assert f"Only samples with class = {label}: {len(found.distances.samples)} of 32 samples." in found.part

    def test_every_answer_of_a_report_is_about_the_part(self, everything: Run, label: int, tmp_path: Path) -> None:
        part = everything.part(where={"class": label}, models=["plain"], thresholds=[0.05])
        record = strict(everything.report(
            tmp_path / "part.json", form="json", where=f"class={label}", models="plain", thresholds=[0.05]
        ).read_text())  # fmt: skip
        n = len(part.damage().distances.samples)
        assert record["filter"] == {
            "models": ["plain"],
            "where": {"class": [str(label)]},
            "n_samples": n,
            "n_samples_of": 32,
        }
        assert record["asked"] == {"Sizes asked for": "0.05"}
        assert [one["model"] for one in record["damage"]["models"]] == ["plain"]
        assert [one["eps"] for one in record["damage"]["models"][0]["robust_accuracy"]] == [0.05]
        assert record["damage"]["n_samples"] == n
        assert {row["model"] for row in record["numbers"]} == {"plain"}
        assert {row["model"] for row in record["arms"]} == {"plain"}
        for result in record["indicators"]["results"]:
            assert (result["n"], [one["model"] for one in result["models"]]) == (n, ["plain"])
        assert {one["n"] for one in record["detection"]["tables"]} == {n} or "n" not in record["detection"]["tables"][0]
        assert record["certificate"] is None
        assert "calibration split" in record["unanswered"]["certificate"]
        assert any("Only samples with class" in one for one in record["executive"]["ship"])
        for form in ("html", "markdown"):
            text = everything.report(
                tmp_path / f"part.{form[:4].replace('mark', 'md')}", form=form, where=f"class={label}"  # type: ignore[arg-type]
            ).read_text()  # fmt: skip
            assert f"Only samples with class = {label}" in text

    def test_a_certificate_of_some_models_still_shares_its_error_with_all(self, everything: Run) -> None:
        whole, part = everything.certificate(), everything.part(models=["plain"]).certificate()
        assert [one.model for one in part.models] == ["plain"]
        assert [one.level for one in part.lists] == [one.level for one in whole.lists if one.model == "plain"]

    def test_relative_damage_depends_on_the_company(self, everything: Run) -> None:
        assert everything.damage(models=["plain"]).comparison is None
        both = everything.damage(models=["soft", "plain"])
        assert both.as_dict()["models"] == everything.damage().as_dict()["models"]

    def test_options_of_the_command_line(self, finished: Path, label: int, advrisk: Command) -> None:
        run = str(finished)
        shown = advrisk("show", run, "--model", "plain", "--where", f"class={label}", "--json")
        assert json.loads(shown.stdout)["filter"]["models"] == ["plain"]
        for what in ("convergence", "attacks", "detection", "indicators", "failures"):
            told = " ".join(
                advrisk("show", what, run, "--where", f"class={label}", env={"COLUMNS": "200"}).stdout.split()
            )
            assert f"Only samples with class = {label}: " in told, what
        refused = advrisk("show", "certificate", run, "--where", "class=1")
        assert (refused.returncode, "No such option: --where" in refused.stderr) == (2, True)
        unknown = advrisk("report", run, "--json", "--out", "-", "--where", "clas=1")
        assert (unknown.returncode, unknown.stdout) == (2, "")
        assert "did you mean 'class'?" in unknown.stderr
        text = advrisk("report", run, "--markdown", "--out", "-", "--eps", "1/255", "--arm", "fgsm*").stdout
        assert "robust accuracy at 1/255" in text
        assert "Attacks asked for: fgsm\\*" in text or "Attacks asked for: fgsm*" in text

    def test_the_scenario_of_the_study_selects_the_model(
        self, everything: Run, finished: Path, advrisk: Command
    ) -> None:
        found, result = everything.select(), everything.indicators().results[0]
        assert (found.by, found.least_bad, found.decided) == ("town", result.least_bad, result.least_bad is not None)
        assert found.headline.startswith("In the scenario town, ")
        assert found.headlines[1].startswith("By damage: ")
        done = advrisk("select", str(finished), "--scenario", "town", "--loss", "misclassified", "--json")
        told = json.loads(done.stdout)
        assert (told["by"], told["least_bad"]) == ("town", result.least_bad)
        assert done.returncode == found.exit_code
        assert told["scenarios"][0]["loss"] == "misclassified"
        by_damage = everything.part(evasion=0.1).select()
        assert (by_damage.by, by_damage.least_bad) == ("damage", everything.damage(evasion=0.1).least_bad)
        wrong = advrisk("select", str(finished), "--scenario", "twon")
        assert (wrong.returncode, "did you mean 'town'?" in wrong.stderr) == (2, True)

    @pytest.mark.parametrize("words", [["select"], ["show", "damage"], ["report", "--json", "--out", "-"]])
    @pytest.mark.parametrize("arm", ["fsgm-linf-0.05", ""])
    def test_an_arm_that_is_not_there_is_a_mistake_where_scenarios_lead_too(
        self, finished: Path, advrisk: Command, words: list[str], arm: str
    ) -> None:
        done = advrisk(*words, str(finished), "--arm", arm)
        assert (done.returncode, done.stdout) == (2, "")
        assert f"no arm is called {arm!r}; {'did you mean' if arm else 'known: '}" in done.stderr

    def test_every_command_leads_with_the_same_answer(self, everything: Run, finished: Path, advrisk: Command) -> None:
        lead = everything.select().answer
        assert lead.headline.startswith("In the scenario town, ")
        run, wide = str(finished), {"COLUMNS": "1000"}
        for words in (["show", run], ["show", "damage", run], ["select", run], ["report", run, "--out", "-"]):
            told = strict(advrisk(*words, "--json").stdout)
            same = {name: told[name] for name in ("headline", "ship", "least_bad", "decided", "requirements")}
            assert same == {name: plain_fields(lead)[name] for name in same}, words
            assert told["headlines"][: len(lead.sentences)] == list(lead.sentences), words
        for words in (["show", run], ["select", run]):
            assert advrisk(*words, env=wide).stdout.splitlines()[0] == lead.headline, words
        asked = everything.part(evasion=0.1)
        by_damage = asked.select().headline
        assert not by_damage.startswith("In the scenario")
        for words in (["show", "damage", run], ["select", run], ["report", run, "--out", "-"]):
            told = strict(advrisk(*words, "--evasion", "0.1", "--json").stdout)
            assert told["headline"] == by_damage, words

    def test_the_data_set_says_how_many_samples_it_still_has(self, everything: Run) -> None:
        assert everything.samples_left == 500 - 32 - 8 - 40, "of the 500 digits that are not for training"
        assert everything.damage().samples_left == everything.samples_left
        assert everything.part(models=["plain"]).samples_left == everything.samples_left
        assert everything.part(where="class=1").samples_left is None, "how many of that class it has is unknown"

    def test_what_is_about_a_whole_run_is_not_made_of_a_part(self, everything: Run, tmp_path: Path) -> None:
        with pytest.raises(RiskError, match="calibration split"):
            everything.part(where="class=1").certify(tmp_path / "certificates")
        with pytest.raises(RiskError, match="an evidence pack is about a whole run"):
            everything.part(models=["plain"]).evidence(tmp_path / "pack")
        written = everything.part(models=["plain"]).certify(tmp_path / "certificates")
        assert [one.model for one in written] == ["plain"]
        assert not (tmp_path / "pack").exists()

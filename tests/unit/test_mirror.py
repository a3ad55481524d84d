"""tests/unit has the folders of src/advrisk, and every module of some size has a test that names it."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE, UNIT = ROOT / "src" / "advrisk", ROOT / "tests" / "unit"
BESIDE = ("bench", "docs", "outside", "studies")  # folders of the repository
LARGE = 80  # lines

# Modules that the tests of their folder reach through others -> the test that exercises them.
ELSEWHERE = {
    "api/certificates.py": "e2e/test_certificates.py",
    "api/comparing.py": "unit/assess/compare/test_compare.py",
    "api/evasion.py": "e2e/test_evasion.py",
    "api/evidence/files.py": "unit/api/evidence/test_pack.py",
    "api/paired.py": "unit/assess/compare/test_compare.py",
    "api/parts.py": "unit/cli/test_parts.py",
    "api/reporting.py": "e2e/test_records.py",
    "api/run.py": "e2e/test_python_api.py",
    "api/schema.py": "e2e/test_command_line.py",
    "api/selection.py": "e2e/test_select.py",
    "api/study.py": "e2e/test_targets.py",
    "api/verifying.py": "e2e/test_certificates.py",
    "assess/damage/question.py": "unit/assess/gate/test_run_gate.py",
    "assess/damage/sizes.py": "unit/assess/damage/test_assessment.py",
    "assess/detection/reading.py": "unit/assess/detection/test_assessment.py",
    "assess/detection/rows.py": "e2e/test_records.py",
    "assess/indicators/branches.py": "unit/assess/indicators/test_sections.py",
    "assess/survival/law.py": "unit/assess/survival/test_survival_assessment.py",
    "assess/survival/models.py": "unit/assess/survival/test_survival_assessment.py",
    "assess/survival/paper.py": "unit/assess/survival/test_sections.py",
    "assess/survival/rows.py": "e2e/test_records.py",
    "assess/survival/tables.py": "unit/assess/survival/test_sections.py",
    "cli/show/generated.py": "e2e/test_sixth_assessment.py",
    "ledger/exchange/outcome_file.py": "unit/ledger/exchange/test_importing.py",
    "ledger/maintenance/reconciling.py": "e2e/test_care_elsewhere.py",
    "ledger/sync/copies.py": "e2e/test_object_storage.py",
    "ledger/sync/lease.py": "e2e/test_object_storage.py",
    "ledger/sync/pull.py": "e2e/test_object_storage.py",
    "report/evidence/document.py": "unit/api/evidence/test_pack.py",
    "report/evidence/index.py": "unit/api/evidence/test_pack.py",
    "report/evidence/numbers.py": "e2e/test_evidence.py",
    "report/evidence/page.py": "unit/api/evidence/test_pack.py",
    "report/html.py": "e2e/test_records.py",
    "report/records.py": "e2e/test_records.py",
    "risk/decision.py": "unit/risk/test_decision.py",
    "run/checks/accuracy.py": "unit/run/checks/test_accuracy.py",
    "run/checks/gate.py": "e2e/test_targets.py",
    "run/checks/miswiring.py": "unit/run/checks/test_accuracy.py",
    "run/checks/survival.py": "e2e/test_survival.py",
    "run/detectors/fitting.py": "unit/run/detectors/test_fitting.py",
    "run/identity/comparing.py": "unit/run/identity/test_resumed.py",
    "run/identity/deployed.py": "unit/cli/test_replaying.py",
    "run/identity/recorded.py": "unit/run/identity/test_resumed.py",
    "run/interim.py": "e2e/test_targets.py",
    "run/measuring.py": "unit/run/test_measuring.py",
    "run/preparation.py": "unit/run/test_campaign.py",
    "run/redrawing.py": "unit/run/test_judge.py",
    "run/replay/choosing.py": "unit/run/replay/test_replaying.py",
    "run/replay/comparing.py": "unit/run/replay/test_replaying.py",
    "run/training/loop.py": "unit/run/training/test_models.py",
    "testing/conformance.py": "conformance/test_attacks.py",
    "testing/defences.py": "conformance/test_defences.py",
    "testing/detectors.py": "conformance/test_detectors.py",
}


def modules() -> list[str]:
    """Those whose tests are looked for; parts are tested by kind, in `conformance`."""
    files = (path for path in SOURCE.rglob("*.py") if path.name != "__init__.py")
    large = (path for path in files if len(path.read_text("utf-8").splitlines()) > LARGE)
    return sorted(name for path in large if not (name := path.relative_to(SOURCE).as_posix()).startswith("parts/"))


def imported(path: Path) -> set[str]:
    """Every module that a file imports, or takes a name from."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            within = {alias.name: f"{node.module}.{alias.name}" for alias in node.names}
            names |= {whole if is_module(whole) else node.module for whole in within.values()}
    return names


def is_module(name: str) -> bool:
    """A module of the source, and no name that its package exports."""
    path = SOURCE.parent.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


@pytest.fixture(scope="module")
def named() -> dict[str, set[str]]:
    """Folder -> what its tests import."""
    found: dict[str, set[str]] = {}
    for path in UNIT.rglob("*.py"):
        found.setdefault(path.parent.relative_to(UNIT).as_posix(), set()).update(imported(path))
    return found


def test_every_test_lies_in_a_folder_of_the_source() -> None:
    folders = {path.parent.relative_to(UNIT) for path in UNIT.rglob("test_*.py")}
    stray = {folder for folder in folders if folder.parts[:1] not in {(name,) for name in BESIDE}}
    assert sorted(str(folder) for folder in stray if not (SOURCE / folder).is_dir()) == []


def test_every_module_is_named_by_a_test_of_its_folder_or_in_the_table(named: dict[str, set[str]]) -> None:
    def is_named(module: str) -> bool:
        folder = Path(module).parent.as_posix()
        package = ".".join(["advrisk", *Path(module).parent.parts])
        return not named.get(folder, set()).isdisjoint({package, f"{package}.{Path(module).stem}"})

    assert [module for module in modules() if not is_named(module)] == sorted(ELSEWHERE)


def test_tests_of_the_table_exist() -> None:
    assert [name for name in ELSEWHERE.values() if not (ROOT / "tests" / name).is_file()] == []

"""A plain install reads runs; where a package of an extra is missing, the command that installs it is named."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from advrisk.core.extras import EXTRAS

Advrisk = Callable[..., "subprocess.CompletedProcess[str]"]

# Several commands in one process that does not find the packages of any extra, as after `pip install advrisk`.
CALLS = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout
from importlib.machinery import PathFinder

missing, calls = json.loads(sys.argv[1])

class Plain(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in missing else PathFinder.find_spec(name, path, target)

sys.meta_path[sys.meta_path.index(PathFinder)] = Plain
from advrisk.cli import main

results = []
for words in calls:
    sys.argv, out, err = ["advrisk", *words], io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as ended:
            results.append((ended.code, out.getvalue(), err.getvalue()))
print(json.dumps([results, sorted(set(missing) & sys.modules.keys())]))
"""

READING = [
    ["status", "runs/small"],
    ["show", "runs/small"],
    *(["show", finding, "runs/small"] for finding in ("damage", "survival", "convergence", "arms", "models")),
    ["select", "runs/small"],
    ["gate", "runs/small"],
    ["compare", "runs/small", "runs/small"],
    ["report", "runs/small"],
    ["report", "runs/small", "--markdown"],
    ["report", "runs/small", "--json"],
    ["certify", "runs/small"],
    ["verify", "runs/small/certificates/a.json", "--run", "runs/small"],
    ["evidence", "runs/small", "--out", "pack"],
    ["verify", "pack", "--run", "runs/small"],
    ["export", "runs/small", "rows.csv"],
    ["export", "runs/small", "inputs.npz"],
    ["ledger", "sql", "runs/small", "SELECT count(*) FROM outcomes"],
    ["ledger", "check", "runs/small"],
    ["ledger", "diff", "runs/small", "runs/small"],
    ["ledger", "compact", "runs/small"],
    ["import", "rows.csv", "imported"],
    ["init", "first.yaml"],
    ["schema", "certificate"],
    ["list", "losses"],
]
NEEDY = {
    "run": [
        ["demo"],
        ["run", "study.yaml"],
        ["run", "study.yaml", "--dry-run"],
        ["train", "recipe.yaml"],
        ["list"],
        ["schema"],
        ["verify", "runs/small/certificates/a.json", "--run", "runs/small", "--replay", "1"],
        ["ledger", "replay", "runs/small", "1"],
        ["init", "mine.yaml", "--model", "mynets:Net", "--data", "mine.npz"],
    ],
    "label": [
        ["label", "runs/small"],
        ["label", "runs/small", "--summary"],
        ["show", "damage", "runs/small", "--answers", "sqlite:///answers.db"],
    ],
}


@pytest.fixture
def small_run(advrisk: Advrisk, study: dict[str, Any], write_study: Callable[..., Path], tmp_path: Path) -> Path:
    study["name"] = "small"
    study["models"] = {"a": study["models"]["plain"], "b": study["models"]["noisy"]}
    study["data"] = {"source": "digits", "evaluate": 16, "calibrate": 40}
    study["arms"] = [
        {"attack": "pgd", "norm": "linf", "eps": [0.1, 0.2], "steps": 4},
        {"corruption": "gaussian-noise", "sigma": 0.2},
    ]
    study |= {"keep_inputs": "all", "detectors": ["feature-squeezing"]}
    study["scenarios"] = {"noisy": {"wet": {"weight": 0.3, "arms": "gaussian-noise"}}}
    study["assess"]["certificate"] = {"alpha": 0.1, "zeta": 0.05}
    study["gate"] = ["clean_accuracy.a >= 0.5"]
    assert advrisk("run", write_study(study)).returncode == 0
    return tmp_path


def called_without_extras(folder: Path, calls: list[list[str]]) -> tuple[list[tuple[int, str, str]], list[str]]:
    words = [sys.executable, "-c", CALLS, json.dumps([sorted(EXTRAS), calls])]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    results, imported = json.loads(done.stdout.splitlines()[-1])
    return results, imported


def test_reading_verbs_need_no_extra_and_others_name_theirs(small_run: Path) -> None:
    needy = [(extra, words) for extra, calls in NEEDY.items() for words in calls]
    results, imported = called_without_extras(small_run, [*READING, *(words for _, words in needy)])
    for words, (code, _, err) in zip(READING, results, strict=False):
        assert code in (0, 1, 4), (words, err)  # 1 and 4 answer: a requirement fails, models are undecided
        assert "pip install" not in err, words
    for (extra, words), (code, out, err) in zip(needy, results[len(READING) :], strict=True):
        assert (code, out) == (2, ""), (words, err)
        assert f'pip install "advrisk[{extra}]"' in err, (words, err)
        assert "Traceback" not in err, words
        assert f"advrisk {words[0]} needs" in err or "a database of answers needs" in err, (words, err)
    assert imported == []


def test_python_names_the_extra_too(study: dict[str, Any], write_study: Callable[..., Path], tmp_path: Path) -> None:
    write_study(study)
    code = CALLS.partition("from advrisk.cli")[0] + (
        "import advrisk\n"
        "for what in (lambda: advrisk.Study.load('study.yaml').run('x'), lambda: advrisk.train('recipe.yaml', 'x')):\n"
        "    try: what()\n"
        "    except ImportError as error: print(error)\n"
    )
    words = [sys.executable, "-c", code, json.dumps([sorted(EXTRAS), []])]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.splitlines() == [
        'Study.run needs torch: pip install "advrisk[run]"',
        'train needs torch: pip install "advrisk[run]"',
    ]

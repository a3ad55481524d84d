"""Sets of arms against each other on the demo's models, and a table that counts what they name."""

from pathlib import Path

import pytest

from studies.agreement import ARMS, Agreement, lines_of, main


def test_a_pair_is_opposite_if_two_sets_name_different_models() -> None:
    pairs = {("a", "b"): {"x": "a", "y": "b"}, ("a", "c"): {"x": "a", "y": None}, ("b", "c"): {"x": "c", "y": "c"}}
    assert Agreement(pairs).opposite == [("a", "b")]


def test_the_table_says_which_of_two_models_is_named() -> None:
    named = dict(zip(ARMS["mnist"], ["a", "b", None, "a"], strict=True))
    head, row, _, *counts = lines_of("mnist", Agreement({("a", "b"): named}))
    assert head.split()[0] == "mnist"
    assert row.split() == ["a", "/", "b", "first", "second", "–", "first"]
    assert "1 pairs" in counts[0]
    assert "named for 1 pairs: a / b" in " ".join(line.strip() for line in counts)


def test_the_demos_models_are_never_named_in_opposite_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("advrisk.run.executors.choice.worker_count", lambda *_: 0)  # in this process, which is quicker
    page = tmp_path / "page.md"
    page.write_text("<!-- agreement -->\n<!-- /agreement -->\n", encoding="utf-8")
    words = ["--data", "mnist-5k", "--samples", "20", "--out", str(tmp_path / "runs"), "--page", str(page)]
    assert main(words) == 0
    printed = capsys.readouterr().out
    assert "6 pairs" in printed
    assert "named for 0 pairs" in printed
    assert "noise-augmented / plain" in page.read_text(encoding="utf-8")
    assert "first" in printed, "some pair is decided"


def test_a_user_who_has_no_classifiers_is_told_where_they_are_looked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ADVRISK_ZOO", raising=False)
    assert main(["--data", "mnist"]) == 2
    assert "ADVRISK_ZOO" in capsys.readouterr().err

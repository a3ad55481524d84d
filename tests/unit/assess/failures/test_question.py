"""What is shown of failures: pictures on a page, and tables where there are none."""

import io
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from advrisk.assess.failures.exhibits import with_exhibits
from advrisk.assess.failures.modes import FailureModes
from advrisk.assess.failures.question import sections
from advrisk.core.sections import Cell, Group, Pictures, Table, Text, every
from advrisk.ledger import Storage
from advrisk.render.markdown import markdown_lines
from advrisk.render.page import page_finding
from advrisk.render.terminal import print_sections

from .kept import CLEAN, SEVEN, image, keep, modes

EVIL = "<b>[red]\x1b[31m"


def two_models() -> FailureModes:
    found = modes(SEVEN, CLEAN)
    other = replace(found.modes[0], model="other", failures=(replace(SEVEN, sample="s/9"),))
    return replace(found, models=("net", "other", "perfect"), modes=(*found.modes, other))


def terminal(found: FailureModes, width: int, *, details: bool = False) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_sections(sections((found,)), console, details=details)
    shown: str = console.file.getvalue()  # type: ignore[attr-defined]
    assert max(map(len, shown.splitlines())) <= width
    return " ".join(shown.split())


@pytest.mark.parametrize("width", [60, 100])
def test_a_terminal_lists_what_fails_first_with_the_best_model(width: int) -> None:
    shown = terminal(two_models(), width)
    for text in ("40 % of the risk", "25.0 %", "[20.0, 30.0]", "12 of 40", "7 read as 1, 98 %", "rain,level=3"):
        assert text in shown
    for text in ("s/7", "s/3", "0.75 in the branch", "1.00"):
        assert text in shown
    assert "s/9" in shown, "the worst sample of every model"
    assert "Samples that fail with other" not in shown


def test_details_list_the_samples_of_every_model() -> None:
    shown = terminal(two_models(), 100, details=True)
    assert "Samples that fail with other under wet.rain: town, misclassified" in shown
    assert "12 of 40 samples have a loss here, 9 of them a larger one" in shown
    assert "No branch has a loss." in shown


def test_a_page_shows_clean_inputs_beside_what_became_of_them(tmp_path: Path) -> None:
    keep(tmp_path, image(0.2), image(0.9))
    shown = list(sections((with_exhibits(Storage(tmp_path), modes(SEVEN, CLEAN)),)))
    (pictures,) = (one for one in every(shown) if isinstance(one, Pictures))
    rainy, clean = pictures.pictures
    assert (rainy.caption, rainy.description) == ("7 read as 1, 98 %\nrain,level=3", "perturbed input of sample s/7")
    assert rainy.before
    assert (clean.caption, clean.before) == ("3 read as 1, 98 %\nclean", b"")
    assert not any("keep_inputs" in text for one in every(shown) if isinstance(one, Text) for text in one.sentences)
    parts = page_finding("failures", "F", shown)["parts"]
    assert parts[-1]["is_a"] == "Group"


def test_pictures_that_were_not_kept_are_asked_for(tmp_path: Path) -> None:
    keep(tmp_path, image(0.2), image(0.9))
    lost = replace(SEVEN, cell="9999")
    shown = list(sections((with_exhibits(Storage(tmp_path), modes(lost)),)))
    (pictures,) = (one for one in every(shown) if isinstance(one, Pictures))
    assert pictures.pictures[0].description == "clean input of sample s/7"
    assert pictures.pictures[0].caption.endswith("\nthe perturbed input was not kept")
    assert any("`keep_inputs: all`" in text for one in every(shown) if isinstance(one, Text) for text in one.sentences)


def test_harm_that_was_there_before_is_said(tmp_path: Path) -> None:
    keep(tmp_path, image(0.2), image(0.9))
    as_bad = replace(SEVEN, clean_loss=0.75)
    (pictures,) = (
        one for one in every(sections((with_exhibits(Storage(tmp_path), modes(as_bad)),))) if isinstance(one, Pictures)
    )
    assert pictures.pictures[0].caption.endswith("\nas bad without it")


def test_of_rows_of_tables_the_changed_features_are_a_column(tmp_path: Path) -> None:
    keep(tmp_path, np.arange(8, dtype=np.float32), np.arange(8, dtype=np.float32) + 1)
    table = samples(with_exhibits(Storage(tmp_path), modes(SEVEN, CLEAN, replace(SEVEN, sample="s/1"))))
    assert table.columns[-1].name == "features that changed"
    assert [row[-1] for row in table.rows] == [
        "no. 0: 0 → 1; no. 1: 1 → 2; no. 2: 2 → 3; no. 3: 3 → 4; no. 4: 4 → 5; 3 more",
        "none: a clean input",
        "not kept",
    ]
    assert samples(modes(SEVEN)).columns[-1].name == "arm"


def samples(found: FailureModes) -> Table:
    (table,) = (
        one for one in every(sections((found,))) if isinstance(one, Table) and one.title.startswith("Samples that")
    )
    return table


def test_the_loss_of_the_branch_stands_below_that_of_the_answer() -> None:
    table = samples(modes(SEVEN, CLEAN))
    assert [row[2] for row in table.rows] == [Cell(1.0, ("0.75 in the branch",)), 1.0]


def test_all_but_the_first_scenario_and_model_are_folded_away() -> None:
    first, second = two_models(), replace(two_models(), scenario="calm")
    groups = [one for one in sections((first, second)) if isinstance(one, Group)]
    assert [(one.title, one.folded) for one in groups] == [
        ("Scenario town, loss misclassified", False),
        ("Scenario calm, loss misclassified", True),
    ]
    inner = [(one.title, one.folded) for one in groups[0].sections if isinstance(one, Group)]
    assert inner == [("net", False), ("other", True), ("perfect", True)]


def test_names_from_outside_are_text() -> None:
    evil = modes(replace(SEVEN, sample=EVIL, arm=EVIL), path=EVIL)
    assert "<b>[red]" in terminal(evil, 60)
    assert "\x1b" not in terminal(evil, 60)
    assert "<b>" not in "\n".join(markdown_lines("x", list(sections((evil,)))))

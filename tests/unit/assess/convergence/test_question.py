"""What is shown of convergence: how wide the bands still are, and each number at some numbers of samples."""

import io

import numpy as np
import pytest
from rich.console import Console

from advrisk.assess.convergence.question import sections, settling
from advrisk.core.estimate import Estimate
from advrisk.core.sections import Figure, Headline, Table, every, headline_of, without_twins
from advrisk.render.terminal import print_sections
from advrisk.risk.convergence import DAMAGE, Convergence, convergence
from advrisk.risk.evasion import threshold

MODELS = ("strong", "weak")


def settled(n: int = 400, *, relative: bool = True) -> Convergence:
    rng = np.random.default_rng(0)
    found = {"strong": 0.5 + rng.random(n), "weak": rng.random(n)}
    evasion = None if relative else threshold(0.7)
    return convergence(found, evasion=evasion, thresholds=(0.5,), points=80, resamples=20, rng=rng)


def terminal(found: Convergence, width: int, *, details: bool = False) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_sections(sections(found), console, details=details)
    return console.file.getvalue()  # type: ignore[attr-defined]


def tables(found: Convergence) -> dict[str, Table]:
    return {one.title: one for one in every(list(sections(found))) if isinstance(one, Table)}


def test_the_headline_is_the_widest_band_now_and_with_fewer_samples() -> None:
    found = settled()
    said = headline_of(list(sections(found)))
    widths = {model: found.bands[model][DAMAGE].high[-1] - found.bands[model][DAMAGE].low[-1] for model in MODELS}
    widest = max(MODELS, key=widths.__getitem__)
    band = found.bands[widest][DAMAGE]
    shown = f"{band.middle[-1]:.3f} [{band.low[-1]:.3f}, {band.high[-1]:.3f}]"
    assert said.startswith(
        f"With 400 samples, resamples put the relative damage of {widest} at {shown}, the widest band"
    )
    place = int(np.abs(found.n - 40).argmin())
    assert said.endswith(f"; with {found.n[place]} it was {band.middle[place]:.3f} "
                         f"[{band.low[place]:.3f}, {band.high[place]:.3f}].")  # fmt: skip
    assert "; with " not in headline_of(list(sections(settled(10)))), "a tenth of ten is no evaluation"
    assert isinstance(next(iter(sections(found))), Headline)


def test_each_number_has_a_figure_and_a_table() -> None:
    found = settled()
    shown = list(sections(found))
    assert without_twins(shown) == tuple(shown)
    names = ["damage", "attack_success_rate_at_0_5", "minimal_adversarial_distance", "mean_adversarial_distance"]
    assert [one.key for one in every(shown) if isinstance(one, Figure)] == names
    assert [one.key for one in every(shown) if isinstance(one, Table)] == ["relative_damage", *names[1:]]
    assert "damage_probability" in [one.key for one in tables(settled(relative=False)).values()]


def test_a_table_ends_with_all_samples_and_details_lie_between() -> None:
    found = settled()
    table = tables(found)["Relative damage"]
    shown = [int(column.name.removeprefix("n = ")) for column in table.columns[1:]]
    assert shown == sorted(shown)
    assert shown[-1] == 400
    assert [column.detail for column in table.columns] == [False, False, True, False, True, False]  # 10 30 100 300 400
    for row in table.rows:
        band = found.bands[str(row[0])][DAMAGE]
        last = row[-1]
        assert isinstance(last, Estimate)
        assert (last.value, last.low, last.high) == (band.middle[-1], band.low[-1], band.high[-1])
        assert (last.level, last.n, last.method) == (0.9, 400, "20 resamples")


def test_what_could_not_be_measured_is_none() -> None:
    held = convergence({"a": [0.0] * 20, "b": [0.1] * 20}, resamples=5, rng=np.random.default_rng(0))
    rows = {str(row[0]): row for row in tables(held)["Mean adversarial distance"].rows}
    assert rows["a"][-1] is None
    assert isinstance(rows["b"][-1], Estimate)


@pytest.mark.parametrize("width", [60, 120])
def test_it_fits_the_terminal(width: int) -> None:
    for details in (False, True):
        text = terminal(settled(), width, details=details)
        assert max(map(len, text.splitlines())) <= width
        assert ("Mean adversarial distance" in text) is details
        assert "Each number as samples are added\n" not in text, "figures are for pages"
        assert "bands of 20 resamples" in " ".join(text.split())


def test_models_have_the_colours_of_the_run() -> None:
    lines = settling(settled(), DAMAGE, places={"other": 0, "strong": 1, "weak": 2})["data"]
    first = settling(settled(), DAMAGE)["data"]
    assert lines[2]["line"]["color"] != first[2]["line"]["color"]
    assert lines[2]["line"]["color"] == first[5]["line"]["color"], "the second colour"

"""Colours, marks and labels: the same for a model wherever it is drawn, and text wherever a name is shown."""

import re
from importlib.resources import files

import numpy as np
import pytest

from advrisk.assess.damage.assessment import DamageAssessment, assess_distances
from advrisk.assess.damage.distances import Distances
from advrisk.assess.damage.figures import damage_intervals, success_curves
from advrisk.core.names import cut
from advrisk.core.palette import (
    COLOURS,
    cycled,
    model_places,
    named,
    places_of,
    plain_label,
    short_label,
    wrapped_label,
)
from advrisk.report.figures import arm_heat_map
from advrisk.study import DamageSpec

NASTY = ["<b>bold</b>", '<a href="https://evil.example">x</a>', "%{x}", "%{meta}", "a<br>b", "&lt;", "two\nlines"]


def damage(models: list[str]) -> DamageAssessment:
    rng = np.random.default_rng(1)
    found = {model: rng.random(20) * (1 + place) for place, model in enumerate(models)}
    distances = Distances("linf", ("pgd",), tuple(map(str, range(20))), 20, found, 0, 0)
    return assess_distances(distances, DamageSpec(), thresholds=(0.2,), rng=rng)


def test_a_model_has_one_colour_in_whatever_order_it_comes() -> None:
    names = ["zebra", "ant", "mole"]
    places = model_places(names)
    assert places == model_places(reversed(names)) == {"ant": 0, "mole": 1, "zebra": 2}
    found = damage(names)
    curves = {line["meta"]["series"]: line["line"]["color"] for line in success_curves(found)["data"][:3]}
    points = {one["meta"]["series"]: one["marker"]["color"] for one in damage_intervals(found)["data"]}
    assert curves == points == {name: cycled(COLOURS, place) for name, place in places.items()}
    given = {
        line["meta"]["series"]: line["line"]["color"]
        for line in success_curves(found, places={"ant": 5, "x": 0})["data"][:3]
    }
    assert given["ant"] == COLOURS[5]


def test_models_that_were_not_told_of_come_last() -> None:
    assert places_of(["b", "a", "c"], {"b": 0, "z": 1}) == {"b": 0, "z": 1, "a": 2, "c": 3}


@pytest.mark.parametrize("name", NASTY)
def test_labels_hold_no_markup_that_plotly_reads(name: str) -> None:
    label = plain_label(name)
    assert not re.search(r"[<>%\n]", label)
    shown = label.replace("&lt;", "<").replace("&gt;", ">").replace("&#37;", "%").replace("&amp;", "&")
    assert shown == name.replace("\n", " ")


@pytest.mark.parametrize("name", NASTY)
def test_every_text_of_a_figure_is_plain(name: str) -> None:
    found = damage([name, "other"])
    heat = arm_heat_map([{"arm": name, "model": name, "share": 0.5}], [name])
    for figure in (success_curves(found), damage_intervals(found), heat):
        for text in texts(figure):
            assert name not in text.replace("<br>", "\0").replace("%{x", "\0") or name == "&lt;"


def texts(part: object, key: str = "") -> list[str]:
    """What plotly may read markup in; categories are shown by their ticks."""
    if isinstance(part, dict):
        return [text for name, value in part.items() if name not in ("meta", "tickvals") for text in texts(value, name)]
    if isinstance(part, list):
        return [text for value in part for text in texts(value, key)]
    return [part] if isinstance(part, str) and key not in ("x", "y", "legendgroup") else []


def test_long_names_are_cut_in_the_middle() -> None:
    assert cut("abcdefghij", 5) == "ab…ij"
    assert short_label("n" * 100, 40) == "n" * 19 + "…" + "n" * 20
    assert named("n" * 100)["meta"] == {"series": "n" * 100}
    family = "\U0001f469\u200d\U0001f52c"
    assert plain_label(family) == family


def contrast(one: str, other: str) -> float:
    """As the Web Content Accessibility Guidelines define it."""

    def luminance(colour: str) -> float:
        parts = [int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5)]
        linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_text_can_be_read_in_light_in_dark_and_on_paper() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.005)
    style = (files("advrisk.report") / "page.css").read_text(encoding="utf-8")
    themes = re.findall(r"--ink: [^}]*", style)
    assert len(themes) == 3
    for theme in themes:
        colours = dict(re.findall(r"--(\w+): (#[0-9a-f]{6})", theme))
        for text in ("ink", "soft", "accent", "good"):
            for ground in ("paper", "panel"):
                assert contrast(colours[text], colours[ground]) >= 4.5, (text, ground, theme)


def test_a_heat_map_has_a_scale_only_where_there_is_room_for_one() -> None:
    def drawn(n: int) -> dict[str, object]:
        rows = [{"arm": f"gaussian-noise,sigma={place}", "model": "plain", "share": 0.5} for place in range(n)]
        trace: dict[str, object] = arm_heat_map(rows, ["plain"])["data"][0]
        return trace

    assert [drawn(n)["showscale"] for n in (1, 5, 6)] == [False, False, True]
    assert drawn(1)["text"] == [["50 %"]]
    assert drawn(1)["meta"] == {"narrow": ["gaussian-noise,<br>sigma=0"]}


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("plain", ["plain"]),
        ("guided-complement-entropy", ["guided-complement-", "entropy"]),
        ("a" * 30, ["a" * 18, "a" * 12]),
        ("<b>&", ["&lt;b&gt;&amp;"]),
    ],
)
def test_long_names_are_broken_where_they_may(name: str, lines: list[str]) -> None:
    assert wrapped_label(name).split("<br>") == lines


def test_the_longest_names_are_cut_in_the_middle() -> None:
    shown = wrapped_label("x" * 50 + "end")
    assert "…" in shown
    assert shown.endswith("end")
    assert all(len(line) <= 18 for line in shown.split("<br>"))

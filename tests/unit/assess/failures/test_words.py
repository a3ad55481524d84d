"""Failures in words."""

from dataclasses import replace

from advrisk.assess.failures.words import caption, explanation, heading, headline

from .kept import SEVEN, modes


def test_captions_say_what_was_read() -> None:
    assert caption(SEVEN) == "7 read as 1, 98 %"
    assert caption(replace(SEVEN, confidence=0.9999)) == "7 read as 1, > 99 %"
    assert caption(replace(SEVEN, confidence=1.0)) == "7 read as 1, 100 %"
    assert caption(replace(SEVEN, confidence=None)) == "7 read as 1"
    assert caption(replace(SEVEN, label=None)) == "read as 1, 98 %"
    assert caption(replace(SEVEN, prediction=7)) == "7 read correctly, 98 %"
    assert caption(replace(SEVEN, prediction=None, confidence=None)) == "7 read as something else"


def test_headings_say_how_much_it_matters() -> None:
    found = modes(SEVEN)
    assert heading(found.modes[0], found) == "wet.rain: 40 % of the risk, mean loss 25.0 % [20.0, 30.0]"
    alone = modes(SEVEN, path="clean", share=None)
    assert heading(alone.modes[0], alone) == "clean inputs: mean loss 25.0 % [20.0, 30.0]"
    assert explanation(found.modes[0]).startswith("12 of 40 samples have a loss here, 9 of them a larger one")
    assert explanation(alone.modes[0]).endswith("though nothing was done to them.")


def test_the_headline_names_the_branch_that_hurts_most() -> None:
    found = modes(SEVEN)
    said = "In the scenario town, 40 % of the risk of net comes from wet.rain: 12 of 40 samples fail there."
    assert headline(found) == said
    alone = modes(SEVEN, path="clean", share=None)
    assert headline(alone) == "In the scenario town, net is hurt most by clean inputs: 12 of 40 samples fail there."
    assert headline(replace(found, modes=())) == "No branch of the scenario town has a loss."

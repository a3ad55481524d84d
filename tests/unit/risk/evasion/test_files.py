"""A curve that is written is the curve that is read; files that are none are refused."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advrisk.core.errors import RiskError
from advrisk.risk.evasion import (
    average,
    fit_bayesian,
    fit_logistic,
    fit_monotone,
    read_evasion,
    threshold,
    write_evasion,
)

ANSWERS = ([0.5, 0.7, 0.7, 1.0, 1.2, 2.0], [1, 1, 0, 1, 0, 0])
SIZES = [0.0, 0.4, 0.7, 1.1, 3.0, np.inf]
CURVES = {
    "threshold": threshold(8 / 255),
    "no detector": threshold(np.inf),
    "average": average({"a": [0.0, 1.0, np.inf], "b": [1.0, 2.0, 2.0]}),
    "logistic": fit_logistic(*ANSWERS),
    "monotone": fit_monotone(*ANSWERS),
    "bayesian": fit_bayesian(*ANSWERS),
    "bayesian, rates": fit_bayesian(*ANSWERS, scale="linear", guess=None, lapse=0.02, plausible=(0.1, 9.0)),
    "bayesian, forced": fit_bayesian(*ANSWERS, forced_choice=True, lapse=None),
    "bayesian, labellers": fit_bayesian(*ANSWERS, labellers=["zoe", "ann", "zoe", "bob", "ann", "bob"]),
    "bayesian, images": fit_bayesian(*ANSWERS, labellers=[5, 3, 5, 3, 5, 3], images=[10, 9, 10, 9, 8, 8]),
}


@pytest.mark.parametrize("name", CURVES)
def test_what_is_read_is_what_was_written(name: str, tmp_path: Path) -> None:
    path = tmp_path / "curve.json"
    write_evasion(path, CURVES[name], norm="linf")
    back = read_evasion(path, norm="linf")
    assert type(back) is type(CURVES[name])
    np.testing.assert_array_equal(back(SIZES), CURVES[name](SIZES))
    drawn = [curve.draws(3, np.random.default_rng(0)) for curve in (back, CURVES[name])]
    np.testing.assert_array_equal(drawn[0][2](SIZES), drawn[1][2](SIZES))
    assert [entry.name for entry in tmp_path.iterdir()] == ["curve.json"]


def test_the_file_shows_the_answers(tmp_path: Path) -> None:
    write_evasion(tmp_path / "curve.json", fit_logistic(*ANSWERS), norm="l2")
    fields = json.loads((tmp_path / "curve.json").read_text())
    assert fields["kind"] == "logistic"
    assert fields["norm"] == "l2"
    assert fields["sizes"] == ANSWERS[0]
    assert fields["undetected"] == [True, True, False, True, False, False]


def test_no_name_of_a_labeller_is_written(tmp_path: Path) -> None:
    write_evasion(tmp_path / "curve.json", CURVES["bayesian, labellers"])
    text = (tmp_path / "curve.json").read_text()
    assert json.loads(text)["labellers"] == ["1", "2", "1", "3", "2", "3"]
    assert not any(name in text for name in ("zoe", "ann", "bob"))
    assert "images" not in json.loads(text)
    found = [fit.labellers for fit in (CURVES["bayesian, labellers"], read_evasion(tmp_path / "curve.json"))]
    assert found[1] == {number: found[0][name] for number, name in [("1", "zoe"), ("2", "ann"), ("3", "bob")]}


def test_another_norm_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "curve.json"
    write_evasion(path, threshold(1.0), norm="l2")
    with pytest.raises(RiskError, match=r"curve.json: found sizes in l2, and damage is in linf"):
        read_evasion(path, norm="linf")
    assert read_evasion(path)(0.5) == 1


def test_a_function_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(RiskError, match="function cannot be written"):
        write_evasion(tmp_path / "curve.json", lambda sizes: np.exp(-np.asarray(sizes)))
    assert not list(tmp_path.iterdir())


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(RiskError, match=r"nowhere.*cannot be written"):
        write_evasion(tmp_path / "nowhere" / "curve.json", threshold(1.0))
    with pytest.raises(RiskError, match=r"curve.json: the evasion curve cannot be read"):
        read_evasion(tmp_path / "curve.json")


HEAD: dict[str, Any] = {"advrisk": "evasion", "version": 1, "norm": None}
ANSWERED = {"kind": "logistic", "sizes": [1.0, 2.0], "undetected": [True, False]}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not a JSON file"),
        ('{"advrisk": "evasion", "version": 1, "kind": "threshold", "tau": NaN}', "found NaN"),
        ("[" * 100_000, "not a JSON file"),
        ("[1, 2]", "not an evasion curve"),
        ({"kind": "threshold", "tau": 1}, "not an evasion curve"),
        (HEAD | {"version": 2, "kind": "threshold", "tau": 1}, "found version 2 of the file"),
        (HEAD | {"kind": "logistc"}, "no evasion is of the kind 'logistc'; did you mean 'logistic'"),
        (HEAD | {"tau": 1.0}, "no evasion is of the kind None"),
        (HEAD | {"kind": ["logistic"]}, "no evasion is of the kind"),
        (HEAD | {"kind": "threshold"}, "'tau' is missing, which a curve of the kind 'threshold' needs"),
        (HEAD | {"kind": "threshold", "tau": "1"}, "a number is needed, found '1'"),
        (HEAD | {"kind": "threshold", "tau": -1}, "tau: found -1.0"),
        (HEAD | {"kind": "threshold", "tau": 1, "tao": 2}, "'tao' is not known"),
        (HEAD | ANSWERED | {"sizes": 3}, "sizes must be a list, found 3"),
        (HEAD | ANSWERED | {"undetected": [1, 0]}, "undetected must be true or false, found 1"),
        (HEAD | ANSWERED | {"undetected": [True, True]}, "all 2 perturbations up to size 2 went undetected"),
        (HEAD | ANSWERED | {"sizes": [1.0]}, "there are 1 sizes and 2 answers"),
        (HEAD | ANSWERED | {"sizes": [True, 2.0]}, "a number is needed, found True"),
        (HEAD | ANSWERED | {"kind": "bayesian", "guess": "x"}, "a number is needed, found 'x'"),
        (HEAD | ANSWERED | {"kind": "bayesian", "plausible": [1.0]}, "plausible"),
        (HEAD | ANSWERED | {"kind": "bayesian", "forced_choice": 1}, "forced_choice must be true"),
        (HEAD | ANSWERED | {"kind": "bayesian", "labellers": ["1"]}, "there are 2 answers and 1 labellers"),
        (HEAD | ANSWERED | {"kind": "bayesian", "labellers": "12"}, "labellers must be a list, found '12'"),
        (HEAD | ANSWERED | {"kind": "bayesian", "images": ["a", 3]}, "images must be texts, found 3"),
        (HEAD | ANSWERED | {"labellers": ["1", "2"]}, "'labellers' is not known"),
        (HEAD | {"kind": "average", "models": ["a"], "distances": []}, "there is no distance"),
    ],
)
def test_a_bad_file_is_refused_with_its_name(content: Any, message: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(RiskError, match=rf"bad\.json: .*{message}"):
        read_evasion(path)

"""A study file, field by field: what is right is understood, what is wrong is refused by file, line and field."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from advrisk.core.errors import StudyError
from advrisk.study import StudySpec, TargetSpec, load_study, study_from

GOOD = """\
name: signs
seed: 7
data:
  source: digits
  evaluate: 100
  calibrate: 10
  path: signs.npz
models:
  plain:
    source: torch
    tags: {depth: 8, training: plain, frozen: true, width: 0.5}
success: label
arms:
  - attack: pgd
    norm: linf
    eps: 8/255
    steps: [10, 20]
  - corruption: fog
    level: [1, 3]
assess:
  damage:
    norm: linf
    level: 0.9
"""


def dropped(*keys: str) -> dict[str, Any]:
    """The study as a mapping, without some of its keys."""
    content: dict[str, Any] = {
        "name": "signs",
        "data": {"source": "digits", "evaluate": 100},
        "models": {"plain": {"source": "torch"}},
        "arms": [{"attack": "pgd", "norm": "linf", "eps": "8/255"}],
    }
    return {key: value for key, value in content.items() if key not in keys}


def arm(**entry: Any) -> Any:
    return study_from(dropped() | {"arms": [entry]}).arms[0]


def complaints(file: Path, text: str) -> list[str]:
    file.write_text(text)
    with pytest.raises(StudyError) as caught:
        load_study(file)
    lines = str(caught.value).splitlines()
    assert all(line.startswith(f"{file}:") for line in lines)
    return [line.removeprefix(f"{file}:") for line in lines]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "study.yaml"


def test_a_study_is_understood(file: Path) -> None:
    file.write_text(GOOD)
    study = load_study(file)
    assert (study.name, study.seed, study.success) == ("signs", 7, "label")
    assert (study.data.source, study.data.evaluate, study.data.calibrate, study.data.tune) == ("digits", 100, 10, 0)
    assert study.data.params == {"path": "signs.npz"}
    assert study.models["plain"].tags == {"depth": 8, "training": "plain", "frozen": True, "width": 0.5}
    assert [type(tag) for tag in study.models["plain"].tags.values()] == [int, str, bool, float]
    assert study.arms[0].attack == ["pgd"]
    assert study.arms[0].norm == ["linf"]
    assert study.arms[0].eps == [8 / 255]
    assert study.arms[0].params == {"steps": [10, 20]}
    assert study.arms[1].corruption == ["fog"]
    assert study.arms[1].level == [1, 3]
    assert study.arms[1].params == {}
    assert (study.assess.damage.norm, study.assess.damage.level) == ("linf", 0.9)
    assert study.where.path == file


def test_what_is_not_said_has_a_default() -> None:
    study = study_from(dropped())
    assert (study.seed, study.device, study.success, study.keep_inputs) == (0, "auto", "label", "successful")
    assert (study.data.calibrate, study.data.tune, study.data.order) == (0, 0, "shuffled")
    assert (study.max_cell_s, study.arms[0].repeats, study.arms[0].max_queries) == (None, 1, None)
    assert (study.assess.damage.norm, study.assess.damage.level, study.assess.damage.resamples) == ("linf", 0.95, 2000)


def test_a_study_cannot_be_changed() -> None:
    with pytest.raises(ValueError, match="frozen"):
        study_from(dropped()).seed = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("written", "meant"),
    [("8/255", [8 / 255]), (["2/255", 0.1, 1], [2 / 255, 0.1, 1.0]), ("1e-3", [0.001]), (0, [0.0])],
)
def test_eps_is_a_number_a_fraction_or_a_list_of_them(written: object, meant: list[float]) -> None:
    assert arm(attack="pgd", eps=written).eps == meant


def test_fractions_are_numbers_wherever_a_number_may_stand() -> None:
    content = dropped() | {"max_cell_s": "5/2", "assess": {"damage": {"level": "9/10", "thresholds": ["1/4", 0.5]}}}
    study = study_from(content)
    assert study.max_cell_s == 2.5
    assert study.assess.damage.level == 0.9
    assert study.assess.damage.thresholds == [0.25, 0.5]


def test_one_name_is_a_list_of_one() -> None:
    entry = arm(attack="pgd", norm="l2", objective="kl", keep="last", eps=1)
    assert (entry.attack, entry.norm, entry.objective, entry.keep) == (["pgd"], ["l2"], ["kl"], ["last"])


def test_all_samples_may_be_asked_for() -> None:
    assert study_from(dropped() | {"data": {"source": "digits", "evaluate": "all"}}).data.evaluate == "all"


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("3", 3),
        ("0", 0),
        ("next", "next"),
        ("least-likely", "least-likely"),
        ("{0: 1, 1: 7}", {0: 1, 1: 7}),
        ("{2: 0}", {2: 0}),
    ],
)
def test_success_may_be_a_target(file: Path, written: str, meant: object) -> None:
    for text in (f"success: {{target: {written}}}", f"success:\n  target: {written}"):
        file.write_text(GOOD.replace("success: label", text))
        study = load_study(file)
        assert study.success == TargetSpec(target=meant)
        assert study.success.target == meant
        assert type(study.success.target) is type(meant)
        assert study.criterion == "target"


@pytest.mark.parametrize("success", ["label", "prediction"])
def test_without_a_target_success_is_its_own_criterion(success: str) -> None:
    assert study_from(dropped() | {"success": success}).criterion == success


NEEDED = "12: success: must be a class number, next, least-likely or a map of classes, found "
MAP = "12: success: must map each class to another, as in {0: 1, 1: 7}; found "


@pytest.mark.parametrize(
    ("target", "complaint"),
    [
        ("-1", NEEDED + "-1"),
        ("true", NEEDED + "True"),
        ("2.0", NEEDED + "2.0"),
        ("'3'", NEEDED + "'3'"),
        ("null", NEEDED + "None"),
        ("[1]", NEEDED + "[1]"),
        ("nxt", NEEDED + "'nxt'; did you mean 'next'?"),
        ("Next", NEEDED + "'Next'; did you mean 'next'?"),
        ("least_likely", NEEDED + "'least_likely'; did you mean 'least-likely'?"),
        ("seven", NEEDED + "'seven'"),
        ("{0: 0}", MAP + "0: 0"),
        ("{0: 1, 4: 4}", MAP + "4: 4"),
        ("{0: -1}", MAP + "0: -1"),
        ("{-1: 0}", MAP + "-1: 0"),
        ("{a: 1}", MAP + "'a': 1"),
        ("{0: '1'}", MAP + "0: '1'"),
        ("{'true': 0}", MAP + "'true': 0"),
        ("{true: 0}", "12: success.target.true: YAML reads the key true as a truth value; quote it: 'true'"),
        ("{0: 1.5}", MAP + "0: 1.5"),
        ("{1: next}", MAP + "1: 'next'"),
    ],
)
def test_a_target_that_is_none_is_refused_with_what_is_one(file: Path, target: str, complaint: str) -> None:
    assert complaint in complaints(file, GOOD.replace("success: label", f"success: {{target: {target}}}"))


def test_a_truth_value_is_no_class_from_python_either() -> None:
    with pytest.raises(StudyError, match=r"must map each class to another, .* found True: 0"):
        study_from(yaml.safe_load(GOOD) | {"success": {"target": {True: 0}}})


@pytest.mark.parametrize(
    ("success", "complaint"),
    [
        ("{targt: 3}", "12: success: found the key 'targt'; did you mean 'target'?"),
        ("{target: 3, to: 1}", "12: success: found the key 'to'; known: target"),
        ("{}", "12: success: found no target; write label, prediction or {target: …}"),
        ("{target: -1}", NEEDED + "-1"),
        ("lable", "12: success: found 'lable'; did you mean 'label'?"),
    ],
)
def test_one_mistake_in_success_is_one_complaint(file: Path, success: str, complaint: str) -> None:
    said = complaints(file, GOOD.replace("success: label", f"success: {success}"))
    assert said[-1] == complaint
    assert len(said) == 1


# What is written instead of what, and the line, the field and the words of the complaint.
MISTAKES = [
    # keys
    ("seed: 7", "sede: 7", "2: sede: unknown key; did you mean 'seed'?"),
    ("success: label", "zzz: label", "12: zzz: unknown key; known: arms, assess, data, "),
    ("  damage:", "  damge:", "21: assess.damge: unknown key; did you mean 'damage'?"),
    ("    level: 0.9", "    levle: 0.9", "23: assess.damage.levle: unknown key; did you mean 'level'?"),
    ("seed: 7", "7: 7", "2: 7: keys should be strings, found 7"),
    ("name: signs\n", "", "1: name: is missing"),
    ("  source: digits\n", "", "3: data.source: is missing"),
    ("  evaluate: 100\n", "", "3: data.evaluate: is missing"),
    ("    source: torch\n", "", "9: models.plain.source: is missing"),
    # names
    ("name: signs", "name: a b", "1: name: must consist of letters"),
    ("name: signs", "name: ../up", "1: name: must consist of letters"),
    ("name: signs", "name: 7", "1: name: input should be a valid string, found 7"),
    ("name: signs", f"name: {'a' * 101}", "1: name: string should have at most 100 characters"),
    ("  plain:", "  my model:", "9: models.my model: must consist of letters"),
    ("  plain:", "  .hidden:", "9: models..hidden: must consist of letters"),
    ("  plain:", "  7:", "9: models.7: input should be a valid string, found 7"),
    # whole numbers
    ("seed: 7", "seed: -1", "2: seed: input should be greater than or equal to 0, found -1"),
    ("seed: 7", f"seed: {2**63}", f"2: seed: input should be less than {2**63}, found {2**63}"),
    ("seed: 7", "seed: 7.5", "2: seed: input should be a valid integer, found 7.5"),
    ("seed: 7", "seed: true", "2: seed: input should be a valid integer, found True"),
    ("seed: 7", "seed: '7'", "2: seed: input should be a valid integer, found '7'"),
    ("evaluate: 100", "evaluate: 0", "5: data.evaluate: input should be greater than 0, found 0"),
    ("evaluate: 100", "evaluate: true", "5: data.evaluate: input should be a valid integer, found True"),
    ("evaluate: 100", "evaluate: al", "5: data.evaluate: found 'al'; did you mean 'all'?"),
    ("calibrate: 10", "calibrate: -1", "6: data.calibrate: input should be greater than or equal to 0, found -1"),
    ("calibrate: 10", "order: random", "6: data.order: found 'random'; known: balanced, file, shuffled"),
    ("seed: 7", "shard: 0", "2: shard: input should be greater than or equal to 1, found 0"),
    ("seed: 7", "shard: 5000", "2: shard: input should be less than or equal to 4096, found 5000"),
    ("seed: 7", "max_cell_s: 0", "2: max_cell_s: input should be greater than 0, found 0"),
    ("seed: 7", "max_cell_s: .nan", "2: max_cell_s: a finite number is needed, found nan"),
    # choices
    ("success: label", "success: lable", "12: success: found 'lable'; did you mean 'label'?"),
    ("seed: 7", "keep_inputs: sucessful", "2: keep_inputs: found 'sucessful'; did you mean 'successful'?"),
    ("    norm: linf\n    eps", "    norm: linff\n    eps", "15: arms[0].norm: found 'linff'; did you mean 'linf'?"),
    (
        "    norm: linf\n    eps",
        "    norm: [l2, l3]\n    eps",
        "15: arms[0].norm[1]: found 'l3'; known: l0, l1, l2",
    ),
    ("    norm: linf\n    eps", "    norm: 2\n    eps", "15: arms[0].norm: found 2; did you mean 'l2'?"),
    (
        "    norm: linf\n    eps",
        "    norm: []\n    eps",
        "15: arms[0].norm: found an empty list or mapping; add at least one entry",
    ),
    ("steps: [10, 20]", "keep: lats", "17: arms[0].keep: found 'lats'; did you mean 'last'?"),
    (
        "  damage:\n    norm: linf",
        "  damage:\n    norm: linv",
        "22: assess.damage.norm: found 'linv'; did you mean",
    ),
    # sizes
    ("eps: 8/255", "eps: -0.1", "16: arms[0].eps: input should be greater than or equal to 0, found -0.1"),
    ("eps: 8/255", "eps: [0.1, -8/255]", "16: arms[0].eps[1]: input should be greater than or equal to 0, found"),
    ("eps: 8/255", "eps: 8/0", "16: arms[0].eps: '8/0' divides by zero"),
    ("eps: 8/255", "eps: [1/2, 8/0]", "16: arms[0].eps[1]: '8/0' divides by zero"),
    ("eps: 8/255", "eps: large", "16: arms[0].eps: a number or a fraction such as 8/255 is needed, found 'large'"),
    ("eps: 8/255", "eps: {max: 1}", "16: arms[0].eps: a number or a fraction such as 8/255 is needed, found {'max'"),
    ("eps: 8/255", "eps: [[1]]", "16: arms[0].eps[0]: a number or a fraction such as 8/255 is needed, found [1]"),
    ("eps: 8/255", "eps: true", "16: arms[0].eps: a number is needed, found True"),
    ("eps: 8/255", "eps: .inf", "16: arms[0].eps: a finite number is needed, found inf"),
    ("eps: 8/255", f"eps: 1{'0' * 400}", "16: arms[0].eps: a finite number is needed, found one past 1e308"),
    ("eps: 8/255", "eps: []", "16: arms[0].eps: found an empty list or mapping; add at least one entry"),
    ("eps: 8/255", "repeats: 0", "16: arms[0].repeats: input should be greater than 0, found 0"),
    ("eps: 8/255", "max_queries: -5", "16: arms[0].max_queries: input should be greater than 0, found -5"),
    ("level: 0.9", "level: 1", "23: assess.damage.level: input should be less than 1, found 1"),
    ("level: 0.9", "level: 0/5", "23: assess.damage.level: input should be greater than 0, found '0/5'"),
    ("level: 0.9", "resamples: 99", "23: assess.damage.resamples: input should be greater than or equal to 100, found"),
    ("level: 0.9", "thresholds: [-1]", "23: assess.damage.thresholds[0]: input should be greater than or equal to 0"),
    # shapes
    ("  - attack: pgd", "  - norm: l2\n    attack: pgd", "16: arms[0].norm: found this key twice; remove one"),
    (
        "  - attack: pgd",
        "  - atack: pgd",
        "14: arms[0]: set exactly one of attack, corruption, preset; found only",
    ),
    (
        "    steps: [10, 20]",
        "    corruption: fog",
        "14: arms[0]: set exactly one of attack, corruption, preset; ",
    ),
    ("    steps: [10, 20]", "  - {}", "17: arms[1]: set exactly one of attack, corruption, preset; found none"),
    ("    steps: [10, 20]", "  -", "17: arms[1]: must be a mapping"),
    ("    steps: [10, 20]", "  - pgd", "17: arms[1]: must be a mapping"),
    ("attack: pgd", "attack: []", "14: arms[0].attack: found an empty list or mapping; add at least one entry"),
    ("attack: pgd", "attack: 3", "14: arms[0].attack: input should be a valid string, found 3"),
    (
        "tags: {depth: 8,",
        "tags: {depth: [8],",
        "11: models.plain.tags.depth: input should be a valid string, found",
    ),
    ("tags: {depth: 8,", "tags: {depth: null,", "11: models.plain.tags.depth: input should be a valid string, found"),
    ("  damage:\n    norm: linf\n    level: 0.9\n", "", "20: assess: must be a mapping"),
]


@pytest.mark.parametrize(("right", "wrong", "complaint"), MISTAKES)
def test_a_mistake_is_refused_by_file_line_and_field(file: Path, right: str, wrong: str, complaint: str) -> None:
    assert GOOD.count(right) == 1
    assert any(line.startswith(complaint) for line in complaints(file, GOOD.replace(right, wrong)))


@pytest.mark.parametrize(
    ("key", "empty", "words"),
    [
        ("models", {}, "models: found an empty list or mapping; add at least one entry"),
        ("models", [], "models: must be a mapping, found []"),
        ("arms", [], "arms: found an empty list or mapping; add at least one entry"),
        ("arms", {"attack": "pgd"}, "arms: must be a list, found a mapping; begin it with `- `"),
        ("arms", None, "arms: must be a list, found None"),
        ("detectors", {"name": "confidence"}, "detectors: must be a list, found a mapping; begin it with `- `"),
        ("detectors", "confidence", "detectors: must be a list, found 'confidence'"),
        (
            "assess",
            {"damage": {"detector": {"name": "confidence", "false_alarm": 0.05}}},
            "assess.damage.detector.false_alarm: unknown key; did you mean 'false_alarms'?",
        ),
        (
            "assess",
            {"damage": {"detector": {"name": "confidence", "threshold": 0.05, "zzz": 1}}},
            "assess.damage.detector.zzz: unknown key; known: false_alarms, name, threshold",
        ),
        ("data", None, "data: must be a mapping"),
        ("data", "digits", "data: must be a mapping"),
    ],
)
def test_an_empty_or_misshapen_section_is_refused(key: str, empty: object, words: str) -> None:
    with pytest.raises(StudyError) as caught:
        study_from(dropped() | {key: empty})
    assert str(caught.value).startswith(f"<study>: {words}")


def test_requirements_are_read_and_kept_as_they_are_written(file: Path) -> None:
    file.write_text(f'{GOOD}gate:\n  - "broken.plain at 8/255 <= 20 %"\n  - error_rows == 0\n')
    assert load_study(file).gate == ["broken.plain at 8/255 <= 20 %", "error_rows == 0"]


@pytest.mark.parametrize(
    ("written", "said"),
    [
        (
            "[damag.plain <= 0.2]",
            "24: gate[0]: 'damag.plain <= 0.2': unknown quantity; did you",
        ),
        ("\n  - error_rows == 0\n  - damage.plain <= 20", "26: gate[1]: 'damage.plain <= 20': damage is a share"),
        ("damage.plain <= 0.2", "24: gate: must be a list, found 'damage.plain <= 0.2'"),
        ("[1]", "24: gate[0]: input should be a valid string, found 1"),
    ],
)
def test_a_requirement_that_cannot_be_read_is_refused_with_its_line(file: Path, written: str, said: str) -> None:
    assert complaints(file, f"{GOOD}gate: {written}\n")[0].startswith(said)


def test_detectors_are_names_or_mappings_with_a_name(file: Path) -> None:
    written = "[confidence, {name: feature-squeezing, bits: [1, 4]}, {detector: lid, name: near}]"
    file.write_text(f"{GOOD}detectors: {written}\n")
    first, second, third = load_study(file).detectors
    assert (first.detector, first.name, first.params) == ("confidence", None, {})
    assert (second.detector, second.name, second.params) == ("feature-squeezing", None, {"bits": [1, 4]})
    assert (third.detector, third.name, third.params) == ("lid", "near", {})
    assert study_from(dropped()).detectors == []


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("3", "24: detectors[0]: must be a name, or a mapping with a detector and parameters; found 3"),
        ("{bits: 4}", "24: detectors[0]: found no `detector`; name one, as in {detector: lid, neighbours: 20}"),
        ("{name: 4}", "24: detectors[0]: input should be a valid string, found 4"),
        ("{detector: lid, name: two words}", "24: detectors[0].name: must consist of letters, digits, `.`, `_` and"),
    ],
)
def test_a_detector_without_a_name_is_refused(file: Path, entry: str, said: str) -> None:
    (complaint,) = complaints(file, f"{GOOD}detectors: [{entry}]\n")
    assert complaint.startswith(said)


def test_all_mistakes_are_told_at_once_each_on_a_line_of_its_own(file: Path) -> None:
    text = GOOD.replace("seed: 7", "sede: 7").replace("evaluate: 100", "evaluate: -1").replace("8/255", "8/0")
    said = complaints(file, text)
    assert {line.split(":")[0] for line in said} == {"2", "5", "16"}


def test_of_many_mistakes_twenty_are_listed_and_the_others_counted(file: Path) -> None:
    file.write_text(GOOD + "".join(f"wrong{i}: 1\n" for i in range(30)))
    with pytest.raises(StudyError) as caught:
        load_study(file)
    *listed, rest = str(caught.value).splitlines()
    assert len(listed) == 20
    assert rest == "… and 10 more mistakes"


def test_an_arm_of_no_kind_or_of_two_is_told_what_was_found() -> None:
    for entry, found in [
        ({"atack": "pgd", "norm": "l2"}, "found only atack, norm (did you mean 'attack'?)"),
        ({"attack": "pgd", "preset": "p"}, "found attack and preset"),
        ({"attack": "pgd", "corruption": "fog", "preset": "p"}, "found attack and corruption and preset"),
        ({}, "found none"),
    ]:
        with pytest.raises(StudyError) as caught:
            arm(**entry)
        assert str(caught.value).endswith(f"set exactly one of attack, corruption, preset; {found}")


def test_a_missing_and_a_mistyped_key_are_both_told(file: Path) -> None:
    said = complaints(file, GOOD.replace("models:", "modles:"))
    assert said == ["1: models: is missing", "8: modles: unknown key; did you mean 'models'?"]


def test_a_mapping_is_checked_as_a_file_is() -> None:
    with pytest.raises(StudyError) as caught:
        study_from(dropped("data"))
    assert str(caught.value) == "<study>: data: is missing"


def test_the_json_schema_of_a_study_is_one_an_editor_can_use() -> None:
    schema = json.loads(json.dumps(StudySpec.model_json_schema()))
    assert set(schema["required"]) == {"name", "data", "models", "arms"}
    assert schema["additionalProperties"] is False
    eps = schema["$defs"]["ArmEntry"]["properties"]["eps"]
    assert "array" in json.dumps(eps)
    assert "a fraction" in json.dumps(eps)


def asked_damage(**fields: Any) -> Any:
    return study_from(dropped() | {"assess": {"damage": fields}}).assess.damage


@pytest.mark.parametrize(
    ("written", "meant", "file"),
    [
        ("people.json", "people.json", "people.json"),
        ("average", "average", None),
        ("8/255", 8 / 255, None),
        (0.1, 0.1, None),
        (0, 0.0, None),
    ],
)
def test_an_evasion_is_a_file_a_size_or_the_average(written: Any, meant: Any, file: str | None) -> None:
    found = asked_damage(evasion=written)
    assert (found.evasion, found.evasion_file) == (meant, file)


@pytest.mark.parametrize("wrong", [True, -0.1, "-1/8", [0.1], {"threshold": 1}, ""])
def test_an_evasion_that_is_none_of_these_is_refused(wrong: Any) -> None:
    with pytest.raises(StudyError, match=r"assess\.damage\.evasion: .*found"):
        asked_damage(evasion=wrong)


def test_only_a_probability_has_a_cost() -> None:
    assert asked_damage(evasion="people.json", cost="25000").cost == 25_000
    for nothing in ({}, {"evasion": "average"}):
        with pytest.raises(StudyError, match="neither an evasion curve nor a detector"):
            asked_damage(cost=3, **nothing)
    with pytest.raises(StudyError, match="cost"):
        asked_damage(evasion=0.1, cost=-3)

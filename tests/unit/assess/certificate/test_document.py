"""The document of a certificate: its shape, and that nothing in it can be changed unnoticed."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from advrisk.assess.certificate.assessment import assess_certificates
from advrisk.assess.certificate.document import CertificateDocument, certificate_document, read_document
from advrisk.assess.certificate.sections import certificate_words
from advrisk.assess.certificate.signature import new_key, signature_problem, signed
from advrisk.assess.certificate.statements import target_text
from advrisk.assess.certificate.verification import compare_documents, verify_document
from advrisk.assess.certificate.words import LATER
from advrisk.core.errors import RiskError, RunError
from advrisk.core.version import VERSION
from advrisk.ledger import Ledger
from advrisk.report.certificate_page import certificate_page
from advrisk.risk.certificate import calibration_order
from tests.golden.make_certificate_v4 import BROKEN, MODEL, SAMPLES, document, golden_ledger

from .conftest import write_rows

GOLDEN = Path(__file__).parents[3] / "golden" / "certificate-v4.json"


@pytest.fixture(scope="module")
def ledger(tmp_path_factory: pytest.TempPathFactory) -> Ledger:
    return golden_ledger(tmp_path_factory.mktemp("run"))


@pytest.fixture(scope="module")
def whole(ledger: Ledger) -> dict[str, Any]:
    return document(ledger)


@pytest.fixture(scope="module")
def by_betting(ledger: Ledger) -> dict[str, Any]:
    return document(ledger, method="betting")


def leaves(content: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every value that is neither a mapping nor a list, and every list and mapping that is empty."""
    inside = (
        list(content.items() if isinstance(content, dict) else enumerate(content))
        if isinstance(content, dict | list)
        else []
    )
    if not inside:
        yield path
    for name, value in inside:
        yield from leaves(value, (*path, name))


def changed(content: Any, path: tuple[str | int, ...]) -> dict[str, Any]:
    copied = copy.deepcopy(content)
    place = copied
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = other(place[path[-1]])
    return copied


def other(value: Any) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, float):
        return value * 0.999 if value else 0.001
    return f"{value} changed" if isinstance(value, str) else "something"


def test_the_document_is_the_one_that_was_agreed_on(whole: dict[str, Any]) -> None:
    """To change its shape or words is another version, with a file of its own here."""
    agreed = json.loads(GOLDEN.read_text(encoding="utf-8"))
    agreed["provenance"]["advrisk"] = VERSION
    assert agreed == whole


def test_what_it_says(whole: dict[str, Any]) -> None:
    claim = whole["claim"]
    assert claim["certified"] is False
    assert claim["largest_eps"] == {"l2": 1.0, "linf": 0.02}
    assert claim["text"] == (
        f"Within l2 up to eps = 1 and linf up to eps = 0.02, no attack listed here turns more than 10 % (alpha, the "
        f"tolerated share) of the inputs to {MODEL} from correct to incorrect, where inputs are drawn like the 80 "
        "calibration samples; this is the result of a test that certifies a model with a larger share at most 5 % of "
        "the time (zeta, its error rate). This is not certified within linf 0.05."
    )
    assert [(one["norm"], one["eps"], one["certified"]) for one in whole["lists"]] == [
        ("l2", 1.0, True),
        ("linf", 0.02, True),
        ("linf", 0.05, False),
    ]
    assert whole["clean_error"]["wrong"] == 9
    frozen = whole["lists"][1]["attacks"][0]
    assert (frozen["arm"], frozen["origin"], frozen["tries"]) == ("nes@linf:0.02", "frozen", 2)
    assert (frozen["failures"], frozen["first_try"]) == (2, 1)
    assert whole["lists"][1]["union"]["failures"] == 3
    assert whole["lists"][1]["wrong"]["failures"] == 12
    assert whole["lists"][2]["attacks"][0]["untold"] == 1
    assert "would have been few enough" in whole["lists"][2]["would_take"]
    assert len(whole["family"]) == 4
    assert sum(whole["calibration"]["classes"].values()) == len(SAMPLES)
    assert whole["model"]["name"] == MODEL


def test_larger_sizes_that_are_left_out_are_a_note(ledger: Ledger, whole: dict[str, Any]) -> None:
    found = assess_certificates(ledger)
    model = found.of(MODEL)
    given: dict[str, Any] = {"every": found.lists, "study": "signs", "seed": 7}
    small = certificate_document(ledger, found, model, lists=[model.of("linf", 0.02)], **given)
    assert small["claim"]["certified"]
    assert small["notes"][-1] == "Larger sizes were tested and are left out: linf 0.05 fails."
    assert verify_document(small).problems == ()
    other_norm = certificate_document(ledger, found, model, lists=[model.of("l2", 1.0)], **given)
    assert not any("left out" in note for note in (*other_norm["notes"], *whole["notes"]))


@pytest.mark.parametrize("which", ["whole", "by_betting"])
def test_it_holds_as_it_is_also_after_it_was_written_and_read(
    which: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    content = request.getfixturevalue(which)
    (tmp_path / "a.json").write_text(json.dumps(content, indent=1))
    found = verify_document(read_document(tmp_path / "a.json"))
    assert found.problems == ()
    assert "not signed" in found.notes[0]


def test_no_value_can_be_changed_after_it_was_signed(whole: dict[str, Any], tmp_path: Path) -> None:
    key, public = new_key(tmp_path / "key.pem")
    document = signed(whole, key)
    assert verify_document(document, key=public).holds
    for path in leaves(document):
        assert signature_problem(changed(document, path), public) is not None, path


def test_every_changed_value_is_seen_in_the_run(whole: dict[str, Any]) -> None:
    assert compare_documents(whole, whole).holds
    unseen = {path for path in leaves(whole) if compare_documents(changed(whole, path), whole).holds}
    assert unseen == {("provenance", "made"), ("provenance", "advrisk")}


# What a document says of the run, and nobody can make again from its counts.
FACTS = (
    "arm",
    "origin",
    "family",
    "objective",
    "keep",
    "max_queries",
    "version",
    "params",
    "tries",
    "first_try",
    "untold",
    "flags",
)


def test_numbers_and_words_that_do_not_follow_from_the_counts_are_told(whole: dict[str, Any]) -> None:
    unseen = [path for path in leaves(whole) if verify_document(changed(whole, path)).holds]
    free = [path for path in unseen if not any(part in FACTS for part in path)]
    assert {path[0] for path in free} <= {"model", "calibration", "provenance", "notes", "family"}, free
    assert ("model", "name") not in free
    assert ("calibration", "n") not in free
    assert not [path for path in free if path[0] == "family" and path[-1] in ("p", "failures", "n")]


def test_a_whole_number_beyond_all_floats_is_told(whole: dict[str, Any]) -> None:
    assert not verify_document(whole | {"claim": whole["claim"] | {"zeta": 10**400}}).holds


@pytest.mark.parametrize(
    "path",
    [
        ("claim", "zeta"),
        ("lists", 1, "attacks", 0, "p"),
        ("lists", 1, "attacks", 0, "failures"),
        ("lists", 1, "attacks", 0, "failed_at", 0),
        ("lists", 1, "union", "failed_at", 0),
        ("lists", 0, "wrong", "failed_at", 0),
        ("lists", 0, "n"),
    ],
)
def test_so_are_those_of_betting_which_depend_on_the_order(
    by_betting: dict[str, Any], path: tuple[str | int, ...]
) -> None:
    assert not verify_document(changed(by_betting, path)).holds


def test_more_failures_or_fewer_change_the_verdict_and_are_told_as_such(whole: dict[str, Any]) -> None:
    better = copy.deepcopy(whole)
    better["lists"][2]["attacks"][0]["failures"] = 1
    (problem,) = verify_document(better).problems
    assert "cannot have" in problem or "other numbers" in problem
    renamed = copy.deepcopy(whole) | {"not_claimed": []}
    assert "not_claimed" in verify_document(renamed).problems[0]


def test_a_run_that_changed_says_what_changed(whole: dict[str, Any], ledger: Ledger, tmp_path: Path) -> None:
    again = document(
        write_rows(tmp_path, BROKEN | {"hardened": {"pgd@linf:0.02": "s".ljust(80, "r")}}, samples=SAMPLES)
    )
    told = " ".join(compare_documents(whole, again).problems)
    assert "family" in told
    others = copy.deepcopy(whole)
    others["model"]["digest"] = others["calibration"]["fingerprint"] = others["provenance"]["ledger"] = "0"
    told = " ".join(compare_documents(others, whole).problems)
    assert "The run holds another model of that name" in told
    assert "calibrated on other samples" in told
    assert "rows of the run are not those" in told


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "not a JSON file"),
        ("{", "not a JSON file"),
        ("[1]", "not a certificate"),
        ('{"advrisk": "evasion"}', "not a certificate"),
        ('{"advrisk": "certificate", "p": NaN}', "found NaN"),
        ('{"advrisk": "certificate", "claim": {"alpha": 0.1, "alpha": 0.2}}', "'alpha' stands there twice"),
        ("[" * 100_000, "not a JSON file"),
    ],
)
def test_files_that_are_no_certificate(tmp_path: Path, text: str, complaint: str) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(RiskError, match=complaint):
        read_document(tmp_path / "a.json")
    with pytest.raises(RunError, match="cannot be read"):
        read_document(tmp_path / "b.json")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("claim", "alpha"), 1.5),
        (("claim", "zeta"), 0),
        (("claim", "method"), "magic"),
        (("lists",), []),
        (("lists", 0, "attacks", 0, "failures"), -1),
        (("lists", 0, "attacks", 0, "failures"), "3"),
        (("lists", 0, "attacks", 0, "failures"), 10**9),
        (("lists", 0, "n"), 0),
        (("family",), []),
        (("family", 0, "eps"), -1.0),
        (("more",), 1),
        (("version",), 2),
        (("calibration", "n"), 10**30),
        (("calibration", "n"), 10**9),
        (("calibration", "classes"), {"a": 80}),
        (("calibration", "classes"), {"1": -80, "2": 160}),
        (("lists", 0, "eps"), 1e308),
        (("family", 0, "n"), 0),
        (("clean_error", "wrong"), 81),
        (("claim", "alpha"), 1e-12),
        (("lists", 0, "attacks", 0, "params"), {"step": float("inf")}),
        (("lists", 0, "attacks", 0, "params"), {"step": "\ud800"}),
    ],
)
def test_values_of_another_kind_are_a_message_and_no_traceback(
    whole: dict[str, Any], path: tuple[str | int, ...], value: Any
) -> None:
    content = copy.deepcopy(whole)
    place: Any = content
    for name in path[:-1]:
        place = place[name]
    place[path[-1]] = value
    assert not verify_document(content).holds


@pytest.mark.parametrize("n", [0, 79, 81, 10**7, 10**14])
def test_so_are_sizes_of_lists_that_nobody_could_have_made(by_betting: dict[str, Any], n: int) -> None:
    content = copy.deepcopy(by_betting)
    content["lists"][0]["n"] = n
    assert not verify_document(content).holds


def test_an_attack_or_a_list_that_stands_there_twice_is_told(whole: dict[str, Any]) -> None:
    content = copy.deepcopy(whole)
    content["lists"][0]["attacks"] *= 2
    assert "pgd@l2:1 stands there twice" in verify_document(content).problems[0]
    content = copy.deepcopy(whole)
    content["lists"].append(content["lists"][0])
    assert "l2 1 stands there twice" in verify_document(content).problems[0]


def test_a_number_that_is_none_is_told_before_and_after_signing(whole: dict[str, Any], tmp_path: Path) -> None:
    key, public = new_key(tmp_path / "key.pem")
    text = json.dumps(signed(whole, key)).replace('"seed": 7', '"seed": 1e400')
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(RiskError, match="1e400 is no number that a certificate can hold"):
        read_document(tmp_path / "a.json")
    problems = verify_document(json.loads(text), key=public).problems
    assert "what it says cannot be signed" in problems[0]
    deep: Any = []
    for _ in range(50_000):
        deep = [deep]
    assert not verify_document(signed(whole, key) | {"notes": deep}).holds


def test_names_with_any_character_in_them_are_kept_apart(whole: dict[str, Any]) -> None:
    content = copy.deepcopy(whole)
    other = next(one for one in content["family"] if one["model"] == "hardened")
    content["family"] += [other | {"model": f"{MODEL}\x1fl", "norm": "x"}, other | {"norm": "l\x1fx", "model": MODEL}]
    assert "All 6 claims of this run" in " ".join(verify_document(content).problems)


def test_a_certificate_holds_where_the_clean_answer_of_a_sample_is_not_known(tmp_path: Path) -> None:
    ledger = write_rows(tmp_path, {"m": {"pgd@linf:0.1": "e".ljust(80, "r")}}, samples=SAMPLES, clean={"m": "e"})
    content = document(ledger, "m")
    assert content["clean_error"]["n"] == 79
    assert verify_document(content).problems == ()


def test_the_threat_model_is_complete(tmp_path: Path) -> None:
    """What success means, and all that limits an attack or makes it another one."""
    facts = {"pgd@linf:0.1": {"keep": "best", "max_queries": 500, "version": 3}}
    rows = {"criterion": "target", "target": 3}
    ledger = write_rows(tmp_path, {"m": {"pgd@linf:0.1": "r" * 80}}, facts=facts, samples=SAMPLES, rows=rows)
    content = document(ledger, "m")
    (attack,) = content["lists"][0]["attacks"]
    assert (attack["keep"], attack["max_queries"], attack["version"]) == ("best", 500, 3)
    assert {target for targets in content["targets"].values() for target in targets} == {3}
    assert "of inputs, which it reads correctly otherwise, as class 3" in content["claim"]["text"]
    assert content["provenance"]["torch"] == ["2.0"]
    assert verify_document(content).problems == ()
    page = certificate_page(content)
    assert "The attacked input is read as class 3." in page
    assert "at most 500 queries" in page
    assert "with torch 2.0" in page
    other = copy.deepcopy(content) | {"targets": {"0": [1]}}
    assert "claim.text" in verify_document(other).problems[0]
    assert target_text({"0": [1], "1": [7]}) == "another class that was chosen beforehand (class 0 as 1, 1 as 7)"
    assert target_text({0: [1, 2]}) == "another class that was chosen beforehand"


def test_missing_fields_are_a_message_and_no_traceback(whole: dict[str, Any]) -> None:
    for name in whole:
        content = {key: value for key, value in whole.items() if key != name}
        assert not verify_document(content).holds, name


def test_an_unfinished_run_gives_no_certificate(tmp_path: Path) -> None:
    ledger = write_rows(tmp_path, {"m": {"pgd@linf:0.1": "r" * 30 + "." * 50}}, samples=SAMPLES)
    with pytest.raises(RiskError, match=r"m: the attacks within linf 0\.1 are done on \d+ of 80 samples"):
        document(ledger, "m")


def test_the_schema_knows_every_field(whole: dict[str, Any]) -> None:
    schema = CertificateDocument.model_json_schema()
    assert set(whole) | {"signer", "signature"} == set(schema["properties"])


def test_bets_on_some_of_the_samples_say_so_and_hold(tmp_path: Path) -> None:
    order = calibration_order({f"s{place}": f"h{place}" for place in range(100)})
    seen = set(order[:80])
    letters = "".join("r" if f"s{place}" in seen else "." for place in range(100))
    ledger = write_rows(
        tmp_path / "run", {"m": {"pgd@linf:0.1": letters}}, samples=[{"label": n % 7 % 3} for n in range(100)]
    )
    content = document(ledger, "m", method="betting")
    assert "80 of 100 samples looked at within linf 0.1" in content["claim"]["text"]
    assert verify_document(content).problems == ()
    words = certificate_words(assess_certificates(ledger, method="betting"))
    assert any("80 of 100 samples looked at" in sentence for sentence in words)


def test_notes_cannot_be_checked_without_the_run_and_it_says_so(whole: dict[str, Any]) -> None:
    found = verify_document(whole | {"notes": []})
    assert any("caveats, notes, flags and attacks' settings are taken as they stand" in note for note in found.notes)


def test_a_caveat_that_follows_from_the_counts_cannot_be_struck(tmp_path: Path) -> None:
    """A model that is wrong on most inputs: who holds the document alone sees that its caveat is gone."""
    useless = write_rows(tmp_path, {MODEL: {"pgd@linf:0.1": "w" * 60 + "r" * 20}}, samples=SAMPLES)
    honest = document(useless)
    assert verify_document(honest).caveats == tuple(honest["claim"]["caveats"])
    assert "wrong on most inputs without any attack (75 % of 80 samples)" in honest["claim"]["caveats"][0]
    struck = honest | {"claim": honest["claim"] | {"caveats": []}}
    assert any("claim.caveats" in problem for problem in verify_document(struck).problems)


def test_an_alpha_chosen_after_a_look_claims_nothing_of_all_claims_together(ledger: Ledger) -> None:
    found = assess_certificates(ledger, caveats=[f"alpha = 0.2 was chosen later. {LATER}"])
    assert not any("together are wrong" in sentence for sentence in certificate_words(found))
    assert any("together are wrong" in sentence for sentence in certificate_words(assess_certificates(ledger)))

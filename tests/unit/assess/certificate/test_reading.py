"""Which samples count as failures, by hand-made rows for every rule."""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advrisk.assess.certificate.assessment import assess_certificates
from advrisk.assess.certificate.calibration import read_calibration
from advrisk.assess.certificate.reading import ModelRows, read_rows
from advrisk.assess.certificate.settled import caveats_of_samples
from advrisk.core.errors import RiskError
from advrisk.ledger import Ledger, table_from
from advrisk.ledger.frozen import frozen_list, frozen_question, write_frozen

from .conftest import Make

PGD, FGSM = "pgd@linf:0.1", "fgsm@linf:0.1"


def only(ledger: Ledger, **given: object) -> ModelRows:
    (found,) = read_rows(ledger, read_calibration(ledger), **given)  # type: ignore[arg-type]
    return found


def in_order(ledger: Ledger, marks: np.ndarray) -> str:
    """A letter for each sample, s0 first: `x` where it is marked."""
    names = read_calibration(ledger).samples
    return "".join("x" if marks[names.index(f"s{place}")] else "-" for place in range(len(names)))


def test_only_what_was_right_and_is_broken_fails_and_an_error_counts_as_broken(made: Make) -> None:
    ledger = made({"m": {PGD: "srwjet"}})
    found = only(ledger)
    (attack,) = found.attacks
    assert in_order(ledger, found.wrong) == "--x---"
    assert in_order(ledger, attack.broken) == "x---xx"
    assert in_order(ledger, attack.untold.any(axis=0)) == "----xx"
    assert (attack.tries, attack.norm, attack.eps, attack.params) == (1, "linf", 0.1, {"steps": 10})
    assert attack.finished.all()


def test_clean_error_is_known_where_some_row_tells(made: Make) -> None:
    ledger = made({"m": {PGD: "re.w"}}, facts={"clean": {"origin": "dropped"}})
    found = only(ledger)
    assert in_order(ledger, found.recorded) == "x--x"
    assert in_order(ledger, found.wrong) == "---x"


def test_an_error_on_a_sample_that_was_wrong_before_is_clean_error(made: Make) -> None:
    ledger = made({"m": {PGD: "wrr", FGSM: "err"}})
    found = only(ledger)
    assert [in_order(ledger, attack.broken) for attack in found.attacks] == ["---", "---"]
    assert in_order(ledger, found.wrong) == "x--"


def test_where_success_is_a_changed_prediction_a_sample_that_was_wrong_clean_is_no_failure(made: Make) -> None:
    labels = [{"label": label} for label in (3, 4, 5)]
    rows = {"clean_prediction": 3, "prediction": 8, "criterion": "prediction"}
    found = only(made({"m": {PGD: "sss"}}, rows=rows, samples=labels))
    assert (found.criterion, int(found.wrong.sum()), int(found.attacks[0].broken.sum())) == ("prediction", 3, 0)


def test_a_single_try_is_the_first_and_several_tries_break_what_any_of_them_breaks(made: Make) -> None:
    ledger = made({"m": {PGD: ["srrr", "rsrr", "rsre"]}})
    (attack,) = only(ledger).attacks
    assert attack.tries == 3
    assert in_order(ledger, attack.failed[0]) == "x---"
    assert in_order(ledger, attack.broken) == "xx-x"


def test_rows_that_are_missing_are_told_from_rows_that_held(made: Make) -> None:
    ledger = made({"m": {PGD: "rr..", FGSM: "rrrr"}})
    found = only(ledger)
    by_name = {attack.arm: attack for attack in found.attacks}
    assert in_order(ledger, by_name[PGD].finished) == "xx--"
    assert by_name[FGSM].finished.all()


def test_the_list_is_the_study_s_sized_attacks_and_what_was_frozen(made: Make) -> None:
    ledger = made(
        {"m": {PGD: "rr", "nes,s=2@linf:0.1": "rr", "cw": "rr", "try@linf:0.1": "rr", "rain": "rr", "gone@l2:1": "rr"}},
        facts={
            "nes,s=2@linf:0.1": {"origin": "frozen"},
            "cw": {"kind": "attack", "norm": "l2"},
            "try@linf:0.1": {"origin": "search"},
            "rain": {"kind": "corruption"},
            "gone@l2:1": {"origin": "dropped"},
        },
    )
    assert [attack.arm for attack in only(ledger).attacks] == ["nes,s=2@linf:0.1", PGD]
    named = only(ledger, arms=["pgd*"])
    assert [attack.arm for attack in named.attacks] == ["nes,s=2@linf:0.1", PGD], "what was frozen always counts"
    with pytest.raises(RiskError, match=re.escape("no arm is called 'bim*'")):
        only(ledger, arms=["bim*"])


def test_what_cannot_be_certified_is_refused(made: Make) -> None:
    ledger = made({"m": {"cw": "rr"}}, facts={"cw": {"kind": "attack", "norm": "l2"}})
    with pytest.raises(RiskError, match="no attack of this run has both a norm and an eps"):
        only(ledger)


def test_two_criteria_are_not_mixed(made: Make) -> None:
    made({"m": {PGD: "rr"}})
    ledger = made({"m": {FGSM: "rr"}}, rows={"criterion": "prediction"})
    with pytest.raises(RiskError, match="judged by different criteria of success, label and prediction"):
        only(ledger)


def test_flags_of_cells_are_kept(made: Make) -> None:
    (attack,) = only(made({"m": {PGD: "rr"}}, flags={PGD: ["zero-gradients"]})).attacks
    assert attack.flags == ("zero-gradients",)


def test_the_digest_names_the_rows_and_nothing_else(tmp_path_factory: pytest.TempPathFactory, made: Make) -> None:
    from .conftest import write_rows

    def digest(text: str, **given: object) -> str:
        return only(write_rows(tmp_path_factory.mktemp("run"), {"m": {PGD: text}}, **given)).digest  # type: ignore[arg-type]

    assert digest("srr") == digest("srr") == digest("srr", flags={PGD: ["no-start"]})
    assert len({digest("srr"), digest("rsr"), digest("srj"), digest("srr", facts={PGD: {"params": "{}"}})}) == 4


def test_attacks_that_never_ran_on_samples_to_calibrate(made: Make) -> None:
    ledger = made({"m": {PGD: ".."}}, facts={"clean": {"origin": "dropped"}})
    with pytest.raises(RiskError, match="were not run on the samples to calibrate yet; run the same study again"):
        only(ledger)
    calibration = read_calibration(ledger)
    with pytest.raises(RiskError, match=r"not run on .* yet; resume the run: advrisk run STUDY --out \S+$"):
        read_rows(ledger, calibration, asked=True)


def freeze(ledger: Ledger, arms: list[str], searched: Sequence[str] = (), *, others: bool = False) -> Ledger:
    """The ledger with a question about one list, as a run writes it."""
    rows = ledger.query("SELECT sample, hash FROM samples").to_pylist()
    samples = [(row["sample"], f"{row['hash']}{' of another' if others else ''}") for row in rows]
    one = frozen_list(("m", "linf", 0.1), {arm: f"m/{arm}" for arm in arms}, searched, samples)
    asked = frozen_question([one], samples, {"alpha": 0.1, "zeta": 0.05, "method": "exact", "population": None})
    write_frozen(ledger, asked)
    return ledger.reopened()


def test_a_frozen_list_decides_which_attacks_count(made: Make) -> None:
    ledger = made(
        {"m": {PGD: "rr", FGSM: "rr", "nes,s=2@linf:0.1": "rr"}}, facts={"nes,s=2@linf:0.1": {"origin": "search"}}
    )
    ledger = freeze(ledger, [PGD, "nes,s=2@linf:0.1"], ["nes,s=2@linf:0.1"])
    assert [(one.arm, one.origin) for one in only(ledger).attacks] == [("nes,s=2@linf:0.1", "frozen"), (PGD, "study")]
    (caveat,) = caveats_of_samples(ledger, 0.05)
    assert f"met by attacks that no frozen question lists: {FGSM} against m." in caveat
    ledger = freeze(ledger, [PGD])
    assert [one.arm for one in only(ledger).attacks] == [PGD]
    assert "other attacks: m within linf 0.1" in caveats_of_samples(ledger, 0.05)[0]
    ledger = freeze(ledger, [PGD, FGSM, "gone@linf:0.1"])
    with pytest.raises(RiskError, match=r"gone@linf:0\.1 against m was to be certified and is gone"):
        only(ledger)


@pytest.mark.parametrize("changed", [{"recipe": "m, other weights"}, {"repeats": 2}])
def test_an_attack_that_is_another_than_the_frozen_one_is_refused(made: Make, changed: dict[str, object]) -> None:
    """The model was exchanged, or the attack is tried more often, and nothing was frozen since."""
    ledger = made({"m": {PGD: "rr"}}, facts={PGD: changed})
    ledger = freeze(ledger, [PGD])
    with pytest.raises(RiskError, match=r"pgd@linf:0\.1 against m is not what was frozen before the test"):
        only(ledger)


def test_a_list_that_was_frozen_for_other_samples_is_refused(made: Make) -> None:
    ledger = made({"m": {PGD: "rr"}})
    ledger = freeze(ledger, [PGD], others=True)
    with pytest.raises(RiskError, match="counts of different samples are not mixed"):
        only(ledger)


def test_what_stands_behind_a_refused_clean_input_masks_no_success(made: Make) -> None:
    rows = {"clean_prediction": 1}  # of class 0: a wrong class that nobody was told
    ledger = made({"m": {"clean": "jjr", PGD: "srr"}}, rows=rows, samples=[{"label": 0}] * 2 + [{"label": 1}])
    found = only(ledger)
    assert in_order(ledger, found.refused) == "xx-"
    assert in_order(ledger, found.wrong) == "---"
    assert in_order(ledger, found.attacks[0].broken) == "x--"


def test_no_row_of_another_attack_masks_a_success_where_success_is_a_wrong_class(made: Make) -> None:
    rows = {"clean_prediction": 1}
    ledger = made(
        {"m": {PGD: "sr"}}, rows=rows, facts={"clean": {"origin": "dropped"}}, samples=[{"label": 0}, {"label": 0}]
    )
    found = only(ledger)
    assert in_order(ledger, found.attacks[0].broken) == "x-"
    assert in_order(ledger, found.wrong) == "-x"


def test_what_is_refused_when_attacked_is_no_failure_and_is_told(made: Make) -> None:
    ledger = made({"m": {PGD: ["jrs", "rrj"]}})
    (attack,) = only(ledger).attacks
    assert in_order(ledger, attack.broken) == "--x"
    assert in_order(ledger, attack.refused.any(axis=0)) == "x-x"


@pytest.mark.parametrize(("criterion", "n_wrong"), [("target", 3), ("label", 1)])
def test_an_attacked_input_that_is_read_as_another_class_than_the_target_is_wrong_in_the_end(
    made: Make, criterion: str, n_wrong: int
) -> None:
    """All are of class 0 and answered with 5; where success is any wrong class, `resisted` has another reason."""
    rows = {"criterion": criterion, "target": 3, "prediction": 5, "clean_prediction": 0}
    samples = [{"label": 0}] * 3
    ledger = made({"m": {PGD: "rsr"}}, rows=rows, facts={"clean": {"origin": "dropped"}}, samples=samples)
    (attack,) = only(ledger).attacks
    assert in_order(ledger, attack.broken) == "-x-"
    (one,) = assess_certificates(ledger).lists
    assert one.certificate is not None
    assert one.certificate.wrong is not None
    assert (one.certificate.union.count.failures, one.certificate.wrong.count.failures) == (1, n_wrong)


# Models that answer at random


def drawn_ledger(folder: Path, draws: Mapping[str, Sequence[tuple[str, list[int] | None]]], **more: Any) -> Ledger:
    """A random model; arm -> outcome and draws of each sample. Every label is 0."""
    sized = {"kind": "attack", "norm": "linf", "eps": 0.1}
    arms = {name: {"kind": "clean"} if name == "clean" else sized for name in draws}
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in ("outcomes", "arms", "cells", "samples")}
    tables["models"] = [{"model": "net", "digest": "d", "n_classes": 3, "random": True}]
    for arm, rows in draws.items():
        key = {"model": "net", "arm": arm}
        tables["arms"].append(key | {"recipe": arm, "repeats": 1, "origin": "study", "params": "{}"} | arms[arm])
        tables["cells"].append(key | {"cell": arm, "recipe": arm, "repeat": 0, "shard": "one", "flags": []})
        tables["outcomes"] += [
            key | arms[arm] | {"cell": arm, "sample": f"s{n:04d}", "repeat": 0, "outcome": outcome, "draws": said}
            | {"criterion": "label", "clean_prediction": 0} | more
            for n, (outcome, said) in enumerate(rows)
        ]  # fmt: skip
    tables["samples"] = [
        {"sample": f"s{n:04d}", "hash": str(n), "split": "calibrate", "weight": 1.0, "label": 0, "shard": "one"}
        for n in range(len(draws["clean"]))
    ]
    columns = {name: dict.fromkeys(key for row in rows for key in row) for name, rows in tables.items()}
    Ledger.open(folder, create=True).append(
        {
            name: table_from(name, {column: [row.get(column) for row in rows] for column in columns[name]})
            for name, rows in tables.items()
        }
    )
    return Ledger.open(folder)


def test_one_draw_decides_of_a_sample(tmp_path: Path) -> None:
    right, wrong = [0] * 11, [1] * 11
    clean = [right, right, [1, *right[1:]], right, right, [-1, *right[1:]], [0, 2, *right[2:]]]
    attacked: list[tuple[str, list[int] | None]] = [
        ("success", wrong),  # fails
        ("success", [0, *wrong[1:]]),  # most draws are wrong; this query is not
        ("success", wrong),  # its clean query is wrong, so it does not fail
        ("resisted", [2, *right[1:]]),  # fails, although it mostly resists
        ("already_wrong", None),  # nobody attacked it
        ("success", wrong),  # refused when clean
        ("resisted", None),  # left at the clean input, whose second draw is wrong
    ]
    ledger = drawn_ledger(tmp_path, {"clean": [("resisted", said) for said in clean], "pgd": attacked})
    calibration = read_calibration(ledger, population="as-sampled")
    (rows,) = read_rows(ledger, calibration)
    order = np.argsort(calibration.samples)
    assert rows.attacks[0].broken[order].tolist() == [True, False, False, True, True, True, True]
    assert rows.wrong[order].tolist() == [False, False, True, False, False, False, False]
    assert rows.refused[order].tolist() == [False, False, False, False, False, True, False]
    assert rows.recorded.all()


def test_the_count_is_that_of_single_queries(tmp_path: Path) -> None:
    """Every sample errs in 30 % of queries under attack, and never in most of them: a majority would see nothing."""
    rng = np.random.default_rng(0)
    said = np.where(rng.random((1500, 11)) < 0.3, 1, 0)
    mostly = ["success" if one else "resisted" for one in said.mean(1) > 0.5]
    rows = {"clean": [("resisted", [0] * 11)] * 1500, "pgd": list(zip(mostly, said.tolist(), strict=True))}
    ledger = drawn_ledger(tmp_path, rows)
    found = assess_certificates(ledger, alpha=0.2, zeta=0.05, method="exact", population="as-sampled")
    (one,) = found.models[0].lists
    assert mostly.count("success") < 200, "a majority would certify 20 %"
    assert one.attacks[0].failures == int(said[:, 0].sum())
    assert one.attacks[0].failures == pytest.approx(450, abs=60)
    assert not one.certified


def test_without_draws_a_random_model_has_no_certificate(tmp_path: Path) -> None:
    ledger = drawn_ledger(tmp_path, {"clean": [("resisted", None)] * 5, "pgd": [("resisted", None)] * 5})
    with pytest.raises(RiskError, match=r"net answers at random, .*run the same study again"):
        read_rows(ledger, read_calibration(ledger, population="as-sampled"))

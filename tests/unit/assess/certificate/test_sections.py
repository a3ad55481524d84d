"""What is shown of certificates: verdicts, figures that say what the numbers say, and what it would take."""

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from advrisk.assess.certificate.assessment import assess_certificates
from advrisk.assess.certificate.figures import p_curves, risk_bars
from advrisk.assess.certificate.records import CertificateAssessment
from advrisk.assess.certificate.sections import certificate_headlines, certificate_words, quantities, sections
from advrisk.assess.certificate.statements import failing
from advrisk.assess.certificate.words import rate
from advrisk.core.numbers import size_text
from advrisk.core.sections import Cell, Figure, Group, Table, Text, Value, every, headline_of, summary_of, without_twins
from advrisk.render.terminal import print_sections
from tests.golden.make_certificate_v4 import MODEL, golden_ledger

from .conftest import write_rows

FEW, MANY = "s" * 2 + "r" * 98, "s" * 30 + "r" * 70
HOSTILE = "m\x1b[31m <b>x</b> " + "n" * 150


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> CertificateAssessment:
    return assess_certificates(golden_ledger(tmp_path_factory.mktemp("run")))


def assessed(folder: Path, rows: dict[str, dict[str, str]], **more: object) -> CertificateAssessment:
    ledger = write_rows(folder, rows, samples=[{"label": n % 7 % 3} for n in range(100)])
    return assess_certificates(ledger, **more)  # type: ignore[arg-type]


def terminal(found: CertificateAssessment, width: int, *, details: bool = False) -> str:
    console = Console(file=io.StringIO(), width=width)
    print_sections(sections(found), console, details=details)
    return console.file.getvalue()  # type: ignore[attr-defined]


def flat(text: str) -> str:
    return " ".join(text.split())


def tables(found: CertificateAssessment) -> dict[str, Table]:
    return {one.title: one for one in every(tuple(sections(found))) if isinstance(one, Table)}


def bare(value: Value) -> object:
    return value.value if isinstance(value, Cell) else value


def test_curves_hold_every_list_and_what_it_is_held_against(found: CertificateAssessment) -> None:
    figure = p_curves(found, "linf")
    lines = {line["name"]: line for line in figure["data"]}
    plain = found.of(MODEL)
    levels = {line["y"][0] for line in figure["data"] if line["mode"] == "lines"}
    assert levels == {one.level for one in found.lists if one.norm == "linf"}
    assert {"hardened", "plain &lt;script&gt;"} <= set(lines)
    assert lines["plain &lt;script&gt;"]["y"] == [plain.of("linf", eps).p for eps in (0.02, 0.05)]
    assert [symbol.endswith("-open") for symbol in lines["plain &lt;script&gt;"]["marker"]["symbol"]] == [False, True]


def test_bars_end_at_what_is_certified(found: CertificateAssessment) -> None:
    clean, risk, wrong = risk_bars(found, "linf", 0.02)["data"]
    own = found.of(MODEL).of("linf", 0.02).certificate
    assert own is not None
    assert own.wrong is not None
    place = clean["y"].index(MODEL)
    assert clean["x"][place] == 9 / 80
    assert risk["x"][place] + risk["error_x"]["array"][place] == pytest.approx(own.certified_risk)
    assert wrong["x"][place] + wrong["error_x"]["array"][place] == pytest.approx(own.wrong.certified_risk)


def test_there_are_curves_for_each_norm_and_bars_for_each_size(found: CertificateAssessment) -> None:
    shown = tuple(sections(found, ("hardened", MODEL)))
    assert [one.title for one in every(shown) if isinstance(one, Figure)] == [
        *("p against eps within l2", "Certified risk within l2 1"),
        *("p against eps within linf", "Certified risk within linf 0.02", "Certified risk within linf 0.05"),
    ]
    assert without_twins(shown) == tuple(shown)


def test_a_model_has_the_colour_that_it_has_in_the_run(found: CertificateAssessment) -> None:
    def colour(models: tuple[str, ...]) -> str:
        shown = every(tuple(sections(found, models)))
        curves = next(one for one in shown if isinstance(one, Figure) and one.title == "p against eps within linf")
        return next(line["line"]["color"] for line in curves.spec["data"] if line["name"] == "hardened")

    assert colour(("hardened", MODEL)) != colour(("another", "hardened", MODEL))


def at_most(found: CertificateAssessment, model: str, norm: str, eps: float) -> str:
    certificate = found.of(model).of(norm, eps).certificate
    assert certificate is not None
    assert certificate.wrong is not None
    return f"at most {rate(certificate.wrong.certified_risk)} within {norm} {size_text(eps)}"


def test_the_headline_says_who_is_certified(found: CertificateAssessment) -> None:
    clean = {one.model: rate(one.clean_error.value) for one in found.models}
    hardened = f"{at_most(found, 'hardened', 'linf', 0.02)}; clean error {clean['hardened']}"
    plain = f"{at_most(found, MODEL, 'l2', 1.0)}, {at_most(found, MODEL, 'linf', 0.02)}"
    plain += f"; not {failing(found.of(MODEL).lists)}"
    assert headline_of(tuple(sections(found))) == (
        f"At alpha = {100 * found.alpha:g} % and zeta = {100 * found.zeta:g} %, "
        f"certified: hardened (wrong under these attacks: {hardened}); "
        f"certified in part: {MODEL} (wrong under these attacks: {plain}; clean error {clean[MODEL]}). "
        f"Each bound is wrong at most {100 * found.zeta:g} % of the time, by itself; clean errors are on the "
        "calibration samples (80)."
    )
    alone = replace(found, models=(found.of(MODEL),))
    assert [headline_of(tuple(sections(alone)))] == certificate_headlines(alone)


def test_each_model_has_its_largest_size_and_its_clean_error(found: CertificateAssessment) -> None:
    table = tables(found)["What is certified of each model"]
    rows = {row[0]: [bare(value) for value in row[1:]] for row in table.rows}
    plain = found.of(MODEL)
    assert [column.name for column in table.columns[2:4]] == [
        *("largest certified eps, l2", "largest certified eps, linf")
    ]
    assert rows[MODEL] == ["certified in part", 1.0, 0.02, plain.clean_error]
    assert rows["hardened"] == ["certified", None, 0.02, found.of("hardened").clean_error], "not attacked within l2"
    assert "clean inputs refused" not in [column.name for column in table.columns]
    refusing = replace(found, models=(replace(plain, n_refused=3),))
    table = tables(refusing)["What is certified of each model"]
    assert (table.columns[-1].name, table.rows[0][-1]) == ("clean inputs refused", 3)


def test_each_list_has_its_counts_and_what_they_certify(found: CertificateAssessment) -> None:
    table = tables(found)["Each list of attacks, within one norm and eps"]
    assert len(table.rows) == len(found.lists)
    for row, one in zip(table.rows, found.lists, strict=True):
        assert one.certificate is not None
        assert one.certificate.wrong is not None
        tested = one.certificate.wrong, one.certificate.worst, one.certificate.union
        wrong, worst, union = (test.count.failures for test in tested)
        assert row[:2] == (one.model, f"{one.norm} {size_text(one.eps)}")
        assert [bare(value) for value in row[2:]] == [
            *(one.verdict, wrong, worst, one.p, one.level, union),
        ]
        assert [value.beside for value in row[3:] if isinstance(value, Cell)] == [
            (f"[≤ {100 * test.certified_risk:.3g} %]",) for test in tested
        ]


def test_every_attack_is_there_for_those_who_look_closer(found: CertificateAssessment) -> None:
    folded = {one.title: one for one in sections(found) if isinstance(one, Group) and one.folded}
    assert set(folded) == {f"{MODEL}: every attack", "hardened: every attack"}
    held = [one for one in folded[f"{MODEL}: every attack"].sections if isinstance(one, Table)]
    assert len(held) == len(found.of(MODEL).lists)
    for table, one in zip(held, found.of(MODEL).lists, strict=True):
        assert [bare(row[0]) for row in table.rows] == [
            *(attack.arm for attack in one.attacks),
            *("any attack", "incorrect, clean or attacked"),
        ]
        assert [bare(row[4]) for row in table.rows[: len(one.attacks)]] == [attack.failures for attack in one.attacks]
    assert "every attack" not in terminal(found, 120)
    assert "first try broke" in flat(terminal(found, 160, details=True))


def test_flags_and_errors_of_an_attack_stand_below_it(found: CertificateAssessment) -> None:
    one = found.of(MODEL).lists[0]
    attack = replace(one.attacks[0], flags=("still-gaining",), untold=2, origin="frozen")
    changed = replace(found.of(MODEL), lists=(replace(one, attacks=(attack,)),))
    shown = flat(terminal(replace(found, models=(changed,)), 160, details=True))
    for text in ("still-gaining", "errors: 2", "a search"):
        assert text in shown


def test_the_terminal_says_what_p_is_held_against_and_why_a_small_p_is_not_enough(tmp_path: Path) -> None:
    rows = {"a": {"pgd@linf:0.1": MANY, "pgd@linf:0.2": FEW}, "b": {"pgd@linf:0.1": MANY}}
    said = flat(terminal(assessed(tmp_path, rows), 160))
    assert "held against" in said
    assert "0.0250" in said
    assert "So linf 0.2 cannot be certified, whatever p is there: no smaller eps is skipped." in said


@pytest.mark.parametrize("details", [False, True])
@pytest.mark.parametrize("width", [50, 60, 100])
def test_everything_fits_the_terminal(tmp_path: Path, width: int, details: bool) -> None:
    found = assessed(tmp_path, {"a": {"pgd@linf:0.1": FEW, "pgd@linf:0.2": MANY}, "b": {"pgd@linf:0.1": MANY}})
    lines = terminal(found, width, details=details).splitlines()
    assert max(map(len, lines)) <= width
    shown = flat(" ".join(lines))
    for text in ("At alpha = 10 %", "0.0019", "What it would take", "[≤", "none"):
        assert text in shown, text


def test_a_name_from_outside_steers_nothing(found: CertificateAssessment) -> None:
    plain = found.of(MODEL)
    renamed = replace(plain, model=HOSTILE, lists=tuple(replace(one, model=HOSTILE) for one in plain.lists))
    said = terminal(replace(found, models=(renamed,)), 60, details=True)
    assert "\x1b" not in said
    assert "<b>x</b>" in said


def test_a_run_that_is_not_finished_shows_no_counts(found: CertificateAssessment) -> None:
    one = replace(found.of(MODEL).lists[0], certificate=None, certified=False)
    pending = replace(found, models=(replace(found.of(MODEL), lists=(one,)),))
    table = tables(pending)["Each list of attacks, within one norm and eps"]
    ((*_, verdict, wrong, worst, p, _, union),) = table.rows
    assert verdict == Cell("not finished", (f"{one.look.n} of {one.n_total} samples",))
    assert (p, worst, union, wrong) == (None, None, None, None)
    (needed,) = [held for held in sections(pending) if isinstance(held, Text) and held.title == "What it would take"]
    assert f"not finished: {one.look.n} of {one.n_total} samples in the order of looks." in needed.sentences[0]
    (attacks,) = [held for title, held in tables(pending).items() if title.startswith("Attacks on")]
    assert all(row[3:] == (None, None, None, None) for row in attacks.rows)
    assert not list(quantities(pending))[1:], "the clean error alone"


def test_the_summary_says_what_it_rests_on_and_what_is_open(tmp_path: Path) -> None:
    names = [f"m{place}" for place in range(6)]
    found = assessed(tmp_path, {name: {"pgd@linf:0.1": MANY} for name in names})
    shown = tuple(sections(found))
    (sure,) = summary_of(shown, "sure")
    assert sure.startswith(
        "Certificates rest on 100 samples that were kept apart; all claims together are wrong at most"
    )
    undecided = summary_of(shown, "undecided")
    assert len(undecided) == 5
    assert undecided[0].startswith("m0 within linf 0.1 is not certified. pgd@linf:0.1 broke 30 of 100 samples.")
    assert undecided[-1] == "2 more lists of attacks are not certified."


def test_the_summary_leaves_no_caveat_out(found: CertificateAssessment) -> None:
    caveats = tuple(f"Caveat {number}." for number in range(6))
    undecided = summary_of(tuple(sections(weakened(found, caveats))), "undecided")
    assert list(undecided[:6]) == [f"Certificates have a caveat: {text}" for text in caveats]


def weakened(found: CertificateAssessment, caveats: tuple[str, ...]) -> CertificateAssessment:
    return replace(found, models=tuple(replace(one, caveats=caveats) for one in found.models))


def test_words_say_on_how_many_samples_and_by_which_method(found: CertificateAssessment) -> None:
    assert certificate_words(found)[0] == "Tested on 80 samples that were kept apart; method: exact."
    assert len(certificate_headlines(found)) == 2


def test_quantities_are_the_clean_error_and_what_attacks_broke(found: CertificateAssessment) -> None:
    numbers = {one.name: one.estimate for one in quantities(found)}
    own = found.of(MODEL).of("linf", 0.02).certificate
    assert own is not None
    assert numbers[f"calibration_error.{MODEL}"] == found.of(MODEL).clean_error
    assert numbers[f"calibration_broken_by_worst.{MODEL}.linf.0.02"] == own.worst.risk
    assert numbers[f"calibration_broken.{MODEL}.linf.0.02"] == own.union.risk
    assert own.wrong is not None
    assert numbers[f"calibration_wrong.{MODEL}.linf.0.02"] == own.wrong.risk
    assert numbers[f"certified_wrong.{MODEL}.linf.0.02"].value == own.wrong.certified_risk  # as in a gate
    assert numbers[f"certified_broken.{MODEL}.linf.0.02"].value == own.union.certified_risk
    assert len(numbers) == len(found.models) + 5 * len(found.lists)

"""The first screen: one tile for each model, and three sentences."""

from dataclasses import replace

from advrisk.assess.gate.records import GateResult, RequirementResult
from advrisk.core.sections import Badge, Column, Tile, Unanswered
from advrisk.report.executive import DECIDED, LABELS, ExecutiveSummary
from advrisk.report.front import MAX_TILES, first_screen, merged_tiles, short_answer
from tests.damages import BETTER, assessed
from tests.findings import findings_of

SUMMARY = ExecutiveSummary(
    ship=("adv it is.",),
    sure=("Quite.", "Very."),
    drivers=("Noise.",),
    undecided=(DECIDED,),
    untested=("Snow.", "Rain."),
)
RISK = Column("risk", "risk")


def required(requirement: str, verdict: str) -> RequirementResult:
    return RequirementResult(requirement, verdict, "study", None, 0.5, "so it is")  # type: ignore[arg-type]


def test_tiles_of_several_questions_become_one_for_each_model() -> None:
    first = (Tile("a", (Badge("best"),), ((RISK, 0.1),)), Tile("b"))
    other = (Tile("b", (Badge("slow"),), ((RISK, 0.2),)), Tile("c"))
    merged = merged_tiles([first, other], None)
    assert [tile.model for tile in merged] == ["a", "b", "c"]
    assert merged[1] == Tile("b", (Badge("slow"),), ((RISK, 0.2),))


def test_a_tile_says_first_whether_its_model_meets_what_is_required() -> None:
    gate = GateResult("g", (required("clean_accuracy.a >= 50 %", "pass"), required("clean_accuracy.b >= 50 %", "fail")))
    badges = [[badge.text for badge in tile.badges] for tile in merged_tiles([[Tile("a"), Tile("b")]], gate)]
    assert badges == [["meets every requirement"], ["fails a requirement"]]
    unchecked = merged_tiles([[Tile("a", (Badge("best"),))]], Unanswered("no answer"))
    assert [badge.text for badge in unchecked[0].badges] == ["requirements not checked", "best"]


def test_three_sentences_say_how_sure_what_drives_or_is_open_and_what_was_not_tested() -> None:
    found = findings_of(damage=assessed(**BETTER), models=("adv", "std"))
    screen = first_screen(found, SUMMARY)
    assert screen.sentences == [
        (LABELS["sure"], "Quite."),
        (LABELS["drivers"], "Noise."),
        (LABELS["untested"], "Snow."),
    ]
    undecided = first_screen(found, replace(SUMMARY, undecided=("adv or std.",)))
    assert undecided.sentences[1] == (LABELS["undecided"], "adv or std.")
    assert [tile["model"] for tile in screen.tiles] == ["adv", "std"]
    assert len({tile["colour"] for tile in screen.tiles}) == 2


def test_a_long_answer_is_split_after_its_first_clause() -> None:
    assert short_answer("a is best; it is 1 % off.") == ("a is best; it is 1 % off.", "")
    long = f"a is best; {'b ' * 100}fails."
    assert short_answer(long) == ("a is best.", f"B {'b ' * 99}fails.")
    assert short_answer(long.replace(";", ",")) == (long.replace(";", ","), "")


def test_a_run_of_many_models_shows_some_and_says_how_many_more_there_are() -> None:
    models = [f"m{n:02}" for n in range(MAX_TILES + 3)]
    found = findings_of(damage=assessed(dict.fromkeys(models, 30), dict.fromkeys(models, 8)), models=models)
    screen = first_screen(found, SUMMARY)
    assert (len(screen.tiles), screen.n_more) == (MAX_TILES, 3)

"""The time that the cells to come will take."""

from types import SimpleNamespace
from typing import Any

import pytest

from advrisk.plan import Cell
from advrisk.run import forecast
from advrisk.run.forecast import Forecast

SAMPLES = 50


def cell(name: str, model: str, arm: str) -> Cell:
    made: Any = SimpleNamespace(
        id=name,
        model=model,
        arm=SimpleNamespace(id=arm, shown=arm),
        shard=SimpleNamespace(samples=tuple(range(SAMPLES))),
    )
    return made  # type: ignore[no-any-return]


PASSES = {"clean": 1, "pgd": 40, "longer": 81, "square": 5000}


def work(one: Cell) -> float:
    return PASSES[one.arm.id] * SAMPLES


def expecting(*arms: str, n: int = 10, models: tuple[str, ...] = ("net",)) -> Forecast:
    made = Forecast(work)
    made.expect((cell("example", model, arm), n * SAMPLES) for model in models for arm in arms)
    return made


def done(made: Forecast, arm: str, wall_s: float, *, n: int = 1, model: str = "net") -> None:
    for number in range(n):
        made.begin(cell(f"{model}-{arm}-{number}", model, arm))
        assert made.end(f"{model}-{arm}-{number}", wall_s) == f"{arm} on {model}"


def test_fast_cells_say_nothing_about_slow_ones() -> None:
    """Ten clean cells of 10 ms come first, and ten attacks of a minute after them: a mean would be off by 6,000 x."""
    made = expecting("clean", "square")
    done(made, "clean", 0.01, n=10)
    assert made.seconds_left(1) is None
    done(made, "square", 60.0)
    assert made.seconds_left(1) == pytest.approx(9 * 60)
    assert made.seconds_left(2) == pytest.approx(9 * 30)


def test_the_first_slow_cell_speaks_while_it_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(now=100.0)
    monkeypatch.setattr(forecast.time, "monotonic", lambda: clock.now)
    made = expecting("clean", "square")
    done(made, "clean", 0.01, n=10)
    made.begin(cell("slow", "net", "square"))
    clock.now += 30
    made.share("slow", 0.5)  # first heard of after half a second's work
    clock.now += 10
    made.share("slow", 10.0)
    assert made.n_partial == 10
    assert made.seconds_left(1) == pytest.approx((10 * SAMPLES - 10) * 10.5 / 10)


def test_a_model_that_is_slow_is_known_by_its_own_cells() -> None:
    made = expecting("pgd", models=("small", "large"))
    done(made, "pgd", 1.0, model="small")
    done(made, "pgd", 20.0, model="large")
    assert made.seconds_left(1) == pytest.approx(9 * 1.0 + 9 * 20.0)


def test_an_attack_that_has_not_run_is_judged_by_one_of_like_work() -> None:
    made = expecting("pgd")
    made.expect([(cell("example", "net", "longer"), SAMPLES)])
    done(made, "pgd", 1.0, n=10)
    assert made.seconds_left(1) == pytest.approx(82 / 41)


def test_cells_that_are_no_longer_expected_take_no_time() -> None:
    made = expecting("pgd")
    done(made, "pgd", 1.0, n=4)
    made.stop()
    assert made.n_samples == 4 * SAMPLES
    assert made.seconds_left(1) == 0


def test_what_was_never_handed_out_is_ignored() -> None:
    made = expecting("pgd")
    made.share("elsewhere", 3.0)
    assert made.end("elsewhere", 1.0) == ""
    assert made.n_partial == 0

# ruff: noqa: T201
import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from functools import partial
from pathlib import Path

import pytest

from advrisk.core.containment import MOST_CHARACTERS, MOST_LINES, Containment, Interrupted, exits_as_errors
from advrisk.core.errors import DataError, ModelError


@pytest.fixture
def worker() -> Iterator[None]:
    """Ctrl-C is ignored, as in worker processes."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("code", [0, 4, None, "bye"])
def test_an_exit_becomes_an_error_that_names_owner_code_and_line(code: object) -> None:
    shown = "" if code is None else repr(code)
    with pytest.raises(ModelError) as raised, exits_as_errors("mine"):
        sys.exit(code)  # type: ignore[arg-type]
    assert str(raised.value).startswith(f"code of mine called sys.exit({shown}) (test_containment.py, line ")


def test_the_error_is_of_the_kind_that_was_asked_for() -> None:
    with pytest.raises(DataError), exits_as_errors("the data source mine", DataError):
        raise SystemExit


def test_other_errors_pass() -> None:
    with pytest.raises(ZeroDivisionError), exits_as_errors("mine"):
        raise ZeroDivisionError


@pytest.mark.usefixtures("worker")
def test_an_interrupt_that_nobody_asked_for_is_an_error() -> None:
    with (
        pytest.raises(ModelError, match=r"code of mine raised KeyboardInterrupt \(test_containment"),
        exits_as_errors("mine"),
    ):
        raise KeyboardInterrupt


@pytest.mark.usefixtures("worker")
def test_one_of_our_own_signal_handlers_passes() -> None:
    with pytest.raises(Interrupted), exits_as_errors("mine"):
        raise Interrupted


def test_one_that_may_be_ctrl_c_passes() -> None:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt), exits_as_errors("mine"):
            os.kill(os.getpid(), signal.SIGINT)
    finally:
        signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("bound", [False, True])
@pytest.mark.usefixtures("worker")
def test_what_a_signal_handler_of_the_program_raises_passes(kind: type[BaseException], *, bound: bool) -> None:
    def ended(_number: int, _frame: object, what: type[BaseException] = kind) -> None:
        raise what

    before = signal.signal(signal.SIGTERM, partial(ended, what=kind) if bound else ended)
    try:
        with pytest.raises(kind), exits_as_errors("mine"):
            os.kill(os.getpid(), signal.SIGTERM)
        with pytest.raises(ModelError), exits_as_errors("mine"):
            raise kind
    finally:
        signal.signal(signal.SIGTERM, before)


def test_the_working_folder_is_as_before_however_the_code_ends(tmp_path: Path) -> None:
    before = Path.cwd()
    with Containment().around("mine"):
        os.chdir(tmp_path)
    assert Path.cwd() == before
    with pytest.raises(ModelError), Containment().around("mine"):
        sys.exit(os.chdir(tmp_path))  # type: ignore[func-returns-value]
    assert Path.cwd() == before


def test_prints_go_to_standard_error_and_end_after_so_many_lines() -> None:
    contained = Containment()
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        for _ in range(2):  # what is printed later counts, too
            with contained.around("mine"):
                for number in range(MOST_LINES):
                    print("line", number, file=sys.stderr if number % 2 else sys.stdout)
        with contained.around("yours"):
            print("still here")
    expected = [
        *(f"line {number}" for number in range(MOST_LINES)),
        "… further output of mine suppressed",
        "still here",
    ]
    assert err.getvalue().splitlines() == expected
    assert out.getvalue() == ""


def test_one_long_line_is_cut() -> None:
    err = io.StringIO()
    with redirect_stderr(err), Containment().around("mine"):
        print("x" * 10 * MOST_CHARACTERS, end="")
        print("more")
    assert err.getvalue() == "x" * MOST_CHARACTERS + "\n… further output of mine suppressed\n"


def test_contained_code_inside_contained_code_prints_once() -> None:
    err = io.StringIO()
    contained = Containment()
    with redirect_stderr(err), contained.around("outer"), contained.around("inner"):
        for number in range(2 * MOST_LINES):
            print(number)
    assert err.getvalue().splitlines()[-1] == "… further output of inner suppressed"
    assert len(err.getvalue().splitlines()) == MOST_LINES + 1


def test_the_streams_are_those_of_before_afterwards() -> None:
    before = sys.stdout, sys.stderr
    with pytest.raises(ModelError), Containment().around("mine"):
        sys.exit()
    assert (sys.stdout, sys.stderr) == before


def test_nothing_is_printed_where_there_is_no_standard_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with Containment().around("mine"):
        print("nowhere")

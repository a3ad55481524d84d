"""What is said when somebody interrupts a run."""

import os
import signal
from collections.abc import Iterator

import pytest

from advrisk.cli.progress import interrupts_end_the_run
from advrisk.core.containment import exits_as_errors
from advrisk.core.errors import ModelError


def interrupted(*notes: str) -> None:
    with interrupts_end_the_run("s3://bucket/run"):
        ended = KeyboardInterrupt()
        for note in notes:
            ended.add_note(note)
        raise ended


def test_who_interrupts_is_told_what_is_kept(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert capsys.readouterr().err == (
        "\nWhat was finished is kept in s3://bucket/run; run the same command again to go on.\n"
    )


def test_and_what_is_not(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(KeyboardInterrupt):
        interrupted("3 finished cells could not be stored there")
    told = capsys.readouterr().err
    assert "Not all that was finished is kept in s3://bucket/run: 3 finished cells could not be stored there;" in told


@pytest.fixture
def usual_handler() -> Iterator[None]:
    """Python's own handler of Ctrl-C, whatever runs the tests."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler, "it is put back"
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("usual_handler")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_a_run_also_while_code_of_a_model_runs(number: signal.Signals) -> None:
    with pytest.raises(KeyboardInterrupt), interrupts_end_the_run("run"), exits_as_errors("mine"):
        os.kill(os.getpid(), number)


@pytest.mark.usefixtures("usual_handler")
def test_a_keyboard_interrupt_that_code_of_a_model_raises_does_not() -> None:
    complaint = "code of mine raised KeyboardInterrupt"
    with pytest.raises(ModelError, match=complaint), interrupts_end_the_run("run"), exits_as_errors("mine"):
        raise KeyboardInterrupt


@pytest.mark.usefixtures("usual_handler")
def test_in_the_background_ctrl_c_stays_ignored() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with interrupts_end_the_run("run"):
        os.kill(os.getpid(), signal.SIGINT)
    assert signal.signal(signal.SIGINT, signal.default_int_handler) == signal.SIG_IGN

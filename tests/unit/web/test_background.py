"""Work beside the requests."""

import threading
import time

import pytest

from advrisk.web.background import Background


def test_after_long_work_it_rests_as_long_and_ends_at_once_all_the_same() -> None:
    began: list[float] = []
    twice = threading.Event()

    def work() -> None:
        began.append(time.monotonic())
        time.sleep(0.3)
        if len(began) == 2:
            twice.set()

    task = Background(work, "test")
    task.start()
    task.notice()
    while not began:
        time.sleep(0.01)
    task.notice()
    assert twice.wait(10)
    assert began[1] - began[0] >= 0.6
    before = time.monotonic()
    task.stop()
    assert time.monotonic() - before < 0.25, "a rest is no work to wait for"


def test_work_that_is_interrupted_ends_at_once_and_is_no_failure(capsys: pytest.CaptureFixture[str]) -> None:
    began, interrupted = threading.Event(), threading.Event()

    def work() -> None:
        began.set()
        assert interrupted.wait(10)
        raise EOFError

    task = Background(work, "test", interrupt=interrupted.set)
    task.start()
    task.notice()
    assert began.wait(10)
    task.stop()
    assert not task._thread.is_alive()
    assert capsys.readouterr().err == ""

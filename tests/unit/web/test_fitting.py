"""Processes that fit: what they send, and how they end."""

import errno
import os
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from advrisk.core.children import start_child
from advrisk.core.errors import RunError
from advrisk.web import fitting
from advrisk.web.fitter import NICENESS, result_or_reason
from advrisk.web.fitting import FitProcess
from advrisk.web.labelling import Labelling


@pytest.fixture
def chooser(labelling: Labelling) -> Iterator[FitProcess]:
    process = FitProcess("chooser", labelling.pool, labelling.store.url, labelling.settings)
    yield process
    process.stop()


def test_a_process_of_low_priority_fits_and_is_replaced_once_it_has_died(
    labelling: Labelling, chooser: FitProcess
) -> None:
    first = chooser.fit()
    assert first.n_answers == 0
    assert first.sizes.tolist() == labelling.current_chooser().sizes.tolist()
    child, _ = chooser._running()
    priority = min(os.getpriority(os.PRIO_PROCESS, 0) + NICENESS, 19)
    assert os.getpriority(os.PRIO_PROCESS, child.pid) == priority
    child.kill()
    with pytest.raises(RunError, match=r"died.*killed"):
        chooser.fit()
    assert chooser.fit().revision == first.revision
    again, _ = chooser._running()
    assert again.pid != child.pid
    chooser.stop()
    assert again.poll() == -signal.SIGKILL


def test_stopping_ends_a_fit_that_another_thread_waits_for(chooser: FitProcess) -> None:
    ended: list[Any] = []

    def fit() -> None:
        try:
            ended.append(chooser.fit())
        except RunError as error:
            ended.append(error)

    child, _ = chooser._running()
    child.send_signal(signal.SIGSTOP)
    thread = threading.Thread(target=fit, daemon=True)
    thread.start()
    chooser.stop()
    thread.join(10)
    assert [type(one) for one in ended] == [RunError]
    with pytest.raises(RunError, match="the server ends"):
        chooser.fit()


def test_the_process_ends_when_the_server_does(labelling: Labelling) -> None:
    child, connection = start_child("advrisk.web.fitter", os.environ)
    connection.send(("chooser", labelling.pool, labelling.store.url, labelling.settings))
    connection.close()  # as the system does when the server is killed
    assert child.wait(60) in (0, -signal.SIGKILL)


def test_a_process_that_cannot_be_started_is_the_reason(chooser: FitProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuses(*_: Any) -> Any:
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(fitting, "start_child", refuses)
    with pytest.raises(RunError, match="no process could be started to fit the curve: Resource temporarily"):
        chooser.fit()


def test_what_goes_wrong_comes_back_as_its_reason(labelling: Labelling) -> None:
    missing = f"sqlite:///{labelling.pool.folder}/none.sqlite"
    assert "none.sqlite" in str(result_or_reason("summary", labelling.pool, missing, labelling.settings))
    bug = result_or_reason("summary", None, labelling.store.url, labelling.settings)  # type: ignore[arg-type]
    assert isinstance(bug, RunError)
    assert str(bug).startswith("AttributeError: ")

import io
import subprocess
import sys

import pytest

from advrisk.run.executors.local import error_stream


@pytest.mark.parametrize("stream", [None, io.StringIO()])
def test_workers_print_nowhere_if_standard_error_is_no_file(monkeypatch, stream):
    monkeypatch.setattr(sys, "stderr", stream)
    assert error_stream() == subprocess.DEVNULL


def test_workers_print_to_standard_error(monkeypatch, tmp_path):
    with (tmp_path / "log").open("w") as file:
        monkeypatch.setattr(sys, "stderr", file)
        assert error_stream() == file.fileno()

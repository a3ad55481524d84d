"""What the server says of itself, and how often."""

import logging

from advrisk.web.notes import Notes, logged


def test_a_kind_is_written_at_once_then_counted() -> None:
    written: list[str] = []
    now = [0.0]
    notes = Notes(write=written.append, every_s=60, clock=lambda: now[0])
    for n in range(500):
        notes.add(f"refused {n}", kind="refused")
    notes.add("another")
    assert written == ["refused 0", "another"]
    now[0] = 60.0
    notes.add("refused 500", kind="refused")
    assert written[2:] == ["refused 500 (500 times since this was last said)"]
    notes.add("refused 501", kind="refused")
    notes.finish()
    notes.finish()
    assert written[3:] == ["refused 501"]


def test_records_of_libraries_are_noted_with_their_traceback_once() -> None:
    written: list[str] = []
    logger = logging.getLogger("advrisk.tests.notes")
    with logged(Notes(write=written.append), logger.name):
        for n in range(300):
            try:
                raise ZeroDivisionError
            except ZeroDivisionError:
                logger.exception("request %d failed", n)
            logger.info("nothing")
    assert len(written) == 2
    assert written[0].startswith("request 0 failed\nTraceback")
    assert written[1].startswith("request 299 failed (299 times since this was last said)\nTraceback")
    assert not logger.handlers

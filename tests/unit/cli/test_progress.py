"""What is said when somebody interrupts a run."""

import pytest

from advrisk.cli.progress import interrupts_end_the_run


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

"""Pages whose commands are run: what is written into them, and that the real ones say what their commands print."""

from pathlib import Path

import pytest

from docs.run_pages import PAGES, PageError, changes, main, refreshed

PAGE = """\
Write a file:

```yaml title="numbers.txt"
one: 1
two: 2
```

```sh
cat numbers.txt; echo "done in 7 s"
```

The end of it is

```text
two: 5
done in 3 s
```
"""


def test_a_block_holds_the_part_of_the_output_that_it_held(tmp_path: Path) -> None:
    assert refreshed(PAGE, tmp_path) == PAGE.replace("two: 5\ndone in 3 s", "two: 2\ndone in 7 s")


def test_all_like_rows_at_the_end_are_shown(tmp_path: Path) -> None:
    rows = "printf 'wrapped\\nanew\\nrow 1\\nrow 2\\nrow 3\\nend\\n'"
    page = f"```sh\n{rows}\n```\n\n```text\nwrapped anew\nrow 7\nrow 8\n```\n"
    assert "wrapped\nanew\nrow 1\nrow 2\nrow 3\n```" in refreshed(page, tmp_path)


def test_a_python_file_above_a_block_is_run(tmp_path: Path) -> None:
    page = '```python title="a.py"\nprint("half is", 1 / 2)\n```\n\n```text\nhalf is 0.4\n```\n'
    assert "half is 0.5" in refreshed(page, tmp_path)


def test_an_output_that_the_page_does_not_show_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(PageError, match="is no part of the output"):
        refreshed(PAGE.replace("two: 5\n", "Something else entirely.\n"), tmp_path)


@pytest.mark.parametrize("command", ["exit 2", "python -c 'raise ValueError(1)'"])
def test_a_command_that_fails_is_an_error(command: str, tmp_path: Path) -> None:
    with pytest.raises(PageError, match="exit code"):
        refreshed(PAGE.replace("cat numbers.txt", command), tmp_path)


def test_numbers_may_differ_and_words_may_not() -> None:
    assert list(changes(PAGE, PAGE.replace("two: 5", "two: 12.5e-3"))) == []
    (change,) = changes(PAGE, PAGE.replace("done in 3", "finished in 3"))
    assert (change.line, change.after) == (14, "two: 5\nfinished in 3 s\n")


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES)
def test_pages_say_what_their_commands_print(page: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--check", page]) == 0, capsys.readouterr().out

"""Several errors as one."""

import pickle

import pytest

from advrisk.core.errors import AdvriskError, ModelError, StudyError
from advrisk.core.mistakes import Mistakes, joined
from advrisk.study.source import Source


def _error(line: int, message: str) -> StudyError:
    return Source(lines={("at", line): line}).error(("at", line), message)


def test_nothing_is_refused_where_nothing_was_collected() -> None:
    mistakes = Mistakes()
    with mistakes.collect():
        pass
    assert not mistakes
    mistakes.refuse()


def test_one_mistake_is_raised_as_it_is() -> None:
    mistakes, error = Mistakes(), ModelError("no such model")
    with mistakes.collect():
        raise error
    with pytest.raises(ModelError) as caught:
        mistakes.refuse()
    assert caught.value is error


def test_several_are_one_error_in_the_order_of_the_file_each_once() -> None:
    inner = joined([_error(9, "last"), _error(3, "middle")])
    found = joined([inner, _error(1, "first"), _error(3, "middle")])
    assert str(found).splitlines() == [
        "<study>:1: at[1]: first",
        "<study>:3: at[3]: middle",
        "<study>:9: at[9]: last",
    ]
    assert found.line == 1
    assert isinstance(found, StudyError)


def test_errors_of_several_kinds_are_a_mistake_in_the_study() -> None:
    assert type(joined([ModelError("a"), StudyError("b")])) is StudyError
    assert type(joined([ModelError("a"), ModelError("b")])) is ModelError


def test_what_is_no_mistake_of_the_user_passes() -> None:
    mistakes = Mistakes()
    with pytest.raises(ZeroDivisionError), mistakes.collect():
        raise ZeroDivisionError


def test_a_worker_can_send_an_error_with_its_line() -> None:
    sent: AdvriskError = pickle.loads(pickle.dumps(_error(4, "wrong")))
    assert (sent.line, str(sent)) == (4, "<study>:4: at[4]: wrong")

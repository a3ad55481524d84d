"""A limit of the machine is named as one, with what to do; other errors are not."""

import errno

import duckdb
import pyarrow as pa
import pytest

from advrisk.core.shortage import ShortageError, refuse_shortage, shortage


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (OSError(errno.EMFILE, "Too many open files"), "too many open files: this process may open "),
        (OSError(errno.ENFILE, "File table overflow"), "too many open files"),
        (duckdb.IOException('IO Error: Cannot open file "a": Too many open files'), "`ulimit -n 4096`"),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), "memory ran out"),
        (MemoryError(), "memory ran out"),
        (pa.ArrowMemoryError("malloc of size 64 failed"), "`ulimit -v unlimited`"),
        (duckdb.OutOfMemoryException("Out of Memory Error: could not allocate block"), "memory ran out"),
        (ShortageError("too many"), "too many"),
    ],
)
def test_what_ran_out_is_named_with_a_remedy(error: BaseException, says: str) -> None:
    assert says in shortage(error)
    with pytest.raises(ShortageError, match=r"too many|memory ran out"):
        refuse_shortage(error)


@pytest.mark.parametrize(
    "error", [OSError(errno.EIO, "Input/output error"), ValueError("x"), duckdb.IOException("no such file")]
)
def test_other_errors_are_left_alone(error: BaseException) -> None:
    assert shortage(error) == ""
    refuse_shortage(error)

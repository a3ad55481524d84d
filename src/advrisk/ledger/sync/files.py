"""Single files to read and write, local or by URL; a file at a URL is put there once it is written."""

import atexit
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from advrisk.core.errors import AdvriskError, LedgerError
from advrisk.ledger.sync.copies import copy_folder
from advrisk.ledger.sync.remote import Remote, local_path, parent_and_name, url_of


@contextmanager
def output_file(place: str | Path, *, keep: bool = False, earlier: bool = False) -> Iterator[Path]:
    """A file of this machine to write to. Of a URL it is a copy, put there at the end, and then removed; with `keep`
    at the end of the process, for who is told its path.

    With `earlier`, what is there already is fetched first, for who looks at what would be replaced.
    """
    url = url_of(place)
    if url is None:
        yield local_path(place)
        return
    folder, name = parent_and_name(url)
    remote, path = Remote.open(folder), copy_folder(url, f"put-{os.getpid()}") / name
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        if earlier and remote.seen(name) is not None:
            remote.fetch(name, path)
        yield path
        remote.put_file(name, path)
    except OSError as error:
        raise LedgerError(f"{path}: cannot be written: {error.strerror}; ADVRISK_CACHE names another folder") from None
    except AdvriskError as error:
        error.args = (str(error).replace(str(path), url),)
        raise
    finally:
        if keep:
            atexit.register(shutil.rmtree, path.parent, ignore_errors=True)
        else:
            shutil.rmtree(path.parent, ignore_errors=True)


@contextmanager
def input_file(place: str | Path) -> Iterator[Path]:
    """A file of this machine to read; of a URL a copy, which is removed at the end."""
    url = url_of(place)
    if url is None:
        yield local_path(place)
        return
    folder, name = parent_and_name(url)
    remote = Remote.open(folder)
    if remote.seen(name) is None:
        remote.refuse_without_bucket()
        raise LedgerError(f"{url}: there is no such file; check the address")
    with tempfile.TemporaryDirectory(prefix="advrisk-") as home:
        path = Path(home) / name
        remote.fetch(name, path)
        try:
            yield path
        except AdvriskError as error:
            error.args = (str(error).replace(str(path), url),)
            raise


def output_folder(place: str | Path, what: str) -> Path:
    """A folder of this machine to write several files to; a URL is refused, as they would not appear at once."""
    if url := url_of(place):
        raise LedgerError(f"{url}: {what} cannot be written there, being several files; name a folder of this machine")
    return local_path(place)

"""The database of answers: its tables, and how it is opened, made and recognised.

SQLite (in WAL mode, every commit on the disk before it returns) or PostgreSQL.
"""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from advrisk.core.errors import LedgerError
from advrisk.core.extras import needs_extra

VERSION = 1


class NoAnswersError(LedgerError):
    """There is no database of answers where one is to be read."""


metadata = sa.MetaData()

settings = sa.Table(
    "advrisk_settings",
    metadata,
    sa.Column("name", sa.String(40), primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)

labellers = sa.Table(
    "advrisk_labellers",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("name", sa.String(200), nullable=False, unique=True),
    sa.Column("token_hash", sa.String(64), nullable=False, unique=True),
    sa.Column("invited", sa.Float(53), nullable=False),
)

trials = sa.Table(
    "advrisk_trials",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("labeller", sa.ForeignKey(labellers.c.id), nullable=False),
    sa.Column("place", sa.Integer, nullable=False),
    sa.Column("nonce", sa.String(64), nullable=False, unique=True),
    sa.Column("sample", sa.Text, nullable=False),
    sa.Column("size", sa.Float(53), nullable=False),
    sa.Column("model", sa.Text),
    sa.Column("arm", sa.Text),
    sa.Column("cell", sa.Text),
    sa.Column("factor", sa.Float(53), nullable=False),
    sa.Column("catch", sa.Boolean, nullable=False),
    sa.Column("trials", sa.String(20), nullable=False),
    sa.Column("changed_first", sa.Boolean, nullable=False),
    sa.Column("seen", sa.Float(53)),
    sa.Column("withdrawn", sa.Boolean, nullable=False),
    sa.Column("again", sa.Boolean, nullable=False),
    sa.UniqueConstraint("labeller", "place"),
)

answers = sa.Table(
    "advrisk_answers",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("trial", sa.ForeignKey(trials.c.id), nullable=False, unique=True),
    sa.Column("said", sa.String(20), nullable=False),
    sa.Column("undetected", sa.Boolean, nullable=False),
    sa.Column("time", sa.Float(53), nullable=False),
    sa.Column("undone", sa.Float(53)),  # when it was taken back
)

revoked = sa.Table(  # links that were ended by name; databases of older programs get it when they are served again
    "advrisk_revoked",
    metadata,
    sa.Column("token_hash", sa.String(64), primary_key=True),
    sa.Column("labeller", sa.ForeignKey(labellers.c.id), nullable=False),
    sa.Column("time", sa.Float(53), nullable=False),
)

_CREATION_LOCK = 0x6164_7672  # PostgreSQL: one process makes the tables


def open_engine(text: str, *, create: bool) -> sa.Engine:
    """A database of answers; it is made if allowed, and one that is something else is refused untouched."""
    url = _checked_url(text)
    shown = url.render_as_string(hide_password=True)
    if url.get_backend_name() == "sqlite":
        _check_file(Path(url.database or ""), create=create)
    try:
        engine = _engine(url)
    except ModuleNotFoundError as error:
        raise LedgerError(needs_extra(shown, str(error.name), "postgres")) from None
    except sa.exc.NoSuchModuleError:
        raise LedgerError(f"{shown}: there is no driver of that name; write postgresql+psycopg://…") from None
    if engine.dialect.name == "sqlite":
        _configure_sqlite(engine)
    try:
        with database_errors(shown):
            _prepare(engine, shown, create=create)
    except BaseException:
        engine.dispose()
        raise
    return engine


def _engine(url: sa.URL) -> sa.Engine:
    if url.get_backend_name() == "sqlite":
        return sa.create_engine(url)
    # Text is text even where a database was made without an encoding.
    return sa.create_engine(url, pool_pre_ping=True, connect_args={"client_encoding": "utf8"})


@contextmanager
def database_errors(shown: str) -> Iterator[None]:
    """What a database complains about, as an error that names the database without its password."""
    try:
        yield
    except sa.exc.IntegrityError:
        raise
    except (sa.exc.DBAPIError, sa.exc.TimeoutError) as error:
        reason = " ".join(str(error.orig if isinstance(error, sa.exc.DBAPIError) else error).split())
        raise LedgerError(f"{shown}: the answers cannot be read or written: {reason}") from None


def _checked_url(text: str) -> sa.URL:
    try:
        url = sa.make_url(text)
        backend = url.get_backend_name()
    except (sa.exc.ArgumentError, ValueError):  # its message may hold the password
        raise LedgerError(
            "--answers: this is no address of a database; write sqlite:///FILE or "
            "postgresql+psycopg://USER@HOST/DATABASE"
        ) from None
    if backend not in ("sqlite", "postgresql") or (backend == "sqlite" and not _is_file(url.database)):
        shown = url.render_as_string(hide_password=True)
        raise LedgerError(f"--answers: answers are kept in SQLite files and PostgreSQL, found {shown!r}")
    if url.drivername == "postgresql":
        url = url.set(drivername="postgresql+psycopg")
    return url


def _is_file(database: str | None) -> bool:
    """Not in memory, where every thread would have a database of its own and nothing would be kept."""
    return bool(database) and database != ":memory:" and not str(database).startswith("file:")


def _check_file(path: Path, *, create: bool) -> None:
    """Look into a file before anything of it is changed: it may be somebody else's."""
    if not path.exists():
        if not create:
            raise NoAnswersError(f"{path}: holds no answers yet; `advrisk label RUN` asks for some")
        if not path.parent.is_dir():
            raise LedgerError(f"{path}: there is no folder of that name for the answers")
        return
    try:
        connection = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        try:
            found = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        finally:
            connection.close()
    except sqlite3.Error as error:
        raise LedgerError(f"{path}: is not a database of answers ({error}); name another with --answers") from None
    if found and settings.name not in found:
        raise LedgerError(
            f"{path}: is a database of something else (its tables: {', '.join(sorted(found)[:5])}); "
            "name another with --answers"
        )


def _configure_sqlite(engine: sa.Engine) -> None:
    """Explicit transactions: a writer takes its lock at once, so that it never fails in the middle."""

    @sa.event.listens_for(engine, "connect")
    def connected(connection: Any, _record: Any) -> None:
        connection.isolation_level = None
        for pragma in ("busy_timeout = 10000", "journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            try:
                connection.execute(f"PRAGMA {pragma}").close()
            except sqlite3.Error as error:
                connection.close()
                raise LedgerError(f"{engine.url.database}: cannot be used for answers: {error}") from None

    @sa.event.listens_for(engine, "begin")
    def begun(connection: sa.Connection) -> None:
        reading = connection.get_execution_options().get("reading", False)
        connection.exec_driver_sql("BEGIN" if reading else "BEGIN IMMEDIATE")


def _prepare(engine: sa.Engine, shown: str, *, create: bool) -> None:
    """Make the tables if they are missing and allowed, and check their version."""
    with engine.begin() as connection:
        if engine.dialect.name == "postgresql":
            connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_CREATION_LOCK)))
        if not sa.inspect(connection).has_table(settings.name):
            if not create:
                raise NoAnswersError(f"{shown}: holds no answers yet; `advrisk label RUN` asks for some")
            metadata.create_all(connection)
            connection.execute(settings.insert().values(name="version", value=str(VERSION)))
        found = connection.scalar(sa.select(settings.c.value).where(settings.c.name == "version"))
    if found != str(VERSION):
        raise LedgerError(
            f"{shown}: its answers are of version {found}, and this program knows version {VERSION}; "
            "use the program that wrote them, or name another database with --answers"
        )

"""Storing trials and answers so that none is lost, doubled or forged.

What a method has returned from is committed. Answers that are taken back are marked, never deleted. Several
processes may work on one database: what they race for is decided by its constraints.
"""

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, fields
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Self

import sqlalchemy as sa
from pydantic import TypeAdapter, ValidationError

from advrisk.answers import tables
from advrisk.answers.records import (
    Answer,
    AnswerRefusedError,
    Labeller,
    LabellingSettings,
    LabellingTrial,
    NameRefusedError,
    Shown,
    State,
    TrialRow,
    undetected,
)
from advrisk.core.errors import LedgerError
from advrisk.core.names import did_you_mean

_LONGEST_NAME = 80
_SHOWN = [field.name for field in fields(Shown)]
_ANY_TRIAL = tables.trials.alias()
_OF_ANSWER = (tables.answers.c.id.label("answer"), tables.answers.c.undone)


class AnswerStore:
    """The answers about one run, in one database."""

    def __init__(self, engine: sa.Engine) -> None:
        self._engine = engine
        self.url = engine.url.render_as_string(hide_password=False)  # never to be printed
        self.where = engine.url.render_as_string(hide_password=True)
        self._settled: LabellingSettings | None = None  # what this process asks for

    @classmethod
    def open(cls, url: str, *, create: bool = True) -> Self:
        """The database at this address, made where there is none and that is allowed."""
        return cls(tables.open_engine(url, create=create))

    def close(self) -> None:
        self._engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # What all answers have in common

    def settings(self) -> LabellingSettings | None:
        """The run, norm and design that the answers are about, or will be; None in a new database."""
        with self._reading() as connection:
            return _settings(connection)

    def settle(self, given: LabellingSettings) -> None:
        """Write down what the answers will be about, or refuse if something else was asked already."""
        with self._writing() as connection:
            _lock_settings(connection)
            tables.revoked.create(connection, checkfirst=True)
            held = _settings(connection)
            if held is not None and _has_trials(connection):
                held.refuse_unlike(given, self.where)
            else:
                _put_setting(connection, "settings", json.dumps(asdict(given)))
        self._settled = given

    def has_trials(self) -> bool:
        """Whether anything was asked; before that, what the answers will be about may still change."""
        with self._reading() as connection:
            return _has_trials(connection)

    def samples(self) -> set[str]:
        """Of which samples pictures were shown."""
        table = tables.trials
        with self._reading() as connection:
            return set(connection.scalars(sa.select(table.c.sample).where(~table.c.withdrawn).distinct()))

    def address(self) -> str | None:
        """Where the pages were served last."""
        with self._reading() as connection:
            return _setting(connection, "address")

    def link_base(self) -> str | None:
        """What links began with then: that address, or the one by which others reach it."""
        with self._reading() as connection:
            return _setting(connection, "links") or _setting(connection, "address")

    def put_address(self, address: str, links: str | None = None) -> None:
        with self._writing() as connection:
            _lock_settings(connection)
            _put_setting(connection, "address", address)
            _put_setting(connection, "links", links or address)

    # Labellers

    def invite(self, name: str, token_hash: str) -> Labeller:
        """A new labeller, or a new link for one who is known, whose old link then ends."""
        named = checked_name(name)
        table = tables.labellers
        for _ in range(2):  # another process may have invited the same name in between
            with self._writing() as connection:
                renewed = connection.execute(
                    table.update().where(table.c.name == named).values(token_hash=token_hash).returning(table.c.id)
                ).scalar()
                if renewed is not None:
                    return Labeller(renewed, named)
                try:
                    with connection.begin_nested():
                        made = connection.execute(
                            table.insert()
                            .values(name=named, token_hash=token_hash, invited=time.time())
                            .returning(table.c.id)
                        ).scalar_one()
                    return Labeller(made, named)
                except sa.exc.IntegrityError:
                    continue
        raise LedgerError(f"{self.where}: {named!r} could not be invited; try again")

    def labeller(self, token_hash: str) -> Labeller | None:
        """Whose link has this hash."""
        table = tables.labellers
        with self._reading() as connection:
            row = connection.execute(
                sa.select(table.c.id, table.c.name).where(table.c.token_hash == token_hash)
            ).first()
        return None if row is None else Labeller(*row)

    def revoke(self, name: str, unused_hash: str) -> Labeller:
        """End the link of a labeller, who gets this hash, of a token that nobody has, until invited again."""
        named, table = " ".join(name.split()), tables.labellers
        with self._writing() as connection:
            row = connection.execute(sa.select(table).where(table.c.name == named).with_for_update()).first()
            if row is None:
                names = connection.scalars(sa.select(table.c.name)).all()
                raise NameRefusedError(f"{self.where}: no labeller is called {named!r}; {did_you_mean(named, names)}")
            connection.execute(
                tables.revoked.insert().values(token_hash=row.token_hash, labeller=row.id, time=time.time())
            )
            connection.execute(table.update().where(table.c.id == row.id).values(token_hash=unused_hash))
            return Labeller(row.id, named)

    def was_revoked(self, token_hash: str) -> bool:
        """Whether a link with this hash was ended by name."""
        table = tables.revoked
        with self._reading() as connection:
            query = sa.select(table.c.token_hash).where(table.c.token_hash == token_hash)
            return connection.scalar(query) is not None

    def labellers(self) -> list[Labeller]:
        table = tables.labellers
        with self._reading() as connection:
            rows = connection.execute(sa.select(table.c.id, table.c.name).order_by(table.c.id)).all()
        return [Labeller(*row) for row in rows]

    # Trials

    def open_trial(self, labeller: int) -> LabellingTrial | None:
        """The question that the labeller has not answered yet."""
        with self._reading() as connection:
            return _open_trial(connection, labeller)

    def n_trials(self, labeller: int) -> int:
        """How many places are taken, also by questions that were withdrawn."""
        with self._reading() as connection:
            return _n_trials(connection, labeller)

    def last_trials(self) -> list[tuple[int, int, State]]:
        """Of each labeller who was asked something: the place of the last trial, and what became of it."""
        trial, labeller = tables.trials, tables.labellers
        query = (
            sa.select(trial.c.labeller, trial.c.place, trial.c.withdrawn, *_OF_ANSWER)
            .select_from(labeller)
            .outerjoin(trial, (trial.c.labeller == labeller.c.id) & (trial.c.place == _last_place(labeller.c.id)))
            .outerjoin(tables.answers, tables.answers.c.trial == trial.c.id)
        )  # outer joins: with inner ones SQLite would go through all trials to find their labellers
        with self._reading() as connection:
            rows = connection.execute(query).all()
        return [(row.labeller, row.place, _state(row)) for row in rows if row.labeller is not None]

    def trials_from(self, labeller: int, place: int) -> list[TrialRow]:
        """The trials of a labeller from this place on, in order."""
        trial = tables.trials
        query = (
            sa.select(trial, *_OF_ANSWER)
            .outerjoin(tables.answers, tables.answers.c.trial == trial.c.id)
            .where(trial.c.labeller == labeller, trial.c.place >= place)
            .order_by(trial.c.place)
        )
        with self._reading() as connection:
            rows = connection.execute(query).all()
        return [TrialRow(row.id, labeller, row.place, _shown(row), _state(row)) for row in rows]

    def put_trial(self, labeller: int, place: int, nonce: str, shown: Shown) -> LabellingTrial:
        """Ask a labeller something; if another process has done so meanwhile, its question stands."""
        try:
            with self._writing() as connection:
                _lock_labeller(connection, labeller)
                if held := _open_trial(connection, labeller):
                    return held
                self._refuse_unsettled(connection)
                return _insert_trial(connection, labeller, place, nonce, shown, again=False)
        except sa.exc.IntegrityError:
            held = self.open_trial(labeller)
            if held is None:
                raise LedgerError(f"{self.where}: two processes asked at once; try again") from None
            return held

    def _refuse_unsettled(self, connection: sa.Connection) -> None:
        """Before the first trial another process may have settled on something else."""
        _lock_settings(connection)
        if self._settled is not None and _settings(connection) != self._settled:
            raise LedgerError(f"{self.where}: another command changed what is asked meanwhile; start again")

    def put_seen(self, trial: int) -> float:
        """When the picture of a trial was first sent: now, if never before."""
        table = tables.trials
        with self._writing() as connection:
            connection.execute(
                table.update().where(table.c.id == trial, table.c.seen.is_(None)).values(seen=time.time())
            )
            return float(connection.execute(sa.select(table.c.seen).where(table.c.id == trial)).scalar_one())

    def withdraw(self, trial: int) -> None:
        """Give a question up: its picture is gone."""
        table = tables.trials
        with self._writing() as connection:
            connection.execute(table.update().where(table.c.id == trial).values(withdrawn=True))

    # Answers

    def put_answer(self, labeller: int, nonce: str, said: str) -> None:
        """Take an answer to the labeller's open question; anything else is refused."""
        settings = self.settings()
        if settings is None:
            raise AnswerRefusedError("nothing was asked yet")
        with self._writing() as connection:
            _lock_labeller(connection, labeller)
            held = _open_trial(connection, labeller)
            if held is None or held.nonce != nonce:
                raise AnswerRefusedError("this is not the question that is open: it was answered already, or never put")
            if held.seen is None:
                raise AnswerRefusedError("the picture was not looked at yet")
            missed = undetected(settings.design, held.shown, said)
            connection.execute(
                tables.answers.insert().values(trial=held.id, said=said, undetected=missed, time=time.time())
            )

    def undo(self, labeller: int, nonce: str) -> LabellingTrial:
        """Take the labeller's last answer back and ask the same again, under a new nonce.

        How long the picture was looked at goes on from where it ended.
        """
        trial, answer = tables.trials, tables.answers
        with self._writing() as connection:
            _lock_labeller(connection, labeller)
            held = _open_trial(connection, labeller)
            last = _last_answered(connection, labeller)
            if last is None or (held is not None and held.again):
                raise AnswerRefusedError("there is no answer to take back; only the last one can be")
            connection.execute(answer.update().where(answer.c.id == last.answer).values(undone=time.time()))
            if held is not None:
                connection.execute(trial.update().where(trial.c.id == held.id).values(withdrawn=True))
            place = _n_trials(connection, labeller)
            seen = time.time() - max(0.0, last.time - last.seen)
            return _insert_trial(connection, labeller, place, nonce, _trial(last).shown, again=True, seen=seen)

    def can_undo(self, labeller: int) -> bool:
        """Whether the last answer of a labeller could be taken back."""
        with self._reading() as connection:
            held = _open_trial(connection, labeller)
            return not (held is not None and held.again) and _last_answered(connection, labeller) is not None

    def revision(self) -> tuple[int, int]:
        """Changes whenever an answer is given or taken back."""
        table = tables.answers
        with self._reading() as connection:
            row = connection.execute(sa.select(sa.func.count(), sa.func.count(table.c.undone)).select_from(table)).one()
        return int(row[0]), int(row[1])

    def answers(self) -> list[Answer]:
        """All answers that stand, in the order in which they were given."""
        settings = self.settings()
        if settings is None:
            return []
        trial, answer, labeller = tables.trials, tables.answers, tables.labellers
        query = (
            sa.select(trial, answer.c.undetected, answer.c.time, labeller.c.name)
            .join(answer, answer.c.trial == trial.c.id)
            .join(labeller, labeller.c.id == trial.c.labeller)
            .where(answer.c.undone.is_(None))
            .order_by(answer.c.id)
        )
        with self._reading() as connection:
            return [_answer(row, settings) for row in connection.execute(query)]

    @contextmanager
    def _writing(self) -> Iterator[sa.Connection]:
        with tables.database_errors(self.where), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def _reading(self) -> Iterator[sa.Connection]:
        engine = self._engine.execution_options(reading=True)
        with tables.database_errors(self.where), engine.begin() as connection:
            yield connection


def checked_name(name: str) -> str:
    """A name as it is written down, or an error if no labeller can have it."""
    named = " ".join(name.split())
    if not named or len(named) > _LONGEST_NAME or not named.isprintable():
        raise NameRefusedError(f"a labeller's name has 1 to {_LONGEST_NAME} printable characters, found {name[:100]!r}")
    return named


def _setting(connection: sa.Connection, name: str) -> str | None:
    found: str | None = connection.scalar(sa.select(tables.settings.c.value).where(tables.settings.c.name == name))
    return found


def _settings(connection: sa.Connection) -> LabellingSettings | None:
    text = _setting(connection, "settings")
    if text is None:
        return None
    try:
        return TypeAdapter(LabellingSettings).validate_json(text, strict=True)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        place, field = connection.engine.url.render_as_string(hide_password=True), ".".join(map(str, first["loc"]))
        raise LedgerError(
            f"{place}: the settings of its answers cannot be read ({field}: {first['msg']}); name another database "
            "with --answers"
        ) from None


def _put_setting(connection: sa.Connection, name: str, value: str) -> None:
    table = tables.settings
    connection.execute(table.delete().where(table.c.name == name))
    connection.execute(table.insert().values(name=name, value=value))


def _has_trials(connection: sa.Connection) -> bool:
    return connection.scalar(sa.select(tables.trials.c.id).limit(1)) is not None


def _lock_settings(connection: sa.Connection) -> None:
    """One process at a time; SQLite has one writer anyway and knows no such clause."""
    table = tables.settings
    connection.execute(sa.select(table.c.value).where(table.c.name == "version").with_for_update())


def _lock_labeller(connection: sa.Connection, labeller: int) -> None:
    connection.execute(sa.select(tables.labellers.c.id).where(tables.labellers.c.id == labeller).with_for_update())


def _last_place(labeller: Any) -> Any:
    """The place of a labeller's last trial, which the index on labellers and places finds at once."""
    query = sa.select(sa.func.max(_ANY_TRIAL.c.place)).where(_ANY_TRIAL.c.labeller == labeller)
    return query.correlate(tables.labellers).scalar_subquery()


def _n_trials(connection: sa.Connection, labeller: int) -> int:
    """Places are counted up from 0."""
    last = connection.scalar(sa.select(_last_place(labeller)))
    return 0 if last is None else int(last) + 1


def _open_trial(connection: sa.Connection, labeller: int) -> LabellingTrial | None:
    """Only the last trial can be open: nothing is asked before it is answered or withdrawn."""
    trial, answer = tables.trials, tables.answers
    row = connection.execute(
        sa.select(trial)
        .outerjoin(answer, answer.c.trial == trial.c.id)
        .where(trial.c.labeller == labeller, trial.c.place == _last_place(labeller))
        .where(~trial.c.withdrawn, answer.c.id.is_(None))
    ).first()
    return None if row is None else _trial(row)


def _last_answered(connection: sa.Connection, labeller: int) -> Any:
    """The last trial of a labeller whose answer stands, with that answer."""
    trial, answer = tables.trials, tables.answers
    return connection.execute(
        sa.select(trial, answer.c.id.label("answer"), answer.c.time)
        .join(answer, answer.c.trial == trial.c.id)
        .where(trial.c.labeller == labeller, answer.c.undone.is_(None))
        .order_by(trial.c.place.desc())
        .limit(1)
    ).first()


def _insert_trial(
    connection: sa.Connection,
    labeller: int,
    place: int,
    nonce: str,
    shown: Shown,
    *,
    again: bool,
    seen: float | None = None,
) -> LabellingTrial:
    values = {"labeller": labeller, "place": place, "nonce": nonce, "withdrawn": False, "again": again, "seen": seen}
    values |= asdict(shown)
    made = connection.execute(tables.trials.insert().values(**values).returning(tables.trials.c.id)).scalar_one()
    return LabellingTrial(made, labeller, place, nonce, shown, seen, again)


def _trial(row: Any) -> LabellingTrial:
    return LabellingTrial(row.id, row.labeller, row.place, row.nonce, _shown(row), row.seen, row.again)


def _shown(row: Any) -> Shown:
    return Shown(**{name: getattr(row, name) for name in _SHOWN})


def _state(row: Any) -> State:
    if row.answer is not None:
        return "stands" if row.undone is None else "undone"
    return "withdrawn" if row.withdrawn else "open"


def _answer(row: Any, settings: LabellingSettings) -> Answer:
    return Answer(
        labeller=row.name,
        model=row.model,
        arm=row.arm,
        sample=row.sample,
        size=row.size,
        undetected=row.undetected,
        design=settings.design,
        trials=row.trials,
        scaled=row.factor != 1.0,
        catch=row.catch,
        seconds=None if row.seen is None else max(0.0, row.time - row.seen),
        time=datetime.fromtimestamp(row.time, UTC),
    )

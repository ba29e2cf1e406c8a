"""The ledger of several hosts: a table of hash-chained records on a PostgreSQL server.

Writers wait for an advisory lock that ends with their transaction. The primary key refuses a second record of the same
number, so that a chain cannot fork even if a writer takes no lock. A commit returns once it is on the disk of the
server: synchronous_commit is on whatever the session has, and a server without fsync or an unlogged table is refused.
The server's clock counts, because the clocks of hosts differ.

Every error is raised anew: the message of a driver can hold the user and the password of the URL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from typing import Any

from discreet.errors import Error, InvalidValueError, LedgerError, MissingExtraError, quote, redact_url
from discreet.ledger.store import LEAST, Record, Store, Transaction
from discreet.sources.events.engine import EngineError, describe_refusal, find_sqlstate

_TABLE = "public.discreet_ledger"
"""The table where the URL does not name one by ledger=. No search path finds it, because users have different ones."""

_MARK = "discreet ledger 1"
"""The comment on the table, with the version of its form."""

_COLUMNS = ["number bigint", "kind text", "body text", "previous text", "hash text"]

_LOCK, _PUBLISHING_LOCK = 0x64736372 << 32, 0x64736373 << 32
"""The numbers of the two advisory locks, to which the object id of the table is added."""

_AT_ONCE = 500
"""The number of records that one query returns."""

_CONNECT_SECONDS = 10
"""The longest time to wait for the server to answer; the URL may have another connect_timeout."""

_KEEPALIVES = {"keepalives_idle": 30, "keepalives_interval": 10, "keepalives_count": 3, "tcp_user_timeout": 60_000}
"""A network that is gone shows within a minute, also while a run holds its lock for hours and asks nothing."""

_IDLE_MILLISECONDS = 60_000
"""A host that stops in the middle of a transaction loses its lock, and its charge, after this time."""

_BEGIN_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"
# Statements after the lock must see what was committed before it was granted.
_BEGIN_WRITING = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"

_SETTINGS = """
SELECT set_config('lock_timeout', %s, true), set_config('idle_in_transaction_session_timeout', %s, true),
set_config('statement_timeout', '0', true), set_config('synchronous_commit',
CASE current_setting('synchronous_commit') WHEN 'remote_apply' THEN 'remote_apply' ELSE 'on' END, true)"""

_FIND = """
SELECT {} FROM pg_catalog.pg_class t JOIN pg_catalog.pg_namespace n ON n.oid = t.relnamespace
WHERE n.nspname = %s AND t.relname = %s"""

_FORM = _FIND.format("""
t.relkind::text, t.relpersistence::text, t.relrowsecurity, t.relispartition,
EXISTS (SELECT FROM pg_catalog.pg_trigger WHERE tgrelid = t.oid AND NOT tgisinternal),
EXISTS (SELECT FROM pg_catalog.pg_rewrite WHERE ev_class = t.oid),
EXISTS (SELECT FROM pg_catalog.pg_inherits WHERE t.oid IN (inhparent, inhrelid)),
(SELECT array_agg(attname || ' ' || pg_catalog.format_type(atttypid, atttypmod) ORDER BY attnum)
FROM pg_catalog.pg_attribute WHERE attrelid = t.oid AND attnum > 0 AND NOT attisdropped),
(SELECT array_agg(pg_catalog.pg_get_constraintdef(oid)) FROM pg_catalog.pg_constraint
WHERE conrelid = t.oid AND contype = 'p'),
pg_catalog.obj_description(t.oid, 'pg_class'), current_setting('fsync')""")

_EXPECTED = ("r", "p", False, False, False, False, False, _COLUMNS, ["PRIMARY KEY (number)"])

_REASONS = {
    "55P03": "is in use by other processes and was not free in time; try again, or wait longer",
    "53100": "cannot be written: the disk of its server is full",
    "25006": "cannot be written: its server takes no changes, as a standby does",
    "42501": "cannot be used: this user lacks the right to read it or to add to it",
    "23505": "is damaged: a record is in the way of the next one",
    "22021": "is damaged: PostgreSQL cannot read it",
}
"""The ends of the messages about a ledger, by the code of PostgreSQL's error."""

_NETWORK = ("08", "57P", "53300", "25P03")
"""The beginnings of codes by which a connection or a server ends, and trying again can help."""


class PostgresTransaction(Transaction):
    """A transaction on the table of a server."""

    def __init__(self, connection: Any, table: str) -> None:
        self._connection, self._table = connection, table

    def append(self, record: Record) -> None:
        values = record.number, record.kind, record.body, record.previous, record.hash
        names = "number, kind, body, previous, hash"
        self._connection.execute(f"INSERT INTO {self._table} ({names}) VALUES (%s, %s, %s, %s, %s)", values)  # noqa: S608  # a checked name

    def records(self, first: int = LEAST) -> Iterator[Record]:
        statement = (
            f"SELECT number, kind, body, previous, hash FROM {self._table} WHERE number >= %s "  # noqa: S608
            "ORDER BY number LIMIT %s"
        )
        while True:
            rows = self._connection.execute(statement, (first, _AT_ONCE)).fetchall()
            for row in rows:
                yield Record(*row)
            if len(rows) < _AT_ONCE:
                return
            first = rows[-1][0] + 1

    def record_at(self, number: int) -> Record | None:
        statement = f"SELECT number, kind, body, previous, hash FROM {self._table} WHERE number = %s"  # noqa: S608
        row = self._connection.execute(statement, (number,)).fetchone()
        return None if row is None else Record(*row)

    def clock(self) -> datetime:
        statement = "SELECT floor(extract(epoch FROM clock_timestamp()))::bigint"
        return datetime.fromtimestamp(self._connection.execute(statement).fetchone()[0], UTC)


class PostgresStore(Store):
    """A ledger on a PostgreSQL server; the URL may name its table, as in postgres://HOST/DATABASE?ledger=SCHEMA.TABLE."""

    def __init__(self, url: str) -> None:
        # As libpq reads it: user and password end at the first "@" before a "/", and may have a "?".
        user, rest = re.fullmatch("([a-z]+://(?:[^@/]*@)?)(.*)", url, re.DOTALL).groups()  # type: ignore[union-attr]
        place, _, query = rest.partition("?")
        options = query.split("&") if query else []
        named = [each.removeprefix("ledger=") for each in options if each.startswith("ledger=")]
        name = named[-1] if named else _TABLE
        schema, _, table = name.rpartition(".")
        self._key = (schema or "public", table)
        if not all(re.fullmatch("[a-z_][a-z0-9_]{0,62}", each) for each in self._key):
            # The name is not shown: with an "@" in a wrong place it is the end of a password.
            raise InvalidValueError(
                "ledger must name its table as ledger=TABLE or ledger=SCHEMA.TABLE, of small letters, digits and _"
            )
        others = "&".join(each for each in options if not each.startswith("ledger="))
        self._url = f"{user}{place}?{others}" if others else f"{user}{place}"
        self._table = ".".join(f'"{each}"' for each in self._key)
        self.path = redact_url(url)
        if named and not self.path.endswith("..."):
            self.path += f"?ledger={name}"
        self._publishing: Any = None

    def make(self, make_first: Callable[[datetime | None], Record]) -> None:
        columns = ", ".join(f"{each} NOT NULL" for each in _COLUMNS)
        failed = None
        try:
            with self._connect(10, _BEGIN_WRITING) as connection:
                connection.execute(f"CREATE TABLE {self._table} ({columns}, PRIMARY KEY (number))")
                connection.execute(f"COMMENT ON TABLE {self._table} IS '{_MARK}'")
                self._check_form(connection)
                chain = PostgresTransaction(connection, self._table)
                chain.append(make_first(chain.clock()))
                _commit(connection)
        except _KnownError as error:
            failed = error.code
        if failed in ("42P07", "23505"):
            raise InvalidValueError(
                f"path must be a ledger that does not exist yet, not {self.path!r}; ?ledger=NAME names another table"
            )
        if failed == "3F000":
            raise InvalidValueError(f"path must name a schema that exists, not {quote(self._key[0])}")
        if failed is not None:
            raise self._describe(failed)

    @contextmanager
    def read(self, wait: float) -> Iterator[PostgresTransaction]:
        with self._translate(), self._connect(wait, _BEGIN_READING) as connection:
            self._check_form(connection)
            yield PostgresTransaction(connection, self._table)

    @contextmanager
    def write(self, wait: float) -> Iterator[PostgresTransaction]:
        with self._translate(), self._connect(wait, _BEGIN_WRITING) as connection:
            connection.execute(_FIND.format(f"pg_advisory_xact_lock({_LOCK} + t.oid::bigint)"), self._key)
            self._check_form(connection)
            yield PostgresTransaction(connection, self._table)
            _commit(connection)

    def check_room(self, size: int) -> None:
        """Do nothing: the room on the server is not known here, and a charge that does not fit fails."""

    @contextmanager
    def lock_publishing(self, wait: float, report: Callable[..., None]) -> Iterator[None]:
        # The lock ends with the connection, and with its transaction, also behind a pooler.
        with self._translate(), self._connect(wait, _BEGIN_WRITING, idle=0) as connection:
            self._check_form(connection)
            ask = _FIND.format("{}(" + f"{_PUBLISHING_LOCK} + t.oid::bigint)")
            if not connection.execute(ask.format("pg_try_advisory_xact_lock"), self._key).fetchone()[0]:
                report("waiting", on="budget", seconds=wait)
                if not self._is_granted(connection, ask.format("pg_advisory_xact_lock")):
                    raise LedgerError(
                        f"another run of 'discreet publish' is at work on {self.path!r}; nothing was drawn, try again "
                        "later"
                    )
            self._publishing = connection
            try:
                yield
            finally:
                self._publishing = None

    def check_publishing(self) -> None:
        if self._publishing is None:
            return
        import psycopg

        with suppress(psycopg.Error):
            self._publishing.execute("SELECT 1")
            return
        raise EngineError(
            f"the connection to the ledger {self.path!r} broke, and with it the lock of this run; nothing more is "
            "drawn, try again later"
        )

    def _is_granted(self, connection: Any, ask: str) -> bool:
        """Wait for a lock; return False if it was not free in time."""
        from psycopg.errors import LockNotAvailable

        try:
            connection.execute(ask, self._key)
        except LockNotAvailable:
            return False
        return True

    @contextmanager
    def _connect(self, wait: float, begin: str, idle: int = _IDLE_MILLISECONDS) -> Iterator[Any]:
        """Open a connection with a transaction; raise every error of the driver as one of ours."""
        connection, code = None, None
        try:
            import psycopg
            from psycopg.conninfo import conninfo_to_dict
        except ImportError:
            raise MissingExtraError("a ledger on PostgreSQL needs psycopg: pip install 'psycopg[binary]'") from None
        try:
            own = conninfo_to_dict(self._url)
        except psycopg.Error:
            own = None
        if own is None:
            raise InvalidValueError(f"ledger must be the URL of a PostgreSQL database, and {self.path!r} is none")
        options: dict[str, Any] = {"connect_timeout": _CONNECT_SECONDS, "application_name": "discreet"}
        options |= {**_KEEPALIVES, **own, "client_encoding": "utf8"}
        try:
            connection = psycopg.connect(**options, autocommit=True, prepare_threshold=None)
        except psycopg.Error as error:
            code = find_sqlstate(error) or "connect"
        if code is not None:
            raise _KnownError(code)
        assert connection is not None
        try:
            connection.execute(begin)
            connection.execute(_SETTINGS, (str(max(1, int(wait * 1000))), str(idle)))
            yield connection
        except psycopg.Error as error:
            code = error.sqlstate or "broken"
        except _KnownError:
            raise
        finally:
            with suppress(Exception):
                connection.close()
        if code is not None:
            raise _KnownError(code)

    @contextmanager
    def _translate(self) -> Iterator[None]:
        """Raise the errors of the block as errors that name the ledger."""
        try:
            yield
        except _KnownError as error:
            failure = self._describe(error.code)
        else:
            return
        raise failure

    def _describe(self, code: str) -> Error:
        """Return the error for a code of PostgreSQL, which says nothing private."""
        if (refusal := describe_refusal(code, "ledger")) is not None:
            return EngineError(f"the server of the ledger {self.path!r} {refusal}")
        if code == "connect":
            return EngineError(
                f"the ledger {self.path!r} does not answer, or does not know this user or database: try again later, "
                "or correct ledger"
            )
        if code == "broken" or code.startswith(_NETWORK):
            return EngineError(f"the connection to the ledger {self.path!r} broke; try again later")
        reason = _REASONS.get(code, f"cannot be used: PostgreSQL reports error {code}")
        return LedgerError(f"the ledger {self.path!r} {reason}")

    def _check_form(self, connection: Any) -> None:
        """Raise unless the table is one of this version, kept through a crash, and whole for every user."""
        row = connection.execute(_FORM, self._key).fetchone()
        if row is None:
            raise InvalidValueError(
                f"ledger must be a ledger that exists, not {self.path!r}, whose database has no table "
                f"{'.'.join(self._key)} that this user can see"
            )
        *found, mark, fsync = row
        if not (mark or "").startswith("discreet ledger "):
            raise InvalidValueError(f"ledger must be a ledger made by discreet, and {self.path!r} is another table")
        if mark != _MARK:
            raise LedgerError(f"the ledger {self.path!r} is of a newer discreet: {quote(mark)}, not {quote(_MARK)}")
        if tuple(found) != _EXPECTED:
            raise LedgerError(f"the ledger {self.path!r} is damaged: its table is not the one that discreet makes")
        if fsync != "on":
            raise LedgerError(
                f"the ledger {self.path!r} must not be used: its server has fsync off, so that a crash undoes charges"
            )


def _commit(connection: Any) -> None:
    """End a transaction; raise unless all of it is kept, since PostgreSQL ends a broken one without an error."""
    if connection.execute("COMMIT").statusmessage != "COMMIT":
        raise _KnownError("40000")


class _KnownError(Exception):
    """An error of PostgreSQL, by its code alone."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code

"""A Dialect: all in which one engine differs from others. Everything else asks the dialect, never an engine's name.

To add an engine, write its Dialect into a file of its name in `dialects/`, and give the contract tests a line. Any
other engine of ibis gets a generic one that promises little: it has numbers, dates and booleans but no text, because
its collation may equate two spellings, and nothing private is sent to it.
"""

from __future__ import annotations

import atexit
import operator
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import cache, reduce
from importlib import import_module
from pkgutil import iter_modules
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from discreet.errors import InvalidTypeError
from discreet.sources.events import dialects
from discreet.sources.events.cells import engine_function, is_untyped
from discreet.sources.events.engine import EngineError

# The DuckDB inside this process: where it spills what does not fit into memory, and what it must not fetch.
#
# By default DuckDB writes rows that do not fit to `.tmp` in the working directory, or beside the database file, for
# everybody to read. Here they go to a new folder that only the user may enter, which is removed when the connection is
# closed, and else when the process ends. Nor does a DuckDB opened here install extensions over the
# network, or load one unless a URL among the files asks for it.

Close = Callable[[], None]

NO_EXTENSIONS: dict[str, Any] = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
"""What a DuckDB is told that neither fetches nor loads what it was not asked for."""


class SpillFolder:
    """A new folder that only the user may enter, which goes with this object, and at the latest with the process."""

    def __init__(self) -> None:
        try:
            self.path = tempfile.mkdtemp(prefix="discreet-")
        except OSError:
            raise EngineError("DuckDB must have a folder for temporary files that can be written: set TMPDIR") from None
        self.remove = weakref.finalize(self, _remove, self.path, os.getpid())

    def settings(self) -> dict[str, Any]:
        """What a DuckDB that spills here is told."""
        return {"temp_directory": self.path, **NO_EXTENSIONS}


def connect_in_memory() -> tuple[Any, Close]:
    """A new DuckDB in memory, as ibis has it, and what closes it."""
    import ibis

    folder = SpillFolder()
    backend = ibis.duckdb.connect(**folder.settings())

    def close() -> None:
        backend.disconnect()
        folder.remove()

    return backend, close


def connect_to_file(url: str) -> tuple[Any, Close]:
    """A database file by its URL, and what closes it; one that this process has open already keeps its settings.

    They are set after connecting: DuckDB refuses a second connection to a file that was opened with other options, and
    the caller may want one.
    """
    import ibis

    path = url.partition("://")[2].partition("?")[0]
    shared = _is_open_here(path)
    backend = ibis.connect(url)
    if shared or "temp_directory=" in url:
        return backend, backend.disconnect
    folder = SpillFolder()
    for name, value in folder.settings().items():
        backend.settings[name] = value
    return backend, lambda: _close_file(backend, path, folder)


def _close_file(backend: Any, path: str, folder: SpillFolder) -> None:
    given_back = _reset(backend, list(folder.settings()))
    backend.disconnect()
    if given_back or not _is_open_here(path):
        folder.remove()
    else:
        # The caller has opened the file too, and that DuckDB goes on spilling into this folder.
        atexit.register(lambda: folder.remove())


def _reset(backend: Any, names: list[str]) -> bool:
    """Whether a database has its own settings back, which DuckDB refuses once it has spilled."""
    try:
        for name in names:
            backend.con.execute(f"RESET {name}")
    except Exception:
        return False
    return True


def _remove(folder: str, process: int) -> None:
    # A forked copy must not take the folder from its parent.
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _is_open_here(path: str) -> bool:
    """Whether this process has a database file open: DuckDB then refuses a connection with other options."""
    import duckdb

    try:
        duckdb.connect(path, read_only=True, config=NO_EXTENSIONS).close()
    except duckdb.ConnectionException:
        return True
    except duckdb.Error:
        # What is wrong with the file shows when it is opened in earnest.
        return False
    return False


_COMPARABLE = ("string", "timestamp", "time", "uuid", "binary", "inet", "macaddr")
"""The types, beside numbers, dates and booleans, whose equal values are the same value; 1 month equals 30 days, and is
not the same, so that intervals are not among them."""


def connect_by_ibis(url: str) -> tuple[Any, Close]:
    """A connection to a URL, and what closes it."""
    import ibis

    connection = ibis.connect(url)
    return connection, connection.disconnect


def _like(text: Any, pattern: str) -> Any:
    return text.like(pattern)


def _translate_case(text: Any, case: str) -> Any:
    """The 26 letters in lower or upper case; what engines do to others depends on versions and locales."""
    letters = (ascii_uppercase, ascii_lowercase)
    return text.translate(*(letters if case == "lower" else reversed(letters)))


@dataclass(frozen=True, eq=False, repr=False)
class Dialect:
    """How one engine is asked for what all of them should answer alike.

    Attributes
    ----------
    name, title
        What ibis calls the engine, and what messages call one that was opened by its URL.
    packages
        What pip installs its driver with, where ibis' own extra is not enough.
    is_file
        Whether its URL is the path of a file, which opening would make where there is none.
    connect
        A connection to a URL, and what closes it.
    declare_types
        A table without types that were guessed from rows, and the names of the columns that then have none; None where
        every column has a type that somebody declared.
    adapt_table
        A table whose columns ibis knows: those of enums and of text types that an extension or a user made are text. It
        raises where a setting of the connection changes how text is compared.
    views_local_tables
        Whether a table in memory has to become a view before the engine can cache what is made of it.
    copies_local_tables
        Whether a table in memory, too, is sent by `send_unlogged`: ibis would send it a statement a row.
    send_unlogged
        A temporary table of a name with the rows of an Arrow table, sent by a way that no log, history or plan of the
        engine shows; None where none is known, and then nothing is sent.
    text_bytes
        The UTF-8 bytes of a text, or those of the database's own encoding, whose equality and order no collation
        changes; no text makes it fail. None where it is not known how, and then columns of text are refused.
    bytes_text, digest
        The text of bytes that `text_bytes` made, and the MD5 of bytes, or of a text's bytes, in hexadecimal; None where
        it is not known how.
    hash_number
        The first 48 bits of the MD5 of some texts, one after the other, in UTF-8, as a number; None where it takes less
        to compare their digits.
    drop_broken_text
        A text, NULL where its bytes are no text: what is found must be read outside of the engine.
    number_string
        The number of a text among all strings over an alphabet up to a length (`strings.py`), NULL where it is none of
        them, by a function of its own; None where it is a sum over the places of the text.
    like, fold_case, trim
        LIKE that tells capitals apart; the letters A to Z in "lower" or "upper" case; a text without the spaces at its
        ends ("trim", "ltrim" or "rtrim"), None where it is not known how.
    text_end
        The end of a text in a regular expression.
    has_try_cast
        Whether TRY_CAST gives NULL where a cast fails; else a cast must be kept from cells on which it would.
    limit_to_calendar
        A date or timestamp, NULL outside of the years 1 to 9999; those convert to text and back as ISO 8601 has them,
        and so do booleans. None where the engine is not known to do so.
    count_days, count_seconds
        The days of a date and the whole seconds of a timestamp since 1970 in UTC, rounded down, whatever the zone of
        the session; a column without a zone is in UTC. What is outside of the years 1 to 9999 may be NULL. None where
        it is not known how.
    cell_readers, spell_user
        Where a cell has a type of its own, whatever its column was declared as: how one is read as each kind, and how
        it spells a user. None where columns have types.
    dates_are_text
        Whether dates and timestamps are kept as text.
    find_trouble
        What a connection lacks that a release with much data needs, such as room for temporary files, as the end of a
        sentence about the engine; None where it lacks nothing.
    total_type
        A type in which sums of 64-bit integers do not overflow, or turn into what is beyond them.
    to_float
        A number of any type as a double. No number makes it fail: one beyond all doubles is the largest or infinite,
        one that is too small for them is 0, and NaN is NaN or NULL.
    """

    name: str
    title: str
    packages: tuple[str, ...] = ()
    is_file: bool = False
    connect: Callable[[str], tuple[Any, Close]] = connect_by_ibis
    declare_types: Callable[[Any, Any], tuple[Any, frozenset[str]]] | None = None
    adapt_table: Callable[[Any], Any] = lambda table: table
    views_local_tables: bool = False
    copies_local_tables: bool = False
    send_unlogged: Callable[[Any, str, Any], AbstractContextManager[Any]] | None = None
    text_bytes: Callable[[Any], Any] | None = None
    bytes_text: Callable[[Any], Any] | None = None
    digest: Callable[[Any], Any] | None = None
    hash_number: Callable[..., Any] | None = None
    drop_broken_text: Callable[[Any], Any] = lambda text: text
    number_string: Callable[[Any, str, int], Any] | None = None
    like: Callable[[Any, str], Any] = _like
    fold_case: Callable[[Any, str], Any] = _translate_case
    trim: Callable[[Any, str], Any] | None = None
    text_end: str = "$"
    has_try_cast: bool = True
    limit_to_calendar: Callable[[Any, str], Any] | None = None
    count_days: Callable[[Any], Any] | None = None
    count_seconds: Callable[[Any], Any] | None = None
    cell_readers: Mapping[str, Callable[[Any], Any | None]] | None = None
    spell_user: Callable[[Any], Any] | None = None
    dates_are_text: bool = False
    find_trouble: Callable[[Any], str | None] = lambda backend: None
    total_type: str = "decimal(38, 0)"
    to_float: Callable[[Any], Any] = lambda number: number.cast("float64")

    @property
    def has_typed_columns(self) -> bool:
        """Whether a column holds values of its declared type alone."""
        return self.cell_readers is None

    def check_column(self, argument: str, dtype: Any) -> None:
        """Raise unless two equal values of a type are known to be the same value on this engine.

        A collation may equate two spellings. A GROUP BY then takes one user's spelling for everybody's, and the item
        that all others touched has no users. The declared type decides, and no row does.
        """
        plain = dtype.is_numeric() or dtype.is_date() or dtype.is_boolean()
        given = "an unknown type" if dtype.is_unknown() else str(dtype)
        if not plain:
            self.check_text(argument, given)
        if not (plain or is_untyped(dtype) or any(getattr(dtype, f"is_{name}")() for name in _COMPARABLE)):
            raise InvalidTypeError(f"{argument} must hold plain values, such as numbers, dates or text, not {given}")

    def check_text(self, argument: str, given: str = "text") -> None:
        """Raise unless the engine is known to compare text by its bytes."""
        if self.text_bytes is None:
            raise InvalidTypeError(
                f"{argument} must hold numbers, dates or booleans on {self.title}, not {given}: discreet does not know "
                "how that engine tells spellings apart"
            )

    def group_key(self, value: Any) -> Any:
        """Return what to group and join by: the bytes of a text, and any other value as it is."""
        if not value.type().is_string():
            return value
        self.check_text("a column to compare")
        assert self.text_bytes is not None, "checked before"
        return self.text_bytes(value)

    def drop_collation(self, text: Any) -> Any:
        """Return a text that is compared by its bytes, whatever the collation of its column."""
        return text if self.bytes_text is None else self.bytes_text(self.group_key(text))

    def hash_texts(self, *texts: Any) -> Any:
        """The first 48 bits of the MD5 of some texts, one after the other, as something that is ordered by them."""
        if self.hash_number is not None:
            return self.hash_number(*texts)
        assert self.digest is not None, "checked when the source was made"
        return self.group_key(self.digest(reduce(operator.add, texts)).left(12))

    def text_of_key(self, key: Any, is_text: bool) -> Any:
        """What `group_key` made of a value, as text; `is_text` says whether the value was."""
        if is_text and self.bytes_text is not None:
            return self.bytes_text(key)
        if key.type().is_boolean():
            return key.ifelse("true", "false")
        # Bytes need not be text, which SQLite alone does not mind.
        is_strict = key.type().is_binary() and self.has_typed_columns
        return self.digest(key) if is_strict and self.digest is not None else key.cast("string")


@cache
def list_engines() -> frozenset[str]:
    """The names of the engines that have a file in `dialects/`."""
    return frozenset(module.name for module in iter_modules(dialects.__path__)) - {"base"}


def dialect_named(name: str) -> Dialect:
    """The dialect of an engine, by the name that ibis or the scheme of a URL has for it."""
    if name not in list_engines():
        return Dialect(name=name, title=name)
    known: Dialect = import_module(f"{dialects.__name__}.{name}").DIALECT
    return known


def dialect_of(table: Any) -> Dialect:
    """The dialect of the engine of an ibis table."""
    return dialect_named(str(table.get_backend().name))


def trim_spaces(text: Any, name: str) -> Any:
    """A trim that is told what to remove: DuckDB removes more unless told."""
    return engine_function(name, "string", "string", "string")(text, " ")


def cast_to_bytes(text: Any) -> Any:
    """The bytes of a text, where a cast gives just those."""
    return text.cast("binary")


def cast_to_text(spelled: Any) -> Any:
    """The text of bytes, where a cast undoes `cast_to_bytes`."""
    return spelled.cast("string")


def digest_bytes(value: Any, text_bytes: Callable[[Any], Any]) -> Any:
    """The engine's MD5 of bytes, or of the bytes of a text."""
    return engine_function("md5", "string", "binary")(value if value.type().is_binary() else text_bytes(value))


SENT_TYPES = frozenset({"int64", "string", "date32[day]", "bool"})
"""The types of columns of Arrow that `Dialect.send_unlogged` takes."""


def declare_columns(rows: Any, types: list[str]) -> str:
    """The columns of an Arrow table as the statement that makes a table names them."""
    return ", ".join(f"{name} {kind}" for name, kind in zip(rows.column_names, types, strict=True))


def iterate_rows(rows: Any) -> Iterator[tuple[Any, ...]]:
    """The rows of an Arrow table."""
    return zip(*(column.to_pylist() for column in rows.columns), strict=True)

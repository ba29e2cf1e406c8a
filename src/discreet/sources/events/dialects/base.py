"""The differences between engines: other code uses the `Dialect` of an engine and never compares its name.

To add an engine, write its Dialect into a module of its name in `dialects/`, where functions have the names of the
attributes of `Dialect`, and add a line to the contract tests. Any other engine of ibis gets a generic dialect that
accepts numbers, dates and booleans but no text, because its collation may treat two spellings as equal; nothing private
is sent to it. So does an engine whose dialect was never run: such a dialect compiles statements (`compiled`), and a
connection does not trust it.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import date
from functools import cache, reduce
from importlib import import_module
from pkgutil import iter_modules
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from discreet.errors import InvalidTypeError
from discreet.sources.events import dialects
from discreet.sources.events.case_folding import list_folds
from discreet.sources.events.cells import engine_function, is_untyped
from discreet.sources.events.formats import USUAL_FORMATS, Formats

Close = Callable[[], None]

SENT_TYPES = frozenset({"int64", "string", "date32[day]", "bool"})
"""The Arrow types of the columns that `Dialect.send_unlogged` takes."""

_COMPARABLE = ("string", "timestamp", "time", "uuid", "binary", "inet", "macaddr")
"""The types, beside numbers, dates and booleans, whose equal values are the same value. Intervals are not: 1 month
equals 30 days."""


def make_literal(value: Any) -> Any:
    """Return a value as an expression of ibis."""
    import ibis

    return ibis.literal(value)


def connect_by_ibis(url: str) -> tuple[Any, Close]:
    """Return a connection to a URL, and the function that closes it."""
    import ibis

    connection = ibis.connect(url)
    return connection, connection.disconnect


@dataclass(frozen=True, eq=False, repr=False)
class Dialect:
    """The functions and settings by which all engines give the same answers. None stands for an unknown function.

    Attributes
    ----------
    name, title
        The name of the engine in ibis, and in messages about one that was opened by its URL.
    packages
        The packages of its driver for pip, if ibis' own extra is not enough.
    was_run
        True if the contract tests run on the engine; otherwise the dialect was reviewed, and compiles statements alone.
    is_file
        True if its URL is the path of a file, which opening would create.
    connect
        Return a connection to a URL, and the function that closes it.
    declare_types
        Return a table without the types that ibis inferred from rows, and the names of its columns that then have no
        type; None if every column has a declared type.
    adapt_table
        Return a table whose column types ibis knows, with enums and custom text types as text. Raise if a setting of
        the connection changes how text is compared.
    describe_type
        Return the name of the type of a column of such a table, for messages.
    views_local_tables
        True if a table in memory must become a view before the engine can cache queries on it.
    copies_local_tables
        True if public tables in memory are sent by `send_unlogged` too; ibis would send one statement for each row.
    send_unlogged
        Make a temporary table from an Arrow table in a way that no log, history or plan of the engine shows. If None,
        nothing private is sent.
    counts_distinct
        True if ibis' count of distinct values is exact; otherwise distinct rows are counted.
    cache
        Return a temporary table with the rows of a query, which its method `release` drops.
    text_bytes
        Return the bytes of a text, in UTF-8 or in the encoding of the database. No collation changes their equality and
        order, and no text makes it fail. If None, columns of text are refused.
    bytes_text, digest
        Return the text of the bytes that `text_bytes` returns, and the hexadecimal MD5 of bytes or of a text's bytes.
    fit_key
        Return the bytes of a text of a row, NULL if they are too many to be grouped by.
    drop_affinity
        Return a key of a public list as an expression that is joined to computed keys by an index.
    index_items
        Return a public list in a form whose items are found by an index when computed keys are joined to it.
    hash_number
        Return the first 48 bits of the MD5 of the concatenation of some texts in UTF-8 as a number; None if comparing
        their digits is faster.
    drop_broken_text
        Return a text, NULL if its bytes are no text and cannot be read outside of the engine.
    number_string
        Return the number of a text among all strings over an alphabet up to a length (`ranges`), or NULL; None if the
        number is computed as a sum over the places of the text.
    find
        Return the place of a text in another one, counted from 0 in characters, or -1.
    like, fold_case, trim
        Return a case-sensitive LIKE; a text with A to Z in "lower" or "upper" case; a text without spaces at its ends
        ("trim", "ltrim" or "rtrim").
    clean_text, fold
        Return a text, NULL if it is broken, has a NUL or is longer than LONGEST_TEXT; and such a text after Unicode
        simple case folding (`case_folding`). If None, text is not folded.
    substring
        The function that returns some characters of a text, from a place counted from 1.
    text_end
        The end of a text in a regular expression.
    parses_text
        True if text is read as numbers, dates and booleans too.
    has_try_cast
        True if TRY_CAST returns NULL for a cast that fails; otherwise CASE must exclude such cells.
    has_nan
        True if a float can be NaN.
    digits_type
        A decimal type that holds every whole number of 40 digits; used without TRY_CAST.
    limit_to_calendar
        Return a date or timestamp, NULL outside of the years 1 to 9999. With this function, dates, timestamps and
        booleans convert to text and back as ISO 8601 spells them.
    date_literal
        Return a date of Python as an expression.
    shift_right
        Return a whole number divided by a power of 2, rounded down.
    count_days, count_seconds
        Return the days of a date and the whole seconds of a timestamp since 1970 in UTC, rounded down, for any time
        zone of the session; a column without a zone is in UTC. Values outside of the years 1 to 9999 may be NULL.
    extract_part
        Return a part of a day, or of a second, since 1970, whichever is not NULL, for a parser that limits the depth
        of expressions; None if arithmetic does it.
    cell_readers, user_key
        Read a cell as each kind, and as the key of a user, if cells have types of their own; None if columns do.
    dates_are_text
        True if dates and timestamps are stored as text.
    find_trouble
        Return the predicate of a sentence about the engine that names a lack, such as no room for temporary files, or
        None if a connection lacks nothing.
    spell_key
        Return a value that is neither text, bytes nor a boolean as text, without failure.
    total_type
        A type in which sums of 64-bit integers neither overflow nor wrap.
    to_float
        Return a number of any type as a double, without failure: numbers beyond all doubles become the largest or
        infinite, numbers too small become 0, and NaN becomes NaN or NULL.
    formats
        The formats of dates and numbers in text, as the caller of `events` states them.
    """

    name: str
    title: str
    packages: tuple[str, ...] = ()
    was_run: bool = True
    is_file: bool = False
    connect: Callable[[str], tuple[Any, Close]] = connect_by_ibis
    declare_types: Callable[[Any, Any], tuple[Any, frozenset[str]]] | None = None
    adapt_table: Callable[[Any], Any] = lambda table: table
    describe_type: Callable[[Any], str] = lambda column: str(column.type())
    views_local_tables: bool = False
    copies_local_tables: bool = False
    send_unlogged: Callable[[Any, str, Any], AbstractContextManager[Any]] | None = None
    counts_distinct: bool = True
    cache: Callable[[Any], Any] = operator.methodcaller("cache")
    text_bytes: Callable[[Any], Any] | None = None
    bytes_text: Callable[[Any], Any] | None = None
    digest: Callable[[Any], Any] | None = None
    fit_key: Callable[[Any], Any] = lambda key: key
    drop_affinity: Callable[[Any], Any] = lambda key: key
    index_items: Callable[[Any], Any] = lambda listed: listed
    hash_number: Callable[..., Any] | None = None
    drop_broken_text: Callable[[Any], Any] = lambda text: text
    number_string: Callable[[Any, str, int], Any] | None = None
    find: Callable[[Any, Any], Any] = lambda part, text: make_literal(text).find(part)
    like: Callable[[Any, str], Any] = lambda text, pattern: text.like(pattern)
    # Letters other than A to Z depend on versions and locales, and stay.
    fold_case: Callable[[Any, str], Any] = lambda text, case: text.translate(
        *((ascii_uppercase, ascii_lowercase) if case == "lower" else (ascii_lowercase, ascii_uppercase))
    )
    trim: Callable[[Any, str], Any] | None = None
    clean_text: Callable[[Any], Any] | None = None
    fold: Callable[[Any], Any] | None = None
    substring: str = "substr"
    text_end: str = "$"
    parses_text: bool = True
    has_try_cast: bool = True
    has_nan: bool = True
    digits_type: str = "decimal"
    limit_to_calendar: Callable[[Any, str], Any] | None = None
    date_literal: Callable[[date], Any] = make_literal
    shift_right: Callable[[Any, int], Any] = operator.rshift
    count_days: Callable[[Any], Any] | None = None
    count_seconds: Callable[[Any], Any] | None = None
    extract_part: Callable[[Any, Any, str], Any] | None = None
    cell_readers: Mapping[str, Callable[[Any, Formats], Any | None]] | None = None
    user_key: Callable[[Any], Any] | None = None
    dates_are_text: bool = False
    find_trouble: Callable[[Any], str | None] = lambda backend: None
    spell_key: Callable[[Any], Any] = lambda key: key.cast("string")
    total_type: str = "decimal(38, 0)"
    to_float: Callable[[Any], Any] = lambda number: number.cast("float64")
    formats: Formats = USUAL_FORMATS

    @property
    def has_typed_columns(self) -> bool:
        """True if a column holds only values of its declared type."""
        return self.cell_readers is None

    @property
    def has_bounds(self) -> bool:
        """True if bit masks and windows are known to do the same as on other engines, which a bound needs."""
        return self.text_bytes is not None

    def check_column(self, argument: str, dtype: Any) -> None:
        """Raise unless equal values of a type are known to be the same value on this engine.

        A collation may treat two spellings as equal. A GROUP BY then returns one user's spelling for all of them, and
        the item that the others touched has no users. The declared type decides this, and no row does.
        """
        if dtype.is_numeric() or dtype.is_date() or dtype.is_boolean():
            return
        given = "an unknown type" if dtype.is_unknown() else str(dtype)
        self.check_text(argument, given)
        if not (any(getattr(dtype, f"is_{name}")() for name in _COMPARABLE) or is_untyped(dtype)):
            raise InvalidTypeError(f"{argument} must hold plain values, such as numbers, dates or text, not {given}")

    def check_text(self, argument: str, given: str = "text") -> None:
        """Raise unless the engine is known to compare text by its bytes."""
        if self.text_bytes is None:
            raise InvalidTypeError(
                f"{argument} must hold numbers, dates or booleans on {self.title}, not {given}: discreet does not know "
                "how that engine tells spellings apart"
            )

    def group_key(self, value: Any) -> Any:
        """Return the key to group and join by: the bytes of a text, or any other value unchanged."""
        if not value.type().is_string():
            return value
        self.check_text("a column to compare")
        assert self.text_bytes is not None, "checked before"
        return self.text_bytes(value)

    def row_key(self, value: Any) -> Any:
        """Return the key of a value of a row to group by, NULL for a text that the engine cannot group by."""
        key = self.group_key(value)
        return self.fit_key(key) if value.type().is_string() else key

    def drop_collation(self, text: Any) -> Any:
        """Return a text that is compared by its bytes, regardless of its column's collation."""
        return text if self.bytes_text is None else self.bytes_text(self.group_key(text))

    def hash_texts(self, *texts: Any) -> Any:
        """Return the first 48 bits of the MD5 of concatenated texts, as a value with the order of those bits."""
        if self.hash_number is not None:
            return self.hash_number(*texts)
        assert self.digest is not None, "checked when the source was made"
        return self.group_key(self.digest(reduce(operator.add, texts)).left(12))

    def text_of_key(self, key: Any, is_text: bool) -> Any:
        """Return a result of `group_key` as text; `is_text` is True if the original value was text."""
        if is_text and self.bytes_text is not None:
            return self.bytes_text(key)
        if key.type().is_boolean():
            return key.ifelse("true", "false")
        # Bytes need not be text, which only SQLite accepts.
        is_strict = key.type().is_binary() and self.has_typed_columns
        return self.digest(key) if is_strict and self.digest is not None else self.spell_key(key)


@cache
def list_engines() -> frozenset[str]:
    """Return the names of the engines that have a module in `dialects/`."""
    return frozenset(module.name for module in iter_modules(dialects.__path__)) - {"base"}


def dialect_named(name: str, runs: bool = True) -> Dialect:
    """Return the dialect of an engine by its name in ibis or by the scheme of a URL.

    A dialect that was never run is returned only where the engine does not run the statements (`runs` is False).
    """
    if name in list_engines():
        known: Dialect = import_module(f"{dialects.__name__}.{name}").DIALECT
        if known.was_run or not runs:
            return known
    # Some engines count distinct values approximately, and one user can move an approximation by any number.
    return Dialect(name=name, title=name, counts_distinct=False)


def dialect_of(table: Any) -> Dialect:
    """Return the dialect of the engine of an ibis table; a backend without a connection has `runs` set to False."""
    backend = table.get_backend()
    return dialect_named(str(backend.name), getattr(backend, "runs", True))


def trim_spaces(text: Any, name: str) -> Any:
    """Return a text without spaces at its ends; DuckDB removes other blanks too unless spaces are named."""
    return engine_function(name, "string", "string", "string")(text, " ")


def fold_below(text: Any, limit: int = 0x110000) -> Any:
    """Return a text with characters below a limit after simple case folding, and others unchanged."""
    folds = {code: folded for code, folded in list_folds().items() if code < limit}
    return text.translate("".join(map(chr, folds)), "".join(map(chr, folds.values())))


def cast_to_bytes(text: Any) -> Any:
    """Return the bytes of a text on engines where a cast gives them."""
    return text.cast("binary")


def cast_to_text(spelled: Any) -> Any:
    """Return the text of bytes on engines where a cast reverses `cast_to_bytes`."""
    return spelled.cast("string")


def digest_bytes(value: Any, text_bytes: Callable[[Any], Any]) -> Any:
    """Return the engine's MD5 of bytes, or of the bytes of a text."""
    return engine_function("md5", "string", "binary")(value if value.type().is_binary() else text_bytes(value))


def declare_columns(rows: Any, types: list[str]) -> str:
    """Return the columns of an Arrow table as in CREATE TABLE."""
    return ", ".join(f"{name} {kind}" for name, kind in zip(rows.column_names, types, strict=True))


def iterate_rows(rows: Any) -> Iterator[tuple[Any, ...]]:
    """Return the rows of an Arrow table."""
    return zip(*(column.to_pylist() for column in rows.columns), strict=True)

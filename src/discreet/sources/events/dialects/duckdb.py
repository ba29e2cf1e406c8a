"""The dialect of DuckDB, in memory or in a file, and the connections to it."""

from __future__ import annotations

import atexit
import operator
import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import date
from functools import reduce
from pathlib import Path
from typing import Any

from discreet.errors import InvalidValueError
from discreet.sources.events.case_folding import fold_case
from discreet.sources.events.cells import (
    FIRST_SECOND,
    LAST_SECOND,
    LONGEST_TEXT,
    SECONDS_PER_DAY,
    engine_function,
    null_unless,
)
from discreet.sources.events.dialects.base import Close, Dialect, digest_bytes, trim_spaces
from discreet.sources.events.engine import EngineError

_FIRST_MICROSECOND, _LAST_MICROSECOND = FIRST_SECOND * 10**6, LAST_SECOND * 10**6 + 999_999
"""The first microsecond of year 1 and the last of year 9999, counted from 1970."""

_FOLD = "discreet_fold"

NO_EXTENSIONS: dict[str, Any] = {"autoinstall_known_extensions": False, "autoload_known_extensions": False}
"""The settings of a DuckDB that neither installs nor loads extensions by itself."""


class SpillFolder:
    """A new folder that only this user may enter, removed with this object or at the end of the process.

    By default DuckDB writes rows that do not fit into memory to a folder that everybody can read.
    """

    def __init__(self) -> None:
        try:
            self.path = tempfile.mkdtemp(prefix="discreet-")
        except OSError:
            raise EngineError("DuckDB must have a folder for temporary files that can be written: set TMPDIR") from None
        self.remove = weakref.finalize(self, _remove, self.path, os.getpid())

    def settings(self) -> dict[str, Any]:
        """Return the settings of a DuckDB that spills into this folder."""
        return {"temp_directory": self.path, **NO_EXTENSIONS}


def connect_in_memory() -> tuple[Any, Close]:
    """Return an ibis connection to a new DuckDB in memory, and the function that closes it."""
    import ibis

    folder = SpillFolder()
    backend = ibis.duckdb.connect(**folder.settings())

    def close() -> None:
        backend.disconnect()
        folder.remove()

    return backend, close


def connect_to_file(url: str) -> tuple[Any, Close]:
    """Return an ibis connection to a database file, and the function that closes it.

    A file that this process has open already keeps its settings. Otherwise they are set after connecting, because
    DuckDB refuses a second connection with other options, which the caller may want to open.
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

    def close() -> None:
        try:
            for name in folder.settings():
                backend.con.execute(f"RESET {name}")
            is_reset = True
        except Exception:
            # DuckDB refuses this once it has spilled.
            is_reset = False
        backend.disconnect()
        if is_reset or not _is_open_here(path):
            folder.remove()
        else:
            # The caller has the file open too, and that DuckDB still spills into this folder.
            atexit.register(lambda: folder.remove())

    return backend, close


def _remove(folder: str, process: int) -> None:
    # A forked process must not remove the folder of its parent.
    if os.getpid() == process:
        shutil.rmtree(folder, ignore_errors=True)


def _is_open_here(path: str) -> bool:
    """Return True if this process has a database file open: DuckDB then refuses a connection with other options."""
    import duckdb

    try:
        duckdb.connect(path, read_only=True, config=NO_EXTENSIONS).close()
    except duckdb.ConnectionException:
        return True
    except duckdb.Error:
        # The connection that follows reports the error.
        return False
    return False


def text_bytes(text: Any) -> Any:
    """Return the bytes of a text in UTF-8."""
    return engine_function("encode", "binary", "string")(text)


def adapt_table(table: Any) -> Any:
    """Return the table, or raise if its connection has a default collation, which compares text in another way."""
    (collation,) = table.get_backend().con.execute("SELECT current_setting('default_collation')").fetchone()
    if collation not in ("", "binary"):
        raise InvalidValueError("table must be on a DuckDB without default_collation: RESET default_collation first")
    return table


def find_trouble(backend: Any) -> str | None:
    """Return a message if DuckDB cannot write to its temporary folder, or to the parent of one that does not exist."""
    (folder,) = backend.con.execute("SELECT current_setting('temp_directory')").fetchone()
    above = next((each for each in (Path(folder), *Path(folder).absolute().parents) if each.exists()), None)
    if not folder or (above is not None and above.is_dir() and os.access(above, os.W_OK | os.X_OK)):
        return None
    return "must have a temp_directory that can be written: SET temp_directory"


@contextmanager
def send_unlogged(backend: Any, name: str, rows: Any) -> Iterator[Any]:
    """Yield a view of the Arrow table, which DuckDB scans in place."""
    backend.con.register(name, rows)
    try:
        yield backend.table(name)
    finally:
        backend.con.unregister(name)


def limit_to_calendar(column: Any, kind: str) -> Any:
    """Return a date, or a timestamp in microseconds, NULL outside of the years 1 to 9999, which ISO 8601 can spell."""
    if kind == "date":
        found, steps, unit = column, _count_all_days(column), SECONDS_PER_DAY * 10**6
    else:
        # TRY, because TRY_CAST fails on a timestamp that microseconds cannot hold.
        found = engine_function("try", kind, kind)(column.cast(kind))
        steps, unit = _count_microseconds(found), 1
    return null_unless(steps.between(_FIRST_MICROSECOND // unit, _LAST_MICROSECOND // unit), found)


def _count_all_days(day: Any) -> Any:
    """Return the days since 1970 of any date, also of those that no timestamp can hold."""
    import ibis

    count = engine_function("date_diff", "int64", "string", "date", "date")
    return count("day", ibis.literal(date(1970, 1, 1)), day)


def _count_microseconds(moment: Any) -> Any:
    return engine_function("epoch_us", "int64", str(moment.type()))(moment)


def count_seconds(column: Any) -> Any:
    """Return the whole seconds of a timestamp since 1970, rounded down."""
    moment = limit_to_calendar(column, "timestamp" if column.type().timezone is None else "timestamp('UTC')")
    # The division of integers rounds towards zero. The dividend is not negative here, so the result is rounded down.
    divide = engine_function("divide", "int64", "int64", "int64")
    return divide(_count_microseconds(moment) - _FIRST_MICROSECOND, 10**6) + FIRST_SECOND


def hash_number(*texts: Any) -> Any:
    """Return the first 48 bits of MD5 as a number, which is faster to make and sort than their digits.

    One call joins all texts, which is faster than one by one. DuckDB's MD5 is a number of 128 bits whose lowest byte is
    the first byte of the hash; ibis has no type for it.
    """
    concat = engine_function("concat", "string", *["string"] * len(texts), catalog="system", database="main")
    first = (engine_function("md5_number", "uint64", "string")(concat(*texts)) & (2**48 - 1)).cast("uint64")
    from_below = ((first & (0xFF << 8 * i)) << 8 * (5 - 2 * i) for i in range(3))
    from_above = ((first >> 8 * (2 * i - 5)) & (0xFF << 8 * (5 - i)) for i in range(3, 6))
    return reduce(operator.or_, [*from_below, *from_above])


def clean_text(text: Any) -> Any:
    """Return a text, NULL if it has a NUL or is too long; DuckDB refuses bytes that are not UTF-8 by itself."""
    length = engine_function("strlen", "int64", "string")(text)
    return null_unless((length <= LONGEST_TEXT) & ~text.re_search(r"\x00"), text)


def fold(text: Any) -> Any:
    """Return a text after simple case folding by a function of Python, which is registered with the connection.

    DuckDB's `translate` prepares its table anew for each row, which takes fifty times as long.
    """
    import duckdb

    # The catalogue is shared by all connections to a database, and outlives the one that registered the function.
    with suppress(duckdb.CatalogException, duckdb.NotImplementedException):
        connection = text.get_backend().con
        # A native function copies each result into DuckDB's memory. The results of type "arrow" stay in memory of
        # pyarrow, which COALESCE reads after it is freed (DuckDB 1.5.6): rows then have texts of other rows.
        connection.create_function(_FOLD, fold_case, ["VARCHAR"], "VARCHAR", type="native")
    return engine_function(_FOLD, "string", "string", catalog="system", database="main")(text)


DIALECT = Dialect(
    name="duckdb",
    title="DuckDB",
    is_file=True,
    connect=connect_to_file,
    adapt_table=adapt_table,
    find_trouble=find_trouble,
    send_unlogged=send_unlogged,
    text_bytes=text_bytes,
    bytes_text=lambda spelled: engine_function("decode", "string", "binary")(spelled),
    digest=lambda value: digest_bytes(value, text_bytes),
    hash_number=hash_number,
    trim=trim_spaces,
    clean_text=clean_text,
    fold=fold,
    limit_to_calendar=limit_to_calendar,
    count_days=lambda day: _count_all_days(limit_to_calendar(day, "date")),
    count_seconds=count_seconds,
)

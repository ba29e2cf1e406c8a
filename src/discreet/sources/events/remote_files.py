"""Files by URL, which DuckDB reads with its extension httpfs, where the caller has installed that.

What stands before the host of a URL or after its path may be a password or a signature, so messages have neither.
"""

from __future__ import annotations

import os
import re
from typing import Any

from discreet.errors import InvalidValueError, MissingExtraError, quote

SCHEMES = ("https", "http", "s3", "gs")
_BUCKETS = ("s3", "gs")
"""Those that can list what they hold."""

_MISSING = (
    "files by URL need DuckDB's extension httpfs, which is not installed and is never installed by discreet: run "
    "INSTALL httpfs once in DuckDB, as in python -c \"import duckdb; duckdb.sql('INSTALL httpfs')\""
)


def is_remote(given: Any) -> bool:
    """Whether something is the URL of a file."""
    return isinstance(given, str) and given.partition("://")[0] in SCHEMES and "://" in given


def redact_url(path: str) -> str:
    """A URL without what may be secret in it: a name and a password, a query; any other path as it is.

    Examples
    --------
    >>> redact_url("https://ann:pw@example.org/events.csv?X-Amz-Signature=ab12")
    'https://example.org/events.csv'
    """
    if not is_remote(path):
        return path
    scheme, _, rest = path.partition("://")
    place = re.split("[?#]", rest)[0]
    authority = place.partition("/")[0]
    # A password may hold any sign, and then what looks like the host or the path is part of it.
    if "@" in rest[len(authority) :]:
        return f"{scheme}://..."
    return f"{scheme}://{authority.rpartition('@')[2]}{place[len(authority) :]}"


def quote_path(path: str | os.PathLike[str]) -> str:
    """A path as messages name it."""
    return quote(redact_url(os.fspath(path)))


def is_remote_pattern(path: str) -> bool:
    """Whether a URL stands for several files of a bucket."""
    return path.partition("://")[0] in _BUCKETS and "*" in path


def check_remote_file(url: str, ending: str | None, endings: tuple[str, ...], argument: str) -> None:
    """Raises unless a URL has the name of one file that can be read, or of several in a bucket."""
    if ending is None or ending == ".json":
        # Whether one array or lines are in a .json file is known after its first byte, for which all of it is fetched.
        allowed = ", ".join(each for each in endings if each != ".json")
        raise InvalidValueError(f"{argument} must be a URL that ends in one of {allowed}, not {quote_path(url)}")
    if "*" in url and not is_remote_pattern(url):
        raise InvalidValueError(
            f"{argument} must be the URL of one file, not the pattern {quote_path(url)}: s3:// and gs:// have those"
        )


def load_httpfs(connection: Any) -> None:
    """Lets an ibis connection to DuckDB read files by URL, if the extension is there."""
    import duckdb

    try:
        connection.con.execute("LOAD httpfs")
    except duckdb.Error:
        pass
    else:
        return
    raise MissingExtraError(_MISSING)


def list_remote_files(connection: Any, path: str) -> list[str]:
    """The files of a bucket that a pattern stands for, in the order of their names; any other path as it is."""
    if not is_remote_pattern(path):
        return [path]
    return sorted(row[0] for row in connection.con.execute("SELECT file FROM glob(?)", [path]).fetchall())


def escape_remote_pattern(path: str) -> str:
    """A file of a bucket as DuckDB takes it, which reads a star in its name as a pattern of others."""
    return re.sub(r"[*\[]", r"[\g<0>]", path) if path.partition("://")[0] in _BUCKETS else path


def read_first_line_by_url(connection: Any, url: str, longest: int) -> bytes:
    """The first line of a file, compressed or not; no other line can make that fail."""
    # Every byte is a character of Latin-1, and none of them is passed over.
    columns = "{'line': 'VARCHAR'}"
    fixed = "header = false, auto_detect = false, delim = '\x1f', quote = '', escape = '', encoding = 'latin-1'"
    sizes = f"max_line_size = {longest}, buffer_size = {2 * longest}, parallel = false, ignore_errors = true"
    query = f"SELECT line FROM read_csv(?, columns = {columns}, {fixed}, {sizes}, strict_mode = false) LIMIT 1"  # noqa: S608  # of constants
    row = connection.con.execute(query, [escape_remote_pattern(url)]).fetchone()
    line: str = (row and row[0]) or ""
    return re.split("[\r\n]", line, maxsplit=1)[0].encode("latin-1")

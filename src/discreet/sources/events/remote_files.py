"""Files by URL, which DuckDB reads with its extension httpfs, where the caller has installed that.

What stands before the host of a URL or after its path may be a password or a signature, so messages have neither.
"""

from __future__ import annotations

import os
import posixpath
import re
import uuid
from fnmatch import fnmatchcase
from typing import Any
from urllib.parse import urlsplit

from discreet.errors import InvalidValueError, MissingExtraError, quote
from discreet.redaction import redact_url

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


def is_remote_pattern(path: str) -> bool:
    """Whether a URL stands for several files of a bucket."""
    return path.partition("://")[0] in _BUCKETS and "*" in path


def check_remote_file(url: str, ending: str | None, endings: tuple[str, ...], argument: str) -> None:
    """Raises unless a URL has the name of one file that can be read, or of several in a bucket."""
    if ending is None or ending == ".json":
        # Whether one array or lines are in a .json file is known after its first byte, for which all of it is fetched.
        allowed = ", ".join(each for each in endings if each != ".json")
        raise InvalidValueError(f"{argument} must be a URL that ends in one of {allowed}, not {quote(url)}")
    if "*" in url and not is_remote_pattern(url):
        raise InvalidValueError(
            f"{argument} must be the URL of one file, not the pattern {quote(url)}: s3:// and gs:// have those"
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


def fetch_text_file(connection: Any, url: str) -> str:
    """Return the path of a copy of a file by URL, in the folder where the connection spills, with which it goes.

    Rows of text are read by our own code, which needs the bytes of the file; DuckDB hands them out as a whole.
    """
    (folder,) = connection.con.execute("SELECT current_setting('temp_directory')").fetchone()
    suffix = posixpath.splitext(re.split("[?#]", url)[0])[1]
    (content,) = connection.con.execute("SELECT content FROM read_blob(?)", [escape_remote_pattern(url)]).fetchone()
    path = os.path.join(folder, f"{uuid.uuid4().hex}{suffix}")
    with open(path, "wb") as out:
        out.write(content)
    return path


_PORTS = {"https": 443, "http": 80}


def locate_remote_file(url: str) -> str | None:
    """Where a URL points, in one spelling; None where that cannot be told from a password."""
    plain = redact_url(url)
    if plain.endswith("://..."):
        return None
    parts = urlsplit(plain)
    host = parts.netloc.lower().removesuffix(f":{_PORTS.get(parts.scheme)}")
    return f"{parts.scheme}://{host}{posixpath.normpath(parts.path or '/')}"


def matches_pattern(file: str, pattern: str) -> bool:
    """Whether one place of files is a pattern of a bucket that has the other."""
    return is_remote_pattern(pattern) and fnmatchcase(file, pattern)

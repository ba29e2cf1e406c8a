"""Which files a caller means: a path, a pattern, a folder, a URL, or several of these.

Which files a pattern or a folder holds is not for all to see, because they may be named after people: messages name
what the caller gave.
"""

from __future__ import annotations

import glob
import os
import posixpath
import re
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from discreet.errors import InvalidValueError, MissingExtraError, quote, redact_url

# Files by URL, which DuckDB reads with its extension httpfs, where the caller has installed that.
#
# What stands before the host of a URL or after its path may be a password or a signature, so messages have neither.

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


ENDINGS = (".parquet", ".csv", ".tsv", ".json", ".jsonl", ".ndjson")
_READABLE = (".gz", ".zst")
_COMPRESSIONS = (*_READABLE, ".bz2", ".xz", ".lz4", ".br", ".zip")


@dataclass(frozen=True, repr=False)
class FoundFiles:
    """The files that a caller means.

    Attributes
    ----------
    files
        Their paths, each once; a pattern of a bucket is listed where it is opened.
    ending
        What all of them end in, compression aside.
    given
        What the caller gave, for messages.
    several
        Whether it may stand for several files, however many there are.
    """

    files: list[str]
    ending: str
    given: str
    several: bool


def is_path(given: Any) -> bool:
    """Whether something is a path, a pattern or a folder."""
    return isinstance(given, str | os.PathLike)


def is_paths(given: Any) -> bool:
    """Whether something is a list of paths."""
    return isinstance(given, list | tuple) and bool(given) and all(map(is_path, given))


def find_files(given: Any, argument: str) -> FoundFiles:
    """The files behind a path or a list of paths; `argument` is what messages call it."""
    paths = [os.fspath(each) for each in given] if is_paths(given) else [os.fspath(given)]
    found = [(path, [path] if is_remote(path) else list_files(path)) for path in paths]
    for path, files in found:
        _check_files(path, files, argument)
    files = list(dict.fromkeys(file for _, each in found for file in each))
    named = quote(paths[0]) + ("" if len(paths) == 1 else f" and {len(paths) - 1} more")
    return FoundFiles(files, _find_ending(files, named, argument), named, len(paths) > 1 or _is_several(paths[0]))


def list_files(path: str) -> list[str]:
    """The files that a path, a pattern or a folder stands for, in the order of their names."""
    # Half of a surrogate pair is in no name of a file.
    if not _is_nameable(path):
        return []
    matches = sorted(glob.glob(path, recursive=True)) or ([path] if os.path.exists(path) else [])
    return [file for match in matches for file in (_list_folder(match) if os.path.isdir(match) else [match])]


def ending_of(path: str) -> str | None:
    """The ending that says what is inside, looking through compression and patterns."""
    suffixes = [suffix.lower() for suffix in _suffixes_of(path)]
    while suffixes and suffixes[-1] in _COMPRESSIONS:
        suffixes.pop()
    return suffixes[-1] if suffixes and suffixes[-1] in ENDINGS else None


def _suffixes_of(path: str) -> list[str]:
    return Path(re.split("[?#]", path)[0] if is_remote(path) else path).suffixes


def endings_of(given: Any) -> set[str | None]:
    """The endings of what a path or a list of paths stands for."""
    paths = [os.fspath(each) for each in (given if is_paths(given) else [given])]
    return {ending_of(each) for path in paths for each in (list_files(path) if os.path.isdir(path) else [path])}


def _list_folder(folder: str) -> list[str]:
    """The files of a known kind below a folder; what tools put beside them, such as _SUCCESS, is none."""
    below = (os.path.join(where, name) for where, _, names in os.walk(folder) for name in names)
    return sorted(file for file in below if ending_of(file) and not os.path.basename(file).startswith((".", "_")))


def _is_nameable(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return "\0" not in path


def _is_several(path: str) -> bool:
    if is_remote(path):
        return is_remote_pattern(path)
    return os.path.isdir(path) or (glob.has_magic(path) and not os.path.exists(path))


def _check_files(path: str, files: Sequence[str], argument: str) -> None:
    _check_compression(path, files, argument)
    if is_remote(path):
        check_remote_file(path, ending_of(path), ENDINGS, argument)
        return
    if not files and os.path.isdir(path):
        raise InvalidValueError(
            f"{argument} must be a folder with files that end in one of {', '.join(ENDINGS)}, and {quote(path)} "
            "has none"
        )
    if not files:
        raise InvalidValueError(f"{argument} must be a file that exists, not {quote(path)}")
    if not os.path.isdir(path) and ending_of(path) is None and not all(map(ending_of, files)):
        raise InvalidValueError(f"{argument} must end in one of {', '.join(ENDINGS)}, not be {quote(path)}")
    if not all(os.access(each, os.R_OK) for each in files):
        raise InvalidValueError(f"{argument} must be a file that can be read, not {quote(path)}")


def _check_compression(path: str, files: Sequence[str], argument: str) -> None:
    """Refuses what DuckDB would read as the bytes that it is, and find no rows in."""
    for file in files:
        suffix = _suffixes_of(file)[-1:]
        if not suffix or suffix[0].lower() not in _COMPRESSIONS:
            continue
        if ending_of(file) == ".parquet":
            raise InvalidValueError(
                f"{argument} must end in .parquet, which is compressed inside, not be {quote(path)}"
            )
        if suffix[0] not in _READABLE:
            raise InvalidValueError(f"{argument} must end in .gz or .zst where it is compressed, not be {quote(path)}")


def _find_ending(files: Sequence[str], named: str, argument: str) -> str:
    """The one ending that all files have."""
    endings = {str(ending_of(file)) for file in files}
    if len(endings) > 1:
        raise InvalidValueError(f"{argument} must be files of one kind, and {named} are of several: name those meant")
    return endings.pop()

"""Locations of tables and public lists: paths, patterns, folders, URLs of files, and databases.

`Location.parse` and `Location.parse_list` classify a text once; later code reads the attributes of the result. Files
may be named after people, so messages show only the text that the caller gave, and of a URL neither the part before
its host nor the part after its path, which can hold a password or a signature.
"""

from __future__ import annotations

import glob
import os
import posixpath
import re
import uuid
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from discreet.errors import InvalidTypeError, InvalidValueError, MissingExtraError, quote, redact_url

SCHEMES = ("https", "http", "s3", "gs")
"""The schemes of files that DuckDB reads with its extension httpfs."""
BUCKETS = ("s3", "gs")
"""The schemes that can list files, so that a star is a pattern."""
_PORTS = {"https": 443, "http": 80}

ENDINGS = (".parquet", ".csv", ".tsv", ".json", ".jsonl", ".ndjson")
_READABLE = (".gz", ".zst")
_COMPRESSIONS = (*_READABLE, ".bz2", ".xz", ".lz4", ".br", ".zip")

PREFIX = "connect:"
"""The beginning of a domain that is a column of a table in the database of the events."""


@dataclass(frozen=True)
class TableName:
    """The name of a table, and of its schema if the caller gave one."""

    table: str
    schema: str | None = None

    def __str__(self) -> str:
        return self.table if self.schema is None else f"{self.schema}.{self.table}"


@dataclass(frozen=True, repr=False)
class FilePath:
    """One path, pattern or folder on this machine, or one URL of files.

    Attributes
    ----------
    text
        The path or URL, as given.
    is_remote
        True for a URL.
    in_bucket
        True for a URL whose scheme can list files.
    is_other_url
        True for what looks like a URL of something else than files, such as a database.
    """

    text: str
    is_remote: bool = False
    in_bucket: bool = False
    is_other_url: bool = False

    @classmethod
    def parse(cls, text: str) -> FilePath:
        """Parse a path, or a URL that has one of `SCHEMES`."""
        scheme, mark, _ = text.partition("://")
        is_url, is_remote = bool(mark), scheme in SCHEMES
        return cls(text, is_url and is_remote, is_url and scheme in BUCKETS, is_url and not is_remote)

    @cached_property
    def ending(self) -> str | None:
        """The file name's ending, compression aside; None if it is not one of `ENDINGS`."""
        suffixes = [suffix.lower() for suffix in self._suffixes]
        while suffixes and suffixes[-1] in _COMPRESSIONS:
            suffixes.pop()
        return suffixes[-1] if suffixes and suffixes[-1] in ENDINGS else None

    @cached_property
    def _suffixes(self) -> list[str]:
        return Path(re.split("[?#]", self.text)[0] if self.is_remote else self.text).suffixes

    @cached_property
    def files(self) -> tuple[FilePath, ...]:
        """The files, listed once and sorted by name; a bucket is listed when it is opened."""
        if self.is_remote:
            return (self,)
        try:
            os.fsencode(self.text)
        except UnicodeEncodeError:
            # No file has half of a surrogate pair in its name.
            return ()
        if "\0" in self.text:
            return ()
        found = sorted(glob.glob(self.text, recursive=True)) or ([self.text] if os.path.exists(self.text) else [])
        files: list[FilePath] = []
        for path in found:
            if os.path.isdir(path):
                below = sorted(os.path.join(where, name) for where, _, names in os.walk(path) for name in names)
                # Tools add other files to a folder, such as _SUCCESS.
                named = [FilePath(file) for file in below if not os.path.basename(file).startswith((".", "_"))]
                files += [file for file in named if file.ending]
            else:
                files.append(FilePath(path))
        return tuple(files)

    @property
    def is_bucket_pattern(self) -> bool:
        """True if the URL can stand for several files of a bucket."""
        return self.in_bucket and "*" in self.text

    @property
    def is_several(self) -> bool:
        """True if the text can stand for several files, regardless of their number."""
        if self.is_remote:
            return self.is_bucket_pattern
        return os.path.isdir(self.text) or (glob.has_magic(self.text) and not os.path.exists(self.text))

    @property
    def literal(self) -> str:
        """The path as DuckDB takes one file, with the characters of a pattern escaped."""
        if self.is_remote:
            return re.sub(r"[*\[]", r"[\g<0>]", self.text) if self.in_bucket else self.text
        return glob.escape(self.text)

    @property
    def addresses(self) -> set[str]:
        """The real paths of the files, or the URL in one spelling; none if that spelling could hold a password."""
        if not self.is_remote:
            return {os.path.realpath(each.text) for each in self.files} or {self.text}
        plain = redact_url(self.text)
        if plain.endswith("://..."):
            return set()
        parts = urlsplit(plain)
        host = parts.netloc.lower().removesuffix(f":{_PORTS.get(parts.scheme)}")
        return {f"{parts.scheme}://{host}{posixpath.normpath(parts.path or '/')}"}

    def check(self, argument: str) -> None:
        """Raise unless the path leads to files that can be read; `argument` is its name in messages."""
        allowed = ", ".join(ENDINGS)
        for file in self.files:
            suffix = "".join(file._suffixes[-1:])
            if suffix.lower() not in _COMPRESSIONS:
                continue
            # DuckDB would read the compressed bytes as rows, and find none.
            if file.ending == ".parquet":
                raise InvalidValueError(
                    f"{argument} must end in .parquet, which is compressed inside, not be {quote(self.text)}"
                )
            if suffix not in _READABLE:
                raise InvalidValueError(
                    f"{argument} must end in .gz or .zst where it is compressed, not be {quote(self.text)}"
                )
        if self.is_remote:
            if self.ending is None or self.ending == ".json":
                # The first byte of a .json file tells an array from lines, and needs the whole file fetched.
                allowed = ", ".join(each for each in ENDINGS if each != ".json")
                raise InvalidValueError(
                    f"{argument} must be a URL that ends in one of {allowed}, not {quote(self.text)}"
                )
            if "*" in self.text and not self.is_bucket_pattern:
                raise InvalidValueError(
                    f"{argument} must be the URL of one file, not the pattern {quote(self.text)}: s3:// and gs:// have "
                    "those"
                )
            return
        is_folder = os.path.isdir(self.text)
        if not self.files and is_folder:
            raise InvalidValueError(
                f"{argument} must be a folder with files that end in one of {allowed}, and {quote(self.text)} has none"
            )
        if not self.files:
            raise InvalidValueError(f"{argument} must be a file that exists, not {quote(self.text)}")
        if not is_folder and self.ending is None and not all(file.ending for file in self.files):
            raise InvalidValueError(f"{argument} must end in one of {allowed}, not be {quote(self.text)}")
        if not all(os.access(file.text, os.R_OK) for file in self.files):
            raise InvalidValueError(f"{argument} must be a file that can be read, not {quote(self.text)}")


@dataclass(frozen=True, repr=False)
class FoundFiles:
    """The files of a location.

    Attributes
    ----------
    files
        The files, each once; a pattern of a bucket is listed when it is opened.
    ending
        The ending that all files have, compression aside.
    given
        The text that the caller gave, for messages.
    several
        True if the location can stand for several files, regardless of their number.
    """

    files: tuple[FilePath, ...]
    ending: str
    given: str
    several: bool


@dataclass(frozen=True, repr=False)
class Location:
    """A table or a public list that a caller names by text: files, a database, or a table of the events' database.

    Attributes
    ----------
    paths
        The paths and URLs of files; empty for a database.
    database
        The URL of a database.
    beside
        The table that "connect:mart.products.id" names.
    column
        The column that follows a file or a table, as in "movies.csv:movie_id".
    argument
        The name of the argument in messages about a database, where it is not that of `discreet.events`.
    """

    paths: tuple[FilePath, ...] = ()
    database: str | None = None
    beside: TableName | None = None
    column: str | None = None
    argument: str | None = None

    @classmethod
    def parse(cls, given: Any) -> Location | None:
        """Parse a path, a pattern, a folder, a URL or a list of paths; return None for anything else, as a frame."""
        if isinstance(given, Location):
            return given
        named = given if isinstance(given, list | tuple) else [given]
        if not named or not all(isinstance(each, str | os.PathLike) for each in named):
            return None
        paths = tuple(FilePath.parse(os.fspath(each)) for each in named)
        if isinstance(given, str) and not paths[0].is_remote and re.match(r"[a-z][a-z0-9+]*://", given):
            return cls(database=given)
        return cls(paths)

    @classmethod
    def parse_list(cls, given: str | os.PathLike[str], argument: str) -> Location:
        """Parse a public list in a file, such as "movies.csv:movie_id"; a domain can also be "connect:TABLE.COLUMN"."""
        location = cls.parse(given)
        assert location is not None, "text and paths are locations"
        if not isinstance(given, str):
            return location
        if argument == "domain" and given.startswith(PREFIX):
            parts = given.removeprefix(PREFIX).split(".")
            if not 2 <= len(parts) <= 3 or not all(parts):
                raise InvalidValueError(
                    f"domain must be {PREFIX}TABLE.COLUMN or {PREFIX}SCHEMA.TABLE.COLUMN, not {quote(given)}"
                )
            *schema, table, column = parts
            return cls(beside=TableName(table, *schema), column=column)
        if location.database is None and location.paths[0].is_remote:
            # The column stands before the query, which can be secret. A colon can also be that of the scheme or a port.
            place, mark, query = given.partition("?")
            start, _, column = place.rpartition(":")
            if re.search(r"[/\\]", column):
                return location
            return cls((replace(location.paths[0], text=f"{start}{mark}{query}"),), column=column)
        split = re.fullmatch(r"(.+\.[A-Za-z0-9.]+):([^:/\\]+)", given)
        if split is None:
            return location
        if location.database is not None:
            return cls(database=split[1], column=split[2])
        return cls((replace(location.paths[0], text=split[1]),), column=split[2])

    @property
    def endings(self) -> set[str | None]:
        """The endings of the files, with folders listed and patterns taken as they are."""
        return {file.ending for path in self.paths for file in (path.files if os.path.isdir(path.text) else [path])}

    @property
    def is_several(self) -> bool:
        """True if the location can stand for several files, regardless of their number."""
        return len(self.paths) > 1 or any(path.is_several for path in self.paths)

    def find_files(self, argument: str) -> FoundFiles:
        """Return the files, or raise unless all are of one kind and can be read; `argument` is the name in messages."""
        for path in self.paths:
            path.check(argument)
        files = tuple(dict.fromkeys(file for path in self.paths for file in path.files))
        first, more = self.paths[0], len(self.paths) - 1
        given = quote(first.text) + (f" and {more} more" if more else "")
        endings = {str(file.ending) for file in files}
        if len(endings) > 1:
            raise InvalidValueError(
                f"{argument} must be files of one kind, and {given} are of several: name those meant"
            )
        return FoundFiles(files, endings.pop(), given, self.is_several)


def parse_table_name(given: Any) -> TableName:
    """Parse "events", "mart.events" or ("mart", "events")."""
    if isinstance(given, tuple) and len(given) == 2 and all(isinstance(part, str) and part for part in given):
        return TableName(given[1], given[0])
    if not isinstance(given, str) or not given:
        raise InvalidTypeError(
            "name must be the name of a table, such as 'events', 'mart.events' or ('mart', 'events'), "
            f"not {quote(given)}"
        )
    schema, _, table = given.partition(".")
    return TableName(table, schema) if schema and table else TableName(given)


def list_remote_files(connection: Any, found: FoundFiles) -> tuple[FilePath, ...]:
    """Let a connection to DuckDB read files by URL, and return the files with the patterns of buckets listed."""
    import duckdb

    try:
        connection.con.execute("LOAD httpfs")
        is_missing = False
    except duckdb.Error:
        is_missing = True
    if is_missing:
        raise MissingExtraError(
            "files by URL need DuckDB's extension httpfs, which is not installed and is never installed by discreet: "
            "run INSTALL httpfs once in DuckDB, as in python -c \"import duckdb; duckdb.sql('INSTALL httpfs')\""
        )
    files = []
    for path in found.files:
        texts = [path.text]
        if path.is_bucket_pattern:
            rows = connection.con.execute("SELECT file FROM glob(?)", [path.text]).fetchall()
            texts = sorted(text for (text,) in rows)
        files += [replace(path, text=text) for text in texts]
    if not files:
        raise InvalidValueError(f"{found.given} must be files that exist, and there are none")
    return tuple(dict.fromkeys(files))


def fetch_text_file(connection: Any, file: FilePath) -> FilePath:
    """Copy a file by URL into the temporary folder of the connection, which is removed with it.

    The readers of text need the bytes of a file, which DuckDB returns as a whole.
    """
    (folder,) = connection.con.execute("SELECT current_setting('temp_directory')").fetchone()
    suffix = posixpath.splitext(re.split("[?#]", file.text)[0])[1]
    (content,) = connection.con.execute("SELECT content FROM read_blob(?)", [file.literal]).fetchone()
    path = os.path.join(folder, f"{uuid.uuid4().hex}{suffix}")
    with open(path, "wb") as out:
        out.write(content)
    return FilePath(path)

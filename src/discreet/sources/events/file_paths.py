"""Which files a caller means: a path, a pattern, a folder, a URL, or several of these.

Which files a pattern or a folder holds is not for all to see, because they may be named after people: messages name
what the caller gave.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from discreet.errors import InvalidValueError, quote
from discreet.sources.events.remote_files import check_remote_file, is_remote, is_remote_pattern

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

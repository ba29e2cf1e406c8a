"""From the name of a file to its reader."""

from __future__ import annotations

import stat
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from discreet.errors import InvalidValueError
from discreet.sources.arrays.array import ArraySource
from discreet.sources.files.binary import read_npy, read_parquet
from discreet.sources.files.text import read_json, read_table
from discreet.sources.files.wording import describe_empty, quote_path

TEXTS = (".csv", ".tsv", ".json")
"""What spells its numbers, so that a number has no type."""

_READERS = {
    ".npy": read_npy,
    ".csv": read_table,
    ".tsv": read_table,
    ".json": read_json,
    ".parquet": read_parquet,
}


def file_source(path: str | Path, item: str | None = None, score: str | None = None) -> ArraySource:
    """The source behind a file of scores.

    Parameters
    ----------
    path
        A file that ends in .npy (a one-dimensional array; the labels are positions), in .csv or .tsv (UTF-8, with a
        header), in .json (a mapping from item to score, a list of scores, or a list of objects), or in .parquet.
    item, score
        The columns of a table, or the keys of the objects, that hold the label and the score. By default those called
        "item" and "score"; of two columns without these names, the first is the item.

    Returns
    -------
    ArraySource
        The scores as the exact numbers that the file spells.
    """
    file = Path(path)
    try:
        source = _reader(file)(file, item, score)
        # Text has no type, and whether all of it spells whole numbers is private: counts of it are in whole numbers.
        return replace(source, grid=Fraction(1), between_steps=True) if file.suffix.lower() in TEXTS else source
    except OSError as error:
        problem = _problem(error)
    raise InvalidValueError(f"{quote_path(file)} must be a file that can be read, but {problem}")


def _reader(path: Path) -> Callable[[Path, str | None, str | None], ArraySource]:
    # A name that leads nowhere is a likelier mistake than a wrong ending, so it is told first.
    info = path.stat()
    if stat.S_ISDIR(info.st_mode):
        raise IsADirectoryError
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise InvalidValueError(f"a file of scores must end in one of {', '.join(_READERS)}, not be {quote_path(path)}")
    if stat.S_ISREG(info.st_mode) and not info.st_size:
        raise InvalidValueError(describe_empty(path))
    return reader


def _problem(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "does not exist"
    if isinstance(error, IsADirectoryError):
        return "is a directory"
    if isinstance(error, PermissionError):
        return "you have no permission to read it"
    return f"reading it fails: {error.strerror}"

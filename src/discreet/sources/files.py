"""Read scores exactly from a file: .npy, .csv, .tsv, .json or .parquet.

Names of files, columns and items are public, and messages show them. Scores and their positions are private: a message
never shows a score, a row or a line number, and is never chained to an exception that holds one.
"""

from __future__ import annotations

import csv
import json
import stat
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap

from discreet.errors import Error, InvalidTypeError, InvalidValueError, quote, suggestion
from discreet.privacy import exact
from discreet.sources.arrays.array import ArraySource, array_source, is_fractional
from discreet.sources.events.csv_files import sniff_delimiter

TEXTS = (".csv", ".tsv", ".json")
"""The endings of files that spell their numbers, so that a number has no type."""

_MOST_LISTED = 20
"""The largest number of columns that a message lists, so that it stays readable."""


def file_source(path: str | Path, item: str | None = None, score: str | None = None) -> ArraySource:
    """Return the source behind a file of scores.

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
        # A path that does not exist is a likelier mistake than a wrong ending, so it is reported first.
        info = file.stat()
        if stat.S_ISDIR(info.st_mode):
            raise IsADirectoryError
        reader = _READERS.get(file.suffix.lower())
        if reader is None:
            raise InvalidValueError(
                f"a file of scores must end in one of {', '.join(_READERS)}, not be {quote_path(file)}"
            )
        if stat.S_ISREG(info.st_mode) and not info.st_size:
            raise InvalidValueError(describe_empty(file))
        source = reader(file, item, score)
        # Text has no type, and the fact that it spells whole numbers only is private: counts are whole numbers.
        return replace(source, grid=Fraction(1), between_steps=True) if file.suffix.lower() in TEXTS else source
    except FileNotFoundError:
        problem = "does not exist"
    except IsADirectoryError:
        problem = "is a directory"
    except PermissionError:
        problem = "you have no permission to read it"
    except OSError as error:
        problem = f"reading it fails: {error.strerror}"
    raise InvalidValueError(f"{quote_path(file)} must be a file that can be read, but {problem}")


def read_npy(path: Path, item: str | None, score: str | None) -> ArraySource:
    """Read the scores of an array, whose labels are positions."""
    refuse_columns(path, item, score)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about headers that Python 2 wrote
            # A mapped file cannot hold pickles, so that loading a file never runs code in it.
            scores = open_memmap(path, mode="r")
    except OSError:
        raise
    except Exception:
        # NumPy evaluates the header as a Python literal, and a broken header can raise any error.
        scores = None
    if scores is None:
        raise InvalidValueError(
            f"{quote_path(path)} must be a whole .npy file that holds an array of numbers, but is not"
        )
    return array_source(np.asarray(scores))


def read_parquet(path: Path, item: str | None, score: str | None) -> ArraySource:
    """Read the scores of two columns of a Parquet file."""
    from pyarrow import ArrowException

    with path.open("rb") as file:
        try:
            return _from_parquet(file, item, score, path)
        except Error:
            raise
        except (ArrowException, OSError, ValueError):
            # Arrow reports a broken file by any of these errors, and may quote its content.
            problem = "is not"
    raise InvalidValueError(f"{quote_path(path)} must be a whole Parquet file, but {problem}")


def _from_parquet(file: Any, item: str | None, score: str | None, path: Path) -> ArraySource:
    from pyarrow import types
    from pyarrow.parquet import ParquetFile

    table = ParquetFile(file)
    item, score = find_columns(table.schema_arrow.names, item, score, path)
    content = table.read(columns=[item, score])
    # Writers such as pandas store repeated values as indices into a dictionary.
    labels, scores = (
        column.cast(column.type.value_type) if types.is_dictionary(column.type) else column
        for column in (content.column(item), content.column(score))
    )
    texts = types.is_string, types.is_large_string, types.is_string_view
    if not any(test(labels.type) for test in (*texts, types.is_integer, types.is_date, types.is_boolean)):
        raise InvalidTypeError(
            f"item must name a column of strings, whole numbers, dates or booleans, and {quote(item)} of "
            f"{quote_path(path)} is one of {labels.type}"
        )
    if not any(test(scores.type) for test in (types.is_integer, types.is_floating, types.is_decimal)):
        raise InvalidTypeError(
            f"score must name a column of numbers, and {quote(score)} of {quote_path(path)} is one of {scores.type}"
        )
    if not len(scores):
        raise InvalidValueError(f"{quote_path(path)} must have at least one row, but has none")
    if labels.null_count:
        raise InvalidValueError(f"items must not be missing, but one is in column {quote(item)} of {quote_path(path)}")
    values: Any = None
    if types.is_decimal(scores.type):
        values = scores.to_pylist()
    elif not scores.null_count:
        # Conversion through DLPack does not import pandas.
        values = np.concatenate([np.from_dlpack(chunk) for chunk in scores.chunks])
    if scores.null_count or (types.is_floating(scores.type) and not np.isfinite(values).all()):
        raise InvalidValueError(describe_not_finite(f"column {quote(score)} of {quote_path(path)}"))
    return replace(array_source(values, labels.to_pylist()), fractional=is_fractional(scores))


def read_table(path: Path, item: str | None, score: str | None) -> ArraySource:
    """Read the scores of two columns of a text table with a header."""
    rows = _iterate_rows(path)
    header = next(rows, None)
    if header is None:
        raise InvalidValueError(describe_empty(path))
    item, score = find_columns(header, item, score, path)
    at_item, at_score = header.index(item), header.index(score)
    labels, texts = [], []
    for row in rows:
        if len(row) != len(header):
            raise InvalidValueError(f"rows of {quote_path(path)} must have one field for each column, but one has not")
        labels.append(row[at_item])
        texts.append(row[at_score])
    if not labels:
        raise InvalidValueError(f"{quote_path(path)} must have at least one row below its header, but has none")
    return array_source(numbers_from_texts(texts, f"column {quote(score)} of {quote_path(path)}"), labels)


def _iterate_rows(path: Path) -> Iterator[list[str]]:
    """Yield the rows of a table, header first, without blank lines."""
    problem = None
    with path.open(encoding="utf-8-sig", newline="") as file:
        try:
            delimiter = "\t" if path.suffix.lower() == ".tsv" else sniff_delimiter(file.readline())
            file.seek(0)
            yield from filter(None, csv.reader(file, delimiter=delimiter, strict=True))
        except UnicodeDecodeError:
            problem = "is not"
        except csv.Error:
            problem = "has a quote that is not closed or a field that is too long"
    if problem:
        raise InvalidValueError(f"{quote_path(path)} must be a well-formed table in UTF-8, but {problem}")


def read_json(path: Path, item: str | None, score: str | None) -> ArraySource:
    """Read the scores of a mapping, a list or a list of objects."""
    content = _parse_json(path)
    if isinstance(content, list) and content and all(isinstance(entry, dict) for entry in content):
        item, score = find_columns(list(content[0]), item, score, path)
        if not all(item in entry and score in entry for entry in content):
            keys = f"{quote(item)} and {quote(score)}"
            raise InvalidValueError(f"objects in {quote_path(path)} must all have the keys {keys}, but one has not")
        values = numbers_from_values([entry[score] for entry in content], f"key {quote(score)} of {quote_path(path)}")
        return array_source(values, [entry[item] for entry in content])
    refuse_columns(path, item, score)
    if isinstance(content, dict):
        return array_source(numbers_from_values(list(content.values()), quote_path(path)), list(content))
    if isinstance(content, list):
        return array_source(numbers_from_values(content, quote_path(path)))
    raise InvalidValueError(
        f"{quote_path(path)} must hold a mapping from item to score, a list of scores or of objects"
    )


def _parse_json(path: Path) -> Any:
    """Return the content of a JSON file: whole numbers as int, all others, NaN included, as Decimal."""

    def build_mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        # Left alone, the parser keeps the last of two equal keys without an error.
        mapping: dict[str, Any] = {}
        for key, value in pairs:
            if key in mapping:
                raise InvalidValueError(f"keys of a JSON object must all be different, but {quote(key)} is there twice")
            mapping[key] = value
        return mapping

    try:
        text = path.read_text(encoding="utf-8-sig")
        return json.loads(text, parse_float=Decimal, parse_constant=Decimal, object_pairs_hook=build_mapping)
    except Error:
        raise
    except UnicodeDecodeError:
        problem = "is not"
    except (json.JSONDecodeError, RecursionError):
        problem = "cannot be parsed"
    except ValueError:
        problem = "holds a number with too many digits"
    raise InvalidValueError(f"{quote_path(path)} must be well-formed JSON in UTF-8, but {problem}")


_READERS = {
    ".npy": read_npy,
    ".csv": read_table,
    ".tsv": read_table,
    ".json": read_json,
    ".parquet": read_parquet,
}


def find_columns(names: list[str], item: str | None, score: str | None, path: Path) -> tuple[str, str]:
    """Return the columns of the items and of the scores, from the caller's words and the names of the columns."""
    named = score is not None
    free = [name for name in names if name not in (item, score)]
    item = "item" if item is None and "item" in free else item
    score = "score" if score is None and "score" in free else score
    if len(names) == 2:
        rest = [name for name in names if name not in (item, score)]
        item = rest.pop(0) if item is None and rest else item
        score = rest.pop(0) if score is None and rest else score
    found = _check_found("item", item, names, path), _check_found("score", score, names, path)
    if item == score:
        raise InvalidValueError(f"item and score must be different columns, not both {quote(item)}")
    if not named and _is_data(score, path):
        raise InvalidValueError(f"the first line of {quote_path(path)} must name the columns, but it holds a number")
    return found


def _check_found(role: str, column: str | None, names: list[str], path: Path) -> str:
    """Return a column that exists once; raise an error that lists the columns otherwise."""
    if column not in names:
        more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
        choices = f"one of {', '.join(map(quote, names[:_MOST_LISTED]))}{more}"
        if any(_is_data(name, path) for name in names):
            # Numbers may be the scores of a file without a header, which no message shows.
            choices = "whose first line holds numbers and may not be a header"
        given = "and none was given; of events, name the user too" if column is None else f"not {quote(column)}"
        hint = suggestion(column, names, private=_is_text(path))
        raise InvalidValueError(f"{role} must name a column of {quote_path(path)}, {choices}, {given}{hint}")
    if names.count(column) > 1:
        raise InvalidValueError(
            f"{role} must name one column of {quote_path(path)}, not two that are called {quote(column)}"
        )
    return column


def _is_data(name: str | None, path: Path) -> bool:
    """Return True if the name of a column may be a score of a text file without a header."""
    return name is not None and _is_text(path) and spells_number(name)


def _is_text(path: Path) -> bool:
    return path.suffix.lower() != ".parquet"


def refuse_columns(path: Path, item: str | None, score: str | None) -> None:
    """Raise if the caller names columns of a file that has none."""
    for role, column in (("item", item), ("score", score)):
        if column is not None:
            raise InvalidValueError(f"{role} must be left out for {quote_path(path)}, which has no columns")


def numbers_from_texts(texts: list[str], where: str) -> list[int | Fraction]:
    """Return the exact numbers that the fields of a column spell."""
    with suppress(ValueError):
        if all(map(_is_plain, texts)):
            return list(map(int, texts))
    return _check_finite([_parse_number(text) if _is_plain(text) else None for text in texts], where)


def numbers_from_values(values: list[Any], where: str) -> list[int | Fraction]:
    """Return JSON values as exact numbers; booleans are not numbers."""
    if {type(value) for value in values} <= {int}:
        return values
    return _check_finite([_parse_number(value) if type(value) in (int, Decimal) else None for value in values], where)


def spells_number(text: str) -> bool:
    """Return True if a text spells a finite number."""
    return _is_plain(text) and _parse_number(text) is not None


def _check_finite(numbers: list[int | Fraction | None], where: str) -> list[int | Fraction]:
    finite = [number for number in numbers if number is not None]
    if len(finite) < len(numbers):
        raise InvalidValueError(describe_not_finite(where))
    return finite


def _parse_number(value: Any) -> int | Fraction | None:
    """Return the exact number that a text or a Decimal denotes, as an int if whole, or None."""
    try:
        number = exact(value, "score")
    except (Error, ValueError):
        return None
    return number.numerator if number.denominator == 1 else number


def _is_plain(text: str) -> bool:
    """Return True unless a text has characters that Python allows in a number and a table does not, as in 1_000."""
    return text.isascii() and "_" not in text


def quote_path(path: Path) -> str:
    """Return the name of a file in quotes."""
    return repr(str(path))


def describe_empty(path: Path) -> str:
    """Return the message about an empty file."""
    return f"{quote_path(path)} must hold scores, but is empty"


def describe_not_finite(where: str) -> str:
    """Return the message about scores of which one is not finite."""
    return f"scores must be finite numbers, and {where} holds one that is not"

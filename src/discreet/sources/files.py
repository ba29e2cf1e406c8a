"""Scores in a file: .npy, .csv, .tsv, .json or .parquet, read exactly.

The names of files, columns and items are public, and messages show them. Scores are not, nor is the place where one
stands: a message never shows a score, a row or a line number, and no exception that holds one is chained to it.
"""

from __future__ import annotations

import csv
import json
import stat
import warnings
from collections.abc import Callable, Iterator
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

# What messages about files have in common.


def quote_path(path: Path) -> str:
    """The name of a file."""
    return repr(str(path))


def describe_empty(path: Path) -> str:
    """The sentence about a file that holds nothing."""
    return f"{quote_path(path)} must hold scores, but is empty"


def describe_not_finite(where: str) -> str:
    """The sentence about scores of which one is no finite number."""
    return f"scores must be finite numbers, and {where} holds one that is not"


# The exact numbers that texts and JSON values spell.


def numbers_from_texts(texts: list[str], where: str) -> list[int | Fraction]:
    """The exact numbers that the fields of a column spell."""
    with suppress(ValueError):
        if all(map(_is_plain, texts)):
            return list(map(int, texts))
    return _check_finite([_parse_number(text) if _is_plain(text) else None for text in texts], where)


def numbers_from_values(values: list[Any], where: str) -> list[int | Fraction]:
    """The exact numbers among JSON values; true and false are none."""
    if {type(value) for value in values} <= {int}:
        return values
    return _check_finite([_parse_number(value) if type(value) in (int, Decimal) else None for value in values], where)


def spells_number(text: str) -> bool:
    """Whether a text spells a finite number."""
    return _is_plain(text) and _parse_number(text) is not None


def _check_finite(numbers: list[int | Fraction | None], where: str) -> list[int | Fraction]:
    finite = [number for number in numbers if number is not None]
    if len(finite) < len(numbers):
        raise InvalidValueError(describe_not_finite(where))
    return finite


def _parse_number(value: Any) -> int | Fraction | None:
    """The exact number that a text or a Decimal denotes, or None; whole ones as int, which sort fastest."""
    try:
        number = exact(value, "score")
    except (Error, ValueError):
        return None
    return number.numerator if number.denominator == 1 else number


def _is_plain(text: str) -> bool:
    """Whether a text has none of what Python allows in a number and a table does not: 1_000, digits of all scripts."""
    return text.isascii() and "_" not in text


# Which columns of a file hold the items and the scores, and whether its first line names them at all.

_MOST_LISTED = 20
_NONE = "and none was given; of events, name the user too"


def find_columns(names: list[str], item: str | None, score: str | None, path: Path) -> tuple[str, str]:
    """The columns of the items and of the scores, from what the caller says and how the columns are called."""
    named = score is not None
    item, score = _find_by_name(names, item, score)
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


def refuse_columns(path: Path, item: str | None, score: str | None) -> None:
    """Raises where columns are named of a file that has none."""
    for role, column in (("item", item), ("score", score)):
        if column is not None:
            raise InvalidValueError(f"{role} must be left out for {quote_path(path)}, which has no columns")


def _find_by_name(names: list[str], item: str | None, score: str | None) -> tuple[str | None, str | None]:
    free = [name for name in names if name not in (item, score)]
    if item is None and "item" in free:
        item = "item"
    if score is None and "score" in free:
        score = "score"
    return item, score


def _check_found(role: str, column: str | None, names: list[str], path: Path) -> str:
    if column not in names:
        given = _NONE if column is None else f"not {quote(column)}"
        hint = suggestion(column, names, private=_is_text(path))
        raise InvalidValueError(
            f"{role} must name a column of {quote_path(path)}, {_list_choices(names, path)}, {given}{hint}"
        )
    if names.count(column) > 1:
        raise InvalidValueError(
            f"{role} must name one column of {quote_path(path)}, not two that are called {quote(column)}"
        )
    return column


def _list_choices(names: list[str], path: Path) -> str:
    """The columns to choose from; numbers may be the scores of a file without a header, which are not to be shown."""
    if any(_is_data(name, path) for name in names):
        return "whose first line holds numbers and may not be a header"
    more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return f"one of {', '.join(map(quote, names[:_MOST_LISTED]))}{more}"


def _is_data(name: str | None, path: Path) -> bool:
    """Whether the name of a column may be a score of a file without a header; a Parquet file always has names."""
    return name is not None and _is_text(path) and spells_number(name)


def _is_text(path: Path) -> bool:
    return path.suffix.lower() != ".parquet"


# Files whose numbers have a type: .npy and .parquet.


def read_npy(path: Path, item: str | None, score: str | None) -> ArraySource:
    """The scores in an array; the labels are positions."""
    refuse_columns(path, item, score)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about headers that Python 2 wrote
            # A mapped file cannot hold pickles, so that loading one never runs what is in it.
            scores = open_memmap(path, mode="r")
    except OSError:
        raise
    except Exception:
        # NumPy evaluates the header as a Python literal, and a broken one raises whatever that meets.
        scores = None
    if scores is None:
        raise InvalidValueError(
            f"{quote_path(path)} must be a whole .npy file that holds an array of numbers, but is not"
        )
    return array_source(np.asarray(scores))


def read_parquet(path: Path, item: str | None, score: str | None) -> ArraySource:
    """The scores in two columns of a Parquet file."""
    from pyarrow import ArrowException

    with path.open("rb") as file:
        try:
            return _from_parquet(file, item, score, path)
        except Error:
            raise
        except (ArrowException, OSError, ValueError):
            # Arrow tells of a broken file in all these ways, and may quote what is in it.
            problem = "is not"
    raise InvalidValueError(f"{quote_path(path)} must be a whole Parquet file, but {problem}")


def _from_parquet(file: Any, item: str | None, score: str | None, path: Path) -> ArraySource:
    from pyarrow.parquet import ParquetFile

    table = ParquetFile(file)
    item, score = find_columns(table.schema_arrow.names, item, score, path)
    content = table.read(columns=[item, score])
    labels, scores = (_plain_column(content.column(name)) for name in (item, score))
    _check_types(labels.type, scores.type, item, score, path)
    if not len(scores):
        raise InvalidValueError(f"{quote_path(path)} must have at least one row, but has none")
    if labels.null_count:
        raise InvalidValueError(f"items must not be missing, but one is in column {quote(item)} of {quote_path(path)}")
    source = array_source(_from_arrow(scores, f"column {quote(score)} of {quote_path(path)}"), labels.to_pylist())
    return replace(source, fractional=is_fractional(scores))


def _plain_column(column: Any) -> Any:
    """A column with its values in place; writers like pandas store what repeats as numbers into a dictionary."""
    from pyarrow import types

    return column.cast(column.type.value_type) if types.is_dictionary(column.type) else column


def _check_types(item_type: Any, score_type: Any, item: str, score: str, path: Path) -> None:
    from pyarrow import types

    tests = (types.is_string, types.is_large_string, types.is_string_view, types.is_integer, types.is_date)
    if not any(test(item_type) for test in (*tests, types.is_boolean)):
        raise InvalidTypeError(
            f"item must name a column of strings, whole numbers, dates or booleans, and {quote(item)} of "
            f"{quote_path(path)} is one of {item_type}"
        )
    if not any(test(score_type) for test in (types.is_integer, types.is_floating, types.is_decimal)):
        raise InvalidTypeError(
            f"score must name a column of numbers, and {quote(score)} of {quote_path(path)} is one of {score_type}"
        )


def _from_arrow(column: Any, where: str) -> Any:
    """The exact numbers in a column: an array where their type is one of NumPy, or else a list of decimals."""
    from pyarrow import types

    values: Any = None
    if types.is_decimal(column.type):
        values = column.to_pylist()
    elif not column.null_count:
        # The way through DLPack is the one that does not import pandas.
        values = np.concatenate([np.from_dlpack(chunk) for chunk in column.chunks])
    if column.null_count or (types.is_floating(column.type) and not np.isfinite(values).all()):
        raise InvalidValueError(describe_not_finite(where))
    return values


# Files that spell their numbers: .csv, .tsv and .json.


def read_table(path: Path, item: str | None, score: str | None) -> ArraySource:
    """The scores in two columns of a table with a header."""
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
    """The rows of a table, header first, without blank lines."""
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
    """The scores in a mapping, a list or a list of objects."""
    content = _parse_json(path)
    if isinstance(content, list) and content and all(isinstance(entry, dict) for entry in content):
        return _from_objects(content, item, score, path)
    refuse_columns(path, item, score)
    if isinstance(content, dict):
        return array_source(numbers_from_values(list(content.values()), quote_path(path)), list(content))
    if isinstance(content, list):
        return array_source(numbers_from_values(content, quote_path(path)))
    raise InvalidValueError(
        f"{quote_path(path)} must hold a mapping from item to score, a list of scores or of objects"
    )


def _from_objects(objects: list[dict[str, Any]], item: str | None, score: str | None, path: Path) -> ArraySource:
    item, score = find_columns(list(objects[0]), item, score, path)
    if not all(item in entry and score in entry for entry in objects):
        keys = f"{quote(item)} and {quote(score)}"
        raise InvalidValueError(f"objects in {quote_path(path)} must all have the keys {keys}, but one has not")
    values = numbers_from_values([entry[score] for entry in objects], f"key {quote(score)} of {quote_path(path)}")
    return array_source(values, [entry[item] for entry in objects])


def _parse_json(path: Path) -> Any:
    """The content of a JSON file: whole numbers as int, others as Decimal, and NaN too, which no score may be."""
    try:
        text = path.read_text(encoding="utf-8-sig")
        return json.loads(text, parse_float=Decimal, parse_constant=Decimal, object_pairs_hook=_build_mapping)
    except Error:
        raise
    except UnicodeDecodeError:
        problem = "is not"
    except (json.JSONDecodeError, RecursionError):
        problem = "cannot be parsed"
    except ValueError:
        problem = "holds a number with too many digits"
    raise InvalidValueError(f"{quote_path(path)} must be well-formed JSON in UTF-8, but {problem}")


def _build_mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, in which no key may be there twice: the parser would keep the last one in silence."""
    mapping: dict[str, Any] = {}
    for key, value in pairs:
        if key in mapping:
            raise InvalidValueError(f"keys of a JSON object must all be different, but {quote(key)} is there twice")
        mapping[key] = value
    return mapping


# From the name of a file to its reader.

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

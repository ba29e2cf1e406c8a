"""Files whose numbers have a type: .npy and .parquet."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib.format import open_memmap

from discreet.errors import Error, InvalidTypeError, InvalidValueError, quote
from discreet.sources.arrays.array import ArraySource, array_source, is_fractional
from discreet.sources.files.roles import find_columns, refuse_columns
from discreet.sources.files.wording import describe_not_finite, quote_path


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

"""Files that spell their numbers: .csv, .tsv and .json."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from discreet.errors import Error, InvalidValueError, quote
from discreet.sources.arrays.array import ArraySource, array_source
from discreet.sources.events.csv_format import sniff_delimiter
from discreet.sources.files.roles import find_columns, refuse_columns
from discreet.sources.files.spelled import numbers_from_texts, numbers_from_values
from discreet.sources.files.wording import describe_empty, quote_path


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

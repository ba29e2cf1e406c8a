"""The public domain of items: a list, a table's column, or a range that is never written out (`ranges`, `strings`).

The domain must not come from the events: an item that is listed because somebody touched it tells just that, and no
epsilon covers it. Being public, a domain may be complained about in full, but for a column or a frame: that may be a
copy of the events that nobody recognised, so no message shows what is in it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any, NoReturn

from discreet.errors import InvalidTypeError, InvalidValueError, choices, quote, suggestion
from discreet.labels import is_column, unwrap_label
from discreet.sources.events.cells import LARGEST_EXACT, read_cell
from discreet.sources.events.connect import Opened, is_frame, open_named_table, open_table
from discreet.sources.events.dialects.duckdb import DIALECT as DUCKDB
from discreet.sources.events.engine import EngineError, ask
from discreet.sources.events.frames import bring_in_index, unwrap_categories
from discreet.sources.events.location import Location
from discreet.sources.events.ranges import STRINGS, Integers, integers, parse_strings


@dataclass(frozen=True)
class ListNames:
    """What messages call a public list, and what it holds; and what else they say of gaps and of points in time."""

    argument: str
    member: str
    about_gaps: str = ""
    about_times: str = ""


DOMAIN = ListNames("domain", "item")


def parse_domain(text: str) -> Location | Integers:
    """Parse integers:LO:HI, strings:ALPHABET:MAX, connect:TABLE.COLUMN, or a file with its column."""
    if text.startswith(STRINGS):
        return parse_strings(text)
    if not text.startswith("integers:"):
        return Location.parse_list(text, "domain")
    ends = re.fullmatch(r"integers:([+-]?[0-9]{1,20}):([+-]?[0-9]{1,20})", text)
    if ends is None:
        raise InvalidValueError(f"domain must be integers:LO:HI such as integers:0:999, not {quote(text)}")
    return integers(int(ends[1]), int(ends[2]))


@dataclass(eq=False, repr=False)
class ListedDomain:
    """A domain with a row for each item: columns `item` and, where it is shown instead, `label`."""

    table: Any
    kind: str
    d: int
    labelled: bool


def open_listed_domain(given: Any, label: str | None, item: str, events: Opened, kind: str | None) -> ListedDomain:
    """The domain behind a list or a table, on the engine of the events.

    Parameters
    ----------
    given
        A list of items, a path such as "movies.csv:movie_id", a column beside the events such as
        "connect:mart.products.id", or any table.
    label
        The column to show in place of the item.
    item
        The name of the item column of the events, which a table is searched for.
    events
        The events that the domain will be joined to.
    kind
        What the items of the events were declared to be, or None where nobody has.
    """
    given = unwrap_categories(given, "domain")
    if is_list(given):
        if label is not None:
            raise InvalidValueError("label must be left out unless domain is a table with that column")
        import pyarrow as pa

        column, own = read_list(given, DOMAIN)
        return ListedDomain(events.adopt(pa.table({"item": column})), own, len(column), False)
    return _open_column(given, label, item, events, kind)


def is_list(given: Any) -> bool:
    """Whether something is a list of values, and no table or file that has them in a column."""
    package = type(given).__module__.partition(".")[0]
    if package in ("pandas", "polars", "pyarrow"):
        return not is_frame(given)
    if package in ("ibis", "pyspark", "duckdb", "_duckdb"):
        return False
    return not isinstance(given, str | bytes | os.PathLike | Mapping) and isinstance(given, Iterable)


def read_list(given: Any, names: ListNames) -> tuple[Any, str]:
    """The values of a public list as an Arrow array, each of them once, and the kind that all of them are."""
    if not isinstance(given, Iterable):
        raise InvalidTypeError(
            f"{names.argument} must be a list of {names.member}s, not of the type {type(given).__name__}"
        )
    raw = given.to_pylist() if hasattr(given, "to_pylist") else given.tolist() if hasattr(given, "tolist") else given
    values = [unwrap_label(value) for value in raw]
    found = read_values(values, names)
    seen: set[Any] = set()
    for value in values:
        if value in seen:
            refuse_repetition(names, "one" if is_column(given) else quote(value))
        seen.add(value)
    return found


def read_values(values: list[Any], names: ListNames) -> tuple[Any, str]:
    """Public values as an Arrow array, none of them missing, and the kind that all of them are."""
    import pyarrow as pa

    missing = sum(value is None or value != value for value in values)
    check_presence(names, len(values), missing)
    kind = _kind_of_values(values, names)
    types = {"string": pa.string(), "integer": pa.int64(), "date": pa.date32(), "boolean": pa.bool_()}
    try:
        return pa.array(values, types[kind]), kind
    except (pa.ArrowInvalid, OverflowError, UnicodeError):
        raise InvalidValueError(f"{names.argument} must hold whole numbers of 64 bits or proper text") from None


def check_presence(names: ListNames, rows: int, missing: int) -> None:
    """Refuses a public list that is empty or has a gap."""
    if not rows:
        raise InvalidValueError(f"{names.argument} must hold at least one {names.member}, not none")
    if missing:
        raise InvalidValueError(
            f"{names.argument} must not hold missing {names.member}s, and one is missing{names.about_gaps}"
        )


def refuse_repetition(names: ListNames, repeated: str = "one") -> NoReturn:
    """Raises the error about a public list that holds something twice."""
    raise InvalidValueError(f"{names.argument} must hold each {names.member} once, but {repeated} is there twice")


def _kind_of_values(values: list[Any], names: ListNames) -> str:
    tests = {
        "string": lambda value: isinstance(value, str),
        "boolean": lambda value: isinstance(value, bool),
        "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
        "date": lambda value: isinstance(value, date) and not isinstance(value, datetime),
    }
    for kind, test in tests.items():
        if all(map(test, values)):
            return kind
    hint = names.about_times if all(hasattr(value, "month") for value in values) else ""
    raise InvalidTypeError(
        f"{names.argument} must hold only strings, only whole numbers, only dates or only booleans{hint}"
    )


def _open_column(given: Any, label: str | None, item: str, events: Opened, kind: str | None) -> ListedDomain:
    location = given if isinstance(given, Location) else None
    column = None if location is None else location.column
    if location is not None and location.beside is not None:
        beside = open_named_table(events.table.get_backend(), events.engine, location.beside, "domain")
        opened = Opened(beside, events.engine)
    else:
        source = bring_in_index(given, {item, label})
        opened = _bring_here(open_table(source, None, "domain", csv_format=events.csv_format), events)
    try:
        return _check_table(opened, column, label, item, events, kind)
    except BaseException:
        opened.close()
        raise


def _bring_here(opened: Opened, events: Opened) -> Opened:
    """Return a public table on DuckDB where its own engine neither is that of the events nor compares text by bytes."""
    if opened.dialect.text_bytes is not None or opened.table.get_backend() is events.table.get_backend():
        return opened
    rows = ask(opened.engine, "reading the domain", opened.table.to_pyarrow)
    opened.close()
    return open_table(rows, None, "domain")


def _check_table(
    opened: Opened, column: str | None, label: str | None, item: str, events: Opened, kind: str | None
) -> ListedDomain:
    names, found = list(opened.table.columns), find_list_column(opened, column, item, DOMAIN)
    if column is None and found == label != item:
        raise InvalidValueError(
            f"domain must have a column of items called {quote(item)} beside the label, and has {choices(names)}"
        )
    column = found
    if label is not None and label not in names:
        hint = suggestion(label, names, private=False)
        raise InvalidValueError(
            f"label must be a column of the domain, one of {choices(names)}, not {quote(label)}{hint}"
        )
    named = {"item": column} if label is None else {"item": column, "label": label}
    chosen = opened.table.select(**{name: opened.drop_collation(each) for name, each in named.items()})
    table, own_kind = convert_kind(chosen, "item", opened, events, kind, DOMAIN)
    _check_rows(table, opened, label is not None)
    d = int(ask(opened.engine, "counting the domain", lambda: table.count().to_pyarrow().as_py()))
    return ListedDomain(_move_to(table, opened, events), own_kind, d, label is not None)


def find_list_column(opened: Opened, column: str | None, wanted: str, names: ListNames) -> str:
    """The column of a public table that holds the list: the one that was named, one of this name, or the only one."""
    columns = list(opened.table.columns)
    if column is None:
        column = wanted if wanted in columns else columns[0] if len(columns) == 1 else None
    if column is not None and column in columns:
        return column
    missing = column or wanted
    raise InvalidValueError(
        f"{names.argument} must have a column called {quote(missing)}, and has {choices(columns)}; "
        f"name one as 'file:column'{suggestion(missing, columns, private=False)}"
    )


def convert_kind(
    table: Any, column: str, opened: Opened, events: Opened, kind: str | None, names: ListNames
) -> tuple[Any, str]:
    """A public table with a column of a known kind; text of a file takes the kind that the events were declared with.

    Where nobody has declared one the list decides: text beside text, else whole numbers where all of it are.
    """
    listed = table[column]
    own = kind_of_type(listed.type())
    if own is None:
        raise InvalidTypeError(
            f"{names.argument} must hold strings, whole numbers, dates or booleans, not a column of {listed.type()}"
        )
    if opened.is_text:
        _check_text(table, opened, events, names)
    if not opened.is_text or kind == "string" or (kind is None and events.is_text):
        return table, own
    cast = table.mutate(**{column: read_cell(DUCKDB, listed, kind or "integer")})
    lost = table.filter(listed.notnull() & _is_lost(listed, kind))
    some_lost = ask(opened.engine, f"reading the {names.argument}", lambda: bool(lost.count().to_pyarrow().as_py()))
    if kind is None:
        return (table, own) if some_lost else (cast, "integer")
    if some_lost:
        raise InvalidTypeError(
            f"{names.argument} must hold {names.member}s like those of the events, {kind}s, and one is not"
        )
    return cast, kind


def _check_text(table: Any, opened: Opened, events: Opened, names: ListNames) -> None:
    """Refuses a public file with a row that cannot be read, whose item would be missing from the list."""

    def read_all() -> None:
        table.aggregate([table[column].count() for column in table.columns]).to_pyarrow()

    try:
        ask(opened.engine, f"reading the {names.argument}", read_all)
    except EngineError:
        encoding = events.csv_format.encoding or "utf-8"
        raise InvalidValueError(
            f"{names.argument} must be a file in {encoding}, like the events, with as many fields in each row as in "
            "the header, and a row of it is not"
        ) from None


def _is_lost(item: Any, kind: str | None) -> Any:
    """Whether a text of a domain is no spelling of the kind; where none was declared, only 7 is an integer, not 07."""
    read = read_cell(DUCKDB, item, kind or "integer")
    return read.isnull() if kind is not None else read.isnull() | (read.cast("string") != item)


def holds_long_numbers(domain: Integers | ListedDomain) -> bool:
    """Whether whole numbers beyond 2^53 are in a domain, as numbers or spelled."""
    if isinstance(domain, Integers):
        return domain.holds_long_numbers()
    if domain.kind not in ("integer", "string"):
        return False
    item = domain.table["item"]
    spelled = item.re_search("^[+-]?[0-9]+$") if domain.kind == "string" else True
    long = domain.table.filter(spelled & (read_cell(DUCKDB, item, "float").abs() > LARGEST_EXACT))
    return bool(ask("DuckDB", "reading the domain", lambda: long.count().to_pyarrow().as_py()))


def _check_rows(table: Any, opened: Opened, labelled: bool) -> None:
    def counts() -> dict[str, Any]:
        column, dialect = table["item"], opened.dialect
        asked = {
            "rows": table.count(),
            "nulls": column.isnull().sum(),
            "different": dialect.group_key(column).nunique(),
        }
        if labelled:
            label = table["label"]
            # Labels are shown and not grouped by, so that an engine's own equality will do.
            different = label if dialect.text_bytes is None else dialect.group_key(label)
            asked |= {"label_nulls": label.isnull().sum(), "labels": different.nunique()}
        row: dict[str, Any] = table.aggregate(**asked).to_pyarrow().to_pylist()[0]
        return row

    found = ask(opened.engine, "checking the domain", counts)
    check_presence(DOMAIN, found["rows"], found["nulls"])
    if found["different"] < found["rows"]:
        refuse_repetition(DOMAIN)
    if labelled and found["label_nulls"]:
        raise InvalidValueError("label must be there for each item of the domain, and one is missing")
    if labelled and found["labels"] < found["rows"]:
        raise InvalidValueError(
            "label must be different for each item of the domain, and one is there twice: leave label out and join it "
            "to the released items, or put the id into it"
        )


def _move_to(table: Any, opened: Opened, events: Opened) -> Any:
    """The domain on the engine of the events: as it is where that is the same one, as a copy elsewhere."""
    if opened.table.get_backend() is events.table.get_backend():
        return table
    rows = ask(opened.engine, "reading the domain", table.to_pyarrow)
    opened.close()
    return events.adopt(rows)


def kind_of_type(dtype: Any) -> str | None:
    """The kind of item that an ibis type holds."""
    tests = {"string": dtype.is_string(), "integer": dtype.is_integer(), "date": dtype.is_date(),
             "boolean": dtype.is_boolean()}  # fmt: skip
    return next((kind for kind, holds in tests.items() if holds), None)

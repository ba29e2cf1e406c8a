"""Public domains of items: a list, a column of a table, or a range that is never written out (`ranges`).

The domain must not come from the events: an item that is listed because somebody touched it reveals that touch, and no
epsilon covers it. Messages may quote the items of a list, which is public. They quote no value of a column or a frame,
which may be an unrecognised copy of the events.
"""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from functools import reduce
from typing import Any, NoReturn

from discreet.errors import InvalidTypeError, InvalidValueError, choices, quote, redact_url, suggestion
from discreet.labels import is_column, unwrap_label
from discreet.sources.events.cells import LARGEST_EXACT, read_cell
from discreet.sources.events.connect import Opened, is_frame, open_named_table, open_table
from discreet.sources.events.csv_files import TWICE, USUAL
from discreet.sources.events.dialects.duckdb import DIALECT as DUCKDB
from discreet.sources.events.engine import EngineError, ask
from discreet.sources.events.location import Location
from discreet.sources.events.ranges import STRINGS, Integers, integers, parse_strings


@dataclass(frozen=True)
class ListNames:
    """The names of a public list and of its members in messages, with hints about gaps and points in time."""

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
    """A domain with a row for each item: the column `item` and, if labels are shown instead, `label`."""

    table: Any
    kind: str
    d: int
    labelled: bool


def open_listed_domain(given: Any, label: str | None, item: str, events: Opened, kind: str | None) -> ListedDomain:
    """Open a list or a table as a domain on the engine of the events.

    Parameters
    ----------
    given
        A list of items, the location of one, or any table.
    label
        The column to show in place of the item.
    item
        The name of the item column of the events, which is looked for in a table.
    events
        The events that the domain will be joined to.
    kind
        The declared kind of the items of the events, or None if they have none.
    """
    given = unwrap_categories(given, "domain")
    if is_list(given):
        if label is not None:
            raise InvalidValueError("label must be left out unless domain is a table with that column")
        import pyarrow as pa

        items, own = read_list(given, DOMAIN)
        events.doubt_spelling(item, DOMAIN, items)
        return ListedDomain(events.adopt(pa.table({"item": items})), own, len(items), False)
    location = given if isinstance(given, Location) else None
    column = None if location is None else location.column
    if location is not None and location.beside is not None:
        beside = open_named_table(events.table.get_backend(), events.engine, location.beside, "domain")
        opened = Opened(beside, events.engine)
    else:
        source = bring_in_index(given, {item, label})
        opened = open_table(source, None, "domain", csv_format=events.list_formats.get("domain", USUAL))
        # DuckDB compares text by bytes, and the engine of the domain may not.
        if opened.dialect.text_bytes is None and opened.table.get_backend() is not events.table.get_backend():
            rows = ask(opened.engine, "reading the domain", opened.table.to_pyarrow)
            opened.close()
            opened = open_table(rows, None, "domain")
    try:
        names, found = list(opened.table.columns), find_list_column(opened, column, item, DOMAIN)
        if column is None and found == label != item:
            raise InvalidValueError(
                f"domain must have a column of items called {quote(item)} beside the label, and has {choices(names)}"
            )
        if label is not None and label not in names:
            hint = suggestion(label, names, private=False)
            raise InvalidValueError(
                f"label must be a column of the domain, one of {choices(names)}, not {quote(label)}{hint}"
            )
        named, shown = {"item": found} if label is None else {"item": found, "label": label}, dict[str, Any]()
        for name, each in named.items():
            values = opened.table[each]
            # Text is compared by its bytes, whatever the collation of its column.
            shown[name] = opened.dialect.drop_collation(values) if values.type().is_string() else values
        table, own = convert_kind(opened.table.select(**shown), "item", opened, events, kind, DOMAIN)
        _check_rows(table, opened, label is not None)
        d = int(ask(opened.engine, "counting the domain", table.count().to_pyarrow).as_py())
        if item in events.expressions and own == "string":
            listed = ask(opened.engine, "reading the domain", table["item"].to_pyarrow)
            events.doubt_spelling(item, DOMAIN, listed, name_place(location, found))
        if opened.table.get_backend() is not events.table.get_backend():
            rows = ask(opened.engine, "reading the domain", table.to_pyarrow)
            opened.close()
            table = events.adopt(rows)
        return ListedDomain(table, own, d, label is not None)
    except BaseException:
        opened.close()
        raise


def name_place(location: Location | None, found: str) -> tuple[str, str]:
    """Return the file of a public list and its column, as the caller spelled them; empty texts for a list in no file.

    `found` is the column if the caller named none.
    """
    if location is None or not location.paths:
        return "", ""
    return redact_url(location.paths[0].text), location.column or found


def unwrap_categories(given: Any, argument: str) -> Any:
    """Return the categories of a type that declares them, a CategoricalDtype of pandas or an Enum of polars.

    Any other object is returned unchanged. `argument` is the name of the list in messages.
    """
    names = ("CategoricalDtype", "Categorical", "Enum")
    if type(given).__name__ not in names or isinstance(given, Iterable) or not is_column(given):
        return given
    # The categories of a polars Categorical come from the rows.
    if type(given).__name__ == "Categorical" or given.categories is None:
        raise InvalidTypeError(
            f"{argument} must be a type that declares its categories, such as pandas.CategoricalDtype(['a', 'b']) or "
            f"polars.Enum(['a', 'b']), not {quote(given)}"
        )
    return given.categories


def bring_in_index(given: Any, wanted: set[str | None]) -> Any:
    """Return a pandas frame with its index as columns if a wanted column is a level of the index.

    Otherwise the only column of a frame whose index holds the ids would be taken for the ids. Any other object is
    returned unchanged.
    """
    if type(given).__module__.partition(".")[0] != "pandas":
        return given
    in_index = {level for level in given.index.names if level is not None} - set(given.columns)
    return given.reset_index() if in_index & wanted else given


def is_list(given: Any) -> bool:
    """Return True if something is a list of values, not a table or file with a column of them."""
    package = type(given).__module__.partition(".")[0]
    if package in ("pandas", "polars", "pyarrow"):
        return not is_frame(given)
    if package in ("ibis", "pyspark", "duckdb", "_duckdb"):
        return False
    return not isinstance(given, str | bytes | os.PathLike | Mapping) and isinstance(given, Iterable)


def read_list(given: Any, names: ListNames) -> tuple[Any, str]:
    """Return the different values of a public list as an Arrow array, and their common kind."""
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
    """Return public values, none of them missing, as an Arrow array, and their common kind."""
    import pyarrow as pa

    missing = sum(value is None or value != value for value in values)
    check_presence(names, len(values), missing)
    tests = {
        "string": lambda value: isinstance(value, str),
        "boolean": lambda value: isinstance(value, bool),
        "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
        "date": lambda value: isinstance(value, date) and not isinstance(value, datetime),
    }
    kind = next((kind for kind, test in tests.items() if all(map(test, values))), None)
    if kind is None:
        hint = names.about_times if all(hasattr(value, "month") for value in values) else ""
        raise InvalidTypeError(
            f"{names.argument} must hold only strings, only whole numbers, only dates or only booleans{hint}"
        )
    types = {"string": pa.string(), "integer": pa.int64(), "date": pa.date32(), "boolean": pa.bool_()}
    try:
        return pa.array(values, types[kind]), kind
    except (pa.ArrowInvalid, OverflowError, UnicodeError):
        raise InvalidValueError(f"{names.argument} must hold whole numbers of 64 bits or proper text") from None


def check_presence(names: ListNames, rows: int, missing: int) -> None:
    """Raise if a public list is empty or has a gap."""
    if not rows:
        raise InvalidValueError(f"{names.argument} must hold at least one {names.member}, not none")
    if missing:
        raise InvalidValueError(
            f"{names.argument} must not hold missing {names.member}s, and one is missing{names.about_gaps}"
        )


def refuse_repetition(names: ListNames, repeated: str = "one") -> NoReturn:
    """Raise the error about a public list that repeats a member."""
    raise InvalidValueError(f"{names.argument} must hold each {names.member} once, but {repeated} is there twice")


def find_list_column(opened: Opened, column: str | None, wanted: str, names: ListNames) -> str:
    """Return the column of a public table that holds the list: `column`, else `wanted`, else the only one.

    A `column` that is an expression of columns, as "fold(name)", becomes a column of the table.
    """
    # `row_expressions` imports this module for groups.
    from discreet.sources.events.row_expressions import RowExpression, derive_columns

    columns = list(opened.table.columns)
    made = None if column is None else RowExpression.parse(names.argument, column)
    if made is not None and made.is_meant(columns):
        return derive_columns(opened, [made])[made.text]
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
    """Return a public table whose column has a known kind, and that kind.

    Text of a file takes the declared kind of the events. If they have none, it is text beside text, and elsewhere whole
    numbers if all of it spells whole numbers.
    """
    listed = table[column]
    own = kind_of_type(listed.type())
    if own is None:
        raise InvalidTypeError(
            f"{names.argument} must hold strings, whole numbers, dates or booleans, not a column of {listed.type()}"
        )
    if opened.is_text:
        counted = table.aggregate([table[each].count() for each in table.columns])
        try:
            ask(opened.engine, f"reading the {names.argument}", counted.to_pyarrow)
        except EngineError:
            # The item of a row that cannot be read would be missing from the list.
            encoding = events.list_formats.get(names.argument, USUAL).encoding or "utf-8"
            raise InvalidValueError(
                f"{names.argument} must be a file in {encoding}, with as many fields in each row as in the header, and "
                f"a row of it is not: {names.argument}_encoding says otherwise, as 'latin-1'"
            ) from None
        texts = [table[each].re_search(TWICE) for each in table.columns if table[each].type().is_string()]
        doubtful = table.filter(reduce(operator.or_, texts)).limit(1).count()
        if ask(opened.engine, f"reading the {names.argument}", doubtful.to_pyarrow).as_py():
            events.doubts.append(
                f"{names.argument} looks decoded twice, as 'Ã¼' in place of 'ü' does: is it in utf-8, and is the file "
                f"itself right? {names.argument}_encoding says how it is read"
            )
    if not opened.is_text or kind == "string" or (kind is None and events.is_text):
        return table, own
    read = read_cell(DUCKDB, listed, kind or "integer")
    # If the events have no declared kind, 07 stays text, and only 7 is an integer.
    is_lost = read.isnull() if kind is not None else read.isnull() | (read.cast("string") != listed)
    cast, lost = table.mutate(**{column: read}), table.filter(listed.notnull() & is_lost)
    some_lost = bool(ask(opened.engine, f"reading the {names.argument}", lost.count().to_pyarrow).as_py())
    if kind is None:
        return (table, own) if some_lost else (cast, "integer")
    if some_lost:
        raise InvalidTypeError(
            f"{names.argument} must hold {names.member}s like those of the events, {kind}s, and one is not"
        )
    return cast, kind


def holds_long_numbers(domain: Integers | ListedDomain) -> bool:
    """Return True if a domain has whole numbers beyond 2^53, as numbers or as text."""
    if isinstance(domain, Integers):
        return domain.holds_long_numbers()
    if domain.kind not in ("integer", "string"):
        return False
    item = domain.table["item"]
    spelled = item.re_search("^[+-]?[0-9]+$") if domain.kind == "string" else True
    long = domain.table.filter(spelled & (read_cell(DUCKDB, item, "float").abs() > LARGEST_EXACT))
    return bool(ask("DuckDB", "reading the domain", long.count().to_pyarrow).as_py())


def _check_rows(table: Any, opened: Opened, labelled: bool) -> None:
    """Raise if an item or a label is missing or there twice."""
    column, dialect = table["item"], opened.dialect
    asked = {"rows": table.count(), "nulls": column.isnull().sum(), "different": dialect.group_key(column).nunique()}
    if labelled:
        label = table["label"]
        # Labels are shown and not grouped by, so the engine's own equality is enough.
        different = label if dialect.text_bytes is None else dialect.group_key(label)
        asked |= {"label_nulls": label.isnull().sum(), "labels": different.nunique()}
    [found] = ask(opened.engine, "checking the domain", table.aggregate(**asked).to_pyarrow).to_pylist()
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


def kind_of_type(dtype: Any) -> str | None:
    """Return the kind of item that an ibis type holds, or None."""
    tests = {"string": dtype.is_string(), "integer": dtype.is_integer(), "date": dtype.is_date(),
             "boolean": dtype.is_boolean()}  # fmt: skip
    return next((kind for kind, holds in tests.items() if holds), None)

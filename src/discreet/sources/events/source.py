"""`discreet.events` makes a source of scores from a table of events.

It checks each argument once into a value, opens the table, and returns the source that the domain and the groups call
for.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Sequence
from typing import Any, TypedDict, Unpack, overload

from discreet.errors import InvalidTypeError, InvalidValueError, quote, refuse_column
from discreet.privacy import Number, check_adjacency, whole_number
from discreet.sources.base import GroupedSource, OpeningTime
from discreet.sources.discovered import Discovered, UnlistedGroups, UnlistedSource
from discreet.sources.events.cells import has_reading
from discreet.sources.events.connect import open_table
from discreet.sources.events.csv_files import DELIMITERS, check_csv_format
from discreet.sources.events.formats import NUMBER_KINDS, Formats
from discreet.sources.events.group_columns import PlainColumn, Product, read_by
from discreet.sources.events.group_keys import open_group_split, suggest_period
from discreet.sources.events.location import Location
from discreet.sources.events.periods import OnePeriod
from discreet.sources.events.provenance import refuse_own_list
from discreet.sources.events.row_expressions import (
    RowExpression,
    check_user_columns,
    derive_columns,
    note_shared_columns,
)
from discreet.sources.events.rowwise import check_plan, check_rowwise
from discreet.sources.events.scoring import Steps
from discreet.sources.events.table import GroupedTableSource, Question, TableSource
from discreet.sources.events.unlisted import UnlistedGroupTable, UnlistedTable


class _Options(TypedDict, total=False):
    """The keyword arguments of `events` that every overload takes."""

    where: str | None
    during: OnePeriod | None
    value: str | None
    clip: tuple[Number, Number] | None
    resolution: Number | None
    adjacency: str
    name: str | tuple[str, str] | None
    delimiter: str | None
    escape: str | None
    encoding: str | None
    date_format: str | None
    decimal: str | None
    thousands: str | None
    domain_delimiter: str | None
    domain_encoding: str | None
    groups_delimiter: str | None
    groups_encoding: str | None


@overload
def events(
    table: Any, *, user: str, item: str, domain: Discovered, by: None = None, **options: Unpack[_Options]
) -> UnlistedSource: ...
# fmt: off
@overload
def events(
    table: Any, *, user: str, item: str, domain: Discovered,
    by: Any, groups: Any, each_user: str, max_groups_per_user: int | None = None, **options: Unpack[_Options],
) -> UnlistedGroups: ...
@overload
def events(
    table: Any, *, user: str, item: str, domain: Any, label: str | None = None, max_items_per_user: int | None = None,
    by: None = None, **options: Unpack[_Options],
) -> TableSource: ...
@overload
def events(
    table: Any, *, user: str, item: str, domain: Any, label: str | None = None, max_items_per_user: int | None = None,
    by: Any, groups: Any, each_user: str, max_groups_per_user: int | None = None, **options: Unpack[_Options],
) -> GroupedSource: ...
# fmt: on
def events(
    table: Any,
    *,
    user: str,
    item: str,
    domain: Any = None,
    label: str | None = None,
    where: str | None = None,
    during: OnePeriod | None = None,
    value: str | None = None,
    clip: tuple[Number, Number] | None = None,
    resolution: Number | None = None,
    max_items_per_user: int | None = None,
    by: Any = None,
    groups: Any = None,
    each_user: str | None = None,
    max_groups_per_user: int | None = None,
    adjacency: str = "add-remove",
    name: str | tuple[str, str] | None = None,
    delimiter: str | None = None,
    escape: str | None = None,
    encoding: str | None = None,
    date_format: str | None = None,
    decimal: str | None = None,
    thousands: str | None = None,
    domain_delimiter: str | None = None,
    domain_encoding: str | None = None,
    groups_delimiter: str | None = None,
    groups_encoding: str | None = None,
) -> TableSource | GroupedSource | UnlistedSource:
    """Return a source of scores from a table of events, in which each row is one event of a user with an item.

    Parameters
    ----------
    table
        A path, a pattern, a folder, a URL by https, s3 or gs, or a list of these (.parquet, .csv, .tsv, .json,
        compressed as .gz or .zst or not), a pandas, polars or pyarrow table, a DuckDB relation, an ibis table of any
        engine, a Spark DataFrame, or a connection URL together with `name`.
    user, item
        The columns that identify the user and the item. Rows in which either is missing are dropped, and so are rows
        of items outside the domain. A text that is not the name of a column is an expression of columns in the language
        of `where`, such as "fold(trim(dish))"; so it is for `value` and `by`. In several files, and in JSON, brackets
        make an expression. The user must not be made of a column that the item or a group uses.
    domain
        The public list of items: a list, a table, a file with its column ("movies.csv:movie_id"), a column in the
        database of the events ("connect:mart.products.id"), `discreet.integers(lo, hi)`,
        `discreet.strings(alphabet, max_length)`, or a type that declares its categories (`pandas.CategoricalDtype`,
        `polars.Enum`). The list must not be made from the events. If there is no list, pass `discreet.discovered`
        (partition selection), which finds the items at the cost of a delta.
    label
        A column of the domain to show in place of the item.
    where
        A condition on single rows, in DuckDB's SQL. A condition that could read other rows, or fail on a row, is
        refused.
    during
        One period of which rows are kept, such as `discreet.month("played_at").only("2026-10")`; the column is as for
        `by`.
    value, clip, resolution
        Without `value` a score counts distinct users. With it, a score is the sum over users of the user's total for
        the item, clipped to the range `clip`, in whole steps of `resolution`.
    max_items_per_user
        Contribution bound: at most this many of a user's items in the domain, after `where`, are scored. A hash of
        these items alone decides which. Counts then need less noise; the selection does not need the bound.
    by, groups
        Score the items in each of several groups: a column, several, or a period such as `discreet.month("played_at")`,
        and the public list of groups, given like a domain. Rows of other groups are dropped.
    each_user
        "one": a user counts in one group alone, the one with most of the user's rows, and the first in the list among
        equals. "many": a user may count in several. It must be given with groups, because the cost of a release
        depends on it.
    max_groups_per_user
        With "many": a user counts in at most this many groups, chosen by a hash of the user and the group.
    adjacency
        "add-remove" or "swap": the change of whole users by which neighbouring tables differ.
    name
        The table's name if `table` is a URL: "events", "mart.events" or ("mart", "events").
    delimiter, escape, encoding
        The format of CSV files. `delimiter` separates the fields of the events, by default the comma, semicolon or tab
        that the header has (a .tsv has tabs). `escape` comes before a quote inside quotes, in public lists too, by
        default another quote; Spark and MySQL write a backslash. `encoding` of the events is "utf-8", the default,
        "utf-16", "latin-1" or "cp1252".
    date_format, decimal, thousands
        The spelling of dates and numbers in text, in columns of text and in those without a declared type:
        "%d.%m.%Y" of `datetime.strptime` (%Y, %y, %m, %d, %H, %M, %S and %f), the character before the decimal places
        ("," or "."), and the one between groups of three digits. Text in another spelling is missing. By default dates
        are read like 2026-11-03 and numbers like 1234.5.
    domain_delimiter, domain_encoding, groups_delimiter, groups_encoding
        The format of a public list in a CSV file, which does not follow that of the events: by default the delimiter
        that its header has, and UTF-8.

    Returns
    -------
    TableSource, GroupedSource or UnlistedSource
        A source for `top_k`, with the sensitivity of its scores. A GroupedSource has groups, and an UnlistedSource has
        discovered items, in groups or not.

    Examples
    --------
    >>> import discreet, pyarrow
    >>> ratings = pyarrow.table({"who": [1, 1, 2, 3], "movie": ["dune", "dune", "dune", "heat"]})
    >>> source = discreet.events(ratings, user="who", item="movie", domain=["dune", "heat", "alien"])
    >>> discreet.top_k(source, k=1, epsilon=100).items
    ['dune']
    >>> streams = pyarrow.table({"who": [1, 2, 3], "song": ["am", "am", "blu"], "land": ["DE", "DE", "FR"]})
    >>> split = {"by": "land", "groups": ["DE", "FR"], "each_user": "one"}
    >>> source = discreet.events(streams, user="who", item="song", domain=["am", "blu", "cor"], **split)
    >>> discreet.top_k(source, k=1, epsilon=100)["FR"].items
    ['blu']
    """
    begun = time.monotonic()
    check_adjacency(adjacency)
    if domain is None:
        raise InvalidValueError(
            "domain must be given: a public list of items, which is not made from the events, or discreet.discovered "
            "where there is none (docs/discovery.md)"
        )
    most = None
    if max_items_per_user is not None:
        most = min(whole_number(max_items_per_user, "max_items_per_user", 1), 2**63 - 1)
    steps = Steps.parse(value, clip, resolution)
    if isinstance(domain, Discovered) and label is not None:
        raise InvalidValueError("label must be left out with discreet.discovered, because there is no list with labels")
    if isinstance(domain, Discovered) and most is not None:
        raise InvalidValueError(
            "max_items_per_user must be left out with discreet.discovered, which has its own: the scores of the items "
            "that are found count all users"
        )
    if by is None:
        of_groups = {"groups": groups, "each_user": each_user, "max_groups_per_user": max_groups_per_user}
        for argument, given in of_groups.items():
            if given is not None:
                raise InvalidValueError(f"{argument} must be left out without by, which says what the groups are")
    elif groups is None:
        raise InvalidValueError(
            "groups must be given with by: a public list of groups, which must not be taken from the events, because a "
            "group that is listed because somebody is in it tells just that"
        )
    group_columns = () if by is None else read_by(by)
    if during is not None and not isinstance(during, OnePeriod):
        raise InvalidTypeError(
            "during must be one period of a column, such as discreet.month('played_at').only('2026-10'), "
            f"not {quote(during)}"
        )
    condition = None
    if where is not None:
        from discreet.sources.events.where import Condition

        condition = Condition.parse(where)
    table, domain, groups = Location.parse(table) or table, _locate(domain, "domain"), _locate(groups, "groups")
    lists = groups.lists if isinstance(groups, Product) else (groups,)
    table_endings, domain_endings, groups_endings = (
        set[str | None]().union(*(each.endings for each in some if isinstance(each, Location)))
        for some in ((table,), (domain,), lists)
    )
    if escape is not None and not (table_endings | domain_endings | groups_endings) & DELIMITERS.keys():
        raise InvalidValueError("escape must be left out unless the table or a public list is a .csv or .tsv file")
    csv_format = check_csv_format(delimiter, escape, encoding, table_endings)
    list_formats = {
        "domain": check_csv_format(domain_delimiter, escape, domain_encoding, domain_endings, "domain_"),
        "groups": check_csv_format(groups_delimiter, escape, groups_encoding, groups_endings, "groups_"),
    }
    formats = Formats.parse(date_format, decimal, thousands)
    refuse_own_list("domain", domain, table, name)
    for each in lists:
        refuse_own_list("groups", each, table, name)
    if not isinstance(table, Location):
        check_plan(table)

    spelled = {"user": user, "item": item, **({} if value is None else {"value": value})}
    texts = [*spelled.items(), *(("by", each.column) for each in group_columns if isinstance(each, PlainColumn))]
    parsed = [each for each in (RowExpression.parse(argument, text) for argument, text in texts) if each is not None]
    # Keys of JSON are private, and one of several files may be one user's: no name in them makes a text an expression.
    is_json = isinstance(table, Location) and bool(table.endings & {".json", ".jsonl", ".ndjson"})
    has_private_names = is_json or (isinstance(table, Location) and table.is_several)
    by_text = {each.text for each in parsed if has_private_names and not each.may_be_name()}
    for each in group_columns if has_private_names else ():
        # Every name is a column of JSON, so that no row of a misspelt period would be left.
        if isinstance(each, PlainColumn) and (period := suggest_period(each.column)):
            raise InvalidValueError(f"by must be a column of the table, not {quote(each.column)}{period}")
    # Every name that is wanted is a column of private JSON.
    wanted = [text for _, text in texts if isinstance(text, str)] + [each.column for each in group_columns]
    wanted = [text for text in wanted if text not in by_text]
    wanted += [column for each in parsed if not has_private_names or each.text in by_text for column in each.columns]
    wanted += () if condition is None else condition.columns
    wanted += [] if during is None else [during.column.column]
    opened = open_table(table, name, "table", wanted, csv_format, user)
    opened.list_formats, opened.formats = list_formats, formats
    try:
        expressions = [
            each
            for each in parsed
            if (each.text in by_text if has_private_names else each.is_meant(opened.table.columns))
        ]
        made = next((each for each in expressions if each.argument == "user"), None)
        if type(table).__module__.partition(".")[0] == "ibis":
            for column in [user] if made is None else made.list_columns(opened.table.columns):
                check_rowwise(table, opened.dialect, column)
        if made is not None:
            used: dict[str, Sequence[str]] = {"item": [item], "by": [each.column for each in group_columns]}
            used |= {} if during is None else {"during": [during.column.column]}
            used |= {} if value is None else {"value": [value]}
            for each in expressions:
                used[each.argument] = [*used.get(each.argument, ()), *each.columns]
            own_columns = used.pop("user")
            check_user_columns(made, used)
            if condition is not None and len(own_columns) > 1:
                opened.notes += note_shared_columns(made, condition.columns)
        derived = derive_columns(opened, expressions, has_private_names) if expressions else {}
        group_columns = tuple(
            PlainColumn(derived[each.column], each.column)
            if isinstance(each, PlainColumn) and each.column in derived
            else each
            for each in group_columns
        )
        columns = {role: derived.get(text, text) if isinstance(text, str) else text for role, text in spelled.items()}
        named = columns if during is None else {**columns, "during": during.column.column}
        for argument, column in named.items():
            if not isinstance(column, str) or column not in opened.table.columns:
                is_calculated = any(each.text == column for each in parsed)
                hint = f"; an expression stands in brackets here, as ({column})" if is_calculated else ""
                refuse_column(argument, column, list(opened.events.columns), opened.names_are_private, hint)
            dtype = opened.table[column].type()
            if argument == "user":
                opened.dialect.check_column(argument, dtype)
            has_numbers = column in opened.undeclared or dtype.is_numeric()
            if dtype.is_string() and any(map(formats.concern, NUMBER_KINDS)):
                has_numbers = has_reading(opened.dialect, opened.table[column], "float")
            if argument == "value" and not has_numbers:
                raise InvalidTypeError(f"value must be a column of numbers, not of {dtype}")
        opened.check_formats(wanted)
        split = None
        if by is not None:
            split = open_group_split(group_columns, groups, opened, each_user, max_groups_per_user)
        own = tuple((each.argument, each.text) for each in expressions)
        question = Question(opened, columns, condition, steps, adjacency, during, spelled, own)
        source: TableSource | GroupedTableSource | UnlistedTable
        if isinstance(domain, Discovered):
            source = UnlistedTable(question, domain) if split is None else UnlistedGroupTable(question, domain, split)
        elif split is None:
            source = TableSource(question, domain, label, most)
        else:
            source = GroupedTableSource(question, domain, label, most, split)
        for doubt in opened.doubts:
            warnings.warn(doubt, UserWarning, stacklevel=2)
        source.opening = OpeningTime(begun)
        return source
    except BaseException:
        opened.close()
        raise


def _locate(given: Any, argument: str) -> Any:
    """Parse a public list that is a file or a table of the database; return any other list as it is."""
    if isinstance(given, Product):
        return Product(tuple(_locate(each, argument) for each in given.lists))
    return Location.parse_list(given, argument) if isinstance(given, str | os.PathLike) else given

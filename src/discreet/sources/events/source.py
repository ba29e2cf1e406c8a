"""`discreet.events`: its arguments, checked, become a source of scores."""

from __future__ import annotations

import os
import time
from typing import Any, TypedDict, Unpack, overload

from discreet.errors import InvalidTypeError, InvalidValueError, refuse_column
from discreet.privacy import Number, check_adjacency, whole_number
from discreet.sources.base import GroupedSource
from discreet.sources.discovered import Discovered, UnlistedGroups, UnlistedSource
from discreet.sources.events.connect import Opened, open_table
from discreet.sources.events.csv_files import check_csv_format
from discreet.sources.events.group_columns import Product, read_by
from discreet.sources.events.group_keys import GroupSplit, open_group_split, refuse_own_groups
from discreet.sources.events.location import PREFIX, Location
from discreet.sources.events.periods import OnePeriod, check_during
from discreet.sources.events.provenance import origin_of
from discreet.sources.events.rowwise import check_plan, check_rowwise
from discreet.sources.events.scoring import steps_of
from discreet.sources.events.table import GroupedTableSource, Question, TableSource
from discreet.sources.events.unlisted import UnlistedGroupTable, UnlistedTable


class _Options(TypedDict, total=False):
    """What `events` takes by name alone, whatever it returns."""

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
) -> TableSource | GroupedSource | UnlistedSource:
    """A source of scores from a table of events, one row for something that a user did to an item.

    Parameters
    ----------
    table
        A path, a pattern, a folder, a URL by https, s3 or gs, or a list of these (.parquet, .csv, .tsv, .json,
        compressed as .gz or .zst or not), a pandas, polars or pyarrow table, a DuckDB relation, an ibis table of any
        engine, a Spark DataFrame, or a connection URL together with `name`.
    user, item
        The columns that say who and what. Rows without either are dropped, and so are items outside the domain.
    domain
        The public list of items: a list, a table, a file with its column ("movies.csv:movie_id"), a column in the
        database of the events ("connect:mart.products.id"), `discreet.integers(lo, hi)`,
        `discreet.strings(alphabet, max_length)`, or a type that declares its categories (`pandas.CategoricalDtype`,
        `polars.Enum`). It must not come from the events. Where there is no list, `discreet.discovered` has the items
        found, for a delta.
    label
        A column of the domain to show in place of the item.
    where
        A condition on single rows, in DuckDB's SQL. What could look at other rows, or fail on one, is refused.
    during
        Only rows of one period, such as `discreet.month("played_at").only("2026-10")`; the column is as for `by`.
    value, clip, resolution
        Without `value` a score counts distinct users. With it, a score is the sum over users of the user's total for
        the item, clipped to the range `clip`, in whole steps of `resolution`.
    max_items_per_user
        Of each user's items in the domain, after `where`, only this many are scored: which ones is decided by these
        items alone, in an order that looks random. Counts then need less noise; the selection does not need it.
    by, groups
        Score the items in each of several groups: a column, several, or a period such as `discreet.month("played_at")`,
        and the public list of groups, as a domain is. Rows of other groups are dropped.
    each_user
        "one": a user counts in one group alone, the one with most of the user's rows, of several the first in the list.
        "many": a user may count in several. Groups need one of them, because it decides what a release costs.
    max_groups_per_user
        With "many": a user counts in at most so many groups, chosen by a hash of the user and the group.
    adjacency
        "add-remove" or "swap": what two neighbouring tables differ by, in terms of whole users.
    name
        The table's name, where `table` is a URL: "events", "mart.events" or ("mart", "events").
    delimiter, escape, encoding
        In CSV files, of the events and of the domain: the character between fields, by default the comma, semicolon or
        tab that the header has (a .tsv has tabs); the one before a quote inside quotes, by default another quote, where
        Spark and MySQL write a backslash; and "utf-8", which is the default, "utf-16" or "latin-1".

    Returns
    -------
    TableSource, GroupedSource or UnlistedSource
        What `top_k` takes; it knows how far one user can move a score. The second has groups, and the last has items
        that nobody listed, in groups or not.

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
    most = _check_most_items(max_items_per_user)
    steps = steps_of(value, clip, resolution)
    if isinstance(domain, Discovered):
        _check_discovered(label, most)
    _check_groups(by, groups, each_user, max_groups_per_user)
    check_during(during)
    table, domain, groups = Location.parse(table) or table, _locate(domain, "domain"), _locate(groups, "groups")
    located = [each for each in (table, domain, groups) if isinstance(each, Location)]
    csv_format = check_csv_format(
        delimiter, escape, encoding, set[str | None]().union(*(each.endings for each in located))
    )
    _refuse_own_domain(table, domain, name)
    refuse_own_groups(table, groups, name)
    check_plan(table)
    wanted = [*_find_named_columns(user, item, value, where), *_find_group_columns(by, during)]
    opened = open_table(table, name, "table", wanted, csv_format, user)
    opened.csv_format = csv_format
    try:
        if type(table).__module__.partition(".")[0] == "ibis":
            check_rowwise(table, opened.dialect, user)
        columns = {"user": user, "item": item, **({} if value is None else {"value": value})}
        named = columns if during is None else {**columns, "during": during.column.column}
        for argument, column in named.items():
            _check_column(opened, argument, column)
        split = None if by is None else open_group_split(by, groups, opened, each_user, max_groups_per_user)
        question = Question(opened, columns, where, steps, adjacency, during)
        source = _open_source(question, domain, label, most, split)
        source.opening.add_since(begun)
        return source
    except BaseException:
        opened.close()
        raise


_EventSource = TableSource | GroupedTableSource | UnlistedTable


def _open_source(
    question: Question, domain: Any, label: str | None, most: int | None, split: GroupSplit | None
) -> _EventSource:
    """The source of an opened table, of the kind that the domain and the groups ask for."""
    if isinstance(domain, Discovered):
        return UnlistedTable(question, domain) if split is None else UnlistedGroupTable(question, domain, split)
    if split is None:
        return TableSource(question, domain, label, most)
    return GroupedTableSource(question, domain, label, most, split)


def _check_discovered(label: Any, most: int | None) -> None:
    """Raises where something is given that items which nobody listed do not have."""
    if label is not None:
        raise InvalidValueError("label must be left out with discreet.discovered, because there is no list with labels")
    if most is not None:
        raise InvalidValueError(
            "max_items_per_user must be left out with discreet.discovered, which has its own: the scores of the items "
            "that are found count all users"
        )


def _find_named_columns(user: Any, item: Any, value: Any, where: Any) -> list[str]:
    """The columns that the caller names, those of the condition as far as it can be read."""
    names = [column for column in (user, item, value) if isinstance(column, str)]
    if isinstance(where, str):
        from discreet.sources.events.where import named_columns

        names += named_columns(where)
    return names


def _find_group_columns(by: Any, during: OnePeriod | None) -> list[str]:
    grouping = () if by is None else read_by(by)
    return [each.column for each in (*grouping, *([] if during is None else [during.column]))]


def _locate(given: Any, argument: str) -> Any:
    """Parse the public lists that are files; other lists stay as they are."""
    if isinstance(given, Product):
        return Product(tuple(_locate(each, argument) for each in given.lists))
    return Location.parse_list(given, argument) if isinstance(given, str | os.PathLike | Location) else given


def _check_most_items(given: Any) -> int | None:
    if given is None:
        return None
    return min(whole_number(given, "max_items_per_user", 1), 2**63 - 1)


def _check_groups(by: Any, groups: Any, each_user: Any, max_groups_per_user: Any) -> None:
    """Raises unless `by` and `groups` are both there, or neither and nothing that belongs to them."""
    if by is None:
        for argument, given in (
            ("groups", groups), ("each_user", each_user), ("max_groups_per_user", max_groups_per_user),
        ):  # fmt: skip
            if given is not None:
                raise InvalidValueError(f"{argument} must be left out without by, which says what the groups are")
    elif groups is None:
        raise InvalidValueError(
            "groups must be given with by: a public list of groups, which must not be taken from the events, because a "
            "group that is listed because somebody is in it tells just that"
        )


def _check_column(opened: Opened, argument: str, column: Any) -> None:
    names = list(opened.table.columns)
    if not isinstance(column, str) or column not in names:
        refuse_column(argument, column, names, private=opened.is_text)
    dtype = opened.table[column].type()
    if argument == "user":
        opened.dialect.check_column(argument, dtype)
    if argument == "value" and column not in opened.undeclared and not dtype.is_numeric():
        raise InvalidTypeError(f"value must be a column of numbers, not of {dtype}")


def _refuse_own_domain(table: Any, domain: Any, name: Any) -> None:
    """Refuses the events themselves as their domain, or a piece of them, where that can be seen."""
    beside = domain.beside if isinstance(domain, Location) else None
    in_database = isinstance(table, Location) and table.database is not None
    if beside is not None and not in_database:
        raise InvalidValueError(f"domain must not begin with {PREFIX!r} unless table is a connection URL")
    origin = origin_of(domain) if beside is None else origin_of(table, beside.table)
    # To find the files of a large table takes time, and a list of one's own has no origin.
    if domain is table or (origin and origin.meets(origin_of(table, name if in_database and name else None))):
        raise InvalidValueError(
            "domain must be a public list of items, not the events themselves or a column of them: an item that is "
            "listed because somebody touched it tells just that, and no epsilon covers it"
        )

"""Check before a release that columns, domain, condition and groups fit the events.

A release drops rows that do not fit and cannot report them, because a report about private rows is not private. This
report goes to the data holder alone. The engine counts; only counts and the most frequent few values are fetched.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from discreet.errors import InvalidTypeError, redact_url
from discreet.sources.events.cells import is_untyped, read_cell
from discreet.sources.events.check_report import Check, DateText, Frequent, GroupCheck, NearMatch, OtherColumn
from discreet.sources.events.connect import Opened, open_table
from discreet.sources.events.dialects.duckdb import DIALECT as DUCKDB
from discreet.sources.events.domain import DOMAIN, ListedDomain, find_list_column
from discreet.sources.events.engine import EngineError, ask
from discreet.sources.events.lookup import read_matching
from discreet.sources.events.ranges import Integers
from discreet.sources.events.table import EventTable, TableParts

FEW = 5
"""Number of examples of each finding, which fit on one line of the report."""

_TRIED = 100
"""Number of items outside the domain that are looked for in the other columns of the domain's file."""

_NO_TEXT = "(no text)"
_SPACES = (" ", "\t", "\u00a0")
_PLACEHOLDERS = ("", "null", "none", "nan", "n/a", "na", "nil", "-", "unknown", "undefined", "anonymous")
_YEAR = r"([0-9]{4}|[0-9]{2})([ T,].*)?$"
_ORDERS = {
    "day": rf"^(1[3-9]|2[0-9]|3[01])[./-][0-9]{{1,2}}[./-]{_YEAR}",
    "month": rf"^[0-9]{{1,2}}[./-](1[3-9]|2[0-9]|3[01])[./-]{_YEAR}",
    "day or month": rf"^[0-9]{{1,2}}[./-][0-9]{{1,2}}[./-]{_YEAR}",
    "year, but without hyphens,": r"^[0-9]{4}[./][0-9]{1,2}[./][0-9]{1,2}([ T,].*)?$",
}
"""Patterns of dates that are not read, by their first part; a number beyond 12 tells a day from a month."""


def check_events(source: Any) -> Check:
    """Check before a release that columns, domain, condition and groups fit the events. NOT private.

    Parameters
    ----------
    source
        The source that `discreet.events` returned.

    Returns
    -------
    Check
        Counts, the most frequent few values that do not fit, and advice; it prints as a report. It is for the data
        holder alone: nothing is charged for it, and nothing in it is protected.

    Examples
    --------
    >>> import discreet, pyarrow
    >>> ratings = pyarrow.table({"who": [1, 2, None], "movie": ["Dune", "heat", "heat"]})
    >>> check = discreet.check_events(discreet.events(ratings, user="who", item="movie", domain=["dune", "heat"]))
    >>> check.rows, check.rows_without_user, check.rows_inside, check.items_outside
    (3, 1, 1, 1)
    >>> print(check.advice[1].partition(":")[0])
    1 row would be inside the domain if case and spaces were ignored, such as 'Dune', which the domain has as 'dune'
    """
    if not isinstance(source, EventTable):
        raise InvalidTypeError(f"source must be what discreet.events returns, not a {type(source).__name__}")
    with source.exclusive():
        return _Inspection(source.list_parts()).check()


class _Inspection:
    """The queries of a check, each of which asks the engine once."""

    def __init__(self, parts: TableParts) -> None:
        self._parts, self._opened, self._reading = parts, parts.opened, parts.reading
        self._dialect = parts.opened.dialect
        self._laid = parts.reading.lay_out(parts.kept)
        # A condition may name columns in another case.
        columns, where = parts.opened.table.columns, parts.where
        known = {**{column.casefold(): column for column in columns}, **{column: column for column in columns}}
        named = () if where is None else where.columns
        self._where_columns = [known.get(name) or known[name.casefold()] for name in named]

    def check(self) -> Check:
        laid, opened, table = self._laid, self._opened, self._opened.table
        usable = laid.who.notnull() & laid.item.notnull()
        # With a domain of all strings up to a length, longer text is no item but has the right kind.
        read = laid.spelled if self._reading.kind == "string" else laid.item
        asked = {
            "kept": laid.count(),
            "users": laid.who.nunique(),
            "without_user": count_if(laid.who.isnull()),
            "without_item": count_if(laid.gap),
            "other_kind": count_if(read.isnull() & ~laid.gap),
            "usable": count_if(usable if self._reading.steps is None else usable & laid.steps.notnull()),
        }
        if self._reading.steps is not None:
            asked["without_value"] = count_if(laid.steps.isnull())
        counted = fetch_counts(opened, laid, **asked)
        rows, unreadable = fetch_counts(opened, table, n=table.count())["n"], 0
        if opened.csv_rows:
            unreadable = sum(each.unreadable for each in opened.csv_rows)
            rows += unreadable
        elif opened.is_text:
            # DuckDB skips lines of JSON that are no text only when it reads their fields.
            user, item = (table[self._reading.columns[name]] for name in ("user", "item"))
            there = fetch_counts(opened, table, gaps=count_if(user.isnull()), users=user.count(), items=item.count())
            unreadable = rows - there["gaps"] - there["users"]
        kept, domain, split = counted["kept"], self._parts.domain, self._parts.split
        value_texts: list[Frequent] = []
        if counted.get("without_value") and self._is_text(self._reading.columns["value"]):
            cells = self._parts.kept[self._reading.columns["value"]]
            texts = self._parts.kept.filter(read_cell(self._dialect, cells, "float").isnull())
            texts = texts.select(value=read_cell(self._dialect, cells, "string"))
            value_texts = find_frequent(self._opened, texts.filter(texts.value.notnull()), "value")
        where_values: dict[str, list[Frequent]] = {}
        if rows and not kept:
            where_values = {name: self._list_frequent(self._opened.table, name, 3) for name in self._where_columns}
        users = self._laid.filter(self._laid.user.notnull())
        placeholders = users.filter(users.user.strip().lower().isin(_PLACEHOLDERS))
        dated = [self._reading.columns["item"]] if self._reading.kind == "date" else []
        dated += [*self._where_columns, *([] if split is None else split.groups.columns)]
        groups = None
        if split is not None:
            every, events = len(split.groups.keys), self._parts.kept
            inside = split.groups.add_ordinals(events, one=events[self._reading.columns["user"]])
            found = fetch_counts(opened, inside, n=inside.count(), groups=inside.grp.nunique())
            strangers = split.groups.find_strangers(events)
            outside = {by.spelling: self._list_frequent(some, by.column) for by, some in strangers}
            groups = GroupCheck(kept - found["n"], every - found["groups"], every, outside)
        # All rows with a user and an item count if the items are to be found.
        items = {"rows_inside": counted["usable"]}
        return Check(
            rows=rows,
            rows_kept=kept,
            rows_unreadable=unreadable,
            users=counted["users"],
            rows_without_user=counted["without_user"],
            rows_without_item=counted["without_item"],
            rows_without_value=counted.get("without_value"),
            value_texts=value_texts,
            placeholder_users=find_frequent(self._opened, placeholders, "user"),
            kind=self._reading.kind,
            rows_of_other_kind=counted["other_kind"],
            d=None if domain is None else domain.d,
            dates=[each for column in dict.fromkeys(dated) for each in self._find_dates(column)],
            where_values=where_values,
            groups=groups,
            **(items if domain is None else inspect_items(self._parts, self._laid, domain)),
        )

    def _find_dates(self, column: str) -> list[DateText]:
        """Return the texts of a column that look like dates with another part first, none if it is not text."""
        if not self._is_text(column):
            return []
        table = self._opened.table
        texts = table.select(value=read_cell(self._dialect, table[column], "string"))
        tests = {f"order{i}": texts.value.re_search(pattern) for i, pattern in enumerate(_ORDERS.values())}
        asked = {name: count_if(test) for name, test in tests.items()}
        examples = {f"example_{name}": texts.value.max(where=test) for name, test in tests.items()}
        [found] = fetch(self._opened, texts.aggregate(**asked, **examples))
        day, month, either, year = (int(found[f"order{i}"] or 0) for i in range(len(_ORDERS)))
        orders, told = list(_ORDERS), []
        if either:
            place = 0 if day and not month else 1 if month and not day else 2
            told.append(DateText(column, either, found[f"example_order{place}"], orders[place]))
        if year:
            told.append(DateText(column, year, found["example_order3"], orders[3]))
        return told

    def _is_text(self, column: str) -> bool:
        dtype = self._opened.table[column].type()
        return column in self._opened.undeclared or dtype.is_string() or is_untyped(dtype)

    def _list_frequent(self, rows: Any, column: str, most: int = FEW) -> list[Frequent]:
        """Return the most frequent values of a column as text, also numbers that can be no items."""
        cells = rows[column]
        if self._dialect.has_typed_columns and not is_untyped(cells.type()):
            text = cells.cast("string")
        else:
            text = read_cell(self._dialect, cells, "string")
        return find_frequent(self._opened, rows.select(value=text), "value", most)


def inspect_items(parts: TableParts, laid: Any, domain: Integers | ListedDomain) -> dict[str, Any]:
    """Return the fields of a Check that are about items and the domain.

    Parameters
    ----------
    parts
        The events.
    laid
        The rows that `RowReading.lay_out` returns.
    domain
        The public list.
    """
    import ibis

    rows = laid.filter(laid.who.notnull() & ~laid.gap)
    if parts.reading.steps is not None:
        rows = rows.filter(rows.steps.notnull())
    marked = rows.group_by("item", "spelled").agg(n=rows.count())
    if isinstance(domain, Integers):
        marked = marked.mutate(listed=ibis.coalesce(marked.item.between(domain.lo, domain.hi), False))
    else:
        keys = domain.table.select(key=parts.reading.dialect.group_key(domain.table.item))
        joined = marked.left_join(keys, marked.item == keys.key)
        marked = joined.select(marked.item, marked.spelled, marked.n, listed=joined.key.notnull())
    touched = ask(parts.opened.engine, "checking the items", marked.cache)
    try:
        opened, inside, dialect = parts.opened, touched.listed, parts.reading.dialect
        counted = fetch_counts(
            opened,
            touched,
            rows_inside=inside.ifelse(touched.n, 0).sum(),
            rows_outside=inside.ifelse(0, touched.n).sum(),
            items_outside=count_if(~inside),
            items_touched=touched.item.nunique(where=inside),
        )
        outside, untouched = touched.filter(~inside), domain.d - counted.pop("items_touched")
        found = {**counted, "items_untouched": untouched, "outside": _list_outside(opened, outside, FEW)}
        if isinstance(domain, Integers):
            return found
        rows_near, near = _find_near(opened, outside, domain, _fold)
        rows_alike, alike = 0, list[NearMatch]()
        if domain.kind == "string":  # 7.0 is the whole number 7
            rows_alike, alike = _find_near(opened, outside, domain, lambda text: read_cell(dialect, text, "integer"))
        listed = domain.table.select(item=domain.table.item, key=dialect.group_key(domain.table.item))
        items = touched.filter(inside)
        never = listed.anti_join(items, listed.key == items.item).select("item").order_by("item").limit(FEW)
        return {
            **found,
            "untouched": [str(row["item"]) for row in fetch(opened, never)],
            "rows_near": rows_near,
            "near": near,
            "rows_alike": rows_alike,
            "alike": alike,
            **_search_file(parts, outside),
        }
    finally:
        # The engine may have closed the connection, and the text of its error is private.
        with suppress(Exception):
            touched.release()


def _list_outside(opened: Opened, outside: Any, most: int) -> list[Frequent]:
    return list_first(opened, outside.select(value=outside.spelled, n=outside.n), most)


def _find_near(
    opened: Opened, outside: Any, domain: ListedDomain, fold: Callable[[Any], Any]
) -> tuple[int, list[NearMatch]]:
    """Count the rows of items that equal an item of the domain after `fold`, and return a few of these items."""
    import ibis

    text = domain.table.item.cast("string")
    listed = domain.table.select(listed=text, folded=fold(text))
    found = outside.filter(outside.spelled.notnull())
    found = found.select(found=found.spelled, n=found.n, folded=fold(found.spelled))
    pairs = found.inner_join(listed, found.folded == listed.folded).select(found.found, found.n, listed.listed)
    # Several items of the domain may fold alike, and each row counts once.
    once = pairs.group_by("found").agg(n=pairs.n.max(), listed=pairs.listed.min())
    rows = fetch_counts(opened, once, n=once.n.sum())["n"]
    few = fetch(opened, once.order_by([ibis.desc(once.n), once.found]).limit(FEW)) if rows else []
    return rows, [NearMatch(row["found"], row["listed"], int(row["n"])) for row in few]


def _fold(text: Any) -> Any:
    """Return a text in lower case and without spaces."""
    folded = text.lower()
    for space in _SPACES:
        folded = folded.replace(space, "")
    return folded


def _search_file(parts: TableParts, outside: Any) -> dict[str, Any]:
    """Search the domain's file for other columns with most of the items outside, and for its header as an item.

    Case and spaces are ignored here. If they differ too, the next check reports it.
    """
    import pyarrow as pa

    if parts.domain_file is None:
        return {}
    folded = outside.mutate(spelled=_fold(outside.spelled)).group_by("spelled").agg(n=outside.n.sum())
    tried = [each.value for each in _list_outside(parts.opened, folded, _TRIED)]
    wanted = pa.table({"value": pa.array(tried, pa.string())})
    opened = open_table(parts.domain_file, None, "domain", csv_format=parts.opened.csv_format)
    columns = []
    try:
        given = find_list_column(opened, parts.domain_file.column, parts.reading.columns["item"], DOMAIN)
        for name in [name for name in opened.table.columns if name != given] if tried else []:
            texts = opened.table.select(value=_fold(read_cell(DUCKDB, opened.table[name], "string"))).distinct()
            # A column that the caller did not name may be in another encoding, and is then passed over.
            with suppress(EngineError):
                # No statement may show the texts, so they are matched as a table.
                n = ask(opened.engine, "checking the items", partial(read_matching, texts, wanted)).num_rows
                if 2 * n > len(tried):
                    columns.append(
                        OtherColumn(f"{redact_url(parts.domain_file.paths[0].text)}:{name}", int(n), len(tried))
                    )
    finally:
        opened.close()
    header = "".join(given.lower().split())
    return {"other_columns": columns, "header_item": given if header in tried else None}


def find_frequent(opened: Opened, rows: Any, column: str, most: int = FEW) -> list[Frequent]:
    """Return the most frequent values of a column of text."""
    return list_first(opened, rows.group_by(value=rows[column]).agg(n=rows.count()), most)


def list_first(opened: Opened, counted: Any, most: int) -> list[Frequent]:
    """Return the values with most rows, of a table with the columns `value` and `n`, in a fixed order."""
    import ibis

    rows = fetch(opened, counted.order_by([ibis.desc(counted.n), counted.value]).limit(most))
    return [Frequent(_NO_TEXT if row["value"] is None else str(row["value"]), int(row["n"])) for row in rows]


def count_if(condition: Any) -> Any:
    """Return the expression that counts the rows in which a condition holds."""
    return condition.ifelse(1, 0).sum()


def fetch_counts(opened: Opened, table: Any, **asked: Any) -> dict[str, int]:
    """Return aggregates of a table by name, 0 for those that are NULL because there are no rows."""
    [found] = fetch(opened, table.aggregate(**asked))
    return {name: int(count or 0) for name, count in found.items()}


def fetch(opened: Opened, expression: Any) -> list[dict[str, Any]]:
    """Return the rows of a small result."""
    backend = opened.table.get_backend()
    rows: list[dict[str, Any]] = ask(
        opened.engine, "checking the rows", lambda: backend.to_pyarrow(expression).to_pylist()
    )
    return rows

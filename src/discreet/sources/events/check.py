"""Looking at events before a release, to see whether the columns, the domain, the condition and the groups fit.

A release leaves out what does not fit and cannot report it, because the report would be about private rows. Here it is
reported, to the data holder alone. All is counted on the engine; what is fetched is counts and the most frequent few
values.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
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

# Questions to an engine about its rows, for a check: what is fetched is counts and the most frequent few values.

FEW = 5
_NO_TEXT = "(no text)"


def fetch(opened: Opened, expression: Any) -> list[dict[str, Any]]:
    """The rows of a small result."""
    backend = opened.table.get_backend()
    rows: list[dict[str, Any]] = ask(
        opened.engine, "checking the rows", lambda: backend.to_pyarrow(expression).to_pylist()
    )
    return rows


def fetch_counts(opened: Opened, table: Any, **asked: Any) -> dict[str, int]:
    """Numbers about a table, by name; those of no rows are 0."""
    [found] = fetch(opened, table.aggregate(**asked))
    return {name: int(count or 0) for name, count in found.items()}


def find_frequent(opened: Opened, rows: Any, column: str, most: int = FEW) -> list[Frequent]:
    """The most frequent values of a column of text."""
    return list_first(opened, rows.group_by(value=rows[column]).agg(n=rows.count()), most)


def list_first(opened: Opened, counted: Any, most: int) -> list[Frequent]:
    """The values that have most rows, of columns `value` and `n`, in an order that is always the same."""
    rows = fetch(opened, counted.order_by([in_descending_order(counted.n), counted.value]).limit(most))
    return [Frequent(_NO_TEXT if row["value"] is None else str(row["value"]), int(row["n"])) for row in rows]


def count_if(condition: Any) -> Any:
    """In how many rows a condition holds, as an expression."""
    return condition.ifelse(1, 0).sum()


def in_descending_order(column: Any) -> Any:
    """What puts rows with larger values first."""
    import ibis

    return ibis.desc(column)


# Which items of the events are in the domain and which are not, and what they may have been meant to be.

_TRIED = 100
"""How many items are looked for in other columns of the domain's file."""

_SPACES = (" ", "\t", "\u00a0")


def inspect_items(parts: TableParts, laid: Any, domain: Integers | ListedDomain) -> dict[str, Any]:
    """What a Check says of items and the domain, by its fields.

    Parameters
    ----------
    parts
        The events.
    laid
        Their rows as `RowReading.lay_out` has them.
    domain
        The public list.
    """
    rows = laid.filter(laid.who.notnull() & ~laid.gap)
    if parts.reading.steps is not None:
        rows = rows.filter(rows.steps.notnull())
    spelled = rows.group_by("item", "spelled").agg(n=rows.count())
    touched = ask(parts.opened.engine, "checking the items", _mark_listed(parts, spelled, domain).cache)
    try:
        return _compare(parts, touched, domain)
    finally:
        # The engine may be gone already, and its words are private.
        with suppress(Exception):
            touched.release()


def _mark_listed(parts: TableParts, spelled: Any, domain: Integers | ListedDomain) -> Any:
    """The items with how they are spelled, and whether they are in the domain."""
    import ibis

    if isinstance(domain, Integers):
        return spelled.mutate(listed=ibis.coalesce(spelled.item.between(domain.lo, domain.hi), False))
    keys = domain.table.select(key=parts.reading.dialect.group_key(domain.table.item))
    joined = spelled.left_join(keys, spelled.item == keys.key)
    return joined.select(spelled.item, spelled.spelled, spelled.n, listed=joined.key.notnull())


def _compare(parts: TableParts, touched: Any, domain: Integers | ListedDomain) -> dict[str, Any]:
    opened, inside = parts.opened, touched.listed
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
    rows_alike, alike = _find_numbers(parts, outside, domain)
    return {
        **found,
        "untouched": _list_untouched(parts, touched.filter(inside), domain),
        "rows_near": rows_near,
        "near": near,
        "rows_alike": rows_alike,
        "alike": alike,
        **_search_file(parts, outside),
    }


def _list_outside(opened: Opened, outside: Any, most: int) -> list[Frequent]:
    return list_first(opened, outside.select(value=outside.spelled, n=outside.n), most)


def _list_untouched(parts: TableParts, inside: Any, domain: ListedDomain) -> list[str]:
    """A few items of the domain that nobody touched."""
    key = parts.reading.dialect.group_key(domain.table.item)
    listed = domain.table.select(item=domain.table.item, key=key)
    untouched = listed.anti_join(inside, listed.key == inside.item).select("item")
    return [str(row["item"]) for row in fetch(parts.opened, untouched.order_by("item").limit(FEW))]


def _find_numbers(parts: TableParts, outside: Any, domain: ListedDomain) -> tuple[int, list[NearMatch]]:
    """Items outside of a domain of texts that are in it as whole numbers, as 7.0 is 7: in how many rows, and a few."""
    if domain.kind != "string":
        return 0, []
    return _find_near(parts.opened, outside, domain, lambda text: read_cell(parts.reading.dialect, text, "integer"))


def _find_near(
    opened: Opened, outside: Any, domain: ListedDomain, fold: Callable[[Any], Any]
) -> tuple[int, list[NearMatch]]:
    """Items outside of the domain that are in it but for what `fold` leaves out: in how many rows, and a few."""
    text = domain.table.item.cast("string")
    listed = domain.table.select(listed=text, folded=fold(text))
    found = outside.filter(outside.spelled.notnull())
    found = found.select(found=found.spelled, n=found.n, folded=fold(found.spelled))
    pairs = found.inner_join(listed, found.folded == listed.folded).select(found.found, found.n, listed.listed)
    # Two items of the domain may be alike, and each row counts once.
    once = pairs.group_by("found").agg(n=pairs.n.max(), listed=pairs.listed.min())
    rows = fetch_counts(opened, once, n=once.n.sum())["n"]
    few = fetch(opened, once.order_by([in_descending_order(once.n), once.found]).limit(FEW)) if rows else []
    return rows, [NearMatch(row["found"], row["listed"], int(row["n"])) for row in few]


def _fold(text: Any) -> Any:
    """A text whatever its case, and without spaces."""
    folded = text.lower()
    for space in _SPACES:
        folded = folded.replace(space, "")
    return folded


def _search_file(parts: TableParts, outside: Any) -> dict[str, Any]:
    """What of a domain's file may be meant: columns with most of what the given one lacks, or its header as an item.

    Case and spaces do not matter here: where they differ too, the next check says so.
    """
    if parts.domain_file is None:
        return {}
    folded = outside.mutate(spelled=_fold(outside.spelled)).group_by("spelled").agg(n=outside.n.sum())
    tried = [each.value for each in _list_outside(parts.opened, folded, _TRIED)]
    file = parts.domain_file.paths[0].text
    opened = open_table(parts.domain_file, None, "domain", csv_format=parts.opened.csv_format)
    try:
        given = find_list_column(opened, parts.domain_file.column, parts.reading.columns["item"], DOMAIN)
        others = [name for name in opened.table.columns if name != given] if tried else []
        found = {name: _count_matching(opened, name, tried) for name in others}
    finally:
        opened.close()
    kept = {f"{redact_url(file)}:{name}": n for name, n in found.items() if 2 * n > len(tried)}
    columns = [OtherColumn(spelling, n, len(tried)) for spelling, n in kept.items()]
    header = "".join(given.lower().split())
    return {"other_columns": columns, "header_item": given if header in tried else None}


def _count_matching(opened: Opened, column: str, tried: list[str]) -> int:
    """How many of some texts, which no statement may show, a column has."""
    import pyarrow as pa

    texts = opened.table.select(value=_fold(read_cell(DUCKDB, opened.table[column], "string"))).distinct()
    wanted = pa.table({"value": pa.array(tried, pa.string())})
    try:
        return int(ask(opened.engine, "checking the items", lambda: read_matching(texts, wanted)).num_rows)
    except EngineError:
        return 0  # A column that nobody asked for may be in another encoding.


_PLACEHOLDERS = ("", "null", "none", "nan", "n/a", "na", "nil", "-", "unknown", "undefined", "anonymous")
_YEAR = r"([0-9]{4}|[0-9]{2})([ T,].*)?$"
_ORDERS = {
    "day": rf"^(1[3-9]|2[0-9]|3[01])[./-][0-9]{{1,2}}[./-]{_YEAR}",
    "month": rf"^[0-9]{{1,2}}[./-](1[3-9]|2[0-9]|3[01])[./-]{_YEAR}",
    "day or month": rf"^[0-9]{{1,2}}[./-][0-9]{{1,2}}[./-]{_YEAR}",
    "year, but without hyphens,": r"^[0-9]{4}[./][0-9]{1,2}[./][0-9]{1,2}([ T,].*)?$",
}
"""Dates that are not read, by what comes first; of those with a day beyond 12 it is known."""


def check_events(source: Any) -> Check:
    """Looks at events before a release, to see whether columns, domain, condition and groups fit. NOT private.

    Parameters
    ----------
    source
        What `discreet.events` returns.

    Returns
    -------
    Check
        Counts, the most frequent few of what does not fit, and what to change; it prints as a report. It is for the
        data holder alone: nothing is charged for it, and nothing in it is protected.

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
        self._dialect, self._domain = parts.opened.dialect, parts.domain
        self._laid = parts.reading.lay_out(parts.kept)

    def check(self) -> Check:
        counted = self._count_rows()
        kept, domain = counted["kept"], self._domain
        rows, unreadable = self._count_unreadable()
        return Check(
            rows=rows,
            rows_kept=kept,
            rows_unreadable=unreadable,
            users=counted["users"],
            rows_without_user=counted["without_user"],
            rows_without_item=counted["without_item"],
            rows_without_value=counted.get("without_value"),
            value_texts=self._find_value_texts() if counted.get("without_value") else [],
            placeholder_users=self._find_placeholders(),
            kind=self._reading.kind,
            rows_of_other_kind=counted["other_kind"],
            d=None if domain is None else domain.d,
            dates=[found for column in self._list_date_columns() for found in self._find_dates(column)],
            where_values={} if kept or not rows else self._find_where_values(),
            groups=self._check_groups(kept),
            **self._check_items(domain, counted["usable"]),
        )

    def _count_unreadable(self) -> tuple[int, int]:
        """Count the rows, and those of a text file whose user or item is no text."""
        opened, table = self._opened, self._opened.table
        rows = fetch_counts(opened, table, n=table.count())["n"]
        if opened.csv_rows:
            unreadable = sum(each.unreadable for each in opened.csv_rows)
            return rows + unreadable, unreadable
        if not opened.is_text:
            return rows, 0
        # DuckDB passes over such lines of JSON only as it reads their fields.
        user, item = (table[self._reading.columns[name]] for name in ("user", "item"))
        read = fetch_counts(opened, table, gaps=count_if(user.isnull()), users=user.count(), items=item.count())
        return rows, rows - read["gaps"] - read["users"]

    def _check_items(self, domain: Integers | ListedDomain | None, usable: int) -> dict[str, Any]:
        """What there is to say of items; where they are to be found, any row with one counts."""
        return {"rows_inside": usable} if domain is None else inspect_items(self._parts, self._laid, domain)

    def _count_rows(self) -> dict[str, int]:
        """Of the rows that the condition keeps, how many lack what."""
        rows = self._laid
        usable = rows.who.notnull() & rows.item.notnull()
        # A text that is no item of all strings up to a length is text all the same.
        read = rows.spelled if self._reading.kind == "string" else rows.item
        asked = {
            "kept": rows.count(),
            "users": rows.who.nunique(),
            "without_user": count_if(rows.who.isnull()),
            "without_item": count_if(rows.gap),
            "other_kind": count_if(read.isnull() & ~rows.gap),
            "usable": count_if(usable if self._reading.steps is None else usable & rows.steps.notnull()),
        }
        if self._reading.steps is not None:
            asked["without_value"] = count_if(rows.steps.isnull())
        return fetch_counts(self._opened, rows, **asked)

    def _find_placeholders(self) -> list[Frequent]:
        rows = self._laid.filter(self._laid.user.notnull())
        return find_frequent(self._opened, rows.filter(rows.user.strip().lower().isin(_PLACEHOLDERS)), "user")

    def _find_value_texts(self) -> list[Frequent]:
        """Text of the value column that is no number."""
        column, rows = self._reading.columns["value"], self._parts.kept
        if not self._is_text(column):
            return []
        number = read_cell(self._dialect, rows[column], "float")
        texts = rows.filter(number.isnull()).select(value=read_cell(self._dialect, rows[column], "string"))
        return find_frequent(self._opened, texts.filter(texts.value.notnull()), "value")

    def _list_date_columns(self) -> list[str]:
        """The columns that may be meant as dates."""
        split = self._parts.split
        items = [self._reading.columns["item"]] if self._reading.kind == "date" else []
        grouped = [] if split is None else split.groups.columns
        return [column for column in dict.fromkeys([*items, *self._where_columns(), *grouped]) if self._is_text(column)]

    def _where_columns(self) -> list[str]:
        """The columns of the condition, which may name them in another case."""
        from discreet.sources.events.where import named_columns

        columns, where = self._opened.table.columns, self._parts.where
        known = {**{column.casefold(): column for column in columns}, **{column: column for column in columns}}
        named = [] if where is None else named_columns(where)
        return [known.get(name) or known[name.casefold()] for name in named]

    def _is_text(self, column: str) -> bool:
        dtype = self._opened.table[column].type()
        return column in self._opened.undeclared or dtype.is_string() or is_untyped(dtype)

    def _find_dates(self, column: str) -> list[DateText]:
        """Text of a column that looks like dates in another order."""
        table = self._opened.table
        texts = table.select(value=read_cell(self._dialect, table[column], "string"))
        tests = {f"order{i}": texts.value.re_search(pattern) for i, pattern in enumerate(_ORDERS.values())}
        asked = {name: count_if(test) for name, test in tests.items()}
        examples = {f"example_{name}": texts.value.max(where=test) for name, test in tests.items()}
        [found] = fetch(self._opened, texts.aggregate(**asked, **examples))
        day, month, either, year = (int(found[f"order{i}"] or 0) for i in range(len(_ORDERS)))
        orders = list(_ORDERS)
        told = []
        if either:
            place = 0 if day and not month else 1 if month and not day else 2
            told.append(DateText(column, either, found[f"example_order{place}"], orders[place]))
        if year:
            told.append(DateText(column, year, found["example_order3"], orders[3]))
        return told

    def _find_where_values(self) -> dict[str, list[Frequent]]:
        """What the columns of the condition hold most, among all rows."""
        table, names = self._opened.table, self._where_columns()
        spelled = {name: table.select(value=self._spell(table[name])) for name in names}
        return {name: find_frequent(self._opened, rows, "value", 3) for name, rows in spelled.items()}

    def _spell(self, column: Any) -> Any:
        """A cell as text, also where it is a number that is no item."""
        if self._dialect.has_typed_columns and not is_untyped(column.type()):
            return column.cast("string")
        return read_cell(self._dialect, column, "string")

    def _check_groups(self, kept: int) -> GroupCheck | None:
        if self._parts.split is None:
            return None
        groups, table = self._parts.split.groups, self._parts.kept
        inside = groups.add_ordinals(table, one=table[self._reading.columns["user"]])
        found = fetch_counts(self._opened, inside, n=inside.count(), groups=inside.grp.nunique())
        outside = {
            by.spelling: find_frequent(self._opened, rows.select(value=self._spell(rows[by.column])), "value")
            for by, rows in groups.find_strangers(table)
        }
        number = len(groups.keys)
        return GroupCheck(kept - found["n"], number - found["groups"], number, outside)

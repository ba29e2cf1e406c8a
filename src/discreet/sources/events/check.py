"""Looking at events before a release, to see whether the columns, the domain, the condition and the groups fit.

A release leaves out what does not fit and cannot report it, because the report would be about private rows. Here it is
reported, to the data holder alone. All is counted on the engine; what is fetched is counts and the most frequent few
values.
"""

from __future__ import annotations

from typing import Any

from discreet.errors import InvalidTypeError
from discreet.sources.events.cells import is_untyped, read_cell
from discreet.sources.events.check_items import inspect_items
from discreet.sources.events.check_queries import count_if, fetch, fetch_counts, find_frequent
from discreet.sources.events.check_report import Check, DateText, Frequent, GroupCheck
from discreet.sources.events.domain import ListedDomain
from discreet.sources.events.event_table import EventTable, TableParts
from discreet.sources.events.ranges import Integers

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

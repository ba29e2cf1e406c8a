"""Looking at events before a release, to see whether the columns, the domain, the condition and the groups fit.

A release drops what does not fit without a word, because to say so would tell about rows. Here it is said, to the data
holder alone. All is counted on the engine; what is fetched is counts and the most frequent few values.
"""

from __future__ import annotations

from typing import Any

from discreet.errors import InvalidTypeError
from discreet.sources.engine import ask
from discreet.sources.events.cells import is_mixed, read_cell
from discreet.sources.events.check_report import (
    Check,
    DateText,
    Frequent,
    GroupCheck,
    NearMatch,
    OtherColumn,
)
from discreet.sources.events.connect import open_table
from discreet.sources.events.dialects.duckdb import DIALECT as DUCKDB
from discreet.sources.events.domain import DOMAIN as DOMAIN_NAMES
from discreet.sources.events.domain import Integers, ListedDomain, find_list_column, split_column
from discreet.sources.events.event_table import EventTable, TableParts

FEW = 5
_TRIED = 100
"""How many items are looked for in other columns of the domain's file."""

_PLACEHOLDERS = ("", "null", "none", "nan", "n/a", "na", "nil", "-", "unknown", "undefined", "anonymous")
_SPACES = (" ", "\t", "\u00a0")
_NO_TEXT = "(no text)"
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
        rows, kept = self._count(self._opened.table), counted["kept"]
        domain = self._domain
        return Check(
            rows=rows,
            rows_kept=kept,
            users=counted["users"],
            rows_without_user=counted["without_user"],
            rows_without_item=counted["without_item"],
            rows_without_value=counted.get("without_value"),
            placeholder_users=self._find_placeholders(),
            kind=self._reading.kind,
            rows_of_other_kind=counted["other_kind"],
            d=None if domain is None else domain.d,
            dates=[found for column in self._list_date_columns() for found in self._find_dates(column)],
            where_values={} if kept or not rows else self._find_where_values(),
            groups=self._check_groups(kept),
            **({"rows_inside": counted["usable"]} if domain is None else self._check_items(domain)),
        )

    def _fetch(self, expression: Any) -> list[dict[str, Any]]:
        backend = self._opened.table.get_backend()
        rows: list[dict[str, Any]] = ask(
            self._opened.engine, "checking the rows", lambda: backend.to_pyarrow(expression).to_pylist()
        )
        return rows

    def _count(self, table: Any) -> int:
        return int(self._fetch(table.aggregate(n=table.count()))[0]["n"])

    def _count_rows(self) -> dict[str, int]:
        """Of the rows that the condition keeps, how many lack what."""
        rows = self._laid
        usable = rows.who.notnull() & rows.item.notnull()
        asked = {
            "kept": rows.count(),
            "users": rows.who.nunique(),
            "without_user": _count_if(rows.who.isnull()),
            "without_item": _count_if(rows.gap),
            "other_kind": _count_if(rows.item.isnull() & ~rows.gap),
            "usable": _count_if(usable if self._reading.steps is None else usable & rows.steps.notnull()),
        }
        if self._reading.steps is not None:
            asked["without_value"] = _count_if(rows.steps.isnull())
        [found] = self._fetch(rows.aggregate(**asked))
        return {name: int(count or 0) for name, count in found.items()}

    def _find_placeholders(self) -> list[Frequent]:
        rows = self._laid.filter(self._laid.user.notnull())
        return self._find_frequent(rows.filter(rows.user.strip().lower().isin(_PLACEHOLDERS)), "user")

    def _find_frequent(self, rows: Any, column: str, most: int = FEW) -> list[Frequent]:
        """The most frequent values of a column of text."""
        counted = rows.group_by(value=rows[column]).agg(n=rows.count())
        return _read_frequent(self._fetch(_take_first(counted, most)))

    def _check_items(self, domain: Integers | ListedDomain) -> dict[str, Any]:
        """Which items of the events are in the domain, and which of the domain in the events."""
        rows = self._laid.filter(self._laid.who.notnull() & ~self._laid.gap)
        if self._reading.steps is not None:
            rows = rows.filter(rows.steps.notnull())
        spelled = rows.group_by("item", "spelled").agg(n=rows.count())
        touched = ask(self._opened.engine, "checking the items", self._mark_listed(spelled, domain).cache)
        try:
            outside = touched.filter(~touched.listed)
            counted = self._count_items(touched)
            found = {
                "items_untouched": domain.d - counted.pop("items_touched"),
                **counted,
                "outside": self._list_outside(outside, FEW),
            }
            return found | ({} if isinstance(domain, Integers) else self._compare(outside, touched, domain))
        finally:
            touched.release()

    def _mark_listed(self, spelled: Any, domain: Integers | ListedDomain) -> Any:
        """The items with how they are spelled, and whether they are in the domain."""
        import ibis

        if isinstance(domain, Integers):
            return spelled.mutate(listed=ibis.coalesce(spelled.item.between(domain.lo, domain.hi), False))
        keys = domain.table.select(key=self._dialect.group_key(domain.table.item))
        joined = spelled.left_join(keys, spelled.item == keys.key)
        return joined.select(spelled.item, spelled.spelled, spelled.n, listed=joined.key.notnull())

    def _count_items(self, touched: Any) -> dict[str, int]:
        inside = touched.listed
        asked = {
            "rows_inside": _sum_if(inside, touched.n),
            "rows_outside": _sum_if(~inside, touched.n),
            "items_outside": _count_if(~inside),
            "items_touched": touched.item.nunique(where=inside),
        }
        [found] = self._fetch(touched.aggregate(**asked))
        return {name: int(count or 0) for name, count in found.items()}

    def _list_outside(self, outside: Any, most: int) -> list[Frequent]:
        return _read_frequent(self._fetch(_take_first(outside.select(value=outside.spelled, n=outside.n), most)))

    def _compare(self, outside: Any, touched: Any, domain: ListedDomain) -> dict[str, Any]:
        """What of a listed domain is not in the events, and what nearly is."""
        inside = touched.filter(touched.listed)
        listed = domain.table.select(item=domain.table.item, key=self._dialect.group_key(domain.table.item))
        untouched = listed.anti_join(inside, listed.key == inside.item).select("item")
        few = self._fetch(untouched.order_by("item").limit(FEW))
        rows_near, near = self._find_near(outside, domain)
        return {
            "untouched": [str(row["item"]) for row in few],
            "rows_near": rows_near,
            "near": near,
            "other_columns": self._search_file(outside),
        }

    def _find_near(self, outside: Any, domain: ListedDomain) -> tuple[int, list[NearMatch]]:
        """Items outside of the domain that are in it but for case and spaces."""
        text = domain.table.item.cast("string")
        listed = domain.table.select(listed=text, folded=_fold(text))
        found = outside.filter(outside.spelled.notnull())
        found = found.select(found=found.spelled, n=found.n, folded=_fold(found.spelled))
        pairs = found.inner_join(listed, found.folded == listed.folded).select(found.found, found.n, listed.listed)
        # Two items of the domain may be alike, and each row counts once.
        once = pairs.group_by("found").agg(n=pairs.n.max(), listed=pairs.listed.min())
        [total] = self._fetch(once.aggregate(n=once.n.sum()))
        few = self._fetch(once.order_by([_descending(once.n), once.found]).limit(FEW)) if total["n"] else []
        return int(total["n"] or 0), [NearMatch(row["found"], row["listed"], int(row["n"])) for row in few]

    def _search_file(self, outside: Any) -> list[OtherColumn]:
        """The columns of the domain's file that have items which the given one lacks: ids in place of names."""
        if self._parts.domain_file is None:
            return []
        tried = [each.value for each in self._list_outside(outside, _TRIED)]
        file, column = split_column(self._parts.domain_file)
        opened = open_table(file, None, "domain", csv_format=self._opened.csv_format)
        try:
            given = find_list_column(opened, column, self._reading.columns["item"], DOMAIN_NAMES)
            names = [name for name in opened.table.columns if name != given]
            spelled = {name: read_cell(DUCKDB, opened.table[name], "string") for name in names}
            asked = {name: text.nunique(where=text.isin(tried)) for name, text in spelled.items()}
            if not asked or not tried:
                return []
            [found] = ask(opened.engine, "checking the domain", opened.table.aggregate(**asked).to_pyarrow().to_pylist)
        finally:
            opened.close()
        return [OtherColumn(f"{file}:{name}", int(n), len(tried)) for name, n in found.items() if 2 * n > len(tried)]

    def _list_date_columns(self) -> list[str]:
        """The columns that may be meant as dates."""
        from discreet.sources.events.where import named_columns

        split, where = self._parts.split, self._parts.where
        items = [self._reading.columns["item"]] if self._reading.kind == "date" else []
        compared = [] if where is None else named_columns(where)
        named = dict.fromkeys([*items, *compared, *([] if split is None else split.groups.columns)])
        return [column for column in named if column in self._opened.table.columns and self._is_text(column)]

    def _is_text(self, column: str) -> bool:
        dtype = self._opened.table[column].type()
        return column in self._opened.undeclared or dtype.is_string() or is_mixed(dtype)

    def _find_dates(self, column: str) -> list[DateText]:
        """Text of a column that looks like dates in another order."""
        table = self._opened.table
        texts = table.select(value=read_cell(self._dialect, table[column], "string"))
        tests = {f"order{i}": texts.value.re_search(pattern) for i, pattern in enumerate(_ORDERS.values())}
        asked = {name: _count_if(test) for name, test in tests.items()}
        examples = {f"example_{name}": texts.value.max(where=test) for name, test in tests.items()}
        [found] = self._fetch(texts.aggregate(**asked, **examples))
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
        from discreet.sources.events.where import named_columns

        table, where = self._opened.table, self._parts.where
        names = [] if where is None else [name for name in dict.fromkeys(named_columns(where)) if name in table.columns]
        spelled = {name: table.select(value=self._spell(table[name])) for name in names}
        return {name: self._find_frequent(rows, "value", 3) for name, rows in spelled.items()}

    def _spell(self, column: Any) -> Any:
        """A cell as text, also where it is a number that is no item."""
        if self._dialect.has_typed_columns and not is_mixed(column.type()):
            return column.cast("string")
        return read_cell(self._dialect, column, "string")

    def _check_groups(self, kept: int) -> GroupCheck | None:
        if self._parts.split is None:
            return None
        groups, table = self._parts.split.groups, self._parts.kept
        inside = groups.add_ordinals(table, one=table[self._reading.columns["user"]])
        [found] = self._fetch(inside.aggregate(n=inside.count(), groups=inside.grp.nunique()))
        outside = {
            by.spelling: self._find_frequent(rows.select(value=self._spell(rows[by.column])), "value")
            for by, rows in groups.find_strangers(table)
        }
        number = len(groups.keys)
        return GroupCheck(kept - int(found["n"]), number - int(found["groups"]), number, outside)


def _count_if(condition: Any) -> Any:
    return condition.ifelse(1, 0).sum()


def _sum_if(condition: Any, number: Any) -> Any:
    return condition.ifelse(number, 0).sum()


def _fold(text: Any) -> Any:
    """A text whatever its case, and without spaces."""
    folded = text.lower()
    for space in _SPACES:
        folded = folded.replace(space, "")
    return folded


def _descending(column: Any) -> Any:
    import ibis

    return ibis.desc(column)


def _take_first(counted: Any, most: int) -> Any:
    """The values with the most rows, in an order that is always the same."""
    return counted.order_by([_descending(counted.n), counted.value]).limit(most)


def _read_frequent(rows: list[dict[str, Any]]) -> list[Frequent]:
    return [Frequent(_NO_TEXT if row["value"] is None else str(row["value"]), int(row["n"])) for row in rows]

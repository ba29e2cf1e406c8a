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
from discreet.sources.discovered import FOLD
from discreet.sources.events.cells import is_untyped, read_cell
from discreet.sources.events.check_losses import (
    count_if,
    fetch,
    fetch_counts,
    find_dates,
    find_encoding,
    find_groups,
    find_values,
    list_spellings,
    name_functions,
    respell_items,
    suggest_decoding,
)
from discreet.sources.events.check_report import Check, Frequent, GroupCheck, Loss, NearMatch, OtherColumn
from discreet.sources.events.connect import Opened, open_table
from discreet.sources.events.csv_files import USUAL
from discreet.sources.events.dialects.duckdb import DIALECT as DUCKDB
from discreet.sources.events.domain import DOMAIN, ListedDomain, find_list_column
from discreet.sources.events.engine import EngineError, ask
from discreet.sources.events.lookup import read_matching
from discreet.sources.events.periods import PeriodColumn
from discreet.sources.events.ranges import Integers
from discreet.sources.events.row_expressions import RowExpression
from discreet.sources.events.table import EventTable, TableParts
from discreet.sources.events.unlisted import unify_spellings

FEW = 5
"""Number of examples of each finding, which fit on one line of the report."""

_TRIED = 100
"""Number of items outside the domain that are looked for in the other columns of the domain's file."""

_NO_TEXT = "(no text)"
_SPACES = (" ", "\t", "\u00a0")
_PLACEHOLDERS = ("", "null", "none", "nan", "n/a", "na", "nil", "-", "unknown", "undefined", "anonymous")


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
        where_values: dict[str, list[Frequent]] = {}
        if rows and not kept:
            where_values = {name: self._list_frequent(self._opened.table, name, 3) for name in self._where_columns}
        users = self._laid.filter(self._laid.user.notnull())
        placeholders = users.filter(users.user.strip().lower().isin(_PLACEHOLDERS))
        groups = None
        if split is not None:
            every, events = len(split.groups.keys), self._parts.kept
            inside = split.groups.add_ordinals(events, one=events[self._reading.columns["user"]])
            found = fetch_counts(opened, inside, n=inside.count(), groups=inside.grp.nunique())
            strangers = split.groups.find_strangers(events)
            outside = {by.spelling: self._list_frequent(some, by.column) for by, some in strangers}
            groups = GroupCheck(kept - found["n"], every - found["groups"], every, outside)
        # All rows with a user and an item count if the items are to be found.
        found_items: dict[str, Any] = {"rows_inside": counted["usable"]}
        if domain is not None:
            found_items = inspect_items(self._parts, self._laid, domain)
        elif self._reading.kind == "string" and self._dialect.fold is not None:
            found_items["rows_near"], found_items["near"] = self._find_spellings()
        remedy = found_items.pop("remedy", ({}, ""))
        lost = self._find_losses(counted, found_items.get("rows_outside", 0), remedy)
        if unreadable:
            lost.insert(0, find_encoding(unreadable, rows))
        return Check(
            rows=rows,
            rows_kept=kept,
            has_where=bool(self._where_columns),
            rows_unreadable=unreadable,
            users=counted["users"],
            rows_without_user=counted["without_user"],
            rows_without_item=counted["without_item"],
            rows_without_value=counted.get("without_value"),
            placeholder_users=find_frequent(self._opened, placeholders, "user"),
            kind=self._reading.kind,
            rows_of_other_kind=counted["other_kind"],
            d=None if domain is None else domain.d,
            lost=[each for each in lost if each.rows],
            where_values=where_values,
            groups=groups,
            **found_items,
        )

    def _find_spellings(self) -> tuple[int, list[NearMatch]]:
        """Count the rows of items that fold to the same as a more frequent one, and return a few of these items."""
        import ibis

        rows = self._reading.drop_gaps(self._laid)
        counted = rows.group_by("item").agg(n=rows.count())
        text = self._dialect.text_of_key(counted.item, is_text=True)
        items = counted.mutate(found=text, folded=self._dialect.group_key(unify_spellings(self._dialect, text, FOLD)))
        alike = ibis.window(group_by="folded", order_by=[ibis.desc(items.n), items.item])
        ranked = items.mutate(place=ibis.row_number().over(alike), listed=items.found.first().over(alike))
        others = ranked.filter(ranked.folded.notnull() & (ranked.place > 0))
        found = fetch_counts(self._opened, others, n=others.n.sum())["n"]
        few = others.order_by([ibis.desc(others.n), others.item]).limit(FEW).select("found", "listed", "n")
        near = fetch(self._opened, few) if found else []
        return found, [NearMatch(row["found"], row["listed"], int(row["n"])) for row in near]

    def _find_losses(
        self, counted: dict[str, int], rows_outside: int, respelled: tuple[dict[str, str], str]
    ) -> list[Loss]:
        """Return the rows left out by each cause but their encoding; `respelled` mends items in another spelling."""
        parts, opened, columns, kept = self._parts, self._opened, self._reading.columns, counted["kept"]
        looked_at = [columns["item"]] if self._reading.kind == "date" else []
        looked_at += self._where_columns
        if parts.split is not None:
            looked_at += [by.column for by in parts.split.groups.by if not isinstance(by, PeriodColumn)]
        needed = [] if parts.during is None else [parts.during]
        lost = [
            find_dates(opened, opened.table, column, column in needed)
            for column in dict.fromkeys([*needed, *looked_at])
            if opened.holds_text(column)
        ]
        if counted.get("without_value"):
            is_text = opened.holds_text(columns["value"])
            plain = Loss("value", columns["value"], counted["without_value"], kept)
            lost.append(find_values(opened, parts.kept, columns["value"]) if is_text else plain)
        lost.append(Loss("user", columns["user"], counted["without_user"], kept))
        laid = self._laid
        remedies = suggest_decoding(opened, laid.select(value=laid.spelled), rows_outside)
        list_as = "" if remedies else respelled[1]
        remedies = remedies or tuple(filter(None, respelled[:1]))
        lost.append(Loss("item", parts.item, counted["without_item"] + rows_outside, kept, remedies, list_as))
        return [*lost, *([] if parts.split is None else find_groups(opened, parts.kept, parts.split))]

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
    touched = ask(parts.opened.engine, "checking the items", lambda: parts.opened.dialect.cache(marked))
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
        searched = _search_file(parts, outside)
        column = searched.pop("column", "")
        never = listed.anti_join(items, listed.key == items.item).select("item").order_by("item").limit(FEW)
        return {
            **found,
            "untouched": [str(row["item"]) for row in fetch(opened, never)],
            "rows_near": rows_near,
            "near": near,
            "rows_alike": rows_alike,
            "alike": alike,
            "remedy": _respell(parts, outside, domain, column) if rows_near else ({}, ""),
            **searched,
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


def _respell(parts: TableParts, outside: Any, domain: ListedDomain, column: str) -> tuple[dict[str, str], str]:
    """Return the arguments by which most rows outside have an item of the domain, and functions for a list in no file.

    `column` is the column of the domain's file. A spelling that makes one item of several in the domain is no remedy.
    """
    opened, dialect, most, remedy, list_as = parts.opened, parts.opened.dialect, 0, dict[str, str](), ""
    place = parts.domain_place
    if place is not None and place.beside is not None:
        column = str(place.column)
    text = domain.table.item.cast("string")
    for rule, functions in list_spellings(dialect).items() if domain.kind == "string" else ():
        respell = partial(unify_spellings, dialect, spelling=rule)
        rows, _ = _find_near(opened, outside, domain, respell)
        if rows <= most:
            continue
        listed = domain.table.select(text=dialect.group_key(text), respelled=dialect.group_key(respell(text)))
        counts = fetch_counts(
            opened, listed, changed=count_if(listed.text != listed.respelled), different=listed.respelled.nunique()
        )
        if counts["different"] == domain.d:
            label = "label" if domain.labelled else None
            spelled = column if counts["changed"] else ""
            most, remedy = rows, respell_items(parts.item, spelled, label, place, functions)
            list_as = name_functions(functions) if counts["changed"] and place is None else ""
    return remedy, list_as


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

    if parts.domain_place is None or not parts.domain_place.paths:
        return {}
    folded = outside.mutate(spelled=_fold(outside.spelled)).group_by("spelled").agg(n=outside.n.sum())
    tried = [each.value for each in _list_outside(parts.opened, folded, _TRIED)]
    wanted = pa.table({"value": pa.array(tried, pa.string())})
    opened = open_table(parts.domain_place, None, "domain", csv_format=parts.opened.list_formats.get("domain", USUAL))
    columns = []
    try:
        raw = list(opened.table.columns)
        given = find_list_column(opened, parts.domain_place.column, parts.reading.columns["item"], DOMAIN)
        # The columns that an expression reads are left out of the search, like the given column.
        column = parts.domain_place.column
        made = None if column is None else RowExpression.parse(DOMAIN.argument, column)
        read = {given} if made is None else {given, *made.list_columns(raw)}
        for name in [name for name in raw if name not in read] if tried else []:
            texts = opened.table.select(value=_fold(read_cell(DUCKDB, opened.table[name], "string"))).distinct()
            # A column that the caller did not name may be in another encoding, and is then passed over.
            with suppress(EngineError):
                # No statement may show the texts, so they are matched as a table.
                matching = partial(read_matching, opened.dialect, texts, wanted)
                n = ask(opened.engine, "checking the items", matching).num_rows
                if 2 * n > len(tried):
                    columns.append(
                        OtherColumn(f"{redact_url(parts.domain_place.paths[0].text)}:{name}", int(n), len(tried))
                    )
    finally:
        opened.close()
    header = "".join(given.lower().split())
    return {"column": column or given, "other_columns": columns, "header_item": given if header in tried else None}


def find_frequent(opened: Opened, rows: Any, column: str, most: int = FEW) -> list[Frequent]:
    """Return the most frequent values of a column of text."""
    return list_first(opened, rows.group_by(value=rows[column]).agg(n=rows.count()), most)


def list_first(opened: Opened, counted: Any, most: int) -> list[Frequent]:
    """Return the values with most rows, of a table with the columns `value` and `n`, in a fixed order."""
    import ibis

    rows = fetch(opened, counted.order_by([ibis.desc(counted.n), counted.value]).limit(most))
    return [Frequent(_NO_TEXT if row["value"] is None else str(row["value"]), int(row["n"])) for row in rows]

"""Which items of the events are in the domain and which are not, and what they may have been meant to be."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from discreet.redaction import redact_url
from discreet.sources.engine import EngineError, ask
from discreet.sources.events.cells import read_cell
from discreet.sources.events.check_queries import FEW, count_if, fetch, fetch_counts, in_descending_order, list_first
from discreet.sources.events.check_report import Frequent, NearMatch, OtherColumn
from discreet.sources.events.connect import Opened, open_table
from discreet.sources.events.dialects.duckdb import DIALECT as DUCKDB
from discreet.sources.events.domain import DOMAIN, ListedDomain, find_list_column, split_column
from discreet.sources.events.event_table import TableParts
from discreet.sources.events.lookup import read_matching
from discreet.sources.events.ranges import Integers

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
    file, column = split_column(parts.domain_file)
    opened = open_table(file, None, "domain", csv_format=parts.opened.csv_format)
    try:
        given = find_list_column(opened, column, parts.reading.columns["item"], DOMAIN)
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

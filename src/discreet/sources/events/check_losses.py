"""The causes by which a release leaves rows out, each with the arguments of `events` that would mend it.

A cause and its arguments come from fixed lists, and the names of columns are those that the caller gave: no text of a
row is in them. The formats that are tried are read by the expressions that read them in a release.
"""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from operator import or_
from typing import TYPE_CHECKING, Any

from discreet.errors import redact_url
from discreet.sources.discovered import FOLD
from discreet.sources.events.case_folding import fold_case
from discreet.sources.events.cells import DAY_NUMBER, SECOND_NUMBER, is_spelled, read_cell
from discreet.sources.events.check_report import Loss
from discreet.sources.events.csv_files import TWICE
from discreet.sources.events.engine import ask
from discreet.sources.events.formats import DateFormat, Formats
from discreet.sources.events.location import PREFIX
from discreet.sources.events.periods import PeriodColumn
from discreet.sources.events.row_expressions import apply_to
from discreet.sources.events.unlisted import unify_spellings

if TYPE_CHECKING:
    from discreet.sources.events.connect import Opened
    from discreet.sources.events.dialects.base import Dialect
    from discreet.sources.events.group_columns import NumberedMembers
    from discreet.sources.events.group_keys import GroupSplit
    from discreet.sources.events.location import Location

_DAYS = (
    *("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%m-%d-%Y", "%Y/%m/%d", "%Y.%m.%d", "%Y%m%d"),
    *("%d.%m.%y", "%d/%m/%y", "%m/%d/%y"),
)
_DATES = [{"date_format": f"{day}{time}"} for time in ("", " %H:%M", " %H:%M:%S") for day in _DAYS]
_NUMBERS = [
    {"decimal": ","},
    *({"decimal": ",", "thousands": mark} for mark in (".", " ", "'", "\u00a0", "\u202f")),
    *({"thousands": mark} for mark in (",", "'", " ", "\u2019")),
]
"""The formats that are tried, the more likely ones first."""

_SPELLINGS = {"trim": ["trim"], FOLD: ["fold", "trim"]}
"""The functions that are tried, by the spelling of `discreet.discovered` that does the same, the weaker one first."""

_MOST_MEMBERS = 1000
"""Maximum number of members of a list of groups to which other spellings are compared."""

Remedies = tuple[dict[str, str], ...]


def find_encoding(unreadable: int, rows: int) -> Loss:
    """Return the loss of rows of a file that are no text in its encoding."""
    return Loss("encoding", "", unreadable, rows, ({"encoding": "latin-1"}, {"encoding": "cp1252"}))


def find_dates(opened: Opened, rows: Any, column: str, is_moment: bool) -> Loss:
    """Return the loss of rows whose date cannot be read.

    Parameters
    ----------
    opened, rows, column
        The events, the rows to look at, and a column of theirs that holds text.
    is_moment
        True if each row needs a date here. Otherwise only texts count that are dates in one of the formats.
    """
    dialect, cells = opened.dialect, rows[column]
    read = [read_cell(dialect, cells, kind).notnull() for kind in (DAY_NUMBER, SECOND_NUMBER)]
    texts = rows.select(value=read_cell(dialect, cells, "string"), is_read=reduce(or_, read))
    every, unread, most, remedies = _try_formats(opened, texts, _DATES)
    return Loss("date", column, unread if is_moment else most, every, remedies)


def find_values(opened: Opened, rows: Any, column: str) -> Loss:
    """Return the loss of rows whose value is no number."""
    cells, dialect = rows[column], opened.dialect
    is_read = read_cell(dialect, cells, "float").notnull()
    texts = rows.select(value=read_cell(dialect, cells, "string"), is_read=is_read)
    every, unread, _, remedies = _try_formats(opened, texts, _NUMBERS)
    return Loss("value", column, unread, every, remedies)


def find_groups(opened: Opened, rows: Any, split: GroupSplit) -> list[Loss]:
    """Return the loss of rows by each group column: a period that cannot be read, or a value outside of its list."""
    found = []
    for (by, strangers), part in zip(split.groups.find_strangers(rows), split.groups.parts, strict=True):
        outside, dates = fetch_counts(opened, strangers, n=strangers.count())["n"], 0
        if isinstance(by, PeriodColumn) and opened.holds_text(by.column):
            found.append(find_dates(opened, rows, by.column, is_moment=True))
            dates = found[-1].rows
        remedies, list_as = suggest_decoding(opened, strangers.select(value=strangers[by.column]), outside), ""
        if not remedies and part.kind == "string" and outside and len(part.members) <= _MOST_MEMBERS:
            texts = strangers.select(value=read_cell(opened.dialect, strangers[by.column], "string"))
            remedies, list_as = _respell_groups(opened, texts, by.spelling, part)
        every = fetch_counts(opened, rows, n=rows.count())["n"]
        found.append(Loss("group", by.spelling, outside - dates, every, remedies, list_as))
    return found


def suggest_decoding(opened: Opened, texts: Any, rows: int) -> Remedies:
    """Return the encoding that mends texts of a CSV file most of which are UTF-8 that was read in another one."""
    if not opened.csv_rows or not rows:
        return ()
    twice = fetch_counts(opened, texts, n=count_if(texts.value.re_search(TWICE)))["n"]
    return ({"encoding": "utf-8"},) if twice and 2 * twice > rows else ()


def list_spellings(dialect: Dialect) -> dict[str, list[str]]:
    """Return the functions of `_SPELLINGS` that the engine can compute."""
    known = {"trim": dialect.trim is not None, FOLD: dialect.fold is not None and dialect.trim is not None}
    return {rule: each for rule, each in _SPELLINGS.items() if known[rule] and dialect.clean_text is not None}


def respell_items(
    item: str, listed: str, label: str | None, place: Location | None, functions: list[str]
) -> dict[str, str]:
    """Return the arguments that spell the items of the events, and of their list, by functions of `_SPELLINGS`.

    Parameters
    ----------
    item
        The column of the events, or the expression, as the caller spelled it.
    listed
        The column of the list that has to be spelled alike, "" if it is spelled so.
    label
        The column of the list that is shown now, None if items are.
    place
        The file or the table of the list, None if it is in none.
    """
    remedy = {"item": apply_to(functions, item)}
    if listed and place is not None:
        start = f"{PREFIX}{place.beside}." if place.beside is not None else f"{redact_url(place.paths[0].text)}:"
        remedy["domain"] = start + apply_to(functions, listed)
        # Items are shown as the list spells them.
        remedy |= {} if label is not None or "(" in listed else {"label": listed}
    return {name: text for name, text in remedy.items() if text != item or name != "item"}


def name_functions(functions: list[str]) -> str:
    """Return functions of `_SPELLINGS` as a reader applies them, such as "fold(trim(...))"."""
    return f"{'('.join(functions)}(...{')' * len(functions)}"


def _respell_groups(opened: Opened, texts: Any, spelling: str, part: NumberedMembers) -> tuple[Remedies, str]:
    """Return the expression by which most texts are members of a list and that of its file, or functions for a list."""
    dialect, most, remedy, members, list_as = opened.dialect, 0, dict[str, str](), part.members, ""
    for rule, functions in list_spellings(dialect).items():
        alike = {(fold_case(member) if rule == FOLD else member).strip(" ") for member in members}
        is_member = unify_spellings(dialect, texts.value, rule).isin(sorted(alike))
        rows = fetch_counts(opened, texts, n=count_if(is_member))["n"]
        if rows > most and len(alike) == len(members):
            most, by, (file, column) = rows, apply_to(functions, spelling), part.place
            remedy, is_alike = {} if by == spelling else {"by": by}, alike == set(members)
            if not is_alike and file:
                remedy["groups"] = f"{file}:{apply_to(functions, column)}"
            list_as = "" if is_alike or file else name_functions(functions)
    return (remedy,) if remedy else (), list_as


def _try_formats(opened: Opened, texts: Any, formats: list[dict[str, str]]) -> tuple[int, int, int, Remedies]:
    """Return the number of rows, those that are not read, those that a better format would read, and such formats.

    Parameters
    ----------
    opened
        The events.
    texts
        Rows with a text, `value`, and `is_read`.
    formats
        The arguments to try.
    """
    found = fetch_counts(opened, texts, every=texts.count(), read=count_if(texts.is_read))
    every, read = found["every"], found["read"]
    if read == every:
        return every, 0, 0, ()
    texts = texts.filter(texts.value.notnull())
    counted = texts.group_by("value").agg(n=texts.count())
    asked = {}
    for place, arguments in enumerate(formats):
        date = DateFormat.parse(arguments["date_format"]) if "date_format" in arguments else None
        tried = Formats(date, arguments.get("decimal"), arguments.get("thousands"))
        kind = "float" if date is None else SECOND_NUMBER if date.has_time else "date"
        is_spelled_so = is_spelled(replace(opened.dialect, formats=tried), counted.value, kind)
        asked[f"format{place}"] = is_spelled_so.ifelse(counted.n, 0).sum()
    rows = list(fetch_counts(opened, counted, **asked).values())
    most = max(rows)
    if most <= read:
        return every, every - read, 0, ()
    best = [arguments for arguments, n in zip(formats, rows, strict=True) if n == most]
    # A day may be a month, which the caller has to say. Of the formats of numbers, the first is the simplest.
    return every, every - read, most, tuple(best if "date_format" in best[0] else best[:1])


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

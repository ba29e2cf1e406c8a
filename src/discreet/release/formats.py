"""The items of a release as a table of pandas, polars or pyarrow."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from fractions import Fraction
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from discreet.errors import InvalidValueError, MissingExtraError, quote
from discreet.text import number_for_programs

if TYPE_CHECKING:
    from discreet.release.grouped import AnyRelease, GroupedListing
    from discreet.release.release import Listing


# A release as CSV, for people's files and for pages.

_SPECIAL = re.compile('[,;\t\r\n"]')
"""A field with one of these is quoted: readers split at commas, at semicolons or at tabs."""

_FORMULA = re.compile(
    # The beginning of a cell for one of these readers,
    r"(?:^|(?<=[,;\t\r\n]))"
    # followed by what spreadsheets pass over,
    r"""(?=['"\s\x00-\x20\x7f-\xa0\u200b-\u200f\u2060\ufeff]*"""
    # and by what begins a formula, also in full width.
    r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20])"
)
"""The places of a text from which on a spreadsheet may take it for a formula."""


def format_csv(release: AnyRelease) -> str:
    """A header and a row for each item, in the order of the table, with the rank and the counts where released.

    Of a release by group, the group comes first, a column for each that makes it. Items that were found are words of
    users, which a spreadsheet may take for formulas and compute: such a text has an apostrophe before it, and before
    each part of it that another reader may take for a cell.
    """
    listing = release.listing
    columns = listing.columns()
    lines = [_spell_row(columns)]
    counts = len(columns) - 3 if columns[-1] == "high" else len(columns)
    place = len(listing.names) if release.guarantee.discovery is not None else None
    for row in listing.rows():
        cells = [_disarm(cell) if at == place else cell for at, cell in enumerate(row[:counts])]
        lines.append(_spell_row([*cells, *map(number_for_programs, row[counts:])]))
    # Half of a surrogate pair can be a label but not a character of a file.
    return "\n".join(lines).encode("utf-8", "backslashreplace").decode()


def _spell_row(cells: Sequence[Any]) -> str:
    """Return a row without its end. A row of one empty field is quoted, because readers skip empty lines."""
    texts = ["" if cell is None else str(cell) for cell in cells]
    quoted = ['"' + text.replace('"', '""') + '"' if _SPECIAL.search(text) else text for text in texts]
    return ",".join(quoted) if quoted != [""] else '""'


def _disarm(item: Any) -> Any:
    """Return an item that no spreadsheet computes, whichever of the delimiters it splits at.

    An apostrophe is put before each part that may begin a formula. Taking one away from each such part undoes it.
    """
    return _FORMULA.sub("'", item) if isinstance(item, str) else item


LIBRARIES = ("pandas", "polars", "pyarrow")
"""What can hold the table, the first that is installed by default."""


def make_frame(listing: Listing | GroupedListing, library: Any) -> Any:
    """The rows of a list, or of those of all groups, as a table of a library."""
    found, rows = _find_library(library), list(listing.rows())
    columns = {name: [_plain(row[i]) for row in rows] for i, name in enumerate(listing.columns())}
    return _MAKERS[found](import_module(found), columns)


def _find_library(given: Any) -> str:
    if given is None:
        installed = next((name for name in LIBRARIES if find_spec(name) is not None), None)
        if installed is None:
            raise MissingExtraError("to_frame needs pandas, polars or pyarrow: pip install pyarrow")
        return installed
    if not isinstance(given, str) or given not in LIBRARIES:
        raise InvalidValueError(f"library must be one of {', '.join(LIBRARIES)}, not {quote(given)}")
    if find_spec(given) is None:
        raise MissingExtraError(f"{given} is not installed: pip install {given}")
    return given


def _plain(value: Any) -> Any:
    """A value as tables have it: a fraction as a float."""
    return float(value) if isinstance(value, Fraction) else value


def _make_pandas(pandas: Any, columns: dict[str, list[Any]]) -> Any:
    # A column of tuples is one of objects; as they are, pandas would take them apart.
    return pandas.DataFrame({name: pandas.Series(values) for name, values in columns.items()})


def _make_polars(polars: Any, columns: dict[str, list[Any]]) -> Any:
    return polars.DataFrame([_hold(polars.Series, name, values) for name, values in columns.items()])


def _make_pyarrow(pyarrow: Any, columns: dict[str, list[Any]]) -> Any:
    return pyarrow.table(
        {name: _hold(lambda _, values: pyarrow.array(values), name, values) for name, values in columns.items()}
    )


def _hold(make: Callable[[str, list[Any]], Any], name: str, values: list[Any]) -> Any:
    """A column of values of one type, or of their texts where the library has no type for all of them."""
    kinds = {type(value) for value in values if value is not None}
    try:
        if len(kinds) <= 1:
            return make(name, values)
    except Exception:  # noqa: S110  # each library has errors of its own for what it cannot hold
        pass
    return make(name, [None if value is None else str(value) for value in values])


_MAKERS: dict[str, Callable[[Any, dict[str, list[Any]]], Any]] = {
    "pandas": _make_pandas, "polars": _make_polars, "pyarrow": _make_pyarrow,
}  # fmt: skip

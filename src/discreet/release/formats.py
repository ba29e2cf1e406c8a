"""Write a release as CSV, or as a table of pandas, polars or pyarrow."""

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


_SPECIAL = re.compile('[,;\t\r\n"]')
"""A field with one of these characters is quoted: readers split at commas, semicolons or tabs."""

_FORMULA = re.compile(
    # The beginning of a cell,
    r"(?:^|(?<=[,;\t\r\n]))"
    # characters that spreadsheets skip,
    r"""(?=['"\s\x00-\x20\x7f-\xa0\u200b-\u200f\u2060\ufeff]*"""
    # and the beginning of a formula, also in full width.
    r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20])"
)
"""The positions in a text at which a spreadsheet may start to read a formula."""


def format_csv(release: AnyRelease) -> str:
    """Return a header and a row for each item, in the order of the table, with the rank and the counts where released.

    In a release by group, the columns of the group come first. Found items are words of users, which a spreadsheet may
    evaluate as formulas: an apostrophe is put before such a text, and before each part of it that a reader with another
    delimiter may take for a cell. Removing one apostrophe from each such part restores the text.
    """
    listing = release.listing
    columns = listing.columns()
    lines = [_spell_row(columns)]
    # The item may be followed by its place in an order, and then by numbers that can be fractions.
    first_number = len(listing.names) + (2 if "order" in columns[len(listing.names) :] else 1)
    place = len(listing.names) if release.guarantee.discovery is not None else None
    for row in listing.rows():
        cells = list(row[:first_number])
        if place is not None and isinstance(cells[place], str):
            cells[place] = _FORMULA.sub("'", cells[place])
        lines.append(_spell_row([*cells, *map(number_for_programs, row[first_number:])]))
    # Half of a surrogate pair can be in a label but not in a file.
    return "\n".join(lines).encode("utf-8", "backslashreplace").decode()


def _spell_row(cells: Sequence[Any]) -> str:
    """Return a row without its end; a row of one empty field is quoted, because readers skip empty lines."""
    texts = ["" if cell is None else str(cell) for cell in cells]
    quoted = ['"' + text.replace('"', '""') + '"' if _SPECIAL.search(text) else text for text in texts]
    return ",".join(quoted) if quoted != [""] else '""'


LIBRARIES = ("pandas", "polars", "pyarrow")
"""The libraries that can hold the table; by default the first that is installed."""


def make_frame(listing: Listing | GroupedListing, library: Any) -> Any:
    """Return the rows of a list, or of the lists of all groups, as a table of a library."""
    if library is None:
        library = next((name for name in LIBRARIES if find_spec(name) is not None), None)
        if library is None:
            raise MissingExtraError("to_frame needs pandas, polars or pyarrow: pip install pyarrow")
    if not isinstance(library, str) or library not in LIBRARIES:
        raise InvalidValueError(f"library must be one of {', '.join(LIBRARIES)}, not {quote(library)}")
    if find_spec(library) is None:
        raise MissingExtraError(f"{library} is not installed: pip install {library}")
    module, columns = import_module(library), dict[str, list[Any]]()
    rows = [[float(cell) if isinstance(cell, Fraction) else cell for cell in row] for row in listing.rows()]
    for place, name in enumerate(listing.columns()):
        columns[name] = [row[place] for row in rows]
    if library == "pandas":
        # A Series keeps a column of tuples, which DataFrame would take apart.
        frame = module.DataFrame({name: module.Series(values) for name, values in columns.items()})
        frame.attrs.update(listing.attributes())
        return frame
    if library == "polars":
        return module.DataFrame([_hold(module.Series, name, values) for name, values in columns.items()])
    arrays = {name: _hold(lambda _, held: module.array(held), name, values) for name, values in columns.items()}
    return module.table(arrays)


def _hold(make: Callable[[str, list[Any]], Any], name: str, values: list[Any]) -> Any:
    """Return a column of values of one type, or of their texts if the library has no type for all of them."""
    kinds = {type(value) for value in values if value is not None}
    try:
        if len(kinds) <= 1:
            return make(name, values)
    except Exception:  # noqa: S110  # each library has its own errors for values it cannot hold
        pass
    return make(name, [None if value is None else str(value) for value in values])

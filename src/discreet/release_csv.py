"""A release as CSV, for people's files and for pages."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from discreet.text import number_for_programs

if TYPE_CHECKING:
    from discreet.grouped_release import AnyRelease

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

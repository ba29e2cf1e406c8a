"""A release as CSV, for people's files and for pages."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from discreet.text import number_for_programs

if TYPE_CHECKING:
    from discreet.grouped_release import AnyRelease

_FORMULA = re.compile("'*[=+\\-@\t\r\n\uff1d\uff0b\uff0d\uff20]")
"""What begins a cell that a spreadsheet takes for a formula, also in full width, after what keeps it from that."""


def format_csv(release: AnyRelease) -> str:
    """A header and a row for each item, in the order of the table, with the rank and the counts where released.

    Of a release by group, the group comes first, a column for each that makes it. Items that were found are words of
    users, which a spreadsheet may take for formulas and compute: such a text has an apostrophe before it.
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
    """A row without its end; where rows end in a carriage return, the writer quotes a field that has one inside."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\r\n").writerow(cells)
    return file.getvalue().removesuffix("\r\n")


def _disarm(item: Any) -> Any:
    """An item that no spreadsheet computes; taking away the first apostrophe of such a cell undoes it, always."""
    return f"'{item}" if isinstance(item, str) and _FORMULA.match(item) else item

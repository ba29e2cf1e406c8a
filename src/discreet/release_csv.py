"""A release as CSV, for people's files and for pages."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from discreet.text import number_for_programs

if TYPE_CHECKING:
    from discreet.grouped_release import AnyRelease


def format_csv(release: AnyRelease) -> str:
    """A header and a row for each item, in the order of the table, with the rank and the counts where released.

    Of a release by group, the group comes first, a column for each that makes it.
    """
    listing = release.listing
    columns = listing.columns()
    lines = [_spell_row(columns)]
    counts = len(columns) - 3 if columns[-1] == "high" else len(columns)
    for row in listing.rows():
        lines.append(_spell_row([*row[:counts], *map(number_for_programs, row[counts:])]))
    # Half of a surrogate pair can be a label but not a character of a file.
    return "\n".join(lines).encode("utf-8", "backslashreplace").decode()


def _spell_row(cells: Sequence[Any]) -> str:
    """A row without its end; where rows end in a carriage return, the writer quotes a field that has one inside."""
    file = io.StringIO()
    csv.writer(file, lineterminator="\r\n").writerow(cells)
    return file.getvalue().removesuffix("\r\n")

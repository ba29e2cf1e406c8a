"""A release as CSV, for people's files and for pages."""

from __future__ import annotations

import csv
import io
from typing import TYPE_CHECKING

from discreet.text import number_for_programs

if TYPE_CHECKING:
    from discreet.grouped_release import AnyRelease


def format_csv(release: AnyRelease) -> str:
    """A header and a row for each item, in the order of the table, with the rank and the counts where released.

    Of a release by group, the group comes first, a column for each that makes it.
    """
    file, listing = io.StringIO(), release.listing
    writer, columns = csv.writer(file, lineterminator="\n"), listing.columns()
    writer.writerow(columns)
    counts = len(columns) - 3 if columns[-1] == "high" else len(columns)
    for row in listing.rows():
        writer.writerow([*row[:counts], *map(number_for_programs, row[counts:])])
    # Half of a surrogate pair can be a label but not a character of a file.
    return file.getvalue().encode("utf-8", "backslashreplace").decode().removesuffix("\n")

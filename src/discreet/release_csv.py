"""A release as CSV, for people's files and for pages."""

from __future__ import annotations

import csv
import io

from discreet.grouped_listing import GroupedListing
from discreet.grouped_release import AnyRelease, GroupedRelease
from discreet.listing import Listing
from discreet.release import listing_of
from discreet.text import count_for_programs


def format_csv(release: AnyRelease) -> str:
    """A header and a row for each item, in the order of the table, with the rank and the counts where released.

    Of a release by group, the group comes first, a column for each that makes it.
    """
    file, listing = io.StringIO(), listing_of_any(release)
    writer, columns = csv.writer(file, lineterminator="\n"), listing.columns()
    writer.writerow(columns)
    counts = len(columns) - 3 if columns[-1] == "high" else len(columns)
    for row in listing.rows():
        writer.writerow([*row[:counts], *map(count_for_programs, row[counts:])])
    # Half of a surrogate pair can be a label but not a character of a file.
    return file.getvalue().encode("utf-8", "backslashreplace").decode().removesuffix("\n")


def listing_of_any(release: AnyRelease) -> Listing | GroupedListing:
    """The lists of a release, of one or of several groups."""
    if isinstance(release, GroupedRelease):
        return GroupedListing(release.names, {group: listing_of(each) for group, each in release.items()})
    return listing_of(release)

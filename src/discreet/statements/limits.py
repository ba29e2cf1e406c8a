"""The headings of docs/known-limits.md, and what each is about; a test keeps both lists in step."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

PROMISE, DATA, OUTSIDE = "promise", "data", "outside"
"""What a limit is about: how far the promise goes, what the data holder answers for, and what can be seen while a
release is made."""

LISTED, FOUND, COUNTS, VALUES, GROUPS, LEDGER, SEEDED = (
    "listed", "found", "counts", "values", "groups", "ledger", "seeded",
)  # fmt: skip
"""What a release can have that a limit is about."""


@dataclass(frozen=True)
class Limit:
    """A heading of the page, what it is about, and what a release must have for it to matter; None for any release."""

    heading: str
    about: str
    needs: str | None = None


LIMITS = (
    Limit("The list of items must be public.", DATA, LISTED),
    Limit("Items that are found cost a delta, and rare ones are not found.", PROMISE, FOUND),
    Limit("Scores must move by no more than the stated sensitivity.", DATA),
    Limit("Scores must be numbers exactly as you mean them.", DATA),
    Limit("A domain that comes from the events cannot always be seen.", DATA, LISTED),
    Limit("Text files must be well formed.", DATA),
    Limit("Column names are public where they are a schema or a header.", DATA),
    Limit("What somebody declared is taken at its word.", DATA),
    Limit("Large numbers in pandas.", DATA),
    Limit("Some rows can still make a release fail.", OUTSIDE),
    Limit("Whole numbers beyond 2^53 in `where` on pandas.", DATA),
    Limit("What a table is made of is your word.", DATA),
    Limit("A source of events stays in its process.", DATA),
    Limit("A release reads a table once, but a table can change before.", DATA),
    Limit("Positions of a sorted array are ranks.", DATA),
    Limit("Running time depends on the scores.", OUTSIDE),
    Limit("An engine sees the queries, and how many there are.", OUTSIDE),
    Limit("What does not fit into memory is written to a disk.", OUTSIDE),
    Limit("Standard input is copied.", OUTSIDE),
    Limit("A feature selection tells that there is a row.", OUTSIDE),
    Limit("The process is trusted.", OUTSIDE),
    Limit("A generator of your own is for tests.", PROMISE, SEEDED),
    Limit("The values of a histogram are of the lucky.", PROMISE, VALUES),
    Limit("Counts cost extra, and an interval is about one item.", PROMISE, COUNTS),
    Limit("What tells how good a release will be is not private.", DATA),
    Limit("Groups are public, and who is in them rests on rows.", PROMISE, GROUPS),
    # One period of the rows can be in a time zone too, and no release tells whether it was.
    Limit("Days depend on the database of time zones.", DATA),
    Limit("A dataset is a name.", DATA, LEDGER),
    Limit("Every release costs.", PROMISE),
    Limit("Epsilon is about one person.", PROMISE),
    Limit("Floats are trusted for one thing.", DATA),
)


def find_limits(about: str, traits: Collection[str]) -> list[str]:
    """The headings about one thing that matter for a release with these traits."""
    return [each.heading for each in LIMITS if each.about == about and (each.needs is None or each.needs in traits)]

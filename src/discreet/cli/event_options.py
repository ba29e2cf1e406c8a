"""The options that describe events and where they are, and the budget that is charged: declared once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

import typer

UserOption = Annotated[
    str | None,
    typer.Option(
        metavar="COLUMN", help="Read events: one row for something a user did. The column that says which user."
    ),
]
DomainOption = Annotated[
    str | None,
    typer.Option(
        metavar="LIST",
        help="With --user: the public list of items, as FILE:COLUMN; integers:LO:HI are all whole numbers from LO to "
        "HI, strings:a-z:8 all strings of up to 8 letters (any characters, and a-z, A-Z or 0-9); with --connect also "
        "connect:TABLE.COLUMN, of the same database. It must not come from the events, whose other items are left out.",
    ),
]
LabelOption = Annotated[
    str | None, typer.Option(metavar="COLUMN", help="With --user: a column of the domain to show for the item.")
]
WhereOption = Annotated[
    str | None,
    typer.Option(metavar="SQL", help="With --user: a condition on single events, in DuckDB's SQL."),
]
ValueOption = Annotated[
    str | None,
    typer.Option(metavar="COLUMN", help="With --user: a column to add up. By default, distinct users are counted."),
]
ClipOption = Annotated[
    str | None,
    typer.Option(metavar="LOW,HIGH", help="With --value: the range of what one user may add to an item in all."),
]
ResolutionOption = Annotated[
    str | None,
    typer.Option(metavar="R", help="With --value: the steps values are rounded to. By default 1, if clip allows."),
]
ConnectOption = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="In place of FILE: a database with the events, such as postgres://USER@HOST/DATABASE, duckdb://FILE or "
        "sqlite://FILE.",
    ),
]
NameOption = Annotated[
    str | None,
    typer.Option(
        metavar="TABLE", help="With --connect: the table of the events in the database, such as events or mart.events."
    ),
]
DelimiterOption = Annotated[
    str | None,
    typer.Option(
        metavar="CHAR",
        help="With --user: what separates the fields of .csv files, of the events and of the domain; \\t is a tab. By "
        "default the comma, semicolon or tab that the header has.",
    ),
]
EncodingOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="With --user: how .csv and .tsv files spell text, utf-8, which is the default, utf-16 or latin-1.",
    ),
]
EscapeOption = Annotated[
    str | None,
    typer.Option(
        metavar="CHAR",
        help="With --user: what stands before a quote inside quotes in .csv and .tsv files, of the events and of "
        "the domain. By default another quote; MySQL and others write a backslash.",
    ),
]
LedgerOption = Annotated[
    str | None,
    typer.Option(metavar="FILE", help="Charge the release to this budget, which 'discreet budget init' makes."),
]
PurposeOption = Annotated[
    str | None, typer.Option(metavar="TEXT", help="With --ledger: what the release is for, in words.")
]
RequestIdOption = Annotated[
    str | None,
    typer.Option(
        metavar="TEXT",
        help="With --ledger: a name for the request; asked again, it costs nothing and answers the same.",
    ),
]
DatasetOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="With --ledger: the data, by the name that the budget has for them."),
]

TABLE = (
    *("domain", "label", "where", "value", "clip", "resolution", "max_items_per_user"),
    *("connect", "name", "delimiter", "escape", "encoding"),
)
GROUPING = ("by", "groups", "each_user", "max_groups_per_user")
FINDING = ("discover", "delta", "kind", "spelling", "discovery_epsilon")
"""The options of events by what they are about: the table and its items, groups, and items that nobody listed."""


def gather_options(context: typer.Context, names: Iterable[str]) -> dict[str, Any]:
    """What was given for these options, None for one that was not, or that the command does not have."""
    given = {name: context.params.get(name) for name in names}
    # An option that can be repeated is an empty list where it is not given, and a switch is False.
    return {name: value if value or isinstance(value, str) else None for name, value in given.items()}

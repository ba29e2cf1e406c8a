"""Tables of a database by name: of its own schema, of another one, or as the public list of items."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.sources.engine import ask
from discreet.sources.events.dialect import dialect_of

PREFIX = "connect:"
"""What a list begins with that is a column of a table beside the events, in the same database."""


@dataclass(frozen=True)
class TableName:
    """The name of a table, and of its schema where it was said."""

    table: str
    schema: str | None = None

    def __str__(self) -> str:
        return self.table if self.schema is None else f"{self.schema}.{self.table}"


def parse_table_name(given: Any) -> TableName:
    """The name that a caller means by "events", "mart.events" or ("mart", "events")."""
    if isinstance(given, tuple) and len(given) == 2 and all(isinstance(part, str) and part for part in given):
        return TableName(given[1], given[0])
    if not isinstance(given, str) or not given:
        raise InvalidTypeError(
            "name must be the name of a table, such as 'events', 'mart.events' or ('mart', 'events'), "
            f"not {quote(given)}"
        )
    schema, _, table = given.partition(".")
    return TableName(table, schema) if schema and table else TableName(given)


def parse_listed_column(given: Any) -> tuple[TableName, str | None] | None:
    """The table and the column of "connect:mart.products.id"; None for any other list."""
    if not isinstance(given, str) or not given.startswith(PREFIX):
        return None
    parts = given.removeprefix(PREFIX).split(".")
    if not 2 <= len(parts) <= 3 or not all(parts):
        raise InvalidValueError(
            f"domain must be {PREFIX}TABLE.COLUMN or {PREFIX}SCHEMA.TABLE.COLUMN, not {quote(given)}"
        )
    *schema, table, column = parts
    return TableName(table, schema[0] if schema else None), column


def open_named_table(connection: Any, engine: str, name: TableName, argument: str) -> Any:
    """The ibis table of that name."""
    found = find_named_table(connection, engine, name, argument)
    schema = {} if found.schema is None else {"database": found.schema}

    def read_table() -> Any:
        table = connection.table(found.table, **schema)
        return dialect_of(table).adapt_table(table)

    return ask(engine, "opening the table", read_table, "the right to read it")


def find_named_table(connection: Any, engine: str, name: TableName, argument: str) -> TableName:
    """The name as the engine has it; of a table that is not there it is refused without a word about others."""
    if str(name) != name.table and str(name) in ask(engine, "listing tables", connection.list_tables):
        # A name may have a dot in it.
        name = TableName(str(name))
    schema = {} if name.schema is None else {"database": name.schema}
    known = name.schema is None or name.schema in ask(engine, "listing schemas", connection.list_databases)
    if not known or name.table not in ask(engine, "listing tables", lambda: connection.list_tables(**schema)):
        raise InvalidValueError(f"{argument} must be a table of {engine}, and {quote(str(name))} is none")
    return name


def server_of(url: str) -> str:
    """The host and the port of a URL, which say who does not answer; nothing else of it may be shown."""
    rest = url.partition("://")[2]
    authority = re.split("[/?#]", rest)[0]
    found = re.fullmatch(r"(\[[^\]]*\]|[^:]*)(?::(\d+))?", authority.rpartition("@")[2])
    # A password may hold a slash, and then what looks like the host is part of it.
    if found is None or "@" in rest[len(authority) :]:
        return "the server of that URL"
    return f"{found[1] or 'localhost'}{'' if found[2] is None else f', port {found[2]}'}"

"""Text in a frame that is not UTF-8, on which DuckDB fails.

Here such columns are read as bytes, and converted value by value: what is no text is missing, like any other value that
does not convert.
"""

from __future__ import annotations

import uuid
from typing import Any

import pyarrow as pa

from discreet.sources.events.text_files import quoted


def frame_decoded(connection: Any, table: pa.Table) -> Any:
    """An Arrow table as one of DuckDB's without its broken text, or None where it has none."""
    broken = [name for name in table.column_names if _is_broken(table, name)]
    if not broken:
        return None
    fields = [field.with_type(as_bytes(field.type)) if field.name in broken else field for field in table.schema]
    return _converting_view(connection, table.cast(pa.schema(fields)), dict.fromkeys(broken, _DECODE))


_DECODE = "TRY(decode({0})) AS {0}"


def as_bytes(dtype: Any) -> Any:
    """The type of the bytes of a text, plain or in a dictionary; any other type as it is."""
    plain = dtype.value_type if pa.types.is_dictionary(dtype) else dtype
    if pa.types.is_string(plain):
        return pa.binary()
    if pa.types.is_large_string(plain):
        return pa.large_binary()
    return pa.binary_view() if pa.types.is_string_view(plain) else dtype


def _is_broken(table: pa.Table, name: str) -> bool:
    """Whether a column is of text, and some of it is no UTF-8."""
    if table.column_names.count(name) > 1 or as_bytes(table.schema.field(name).type) == table.schema.field(name).type:
        return False
    try:
        table.column(name).validate(full=True)
    except pa.ArrowInvalid:
        return True
    return False


def _converting_view(connection: Any, rows: Any, conversions: dict[str, str]) -> Any:
    """A view of Arrow rows in which some columns are converted."""
    name = f"discreet_arrow_{uuid.uuid4().hex}"
    connection.con.register(name, rows)
    columns = ", ".join(conversions.get(each, "{0}").format(quoted(each)) for each in rows.schema.names)
    connection.con.execute(f"CREATE TEMP VIEW {name}_view AS SELECT {columns} FROM {name}")  # noqa: S608  # all quoted
    return connection.table(f"{name}_view")

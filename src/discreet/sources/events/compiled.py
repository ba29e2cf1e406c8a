"""Compile the statement that computes scores, for an engine that discreet was never run on.

The table has no connection and no rows. `events` reads its declared columns like those of any other table, and `sql` of
the source returns one statement in the SQL of the engine. A person reviews it, runs it there, and hands the scores to
`top_k` with the sensitivity of the source. Public lists are written into the statement.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from typing import Any, NoReturn

import ibis
import ibis.backends.sql.compilers as compilers
import ibis.expr.operations as ops
import sqlglot as sg
import sqlglot.expressions as sge
from ibis.backends.sql import SQLBackend

from discreet.errors import InvalidTypeError, InvalidValueError, choices, quote
from discreet.sources.events.dialects.base import dialect_named, list_engines
from discreet.sources.events.location import parse_table_name

MOST_LISTED = 10_000
"""The maximum number of rows of a public list in a statement; engines limit the length of a statement to about 1 MB."""


class Compiler(SQLBackend):  # type: ignore[misc]  # ibis has no types
    """A backend of ibis that compiles for an engine, and has neither a connection nor rows."""

    runs = False

    def __init__(self, engine: str) -> None:
        self.name, self.compiler = engine, getattr(compilers, engine).compiler
        super().__init__()

    def to_pyarrow(self, expr: Any, /, **options: Any) -> Any:
        """Return the rows of a public list, which are in memory; the table has none."""
        if expr.op().find(ops.DatabaseTable):
            self._refuse()
        return ibis.duckdb.connect().to_pyarrow(expr, **options)

    def compile_with_lists(self, query: Any) -> str:
        """Return the statement of a query, with tables in memory written into it."""
        lists = {each.name: each.data.to_pyarrow(each.schema) for each in query.op().find(ops.InMemoryTable)}
        longest = max((rows.num_rows for rows in lists.values()), default=0)
        if longest > MOST_LISTED:
            raise InvalidValueError(
                f"a public list must have at most {MOST_LISTED:,} rows in a statement, not {longest:,}: use "
                "discreet.integers where the items are numbers"
            )
        tree = self.compiler.to_sqlglot(query)
        for node in list(tree.find_all(sge.Table)):
            if node.name in lists:
                alias = sg.to_identifier(node.alias_or_name, quoted=True)
                node.replace(self._write_list(lists[node.name]).subquery(alias))
        return str(tree.sql(dialect=self.dialect, pretty=True, unsupported_level=sg.ErrorLevel.RAISE))

    def _write_list(self, rows: Any) -> Any:
        """Return a query whose result is a public list."""
        names = [sg.to_identifier(name, quoted=True) for name in rows.column_names]
        values = [
            tuple(value.isoformat() if isinstance(value, date) else value for value in row)
            for row in zip(*(column.to_pylist() for column in rows.columns), strict=True)
        ]
        types = ibis.Schema.from_pyarrow(rows.schema).types
        casts = [self.compiler.cast(sg.column(name), dtype).as_(name) for name, dtype in zip(names, types, strict=True)]
        return sg.select(*casts).from_(sge.values(values, alias="listed", columns=names))

    def _refuse(self, *_: Any, **__: Any) -> NoReturn:
        raise InvalidValueError(
            f"table must be on a connection, and discreet.compiled only compiles for {self.name}: run the statement of "
            "the source's sql() there, and give the scores to discreet.top_k with the source's sensitivity"
        )

    version = property(_refuse)
    do_connect = create_table = list_tables = drop_table = _refuse
    _register_in_memory_table = _get_schema_using_query = _refuse


def compiled(engine: str, name: str | tuple[str, str], columns: Mapping[str, str]) -> Any:
    """Return a table without rows for `events`, whose sources compile their statement for an engine in `sql()`.

    These statements were reviewed and never run. discreet does not send them: run one, and give the scores to `top_k`
    with the sensitivity of the source.

    Parameters
    ----------
    engine
        "bigquery", "databricks", "snowflake" or "trino".
    name
        The name of the table in statements, with or without its schema.
    columns
        The declared type of each column that is used, in the words of ibis, such as "string", "int64", "float64",
        "date", "timestamp" (without a zone) and "timestamp('UTC')".

    Examples
    --------
    >>> import discreet
    >>> sales = discreet.compiled("trino", "mart.sales", {"customer": "string", "product": "string"})
    >>> source = discreet.events(sales, user="customer", item="product", domain=["tea", "rum"])
    >>> print(source.sql())  # doctest: +ELLIPSIS
    SELECT
      "t2"."item",
      COALESCE("t5"."score", 0) AS "score"
    ...
    >>> scores = {"tea": 812, "rum": 120}  # what the engine answers
    >>> discreet.top_k(scores, k=1, epsilon=1, sensitivity=source.sensitivity).items
    ['tea']
    """
    known = sorted(each for each in list_engines() if not dialect_named(each, runs=False).was_run)
    if engine not in known:
        raise InvalidValueError(
            f"engine must be {choices(known)}, not {quote(engine)}; engines that discreet runs on need a connection"
        )
    if not isinstance(columns, Mapping) or not columns:
        raise InvalidTypeError(f"columns must map each column to its type, not {quote(columns)}")
    try:
        schema = ibis.schema(dict(columns))
    except Exception:
        raise InvalidValueError(f"columns must have types of ibis, such as 'string', not {quote(columns)}") from None
    found = parse_table_name(name)
    place = ops.Namespace() if found.schema is None else ops.Namespace(database=found.schema)
    return ops.DatabaseTable(found.table, schema=schema, source=Compiler(engine), namespace=place).to_expr()

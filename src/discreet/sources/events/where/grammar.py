"""Whether a condition is DuckDB's SQL: sqlglot reads more than DuckDB does, and some of it in another way."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import duckdb
from sqlglot.dialects.dialect import Dialect

from discreet.errors import InvalidValueError

_STRANGE = {"!": "NOT", "<=>": "NULLSAFE_EQ"}
"""Operators, and what sqlglot takes them for; a postfix ! is DuckDB's factorial."""


def check_grammar(where: str, columns: Sequence[str]) -> None:
    """Raises where sqlglot reads what DuckDB does not, or not so."""
    tokens = Dialect.get_or_raise("duckdb").tokenize(where)
    strange = next((token.text for token in tokens if _STRANGE.get(token.text) == token.token_type.name), None)
    if strange is not None:
        raise InvalidValueError(f"where must not use the operator {strange}: to DuckDB it is another one, or none")
    if not any(_is_duckdb_sql(text) for text in (where, _with_quotes(where, tokens, columns))):
        raise InvalidValueError("where must be one SQL expression, and to DuckDB a part of it is missing or too much")


@contextmanager
def quiet() -> Iterator[None]:
    """Keeps what sqlglot logs about a condition in this thread from being a second line on standard error."""
    log = logging.getLogger("sqlglot")

    def silent(record: logging.LogRecord) -> bool:
        return record.thread != here

    here = logging.LogRecord("", 0, "", 0, "", None, None).thread
    log.addFilter(silent)
    try:
        yield
    finally:
        log.removeFilter(silent)


def _is_duckdb_sql(text: str) -> bool:
    """Whether DuckDB's own parser reads the text as one expression."""
    try:
        return len(duckdb.extract_statements(f"SELECT ({text}\n)")) == 1
    except duckdb.Error:
        return False


def _with_quotes(where: str, tokens: list[Any], columns: Sequence[str]) -> str:
    """The text with quotes around bare names of columns, some of which (`at`) are keywords to DuckDB."""
    names = {column.casefold() for column in columns}
    parts: list[str] = []
    end = 0
    for token in tokens:
        if token.text.casefold() in names and where[token.start : token.end + 1] == token.text:
            parts += [where[end : token.start], f'"{token.text}"']
            end = token.end + 1
    return "".join([*parts, where[end:]])

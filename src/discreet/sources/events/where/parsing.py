"""From text to the nodes of sqlglot: one expression of limited length and depth, or a sentence that says why not.

sqlglot reads more than DuckDB does, and some of it in another way, so DuckDB's own parser is asked as well.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from typing import Any

import duckdb
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect

from discreet.errors import Error, InvalidTypeError, InvalidValueError, quote
from discreet.sources.events.where.values import Node

LONGEST = 10_000
"""The most characters a condition may have."""

DEEPEST = 30
"""The most levels of nesting; an operator of arithmetic counts as five, because its SQL has more."""

_TOO_DEEP = f"where must not be nested more than {DEEPEST} levels deep, arithmetic not more than {DEEPEST // 5 - 1}"
_TWO = "where must be one expression, with no second statement and no ;"
_QUOTES = '; the name of a column with a space in it stands in double quotes, such as "played at"'
_STATEMENTS = {"SELECT", "WITH", "FROM", "VALUES", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "ALTER", "COPY"}
_STATEMENTS |= {"ATTACH", "PRAGMA", "SET", "CALL", "INSTALL", "LOAD", "DESCRIBE", "SHOW", "SUMMARIZE", "EXPLAIN"}


def parse_expression(where: str) -> Node:
    """The one expression that the text holds."""
    if not isinstance(where, str):
        raise InvalidTypeError(f"where must be a string with one SQL condition, not {quote(where)}")
    if len(where) > LONGEST:
        raise InvalidValueError(f"where must have at most {LONGEST} characters, not {len(where)}")
    # Engines escape these differently in a string, and NUL or half of a surrogate pair cannot be sent at all.
    odd = re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]", where)
    if odd is not None:
        raise InvalidValueError(f"where must not hold the control character U+{ord(odd.group()):04X}")
    duckdb = Dialect.get_or_raise("duckdb")
    try:
        tokens = duckdb.tokenize(where)
        found = duckdb.parser().parse_into(exp.Condition, tokens, where)
    except RecursionError:
        raise InvalidValueError(_TOO_DEEP) from None
    except Exception as error:
        raise InvalidValueError(_explain_error(where, error)) from None
    if any(token.text == ";" and token.token_type.name == "SEMICOLON" for token in tokens):
        raise InvalidValueError(_TWO)
    if not found or found[0] is None:
        raise InvalidValueError("where must not be empty: leave it out to keep every row")
    return found[0]


def _explain_error(where: str, error: Exception) -> str:
    first = (where.split(maxsplit=1) or [""])[0].upper()
    if first == "WHERE":
        return "where must be the condition alone, without the word WHERE before it"
    if first in _STATEMENTS:
        return f"where must be one expression, not a statement ({first} ...)"
    if ";" in where:
        return _TWO
    reason = (getattr(error, "errors", None) or [{}])[0]
    described = " ".join(str(reason.get("description", "")).split())
    if not described or described.startswith("Required keyword"):
        described = "a part is missing or not closed"
    at = f" at line {reason['line']}, column {reason['col']}" if reason.get("line") else ""
    hint = _QUOTES if "Unexpected token" in described else ""
    return f"where must be one SQL expression, and does not parse{at}: {described[:100]}{hint}"


def named_columns(where: str) -> list[str]:
    """The columns that a condition names; none where it does not parse, which is said where it is read."""
    with silence_sqlglot(), suppress(Error):
        return list(
            dict.fromkeys(column.name for column in parse_expression(where).find_all(exp.Column) if column.name)
        )
    return []


def check_depth(expression: Node) -> None:
    """Refuses what is nested too deep for the recursions after this one; chains of AND and OR are flat."""
    waiting = [(expression, 1)]
    while waiting:
        node, depth = waiting.pop()
        if depth > DEEPEST:
            raise InvalidValueError(_TOO_DEEP)
        for child in node.iter_expressions():
            flat = isinstance(node, exp.And | exp.Or) and type(child) is type(node)
            steep = isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Neg)
            waiting.append((child, depth + (0 if flat else 5 if steep else 1)))


_COMPARING = (exp.EQ, exp.NEQ, exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In)

MOST_CASES = 100
"""The most CASE WHENs that the SQL of a condition may have, with those that check arithmetic for overflow."""


def check_repeats(expression: Node) -> None:
    """Refuse arithmetic whose overflow checks, which repeat what is nested in them, keep an engine busy for minutes.

    The CASEs are estimated from the text alone, as if every column held 64-bit integers. A count of those in the
    translated expression would depend on the types of columns, and a type may follow from private rows.
    """
    # Per node: its CASEs, its decimal places, and whether it is calculated from literals alone.
    cases: dict[int, int] = {}
    places: dict[int, int] = {}
    literal: dict[int, bool] = {}
    for node in reversed(list(expression.bfs())):
        parts = list(node.iter_expressions())
        at = id(node)
        literal[at] = isinstance(node, exp.Literal) and not node.is_string
        places[at] = _count_places(node.this) if literal[at] else 0
        # A comparison with a literal moves the literal to the scale of the other side.
        aligned = [part for part in parts if not (isinstance(node, _COMPARING) and literal[id(part)])]
        highest = max((places[id(part)] for part in aligned), default=0)
        rescales = isinstance(node, (exp.Add, exp.Sub, exp.Coalesce, exp.Case, *_COMPARING))
        cases[at] = sum(
            2 * cases[id(part)] + 1
            if rescales and not literal[id(part)] and places[id(part)] < highest
            else cases[id(part)]
            for part in parts
        )
        if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Neg | exp.Paren):
            literal[at] = all(literal[id(part)] for part in parts)
            scales = [places[id(part)] for part in parts]
            places[at] = sum(scales) if isinstance(node, exp.Mul) else max(scales, default=0)
        elif isinstance(node, exp.Coalesce | exp.Case | exp.If):
            places[at] = highest
        if isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Neg) and not literal[at]:
            cases[at] = 2 * cases[at] + 1
        elif isinstance(node, exp.Case):
            cases[at] += 1
    if cases[id(expression)] > MOST_CASES:
        raise InvalidValueError("where must calculate less: checked for overflow, its arithmetic needs too many CASEs")


def _count_places(number: str) -> int:
    """Return the decimal places of a number as it is written; 0 for what is refused as a number later."""
    try:
        return max(0, -int(Decimal(number).normalize().as_tuple().exponent))
    except (ArithmeticError, ValueError):
        return 0


_STRANGE = {"!": "NOT", "<=>": "NULLSAFE_EQ"}
"""Operators, and what sqlglot takes them for; a postfix ! is DuckDB's factorial."""


def check_grammar(where: str, columns: Sequence[str]) -> None:
    """Raises where sqlglot reads what DuckDB does not, or not so."""
    tokens = Dialect.get_or_raise("duckdb").tokenize(where)
    strange = next((token.text for token in tokens if _STRANGE.get(token.text) == token.token_type.name), None)
    if strange is not None:
        raise InvalidValueError(f"where must not use the operator {strange}: to DuckDB it is another one, or none")
    if not any(_is_duckdb_sql(text) for text in (where, _quote_columns(where, tokens, columns))):
        raise InvalidValueError("where must be one SQL expression, and to DuckDB a part of it is missing or too much")


@contextmanager
def silence_sqlglot() -> Iterator[None]:
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


def _quote_columns(where: str, tokens: list[Any], columns: Sequence[str]) -> str:
    """The text with quotes around bare names of columns, some of which (`at`) are keywords to DuckDB."""
    names = {column.casefold() for column in columns}
    parts: list[str] = []
    end = 0
    for token in tokens:
        if token.text.casefold() in names and where[token.start : token.end + 1] == token.text:
            parts += [where[end : token.start], f'"{token.text}"']
            end = token.end + 1
    return "".join([*parts, where[end:]])

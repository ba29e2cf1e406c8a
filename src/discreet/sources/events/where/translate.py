"""From text and a table to one ibis expression, true for the rows to keep: parsed, checked and translated."""

from __future__ import annotations

from collections.abc import Collection

import ibis.expr.types as ir

from discreet.errors import InvalidTypeError, InvalidValueError
from discreet.sources.events.where.nodes import Reader
from discreet.sources.events.where.parsing import (
    check_depth,
    check_grammar,
    check_repeats,
    parse_expression,
    silence_sqlglot,
)


def condition(
    where: str, table: ir.Table, *, undeclared: Collection[str] = (), is_text: bool = False
) -> ir.BooleanValue:
    """The condition `where` as an ibis expression on `table`, true for the rows to keep.

    Parameters
    ----------
    where
        One SQL expression in DuckDB's dialect, of columns, literals, comparisons, AND, OR, NOT, IN with a list,
        BETWEEN, LIKE, ILIKE, IS NULL, IS TRUE, IS DISTINCT FROM, + - *, lower, upper, trim, coalesce, CASE WHEN.
    table
        The table whose columns it may name.
    undeclared
        The columns whose type nobody has declared, as those of a CSV file. Such a column is text; beside a number, a
        date, a timestamp or TRUE it is read as one, and in arithmetic as an integer, NULL in rows where it is none.
    is_text
        Whether the names of columns are the header of a text file, and may be private.

    Raises
    ------
    InvalidTypeError
        Where `where` is not a string, or a part of it is of the wrong type for its place.
    InvalidValueError
        Where it does not parse, or uses what is not on the white list.

    Notes
    -----
    Every engine gives it one meaning. Strings are compared by their UTF-8 bytes, whatever the collation of a column;
    lower, upper and ILIKE change the letters A to Z alone, and trim removes spaces (U+0020) alone. Dates on SQLite are
    ISO text. Numbers are compared by their exact value, except beside a column of floats, where both sides are doubles,
    and NaN is the largest and equal to itself. Arithmetic is for integers and decimal literals; a result of 2^63 or
    more, in units of its last decimal place, is NULL.

    Examples
    --------
    >>> import ibis
    >>> ratings = ibis.table({"stars": "int64", "title": "string"}, name="ratings")
    >>> kept = ratings.filter(condition("stars >= 4.5 AND title LIKE 'A%'", ratings))
    """
    with silence_sqlglot():
        truth = _translate(where, Reader(table, frozenset(undeclared), is_text))
        # Last, so that what says more is said first.
        check_grammar(where, table.columns)
    return truth


def describe_readings(
    where: str, table: ir.Table, *, undeclared: Collection[str] = (), is_text: bool = False
) -> str | None:
    """What a condition reads columns without a declared type as, in a sentence; None where it reads none.

    It depends on the condition and on what is declared, and on no row.

    Examples
    --------
    >>> import ibis
    >>> visits = ibis.table({"day": "string"}, name="visits")
    >>> print(describe_readings("day > 9", visits, undeclared=["day"]))
    where reads day as numbers (2.5), because its type is not declared: no other spelling meets it
    """
    reader = Reader(table, frozenset(undeclared), is_text)
    with silence_sqlglot():
        _translate(where, reader)
    return reader.comparator.describe_readings()


def _translate(where: str, reader: Reader) -> ir.BooleanValue:
    expression = parse_expression(where)
    check_depth(expression)
    try:
        truth: ir.BooleanValue = reader.truth(expression)
    except (InvalidTypeError, InvalidValueError):
        raise
    except Exception as error:  # the words of ibis are about its own types
        raise InvalidValueError(f"where must fit the table, and ibis cannot read it ({type(error).__name__})") from None
    # Last, so that what says more is said first.
    check_repeats(expression)
    return truth

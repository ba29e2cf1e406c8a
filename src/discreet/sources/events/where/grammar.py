"""Parse the text of a condition with sqlglot, and refuse each node that is not on the allow list.

Nodes on the list give every row a value that depends on that row alone and cannot fail, whatever the row holds. sqlglot
accepts more than DuckDB does and reads some of it differently, so DuckDB's own parser must accept the text as well.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from decimal import Decimal
from typing import Any, NoReturn

import duckdb
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect as SqlDialect

from discreet.errors import InvalidTypeError, InvalidValueError, quote

Node = Any
"""A node of sqlglot, whose base class has had two names."""

LONGEST = 10_000
"""Maximum number of characters of a condition: it bounds the time that the parsers take."""

DEEPEST = 30
"""Maximum depth of nesting, which bounds the recursion of ibis and of the engines.

An arithmetic operator counts as five levels, because its SQL checks for overflow and nests deeper, and so does a
function that reads a cell as another kind.
"""

REPEATED = 8
"""The most often that the SQL of a cast, of EXTRACT or of fold holds its argument, and the CASEs that it adds."""

MOST_CASES = 100
"""Maximum number of CASE WHENs in the SQL of a condition, overflow checks included; more keep an engine busy."""

COMPARISONS = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_PREDICATES = (*COMPARISONS, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is, exp.Between, exp.In, exp.Like, exp.ILike)
_TWO_SIDES = ("this", "expression")
PARTS: dict[type, tuple[str, ...]] = {
    **dict.fromkeys((exp.Paren, exp.Column, exp.Boolean, exp.Not, exp.Lower, exp.Upper, exp.Neg), ("this",)),
    **dict.fromkeys((*COMPARISONS, exp.NullSafeEQ, exp.NullSafeNEQ, exp.And, exp.Or, exp.Is), _TWO_SIDES),
    **dict.fromkeys((exp.Add, exp.Sub, exp.Mul), _TWO_SIDES),
    **dict.fromkeys((exp.Like, exp.ILike), (*_TWO_SIDES, "negate")),
    **dict.fromkeys((exp.In, exp.Coalesce), ("this", "expressions")),
    exp.Null: (),
    exp.Literal: ("this", "is_string"),
    exp.Cast: ("this", "to"),
    exp.TryCast: ("this", "to", "safe"),
    exp.Extract: ("this", "expression"),
    exp.Substring: ("this", "start", "length"),
    exp.Replace: ("this", "expression", "replacement"),
    exp.Concat: ("expressions", "safe", "coalesce"),
    exp.Anonymous: ("this", "expressions"),
    exp.Between: ("this", "low", "high"),
    exp.Trim: ("this", "position"),
    exp.Case: ("ifs", "default"),
}
"""The allow list: every node that a condition may hold, and the arguments of the node that are translated."""

_OTHERS = "it makes one user's rows depend on another's, and the sensitivity is lost"
_FAILS = "it can fail on a row or differ from engine to engine, and a failure tells about the row"
_REFUSED: list[tuple[tuple[type, ...], str, str]] = [
    ((exp.Window,), "a window", _OTHERS),
    ((exp.AggFunc, exp.Filter, exp.WithinGroup), "an aggregate", _OTHERS),
    ((exp.Query, exp.SubqueryPredicate), "a subquery", "it looks at other rows, and the sensitivity is lost"),
    ((exp.Cast,), "a cast", _FAILS),
    ((exp.Case,), "CASE with a value before WHEN", "write CASE WHEN value = ... THEN ... END"),
    ((exp.Escape,), "ESCAPE", "% and _ always stand for other characters here"),
    ((exp.Collate,), "COLLATE", "strings are compared by their bytes on every engine"),
    ((exp.SimilarTo, exp.Glob), "a regular expression", "engines read it differently"),
    ((exp.Placeholder, exp.Parameter), "a parameter", "write the value itself"),
    ((exp.Star,), "a star", "name a column"),
    ((exp.Column,), "a column with a table or a struct before it", "name a column of the table alone"),
    ((exp.Bracket, exp.Dot, exp.Struct, exp.Array), "a nested value or a part of one", _FAILS),
    ((exp.Lambda,), "a lambda", _FAILS),
]
_FUNCTIONS = "lower, upper, fold, trim, ltrim, rtrim, substring, replace, concat, coalesce, cast and extract"
_OPERATORS: dict[type, str] = {exp.Div: "/", exp.IntDiv: "//", exp.Mod: "%", exp.Pow: "^", exp.DPipe: "||"}
_CHANGING = {"now", "today", "localtime", "localtimestamp", "transaction_timestamp", "rand", "random", "setseed"}
_CHANGING |= {"uuid", "gen_random_uuid", "uuidv4", "uuidv7", "nextval", "currval", "session_user", "getvariable"}
_READING = {"glob", "getenv", "parquet_scan", "sniff_csv", "sqlite_scan", "postgres_scan", "query", "query_table"}
_TOO_DEEP = f"where must not be nested more than {DEEPEST} levels deep, arithmetic not more than {DEEPEST // 5 - 1}"
_TWO = "where must be one expression, with no second statement and no ;"
_QUOTES = '; the name of a column with a space in it stands in double quotes, such as "played at"'
_STATEMENTS = {"SELECT", "WITH", "FROM", "VALUES", "INSERT", "UPDATE", "DELETE", "CREATE", "DROP", "ALTER", "COPY"}
_STATEMENTS |= {"ATTACH", "PRAGMA", "SET", "CALL", "INSTALL", "LOAD", "DESCRIBE", "SHOW", "SUMMARIZE", "EXPLAIN"}
_COMPARING = (*COMPARISONS, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Between, exp.In)
_STRANGE = {"!": "NOT", "<=>": "NULLSAFE_EQ"}
"""Operators and the tokens that sqlglot takes them for; to DuckDB a postfix ! is the factorial."""


def parse_expression(where: Any) -> tuple[Node, list[Any]]:
    """Return the root node and the tokens of a text, or raise unless it is one expression of limited size."""
    if not isinstance(where, str):
        raise InvalidTypeError(f"where must be a string with one SQL condition, not {quote(where)}")
    if len(where) > LONGEST:
        raise InvalidValueError(f"where must have at most {LONGEST} characters, not {len(where)}")
    # Engines escape control characters differently, and cannot be sent NUL or half of a surrogate pair.
    odd = re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]", where)
    if odd is not None:
        raise InvalidValueError(f"where must not hold the control character U+{ord(odd.group()):04X}")
    dialect = SqlDialect.get_or_raise("duckdb")
    try:
        tokens = dialect.tokenize(where)
        found = dialect.parser().parse_into(exp.Condition, tokens, where)
    except RecursionError:
        raise InvalidValueError(_TOO_DEEP) from None
    except Exception as error:
        first = (where.split(maxsplit=1) or [""])[0].upper()
        if first == "WHERE":
            raise InvalidValueError("where must be the condition alone, without the word WHERE before it") from None
        if first in _STATEMENTS:
            raise InvalidValueError(f"where must be one expression, not a statement ({first} ...)") from None
        if ";" in where:
            raise InvalidValueError(_TWO) from None
        reason = (getattr(error, "errors", None) or [{}])[0]
        described = " ".join(str(reason.get("description", "")).split())
        if not described or described.startswith("Required keyword"):
            described = "a part is missing or not closed"
        at = f" at line {reason['line']}, column {reason['col']}" if reason.get("line") else ""
        hint = _QUOTES if "Unexpected token" in described else ""
        raise InvalidValueError(
            f"where must be one SQL expression, and does not parse{at}: {described[:100]}{hint}"
        ) from None
    if any(token.text == ";" and token.token_type.name == "SEMICOLON" for token in tokens):
        raise InvalidValueError(_TWO)
    if not found or found[0] is None:
        raise InvalidValueError("where must not be empty: leave it out to keep every row")
    check_depth(found[0])
    check_repeats(found[0])
    return found[0], tokens


def check_depth(expression: Node) -> None:
    """Raise if the nesting is too deep for the recursive functions that follow; chains of AND or OR are flat."""
    waiting = [(expression, 1)]
    while waiting:
        node, depth = waiting.pop()
        if depth > DEEPEST:
            raise InvalidValueError(_TOO_DEEP)
        for child in node.iter_expressions():
            flat = isinstance(node, exp.And | exp.Or) and type(child) is type(node)
            steep = isinstance(node, exp.Add | exp.Sub | exp.Mul | exp.Neg | exp.Extract | exp.Anonymous)
            steep = steep or is_calculated_cast(node)
            waiting.append((child, depth + (0 if flat else 5 if steep else 1)))


def check_repeats(expression: Node) -> None:
    """Raise if overflow checks and functions, which repeat their operands, need more than MOST_CASES CASEs.

    The CASEs are estimated from the text alone, as if every column held 64-bit integers. A count of those in the
    translated expression would depend on the types of columns, and a type may follow from private rows.
    """
    # For each node: its CASEs, its decimal places, and True if it is calculated from literals alone.
    cases: dict[int, int] = {}
    places: dict[int, int] = {}
    literal: dict[int, bool] = {}
    for node in reversed(list(expression.bfs())):
        parts = list(node.iter_expressions())
        at = id(node)
        literal[at] = isinstance(node, exp.Literal) and not node.is_string
        places[at] = 0
        if literal[at]:
            # Text that is no number is refused later.
            with suppress(ArithmeticError, ValueError):
                places[at] = max(0, -int(Decimal(node.this).normalize().as_tuple().exponent))
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
        elif isinstance(node, exp.Extract | exp.Anonymous) or is_calculated_cast(node):
            literal[at] = False
            cases[at] = REPEATED * (cases[at] + 1)
    if cases[id(expression)] > MOST_CASES:
        if expression.find(exp.Add, exp.Sub, exp.Mul, exp.Neg) is not None:
            raise InvalidValueError(
                "where must calculate less: checked for overflow, its arithmetic needs too many CASEs"
            )
        raise InvalidValueError(
            "where must nest fewer casts, EXTRACTs and folds, whose SQL repeats what they are applied to"
        )


def is_calculated_cast(node: Node) -> bool:
    """Return True for a cast of a part of a row, and False for a literal such as DATE '2024-01-31'."""
    return isinstance(node, exp.Cast) and not (isinstance(node.this, exp.Literal) and node.this.is_string)


def check_listed(node: Node) -> None:
    """Raise unless the node is on the allow list and has no argument beyond the listed ones."""
    if type(node) not in PARTS:
        refuse(node)
    for each in (node, *node.args.values()):
        if isinstance(each, exp.In) and each.args.get("field") is not None:
            raise InvalidValueError(f"where must have literals in parentheses after IN, unlike {sql(each)}{_QUOTES}")
    for name, attached in node.args.items():
        if attached and name not in PARTS[type(node)]:
            refuse(attached if isinstance(attached, exp.Query) else node)
        if isinstance(node, _PREDICATES) and isinstance(attached, (*_PREDICATES, exp.Not)):
            # DuckDB and sqlglot do not always agree on the precedence of the two.
            raise InvalidValueError(f"where must have parentheses around {sql(attached)} in {sql(node)}")


def refuse(node: Node) -> NoReturn:
    """Raise an error that names the node and the reason why it is refused."""
    found = next(((what, why) for kinds, what, why in _REFUSED if isinstance(node, kinds)), None)
    name = sql(node).partition("(")[0].lower()
    if found is not None:
        what, why = found
    elif type(node).__name__.startswith("Regexp"):
        what, why = "a regular expression", "engines read it differently"
    elif type(node) in _OPERATORS:
        what, why = f"the operator {_OPERATORS[type(node)]}", _FAILS
    elif (type(node) in PARTS and not isinstance(node, exp.Anonymous)) or not isinstance(node, exp.Func):
        what, why = f"this form of {node.key}", "it is not known to mean the same on every engine"
    elif name in _CHANGING or name.startswith(("current_", "get_current_")):
        what, why = f"the function {name}", "whether a row is kept must not depend on the clock, the session or chance"
    elif name in _READING or name.startswith("read_"):
        what, why = f"the function {name}", "it reads something other than the row"
    else:
        known = f"only {_FUNCTIONS} are known to mean the same on every engine"
        what, why = f"the function {name}", known
    raise InvalidValueError(f"where must not use {what} ({sql(node)}): {why}")


def check_grammar(text: str, tokens: list[Any], columns: Sequence[str]) -> None:
    """Raise if DuckDB does not parse the text, or if sqlglot takes an operator in it for another one."""
    strange = next((token.text for token in tokens if _STRANGE.get(token.text) == token.token_type.name), None)
    if strange is not None:
        raise InvalidValueError(f"where must not use the operator {strange}: to DuckDB it is another one, or none")
    # Bare names of columns are tried in quotes as well, because DuckDB reserves some of them (`at`) as keywords.
    names, parts, end = {column.casefold() for column in columns}, [], 0
    for token in tokens:
        if token.text.casefold() in names and text[token.start : token.end + 1] == token.text:
            parts += [text[end : token.start], f'"{token.text}"']
            end = token.end + 1
    for spelled in (text, "".join([*parts, text[end:]])):
        with suppress(duckdb.Error):
            if len(duckdb.extract_statements(f"SELECT ({spelled}\n)")) == 1:
                return
    raise InvalidValueError("where must be one SQL expression, and to DuckDB a part of it is missing or too much")


@contextmanager
def silence_sqlglot() -> Iterator[None]:
    """Suppress the log records of sqlglot in this thread: an error is reported once, by an exception."""
    log = logging.getLogger("sqlglot")

    def is_elsewhere(record: logging.LogRecord) -> bool:
        return record.thread != here

    here = logging.LogRecord("", 0, "", 0, "", None, None).thread
    log.addFilter(is_elsewhere)
    try:
        yield
    finally:
        log.removeFilter(is_elsewhere)


def sql(node: Node) -> str:
    """Return the SQL of a node as messages quote it: on one line, at most 60 characters."""
    if isinstance(node, str):
        return node
    try:
        text = " ".join(node.sql("duckdb", comments=False).split())
    except Exception:  # sqlglot has understood the node only in part
        text = str(node.key)
    return text if len(text) <= 60 else f"{text[:57]}..."

"""From text to the nodes of sqlglot: one expression of limited length and depth, or a sentence that says why not.

sqlglot reads more than DuckDB does, and some of it in another way, so DuckDB's own parser is asked as well.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Any, NoReturn

import duckdb
import ibis
import ibis.expr.datatypes as dt
import ibis.expr.types as ir
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect as SqlDialect

from discreet.errors import Error, InvalidTypeError, InvalidValueError, choices, quote, suggestion
from discreet.sources.events.cells import engine_function, is_missing, read_cell
from discreet.sources.events.dialects.base import Dialect

# Checked parts of a condition: literals and columns, what they are and may be, and how messages quote them.

Node = Any
"""A node of sqlglot, whose base class has had two names."""


def sql(node: Node) -> str:
    """The node as a message quotes it: short, on one line."""
    if isinstance(node, str):
        return node
    try:
        text = " ".join(node.sql("duckdb", comments=False).split())
    except Exception:  # a node that was only half understood
        text = str(node.key)
    return text if len(text) <= 60 else f"{text[:57]}..."


def article(kind: str) -> str:
    """A kind with its article."""
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"


UNKNOWN = ibis.null(dt.boolean)
NUMERIC = {"integer", "decimal", "float", "number"}
MOMENTS = {"date", "timestamp", "timestamp with time zone"}
COMPARABLE = {"boolean", "string", *MOMENTS}


@dataclass(frozen=True, eq=False)
class Value:
    """A checked part of the condition: its kind, the node it comes from, its ibis expression.

    A literal has its Python value too, and a number has only that until it meets a column, whose type it takes. An
    integer stands for its expression over 10^scale, and its expression lies in [low, high]. What nobody has declared a
    type for is a string with the `cell` that it comes from, which can be read as another kind.
    """

    kind: str
    node: Node
    expr: Any = None
    literal: Any = None
    scale: int = 0
    low: int = 0
    high: int = 0
    cell: Any = None

    @property
    def text(self) -> str:
        """Its SQL, as a message quotes it."""
        return sql(self.node)


def combine_values(values: list[Value], node: Node, combine: Callable[[list[Any]], Any]) -> Value:
    """The value that is one of these, which are of one type."""
    given = [each for each in values if each.kind != "NULL"]
    if not given:
        return Value("NULL", node)
    low, high = min(each.low for each in given), max(each.high for each in given)
    expr = combine([each.expr for each in values])
    cell = expr if any(each.cell is not None for each in given) else None
    return replace(given[0], node=node, expr=expr, literal=None, low=low, high=high, cell=cell)


def is_null(value: Value) -> Any:
    """Whether the value is NULL, as an expression."""
    if value.cell is not None:
        return is_missing(value.cell)
    return ibis.literal(value.kind == "NULL") if value.expr is None else parenthesize(value).isnull()


def parenthesize(value: Value) -> Any:
    """The value as the operand of = or IS; ibis leaves out the parentheses that BETWEEN, IN and NOT need there."""
    if value.kind != "boolean" or isinstance(value.node, exp.Column | exp.Boolean):
        return value.expr
    return ibis.coalesce(value.expr, UNKNOWN)


def combine_balanced(combine: Callable[[Any, Any], Any], parts: list[Any]) -> Any:
    """All parts combined in a tree of little depth, since engines and ibis recurse into it."""
    while len(parts) > 1:
        rest = parts[-1:] if len(parts) % 2 else []
        parts = [combine(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)] + rest
    return parts[0]


def refuse_mismatch(values: list[Value]) -> NoReturn:
    """Refuses values that have no type in common."""
    first: dict[str, Value] = {}
    for each in values:
        first.setdefault(each.kind, each)
    named = " with ".join(f"{each.text} ({each.kind})" for each in first.values())
    if len(first) == 1:
        raise InvalidTypeError(f"where must not compare {named}: engines do not agree on this type")
    raise InvalidTypeError(
        f"where must not compare or mix {named}: converting one of them can fail on a row{_suggest_text(first)}"
    )


def _suggest_text(first: dict[str, Value]) -> str:
    """How to compare a column that was declared as text, where it stands beside a literal of another kind."""
    text, other = first.get("string"), next((each for kind, each in first.items() if kind != "string"), None)
    if text is None or text.literal is not None or other is None or other.literal is None:
        return ""
    spelled = sql(other.node).partition("'")[2].rstrip("'") or other.text
    declared = f"; {text.text} was declared as text, and can be compared with '{spelled}'"
    # As text 10 is less than 4.
    ordered = " by = and <>, and by < and > once it is stored as numbers"
    return f"{declared}{ordered if other.kind == 'number' else ''}"


def column_value(node: Node, table: ir.Table, dialect: Dialect, undeclared: frozenset[str], is_text: bool) -> Value:
    """The column that the node names, as text that can be read as more where nobody has declared its type."""
    expr = table[_column_name(node.name, table.columns, is_text)]
    if expr.get_name() in undeclared:
        return Value("string", node, read_cell(dialect, expr, "string"), cell=expr)
    dtype = expr.type()
    kind = _kind(dtype, dialect)
    if kind == "string":
        dialect.check_column(f"{sql(node)} in where", dtype)
    if kind != "integer":
        return Value(kind, node, comparable_moment(expr, kind) if dialect.dates_are_text else expr)
    # Where columns have no types, one that is declared as of small integers keeps any.
    bounds = dtype.bounds if dialect.has_typed_columns else dt.int64.bounds
    return Value(kind, node, expr, low=bounds.lower, high=bounds.upper)


def _column_name(name: str, columns: Sequence[str], is_text: bool) -> str:
    if name in columns:
        return name
    folded = {column.casefold(): column for column in columns}
    if [column.casefold() for column in columns].count(name.casefold()) == 1:
        return folded[name.casefold()]
    hint = suggestion(name, columns, private=is_text)
    if is_text:
        raise InvalidValueError(
            "where must name columns of the table, and have strings in single quotes, and "
            f"{quote(name)} is not in the header of the file{hint}"
        )
    raise InvalidValueError(
        f"where must name columns of the table ({choices(columns)}), and have strings in single quotes, "
        f"not {quote(name)}{hint}"
    )


def _kind(dtype: dt.DataType, dialect: Dialect) -> str:
    if dtype.is_timestamp() and dtype.timezone is None:
        return "timestamp"
    if dtype.is_timestamp() and not dialect.dates_are_text:  # which may have any zone, or none
        return "timestamp with time zone"
    tests = {
        "boolean": dtype.is_boolean,
        "integer": dtype.is_integer,
        "decimal": dtype.is_decimal,
        "float": dtype.is_floating,
        "string": dtype.is_string,
        "date": dtype.is_date,
    }
    return next((kind for kind, holds in tests.items() if holds()), str(dtype))


def comparable_moment(expr: Any, kind: str) -> Any:
    """A column of dates kept as text, which has more than one spelling, as it can be compared; others as they are."""
    if kind not in MOMENTS:
        return expr
    text = expr.cast("string")
    if kind == "date":
        return text.substr(0, 10)
    text, rtrim = text.replace("T", " "), engine_function("rtrim", "string", "string", "string")
    # A day is its midnight, and a minute its beginning: 2026-01-31, and 2026-01-31 12:00.
    ends = {length: text + end for length, end in ((10, " 00:00:00"), (16, ":00"))}
    spelled = [(text.length() == length, whole) for length, whole in ends.items()]
    return ibis.cases(*spelled, (text.contains("."), rtrim(rtrim(text, "0"), ".")), else_=text)


# The white list of nodes, and why the others are not on it.
#
# What is listed gives every row a value, always the same one, from that row alone, whatever the row holds.

COMPARISONS = {exp.EQ: "=", exp.NEQ: "<>", exp.LT: "<", exp.LTE: "<=", exp.GT: ">", exp.GTE: ">="}
_PREDICATES = (*COMPARISONS, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Is, exp.Between, exp.In, exp.Like, exp.ILike)
_TWO_SIDES = ("this", "expression")
PARTS: dict[type, tuple[str, ...]] = {
    exp.Paren: ("this",),
    exp.Column: ("this",),
    exp.Literal: ("this", "is_string"),
    exp.Boolean: ("this",),
    exp.Null: (),
    exp.Cast: ("this", "to"),
    exp.And: _TWO_SIDES,
    exp.Or: _TWO_SIDES,
    exp.Not: ("this",),
    exp.EQ: _TWO_SIDES,
    exp.NEQ: _TWO_SIDES,
    exp.LT: _TWO_SIDES,
    exp.LTE: _TWO_SIDES,
    exp.GT: _TWO_SIDES,
    exp.GTE: _TWO_SIDES,
    exp.NullSafeEQ: _TWO_SIDES,
    exp.NullSafeNEQ: _TWO_SIDES,
    exp.Is: _TWO_SIDES,
    exp.Between: ("this", "low", "high"),
    exp.In: ("this", "expressions"),
    exp.Like: (*_TWO_SIDES, "negate"),
    exp.ILike: (*_TWO_SIDES, "negate"),
    exp.Lower: ("this",),
    exp.Upper: ("this",),
    exp.Trim: ("this", "position"),
    exp.Coalesce: ("this", "expressions"),
    exp.Case: ("ifs", "default"),
    exp.Add: _TWO_SIDES,
    exp.Sub: _TWO_SIDES,
    exp.Mul: _TWO_SIDES,
    exp.Neg: ("this",),
}
"""The white list: nodes, and the parts of each that are understood."""

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
_OPERATORS: dict[type, str] = {exp.Div: "/", exp.IntDiv: "//", exp.Mod: "%", exp.Pow: "^", exp.DPipe: "||"}
_CHANGING = {"now", "today", "localtime", "localtimestamp", "transaction_timestamp", "rand", "random", "setseed"}
_CHANGING |= {"uuid", "gen_random_uuid", "uuidv4", "uuidv7", "nextval", "currval", "session_user", "getvariable"}
_READING = {"glob", "getenv", "parquet_scan", "sniff_csv", "sqlite_scan", "postgres_scan", "query", "query_table"}


def check_listed(node: Node) -> None:
    """Raises unless the node is on the white list with nothing else attached."""
    if type(node) not in PARTS:
        refuse(node)
    for name, attached in node.args.items():
        if attached and name not in PARTS[type(node)]:
            refuse(attached if isinstance(attached, exp.Query) else node)
        if isinstance(node, _PREDICATES) and isinstance(attached, (*_PREDICATES, exp.Not)):
            # DuckDB and the parser do not always agree which of the two comes first.
            raise InvalidValueError(f"where must have parentheses around {sql(attached)} in {sql(node)}")


def refuse(node: Node) -> NoReturn:
    """Raises with what the node is called and why it is refused."""
    what, why = _describe(node)
    raise InvalidValueError(f"where must not use {what} ({sql(node)}): {why}")


def _describe(node: Node) -> tuple[str, str]:
    """What a refused node is called, and why it is refused."""
    for kinds, what, why in _REFUSED:
        if isinstance(node, kinds):
            return what, why
    if type(node).__name__.startswith("Regexp"):
        return "a regular expression", "engines read it differently"
    if type(node) in _OPERATORS:
        return f"the operator {_OPERATORS[type(node)]}", _FAILS
    if type(node) in PARTS or not isinstance(node, exp.Func):
        return f"this form of {node.key}", "it is not known to mean the same on every engine"
    name = sql(node).partition("(")[0].lower()
    return f"the function {name}", _explain_function(name)


def _explain_function(name: str) -> str:
    if name in _CHANGING or name.startswith(("current_", "get_current_")):
        return "whether a row is kept must not depend on the clock, the session or chance"
    if name in _READING or name.startswith("read_"):
        return "it reads something other than the row"
    return "only lower, upper, trim, ltrim, rtrim and coalesce are known to mean the same on every engine"


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
    duckdb = SqlDialect.get_or_raise("duckdb")
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
    tokens = SqlDialect.get_or_raise("duckdb").tokenize(where)
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

"""Translate a parsed condition into one ibis expression that is true for the rows to keep.

`Condition` parses the text once. `Reader` translates each node of the allow list, and `Comparator` brings the two sides
of a comparison to one type on which the engines agree.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from decimal import MAX_PREC, Context, Decimal
from fractions import Fraction
from string import ascii_lowercase, ascii_uppercase
from sys import float_info
from typing import Any

import ibis
import ibis.expr.datatypes as dt
import ibis.expr.types as ir
from sqlglot import exp

from discreet.errors import InvalidTypeError, InvalidValueError, choices, quote, suggestion
from discreet.sources.events.cells import (
    DAY_NUMBER,
    LONGEST_TEXT,
    SECOND_NUMBER,
    engine_function,
    has_reading,
    is_missing,
    read_cell,
)
from discreet.sources.events.dialects.base import Dialect
from discreet.sources.events.dialects.duckdb import DIALECT as DUCKDB
from discreet.sources.events.where.grammar import (
    COMPARISONS,
    Node,
    check_grammar,
    check_listed,
    is_calculated_cast,
    parse_expression,
    refuse,
    silence_sqlglot,
    sql,
)
from discreet.sources.events.where.numbers import (
    DATE_PARTS,
    Value,
    add_article,
    calculate,
    extract_part,
    find_grid,
    moment_literal,
    refuse_mismatch,
    unify_moments,
    unify_numbers,
)

_UNKNOWN = ibis.null(dt.boolean)
_NUMERIC = {"integer", "decimal", "float", "number"}
_MOMENTS = {"date", "timestamp", "timestamp with time zone"}
_COMPARABLE = {"boolean", "string", *_MOMENTS}
_SIGNS = {"=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_CALCULATIONS: dict[type, Callable[[Any, Any], Any]] = {
    exp.Add: operator.add,
    exp.Sub: operator.sub,
    exp.Mul: operator.mul,
}
_TRIMS = {None: "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
_CASTS = {
    "TEXT": "string",
    "VARCHAR": "string",
    "INT": "integer",
    "BIGINT": "integer",
    "DOUBLE": "float",
    "DATE": "date",
    "BOOLEAN": "boolean",
}
"""The types of a cast, and the kinds that a cell is read as."""

_CASTS_FROM = {
    "string": {"string", "integer", "float", "date", "boolean"},
    "integer": {"string", "integer", "float"},
    "decimal": {"string", "integer", "float"},
    "float": {"string", "integer", "float"},
    "date": {"string", "date"},
    "boolean": {"string", "boolean"},
}
"""The kinds that a kind can be cast to with one meaning on every engine."""

_MOST_FLOAT = float_info.max

_LONGEST_RESULT = 2**20
"""Maximum number of bytes that a text which functions make can have, whatever the row holds."""

_LITERAL_CASTS = {
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMPNTZ": "timestamp",
    "TIMESTAMPTZ": "timestamp with time zone",
}
_READINGS = {"integer", "float", "boolean", *_MOMENTS}
"""The kinds that a column without a declared type can be read as, beside text."""


@dataclass(frozen=True, eq=False, repr=False)
class Translation:
    """A condition on one table.

    Attributes
    ----------
    expression
        A boolean ibis expression, true for the rows to keep.
    note
        A sentence that says how columns without a declared type are read, None if the condition names none. It depends
        on the condition and on the declared types, and on no row.
    """

    expression: ir.BooleanValue
    note: str | None


@dataclass(frozen=True, eq=False, repr=False)
class Condition:
    """A condition on single rows, parsed and within the limits that its text alone decides.

    Attributes
    ----------
    text
        One SQL expression in DuckDB's dialect, of columns, literals, comparisons, AND, OR, NOT, IN with a list,
        BETWEEN, LIKE, ILIKE, IS NULL, IS TRUE, IS DISTINCT FROM, + - *, lower, upper, fold, trim, substring, replace,
        concat, coalesce, CASE WHEN, CAST and EXTRACT.
    columns
        The names of columns in the text, each once; a table may have them in another case.

    Notes
    -----
    Every engine gives a condition one meaning. Strings are compared by their UTF-8 bytes, whatever the collation of a
    column; lower, upper and ILIKE change the letters A to Z alone, and trim removes spaces (U+0020) alone. To fold,
    substring, replace and concat a text over 64 KiB, or one with a NUL, is NULL. Dates on SQLite are ISO text. Numbers
    are compared by their exact value, except beside a column of floats, where both sides are doubles, and NaN is the
    largest and equal to itself. Arithmetic is for integers and decimal literals; a result of 2^63 or more, in units of
    its last decimal place, is NULL.

    Examples
    --------
    >>> import ibis
    >>> ratings = ibis.table({"stars": "int64", "title": "string"}, name="ratings")
    >>> condition = Condition.parse("stars >= 4.5 AND title LIKE 'A%'")
    >>> condition.columns
    ('stars', 'title')
    >>> kept = ratings.filter(condition.translate(ratings).expression)
    """

    text: str
    columns: tuple[str, ...]
    _root: Node
    _tokens: list[Any]

    @classmethod
    def parse(cls, text: Any) -> Condition:
        """Parse a text, and raise if it is not one expression of limited length, depth and arithmetic."""
        with silence_sqlglot():
            root, tokens = parse_expression(text)
        columns = dict.fromkeys(column.name for column in root.find_all(exp.Column) if column.name)
        return cls(text, tuple(columns), root, tokens)

    @property
    def is_name(self) -> bool:
        """True if the text is a name alone, with dots or not."""
        return isinstance(self._root, exp.Column | exp.Dot)

    def list_outer_functions(self) -> list[str]:
        """Return the names of the outermost functions that change case and spaces alone, the last applied one first."""
        node, found = self._root, list[str]()
        while True:
            name = {exp.Lower: "lower", exp.Upper: "upper", exp.Paren: ""}.get(type(node))
            if isinstance(node, exp.Trim) and node.args.get("expression") is None:
                name = _TRIMS[node.args.get("position")]
            elif isinstance(node, exp.Anonymous) and node.name.lower() == "fold" and len(node.expressions) == 1:
                name = "fold"
            if name is None:
                return found
            found += [name] if name else []
            node = node.expressions[0] if name == "fold" else node.this

    def translate(
        self,
        table: ir.Table,
        dialect: Dialect = DUCKDB,
        *,
        undeclared: Collection[str] = (),
        names_are_private: bool = False,
    ) -> Translation:
        """Translate the condition for a table.

        Parameters
        ----------
        table
            The table with the columns.
        dialect
            The dialect of its engine, with the formats of dates and numbers in text.
        undeclared
            The columns whose type is not declared, such as those of a CSV file. They hold text; beside a number, a
            date, a timestamp or TRUE the text is read as such, and in arithmetic as an integer, and is NULL in rows
            where it is none.
        names_are_private
            True if a name of a column may be private, as in the header of a text file.

        Raises
        ------
        InvalidTypeError
            If a part of the condition is of the wrong type for its place.
        InvalidValueError
            If the condition uses a node that is not on the allow list, or a column that the table does not have.

        Examples
        --------
        >>> import ibis
        >>> visits = ibis.table({"won": "string"}, name="visits")
        >>> print(Condition.parse("won = TRUE").translate(visits, undeclared=["won"]).note)
        where reads won as true or false, because its type is not declared: no other spelling meets it
        """
        reader = Reader(table, dialect, frozenset(undeclared), names_are_private)
        return Translation(self._read(reader, reader.truth), reader.comparator.describe_readings())

    def translate_value(self, reader: Reader) -> Value:
        """Return the value of the text, which need not be true or false, for the table of a reader."""
        found: Value = self._read(reader, reader.value)
        return found

    def _read(self, reader: Reader, read: Callable[[Node], Any]) -> Any:
        """Return what a method of the reader makes of the root, and raise if DuckDB does not parse the text."""
        with silence_sqlglot():
            try:
                found = read(self._root)
            except (InvalidTypeError, InvalidValueError):
                raise
            except Exception as error:  # a message of ibis would be about types of its own
                name = type(error).__name__
                raise InvalidValueError(f"where must fit the table, and ibis cannot read it ({name})") from None
            # The grammar is checked last, because the errors above say more.
            check_grammar(self.text, self._tokens, reader.table.columns)
        return found


class Reader:
    """Translates nodes of the allow list for one table.

    Attributes
    ----------
    read_strange
        Return a column without a declared type, which may be a structure, as it is read; None for the column itself.
    is_clean
        True if every text is cleaned where it is read.
    """

    def __init__(
        self,
        table: ir.Table,
        dialect: Dialect,
        undeclared: frozenset[str],
        names_are_private: bool,
        read_strange: Callable[[Any], Any] | None = None,
        is_clean: bool = False,
    ) -> None:
        self.table, self.dialect, self.undeclared = table, dialect, undeclared
        self.names_are_private = names_are_private
        self.read_strange, self.is_clean = read_strange, is_clean
        self.comparator = Comparator(dialect)

    def truth(self, node: Node) -> Any:
        """Return the node as a boolean expression."""
        value = self.value(node)
        if value.kind == "NULL":
            return _UNKNOWN
        value = self.comparator.read_as("boolean", value)
        if value.kind != "boolean":
            raise InvalidTypeError(
                f"where must be true or false in the place of {value.text}, which is {add_article(value.kind)}"
            )
        return value.expr

    def value(self, node: Node) -> Value:
        """Return the value of a node, and raise if the node is not on the allow list."""
        check_listed(node)
        return READERS[type(node)](self, node)

    def paren(self, node: Node) -> Value:
        return replace(self.value(node.this), node=node)

    def column(self, node: Node) -> Value:
        """Return a column of the table; one without a declared type is text that can be read as another kind."""
        if not isinstance(node.this, exp.Identifier):
            refuse(node.this)
        dialect, expr = self.dialect, self.table[self._find_column(node.name)]
        if expr.get_name() in self.undeclared:
            cell = expr if self.read_strange is None else self.read_strange(expr)
            value = Value("string", node, read_cell(dialect, cell, "string"), cell=cell)
            return self.clean(value) if self.is_clean else value
        dtype = expr.type()
        tests = {
            "boolean": dtype.is_boolean,
            "integer": dtype.is_integer,
            "decimal": dtype.is_decimal,
            "float": dtype.is_floating,
            "string": dtype.is_string,
            "date": dtype.is_date,
        }
        # A type that cannot be compared is its own kind.
        kind = next((kind for kind, holds in tests.items() if holds()), str(dtype))
        # On an engine that keeps dates as text, a timestamp with a zone may have any zone, or none.
        if dtype.is_timestamp() and (dtype.timezone is None or not dialect.dates_are_text):
            kind = "timestamp" if dtype.timezone is None else "timestamp with time zone"
        if kind == "string":
            dialect.check_column(f"{sql(node)} in where", dtype)
        if kind != "integer":
            is_text = dialect.dates_are_text and kind in _MOMENTS
            value = Value(kind, node, _normalize_moment(expr, kind) if is_text else expr)
            return self.clean(value) if self.is_clean and kind == "string" else value
        # On an engine without typed columns, a column declared with small integers can hold any.
        bounds = dtype.bounds if dialect.has_typed_columns else dt.int64.bounds
        return Value(kind, node, expr, low=bounds.lower, high=bounds.upper)

    def _find_column(self, name: str) -> str:
        """Return the column of the table with this name, or the only one that differs from it in case alone."""
        columns: Sequence[str] = self.table.columns
        if name in columns:
            return name
        alike = [column for column in columns if column.casefold() == name.casefold()]
        if len(alike) == 1:
            return alike[0]
        hint = suggestion(name, columns, private=self.names_are_private)
        if self.names_are_private:
            raise InvalidValueError(
                "where must name columns of the table, and have strings in single quotes, and "
                f"{quote(name)} is not in the header of the file{hint}"
            )
        raise InvalidValueError(
            f"where must name columns of the table ({choices(columns)}), and have strings in single quotes, "
            f"not {quote(name)}{hint}"
        )

    def literal(self, node: Node) -> Value:
        """Return a string, or a number with the exact value that is written."""
        if node.is_string:
            return Value("string", node, ibis.literal(node.this, dt.string), node.this)
        if not re.fullmatch(r"(\d+\.?\d*|\.\d+)(e[+-]?\d{1,3})?", node.this, re.ASCII | re.IGNORECASE):
            refuse(node)
        number = Decimal(node.this).normalize(Context(MAX_PREC))
        if len(number.as_tuple().digits) > 38:
            raise InvalidValueError(f"where must hold numbers of at most 38 digits, not {sql(node)}")
        return Value("number", node, literal=Fraction(number))

    def boolean(self, node: Node) -> Value:
        return Value("boolean", node, ibis.literal(bool(node.this)), bool(node.this))

    def null(self, node: Node) -> Value:
        return Value("NULL", node)

    def cast(self, node: Node) -> Value:
        """Return a cell read as another kind, NULL where it has no such value, or a literal such as DATE '2024-01-31'.

        sqlglot parses such a literal as the cast of a string.
        """
        name, text = node.to.this.name, node.this
        if not is_calculated_cast(node):
            if name not in _LITERAL_CASTS or node.to.expressions:
                refuse(node)
            spelled = f"{name.removesuffix('NTZ')} {sql(text)}"
            return moment_literal(self.dialect, _LITERAL_CASTS[name], text.this, spelled)
        if name not in _CASTS or node.to.expressions:
            raise InvalidValueError(
                f"where must cast to TEXT, BIGINT, DOUBLE, DATE or BOOLEAN alone, unlike {sql(node)}: a cast gives "
                "NULL where a cell has no such value"
            )
        kind, value = _CASTS[name], self.value(text)
        if value.kind == "NULL":
            return replace(value, node=node)
        source = self._calculated(value)
        known = kind in _CASTS_FROM.get(value.kind, ())
        if not known or not (value.kind == "boolean" or has_reading(self.dialect, source, kind)):
            raise InvalidTypeError(
                f"where must not cast {value.text}, {add_article(value.kind)}, to {name} on {self.dialect.title}: such "
                "a cast is not known to mean the same on every engine"
            )
        if value.kind == "boolean":
            text = ibis.cases((value.expr, "true"), (~value.expr, "false"), else_=ibis.null("string"))
            return value if kind == "boolean" else Value(kind, node, text, longest=len("false"))
        read = read_cell(self.dialect, source, kind)
        if kind == "integer":
            return Value(kind, node, read, low=-(2**63), high=2**63 - 1)
        if kind == "float":
            # Some engines read 1e999 as infinite, and others not at all.
            return Value(
                kind, node, ibis.cases((read.between(-_MOST_FLOAT, _MOST_FLOAT), read), else_=ibis.null("float64"))
            )
        return self.clean(Value(kind, node, read)) if kind == "string" else Value(kind, node, read)

    def extract(self, node: Node) -> Value:
        """Return a part of the date of a cell, or of the moment in UTC, NULL where it is neither or out of range."""
        part, value = str(node.this.name).lower(), self.value(node.expression)
        if part not in DATE_PARTS:
            raise InvalidValueError(f"where must extract {', '.join(DATE_PARTS)} alone, unlike {sql(node)}")
        if value.kind == "NULL":
            return replace(value, node=node)
        if value.kind not in {*_MOMENTS, "string"}:
            raise InvalidTypeError(
                f"where must extract a {part} from a date or a timestamp, not from {value.text}, "
                f"{add_article(value.kind)}"
            )
        source = self._calculated(value)
        # An engine whose functions of text are not known may take very long over the arithmetic of the calendar.
        known = self.dialect.clean_text is not None
        if not known or not any(has_reading(self.dialect, source, kind) for kind in (DAY_NUMBER, SECOND_NUMBER)):
            raise InvalidValueError(
                f"where must not extract a {part} on {self.dialect.title}, whose days are not known"
            )
        if value.cell is not None:
            self.comparator.readings[value.text] = "timestamp"
        low, high = DATE_PARTS[part]
        return Value("integer", node, extract_part(self.dialect, source, part), low=low, high=high)

    def _calculated(self, value: Value) -> Any:
        """Return the expression of a value that is read as another kind, the cell of a column without a type."""
        if value.literal is not None:
            raise InvalidValueError(f"where must have a column in the place of {value.text}")
        if value.scale:
            raise InvalidValueError(f"where must not cast {value.text}, which has decimal places")
        return value.expr if value.cell is None else value.cell

    def connective(self, node: Node) -> Value:
        combine = operator.and_ if isinstance(node, exp.And) else operator.or_
        return Value("boolean", node, _combine_balanced(combine, [self.truth(part) for part in node.flatten()]))

    def negation(self, node: Node) -> Value:
        return Value("boolean", node, ~self.truth(node.this))

    def comparison(self, node: Node) -> Value:
        left, right = self.value(node.this), self.value(node.expression)
        return Value("boolean", node, self.comparator.compare(COMPARISONS[type(node)], left, right))

    def distinct(self, node: Node) -> Value:
        same = self.comparator.same(self.value(node.this), self.value(node.expression))
        return Value("boolean", node, same if isinstance(node, exp.NullSafeEQ) else ~same)

    def test(self, node: Node) -> Value:
        """Return the value of IS NULL, IS TRUE or IS FALSE."""
        wanted = node.expression
        if isinstance(wanted, exp.Null):
            return Value("boolean", node, _is_null(self.value(node.this)))
        if not isinstance(wanted, exp.Boolean):
            refuse(node)
        truth = self.truth(node.this)
        return Value("boolean", node, ibis.coalesce(truth if wanted.this else ~truth, False))

    def between(self, node: Node) -> Value:
        value, low, high = (self.value(node.args[name]) for name in ("this", "low", "high"))
        return Value("boolean", node, self.comparator.within(value, low, high))

    def membership(self, node: Node) -> Value:
        value, listed = self.value(node.this), [self.value(each) for each in node.expressions]
        strange = next((each for each in listed if each.literal is None and each.kind != "NULL"), None)
        if strange is not None or not listed:
            raise InvalidValueError(f"where must list literals after IN, not {strange.text if strange else 'nothing'}")
        literals = [each for each in listed if each.kind != "NULL"]
        if value.kind == "NULL" or not literals:
            return Value("boolean", node, _UNKNOWN)
        found = self.comparator.among(value, literals)
        return Value("boolean", node, found if len(literals) == len(listed) else found | _UNKNOWN)

    def like(self, node: Node) -> Value:
        name = node.key.upper()
        if not (isinstance(node.expression, exp.Literal) and node.expression.is_string):
            raise InvalidValueError(f"where must have a string literal after {name} in {sql(node)}")
        value, pattern = self.value(node.this), node.expression.this
        if "\\" in pattern:
            raise InvalidValueError(f"where must not use a backslash in {sql(node)}: engines read it differently")
        if value.kind == "NULL":
            return Value("boolean", node, _UNKNOWN)
        _check_string(value, name)
        inner = value.expr
        if isinstance(node, exp.ILike):
            inner = self.dialect.fold_case(inner, "lower")
            pattern = pattern.translate(str.maketrans(ascii_uppercase, ascii_lowercase))
        found = self.dialect.like(self.dialect.drop_collation(inner), pattern)
        return Value("boolean", node, ~found if node.args.get("negate") else found)

    def string_function(self, node: Node) -> Value:
        value = self.value(node.this)
        if value.kind == "NULL":
            return replace(value, node=node)
        _check_string(value, node.key)
        if not isinstance(node, exp.Trim):
            changed = self.dialect.fold_case(value.expr, node.key)
        elif self.dialect.trim is not None:
            changed = self.dialect.trim(value.expr, _TRIMS[node.args.get("position")])
        else:
            raise InvalidValueError(f"where must not trim strings on {self.dialect.name}, as it does with {value.text}")
        return self._changed(node, value, changed, _measure(value))

    def substring(self, node: Node) -> Value:
        """Return some characters of a text, counted from 1."""
        places = [node.args[name] for name in ("start", "length") if node.args.get(name) is not None]
        if not all(isinstance(each, exp.Literal) and re.fullmatch("[0-9]{1,6}", each.this) for each in places):
            raise InvalidValueError(
                f"where must have whole numbers as the place and the length in {sql(node)}, the place from 1"
            )
        start, *length = [int(each.this) for each in places]
        if start < 1:
            raise InvalidValueError(f"where must count the characters from 1 in {sql(node)}")
        value = self._clean_string(node.this, "substring")
        if value is None:
            return Value("NULL", node)
        longest = min([_measure(value) or 0, *(4 * each for each in length)])
        # The substr of ibis holds its argument twice.
        call = engine_function(self.dialect.substring, "string", "string", *["int32"] * len(places))
        return self._changed(node, value, call(value.expr, start, *length), longest)

    def replacement(self, node: Node) -> Value:
        """Return a text with another text in place of each one that is searched for, from left to right."""
        old, new = node.expression, node.args.get("replacement")
        if not all(isinstance(each, exp.Literal) and each.is_string for each in (old, new)) or not old.this:
            raise InvalidValueError(
                f"where must have two string literals in {sql(node)}, the text to replace, which is not empty, and the "
                "one in its place"
            )
        value = self._clean_string(node.this, "replace")
        if value is None:
            return Value("NULL", node)
        sizes = [len(each.this.encode()) for each in (old, new)]
        longest = (_measure(value) or 0) * max(1, -(-sizes[1] // sizes[0]))
        changed = self.dialect.drop_collation(value.expr).replace(old.this, new.this)
        return self._changed(node, value, changed, longest)

    def concat(self, node: Node) -> Value:
        """Return texts one after the other, a missing one as an empty one."""
        found = [self._clean_string(each, "concat") for each in node.expressions]
        given = [each for each in found if each is not None]
        if not given:
            return Value("string", node, ibis.literal(""), "")
        joined = [each.expr if each.literal is not None else ibis.coalesce(each.expr, "") for each in given]
        changed = joined[0] if len(joined) == 1 else _combine_balanced(operator.add, joined)
        return self._changed(node, given[0], changed, sum(_measure(each) or 0 for each in given))

    def function(self, node: Node) -> Value:
        """Return a text after Unicode simple case folding, the only function that sqlglot does not know."""
        if node.name.lower() != "fold" or len(node.expressions) != 1:
            refuse(node)
        value = self._clean_string(node.expressions[0], "fold")
        if value is None:
            return Value("NULL", node)
        if self.dialect.fold is None or node.find(exp.Column) is None:
            reason = "without a column" if self.dialect.fold is not None else f"on {self.dialect.name}"
            raise InvalidValueError(f"where must not fold strings {reason}, as in {sql(node)}")
        # A character of two bytes can fold to one of three.
        return self._changed(node, value, self.dialect.fold(value.expr), (_measure(value) or 0) * 3 // 2)

    def clean(self, value: Value) -> Value:
        """Return a string that is NULL in rows where functions of text could differ from engine to engine."""
        if _measure(value) is not None:
            return value
        if self.dialect.clean_text is None:
            raise InvalidValueError(
                f"where must not change strings on {self.dialect.name}, as it does with {value.text}"
            )
        return replace(value, expr=self.dialect.clean_text(value.expr), longest=LONGEST_TEXT)

    def _clean_string(self, node: Node, name: str) -> Value | None:
        """Return a clean string, None for NULL."""
        value = self.value(node)
        if value.kind == "NULL":
            return None
        _check_string(value, name)
        return self.clean(value)

    def _changed(self, node: Node, value: Value, changed: Any, longest: int | None) -> Value:
        """Return what a function makes of a string, and raise if it could become too long."""
        if longest is not None and longest > _LONGEST_RESULT:
            raise InvalidValueError(
                f"where must not make texts of more than {_LONGEST_RESULT:,} bytes, as {sql(node)} could"
            )
        return Value("string", node, changed, cell=None if value.cell is None else changed, longest=longest)

    def coalesce(self, node: Node) -> Value:
        values = self.comparator.unify_types([self.value(each) for each in (node.this, *node.expressions)])
        return _combine_values(values, node, lambda expressions: ibis.coalesce(*expressions))

    def case(self, node: Node) -> Value:
        branches, default = node.args["ifs"], node.args.get("default")
        truths = [self.truth(branch.this) for branch in branches]
        results = [self.value(branch.args["true"]) for branch in branches]
        otherwise = Value("NULL", "NULL") if default is None else self.value(default)

        def choose(expressions: list[Any]) -> Any:
            return ibis.cases(*zip(truths, expressions[:-1], strict=True), else_=expressions[-1])

        return _combine_values(self.comparator.unify_types([*results, otherwise]), node, choose)

    def arithmetic(self, node: Node) -> Value:
        left, right = (self.comparator.read_as("integer", self.value(each)) for each in (node.this, node.expression))
        return calculate(self.dialect, _CALCULATIONS[type(node)], left, right, node)

    def minus(self, node: Node) -> Value:
        zero, value = Value("number", "0", literal=Fraction(0)), self.value(node.this)
        return calculate(self.dialect, operator.sub, zero, self.comparator.read_as("integer", value), node)


READERS: dict[type, Callable[[Reader, Any], Value]] = {
    exp.Paren: Reader.paren,
    exp.Column: Reader.column,
    exp.Literal: Reader.literal,
    exp.Boolean: Reader.boolean,
    exp.Null: Reader.null,
    exp.Cast: Reader.cast,
    exp.TryCast: Reader.cast,
    exp.Extract: Reader.extract,
    exp.Substring: Reader.substring,
    exp.Replace: Reader.replacement,
    exp.Concat: Reader.concat,
    exp.Anonymous: Reader.function,
    exp.And: Reader.connective,
    exp.Or: Reader.connective,
    exp.Not: Reader.negation,
    **dict.fromkeys(COMPARISONS, Reader.comparison),
    exp.NullSafeEQ: Reader.distinct,
    exp.NullSafeNEQ: Reader.distinct,
    exp.Is: Reader.test,
    exp.Between: Reader.between,
    exp.In: Reader.membership,
    exp.Like: Reader.like,
    exp.ILike: Reader.like,
    exp.Lower: Reader.string_function,
    exp.Upper: Reader.string_function,
    exp.Trim: Reader.string_function,
    exp.Coalesce: Reader.coalesce,
    exp.Case: Reader.case,
    **dict.fromkeys(_CALCULATIONS, Reader.arithmetic),
    exp.Neg: Reader.minus,
}
"""The method that translates each node of the allow list."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparator:
    """Brings values to one type on one engine and compares them.

    A literal takes the type of the column beside it, and so does a column without a declared type.

    Attributes
    ----------
    dialect
        The dialect of the engine.
    readings
        The kinds that columns without a declared type have been read as, by their text.
    """

    dialect: Dialect
    readings: dict[str, str] = field(default_factory=dict)

    def compare(self, sign: str, left: Value, right: Value) -> Any:
        """Compare two values; NULL where one of them is NULL."""
        if sign not in ("=", "<>"):
            _refuse_order(left, right)
        if sign == "<>":
            return ~self.compare("=", left, right)
        if "NULL" in (left.kind, right.kind):
            return _UNKNOWN
        if left.literal is not None and right.literal is None:
            return self.compare(_MIRRORED[sign], right, left)
        left, right = self.align_kinds([left, right])
        if left.kind == right.kind == "number":
            return ibis.literal(bool(_SIGNS[sign](left.literal, right.literal)))
        grid = find_grid(self.dialect, left)
        if grid is not None and right.kind == "number":
            return grid.compare(sign, right.literal)
        left, right = self.unify_types([left, right])
        if sign == "=":
            return self._equality_operand(left) == self._equality_operand(right)
        return _SIGNS[sign](self._order_operand(left), self._order_operand(right))

    def among(self, value: Value, literals: list[Value]) -> Any:
        """Test that the value is one of the literals."""
        value, *literals = self.align_kinds([value, *literals])
        if value.kind == "number":
            return _combine_balanced(operator.or_, [self.compare("=", value, each) for each in literals])
        grid = find_grid(self.dialect, value)
        if grid is not None and all(each.kind == "number" for each in literals):
            return grid.among([each.literal for each in literals])
        value, *literals = self.unify_types([value, *literals])
        return self._equality_operand(value).isin([self._equality_operand(each) for each in literals])

    def within(self, value: Value, low: Value, high: Value) -> Any:
        """Test that the value is at least low and at most high."""
        for bound in (low, high):
            _refuse_order(value, bound)
        value, low, high = self.align_kinds([value, low, high])
        grid = find_grid(self.dialect, value)
        kinds = [value.kind, low.kind, high.kind]
        if "NULL" in kinds or value.kind == "number" or (grid is not None and kinds.count("number") == 1):
            return self.compare(">=", value, low) & self.compare("<=", value, high)
        if grid is not None and low.kind == high.kind == "number":
            return grid.within(math.ceil(low.literal / grid.unit), math.floor(high.literal / grid.unit))
        inner, *bounds = [self._order_operand(each) for each in self.unify_types([value, low, high])]
        return inner.between(*bounds)

    def same(self, left: Value, right: Value) -> Any:
        """Test that the two are equal or both NULL; the result is never NULL."""
        if "NULL" in (left.kind, right.kind):
            return _is_null(left if right.kind == "NULL" else right)
        if left.literal is not None or right.literal is not None:
            return ibis.coalesce(self.compare("=", left, right), False)
        left, right = self.unify_types([left, right])
        return self._equality_operand(left).identical_to(self._equality_operand(right))

    def _equality_operand(self, value: Value) -> Any:
        """Return an expression that two values share exactly if they are equal."""
        return self.dialect.group_key(value.expr) if value.kind == "string" else _parenthesize(value)

    def _order_operand(self, value: Value) -> Any:
        """Return an expression in the order of the values; strings are ordered by their UTF-8 bytes."""
        if value.kind == "boolean":
            raise InvalidTypeError(f"where must compare booleans with = and <> alone, unlike {value.text}")
        return self.dialect.group_key(value.expr)

    def unify_types(self, values: list[Value]) -> list[Value]:
        """Return the values in one type, and raise if the engines do not agree on one."""
        values = self.align_kinds(values)
        given = [each for each in values if each.kind != "NULL"]
        kinds = {each.kind for each in given}
        if not kinds:
            return values
        if kinds <= _NUMERIC:
            alike = unify_numbers(self.dialect, given)
        elif len(kinds) > 1 or kinds - _COMPARABLE:
            refuse_mismatch(given)
        else:
            alike = unify_moments(given) if kinds <= _MOMENTS else given
        found, nothing = iter(alike), ibis.null(alike[0].expr.type().copy(nullable=True))
        return [replace(each, expr=nothing) if each.kind == "NULL" else next(found) for each in values]

    def align_kinds(self, values: list[Value]) -> list[Value]:
        """Return the values with strings as dates beside dates, dates as timestamps, and undeclared columns read."""
        kinds = {each.kind for each in values} - {"NULL", "string"}
        if kinds == {"date", "timestamp"}:
            kind = "timestamp"
        elif kinds and kinds <= _NUMERIC:
            kind = "float"
        elif len(kinds) == 1:
            (kind,) = kinds
        else:
            return values
        # The cells of an undeclared column beside date literals may hold times as well, and are read as timestamps if
        # the engine can. The type of the column, which may follow from rows, decides nothing.
        is_beside_literals = any(each.cell is not None for each in values) and all(
            each.literal is not None for each in values if each.cell is None and each.kind != "NULL"
        )
        noted = "timestamp" if kind == "date" and is_beside_literals else kind
        if noted != kind and has_reading(self.dialect, ibis.literal(""), noted):
            kind = noted
        values = [self.read_as(kind, each, values, noted) for each in values]
        return [
            moment_literal(self.dialect, kind, each.literal, each.node)
            if kind in _MOMENTS and each.literal is not None and each.kind != kind
            else each
            for each in values
        ]

    def read_as(self, kind: str, value: Value, beside: Sequence[Value] = (), noted: str | None = None) -> Value:
        """Return an undeclared column read as a kind, NULL in rows where it is none, and other values unchanged."""
        if value.cell is None or value.kind != "string" or kind not in _READINGS:
            return value
        long = next((each for each in beside if each.kind == "number" and 2**53 < abs(each.literal) < 2**64), None)
        if long is not None:
            raise InvalidValueError(f"where must compare {value.text} with '{long.text}' in quotes: it is text here")
        self.readings[value.text] = noted or kind
        read = replace(value, kind=kind, expr=read_cell(self.dialect, value.cell, kind), cell=None)
        return replace(read, low=-(2**63), high=2**63 - 1) if kind == "integer" else read

    def describe_readings(self) -> str | None:
        """Return a sentence about the columns that were read as another kind, None if there are none."""
        if not self.readings:
            return None
        formats = self.dialect.formats
        listed = " and ".join(f"{text} as {formats.describe(kind)}" for text, kind in self.readings.items())
        types = "its type is" if len(self.readings) == 1 else "their types are"
        mended = "".join(dict.fromkeys(formats.mend(kind) for kind in self.readings.values()))
        return f"where reads {listed}, because {types} not declared: no other spelling meets it{mended}"


def _normalize_moment(expr: Any, kind: str) -> Any:
    """Return dates or timestamps that an engine keeps as text, which has several spellings, in one spelling."""
    text = expr.cast("string")
    if kind == "date":
        return text.substr(0, 10)
    text, rtrim = text.replace("T", " "), engine_function("rtrim", "string", "string", "string")
    # A day stands for its midnight, and a minute for its first second: 2026-01-31, and 2026-01-31 12:00.
    ends = {length: text + end for length, end in ((10, " 00:00:00"), (16, ":00"))}
    spelled = [(text.length() == length, whole) for length, whole in ends.items()]
    return ibis.cases(*spelled, (text.contains("."), rtrim(rtrim(text, "0"), ".")), else_=text)


def _combine_values(values: list[Value], node: Node, combine: Callable[[list[Any]], Any]) -> Value:
    """Return the value that is one of several values of one type."""
    given = [each for each in values if each.kind != "NULL"]
    if not given:
        return Value("NULL", node)
    low, high = min(each.low for each in given), max(each.high for each in given)
    expr = combine([each.expr for each in values])
    cell = expr if any(each.cell is not None for each in given) else None
    sizes = [_measure(each) for each in given]
    longest = None if None in sizes else max(size or 0 for size in sizes)
    return replace(given[0], node=node, expr=expr, literal=None, low=low, high=high, cell=cell, longest=longest)


def _measure(value: Value) -> int | None:
    """Return the most bytes that a string can have, None if its column says nothing about that."""
    return len(value.literal.encode()) if isinstance(value.literal, str) else value.longest


def _combine_balanced(combine: Callable[[Any, Any], Any], parts: list[Any]) -> Any:
    """Combine all parts in a tree of logarithmic depth, because ibis and the engines recurse into it."""
    while len(parts) > 1:
        rest = parts[-1:] if len(parts) % 2 else []
        parts = [combine(a, b) for a, b in zip(parts[::2], parts[1::2], strict=False)] + rest
    return parts[0]


def _is_null(value: Value) -> Any:
    if value.cell is not None:
        return is_missing(value.cell)
    return ibis.literal(value.kind == "NULL") if value.expr is None else _parenthesize(value).isnull()


def _parenthesize(value: Value) -> Any:
    """Return a value as an operand of = or IS; ibis omits the parentheses that BETWEEN, IN and NOT need there."""
    if value.kind != "boolean" or isinstance(value.node, exp.Column | exp.Boolean):
        return value.expr
    return ibis.coalesce(value.expr, _UNKNOWN)


def _refuse_order(left: Value, right: Value) -> None:
    """Raise if both are columns without a declared type: as text 9 would come after 10."""
    if left.cell is not None and right.cell is not None and left.kind == right.kind == "string":
        raise InvalidTypeError(
            f"where must not order {left.text} and {right.text}, whose types nobody has declared: "
            f"write {left.text} + 0 and {right.text} + 0 for whole numbers"
        )


def _check_string(value: Value, name: str) -> None:
    """Raise if an operator or a function of strings is given another kind."""
    if value.kind != "string":
        raise InvalidTypeError(f"where must use {name} on strings, not on {value.text}, {add_article(value.kind)}")

"""Values side by side: in one type that engines agree on, and compared in it.

A literal takes the type of the column beside it, and so does text of a file that has no types.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import ibis

from discreet.errors import InvalidTypeError, InvalidValueError
from discreet.sources.events.cells import has_reading, read_cell
from discreet.sources.events.dialect import Dialect
from discreet.sources.events.where.moments import is_moment, moment_literal, unify_moments
from discreet.sources.events.where.numbers import grid_of, unify_numbers
from discreet.sources.events.where.values import (
    COMPARABLE,
    MOMENTS,
    NUMERIC,
    UNKNOWN,
    Value,
    combine_balanced,
    is_null,
    parenthesize,
    refuse_mismatch,
)

_SIGNS = {"=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}
_MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_READINGS = {
    "integer": "whole numbers (25)",
    "float": "numbers (2.5)",
    "boolean": "true or false",
    "date": "dates (2026-01-31)",
    "timestamp": "dates and times (2026-01-31 or 2026-01-31 12:00:00)",
    "timestamp with time zone": "times with a zone (2026-01-31 12:00:00+01:00)",
}
"""What a column without a declared type can be read as, in words."""


@dataclass(frozen=True, eq=False, repr=False)
class Comparator:
    """How values meet on one engine.

    Attributes
    ----------
    dialect
        That of the engine.
    readings
        What columns without a declared type have been read as.
    """

    dialect: Dialect
    readings: dict[str, str] = field(default_factory=dict)

    def compare(self, sign: str, left: Value, right: Value) -> Any:
        """The comparison, NULL where a side is."""
        if sign not in ("=", "<>"):
            _refuse_order(left, right)
        if sign == "<>":
            return ~self.compare("=", left, right)
        if "NULL" in (left.kind, right.kind):
            return UNKNOWN
        if left.literal is not None and right.literal is None:
            return self.compare(_MIRRORED[sign], right, left)
        left, right = self.align_kinds([left, right])
        if left.kind == right.kind == "number":
            return ibis.literal(bool(_SIGNS[sign](left.literal, right.literal)))
        grid = grid_of(self.dialect, left)
        if grid is not None and right.kind == "number":
            return grid.compare(sign, right.literal)
        left, right = self.unify_types([left, right])
        if sign == "=":
            return equality_operand(self.dialect, left) == equality_operand(self.dialect, right)
        return _SIGNS[sign](order_operand(self.dialect, left), order_operand(self.dialect, right))

    def among(self, value: Value, literals: list[Value]) -> Any:
        """Whether the value is one of the literals."""
        value, *literals = self.align_kinds([value, *literals])
        if value.kind == "number":
            return combine_balanced(operator.or_, [self.compare("=", value, each) for each in literals])
        grid = grid_of(self.dialect, value)
        if grid is not None and all(each.kind == "number" for each in literals):
            return grid.among([each.literal for each in literals])
        value, *literals = self.unify_types([value, *literals])
        return equality_operand(self.dialect, value).isin([equality_operand(self.dialect, each) for each in literals])

    def within(self, value: Value, low: Value, high: Value) -> Any:
        """Whether the value is from low to high."""
        for bound in (low, high):
            _refuse_order(value, bound)
        value, low, high = self.align_kinds([value, low, high])
        grid = grid_of(self.dialect, value)
        kinds = [value.kind, low.kind, high.kind]
        if "NULL" in kinds or value.kind == "number" or (grid is not None and kinds.count("number") == 1):
            return self.compare(">=", value, low) & self.compare("<=", value, high)
        if grid is not None and low.kind == high.kind == "number":
            return grid.within(math.ceil(low.literal / grid.unit), math.floor(high.literal / grid.unit))
        inner, *bounds = [order_operand(self.dialect, each) for each in self.unify_types([value, low, high])]
        return inner.between(*bounds)

    def same(self, left: Value, right: Value) -> Any:
        """Whether the two are equal or both NULL; never NULL itself."""
        if "NULL" in (left.kind, right.kind):
            return is_null(left if right.kind == "NULL" else right)
        if left.literal is not None or right.literal is not None:
            return ibis.coalesce(self.compare("=", left, right), False)
        left, right = self.unify_types([left, right])
        return equality_operand(self.dialect, left).identical_to(equality_operand(self.dialect, right))

    def unify_types(self, values: list[Value]) -> list[Value]:
        """The values in one type, if engines can be trusted to agree on it."""
        values = self.align_kinds(values)
        given = [each for each in values if each.kind != "NULL"]
        kinds = {each.kind for each in given}
        if not kinds:
            return values
        if kinds <= NUMERIC:
            alike = unify_numbers(self.dialect, given)
        elif len(kinds) > 1 or kinds - COMPARABLE:
            refuse_mismatch(given)
        else:
            alike = unify_moments(given) if kinds <= MOMENTS else given
        found, nothing = iter(alike), ibis.null(alike[0].expr.type())
        return [replace(each, expr=nothing) if each.kind == "NULL" else next(found) for each in values]

    def align_kinds(self, values: list[Value]) -> list[Value]:
        """String literals as the dates they are beside, dates as timestamps, undeclared columns as what is beside."""
        kinds = {each.kind for each in values} - {"NULL", "string"}
        if kinds == {"date", "timestamp"}:
            kind = "timestamp"
        elif kinds and kinds <= NUMERIC:
            kind = "float"
        elif len(kinds) == 1:
            (kind,) = kinds
        else:
            return values
        # Cells of an undeclared column may hold times beside dates. The engine decides, not the type of the column,
        # which may follow from rows.
        noted = "timestamp" if kind == "date" and self._is_beside_literals(values) else kind
        kind = noted if has_reading(self.dialect, ibis.literal(""), noted) else kind
        values = [self.read_as(kind, each, values, noted) for each in values]
        return [
            moment_literal(self.dialect, kind, each.literal, each.node) if is_moment(kind, each) else each
            for each in values
        ]

    def _is_beside_literals(self, values: list[Value]) -> bool:
        """Whether columns without a declared type, which may hold times as well, stand beside literals alone."""
        cells = [each.cell for each in values if each.cell is not None]
        return bool(cells) and all(
            each.literal is not None for each in values if each.cell is None and each.kind != "NULL"
        )

    def read_as(self, kind: str, value: Value, beside: Sequence[Value] = (), noted: str | None = None) -> Value:
        """A column without a declared type as another kind, NULL where it is not one; anything else as it is."""
        if value.cell is None or value.kind != "string" or kind not in _READINGS:
            return value
        long = next((each for each in beside if each.kind == "number" and 2**53 < abs(each.literal) < 2**64), None)
        if long is not None:
            raise InvalidValueError(f"where must compare {value.text} with '{long.text}' in quotes: it is text here")
        self.readings[value.text] = noted or kind
        if kind == "integer":
            expr = read_cell(self.dialect, value.cell, "integer")
            return replace(value, kind="integer", expr=expr, low=-(2**63), high=2**63 - 1, cell=None)
        return replace(value, kind=kind, expr=read_cell(self.dialect, value.cell, kind), cell=None)

    def describe_readings(self) -> str | None:
        """What columns without a declared type have been read as, in a sentence; None where none has been."""
        if not self.readings:
            return None
        listed = " and ".join(f"{text} as {_READINGS[kind]}" for text, kind in self.readings.items())
        types = "its type is" if len(self.readings) == 1 else "their types are"
        return f"where reads {listed}, because {types} not declared: no other spelling meets it"


def _refuse_order(left: Value, right: Value) -> None:
    """Refuses to order two columns of which nobody has said what they hold: 9 is after 10 as text."""
    if left.cell is not None and right.cell is not None and left.kind == right.kind == "string":
        raise InvalidTypeError(
            f"where must not order {left.text} and {right.text}, whose types nobody has declared: "
            f"write {left.text} + 0 and {right.text} + 0 for whole numbers"
        )


def equality_operand(dialect: Dialect, value: Value) -> Any:
    """The expression whose equality is that of the values."""
    return dialect.group_key(value.expr) if value.kind == "string" else parenthesize(value)


def order_operand(dialect: Dialect, value: Value) -> Any:
    """The expression whose order is that of the values: for strings, that of their UTF-8 bytes."""
    if value.kind == "boolean":
        raise InvalidTypeError(f"where must compare booleans with = and <> alone, unlike {value.text}")
    return dialect.group_key(value.expr)

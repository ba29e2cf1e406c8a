"""Integers and decimals against any number: exact, because what is between two steps of a grid is no value."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import ibis
import ibis.expr.datatypes as dt

from discreet.errors import InvalidValueError
from discreet.sources.events.dialects import Dialect
from discreet.sources.events.where.numeric import decimal, may_be_huge
from discreet.sources.events.where.values import Value


@dataclass(frozen=True, eq=False)
class Grid:
    """An expression whose values are whole multiples of a unit, from low to high units."""

    expr: Any
    unit: Fraction
    low: float
    high: float
    spell: Callable[[int], Any]

    def compare(self, sign: str, number: Fraction) -> Any:
        """The comparison with a number, which need not be on the grid; NULL where the value is."""
        floor, ceil = math.floor(number / self.unit), math.ceil(number / self.unit)
        match sign:
            case "=":
                return self.within(ceil, floor)
            case "<":
                return self.within(None, ceil - 1)
            case "<=":
                return self.within(None, floor)
            case ">":
                return self.within(floor + 1, None)
            case _:
                return self.within(ceil, None)

    def within(self, low: int | None, high: int | None) -> Any:
        """Whether the value has at least `low` and at most `high` units; NULL where the value is."""
        low = None if low is None or low <= self.low else low
        high = None if high is None or high >= self.high else high
        least, most = self.low if low is None else low, self.high if high is None else high
        if least > most:
            return self.expr.between(self.spell(1), self.spell(0))
        if low is None and high is None:
            return self.expr.between(self.spell(int(self.low)), self.spell(int(self.high)))
        if high is None:
            return self.expr >= self.spell(int(least))
        if low is None:
            return self.expr <= self.spell(high)
        return self.expr == self.spell(low) if low == high else self.expr.between(self.spell(low), self.spell(high))

    def among(self, numbers: list[Fraction]) -> Any:
        """Whether the value is one of the numbers."""
        steps = {number / self.unit for number in numbers}
        held = sorted(int(each) for each in steps if each.denominator == 1 and self.low <= each <= self.high)
        return self.expr.isin([self.spell(each) for each in held]) if held else self.within(1, 0)


def grid_of(dialect: Dialect, value: Value) -> Grid | None:
    """The numbers that an integer or a decimal can be, where they are known."""
    if value.kind == "integer":
        spell = partial(ibis.literal, type=value.expr.type() if dialect.has_typed_columns else dt.int64)
        return Grid(value.expr, Fraction(1, 10**value.scale), value.low, value.high, spell)
    # Where columns have no types, one that declares the digits of its decimals keeps any number.
    if value.kind != "decimal" or not dialect.has_typed_columns or value.expr.type().scale is None:
        return None
    dtype = value.expr.type()
    if may_be_huge(dtype):
        return Grid(value.expr, Fraction(1), -math.inf, math.inf, partial(_small, value))
    unit, most = Fraction(1, 10**dtype.scale), 10**dtype.precision - 1
    return Grid(value.expr, unit, -most, most, lambda steps: decimal(steps * unit, dtype))


def _small(beside: Value, number: int) -> Any:
    """An integer beside a column of 38 digits, which a HUGEINT can be compared with as well."""
    if abs(number) >= 2**63:
        raise InvalidValueError(
            f"where must compare {beside.text} with numbers below 2^63: it is of a type with 38 digits"
        )
    return ibis.literal(number, dt.int64)

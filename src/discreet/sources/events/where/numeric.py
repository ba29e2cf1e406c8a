"""Numbers in one type: integers in units of a power of ten, decimals that hold all values, floats of one size."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import ibis
import ibis.expr.datatypes as dt
import numpy as np

from discreet.errors import InvalidTypeError, InvalidValueError
from discreet.sources.events.dialects import Dialect
from discreet.sources.events.where.arithmetic import decimal_places, places, scaled
from discreet.sources.events.where.values import Value, mismatch


def common_numbers(dialect: Dialect, values: list[Value]) -> list[Value]:
    """The numbers in one type that holds all of them exactly, or as floats beside a column of floats."""
    kinds = {each.kind for each in values}
    if "float" in kinds:
        single = all(each.kind == "number" or each.expr.type().is_float32() for each in values)
        return [_as_float(each, single) for each in values]
    if "decimal" in kinds:
        dtype = _common_decimal(values, unsized=not dialect.has_typed_columns)
        return [_as_decimal(each, dtype) for each in values]
    unsigned = [each.high >= 2**63 for each in values]
    if any(unsigned) and not all(unsigned):
        return [_as_decimal(each, _common_decimal(values, unsized=False)) for each in values]
    scale = max(map(places, values))
    alike = [scaled(dialect, each, scale) for each in values]
    return alike if any(unsigned) else [replace(each, expr=each.expr.cast("int64")) for each in alike]


def _common_decimal(values: list[Value], unsized: bool) -> dt.DataType:
    """A decimal type that holds all the values exactly."""
    types = [each.expr.type() for each in values if each.kind == "decimal"]
    if any(each.kind == "integer" and each.scale for each in values) or any(map(may_be_huge, types)):
        mismatch(values)
    if unsized or any(dtype.scale is None for dtype in types):
        return dt.Decimal()
    scale = max([dtype.scale for dtype in types] + [places(each) for each in values])
    whole = [dtype.precision - dtype.scale for dtype in types]
    whole += [len(str(max(-each.low, each.high))) for each in values if each.kind == "integer"]
    whole += [len(str(int(abs(each.literal)))) for each in values if each.kind == "number"]
    if max(whole) + scale > 38:
        named = ", ".join(each.text for each in values)
        raise InvalidValueError(f"where must not need more than 38 digits to compare or mix {named}")
    return dt.Decimal(max(whole) + scale, scale)


def _as_decimal(value: Value, dtype: dt.DataType) -> Value:
    expr = decimal(value.literal, dtype) if value.kind == "number" else value.expr.cast(dtype)
    return replace(value, kind="decimal", expr=expr, literal=None)


def _as_float(value: Value, single: bool) -> Value:
    """A float, of four bytes if `single`, as where a number literal is beside such a column."""
    if value.kind == "decimal" or (value.kind == "integer" and value.scale):
        raise InvalidTypeError(
            f"where must not compare or mix {value.text} ({value.kind}) with a float: engines round it differently"
        )
    dtype = dt.float32 if single else dt.float64
    if value.kind != "number":
        return replace(value, kind="float", expr=value.expr.cast(dtype))
    if abs(value.literal) > float(np.finfo(np.float32 if single else np.float64).max):
        raise InvalidValueError(f"where must compare floats with numbers that they can be, not with {value.text}")
    nearest = float(np.float32(float(value.literal))) if single else float(value.literal)
    # Through text, because DuckDB takes 0.1 for a decimal and converts it to a double that can be another one.
    return replace(value, kind="float", expr=ibis.literal(repr(nearest)).cast(dtype), literal=None)


def decimal(number: Fraction, dtype: dt.DataType) -> Any:
    """A decimal literal; through text, because a bare 1E-7 is a double to an engine."""
    places = decimal_places(number)
    digits = tuple(map(int, str(abs(int(number * 10**places)))))
    return ibis.literal(f"{Decimal((int(number < 0), digits, -places)):f}").cast(dtype)


def may_be_huge(dtype: dt.DataType) -> bool:
    """Whether ibis may have called a HUGEINT of DuckDB a decimal, which it does not fit into."""
    return bool(dtype.is_decimal() and (dtype.precision, dtype.scale) == (38, 0))

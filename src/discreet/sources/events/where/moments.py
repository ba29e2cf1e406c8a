"""Dates and timestamps: the literals that stand for one, and columns that store them in other resolutions."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, date, datetime, time
from typing import Any

import ibis
import ibis.expr.datatypes as dt
from sqlglot import exp

from discreet.errors import InvalidTypeError, InvalidValueError
from discreet.sources.events.dialect import Dialect
from discreet.sources.events.where.values import MOMENTS, Node, Value, sql
from discreet.sources.events.where.whitelist import refuse

_DAY = r"\d{4}-\d\d-\d\d"
_CLOCK = r"[ T]\d\d:\d\d(:\d\d(\.\d{1,6})?)?"
_FORMS = {
    "date": _DAY,
    "timestamp": f"{_DAY}({_CLOCK})?",
    "timestamp with time zone": rf"{_DAY}{_CLOCK}(Z|[+-]\d\d(:?\d\d)?)",
}
_SPELLED = {
    "date": "dates like DATE '2024-01-31'",
    "timestamp": "timestamps like TIMESTAMP '2024-01-31 12:00:00'",
    "timestamp with time zone": "timestamps with a zone like TIMESTAMPTZ '2024-01-31 12:00:00+00:00'",
}
_LITERAL_CASTS = {
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "TIMESTAMPNTZ": "timestamp",
    "TIMESTAMPTZ": "timestamp with time zone",
}


def typed_literal(dialect: Dialect, node: Node) -> Value:
    """A literal such as DATE '2024-01-31', which the parser spells as the cast of a string."""
    name, text = node.to.this.name, node.this
    if name not in _LITERAL_CASTS or node.to.expressions or not (isinstance(text, exp.Literal) and text.is_string):
        refuse(node)
    return moment_literal(dialect, _LITERAL_CASTS[name], text.this, f"{name.removesuffix('NTZ')} {sql(text)}")


def moment_literal(dialect: Dialect, kind: str, given: Any, node: Node) -> Value:
    """The date or timestamp that a literal stands for, of the kind that it is written as or stands beside."""
    moment = _read_moment(kind, given)
    if moment is None:
        raise InvalidValueError(f"where must hold {_SPELLED[kind]}, not {sql(node)}")
    return Value(kind, node, ibis.literal(_spell_iso(moment) if dialect.dates_are_text else moment), moment)


def is_moment(kind: str, value: Value) -> bool:
    """Whether a literal has to become a date or timestamp of this kind."""
    return kind in MOMENTS and value.literal is not None and value.kind != kind


def unify_moments(values: list[Value]) -> list[Value]:
    """Timestamps in the resolution of the column beside them, because a conversion of the column could fail."""
    scales = {_resolution(each) for each in values if each.literal is None}
    if len(scales) > 1:
        named = " and ".join(f"{each.text} ({each.expr.type()})" for each in values)
        raise InvalidTypeError(f"where must not compare or mix {named}: converting one can fail on a row")
    scale = scales.pop() if scales else 6
    if scale == 6:
        return values
    return [each if each.literal is None else _rescale(each, scale) for each in values]


def _resolution(value: Value) -> int:
    """How many decimal places the seconds of a timestamp have; six where that means nothing."""
    dtype = value.expr.type()
    return dtype.scale if dtype.is_timestamp() and dtype.scale is not None else 6


def _rescale(value: Value, scale: int) -> Value:
    moment = value.literal
    if moment.microsecond % 10 ** max(0, 6 - scale) or (scale == 9 and not 1678 <= moment.year <= 2261):
        raise InvalidValueError(f"where must not compare {value.text} with a column that cannot hold it")
    return replace(value, expr=value.expr.cast(dt.Timestamp(timezone=value.expr.type().timezone, scale=scale)))


def _read_moment(kind: str, given: Any) -> date | None:
    """The date or timestamp that a literal stands for, without a zone or in UTC."""
    if not isinstance(given, str):
        return datetime.combine(given, time()) if kind == "timestamp" else None
    if not re.fullmatch(_FORMS[kind], given, re.ASCII):
        return None
    try:
        if kind == "date":
            return date.fromisoformat(given)
        moment = datetime.fromisoformat(given)
        return moment if moment.tzinfo is None else moment.astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _spell_iso(moment: date) -> str:
    """A date or timestamp as its text is compared here: no T, and no zeros at the end of a fraction."""
    text = moment.isoformat().replace("T", " ")
    return text.rstrip("0").rstrip(".") if "." in text else text

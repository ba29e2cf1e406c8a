"""Labels as JSON holds them: what JSON has no type for becomes an object with its type and text."""

from __future__ import annotations

import math
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any
from uuid import UUID


def encoded(label: Any) -> Any:
    """A label as JSON holds it; what JSON has no type for becomes an object with its type and text."""
    if label is None or isinstance(label, str | bool):
        return label
    if isinstance(label, int) or (isinstance(label, float) and math.isfinite(label)):
        return label
    if isinstance(label, tuple):
        return {"type": "tuple", "value": [encoded(part) for part in label]}
    if isinstance(label, timedelta):
        return {"type": "timedelta", "value": [label.days, label.seconds, label.microseconds]}
    kind = next(name for name, (known, _) in _TYPES.items() if isinstance(label, known))
    # The second 2:30 of a night on which clocks are put back is another label than the first.
    later = {"fold": 1} if getattr(label, "fold", 0) else {}
    return {"type": kind, "value": label.hex() if isinstance(label, bytes) else _text(label), **later}


def _text(label: Any) -> str:
    return str(label.isoformat()) if isinstance(label, date | time) else str(label)


def decoded(data: Any) -> Any:
    """The label that `encoded` wrote."""
    if not isinstance(data, dict):
        return data
    if data["type"] == "tuple":
        return tuple(decoded(part) for part in data["value"])
    if data["type"] == "timedelta":
        return timedelta(*data["value"])
    label = _TYPES[data["type"]][1](data["value"])
    return label.replace(fold=1) if data.get("fold") == 1 else label


_TYPES: dict[str, tuple[type, Any]] = {
    "datetime": (datetime, datetime.fromisoformat),
    "date": (date, date.fromisoformat),
    "time": (time, time.fromisoformat),
    "decimal": (Decimal, Decimal),
    "fraction": (Fraction, Fraction),
    "float": (float, float),
    "bytes": (bytes, bytes.fromhex),
    "uuid": (UUID, UUID),
}

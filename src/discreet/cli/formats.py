"""A release as text: a table for people, JSON that reads back, CSV, or its items alone for a pipe."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from discreet.release import Release, decimal

_UNSAFE = re.compile(r"[\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""What could end a line or change a terminal, half of a surrogate pair, and the sign that escapes begin with."""


def as_csv(release: Release) -> str:
    """A header and a row for each item, in the order of the table, with the rank and the counts where released."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    ranks = {_key(item): rank for rank, item in enumerate(release.order or [], 1)}
    counts = {_key(count.item): count for count in release.counts or []}
    writer.writerow(["item", *(["order"] if ranks else []), *(["count", "low", "high"] if counts else [])])
    for item in listed(release):
        count = counts.get(_key(item))
        figures = [] if count is None else [_figure(each) for each in (count.value, count.low, count.high)]
        writer.writerow([item, *([ranks[_key(item)]] if ranks else []), *figures])
    # Half of a surrogate pair can be a label but not a character of a file.
    return file.getvalue().encode("utf-8", "backslashreplace").decode().removesuffix("\n")


def as_items(release: Release) -> str:
    r"""An item a line and nothing else; a backslash is written as \\ and a control character as \n or \x1b."""
    return "\n".join(_UNSAFE.sub(_escaped, str(item)) for item in listed(release))


def listed(release: Release) -> list[Any]:
    """The items as the table has them: by count, else in the released order, else by label."""
    if release.counts is not None:
        return [count.item for count in release.counts]
    return release.items if release.order is None else release.order


def _as_json(release: Release) -> str:
    return release.to_json(indent=2)


FORMATS: dict[str, Callable[[Release], str]] = {"table": str, "json": _as_json, "csv": as_csv, "items": as_items}


def _key(item: Any) -> tuple[type, Any]:
    """A label as a key: 1 and True are two."""
    return type(item), item


def _figure(number: int | Fraction) -> str:
    """A count without commas, as a decimal where that is exact and short."""
    text = str(number) if isinstance(number, int) else decimal(number)
    return text if text[:1] in "-0123456789" else str(number)


def _escaped(found: re.Match[str]) -> str:
    # Lone surrogates have no encoding, but this one, which is of ASCII alone.
    return found[0].encode("unicode_escape").decode()

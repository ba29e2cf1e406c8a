"""A release as text: a table for people, JSON that reads back, CSV, or its items alone for a pipe."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable
from typing import Any

from discreet.release import Release
from discreet.text import count_for_programs, escape_line


def as_csv(release: Release) -> str:
    """A header and a row for each item, in the order of the table, with the rank and the counts where released."""
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    ranks = {_key(item): rank for rank, item in enumerate(release.order or [], 1)}
    counts = {_key(count.item): count for count in release.counts or []}
    writer.writerow(["item", *(["order"] if ranks else []), *(["count", "low", "high"] if counts else [])])
    for item in listed(release):
        count = counts.get(_key(item))
        figures = [] if count is None else [count_for_programs(each) for each in (count.value, count.low, count.high)]
        writer.writerow([item, *([ranks[_key(item)]] if ranks else []), *figures])
    # Half of a surrogate pair can be a label but not a character of a file.
    return file.getvalue().encode("utf-8", "backslashreplace").decode().removesuffix("\n")


def as_items(release: Release) -> str:
    r"""An item a line and nothing else; a backslash is written as \\ and a control character as \n or \x1b."""
    return "\n".join(escape_line(item) for item in listed(release))


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

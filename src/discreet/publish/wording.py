"""Periods and what changed between two of them, in words for readers of a site."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from discreet.labels import sort_key
from discreet.publish.editions import Edition
from discreet.release.grouped import AnyRelease
from discreet.text import printable, round_up

_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July"),
    *("August", "September", "October", "November", "December"),
)


def name_period(period: str | None) -> str:
    """A period as people say it.

    Examples
    --------
    >>> name_period("2026-10"), name_period("2026-W05"), name_period("2026-Q1"), name_period("2026-01-31")
    ('October 2026', 'week 5 of 2026', 'quarter 1 of 2026', '31 January 2026')
    """
    year, _, rest = (period or "").partition("-")
    month, _, day = rest.partition("-")
    if re.fullmatch("W[0-9]+", rest):
        return f"week {int(rest[1:])} of {year}"
    if re.fullmatch("Q[0-9]", rest):
        return f"quarter {rest[1:]} of {year}"
    if not month:
        return year
    return f"{int(day)} {_MONTHS[int(month) - 1]} {year}" if day else f"{_MONTHS[int(month) - 1]} {year}"


def join_names(items: Iterable[Any]) -> str:
    """Labels with commas between them."""
    return ", ".join(map(printable, items))


def items_missing_from(items: Iterable[Any], others: Iterable[Any]) -> list[Any]:
    """The items that are not among others; labels are told apart as in a release."""
    known = {sort_key(item) for item in others}
    return [item for item in items if sort_key(item) not in known]


def describe_difference(edition: Edition, current: Edition) -> list[str]:
    """In what the terms of two editions differ, as far as their releases say."""
    one, other = edition.release, current.release
    rows = {
        "k": (str(_count_asked(one)), str(_count_asked(other))),
        "epsilon": (round_up(one.guarantee.epsilon), round_up(other.guarantee.epsilon)),
        "mechanism": (repr(one.guarantee.mechanism), repr(other.guarantee.mechanism)),
        "counts": tuple("with" if each.guarantee.counts_epsilon else "without" for each in (one, other)),
    }
    return [f"{name} {before}, not {now}" for name, (before, now) in rows.items() if before != now]


def _count_asked(release: AnyRelease) -> int:
    """How many items were asked for, in each group where there are groups."""
    asked: int | None = getattr(release, "asked", None)
    return release.k if asked is None else asked

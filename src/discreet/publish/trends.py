"""Describe the counts of each item over the periods of a chart, for the lines and the tables of `trend.html`."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any

from discreet.labels import sort_key
from discreet.language import Language
from discreet.publish.charts_file import Chart
from discreet.publish.editions import Edition, is_withheld
from discreet.release.grouped import GroupedRelease
from discreet.release.release import Release
from discreet.text import printable

_TREND = 240, 90, 6
"""Width and height of the view box of a trend line in `trend.html`, and the margin inside it."""


def describe_trend(chart: Chart, editions: Sequence[Edition], group: Any, language: Language) -> dict[str, Any] | None:
    """Return the values of `trend.html`: the counts of each item of a list over the periods of some editions.

    None unless the last edition and another one show counts of the group. A line breaks where an item was not on the
    list, and where the settings changed, because the numbers do not compare.
    """
    lists = [find_list(chart, each, group) for each in editions]
    found = [{sort_key(c.item): c for c in (each and each.counts) or []} for each in lists]
    now = lists[-1]
    if now is None or not now.counts or sum(map(bool, found)) < 2:
        return None
    changed = [False, *(one.fingerprint != other.fingerprint for one, other in pairwise(editions))]
    keys = [sort_key(count.item) for count in now.counts]
    # All items share one scale, which includes zero.
    counts = [each[key] for each in found for key in keys if key in each]
    least = min([Fraction(0), *(Fraction(count.low) for count in counts)])
    most = max([Fraction(1), *(Fraction(count.high) for count in counts)])
    width, height, margin = _TREND

    def move_down(number: Any) -> float:
        return float(round(height - margin - (height - 2 * margin) * (Fraction(number) - least) / (most - least), 1))

    days = [each.first_day.toordinal() for each in editions]
    across = [round(margin + (width - 2 * margin) * (day - days[0]) / (days[-1] - days[0]), 1) for day in days]
    names = [language.period(each.period) for each in editions]
    items = []
    for key, count in zip(keys, now.counts, strict=True):
        path, points, is_joined = "", [], False
        cells: list[dict[str, Any] | None] = []
        for at, of_period in enumerate(found):
            one = of_period.get(key)
            if one is None:
                cells.append(None)
            else:
                y = move_down(one.value)
                path += f"{'L' if is_joined and not changed[at] else 'M'}{across[at]} {y}"
                points.append({"x": across[at], "y": y, "low": move_down(one.low), "high": move_down(one.high)})
                interval = language.text("interval", low=one.low, high=one.high)
                cells.append({"value": language.spell(one.value), "interval": interval})
            is_joined = one is not None
        told = ", ".join(
            language.text("trend.point", period=name, value=cell["value"])
            for name, cell in zip(names, cells, strict=True)
            if cell
        )
        if len(points) < 2:
            path = ""
        label = printable(count.item)
        said = language.text("trend.label", item=label, points=told)
        items.append({"label": label, "path": path, "points": points, "cells": cells, "said": said})
    return {
        "periods": names,
        "items": items,
        "zero": move_down(0),
        "is_broken": any(changed),
        "width": width,
        "height": height,
    }


def find_list(chart: Chart, edition: Edition, group: Any) -> Release | None:
    """Return the list of a group that an edition shows; None if it shows no such list."""
    release: Any = edition.release
    if edition.withdrawal is not None or isinstance(release, GroupedRelease) != (group is not None):
        return None
    if isinstance(release, GroupedRelease):
        release = release.releases.get(group)
    return None if release is None or is_withheld(chart, release) else release

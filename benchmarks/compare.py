"""The ratios of a quick run against those of the last committed one: what got worse by more than a quarter."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from suite import PARTS, Result, Row, described, digits, machine

WORSE = 1.25
RESULTS = "benchmarks/results"


def main(parts: Iterable[str], measure: Callable[[Iterable[str]], list[Result]]) -> int:
    """Measures these parts, prints what got worse, and returns the exit status; nothing is written.

    A part with a ratio that got worse is measured once more, and the better of both counts: one busy moment is no loss.
    """
    before = committed(parts)
    if not before:
        print(f"There is no committed result in {RESULTS}: run make bench and commit what it writes there.")
        return 1
    if others := {described(result.machine) for result in before.values() if differs(result.machine)}:
        print("The committed results are of another machine or other versions, which ratios may depend on:", *others)
    now = {result.part: by_name(result) for result in measure(before)}
    again = [part for part in before if any(is_worse(*pair) for pair in pairs(by_name(before[part]), now[part]))]
    for result in measure(again):
        for name, row in by_name(result).items():
            now[result.part][name] = better(row, now[result.part].get(name, row))
    every = [pair for part in before for pair in pairs(by_name(before[part]), now[part])]
    worse = [(old, new) for old, new in every if is_worse(old, new)]
    for old, new in worse:
        print(f"WORSE: {new.name}: {digits(new.measured)} {new.unit}, was {digits(old.measured)}")
    unmatched = sum(len(rows) for rows in now.values()) - len(every)
    print(f"{len(worse)} of {len(every)} ratios got worse by more than {WORSE - 1:.0%}; {unmatched} are new.")
    return 1 if worse else 0


def committed(parts: Iterable[str]) -> dict[str, Result]:
    """The results of the last commit, whatever a later run wrote over them."""
    results = {}
    for part in (part for part in PARTS if part in parts):
        command = ["git", "show", f"HEAD:{RESULTS}/{part}.json"]
        shown = subprocess.run(command, cwd=Path(__file__).parents[1], capture_output=True, text=True)
        if shown.returncode == 0:
            results[part] = Result.read(shown.stdout)
    return results


def differs(there: Mapping[str, Any]) -> bool:
    """Whether a result is of another machine than this one, or of other versions."""
    return {**there, "load": None} != {**machine(), "load": None}


def by_name(result: Result) -> dict[tuple[str, str], Row]:
    """Ratios by what they are about; megabytes are no ratios."""
    return {(row.name, row.unit): row for row in result.rows if row.is_ratio}


def pairs(before: dict[tuple[str, str], Row], now: dict[tuple[str, str], Row]) -> list[tuple[Row, Row]]:
    """The same figure then and now."""
    return [(before[name], row) for name, row in now.items() if name in before]


def is_worse(old: Row, new: Row) -> bool:
    """Whether a figure got worse by more than chance does."""
    return new.measured * WORSE < old.measured if new.at_least else new.measured > WORSE * old.measured


def better(one: Row, other: Row) -> Row:
    """The better one of two figures."""
    return (max if one.at_least else min)(one, other, key=lambda row: row.measured)

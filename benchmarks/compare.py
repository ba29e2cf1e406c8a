"""The ratios of a quick run against the last committed ones or a revision: what got worse by more than a quarter."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from suite import MODULES, PARTS, Result, Row, described, digits, machine

WORSE = 1.25
TRIFLE = 0.01
"""A figure below this share of its target does not matter, however much it rose."""

RESULTS = "benchmarks/results"
ROOT = Path(__file__).parents[1]

Figures = dict[tuple[str, str], Row]
Measure = Callable[[Iterable[str]], list[Result]]


def main(parts: Sequence[str], measure: Measure, revision: str | None) -> int:
    """Measures these parts, prints what got worse, and returns the exit status; nothing is written.

    What is compared with are the committed results, or a revision that is measured here, on the same machine.
    A part with a ratio that got worse is measured once more, and the better of both counts: one busy moment is no loss.
    Growth is left out: it is a ratio of our own times, and rises where few items take less than before.
    """
    parts = [part for part in parts if part != "growth"]
    before = committed(parts) if revision is None else measured_at(revision, parts)
    if not before:
        print(_say_why_not(parts, revision))
        return 1
    if others := {described(result.machine) for result in before.values() if differs(result.machine)}:
        print("The committed results are of another machine or other versions, which ratios may depend on:", *others)
    old = {part: by_name(result) for part, result in before.items()}
    now = {result.part: by_name(result) for result in measure(before)}
    again = [part for part in before if any(is_worse(*pair) for pair in pairs(old[part], now[part]))]
    keep_better(now, measure(again))
    if revision is not None and again:
        keep_better(old, measured_at(revision, again).values())
    every = [pair for part in before for pair in pairs(old[part], now[part])]
    worse = [(old, new) for old, new in every if is_worse(old, new)]
    for then, new in worse:
        print(f"WORSE: {new.name}: {digits(new.measured)} {new.unit}, was {digits(then.measured)}")
    gained = sum(is_worse(new, then) for then, new in every)
    unmatched = sum(len(rows) for rows in now.values()) - len(every)
    print(
        f"{len(worse)} of {len(every)} ratios got worse by more than {WORSE - 1:.0%}, "
        f"{gained} got better by as much; {unmatched} are new."
    )
    return 1 if worse else 0


def keep_better(rows: dict[str, Figures], again: Iterable[Result]) -> None:
    """Replace a figure by a better one that was measured once more."""
    for result in again:
        for name, row in by_name(result).items():
            rows[result.part][name] = better(row, rows[result.part].get(name, row))


def _say_why_not(parts: Sequence[str], revision: str | None) -> str:
    """Return the reason why there is nothing to compare with."""
    if not parts:
        return "Growth is not compared: it rises where few items take less than before."
    if revision is not None:
        return f"{revision} measures none of {', '.join(parts)}."
    return f"There is no result of {', '.join(parts)} in {RESULTS}: run make bench and commit what it writes there."


def measured_at(revision: str, parts: Iterable[str]) -> dict[str, Result]:
    """Run a revision's own benchmark here and now, of the parts that it has, with this environment's libraries.

    Its bytecode is kept, as that of the tree at hand is, or its start would be the compiler's.
    """
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder, "tree")
        archive = subprocess.run(["git", "archive", revision], cwd=ROOT, capture_output=True)
        if archive.returncode:
            sys.exit(f"--against must be a revision of this repository, not {revision!r}")
        tree.mkdir()
        subprocess.run(["tar", "-x", "-C", str(tree)], input=archive.stdout, check=True)
        known = [part for part in PARTS if part in parts and (tree / "benchmarks" / f"{MODULES[part]}.py").exists()]
        if not known:
            return {}
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        subprocess.run(
            [sys.executable, "benchmarks/run.py", "--out", str(Path(folder, "results")), *known],
            cwd=tree,
            env={**environment, "PYTHONPATH": str(tree / "src")},
            stdout=subprocess.DEVNULL,
        )
        paths = {part: Path(folder, "results", f"{part}.json") for part in known}
        # Its status says whether targets are met; a part that it could not measure has no file.
        return {part: Result.read(path.read_text(encoding="utf-8")) for part, path in paths.items() if path.exists()}


def committed(parts: Iterable[str]) -> dict[str, Result]:
    """Return the results of the last commit, whatever a later run wrote over them."""
    results = {}
    for part in (part for part in PARTS if part in parts):
        command = ["git", "show", f"HEAD:{RESULTS}/{part}.json"]
        shown = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if shown.returncode == 0:
            results[part] = Result.read(shown.stdout)
    return results


def differs(there: Mapping[str, Any]) -> bool:
    """Return True if a result is of another machine than this one, or of other versions."""
    return {**there, "load": None} != {**machine(), "load": None}


def by_name(result: Result) -> Figures:
    """Ratios by what they are about; megabytes are no ratios."""
    return {(row.name, row.unit): row for row in result.rows if row.is_ratio}


def pairs(before: Figures, now: Figures) -> list[tuple[Row, Row]]:
    """Return the same figure then and now."""
    return [(before[name], row) for name, row in now.items() if name in before]


def is_worse(old: Row, new: Row) -> bool:
    """Return True if a figure got worse by more than chance explains, and is above a hundredth of its limit."""
    if new.at_least:
        return new.measured * WORSE < old.measured
    matters = new.target is None or new.measured > TRIFLE * new.target
    return matters and new.measured > WORSE * old.measured


def better(one: Row, other: Row) -> Row:
    """Return the better one of two figures."""
    return (max if one.at_least else min)(one, other, key=lambda row: row.measured)

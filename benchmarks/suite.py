"""The parts of the benchmark share this: a figure beside its target, how long to measure, the machine, and files.

A part is a module with `rows(run)`, which yields a Row for each figure, and a sentence where one cannot be had here.
"""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

from timing import Task, medians, minima

PARTS = {
    "start": "Start",
    "small": "Few items: 10^4, and Netflix",
    "few": "Few items, every shape",
    "peers": "Few items, every shape, and what others take",
    "large": "Many items",
    "shapes": "Every shape",
    "growth": "Growth",
    "memory": "Memory",
    "tables": "Events",
    "engines": "Events, on every engine",
    "groups": "Lists by group",
    "discovery": "Discovery",
    "shortfall": "Shortfall",
    "ledger": "Ledger",
    "load": "Load of a ledger",
    "utility": "Utility",
}
"""In the order in which they run: what is short first."""

MODULES = {part: part for part in PARTS} | {"peers": "peer_table", "engines": "every_engine"}
"""The module with the rows of a part. Several parts share `peers`, and `engines` is a module of the tests."""


@dataclass(frozen=True)
class Row:
    """One figure, the target that it is held against if there is one, and the seconds that a ratio of 1 stands for."""

    name: str
    measured: float
    unit: str
    target: float | None = None
    at_least: bool = False
    one: float | None = None

    @property
    def met(self) -> bool | None:
        """Return True if the target is met, to three digits as it is shown; None if there is no target."""
        if self.target is None:
            return None
        measured, target = (float(f"{value:.3g}") for value in (self.measured, self.target))
        return measured >= target if self.at_least else measured <= target

    @property
    def is_ratio(self) -> bool:
        """Return True if the figure can be compared between machines."""
        return self.unit not in {"MB", "GB", "s", "ms", "ms a group", "releases a second", "load"}

    def cells(self) -> tuple[str, str, str, str, str]:
        """Return the text that is shown of it."""
        limit = "" if self.target is None else f"{'at least' if self.at_least else 'at most'} {digits(self.target)} "
        verdict = {None: "", True: "met", False: "MISSED"}[self.met]
        return (
            self.name,
            limit + self.unit,
            digits(self.measured),
            verdict,
            "" if self.one is None else short(self.one),
        )


HEADINGS = ("what", "target", "measured", "", "1 is")

Rows = Iterator[Row | str]


@dataclass(frozen=True)
class Run:
    """The sizes to measure: full or quick ones, or smaller ones to try the benchmark itself."""

    full: bool = False
    scale: int = 1
    engines: tuple[str, ...] = ()
    """The engines that are measured, by their names; all if there are none."""

    def size(self, quick: int, full: int | None = None) -> int:
        """Return a number of items or rows."""
        return (full if self.full and full else quick) // self.scale

    def medians(self, tasks: Mapping[str, Task], repeats: int) -> dict[str, float]:
        """Medians over this many rounds, or twice as many in a full run, within reason for slow tasks."""
        return medians(tasks, repeats * (2 if self.full else 1), patience=20.0 if self.full else 1.5)

    def minima(self, tasks: Mapping[str, Task], repeats: int) -> dict[str, float]:
        """Return the least over this many rounds, or three times as many in a full run."""
        return minima(tasks, repeats * (3 if self.full else 1))


@dataclass(frozen=True)
class Result:
    """The figures that one part found, and the machine."""

    part: str
    machine: Mapping[str, Any]
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def write(self, folder: Path) -> None:
        """Write it as JSON."""
        rows = [{**asdict(row), "met": row.met} for row in self.rows]
        found = {"part": self.part, "machine": self.machine, "rows": rows, "notes": self.notes}
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{self.part}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")

    def join(self, folder: Path) -> Result:
        """Return this result, with the rows and notes of the stored one that were not measured again."""
        path = folder / f"{self.part}.json"
        if not path.exists():
            return self
        stored, names = Result.read(path.read_text(encoding="utf-8")), {row.name for row in self.rows}
        kept = [row for row in stored.rows if row.name not in names]
        notes = [note for note in stored.notes if note not in self.notes]
        return replace(self, rows=kept + self.rows, notes=notes + self.notes)

    @classmethod
    def read(cls, text: str) -> Result:
        """Return the result that was written."""
        found = json.loads(text)
        rows = [Row(**{name: value for name, value in row.items() if name != "met"}) for row in found["rows"]]
        return cls(found["part"], found["machine"], rows, found["notes"])

    def text(self) -> str:
        """Return a table for a terminal."""
        table = [HEADINGS, *(row.cells() for row in self.rows)]
        widths = [max(len(line[column]) for line in table) for column in range(len(HEADINGS))]
        lines = ["  ".join(f"{cell:{width}}" for cell, width in zip(line, widths, strict=True)) for line in table]
        return "\n".join([PARTS[self.part], *(line.rstrip() for line in lines if self.rows), *self.notes, ""])

    def markdown(self) -> str:
        """Return a table for a page."""
        table = [HEADINGS, ("---",) * len(HEADINGS), *(row.cells() for row in self.rows)]
        lines = ["| " + " | ".join(line) + " |" for line in table] if self.rows else []
        return "\n".join(
            [f"## {PARTS[self.part]}", "", *lines, *([""] if lines and self.notes else []), *self.notes, ""]
        )


def write_table(folder: Path) -> None:
    """Write table.md from all results in the folder."""
    files = [folder / f"{part}.json" for part in PARTS]
    results = [Result.read(file.read_text(encoding="utf-8")) for file in files if file.exists()]
    if results:
        head = ["# What was measured", "", described(results[0].machine), ""]
        page = "\n".join([*head, *(result.markdown() for result in results)])
        (folder / "table.md").write_text(page, encoding="utf-8")


def machine() -> dict[str, Any]:
    """Return the machine, without its name or any path: what a ratio may depend on."""
    numpy_found = np.show_config(mode="dicts").get("SIMD Extensions", {})
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 1e9),
        "system": f"{platform.system()} {platform.machine()}",
        "simd": (numpy_found.get("found") or numpy_found.get("baseline") or [""])[-1],
        "load": round(os.getloadavg()[0], 2),
        "python": platform.python_version(),
        **{name: _version(name) for name in ("numpy", "scipy", "python-flint", "opendp", "duckdb")},
    }


def described(here: Mapping[str, Any]) -> str:
    """Return the machine in a sentence."""
    return (
        f"{here['cpu']}, {here['cores']} cores, {here['memory_gb']} GB, {here['system']}; Python {here['python']}, "
        f"NumPy {here['numpy']} (SIMD up to {here['simd']}), OpenDP {here['opendp']}. "
        f"The load was {here['load']} when it began. Each figure is a ratio of medians taken in turns in one process."
    )


def _cpu() -> str:
    info = Path("/proc/cpuinfo")
    lines = info.read_text(encoding="utf-8").splitlines() if info.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or "unknown processor"


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def short(seconds: float) -> str:
    """Seconds for people."""
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def digits(value: float) -> str:
    """Three digits, and no exponent for what is large."""
    return f"{float(f'{value:.3g}'):,.0f}" if value >= 1000 else f"{value:.3g}"


def power(n: int) -> str:
    """Return a number as a power of ten, where it is a large one."""
    digits = len(str(n)) - 1
    return f"10^{digits}" if n == 10**digits and n >= 10**4 else str(n)

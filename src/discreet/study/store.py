"""Keeps what the pieces of a study found, line by line, so that a study that was stopped goes on from what it had."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from discreet import __version__
from discreet.study.results import NeededEpsilon, Point, Results, Time

_VERSION = f"{__version__}, 1"
"""Of the library, and of how a study computes: to be raised when results would be others."""


class Store:
    """A file of results, one line a piece; what another version of the library found is not used."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = self._read()

    def get(self, key: str) -> Results | None:
        """What the piece found, if it was done before."""
        return self._lines.get(key)

    def put(self, key: str, results: Results) -> None:
        """Keeps what a piece found, on the disk when this returns."""
        line = json.dumps({"version": _VERSION, "key": key, **asdict(results)})
        # A line that was cut short ends where this one begins.
        with self._path.open("a", encoding="utf-8") as file:
            file.write("\n" + line if self._torn() else line)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        self._lines[key] = results

    def _torn(self) -> bool:
        text = self._path.read_bytes() if self._path.exists() else b""
        return bool(text) and not text.endswith(b"\n")

    def _read(self) -> dict[str, Results]:
        found = {}
        if self._path.exists():
            for line in self._path.read_text(encoding="utf-8", errors="replace").splitlines():
                # A line that does not read was cut short: its piece is done again.
                with suppress(ValueError, KeyError, TypeError):
                    data = json.loads(line)
                    if data["version"] == _VERSION:
                        found[str(data["key"])] = _results(data)
        return found


def _results(data: dict[str, Any]) -> Results:
    return Results(
        [Point(**row) for row in data["points"]],
        [NeededEpsilon(**row) for row in data["budgets"]],
        [Time(**row) for row in data["times"]],
    )

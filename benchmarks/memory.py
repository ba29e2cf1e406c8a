"""Measure the memory of a release: beside the scores, and in all with scores that stay in a file."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

import numpy as np

import discreet
from large import KINDS, places
from scores import OF_COUNTS
from suite import Row, Rows, Run, power
from timing import peak

MAPPED, BLOCK = 5 * 10**8, 10**7
"""Four gigabytes of scores, made a block at a time."""


def rows(run: Run) -> Rows:
    """Scores in memory, and in a full run scores that are mapped from a file."""
    d = run.size(10**7)
    for kind, (make, _) in KINDS.items():
        scores = make(d)
        for k in places(d):
            for epsilon in ("1", "0.01"):
                held = peak(partial(discreet.top_k, scores, k, epsilon, sensitivity=OF_COUNTS))
                what = f"beside {kind}, d = {power(d)}, k = {power(k)}, epsilon = {epsilon}"
                yield Row(what, held / scores.nbytes, "copy of the scores", 1)
    if run.full:
        yield from mapped(run.size(MAPPED))


def mapped(d: int) -> Rows:
    """Measure a new process that maps a .npy file and releases from it; /tmp may be in memory, so the file is here."""
    here = Path(__file__).parent
    if not Path("/proc/self/status").exists() or shutil.disk_usage(here).free < 2 * 8 * d:
        yield "A mapped file needs Linux and twice its size on the disk: skipped."
        return
    for kind in KINDS:
        with tempfile.TemporaryDirectory(dir=here) as folder:
            file = Path(folder) / "scores.npy"
            make_file(file, kind, d)
            for epsilon in ("1", "0.01"):
                resident, anonymous = watched([sys.executable, __file__, str(file), epsilon])
                what, unit = f"{kind} mapped from {8 * d / 1e9:g} GB, k = 1000, epsilon = {epsilon}", "times the file"
                yield Row(f"{what}, peak with the pages of the file", resident / (8 * d), unit, 1.5)
                yield Row(f"{what}, peak without them", anonymous / (8 * d), unit)


def make_file(file: Path, kind: str, d: int) -> None:
    """Return counts of a long tail, each by chance, with something below 1 added if they are to be distinct."""
    rng = np.random.default_rng(3)
    scores = np.lib.format.open_memmap(file, mode="w+", dtype=kind, shape=(d,))
    for start in range(0, d, BLOCK):
        size = min(BLOCK, d - start)
        counts = (1e9 / (1 + d * rng.random(size)) ** 1.05).astype(np.int64)
        scores[start : start + size] = counts + rng.random(size) if kind == "float64" else counts
    scores.flush()


def watched(command: list[str]) -> tuple[int, int]:
    """Return the most resident memory of a process in bytes, and the most of it that belongs to no file."""
    process = subprocess.Popen(command)
    resident = anonymous = 0
    while process.poll() is None:
        status = Path(f"/proc/{process.pid}/status").read_text(encoding="utf-8")
        resident, anonymous = max(resident, _bytes(status, "VmHWM")), max(anonymous, _bytes(status, "RssAnon"))
        time.sleep(0.005)
    if process.returncode:
        raise RuntimeError("the release from a mapped file failed")
    return resident, anonymous


def _bytes(status: str, name: str) -> int:
    """Return a line of a process's status; one that is about to be gone has none."""
    rest = status.partition(f"{name}:")[2].split()
    return 1024 * int(rest[0]) if rest else 0


if __name__ == "__main__":
    discreet.top_k(np.load(sys.argv[1], mmap_mode="r"), 1000, sys.argv[2], sensitivity=OF_COUNTS)

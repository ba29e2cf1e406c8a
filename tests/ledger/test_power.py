"""A power cut at any moment: what was not synced may be on the disk, or not, or in part.

A small library, preloaded, writes down what a releasing process does to its files. From that the disk is rebuilt as it
may be found after a cut at any point of the log: synced bytes are there; every sector written since is there or not;
names that were made or removed since the last sync of the folder are there or not, up to a point in their order. A
file's own sync does not save its name. What the caller saw before the cut must be in the ledger after it.
"""

import os
import random
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import discreet

HERE = Path(__file__).parent
SECTOR = 512


@dataclass
class File:
    """What is on the disk for sure, and what was done since."""

    synced: bytes = b""
    since: list = field(default_factory=list)
    size: int = 0

    def write(self, offset, content):
        for start in range(0, len(content), SECTOR):
            self.since.append((offset + start, content[start : start + SECTOR]))
        self.size = max(self.size, offset + len(content))

    def sync(self):
        self.synced, self.since = self.after(self.since), []

    def after(self, changes):
        content = bytearray(self.synced)
        for offset, part in changes:
            if part is None:
                content = content[:offset].ljust(offset, b"\0")
            else:
                content = content.ljust(offset, b"\0")
                content[offset : offset + len(part)] = part
        return bytes(content)


@dataclass
class Disk:
    """A folder: the names that are there for sure, those that processes see, and what was done to names since."""

    synced: dict = field(default_factory=dict)
    names: dict = field(default_factory=dict)
    since: list = field(default_factory=list)
    seen: bytes = b""

    def do(self, what, name, offset, content):
        if name == "seen":
            self.seen += content
        elif name == ".":
            self.synced, self.since = dict(self.names), []
        elif what == "create":
            self.names[name] = File()
            self.since.append((name, self.names[name]))
        elif what == "unlink":
            del self.names[name]
            self.since.append((name, None))
        elif what == "sync":
            self.names[name].sync()
        elif what == "truncate":
            self.names[name].since.append((offset, None))
        else:
            self.names[name].write(offset, content)

    def after_a_cut(self, chance, likely):
        """Names and contents as they may be found: each change is there with a probability of `likely`."""
        names = dict(self.synced)
        kept = {0: 0, 1: len(self.since)}.get(likely, chance.randint(0, len(self.since)))
        for name, file in self.since[:kept]:
            names.pop(name, None)
            if file is not None:
                names[name] = file
        return {
            name: file.after([change for change in file.since if chance.random() < likely])
            for name, file in names.items()
        }


def log_of(path):
    content, place = path.read_bytes(), 0
    while place < len(content):
        end = content.index(b"\n", place)
        what, offset, length, name = content[place:end].decode().split(" ", 3)
        place = end + 1 + int(length)
        yield what, name, int(offset), content[end + 1 : place]


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """What a process does to its files while it makes a ledger and releases some times."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if not sys.platform.startswith("linux") or compiler is None:
        pytest.skip("needs Linux and a C compiler for the library that writes down what a process does")
    folder = tmp_path_factory.mktemp("power").resolve()
    subprocess.run([compiler, "-shared", "-fPIC", "-o", folder / "disk.so", HERE / "disk.c"], check=True)

    def run(releases, setting="as it is"):
        files, log = folder / f"files {setting} {releases}", folder / f"log {setting} {releases}"
        files.mkdir()
        watched = {"LD_PRELOAD": str(folder / "disk.so"), "DISK_FOLDER": str(files), "DISK_LOG": str(log)}
        command = [sys.executable, HERE / "releasing.py", "traced", files, str(releases), setting]
        subprocess.run(command, check=True, env=os.environ | watched, timeout=120)
        return list(log_of(log))

    return run


def faults(trace, folder, cuts, seed):
    """How often, over cuts at random points, something that was seen is not spent, or not stored, or nothing opens."""
    chance = random.Random(seed)
    points = sorted(chance.randrange(len(trace) + 1) for _ in range(cuts))
    disk, done, found = Disk(), 0, {"unspent": 0, "not stored": 0, "refused": 0}
    for point in points:
        for step in trace[done:point]:
            disk.do(*step)
        done = point
        files = disk.after_a_cut(chance, chance.choice([0, 0, 0.5, 0.9, 1]))
        if not disk.seen:
            continue  # nobody knows of the ledger yet
        for name, content in files.items():
            (folder / name).write_bytes(content)
        examine(folder / "budget.db", disk.seen.count(b"r"), found)
        for path in folder.iterdir():
            path.unlink()
    return found


def examine(path, released, found):
    try:
        ledger = discreet.Ledger(path)
        ledger.check()
        history = ledger.history()
    except discreet.Error:
        found["refused"] += 1
        return
    found["unspent"] += len(history) < released
    found["not stored"] += sum(entry.stored is not None for entry in history) < released


NONE = {"unspent": 0, "not stored": 0, "refused": 0}


@pytest.mark.slow
def test_no_power_cut_loses_what_was_seen(trace, tmp_path):
    assert faults(trace(6), tmp_path, 400, seed=1) == NONE


@pytest.mark.slow
@pytest.mark.soak
def test_no_power_cut_loses_what_was_seen_at_length(trace, tmp_path):
    assert faults(trace(40), tmp_path, 5_000, seed=2) == NONE


@pytest.mark.long
@pytest.mark.slow
def test_a_journal_that_comes_back_is_found(trace, tmp_path):
    # With synchronous = FULL the removal of the journal is not synced: SQLite's default is not enough.
    found = faults(trace(6, "FULL"), tmp_path, 400, seed=3)
    assert found["not stored"] > 0


@pytest.mark.slow
def test_writes_that_are_not_synced_are_found(trace, tmp_path):
    found = faults(trace(6, "OFF"), tmp_path, 400, seed=4)
    assert found["unspent"] > 0
    assert found["refused"] > 0

"""kill -9 at random moments of a releasing process, again and again: what was released is spent and stored."""

import os
import random
import signal
import statistics
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import pytest

import discreet

HERE = Path(__file__).parent
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")


def killed(path, times, seed):
    """Kills as many processes, one after the other; how many of them left a transaction for the next one to undo."""
    chance, released, undone = random.Random(seed), 0, 0
    longest = 4 * seconds_of_a_release(path.with_name("timed.db"))
    ledger = discreet.Ledger.create(path, epsilon=1000, unit="test")
    command = [sys.executable, HERE / "releasing.py", "nursery", path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as nursery:
        for _ in range(times):
            released += one_killed(nursery, chance.uniform(0, longest))
            undone += os.path.exists(f"{path}-journal")
            # A new object, so that every record is checked from the first on, as after a restart.
            ledger = discreet.Ledger(path)
            ledger.check()
            history = ledger.history()
            assert ledger.spent == Fraction(len(history), 100) >= Fraction(released, 100)
            assert sum(entry.stored is not None for entry in history) >= released
        nursery.stdin.close()
    assert nursery.returncode == 0
    assert released > 0
    return undone


def seconds_of_a_release(path):
    """What a release takes here and now: disks differ a hundredfold."""
    ledger, times = discreet.Ledger.create(path, epsilon=1, unit="test"), []
    for _ in range(5):
        begun = time.monotonic()
        discreet.top_k({"a": 3, "b": 2, "c": 1}, 1, "0.1", ledger=ledger)
        times.append(time.monotonic() - begun)
    return statistics.median(times)


def one_killed(nursery, seconds):
    """Has a process born, kills it after a while, and tells how many releases it saw."""
    nursery.stdin.write("\n")
    word, process = nursery.stdout.readline().split()
    assert word == "born"
    time.sleep(seconds)
    os.kill(int(process), signal.SIGKILL)
    return sum(line == "released\n" for line in iter(nursery.stdout.readline, "dead\n"))


@pytest.mark.slow
def test_no_kill_loses_what_was_released(tmp_path):
    assert killed(tmp_path / "budget.db", 40, seed=1) > 0  # or the kills came at the wrong moments


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_no_kill_loses_what_was_released_at_length(tmp_path, seed):
    killed(tmp_path / "budget.db", 50, seed)

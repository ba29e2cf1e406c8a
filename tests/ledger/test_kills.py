"""kill -9 at random moments of a releasing process, again and again: what was released is spent and stored."""

import os
import random
import signal
import subprocess
import sys
import time
from fractions import Fraction
from itertools import takewhile
from pathlib import Path

import pytest

import discreet
from places import PLACES

HERE = Path(__file__).parent
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")


def killed(path, times, seed):
    """Kills as many processes, one after the other; how many of them left a transaction for the next one to undo.

    A server undoes it by itself, and nothing of it is seen.
    """
    chance, released, undone, usual = random.Random(seed), 0, 0, 0.01
    discreet.Ledger.create(path, epsilon=1000, unit="test")
    command = [sys.executable, HERE / "releasing.py", "nursery", path]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1) as nursery:
        for _ in range(times):
            seen, usual = one_killed(nursery, chance, usual)
            released += seen
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


def one_killed(nursery, chance, usual):
    """Has a process born and kills it at a random moment of its first, second or third release.

    Returns how many releases were seen, and how many seconds one takes: disks differ a hundredfold, and from minute to
    minute.
    """
    nursery.stdin.write("\n")
    word, process = nursery.stdout.readline().split()
    assert word == "born"
    before, begun = chance.randrange(3), time.monotonic()
    for _ in range(before):
        assert nursery.stdout.readline() == "released\n"
        usual, begun = time.monotonic() - begun, time.monotonic()
    time.sleep(chance.uniform(0, usual))
    os.kill(int(process), signal.SIGKILL)
    rest = list(takewhile("released\n".__eq__, nursery.stdout))
    return before + len(rest), usual


@pytest.mark.some(1)
@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES, indirect=True)
def test_no_kill_loses_what_was_released(place):
    is_file = os.path.dirname(place) and not place.startswith("postgres")
    undone = killed(place, 40 if is_file else 12, seed=1)
    assert undone > 0 or not is_file  # or the kills came at the wrong moments


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("place", PLACES, indirect=True)
def test_no_kill_loses_what_was_released_at_length(place, seed):
    killed(place, 50, seed)

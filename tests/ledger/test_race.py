"""Many processes after the last epsilon: never more is spent than the budget, and all of it can be."""

import os
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import pytest

import discreet
from places import PLACES

HERE = Path(__file__).parent

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs processes that fork")


def raced(path, processes, releases, granted):
    """Releases that each cost one part of a budget for `granted` of them: (succeeded, refused, all)."""
    ledger = discreet.Ledger.create(path, epsilon=1, unit="test")
    command = [sys.executable, HERE / "releasing.py", "race", path, processes, releases, Fraction(1, granted)]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True, timeout=3600)
    history = ledger.history()
    assert ledger.check() == 1 + 2 * len(history)
    assert ledger.spent == Fraction(len(history), granted)
    assert all(entry.release.k == 3 for entry in history)
    assert len(history) == granted
    return tuple(map(int, done.stdout.split()))


@pytest.mark.some(1)
@pytest.mark.slow
@pytest.mark.parametrize("place", PLACES, indirect=True)
def test_exactly_the_budget_is_granted(place):
    assert raced(place, 8, 48, 24) == (24, 24, 48)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("place", PLACES, indirect=True)
def test_exactly_the_budget_is_granted_to_200_tries(place):
    assert raced(place, 8, 200, 100) == (100, 100, 200)


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.parametrize("place", PLACES, indirect=True)
def test_exactly_the_budget_is_granted_at_length(place):
    assert raced(place, 32, 2000, 1000) == (1000, 1000, 2000)

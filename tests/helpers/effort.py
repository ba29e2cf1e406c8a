"""The effort of a run: `make test` is for those who have just cloned, `make test-long` takes its time.

`make test-long` sets DISCREET_TESTS=long. It runs the tests that are marked `long`, and those of Hypothesis with all
their examples. A test with many cases says by a mark which of them `make test` runs; the others are marked `long` here.
"""

import os
import zlib
from collections import defaultdict

import pytest

LONG = os.environ.get("DISCREET_TESTS") == "long"

SHARE = 6
"""In `make test` a property is tried on one in so many of its examples."""


def examples(usual):
    """Return the number of examples of a property: all of them in a long run, some in a short one."""
    return usual if LONG else -(-usual // SHARE)


def mark_long_cases(items):
    """Mark the cases of `corners` and `some` that `make test` leaves out."""
    tests = defaultdict(list)
    for item in items:
        if item.get_closest_marker("long") is None and hasattr(item, "callspec"):
            tests[item.path, item.originalname].append(item)
    for cases in tests.values():
        if cases[0].get_closest_marker("corners"):
            chosen = choose_corners([list_values(case) for case in cases])
        elif mark := cases[0].get_closest_marker("some"):
            chosen = choose_some(len(cases), *mark.args, shift=zlib.crc32(cases[0].originalname.encode()))
        else:
            continue
        for place, case in enumerate(cases):
            if place not in chosen:
                case.add_marker(pytest.mark.long)


def list_values(case):
    """Return what each `parametrize` of a test gives to one case, by identity: values need not have a hash."""
    names = [mark.args[0] for mark in case.iter_markers("parametrize")]
    split = [(each,) if isinstance(each, str) else each for each in names]
    return {(*each, *(id(case.callspec.params[name]) for name in each)) for each in split}


def choose_corners(cases):
    """Return the places of cases that together have every value of every parameter, each new one as many as it can."""
    missing, chosen = set().union(*cases), set()
    while missing:
        place = max(range(len(cases)), key=lambda place: len(missing & cases[place]))
        chosen.add(place)
        missing -= cases[place]
    return chosen


def choose_some(count, most, shift=0):
    """Return so many places, spread evenly around the list, and shifted.

    Tests that share a list, as that of the engines, differ in their shift. Together they have all of the list.
    """
    return {((2 * place + 1) * count // (2 * most) + shift) % count for place in range(most)}

"""The effort of a run: `make test` is for who has just cloned, `make test-long` takes its time.

`make test-long` sets DISCREET_TESTS=long. It runs the tests that are marked `long`, and those of Hypothesis with all
their examples.
"""

import os
from itertools import product

import pytest

LONG = os.environ.get("DISCREET_TESTS") == "long"

SHARE = 4
"""In `make test` a property is tried on one in so many of its examples."""


def examples(usual):
    """Return the number of examples of a property: all of them in a long run, some in a short one."""
    return usual if LONG else -(-usual // SHARE)


def grid(*axes):
    """Return all combinations of several lists of parameters; all but a diagonal through them are marked `long`.

    The diagonal holds every value of every list at least once.
    """
    axes = [[_as_param(value) for value in axis] for axis in axes]
    longest = max(map(len, axes))
    diagonal = {tuple(place % len(axis) for axis in axes) for place in range(longest)}
    return [
        pytest.param(
            *(axis[place].values[0] for axis, place in zip(axes, places, strict=True)),
            marks=[
                *(mark for axis, place in zip(axes, places, strict=True) for mark in axis[place].marks),
                *([] if places in diagonal else [pytest.mark.long]),
            ],
        )
        for places in product(*(range(len(axis)) for axis in axes))
    ]


def first(count, values):
    """Return a list of parameters; all but the first ones are marked `long`."""
    params = [_as_param(value) for value in values]
    late = [pytest.param(*each.values, marks=[*each.marks, pytest.mark.long], id=each.id) for each in params[count:]]
    return [*params[:count], *late]


def _as_param(value):
    return value if hasattr(value, "marks") and hasattr(value, "values") else pytest.param(value)

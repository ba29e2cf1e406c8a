"""The names beside curves: short, inside the frame and clear of each other."""

import math
from itertools import combinations

import pytest

from discreet.study.line_labels import _HIGH, _WIDE, place_labels, shorten_names

FRAME = (46.0, 408.0, 40.0, 244.0)


def rise(middle, steepness=0.1):
    """The places of a curve that rises around a place."""
    places = [FRAME[0] + (FRAME[1] - FRAME[0]) * i / 80 for i in range(81)]
    return [(x, FRAME[3] - (FRAME[3] - FRAME[2]) / (1 + math.exp(-steepness * (x - middle)))) for x in places]


def box(label):
    wide = _WIDE * len(label.text)
    left = label.x if label.anchor == "start" else label.x - wide
    return left, left + wide, label.y - 4 - _HIGH / 2, label.y - 4 + _HIGH / 2


@pytest.mark.parametrize("apart", [0, 1, 6, 30])
@pytest.mark.parametrize("steepness", [0.03, 0.2, 2.0])
def test_names_are_inside_and_apart(apart, steepness):
    curves = {f"method {i}": rise(150 + apart * i, steepness) for i in range(8)}
    labels = place_labels({name: [curve] for name, curve in curves.items()}, {name: name for name in curves}, FRAME, [])
    assert {label.method for label in labels} == set(curves)
    for label in labels:
        left, right, top, bottom = box(label)
        assert FRAME[0] <= left < right <= FRAME[1]
        assert FRAME[2] <= top < bottom <= FRAME[3]
        if label.lead is not None:
            # The thin line begins on the curve.
            x, y = label.lead[0]
            around = [place[1] for place in curves[label.method] if abs(place[0] - x) <= 5]
            assert min(around) - 1 <= y <= max(around) + 1
    for one, other in combinations(map(box, labels), 2):
        assert one[1] <= other[0] or other[1] <= one[0] or one[3] <= other[2] or other[3] <= one[2]


def test_flat_curves_and_what_is_taken_leave_names_their_room():
    flat = [(FRAME[0], 200.0), (FRAME[1], 200.0)]
    taken = (46.0, 408.0, 40.0, 190.0)
    [label] = place_labels({"flat": [flat]}, {"flat": "flat"}, FRAME, [taken])
    assert box(label)[2] >= 190
    assert place_labels({"flat": [flat]}, {"flat": "flat"}, FRAME, [FRAME]) == []


def test_no_name_points_to_where_a_curve_is_not_drawn():
    low, high = [(46.0, 244.0), (150.0, 240.0)], [(250.0, 60.0), (408.0, 40.0)]
    [label] = place_labels({"steps": [low, high]}, {"steps": "steps"}, FRAME, [])
    at = label.lead[0] if label.lead else (label.x, label.y)
    assert not 151 < at[0] < 249


def test_names_say_as_much_as_tells_them_apart():
    names = ["canonical, gamma = 1/2", "one-shot, exponential", "joint, sequences", "joint, sets", "gamma = 0"]
    assert list(shorten_names(names).values()) == [
        "canonical 1/2",
        "one-shot",
        "joint, sequences",
        "joint, sets",
        "gamma 0",
    ]

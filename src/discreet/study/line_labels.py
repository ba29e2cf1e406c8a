"""Puts the names of curves beside them: inside the frame, clear of each other, and off other curves where it can be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from discreet.exact.arrays import Floats

Place = tuple[float, float]
Box = tuple[float, float, float, float]
"""Left, right, top and bottom."""

_WIDE, _HIGH = 6.9, 15.0
"""The room of a letter, at the size that names have on a phone: the largest they are drawn in."""

_LEVELS = (0.5, 0.62, 0.38, 0.74, 0.26, 0.86, 0.14, 0.95, 0.05)
_APARTS = (9.0, 15.0, 24.0, 38.0, 56.0, 80.0)
_ALONG = (0.97, 0.8, 0.6, 0.4, 0.2)
_CLEAR = 2.0


@dataclass(frozen=True)
class LineLabel:
    """The name of a curve: where its text begins or ends, and from where to where a thin line leads, if beside it."""

    method: str
    text: str
    x: float
    y: float
    anchor: str
    lead: tuple[Place, Place] | None


@dataclass(frozen=True)
class _Candidate:
    box: Box
    anchor: str
    at: Place
    cost: float


def shorten_names(methods: Sequence[str]) -> dict[str, str]:
    """What stands beside each curve: as much of its name in the legend as tells it from the others."""
    plain = {method: method.replace(", gamma = ", " ").replace("gamma = ", "gamma ") for method in methods}
    heads = Counter(name.split(",")[0] for name in plain.values())
    return {method: head if heads[head := name.split(",")[0]] == 1 else name for method, name in plain.items()}


def place_labels(
    curves: dict[str, list[list[Place]]], names: dict[str, str], frame: Box, taken: list[Box]
) -> list[LineLabel]:
    """The names of the curves, those on the left first; one for which there is no room is left out.

    Parameters
    ----------
    curves
        The places of each curve, from left to right, in pieces between which it is not drawn.
    names
        What to write beside each.
    frame, taken
        Where names may be, and what they must not cover.
    """
    dense = {method: np.concatenate([_fill(piece) for piece in pieces]) for method, pieces in curves.items()}
    order = sorted(curves, key=lambda method: _find_level(dense[method], frame, 0.5)[0])
    labels, boxes = [], list(taken)
    for method in order:
        others = np.concatenate([np.empty((0, 2)), *(dense[each] for each in curves if each != method)])
        found = _choose(_candidates(dense[method], names[method], frame), boxes, others, dense[method], frame)
        if found is not None:
            boxes.append(found.box)
            labels.append(_to_label(method, names[method], found))
    return labels


def _fill(places: list[Place]) -> Floats:
    """The places with others between them, no further apart than letters are."""
    corners: Floats = np.array(places, dtype=float)
    lengths = np.concatenate([[0.0], np.cumsum(np.hypot(*np.diff(corners, axis=0).T))])
    steps = np.linspace(0.0, lengths[-1], max(2, int(lengths[-1] / 3.0)))
    filled: Floats = np.stack([np.interp(steps, lengths, corners[:, axis]) for axis in (0, 1)], axis=1)
    return filled


def _find_level(curve: Floats, frame: Box, level: float) -> Place:
    """Where a curve comes nearest to a share of the height of the frame, the first place of several."""
    wanted = frame[3] - level * (frame[3] - frame[2])
    nearest = int(np.argmin(np.abs(curve[:, 1] - wanted)))
    return float(curve[nearest, 0]), float(curve[nearest, 1])


def _candidates(curve: Floats, name: str, frame: Box) -> Iterator[_Candidate]:
    """Beside the curve at several heights, then above and below it at several places along."""
    wide = _WIDE * len(name)
    for rank, level in enumerate(_LEVELS):
        x, y = at = _find_level(curve, frame, level)
        for apart in _APARTS:
            cost = 0.6 * rank + apart / 6.0
            yield _Candidate((x + apart, x + apart + wide, y - _HIGH / 2, y + _HIGH / 2), "start", at, cost)
            yield _Candidate((x - apart - wide, x - apart, y - _HIGH / 2, y + _HIGH / 2), "end", at, cost)
    for rank, share in enumerate(_ALONG):
        end = frame[0] + share * (frame[1] - frame[0])
        x, y = at = _nearest(curve, end - wide / 2)
        for off in (-4.0 - _HIGH, 4.0, -14.0 - _HIGH, 14.0):
            yield _Candidate((end - wide, end, y + off, y + off + _HIGH), "end", at, 3.0 + rank + abs(off) / 6.0)


def _nearest(curve: Floats, x: float) -> Place:
    found = curve[int(np.argmin(np.abs(curve[:, 0] - x)))]
    return float(found[0]), float(found[1])


def _choose(
    candidates: Iterator[_Candidate], boxes: list[Box], others: Floats, own: Floats, frame: Box
) -> _Candidate | None:
    """The candidate that costs least, where covering another curve costs more than being far from its own."""
    free = [each for each in candidates if _is_inside(each.box, frame) and not any(_meet(each.box, b) for b in boxes)]
    costs = [each.cost + 2.0 * _count_inside(others, each.box) + 1.5 * _count_inside(own, each.box) for each in free]
    return free[int(np.argmin(costs))] if free else None


def _is_inside(box: Box, frame: Box) -> bool:
    return frame[0] <= box[0] and box[1] <= frame[1] and frame[2] <= box[2] and box[3] <= frame[3]


def _meet(one: Box, other: Box) -> bool:
    apart = one[1] + _CLEAR <= other[0] or other[1] + _CLEAR <= one[0] or one[3] <= other[2] or other[3] <= one[2]
    return not apart


def _count_inside(places: Floats, box: Box) -> int:
    x, y = places[:, 0], places[:, 1]
    return int(np.count_nonzero((box[0] <= x) & (x <= box[1]) & (box[2] <= y) & (y <= box[3])))


def _to_label(method: str, name: str, found: _Candidate) -> LineLabel:
    left, right, top, bottom = found.box
    x, middle = left if found.anchor == "start" else right, (top + bottom) / 2
    is_beside = top <= found.at[1] <= bottom
    lead = (found.at, (x - 2.0 if found.anchor == "start" else x + 2.0, middle)) if is_beside else None
    return LineLabel(method, name, x, middle + 4.0, found.anchor, lead)

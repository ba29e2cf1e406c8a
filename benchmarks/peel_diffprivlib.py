"""Releases by diffprivlib for peers.py, in the environment that `make peers` makes.

Reads one JSON object a line: a file of scores to load, or such a file with k and epsilon. Answers each by a number:
how many scores there are, or how many items were released.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import numpy as np
from diffprivlib.mechanisms import PermuteAndFlip

LOADED: dict[str, list[float]] = {}


def peel(scores: list[float], k: int, epsilon: float) -> list[int]:
    """Release k items in k rounds at epsilon / k each, with random bits of the operating system."""
    left, utility, chosen = list(range(len(scores))), list(scores), []
    for _ in range(k):
        spent: dict[str, Any] = {"epsilon": epsilon / k, "sensitivity": 1, "monotonic": True}
        place = PermuteAndFlip(utility=utility, candidates=list(range(len(left))), **spent).randomise()
        chosen.append(left.pop(place))
        utility.pop(place)
    return chosen


def answer(question: dict[str, Any]) -> int:
    """Load scores, or release from them."""
    if "load" in question:
        LOADED[question["load"]] = np.load(question["load"]).astype(float).tolist()
        return len(LOADED[question["load"]])
    return len(peel(LOADED[question["scores"]], question["k"], question["epsilon"]))


if __name__ == "__main__":
    for line in sys.stdin:
        print(answer(json.loads(line)), flush=True)

"""Draws from diffprivlib's mechanisms, run by test_peers.py in the environment that `make peers` makes.

Reads one JSON object a line: mechanism, epsilon, sensitivity, monotonic, scores, k, draws and seed. Writes one JSON
list a line: pairs of the positions drawn and how often they were.
"""

import json
import sys
from collections import Counter


def counts(case):
    """How often each sequence comes out of k rounds at epsilon / k, each of which takes one item out."""
    from diffprivlib import mechanisms
    from numpy.random import RandomState

    kind, state = getattr(mechanisms, case["mechanism"]), RandomState(case["seed"])
    rounds = {}

    def pick(gone):
        if gone not in rounds:
            left = [i for i in range(len(case["scores"])) if i not in gone]
            rounds[gone] = kind(
                epsilon=case["epsilon"] / case["k"],
                sensitivity=case["sensitivity"],
                utility=[float(case["scores"][i]) for i in left],
                monotonic=case["monotonic"],
                candidates=left,
                random_state=state,
            )
        return rounds[gone].randomise()

    found = Counter()
    for _ in range(case["draws"]):
        order = ()
        for _ in range(case["k"]):
            order = (*order, pick(order))
        found[order] += 1
    return list(found.items())


if __name__ == "__main__":
    for line in sys.stdin:
        sys.stdout.write(json.dumps(counts(json.loads(line))) + "\n")

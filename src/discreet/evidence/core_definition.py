"""Core from its definition, enumerated: which candidate is chosen, and what it releases.

Like `discreet.evidence.definition`, on which alone it builds, it shares no formula with the library, and nothing of it
is clever: the odds of a core are a sum over every subset, each with the weight that it is counted with.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from typing import Any

from discreet.evidence.definition import DEFINITIONS, Law, Scores, canonical, oneshot_sets

GAMMA = Fraction(3, 4)


def define_core(scores: Scores, k: int, s: Fraction, precision: Fraction, otherwise: dict[str, Any] | None) -> Law:
    """The log probability of what is seen: "core" or "otherwise", and positions in ascending order."""
    share = find_share(k)
    rest = s * (1 - share)
    sizes = sorted({max(1, math.floor(Fraction(k) * Fraction(5, 6) ** i + Fraction(1, 2))) for i in range(13)})
    odds = [log_odds(scores, size, k, rest, precision) for size in sizes]
    # The running minimum from the smallest core up, less 1 / sigma; the fallback always has all the support.
    support = [math.inf, *(min(odds[: j + 1]) - float(1 / share) for j in range(len(odds))), -math.inf]
    utilities = [min(support[j], 0.0) + min(-support[j + 1], 0.0) for j in range(len(sizes) + 1)]
    weights = [math.exp(float(share / (2 * (1 - share))) * utility) for utility in utilities]
    result: Law = {}
    for size, weight in zip([None, *sizes], weights, strict=True):
        if weight > 0.0:
            said = "otherwise" if size is None else "core"
            law = _fall_back(scores, k, rest, otherwise) if size is None else canonical(scores, size, rest, GAMMA)
            for positions, log in law.items():
                result[said, *positions] = math.log(weight / sum(weights)) + log
    return result


def find_share(k: int) -> Fraction:
    """The largest n / 10000 of at most 0.12 and 0.1 (100/k)^0.3, and at least one of these parts."""
    n = min(1200, math.floor(1000 * (100 / k) ** 0.3) + 1)
    while n > 1 and Fraction(n, 1000) ** 10 > Fraction(100, k) ** 3:
        n -= 1
    return Fraction(n, 10_000)


def log_odds(scores: Scores, size: int, k: int, s: Fraction, precision: Fraction) -> float:
    """The log odds that a core is good, were every subset as heavy, and as good, as the middle of its box."""
    x = sorted(scores, reverse=True)
    # The best subset weighs 1.
    good, bad = [0.0], list[float]()
    for subset in itertools.combinations(range(len(x)), size):
        if subset == tuple(range(size)):
            continue
        missing, worst = min(set(range(size)) - set(subset)), subset[-1]
        first, last = find_box(size - 1 - missing, size - 1, 4)
        h = ((size - 1 - last) + (size - 1 - first)) // 2
        first, last = find_box(worst - size, len(x) - 1 - size, 2)
        t = ((size + first) + (size + last)) // 2
        # The loss of a subset that lacks rank h and has t as its worst, less that of the best subset.
        loss = (1 - GAMMA) * x[h] - GAMMA * x[t] - (1 - 2 * GAMMA) * x[size - 1]
        (good if expect_right(size, k, h, t) >= precision * size else bad).append(-float(s * loss))
    return _log_sum(good) - _log_sum(bad) if bad else math.inf


def find_box(distance: int, largest: int, part: int) -> tuple[int, int]:
    """The first and the last distance of the box that one is in, which is one and so much of the first long."""
    first = 0
    while distance > first + first // part:
        first += 1 + first // part
    return first, min(first + first // part, largest)


def expect_right(size: int, k: int, h: int, t: int) -> Fraction:
    """How many are among the k best, on average, of all subsets that lack rank h but none before, and end at rank t."""
    others = list(itertools.combinations(range(h + 1, t), size - 1 - h))
    right = [sum(rank < k for rank in (*range(h), *some, t)) for some in others]
    return Fraction(sum(right), len(right))


def _fall_back(scores: Scores, k: int, s: Fraction, otherwise: dict[str, Any] | None) -> Law:
    return {(): 0.0} if otherwise is None else oneshot_sets(scores, k, s, otherwise["noise"])


def _log_sum(logs: list[float]) -> float:
    largest = max(logs)
    return largest + math.log(sum(math.exp(one - largest) for one in logs))


DEFINITIONS["core"] = lambda given, scores, k, s, _: define_core(
    scores, k, s, Fraction(given["precision"]), given["otherwise"]
)

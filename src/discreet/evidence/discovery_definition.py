"""Discovery from its definition: for whom an item counts, the threshold, what is kept, and what it may cost.

Written a second time, to judge by: nothing of the library is imported but the law of the noise in `definition`, tails
are sums of it, and the threshold is found by trying one whole number after the other.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable
from fractions import Fraction
from functools import cache
from hashlib import md5

from discreet.evidence.definition import discrete_laplace_log

Touch = tuple[str, int, str]
"""A row: a user, a group and an item."""

Numbers = dict[str, tuple[int, int]]
"""Of each item for how many users it counts, and how many touched it."""

_FAR = 45
"""A tail is added up until what is left of it is below exp(-45) of it."""


@cache
def upper_tail(rate: Fraction, n: int) -> float:
    """The probability of a noise of n or more: the sum of its law, which is symmetric."""
    if n < 1:
        return 1.0 - upper_tail(rate, 1 - n)
    return math.fsum(math.exp(discrete_laplace_log(z, rate)) for z in range(n, n + math.ceil(_FAR / rate)))


def keep_chance(users: int, rate: Fraction, threshold: int) -> float:
    """The probability of keeping an item for which so many users count; of one that counts for nobody it is 0."""
    return upper_tail(rate, threshold - users) if users >= 1 else 0.0


def noise_rate(epsilon: Fraction, items: int, adjacency: str, groups: int) -> Fraction:
    """Epsilon over all that one user changes: so many items in so many groups, of two users where one is replaced."""
    return epsilon / (items * groups * _sides(adjacency))


def least_threshold(epsilon: Fraction, delta: Fraction, items: int, adjacency: str, groups: int) -> int:
    """The least whole number from 2 on with which no user's own items are kept with more than the chance allowed."""
    threshold = 2
    while needed_delta(threshold, epsilon, items, adjacency, groups) > delta:
        threshold += 1
    return threshold


def needed_delta(threshold: int, epsilon: Fraction, items: int, adjacency: str, groups: int) -> float:
    """The delta that a threshold needs, in all groups: one user's items are new, of two where one is replaced."""
    chance = upper_tail(noise_rate(epsilon, items, adjacency, groups), threshold - 1)
    alone = -math.expm1(items * math.log1p(-chance))
    # A removal and an addition at half of epsilon each: the delta of the one is multiplied by what the other may cost.
    swapped = 1.0 + math.exp(epsilon / (2 * groups)) if adjacency == "swap" else 1.0
    return groups * swapped * alone


def part_for_discovery(items: int, k: int) -> Fraction:
    """The part of epsilon that finding the items takes where nothing is said: 1/4 + l/(4k), and 1/2 at most."""
    return min(Fraction(1, 2), Fraction(1, 4) + Fraction(items, 4 * k))


def count_people(touches: Iterable[Touch], items: int, key: str, groups: int, one_group: bool) -> list[Numbers]:
    """The numbers of each group. Of a user those items count, in each group, that have the least hashes.

    With `one_group` a user counts in the group with most rows of theirs alone, of several the first.
    """
    rows: dict[str, list[tuple[int, str]]] = defaultdict(list)
    for who, group, item in touches:
        rows[who].append((group, item))
    counting, touching = ([Counter[str]() for _ in range(groups)] for _ in range(2))
    for who, own in rows.items():
        sizes = Counter(group for group, _ in own)
        main = min(sizes, key=lambda group: (-sizes[group], group))
        for group in [main] if one_group else sizes:
            found = {item for at, item in own if at == group}
            touching[group].update(found)
            counting[group].update(sorted(found, key=lambda item: _hash(key, who, item))[:items])
    return [{item: (n[item], all_users[item]) for item in n} for n, all_users in zip(counting, touching, strict=True)]


def _hash(key: str, who: str, item: str) -> str:
    return md5(f"{key}{who}/{item}".encode(), usedforsecurity=False).hexdigest()[:12]


def _sides(adjacency: str) -> int:
    return 2 if adjacency == "swap" else 1

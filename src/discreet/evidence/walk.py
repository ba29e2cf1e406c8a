"""Run a sampler on every string of bits, and add up the exact probability of each outcome."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

from discreet.exact.entropy import Entropy


def walk(sampler: Callable[[Entropy], Any], runs: int, word: int = 1) -> tuple[dict[Any, Fraction], Fraction]:
    """Return exact lower bounds on the probability of each outcome, and the probability that is still undecided.

    Strings of bits are tried from the shortest on. A string on which the sampler ends decides its outcome with
    probability 2^-length. A string on which the sampler asks for more bits is continued with 0 and with 1.
    """
    decided: dict[Any, Fraction] = defaultdict(Fraction)
    waiting: list[tuple[int, tuple[int, ...]]] = [(0, ())]
    for _ in range(runs):
        if not waiting:
            break
        length, bits = heapq.heappop(waiting)
        script = Script(bits)
        try:
            outcome = sampler(Entropy(script, word))
        except ExhaustedError:
            for bit in (0, 1):
                heapq.heappush(waiting, (length + 1, (*bits, bit)))
        else:
            decided[outcome] += Fraction(1, 2**script.used)
    return dict(decided), 1 - sum(decided.values(), Fraction(0))


class Script:
    """A source of bits that reads them from a sequence."""

    def __init__(self, bits: Sequence[int]) -> None:
        self.bits, self.used = bits, 0

    def getrandbits(self, k: int, /) -> int:
        """Return the next k bits."""
        value = 0
        for _ in range(k):
            if self.used == len(self.bits):
                raise ExhaustedError
            value = value << 1 | self.bits[self.used]
            self.used += 1
        return value


class ExhaustedError(Exception):
    """The script has no more bits."""

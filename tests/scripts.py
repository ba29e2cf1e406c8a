"""Scripted bits: run a sampler on every string of bits, and add up the exact probability of what comes out."""

import heapq
from collections import defaultdict
from fractions import Fraction

from discreet.exact.entropy import Entropy


class ExhaustedError(Exception):
    """The script has no more bits."""


class Script:
    """A source of bits that reads them off a string."""

    def __init__(self, bits):
        self.bits, self.used = bits, 0

    def getrandbits(self, k, /):
        value = 0
        for _ in range(k):
            if self.used == len(self.bits):
                raise ExhaustedError
            value = value << 1 | self.bits[self.used]
            self.used += 1
        return value


def walk(sampler, runs, word=1):
    """Exact lower bounds on the probability of each outcome, and the probability still undecided.

    Strings of bits are tried from the shortest on. A string on which the sampler ends decides its outcome with
    probability 2^-length; one on which it asks for more is continued with 0 and with 1.
    """
    decided, waiting = defaultdict(Fraction), [(0, ())]
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
            assert script.used == length
            decided[outcome] += Fraction(1, 2**length)
    return dict(decided), 1 - sum(decided.values())

"""Draws from a mixture by rejection with an envelope of integer weights (docs/proofs.md, section 9.1).

Part j has the integer weight w_j, which stands for the mass w_j * exp(reference) / 2^scale, at least that of the part.
Proposals are drawn by the same integers that the acceptance probability divides by, so no rounding enters.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import accumulate

import numpy as np
from flint import arb, ctx

from discreet.exact.arrays import Floats, Ranks
from discreet.exact.ball import is_less
from discreet.exact.entropy import Entropy

WEIGHT_BITS = 40
"""Bits of the heaviest weight: rounding a weight up then adds at most 2^-40 of the heaviest one."""


@dataclass(frozen=True, eq=False, repr=False)
class Envelope:
    """Integer weights over the parts of a mixture.

    Attributes
    ----------
    reference
        The logarithm of the mass that the weight 2^scale stands for.
    cumulative
        Running sums of the weights.
    scale
        The number of bits of the heaviest weight.
    """

    reference: float
    cumulative: Ranks
    scale: int

    @classmethod
    def over(cls, log_mass: Floats, scale: int = WEIGHT_BITS) -> Envelope:
        """Return an envelope over parts whose log masses are at most `log_mass`; -inf gives the weight 0."""
        # w = ceil((1 + 2^-20) 2^scale exp(log_mass - reference)) is above the mass: the float difference is off by at
        # most 2^-53 of itself, which is below 2^-40 where it is above -scale, and elsewhere w >= 1 is enough.
        reference = float(log_mass[log_mass.argmax()])
        shares = log_mass - reference
        # NumPy needs many times as long for an exponential that underflows.
        np.maximum(shares, -700.0, out=shares)
        np.exp(shares, out=shares)
        shares *= (1.0 + 2.0**-20) * 2.0**scale
        weights: Ranks = np.ceil(shares, out=shares).astype(np.int64)
        weights *= log_mass > -np.inf
        return cls(reference, np.add.accumulate(weights), scale)

    def pick(self, entropy: Entropy) -> int:
        """Draw part j with probability exactly proportional to its weight."""
        return entropy.position(self.cumulative)

    def weight(self, j: int) -> int:
        """Return the integer weight of part j."""
        return int(self.cumulative[j]) - (int(self.cumulative[j - 1]) if j else 0)

    def log_weight(self, j: int) -> arb:
        """Return a ball around the log mass that the weight of part j stands for."""
        return arb(self.weight(j)).log() + arb(self.reference) - self.scale * arb(2).log()

    def log_share(self, j: int) -> arb:
        """Return a ball around the log probability that `pick` returns part j."""
        return arb(self.weight(j)).log() - arb(int(self.cumulative[-1])).log()

    def log_weight_float(self, j: int) -> float:
        """Return `log_weight` as a float with a relative error of 2^-50 of its terms."""
        return math.log(self.weight(j)) + self.reference - self.scale * math.log(2.0)

    def log_share_float(self, j: int) -> float:
        """Return `log_share` as a float with an absolute error of 2^-45."""
        return math.log(self.weight(j)) - math.log(int(self.cumulative[-1]))


def scan_weights(entropy: Entropy, log_weights: Callable[[], list[arb]]) -> int:
    """Draw j with probability exactly proportional to exp(log_weights()[j]), from balls alone, without an envelope."""
    # With U uniform, j is the first index at which the running sum of the weights exceeds U times their total.
    uniform, sums = entropy.uniform(), dict[int, list[arb]]()

    def total_up_to(j: int) -> arb:
        if ctx.prec not in sums:
            sums[ctx.prec] = list(accumulate(weight.exp() for weight in log_weights()))
        return sums[ctx.prec][j]

    low, high = 0, len(log_weights()) - 1
    while low < high:
        middle = (low + high) // 2
        if is_less(lambda: uniform.ball() * total_up_to(-1), partial(total_up_to, middle), uniform.reveal):
            high = middle
        else:
            low = middle + 1
    return low

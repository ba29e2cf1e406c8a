"""Draws from a mixture by rejection: parts get integer weights above their mass, and what is drawn is accepted.

Part j has the integer weight w_j, which stands for the mass w_j * exp(reference) / 2^scale, at least its own. The
weight that is drawn from and the weight that the acceptance divides by are the same integer, so nothing is lost.
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

SCALE = 40


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
        How many bits the heaviest weight has.
    """

    reference: float
    cumulative: Ranks
    scale: int

    @classmethod
    def over(cls, log_mass: Floats, scale: int = SCALE) -> Envelope:
        """The envelope of parts whose log masses are at most `log_mass`.

        exp(log_mass - reference) * 2^scale, raised by a relative 2^-20 and rounded up, is above the mass: the float
        difference is off by at most 2^-53 of itself, which matters only where it is above -scale and is then below
        2^-40; and below that the weight of at least 1 is above the mass anyhow. A part with a log mass of -inf has no
        weight.
        """
        reference = float(log_mass[log_mass.argmax()])
        return cls(reference, np.add.accumulate(_weigh(log_mass, reference, scale)), scale)

    def pick(self, entropy: Entropy) -> int:
        """Returns part j with probability exactly proportional to its weight."""
        return entropy.uniform().position(self.cumulative)

    def weight(self, j: int) -> int:
        """The integer weight of part j."""
        return int(self.cumulative[j]) - (int(self.cumulative[j - 1]) if j else 0)

    def log_weight(self, j: int) -> arb:
        """A ball around the logarithm of the mass that part j's weight stands for."""
        return arb(self.weight(j)).log() + arb(self.reference) - self.scale * arb(2).log()

    def log_share(self, j: int) -> arb:
        """A ball around the logarithm of the probability that `pick` returns part j."""
        return arb(self.weight(j)).log() - arb(int(self.cumulative[-1])).log()

    def log_weight_float(self, j: int) -> float:
        """The same as a float, right to a relative 2^-50 of its terms."""
        return math.log(self.weight(j)) + self.reference - self.scale * math.log(2.0)

    def log_share_float(self, j: int) -> float:
        """The logarithm of the probability that `pick` returns part j as a float, right to an absolute 2^-45."""
        return math.log(self.weight(j)) - math.log(int(self.cumulative[-1]))


def scan_weights(entropy: Entropy, log_weights: Callable[[], list[arb]]) -> int:
    """Return j with probability exactly proportional to exp(log_weights()[j]), from balls alone, without an envelope.

    It is the first j at which the running sum of the weights is above U times their total, for a uniform U.
    """
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


def _weigh(log_masses: Floats, reference: float, scale: int) -> Ranks:
    """Return the integer weights of some parts."""
    # NumPy takes many times as long for an exponential that is too small for a float.
    shares = log_masses - reference
    np.maximum(shares, -700.0, out=shares)
    np.exp(shares, out=shares)
    shares *= (1.0 + 2.0**-20) * 2.0**scale
    weights: Ranks = np.ceil(shares, out=shares).astype(np.int64)
    weights *= log_masses > -np.inf
    return weights

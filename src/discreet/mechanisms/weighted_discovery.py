"""Private partition selection by weighted Gaussian noise, which hardly depends on how many items of a user count.

At most l items of each user count. A user of whom m items count adds the weight floor(G / sqrt(m)) / G to each, with
G = WEIGHT_STEPS, so that the L2 norm of all weights of a user is at most 1. An item with the sum w > 0 is kept if
w + N >= T, where N is Gaussian noise of standard deviation sigma: with probability Phi((w - T) / sigma). An item of sum
0 is never kept. (Gopi, Gulhane, Kulkarni, Shen, Shokouhi and Yekhanin, Differentially Private Set Union, 2020.)

Proof. Add a user. Let A be the items that have a sum of 0 without the user, t <= m in number. Each has a weight of at
most 1 / sqrt(t), and T is so large that none of them is kept with probability 1 - pA >= 1 - delta / 2. The sums of all
other items move by at most 1 in L2, and sigma is so large that keeping them is (epsilon, delta / 2)-private (Balle and
Wang, Improving the Gaussian Mechanism, 2018, theorem 8). Together that is (epsilon, delta)-private. Under swap the sums
move by at most sqrt(2), as no weight is negative, and the items of the leaving and of the coming user have delta / 4
each. If a user may be in g groups, m counts the items of the user in all of them, at most g l, so that one
sigma serves all groups, and T is that of g l items.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Any, ClassVar

import numpy as np
from flint import arb

from discreet.errors import InvalidValueError
from discreet.exact.arrays import Floats, Ranks
from discreet.exact.ball import FLOAT_MARGIN, START_PRECISION, ball, find_floor, precision
from discreet.exact.discrete import MOST_TRIALS, sample_binomials
from discreet.exact.entropy import Entropy
from discreet.language import ENGLISH, Language
from discreet.mechanisms.partition_selection import HARDLY, PartitionSelection, about

WEIGHT_STEPS = 1024
"""The steps of a weight of 1. Weights, their sums and the threshold are whole numbers of steps."""

MOST_WEIGHTED_ITEMS = WEIGHT_STEPS**2
"""A user of more items than this has the weight 0."""

_SIGMA_BITS = 24
"""The bits of sigma: it exceeds the least possible by less than a part in 2^23."""

_LARGEST_EPSILON = Fraction(1024)
"""A larger epsilon gets the noise of this one, sigma = 0.026 at delta = 1e-8, with which T is 1.2."""

_LEAST = Fraction(1, 10**1000)
"""A smaller epsilon or delta is refused, because no precision in reach would decide on its sigma."""

_LAST_PRECISION = 1 << 16
"""The bits at which a condition on sigma that is still undecided counts as not met."""

_TINY = 1e-300
"""Floats below this are not relied on."""


@dataclass(frozen=True)
class WeightedDiscovery(PartitionSelection):
    """Partition selection by Gaussian noise on sums of weights; the attributes are those of `PartitionSelection`.

    Examples
    --------
    >>> found = WeightedDiscovery(Fraction(1, 2), Fraction(1, 10**8), max_items_per_user=100)
    >>> found.threshold, float(found.sigma)
    (66, 10.113041877746582)
    """

    method: ClassVar[str] = "gaussian"
    largest_threshold: ClassVar[int] = MOST_TRIALS // WEIGHT_STEPS

    @property
    def noise_epsilon(self) -> Fraction:
        """The epsilon of the noise on weights."""
        return self.epsilon

    @cached_property
    def sigma(self) -> Fraction:
        """The standard deviation of the noise, a public dyadic rational, where a weight of 1 is 1."""
        return least_sigma(self.noise_epsilon, self.delta / 2, self._sides)

    @cached_property
    def cutoff(self) -> int:
        """The threshold T in steps: an item is kept if its sum of weights plus noise reaches it."""
        return least_cutoff(self.sigma, self.delta / (2 * self._sides), self.most_items)

    @cached_property
    def threshold(self) -> int:
        """The number of people that an item needs to reach T if it is all that they touched."""
        return -(-self.cutoff // WEIGHT_STEPS)

    @property
    def zcdp(self) -> Fraction:
        # Given that no item of A is kept, sums within D = sqrt(sides) cost D^2 / (2 sigma^2).
        return self._sides / (2 * self.sigma**2)

    @property
    def zcdp_delta(self) -> Fraction:
        # The other half of delta is that of sigma, and zCDP has no use for it.
        return self.delta / 2

    def keep_probability(self, total: int) -> arb:
        # Phi((w - T) / sigma) = erfc((T - w) / (sqrt(2) sigma)) / 2
        return self._upper_tail(self.cutoff - total) if total > 0 else arb(0)

    def weigh(self, items_per_user: int) -> int:
        return weigh_items(items_per_user)

    @property
    def most_items(self) -> int:
        """The most items of one user that count, in all groups together; beyond 2^20 items all weights are 0."""
        return min(super().most_items, MOST_WEIGHTED_ITEMS)

    def sample_kept(self, entropy: Entropy, totals: Ranks, items: Ranks) -> Ranks:
        # The rarer outcome is drawn, because its probability is a tail: kept below T, left out from T on.
        is_above = totals >= self.cutoff
        steps = np.abs(totals - self.cutoff)
        trials = np.where(totals > 0, items, 0)
        rarer = sample_binomials(
            entropy, trials, *self._bound_upper_tails(steps), lambda i: self._upper_tail(int(steps[i]))
        )
        return np.where(is_above, trials - rarer, rarer)

    def share_of_group(self) -> WeightedDiscovery:
        """Return the discovery itself: one group costs as much as all, since a user may have all weight in one."""
        return self

    def to_dict(self) -> dict[str, Any]:
        """Return the discovery as JSON values; delta and adjacency are those of the guarantee."""
        noise = {"sigma": str(self.sigma), "threshold": str(Fraction(self.cutoff, WEIGHT_STEPS))}
        return {"method": self.method, **super().to_dict(), **noise}

    def describe_threshold(self, language: Language = ENGLISH) -> str:
        # p(T + n) = 1 - p(T - n) reaches 9/10 from n = sqrt(2) sigma erfcinv(1/5) steps on.
        most = self.most_items
        steps = find_ceiling(lambda: self._deviation * ball(2 * HARDLY).erfcinv())
        few, many = (-(-total // WEIGHT_STEPS) for total in (self.cutoff - steps + 1, self.cutoff + steps))
        if most == 1:
            return language.text("found.laplace", few=about(few), many=about(many), count=1)
        groups = self.max_groups_per_user
        return language.text(
            "found.gaussian",
            few=about(few),
            many=about(many),
            most=most,
            busy=about(-(-(self.cutoff + steps) // weigh_items(most))),
            count=self.max_items_per_user,
            groups=language.text("found.in_groups", count=groups) if groups > 1 else "",
        )

    def describe_noise(self, language: Language = ENGLISH) -> str:
        sigma, threshold = (f"{number:.4g}" for number in (float(self.sigma), self.cutoff / WEIGHT_STEPS))
        return language.text("found.noise", sigma=language.number(sigma), threshold=language.number(threshold))

    @property
    def _deviation(self) -> arb:
        """A ball around sqrt(2) sigma in steps."""
        return ball(self.sigma * WEIGHT_STEPS) * arb(2).sqrt()

    def _upper_tail(self, steps: int) -> arb:
        """Return a ball around P(N >= n) for a number n of steps."""
        return (arb(steps) / self._deviation).erfc() / 2

    def _bound_upper_tails(self, steps: Ranks) -> tuple[Floats, Floats]:
        """Return floats certainly below and above P(N >= n) for n = steps >= 0."""
        # y = n / (sqrt(2) sigma) has a relative error below 2^-49, which moves erfc(y) by at most 2 y^2 + 1 times that,
        # because erfc(y) >= 2 / sqrt(pi) exp(-y^2) / (y + sqrt(y^2 + 2)). `erfc` itself is right to 2^-44.
        y = steps.astype(np.float64) / (float(self.sigma) * WEIGHT_STEPS * math.sqrt(2.0))
        tail = 0.5 * np.fromiter(map(math.erfc, y.tolist()), np.float64, len(y))
        margin = FLOAT_MARGIN * (1.0 + np.minimum(y, 30.0) ** 2)
        low = np.where(tail < _TINY, 0.0, tail * (1.0 - margin))
        return low, np.maximum(tail * (1.0 + margin), _TINY)


def weigh_items(m: int) -> int:
    """Return the weight in steps of each item of a user of whom m items count: floor(G / sqrt(m))."""
    return math.isqrt(WEIGHT_STEPS**2 // m)


@lru_cache(maxsize=256)
def least_sigma(epsilon: Fraction, delta: Fraction, sides: int) -> Fraction:
    """Return the least sigma of _SIGMA_BITS bits that is (epsilon, delta)-private for an L2 sensitivity of sqrt(sides).

    It meets the condition of Balle and Wang (2018, theorem 8), certified with balls. T is computed from this rational,
    so that no later rounding of sigma can break the guarantee.
    """
    if min(epsilon, delta) < _LEAST:
        raise InvalidValueError("epsilon and delta must be at least 1e-999 for Gaussian noise, and one of them is not")
    limit = min(epsilon, _LARGEST_EPSILON)
    power = 0
    while not _is_private(Fraction(2) ** power, limit, delta, sides):
        power += 1
    while _is_private(Fraction(2) ** (power - 1), limit, delta, sides):
        power -= 1
    # sigma is in (2^(power-1), 2^power].
    unit = Fraction(2) ** (power - _SIGMA_BITS)
    low, high = 1 << (_SIGMA_BITS - 1), 1 << _SIGMA_BITS
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _is_private(middle * unit, limit, delta, sides) else (middle, high)
    return high * unit


def _is_private(sigma: Fraction, epsilon: Fraction, delta: Fraction, sides: int) -> bool:
    """Return True if Phi(D/2s - es/D) - exp(e) Phi(-D/2s - es/D) <= delta, with D = sqrt(sides), s sigma, e epsilon."""
    bits = START_PRECISION
    while bits <= _LAST_PRECISION:
        with precision(bits):
            # Phi(x) = erfc(-x / sqrt(2)) / 2
            reach = ball(Fraction(sides) / 2).sqrt()  # D / sqrt(2)
            half, shift = reach / ball(2 * sigma), ball(epsilon * sigma / 2) / reach
            needed = ((shift - half).erfc() - ball(epsilon).exp() * (shift + half).erfc()) / 2
            if needed <= ball(delta):
                return True
            if needed > ball(delta):
                return False
        bits *= 2
    return False


@lru_cache(maxsize=256)
def least_cutoff(sigma: Fraction, delta: Fraction, most: int) -> int:
    """Return the least T in steps at which t items of one user alone are kept with at most delta, for t = 1..most.

    T is the maximum over t of 1 / sqrt(t) + sigma Phi^-1((1 - delta)^(1/t)), rounded up. The first term falls and the
    second one grows with t, so their values at the ends of a range bound the sum in the range; ranges whose bound
    exceeds the largest value so far are halved.
    """

    def noise(t: int) -> arb:
        # Phi^-1(1 - q) = sqrt(2) erfcinv(2 q) with q = 1 - (1 - delta)^(1/t)
        q = -((-ball(delta)).log1p() / t).expm1()
        return ball(sigma * WEIGHT_STEPS) * arb(2).sqrt() * (2 * q).erfcinv()

    def alone(t: int) -> int:
        return find_ceiling(lambda: WEIGHT_STEPS / arb(t).sqrt() + noise(t))

    largest, ranges = max(alone(1), alone(most)), [(1, most)]
    while ranges:
        first, last = ranges.pop()
        if last - first < 2:
            continue
        with precision(START_PRECISION):
            is_below = WEIGHT_STEPS / arb(first).sqrt() + noise(last) <= largest
        if not is_below:
            middle = (first + last) // 2
            largest = max(largest, alone(middle))
            ranges += [(first, middle), (middle, last)]
    return largest


def find_ceiling(value: Callable[[], arb]) -> int:
    """Return the ceiling of a public real that is not a whole number, with more precision until it is certain."""
    return -find_floor(lambda: -value(), lambda rounds: rounds * START_PRECISION)

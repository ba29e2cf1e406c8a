"""Histogram: Laplace noise on all scores, for users who move few of them; items, order and values for one epsilon.

Let L be the L1 sensitivity of all d scores. Laplace noise of scale L / epsilon on every score makes the vector of noisy
scores epsilon-private, and the k largest, their order and their values are post-processing (docs/proofs.md, section
8.2). The draw is the race of one-shot with the weight epsilon / L, so items without a chance are never visited.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from discreet.errors import InvalidValueError
from discreet.exact.arrays import Ranks
from discreet.exact.entropy import Entropy
from discreet.exact.race import NoisyWinners, sample_noisy_best
from discreet.mechanisms import oneshot
from discreet.mechanisms.base import Form, Mechanism, Prepared
from discreet.mechanisms.noise import noise_of
from discreet.mechanisms.tally import Selection, Tally
from discreet.privacy import Sensitivity


@dataclass(frozen=True)
class DiscreteLaplace(Mechanism):
    """Discrete Laplace noise on scores that are released themselves, as in a sketch; it selects no items."""

    name: ClassVar[str] = "discrete-laplace"
    ordered: ClassVar[bool] = False

    def prepare(self, tally: Tally, k: int, epsilon: Fraction, sensitivity: Sensitivity) -> Prepared:
        raise self._refusal

    def zcdp(self, epsilon: Fraction, k: int) -> Fraction:
        # epsilon-DP is epsilon^2/2-zCDP (Bun and Steinke, 2016, proposition 1.4).
        return epsilon**2 / 2

    def parameters(self) -> dict[str, Any]:
        return {}

    def unit_cost(self, s: Fraction, k: int) -> Fraction:
        raise self._refusal

    @property
    def is_drawable(self) -> bool:
        return False

    @property
    def _refusal(self) -> InvalidValueError:
        return InvalidValueError("mechanism must be one that selects items, which DiscreteLaplace() does not")


@dataclass(frozen=True)
class Histogram(Mechanism):
    """A mechanism that adds Laplace noise to all scores and releases the k largest, their order and their values.

    It is for users who move few scores: events with `max_items_per_user`, or scores with `Sensitivity(down, up,
    items=...)`. The values are in `Release.counts` if scores are whole numbers or sums in steps, each with an interval
    that holds for all items at once. A single value tends to be too high, because items with large noise are more
    likely to be released.

    Examples
    --------
    >>> import discreet
    >>> scores = {"dune": 912, "alien": 877, "heat": 410}
    >>> limit = discreet.Sensitivity(down=0, up=1, items=1)
    >>> release = discreet.top_k(scores, k=2, epsilon=100, mechanism=discreet.Histogram(), sensitivity=limit)
    >>> release.order
    ['dune', 'alien']
    >>> release.counts
    [Count(item='dune', value=912, low=912, high=912), Count(item='alien', value=877, low=877, high=877)]
    """

    name: ClassVar[str] = "histogram"
    ordered: ClassVar[bool] = True
    releases_values: ClassVar[bool] = True
    noise: ClassVar[str] = "laplace"

    def prepare(self, tally: Tally, k: int, epsilon: Fraction, sensitivity: Sensitivity) -> PreparedHistogram:
        return PreparedHistogram(tally, k, scale(epsilon, sensitivity), noise_of(self))

    def zcdp(self, epsilon: Fraction, k: int) -> Fraction:
        return epsilon**2 / 2

    def parameters(self) -> dict[str, Any]:
        return {}

    def unit_cost(self, s: Fraction, k: int) -> Fraction:
        # For counts of users with one item each, where L is 1, or 2 under swap; more items make it less.
        return s

    @property
    def form(self) -> Form:
        return Form.RACE

    @property
    def longest_exact_order(self) -> int | None:
        return 2

    @property
    def is_linear(self) -> bool:
        return True


def scale(epsilon: Fraction, sensitivity: Sensitivity) -> Fraction:
    """Return epsilon / L, the value of one unit of score in units of noise."""
    if sensitivity.l1 is None:
        raise InvalidValueError("sensitivity must say how far all scores together can move, for noise on all of them")
    return epsilon / sensitivity.l1


@dataclass(frozen=True, eq=False, repr=False)
class PreparedHistogram(oneshot.Prepared):
    """The histogram on a tally: one-shot with another weight, whose values are released."""

    tally: Tally

    def select(self, entropy: Entropy) -> Selection:
        winners = sample_noisy_best(self, self.k, self.noise, entropy)
        return Selection(winners.elements, values=Values(self, winners))

    def draw(self, entropy: Entropy) -> Ranks:
        """Draw the ranks of the k largest noisy scores, largest first."""
        return self.select(entropy).ranks


@dataclass(frozen=True, eq=False, repr=False)
class Values:
    """The noisy scores of the winners: their scores, and the noise of the race in its own unit."""

    prepared: PreparedHistogram
    winners: NoisyWinners

    def to_steps(self, grid: Fraction) -> list[int]:
        tally = self.prepared.tally
        return self.winners.round_noises(1 / (self.prepared.weight * grid), lambda rank: tally.exact(rank) / grid)

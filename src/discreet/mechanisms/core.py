"""Core: as many of the k as the data support at this epsilon, chosen privately, and drawn by canonical.

Below some epsilon canonical releases noise for k items, and would release k' < k of them nearly perfectly. A share
sigma of epsilon chooses between candidates: a fallback, and cores of k' items for several k' up to k. With the rest,
e2, the one that was chosen is drawn. Each core has log odds of being good (`core_odds`), which one user moves by at
most e2. Let s_j be their running minimum from the smallest core up, less 1/sigma; then u_j = min(s_j, 0) +
min(-s_{j+1}, 0) has at most one term that is not zero, so that it moves by at most e2 too. Candidate j is drawn with a
weight of exp(sigma u_j / (2 (1 - sigma))), the exponential mechanism at sigma epsilon (docs/proofs.md, section 4.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from flint import arb, ctx

from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.exact.arrays import Floats, Ranks
from discreet.exact.ball import START, EnvelopeError, ball, bound_above, bound_below, sample_bernoulli_exp
from discreet.exact.entropy import Entropy
from discreet.exact.envelope import Envelope, scan_weights
from discreet.mechanisms import base
from discreet.mechanisms.base import Form, Mechanism, scale
from discreet.mechanisms.canonical import Canonical
from discreet.mechanisms.core_odds import Odds, lay_grids, widen
from discreet.mechanisms.oneshot import OneShot
from discreet.privacy import Number, Sensitivity, exact
from discreet.selection import CORE, OTHERWISE, Selection
from discreet.tally import Tally

FEW = 50
"""Below this k the share for the choice costs more than the choice gains (docs/choosing.md)."""

CROWDED = 10
"""Where there are fewer than so many times k items, those that are left out might have been right by chance."""

_STEPS = 13
"""How many sizes cores have at most: each is a sixth smaller than the one before, down to a ninth of k or so."""

_UNIT = 10_000
"""The share is a whole number of these parts."""

_UNLIKELY, _NEVER = 50.0, 1e300
"""Log weights this far below the largest do not count in a sum; the second number stands for minus infinity."""


@dataclass(frozen=True, init=False, repr=False)
class Core(Mechanism):
    """Releases as many of the k best as the data support at this epsilon, and says how many that is.

    The release has k' <= k items, drawn by canonical with gamma = 3/4; `Release.chosen` says whether they are a core or
    what is released otherwise. It is for k from 50 or so on, and for recall: it is never the surest way to the exact
    top-k.

    Parameters
    ----------
    precision
        The share of a core that should be among the true k, above 0 and at most 1: with more of it cores are smaller.
    otherwise
        What is released where the data support no core: all k items by a `OneShot`, or None for nothing.

    Examples
    --------
    >>> import discreet
    >>> Core()
    Core(precision='3/5', otherwise=OneShot(noise='exponential'))
    >>> scores = [1_000_000] * 30 + [0] * 100_000
    >>> release = discreet.top_k(scores, k=60, epsilon=1, mechanism=discreet.Core())
    >>> release.chosen, release.asked, 40 < release.k <= 60
    ('core', 60, True)
    """

    name: ClassVar[str] = "core"
    ordered: ClassVar[bool] = False

    precision: Fraction
    otherwise: OneShot | None

    def __init__(self, precision: Number = "0.6", otherwise: OneShot | None = OneShot()) -> None:  # noqa: B008  # frozen
        share = exact(precision, "precision")
        if not 0 < share <= 1:
            raise InvalidValueError(f"precision must be above 0 and at most 1, not {quote(precision)}")
        if not (otherwise is None or isinstance(otherwise, OneShot)):
            raise InvalidTypeError(f"otherwise must be a OneShot() or None, not {quote(otherwise)}")
        object.__setattr__(self, "precision", share)
        object.__setattr__(self, "otherwise", otherwise)

    def __repr__(self) -> str:
        return f"Core(precision='{self.precision}', otherwise={self.otherwise!r})"

    def prepare(self, tally: Tally, k: int, epsilon: Fraction, sensitivity: Sensitivity) -> Prepared:
        share = choice_share(k)
        return Prepared(self, tally, k, share, (1 - share) * epsilon, sensitivity)

    def zcdp(self, epsilon: Fraction, k: int) -> Fraction:
        share = choice_share(k)
        # The choice has a bounded range of sigma epsilon; after it, the worst candidate counts.
        candidates = [Canonical(), *([] if self.otherwise is None else [self.otherwise])]
        rest = (1 - share) * epsilon
        return (share * epsilon) ** 2 / 8 + max(candidate.zcdp(rest, k) for candidate in candidates)

    def parameters(self) -> dict[str, Any]:
        other = self.otherwise
        return {
            "precision": str(self.precision),
            "otherwise": None if other is None else {"name": other.name, **other.parameters()},
        }

    def unit_cost(self, s: Fraction, k: int) -> Fraction:
        # How many items there are decides the boxes, so that even hopeless ones change what is chosen.
        return Fraction(0)

    @classmethod
    def variants(cls) -> list[Core]:
        return [cls(), cls(otherwise=None), cls("0.9", OneShot("gumbel"))]

    @property
    def form(self) -> Form:
        return Form.UNKNOWN if self.otherwise is not None and self.otherwise.form is Form.UNKNOWN else Form.CANDIDATES

    @property
    def may_release_fewer(self) -> bool:
        return True

    @property
    def is_linear(self) -> bool:
        return True

    @property
    def needs_integrals(self) -> bool:
        return self.otherwise is not None and self.otherwise.needs_integrals

    def doubt(self, k: int, d: int | None) -> str | None:
        if k < FEW:
            return f"DOUBTFUL: to choose how many items to release costs more than it gains for k below {FEW}"
        if d is not None and d < CROWDED * k:
            return f"DOUBTFUL: to choose how many items to release gains nothing where k is over a {CROWDED}th of all"
        return None


def choice_share(k: int) -> Fraction:
    """The share sigma of epsilon that the choice costs: min(0.12, 0.1 (100/k)^0.3), rounded down to 1/10000.

    Examples
    --------
    >>> choice_share(10), choice_share(100), choice_share(1000)
    (Fraction(3, 25), Fraction(1, 10), Fraction(501, 10000))
    """
    # n / 10^4 <= 0.1 (100/k)^0.3, both sides to the tenth power
    low, high = 1, 12 * _UNIT // 100
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**10 * k**3 <= 10**36 else (low, middle - 1)
    return Fraction(low, _UNIT)


def core_sizes(k: int) -> list[int]:
    """How many items the cores have, ascending: k / 1.2^i, rounded to the nearest, for i from 0 to 12, and at least 1.

    Examples
    --------
    >>> core_sizes(100)
    [11, 13, 16, 19, 23, 28, 33, 40, 48, 58, 69, 83, 100]
    """
    return sorted({max(1, (2 * k * 5**i + 6**i) // (2 * 6**i)) for i in range(_STEPS)})


def exponents(odds: Sequence[arb], share: Fraction) -> list[arb]:
    """The log weights of the candidates, the fallback first, from the log odds of the cores."""
    lowest: list[arb] = []
    for one in odds:
        lowest.append(one.min(lowest[-1]) if lowest else one)
    supported = [one - ball(1 / share) for one in lowest]
    return [ball(share / (2 * (1 - share))) * score for score in score_candidates(supported)]


def score_candidates(supported: Sequence[arb]) -> list[arb]:
    """Min(s_j, 0) + min(-s_{j+1}, 0), without the first term at the bottom and the second at the top."""
    nothing = arb(0)
    own = [nothing, *(one.min(nothing) for one in supported)]
    following = [*((-one).min(nothing) for one in supported), nothing]
    return [one + other for one, other in zip(own, following, strict=True)]


@dataclass(frozen=True, eq=False, repr=False)
class Prepared:
    """Core on a tally: candidate 0 is the fallback, candidate j is core j-1. `epsilon` is what these have."""

    core: Core
    tally: Tally
    k: int
    share: Fraction
    epsilon: Fraction
    sensitivity: Sensitivity

    def draw(self, entropy: Entropy) -> Ranks:
        """Returns the ranks of k' <= k items."""
        return self.select(entropy).draw_ranks()

    def select(self, entropy: Entropy) -> Selection:
        """Returns what is selected by the candidate that is drawn."""
        drawn = self.draw_candidate(entropy)
        candidate = self.candidate(drawn)
        nothing = Selection(np.empty(0, np.int64))
        return self.label(drawn, nothing if candidate is None else candidate.select(entropy))

    def label(self, candidate: int, selection: Selection) -> Selection:
        """A selection by a candidate, which says whose it is."""
        return replace(selection, chosen=CORE if candidate else OTHERWISE)

    def draw_candidate(self, entropy: Entropy) -> int:
        """Returns candidate j with probability exactly proportional to the exponential of its log weight."""
        try:
            while True:
                part = self.envelope.pick(entropy)
                if sample_bernoulli_exp(entropy, partial(self._log_acceptance, part)):
                    return part
        except EnvelopeError:
            return scan_weights(entropy, self.log_weights)

    def candidate(self, j: int) -> base.Prepared | None:
        """What draws candidate j, None for one that is nothing."""
        mechanism, terms = self.mechanism(j), (self.size(j), self.epsilon, self.sensitivity)
        return None if mechanism is None else mechanism.prepare(self.tally, *terms)

    def mechanism(self, j: int) -> Mechanism | None:
        """The mechanism of candidate j."""
        return Canonical() if j else self.core.otherwise

    def size(self, j: int) -> int:
        """How many items candidate j releases."""
        return self.sizes[j - 1] if j else self.k if self.core.otherwise is not None else 0

    @cached_property
    def sizes(self) -> list[int]:
        return core_sizes(self.k)

    def log_weights(self) -> list[arb]:
        """Balls around the log weights of all candidates, at the precision in force."""
        return exponents([self._odds.exactly(core) for core in range(len(self.sizes))], self.share)

    @cached_property
    def log_bounds(self) -> tuple[Floats, Floats]:
        """Floats below and above the log weights of all candidates."""
        low, high = (np.minimum.accumulate(each) - float(1 / self.share) for each in self._odds.bounds())
        low, high = widen(bound_below, low), widen(bound_above, high)
        factor = float(self.share / (2 * (1 - self.share)))
        # A large odds of a core lowers the weight of the candidate below it.
        least = np.minimum(np.append(0.0, low), 0.0) + np.minimum(np.append(-high, 0.0), 0.0)
        most = np.minimum(np.append(0.0, high), 0.0) + np.minimum(np.append(-low, 0.0), 0.0)
        return widen(bound_below, factor * least), widen(bound_above, factor * most)

    def chances(self) -> tuple[Floats, float]:
        """The probability of each candidate as a float, and what a sum of them may be off by."""
        low, high = (np.maximum(bound, -_NEVER) for bound in self.log_bounds)
        with np.errstate(under="ignore"):
            weights = np.exp(0.5 * (low + high))
        likely = high > low.max() - _UNLIKELY
        return weights / weights.sum(), float(2.0 * (high - low)[likely].max() + 1e-15)

    @cached_property
    def envelope(self) -> Envelope:
        return Envelope.over(self.log_bounds[1])

    def _log_acceptance(self, part: int) -> arb:
        """A ball around the log probability that a candidate is kept: by floats, and as exactly as it takes after."""
        if ctx.prec > START:
            return self.log_weights()[part] - self.envelope.log_weight(part)
        low, high = (float(bound[part]) for bound in self.log_bounds)
        return arb(low).union(arb(high)) - self.envelope.log_weight(part)

    @cached_property
    def _odds(self) -> Odds:
        grids = lay_grids(tuple(self.sizes), self.k, self.tally.d, self.core.precision)
        return Odds(grids, self.tally, scale(self.epsilon, self.sensitivity), Canonical().gamma)

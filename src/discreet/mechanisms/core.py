"""Core: as many of the top k as the data support at this epsilon, chosen privately and drawn by canonical.

Below some epsilon canonical releases mostly noise for k items, and would release k' < k of them nearly perfectly. A
share sigma of epsilon chooses between a fallback and cores of k' items for several k' up to k; the rest, e2, draws the
candidate that was chosen. Each core has log odds of being good, which one user moves by at most e2 (docs/proofs.md,
section 4.3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from typing import Any, ClassVar

import numpy as np
from flint import arb, ctx

from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.exact.arrays import Floats, Mask, Ranks
from discreet.exact.ball import (
    LARGEST,
    START_PRECISION,
    EnvelopeError,
    ball,
    bound_above,
    bound_below,
    log_binomial,
    log_binomial_float,
    precise,
    sample_bernoulli_exp,
)
from discreet.exact.boxes import Layout
from discreet.exact.entropy import Entropy
from discreet.exact.envelope import Envelope, scan_weights
from discreet.language import ENGLISH, Language
from discreet.mechanisms import base
from discreet.mechanisms.base import Form, Mechanism, scale
from discreet.mechanisms.canonical import Canonical, Losses
from discreet.mechanisms.oneshot import OneShot
from discreet.mechanisms.tally import CORE, OTHERWISE, Selection, Tally
from discreet.privacy import Number, Sensitivity, exact

FEW = 50
"""Below this k the share of epsilon for the choice costs more than the choice gains (docs/appendix/planning.md)."""

CROWDED = 10
"""With fewer than this many times k items, the items left out are likely to be right by chance."""

_MAX_CORES = 13
"""The most sizes of cores: each is a sixth smaller than the next, down to about a ninth of k."""

_SHARE_UNIT = 10_000
"""The share of epsilon for the choice is a multiple of one over this."""

_PART_H, _PART_T = 4, 2
"""A box is about its distance from the top-k' divided by this long; h decides more than t whether a class is good."""

_LOG_BINOMIAL_ERROR = 2.0**-44
"""The largest relative error of `log_binomial_float`."""

_NEGLIGIBLE = 50.0
"""Log weights more than this many nats below the largest do not count in the error of a sum."""

_NEVER = 1e300
"""Minus this stands for a log weight of minus infinity."""


@dataclass(frozen=True, init=False, repr=False)
class Core(Mechanism):
    """A mechanism that releases as many of the top k as the data support at this epsilon, and how many these are.

    The release has k' <= k items, drawn by canonical with gamma = 3/4; `Release.chosen` says if they are a core or the
    fallback. Core is for k from about 50 on, and for recall: it is never the surest way to the exact top-k.

    Parameters
    ----------
    precision
        The share of a core that should be among the true k, above 0 and at most 1; a larger share makes cores smaller.
    otherwise
        The fallback if the data support no core: all k items by a `OneShot`, or None for nothing.

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
    may_release_fewer: ClassVar[bool] = True

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
        # The privacy loss of the choice has range sigma epsilon (docs/proofs.md, 6.1); the worst candidate follows.
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
        # The number of items decides the boxes, so even items without a chance change the choice.
        return Fraction(0)

    @classmethod
    def variants(cls) -> list[Core]:
        return [cls(), cls(otherwise=None), cls("0.9", OneShot("gumbel"))]

    @property
    def form(self) -> Form:
        return Form.UNKNOWN if self.otherwise is not None and self.otherwise.form is Form.UNKNOWN else Form.CANDIDATES

    @property
    def is_linear(self) -> bool:
        return True

    @property
    def needs_integrals(self) -> bool:
        return self.otherwise is not None and self.otherwise.needs_integrals

    def doubt(self, k: int, d: int | None, language: Language = ENGLISH) -> str | None:
        if k < FEW:
            return language.text("note.doubtful_few", few=FEW)
        if d is not None and d < CROWDED * k:
            return language.text("note.doubtful_crowded", crowded=CROWDED)
        return None


@dataclass(frozen=True, eq=False, repr=False)
class Prepared:
    """Core on a tally: candidate 0 is the fallback, candidate j is core j-1. `epsilon` is e2, of the candidates."""

    core: Core
    tally: Tally
    k: int
    share: Fraction
    epsilon: Fraction
    sensitivity: Sensitivity

    def draw(self, entropy: Entropy) -> Ranks:
        """Draw the ranks of k' <= k items."""
        return self.select(entropy).draw_ranks()

    def select(self, entropy: Entropy) -> Selection:
        """Draw a candidate, and a selection by its mechanism."""
        drawn = self.draw_candidate(entropy)
        candidate = self.candidate(drawn)
        nothing = Selection(np.empty(0, np.int64))
        return self.label(drawn, nothing if candidate is None else candidate.select(entropy))

    def label(self, candidate: int, selection: Selection) -> Selection:
        """Return a selection labelled with its kind of candidate."""
        return replace(selection, chosen=CORE if candidate else OTHERWISE)

    def draw_candidate(self, entropy: Entropy) -> int:
        """Draw candidate j with probability exactly proportional to exp(log_weights()[j])."""
        try:
            while True:
                part = self.envelope.pick(entropy)
                if sample_bernoulli_exp(entropy, partial(self._log_acceptance, part)):
                    return part
        except EnvelopeError:
            return scan_weights(entropy, self.log_weights)

    def candidate(self, j: int) -> base.Prepared | None:
        """Return candidate j applied to the tally, or None for one that releases nothing."""
        mechanism, terms = self.mechanism(j), (self.size(j), self.epsilon, self.sensitivity)
        return None if mechanism is None else mechanism.prepare(self.tally, *terms)

    def mechanism(self, j: int) -> Mechanism | None:
        """Return the mechanism of candidate j."""
        return Canonical() if j else self.core.otherwise

    def size(self, j: int) -> int:
        """Return the number of items that candidate j releases."""
        return self.sizes[j - 1] if j else self.k if self.core.otherwise is not None else 0

    @cached_property
    def sizes(self) -> list[int]:
        return core_sizes(self.k)

    def log_weights(self) -> list[arb]:
        """Return balls around the log weights of all candidates, at the precision in force."""
        return exponents([self._odds.exactly(core) for core in range(len(self.sizes))], self.share)

    @cached_property
    def log_bounds(self) -> tuple[Floats, Floats]:
        """Floats below and above the log weights of all candidates."""
        low, high = (np.minimum.accumulate(each) - float(1 / self.share) for each in self._odds.bounds())
        low, high = widen(bound_below, low), widen(bound_above, high)
        factor = float(self.share / (2 * (1 - self.share)))
        # Large odds of a core lower the weight of the candidate before it.
        least = np.minimum(np.append(0.0, low), 0.0) + np.minimum(np.append(-high, 0.0), 0.0)
        most = np.minimum(np.append(0.0, high), 0.0) + np.minimum(np.append(-low, 0.0), 0.0)
        return widen(bound_below, factor * least), widen(bound_above, factor * most)

    def chances(self) -> tuple[Floats, float]:
        """Return the probability of each candidate as a float, and a bound on the error of any sum of them."""
        low, high = (np.maximum(bound, -_NEVER) for bound in self.log_bounds)
        with np.errstate(under="ignore"):
            weights = np.exp(0.5 * (low + high))
        likely = high > low.max() - _NEGLIGIBLE
        return weights / weights.sum(), float(2.0 * (high - low)[likely].max() + 1e-15)

    @cached_property
    def envelope(self) -> Envelope:
        return Envelope.over(self.log_bounds[1])

    def _log_acceptance(self, part: int) -> arb:
        """Return a ball around the log acceptance probability of a candidate; at the first precision from floats."""
        if ctx.prec > START_PRECISION:
            return self.log_weights()[part] - self.envelope.log_weight(part)
        low, high = (float(bound[part]) for bound in self.log_bounds)
        return arb(low).union(arb(high)) - self.envelope.log_weight(part)

    @cached_property
    def _odds(self) -> Odds:
        grids = lay_grids(tuple(self.sizes), self.k, self.tally.d, self.core.precision)
        return Odds(grids, self.tally, scale(self.epsilon, self.sensitivity), Canonical().gamma)


def choice_share(k: int) -> Fraction:
    """Return sigma, the share of epsilon that the choice costs: min(0.12, 0.1 (100/k)^0.3), rounded down to 1/10000.

    Examples
    --------
    >>> choice_share(10), choice_share(100), choice_share(1000)
    (Fraction(3, 25), Fraction(1, 10), Fraction(501, 10000))
    """
    # n / 10^4 <= 0.1 (100/k)^0.3, both sides to the tenth power
    low, high = 1, 12 * _SHARE_UNIT // 100
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if middle**10 * k**3 <= 10**36 else (low, middle - 1)
    return Fraction(low, _SHARE_UNIT)


def core_sizes(k: int) -> list[int]:
    """Return the numbers of items of the cores, ascending: k / 1.2^i, rounded and at least 1, for i from 0 to 12.

    Examples
    --------
    >>> core_sizes(100)
    [11, 13, 16, 19, 23, 28, 33, 40, 48, 58, 69, 83, 100]
    """
    return sorted({max(1, (2 * k * 5**i + 6**i) // (2 * 6**i)) for i in range(_MAX_CORES)})


def exponents(odds: Sequence[arb], share: Fraction) -> list[arb]:
    """Return the log weights of the candidates, the fallback first, from the log odds of the cores."""
    # Let s_j be the running minimum of the odds, from the smallest core up, less 1/sigma. At most one term of u_j =
    # min(s_j, 0) + min(-s_{j+1}, 0) is not zero, so u_j moves by at most e2 as well, and the weights
    # exp(sigma u_j / (2 (1 - sigma))) are those of the exponential mechanism at sigma epsilon.
    lowest: list[arb] = []
    for one in odds:
        lowest.append(one.min(lowest[-1]) if lowest else one)
    supported = [one - ball(1 / share) for one in lowest]
    return [ball(share / (2 * (1 - share))) * score for score in score_candidates(supported)]


def score_candidates(supported: Sequence[arb]) -> list[arb]:
    """Return min(s_j, 0) + min(-s_{j+1}, 0), without the first term for the fallback and the second for the last."""
    nothing = arb(0)
    own = [nothing, *(one.min(nothing) for one in supported)]
    following = [*((-one).min(nothing) for one in supported), nothing]
    return [one + other for one, other in zip(own, following, strict=True)]


@dataclass(frozen=True, eq=False, repr=False)
class Odds:
    """The log odds of cores on a tally; `s` and `gamma` are those of canonical."""

    grids: Grids
    tally: Tally
    s: Fraction
    gamma: Fraction

    def bounds(self) -> tuple[Floats, Floats]:
        """Return floats below and above the log odds of each core."""
        grids = self.grids
        (h, edge_t), (edge_h, t) = grids.upper, grids.lower
        above = self.tally.gaps(h, edge_h, self.s * (1 - self.gamma))[grids.above]
        below = self.tally.gaps(edge_t, t, self.s * self.gamma)[grids.below]
        with np.errstate(over="ignore"):
            loss = np.minimum(above + below, LARGEST)
            value, room = grids.log_count - loss, grids.off + 2.0**-40 * (loss + 1.0)
            low, high = value - room, value + room
        # The largest float stands for all beyond.
        low[loss == LARGEST] = -np.inf
        is_good, lines = grids.is_good, (grids.starts, grids.lengths)
        # The top-k' of a core has the mass 1, is good, and is in no box.
        good_low, good_high = (np.logaddexp(0.0, _log_sums(mass, is_good, *lines)) for mass in (low, high))
        bad_low, bad_high = (_log_sums(mass, ~is_good, *lines) for mass in (low, high))
        return widen(bound_below, good_low - bad_high), widen(bound_above, good_high - bad_low)

    def exactly(self, core: int) -> arb:
        """Return a ball around the log odds of a core; infinite if every box is good."""
        return weigh_grid(self.grids.parts[core], self.tally, self.s, self.gamma)


def weigh_grid(grid: Grid, tally: Tally, s: Fraction, gamma: Fraction) -> arb:
    """Return a ball around the log odds of a core: good boxes and the top-k' against the other boxes, by mass."""
    losses = Losses(tally, grid.size, s, gamma)
    good, bad = arb(1), arb(0)
    for box, (h, t) in enumerate(zip(grid.h.tolist(), grid.t.tolist(), strict=True)):
        mass = count_subsets(grid.size, grid.corners[:, box]) * (-ball(losses.excess(h, t))).exp()
        good, bad = (good + mass, bad) if grid.is_good[box] else (good, bad + mass)
    return arb("inf") if grid.is_good.all() else good.log() - bad.log()


def _log_sums(logs: Floats, chosen: Mask, starts: Ranks, lengths: Ranks) -> Floats:
    """Return the logarithm of the sum of the chosen entries of each segment."""
    kept = np.where(chosen, logs, -np.inf)
    largest = np.maximum.reduceat(kept, starts)
    level = np.where(np.isfinite(largest), largest, 0.0)
    with np.errstate(divide="ignore", under="ignore"):
        return np.asarray(level + np.log(np.add.reduceat(np.exp(kept - np.repeat(level, lengths)), starts)))


def widen(bound: Callable[[Floats], Floats], values: Floats) -> Floats:
    """Return bounds on values; infinite values stay infinite."""
    with np.errstate(invalid="ignore"):
        return np.where(np.isfinite(values), bound(values), values)


# The classes (h, t) of a core are grouped in boxes that grow with the distance from (k'-1, k'), by rank alone. All
# subsets of a box get the weight of the class in its middle, and are good or not as that class is. The scores enter
# only in the weights, so the log odds have the sensitivity of the weights (docs/proofs.md, section 4.3). A few hundred
# scores are looked up, however many there are.


@dataclass(frozen=True, eq=False, repr=False)
class Grid:
    """The boxes of one core, which depend on public numbers alone.

    Attributes
    ----------
    size
        The number of items k' of the core.
    corners
        The rows h1, h2, t1, t2 of all boxes.
    h, t
        The class in the middle of each box, whose loss all subsets of the box get.
    is_good
        True for boxes whose middle class has enough members among the true k.
    log_count, off
        The logarithm of the number of subsets of each box, and a bound on its error.
    """

    size: int
    corners: Ranks
    h: Ranks
    t: Ranks
    is_good: Mask
    log_count: Floats
    off: Floats


@dataclass(frozen=True, eq=False, repr=False)
class Grids:
    """The grids of several cores, with all their boxes concatenated.

    Attributes
    ----------
    parts
        The grid of each core.
    starts, lengths
        The first box and the number of boxes of each core.
    upper, lower
        The distinct pairs of ranks whose score differences are looked up: first those of h, then those of t.
    above, below
        The index of the pair of h, and of the pair of t, of each box.
    is_good, log_count, off
        As in `Grid`.
    """

    parts: list[Grid]
    starts: Ranks
    lengths: Ranks
    upper: tuple[Ranks, Ranks]
    lower: tuple[Ranks, Ranks]
    above: Ranks
    below: Ranks
    is_good: Mask
    log_count: Floats
    off: Floats

    @classmethod
    def of(cls, parts: list[Grid]) -> Grids:
        """Return the grids of some cores."""
        lengths = np.array([len(grid.h) for grid in parts])
        edge = np.repeat([grid.size - 1 for grid in parts], lengths)
        (h, of_h, above), (t, of_t, below) = (
            _distinct_pairs(np.concatenate([getattr(grid, name) for grid in parts]), edge) for name in ("h", "t")
        )
        masses = (np.concatenate([getattr(grid, name) for grid in parts]) for name in ("is_good", "log_count", "off"))
        return cls(parts, np.cumsum(lengths) - lengths, lengths, (h, of_t), (of_h, t), above, below, *masses)


@lru_cache(maxsize=256)
def lay_grids(sizes: tuple[int, ...], k: int, d: int, precision: Fraction) -> Grids:
    """Return the boxes of cores of some sizes; cached by public numbers, because many groups share them."""
    return Grids.of([lay_grid(size, k, d, precision) for size in sizes])


def _distinct_pairs(ranks: Ranks, edges: Ranks) -> tuple[Ranks, Ranks, Ranks]:
    """Return the distinct pairs of a rank and an edge, and the index of the pair of each entry."""
    order = np.lexsort((edges, ranks))
    rank, edge = ranks[order], edges[order]
    is_new = np.append(True, (rank[1:] != rank[:-1]) | (edge[1:] != edge[:-1]))
    which = np.empty(len(ranks), np.int64)
    which[order] = np.cumsum(is_new) - 1
    return rank[is_new], edge[is_new], which


def lay_grid(size: int, k: int, d: int, precision: Fraction) -> Grid:
    """Return the boxes of a core of `size` of d items; a good one has this share of members among the true k."""
    ends = np.array([*_box_starts(size - 1, _PART_H)[1:], size])
    lines = size - ends[::-1], size + np.array(_box_starts(d - 1 - size, _PART_T))
    corners = Layout.between(*lines, size - 1, d - 1).corners
    h1, h2, t1, t2 = corners
    # The middle, without overflow beyond 2^63.
    h, t = h1 + (h2 - h1) // 2, t1 + (t2 - t1) // 2
    # `expect_held` by floats, and exactly where these are too close to decide.
    between, right = np.maximum(t - h - 1, 1), np.maximum(np.minimum(t, k) - h - 1, 0)
    spare = h + (t < k) + (size - 1 - h) * (right / between) - float(precision * size)
    is_good = np.asarray(spare >= 0.0)
    for box in np.flatnonzero(np.abs(spare) < 2.0**-30 * size).tolist():
        is_good[box] = expect_held(size, k, int(h[box]), int(t[box])) >= precision * size
    return Grid(size, corners, h, t, is_good, *_log_counts(size, corners))


def _box_starts(last: int, part: int) -> list[int]:
    """Return the distances from the top-k' at which boxes begin; a box at distance x is 1 + x // part long."""
    starts = [0]
    while (following := starts[-1] + 1 + starts[-1] // part) <= last:
        starts.append(following)
    return starts


def expect_held(size: int, k: int, h: int, t: int) -> Fraction:
    """Return the expected number of members of a uniform subset of class (h, t) among the true k."""
    # h + [t < k] + (size-1-h) max(min(t, k) - h - 1, 0) / (t-h-1): ranks strictly between h and t are equally likely.
    between, right = t - h - 1, max(min(t, k) - h - 1, 0)
    return h + (t < k) + (Fraction((size - 1 - h) * right, between) if between else Fraction(0))


def count_subsets(size: int, corners: Ranks) -> arb:
    """Return a ball around the number of subsets of `size` ranks in one box."""
    h1, h2, t1, t2 = (int(corner) for corner in corners)

    def count_within(h: int, t: int) -> arb:
        """Return the number of subsets that hold all ranks below h and none beyond t: C(t-h+1, size-h)."""
        return log_binomial(t - h + 1, size - h).exp()

    upto, before = (count_within(h1, t) - count_within(h2 + 1, t) for t in (t2, t1 - 1))
    return upto - before


def _log_counts(size: int, corners: Ranks) -> tuple[Floats, Floats]:
    """Return the logarithms of the numbers of subsets of boxes, and bounds on their errors."""
    h1, h2, t1, t2 = corners
    upto = _subtract(*_log_count_within(size, h1, t2), *_log_count_within(size, h2 + 1, t2))
    before = _subtract(*_log_count_within(size, h1, t1 - 1), *_log_count_within(size, h2 + 1, t1 - 1))
    value, off = _subtract(*upto, *before)
    for box in np.flatnonzero(np.isinf(off)).tolist():
        with precise(int(t2[box])):
            value[box] = float(count_subsets(size, corners[:, box]).log())
        off[box] = _LOG_BINOMIAL_ERROR * (value[box] + 64.0)
    return value, off


def _log_count_within(size: int, h: Ranks, t: Ranks) -> tuple[Floats, Floats]:
    """Return log C(t-h+1, size-h), and a bound on its error."""
    value = log_binomial_float(size - h, t - size + 1)
    return value, _LOG_BINOMIAL_ERROR * (value + 64.0)


def _subtract(log_a: Floats, off_a: Floats, log_b: Floats, off_b: Floats) -> tuple[Floats, Floats]:
    """Return log(a - b) from log a and log b, and a bound on its error; infinite where that might be large."""
    with np.errstate(divide="ignore", invalid="ignore"):
        share = -np.expm1(np.where(log_b == -np.inf, -np.inf, log_b - log_a))
        value = np.where(share > 0.0, log_a + np.log(share), -np.inf)
        # d log(a - b) = (a d log a - b d log b) / (a - b)
        off = 2.0 * (off_a + np.where(log_b == -np.inf, 0.0, off_b)) / share
        # The difference of two counts that are both 1 is certainly 0.
        none = (share <= 0.0) & (log_a == 0.0)
    return value, np.where(none, 0.0, np.where(off < 2.0**-10, off, np.inf))

"""The laws of releases with counts and a shortfall, compared between small inputs and all their neighbours.

A release with counts shows a selection y and a noisy count for each item, with probability law(y) times the product of
discrete Laplace probabilities exp(-rate |c_i - f_i|) / Z around the scores f, in steps. Between neighbours f and g the
log ratio at (y, c) is largest where every c_i is one of the two scores; the counts then add exactly rate * sum |f_i -
g_i| over the items of y. A shortfall is one more such number, around the lead of y in place of a score.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import chain, count

from discreet.evidence import definition
from discreet.evidence.neighbours import Family, Scores, move
from discreet.evidence.report import SLACK, Failure, Outcome, Pair
from discreet.evidence.visible_laws import Departure, Laws, find_departure, log_ratios, positions_of
from discreet.evidence.walk import walk
from discreet.exact.entropy import Entropy
from discreet.mechanisms.base import Mechanism, Prepared
from discreet.mechanisms.tally import Selection
from discreet.release.release import Release, Shortfall
from discreet.release.request import Randomness, make_request
from discreet.sources.arrays.array import ArraySource

_RUNS = 4000
"""The number of bit strings that are walked; at the rates 1 and 1/2 they decide 83% and 71% of the probability."""

_MARK = 10**6
"""More steps than any score of a small input."""

_LEADS = range(-3, 4)
"""The shortfalls that are compared with the definition. A centre that is wrong by a step shows in any range."""


@dataclass(frozen=True)
class Counted:
    """The result of comparing all neighbours of one trial of counts, of a shortfall, or of both.

    Attributes
    ----------
    pairs
        The number of pairs of neighbouring inputs.
    worst
        An upper bound on the largest log ratio, as a share of the whole epsilon.
    pair
        The pair with the largest ratio.
    counts, shortfall
        The largest log ratio of the counts alone, and of the shortfall given the list, as shares of their epsilons;
        exact, and 0 without them.
    rate, shortfall_rate
        The rates of the noises that the release draws, or None without them.
    shown
        A shortfall as it is shown, or None without one.
    departure
        The outcome with a shortfall that departs most from the definition, None if all agree.
    """

    pairs: int
    worst: float
    pair: Pair
    counts: Fraction = Fraction(0)
    shortfall: Fraction = Fraction(0)
    rate: Fraction | None = None
    shortfall_rate: Fraction | None = None
    shown: Shortfall | None = None
    departure: Departure | None = None

    @property
    def holds(self) -> bool:
        """True if no ratio exceeds its epsilon."""
        return self.worst <= 1.0 + SLACK and self.counts <= 1 and self.shortfall <= 1


def verify_counts(
    mechanism: Mechanism,
    k: int,
    family: Family,
    *,
    epsilon: Fraction,
    counts: Fraction | None = None,
    shortfall: Fraction | None = None,
    grid: Fraction = Fraction(1),
    per_user: int | None = None,
) -> Counted:
    """Compare every input of a family with all its neighbours, for users who touch at most `per_user` items.

    The releases have counts, a shortfall or both. A shortfall is also compared with the definition.
    """
    laws = CountedLaws(mechanism, k, epsilon, family, grid, per_user, counts=counts, shortfall=shortfall)
    found = []
    for scores in family.scores:
        if per_user is None:
            others = list(family.neighbours(scores))
        else:
            others = [move(scores, change) for change in family.changes_by_users(per_user) if any(change)]
        found += [(*laws.apart(scores, other), (scores, other)) for other in others]
    ratios, counted, leads, pairs = zip(*found, strict=True)
    worst = max(range(len(found)), key=ratios.__getitem__)
    made = Counted(len(found), ratios[worst], laws.pair(*pairs[worst]), max(counted), max(leads))
    if counts is not None:
        made = replace(made, rate=laws.rate(COUNT))
    if shortfall is None:
        return made
    departures = [find_departure(laws, scores) for scores in dict.fromkeys(chain.from_iterable(pairs))]
    farthest = max((one for one in departures if one is not None), key=lambda one: one.size, default=None)
    return replace(made, shortfall_rate=laws.rate(LEAD), shown=laws.shown, departure=farthest)


@dataclass(frozen=True, eq=False, repr=False)
class BoundedScores(ArraySource):
    """Scores with a stated bound on the number of items per user."""

    max_items_per_user: int | None = None


NoisyNumber = str | tuple[str, ...]
"""A noisy number of a release: the count of an item, or the shortfall of the released items."""

COUNT, LEAD = str, tuple
"""The types of the two kinds of noisy numbers."""


class CountedLaws(Laws):
    """The laws of selections with noisy numbers: those of the selections, and the centres of the numbers."""

    def __init__(
        self,
        mechanism: Mechanism,
        k: int,
        epsilon: Fraction,
        family: Family,
        grid: Fraction,
        per_user: int | None,
        *,
        counts: Fraction | None = None,
        shortfall: Fraction | None = None,
    ) -> None:
        super().__init__(mechanism, k, epsilon, family)
        self._grid, self._per_user = grid, per_user
        self.request = make_request(
            self.source(family.scores[0]), k, epsilon, mechanism=mechanism, sensitivity=family.sensitivity,
            adjacency=family.adjacency, counts=counts, shortfall=shortfall,
        )  # fmt: skip
        self._rates: dict[type, set[Fraction]] = {COUNT: set(), LEAD: set()}
        self._centres: dict[Scores, dict[NoisyNumber, int | Fraction]] = {}
        self.shown: Shortfall | None = None

    def apart(self, scores: Scores, other: Scores) -> tuple[float, Fraction, Fraction]:
        """Return the largest log ratio of two inputs as a share of epsilon, and those of counts and shortfall alone."""
        table, promised = self.table([scores, other]), self.guarantee
        selection = log_ratios(table.logs[0], table.logs[1:])[0] + table.off.sum()
        counts = [self._log_ratio(scores, other, outcome[0]) for outcome in table.outcomes]
        leads = [self._log_ratio(scores, other, [outcome[0]]) for outcome in table.outcomes]
        worst = max(one + float(n + lead) for one, n, lead in zip(selection.tolist(), counts, leads, strict=True))
        own = max(counts) / (promised.counts_epsilon or 1), max(leads) / (promised.shortfall_epsilon or 1)
        return worst / float(promised.epsilon), *own

    def _log_ratio(self, scores: Scores, other: Scores, numbers: Sequence[NoisyNumber]) -> Fraction:
        """Return the largest log ratio of some numbers: for each the rate times the distance of its centres."""
        here, there = self._centres[scores], self._centres[other]
        known = [number for number in numbers if number in here and number in there]
        return sum(
            (self.rate(type(number)) * abs(self._steps(here[number] - there[number])) for number in known), Fraction(0)
        )

    def rate(self, kind: type) -> Fraction:
        """Return the one rate at which the release draws the noise of a kind of number, in steps of the grid."""
        (rate,) = self._rates[kind]
        return rate

    def listed(self, scores: Scores) -> dict[Outcome, float]:
        found: dict[Outcome, float] = {}
        for outcome, (log, _) in self.law(scores).items():
            lead = self._centres[scores].get(outcome[0])
            if lead is None:
                # An empty list has no shortfall.
                found[outcome[:2]] = log
                continue
            for steps in _LEADS:
                noise = definition.discrete_laplace_log(int(steps - self._steps(lead)), self.rate(LEAD))
                found[*outcome[:2], steps] = log + noise
        return found

    def defined(self, scores: Scores) -> dict[Outcome, float]:
        limit, asked = self.family.sensitivity, self.guarantee.shortfall_epsilon
        rate = definition.shortfall_rate(asked, limit.down, limit.up, self.family.adjacency, self._grid)
        found: dict[Outcome, float] = {}
        for outcome, log in super().defined(scores).items():
            if outcome[0]:
                terms = scores, positions_of(outcome[0]), rate, self._grid
                found |= {(*outcome, steps): log + definition.shortfall_log(steps, *terms) for steps in _LEADS}
            else:
                found[outcome] = log
        return found

    def source(self, scores: Scores) -> ArraySource:
        made = super().source(scores)
        return BoundedScores(made.scores, made.labels, made.unit, self._grid, max_items_per_user=self._per_user)

    def release(self, scores: Scores, source: ArraySource, draw: Callable[[Prepared], Selection]) -> Release:
        """Release with noise that brings every number to a value that depends on its item alone, or to 0.

        All inputs then show the same numbers. An interval around the true score, a list in the order of true scores, or
        noise that is shared, scaled or left out would show as another outcome.
        """
        centred = numbers_of(self._with_noise(source, draw, lambda call: 0))
        self._centres.setdefault(scores, {}).update(centred)
        # Noise that differs between calls shows which call is for which number.
        marked = numbers_of(self._with_noise(source, draw, lambda call: (call + 1) * _MARK))
        calls = {self._steps(value - centred[number]): number for number, value in marked.items()}

        def aim(call: int) -> int:
            number = calls.get(Fraction((call + 1) * _MARK))
            if number is None:
                return 0
            return int((ord(number) if isinstance(number, str) else 0) - self._steps(centred[number]))

        aimed = self._with_noise(source, draw, aim, calls)
        self.shown = aimed.shortfall or self.shown
        return aimed

    def _with_noise(
        self,
        source: ArraySource,
        draw: Callable[[Prepared], Selection],
        noise: Callable[[int], int],
        numbers: Mapping[Fraction, NoisyNumber] | None = None,
    ) -> Release:
        """Release with the noise that `noise` returns for each call, in steps; note the rates for `numbers` by mark."""
        calls = count()

        def scripted_noise(rate: Fraction) -> int:
            call = next(calls)
            if numbers is not None:
                number = numbers.get(Fraction((call + 1) * _MARK))
                for kind in [COUNT, LEAD] if number is None else [type(number)]:
                    self._rates[kind].add(rate)
            return noise(call)

        counted = self.request.count_mechanism
        # The floor at zero is post-processing and could only hide a difference.
        counted = None if counted is None else replace(counted, floor=False)
        request = replace(self.request, source=source, count_mechanism=counted)
        return request.draw(Randomness(draw, scripted_noise))

    def _steps(self, value: int | Fraction) -> Fraction:
        return Fraction(value) / self._grid


def numbers_of(release: Release) -> dict[NoisyNumber, int | Fraction]:
    """Return the noisy numbers of a release: the counts by item, and the shortfall by the released items."""
    numbers: dict[NoisyNumber, int | Fraction] = {count.item: count.value for count in release.counts or []}
    if release.shortfall is not None:
        numbers[tuple(release.items)] = release.shortfall.value
    return numbers


def misdrawn(rate: Fraction) -> list[Failure]:
    """Check the noise that `top_k` draws at a rate against the definition, on all short strings of bits."""

    def draw_noise(entropy: Entropy) -> int:
        draw = Randomness.of(entropy).noise
        assert draw is not None, "a release has noise to draw"
        return draw(rate)

    decided, undecided = walk(draw_noise, _RUNS)
    for steps in dict.fromkeys([*range(-3, 4), *decided]):
        low, defined = float(decided.get(steps, 0)), math.exp(definition.discrete_laplace_log(steps, rate))
        if not low - 1e-12 <= defined <= low + float(undecided) + 1e-12:
            chance = f"{low:.6g} to {low + float(undecided):.6g}, by definition {defined:.6g}"
            return [Failure("noise", f"noise of counts at the rate {rate} is {steps} with probability {chance}")]
    return []

"""Plan a release by partition selection from a sketch: find items at one part of epsilon, select at the rest.

Each item on the curve of the sketch is taken to be touched by the fewest people that its score allows, each of whom has
`max_items_per_user` items, and a number of more items to have the score of the last rank. `utility` and `expected` draw
whole releases on these assumptions. A search for epsilon needs numbers without chance: it multiplies the probability
that the whole top-k is found by that of the goal when every other item is found too (docs/proofs.md, 8.4).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from math import ceil, exp, log
from typing import Any, ClassVar

import numpy as np

from discreet.errors import InvalidTypeError, InvalidValueError
from discreet.exact.arrays import Ranks
from discreet.exact.entropy import Entropy
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.partition_selection import PartitionSelection
from discreet.mechanisms.tally import Selection, Tally
from discreet.privacy import Sensitivity
from discreet.release.request import Request
from discreet.release.sketch import Sketch

_MOST_PEOPLE = 2**50
"""More people than this on an item count as this many, so that sums of weights fit 64 bits."""

_NEVER = -700.0
"""The logarithm of a probability that counts as 0."""

ALL_FOUND = "counting only lists for which the whole top k was found, among as many other items as there can be"
"""The event whose probability a search for epsilon computes, in words."""


@dataclass(frozen=True, repr=False, eq=False)
class AmongFound(Mechanism):
    """A mechanism that selects among the items that partition selection finds; only its draws are known.

    Attributes
    ----------
    selection
        The mechanism that selects.
    curve
        A sketch with the terms of the partition selection.
    """

    name: ClassVar[str] = "among-found"
    ordered: ClassVar[bool] = False

    selection: Mechanism
    curve: Sketch

    def __repr__(self) -> str:
        return f"{self.selection!r} among the items found"

    @property
    def may_release_fewer(self) -> bool:  # type: ignore[override]  # a constant of other mechanisms
        """True if the selection itself may; an item that is missing because too few were found counts as a bad one."""
        return self.selection.may_release_fewer

    def parameters(self) -> dict[str, Any]:
        return self.selection.parameters()

    def zcdp(self, epsilon: Fraction, k: int) -> Fraction:
        raise InvalidValueError(f"mechanism must be one for a release, not {self!r}")

    def unit_cost(self, s: Fraction, k: int) -> Fraction:
        return self.selection.unit_cost(s, k)

    def prepare(self, tally: Tally, k: int, epsilon: Fraction, sensitivity: Sensitivity) -> PreparedFound:
        return PreparedFound(self, tally, k, epsilon, sensitivity, self.plan(k, epsilon))

    def plan(self, k: int, epsilon: Fraction) -> PartitionSelection:
        """Return the partition selection of a release of k items."""
        terms = self.curve.terms
        assert terms is not None, "among_found checks it"
        # A sketch does not foresee the choice, and says so.
        return terms.without_choice().plan(k, epsilon, adjacency=self.curve.adjacency)

    def find_top(self, k: int, epsilon: Fraction) -> tuple[float, Fraction]:
        """Return the probability that the whole top-k is found, and the rest of epsilon, for the selection.

        Both are 0 at an epsilon that is too small for the partition selection.
        """
        try:
            found = self.plan(k, epsilon)
        except InvalidValueError:
            return 0.0, Fraction(0)
        firsts, sums, items = self.list_sums(found)
        ends = np.minimum(firsts + items, k)
        nats = 0.0
        for first, end, added in zip(firsts.tolist(), ends.tolist(), sums.tolist(), strict=True):
            if first >= k or nats < _NEVER:
                break
            chance = float(found.keep_probability(added).mid())
            nats += (end - first) * (log(chance) if chance > 0.0 else _NEVER)
        return exp(nats), epsilon - found.epsilon

    def list_sums(self, found: PartitionSelection) -> tuple[Ranks, Ranks, Ranks]:
        """Return the first rank, what the people of each item add up to, and the number of items, of each run."""
        firsts, people, items = _list_people(self.curve)
        return firsts, people * found.weigh(found.most_items), items


@lru_cache(maxsize=8)
def _list_people(curve: Sketch) -> tuple[Ranks, Ranks, Ranks]:
    """Return the runs of a curve with the fewest people who can add up to each score, as `list_sums` does."""
    tally, up = curve.tally(), curve.sensitivity.up
    assert tally.last is not None, "the items behind the last rank are alike"
    firsts, items = np.append(0, tally.last[:-1] + 1), np.diff(tally.last, prepend=-1)
    scores = (tally.exact(rank) for rank in firsts.tolist())
    # Only people who add something can have a score above 0.
    people = [min(ceil(score / up), _MOST_PEOPLE) if score and up else 0 for score in scores]
    return firsts, np.array(people, np.int64), items


@dataclass(frozen=True, repr=False, eq=False)
class PreparedFound:
    """A mechanism among found items, on the curve of a sketch.

    Attributes
    ----------
    fills
        True if a draw has k ranks, of which the last ranks stand for items that the list lacks; False if it has the
        ranks of the released items alone.
    """

    mechanism: AmongFound
    tally: Tally
    k: int
    epsilon: Fraction
    sensitivity: Sensitivity
    found: PartitionSelection
    fills: bool = True

    def select(self, entropy: Entropy) -> Selection:
        return Selection(self.draw(entropy))

    def draw(self, entropy: Entropy) -> Ranks:
        """Draw the ranks of a release on the whole curve."""
        firsts, sums, items = self.mechanism.list_sums(self.found)
        kept = self.found.sample_kept(entropy, sums, items)
        runs = np.flatnonzero(kept)
        sizes = kept[runs]
        ends = np.cumsum(sizes)
        total = int(ends[-1]) if len(ends) else 0
        chosen = np.arange(total)
        if total > self.k:
            scores = [self.tally.exact(rank) for rank in firsts[runs].tolist()]
            among = Tally.of_runs(scores, sizes.tolist())
            rest = self.epsilon - self.found.epsilon
            prepared = self.mechanism.selection.prepare(among, self.k, rest, self.sensitivity)
            chosen = np.sort(prepared.draw(entropy))
        at = np.searchsorted(ends, chosen, side="right")
        # Items of one run are alike: those released are a uniform subset of the run.
        drawn = [
            firsts[runs[run]] + entropy.subset(int(count), int(items[runs[run]]) - 1)
            for run, count in zip(*(each.tolist() for each in np.unique(at, return_counts=True)), strict=True)
        ]
        missing = np.arange(self.tally.d - (self.k - len(chosen)) * self.fills, self.tally.d)
        return np.concatenate([*drawn, missing])


def as_released(prepared: Any) -> Any:
    """Return a prepared mechanism whose draws are lists as they are released: short where few items are found."""
    return replace(prepared, fills=False) if isinstance(prepared, PreparedFound) else prepared


def among_found(request: Request) -> Request:
    """Return the request with its mechanism among found items, if it is for a sketch under partition selection."""
    source, promised = request.source, request.guarantee
    if not isinstance(source, Sketch) or source.terms is None:
        return request
    if request.k >= source.ranks[-1]:
        raise InvalidValueError(f"k must be below {source.ranks[-1]:,}, the last rank of the sketch, not {request.k:,}")
    mechanism = AmongFound(promised.mechanism, source)
    # Raise here for terms that leave nothing for the selection.
    mechanism.plan(request.k, promised.selection_epsilon)
    return replace(request, guarantee=replace(promised, mechanism=mechanism))


def check_listed(request: Request) -> None:
    """Raise if a request is for a sketch under partition selection, of which single sets have no probability."""
    if isinstance(request.guarantee.mechanism, AmongFound):
        raise InvalidTypeError(
            "scores must be of a public list of items here, not a sketch of items that nobody listed"
        )

"""What a draw selects, before anybody knows which items that is: ranks, and some of a range of ranks."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

import numpy as np

from discreet.exact.arrays import Ranks
from discreet.exact.entropy import Entropy

CORE, OTHERWISE = "core", "otherwise"
"""What the candidates of a mechanism that chooses between several are called."""


@dataclass(frozen=True, eq=False, repr=False)
class UniformSubset:
    """A uniform subset of `count` of the ranks first..last, still to be drawn."""

    count: int
    first: int
    last: int
    entropy: Entropy

    def draw(self) -> Ranks:
        """Returns a uniform subset of the range, in ascending order."""
        return self.first + self.entropy.subset(self.count, self.last - self.first)


class NoisyValues(Protocol):
    """The noisy scores of some ranks, as exactly as anybody asks."""

    def to_steps(self, grid: Fraction) -> list[int]:
        """Each in whole steps of a grid, the nearest: floor(value / grid + 1/2)."""


@dataclass(frozen=True, eq=False, repr=False)
class Selection:
    """Ranks one by one, all ranks below `head`, and a uniform subset of a range.

    Where the ranks have an order that is released, they are all given one by one, with their values where a mechanism
    releases those. Where a mechanism chose between candidates, `chosen` says which: that is public. `cuts_no_run` says
    that ranks are given by `head` and the range alone, and that neither begins or ends inside a run of equal scores.
    """

    ranks: Ranks
    head: int = 0
    subset: UniformSubset | None = None
    values: NoisyValues | None = None
    chosen: str | None = None
    cuts_no_run: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether nothing is selected."""
        return self.is_listed and not len(self.ranks)

    @property
    def is_listed(self) -> bool:
        """Whether all ranks are given one by one."""
        return not self.head and self.subset is None

    def draw_ranks(self) -> Ranks:
        """Returns all ranks; those still to be drawn are drawn now."""
        if self.is_listed:
            return self.ranks
        subset = np.empty(0, np.int64) if self.subset is None else self.subset.draw()
        return np.concatenate([np.arange(self.head), subset, self.ranks])

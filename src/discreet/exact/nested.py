"""Bounds on nested classes: classes (a, b) of mass u(a) v(b) C(a+b, a), for 1 <= a <= k and 0 <= b <= m.

Cells of neighbouring a, and of neighbouring b, have masses that are known at once. With U the mass of a cell of a and
a' its last member, let R(b) be the sum of U C(a'+b, a') over all cells: at least the sum of u(a) C(a+b, a). It is a
polynomial in b + 1 without negative coefficients, so that log R is convex in log(b + 1), and a chord between two levels
of b is an upper bound between them. A cell of b has at most its own mass times that bound at its last member. Floats
choose cells and levels, and any choice is valid: they are cut while the bounds exceed what they likely bound by much.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Protocol

import numpy as np

from discreet.exact.arrays import Floats, Mask, Ranks
from discreet.exact.ball import bound_above, log_binomial_upper


class Side(Protocol):
    """The masses on one axis."""

    @property
    def last(self) -> int:
        """The last index."""

    @property
    def known_last(self) -> int:
        """The last index whose mass costs nothing to look up."""

    def sort_all(self) -> None:
        """Makes all indices known."""

    def log_masses(self, first: Ranks, last: Ranks) -> Floats:
        """The log masses of cells, right to a relative 2^-41, and -inf only where there is none."""

    def log_masses_in_a_row(self, first: Ranks) -> Floats:
        """The same for cells that end where the next begins: the first begins with all indices, the last ends there."""


@dataclass(frozen=True, eq=False, repr=False)
class Cells:
    """Ranges of indices, with or without those that have no mass.

    Attributes
    ----------
    first, last
        The first and the last index of each.
    log_mass
        At least the log mass of each, -inf where there is none.
    """

    first: Ranks
    last: Ranks
    log_mass: Floats

    @classmethod
    def of(cls, side: Side, first: Ranks, last: Ranks) -> Cells:
        log_mass = side.log_masses(first, last)
        found = log_mass > -np.inf
        return cls(first[found], last[found], bound_above(log_mass[found]))

    @classmethod
    def in_a_row(cls, side: Side, first: Ranks, last: Ranks) -> Cells:
        """All indices from the first of these on, where each cell begins after the last of the one before it.

        Those without a mass are kept, with -inf. Of many sides at once, there is a row of masses for each.
        """
        # An infinite bound less an infinite one is no number, and stands for -inf.
        return cls(first, last, np.fmax(bound_above(side.log_masses_in_a_row(first)), -np.inf))

    def __getitem__(self, chosen: Mask) -> Cells:
        return Cells(self.first[chosen], self.last[chosen], self.log_mass[chosen])

    def cut(self, side: Side, pieces: Ranks) -> Cells:
        """The same with each in so many pieces of about one length."""
        whole, width = pieces <= 1, self.last - self.first + 1
        number, count = count_up(pieces[~whole]), np.repeat(pieces[~whole], pieces[~whole])
        begin, length = np.repeat(self.first[~whole], pieces[~whole]), np.repeat(width[~whole], pieces[~whole])
        # Without passing 2^63.
        start, end = (
            begin - last + length // count * i + length % count * i // count
            for i, last in ((number, 0), (number + 1, 1))
        )
        new = Cells.of(side, start[end >= start], end[end >= start])
        return Cells(
            np.concatenate([self.first[whole], new.first]),
            np.concatenate([self.last[whole], new.last]),
            np.concatenate([self.log_mass[whole], new.log_mass]),
        )


@dataclass(frozen=True, eq=False, repr=False)
class Places:
    """Where some b are among levels: after which level, and how far on the way from there to the next."""

    level: Ranks
    way: Floats

    def __getitem__(self, chosen: Mask | Ranks) -> Places:
        return Places(self.level[chosen], self.way[chosen])


@dataclass(frozen=True, eq=False, repr=False)
class Levels:
    """Some b, from 0 to m, with the terms of R at each.

    Attributes
    ----------
    b
        The levels.
    rows
        For each, at least the logarithm of U C(a'+b, a') for all cells of a; of many sides at once, for each of them.
    """

    b: Ranks
    rows: Floats

    @classmethod
    def at(cls, b: Ranks, a: Cells) -> Levels:
        return cls(b, a.log_mass + bound_above(log_binomial_upper(a.last, b[:, None])))

    @cached_property
    def log_r(self) -> Floats:
        """Log R at each level."""
        return log_sum_exp(self.rows)

    @cached_property
    def width(self) -> Floats:
        """How far log(b + 1) is from each level to the next."""
        return log_ratio(self.b[:-1], self.b[1:])

    def place(self, b: Ranks) -> Places:
        level = np.maximum(self.b.searchsorted(b) - 1, 0)
        return Places(level, log_ratio(self.b[level], b) / self.width[level])

    def bound(self, at: Places) -> Floats:
        """The chord at some places: at least log R but for rounding."""
        low = self.log_r[..., at.level]
        return low + at.way * (self.log_r[..., at.level + 1] - low)

    def row(self, b: int) -> Floats:
        """At least the logarithm of each term of R at some b, by a chord for each: in sum not above `bound`.

        That is Hoelder's inequality, but for rounding.
        """
        level = max(0, int(self.b.searchsorted(b)) - 1)
        begin, end = (int(each) for each in self.b[level : level + 2])
        way = math.log1p((b - begin) / (begin + 1)) / math.log1p((end - begin) / (begin + 1))
        low, high = self.rows[level : level + 2]
        with np.errstate(invalid="ignore"):
            # Where a cell has no mass, there is none at any level.
            terms: Floats = np.fmax(low + way * (high - low), -np.inf)
        return terms

    @cached_property
    def sags(self) -> Floats:
        """About how far log R is below the middle of each chord: a quarter of what the slopes beside it allow for."""
        slope = (self.log_r[1:] - self.log_r[:-1]) / self.width
        rises = np.maximum(slope[1:] - slope[:-1], 0.0) + 2.0**-40
        before, after = np.append(max(0.0, slope[0]), rises), np.append(rises, 1e9)
        sags: Floats = 0.25 * self.width * (before * after / (before + after))
        return sags


@dataclass(frozen=True, eq=False, repr=False)
class Enclosure:
    """Cells of a, cells of b and levels, with what all of them bound.

    Attributes
    ----------
    a, b
        The cells.
    levels
        What bounds R.
    at_first, at_last
        Where the first and the last of each cell of b are among the levels.
    log_masses
        At least the log mass of each cell of b over all a, but for what `log_slack` is for.
    """

    a: Cells
    b: Cells
    levels: Levels
    at_first: Places
    at_last: Places
    log_masses: Floats

    @classmethod
    def of(cls, a: Cells, b: Cells, levels: Levels) -> Enclosure:
        return cls.at(a, b, levels, levels.place(b.first), levels.place(b.last))

    @classmethod
    def at(cls, a: Cells, b: Cells, levels: Levels, at_first: Places, at_last: Places) -> Enclosure:
        """The same where it is known where cells of b are."""
        return cls(a, b, levels, at_first, at_last, b.log_mass + levels.bound(at_last))

    def drop_empty(self) -> Enclosure:
        """The same without cells that have no mass."""
        a, b = self.a.log_mass > -np.inf, self.b.log_mass > -np.inf
        levels = Levels(self.levels.b, self.levels.rows[:, a])
        return Enclosure(self.a[a], self.b[b], levels, self.at_first[b], self.at_last[b], self.log_masses[b])

    def split(self) -> list[Enclosure]:
        """One for each of many sides that were enclosed at once."""
        a, b, levels = self.a, self.b, self.levels
        count = len(b.log_mass)
        # All of them may share what is alike.
        a_masses = np.broadcast_to(a.log_mass, (count, len(a.first)))
        rows = np.broadcast_to(levels.rows, (count, len(levels.b), len(a.first)))
        return [
            Enclosure(
                Cells(a.first, a.last, a_masses[i]), Cells(b.first, b.last, b.log_mass[i]), Levels(levels.b, rows[i]),
                self.at_first, self.at_last, self.log_masses[i],
            )
            for i in range(count)
        ]  # fmt: skip


@lru_cache(maxsize=256)
def log_slack(k: int, m: int, cells: int, bits: int) -> float:
    """What the chord must be raised by to be above the sum of integer weights that a row of a gets.

    Sums of exponentials and chords are right to a relative 2^-41 of the largest log binomial, and terms that are lost
    in rounding are a share below 2^-40 of all. Integer weights of so many bits are raised by a relative 2^-20 and two
    units each.
    """
    largest = float(log_binomial_upper(np.array([k]), np.array([m]))[0])
    return 2.0**-18 + 2.0**-36 * (largest + 64.0) + float(np.log1p(cells * 2.0 ** (1 - bits)))


def log_ratio(low: Ranks, high: Ranks) -> Floats:
    """Log((high + 1) / (low + 1))."""
    return np.log1p((high - low) / (low + 1.0))


def log_sum_exp(rows: Floats) -> Floats:
    """The logarithm of the sum of exponentials of each row, a term below 2^-115 of the largest being taken for that."""
    top = rows.max(axis=-1)
    # NumPy takes many times as long for an exponential that is too small for a float.
    terms = np.maximum(rows - top[..., None], -80.0)
    logs: Floats = top + np.log(np.exp(terms, out=terms).sum(axis=-1))
    return logs


def count_up(counts: Ranks) -> Ranks:
    """0, 1, ... up to before each of some counts."""
    return np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)

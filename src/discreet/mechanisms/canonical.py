"""The canonical mechanism: one k-subset drawn by a loss that looks at its weakest link (Shekelyan and Loukides, 2022).

For a subset y with smallest score m inside and largest score M outside, loss(y) = (1-gamma) max(M, m) - gamma m. Sort
the items, ranks from 0. A subset other than the top-k holds ranks 0..h-1, lacks rank h < k, and has a worst rank
t >= k; all C(t-h-1, k-1-h) subsets of the class (h, t) have the same loss. The paper's printed class size is another
one, which breaks epsilon; this is the number of ways to choose the k-1-h ranks strictly between h and t.

The top-k is the reference: its weight is 1, and every other loss is counted from its loss. With x[k-1] subtracted
exactly, both parts of that excess are non-negative, so that floats meet no cancellation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from math import ceil, comb, inf, log
from typing import Any, ClassVar

import numpy as np
from flint import arb

from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.exact.arrays import Floats, Ranks
from discreet.exact.ball import ball, log_binomial, log_binomial_upper, sample_bernoulli_exp
from discreet.exact.boxes import Boxes, enclose
from discreet.exact.entropy import Entropy
from discreet.exact.envelope import SCALE, Envelope
from discreet.exact.layout import Sizes
from discreet.exact.race import sample_winner
from discreet.mechanisms.base import Form, Mechanism, scale
from discreet.noise import GUMBEL, NOISES, Noise, check_noise, noise_of
from discreet.privacy import Number, Sensitivity, exact
from discreet.selection import Selection, UniformSubset
from discreet.tally import LARGEST, IntegerColumn, Tally, to_float

Class = tuple[int, int]
"""A class of subsets (h, t). The top-k is the class (k, k-1): it lacks no rank below k, and its worst rank is k-1."""

DEFAULT_GAMMA = "3/4"
"""Over many shapes of scores it needs least epsilon, or little more than the gamma that does (docs/choosing.md)."""

_ROUNDED_GAMMA = "1/2"
"""The one that losses can be rounded up with."""

CONTENDERS = ("1/3", "1/2", "2/3", "3/4", "7/8", "15/16", "1")
"""The gammas among which the best one is looked for: no other needs 3% less anywhere that we looked."""

GAMMAS = ("0", "1/3", "1/2", "3/4", "1")
"""The gammas that `verify --all` covers."""


@dataclass(frozen=True, init=False, repr=False)
class Canonical(Mechanism):
    """Releases a set of k items at once, by its weakest member and the best item left out.

    Parameters
    ----------
    gamma
        How the loss weighs the worst item taken against the best item left: a rational in [0, 1]. None stands for
        3/4, and with `ceil` for 1/2, which is what the paper's mechanism has.
    noise
        The name of a noise; "gumbel" makes it the exponential mechanism over subsets.
    ceil
        Round the loss up to whole multiples of the sensitivity; only with gamma = 1/2.

    Examples
    --------
    >>> Canonical()
    Canonical(gamma='3/4', noise='gumbel')
    >>> Canonical(gamma=1, noise="laplace")
    Canonical(gamma='1', noise='laplace')
    >>> Canonical(ceil=True)
    Canonical(gamma='1/2', noise='gumbel', ceil=True)
    """

    name: ClassVar[str] = "canonical"
    ordered: ClassVar[bool] = False

    gamma: Fraction
    noise: str
    ceil: bool

    def __init__(self, gamma: Number | None = None, noise: str = "gumbel", ceil: bool = False) -> None:
        if not isinstance(ceil, bool):
            raise InvalidTypeError(f"ceil must be True or False, not {quote(ceil)}")
        usual = _ROUNDED_GAMMA if ceil else DEFAULT_GAMMA
        share = check_gamma(usual if gamma is None else gamma)
        check_noise(noise)
        if ceil and share != Fraction(_ROUNDED_GAMMA):
            raise InvalidValueError(f"ceil must be False unless gamma is 1/2, but gamma is {quote(gamma)}")
        object.__setattr__(self, "gamma", share)
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "ceil", ceil)

    def __repr__(self) -> str:
        return f"Canonical(gamma='{self.gamma}', noise='{self.noise}'{', ceil=True' if self.ceil else ''})"

    def prepare(self, tally: Tally, k: int, epsilon: Fraction, sensitivity: Sensitivity) -> Prepared:
        losses = Losses(tally, k, scale(epsilon, sensitivity), self.gamma, sensitivity.delta if self.ceil else None)
        return Prepared(TailClasses(losses) if self.gamma == 1 else Classes(losses), noise_of(self))

    def zcdp(self, epsilon: Fraction, k: int) -> Fraction:
        return noise_of(self).zcdp(epsilon)

    def parameters(self) -> dict[str, Any]:
        return {"gamma": str(self.gamma), "noise": self.noise, "ceil": self.ceil}

    def unit_cost(self, s: Fraction, k: int) -> Fraction:
        return s * self.gamma

    @classmethod
    def variants(cls) -> list[Canonical]:
        rounded = [cls(noise=noise, ceil=True) for noise in NOISES]
        return [*(cls(gamma, noise) for gamma in GAMMAS for noise in NOISES), *rounded]

    @classmethod
    def contenders(cls) -> list[Canonical]:
        return [cls(gamma) for gamma in CONTENDERS]

    @property
    def label(self) -> str:
        noise = [self.noise] if self.needs_integrals else []
        return ", ".join([self.name, f"gamma = {self.gamma}", *noise, *(["rounded up"] if self.ceil else [])])

    @property
    def form(self) -> Form:
        return Form.UNKNOWN if self.needs_integrals else Form.CLASSES

    @property
    def is_linear(self) -> bool:
        # Where losses are rounded up to multiples of the sensitivity, half of it can move a loss by all of it.
        return not self.ceil


def check_gamma(gamma: Number) -> Fraction:
    """The weight of the worst item taken, exactly; it must be from 0 to 1."""
    share = exact(gamma, "gamma")
    if not 0 <= share <= 1:
        raise InvalidValueError(f"gamma must be from 0 to 1, not {quote(gamma)}")
    return share


@dataclass(frozen=True, eq=False, repr=False)
class Losses:
    """The loss of a class above that of the top-k, times s: as a rational, and as a float for proposals.

    `step` is delta where the loss is rounded up to multiples of it, else None.
    """

    tally: Tally
    k: int
    s: Fraction
    gamma: Fraction
    step: Fraction | None = None

    def excess(self, h: int, t: int) -> Fraction:
        """S * (loss(h, t) - loss(top-k)), where M is the score at rank h and m the one at rank t."""
        # (1-gamma) x[h] - gamma x[t] less (1-2 gamma) x[k-1]
        above, below = self.tally.gap(h, self.k - 1), self.tally.gap(self.k - 1, t)
        loss = (1 - self.gamma) * above + self.gamma * below
        if self.step is not None:
            loss = ceil(loss / self.step) * self.step
        return self.s * loss

    def height_h(self, h: Ranks) -> Floats:
        """What the best score left out adds to the excess, in units of s or, where the loss is rounded, of steps."""
        if self.gamma == 1:
            return np.zeros(len(h))
        return self.tally.gaps(h, np.full_like(h, self.k - 1), self._units[0])

    def height_t(self, t: Ranks) -> Floats:
        """What the worst score taken adds to the excess, in the same units."""
        if self.gamma == 0:
            return np.zeros(len(t))
        return self.tally.gaps(np.full_like(t, self.k - 1), t, self._units[1])

    def heights(self, h: Ranks, t: Ranks) -> tuple[Floats, Floats]:
        """Both heights, by one look-up where they have one unit."""
        if self._units[0] != self._units[1]:
            return self.height_h(h), self.height_t(t)
        edge = np.full(max(len(h), len(t)), self.k - 1)
        upper, lower = np.concatenate([h, edge[: len(t)]]), np.concatenate([edge[: len(h)], t])
        both = self.tally.gaps(upper, lower, self._units[0])
        return both[: len(h)], both[len(h) :]

    def gain(self, height_h: Floats, height_t: Floats, h: Ranks, t: Ranks) -> Floats:
        """Minus the excess: a sum of two terms of one sign, and so right to a relative 2^-48."""
        with np.errstate(all="ignore"):
            total = height_h + height_t
            if self.step is None:
                return -np.minimum(total, LARGEST)
            weight = min(to_float(self.s * self.step), LARGEST)
            rounded = (np.rint(total) if self._is_whole else np.ceil(total)) * weight
            # Where a float cannot tell on which side of a whole number of steps the loss is, it is counted exactly.
            close = ~(np.abs(total - np.rint(total)) > 2.0**-40 * total) & (not self._is_whole) | (total > 1e300)
        for i in np.flatnonzero(close).tolist():
            rounded[i] = to_float(self.excess(int(h[i]), int(t[i])))
        return -np.minimum(rounded, LARGEST)

    @cached_property
    def _is_whole(self) -> bool:
        """Whether losses are whole numbers of steps anyhow, which rounding up does not change."""
        column = self.tally.column
        return isinstance(column, IntegerColumn) and all((unit * column.unit).denominator == 1 for unit in self._units)

    def focus(self) -> None:
        """Tells the tally how far below the k-th score a worst score can be and still matter."""
        # All classes together have fewer than (e d / k)^k subsets, and a factor of e^-40 is not seen.
        log_count = self.k * (log(self.tally.d / self.k) + 1.0) + 40.0
        weight = to_float(self.s * self.gamma)
        self.tally.focus(self.k, log_count / weight if weight > 0.0 else inf)

    @cached_property
    def _units(self) -> tuple[Fraction, Fraction]:
        """What one unit of score adds to either height."""
        unit = self.s if self.step is None else 1 / self.step
        return unit * (1 - self.gamma), unit * self.gamma


@dataclass(frozen=True)
class ClassSizes:
    """At least the logarithm of the number of subsets in some classes, or a little less, for k items."""

    k: int

    def __call__(self, h: Ranks, t: Ranks) -> Floats:
        return log_binomial_upper(self.k - 1 - h, t - self.k)


@dataclass(frozen=True)
class TailSizes:
    """The same for classes by their worst rank alone."""

    k: int

    def __call__(self, h: Ranks, t: Ranks) -> Floats:
        return log_binomial_upper(np.full_like(t, self.k - 1), t - self.k + 1)


@dataclass(frozen=True, eq=False, repr=False)
class Classes:
    """All classes (h, t) with 0 <= h < k <= t < d, for any gamma."""

    losses: Losses

    @property
    def corners(self) -> tuple[int, int, int, int]:
        return 0, self.losses.k - 1, self.losses.k, self.losses.tally.d - 1

    @property
    def known_count(self) -> int:
        return self.losses.tally.known_count - 1

    def heights(self, h: Ranks, t: Ranks) -> tuple[Floats, Floats]:
        return self.losses.heights(h, t)

    def gain(self, height_h: Floats, height_t: Floats, h: Ranks, t: Ranks) -> Floats:
        return self.losses.gain(height_h, height_t, h, t)

    @property
    def size(self) -> Sizes:
        return ClassSizes(self.losses.k)

    def members(self, h: int, t: int) -> tuple[int, int]:
        """(n, r) such that the class has C(n, r) subsets."""
        return t - h - 1, self.losses.k - 1 - h

    def choice(self, h: int, t: int, entropy: Entropy) -> Selection:
        """A uniform subset of the class, to be drawn: ranks 0..h-1, rank t, and some of the ranks between h and t."""
        return _select_with_some(h, self.losses.k - 1 - h, h + 1, t, entropy)

    def subset(self, h: int, t: int, entropy: Entropy) -> Ranks:
        """Returns a uniform subset of the class."""
        return self.choice(h, t, entropy).draw_ranks()


@dataclass(frozen=True, eq=False, repr=False)
class TailClasses(Classes):
    """All classes by their worst rank t alone, for gamma = 1, where the loss sees nothing else; h is always 0."""

    @property
    def corners(self) -> tuple[int, int, int, int]:
        return 0, 0, self.losses.k, self.losses.tally.d - 1

    @property
    def size(self) -> Sizes:
        return TailSizes(self.losses.k)

    def members(self, h: int, t: int) -> tuple[int, int]:
        return t, self.losses.k - 1

    def choice(self, h: int, t: int, entropy: Entropy) -> Selection:
        """A uniform subset of the class, to be drawn: rank t and any k-1 of the ranks before it."""
        return _select_with_some(0, self.losses.k - 1, 0, t, entropy)


def _select_with_some(h: int, count: int, first: int, t: int, entropy: Entropy) -> Selection:
    """Returns ranks 0..h-1, rank t, and so many of the ranks from `first` to before t."""
    return Selection(np.array([t]), h, UniformSubset(count, first, t - 1, entropy) if count else None)


@dataclass(frozen=True, eq=False, repr=False)
class Prepared:
    """The canonical mechanism on a tally: boxes around its classes, built once, and draws from them."""

    classes: Classes
    noise: Noise = GUMBEL
    bits: int = field(default=SCALE, repr=False)

    @property
    def top(self) -> Class:
        """The class of the top-k."""
        return self.classes.losses.k, self.classes.losses.k - 1

    def draw(self, entropy: Entropy) -> Ranks:
        """Returns a k-subset of the ranks, distributed as the mechanism says."""
        return self.select(entropy).draw_ranks()

    def select(self, entropy: Entropy) -> Selection:
        """Returns a k-subset of the ranks, distributed as the mechanism says; all but the class may be open."""
        drawn = self.draw_class(entropy)
        if drawn == self.top:
            return Selection(np.empty(0, np.int64), self.classes.losses.k)
        return self.classes.choice(*drawn, entropy)

    def draw_class(self, entropy: Entropy) -> Class:
        """Returns the class of the subset that is released."""
        if self.noise.max_stable:
            return self._draw_by_weight(entropy)
        return sample_winner(_Streams(self), self.noise, entropy)

    def log_weight(self, cell: Class) -> arb:
        """A ball around the log weight of a whole class under a max-stable noise, that of the top-k being 0."""
        return -ball(self.excess(cell)) + self.log_size(cell)

    def excess(self, cell: Class) -> Fraction:
        """S times the loss of a class above that of the top-k."""
        return Fraction(0) if cell == self.top else self.classes.losses.excess(*cell)

    def size(self, cell: Class) -> int:
        """The number of subsets in a class."""
        return 1 if cell == self.top else comb(*self.classes.members(*cell))

    def log_size(self, cell: Class) -> arb:
        """A ball around the logarithm of the number of subsets in a class."""
        return arb(0) if cell == self.top else log_binomial(*self.classes.members(*cell))

    @cached_property
    def boxes(self) -> Boxes:
        # Under a noise without a floor the top-k may have any low value, with probability exp(-v) for -v, and a box
        # is asked for the more arrivals the more mass it wastes: then what the top-k weighs must not excuse waste.
        tight = not (self.noise.max_stable or self.noise.has_floor)
        self.classes.losses.focus()
        return enclose(self.classes, outside=-30.0 if tight else 0.0)

    @cached_property
    def envelope(self) -> Envelope:
        """Part 0 is the top-k, part j + 1 is box j."""
        return Envelope.over(np.append(0.0, self.boxes.log_mass()), self.bits)

    def log_acceptance(self, part: int, cell: Class) -> arb:
        """A ball around the log probability that a cell drawn from a part is kept: mass / (weight / cells)."""
        cells = 1 if part == 0 else self.boxes.cells(part - 1)
        return self.log_weight(cell) + arb(cells).log() - self.envelope.log_weight(part)

    def _draw_by_weight(self, entropy: Entropy) -> Class:
        """Returns a class with probability exactly proportional to its weight."""
        while True:
            part = self.envelope.pick(entropy)
            cell = self.top if part == 0 else self.boxes.cell(part - 1, entropy)
            if sample_bernoulli_exp(entropy, partial(self.log_acceptance, part, cell)):
                return cell


class _Streams:
    """The top-k and the boxes as streams of a race: an arrival is a cell, kept with probability size / bound."""

    def __init__(self, prepared: Prepared) -> None:
        self.prepared, self.boxes = prepared, prepared.boxes
        self.bound: Floats = np.append(0.0, self.boxes.gain)
        self.log_rate: Floats = np.append(0.0, self.boxes.size + self.boxes.log_cells())

    def rate(self, j: int) -> arb:
        return arb(1) if j == 0 else arb(float(self.boxes.size[j - 1])).exp() * self.boxes.cells(j - 1)

    def arrive(self, j: int, entropy: Entropy) -> Class | None:
        if j == 0:
            return self.prepared.top
        cell = self.boxes.cell(j - 1, entropy)
        bound = float(self.boxes.size[j - 1])
        return cell if sample_bernoulli_exp(entropy, lambda: self.prepared.log_size(cell) - arb(bound)) else None

    def gain(self, member: Class) -> arb:
        return -ball(self.prepared.excess(member))

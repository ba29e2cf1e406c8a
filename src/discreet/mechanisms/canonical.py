"""The canonical mechanism (Shekelyan and Loukides, 2022): a k-subset drawn by its worst item and the best left out.

For a subset y with smallest score m inside and largest score M outside, loss(y) = (1-gamma) max(M, m) - gamma m, which
one user moves by at most delta (docs/proofs.md, section 4). With ranks from 0, every subset other than the top-k holds
ranks 0..h-1, lacks rank h < k and has a worst rank t >= k; all C(t-h-1, k-1-h) subsets of the class (h, t) have the
same loss. (The class size printed in the paper is another one, with which the mechanism is not epsilon-private.)
Section 4.2 proves the sizes and losses. Both terms of the excess over the loss of the top-k are non-negative, once the
score at rank k-1 has been subtracted exactly, so floats do not cancel.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import cached_property, partial
from itertools import product
from math import ceil, comb
from typing import Any, ClassVar

import numpy as np
from flint import arb

from discreet.errors import InternalError, InvalidTypeError, InvalidValueError, quote
from discreet.exact.arrays import Floats, Ranks
from discreet.exact.ball import (
    LARGEST,
    MAX_SCANNED,
    EnvelopeError,
    ball,
    log_binomial,
    log_binomial_upper,
    sample_bernoulli_exp,
)
from discreet.exact.boxes import Boxes, Sizes, enclose
from discreet.exact.entropy import Entropy
from discreet.exact.envelope import WEIGHT_BITS, Envelope
from discreet.exact.race import sample_winner, scan_best
from discreet.mechanisms.base import Form, Mechanism, scale
from discreet.mechanisms.canonical_nested import NestedClasses
from discreet.mechanisms.noise import GUMBEL, NOISES, Noise, check_noise
from discreet.mechanisms.tally import IntegerColumn, Selection, Tally, UniformSubset, to_float
from discreet.privacy import Number, Sensitivity, exact

DEFAULT_GAMMA = "3/4"
"""Over many shapes of scores it needs the least epsilon, or little more than the best (docs/appendix/planning.md)."""

_ROUNDED_GAMMA = "1/2"
"""The only gamma with which losses can be rounded up."""

CONTENDERS = ("1/3", "1/2", "2/3", "3/4", "7/8", "15/16", "1")
"""The gammas that comparisons try; no other gamma tried needs 3% less epsilon for any scores tried."""

Class = tuple[int, int]
"""A class of subsets (h, t). The top-k is the class (k, k-1): it lacks no rank below k, and its worst rank is k-1."""

GAMMAS = ("0", "1/3", "1/2", "3/4", "1")
"""The gammas that `verify --all` covers."""


@dataclass(frozen=True, init=False, repr=False)
class Canonical(Mechanism):
    """A mechanism that releases a set of k items at once, by its worst item and the best item left out.

    Parameters
    ----------
    gamma
        The weight in the loss of the worst item taken against the best item left out: a rational in [0, 1]. None stands
        for 3/4, and with `ceil` for 1/2, the value of the paper.
    noise
        The name of a noise; "gumbel" makes it the exponential mechanism over subsets.
    ceil
        Round the loss up to multiples of the sensitivity; only with gamma = 1/2.

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
        step = sensitivity.delta if self.ceil else None
        losses = Losses(tally, k, scale(epsilon, sensitivity), self.gamma, step)
        return Prepared(TailClasses(losses) if self.gamma == 1 else Classes(losses), NOISES[self.noise])

    def zcdp(self, epsilon: Fraction, k: int) -> Fraction:
        return NOISES[self.noise].zcdp(epsilon)

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
        # A loss that is rounded up to multiples of the sensitivity can move by all of it if scores move by half of it.
        return not self.ceil


def check_gamma(gamma: Number) -> Fraction:
    """Return gamma as an exact rational; raise unless it is from 0 to 1."""
    share = exact(gamma, "gamma")
    if not 0 <= share <= 1:
        raise InvalidValueError(f"gamma must be from 0 to 1, not {quote(gamma)}")
    return share


@dataclass(frozen=True, eq=False, repr=False)
class Prepared:
    """The canonical mechanism on a tally: cells or boxes around its classes, built once, and draws from them.

    Losses are relative to that of the top-k, which has the weight 1.
    """

    classes: Classes
    noise: Noise = GUMBEL
    bits: int = field(default=WEIGHT_BITS, repr=False)

    @property
    def top(self) -> Class:
        """The class of the top-k."""
        return self.classes.losses.k, self.classes.losses.k - 1

    def draw(self, entropy: Entropy) -> Ranks:
        """Draw a k-subset y of the ranks; with Gumbel noise its probability is proportional to exp(-s loss(y))."""
        return self.select(entropy).draw_ranks()

    def select(self, entropy: Entropy) -> Selection:
        """Draw a k-subset as `draw` does, of which all but the class may still have to be drawn.

        A draw that finds a bound too low is discarded, and all classes are scanned instead.
        """
        try:
            return self.nested.select(entropy) if self.is_nested else self._choose(self.draw_class(entropy), entropy)
        except EnvelopeError:
            return self._choose(self.scan_classes(entropy), entropy)

    def _choose(self, cell: Class, entropy: Entropy) -> Selection:
        if cell == self.top:
            return Selection(np.empty(0, np.int64), self.classes.losses.k)
        return self.classes.choice(*cell, entropy)

    def draw_class(self, entropy: Entropy) -> Class:
        """Draw the class of the released subset, by boxes around all classes."""
        if not self.noise.max_stable:
            return sample_winner(_Streams(self), self.noise, entropy)
        # Rejection: the class that is kept has a probability exactly proportional to its weight.
        while True:
            part = self.envelope.pick(entropy)
            cell = self.top if part == 0 else self.boxes.cell(part - 1, entropy)
            if sample_bernoulli_exp(entropy, partial(self.log_acceptance, part, cell)):
                return cell

    def scan_classes(self, entropy: Entropy) -> Class:
        """Draw the class of the released subset by drawing the noise of every class.

        The scan is the definition of the mechanism and relies on no bound. Raise InternalError for more classes than
        MAX_SCANNED.
        """
        h1, h2, t1, t2 = self.classes.corners
        if (h2 - h1 + 1) * (t2 - t1 + 1) > MAX_SCANNED:
            raise InternalError
        cells = [self.top, *product(range(h1, h2 + 1), range(t1, t2 + 1))]

        def gain(cell: Class) -> arb:
            return -ball(self.excess(cell))

        def rate(cell: Class) -> arb:
            return self.log_size(cell).exp()

        return scan_best(cells, 1, gain, rate, self.noise, entropy)[0].member

    def log_weight(self, cell: Class) -> arb:
        """Return a ball around the log weight of a whole class under a max-stable noise; that of the top-k is 0."""
        return -ball(self.excess(cell)) + self.log_size(cell)

    def excess(self, cell: Class) -> Fraction:
        """Return s (loss(cell) - loss(top-k))."""
        return Fraction(0) if cell == self.top else self.classes.losses.excess(*cell)

    def size(self, cell: Class) -> int:
        """Return the number of subsets in a class."""
        return 1 if cell == self.top else comb(*self.classes.members(*cell))

    def log_size(self, cell: Class) -> arb:
        """Return a ball around the logarithm of the number of subsets in a class."""
        return arb(0) if cell == self.top else log_binomial(*self.classes.members(*cell))

    @property
    def is_nested(self) -> bool:
        """True if the noise is max-stable and no loss is rounded, so that nested classes can be drawn from."""
        return self.noise.max_stable and self.classes.losses.is_sum

    @cached_property
    def nested(self) -> NestedClasses:
        """The nested classes."""
        return NestedClasses(self.classes.losses, self.bits)

    @cached_property
    def boxes(self) -> Boxes:
        # Under a noise without a floor the top-k may have any low value, below -v with probability about exp(-v), and
        # the arrivals inspected in a box grow with the mass it wastes: the mass of the top-k must not excuse waste.
        tight = not (self.noise.max_stable or self.noise.has_floor)
        return enclose(self.classes, outside=-30.0 if tight else 0.0)

    @cached_property
    def envelope(self) -> Envelope:
        """The envelope of the classes: part 0 is the top-k, part j + 1 is box j."""
        return Envelope.over(np.append(0.0, self.boxes.log_mass()), self.bits)

    def log_acceptance(self, part: int, cell: Class) -> arb:
        """Return a ball around the log acceptance probability of a cell of a part: mass / (weight / cells)."""
        cells = 1 if part == 0 else self.boxes.cells(part - 1)
        return self.log_weight(cell) + arb(cells).log() - self.envelope.log_weight(part)


class _Streams:
    """The top-k and the boxes as streams of a race: an arrival is a uniform cell, kept with probability size/bound."""

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


@dataclass(frozen=True, eq=False, repr=False)
class Losses:
    """The excess s (loss - loss(top-k)) of a class, as a rational and as a float.

    `step` is delta if the loss is rounded up to multiples of delta, else None.
    """

    tally: Tally
    k: int
    s: Fraction
    gamma: Fraction
    step: Fraction | None = None

    def excess(self, h: int, t: int) -> Fraction:
        """Return s (loss(h, t) - loss(top-k)), where M is the score at rank h and m that at rank t."""
        # (1-gamma) (x[h] - x[k-1]) + gamma (x[k-1] - x[t])
        above, below = self.tally.gap(h, self.k - 1), self.tally.gap(self.k - 1, t)
        loss = (1 - self.gamma) * above + self.gamma * below
        if self.step is not None:
            loss = ceil(loss / self.step) * self.step
        return self.s * loss

    def height_h(self, h: Ranks) -> Floats:
        """Return the term of the best score left out in the excess, or in the loss in steps if that is rounded."""
        if self.gamma == 1:
            return np.zeros(len(h))
        return self.tally.gaps(h, np.full_like(h, self.k - 1), self._units[0])

    def height_t(self, t: Ranks) -> Floats:
        """Return the term of the worst score taken, likewise."""
        if self.gamma == 0:
            return np.zeros(len(t))
        return self.tally.gaps(np.full_like(t, self.k - 1), t, self._units[1])

    def heights(self, h: Ranks, t: Ranks) -> tuple[Floats, Floats]:
        """Return both terms, by one look-up if they have the same unit."""
        if self._units[0] != self._units[1]:
            return self.height_h(h), self.height_t(t)
        edge = np.full(max(len(h), len(t)), self.k - 1)
        upper, lower = np.concatenate([h, edge[: len(t)]]), np.concatenate([edge[: len(h)], t])
        both = self.tally.gaps(upper, lower, self._units[0])
        return both[: len(h)], both[len(h) :]

    def gain(self, height_h: Floats, height_t: Floats, h: Ranks, t: Ranks) -> Floats:
        """Return minus the excess, a sum of two terms of one sign and so right to a relative 2^-48."""
        with np.errstate(all="ignore"):
            total = height_h + height_t
            if self.step is None:
                return -np.minimum(total, LARGEST)
            weight = min(to_float(self.s * self.step), LARGEST)
            rounded = (np.rint(total) if self._is_whole else np.ceil(total)) * weight
            # A loss so close to a multiple of the step that a float cannot decide the rounding is computed exactly.
            close = ~(np.abs(total - np.rint(total)) > 2.0**-40 * total) & (not self._is_whole) | (total > 1e300)
        for i in np.flatnonzero(close).tolist():
            rounded[i] = to_float(self.excess(int(h[i]), int(t[i])))
        return -np.minimum(rounded, LARGEST)

    @property
    def is_sum(self) -> bool:
        """True if the excess is the sum of its two terms, so that rounding up does not change it."""
        return self.step is None or self._is_whole

    @cached_property
    def _is_whole(self) -> bool:
        """True if losses are multiples of the step anyway."""
        column = self.tally.column
        return isinstance(column, IntegerColumn) and all((unit * column.unit).denominator == 1 for unit in self._units)

    @cached_property
    def _units(self) -> tuple[Fraction, Fraction]:
        """The factors of the two score differences in the two terms."""
        unit = self.s if self.step is None else 1 / self.step
        return unit * (1 - self.gamma), unit * self.gamma


@dataclass(frozen=True)
class ClassSizes:
    """Upper bounds, up to rounding, on the log number of subsets in classes (h, t), for k items."""

    k: int

    def __call__(self, h: Ranks, t: Ranks) -> Floats:
        return log_binomial_upper(self.k - 1 - h, t - self.k)


@dataclass(frozen=True)
class TailSizes:
    """Upper bounds, up to rounding, on the log number of subsets with worst rank t, for k items."""

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

    def heights(self, h: Ranks, t: Ranks) -> tuple[Floats, Floats]:
        return self.losses.heights(h, t)

    def gain(self, height_h: Floats, height_t: Floats, h: Ranks, t: Ranks) -> Floats:
        return self.losses.gain(height_h, height_t, h, t)

    @property
    def size(self) -> Sizes:
        return ClassSizes(self.losses.k)

    def members(self, h: int, t: int) -> tuple[int, int]:
        """Return (n, r) such that the class has C(n, r) subsets."""
        return t - h - 1, self.losses.k - 1 - h

    def choice(self, h: int, t: int, entropy: Entropy) -> Selection:
        """Return a uniform subset of the class, still to be drawn: ranks 0..h-1, t, and k-1-h between h and t."""
        return _select_with_some(h, self.losses.k - 1 - h, h + 1, t, entropy)

    def subset(self, h: int, t: int, entropy: Entropy) -> Ranks:
        """Draw a uniform subset of the class."""
        return self.choice(h, t, entropy).draw_ranks()


@dataclass(frozen=True, eq=False, repr=False)
class TailClasses(Classes):
    """All classes by their worst rank t alone, for gamma = 1, where the loss does not depend on h; h is always 0."""

    @property
    def corners(self) -> tuple[int, int, int, int]:
        return 0, 0, self.losses.k, self.losses.tally.d - 1

    @property
    def size(self) -> Sizes:
        return TailSizes(self.losses.k)

    def members(self, h: int, t: int) -> tuple[int, int]:
        return t, self.losses.k - 1

    def choice(self, h: int, t: int, entropy: Entropy) -> Selection:
        """Return a uniform subset of the class, still to be drawn: rank t and any k-1 of the ranks before it."""
        return _select_with_some(0, self.losses.k - 1, 0, t, entropy)


def _select_with_some(h: int, count: int, first: int, t: int, entropy: Entropy) -> Selection:
    """Return ranks 0..h-1, rank t, and a uniform subset of `count` of the ranks first..t-1."""
    return Selection(np.array([t]), h, UniformSubset(count, first, t - 1, entropy) if count else None)

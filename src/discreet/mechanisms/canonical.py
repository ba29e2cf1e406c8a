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
from itertools import product
from math import comb
from typing import Any, ClassVar

import numpy as np
from flint import arb

from discreet.errors import InternalError, InvalidTypeError, InvalidValueError, quote
from discreet.exact.arrays import Floats, Ranks
from discreet.exact.ball import MAX_SCANNED, EnvelopeError, ball, log_binomial, sample_bernoulli_exp
from discreet.exact.boxes import Boxes, enclose
from discreet.exact.entropy import Entropy
from discreet.exact.envelope import WEIGHT_BITS, Envelope
from discreet.exact.race import sample_winner, scan_best
from discreet.mechanisms.base import Form, Mechanism, scale
from discreet.mechanisms.canonical_classes import Class, Classes, Losses, TailClasses
from discreet.mechanisms.canonical_nested import NestedClasses
from discreet.mechanisms.noise import GUMBEL, NOISES, Noise, check_noise, noise_of
from discreet.mechanisms.tally import Selection, Tally
from discreet.privacy import Number, Sensitivity, exact

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
        step = sensitivity.delta if self.ceil else None
        losses = Losses(tally, k, scale(epsilon, sensitivity), self.gamma, step)
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
class Prepared:
    """The canonical mechanism on a tally: cells or boxes around its classes, built once, and draws from them."""

    classes: Classes
    noise: Noise = GUMBEL
    bits: int = field(default=WEIGHT_BITS, repr=False)

    @property
    def top(self) -> Class:
        """The class of the top-k."""
        return self.classes.losses.k, self.classes.losses.k - 1

    def draw(self, entropy: Entropy) -> Ranks:
        """Returns a k-subset of the ranks, distributed as the mechanism says."""
        return self.select(entropy).draw_ranks()

    def select(self, entropy: Entropy) -> Selection:
        """Return a k-subset of the ranks, distributed as the mechanism says; all but the class may be open.

        A draw that finds a bound too low is thrown away, and all classes are scanned instead.
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
        """Return the class of the subset that is released, by boxes around all classes."""
        if self.noise.max_stable:
            return self._draw_by_weight(entropy)
        return sample_winner(_Streams(self), self.noise, entropy)

    def scan_classes(self, entropy: Entropy) -> Class:
        """Return the class of the subset that is released, after giving every class its noise.

        The scan is the definition of the mechanism, and relies on no bound. Raise InternalError for too many classes.
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

    @property
    def is_nested(self) -> bool:
        """Whether the noise is max-stable and no loss is rounded, so that nested classes are drawn from."""
        return self.noise.max_stable and self.classes.losses.is_sum

    @cached_property
    def nested(self) -> NestedClasses:
        """What is drawn from in that case."""
        return NestedClasses(self.classes.losses, self.bits)

    @cached_property
    def boxes(self) -> Boxes:
        # Under a noise without a floor the top-k may have any low value, with probability exp(-v) for -v, and a box
        # is asked for the more arrivals the more mass it wastes: then what the top-k weighs must not excuse waste.
        tight = not (self.noise.max_stable or self.noise.has_floor)
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

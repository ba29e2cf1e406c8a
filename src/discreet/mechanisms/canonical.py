"""The canonical mechanism (Shekelyan and Loukides, 2022): a k-subset drawn by its worst item and the best left out.

For a subset y with smallest score m inside and largest score M outside, loss(y) = (1-gamma) max(M, m) - gamma m, which
one user moves by at most delta (docs/proofs.md, section 4). With ranks from 0, every subset other than the top-k holds
ranks 0..h-1, lacks rank h < k and has a worst rank t >= k; all C(t-h-1, k-1-h) subsets of the class (h, t) have the
same loss. (The class size printed in the paper is another one, with which the mechanism is not epsilon-private.)
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
"""Over many shapes of scores it needs the least epsilon, or little more than the best gamma (docs/choosing.md)."""

_ROUNDED_GAMMA = "1/2"
"""The only gamma with which losses can be rounded up."""

CONTENDERS = ("1/3", "1/2", "2/3", "3/4", "7/8", "15/16", "1")
"""The gammas that comparisons try; no other gamma tried needs 3% less epsilon for any scores tried."""

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

"""A mechanism written by the caller, as a function that draws: for comparisons with ours, never for a release."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from discreet.errors import InvalidTypeError, InvalidValueError, quote
from discreet.exact.arrays import Floats, Ranks
from discreet.exact.entropy import Entropy
from discreet.mechanisms.base import Mechanism
from discreet.mechanisms.tally import Selection, Tally
from discreet.privacy import Sensitivity

_MOST_ITEMS = 10**7
"""The most items that a Sampler gets: its scores are an array of floats."""

Draw = Callable[[Floats, int, float, np.random.Generator], Any]
"""A function from scores, k, epsilon and a random generator to k positions in the scores."""


@dataclass(frozen=True, repr=False)
class Sampler(Mechanism):
    """A mechanism of your own, for `utility`, `expected`, `compare` and `audit`; `top_k` refuses it.

    Only its draws are known: its utility is estimated from them, and its privacy is yours to prove. It is told neither
    the sensitivity nor the adjacency: the function below is for counts, each raised by at most 1 per user.

    Parameters
    ----------
    title
        The name in tables.
    draw
        A function of the scores as an array, k, epsilon as a float and a NumPy generator, that returns k positions.

    Examples
    --------
    >>> import discreet, numpy as np
    >>> def draw(scores, k, epsilon, rng):
    ...     return np.argsort(scores + rng.gumbel(scale=k / epsilon, size=len(scores)))[-k:]
    >>> mine = discreet.Sampler("mine", draw)
    >>> found = discreet.utility([90, 80, 5, 1], k=2, epsilon=1, mechanism=mine)
    >>> found.top > 0.9, found.confidence
    (True, Fraction(99, 100))
    """

    name: ClassVar[str] = "sampler"
    ordered: ClassVar[bool] = False

    title: str
    draw: Draw

    def __post_init__(self) -> None:
        if not isinstance(self.title, str) or not self.title.strip():
            raise InvalidTypeError(f"title must be a name for the mechanism, not {quote(self.title)}")
        if not callable(self.draw):
            raise InvalidTypeError(f"draw must be a function of scores, k, epsilon and rng, not {quote(self.draw)}")

    def __repr__(self) -> str:
        return f"Sampler({self.title!r})"

    def prepare(self, tally: Tally, k: int, epsilon: Fraction, sensitivity: Sensitivity) -> PreparedSampler:
        if tally.d > _MOST_ITEMS:
            raise InvalidValueError(f"scores must be of at most {_MOST_ITEMS:,} items for a Sampler, not {tally.d:,}")
        ranks = np.arange(tally.d)
        scores = float(tally.exact(0)) - tally.gaps(np.zeros_like(ranks), ranks, Fraction(1))
        return PreparedSampler(self, scores, k, epsilon)

    def zcdp(self, epsilon: Fraction, k: int) -> Fraction:
        return epsilon**2 / 2

    def parameters(self) -> dict[str, Any]:
        return {"title": self.title}

    def unit_cost(self, s: Fraction, k: int) -> Fraction:
        raise InvalidValueError(f"mechanism must be one whose loss is known, not {self!r}")

    @property
    def label(self) -> str:
        return self.title

    @property
    def is_drawable(self) -> bool:
        return False

    def draw_positions(self, scores: Floats, k: int, epsilon: Fraction, rng: np.random.Generator) -> Ranks:
        """Draw by the function of the caller; raise unless it returns k distinct positions."""
        positions = np.asarray(self.draw(scores, k, float(epsilon), rng))
        d = len(scores)
        if positions.shape != (k,) or positions.dtype.kind not in "iu" or len(np.unique(positions)) < k:
            raise InvalidValueError(f"draw of {self!r} must return {k} different positions from 0 to {d - 1}")
        if positions.min() < 0 or positions.max() >= d:
            raise InvalidValueError(f"draw of {self!r} must return {k} different positions from 0 to {d - 1}")
        return positions.astype(np.int64)


def make_generator(entropy: Entropy) -> np.random.Generator:
    """Return a NumPy generator with a random seed, for functions of the caller."""
    return np.random.default_rng(entropy.bits(128))


@dataclass(frozen=True, eq=False, repr=False)
class PreparedSampler:
    """A sampler on scores in descending order."""

    sampler: Sampler
    scores: Floats
    k: int
    epsilon: Fraction

    def select(self, entropy: Entropy) -> Selection:
        return Selection(self.draw(entropy))

    def draw(self, entropy: Entropy) -> Ranks:
        """Draw ranks; the items are permuted at random, so that no position reveals a rank."""
        rng = make_generator(entropy)
        order = rng.permutation(len(self.scores))
        return order[self.sampler.draw_positions(self.scores[order], self.k, self.epsilon, rng)]

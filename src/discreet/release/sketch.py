"""Sketch: noisy scores at a few public ranks, which stand for the scores wherever a release is planned."""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from math import ceil
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from discreet.errors import InvalidValueError
from discreet.exact.arrays import Floats, Ranks
from discreet.exact.discrete import interval_half_width
from discreet.mechanisms.histogram import DiscreteLaplace
from discreet.mechanisms.tally import Tally
from discreet.privacy import Sensitivity, check_adjacency, fraction_from_json
from discreet.release.counts import MISS_PROBABILITY, CountMechanism, make_count_mechanism, round_half_up, to_score
from discreet.release.guarantee import Guarantee
from discreet.release.release import (
    MALFORMED,
    describe_person,
    explain_malformed,
    from_json_text,
    read_figure,
    to_json_text,
)
from discreet.sources.base import Source, refuse_curve
from discreet.sources.files import refuse_columns
from discreet.text import align_columns, count_with_commas, round_up

# The curve of scores by rank from a few points of it: made to fall, and filled in between.
#
# All of it works on what is public already, in whole steps of a grid.

_FINE = 2**17
"""Up to this rank every rank has a score of its own; those behind come in runs, longer and longer."""

_RUNS_PER_RANGE = 2**10
"""The runs behind grow by one part in so many."""


def fit_falling(values: Sequence[int]) -> list[Fraction]:
    """The numbers in descending order that are nearest to these, in squares: neighbours out of order are averaged.

    Examples
    --------
    >>> [str(value) for value in fit_falling([9, 4, 5, 5, 1])]
    ['9', '14/3', '14/3', '14/3', '1']
    """
    blocks: list[tuple[int, int]] = []
    for value in values:
        total, size = value, 1
        # A block whose mean is below that of the next one is one block with it.
        while blocks and blocks[-1][0] * size < total * blocks[-1][1]:
            more, longer = blocks.pop()
            total, size = total + more, size + longer
        blocks.append((total, size))
    return [Fraction(total, size) for total, size in blocks for _ in range(size)]


def fill_in(ranks: Sequence[int], steps: Sequence[int], d: int, grid: Fraction) -> Tally:
    """A tally of d scores that has these at some ranks, which count from 1, and between them a smooth curve.

    Between two scores above zero it is a power of the rank, otherwise straight in the logarithm of the rank; before the
    first rank and behind the last one it is level. Scores are whole steps of the grid.
    """
    starts = _list_run_starts(ranks, d)
    values = _interpolate(np.asarray(ranks, np.float64), np.asarray(steps, np.float64), starts.astype(np.float64) + 1.0)
    whole = np.floor(values + 0.5).astype(np.int64)
    # Floats hold whole numbers up to 2^53: what is known is kept exactly.
    whole[np.searchsorted(starts, np.array([rank - 1 for rank in ranks]))] = steps
    whole = np.minimum.accumulate(whole)
    first = np.flatnonzero(np.append(True, whole[1:] < whole[:-1]))
    counts = np.diff(starts[first], append=np.int64(d - 1))
    sizes = [*counts[:-1].tolist(), int(counts[-1]) + 1]
    return Tally.of_runs(whole[first].tolist(), sizes, grid)


def _list_run_starts(ranks: Sequence[int], d: int) -> Ranks:
    """The first rank of every run, from 0; every given rank is the first of one."""
    starts = {rank - 1 for rank in ranks}
    place = _FINE
    while place < d:
        starts.add(place)
        place += place // _RUNS_PER_RANGE
    far = np.array(sorted(starts), np.int64)
    return np.union1d(np.arange(min(d, _FINE), dtype=np.int64), far)


def _interpolate(ranks: Floats, scores: Floats, at: Floats) -> Floats:
    """The curve through some points, at some ranks."""
    here = np.log(np.clip(at, ranks[0], ranks[-1]))
    straight = np.interp(here, np.log(ranks), scores)
    above = scores > 0.0
    if not above.any():
        return straight
    powers = np.exp(np.interp(here, np.log(ranks[above]), np.log(scores[above])))
    # Scores fall, so that those above zero come first.
    return np.where(here <= np.log(ranks[above][-1]), powers, straight)


FORMAT = 3
"""What a sketch is written as; releases have formats 1 and 2."""

MOST_STEPS = 2**62
"""No score is further from zero than this many steps, so that two of them are 64 bits apart at most."""


@dataclass(frozen=True, repr=False, kw_only=True)
class Sketch(Source):
    """Noisy scores at a few public ranks, and what they cost: a stand-in for the scores where a release is planned.

    `utility`, `expected`, `epsilon_for`, `compare` and `plan` take it in place of scores, and what they tell is then as
    private as the sketch is. It has no items, so that nothing can be released from it.

    Attributes
    ----------
    ranks
        The ranks, counted from 1 for the largest score.
    noisy
        The score at each rank with its noise, as it was drawn: a whole number, or a Fraction on a finer grid.
    domain_size
        How many items have scores.
    grid
        What all scores are multiples of, or were rounded to.
    sensitivity, adjacency, max_items_per_user
        What is public about the users behind the scores: how far adding one can move a score, what is protected, and
        how many scores one can move, None for any number.
    guarantee
        What the sketch promises.
    private
        False where the caller passed a random generator: a sketch that can be drawn again protects nobody.

    Examples
    --------
    >>> import discreet
    >>> sketch = discreet.sketch([900, 500, 200, 50, 20], epsilon=1000, ranks=[1, 2, 5])
    >>> sketch.ranks, sketch.scores
    ((1, 2, 5), [900, 500, 20])
    >>> discreet.Sketch.from_json(sketch.to_json()) == sketch
    True
    """

    ranks: tuple[int, ...]
    noisy: tuple[int | Fraction, ...]
    domain_size: int
    grid: Fraction
    sensitivity: Sensitivity
    adjacency: str
    guarantee: Guarantee
    private: bool = True
    max_items_per_user: int | None = None
    has_items: ClassVar[bool] = False

    @property
    def d(self) -> int:
        """How many items have scores."""
        return self.domain_size

    @cached_property
    def scores(self) -> list[int | Fraction]:
        """The scores at the ranks as they are used: in falling order, and not below zero where no score can be."""
        return [to_score(steps, self.grid) for steps in self._steps]

    @property
    def half_width(self) -> int | Fraction:
        """How far a noisy score is from the true one at most, with a chance of 95% for each rank by itself."""
        return to_score(interval_half_width(self._noise.rate, MISS_PROBABILITY), self.grid)

    @cached_property
    def _steps(self) -> list[int]:
        fitted = map(round_half_up, fit_falling([int(score / self.grid) for score in self.noisy]))
        return [max(0, steps) for steps in fitted] if self._noise.floor else list(fitted)

    @property
    def _noise(self) -> CountMechanism:
        terms = self.sensitivity, self.adjacency, self.grid, len(self.ranks), self.max_items_per_user
        return make_sketch_noise(*terms, self.guarantee.epsilon)

    def tally(self) -> Tally:
        """Scores of the whole domain that go through those at the ranks."""
        return self._tally

    @cached_property
    def _tally(self) -> Tally:
        return fill_in(self.ranks, self._steps, self.domain_size, self.grid)

    def items(self, ranks: Ranks) -> list[Any]:
        raise refuse_curve()

    def every_item(self) -> list[Any]:
        raise refuse_curve()

    def to_dict(self) -> dict[str, Any]:
        """The sketch in terms that JSON can hold; fractions are strings."""
        return {
            "format": FORMAT,
            "ranks": list(self.ranks),
            "noisy": [score if isinstance(score, int) else str(score) for score in self.noisy],
            "d": self.domain_size,
            "grid": str(self.grid),
            "sensitivity": {"down": str(self.sensitivity.down), "up": str(self.sensitivity.up)},
            "max_items_per_user": self.max_items_per_user,
            "guarantee": self.guarantee.to_dict(),
            "private": self.private,
        }

    def to_json(self, indent: int | None = None) -> str:
        """The sketch as JSON text."""
        return to_json_text(self.to_dict(), indent)

    def statement(self, ledger: Any = None) -> str:
        """What the sketch promises and what it does not, as `Release.statement` has it."""
        from discreet.release.statement import make_statement

        return make_statement(self, ledger)

    def registry(self, ledger: Any = None, answers: Any = None) -> dict[str, Any]:
        """The sketch as an entry of the public registry of deployments, as `Release.registry` has it."""
        from discreet.release.registry import make_registry_entry

        return make_registry_entry(self, ledger, answers)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Sketch:
        """The sketch that `to_dict` wrote."""
        try:
            return _read_sketch(data)
        except MALFORMED as error:
            said = explain_malformed(error)
        raise InvalidValueError(f"data must be a sketch as Sketch.to_dict or to_json writes it{said}")

    @classmethod
    def from_json(cls, text: str) -> Sketch:
        """The sketch that `to_json` wrote."""
        return cls.from_dict(from_json_text(text, "Sketch", "sketch"))

    def is_doubtful(self, k: int) -> bool:
        """Whether it tells too little to plan a list of k items by.

        It does where the scores at the ranks to both sides of k are not further apart than the noise of one, or where
        there is no rank on one side: then nobody knows how the scores fall there, and they may look tied.
        """
        after = bisect_right(self.ranks, k)
        if not 0 < after < len(self.ranks):
            return True
        return self.scores[after - 1] - self.scores[after] <= self.half_width

    def describe_cost(self, k: int) -> str:
        """What it cost, in words, for what is computed from it about k items, and whether that can be relied on."""
        cost = f"computed from a sketch that cost epsilon = {round_up(self.guarantee.epsilon)}"
        origin = cost if self.private else f"NOT private: {cost} and was drawn with the caller's random generator"
        doubt = f"; DOUBTFUL: it does not show how the scores fall around rank {k}, so spend more or give fewer ranks"
        return origin + (doubt if self.is_doubtful(k) else "")

    def __repr__(self) -> str:
        size = f"{len(self.ranks)} ranks of {self.domain_size:,} items"
        return f"<Sketch: {size}, epsilon = {round_up(self.guarantee.epsilon)}>"

    def _title(self) -> str:
        within = f"noise within {count_with_commas(self.half_width)} with a chance of 95% for each"
        return f"Scores at {len(self.ranks)} ranks of {self.domain_size:,} items, {within}"

    def _rows(self) -> list[tuple[str, str]]:
        return [(f"{rank:,}", count_with_commas(score)) for rank, score in zip(self.ranks, self.scores, strict=True)]

    def _describe_privacy(self) -> list[str]:
        cost = f"Privacy: epsilon {round_up(self.guarantee.epsilon)} {describe_person(self.guarantee)}."
        warning = [] if self.private else ["NOT PRIVATE: drawn with the caller's random generator"]
        return [cost, *warning]

    def __str__(self) -> str:
        table = align_columns([_HEAD, *self._rows()], numbers=True)
        return "\n".join([f"{self._title()}:", *(f"  {line}" for line in table), *self._describe_privacy()])

    def _repr_html_(self) -> str:
        """The notebook view."""
        from discreet.html_text import make_html_table, make_html_view

        return make_html_view(self._title(), make_html_table(self._rows(), _HEAD), self._describe_privacy())


_HEAD = ("rank", "score")


def make_sketch_noise(
    sensitivity: Sensitivity, adjacency: str, grid: Fraction, ranks: int, per_user: int | None, epsilon: Fraction
) -> CountMechanism:
    """The noise that makes the scores at so many ranks epsilon-private; `sensitivity` is that of adding one user.

    Scores are sorted, and sorting moves no further than what is sorted: what one user moves at so many ranks in all is
    what one can move of so many scores (docs/proofs.md). For that down and up are whole steps, each rounded up.
    """
    down, up = (grid * ceil(side / grid) for side in (sensitivity.down, sensitivity.up))
    return make_count_mechanism(Sensitivity(down, up), adjacency, grid, ranks, per_user, epsilon, floor=down == 0)


def is_sketch(data: Any) -> bool:
    """Whether some data of JSON claim to be a sketch; no mapping from item to score has a list in it."""
    return isinstance(data, dict) and data.get("format") == FORMAT and isinstance(data.get("ranks"), list)


def _read_sketch(data: dict[str, Any]) -> Sketch:
    promised, grid, most = data["guarantee"], fraction_from_json(data["grid"], "grid"), data["max_items_per_user"]
    mechanism, adjacency = DiscreteLaplace(), promised["adjacency"]
    epsilon = fraction_from_json(promised["epsilon"], "epsilon")
    sensitivity = Sensitivity(data["sensitivity"]["down"], data["sensitivity"]["up"])
    check_adjacency(adjacency)
    ranks = tuple(map(int, data["ranks"]))
    noisy = tuple(read_figure(score, "noisy") for score in data["noisy"])
    d, limit = int(data["d"]), sensitivity.under(adjacency)
    rho = mechanism.zcdp(epsilon, len(ranks))
    guarantee = Guarantee(epsilon, adjacency, limit, mechanism, rho, epsilon)
    if data["format"] != FORMAT or guarantee.to_dict() != promised or min(epsilon, grid) <= 0 or d > 2**63:
        raise ValueError
    if not (ranks[0] >= 1 and ranks[-1] <= d and all(one < other for one, other in pairwise(ranks))):
        raise ValueError
    if len(noisy) != len(ranks) or not all(_is_on_grid(score, grid) for score in noisy):
        raise ValueError
    if most is not None and not (isinstance(most, int) and most >= 1):
        raise ValueError
    return Sketch(
        ranks=ranks, noisy=noisy, domain_size=d, grid=grid, sensitivity=sensitivity, adjacency=adjacency,
        max_items_per_user=most, guarantee=guarantee, private=bool(data["private"]),
    )  # fmt: skip


def _is_on_grid(score: int | Fraction, grid: Fraction) -> bool:
    steps = score / grid
    return steps.denominator == 1 and abs(steps) <= MOST_STEPS


# A sketch in a file, which stands for scores.


def read_sketch(path: str | Path, item: str | None = None, score: str | None = None) -> Sketch | None:
    """The sketch that a .json file holds, or None where it holds something else; `item` and `score` are no part of it.

    What cannot be read at all is for the reader of scores to complain about.
    """
    file = Path(path)
    if file.suffix.lower() != ".json":
        return None
    try:
        data = json.loads(file.read_text(encoding="utf-8-sig"))
    except (OSError, ValueError, RecursionError):
        return None
    if not is_sketch(data):
        return None
    refuse_columns(file, item, score)
    return Sketch.from_dict(data)

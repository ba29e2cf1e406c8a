"""Noisy scores at a few public ranks, which stand in for the scores wherever a release is planned.

The curve between the ranks is post-processing: an isotonic fit of the noisy scores, interpolated in the logarithm of
the rank, all in whole steps of a grid.
"""

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
from discreet.exact.arrays import Ranks
from discreet.exact.discrete import interval_half_width
from discreet.language import ENGLISH, Language, find_language
from discreet.mechanisms.histogram import DiscreteLaplace
from discreet.mechanisms.tally import Tally
from discreet.privacy import Expressions, Sensitivity, check_adjacency, fraction_from_json
from discreet.release.counts import MISS_PROBABILITY, CountMechanism, make_count_mechanism, round_half_up, to_score
from discreet.release.guarantee import Guarantee
from discreet.release.release import (
    MALFORMED,
    describe_person,
    explain_malformed,
    expressions_from_dict,
    expressions_to_dict,
    from_json_text,
    read_figure,
    to_json_text,
)
from discreet.release.theme import check_matplotlib
from discreet.sources.base import Source, refuse_curve
from discreet.sources.discovered import Discovered
from discreet.sources.files import refuse_columns
from discreet.text import align_columns, count_with_commas, make_html_table, make_html_view, round_up

_FINE = 2**17
"""Up to this rank each rank has a score of its own, so that a plan for any usual k sees single ranks."""

_RUNS_PER_RANGE = 2**10
"""Behind `_FINE` runs grow by one part in this many: a domain of 2^63 items then has some thirty thousand runs."""


FORMAT = 3
"""The format number of a sketch; releases have formats 1 and 2."""

MOST_FOUND = 10**6
"""The largest rank of a sketch under partition selection: the scores up to it are read one by one."""

OTHERS = 10**6
"""Under partition selection a plan takes so many items to exist behind the last rank, all with its score."""

MOST_STEPS = 2**62
"""Scores are clamped to this many steps from zero, so that a difference of two fits 64 bits."""


_HEAD = ("rank", "score")


@dataclass(frozen=True, repr=False, kw_only=True)
class Sketch(Source):
    """Noisy scores at a few public ranks: a stand-in for the scores where a release is planned.

    `utility`, `expected`, `epsilon_for`, `compare` and `plan` accept a sketch in place of scores. Their results are
    post-processing of the sketch and cost nothing more. A sketch has no items, so nothing can be released from it.

    Attributes
    ----------
    ranks
        The ranks, counted from 1 for the largest score.
    noisy
        The score at each rank with its noise, as drawn: a whole number, or a Fraction on a finer grid.
    domain_size
        The number of items; None under partition selection.
    grid
        The step that all scores are multiples of, or were rounded to.
    sensitivity, adjacency, max_items_per_user
        The public facts about the users behind the scores: the sensitivity of adding one, the adjacency, and the
        contribution bound in items, None for unbounded.
    guarantee
        The guarantee of the sketch.
    private
        False if the caller passed a random generator: a sketch that can be drawn again protects nobody.
    terms
        The terms of partition selection of a planned release; None for a public list of items.
    expressions
        The arguments of `events` that were row expressions, each with its text.

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
    domain_size: int | None
    grid: Fraction
    sensitivity: Sensitivity
    adjacency: str
    guarantee: Guarantee
    private: bool = True
    max_items_per_user: int | None = None
    terms: Discovered | None = None
    expressions: Expressions = ()
    has_items: ClassVar[bool] = False

    @property
    def d(self) -> int:  # type: ignore[override]  # a field in other sources
        """The number of items that a plan takes to exist."""
        return self.ranks[-1] + OTHERS if self.domain_size is None else self.domain_size

    @cached_property
    def scores(self) -> list[int | Fraction]:
        """The fitted scores at the ranks: in falling order, and not below zero if no score can be."""
        return [to_score(steps, self.grid) for steps in self._steps]

    @property
    def half_width(self) -> int | Fraction:
        """The largest distance of a noisy score from the true one, with a probability of 95% for each rank."""
        return to_score(interval_half_width(self.noise.rate, MISS_PROBABILITY), self.grid)

    @cached_property
    def _steps(self) -> list[int]:
        fitted = map(round_half_up, fit_falling([int(score / self.grid) for score in self.noisy]))
        # Under partition selection, infinitely many items that nobody touched score 0.
        has_floor = self.noise.floor or self.domain_size is None
        return [max(0, steps) for steps in fitted] if has_floor else list(fitted)

    @property
    def noise(self) -> CountMechanism:
        """The mechanism of the noise on the score at each rank."""
        terms = self.sensitivity, self.adjacency, self.grid, len(self.ranks), self.max_items_per_user
        return make_sketch_noise(*terms, self.guarantee.epsilon)

    def tally(self) -> Tally:
        """Return scores of the whole domain that pass through those at the ranks."""
        return self._tally

    @cached_property
    def _tally(self) -> Tally:
        return fill_in(self.ranks, self._steps, self.d, self.grid)

    def items(self, ranks: Ranks) -> list[Any]:
        raise refuse_curve()

    def every_item(self) -> list[Any]:
        raise refuse_curve()

    def to_dict(self) -> dict[str, Any]:
        """Return the sketch as JSON data; fractions are strings."""
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
            **({} if self.terms is None else {"discovered": self.terms.to_dict()}),
            **expressions_to_dict(self.expressions),
        }

    def to_json(self, indent: int | None = None) -> str:
        """Return the sketch as JSON text."""
        return to_json_text(self.to_dict(), indent)

    def statement(self, ledger: Any = None, source: str | None = None, language: str = "en") -> str:
        """Return the privacy statement in Markdown, as `Release.statement` does."""
        from discreet.release.statement import make_statement

        return make_statement(self, ledger, source, language)

    def registry(self, ledger: Any = None, answers: Any = None, source: str | None = None) -> dict[str, Any]:
        """Return an entry for the public registry of deployments, as `Release.registry` does."""
        from discreet.release.registry import make_registry_entry

        return make_registry_entry(self, ledger, answers, source)

    def plot(self, ax: Any = None, *, dark: bool = False, language: str = "en") -> Any:
        """Draw the noisy scores with their intervals, and the curve that stands in for the scores.

        The parameters are those of `Release.plot`.

        Examples
        --------
        >>> import discreet
        >>> figure = discreet.sketch([900, 500, 200, 50, 20], epsilon=10, ranks=[1, 2, 5]).plot()
        >>> figure.axes[0].get_ylabel()
        'score'
        """
        check_matplotlib()
        from discreet.release.plots import draw_sketch

        return draw_sketch(self, ax, dark, find_language(language))

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> Sketch:
        """Return the sketch that `to_dict` wrote."""
        try:
            return _read_sketch(data)
        except MALFORMED as error:
            said = explain_malformed(error)
        raise InvalidValueError(f"data must be a sketch as Sketch.to_dict or to_json writes it{said}")

    @classmethod
    def from_json(cls, text: str) -> Sketch:
        """Return the sketch that `to_json` wrote."""
        return cls.from_dict(from_json_text(text, "Sketch", "sketch"))

    def is_doubtful(self, k: int) -> bool:
        """Return True if the sketch shows too little to plan a list of k items by.

        That is so if the scores at the ranks on both sides of k are no further apart than the noise of one, or if there
        is no rank on one side: the scores may then fall in any way, and may look tied.
        """
        after = bisect_right(self.ranks, k)
        if not 0 < after < len(self.ranks):
            return True
        return self.scores[after - 1] - self.scores[after] <= self.half_width

    def describe_cost(self, k: int) -> str:
        """Describe the cost of results about k items that are computed from the sketch, and a doubt if there is one."""
        cost = f"computed from a sketch that cost epsilon = {round_up(self.guarantee.epsilon)}"
        origin = cost if self.private else f"NOT private: {cost} and was drawn with the caller's random generator"
        if self.terms is not None:
            origin += (
                f"; as if each person had {self.terms.max_items_per_user:,} items, and {OTHERS:,} more items the score "
                f"of rank {self.ranks[-1]:,}"
            )
            # A sketch does not tell how many people have which item first.
            origin += '; planned as "gaussian", which "auto" may not choose' if self.terms.has_choice else ""
        doubt = f"; DOUBTFUL: it does not show how the scores fall around rank {k}, so spend more or give fewer ranks"
        return origin + (doubt if self.is_doubtful(k) else "")

    def describe_size(self, language: Language = ENGLISH) -> str:
        """Describe the number of items."""
        if self.domain_size is None:
            return language.text("curve.unlisted")
        return language.text("list.of_all", count=self.domain_size)

    def __repr__(self) -> str:
        size = f"{len(self.ranks)} ranks of {self.describe_size()}"
        return f"<Sketch: {size}, epsilon = {round_up(self.guarantee.epsilon)}>"

    def title(self, language: Language = ENGLISH) -> str:
        """Return the line above the scores."""
        size, within = self.describe_size(language), language.spell(self.half_width)
        return language.text("curve.title", count=len(self.ranks), size=size, within=within)

    def _rows(self) -> list[tuple[str, str]]:
        return [(f"{rank:,}", count_with_commas(score)) for rank, score in zip(self.ranks, self.scores, strict=True)]

    def describe_terms(self, language: Language = ENGLISH) -> list[str]:
        """Return lines for people: the guarantee, and a warning if it does not hold."""
        epsilon, person = language.rounded(self.guarantee.epsilon), describe_person(self.guarantee, language=language)
        cost = language.text("note.cost", epsilon=epsilon, parts="", delta="", person=person)
        return [cost, *([] if self.private else [language.text("note.not_private")])]

    def __str__(self) -> str:
        table = align_columns([_HEAD, *self._rows()], numbers=True)
        return "\n".join([f"{self.title()}:", *(f"  {line}" for line in table), *self.describe_terms()])

    def _repr_html_(self) -> str:
        return make_html_view(self.title(), make_html_table(self._rows(), _HEAD), self.describe_terms())


def make_sketch_noise(
    sensitivity: Sensitivity, adjacency: str, grid: Fraction, ranks: int, per_user: int | None, epsilon: Fraction
) -> CountMechanism:
    """Return the noise that makes the scores at some ranks epsilon-private; `sensitivity` is that of adding one user.

    Sorting is a contraction in L1: one user moves the scores at n ranks, in total, no further than n scores
    (docs/proofs.md). For that to hold after rounding, down and up are whole steps, each rounded up.
    """
    down, up = (grid * ceil(side / grid) for side in (sensitivity.down, sensitivity.up))
    return make_count_mechanism(Sensitivity(down, up), adjacency, grid, ranks, per_user, epsilon, floor=down == 0)


def read_sketch(path: str | Path, item: str | None = None, score: str | None = None) -> Sketch | None:
    """Return the sketch in a .json file, which takes no `item` or `score`; None if the file holds something else.

    A file that cannot be read gives None as well: the reader of scores then raises the error.
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


def is_sketch(data: Any) -> bool:
    """Return True if JSON data claim to be a sketch; no mapping from item to score holds a list."""
    return isinstance(data, dict) and data.get("format") == FORMAT and isinstance(data.get("ranks"), list)


def _read_sketch(data: dict[str, Any]) -> Sketch:
    """Return the sketch in the data; raise unless all parts agree."""
    promised, grid, most = data["guarantee"], fraction_from_json(data["grid"], "grid"), data["max_items_per_user"]
    mechanism, adjacency = DiscreteLaplace(), promised["adjacency"]
    epsilon = fraction_from_json(promised["epsilon"], "epsilon")
    sensitivity = Sensitivity(data["sensitivity"]["down"], data["sensitivity"]["up"])
    check_adjacency(adjacency)
    ranks = tuple(map(int, data["ranks"]))
    noisy = tuple(read_figure(score, "noisy") for score in data["noisy"])
    d, limit = None if data["d"] is None else int(data["d"]), sensitivity.under(adjacency)
    terms = None if data.get("discovered") is None else Discovered.from_dict(data["discovered"])
    rho = mechanism.zcdp(epsilon, len(ranks))
    guarantee = Guarantee(epsilon, adjacency, limit, mechanism, rho, epsilon)
    if data["format"] != FORMAT or guarantee.to_dict() != promised or min(epsilon, grid) <= 0:
        raise ValueError
    last = MOST_FOUND if d is None else d
    if last > 2**63 or (d is None) != (terms is not None):
        raise ValueError
    if not (ranks[0] >= 1 and ranks[-1] <= last and all(one < other for one, other in pairwise(ranks))):
        raise ValueError
    if len(noisy) != len(ranks) or any(
        (score / grid).denominator > 1 or abs(score / grid) > MOST_STEPS for score in noisy
    ):
        raise ValueError
    if most is not None and not (isinstance(most, int) and most >= 1):
        raise ValueError
    return Sketch(
        ranks=ranks, noisy=noisy, domain_size=d, grid=grid, sensitivity=sensitivity, adjacency=adjacency,
        max_items_per_user=most, guarantee=guarantee, private=bool(data["private"]), terms=terms,
        expressions=expressions_from_dict(data),
    )  # fmt: skip


def fit_falling(values: Sequence[int]) -> list[Fraction]:
    """Return the least-squares fit in descending order (isotonic regression): neighbours out of order are averaged.

    Examples
    --------
    >>> [str(value) for value in fit_falling([9, 4, 5, 5, 1])]
    ['9', '14/3', '14/3', '14/3', '1']
    """
    blocks: list[tuple[int, int]] = []
    for value in values:
        total, size = value, 1
        # A block whose mean is below that of the next block is merged with it.
        while blocks and blocks[-1][0] * size < total * blocks[-1][1]:
            more, longer = blocks.pop()
            total, size = total + more, size + longer
        blocks.append((total, size))
    return [Fraction(total, size) for total, size in blocks for _ in range(size)]


def fill_in(ranks: Sequence[int], steps: Sequence[int], d: int, grid: Fraction) -> Tally:
    """Return a tally of d scores that has the given scores at some ranks, counted from 1, and a smooth curve between.

    Between two scores above zero the curve is a power of the rank, otherwise linear in the logarithm of the rank. It is
    level before the first rank and behind the last. Scores are whole steps of the grid.
    """
    # Every given rank starts a run, and so does every rank up to _FINE; later runs grow with the rank.
    far, place = {rank - 1 for rank in ranks}, _FINE
    while place < d:
        far.add(place)
        place += place // _RUNS_PER_RANGE
    starts = np.union1d(np.arange(min(d, _FINE), dtype=np.int64), np.array(sorted(far), np.int64))
    known, scores = np.asarray(ranks, np.float64), np.asarray(steps, np.float64)
    here = np.log(np.clip(starts.astype(np.float64) + 1.0, known[0], known[-1]))
    values, above = np.interp(here, np.log(known), scores), scores > 0.0
    if above.any():
        powers = np.exp(np.interp(here, np.log(known[above]), np.log(scores[above])))
        # Scores fall, so that those above zero come first.
        values = np.where(here <= np.log(known[above][-1]), powers, values)
    whole = np.floor(values + 0.5).astype(np.int64)
    # Floats hold whole numbers up to 2^53 only: the given scores are kept exactly.
    whole[np.searchsorted(starts, np.array([rank - 1 for rank in ranks]))] = steps
    whole = np.minimum.accumulate(whole)
    first = np.flatnonzero(np.append(True, whole[1:] < whole[:-1]))
    counts = np.diff(starts[first], append=np.int64(d - 1))
    sizes = [*counts[:-1].tolist(), int(counts[-1]) + 1]
    return Tally.of_runs(whole[first].tolist(), sizes, grid)

"""Search for the pair of small neighbouring inputs that comes closest to epsilon, once for each mechanism.

    python tools/witness_search.py              all rows of `verify --all`: prints evidence/witnesses.json
    python tools/witness_search.py laplace      the rows of one noise
    python tools/witness_search.py 0 7          the first row and the eighth

The search uses random starts and hill climbing over k, epsilon, integer scores and the items of one more user. It
computes laws by the definition alone, which is quick and independent of the mechanisms.
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction

from discreet.evidence import definition
from discreet.evidence.neighbours import Witness
from discreet.mechanisms.base import Form, Mechanism
from discreet.mechanisms.noise import noise_of
from discreet.mechanisms.registry import all_variants, to_dict

_EPSILONS = tuple(map(Fraction, ("1/10", "1/4", "1/2", "1", "2", "4")))
_HIGHEST = 24
"""The largest score that the search tries."""
_LEVELS = 5
"""The most different scores in a pair. More of them make more different losses, each with an integral."""
_ENOUGH = 0.999
"""A climb ends at this share of epsilon. Among such pairs the one with the fewest outcomes wins."""
_STARTS, _PATIENCE = 16, 120
"""The number of climbs, and the number of steps without improvement after which a climb ends."""

Shape = tuple[int, int]
"""The number of items, and the number of released ones."""


@dataclass(frozen=True)
class Candidate:
    """An input, and a 1 for each item that one more user touches."""

    k: int
    epsilon: Fraction
    scores: tuple[int, ...]
    touched: tuple[int, ...]

    @property
    def neighbour(self) -> tuple[int, ...]:
        """The input with the user added."""
        return tuple(score + more for score, more in zip(self.scores, self.touched, strict=True))


def search(mechanism: Mechanism, starts: int, patience: int, seed: int = 0) -> Witness:
    """Return the pair closest to epsilon found by `starts` climbs of at most `patience` steps without improvement."""
    generator = random.Random(f"{mechanism!r} {seed}")  # noqa: S311
    best, share = None, -math.inf
    for start in _starts(mechanism, starts, generator):
        found, reached = _climb(mechanism, start, patience, generator)
        if best is None or _worth(found, reached, mechanism) > _worth(best, share, mechanism):
            best, share = found, reached
        if share >= _ENOUGH:
            break
    if best is None:
        raise ValueError("starts must be at least 1")
    rounded = math.floor(share * 10**6) / 10**6
    return Witness(best.k, best.epsilon, best.scores, best.neighbour, rounded, _few_items(mechanism, best))


def share_of_epsilon(mechanism: Mechanism, candidate: Candidate) -> float:
    """Return the largest log ratio of the two laws, by the definition, as a share of epsilon."""
    here, there = (
        definition.law(
            to_dict(mechanism), scores, candidate.k, candidate.epsilon, items=_few_items(mechanism, candidate)
        )
        for scores in (candidate.scores, candidate.neighbour)
    )
    return max(abs(here[outcome] - there[outcome]) for outcome in here) / float(candidate.epsilon)


def _few_items(mechanism: Mechanism, candidate: Candidate) -> int | None:
    """Return the bound on the items of a user, for a mechanism that needs one: the number this user touches."""
    return max(1, sum(candidate.touched)) if mechanism.releases_values else None


def _climb(mechanism: Mechanism, start: Candidate, patience: int, generator: random.Random) -> tuple[Candidate, float]:
    best, share = start, share_of_epsilon(mechanism, start)
    seen, idle = {start}, 0
    while idle < patience and share < _ENOUGH:
        idle += 1
        near = _mutate(best, generator)
        if near in seen or len({*near.scores, *near.neighbour}) > _LEVELS:
            continue
        seen.add(near)
        reached = share_of_epsilon(mechanism, near)
        if reached > share:
            best, share, idle = near, reached, 0
    return best, share


def _mutate(candidate: Candidate, generator: random.Random) -> Candidate:
    """Return the candidate with one, two or three of its parts changed."""
    for _ in range(generator.choice((1, 1, 2, 3))):
        i = generator.randrange(len(candidate.scores) + 1)
        if i == len(candidate.scores):
            candidate = replace(candidate, epsilon=generator.choice(_EPSILONS))
        elif generator.random() < 0.5:
            candidate = replace(candidate, touched=_with(candidate.touched, i, 1 - candidate.touched[i]))
        else:
            moved = candidate.scores[i] + generator.choice((-4, -1, 1, 4))
            candidate = replace(candidate, scores=_with(candidate.scores, i, min(max(0, moved), _HIGHEST)))
    return candidate


def _with(values: tuple[int, ...], i: int, value: int) -> tuple[int, ...]:
    return (*values[:i], value, *values[i + 1 :])


def _starts(mechanism: Mechanism, count: int, generator: random.Random) -> Iterator[Candidate]:
    """Yield candidates with few different scores, alternately of one of the smallest and one of the largest shapes."""
    shapes = sorted(_shapes(mechanism), key=lambda shape: outcomes(mechanism, shape))
    for number in range(count):
        d, k = generator.choice(shapes[:6] if number % 2 == 0 else shapes[-6:])
        top = generator.choice((1, 2, 3))
        yield Candidate(
            k,
            generator.choice(_EPSILONS),
            tuple(sorted((generator.randint(0, top) for _ in range(d)), reverse=True)),
            tuple(generator.randint(0, 1) for _ in range(d)),
        )


def _shapes(mechanism: Mechanism) -> list[Shape]:
    """Return the shapes whose laws can be enumerated quickly, integrals included."""
    if mechanism.form is Form.CANDIDATES and mechanism.needs_integrals:
        # Each set of a fallback needs an integral.
        every, most = [(d, k) for d in range(2, 6) for k in range(1, d)], 10
    elif not mechanism.ordered:
        every, most = [(d, k) for d in range(2, 11) for k in range(1, d)], 260
    elif mechanism.form is Form.LOSSES:
        # Only with many sequences can most of the weight move away from one of them.
        every, most = [(d, k) for d in range(3, 28) for k in range(2, d)], 720
    else:
        # At least two items, so that the factor k matters.
        longest = 4 if mechanism.longest_exact_order is None else mechanism.longest_exact_order
        every = [(d, k) for d in range(3, 8) for k in range(2, min(d, longest + 1))]
        most = 24 if mechanism.needs_integrals else 260
    return [shape for shape in every if outcomes(mechanism, shape) <= most]


def outcomes(mechanism: Mechanism, shape: Shape) -> int:
    """Return the number of sets or sequences."""
    return (math.perm if mechanism.ordered else math.comb)(*shape)


def _worth(candidate: Candidate, share: float, mechanism: Mechanism) -> float:
    """Return the share of epsilon, less a little for each outcome."""
    return min(share, _ENOUGH) - 1e-6 * outcomes(mechanism, (len(candidate.scores), candidate.k))


def main() -> None:
    """Print the best witness of every mechanism, or of those whose noise or number is given."""
    before = "{\n"
    for number, mechanism in enumerate(all_variants()):
        if len(sys.argv) == 1 or {str(number), noise_of(mechanism).name} & set(sys.argv[1:]):
            found = json.dumps(search(mechanism, _STARTS, _PATIENCE).to_dict())
            print(f"{before}  {json.dumps(repr(mechanism))}: {found}", end="", flush=True)
            before = ",\n"
    print("\n}")


if __name__ == "__main__":
    main()

"""Every shape of scores at 10^3 to 10^5 items: a release against the plain float one-shot, and the sampler alone.

Ratios are of the shortest times over many rounds in turn, which a busy machine moves least.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from functools import partial

import numpy as np

import discreet
from discreet.exact.entropy import Entropy
from discreet.exact.nested import WASTE
from discreet.mechanisms.canonical import Prepared
from discreet.mechanisms.tally import Tally
from discreet.sources.arrays.array import array_source
from peers import PLAIN, plain_one_shot
from scores import NO_NETFLIX, OF_COUNTS, netflix, zipf
from suite import Row, Rows, Run, power

EPSILONS = ("1", "0.1", "0.01", "0.001")
TARGETS: dict[tuple[int, int], float] = {
    (10**4, 10): 1.5, (10**4, 100): 1.5, (10**4, 1000): 2.5, (10**3, 10): 6, (10**3, 100): 6, (10**5, 10): 1,
    (10**5, 100): 1, (10**5, 1000): 1,
}  # fmt: skip
"""The longest time of a release of k of d items, in plain one-shots, for every shape and epsilon."""


def rows(run: Run) -> Rows:
    """Releases by shape, d and k, the worst epsilon of each; then what the sampler takes of that."""
    for (d, k), target in TARGETS.items():
        for name, scores in shapes(d):
            found = [against_plain(run, scores, k, epsilon) for epsilon in EPSILONS]
            epsilon, ratio, one = max(found, key=lambda each: each[1])
            what = f"{name}, {power(len(scores))} items, k = {k}, worst at epsilon = {epsilon}"
            yield Row(what, ratio, PLAIN, target, one=one)
    yield from sampler(run)
    if netflix() is None:
        yield NO_NETFLIX


def shapes(d: int) -> Iterator[tuple[str, np.ndarray]]:
    """Names and scores, in no order; the films of Netflix beside 10^4 others, where they are here."""
    rng = np.random.default_rng(4)
    yield "Zipf", zipf(d)
    yield "uniform 0..5000", rng.integers(0, 5001, d)
    yield "all equal", np.full(d, 7)
    yield "distinct floats", 5000.0 * rng.random(d)
    films = netflix()
    if films is not None and d == 10**4:
        yield "Netflix", films


def against_plain(run: Run, scores: np.ndarray, k: int, epsilon: str) -> tuple[str, float, float]:
    """Return the epsilon, how many plain one-shots a release takes, and what one of these takes."""
    release, plain = (
        partial(discreet.top_k, scores, k, epsilon, sensitivity=OF_COUNTS),
        partial(plain_one_shot, scores, k, float(epsilon)),
    )
    times = run.minima({"release": release, "plain": plain}, repeats=41)
    return epsilon, times["release"] / times["plain"], times["plain"]


def sampler(run: Run) -> Rows:
    """Measure preparing and one draw, ridges included; a further draw; and the largest number of levels."""
    slowest, further, most = 0.0, 0.0, 0
    for name, scores in [*shapes(10**4), *ridges(10**4)]:
        tally = array_source(scores).tally()
        for k in (10, 100, 1000):
            for epsilon in EPSILONS:
                ready = prepare(tally, k, epsilon, name)
                first = run.minima({"first": lambda: prepare(tally, k, epsilon, name).draw(Entropy())}, 21)["first"]  # noqa: B023
                again = run.minima({"again": lambda: ready.draw(Entropy())}, 21)["again"]  # noqa: B023
                slowest, further = max(slowest, first), max(further, again)
                most = max(most, len(ready.nested.fit(WASTE).cells.levels.b))
    yield Row("the sampler alone, preparing and one draw, k up to 1000, the slowest shape", 1000 * slowest, "ms", 1)
    yield Row("a further draw, k up to 1000, the slowest shape", 1000 * further, "ms", 0.1)
    yield Row("the sampler alone, the most levels", most, "levels", 100)


def ridges(d: int) -> Iterator[tuple[str, np.ndarray]]:
    """Scores that fall just as fast as sets become more, so that the mass is spread out widely."""
    for factor in (1.0, 4.0):
        yield f"ridge {factor:g}", -factor * np.log1p(np.arange(float(d)))


def prepare(tally: Tally, k: int, epsilon: str, name: str) -> Prepared:
    """Return the mechanism on a tally; a ridge is one whatever epsilon is."""
    up = Fraction(epsilon) if name.startswith("ridge") else Fraction(1)
    return discreet.Canonical().prepare(tally, k, Fraction(epsilon), discreet.Sensitivity(0, up))

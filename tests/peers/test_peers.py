"""Peeling and one-shot against two libraries that others wrote: OpenDP and diffprivlib, at equal epsilon.

Both answer by positions in the scores as given. Their counts are held against the exact law, and against our draws.

diffprivlib needs an older scikit-learn than everything else, and so an environment of its own: `make peers`.
"""

import functools
import json
import subprocess
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import opendp.prelude as dp
import pytest
from scipy import stats

import discreet
import draws
from discreet.evidence.law import law
from discreet.exact.ball import precision
from discreet.sources.arrays.array import array_source
from sampling import sample

ROOT = Path(__file__).parents[2]
PEERS = ROOT / ".venv-peers"
SCRIPT = ROOT / "tests" / "peers" / "count_diffprivlib.py"

# In no order and with ties: a wrong scale of the noise shows, and so does an item that is taken for another.
SCORES = [0, 6] + [1] * 4 + [0] * 8
DRAWS = 5000
OFF = Fraction(23, 20)
"""A sampler that spends 15% more than epsilon must be found."""

FRESH = 1e-6
"""OpenDP cannot be seeded, so each of its tests fails a right pair of samplers once in a million runs, in any run."""


@pytest.fixture
def fresh(monkeypatch):
    monkeypatch.setattr(draws, "ALPHA", FRESH)


def exactly(mechanism, k, epsilon, sensitivity):
    """The exact law of our sampler over sequences of scores; ranks count from the largest score."""
    prepared = mechanism.prepare(array_source(SCORES).tally(), k, Fraction(epsilon), sensitivity)
    with precision(112):
        probabilities = {ranks: float(log.exp()) for ranks, log in law(prepared).items()}
    return draws.by_score(probabilities, sorted(SCORES, reverse=True), ordered=True)


def assert_fits(counts, mechanism, k, epsilon, sensitivity):
    """The counts fit our law, are many enough to tell it from one that is off, and do not fit that one."""
    right, wrong = (exactly(mechanism, k, budget, sensitivity) for budget in (epsilon, epsilon * OFF))
    assert sum(right.values()) == pytest.approx(1, abs=1e-12)
    assert draws.power(DRAWS, right, wrong) > 1 - FRESH
    seen = draws.by_score(counts, SCORES, ordered=True)
    assert draws.fits(seen, right)
    assert not draws.fits(seen, wrong)


def budget(k):
    return Fraction(k, 2)


@functools.cache
def opendp_counts(noise, k):
    """Draws of OpenDP's noisy top-k at our epsilon, for users who each raise any of the scores by at most 1.

    Its measure chooses the noise: exponential for epsilon-DP, Gumbel for zCDP. Each round divides by `scale`, and its
    privacy map is k * d_in / scale for the one and k * (d_in / scale)^2 / 8 for the other, where d_in is the range of
    a user's changes: the L-infinity distance if the metric is monotone, which says that all scores move one way, and
    twice that if not. So d_in = 1 and scale = k / epsilon give epsilon, and epsilon^2 / (8 k), as ours do.
    """
    dp.enable_features("contrib")
    measure = dp.max_divergence() if noise == "exponential" else dp.zero_concentrated_divergence()
    space = dp.vector_domain(dp.atom_domain(T=int)), dp.linf_distance(T=int, monotonic=True)
    select = dp.m.make_noisy_top_k(*space, measure, k=k, scale=float(k / budget(k)))
    promised = budget(k) if noise == "exponential" else discreet.Peeling(noise).zcdp(budget(k), k)
    assert select.map(1) == pytest.approx(float(promised), rel=1e-12)
    return Counter(tuple(select(SCORES)) for _ in range(DRAWS))


@pytest.mark.some(2)
@pytest.mark.usefixtures("fresh")
@pytest.mark.parametrize(
    ("mechanism", "k"),
    [
        (discreet.Peeling("exponential"), 1),
        (discreet.OneShot("exponential"), 1),
        (discreet.Peeling("exponential"), 3),
        (discreet.Peeling("gumbel"), 1),
        (discreet.OneShot("gumbel"), 1),
        (discreet.Peeling("gumbel"), 3),
        (discreet.OneShot("gumbel"), 3),
    ],
    ids=str,
)
def test_opendp_draws_from_our_law(mechanism, k):
    assert_fits(opendp_counts(mechanism.noise, k), mechanism, k, budget(k), discreet.Sensitivity())


def same_law(one, other):
    """Whether two samples may come from one law, by a chi-square test of their table at FRESH."""
    both = Counter(one) + Counter(other)
    shares = {outcome: count / both.total() for outcome, count in both.items()}
    cells = draws.pooled(shares, min(one.total(), other.total()))
    table = np.array([[sum(counts[o] for o in cell) for cell in cells] for counts in (one, other)])
    return stats.chi2_contingency(table, correction=False).pvalue > FRESH


@pytest.mark.long
@pytest.mark.usefixtures("fresh")
def test_our_draws_and_those_of_opendp_are_alike():
    mechanism, k, ours = discreet.OneShot("exponential"), 1, 6000
    right, wrong = (exactly(mechanism, k, budget(k) * factor, discreet.Sensitivity()) for factor in (1, OFF))
    # Two samples of m and n tell as much apart as one of mn/(m+n) does from a law.
    assert draws.power(ours * DRAWS / (ours + DRAWS), right, wrong) > 1 - FRESH
    peer = draws.by_score(opendp_counts(mechanism.noise, k), SCORES, ordered=True)
    here, hasty = (
        draws.by_score(sample(mechanism, SCORES, k, budget(k) * factor, ours), SCORES, ordered=True)
        for factor in (1, OFF)
    )
    assert same_law(here, peer)
    assert not same_law(hasty, peer)


# noise, k, the range of changes of one user, and whether they all go one way
DIFFPRIVLIB = [
    ("exponential", 1, discreet.Sensitivity(), True),
    ("exponential", 2, discreet.Sensitivity(), True),
    ("exponential", 1, discreet.Sensitivity(1, 1), False),
    ("gumbel", 1, discreet.Sensitivity(), True),
    ("gumbel", 2, discreet.Sensitivity(), True),
    ("gumbel", 1, discreet.Sensitivity(1, 1), False),
]


@functools.cache
def diffprivlib_counts():
    """Draws of all cases, each seeded; k items by k rounds at epsilon / k.

    Its Exponential and PermuteAndFlip weigh a unit of utility by epsilon / sensitivity if monotonic, that is where one
    user moves all scores one way by at most the sensitivity, and by half of that otherwise. Ours is epsilon / (down +
    up): down = 0 and up = 1 is the first with a sensitivity of 1, down = up = 1 is the second.
    """
    cases = [
        {
            "mechanism": "PermuteAndFlip" if noise == "exponential" else "Exponential",
            "epsilon": float(budget(k) * 2 * sensitivity.delta),
            "sensitivity": 1,
            "monotonic": monotonic,
            "scores": SCORES,
            "k": k,
            "draws": DRAWS,
            "seed": 20 + i,
        }
        for i, (noise, k, sensitivity, monotonic) in enumerate(DIFFPRIVLIB)
    ]
    asked = "\n".join(map(json.dumps, cases))
    answer = subprocess.run(
        [PEERS / "bin" / "python", SCRIPT], input=asked, capture_output=True, text=True, check=True, timeout=120
    )
    return [Counter({tuple(order): n for order, n in json.loads(line)}) for line in answer.stdout.splitlines()]


@pytest.mark.skipif(
    not (PEERS / ".installed").exists(), reason="diffprivlib lives in .venv-peers/: run `make peers` to have it"
)
@pytest.mark.parametrize("i", range(len(DIFFPRIVLIB)), ids=[f"{noise} {k} {s}" for noise, k, s, _ in DIFFPRIVLIB])
def test_diffprivlib_draws_from_our_law(i):
    noise, k, sensitivity, _ = DIFFPRIVLIB[i]
    counts, epsilon = diffprivlib_counts()[i], budget(k) * 2 * sensitivity.delta
    assert counts.total() == DRAWS
    for mechanism in [discreet.Peeling(noise), discreet.OneShot(noise)] if k == 1 else [discreet.Peeling(noise)]:
        assert_fits(counts, mechanism, k, epsilon, sensitivity)

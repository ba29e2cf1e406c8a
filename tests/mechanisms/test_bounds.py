"""Every bound that floats propose is checked with balls, at magnitudes chosen to break it."""

import random
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

import discreet
from discreet.exact.ball import ball, log_binomial, precision
from discreet.exact.entropy import Entropy
from discreet.mechanisms.joint import log_count
from discreet.mechanisms.noise import NOISES
from discreet.sources.arrays.array import array_source
from tallies import EPSILONS, TALLIES, sizes


@pytest.mark.corners
@pytest.mark.parametrize("tally", TALLIES)
@pytest.mark.parametrize(
    "mechanism",
    [
        discreet.Canonical(noise="laplace"),
        discreet.Canonical(gamma=1, noise="logistic"),
        discreet.Canonical(gamma="1/7", noise="exponential"),
        discreet.Canonical(gamma=0, noise="half-logistic"),
        discreet.Canonical(ceil=True),
    ],
    ids=str,
)
def test_no_box_accepts_with_more_than_certainty(tally, mechanism):
    """The weight of a box is at least cells * (best gain in it) * (largest size in it), so acceptance is at most 1."""
    for epsilon in EPSILONS:
        for k in sizes(tally):
            prepared = mechanism.prepare(tally, k, Fraction(epsilon), discreet.Sensitivity())
            boxes = prepared.boxes
            chosen = range(len(boxes.h1)) if len(boxes.h1) <= 60 else random.Random(k).sample(range(len(boxes.h1)), 60)
            with precision(160):
                assert prepared.log_acceptance(0, prepared.top) <= 0
                for j in chosen:
                    h1, h2, t1, t2 = (int(corner[j]) for corner in (boxes.h1, boxes.h2, boxes.t1, boxes.t2))
                    gain, size = -ball(prepared.excess((h2, t1))), prepared.log_size((h1, t2))
                    assert gain <= arb(float(boxes.gain[j]))
                    assert size <= arb(float(boxes.size[j]))
                    assert gain + size + arb(boxes.cells(j)).log() <= prepared.envelope.log_weight(j + 1)


@pytest.mark.parametrize("tally", TALLIES)
def test_boxes_partition_the_grid_and_waste_little(tally):
    for k in sizes(tally):
        prepared = discreet.Canonical(noise="laplace").prepare(tally, k, Fraction(1, 10), discreet.Sensitivity())
        boxes = prepared.boxes
        assert sum(boxes.cells(j) for j in range(len(boxes.h1))) == k * (tally.d - k)
        assert boxes.h1.min() == 0
        assert boxes.h2.max() == k - 1
        assert boxes.t1.min() == k
        assert boxes.t2.max() == tally.d - 1
        assert len(boxes.h1) < 20_000


@pytest.mark.parametrize("tally", TALLIES)
def test_no_part_of_joint_accepts_with_more_than_certainty(tally):
    for epsilon in EPSILONS:
        for k in sizes(tally)[:4]:
            prepared = discreet.Joint().prepare(tally, k, Fraction(epsilon), discreet.Sensitivity())
            parts = range(len(prepared.edges) - 1)
            chosen = parts if len(parts) <= 12 else random.Random(k).sample(parts, 12)
            with precision(160):
                for part in chosen:
                    last = prepared.last_ranks(float(prepared.edges[part + 1]))
                    # A loss of 0 weighs most; the acceptance caps it at the beginning of the part.
                    assert prepared.log_acceptance(part, last, Fraction(0)) <= 0


@pytest.mark.parametrize("tally", TALLIES)
@pytest.mark.parametrize("noise", NOISES)
def test_one_shot_bounds_hold_for_every_element(tally, noise):
    for epsilon in ("1e-9", 1, 10_000):
        for k in sizes(tally)[:4]:
            prepared = discreet.OneShot(noise).prepare(tally, k, Fraction(epsilon), discreet.Sensitivity())
            floats = prepared.gain_float(prepared.start)
            with precision(160):
                for j in random.Random(k).sample(range(len(prepared.start)), min(20, len(prepared.start))):
                    exact, rounded = prepared.gain(int(prepared.start[j])), arb(float(floats[j]))
                    assert exact <= arb(float(prepared.bound[j]))
                    assert abs(exact - rounded) <= abs(exact) * 2.0**-45 + 2.0**-45 or abs(exact) >= 1e307


@pytest.mark.some(24)
@pytest.mark.parametrize("tally", TALLIES)
@pytest.mark.parametrize(
    "mechanism",
    [
        discreet.Canonical(),
        discreet.Canonical(noise="laplace"),
        discreet.OneShot(),
        discreet.OneShot("gumbel"),
        discreet.Joint(),
    ],
    ids=str,
)
def test_draws_end_and_are_k_different_ranks(tally, mechanism):
    entropy = Entropy(random.Random(9))
    for epsilon in EPSILONS:
        for k in sizes(tally)[:4]:
            ranks = mechanism.prepare(tally, k, Fraction(epsilon), discreet.Sensitivity()).draw(entropy)
            assert len(set(ranks.tolist())) == k
            assert ranks.min() >= 0
            assert ranks.max() < tally.d


@pytest.mark.parametrize("d", [20, 10**4])
@pytest.mark.parametrize("noise", ["laplace", "exponential"])
def test_peeling_draws_end(d, noise):
    tally = array_source(np.arange(d) % 17).tally()
    ranks = (
        discreet.Peeling(noise).prepare(tally, 15, Fraction(1), discreet.Sensitivity()).draw(Entropy(random.Random(2)))
    )
    assert len(set(ranks.tolist())) == 15


@pytest.mark.parametrize("noise", ["laplace", "logistic"])
def test_a_low_value_of_the_top_does_not_ask_for_thousands_of_arrivals(noise):
    """Boxes must be tight even where the top-k outweighs them, because noise without a floor can sink the top-k."""
    tally = array_source([10**6] * 24 + [10**6 - 49 - 2 * i for i in range(76)]).tally()
    prepared = discreet.Canonical(noise=noise).prepare(tally, 24, Fraction(1), discreet.Sensitivity())
    upper = np.exp(prepared.boxes.log_mass()).sum()
    with precision(80):
        cells = [(h, t) for h in range(24) for t in range(24, 100)]
        total = sum((prepared.log_weight(cell).exp() for cell in cells), arb(0))
    assert upper < 2.5 * float(total.mid())


@pytest.mark.parametrize(
    ("scores", "k", "epsilon", "sensitivity"),
    [
        (np.array([0.1 + 0.2] * 100 + [0.0] * 100), 100, 60, "0.1"),
        (np.array([2 + 2.0**-51] * 100 + [0.0] * 100), 100, 100, 1),
        (np.arange(1000), 100, "1e-400", "1e-400"),
        (np.array([2, 1, 0]), 2, "1e-309", "1e-309"),
    ],
)
def test_rounded_losses_are_counted_exactly_at_the_corners(scores, k, epsilon, sensitivity):
    prepared = discreet.Canonical(ceil=True).prepare(
        array_source(scores).tally(), k, Fraction(epsilon), discreet.Sensitivity(0, sensitivity)
    )
    boxes = prepared.boxes
    with precision(160):
        for j in range(len(boxes.h1)):
            gain = -ball(prepared.excess((int(boxes.h2[j]), int(boxes.t1[j]))))
            assert gain <= arb(float(boxes.gain[j]))
            assert arb(float(boxes.gain[j])) <= gain + 1e-6 + abs(gain) * 1e-9
    assert len(set(prepared.draw(Entropy(random.Random(1))).tolist())) == k


def test_scores_and_sensitivities_beyond_all_floats():
    """Scaling scores and sensitivity by 10^400 changes nothing, not even which ranks come out of the same bits."""
    scores = [Fraction(7), Fraction(5), Fraction(2), Fraction(1)]
    for mechanism in (discreet.Canonical(), discreet.Joint(), discreet.OneShot("laplace")):
        small, large = (
            discreet.top_k(
                [factor * score for score in scores],
                2,
                1,
                mechanism=mechanism,
                rng=random.Random(4),
                sensitivity=discreet.Sensitivity(down=0, up=factor),
            ).items
            for factor in (Fraction(1), Fraction(2) ** 1400)
        )
        assert small == large


def test_log_count_of_huge_products():
    last = np.full(1000, 2**63 - 1)
    with precision(400):
        exact = sum(((arb(2**63 - i)).log() for i in range(1000)), arb(0))
        assert log_count(last).overlaps(exact)
    with precision(96):
        assert log_count(last).overlaps(exact)
        assert log_count(last).rad() < 1e-6


def test_log_binomial_floats_are_never_below():
    """On random and extreme pairs, against exact integers where they are small and balls elsewhere."""
    from math import comb

    from discreet.exact.ball import bound_above, log_binomial_upper

    rng = np.random.default_rng(20)
    pairs = [(a, b) for a in range(40) for b in range(40)]
    pairs += [(int(10 ** rng.uniform(0, 6)), int(2 ** rng.uniform(0, 62.9))) for _ in range(400)]
    pairs += [(1, 2**63 - 2), (2**62, 2**62 - 1), (10**5, 10**7), (10**7, 2**63 - 10**7 - 1)]
    r, rest = np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs])
    bounds = bound_above(log_binomial_upper(r, rest))
    with precision(256):
        for (a, b), bound in zip(pairs, bounds, strict=True):
            exact = arb(comb(a + b, a)).log() if a + b < 100 else log_binomial(a + b, a)
            assert exact <= arb(float(bound))
            assert arb(float(bound)) <= exact * (1 + 2.0**-38) + 0.003

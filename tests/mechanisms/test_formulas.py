"""The formulas of each mechanism against the definition of its loss, exactly, on all small instances."""

import itertools
import random
from collections import Counter
from fractions import Fraction
from math import comb

import numpy as np
import pytest
from flint import arb

import discreet
from discreet.evidence import definition as by_definition
from discreet.exact.ball import ball, precision
from discreet.exact.entropy import Entropy
from discreet.mechanisms import canonical, joint, oneshot
from discreet.mechanisms.joint import log_count
from discreet.mechanisms.noise import LAPLACE
from discreet.sources.arrays.array import array_source

GAMMAS = [Fraction(0), Fraction(1, 3), Fraction(1, 2), Fraction(5, 7), Fraction(1)]


def vectors():
    """Descending scores for every pattern of ties up to d = 6, with uneven gaps."""
    for d in range(2, 7):
        for steps in itertools.product([0, 1], repeat=d - 1):
            gaps = [step * (3 * i % 5 + 1) for i, step in enumerate(steps)]
            yield [sum(gaps[i:]) for i in range(d)]


def tally_of(scores):
    return array_source(np.array(scores)).tally()


def class_of(subset, k):
    """(h, t) of a subset of ranks, by the words of the definition."""
    h = next((rank for rank in range(k) if rank not in subset), k)
    return h, max(subset)


@pytest.mark.parametrize("gamma", GAMMAS)
def test_every_class_of_the_canonical_mechanism_has_its_loss_and_its_size(gamma):
    s, checked = Fraction(7, 3), 0
    for scores in vectors():
        tally = tally_of(scores)
        for k in range(1, len(scores)):
            losses = canonical.Losses(tally, k, s, gamma)
            prepared = canonical.Prepared(canonical.Classes(losses))
            best = by_definition.canonical_loss(scores, range(k), gamma)
            sizes = Counter()
            for subset in by_definition.subsets(scores, k):
                cell = class_of(subset, k)
                sizes[cell] += 1
                assert prepared.excess(cell) == s * (by_definition.canonical_loss(scores, subset, gamma) - best)
            assert all(prepared.size(cell) == size for cell, size in sizes.items())
            grid = {(h, t) for h in range(k) for t in range(k, len(scores))} | {prepared.top}
            assert sum(prepared.size(cell) for cell in grid) == comb(len(scores), k)
            checked += 1
    assert checked == 2 + 4 * 2 + 8 * 3 + 16 * 4 + 32 * 5


def test_every_tail_class_at_gamma_one_has_its_loss_and_its_size():
    s, gamma = Fraction(2, 3), Fraction(1)
    for scores in vectors():
        tally = tally_of(scores)
        for k in range(1, len(scores)):
            prepared = discreet.Canonical(gamma=1).prepare(tally, k, s, discreet.Sensitivity())
            assert isinstance(prepared.classes, canonical.TailClasses)
            best = by_definition.canonical_loss(scores, range(k), gamma)
            sizes = Counter()
            for subset in by_definition.subsets(scores, k):
                cell = prepared.top if max(subset) < k else (0, max(subset))
                sizes[cell] += 1
                assert prepared.excess(cell) == s * (by_definition.canonical_loss(scores, subset, gamma) - best)
            assert all(prepared.size(cell) == size for cell, size in sizes.items())


def test_subsets_of_a_class_are_exactly_its_members_and_equally_likely():
    import draws

    k, d = 3, 6
    losses = canonical.Losses(tally_of([9, 7, 6, 4, 3, 1]), k, Fraction(1), Fraction(1, 2))
    entropy = Entropy(random.Random(5))
    for cell in [(0, 5), (1, 4), (2, 3), (0, 3)]:
        members = [y for y in itertools.combinations(range(d), k) if class_of(y, k) == cell]
        drawn = Counter(
            tuple(canonical.Classes(losses).subset(*cell, entropy).tolist()) for _ in range(60 * len(members))
        )
        assert set(drawn) == set(members)
        assert len(members) == 1 or draws.fits(drawn, {y: 1 / len(members) for y in members})


def test_the_joint_loss_and_the_count_of_sequences():
    for scores in vectors():
        d = len(scores)
        for k in range(1, min(d, 4)):
            prepared = joint.Prepared(tally_of(scores), k, Fraction(1, 2))
            sequences = list(itertools.permutations(range(d), k))
            losses = [prepared.loss(np.array(y)) for y in sequences]
            assert losses == [by_definition.joint_loss(scores, y) for y in sequences]
            for reach in [0.5, 1.0, 1.5, 2.0, 4.0, 7.25, float("inf")]:
                last = prepared.last_ranks(reach)
                below = sum(loss < reach for loss in losses)
                assert np.prod(last - np.arange(k) + 1) == below
                for bits in (96, 192):
                    with precision(bits):
                        assert log_count(last).contains(arb(below).log()) or log_count(last).overlaps(arb(below).log())


def test_the_parts_of_the_joint_mechanism_add_up_to_the_weight():
    """Over all parts, acceptance times weight, shared among the sequences drawn, is exp(-c loss) for each sequence."""
    scores, k = [9, 7, 7, 4, 0], 2
    prepared = joint.Prepared(tally_of(scores), k, Fraction(3, 10))
    for sequence in itertools.permutations(range(len(scores)), k):
        loss = prepared.loss(np.array(sequence))
        with precision(200):
            total = arb(0)
            for part in range(len(prepared.edges) - 1):
                last = prepared.last_ranks(float(prepared.edges[part + 1]))
                if loss < prepared.edges[part + 1]:
                    assert all(rank <= bound for rank, bound in zip(sequence, last, strict=True))
                    log_mass = prepared.log_acceptance(part, last, loss) + prepared.envelope.log_weight(part)
                    total += (log_mass - log_count(last)).exp()
            assert abs(total - (-ball(prepared.rate * loss)).exp()) < 1e-20


@pytest.mark.parametrize("rate", [1e-3, 0.5, 40.0])
def test_pieces_of_parts_of_joint_stay_in_their_part(rate):
    """Whatever floats do, every piece lies in the part whose bound it has, and together they are the part."""
    near = 1.0 + np.array([0, 1, 3, 1000]) * 2.0**-52
    for edges in (np.array([0.0, 1.0, 2.5, 1e6]), near, 2.0**53 * near, np.array([0.0, 5e-324, 1e-300, 1.0])):
        pieces = np.array([32, 7, 1])
        finer, part = joint._cut_evenly(rate, edges, pieces)
        assert (np.diff(finer) > 0.0).all()
        assert set(edges) <= set(finer)
        assert (edges[part] <= finer[:-1]).all()
        assert (finer[1:] <= edges[part + 1]).all()
    finer, _ = joint._cut_evenly(rate, np.array([1.0, 1.0 + 1.0 / rate]), np.array([4]))
    mass = -np.diff(np.exp(-rate * finer))
    assert mass == pytest.approx(np.full(4, mass.mean()))


@pytest.mark.parametrize("epsilon", ["1", "0.1", "0.01"])
def test_joint_counts_sequences_at_few_edges_and_draws_few_in_vain(epsilon, monkeypatch):
    counted, look_up = [], joint.last_ranks
    monkeypatch.setattr(joint, "last_ranks", lambda tally, k, at: counted.append(len(at)) or look_up(tally, k, at))
    tally = tally_of((1e6 / np.arange(1, 5001) ** 0.8).astype(np.int64))
    prepared = discreet.Joint().prepare(tally, 500, Fraction(epsilon), discreet.Sensitivity())
    assert len(prepared.edges) > 2 * sum(counted)
    assert sum(counted) < 120
    arranged, arrangement = [], Entropy.arrangement
    entropy = Entropy(random.Random(7))
    monkeypatch.setattr(Entropy, "arrangement", lambda self, last: arranged.append(1) or arrangement(self, last))
    for _ in range(100):
        prepared.draw(entropy)
    assert len(arranged) < 140


def test_the_canonical_parts_add_up_to_the_weight():
    """A cell is in one box; box weight / cells * acceptance is its own weight."""
    tally = tally_of([30.25, 12, 12, 9, 4, 4, 1, 0])
    prepared = discreet.Canonical(ceil=True).prepare(tally, 3, Fraction(1, 2), discreet.Sensitivity())
    assert not prepared.classes.losses.is_sum
    boxes, seen = prepared.boxes, Counter()
    for j in range(len(boxes.h1)):
        for h in range(boxes.h1[j], boxes.h2[j] + 1):
            for t in range(boxes.t1[j], boxes.t2[j] + 1):
                seen[int(h), int(t)] += 1
                with precision(200):
                    proposed = prepared.envelope.log_weight(j + 1) - arb(boxes.cells(j)).log()
                    kept = prepared.log_acceptance(j + 1, (int(h), int(t)))
                    assert abs(proposed + kept - prepared.log_weight((int(h), int(t)))) < 1e-20
    assert seen == Counter({(h, t): 1 for h in range(3) for t in range(3, 8)})


def test_one_shot_values_are_scores_times_s_over_k():
    for scores in vectors():
        for k in range(1, len(scores)):
            weight = Fraction(5, 4) / k
            prepared = discreet.OneShot().prepare(tally_of(scores), k, Fraction(5, 4), discreet.Sensitivity())
            assert prepared.weight == weight
            for rank, score in enumerate(scores):
                assert prepared.excess(rank) == weight * (scores[k - 1] - score)


def test_streams_of_one_shot_cover_every_rank_once():
    for scores in vectors():
        for k in range(1, len(scores)):
            prepared = oneshot.Prepared(tally_of(scores), k, Fraction(1), LAPLACE)
            assert prepared.start[0] == 0
            assert (np.diff(prepared.start) > 0).all()
            assert (prepared.cells == np.diff([*prepared.start, len(scores)])).all()
            for j, (start, cells) in enumerate(zip(prepared.start, prepared.cells, strict=True)):
                for rank in range(start, start + cells):
                    with precision(100):
                        assert prepared.gain(int(rank)) <= arb(float(prepared.bound[j]))


@pytest.mark.parametrize("factor", [Fraction(1), Fraction(1, 3), Fraction(2) ** 1100, Fraction(1, 2**1100)])
@pytest.mark.parametrize("epsilon", [Fraction(7, 5), Fraction(10) ** -310, Fraction(10) ** 310])
def test_the_joint_weight_of_scores_that_floats_cannot_hold(factor, epsilon):
    """The exponent is -s/2 times the loss, whatever the scores are brought to before floats see them."""
    scores = [9, 7, 7, 4, 0]
    sensitivity = discreet.Sensitivity(down=factor / 2, up=factor)
    tally = tally_of([factor * score for score in scores] if factor != 1 else scores)
    prepared = discreet.Joint().prepare(tally, 2, epsilon, sensitivity)
    for sequence in itertools.permutations(range(len(scores)), 2):
        loss = prepared.rate * prepared.loss(np.array(sequence))
        assert loss == epsilon / 3 * by_definition.joint_loss(scores, sequence)
    with precision(160):
        for part in range(len(prepared.edges) - 1):
            last = prepared.last_ranks(float(prepared.edges[part + 1]))
            assert prepared.log_acceptance(part, last, Fraction(0)) <= 0
    assert len(prepared.edges) < 100


def test_the_float_count_of_sequences_is_the_exact_one():
    for scores in vectors():
        d = len(scores)
        for k in range(1, min(d, 4)):
            prepared = joint.Prepared(tally_of(scores), k, Fraction(1, 2))
            losses = [by_definition.joint_loss(scores, y) for y in itertools.permutations(range(d), k)]
            reaches = [0.5, 1.0, 2.0, 7.25, float("inf")]
            counts = [sum(loss < reach for loss in losses) for reach in reaches]
            assert np.allclose(prepared._log_counts(np.array(reaches)), np.log(counts), rtol=1e-13, atol=1e-15)
            # At a reach of 0 nothing is strictly below; the best sequences are counted all the same.
            assert prepared._log_counts(np.array([0.0])) == pytest.approx(np.log(losses.count(0)), abs=1e-14)


@pytest.mark.parametrize("step", ["0.1", "0.3", "0.7"])
@pytest.mark.parametrize("largest", [50, 10**4, 10**7])
def test_rounded_losses_as_floats_are_on_the_right_side_of_every_step(largest, step):
    """Multiples of a step are whole numbers of steps but for the rounding of the floats themselves."""
    multiples = sorted(random.Random(0).sample(range(largest), 40), reverse=True)
    tally = array_source(np.array([float(step) * i for i in multiples])).tally()
    prepared = discreet.Canonical(ceil=True).prepare(tally, 7, Fraction(2), discreet.Sensitivity(0, step))
    losses = prepared.classes.losses
    h, t = (side.ravel() for side in np.meshgrid(np.arange(7), np.arange(7, 40)))
    heights = losses.height_h(h), losses.height_t(t)
    exact = np.array([float(losses.excess(int(i), int(j))) for i, j in zip(h, t, strict=True)])
    assert not (exact % 1.0).any()
    assert np.allclose(-losses.gain(*heights, h, t), exact, rtol=1e-12, atol=0.0)
    # Rounding up in floats would be wrong here, and not only where the float is a whole number.
    total = sum(heights)
    assert largest < 10**7 or ((np.ceil(total) != exact) & (total != np.rint(total))).any()


@pytest.mark.parametrize("gamma", GAMMAS)
def test_float_losses_are_the_exact_ones(gamma):
    for scores in vectors():
        for k in range(1, len(scores)):
            losses = canonical.Losses(tally_of(scores), k, Fraction(7, 3), gamma)
            h, t = (side.ravel() for side in np.meshgrid(np.arange(k), np.arange(k, len(scores))))
            exact = [float(losses.excess(int(i), int(j))) for i, j in zip(h, t, strict=True)]
            assert np.allclose(-losses.gain(losses.height_h(h), losses.height_t(t), h, t), exact, rtol=1e-14, atol=0.0)

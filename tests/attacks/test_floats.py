"""Attacks on floating point: laws that floats bend, each computed exactly for the naive code and for discreet."""

import math
import random
from fractions import Fraction
from itertools import combinations, pairwise, product

import numpy as np
import pytest
from flint import arb

import discreet
import draws
from discreet.evidence.law import law
from discreet.exact.ball import precision
from discreet.exact.entropy import Entropy
from discreet.mechanisms.noise import NOISES
from discreet.sources.arrays.array import array_source
from sampling import sample

EVERY = [
    *(discreet.Canonical(noise=noise) for noise in NOISES),
    *(discreet.OneShot(noise) for noise in NOISES),
    discreet.Canonical(gamma=1),
    discreet.Peeling("laplace"),
    discreet.Joint(),
]


def prepared(mechanism, scores, k, epsilon):
    """The mechanism on scores, which rank as they come: the law is over ranks, so they must be in descending order."""
    tally = array_source(scores).tally()
    return mechanism.prepare(tally, k, Fraction(epsilon), discreet.Sensitivity())


class Says(random.Random):
    """A generator of Python's own whose next numbers are known, as an attacker may wait for them."""

    def __init__(self, *numbers):
        self.numbers = list(numbers)

    def random(self):
        return self.numbers.pop(0)

    def shuffle(self, x):
        x.reverse()


# 1. Support mismatch by underflow.


def naive_permute_and_flip(scores, epsilon, rng):
    """Permute-and-flip for counts of users, as it is usually written."""
    order, best = list(range(len(scores))), max(scores)
    while True:
        rng.shuffle(order)
        for i in order:
            if rng.random() < math.exp(epsilon * (scores[i] - best)):
                return i


def naive_flip(gap, epsilon):
    """The exact chance that `random() < p` keeps an item so far below the best: `random` gives multiples of 2^-53."""
    return Fraction(math.ceil(Fraction(math.exp(-epsilon * gap)) * 2**53), 2**53)


def naive_exponential_law(scores, epsilon):
    """What `numpy.random.choice(d, p=p)` does: the exact law over its uniform numbers, the multiples of 2^-53."""
    weights = np.exp(epsilon * (np.array(scores, float) - max(scores)))
    edges = [0, *np.cumsum(weights / weights.sum()).tolist()]
    points = [min(math.ceil(Fraction(edge) * 2**53), 2**53) for edge in edges]
    return [Fraction(high - low, 2**53) for low, high in pairwise(points)]


def test_a_float_flip_underflows_and_an_item_becomes_impossible():
    """Scores 75 and 0, epsilon 10: the weak item can win only where one user of the strong one has left."""
    # The smallest number that a float generator can give is 0, one time in 2^53.
    assert math.exp(10 * (0 - 75)) == 0.0
    assert 0.0 < math.exp(10 * (0 - 74)) < 1e-320
    assert naive_permute_and_flip([75, 0], 10, Says(0.0, 0.0)) == 0
    assert naive_permute_and_flip([74, 0], 10, Says(0.0, 0.0)) == 1
    # Only 0 is below so small a number: the chance of a flip is none here, and 2^-53 there where e^-740 is right.
    assert naive_flip(75, 10) == 0
    assert naive_flip(74, 10) == Fraction(1, 2**53)


# A chance of e^-750 is integrated with more digits than that; for these two noises that takes long, so less is asked.
SLOW = ("laplace", "logistic")


@pytest.mark.some(4)
@pytest.mark.parametrize("mechanism", EVERY, ids=str)
def test_no_item_is_impossible_in_either_world(mechanism):
    """The same scores with discreet: the weak item keeps its chance, and one user changes it within epsilon."""
    epsilon, digits = (1, 200) if getattr(mechanism, "noise", "") in SLOW else (10, 1300)
    assert naive_flip(75, 10) == 0 < naive_flip(74, 10)
    with precision(digits):
        here, there = (law(prepared(mechanism, scores, 1, epsilon))[(1,)] for scores in ([75, 0], [74, 0]))
        assert -76 * epsilon < here < there < 0
        assert there - here <= epsilon + arb("1e-9")


def test_float_weights_add_up_to_one_before_the_last_item():
    """Scores 37 and 0, epsilon 1: the running sum is 1 without the last item; at 36 and 0 it is not."""
    here, there = naive_exponential_law([37, 0], 1), naive_exponential_law([36, 0], 1)
    assert here[1] == 0
    assert there[1] == Fraction(1, 2**52)
    exact = discreet.OneShot("gumbel")
    with precision(112):
        here, there = (law(prepared(exact, scores, 1, 1))[(1,)] for scores in ([37, 0], [36, 0]))
        assert here.overlaps(-(1 + arb(37).exp()).log())
        assert abs(there - here) < 1


class Ones:
    """A first answer, then so many answers of ones, then zeros: with ones, a uniform number still closer to 1."""

    def __init__(self, first, ones):
        self.first, self.ones, self.asked = first, ones, 0

    def getrandbits(self, k, /):
        self.asked += k
        if self.first is not None:
            value, self.first = self.first, None
            return value
        self.ones -= 1
        return 2**k - 1 if self.ones >= 0 else 0


def test_bits_that_let_the_weak_item_win_do_so():
    """Scores 75 and 0, epsilon 1: a uniform number 2^-128 below 1 wins, one 2^-64 below 1 does not."""
    ready = prepared(discreet.OneShot("exponential"), [75, 0], 1, 1)
    # The first 128 bits are the first words of both items: one half for the strong one, all ones for the weak one.
    words = (2**64 - 1) << 64 | 2**63
    lucky, unlucky = Ones(words, ones=2), Ones(words, ones=0)
    assert ready.draw(Entropy(lucky)).tolist() == [1]
    assert ready.draw(Entropy(unlucky)).tolist() == [0]
    assert lucky.asked > 128
    # The naive flip gives the weak item 2^-53 for what should be e^-75 or 2^-108: 2^55 times too much.
    assert naive_permute_and_flip([75, 0], 1, Says(0.0)) == 1
    assert naive_permute_and_flip([75, 0], 1, Says(2.0**-53, 0.5)) == 0
    assert 2.0**54 < 2.0**-53 / math.exp(-75) < 2.0**56


# 2. Scores beyond the whole numbers of a float.


def naive_law(scores, epsilon):
    """The exponential mechanism for counts with scores in a float column, computed with care from there on."""
    values = np.array(scores, dtype=np.float64)
    weights = np.exp(epsilon * (values - values.max()))
    return weights / weights.sum()


@pytest.mark.parametrize(
    ("big", "before", "move", "epsilon", "spent"), [(2**53, 2, 2, 1, 1.89), (2**62, 512, 1024, "0.001", 0.638)]
)
def test_one_user_moves_a_float_score_by_two_or_by_a_thousand(big, before, move, epsilon, spent):
    """Rounding to even lets one more user move a score of 2^53 by 2, and one of 2^62 by 1024, or by nothing."""
    assert float(big) + 1 == float(big)
    assert float(big + before + 1) - float(big + before) == move
    here, there = [big + before, big], [big + before + 1, big]
    weak = [naive_law(scores, float(epsilon))[1] for scores in (here, there)]
    assert math.log(weak[0] / weak[1]) == pytest.approx(spent, rel=0.002)
    assert spent > 1.8 * float(epsilon)
    for mechanism in EVERY:
        with precision(112):
            limit = arb(str(epsilon)) + arb("1e-9")
            laws = [law(prepared(mechanism, scores, 1, epsilon)) for scores in (here, there)]
            assert all(abs(laws[0][ranks] - laws[1][ranks]) <= limit for ranks in laws[0])


@pytest.mark.some(12)
@pytest.mark.parametrize("shift", [2**53, 2**62, 2**62 + 1, -(2**62) - 3])
@pytest.mark.parametrize("mechanism", EVERY, ids=str)
def test_a_shift_that_floats_cannot_take_changes_nothing(shift, mechanism):
    scores = [9, 8, 8, 5]
    shifted = [shift + score for score in scores]
    # The naive law of the shifted scores is another one: differences of 1 are gone, or are 4 or 1024.
    assert abs(naive_law(scores, 0.5) - naive_law(shifted, 0.5)).max() > 0.05
    with precision(112):
        plain, moved = (law(prepared(mechanism, values, 2, "1/2")) for values in (scores, shifted))
    assert plain.keys() == moved.keys()
    for ranks, chance in plain.items():
        assert chance.mid() == moved[ranks].mid()
        assert chance.rad() == moved[ranks].rad()
    assert sample(mechanism, scores, 2, "1/2", 30) == sample(mechanism, shifted, 2, "1/2", 30)


# 3. An envelope with a constant slack.


class NaiveEnvelope:
    """Canonical with k = 2 and gamma = 1/2 by rejection, one rectangle for each h, bounded in floats plus a slack.

    The acceptance is computed exactly, and a probability above 1 is taken for 1, as `random() < p` does.
    """

    k = 2

    def __init__(self, scores, epsilon, slack):
        self.items = sorted(scores, key=lambda item: -scores[item])
        self.scores, self.epsilon, self.slack = [scores[item] for item in self.items], epsilon, slack
        self.cells = [(h, t) for h in range(self.k) for t in range(self.k, len(scores))]

    def log_weight(self, h, t):
        """Of one class, where the top-k has 0: s times the loss, and the number of subsets."""
        loss = Fraction(self.scores[h] - self.scores[t], 2)
        return -self.epsilon * loss + math.log(math.comb(t - h - 1, self.k - 1 - h))

    def log_bound(self, h):
        """At least the log weight of every class of the row, were it not for rounding."""
        best = float(self.epsilon) * (0.5 * float(self.scores[self.k]) - 0.5 * float(self.scores[h]))
        last = len(self.scores) - 1
        return best + math.log(math.comb(last - h - 1, self.k - 1 - h)) + self.slack

    def acceptance(self, h, t):
        return math.exp(self.log_weight(h, t) - self.log_bound(h))

    def law(self):
        """What rejection draws: the envelope times the acceptance, and so the lesser of weight and envelope."""
        return self._over_sets({(h, t): min(self.log_weight(h, t), self.log_bound(h)) for h, t in self.cells})

    def right_law(self):
        return self._over_sets({cell: self.log_weight(*cell) for cell in self.cells})

    def _over_sets(self, log_masses):
        """The chance of every 2-subset of the items, by name; all subsets of a class are equally likely."""
        total = 1.0 + sum(map(math.exp, log_masses.values()))
        law = {}
        for ranks in combinations(range(len(self.items)), self.k):
            h, t = (0 if ranks[0] else 1), ranks[1]
            mass = math.exp(log_masses[h, t]) / math.comb(t - h - 1, self.k - 1 - h) if t >= self.k else 1.0
            law[frozenset(self.items[rank] for rank in ranks)] = mass / total
        return law


def furthest(one, other):
    return max(abs(math.log(one[y] / other[y])) for y in one)


@pytest.mark.parametrize("slack", [1e-9, 1e-6, 1e-3])
def test_a_constant_slack_does_not_make_a_bound(slack):
    """Scores near 2^53: a bound in floats is below what it bounds, and clipping the acceptance breaks epsilon = 1."""
    scores = {"a": 2**53 + 3, "b": 2**53 + 1, "c": 2**53 + 1, "d": 2**53 + 1}
    with_one_user_more = {**scores, "c": 2**53 + 2, "d": 2**53 + 2}
    naive, neighbour = NaiveEnvelope(scores, 1, slack), NaiveEnvelope(with_one_user_more, 1, slack)
    assert max(naive.acceptance(*cell) for cell in naive.cells) == pytest.approx(math.e, rel=0.002)
    wrong, right = naive.law(), naive.right_law()
    assert sum(abs(wrong[y] - right[y]) for y in right) / 2 == pytest.approx(0.116, abs=0.001)
    assert furthest(wrong, neighbour.law()) > 1.39
    assert furthest(right, neighbour.right_law()) < 0.54
    # On small scores the same code is right: only the magnitude breaks it.
    small = NaiveEnvelope({item: score - 2**53 for item, score in scores.items()}, 1, slack)
    assert max(small.acceptance(*cell) for cell in small.cells) <= 1
    assert small.law() == pytest.approx(right, rel=1e-12)
    for world in (naive, neighbour):
        check_envelope(world)


def numbered(cells):
    """The cells that have a mass."""
    for j in np.flatnonzero(cells.log_mass > -np.inf).tolist():
        yield j, int(cells.first[j]), int(cells.last[j])


def check_envelope(naive):
    """On the same scores no class of discreet's is accepted with more than certainty, and the law is right."""
    ready = prepared(discreet.Canonical(gamma="1/2"), naive.scores, naive.k, 1)
    seen = 0
    with precision(160):
        for made in (ready.nested.planned, ready.nested.fit(0.6)):
            for (j, b1, b2), (i, a1, a2) in product(numbered(made.cells.b), numbered(made.cells.a)):
                for b, a in product(range(b1, b2 + 1), range(a1, a2 + 1)):
                    assert made.log_acceptance(j, b, made.row(b), i, a) <= 0
                    seen += 1
        assert seen > 0
        exact, right = law(ready), naive.right_law()
        for ranks, chance in exact.items():
            assert abs(chance.exp() - right[frozenset(naive.items[rank] for rank in ranks)]) < 1e-12


# 4. Noise that saturates, and ties that the order of the input decides.


def float_exponential(uniform):
    """Exponential noise of the race time E = -log U: -log(1 - e^-E)."""
    return -math.log(1.0 - math.exp(math.log(uniform)))


def float_half_logistic(uniform):
    race = -math.log(uniform)
    return math.log(1.0 + math.exp(-race)) - math.log(1.0 - math.exp(-race))


FLOATS = {"exponential": float_exponential, "half-logistic": float_half_logistic}


class Words:
    """Given 64-bit words, all in the first answer, and then zeros."""

    def __init__(self, *words):
        self.first = sum(word << 64 * i for i, word in enumerate(words))

    def getrandbits(self, k, /):
        value, self.first = self.first, 0
        return value


@pytest.mark.parametrize("noise", ["exponential", "half-logistic"])
@pytest.mark.parametrize("words", [(100, 101), (101, 100), (2, 900), (900, 2)])
def test_noise_that_saturates_is_not_decided_by_the_order_of_the_input(noise, words):
    """Two equal scores with race times above 37.5: the larger uniform number has the larger noise, and must win."""
    noises = [FLOATS[noise](word / 2**64) for word in words]
    assert all(-math.log(word / 2**64) > 37.5 for word in words)
    assert noises == [0.0, 0.0]
    assert int(np.argmax(noises)) == 0, "the first in the input, whichever it is"
    ready = prepared(discreet.OneShot(noise), [5, 5], 1, 1)
    winner = ready.draw(Entropy(Words(*words))).tolist()
    assert winner == [0 if words[0] > words[1] else 1]


def test_noise_that_a_large_score_swallows_does_not_give_the_place_to_the_first():
    """Equal scores of 2^60, where a float moves in steps of 256: naive noise changes nothing, and index 0 wins."""
    scores, n = [2**60] * 8, 2000
    rng = np.random.default_rng(1)
    naive = [int(np.argmax(np.array(scores, float) + rng.exponential(1.0, 8))) for _ in range(n)]
    assert set(naive) == {0}
    counts = sample(discreet.OneShot("exponential"), scores, 1, 1, n)
    uniform = {(i,): 1 / 8 for i in range(8)}
    assert draws.fits(counts, uniform)
    # The same test rejects a sampler that gives the first place a little more, nearly always.
    assert draws.power(n, uniform, {(i,): 1 / 8 + (0.06 if i == 0 else -0.06 / 7) for i in range(8)}) > 0.99

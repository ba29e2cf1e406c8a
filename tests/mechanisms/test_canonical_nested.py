"""Canonical by two thresholds: its classes add up to the weights, no acceptance is above 1, and few cells do."""

import itertools
import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from flint import arb

import discreet
import draws
from definitions import definition
from discreet.evidence import definition as by_definition
from discreet.exact import nested as cells_of
from discreet.exact.ball import EnvelopeError, ball, log_binomial, precision
from discreet.exact.entropy import Entropy, Uniform
from discreet.exact.envelope import Envelope
from discreet.exact.nested import WASTE, log_sizes, make_plan
from discreet.mechanisms import canonical_nested
from discreet.mechanisms.canonical_nested import Heights, NestedClasses, Proposals
from discreet.mechanisms.tally import Tally
from discreet.sources.arrays.array import array_source
from sampling import sample
from tallies import EPSILONS, TALLIES, sizes

GAMMAS = ["0", "1/7", "3/4", "1"]


@pytest.fixture(autouse=True)
def no_warnings():
    """The logarithm of no mass at all is asked for, and gaps beyond all floats."""
    with np.errstate(all="ignore"):
        yield


def prepare(tally, k, epsilon=1, gamma="3/4", **options):
    return discreet.Canonical(gamma, **options).prepare(tally, k, Fraction(epsilon), discreet.Sensitivity()).nested


def tally_of(scores):
    return array_source(np.array(scores)).tally()


def vectors():
    """All falling vectors of three to five items with steps of 0 to 2."""
    for d in (3, 4, 5):
        for steps in itertools.product(range(3), repeat=d - 1):
            yield [10 - sum(steps[:i]) for i in range(d)]


@pytest.mark.some(2)
@pytest.mark.parametrize("gamma", GAMMAS)
def test_the_masses_of_a_subset_add_up_to_its_weight(gamma):
    """Over the nested classes that a subset is in, for every subset of small inputs."""
    epsilon = Fraction(4, 3)
    for scores in vectors():
        for k in range(1, len(scores)):
            nested = prepare(tally_of(scores), k, epsilon, gamma)
            best = by_definition.canonical_loss(scores, range(k), Fraction(gamma))
            with precision(128):
                u = [_mass(nested.top, a) for a in range(1, k + 1)]
                v = [_mass(nested.bottom, b) for b in range(len(scores) - k + 1)]
                for subset in itertools.combinations(range(len(scores)), k):
                    classes = [(a, b) for a, b in itertools.product(range(1, k + 1), range(len(v))) if
                               set(range(k - a)) <= set(subset) <= set(range(k + b))]  # fmt: skip
                    total = sum((u[a - 1] * v[b] for a, b in classes), arb(0))
                    loss = by_definition.canonical_loss(scores, subset, Fraction(gamma)) - best
                    assert abs(total - (-ball(epsilon * loss)).exp()) < 1e-30


def _mass(side, index):
    """The mass of one index, 0 inside a run of equals."""
    if side.log_masses(np.array([index]), np.array([index]))[0] == -np.inf:
        return arb(0)
    return side.log_mass(index, index).exp()


def ways(nested):
    """The proposals of classes: planned, fitted to the scores, and fitted more closely."""
    return [nested.planned, nested.fit(WASTE), nested.fit(WASTE / 8)]


def cells_with_mass(cells):
    return [(j, int(cells.first[j]), int(cells.last[j])) for j in np.flatnonzero(cells.log_mass > -np.inf).tolist()]


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("bits", [3, 40])
def test_what_is_proposed_times_what_is_accepted_is_the_mass(gamma, bits):
    """Every class with a mass is in one cell of a and one of b, and is kept so often that its mass comes out."""
    for scores, k in ((30, 12, 12, 9, 4, 4, 1, 0), 3), ([9] * 8 + [5] * 3 + [4, 2, 2] + [0] * 30, 9):
        ready = discreet.Canonical(gamma).prepare(tally_of(scores), k, Fraction(1, 2), discreet.Sensitivity())
        nested = NestedClasses(ready.classes.losses, bits)
        for made in ways(nested):
            with precision(160):
                seen = check_masses(nested, made)
            every = itertools.product(range(1, k + 1), range(1, len(scores) - k + 1))
            assert set(seen.values()) == {1}
            missing = [cell for cell in [(k, 0), *every] if cell not in seen]
            assert all(_mass(nested.top, a) * _mass(nested.bottom, b) == 0 for a, b in missing)


def check_masses(nested, made):
    """Checks every class, those of the top-k as one, and returns which were seen."""
    seen = Counter()
    for j, b1, b2 in cells_with_mass(made.cells.b):
        for b in range(b1, b2 + 1):
            row = made.row(b)
            for i, a1, a2 in cells_with_mass(made.cells.a) if b else [(None, 1, nested.losses.k)]:
                for a in range(a1, a2 + 1) if b else [nested.losses.k]:
                    seen[a, b] += 1
                    mass = _mass(nested.bottom, b) * (_mass(nested.top, a) if b else 1)
                    if not mass > 0:
                        continue
                    proposed = made.envelope.log_weight(j) + mass.log() - nested.bottom.log_mass(b1, b2)
                    if b:
                        proposed += row.log_share(i) - nested.top.log_mass(a1, a2)
                    kept = made.log_acceptance(j, b, row, i, a)
                    assert kept <= 0
                    assert abs(proposed + kept - mass.log() - log_binomial(a + b, a)) < 1e-20
    return seen


def test_cells_of_small_inputs_hold_several_classes():
    """So that what is tested on them is thinned and cut."""
    nested = prepare(tally_of([9, 8, 8, 7, *range(6, -14, -1)]), 4, "0.1")
    assert (nested.planned.cells.b.last > nested.planned.cells.b.first).any()
    assert len(nested.planned.cells.levels.b) < 20


@pytest.mark.corners
@pytest.mark.parametrize("tally", TALLIES)
@pytest.mark.parametrize("gamma", GAMMAS)
def test_no_class_is_accepted_with_more_than_certainty(tally, gamma):
    pick = random.Random(4)
    for epsilon in EPSILONS:
        for k in sizes(tally):
            nested = prepare(tally, k, epsilon, gamma)
            check_acceptances(nested, pick, 6, 2)


def check_acceptances(nested, pick, columns, rows):
    """Of some cells: at their last member, which weighs most, for the first, the last and some b."""
    for made in ways(nested):
        a, b = cells_with_mass(made.cells.a), cells_with_mass(made.cells.b)
        with precision(200):
            for j, *ends in pick.sample(b, min(columns, len(b))):
                for at in {*ends, pick.randint(*ends)}:
                    row = made.row(at)
                    heaviest = a[len(a) // 2] if len(row.cumulative) < len(a) else heaviest_of(row, a)
                    for i, _, last in {heaviest, *pick.sample(a, min(rows, len(a)))}:
                        drawn = (j, at, row, i, last) if at else (j, 0, row, None, nested.losses.k)
                        low, high = made.acceptance_bounds(*drawn)
                        assert made.log_acceptance(*drawn) <= 0
                        assert low <= made.log_acceptance(*drawn) <= high


def heaviest_of(row, cells):
    heaviest = int(np.diff(row.cumulative, prepend=0).argmax())
    return next(cell for cell in cells if cell[0] == heaviest)


@pytest.mark.some(2)
@pytest.mark.parametrize("seed", range(6))
def test_no_class_of_random_inputs_is_accepted_with_more_than_certainty(seed):
    pick = random.Random(seed)
    for _ in range(25):
        d = int(2 ** pick.uniform(1, 12))
        nested = prepare(random_tally(pick, d), pick.randint(1, d - 1), 10 ** pick.uniform(-6, 3), pick.choice(GAMMAS))
        check_acceptances(nested, pick, 8, 2)


def random_tally(pick, d):
    """Floats, whole numbers with few or many ties, or long runs."""
    kind = pick.randrange(4)
    if kind == 0:
        return tally_of([pick.gauss(0, 10 ** pick.uniform(-3, 4)) for _ in range(d)])
    if kind == 1:
        return tally_of([int(pick.paretovariate(0.7)) % 10**15 for _ in range(d)])
    if kind == 2:
        return tally_of([pick.randrange(1 + int(10 ** pick.uniform(0, 3))) for _ in range(d)])
    counts = [int(2 ** pick.uniform(0, 58)) for _ in range(d.bit_length())]
    return Tally.of_runs([3 * (len(counts) - i) ** 2 for i in range(len(counts))], counts)


@pytest.mark.parametrize("tally", TALLIES)
def test_cells_cover_all_and_waste_little(tally):
    for k in sizes(tally):
        nested = prepare(tally, k, "0.1")
        enclosure = nested.fit(WASTE).cells
        for side, cells in ((nested.top, enclosure.a), (nested.bottom, enclosure.b)):
            order = np.argsort(cells.first)
            first, last = cells.first[order], cells.last[order]
            assert (first <= last).all()
            assert (last[:-1] < first[1:]).all()
            # Between two cells, and before and after all, nothing has a mass.
            gaps = [
                (one, other)
                for one, other in zip(
                    [side.first, *(last[:-1] + 1), int(last[-1]) + 1], [*(first - 1), side.last], strict=True
                )
                if one <= other
            ]
            if gaps:
                begin, end = (np.array(ends) for ends in zip(*gaps, strict=True))
                assert (side.log_masses(begin, end) == -np.inf).all()
        assert len(enclosure.levels.b) <= 200
        assert len(enclosure.b.first) < 5000


@pytest.mark.parametrize("k", [10, 300])
@pytest.mark.parametrize("epsilon", ["1", "0.05", "0.001"])
@pytest.mark.parametrize("shape", ["zipf", "uniform", "equal", "floats", "ridge", "steps"])
def test_few_levels_and_few_tries_do(shape, epsilon, k, monkeypatch):
    made = np.random.default_rng(3)
    scores = {
        "zipf": (1e6 / np.arange(1, 3001) ** 1.05).astype(np.int64),
        "uniform": made.integers(0, 5001, 3000),
        "equal": np.full(3000, 4),
        "floats": 5000.0 * made.random(3000),
        # Losses grow as fast as classes do, so that the mass is on a long ridge.
        "ridge": -(np.log1p(np.arange(3000.0)) * 3 / float(epsilon)),
        "steps": np.arange(3000) // 40,
    }[shape]
    tries = [0]

    def count(self, entropy):
        tries[0] += 1
        return propose(self, entropy)

    propose = Proposals.draw
    monkeypatch.setattr(Proposals, "draw", count)
    nested = prepare(tally_of(scores), k, epsilon)
    for _ in range(30):
        nested.draw_class(Entropy(random.Random(5 + tries[0])))
    assert tries[0] <= 30 * 3
    assert len(nested.fit(WASTE).cells.levels.b) <= 100


# Scores, k, epsilon: ties everywhere, all equal, all different, runs through the edge, one against many.
SMALL = {
    "ties": ([3, 3, 3, 2, 2, 2, 1, 1, 1], 4, 1),
    "all equal": ([5] * 8, 3, 2),
    "all different": ([8, 6.5, 6, 5.25, 4, 3, 1, 0.5], 3, "1/2"),
    "run through the edge": ([9, 7, 7, 7, 7, 0, 0, 0], 3, "1/3"),
    "one against many": ([4] + [0] * 19, 2, "3/2"),
}


@pytest.mark.some(5)
@pytest.mark.parametrize("gamma", ["0", "1/3", "3/4", "1"])
@pytest.mark.parametrize("name", SMALL)
def test_counts_fit_the_definition(name, gamma):
    scores, k, epsilon = SMALL[name]
    mechanism = discreet.Canonical(gamma)
    counts = sample(mechanism, np.array(scores), k, epsilon, 1500, seed=hash_of(name, gamma))
    exact = definition(mechanism, scores, k, Fraction(epsilon))
    assert draws.fits(counts, exact)
    if len(set(scores)) > 1:
        assert draws.fits(draws.by_score(counts, scores, False), draws.by_score(exact, scores, False))


def hash_of(*words):
    return sum(ord(letter) * (i + 1) for i, letter in enumerate(" ".join(words)))


def wide(lift):
    """Four items above ten others, by so much."""
    return [lift + 2, lift + 1, lift + 1, lift, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0]


def by_ends(outcomes):
    """Probabilities or counts of sets, added up over those with the same best item left out and worst taken."""
    merged = Counter()
    for outcome, amount in outcomes.items():
        merged[min(set(range(14)) - set(outcome)), max(outcome)] += amount
    return merged


def wrong_cell(monkeypatch):
    """An index of a cell that is drawn as if all were equally heavy."""

    def draw(self, first, last, entropy):
        return first + entropy.upto(last - first)

    monkeypatch.setattr(Heights, "draw", draw)


def always_kept(monkeypatch):
    monkeypatch.setattr(canonical_nested, "sample_bernoulli_exp", lambda *_: True)


def miscounted(monkeypatch):
    """Classes that are counted the lower the more ranks they leave open."""
    monkeypatch.setattr(Proposals, "acceptance_bounds", lambda self, *drawn: (-np.inf, np.inf))
    monkeypatch.setattr(
        "discreet.mechanisms.canonical_nested.log_binomial", lambda n, r: log_binomial(n, r) - arb(r) / 2
    )


@pytest.mark.some(2)
@pytest.mark.parametrize(
    ("plant", "lift"),
    [(None, 9), (None, 12), (wrong_cell, 12), (always_kept, 12), (miscounted, 9)],
)
def test_a_planted_wrong_enclosure_is_caught(plant, lift, monkeypatch):
    """Draws fit with the code as it is, and with none of the faults."""
    mechanism = discreet.Canonical("3/4")
    exact = by_ends(definition(mechanism, wide(lift), 4, Fraction(1)))
    if plant is not None:
        plant(monkeypatch)
    counts = by_ends(sample(mechanism, np.array(wide(lift)), 4, 1, 4000))
    assert draws.fits(counts, exact) == (plant is None)


@pytest.mark.parametrize("side", ["a", "b"])
@pytest.mark.parametrize("fault", ["a cell is missing", "a cell is there twice", "a mass is that of another score"])
def test_cells_that_do_not_hold_all_mass_once_are_refused(side, fault):
    """No acceptance would show a class that nobody proposes."""
    nested = prepare(tally_of(np.arange(60) // 2), 9, "2")
    found = nested.planned.cells
    cells = getattr(found, side)
    chosen = np.arange(len(cells.first))
    heaviest = int(cells.log_mass.argmax())
    if fault == "a cell is missing":
        chosen = np.delete(chosen, heaviest)
    elif fault == "a cell is there twice":
        chosen = np.append(chosen, heaviest)
    log_mass = cells.log_mass - 0.01 if "score" in fault else cells.log_mass[chosen]
    wrong = cells_of.Cells(cells.first[chosen], cells.last[chosen], log_mass)
    assert nested._propose(found).cells is found
    with pytest.raises(EnvelopeError):
        nested._propose(replace(found, **{side: wrong}))


@pytest.mark.parametrize("step", [-1, 1])
def test_floats_and_balls_draw_the_same_index(step):
    scores = np.sort(np.random.default_rng(8).normal(size=4000) * 3)[::-1]
    side = Heights(tally_of(scores), 2000, step, 0, 1990, Fraction(1, 3))
    by_floats = 0
    for seed in range(150):
        first = random.Random(seed).randrange(1900)
        last = min(side.last, first + random.Random(seed + 1).choice([1, 5, 90, 900]))
        uniform = Entropy(random.Random(seed)).uniform()
        found = side._draw_by_floats(first, last, uniform)
        by_floats += found is not None
        assert found in (None, side._draw_by_balls(first, last, uniform))
        assert first <= side.draw(first, last, Entropy(random.Random(seed), word=1)) <= last
    assert by_floats > 140


def test_an_index_is_drawn_by_its_mass():
    side = Heights(tally_of([9, 8, 8, 8, 6, 5.5, 5, 5, 1]), 0, 1, 0, 8, Fraction(1, 2))
    for first, last in ((0, 8), (1, 6), (2, 5)):
        masses = {i: float(_mass(side, i).mid()) for i in range(first, last + 1)}
        right = {i: mass / sum(masses.values()) for i, mass in masses.items() if mass}
        for word in (2, 64):
            entropy = Entropy(random.Random(first), word)
            counts = Counter(side.draw(first, last, entropy) for _ in range(1500))
            assert draws.fits(counts, right)
            assert not draws.fits(counts, {i: 1 / len(right) for i in right})


@pytest.mark.parametrize(
    ("scores", "unit"),
    [([4e-310, 3e-310, 2e-310, 1e-310, 0.0, -1.0], Fraction(1)), ([4, 3, 2, 1, 0, -1], Fraction(1, 10**400))],
)
def test_what_is_below_all_floats_is_drawn_by_its_mass_too(scores, unit):
    side = Heights(tally_of(scores), 0, 1, 0, 5, unit)
    drawn = Counter(side.draw(0, 3, Entropy(random.Random(seed))) for seed in range(800))
    assert draws.fits(drawn, dict.fromkeys(range(4), 0.25))
    with precision(2000):
        assert float(
            (ball(Fraction(float(side.log_masses(np.array([0]), np.array([0]))[0]))) - side.log_mass(0, 0)).mid()
        ) == (pytest.approx(0.0, abs=1e-9))


@pytest.mark.parametrize("kind", ["float16", "float32", "float64"])
def test_narrow_floats_are_scaled_by_rationals_too(kind):
    scores = np.array([5, 3, 2, 1, 0.5]).astype(kind)
    mechanism = discreet.Canonical(Fraction(1, 10**300))
    assert len(discreet.top_k(scores, 2, "1", mechanism=mechanism, sensitivity=discreet.Sensitivity(0, 1))) == 2


def test_gaps_beyond_floats_have_their_masses():
    """Neither a gap that is lost as a float nor one that no float holds is taken for none."""
    tiny = Fraction(1, 10**400)
    side = Heights(tally_of_rationals([1, 1 - tiny, 1 - 2 * tiny, 0, -(10**400)]), 0, 1, 0, 4, Fraction(1))
    masses = side.log_masses(np.arange(5), np.arange(5))
    assert masses[:2] == pytest.approx(-400 * np.log(10), rel=1e-12)
    assert np.isfinite(masses).all()
    floats = Heights(tally_of([1e-310, 5e-324, 0.0]), 0, 1, 0, 2, Fraction(1, 10**20))
    masses = floats.log_masses(np.arange(3), np.arange(3))
    with precision(80):
        assert masses[1] == pytest.approx(float(floats.log_mass(1, 1).mid()), rel=1e-12)


def tally_of_rationals(scores):
    return array_source(np.array([Fraction(score) for score in scores], object)).tally()


def test_where_rounding_changes_nothing_a_rounded_loss_is_drawn_in_the_same_way():
    scores = [8, 5, 5, 3, 1, 1, 0]
    rounded = discreet.Canonical(ceil=True).prepare(tally_of(scores), 3, Fraction(1), discreet.Sensitivity())
    assert rounded.classes.losses.is_sum
    halves = discreet.Canonical(ceil=True).prepare(
        tally_of([each / 4 for each in scores]), 3, Fraction(1), discreet.Sensitivity()
    )
    assert not halves.classes.losses.is_sum
    counts = sample(discreet.Canonical(ceil=True), np.array(scores), 3, 1, 1500)
    assert draws.fits(counts, definition(discreet.Canonical("1/2"), scores, 3, Fraction(1)))


LISTS = {
    "counts": [[9, 7, 7, 5, 2, 2, 0], [3, 3, 3, 3, 3, 3, 3], [90, 1, 1, 0, 0, 0, 0], [6, 5, 4, 3, 2, 1, 0]],
    "floats": [
        [0.5, 0.25, 0.25, 0.125, 0.0, -1.0, -3.5],
        [1e-310, 0.0, 0.0, 0.0, 0.0, 0.0, -1e-310],
        [1e308] + [-1e308] * 6,
    ],
    "large": [[2**62, 2**62 - 1, 5, 4, 4, 0, -(2**62)], [2**53 + 1, 2**53, 2**53, 2, 2, 1, 0]],
}


@pytest.mark.parametrize("name", LISTS)
@pytest.mark.parametrize("gamma", GAMMAS)
def test_each_class_is_kept_by_its_mass(name, gamma):
    for k, epsilon, scores in itertools.product((1, 3), ("4", "0.1", "1e-200"), LISTS[name]):
        nested = prepare(tally_of(scores), k, epsilon, gamma)
        with precision(160):
            assert set(check_masses(nested, nested.planned).values()) == {1}


def test_balls_and_floats_accept_the_same(monkeypatch):
    made = prepare(tally_of(np.arange(60) // 2), 9, "0.2").planned
    by_floats = [made.draw(Entropy(random.Random(seed))) for seed in range(60)]
    monkeypatch.setattr(Proposals, "acceptance_bounds", lambda self, *drawn: (-np.inf, np.inf))
    assert [made.draw(Entropy(random.Random(seed))) for seed in range(60)] == by_floats
    assert None in by_floats


def test_after_some_rejections_cells_are_fitted_and_then_fitted_anew(monkeypatch):
    nested, proposed, right = prepare(tally_of([9, 8, 8, 7, 5, 3]), 2, "0.1"), [], Proposals.draw

    def reject(self, entropy):
        proposed.append(self)
        return right(self, entropy) if len(proposed) > 8 + 32 + 32 + 5 else None

    monkeypatch.setattr(Proposals, "draw", reject)
    while nested.draw_class(Entropy(random.Random(len(proposed)))) is None:
        pass
    made = list(dict.fromkeys(map(id, proposed)))
    assert proposed[7] is nested.planned
    assert [sum(id(each) == one for each in proposed) for one in made][:3] == [8, 32, 32]
    assert nested._waste == WASTE / 4
    # The last one is kept for further draws.
    before = len(proposed)
    nested.draw_class(Entropy(random.Random(1)))
    assert {id(each) for each in proposed[before:]} == {made[-1]}


def test_many_a_share_cells_so_that_these_are_fitted_at_once():
    for k, is_planned in ((1024, True), (1025, False)):
        large = prepare(tally_of(np.arange(1100)), k)
        large.draw_class(Entropy(random.Random(1)))
        assert (large._latest is large.planned) == is_planned


def test_the_top_k_is_drawn_without_an_a():
    nested = prepare(tally_of([100, 99, 1, 0]), 2)
    assert {nested.draw_class(Entropy(random.Random(seed))) for seed in range(20)} == {(2, 0)}


def test_equal_scores_leave_one_cell_of_a():
    cells = prepare(tally_of([7] * 40), 5, "0.01").planned.cells
    assert (cells.a.first.tolist(), cells.a.last.tolist(), cells.a.log_mass.tolist()) == ([1], [5], [0.0])
    assert cells.row(3).tolist() == pytest.approx([np.log(56.0)])


@pytest.mark.parametrize(("numerator", "word"), [(0, 64), (2**44 - 1, 64), (2**43, 64), (1, 1), (2**40, 48)])
def test_floats_say_nothing_where_few_bits_of_a_uniform_number_are_known(numerator, word):
    side = Heights(tally_of([9.0, 8.5, 6.0, 5.5, 3.0, 1.0, 0.0]), 1, 1, 0, 5, Fraction(1, 3))
    uniform = Uniform(Entropy(random.Random(1), word=word), numerator)
    assert side._draw_by_floats(0, 4, uniform) is None
    assert side._draw_by_floats(0, 4, Uniform(Entropy(random.Random(1)), 2**44)) == 0


def test_a_class_leaves_all_between_its_ends_open(monkeypatch):
    nested, entropy = prepare(tally_of(np.arange(20)), 6), Entropy(random.Random(1))
    monkeypatch.setattr(NestedClasses, "draw_class", lambda self, entropy: (4, 3))
    found = nested.select(entropy)
    assert (found.head, found.subset.count, found.subset.first, found.subset.last) == (2, 4, 2, 8)
    assert found.subset.entropy is entropy
    assert (len(found.ranks), found.ranks.dtype, found.cuts_no_run) == (0, np.int64, True)
    monkeypatch.setattr(NestedClasses, "draw_class", lambda self, entropy: (6, 0))
    found = nested.select(entropy)
    assert (found.head, found.subset, found.cuts_no_run) == (6, None, True)


def proposals_of(log_a, log_b, reference):
    """One cell of each, and weights of 2^40 units."""
    one = np.array([1])
    a, b = cells_of.Cells(one, one, np.array([log_a])), cells_of.Cells(one, one, np.array([log_b]))
    cells = cells_of.Enclosure.of(a, b, cells_of.Levels.at(np.array([0, 9]), a))
    made = Proposals(*(2 * [Heights(tally_of([2, 1]), 0, 1, 0, 1, Fraction(1))]), cells, 0.0, 40)
    vars(made)["envelope"] = Envelope(reference, np.array([2**40]), 40)
    return made


def test_float_bounds_leave_room_for_all_that_they_are_made_of():
    made, row = proposals_of(-10.0, -30.0, 50.0), Envelope(-70.0, np.array([3, 4]), 40)
    low, high = made.acceptance_bounds(0, 4, row, 0, 3)
    assert (low + high) / 2 == pytest.approx(-10.0 - 30.0 + np.log(35.0) - 50.0 - np.log(0.75), abs=1e-8)
    terms = 7 * np.log(9.0) + 10.0 + 30.0 + 50.0 + 70.0 + 128.0
    assert (high - low) / 2 == pytest.approx(2.0**-38 * terms, rel=1e-4)
    # The top-k with all a.
    low, high = made.acceptance_bounds(0, 0, row, None, 3)
    assert (low + high) / 2 == pytest.approx(-30.0 - 50.0, abs=1e-8)


@pytest.mark.parametrize(("reference", "is_certain"), [(0.7, True), (1.5, False), (2.5, False)])
def test_float_bounds_say_nothing_where_floats_are_off_by_much(reference, is_certain):
    made = proposals_of(-10.0, -30.0, -reference * 2.0**38)
    bounds = made.acceptance_bounds(0, 4, Envelope(-70.0, np.array([3, 4]), 40), 0, 3)
    assert (bounds != (-np.inf, np.inf)) == is_certain


def test_floats_accept_nearly_all(monkeypatch):
    asked, right = [], Proposals.log_acceptance

    def log_acceptance(self, *drawn):
        asked.append(drawn)
        return right(self, *drawn)

    monkeypatch.setattr(Proposals, "log_acceptance", log_acceptance)
    nested, entropy = prepare(tally_of(np.arange(300) // 2), 20, "0.1"), Entropy(random.Random(3))
    assert len({nested.draw_class(entropy) for _ in range(200)}) > 25
    assert not asked


def test_one_cell_of_a_is_not_drawn(monkeypatch):
    picked, right = [], Envelope.pick

    def pick(self, entropy):
        picked.append(self)
        return right(self, entropy)

    monkeypatch.setattr(Envelope, "pick", pick)
    made = prepare(tally_of([7] * 40), 5, "0.01").planned
    assert made.draw(Entropy(random.Random(1))) == (5, 35)
    assert picked == [made.envelope]


def test_rows_have_as_many_bits_as_asked_for():
    nested = NestedClasses(prepare(tally_of(range(30)), 5, "1.5").losses, 7)
    assert len(nested.planned.cells.a.first) == 5
    assert nested.planned.envelope.scale == nested.planned.row(3).scale == 7


@pytest.mark.parametrize("scores", [[7] * 40, [1e300, 1.0, 1e-300, 0.0, 0.0, -1e-310, -1e300], list(range(60))])
def test_no_score_makes_a_strict_numpy_raise(scores):
    with np.errstate(all="raise"):
        for epsilon in ("1e-3", "2"):
            nested = prepare(tally_of(scores), 3, epsilon)
            assert nested.planned.cells is not None
            assert nested.fit(WASTE).cells is not None
            for seed in range(10):
                assert nested.draw_class(Entropy(random.Random(seed)))[0] <= 3


@pytest.fixture
def proposals(monkeypatch):
    """How often a class was proposed."""
    made, right = [], Proposals.draw

    def draw(self, entropy):
        made.append(self)
        return right(self, entropy)

    monkeypatch.setattr(Proposals, "draw", draw)
    return made


def test_flat_lists_with_wide_cells_end_soon(proposals):
    """All mass is at the beginning of a wide planned cell."""
    k, d = 1000, 10_000
    first, last, _ = make_plan(k, d - k).b
    widest = int(first[(last - first).argmax()])
    nested = prepare(tally_of(np.where(np.arange(d) < k + widest, 10**5, 0)), k)
    assert len(nested.planned.cells.a.first) == 1
    for seed in range(10):
        assert nested.draw_class(Entropy(random.Random(seed))) == (k, widest)
    assert len(proposals) < 8 + 10 * 4


def test_mass_at_far_ends_of_flat_scores_is_found_soon(proposals):
    """At three b that are far apart, as much each: wide cells between them are cut as far as they need."""
    k, ends = 1000, [1174, 133_859_577_400_420, 2**63 - 1 - 1000]
    with precision(100):
        heights = [int(log_binomial(k + b, k).floor().unique_fmpz()) for b in ends]
    counts = [k + ends[0], ends[1] - ends[0], ends[2] - ends[1]]
    tally = Tally.of_runs([heights[2] - height for height in heights], counts)
    nested = prepare(tally, k, "4/3")
    assert {nested.draw_class(Entropy(random.Random(seed)))[1] for seed in range(20)} == set(ends)
    assert len(proposals) < 8 + 20 * 5


SPREAD = {
    "uniform": lambda made, d: (made.random(d) * 0.77 * d).astype(np.uint32),
    "floats": lambda made, d: d * made.random(d),
    "Zipf": lambda made, d: (d / np.arange(1, d + 1) ** 0.8).astype(np.int64),
    "normal": lambda made, d: made.normal(size=d) * 1000,
    "few values": lambda made, d: made.integers(0, 7, d),
    "two levels": lambda made, d: np.where(made.random(d) < 0.3, 900, 0),
    "one far ahead": lambda made, d: np.append(made.integers(0, 100, d - 1), 10**9),
    "equal": lambda made, d: np.full(d, 3),
    "steps": lambda made, d: np.arange(d) // 40,
}


def shares():
    """From one item to all but one, dense at both ends and in between."""
    return [0.0, 1e-3, 0.02, 1 / 6, 0.3, 0.5, 0.7, 0.9, 0.99, 1.0]


@pytest.mark.some(5)
@pytest.mark.parametrize("d", [300, 2000])
@pytest.mark.parametrize("shape", SPREAD)
def test_fitted_bounds_are_at_most_a_few_times_the_mass(shape, d):
    """For all k up to d: what is rejected follows from this ratio alone, whatever the scores."""
    tally = tally_of(SPREAD[shape](np.random.default_rng(1), d))
    for share, epsilon, gamma in itertools.product(shares(), ("4", "0.3", "0.01"), ("1/3", "3/4")):
        k = min(d - 1, 1 + int(share * (d - 1)))
        nested = prepare(tally, k, epsilon, gamma)
        bounds, mass = nested.fit(WASTE).cells.log_masses, log_mass(nested)
        assert 1.0 - 1e-6 < np.exp(bounds - mass).sum() < 4.0, (k, epsilon, gamma)


def log_mass(nested):
    """The logarithm of all mass, class by class."""
    a, b = np.arange(1, nested.top.last + 1), np.arange(nested.bottom.last + 1)
    u, v = nested.top.log_masses(a, a), nested.bottom.log_masses(b, b)
    a, b, u, v = a[u > -np.inf], b[v > -np.inf], u[u > -np.inf], v[v > -np.inf]
    logs = u[:, None] + v + log_sizes(a[:, None], b)
    return float(logs.max() + np.log(np.exp(logs - logs.max()).sum()))


@pytest.mark.some(5)
@pytest.mark.parametrize("d", [20_000, 111_350])
@pytest.mark.parametrize("shape", SPREAD)
def test_few_proposals_are_rejected_for_any_k(shape, d, proposals):
    tally = tally_of(SPREAD[shape](np.random.default_rng(0), d))
    count = 0
    for share, epsilon in itertools.product(shares(), ("4", "0.3", "0.01")):
        nested = prepare(tally, min(d - 1, 1 + int(share * (d - 1))), epsilon)
        count += 1
        nested.draw_class(Entropy(random.Random(count)))
    assert len(proposals) < 4 * count


def test_the_input_that_took_a_million_tries_takes_few(proposals):
    scores = (np.random.default_rng(0).random(111350) * 85196.8).astype(np.uint32)
    for epsilon in ("4", "2.2"):
        nested = prepare(tally_of(scores), 18552, epsilon)
        for seed in range(5):
            nested.draw_class(Entropy(random.Random(seed)))
    assert len(proposals) < 60

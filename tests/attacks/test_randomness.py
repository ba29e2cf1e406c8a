"""Attacks on where random bits come from: seeds, global generators, forks, threads and copies.

The release is a set of 64 of 256 equal items, every one of 2^203 sets equally likely: two that are equal by chance,
among the few dozen that a test draws, are rarer than one in 2^190.
"""

import copy
import json
import math
import pickle
import random
import subprocess
import sys
import threading
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet.exact.entropy import Entropy
from discreet.sources.arrays.array import array_source

D, K = 256, 64
SCORES = [7] * D


def test_the_release_has_two_hundred_bits():
    """What the other tests here rely on; a generator with a 32-bit seed has 32, and one draw gives them away."""
    assert math.log2(math.comb(D, K)) > 202
    seeded = {tuple(naive_top_k(SCORES, np.random.default_rng(seed))) for seed in range(16)}
    assert len(seeded) == 16
    observed = naive_top_k(SCORES, np.random.default_rng(11))
    assert [seed for seed in range(16) if naive_top_k(SCORES, np.random.default_rng(seed)) == observed] == [11]
    assert all(release_of(SCORES) not in map(list, seeded) for _ in range(4))


def naive_top_k(scores, rng):
    """Report-noisy-max with the k largest, from whatever generator is there."""
    noisy = np.array(scores) + rng.exponential(2.0 * K, len(scores))
    return sorted(np.argsort(-noisy)[:K].tolist())


def release_of(scores, **options):
    return discreet.top_k(scores, K, 1, **options).items


def all_differ(releases):
    return len({tuple(each) for each in releases}) == len(releases)


FORK = """
import json, multiprocessing, sys
sys.path[:0] = [{here!r}]
import test_randomness as attack

def naive(_):
    return attack.naive_top_k(attack.SCORES, attack.np.random)

def discreet(_):
    return attack.release_of(attack.SCORES)

# One draw before the fork: the generator has its seed, and each child has a copy of it.
naive(0), discreet(0)
children = multiprocessing.get_context("fork")
found = []
for release in (naive, discreet):
    workers = []
    for i in range(4):
        ours, theirs = children.Pipe()
        child = children.Process(target=lambda: theirs.send(release(i)))
        child.start()
        workers.append((child, ours))
    found.append([ours.recv() for _, ours in workers])
    for child, _ in workers:
        child.join()
print(json.dumps(found))
"""


def test_forked_processes_do_not_draw_the_same():
    """Four workers of one parent: the naive ones release the same set four times, with the same noise."""
    code = FORK.format(here=str(Path(__file__).parent))
    # A process of its own, because this one has threads, and forking those is another matter.
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, check=True)
    naive, exact = json.loads(ran.stdout)
    assert len(naive) == len(exact) == 4
    assert naive[0] == naive[1] == naive[2] == naive[3]
    assert all_differ(exact)


def in_threads(task, n=4):
    """What n threads make of a task that they all begin at once."""
    found, gate = [None] * n, threading.Barrier(n)

    def work(i):
        gate.wait()
        found[i] = task()

    threads = [threading.Thread(target=work, args=(i,)) for i in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return found


def test_threads_do_not_draw_the_same():
    """A helper that seeds its generator to be reproducible gives every thread the same noise."""
    naive = in_threads(lambda: naive_top_k(SCORES, np.random.default_rng(42)))
    assert naive[0] == naive[1] == naive[2] == naive[3]
    exact = in_threads(lambda: [release_of(SCORES) for _ in range(8)])
    assert all_differ([release for each in exact for release in each])


def test_one_prepared_object_in_many_threads_draws_anew_each_time():
    """A counter that keeps its generator repeats itself in the copies that threads get; a mechanism keeps none."""
    counter = NaiveCounter(SCORES)
    copies = iter([copy.deepcopy(counter) for _ in range(4)])
    naive = in_threads(lambda: next(copies).release())
    assert naive[0] == naive[1] == naive[2] == naive[3]
    ready = prepared(discreet.Canonical(noise="laplace"), SCORES)
    assert all_differ(in_threads(lambda: sorted(ready.draw(Entropy()).tolist())))


class NaiveCounter:
    """Scores with a generator of their own, well seeded from the operating system."""

    def __init__(self, scores):
        self.scores, self.rng = np.array(scores), np.random.default_rng()

    def release(self):
        return naive_top_k(self.scores, self.rng)

    def noisy(self):
        return self.scores + self.rng.laplace(0, 1, len(self.scores))


def prepared(mechanism, scores):
    return mechanism.prepare(array_source(scores).tally(), K, Fraction(1), discreet.Sensitivity())


COPIES = {
    "copy": copy.copy,
    "deepcopy": copy.deepcopy,
    "pickle": lambda each: pickle.loads(pickle.dumps(each)),  # noqa: S301  # our own
}


@pytest.mark.parametrize("how", ["deepcopy", "pickle"])
def test_copies_do_not_repeat_the_noise(how):
    """Two copies of a naive counter have the same noise, so a score that changed between them shows in the clear."""
    again = COPIES[how]
    counter = NaiveCounter([float(score) for score in SCORES])
    twin = again(counter)
    twin.scores[5] += 1
    difference = twin.noisy() - counter.noisy()
    assert np.flatnonzero(np.abs(difference) > 1e-9).tolist() == [5]
    assert again(counter).release() == counter.release()
    for thing in (array_source(SCORES), array_source(SCORES, [f"item {i}" for i in range(D)])):
        assert all_differ([release_of(each) for each in (thing, again(thing), again(again(thing)))])
    for mechanism in (discreet.Canonical(), discreet.Canonical(noise="laplace"), discreet.OneShot(), discreet.Joint()):
        assert all_differ([release_of(SCORES, mechanism=each) for each in (mechanism, again(mechanism))])
        ready = prepared(mechanism, SCORES)
        ready.draw(Entropy())
        draws = [each.draw(bits).tolist() for each in (ready, again(ready)) for bits in (Entropy(), again(Entropy()))]
        assert all_differ([sorted(ranks) for ranks in draws])


@pytest.mark.parametrize("how", COPIES)
def test_a_table_has_no_copies(how):
    """It holds a connection, which has none; and what is not copied does not repeat its noise."""
    counter = NaiveCounter(SCORES)
    assert copy.deepcopy(counter).release() == counter.release()
    events = pa.table({"who": list(range(D)), "what": list(range(D))})
    source = discreet.events(events, user="who", item="what", domain=discreet.integers(0, D - 1))
    with pytest.raises(discreet.Error, match="cannot be copied or pickled"):
        COPIES[how](source)
    assert all_differ([release_of(source) for _ in range(3)])


def test_threads_that_share_a_table_do_not_draw_the_same():
    """Nor do they disturb each other: a snapshot belongs to one release from its tally to its items."""
    naive = in_threads(lambda: naive_top_k(SCORES, np.random.default_rng(42)))
    assert naive[0] == naive[1] == naive[2] == naive[3]
    events = pa.table({"who": list(range(D)), "what": list(range(D))})
    source = discreet.events(events, user="who", item="what", domain=discreet.integers(0, D - 1))
    exact = in_threads(lambda: [release_of(source) for _ in range(5)])
    assert all_differ([release for each in exact for release in each])


def test_a_caller_who_seeds_everything_predicts_nothing():
    """With a global generator the release is a function of the seed that the caller's own code has set."""

    def seeded(release):
        random.seed(1)
        np.random.seed(1)  # noqa: NPY002  # the attack
        return release()

    before, legacy = random.getstate(), np.random.get_state()  # noqa: NPY002
    try:
        naive = [seeded(lambda: naive_top_k(SCORES, np.random)) for _ in range(3)]
        assert naive[0] == naive[1] == naive[2]
        assert all_differ([seeded(lambda: release_of(SCORES)) for _ in range(8)])
        # Nor does a release move the caller's generators, which would tell how many bits it took.
        assert seeded(lambda: [release_of(SCORES), positions()][1]) == seeded(positions)
    finally:
        random.setstate(before)
        np.random.set_state(legacy)  # noqa: NPY002


def positions():
    """Where the global generators of Python and NumPy stand."""
    return random.getstate(), np.random.get_state()[2]  # noqa: NPY002


def test_a_release_with_a_callers_generator_says_that_it_protects_nobody():
    """A seed may be passed for tests; the release can then be drawn again, and says so wherever it is shown."""
    naive = [naive_top_k(SCORES, np.random.default_rng(3)) for _ in range(2)]
    assert naive[0] == naive[1]
    seeded = [discreet.top_k(SCORES, K, 1, rng=random.Random(3)) for _ in range(2)]
    assert seeded[0] == seeded[1]
    for release in seeded:
        assert not release.private
        assert "NOT PRIVATE" in str(release)
        assert not discreet.Release.from_json(release.to_json()).private
    assert discreet.top_k(SCORES, K, 1).private

"""Certain comparisons, and draws with a probability that is only known as a ball."""

import math
import os
import random
import threading
import time
import warnings
from fractions import Fraction

import pytest
from flint import arb, ctx

from discreet.errors import InternalError
from discreet.evidence.walk import walk
from discreet.exact.ball import (
    EnvelopeError,
    ball,
    find_floor,
    float_above,
    is_below,
    is_less,
    log_binomial,
    precision,
    sample_bernoulli_exp,
)
from discreet.exact.entropy import Entropy, Uniform


def test_sample_bernoulli_exp_has_the_probability_of_the_ball():
    for x in (Fraction(0), Fraction(1, 3), Fraction(2), Fraction(5)):
        decided, undecided = walk(lambda entropy, x=x: sample_bernoulli_exp(entropy, lambda: -ball(x)), 60)
        with precision(100):
            p = (-ball(x)).exp()
            assert ball(decided.get(True, Fraction(0))) <= p + 2.0**-90
            assert p <= ball(decided.get(True, Fraction(0)) + undecided) + 2.0**-90
        assert undecided < Fraction(1, 100)


def test_a_comparison_is_refined_until_it_is_certain():
    tiny = Fraction(1, 2**500)
    asked = []

    def reveal(words):
        asked.append(ctx.prec)
        return 64 * words

    assert is_less(lambda: ball(Fraction(1, 3)), lambda: ball(Fraction(1, 3) + tiny), reveal)
    assert not is_less(lambda: ball(Fraction(1, 3) + tiny), lambda: ball(Fraction(1, 3)), reveal)
    assert len(asked) >= 4


def test_the_precision_of_a_comparison_does_not_follow_from_earlier_ones():
    """A number of which 6,400 bits are known is compared with balls of few bits at first."""
    uniform, asked = Uniform(Entropy(random.Random(1))), []
    uniform.reveal(100)

    def half():
        asked.append(ctx.prec)
        return ball(Fraction(1, 2))

    is_less(uniform.ball, half, uniform.reveal)
    is_below(uniform, half)
    assert asked == [96, 96]
    assert uniform.bits == 6400


@pytest.mark.parametrize("compare", [
    lambda equal: is_less(equal, equal, lambda words: 64 * words),
    lambda equal: is_below(Uniform(Entropy(random.Random(1), word=64), 0), lambda: equal() * 0 + arb(0, 1e-9)),
    lambda equal: find_floor(lambda: equal() * 3, lambda words: 2**16 * words),
])  # fmt: skip
def test_a_comparison_that_no_precision_decides_is_an_error_of_python(compare):
    with pytest.raises(InternalError, match="withholds"):
        compare(lambda: ball(Fraction(1, 3)))


@pytest.mark.parametrize("log_probability", [Fraction(1, 10**25), Fraction(1, 100), Fraction(2), Fraction(10**40)])
def test_a_probability_above_one_is_no_certainty(log_probability):
    """Not even where the uniform number is below 1 all the same, and whether floats or balls find it."""
    for seed in range(20):
        entropy = Entropy(random.Random(seed))
        with pytest.raises(EnvelopeError):
            sample_bernoulli_exp(entropy, lambda: ball(log_probability))
        with pytest.raises(EnvelopeError):
            is_below(entropy.uniform(), lambda: ball(1 + log_probability))
        near = float(log_probability)
        with pytest.raises(EnvelopeError):
            sample_bernoulli_exp(entropy, lambda: ball(log_probability), (near * (1 - 1e-9), near * (1 + 1e-9)))
        # Floats that straddle 1 leave it to balls.
        with pytest.raises(EnvelopeError):
            sample_bernoulli_exp(entropy, lambda: ball(log_probability), (-1e-9, near + 1e-9))


def test_a_forked_child_can_draw_while_other_threads_of_the_parent_do():
    stop = threading.Event()

    def work():
        while not stop.is_set():
            with precision(128):
                arb(2).log()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            with warnings.catch_warnings(action="ignore"):  # forking with threads is what this is about
                child = os.fork()
            if child == 0:
                with precision(96):
                    os._exit(0 if ctx.prec == 96 else 1)
            for _ in range(500):
                done, status = os.waitpid(child, os.WNOHANG)
                if done:
                    break
                time.sleep(0.01)
            else:
                os.kill(child, 9)
            assert done == child
            assert status == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_log_binomial_holds_the_truth():
    with precision(100):
        assert log_binomial(10, 3).contains(arb(120).log()) or log_binomial(10, 3).overlaps(arb(120).log())
        assert log_binomial(7, 0) == 0
        assert log_binomial(7, 7) == 0
        assert abs(log_binomial(2**63, 2) - (arb(2**63) * (2**63 - 1) / 2).log()) < 1e-8


def test_threads_keep_their_precision_and_leave_the_callers_alone():
    ctx.prec = 53
    wrong = []

    def work(bits):
        for _ in range(300):
            with precision(bits):
                if ctx.prec != bits:
                    wrong.append(bits)

    threads = [threading.Thread(target=work, args=(bits,)) for bits in (64, 128, 256)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert ctx.prec == 53


def test_a_float_above_is_the_least_that_is_not_below():
    largest = Fraction(math.nextafter(math.inf, 0))
    for value in (
        Fraction(0),
        Fraction(1, 2),
        Fraction(3**50),
        Fraction(1, 10),
        Fraction(1, 3),
        Fraction(2, 3),
        largest,
    ):
        got = float_above(value)
        assert got >= value
        assert got == 0 or math.nextafter(got, -1) < value
    assert float_above(Fraction(1, 10**400)) == 5e-324
    assert float_above(largest + 1) == float_above(Fraction(10**400)) == math.inf

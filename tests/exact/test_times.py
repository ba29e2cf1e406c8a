"""Float bounds on arrival times and noises against balls, at words and rates chosen to break them."""

import numpy as np
import pytest
from flint import arb

from discreet.evidence import definition as by_definition
from discreet.exact.ball import precision
from discreet.exact.entropy import Entropy, Uniform
from discreet.exact.times import BallTime, bound_exponentials, evaluate_noise
from discreet.mechanisms.noise import NOISES

EDGES = [0, 1, 2, 2**31, 2**53, 2**63 - 1, 2**63, 2**63 + 1, 2**64 - 2**40, 2**64 - 3, 2**64 - 2, 2**64 - 1]


@pytest.mark.parametrize("word", [1, 2, 7, 32, 64])
def test_bounds_on_exponentials_hold(word):
    words = np.array(
        sorted({edge % 2**word for edge in EDGES} | {int(w) for w in Entropy(None, word).words(200)}), np.uint64
    )
    low, high = bound_exponentials(words, word)
    with precision(200):
        for w, lowest, highest in zip(words.tolist(), low, high, strict=True):
            # U is in [w, w+1] / 2^word
            assert arb(float(lowest)) <= -(arb(w + 1) / arb(2) ** word).log()
            assert w == 0 or arb(float(highest)) >= -(arb(w) / arb(2) ** word).log()
            assert w > 0 or np.isinf(highest)
            uniform = Uniform(Entropy(None, word), w)
            assert w == 0 or arb(float(lowest)) <= (-uniform.ball().log()).upper()


@pytest.mark.parametrize("name", NOISES)
def test_float_noise_is_right_to_the_stated_error(name):
    rng = np.random.default_rng(3)
    total = np.concatenate([rng.exponential(size=400), [1e-19, 1e-12, 1.9e-12, np.log(2), 0.6931, 30.0, 44.0, 700.0]])
    log_rate = np.concatenate([rng.uniform(-2, 50, 200), rng.uniform(0, 5e6, 200), np.zeros(8)])
    noise, off = evaluate_noise(NOISES[name], total, log_rate)
    with precision(200):
        for t, r, value, error in zip(total, log_rate, noise, off, strict=True):
            exact = NOISES[name].inverse(BallTime(arb(float(t)) * (-arb(float(r))).exp()))
            assert abs(exact - arb(float(value))) <= arb(float(error)) + 2.0**-40 * abs(float(value))
            assert error < 1e-9 * (1 + abs(r) + t) * (1 + t)


@pytest.mark.parametrize("name", NOISES)
def test_noise_is_the_inverse_distribution_function(name):
    """F(G(E)) = exp(-E), with F from its own definition."""
    times = np.array([1e-6, 0.01, 0.3, 0.69, 0.7, 1.0, 3.0, 10.0])
    noise, _ = evaluate_noise(NOISES[name], times, np.zeros_like(times))
    assert np.allclose(by_definition.LOG_CDF[name](noise), -times, rtol=1e-9)
    assert (np.diff(noise) < 0).all()


def test_laplace_is_whole_where_its_two_halves_meet():
    with precision(60):
        around = arb(float(np.log(2)), 1e-10)
        assert NOISES["laplace"].inverse(BallTime(around)).contains(0)

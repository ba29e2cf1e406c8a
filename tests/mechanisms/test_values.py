"""The mechanisms as values: what they promise, how they print, what they refuse, and the way to a file and back."""

from fractions import Fraction

import pytest

import discreet
from discreet.errors import InvalidTypeError, InvalidValueError
from discreet.mechanisms import registry
from discreet.mechanisms.noise import NOISES
from discreet.mechanisms.registry import all_variants

HALF = Fraction(1, 2)


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize("noise", NOISES)
def test_the_zcdp_of_the_design(noise, k):
    """Section 2: epsilon^2/8, /(8k) and /(2k) where a proof covers it, epsilon^2/2 for everything else."""
    epsilon, gumbel = Fraction(3, 5), noise == "gumbel"
    whole = epsilon**2
    assert discreet.Canonical(noise=noise).zcdp(epsilon, k) == (whole / 8 if gumbel else whole / 2)
    assert discreet.OneShot(noise).zcdp(epsilon, k) == (whole / (8 * k) if gumbel else whole / 2)
    assert discreet.Peeling(noise).zcdp(epsilon, k) == (whole / (8 * k) if gumbel else whole / (2 * k))
    assert discreet.Joint().zcdp(epsilon, k) == whole / 8
    assert discreet.Histogram().zcdp(epsilon, k) == whole / 2


@pytest.mark.parametrize("mechanism", all_variants(), ids=str)
def test_a_mechanism_survives_a_file_and_its_own_repr(mechanism):
    data = registry.to_dict(mechanism)
    assert data["name"] == type(mechanism).name
    assert registry.from_dict(data) == mechanism
    assert eval(repr(mechanism), vars(discreet)) == mechanism  # noqa: S307  # our own text
    assert registry.check_mechanism(mechanism) is mechanism


def test_the_parameters_are_plain():
    assert registry.to_dict(discreet.Canonical("2/5", "laplace")) == {
        "name": "canonical",
        "gamma": "2/5",
        "noise": "laplace",
        "ceil": False,
    }
    assert registry.to_dict(discreet.OneShot("logistic")) == {"name": "one-shot", "noise": "logistic"}
    assert registry.to_dict(discreet.Peeling("laplace")) == {"name": "peeling", "noise": "laplace"}
    assert registry.to_dict(discreet.Joint()) == {"name": "joint"}


def test_the_defaults():
    assert discreet.Canonical() == discreet.Canonical(gamma=Fraction(3, 4), noise="gumbel", ceil=False)
    assert discreet.Canonical(ceil=True) == discreet.Canonical(gamma=HALF, ceil=True)
    assert discreet.Canonical(None) == discreet.Canonical()
    assert registry.to_dict(discreet.Canonical())["gamma"] == "3/4"
    assert registry.from_dict({"name": "canonical", "gamma": "1/2", "noise": "gumbel", "ceil": False}).gamma == HALF
    assert discreet.OneShot() == discreet.OneShot("exponential")
    assert discreet.Peeling() == discreet.Peeling("gumbel")
    assert repr(discreet.Canonical(gamma=1, ceil=False)) == "Canonical(gamma='1', noise='gumbel')"


@pytest.mark.parametrize(
    ("make", "error", "complaint"),
    [
        (lambda: discreet.Canonical(gamma=2), InvalidValueError, "gamma must be from 0 to 1, not 2"),
        (lambda: discreet.Canonical(gamma="-1/9"), InvalidValueError, "gamma must be from 0 to 1, not '-1/9'"),
        (lambda: discreet.Canonical(gamma=[]), InvalidTypeError, "gamma must be "),
        (lambda: discreet.Canonical(ceil=1), InvalidTypeError, "ceil must be True or False, not 1"),
        (
            lambda: discreet.Canonical(gamma="1/3", ceil=True),
            InvalidValueError,
            "ceil must be False unless gamma is 1/2, but gamma is '1/3'",
        ),
        (lambda: discreet.Canonical(noise="white"), InvalidValueError, "noise must be one of gumbel, "),
        (lambda: discreet.OneShot(None), InvalidValueError, "noise must be one of gumbel, "),
        (lambda: discreet.Peeling("Gumbel"), InvalidValueError, "noise must be one of gumbel, "),
        (
            lambda: registry.check_mechanism("canonical"),
            InvalidTypeError,
            "mechanism must be one of Canonical(), OneShot(), Peeling(), Joint(), Histogram(), Core(), not 'canonical'",
        ),
    ],
)
def test_what_is_refused(make, error, complaint):
    with pytest.raises(error) as raised:
        make()
    assert str(raised.value).startswith(complaint)


@pytest.mark.parametrize("gamma", [0, 1])
def test_the_ends_of_gamma_are_allowed(gamma):
    assert discreet.Canonical(gamma=gamma).gamma == gamma

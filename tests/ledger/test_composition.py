import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar

import discreet
from discreet.ledger.account import Composition, zcdp_to_epsilon

SMALL = st.fractions(min_value=Fraction(1, 10**6), max_value=4, max_denominator=10**6)
DELTAS = st.integers(2, 12).map(lambda power: Fraction(1, 10**power))


def bound(alpha, rho, delta):
    """Canonne, Kamath and Steinke (2020), Proposition 12."""
    return rho * alpha + math.log(1 / (alpha * delta)) / (alpha - 1) + math.log1p(-1 / alpha)


@given(SMALL, DELTAS)
def test_the_conversion_is_the_least_bound_and_not_below_it(rho, delta):
    own = float(zcdp_to_epsilon(rho, delta))
    best = minimize_scalar(
        lambda u: bound(1 + math.exp(u), float(rho), float(delta)),
        bounds=(-10, 20),
        method="bounded",
        options={"xatol": 1e-9},
    ).fun
    assert own == pytest.approx(max(0, best), rel=1e-7, abs=2e-9)


def test_the_conversion_is_true_for_gaussian_noise():
    # Gaussian noise of scale 1 / sqrt(2 rho) is rho-zCDP, and its exact delta at epsilon is known.
    def delta_of(rho, epsilon):
        mu = math.sqrt(2 * rho)
        upper, lower = mu / 2 - epsilon / mu, -mu / 2 - epsilon / mu
        return phi(upper) - math.exp(epsilon) * phi(lower)

    def phi(x):
        return math.erfc(-x / math.sqrt(2)) / 2

    for rho in (0.001, 0.1, 1, 4):
        for delta in (1e-3, 1e-6):
            assert delta_of(rho, float(zcdp_to_epsilon(Fraction(rho), Fraction(delta)))) <= delta


@pytest.mark.parametrize("rho", [Fraction(1, 10**400), Fraction(10**30), Fraction(1, 3)])
@pytest.mark.parametrize("delta", [Fraction(1, 10**400), Fraction(1, 2), Fraction(10**9 - 1, 10**9)])
def test_extremes_have_an_answer(rho, delta):
    epsilon = zcdp_to_epsilon(rho, delta)
    assert epsilon >= 0
    assert epsilon >= rho or delta >= Fraction(1, 2)


@given(SMALL, DELTAS)
def test_more_rho_or_less_delta_is_more_epsilon(rho, delta):
    assert zcdp_to_epsilon(rho, delta) <= zcdp_to_epsilon(2 * rho, delta)
    assert zcdp_to_epsilon(rho, delta) <= zcdp_to_epsilon(rho, delta / 10)


@given(st.lists(st.tuples(SMALL, SMALL), max_size=6))
def test_sums_are_exact_and_in_any_order(costs):
    def total(each):
        whole = Composition()
        for epsilon, rho in each:
            whole = whole.plus(Composition(epsilon, rho))
        return whole

    assert total(costs) == total(costs[::-1])
    assert total(costs).epsilon == sum(epsilon for epsilon, _ in costs)


def test_deltas_of_entries_count_beside_the_one_of_the_conversion():
    delta = Fraction(1, 10**6)
    some = Composition(Fraction(9), Fraction(1, 8), delta / 2)
    assert some.by_zcdp(delta) == zcdp_to_epsilon(Fraction(1, 8), delta)
    assert some.by_zcdp(None) is None
    assert some.fits(Fraction(9), None, delta / 2)
    assert some.fits(Fraction(3), delta, delta / 2)
    # What is left of one of the two is not there for the other.
    assert not some.fits(Fraction(9), delta, delta / 3)
    assert not some.fits(Fraction(3), None, delta / 2)
    assert not some.fits(Fraction(9), delta)


def test_the_better_of_the_two_is_taken():
    delta = Fraction(1, 10**6)
    few, many = Composition(Fraction(1), Fraction(1, 8)), Composition(Fraction(100), Fraction(1, 8))
    assert few.spent(delta) == 1 < few.by_zcdp(delta)
    assert many.spent(delta) == many.by_zcdp(delta) < 100
    assert many.spent(None) == 100


@pytest.mark.parametrize("mechanism", [discreet.Canonical(), discreet.OneShot("exponential")])
def test_against_dp_accounting(tmp_path, mechanism):
    """Google's accountant, with the same rho: composed in a loop, because its count is not right for every event."""
    accounting = pytest.importorskip("dp_accounting", reason="needs Google's dp-accounting, which is not installed")
    from dp_accounting.rdp import RdpAccountant

    ledger = discreet.Ledger.create(tmp_path / "budget.db", epsilon=1000, delta="1e-6", unit="users")
    orders = [1 + math.exp(i / 200) for i in range(-1000, 1600)]
    accountant = RdpAccountant(orders)
    for _ in range(30):
        release = discreet.top_k({"a": 3, "b": 2, "c": 1}, 1, "0.25", mechanism=mechanism, ledger=ledger)
        accountant.compose(accounting.ZCDpEvent(float(release.guarantee.zcdp)))
    ours = ledger.composition.by_zcdp(Fraction(1, 10**6))
    assert float(ours) == pytest.approx(accountant.get_epsilon(1e-6), rel=1e-5)


def test_against_dp_accounting_for_the_exponential_mechanism():
    """Its own bound for that mechanism is tighter than zCDP, but not by much where epsilon is small."""
    accounting = pytest.importorskip("dp_accounting", reason="needs Google's dp-accounting, which is not installed")
    from dp_accounting.rdp import RdpAccountant

    if not hasattr(accounting, "ExponentialMechanismDpEvent"):
        pytest.skip("needs a dp-accounting that knows the exponential mechanism")
    accountant, composition = RdpAccountant(), Composition()
    for _ in range(50):
        accountant.compose(accounting.ExponentialMechanismDpEvent(0.1))
        composition = composition.plus(Composition(Fraction(1, 10), discreet.Canonical().zcdp(Fraction(1, 10), 5)))
    theirs, ours = accountant.get_epsilon(1e-6), float(composition.by_zcdp(Fraction(1, 10**6)))
    assert theirs <= ours * 1.01
    assert ours <= theirs * 1.05

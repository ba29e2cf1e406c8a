"""A guarantee as an event of dp-accounting, composed by the accountants of that library."""

import doctest
import inspect
import math
import sys
from fractions import Fraction

import pytest
from scipy import stats

import discreet
from discreet.evidence.law import law
from discreet.exact.ball import float_above, precision
from discreet.privacy import Sensitivity
from discreet.sources.arrays.array import array_source

GRID = 1e-4
"""The PLD accountant rounds every loss up to multiples of this."""

SCORES = {"a": 3, "b": 2, "c": 1}


@pytest.fixture(scope="module")
def accounting():
    return pytest.importorskip("dp_accounting", reason="needs Google's dp-accounting, which is not installed")


@pytest.fixture
def pld(accounting):
    from dp_accounting.pld import PLDAccountant

    return PLDAccountant


@pytest.fixture
def rdp(accounting):
    from dp_accounting.rdp import RdpAccountant

    return RdpAccountant


def guarantee(epsilon="0.25", k=1, **more):
    return discreet.top_k(SCORES, k, epsilon, **more).guarantee


def test_the_docstring_shows_what_comes_out(accounting):
    """Its lines are skipped elsewhere, because not every Python has dp-accounting."""
    text = inspect.getdoc(discreet.Guarantee.to_dp_event).replace("  # doctest: +SKIP", "")
    done = doctest.DocTestRunner().run(doctest.DocTestParser().get_doctest(text, {}, "to_dp_event", None, None))
    assert (done.failed, done.attempted) == (0, 4)


@pytest.mark.parametrize("epsilon", ["1e-5", "0.1", "0.25", "1", "7", "50"])
def test_one_release_costs_epsilon(pld, epsilon):
    event = guarantee(epsilon).to_dp_event()
    spent = pld().compose(event).get_epsilon(0)
    assert float(Fraction(epsilon)) <= spent + 1e-9
    assert spent <= float(Fraction(epsilon)) + GRID + 1e-9
    # A finer grid comes closer.
    assert pld(value_discretization_interval=1e-6).compose(event).get_epsilon(0) == pytest.approx(
        float(Fraction(epsilon)), abs=2e-6
    )


def test_the_event_is_the_worst_that_epsilon_allows(accounting, pld):
    """At every x, delta is max(0, (e^eps - e^x) / (1 + e^eps)): that of a coin whose loss is eps or -eps."""
    accountant = pld(value_discretization_interval=1e-5).compose(guarantee(1).to_dp_event())
    laplace = pld(value_discretization_interval=1e-5).compose(accounting.LaplaceDpEvent(1.0))
    for x in (0.0, 0.3, 0.9):
        coin = (math.e - math.exp(x)) / (1 + math.e)
        assert accountant.get_delta(x) == pytest.approx(coin, abs=2e-5)
        assert laplace.get_delta(x) < coin - 0.001, "Laplace noise would say less than what epsilon-DP can lose"


@pytest.mark.parametrize(
    "mechanism", [discreet.OneShot("exponential"), discreet.OneShot("laplace"), discreet.Canonical()]
)
def test_no_mechanism_is_told_better_than_it_is(pld, mechanism):
    """The exact law of a mechanism on two neighbours tells them apart by no more than the event says."""

    def chances(scores):
        prepared = mechanism.prepare(array_source(scores).tally(), 1, Fraction(1), Sensitivity())
        with precision(112):
            return {ranks: float(log.exp()) for ranks, log in law(prepared).items()}

    accountant = pld().compose(guarantee(1, mechanism=mechanism).to_dp_event())
    # Ranks are positions: the scores stay in descending order.
    for one, other in [([2, 1], [3, 1]), ([1, 1], [2, 1]), ([2, 1, 1], [3, 1, 1])]:
        for here, there in ((chances(one), chances(other)), (chances(other), chances(one))):
            for x in (0.0, 0.25, 0.5, 0.75):
                delta = sum(max(0.0, here[outcome] - math.exp(x) * there[outcome]) for outcome in here)
                assert delta <= accountant.get_delta(x) + 1e-9


@pytest.mark.parametrize("n", [1, 2, 10, 40])
def test_many_releases_cost_less_where_delta_is_granted(accounting, pld, n):
    event = guarantee("0.25").to_dp_event()
    accountant = pld()
    for _ in range(n):
        accountant.compose(event)
    assert accountant.get_epsilon(0) == pytest.approx(n / 4, abs=n * GRID)
    assert accountant.get_epsilon(1e-6) <= n / 4
    if n == 40:
        assert accountant.get_epsilon(1e-6) < 0.8 * n / 4
    # n coins, of which i fall the wrong way: the loss is (n - 2i) / 4.
    wrong = 1 / (1 + math.exp(0.25))
    for x in (0.1, n / 8):
        exact = sum(stats.binom.pmf(i, n, wrong) * max(0.0, -math.expm1(x - (n - 2 * i) / 4)) for i in range(n + 1))
        assert accountant.get_delta(x) == pytest.approx(exact, abs=2 * n * GRID)
        assert accountant.get_delta(x) >= exact - 1e-9
    # A count says the same as that many calls.
    assert pld().compose(event, n).get_epsilon(1e-6) == pytest.approx(accountant.get_epsilon(1e-6), abs=1e-6)
    repeated = accounting.SelfComposedDpEvent(event, n)
    assert pld().compose(repeated).get_epsilon(1e-6) == pytest.approx(accountant.get_epsilon(1e-6), abs=1e-6)


@pytest.mark.some(2)
@pytest.mark.parametrize("mechanism", [discreet.Canonical(), discreet.Peeling(), discreet.OneShot("laplace")], ids=str)
def test_the_other_accountant_takes_zcdp(accounting, rdp, pld, mechanism):
    promised = guarantee("0.25", k=2, mechanism=mechanism)
    event = promised.to_dp_event(accountant="rdp")
    assert event == accounting.ZCDpEvent(float(promised.zcdp))
    n = 400
    spent = rdp().compose(event, n).get_epsilon(1e-6)
    assert spent < n / 4
    # For a rho of epsilon^2 / 8 or less, many releases are cheaper than epsilon alone can tell.
    cheaper = spent < pld().compose(promised.to_dp_event(), n).get_epsilon(1e-6)
    assert cheaper == (promised.zcdp <= promised.epsilon**2 / 8)
    with pytest.raises(accounting.UnsupportedEventError):
        pld().compose(event)
    with pytest.raises(accounting.UnsupportedEventError):
        rdp().compose(promised.to_dp_event())


def test_counts_are_an_event_of_their_own(accounting, pld):
    promised = discreet.top_k(SCORES, 2, "0.5", counts="0.25").guarantee
    event = promised.to_dp_event()
    assert [part.noise_parameter for part in event.events] == [0.5, 0.25]
    accountant = pld().compose(event)
    assert accountant.get_epsilon(0) == pytest.approx(0.75, abs=2 * GRID)
    assert accountant.get_delta(0.3) < pld().compose(guarantee("0.75").to_dp_event()).get_delta(0.3)
    assert promised.to_dp_event("rdp") == accounting.ZCDpEvent(float_above(promised.zcdp))
    # All items cost nothing, so that only their counts are left.
    everything = discreet.top_k(SCORES, 3, "0.5", counts="0.25").guarantee.to_dp_event()
    assert everything == accounting.dp_event.DiscreteLaplaceDpEvent(0.25, 1)


def test_neighbours_are_those_of_the_guarantee(accounting, pld, rdp):
    relation = accounting.NeighboringRelation
    swapped, added = guarantee(adjacency="swap"), guarantee()
    # Added or removed: an accountant for replaced records does not take it.
    assert pld(relation.ADD_OR_REMOVE_ONE).supports(added.to_dp_event())
    assert not pld(relation.REPLACE_ONE).supports(added.to_dp_event())
    # Replaced: there is an event for one accountant only, and it is the default.
    assert swapped.to_dp_event() == swapped.to_dp_event("rdp") == accounting.ZCDpEvent(float(swapped.zcdp))
    spent = rdp(neighboring_relation=relation.REPLACE_ONE).compose(swapped.to_dp_event(), 400).get_epsilon(1e-6)
    assert spent < 100
    with pytest.raises(ValueError, match="accountant must be 'rdp' or left out for the adjacency 'swap', not 'pld'"):
        swapped.to_dp_event("pld")


def test_why_replaced_records_have_no_event_of_pure_epsilon(accounting, pld):
    """The PLD accountant counts ten coins for replaced records as one; when this fails, it can be handed them."""
    coin = accounting.RandomizedResponseDpEvent(2 / (1 + math.exp(0.25)), 2)
    replaced = accounting.NeighboringRelation.REPLACE_ONE
    once, ten = (pld(replaced).compose(coin, count).get_epsilon(0) for count in (1, 10))
    assert once == ten == pytest.approx(0.25, abs=GRID)


def test_the_ends(accounting, pld, rdp):
    events = accounting.dp_event
    nothing = discreet.top_k(SCORES, 3, 1).guarantee
    assert nothing.to_dp_event() == nothing.to_dp_event("rdp") == events.NoOpDpEvent()
    assert pld().compose(nothing.to_dp_event()).get_epsilon(0) == 0
    for accountant, kind in ((pld(), "pld"), (rdp(), "rdp")):
        huge = guarantee("1e400").to_dp_event(kind)
        assert huge == events.NonPrivateDpEvent()
        assert accountant.compose(huge).get_epsilon(1e-6) == math.inf
    tiny = guarantee("1e-400")
    assert tiny.to_dp_event().noise_parameter == tiny.to_dp_event("rdp").rho == 5e-324
    assert 0 < pld().compose(tiny.to_dp_event()).get_epsilon(0) <= GRID + 1e-9


@pytest.mark.parametrize("epsilon", ["1/3", "0.1", "2/3", "0.7"])
def test_floats_are_rounded_up(accounting, epsilon):
    promised = guarantee(epsilon)
    for got, exact in (
        (promised.to_dp_event().noise_parameter, promised.epsilon),
        (promised.to_dp_event("rdp").rho, promised.zcdp),
    ):
        assert math.nextafter(got, 0) < exact <= got


@pytest.mark.parametrize("wrong", ["PLD", "", 1, ["pld"]])
def test_other_accountants_are_refused(accounting, wrong):
    with pytest.raises(discreet.Error, match="accountant must be 'pld', 'rdp' or left out, not "):
        guarantee().to_dp_event(wrong)


def test_without_dp_accounting(monkeypatch):
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    line = r'dp-accounting is not installed: pip install "dp-accounting>=0\.6"'
    with pytest.raises(ImportError, match=line) as found:
        guarantee().to_dp_event()
    assert isinstance(found.value, discreet.Error)

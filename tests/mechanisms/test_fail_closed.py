"""Envelopes below the mass of a cell: no draw that finds one leaves the process, in any mechanism."""

import math
import random
import zoneinfo
from collections import Counter
from dataclasses import replace
from datetime import datetime
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from flint import arb

import discreet
import draws
from definitions import definition
from discreet import Canonical, Core, Histogram, Joint, OneShot, Peeling, Sensitivity
from discreet.exact import ball, discrete, race
from discreet.exact import nested as cells_of
from discreet.exact.ball import EnvelopeError
from discreet.exact.entropy import Entropy
from discreet.exact.envelope import Envelope
from discreet.mechanisms import canonical, core, joint, oneshot
from discreet.mechanisms.discovery import Discovery
from discreet.sources.arrays.array import array_source

SCORES = [5, 4, 4, 2, 1, 0]
HALVES = [score / 2 + 0.25 * (score > 3) for score in SCORES]


def lower_envelopes(monkeypatch, by=20.0):
    """Every weight of an envelope is far below the mass of its part."""
    right = Envelope.over.__func__
    monkeypatch.setattr(Envelope, "over", classmethod(lambda cls, logs, *more: right(cls, logs - by, *more)))


def lower_gains(monkeypatch, by=20.0):
    """Every bound on the gain of a stream is far below what its members gain."""
    streams, bound = canonical._Streams.__init__, oneshot.Prepared.__dict__["bound"].func

    def lowered_streams(self, prepared):
        streams(self, prepared)
        self.bound = self.bound - by

    monkeypatch.setattr(canonical._Streams, "__init__", lowered_streams)
    monkeypatch.setattr(oneshot.Prepared, "bound", property(lambda self: bound(self) - by))


def shrink_sizes(monkeypatch, by=20.0):
    """Boxes are taken to hold far fewer subsets than they do."""
    right = canonical._Streams.arrive

    def arrive(self, j, entropy):
        self.boxes.size[...] -= by
        try:
            return right(self, j, entropy)
        finally:
            self.boxes.size[...] += by

    monkeypatch.setattr(canonical._Streams, "arrive", arrive)


def count_scans(monkeypatch):
    scans = []

    def scan(right, *given):
        scans.append(right)
        return right(*given)

    for owner, name in ((race, "scan_best"), (canonical, "scan_best"), (core, "scan_weights"), (joint, "scan_weights")):
        monkeypatch.setattr(owner, name, partial(scan, getattr(owner, name)))
    return scans


CASES = [
    (Canonical(), SCORES, lower_envelopes),
    (Canonical("1/3"), SCORES, lower_envelopes),
    (Canonical(1), HALVES, lower_envelopes),
    (Canonical(ceil=True), HALVES, lower_envelopes),
    (Canonical(noise="laplace"), SCORES, lower_gains),
    (Canonical(1, "logistic"), SCORES, lower_gains),
    (Joint(), SCORES, lower_envelopes),
    (Joint(), HALVES, lower_envelopes),
    (OneShot(), SCORES, lower_gains),
    (OneShot("laplace"), HALVES, lower_gains),
    (Peeling(), SCORES, lower_gains),
    (Peeling("half-logistic"), SCORES, lower_gains),
]


@pytest.mark.some(1)
@pytest.mark.parametrize(("mechanism", "scores", "plant"), CASES, ids=lambda each: getattr(each, "__name__", str(each)))
def test_a_draw_that_finds_a_low_bound_is_drawn_anew_from_the_same_law(mechanism, scores, plant, monkeypatch):
    exact = definition(mechanism, scores, 2, Fraction(1))
    plant(monkeypatch)
    scans = count_scans(monkeypatch)
    entropy = Entropy(random.Random(4))
    made = (
        discreet.top_k(scores, 2, 1, mechanism=mechanism, sensitivity=Sensitivity(down=0, up=1), rng=entropy)
        for _ in range(1500)
    )
    counts = Counter(tuple(release.order if mechanism.ordered else release.items) for release in made)
    assert len(scans) >= 1500, "every draw finds it"
    assert draws.fits(counts, exact)
    flat = {outcome: 1 / len(exact) for outcome in exact}
    assert not draws.fits(counts, flat)


@pytest.mark.long
def test_a_low_bound_on_sizes_is_found_by_thinning(monkeypatch):
    mechanism = Canonical(noise="exponential")
    exact = definition(mechanism, [3] * 9, 4, Fraction(1))
    shrink_sizes(monkeypatch)
    scans = count_scans(monkeypatch)
    entropy = Entropy(random.Random(4))
    counts = Counter(tuple(discreet.top_k([3] * 9, 4, 1, mechanism=mechanism, rng=entropy).items) for _ in range(1200))
    assert len(scans) > 1000
    assert draws.fits(counts, exact)


def test_a_histogram_has_the_values_of_the_scan(monkeypatch):
    """Items, order and values fit those of noise on each score, item by item."""
    lower_gains(monkeypatch)
    scans = count_scans(monkeypatch)
    entropy, few = Entropy(random.Random(3)), Sensitivity(items=1)
    drawn = [
        discreet.top_k([9, 9, 9, 9], 1, 1, mechanism=Histogram(), sensitivity=few, rng=entropy) for _ in range(800)
    ]
    assert len(scans) == 800
    assert draws.fits(Counter(release.items[0] for release in drawn), dict.fromkeys(range(4), 0.25))

    # The largest of four Laplace noises is below x with probability F(x)^4.
    def share_below(value):
        x = value + 0.5 - 9
        return (1 - math.exp(-x) / 2 if x >= 0 else math.exp(x) / 2) ** 4

    edges = [-math.inf, 8, 9, 10, 11, 12, math.inf]
    shares = [share_below(edge) if math.isfinite(edge) else float(edge > 0) for edge in edges]
    law = {i: shares[i + 1] - shares[i] for i in range(6)}
    values = [release.counts[0].value for release in drawn]
    assert draws.fits(Counter(int(np.searchsorted(edges[1:], value)) for value in values), law)


def test_the_choice_of_core_is_scanned_too(monkeypatch):
    tally = array_source([9, 8, 7, 3, 2, 1, 0, 0]).tally()
    prepared = Core().prepare(tally, 3, Fraction(2), Sensitivity())
    with ball.precision(100):
        weights = [float(weight.exp().mid()) for weight in prepared.log_weights()]
    lower_envelopes(monkeypatch)
    scans = count_scans(monkeypatch)
    entropy = Entropy(random.Random(5))
    counts = Counter(prepared.draw_candidate(entropy) for _ in range(1000))
    assert len(scans) == 1000
    assert draws.fits(counts, {j: weight / sum(weights) for j, weight in enumerate(weights)})


def test_discovery_falls_back_to_a_coin_for_each_item(monkeypatch):
    """Where bounds on the probability of an item are too low, or an acceptance is above 1."""
    found = Discovery(Fraction(1), Fraction(1, 1000), max_items_per_user=1)
    users, items = np.array([found.threshold - 2, found.threshold + 1]), np.array([40, 60])
    exact = [float(found.keep_probability(int(n)).mid()) for n in users]
    monkeypatch.setattr(discrete, "_sample_together", lambda *_: (_ for _ in ()).throw(EnvelopeError))
    kept = np.array([found.sample_kept(Entropy(random.Random(seed)), users, items) for seed in range(300)])
    for share, count, size in zip(exact, kept.sum(axis=0), items, strict=True):
        n = 300 * int(size)
        assert abs(count - n * share) < 4.5 * math.sqrt(n * share * (1 - share))
    with pytest.raises(discreet.InternalError):
        found.sample_kept(Entropy(random.Random(1)), users, np.array([10**6, 1]))


def test_a_coin_above_one_is_found_in_a_binomial():
    high = np.array([1e-9])
    with pytest.raises(EnvelopeError):
        discrete._sample_bernoullis(Entropy(random.Random(1)), np.array([1.5]), np.array([2.0]), lambda _: arb(2))
    with pytest.raises(EnvelopeError):
        # The bounds promise 10^-9, and the coin is 1.01 times what it is thinned from.
        discrete._sample_bernoullis(Entropy(random.Random(1)), 0 * high, 0 * high + 1, lambda _: arb("1.01"))


LARGE = np.arange(10**6) // 7


@pytest.mark.parametrize(
    ("mechanism", "plant"),
    [
        (Canonical(), lower_envelopes),
        (Canonical(noise="laplace"), lower_gains),
        (Joint(), lower_envelopes),
        (OneShot(), lower_gains),
        (Histogram(), lower_gains),
    ],
    ids=lambda each: getattr(each, "__name__", str(each)),
)
def test_without_a_slow_sampler_the_release_is_withheld_and_the_ledger_locked(
    mechanism, plant, monkeypatch, tmp_path, call
):
    few = Sensitivity(items=1) if mechanism.releases_values else None
    ledger = discreet.Ledger.create(tmp_path / "budget.db", epsilon=3, unit="people")
    before = discreet.top_k(LARGE, 5, 1, mechanism=mechanism, sensitivity=few, ledger=ledger, request_id="first")
    with monkeypatch.context() as patch:
        plant(patch)
        with pytest.raises(discreet.InternalError, match="withholds the release") as raised:
            discreet.top_k(LARGE, 5, 1, mechanism=mechanism, sensitivity=few, ledger=ledger)
    assert not any(char.isdigit() for char in str(raised.value))
    # The charge stays, nothing more is drawn, and what was released before can be had again.
    assert (ledger.spent, ledger.is_locked) == (2, True)
    with pytest.raises(discreet.LedgerError, match="the ledger is locked: for charge 4 discreet found a fault"):
        discreet.top_k(LARGE, 5, 1, mechanism=mechanism, sensitivity=few, ledger=ledger)
    again = discreet.top_k(LARGE, 5, 1, mechanism=mechanism, sensitivity=few, ledger=ledger, request_id="first")
    assert again == before
    path = str(tmp_path / "budget.db")
    assert "releases are refused until 'discreet budget reopen'" in call("budget", "show", path)[1]
    assert call("budget", "reopen", path, "--reason", "mended")[0] == 0
    assert not ledger.is_locked
    assert discreet.top_k(LARGE, 5, 1, mechanism=mechanism, sensitivity=few, ledger=ledger).private
    code, _, err = call("budget", "reopen", path, "--reason", "again")
    assert (code, "the ledger is not locked" in err) == (1, True)
    assert ledger.check() == 8


def test_a_fault_is_told_after_the_padding_wait(monkeypatch):
    import time

    lower_envelopes(monkeypatch)
    begun = time.monotonic()
    with pytest.raises(discreet.InternalError):
        discreet.top_k(LARGE, 5, 1, pad_to="0.5")
    assert time.monotonic() - begun >= 0.5


def test_a_release_of_items_twice_or_too_many_is_withheld():
    from discreet.release.request import check_items

    assert check_items(["b", "a"], 2, False) == ["a", "b"]
    assert check_items(["a"], 2, True) == ["a"]
    assert check_items(np.array([4, 1]), 2, False) == [1, 4]
    for items, fewer in ((["a", "a"], False), (["a"], False), (["a", "b", "c"], True), (np.array([3, 3]), True)):
        with pytest.raises(discreet.InternalError):
            check_items(items, 2, fewer)


@pytest.mark.parametrize(
    "mechanism",
    [OneShot(), OneShot("gumbel"), Peeling("laplace"), Histogram(), Canonical(), Joint()],
    ids=str,
)
@pytest.mark.parametrize("top", [1e100, 1e300, Fraction(10**900, 7)], ids=["1e100", "1e300", "a fraction"])
def test_scores_far_apart_are_compared_at_a_precision_that_ends(mechanism, top):
    """Two hundred equal scores far above the others: each comparison needs some hundred bits, and no more each time."""
    few = Sensitivity(down=0, up=1, items=1 if mechanism.releases_values else None)
    release = discreet.top_k([top] * 60 + [Fraction(0)] * 100, 70, 1, mechanism=mechanism, sensitivity=few)
    assert set(range(60)) <= set(release.items)
    assert len(release) == 70


def test_a_ledger_that_is_not_locked_is_not_reopened(tmp_path):
    ledger = discreet.Ledger.create(tmp_path / "budget.db", epsilon=3, unit="people")
    with pytest.raises(discreet.LedgerError, match="not locked"):
        ledger.reopen("nothing to do")
    with pytest.raises(discreet.errors.InvalidValueError, match="reason must have"):
        ledger.reopen(" ")


def test_labels_that_python_calls_equal_are_distinct_items():
    """The two hours of a clock that is set back are different labels, and no fault."""
    berlin = zoneinfo.ZoneInfo("Europe/Berlin")
    hours = [datetime(2026, 10, 25, 2, tzinfo=berlin, fold=fold) for fold in (0, 1)]
    assert hours[0] == hours[1]
    assert len(discreet.top_k([50, 50, 0], 2, 100, labels=[*hours, datetime(2026, 1, 1, tzinfo=berlin)]).items) == 2


def test_a_ledger_is_locked_even_if_the_wait_is_interrupted(monkeypatch, tmp_path):
    from discreet.release.topk import Padding

    ledger = discreet.Ledger.create(tmp_path / "budget.db", epsilon=3, unit="people")
    lower_envelopes(monkeypatch)
    waits = []

    def interrupted(self):
        waits.append(self)
        if len(waits) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Padding, "wait", interrupted)
    with pytest.raises(KeyboardInterrupt):
        discreet.top_k(LARGE, 5, 1, ledger=ledger)
    assert ledger.is_locked


def test_a_ledger_is_locked_for_a_charge_of_its_own_alone(tmp_path):
    one, other = (discreet.Ledger.create(tmp_path / name, epsilon=3, unit="people") for name in ("one.db", "other.db"))
    query = {}
    monkey = discreet.Ledger.charge

    def charge(self, *given):
        query[self.path] = monkey(self, *given)
        return query[self.path]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(discreet.Ledger, "charge", charge)
        discreet.top_k([3, 2, 1], 1, 1, ledger=one)
    with pytest.raises(discreet.LedgerError, match="does not hold the charge"):
        other.lock(query[one.path])
    assert not other.is_locked
    assert other.check() == 1


@pytest.mark.parametrize("top", [2**50, 2**62, 1e308])
@pytest.mark.parametrize("mechanism", [OneShot(), Histogram()], ids=str)
def test_ties_far_from_the_last_place_need_few_comparisons_of_balls(mechanism, top, monkeypatch):
    """Equal scores are told apart by their noise: time follows from d and k, not from how far scores are apart."""
    compared, right = [], race.is_less
    monkeypatch.setattr(race, "is_less", lambda *given: compared.append(1) or right(*given))
    limit = Sensitivity(down=0, up=1, items=1 if mechanism.releases_values else None)
    for scores in ([top] * 1000 + [0] * 1000, [0] * 2000):
        discreet.top_k(scores, 1500, 1, mechanism=mechanism, sensitivity=limit, rng=random.Random(1))
    assert len(compared) < 50


def test_bounds_are_checked_where_they_are_built():
    tally = array_source(np.arange(300) // 3).tally()
    for epsilon in (Fraction(1, 10**4), Fraction(1, 10)):
        nested = Canonical().prepare(tally, 20, epsilon, Sensitivity()).nested
        cells = nested.planned.cells
        for j in np.flatnonzero(cells.log_masses > -np.inf).tolist():
            low = cells.log_masses - 0.5 * (np.arange(len(cells.log_masses)) == j)
            with np.errstate(all="ignore"), pytest.raises(EnvelopeError):
                nested._propose(replace(cells, log_masses=low))
    # Levels that are too low with the bounds that they give.
    low = cells_of.Enclosure.of(cells.a, cells.b, replace(cells.levels, log_r=cells.levels.log_r - 0.01))
    with np.errstate(all="ignore"), pytest.raises(EnvelopeError):
        nested._propose(low)

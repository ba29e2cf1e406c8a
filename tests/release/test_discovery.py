"""Releases of items that nobody listed: the law from rows to what is seen, and what a release says of itself."""

import itertools
import math
import random
from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import discreet
from discreet.evidence.law import law
from discreet.evidence.visible_laws import outcome_of
from discreet.exact.ball import precision
from discreet.exact.entropy import Entropy
from discreet.mechanisms.tally import Selection
from discreet.release import discovery_request
from discreet.release.discovery_request import make_discovery_request
from discreet.release.request import Randomness
from discreet.sources.discovered import FoundItems
from discreet.sources.events.unlisted import UnlistedScoring
from snapshots import find_items

# The law, over all neighbours of small tables, from rows to what the caller sees.

ITEMS = "abcd"
BASES = [{}, {"a": 4}, {"a": 3, "b": 2}, {"a": 4, "b": 3, "c": 1}, {"a": 5, "b": 5, "c": 4}]
USERS = [chosen for size in range(4) for chosen in itertools.combinations(ITEMS, size)]
TABLES = [(base, user) for base in range(len(BASES)) for user in range(len(USERS))]
"""Every base with every user added to it; that of no items is the base itself."""


def all_tables():
    """The rows of all tables, each a group of its own; everybody does everything three times."""
    rows = []
    for index, (base, user) in enumerate(TABLES):
        people = [(f"{item}{i}", item) for item, size in BASES[base].items() for i in range(size)]
        rows += [(index, *each) for each in [*people, *(("new", item) for item in USERS[user])] * 3]
    return pa.table(dict(zip(("table", "who", "what"), map(list, zip(*rows, strict=True)), strict=True)))


def find_all(most):
    """Of each table the items, for how many users each counts, and its score."""
    source = discreet.events(
        all_tables(), user="who", item="what", domain=discreet.discovered("1e-6", most, method="laplace"),
        by="table", groups=discreet.integers(0, len(TABLES) - 1), each_user="many",
    )  # fmt: skip
    users = []

    def keep(counts, items):
        users.append(np.repeat(counts, items).tolist())
        return np.arange(items.sum())

    return [
        list(zip(found.items, n, found.scores, strict=True))
        for found, n in zip(find_items(source, "7", keep), users, strict=True)
    ]


def tail(rate, n):
    q = math.exp(-rate)
    return q**n / (1 + q) if n >= 1 else 1 - q ** (1 - n) / (1 + q)


def visible_law(request, found, lower=0, inflate=1):
    """The probability of everything that can be seen; with a threshold that is too low, or scores too large."""
    discovery, seen = request.share.discovery, Counter()
    keep = [tail(float(discovery.rate), discovery.threshold - lower - n) for _, n, _ in found]
    for chosen in itertools.product([False, True], repeat=len(found)):
        p = math.prod(k if is_kept else 1 - k for k, is_kept in zip(keep, chosen, strict=True))
        kept = [each for each, is_kept in zip(found, chosen, strict=True) if is_kept]
        held = FoundItems([item for item, _, _ in kept], [score * inflate for _, _, score in kept])
        for outcome, share in select_in_turn(request, held).items():
            seen[outcome] += p * share
    assert abs(sum(seen.values()) - 1) < 1e-9
    return seen


def select_in_turn(request, held):
    """The law of the selection among what was kept, every choice taken through the way to a release."""
    prepared = []

    def observe(ranks):
        def draw(ready):
            prepared.append(ready)
            return Selection(np.array(ranks))

        return outcome_of(request._release_found(held, Randomness(draw)))

    first = observe(range(request.k))
    if not prepared:
        return {first: 1.0}
    with precision(100):
        exactly = {ranks: math.exp(float(log.mid())) for ranks, log in law(prepared[0]).items()}
    shares = Counter()
    for ranks, share in exactly.items():
        shares[observe(ranks)] += share
    return shares


def worst_delta(laws, epsilon, adjacency):
    """The largest hockey-stick divergence over all neighbours: the delta that they need."""
    factor, worst = math.exp(epsilon), 0.0
    for base in range(len(BASES)):
        own = [laws[index] for index, (at, _) in enumerate(TABLES) if at == base]
        pairs = [(own[0], other) for other in own[1:]] if adjacency == "add-remove" else itertools.combinations(own, 2)
        for one, other in pairs:
            for p, q in ((one, other), (other, one)):
                worst = max(worst, sum(max(0.0, p[seen] - factor * q[seen]) for seen in p))
    return worst


def ask(most, epsilon, part, adjacency="add-remove", mechanism=None, k=1, delta=Fraction(1, 10**3)):
    terms = discreet.sources.discovered.Discovered(delta, most, Fraction(part), method="laplace")
    source = discreet.events(all_tables(), user="who", item="what", domain=terms, adjacency=adjacency)
    return make_discovery_request(source, k, epsilon, mechanism=mechanism)


@pytest.fixture(scope="module")
def found():
    return {most: find_all(most) for most in (1, 2, 4)}


CASES = [
    (1, 4, 3, "add-remove", discreet.OneShot("exponential"), 1),
    (2, 8, 6, "add-remove", discreet.Canonical(), 2),
    (1, 8, 6, "swap", discreet.Canonical(), 1),
    (1, 4, 3, "add-remove", discreet.Peeling(), 2),
]


@pytest.mark.some(2)
@pytest.mark.parametrize(("most", "epsilon", "part", "adjacency", "mechanism", "k"), CASES, ids=str)
def test_neighbours_are_within_epsilon_and_delta(found, most, epsilon, part, adjacency, mechanism, k):
    request = ask(most, epsilon, part, adjacency, mechanism, k)
    laws = [visible_law(request, table) for table in found[most]]
    worst = worst_delta(laws, epsilon, adjacency)
    assert worst <= 1e-3
    # No other delta would do, but for that of the next whole threshold.
    lower = [visible_law(request, table, lower=1) for table in found[most]]
    assert worst_delta(lower, epsilon, adjacency) > (1e-3 if adjacency == "add-remove" else worst)


def test_planted_faults_are_caught(found, monkeypatch):
    # A delta that the threshold has no room in.
    delta = Fraction(12, 10**5)
    request, limit = ask(1, 6, 3, delta=delta), 1.5 * float(delta)
    assert request.share.threshold == 4
    assert worst_delta([visible_law(request, table) for table in found[1]], 6, "add-remove") <= delta
    # More items of a user count than was said.
    assert worst_delta([visible_law(request, table) for table in found[4]], 6, "add-remove") > limit
    # The scores of those found are bounded by another rule than the selection knows.
    inflated = [visible_law(request, table, inflate=10) for table in found[1]]
    assert worst_delta(inflated, 6, "add-remove") > limit
    # Rows are counted in place of people.
    monkeypatch.setattr(UnlistedScoring, "_add_up_by_user", lambda self, rows, within=(): rows)
    assert worst_delta([visible_law(request, table) for table in find_all(4)], 6, "add-remove") > limit


# What a release is.

MESSAGES = {"disk full": 300, "timeout": 200, "no route": 120, "hunter2": 1}
NAMES = [name for name, size in MESSAGES.items() for _ in range(size)]
LOGS = pa.table({"who": list(range(len(NAMES))), "what": NAMES, "land": ["DE", "FR", "IT"] * (len(NAMES) // 3)})


def release(k=2, epsilon=4, domain=None, *, events=LOGS, options=None, **terms):
    domain = domain or discreet.discovered("1e-8", 1, method="laplace")
    source = discreet.events(events, user="who", item="what", domain=domain, **(options or {}))
    return discreet.top_k(source, k, epsilon, **terms)


def test_a_release_of_those_found():
    found = release()
    assert found.items == ["disk full", "timeout"]
    assert (found.d, found.k, found.asked, found.order) == (None, 2, 2, None)
    assert (found.guarantee.epsilon, found.guarantee.delta) == (4, Fraction(1, 10**8))
    # e1 = epsilon min(1/2, 1/4 + l / 4k)
    assert found.guarantee.discovery_epsilon == Fraction(3, 2)
    assert found.guarantee.selection_epsilon == Fraction(5, 2)
    assert found.guarantee.zcdp == Fraction(9, 8) + discreet.Canonical().zcdp(Fraction(5, 2), 2)
    assert found.guarantee.threshold == found.guarantee.discovery.threshold > 1
    assert "Top 2 of those found" in str(found)
    assert "will hardly be seen" in str(found)
    assert "delta 1e-08" in str(found)
    assert discreet.Release.from_json(found.to_json()) == found


def test_a_guarantee_of_more_digits_than_python_spells_is_written_and_read_back():
    first, second, third = (Fraction(10**n + 1, 10**n - 1) for n in (479, 990, 999))
    domain = discreet.discovered("1e-8", 1, epsilon=first, method="laplace")
    found = release(epsilon=3 * second, domain=domain, counts=third)
    assert found.guarantee.zcdp.denominator > 10**4300
    assert discreet.Release.from_json(found.to_json()) == found


def test_fewer_than_asked_for_are_all_released_without_an_order_at_the_same_price():
    few, many = release(k=9, mechanism=discreet.OneShot()), release(k=2, mechanism=discreet.OneShot())
    assert few.items == ["disk full", "no route", "timeout"]
    assert (few.order, few.asked, few.guarantee.epsilon) == (None, 9, many.guarantee.epsilon)
    assert sorted(many.order) == many.items
    assert str(few).startswith("3 items were found, fewer than the 9 asked for, sorted by name")
    exactly = release(k=3, mechanism=discreet.OneShot())
    assert (exactly.items, exactly.order) == (few.items, None)
    assert discreet.Release.from_json(few.to_json()) == few


def test_none_found_is_a_release_of_nothing():
    alone = pa.table({"who": [1, 2, None], "what": ["a", "b", "b"]})
    for events in (alone, alone.slice(0, 0), alone.slice(2)):
        nothing = release(k=5, epsilon=1, events=events, counts=1)
        assert (nothing.items, nothing.counts, nothing.k, nothing.guarantee.epsilon) == ([], [], 0, 2)
        assert str(nothing).startswith("No item was found, though 5 were asked for.\nPrivacy")
        assert discreet.Release.from_json(nothing.to_json()) == nothing
        assert nothing._repr_html_()


def test_counts_are_of_all_users_and_need_the_noise_of_k_items():
    # Everybody has all three, of which one counts for finding them.
    everybody = pa.table({"who": np.repeat(np.arange(900), 3), "what": ["a", "b", "c"] * 900})
    found = release(k=2, events=everybody, counts=100)
    assert all(abs(count.value - 900) <= 1 for count in found.counts)
    assert found.guarantee.counts_epsilon == 100
    domain = discreet.discovered("1e-8", 1, method="laplace")
    source = discreet.events(everybody, user="who", item="what", domain=domain)
    request = make_discovery_request(source, 7, 1, split="auto")
    assert request.count_mechanism.rate == Fraction(1, 2) / 7
    assert request.guarantee.counts_epsilon == Fraction(1, 2)
    assert request.guarantee.discovery_epsilon == Fraction(1, 2) * (Fraction(1, 4) + Fraction(1, 28))


def test_sums_and_conditions():
    sums = {"value": "who", "clip": (0, 10), "where": "what <> 'timeout'"}
    found = release(k=1, options=sums, counts=100)
    assert found.items == ["disk full"]
    # The users 0 to 10 have what their number is, all others 10.
    assert abs(found.counts[0].value - (55 + 10 * 289)) <= 2
    assert found.guarantee.sensitivity == discreet.Sensitivity(0, 10)


def test_groups_divide_epsilon_and_delta():
    split = {"by": "land", "groups": ["DE", "FR", "IT"]}
    one = release(k=2, epsilon=8, options={**split, "each_user": "one"})
    assert [each.items for each in one.values()] == [["disk full", "timeout"]] * 3
    assert one.guarantee == one["DE"].guarantee
    many = release(k=2, epsilon=8, options={**split, "each_user": "many", "max_groups_per_user": 2}, counts=2)
    assert (many.guarantee.epsilon, many.guarantee.delta) == (10, Fraction(1, 10**8))
    share = many["DE"].guarantee
    assert (share.epsilon, share.delta, share.threshold) == (5, Fraction(1, 2 * 10**8), many.guarantee.threshold)
    assert 2 * share.zcdp == many.guarantee.zcdp
    assert share.selection_epsilon + share.discovery_epsilon + share.counts_epsilon == 5
    assert many.k == 2
    assert "Top 2 of those found in each of 3 groups by land" in str(many)
    assert discreet.GroupedRelease.from_json(many.to_json()) == many


def test_a_swap_needs_more_people():
    add = release().guarantee
    swap = release(options={"adjacency": "swap"}).guarantee
    assert swap.threshold > 1.5 * add.threshold
    assert swap.discovery.zcdp == Fraction(3, 2) ** 2 / 4
    with pytest.raises(discreet.Error, match=r"mechanism must not be Canonical.* for groups under 'swap'"):
        release(
            mechanism=discreet.Canonical(ceil=True),
            options={"adjacency": "swap", "by": "land", "groups": ["DE"], "each_user": "one"},
        )


def test_the_part_of_epsilon_can_be_chosen():
    assert release(domain=discreet.discovered("1e-8", 1, epsilon=1, method="laplace")).guarantee.discovery_epsilon == 1
    with pytest.raises(discreet.Error, match="epsilon of discovered must be below 4, the epsilon of the release"):
        release(domain=discreet.discovered("1e-8", 1, epsilon=4, method="laplace"))


@pytest.mark.parametrize("use", [discreet.utility, discreet.expected, discreet.epsilon_for])
def test_what_needs_a_list_refuses(use):
    source = discreet.events(LOGS, user="who", item="what", domain=discreet.discovered("1e-8", 1, method="laplace"))
    with pytest.raises(discreet.Error, match="scores must be of a public list of items here"):
        use(source, 2, **({} if use is discreet.epsilon_for else {"epsilon": 1}))


def test_nothing_that_is_public_says_how_long_it_takes():
    with pytest.raises(discreet.Error, match="pad_to must be a number of seconds, not 'auto'"):
        release(pad_to="auto")
    assert release(pad_to="0.5").k == 2


def test_the_key_is_drawn_once_for_a_release(monkeypatch):
    keys = []
    hold = discreet.sources.events.unlisted.UnlistedTable.snapshot

    def note(self, key, **options):
        keys.append(key)
        return hold(self, key, **options)

    monkeypatch.setattr(discreet.sources.events.unlisted.UnlistedTable, "snapshot", note)
    release()
    release()
    assert len(set(keys)) == len(keys) == 2
    assert discovery_request.draw_key(Entropy(random.Random(3))) == discovery_request.draw_key(
        Entropy(random.Random(3))
    )


def test_an_event_of_an_accountant_has_no_delta():
    pytest.importorskip("dp_accounting", reason="needs Google's dp-accounting, which is not installed")
    from dp_accounting.pld import PLDAccountant

    promised = release(counts=1).guarantee
    with pytest.raises(discreet.Error, match="without_delta must be True for a guarantee with a delta, 1e-08"):
        promised.to_dp_event()
    event = promised.to_dp_event(without_delta=True)
    assert [part.noise_parameter for part in event.events] == [1.5, 2.5, 1.0]
    assert 5 <= PLDAccountant().compose(event).get_epsilon(0) + 1e-9 < 5.01
    assert promised.to_dp_event("rdp", without_delta=True).rho == float(promised.zcdp)


@pytest.mark.parametrize("change", [{"d": 4}, {"guarantee": None}, {"asked": "many"}])
def test_what_is_no_release_is_not_read(change):
    written = release().to_dict() | change
    with pytest.raises(discreet.Error, match="data must be a release"):
        discreet.Release.from_dict(written)


@pytest.mark.parametrize(
    "change",
    [{"epsilon": "0"}, {"epsilon": "-1"}, {"epsilon": "1e-300000"}, {"max_items_per_user": 0}, {"threshold": 2}, {}],
)
def test_a_discovery_that_cannot_be_is_not_read(change):
    written = release().to_dict()
    written["guarantee"]["discovery"] |= change
    if not change:
        written["guarantee"]["delta"] = "5"
    with pytest.raises(discreet.Error, match="data must be a release"):
        discreet.Release.from_dict(written)


# The Gaussian method.

WEIGHED = discreet.discovered("1e-8", method="gaussian")
HALVED = discreet.discovered("1e-8", epsilon=4)


def test_a_release_by_weighted_gaussian_noise():
    found = release(domain=WEIGHED)
    discovery = found.guarantee.discovery
    assert found.items == ["disk full", "timeout"]
    assert (discovery.method, discovery.max_items_per_user) == ("gaussian", 100)
    assert (found.guarantee.epsilon, found.guarantee.delta) == (4, Fraction(1, 10**8))
    part = WEIGHED.plan(2, 4).epsilon
    assert (found.guarantee.discovery_epsilon, found.guarantee.selection_epsilon) == (part, 4 - part)
    assert found.guarantee.zcdp == 1 / (2 * discovery.sigma**2) + discreet.Canonical().zcdp(4 - part, 2)
    assert found.guarantee.threshold == discovery.threshold > 1
    assert discovery.describe_threshold() in str(found)
    assert discreet.Release.from_json(found.to_json()) == found
    assert "hunter2" not in release(k=9, domain=WEIGHED).items
    noise = f"Items are found by Gaussian noise of standard deviation {float(discovery.sigma):.4g} on sums of weights"
    assert noise in found.registry()["deployment"]["implementation"]["mechanisms"]
    assert noise in found.statement()


def test_all_groups_share_one_gaussian_discovery():
    split = {"by": "land", "groups": ["DE", "FR", "IT"]}
    one = release(k=2, epsilon=8, domain=HALVED, options={**split, "each_user": "one"})
    assert one.guarantee == one["DE"].guarantee
    assert one.guarantee.discovery == HALVED.plan(2, 8)
    both = {**split, "each_user": "many", "max_groups_per_user": 2}
    many = release(k=2, epsilon=8, domain=HALVED, options=both, counts=2, shortfall=1)
    assert [each.items for each in many.values()] == [["disk full", "timeout"]] * 3
    share, whole = many["DE"].guarantee, many.guarantee
    assert (whole.epsilon, whole.delta) == (11, Fraction(1, 10**8))
    # One group by itself costs all of e1 and delta, and its share of all the rest.
    assert share.discovery == whole.discovery == HALVED.plan(2, 8, max_groups_per_user=2)
    assert (share.epsilon, share.delta) == (4 + Fraction(7, 2), whole.delta)
    assert share.selection_epsilon + share.counts_epsilon + share.shortfall_epsilon == Fraction(7, 2)
    assert whole.zcdp - whole.discovery.zcdp == 2 * (share.zcdp - share.discovery.zcdp)
    assert discreet.GroupedRelease.from_json(many.to_json()) == many
    for change in ({"epsilon": "7"}, {"delta": "1/1000"}):
        written = many.to_dict()
        written["guarantee"] |= change
        with pytest.raises(discreet.Error, match="data must be a release"):
            discreet.GroupedRelease.from_dict(written)


def test_a_swap_needs_more_noise():
    add, swap = (release(domain=WEIGHED, options={"adjacency": each}).guarantee for each in ("add-remove", "swap"))
    assert swap.discovery.sigma / add.discovery.sigma == pytest.approx(2**0.5, rel=1e-6)
    assert swap.threshold > add.threshold


def test_a_ledger_charges_all_of_delta(tmp_path):
    ledger = discreet.Ledger.create(tmp_path / "l.db", epsilon=9, delta="1e-6", release_delta="1e-7", unit="users")
    first = release(domain=WEIGHED, ledger=ledger)
    assert ledger.composition.delta == first.guarantee.delta == Fraction(1, 10**8)
    assert ledger.composition.rho == first.guarantee.zcdp
    # The method is part of the query.
    release(domain=discreet.discovered("1e-8", 100, method="laplace"), ledger=ledger)
    one, other = ledger.history()
    assert one.fingerprint != other.fingerprint


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "gauss"}, "method must be 'auto', 'gaussian' or 'laplace', not 'gauss'"),
        ({"method": 3}, "method must be 'auto', 'gaussian' or 'laplace', not 3"),
        ({"method": "laplace"}, "max_items_per_user must be given with the method 'laplace'"),
        (
            {"method": "gaussian", "max_items_per_user": 2**20 + 1},
            "max_items_per_user must be a whole number from 1 to 2",
        ),
        ({"method": "gaussian", "max_items_per_user": 0}, "max_items_per_user must be a whole number from 1"),
    ],
)
def test_mistakes_about_the_method_are_named(given, message):
    with pytest.raises(discreet.Error, match=message):
        discreet.discovered("1e-8", **given)


@pytest.mark.parametrize("change", [{"method": "normal"}, {"sigma": "1"}, {"threshold": "3"}, {"method": "laplace"}])
def test_a_gaussian_discovery_that_cannot_be_is_not_read(change):
    written = release(domain=WEIGHED).to_dict()
    written["guarantee"]["discovery"] |= change
    with pytest.raises(discreet.Error, match="data must be a release"):
        discreet.Release.from_dict(written)


def test_the_names_of_the_methods_are_those_of_the_mechanisms():
    from discreet.mechanisms.discovery import METHODS

    assert tuple(METHODS) == discreet.sources.discovered.METHODS


@pytest.mark.parametrize("method", ["laplace", "gaussian"])
def test_a_discovery_for_fewer_groups_than_a_user_is_in_is_not_read(method):
    rows = [(user, land, f"w{user % 3}") for user in range(90) for land in "ab"]
    table = pa.table(dict(zip(("who", "land", "what"), map(list, zip(*rows, strict=True)), strict=True)))
    terms = discreet.discovered("1e-8", 3, method=method)
    source = discreet.events(
        table, user="who", item="what", by="land", groups=["a", "b"], each_user="many", domain=terms
    )
    release = discreet.top_k(source, k=2, epsilon=9)
    data = release.to_dict()
    assert discreet.GroupedRelease.from_dict(data) == release
    # The discovery of users in one group alone, at the same cost, needs fewer people.
    alone = terms.plan(2, 9).to_dict()
    for promised in (data["guarantee"], *data["guarantees"]):
        promised["discovery"] = alone
    with pytest.raises(discreet.Error, match="data must be a release by group"):
        discreet.GroupedRelease.from_dict(data)

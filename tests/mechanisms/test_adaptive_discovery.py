"""The private choice between weights and one item of each user, and the method for one item of each user."""

import itertools
import math
import random
from collections import Counter
from dataclasses import replace
from fractions import Fraction

import pyarrow as pa
import pytest
from scipy.stats import chisquare

import discreet
from discreet.evidence import definition
from discreet.exact.ball import ball
from discreet.exact.entropy import Entropy
from discreet.mechanisms.adaptive_discovery import MOST_PLACES, AdaptiveDiscovery, SingleItems
from discreet.mechanisms.partition_selection import CHANCES
from discreet.mechanisms.tally import Tally
from discreet.release.discovery_request import make_discovery_request
from discreet.release.request import Randomness
from discreet.sources.events.unlisted import UnlistedScoring

AUTO = discreet.discovered("1e-8")
NAMES = [
    name for name, size in {"disk full": 60, "timeout": 45, "no route": 30, "hunter2": 1}.items() for _ in range(size)
]
LOGS = pa.table({"who": range(len(NAMES)), "what": NAMES, "n": [1.0] * len(NAMES), "land": ["DE"] * len(NAMES)})
BUSY = pa.table({"who": [who for who in range(400) for _ in range(2)], "what": ["a", "b"] * 400})


def open_logs(table=LOGS, domain=AUTO, **options):
    return discreet.events(table, user="who", item="what", domain=domain, **options)


@pytest.mark.parametrize("adjacency", ["add-remove", "swap"])
@pytest.mark.parametrize(("epsilon", "delta"), [("0.3", "1e-8"), ("1", "1e-5"), ("7", "1e-3"), ("1/100", "1e-12")])
def test_the_threshold_is_the_least_for_delta(epsilon, delta, adjacency):
    single = SingleItems(Fraction(epsilon), Fraction(delta), adjacency)
    sides = 2 if adjacency == "swap" else 1
    assert single.rate == Fraction(epsilon) / sides
    alone = [ball(Fraction(1, 2)) * (-ball(single.rate * (t - Fraction(3, 2)))).exp() for t in
             (single.threshold, single.threshold - 1)]  # fmt: skip
    assert alone[0] <= ball(Fraction(delta) / sides) < alone[1]
    assert single.keep_probability(1).overlaps(alone[0])
    assert single.keep_probability(0) == 0
    assert single.zcdp == Fraction(epsilon) ** 2 / (2 * sides)
    for chance, people in zip(CHANCES, single.list_people(), strict=True):
        assert single.keep_probability(people) >= ball(chance) > single.keep_probability(people - 1)


def test_the_drawn_items_have_their_probability():
    # The largest of three noisy numbers, if it reaches the threshold, or the two largest.
    single, users = SingleItems(Fraction(1), Fraction(1, 10**3)), [8, 7, 5]
    tally = Tally.of_runs(users, [1, 1, 1], Fraction(1))
    for k in (1, 2):
        entropy, draws = Entropy(random.Random(k)), 400
        drawn = Counter(tuple(single.keep(single.prepare(tally, k).select(entropy)).tolist()) for _ in range(draws))
        right, wrong = expected_sets(users, k, single), expected_sets(users, k, single, lower=1)
        assert math.isclose(sum(right.values()), 1.0, rel_tol=1e-4)
        # Rare sets are one; with a threshold of one less the counts would not fit.
        often = [each for each in right if right[each] * draws > 20]
        fits = []
        for law in (right, wrong):
            expected = [law[each] * draws for each in often]
            counts = [drawn[each] for each in often]
            fits.append(chisquare([*counts, draws - sum(counts)], [*expected, draws - sum(expected)]).pvalue)
        assert fits[0] > 1e-6 > fits[1]


def expected_sets(users, k, single, lower=0):
    """The probability of each set of the k largest noisy numbers from the threshold on, by integration."""
    edge, rate, law = single.threshold - lower - 0.5, float(single.rate), Counter()
    below = {n: 1.0 - definition.value_tail(single.threshold - lower, n, single.rate) for n in users}
    every = range(len(users))
    for size in range(min(k, len(users)) + 1):
        for chosen in itertools.combinations(every, size):
            others = [users[i] for i in every if i not in chosen]
            if size < k:
                law[chosen] += math.prod(1 - below[users[i]] for i in chosen) * math.prod(below[n] for n in others)
                continue
            step, at = 1 / 32, edge + 1 / 64
            while at < max(users) + 12:
                reached = [tail_at(rate * (at - users[i])) for i in chosen]
                density = [rate * math.exp(-rate * abs(at - users[i])) / 2 for i in chosen]
                least = sum(f * math.prod(reached[:i] + reached[i + 1 :]) for i, f in enumerate(density))
                law[chosen] += step * least * math.prod(1 - tail_at(rate * (at - n)) for n in others)
                at += step
    return law


def tail_at(x):
    return math.exp(-x) / 2 if x > 0 else 1 - math.exp(x) / 2


@pytest.mark.parametrize("adjacency", ["add-remove", "swap"])
def test_the_choice_covers_one_user(adjacency):
    found = AUTO.plan(20, 2, adjacency=adjacency)
    assert isinstance(found, AdaptiveDiscovery)
    assert found.choice_epsilon == Fraction(2, 25)
    rng, furthest = random.Random(1), 0
    for _ in range(300):
        # Users as lists of the items that count for them, the first one first.
        users = [make_user(rng) for _ in range(rng.randint(0, 90))]
        fewer = users[1:]
        other = [make_user(rng), *fewer] if adjacency == "swap" else fewer
        furthest = max(furthest, abs(find_hidden(found, users) - find_hidden(found, other)))
    # An item has one user more of whom it is the first, and one less of others.
    crowd = [[1, 0]] * 9
    furthest = max(furthest, abs(find_hidden(found, [*crowd[1:], [0]]) - find_hidden(found, [*crowd[1:], [2]])))
    if adjacency == "swap":
        furthest = max(furthest, abs(find_hidden(found, [*crowd[1:], [0]]) - find_hidden(found, crowd)))
    assert furthest == (3 if adjacency == "swap" else 2)
    assert found.choice_epsilon / found.choice_rate == furthest


def make_user(rng):
    return rng.sample(range(4), rng.choice([0, 1, 1, 2, 3]))


def find_hidden(found, users):
    """The number that decides, without noise."""
    firsts, later = Counter(items[0] for items in users if items), Counter(i for items in users for i in items[1:])
    hidden = definition.hidden_users([(firsts[i], later[i]) for i in firsts.keys() | later.keys()])
    lead, asked = definition.choice_lead(hidden, found.choice_epsilon, found.adjacency), []
    assert found.prefers_alternative(hidden, lambda rate: asked.append(rate) or lead - 1)
    assert not found.prefers_alternative(hidden, lambda _: lead)
    assert asked == [found.choice_rate]
    return hidden


def test_first_items_are_not_taken_where_they_hide_items():
    """Nine users in ten have one item, and a few have all of 20 others, which are the most frequent ones."""
    found = AUTO.plan(20, 1)
    assert found.margin == 200
    # All have the same item or one of 40: that makes no difference.
    for one in ([["a"]] * 4600, [[f"a{i % 40}"] for i in range(4600)]):
        for busy in (400, 240, 200, 100):
            # Each of the 20 items is the first of as many users.
            users = one + [[f"h{(i + j) % 20}" for j in range(20)] for i in range(busy)]
            hidden = find_hidden(found, users)
            assert hidden == busy * 17 // 20
            assert (hidden < found.margin) == (busy < 240), busy
    # Two of three users of an item may have another first item.
    assert find_hidden(found, [["a"], ["b"]] * 100 + [["a", "b"], ["b", "a"]] * 50) == 0
    assert find_hidden(found, [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]] * 50) == 0


def test_items_of_a_few_busy_users_are_released():
    users = [[f"a{i % 40}"] for i in range(4600)] + [[f"h{j}" for j in range(20)] for _ in range(400)]
    rows = [(who, item) for who, items in enumerate(users) for item in items]
    table = pa.table({"who": [who for who, _ in rows], "what": [item for _, item in rows]})
    # The noise of the choice makes up for its lead once in 10^6.
    release = discreet.top_k(open_logs(table), k=20, epsilon=6)
    assert set(release.items) == {f"h{j}" for j in range(20)}


def test_all_of_epsilon_is_accounted_for():
    found = AUTO.plan(50, 1)
    request = make_discovery_request(open_logs(), 50, 1, counts=1)
    terms = request.guarantee
    assert (terms.epsilon, terms.delta, terms.discovery) == (2, Fraction(1, 10**8), found)
    assert found.noise_epsilon + found.choice_epsilon + terms.selection_epsilon == 1
    assert found.alternative.epsilon + found.choice_epsilon == 1
    # Three quarters at most, after the choice.
    assert found.noise_epsilon == Fraction(96, 200) + Fraction(5, 50)
    assert AUTO.plan(1, 1).noise_epsilon == Fraction(96, 100) * Fraction(3, 4)
    weighted = 1 / (2 * found.sigma**2) + discreet.Canonical().zcdp(terms.selection_epsilon, 50)
    single = Fraction(96, 100) ** 2 / 2
    assert terms.zcdp == Fraction(1, 25) ** 2 / 2 + max(weighted, single) + Fraction(1, 2)
    events = terms.to_dp_event(without_delta=True).events
    assert [event.noise_parameter for event in events] == [1.0, 1.0]


def test_users_of_one_item_need_fewer_people():
    source = open_logs()
    for _ in range(3):
        release = discreet.top_k(source, k=9, epsilon=5)
        assert set(release.items) <= set(NAMES) - {"hunter2"}
        assert release.order is None
    assert release.chosen == "one-item"
    text = release.statement()
    assert "hides few people of any item" in text
    assert "largest noisy numbers" in release.registry()["deployment"]["implementation"]["mechanisms"]


@pytest.mark.parametrize(("sign", "table", "items"), [
    (1, LOGS, ["disk full", "no route", "timeout"]), (-1, LOGS, []), (-1, BUSY, ["a", "b"]), (1, BUSY, ["a", "b"]),
    (1, LOGS.slice(0, 0), []),
])  # fmt: skip
def test_both_methods_release_what_they_find(sign, table, items):
    epsilon = 1 if sign > 0 or table is BUSY else Fraction(1, 10)
    request = make_discovery_request(open_logs(table), 5, epsilon)
    # Noise that outweighs all users decides.
    made = request.draw(replace(Randomness.of(random.Random(3)), noise=lambda _: -sign * 10**9))
    assert made.items == items
    assert made.chosen == ("one-item" if sign > 0 else "gaussian")


def test_a_release_tells_its_method():
    made = [make_release(sign) for sign in (1, -1)]
    texts = [
        ("by a noisy number that loses few", "The threshold is 20.", "Von jeder Person zählte ein Eintrag"),
        ("Items of each person counted by weights", "it takes about", "Die Einträge jeder Person zählten"),
    ]
    for release, (begins, threshold, german) in zip(made, texts, strict=True):
        assert release.chosen in release.to_json()
        assert discreet.Release.from_json(release.to_json()) == release
        assert release.title().startswith(f"{release.k} item")
        for text in (str(release), release.statement(), release._repr_html_()):
            assert begins in text
            assert threshold in text
            assert "is taken instead" not in text
        assert german in release.statement(language="de")
    old = made[0].to_dict()
    del old["chosen"]
    # A file that does not tell the method has what holds for both.
    assert "is taken instead" in str(discreet.Release.from_dict(old))
    for wrong in ("core", "laplace", 1):
        with pytest.raises(discreet.Error, match="data must be a release"):
            discreet.Release.from_dict({**old, "chosen": wrong})
    other = discreet.top_k(open_logs(domain=discreet.discovered("1e-8", 100)), k=5, epsilon=1)
    assert other.chosen is None
    with pytest.raises(discreet.Error, match="data must be a release"):
        discreet.Release.from_dict({**other.to_dict(), "chosen": "gaussian"})


def make_release(sign, table=LOGS):
    """A release by one item of each user, or with -1 by weights."""
    request = make_discovery_request(open_logs(table), 5, 1)
    return request.draw(replace(Randomness.of(random.Random(3)), noise=lambda _: -sign * 10**9))


def test_where_there_is_no_choice():
    options = {"by": "land", "groups": ["DE"], "each_user": "one"}
    cases = [
        (open_logs(**options), {}),
        (open_logs(value="n", clip=(0, 1), resolution=1), {}),
        (open_logs(), {"mechanism": discreet.OneShot()}),
        (open_logs(), {"k": MOST_PLACES + 1}),
        (open_logs(domain=discreet.discovered("1e-8", 100)), {}),
        (open_logs(domain=discreet.discovered("1e-8", epsilon="0.5")), {}),
    ]
    for source, terms in cases:
        request = make_discovery_request(source, **{"k": 3, "epsilon": 1, **terms})
        assert request.guarantee.discovery.method == "gaussian"
        assert request.guarantee.discovery.alternative is None
    same = make_discovery_request(open_logs(), 3, 1, mechanism=discreet.Canonical())
    assert same.guarantee.discovery.method == "auto"


def test_a_choice_that_cannot_be_is_not_read():
    written = discreet.top_k(open_logs(), k=2, epsilon=1).to_dict()
    found = written["guarantee"]["discovery"]
    changes = [
        {"budget": "2"},
        {"budget": "1/2"},
        {"choice": {"epsilon": "1/25", "threshold": 19}},
        {"choice": {"epsilon": "-1/25", "threshold": 20}},
        {"choice": {"epsilon": "7/10", "threshold": 20}},
        {"epsilon": "1/200"},
    ]
    assert discreet.Release.from_dict(written).guarantee.discovery.to_dict() == found
    for change in changes:
        other = {**written, "guarantee": {**written["guarantee"], "discovery": {**found, **change}}}
        with pytest.raises(discreet.Error, match="data must be a release"):
            discreet.Release.from_dict(other)


def test_a_plan_shows_both_methods():
    planned = AUTO.plan(20, 1)
    assert "it is from 18, 20 and 22" in planned.describe_people()
    compared = AUTO.compare(20, 1)
    assert [each for each, mark in compared.choices if mark == "planned"] == [planned]
    assert next(line.split() for line in str(compared).splitlines() if line.split()[0] == "or") == [
        "or", "0.96", "0", "18", "20", "22",
    ]  # fmt: skip
    assert compared.to_list()[0]["people_of_one_item"] == {"1/20": 18, "1/2": 20, "19/20": 22}


def test_users_whose_hashes_collide_count_for_nothing(monkeypatch):
    """Two equal least hashes would make a user count for two items."""
    import ibis

    monkeypatch.setattr(UnlistedScoring, "_hash", lambda *_: ibis.literal(7))
    with open_logs(pa.table({"who": [1, 1, 2, 3, 3], "what": ["a", "b", "a", "c", "c"]})).snapshot("") as snapshot:
        # The item b counts for one user, and is the first of none.
        assert snapshot.count_hidden() == 1
        ((users, items),) = snapshot.take_firsts().runs()
        assert (users.tolist(), items.tolist()) == ([1], [2])

"""The private choice between weights and shares of one vote of each user, and the method for shares."""

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
from discreet.mechanisms.adaptive_discovery import MOST_PLACES, SHARE_STEPS, AdaptiveDiscovery, SharedItems
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
    sides = 2 if adjacency == "swap" else 1
    allowed = ball(Fraction(delta) / sides)
    for most in (1, 2, 3):
        shared = SharedItems(Fraction(epsilon), Fraction(delta), adjacency, most)
        assert shared.rate == 6 * shared.step_rate == Fraction(epsilon) / sides

        def alone(threshold, t, shared=shared):
            """The probability that any of t items of one user alone is kept, in votes."""
            kept = (-ball(shared.rate * (threshold - Fraction(1, 12) - Fraction(1, t)))).exp() / 2
            return kept, -((-kept).log1p() * t).expm1()

        least, below = (Fraction(shared.cutoff - less, 6) for less in (0, 1))
        assert all(alone(least, t)[1] <= allowed for t in range(1, most + 1))
        assert any(alone(below, t)[1] > allowed for t in range(1, most + 1))
        assert all(shared.keep_probability(6 // t).overlaps(alone(least, t)[0]) for t in (1, 2, 3))
        assert shared.keep_probability(0) == 0
        assert shared.threshold - 1 < least <= shared.threshold
        assert shared.zcdp == Fraction(epsilon) ** 2 / (2 * sides)
        for chance, people in zip(CHANCES, shared.list_people(), strict=True):
            assert shared.keep_probability(6 * people) >= ball(chance) > shared.keep_probability(6 * (people - 1))


@pytest.mark.parametrize(("epsilon", "users_of"), [("1/2", 3), ("2", 1)])
def test_users_of_one_or_of_three_items_need_the_threshold(epsilon, users_of):
    cutoffs = [SharedItems(Fraction(epsilon), Fraction(1, 10**8), most_items=most).cutoff for most in (1, 2, 3)]
    assert cutoffs == sorted(cutoffs)
    assert (cutoffs[0] == cutoffs[2]) == (users_of == 1)


def test_the_drawn_items_have_their_probability():
    # The largest of three noisy sums, if it reaches the threshold, or the two largest.
    shared, sums = SharedItems(Fraction(6), Fraction(1, 10**3)), [13, 11, 10]
    tally = Tally.of_runs(sums, [1, 1, 1], Fraction(1))
    for k in (1, 2):
        entropy, draws = Entropy(random.Random(k)), 400
        drawn = Counter(tuple(shared.keep(shared.prepare(tally, k).select(entropy)).tolist()) for _ in range(draws))
        right, wrong = expected_sets(sums, k, shared), expected_sets(sums, k, shared, lower=1)
        assert math.isclose(sum(right.values()), 1.0, rel_tol=1e-4)
        # Rare sets are one; with a threshold of one less the counts would not fit.
        often = [each for each in right if right[each] * draws > 20]
        fits = []
        for law in (right, wrong):
            expected = [law[each] * draws for each in often]
            counts = [drawn[each] for each in often]
            fits.append(chisquare([*counts, draws - sum(counts)], [*expected, draws - sum(expected)]).pvalue)
        assert fits[0] > 1e-6 > fits[1]


def expected_sets(sums, k, shared, lower=0):
    """The probability of each set of the k largest noisy sums from the threshold on, by integration."""
    edge, rate, law = shared.cutoff - lower - 0.5, float(shared.step_rate), Counter()
    below = {n: 1.0 - definition.value_tail(shared.cutoff - lower, n, shared.step_rate) for n in sums}
    every = range(len(sums))
    for size in range(min(k, len(sums)) + 1):
        for chosen in itertools.combinations(every, size):
            others = [sums[i] for i in every if i not in chosen]
            if size < k:
                law[chosen] += math.prod(1 - below[sums[i]] for i in chosen) * math.prod(below[n] for n in others)
                continue
            step, at = 1 / 32, edge + 1 / 64
            while at < max(sums) + 12:
                reached = [tail_at(rate * (at - sums[i])) for i in chosen]
                density = [rate * math.exp(-rate * abs(at - sums[i])) / 2 for i in chosen]
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
        # Users as lists of the items that count for them, by their hashes.
        users = [make_user(rng) for _ in range(rng.randint(0, 90))]
        fewer = users[1:]
        other = [make_user(rng), *fewer] if adjacency == "swap" else fewer
        furthest = max(furthest, abs(find_hidden(found, users) - find_hidden(found, other)))
    # An item has one user more who touched it alone, and one less of those for whom it counts without a share.
    crowd = [[1, 2, 3, 0]] * 9
    furthest = max(furthest, abs(find_hidden(found, crowd) - find_hidden(found, [*crowd, [0]])))
    if adjacency == "swap":
        furthest = max(furthest, abs(find_hidden(found, [*crowd[1:], [0]]) - find_hidden(found, crowd)))
    assert furthest == (3 if adjacency == "swap" else 2)
    assert found.choice_epsilon / found.choice_rate == furthest


def make_user(rng):
    return rng.sample(range(5), rng.choice([0, 1, 1, 2, 3, 4, 5]))


def find_hidden(found, users):
    """The number that decides, without noise."""
    votes, counts = Counter(), Counter(i for items in users for i in items)
    for items in users:
        votes.update({item: Fraction(1, len(items[:3])) for item in items[:3]})
    hidden = definition.hidden_users([(votes[i], counts[i]) for i in counts])
    lead, asked = definition.choice_lead(hidden, found.choice_epsilon, found.adjacency), []
    assert found.prefers_alternative(hidden, lambda rate: asked.append(rate) or lead - 1)
    assert not found.prefers_alternative(hidden, lambda _: lead)
    assert asked == [found.choice_rate]
    return hidden


def test_shares_are_not_taken_where_they_hide_items():
    """Nine users in ten have one item, and a few have all of 20 others, which are the most frequent ones."""
    found = AUTO.plan(20, 1)
    assert found.margin == 200
    # All have the same item or one of 40: that makes no difference.
    for one in ([["a"]] * 4600, [[f"a{i % 40}"] for i in range(4600)]):
        for busy in (400, 240, 200, 100):
            # Each of the 20 items has a share of as many users.
            users = one + [[f"h{(i + j) % 20}" for j in range(20)] for i in range(busy)]
            hidden = find_hidden(found, users)
            assert hidden == busy * 17 // 20
            assert (hidden < found.margin) == (busy < 240), busy
    # With up to three items of each user, none is hidden.
    assert find_hidden(found, [["a"], ["b"]] * 100 + [["a", "b"], ["b", "a"]] * 50) == 0
    assert find_hidden(found, [["a", "b", "c"], ["b", "c", "a"], ["c", "a", "b"]] * 50) == 0
    assert find_hidden(found, [["a", "b", "c", "d"]] * 50) == 50
    # 3/2 of three users who have a half each, of five: half of a user counts as one.
    assert find_hidden(found, [["a", "b"]] * 3 + [["b", "c", "d", "a"]] * 2) == 1


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
    releases = [discreet.top_k(source, k=9, epsilon=5) for _ in range(4)]
    for release in releases:
        assert set(release.items) <= set(NAMES) - {"hunter2"}
        assert release.order is None
    # One choice is wrong once in 110.
    assert "few-items" in {release.chosen for release in releases}
    text = releases[0].statement()
    assert "hides few people of any item" in text
    assert "largest noisy numbers of votes" in release.registry()["deployment"]["implementation"]["mechanisms"]


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
    assert made.chosen == ("few-items" if sign > 0 else "gaussian")


def test_a_release_tells_its_method():
    made = [make_release(sign) for sign in (1, -1)]
    texts = [
        ("by a noisy number that loses few", "The threshold is 20.17.", "teilten sich eine Stimme"),
        ("Items of each person counted by weights", "it takes about", "Die Einträge jeder Person zählten"),
    ]
    for release, (begins, threshold, german) in zip(made, texts, strict=True):
        assert release.chosen in release.to_json()
        assert discreet.Release.from_json(release.to_json()) == release
        assert release.title().startswith(f"{release.k} item")
        for text in (str(release), release.statement(), release._repr_html_()):
            assert begins in text
            assert threshold in text
            assert "share one vote instead" not in text
        assert german in release.statement(language="de")
    old = made[0].to_dict()
    del old["chosen"]
    # A file that does not tell the method has what holds for both.
    assert "share one vote instead" in str(discreet.Release.from_dict(old))
    for wrong in ("core", "laplace", 1):
        with pytest.raises(discreet.Error, match="data must be a release"):
            discreet.Release.from_dict({**old, "chosen": wrong})
    other = discreet.top_k(open_logs(domain=discreet.discovered("1e-8", 100)), k=5, epsilon=1)
    assert other.chosen is None
    with pytest.raises(discreet.Error, match="data must be a release"):
        discreet.Release.from_dict({**other.to_dict(), "chosen": "gaussian"})


def make_release(sign, table=LOGS):
    """A release by shares, or with -1 by weights."""
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
        {"choice": {"epsilon": "1/25", "threshold": "20"}},
        {"choice": {"epsilon": "-1/25", "threshold": "121/6"}},
        {"choice": {"epsilon": "7/10", "threshold": "121/6"}},
        {"epsilon": "1/200"},
    ]
    assert discreet.Release.from_dict(written).guarantee.discovery.to_dict() == found
    for change in changes:
        other = {**written, "guarantee": {**written["guarantee"], "discovery": {**found, **change}}}
        with pytest.raises(discreet.Error, match="data must be a release"):
            discreet.Release.from_dict(other)


def test_a_plan_shows_both_methods():
    planned = AUTO.plan(20, 1)
    assert "it is from 18, 21 and 23" in planned.describe_people()
    compared = AUTO.compare(20, 1)
    assert [each for each, mark in compared.choices if mark == "planned"] == [planned]
    assert next(line.split() for line in str(compared).splitlines() if line.split()[0] == "or") == [
        "or", "0.96", "0", "18", "21", "23",
    ]  # fmt: skip
    assert compared.to_list()[0]["people_of_one_item"] == {"1/20": 18, "1/2": 21, "19/20": 23}


def test_users_whose_hashes_collide_have_smaller_shares(monkeypatch):
    """Equal hashes would let more items of a user count than may have a share."""
    import ibis

    monkeypatch.setattr(UnlistedScoring, "_hash", lambda *_: ibis.literal(7))
    pairs = [(1, "abcd"), (2, "a"), (3, "bc")]
    rows = [(who, item) for who, items in pairs for item in items]
    table = pa.table({"who": [who for who, _ in rows], "what": [what for _, what in rows]})
    with open_logs(table).snapshot("") as snapshot:
        # No item of the first user has a share, and d counts for nobody else.
        assert snapshot.count_hidden() == 1
        ((sums, items),) = snapshot.take_shares().runs()
        assert dict(zip(sums.tolist(), items.tolist(), strict=True)) == {SHARE_STEPS: 1, SHARE_STEPS // 2: 2}

"""Releases with a shortfall: the lead that it is about, its noise and bounds, its cost, and the refusals."""

import json
import random
from dataclasses import replace
from fractions import Fraction
from itertools import permutations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import discreet
from discreet.errors import Error
from discreet.evidence import definition
from discreet.mechanisms.tally import Selection, Tally
from discreet.privacy import Sensitivity
from discreet.release.formats import format_csv
from discreet.release.request import Randomness, make_request
from discreet.release.shortfall import AUTO_SHARE, find_lead, make_shortfall_mechanism, shortfall_steps
from discreet.sources.scores import as_source
from engines import ENGINES, on

FILMS = {"dune": 912, "alien": 877, "heat": 410, "solaris": 388, "stalker": 71}
CERTAIN = 10_000
"""An epsilon at which the noise of a count is zero but for one chance in 10^4000."""

MECHANISMS = [
    discreet.Canonical(), discreet.Canonical(gamma="1/2", noise="laplace"), discreet.Canonical(gamma=1),
    discreet.OneShot(), discreet.OneShot(noise="gumbel"), discreet.Peeling(), discreet.Joint(), discreet.Core(),
]  # fmt: skip


def lead(scores, items):
    """D(y | x) by its definition; an item that is not among the scores has 0 of them."""
    left_out = [score for item, score in scores.items() if item not in items]
    return max(left_out) - min(scores.get(item, 0) for item in items)


def leads_of_rows(rows, items):
    """D for items that are found: no item that nobody touched is below 0 people."""
    users = {}
    for user, item in rows:
        users.setdefault(item, set()).add(user)
    return lead({**{item: len(each) for item, each in users.items()}, object(): 0}, items)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=repr)
@pytest.mark.parametrize("shape", ["steep", "flat", "ties"])
def test_the_lead_is_that_of_the_released_items(mechanism, shape):
    rng = random.Random(5)
    made = {"steep": [4000 // (i + 1) for i in range(60)], "flat": [7] * 60, "ties": [i // 7 for i in range(60)]}[shape]
    rng.shuffle(made)
    scores = {f"item {place}": score for place, score in enumerate(made)}
    for seed in range(12):
        release = discreet.top_k(
            scores, k=9, epsilon="1/5", mechanism=mechanism, shortfall=CERTAIN, rng=random.Random(seed)
        )
        assert release.shortfall.value == lead(scores, set(release.items))


def test_the_lead_of_a_histogram_is_that_of_the_scores_not_of_the_values():
    limit = Sensitivity(down=0, up=1, items=1)
    release = discreet.top_k(
        FILMS, k=2, epsilon="1/500", mechanism=discreet.Histogram(), sensitivity=limit, shortfall=CERTAIN
    )
    assert release.shortfall.value == lead(FILMS, set(release.items))


def test_the_lead_of_every_selection_is_that_of_the_definition():
    """Ranks one by one, in any order, or all down to one of them and some more."""
    scores = [Fraction(score, 2) for score in (9, 7, 7, 4, 4, 0)]
    tally = Tally.of_runs([Fraction(9, 2), Fraction(7, 2), 2, 0], [1, 2, 2, 1])
    for head in range(len(scores)):
        for more in range(len(scores) - head):
            for rest in permutations(range(head, len(scores)), more):
                chosen = {*range(head), *rest}
                if chosen:
                    selection = Selection(np.array(rest, np.int64), head)
                    assert find_lead(tally, selection) == definition.lead(scores, chosen)


@pytest.mark.parametrize("epsilon", [CERTAIN, "1/100"])
def test_a_subset_is_drawn_once_and_a_selection_without_one_stays_as_it_is(epsilon):
    """The items of whole runs of equal scores are found faster than those of single ranks."""
    scores = np.random.default_rng(1).integers(0, 1000, 400)
    source = as_source(scores)
    request = make_request(scores, 20, epsilon, shortfall=1)
    drawn = request.draw_selection(source.tally(), Randomness.of(random.Random(1)))
    assert drawn.selection.subset is None
    assert drawn.selection.cuts_no_run is (epsilon == CERTAIN)
    ranks = drawn.selection.draw_ranks().tolist()
    assert drawn.lead == definition.lead(sorted(map(Fraction, scores.tolist()), reverse=True), ranks)


@pytest.mark.parametrize("d", [50, 300_000])
@pytest.mark.parametrize("kind", ["ints", "positions of an array", "objects"])
def test_the_lead_is_the_same_for_every_kind_of_scores(d, kind):
    scores = np.random.default_rng(1).integers(0, 40 if d < 1000 else 10**6, d)
    given = scores.astype(object) if kind == "objects" else scores
    if kind == "objects" and d > 1000:
        given = given[:1000]
    release = discreet.top_k(given, k=20, epsilon="1/10", shortfall=CERTAIN)
    assert release.shortfall.value == lead(dict(enumerate(given.tolist())), set(release.items))


def test_the_lead_of_sums_is_in_steps_of_the_resolution():
    rng = np.random.default_rng(4)
    table = pa.table({"who": rng.integers(0, 90, 600), "what": rng.integers(0, 12, 600), "paid": rng.random(600)})
    source = discreet.events(
        table, user="who", item="what", value="paid", clip=(0, 2), resolution="0.25", domain=list(range(12))
    )
    counted = discreet.top_k(source, k=12, epsilon=1, counts=CERTAIN**2, rng=random.Random(1))
    totals = {count.item: count.value for count in counted.counts}
    for seed in range(4):
        release = discreet.top_k(source, k=3, epsilon="1/500", shortfall=CERTAIN, rng=random.Random(seed))
        assert release.shortfall.value == lead(totals, set(release.items))
        assert isinstance(release.shortfall.value, Fraction)
        # One list in 220 is the true one at such an epsilon, and none of these seeds draws it.
        assert "scores more than" in str(release)


@pytest.mark.some(4)
@pytest.mark.parametrize("engine", ENGINES)
def test_the_lead_of_events_is_that_of_their_users(engine, tmp_path, request):
    rng = random.Random(2)
    rows = sorted({(rng.randrange(80), rng.choice("aaabbbccddefgh")) for _ in range(400)})
    who, what = zip(*rows, strict=True)
    table = on(engine, pa.table({"who": who, "what": what}), tmp_path, request)
    source = discreet.events(**table, user="who", item="what", domain=list("abcdefghijk"))
    release = discreet.top_k(source, k=3, epsilon="1/10", shortfall=CERTAIN)
    users = {item: sum(each == item for _, each in rows) for item in "abcdefghijk"}
    assert release.shortfall.value == lead(users, set(release.items))


@pytest.mark.some(1)
@pytest.mark.parametrize("k", [1, 3, 50])
def test_the_lead_of_found_items_counts_items_that_are_in_nobodys_bounded_set(k):
    # 60 people touched all of 40 items and count for one each, so that many items count for few of them.
    rows = [(user, f"w{item}") for user in range(60) for item in range(40 if user % 3 else 3)]
    frame = pd.DataFrame(rows, columns=["who", "what"])
    source = discreet.events(
        frame, user="who", item="what", domain=discreet.discovered(delta="1e-6", max_items_per_user=1)
    )
    seen = set()
    for seed in range(8):
        release = discreet.top_k(source, k=k, epsilon=40, shortfall=CERTAIN, rng=random.Random(seed))
        seen.add(release.k)
        if release.items:
            assert release.shortfall.value == leads_of_rows(rows, set(release.items))
        else:
            assert release.shortfall is None
    assert max(seen) > 0


def test_a_release_of_nothing_has_no_shortfall_and_its_cost_is_spent(tmp_path):
    frame = pd.DataFrame({"who": [1, 2, 3], "what": ["a", "b", "c"]})
    source = discreet.events(
        frame, user="who", item="what", domain=discreet.discovered(delta="1e-8", max_items_per_user=1)
    )
    ledger = discreet.Ledger.create(
        tmp_path / "budget.db", epsilon=3, unit="people", delta="1e-6", release_delta="1e-6"
    )
    release = discreet.top_k(source, k=2, epsilon=1, shortfall="0.5", ledger=ledger)
    assert release.items == []
    assert release.shortfall is None
    assert ledger.spent == Fraction(3, 2)
    assert "there is no shortfall" in release.statement(ledger)
    nothing = discreet.top_k([5] * 40, k=8, epsilon="1/1000", mechanism=discreet.Core(otherwise=None), shortfall=1)
    assert (nothing.shortfall is None) == (nothing.items == [])


@pytest.mark.parametrize("each_user", ["one", "many"])
def test_each_group_has_a_lead_of_its_own_and_its_share_of_the_cost(each_user):
    lists = {"DE": FILMS, "FR": {name: 1000 - score for name, score in FILMS.items()}}
    source = discreet.grouped(lists, each_user=each_user)
    release = discreet.top_k(source, k=2, epsilon="1/100", shortfall=CERTAIN)
    for group, one in release.items():
        assert one.shortfall.value == lead(lists[group], set(one.items))
        assert (
            one.shortfall.epsilon
            == one.guarantee.shortfall_epsilon
            == Fraction(CERTAIN, 2 if each_user == "many" else 1)
        )
    assert release.guarantee.shortfall_epsilon == CERTAIN
    assert release.guarantee.epsilon == CERTAIN + Fraction(1, 100)
    assert "for each group by itself" in str(release)
    assert discreet.GroupedRelease.from_json(release.to_json()) == release
    assert set(release.to_frame("pandas").attrs["shortfall"]) == {"DE", "FR"}


def test_found_groups_have_a_lead_each():
    rows = [(f"{land}{user}", land, f"w{item}") for land in "ab" for user in range(70) for item in range(1 + user % 4)]
    frame = pd.DataFrame(rows, columns=["who", "land", "what"])
    source = discreet.events(
        frame, user="who", item="what", by="land", groups=["a", "b", "c"], each_user="one",
        domain=discreet.discovered(delta="1e-6", max_items_per_user=2),
    )  # fmt: skip
    release = discreet.top_k(source, k=2, epsilon=20, shortfall=CERTAIN)
    assert release["c"].shortfall is None
    for land in "ab":
        touched = [(user, item) for user, home, item in rows if home == land]
        assert release[land].shortfall.value == leads_of_rows(touched, set(release[land].items))


def test_the_cost_adds_up():
    release = discreet.top_k(FILMS, k=2, epsilon="1/2", counts="1/4", shortfall="1/20")
    promised = release.guarantee
    assert promised.epsilon == Fraction(1, 2) + Fraction(1, 4) + Fraction(1, 20)
    assert promised.selection_epsilon == Fraction(1, 2)
    alone = discreet.top_k(FILMS, k=2, epsilon="1/2").guarantee
    assert promised.zcdp == alone.zcdp + Fraction(1, 4) ** 2 / 2 + Fraction(1, 20) ** 2 / 2
    assert "0.05 for the shortfall" in str(release)
    assert discreet.top_k(FILMS, k=2, epsilon=1).shortfall is None


def test_auto_takes_its_share_of_epsilon():
    release = discreet.top_k(FILMS, k=2, epsilon=1, shortfall="auto")
    assert release.guarantee.epsilon == 1
    assert release.shortfall.epsilon == release.guarantee.shortfall_epsilon == AUTO_SHARE
    split = discreet.top_k(FILMS, k=2, epsilon=1, split="auto", shortfall="auto").guarantee
    assert split.epsilon == 1
    assert split.counts_epsilon == split.selection_epsilon == (1 - AUTO_SHARE) / 2


def test_a_ledger_tells_releases_with_and_without_a_shortfall_apart(tmp_path):
    ledger = discreet.Ledger.create(tmp_path / "budget.db", epsilon=10, unit="people")
    first = discreet.top_k(FILMS, k=2, epsilon=1, shortfall="0.5", ledger=ledger, request_id="a")
    assert discreet.top_k(FILMS, k=2, epsilon=1, shortfall="0.5", ledger=ledger, request_id="a") == first
    assert ledger.spent == Fraction(3, 2)
    with pytest.raises(Error, match="a"):
        discreet.top_k(FILMS, k=2, epsilon=1, ledger=ledger, request_id="a")
    assert "0.5 for the shortfall" in first.statement(ledger)
    assert first.describe_shortfall()[0] in first.statement(ledger)
    assert "0.5 for the shortfall" in json.dumps(first.registry(ledger))


@pytest.mark.parametrize(
    ("sensitivity", "grid", "steps"),
    [
        (Sensitivity(down=0, up=1), 1, 1),
        (Sensitivity(down=1, up=1), 1, 2),
        # Two scores that are rounded one by one could move by two steps here.
        (Sensitivity(down="1/2", up="1/2"), 1, 1),
        (Sensitivity(down=0, up=2), "1/4", 8),
        (Sensitivity(down="1/3", up="1/2"), "1/4", 4),
    ],
)
def test_the_sensitivity_in_steps(sensitivity, grid, steps):
    assert shortfall_steps(sensitivity, "add-remove", Fraction(grid)) == steps
    assert shortfall_steps(sensitivity, "swap", Fraction(grid)) == 2 * steps


@pytest.mark.parametrize(("epsilon", "above"), [("0.05", 46), ("0.01", 230)])
def test_the_one_sided_bound_is_as_close_as_it_can_be(epsilon, above):
    mechanism = make_shortfall_mechanism(Sensitivity(down=0, up=1), "add-remove", Fraction(1), Fraction(epsilon))
    bound = mechanism.add_noise(Fraction(100), lambda rate: 7)
    assert bound.value == 107
    assert bound.upper == 107 + above
    assert bound.high - bound.value == bound.value - bound.low > above
    q = np.exp(-float(mechanism.rate))
    misses = [q ** (n + 1) / (1 + q) for n in (above, above - 1)]
    assert misses[0] <= 0.05 < misses[1]


def test_the_lead_is_rounded_once_and_a_half_step_widens_the_bounds():
    mechanism = make_shortfall_mechanism(
        Sensitivity(down="1/2", up="1/2"), "add-remove", Fraction(1), Fraction(1), between_steps=True
    )
    bound = mechanism.add_noise(Fraction(5, 2), lambda rate: 0)
    assert bound.value == 3
    plain = make_shortfall_mechanism(Sensitivity(down="1/2", up="1/2"), "add-remove", Fraction(1), Fraction(1))
    assert bound.upper == plain.add_noise(Fraction(5, 2), lambda rate: 0).upper + 1


def test_the_sentence():
    people = discreet.top_k(FILMS, k=2, epsilon=100, shortfall=100)
    assert people.describe_shortfall() == ["With 95% confidence this is a true top 2, in any order."]
    assert people.describe_shortfall()[0] in people._repr_html_()
    worst = discreet.Release(
        ["stalker"], None, 5, people.guarantee, shortfall=discreet.Shortfall(830, 770, 890, 1876, 1)
    )
    told = "With 95% confidence, no item left out has more than 1,876 people more than any item on this list."
    assert worst.describe_shortfall() == [told]
    one = discreet.Shortfall(0, -1, 1, 1, Fraction(1))
    assert "more than 1 person more" in one.describe(3, counts_people=True)
    assert "scores more than 1 above any" in one.describe(3, counts_people=False)


def test_the_sentence_names_a_bound_on_the_items_of_a_user():
    # 1,000 people touched a and b, and 600 touched c. With one item of each, a and b share their people.
    rows = [(user, item) for user in range(1000) for item in "ab"] + [(user, "c") for user in range(2000, 2600)]
    frame = pd.DataFrame(rows, columns=["who", "what"])
    ask = {"user": "who", "item": "what", "domain": list("abcd")}
    bounded = discreet.top_k(
        discreet.events(frame, **ask, max_items_per_user=1), k=2, epsilon=CERTAIN, shortfall=CERTAIN
    )
    assert "c" in bounded.items
    told = "With 95% confidence this is a true top 2, in any order, counting at most 1 item of each user."
    assert bounded.describe_shortfall() == [told]
    assert told in bounded.statement()
    assert discreet.Release.from_json(bounded.to_json()) == bounded
    whole = discreet.top_k(discreet.events(frame, **ask), k=2, epsilon=CERTAIN, shortfall=CERTAIN)
    assert whole.items == ["a", "b"]
    assert whole.describe_shortfall() == ["With 95% confidence this is a true top 2, in any order."]


def test_the_note_of_groups_says_whose_bound_it_is():
    lists = {"DE": FILMS, "FR": FILMS}
    one = discreet.top_k(discreet.grouped(lists, each_user="one"), k=2, epsilon=1, shortfall=1)
    many = discreet.top_k(discreet.grouped(lists, each_user="many"), k=2, epsilon=1, shortfall=1)
    assert one.describe_shortfall()[0].endswith("by the users who count in the group")
    assert not many.describe_shortfall()[0].endswith("by the users who count in the group")


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data["shortfall"].update(epsilon="0"),
        lambda data: data["shortfall"].update(confidence="1/2"),
        lambda data: data["shortfall"].update(upper=-(10**9)),
        lambda data: data["shortfall"].update(low=10**9),
        lambda data: data.update(items=[], order=None),
        lambda data: data.update(d=2),
        lambda data: data["guarantee"].update(shortfall_epsilon="2"),
        lambda data: data["guarantee"].update(counts_epsilon="-1"),
    ],
)
def test_a_shortfall_that_cannot_be_is_not_read(change):
    data = discreet.top_k(FILMS, k=2, epsilon=1, shortfall="1/3").to_dict()
    assert discreet.Release.from_dict(data).k == 2
    change(data)
    with pytest.raises(Error, match="data must be a release"):
        discreet.Release.from_dict(data)


def test_groups_that_are_withheld_stay_in_the_sum():
    source = discreet.grouped(dict.fromkeys("abcde", FILMS), each_user="many")
    release = discreet.top_k(source, k=2, epsilon=5, shortfall=1)
    shown = replace(release, releases={"a": release["a"]}, withheld=tuple("bcde"))
    assert discreet.GroupedRelease.from_json(shown.to_json()) == shown
    for change in ({"withheld": []}, {"withheld": ["b"]}, {"groups_per_user": 6}):
        with pytest.raises(Error, match="data must be a release by group"):
            discreet.GroupedRelease.from_dict({**shown.to_dict(), **change})
    less = shown.to_dict()
    less["guarantee"] = less["guarantees"][0]
    with pytest.raises(Error, match="data must be a release by group"):
        discreet.GroupedRelease.from_dict(less)


def test_a_release_reads_back_with_its_shortfall():
    release = discreet.top_k(FILMS, k=2, epsilon=1, shortfall="1/3")
    assert discreet.Release.from_json(release.to_json()) == release
    data = release.to_dict()
    assert data["shortfall"]["confidence"] == "19/20"
    data["shortfall"]["epsilon"] = "1/4"
    with pytest.raises(Error, match="data must be a release"):
        discreet.Release.from_dict(data)


def test_csv_and_frames_hold_the_bound():
    release = discreet.top_k(FILMS, k=2, epsilon=1, shortfall=1, counts=1, mechanism=discreet.OneShot())
    header, *rows = format_csv(release).splitlines()
    assert header == "item,order,count,low,high,shortfall_upper"
    assert {row.split(",")[-1] for row in rows} == {str(release.shortfall.upper)}
    frame = release.to_frame("pandas")
    assert frame.attrs["shortfall"] == release.shortfall.to_dict()
    assert set(frame["shortfall_upper"]) == {release.shortfall.upper}
    assert release.to_frame("pyarrow").column_names[-1] == "shortfall_upper"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"k": 5}, "shortfall must be left out where k is the number of items, 5: no item is left out"),
        ({"shortfall": 0}, "shortfall must be"),
        ({"shortfall": "much"}, "shortfall must be"),
        ({"scores": [0.5, 1.5, 2.5], "sensitivity": Sensitivity(down=0, up=1)}, "whole numbers for a shortfall"),
        (
            {"scores": discreet.grouped({"a": [1, 2, 3], "b": [4, 5]}, each_user="one")},
            "k is the number of items, 2 in the group 'b'",
        ),
    ],
)
def test_what_cannot_be_said_is_refused(options, message):
    given = {"scores": FILMS, "k": 2, "epsilon": 1, "shortfall": "0.05", **options}
    with pytest.raises(Error, match=message):
        discreet.top_k(given.pop("scores"), **given)


def test_an_accountant_composes_the_shortfall_too():
    events = pytest.importorskip("dp_accounting").dp_event
    made = discreet.top_k(FILMS, k=2, epsilon=1, shortfall="1/4").guarantee.to_dp_event()
    assert made == events.ComposedDpEvent(
        [events.DiscreteLaplaceDpEvent(1.0, 1), events.DiscreteLaplaceDpEvent(0.25, 1)]
    )

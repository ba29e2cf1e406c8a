"""Releases with counts: the noise, the intervals, the order, what is promised, and what is refused."""

import json
import random
from collections import Counter
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import discreet
import draws
from discreet.errors import Error
from discreet.exact.ball import precision
from discreet.exact.discrete import interval_half_width
from discreet.privacy import Sensitivity
from discreet.release.counts import CountMechanism, l1_steps, make_count_mechanism, round_half_up
from discreet.release.topk import period
from discreet.sources.events.dialects import duckdb
from discreet.sources.events.dialects.base import Dialect
from laplace import log_probability, tail_probability

FILMS = {"dune": 912, "alien": 877, "heat": 410, "solaris": 388}
ADJACENCIES = ["add-remove", "swap"]


def test_counts_are_of_the_released_items_in_their_own_order():
    release = discreet.top_k(FILMS, k=3, epsilon=100, counts=3)
    assert release.items == ["alien", "dune", "heat"]
    assert sorted(count.item for count in release.counts) == release.items
    values = [count.value for count in release.counts]
    assert values == sorted(values, reverse=True)
    assert all(type(figure) is int for count in release.counts for figure in (count.value, count.low, count.high))
    assert discreet.top_k(FILMS, k=3, epsilon=100).counts is None


def test_equal_counts_are_in_the_order_of_their_labels():
    plan = CountMechanism(Fraction(1), Fraction(1), floor=True)
    noise = iter([3, -1, 0, -9])
    listed = plan.add_noise(["d", "a", "c", "b"], [Fraction(score) for score in (1, 5, 4, 2)], lambda rate: next(noise))
    assert [(count.item, count.value) for count in listed] == [("a", 4), ("c", 4), ("d", 4), ("b", 0)]


@given(st.permutations(range(5)), st.integers(0, 2**32))
def test_where_an_item_was_in_the_input_or_the_ranking_makes_no_difference(order, seed):
    """The same noisy counts are listed in the same way, whatever the order in which they were made."""
    rng = random.Random(seed)
    noisy = [rng.randrange(3) for _ in range(5)]
    plan = CountMechanism(Fraction(1), Fraction(1), floor=True)

    def listed(places):
        noise = iter([noisy[place] for place in places])
        return plan.add_noise([f"i{place}" for place in places], [Fraction(0)] * 5, lambda rate: next(noise))

    assert listed(order) == listed(range(5))


@pytest.mark.some(1)
@pytest.mark.parametrize(
    ("epsilon", "options", "steps"),
    [
        ("1/2", {}, 2),
        (1, {"adjacency": "swap"}, 2),
        (2, {"sensitivity": Sensitivity(1, 3)}, 6),
        (2, {"sensitivity": Sensitivity(1, 3), "adjacency": "swap"}, 8),
        (1, {"sensitivity": Sensitivity("1/2", "3/2")}, 4),
        (1, {"sensitivity": Sensitivity(0, "1/3"), "adjacency": "swap"}, 2),
    ],
    ids=str,
)
def test_the_noise_has_the_scale_of_the_whole_sensitivity(epsilon, options, steps):
    """Counts against the exact law; the noise of the centred sensitivity would be seen."""
    rate, n, rng = Fraction(epsilon) / steps, 3000, random.Random(8)
    seen = Counter()
    for _ in range(n):
        release = discreet.top_k([10**6, 10**6 - 10**5, 0], k=2, epsilon=100, counts=epsilon, rng=rng, **options)
        for count in release.counts:
            off = count.value - (10**6 if count.item == 0 else 10**6 - 10**5)
            seen[off if abs(off) <= 40 else "far"] += 1
    probabilities, wrong = ({n: float(p) for n, p in law(each, 40).items()} for each in (rate, 2 * rate))
    assert draws.fits(seen, probabilities)
    assert draws.power(2 * n, probabilities, wrong) > 0.999


def law(rate, far):
    with precision(100):
        return {n: log_probability(rate, n).exp() for n in range(-far, far + 1)} | {"far": tail_probability(rate, far)}


@pytest.mark.some(2)
@pytest.mark.parametrize(("epsilon", "scores"), [("1/2", [40, 12, 1]), (3, [5, 4, -1]), ("1/50", [900, 2, -30])])
def test_intervals_hold_the_score_in_at_least_95_of_100_releases(epsilon, scores):
    """Counts of coverage at the alpha of all statistical tests; scores of both signs, which no floor may cut."""
    n, rng = 3000, random.Random(4)
    held = Counter()
    for _ in range(n):
        for count in discreet.top_k(scores, k=3, epsilon=1, counts=epsilon, rng=rng).counts:
            held[count.item] += count.low <= scores[count.item] <= count.high
            assert count.low <= count.value <= count.high
    rate = Fraction(epsilon) / 3
    width = interval_half_width(rate, Fraction(1, 20))
    with precision(100):
        chance = 1 - float(tail_probability(rate, width))
    assert chance >= 0.95
    for item in range(3):
        assert stats.binomtest(held[item], n, chance).pvalue > draws.ALPHA
    # An interval one step shorter would be seen to miss too often, where a step matters.
    if epsilon == 3:
        with precision(100):
            shorter = 1 - float(tail_probability(rate, width - 1))
        assert stats.binomtest(round(n * shorter), n, chance).pvalue < draws.ALPHA


@pytest.mark.parametrize("step", ["1", "1/4", "3/7", "12"])
def test_scores_are_rounded_to_the_nearest_step_half_up(step):
    step = Fraction(step)
    for sixths in range(-40, 41):
        nearest = round_half_up(step * sixths / 6, step)
        assert nearest - Fraction(1, 2) <= Fraction(sixths, 6) < nearest + Fraction(1, 2)


def test_counts_that_cannot_be_negative_are_not():
    rows = pd.DataFrame({"who": [1], "what": [0], "paid": [0]})
    nobody = partial(discreet.events, rows, user="who", item="what", domain=discreet.integers(0, 49))
    ask = partial(discreet.top_k, k=50, epsilon=1, counts="1/10")
    # The adjacency makes both sides of the sensitivity positive, but no score negative.
    for clip, adjacency in product((None, (0, 1)), ADJACENCIES):
        summed = {} if clip is None else {"value": "paid", "clip": clip}
        source = nobody(adjacency=adjacency, **summed)
        counts = ask(source).counts
        assert min(count.value for count in counts) == 0
        assert {count.low for count in counts if count.value == 0} == {0}
    assert min(count.value for count in ask(nobody(value="paid", clip=(-1, 1))).counts) < 0


@pytest.mark.parametrize("sensitivity", [None, Sensitivity(down=0, up=1), Sensitivity(down=0, up=1, items=1)])
def test_intervals_of_scores_that_are_handed_in_hold_below_zero(sensitivity):
    """A user who can only add to a score says nothing of where it begins."""
    scores = {"a": -5, "b": -20, "c": -40}
    histogram = [{"mechanism": discreet.Histogram()}] if sensitivity and sensitivity.items else []
    for options in ({"counts": 100}, *histogram):
        counts = discreet.top_k(scores, k=2, epsilon=100, sensitivity=sensitivity, **options).counts
        assert counts == [discreet.Count("a", -5, -5, -5), discreet.Count("b", -20, -20, -20)]


def test_the_guarantee_adds_up_and_states_the_split():
    guarantee = discreet.top_k(FILMS, k=2, epsilon="0.1", counts="0.2").guarantee
    assert guarantee.epsilon == Fraction(3, 10)
    assert (guarantee.selection_epsilon, guarantee.counts_epsilon) == (Fraction(1, 10), Fraction(1, 5))
    assert guarantee.zcdp == Fraction(1, 800) + Fraction(1, 50)
    half = discreet.top_k(FILMS, k=2, epsilon="0.3", split="auto").guarantee
    assert (half.epsilon, half.selection_epsilon, half.counts_epsilon) == (Fraction(3, 10), *[Fraction(3, 20)] * 2)


def test_all_items_cost_only_their_counts():
    for options, cost in (({"counts": "1/4"}, Fraction(1, 4)), ({"split": "auto"}, Fraction(2))):
        release = discreet.top_k(FILMS, k=4, epsilon=2, mechanism=discreet.OneShot(), **options)
        assert release.items == sorted(FILMS)
        assert len(release.counts) == 4
        assert release.order is None
        guarantee = release.guarantee
        assert (guarantee.epsilon, guarantee.selection_epsilon, guarantee.zcdp) == (cost, 0, cost**2 / 2)


def test_the_selection_does_not_get_what_is_for_the_counts(monkeypatch):
    asked = []
    right = discreet.Canonical.prepare

    def prepare(self, tally, k, epsilon, sensitivity):
        asked.append(epsilon)
        return right(self, tally, k, epsilon, sensitivity)

    monkeypatch.setattr(discreet.Canonical, "prepare", prepare)
    discreet.top_k(FILMS, k=2, epsilon="1/3", counts="1/5")
    discreet.top_k(FILMS, k=2, epsilon="1/3", split="auto")
    assert asked == [Fraction(1, 3), Fraction(1, 6)]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("sides", [(0, 1), (1, 1), (1, 2), (0, 3), (3, 1)])
@pytest.mark.parametrize("most", [1, 2, 3, None])
def test_the_sensitivity_is_what_the_worst_users_reach_and_no_more(most, sides, adjacency):
    d, limit = 4, Sensitivity(*sides)
    users = [
        user
        for user in product({0, -sides[0], sides[1]}, repeat=d)
        if most is None or sum(part != 0 for part in user) <= most
    ]
    others = [(0,) * d] if adjacency == "add-remove" else users
    for k in range(1, d + 1):
        # The worst k items are those that move most.
        worst = max(
            sum(sorted((abs(a - b) for a, b in zip(user, other, strict=True)), reverse=True)[:k])
            for user in users
            for other in others
        )
        assert l1_steps(limit, adjacency, Fraction(1), k, most) == worst
        finer = l1_steps(limit, adjacency, Fraction(1, 4), k, most)
        assert finer == 4 * worst


def test_steps_are_rounded_up():
    assert l1_steps(Sensitivity(0, "0.1"), "add-remove", Fraction(1), 3) == 3
    assert l1_steps(Sensitivity("0.6", "0.6"), "swap", Fraction(1), 3) == 6
    plan = make_count_mechanism(Sensitivity("0.6", 0), "add-remove", Fraction(1, 2), 3, None, Fraction(1, 7))
    assert plan == CountMechanism(Fraction(1, 2), Fraction(1, 42), floor=False)


@given(st.fractions(-50, 50), st.fractions(0, 5), st.fractions("1/9", 3))
def test_rounding_to_the_grid_keeps_the_sensitivity(score, move, grid):
    plan = CountMechanism(grid, Fraction(1), floor=False)
    assert 0 <= plan.to_steps(score + move) - plan.to_steps(score) <= -((-move) // grid)
    assert abs(plan.to_steps(score) * grid - score) <= grid / 2


@pytest.mark.parametrize(
    "scores",
    [
        [5, 9, 2],
        [True, False, True],
        [2**80, 5, 2],
        np.array([5, 9, 2], np.uint8),
        np.array([5, 9, 2], object),
        [np.int32(5), 9, 2],
        pd.Series([5, 9, 2], dtype="Int64"),
        pa.array([5, 9, 2]),
    ],
    ids=lambda scores: type(scores).__name__,
)
def test_whole_numbers_of_every_type_have_counts(scores):
    release = discreet.top_k(scores, k=2, epsilon=1000, counts=1000)
    exact = sorted(int(score) for score in (scores.to_pylist() if isinstance(scores, pa.Array) else scores))
    assert [count.value for count in release.counts] == exact[:0:-1]


@pytest.mark.parametrize(
    "scores",
    [
        [5.0, 9.0, 2.0],
        [5, 9.0, 2],
        [Decimal(5), Decimal(9)],
        [Fraction(5), Fraction(9)],
        np.array([5.0, 9.0]),
        pd.Series([5.0, 9.0]),
        pa.array([Decimal("5"), Decimal("9")]),
    ],
    ids=lambda scores: f"{type(scores).__name__} of {type(scores[0]).__name__}",
)
@pytest.mark.parametrize("options", [{"counts": 1}, {"split": "auto"}], ids=["counts", "split"])
def test_other_types_are_refused_whatever_their_values(scores, options):
    with pytest.raises(
        Error, match=r"^scores must be of a type of whole numbers for counts: round them, or use events"
    ):
        discreet.top_k(scores, k=1, epsilon=1, **options)


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"counts": 0}, "counts must be above zero, not 0"),
        ({"counts": "x"}, "counts must be a finite number such as '0.5', '1/3' or '1e-6', not 'x'"),
        ({"counts": True}, "counts must be a number, not True"),
        ({"counts": 1, "split": "auto"}, "split must be left out with counts, which says what the counts may cost"),
        ({"split": "half"}, "split must be 'auto' or left out, not 'half'"),
        ({"split": 0.5}, "split must be 'auto' or left out, not 0.5"),
    ],
)
def test_bad_use_is_one_sentence(options, complaint):
    with pytest.raises(Error) as error:
        discreet.top_k(FILMS, k=2, epsilon=1, **options)
    assert str(error.value) == complaint


RATINGS = pa.table(
    {
        "who": [1, 1, 1, 2, 2, 3],
        "film": ["dune", "heat", "alien", "dune", "heat", "dune"],
        "sum": [1.0, 2, 3, 1, 1, 0.5],
    }
)


def source(**options):
    return discreet.events(RATINGS, user="who", item="film", domain=["alien", "dune", "heat", "solaris"], **options)


def test_events_have_counts_of_users():
    release = discreet.top_k(source(), k=2, epsilon=1000, counts=1000)
    assert release.counts == [discreet.Count("dune", 3, 3, 3), discreet.Count("heat", 2, 2, 2)]
    everything = discreet.top_k(source(), k=4, epsilon=1, counts=1000)
    assert [(count.item, count.value) for count in everything.counts] == list(
        {"dune": 3, "heat": 2, "alien": 1, "solaris": 0}.items()
    )


def test_sums_are_on_the_grid_of_the_resolution():
    summed = source(value="sum", clip=(0, 3), resolution="0.25")
    release = discreet.top_k(summed, k=1, epsilon=1000, counts="0.01")
    (count,) = release.counts
    assert type(count.value) is Fraction
    assert all((figure * 4).denominator == 1 for figure in (count.value, count.low, count.high))
    assert discreet.Release.from_json(release.to_json()) == release
    exact = discreet.top_k(summed, k=2, epsilon=1000, counts=10**6).counts
    assert [(one.item, one.value) for one in exact] == [("alien", 3), ("heat", 3)]


@pytest.mark.parametrize(("adjacency", "most", "steps"), [("add-remove", 2, 2), ("add-remove", 9, 3), ("swap", 1, 2)])
def test_fewer_items_a_user_need_less_noise(adjacency, most, steps):
    bounded = source(max_items_per_user=most, adjacency=adjacency)
    (count, *_) = discreet.top_k(bounded, k=3, epsilon=1, counts="0.001", rng=random.Random(1)).counts
    width = interval_half_width(Fraction(1, 1000) / steps, Fraction(1, 20))
    assert count.high == width + count.value or count.value == 0
    assert bounded.sensitivity == Sensitivity(0, 1)


@pytest.mark.parametrize("most", [0, -1, True, 1.5, "2"])
def test_max_items_per_user_must_be_a_whole_number_from_1(most):
    with pytest.raises(Error, match=r"^max_items_per_user must be a whole number from 1, not "):
        source(max_items_per_user=most)


def test_an_engine_that_may_find_two_spellings_equal_is_refused(monkeypatch):
    monkeypatch.setattr(duckdb, "DIALECT", Dialect(name="duckdb", title="duckdb"))
    with pytest.raises(Error, match=r"^item must hold numbers, dates or booleans on duckdb, not string: "):
        source(max_items_per_user=1)


def test_where_an_item_stands_in_the_domain_does_not_decide_who_keeps_it():
    """Users with three items of 40 keep one: each third of the domain is kept about equally often."""
    rng = random.Random(2)
    rows = [(who, item) for who in range(3000) for item in rng.sample(range(40), 3)]
    events = pa.table({"who": [who for who, _ in rows], "film": [item for _, item in rows]})
    kept = discreet.events(events, user="who", item="film", domain=range(40), max_items_per_user=1)
    tally = kept.tally()
    scores = dict(zip(kept.items(np.arange(40)), (int(tally.exact(rank)) for rank in range(40)), strict=True))
    kept.close()
    assert sum(scores.values()) == 3000
    quarters = Counter({quarter: sum(scores[10 * quarter + i] for i in range(10)) for quarter in range(4)})
    touched = Counter(item // 10 for _, item in rows)
    assert draws.fits(quarters, {quarter: touched[quarter] / 9000 for quarter in range(4)})


def test_old_json_still_loads_and_releases_without_counts_look_as_before():
    release = discreet.top_k(FILMS, k=2, epsilon=1)
    data = release.to_dict()
    assert set(data) == {"format", "items", "order", "d", "guarantee", "private"}
    assert set(data["guarantee"]) == {"epsilon", "adjacency", "sensitivity", "mechanism", "zcdp"}
    loaded = discreet.Release.from_json(json.dumps(data))
    assert loaded == release
    assert (loaded.counts, loaded.guarantee.counts_epsilon, loaded.guarantee.selection_epsilon) == (None, 0, 1)


@pytest.mark.parametrize("grid", [Fraction(1), Fraction(5), Fraction(1, 4)])
@given(values=st.lists(st.integers(-(10**30), 10**30), min_size=1, max_size=4))
def test_counts_come_back_from_json(grid, values):
    plan = CountMechanism(grid, Fraction(1), floor=False)
    counts = plan.add_noise(list(range(len(values))), [grid * value for value in values], lambda rate: 0)
    guarantee = discreet.top_k(FILMS, k=2, epsilon=1, counts=1).guarantee
    release = discreet.Release(list(range(len(values))), None, 9, guarantee, counts=counts)
    assert discreet.Release.from_json(release.to_json()) == release
    assert [count["value"] for count in release.to_dict()["counts"]] == [
        count.value if isinstance(count.value, int) else str(count.value) for count in counts
    ]
    assert str(release).count("\n") == len(values) + 3


@pytest.mark.parametrize("wrong", [{"value": "x"}, {"low": None}, {"item": {"type": "no"}}])
def test_broken_counts_are_refused_in_one_sentence(wrong):
    data = discreet.top_k(FILMS, k=2, epsilon=1, counts=1).to_dict()
    data["counts"][0].update(wrong)
    with pytest.raises(Error, match=r"^data must be a release as Release\.to_dict or to_json writes it$"):
        discreet.Release.from_dict(data)


def test_a_release_with_counts_prints_a_small_table():
    release = discreet.top_k(FILMS, k=2, epsilon=1000, counts="1000")
    assert str(release).splitlines()[:3] == [
        "Top 2 of 4 items, by noisy count:",
        "  item   about  95% interval",
        "  dune     912    912 to 912",
    ]
    assert "Privacy: epsilon 2000 (1000 for the selection, 1000 for the counts) for each person added" in str(release)
    page = release._repr_html_()
    assert "<tr><td>dune</td><td>912</td><td>912 to 912</td></tr>" in page
    odd = discreet.top_k({"<b>\n": 5, "x": 1}, k=1, epsilon=1000, counts=1000)
    assert "&lt;b&gt;" in odd._repr_html_()
    assert "\\n" in str(odd)


def test_tiny_budgets_print_too():
    summed = source(value="sum", clip=(-3, 3), resolution="0.25")
    for each in (FILMS, summed):
        release = discreet.top_k(each, k=2, epsilon=1, counts="1e-900")
        assert "by noisy count" in str(release)
        assert discreet.Release.from_json(release.to_json()) == release


def test_the_period_of_padding_has_room_for_counts():
    """More than what drawing them takes, by a rule of k alone."""
    assert period("auto", 10**5, 10**4) < 0.5
    assert period("auto", 10**5, 10**4, counts=True) >= 4
    assert period("auto", 100, 5, counts=True) == period("auto", 100, 5)
    assert period(2, 100, 5, counts=True) == 2


def test_a_plan_and_a_source_show_nothing_private():
    assert "912" not in repr(CountMechanism(Fraction(1), Fraction(1), floor=True))
    assert "3" not in repr(source()).partition(" at ")[0]


def test_a_ledger_is_charged_the_whole_and_tells_queries_apart(tmp_path):
    ledger = discreet.Ledger.create(tmp_path / "budget.db", epsilon=3, unit="users")
    release = discreet.top_k(FILMS, k=2, epsilon="1/2", counts="1/4", ledger=ledger, request_id="a")
    assert (ledger.spent, ledger.left) == (Fraction(3, 4), Fraction(9, 4))
    again = discreet.top_k(FILMS, k=2, epsilon="1/2", counts="1/4", ledger=ledger, request_id="a")
    assert again == release
    for options in ({"epsilon": "3/4"}, {"epsilon": "3/4", "split": "auto"}, {"epsilon": "1/4", "counts": "1/2"}):
        with pytest.raises(Error, match="request_id must be new"):
            discreet.top_k(FILMS, k=2, ledger=ledger, request_id="a", **options)
    with pytest.raises(Error, match="does not fit"):
        discreet.top_k(FILMS, k=2, epsilon=2, counts=1, ledger=ledger)
    discreet.top_k(source(max_items_per_user=1), k=2, epsilon="1/4", ledger=ledger, request_id="b")
    for most in (None, 2):
        with pytest.raises(Error, match="request_id must be new"):
            discreet.top_k(source(max_items_per_user=most), k=2, epsilon="1/4", ledger=ledger, request_id="b")


@pytest.fixture
def call(call, tmp_path, monkeypatch):
    """The command line beside small files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scores.csv").write_text("item,score\ndune,912\nalien,877.25\nheat,410\n")
    (tmp_path / "scores.json").write_text('{"dune": 912, "alien": 877.25, "heat": 410}')
    np.save("floats.npy", np.array([1.0, 2.0]))
    pa.parquet.write_table(RATINGS, "ratings.parquet")
    (tmp_path / "films.csv").write_text("film\nalien\ndune\nheat\n")
    return call


@pytest.mark.parametrize("name", ["scores.csv", "scores.json"])
def test_the_command_prints_the_table(call, name):
    """Text has no type: that a score is no whole number is rounded away, and is no error that tells so."""
    code, out, err = call("select", name, "-k", "2", "--epsilon", "1000", "--counts", "1000")
    assert (code, err) == (0, "")
    assert out.splitlines()[1:4] == [
        "  item   about  95% interval",
        "  dune     912    912 to 912",
        "  alien    877    877 to 877",
    ]


def test_the_command_prints_json_in_full(call):
    code, out, _ = call("select", "scores.csv", "-k", "2", "--epsilon", "1", "--split", "auto", "--json")
    release = discreet.Release.from_json(out)
    assert code == 0
    assert len(release.counts) == 2
    assert release.guarantee.counts_epsilon == Fraction(1, 2)


EVENTS = ["select", "ratings.parquet", "--user", "who", "--item", "film", "--domain", "films.csv:film", "-k", "2"]


def test_the_command_bounds_the_items_of_a_user(call):
    code, out, _ = call(*EVENTS, "--epsilon", "9", "--counts", "900", "--max-items-per-user", "1", "--json")
    assert code == 0
    assert sum(count.value for count in discreet.Release.from_json(out).counts) <= 3


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["select", "scores.csv", "-k", "2", "--epsilon", "1", "--counts", "0"], "counts must be above zero, not '0'"),
        (
            ["select", "scores.csv", "-k", "2", "--epsilon", "1", "--counts", "1", "--split", "auto"],
            "split must be left out with counts",
        ),
        (["select", "scores.csv", "-k", "2", "--epsilon", "1", "--split", "x"], "split must be 'auto' or left out"),
        (["select", "floats.npy", "-k", "1", "--epsilon", "1", "--counts", "1"], "scores must be of a type of whole"),
        (
            ["select", "scores.csv", "-k", "2", "--epsilon", "1", "--max-items-per-user", "1"],
            "max_items_per_user must be left out without user",
        ),
        ([*EVENTS, "--epsilon", "1", "--max-items-per-user", "x"], "max_items_per_user must be a whole number"),
        ([*EVENTS, "--epsilon", "1", "--max-items-per-user", "0"], "max_items_per_user must be a whole number from 1"),
    ],
)
def test_bad_commands_are_one_sentence(call, arguments, complaint):
    code, out, err = call(*arguments)
    assert (code, out) == (2, "")
    assert err.startswith(f"discreet: {complaint}")
    assert err.count("\n") == 1

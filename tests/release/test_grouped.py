"""Lists by group of scores that the caller holds: what is released, what it promises, and what is refused."""

import json
import random
import re
import time
from datetime import date
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

import discreet
from discreet import jobs
from discreet.errors import Error, InvalidTypeError, InvalidValueError
from discreet.mechanisms.tally import Selection
from discreet.release.grouped import read_release
from discreet.release.request import Randomness, make_grouped_request
from discreet.release.topk import default_period
from discreet.sources import scores
from discreet.sources.scores import as_source

VISITS = {"DE": {"dune": 912, "alien": 877, "heat": 41}, "FR": {"dune": 20, "alien": 310, "heat": 298}}
MONTHS = {f"2026-{month:02d}": {"a": 90, "b": 70, "c": 5} for month in range(1, 13)}


def charts(k=2, epsilon=100, *, scores=VISITS, each_user="one", most=None, **options):
    return discreet.top_k(
        discreet.grouped(scores, each_user=each_user, max_groups_per_user=most), k, epsilon, **options
    )


def test_each_group_has_its_own_list_in_the_order_of_the_groups():
    release = charts(scores=dict(reversed(VISITS.items())))
    assert isinstance(release, discreet.GroupedRelease)
    assert list(release) == ["FR", "DE"]
    assert len(release) == 2
    assert {group: one.items for group, one in release.items()} == {"FR": ["alien", "heat"], "DE": ["alien", "dune"]}
    assert release.k == 2
    assert release.names == ("group",)
    assert release.private
    assert "IT" not in release
    assert release.get("IT") is None


@pytest.mark.parametrize(
    ("each_user", "most", "per_user"), [("one", None, 1), ("many", None, 12), ("many", 3, 3), ("many", 99, 12)]
)
def test_a_group_has_its_share_and_the_whole_costs_epsilon(each_user, most, per_user):
    release = charts(1, 6, scores=MONTHS, each_user=each_user, most=most, counts="1/2")
    assert release.groups_per_user == per_user
    assert release.each_user == each_user
    own, total = release["2026-05"].guarantee, release.guarantee
    assert (own.selection_epsilon, own.counts_epsilon) == (Fraction(6, per_user), Fraction(1, 2 * per_user))
    assert (total.epsilon, total.counts_epsilon) == (Fraction(13, 2), Fraction(1, 2))
    assert total.zcdp == per_user * own.zcdp
    alone = discreet.top_k(MONTHS["2026-05"], 1, Fraction(6, per_user), counts=Fraction(1, 2 * per_user)).guarantee
    assert own == alone


def test_the_whole_costs_what_the_costliest_groups_cost_that_a_user_can_be_in():
    scores = {"all": [3, 2], "some": [3, 2, 1], "more": [5, 4, 3, 2]}
    one, two = (charts(scores=scores, each_user="many", most=most).guarantee for most in (1, 2))
    assert one.epsilon == two.epsilon == 100
    # The group that is released whole costs nothing, so that two of three is as much as all.
    every = charts(scores=scores, each_user="many")
    assert every["all"].guarantee.epsilon == 0
    assert every.guarantee.epsilon == Fraction(200, 3)
    assert every.guarantee.zcdp == 2 * every["some"].guarantee.zcdp
    whole = charts(scores={"x": [3, 2], "y": [1, 5]}).guarantee
    assert (whole.epsilon, whole.zcdp) == (0, 0)


def test_a_split_gives_the_counts_all_where_a_group_is_released_whole():
    release = charts(scores={"all": [3, 2], "some": [3, 2, 1]}, epsilon=4, split="auto")
    assert [one.guarantee.counts_epsilon for one in release.values()] == [4, 2]
    # Two halves composed would promise more than the 4 that the counts of one group cost by themselves.
    assert (release.guarantee.epsilon, release.guarantee.counts_epsilon) == (4, 0)
    assert charts(scores={"x": [3, 2, 1], "y": [3, 2, 1]}, epsilon=4, split="auto").guarantee.counts_epsilon == 2


@pytest.mark.parametrize("mechanism", [discreet.Canonical(), discreet.OneShot(), discreet.Joint()], ids=repr)
@pytest.mark.parametrize("kind", ["mapping", "array"])
def test_groups_are_drawn_in_turn_as_lists_by_themselves(mechanism, kind):
    generator = np.random.default_rng(3)
    scores = {group: generator.poisson(20, 50) for group in range(8)}
    if kind == "mapping":
        scores = {group: {f"i{i:02}": int(x) for i, x in enumerate(one)} for group, one in scores.items()}
    release = charts(4, 1, scores=scores, mechanism=mechanism, rng=random.Random(7))
    bits = random.Random(7)
    alone = {group: discreet.top_k(one, 4, 1, mechanism=mechanism, rng=bits) for group, one in scores.items()}
    assert dict(release) == alone
    assert not release.private
    assert not any(one.private for one in release.values())


def test_the_noise_of_counts_comes_after_all_selections_and_only_moves_its_own_group():
    source = discreet.grouped(VISITS, each_user="many")
    request, calls = make_grouped_request(source, 2, 1, counts=1), []

    def draw(prepared):
        calls.append("draw")
        return Selection(np.array([0, 1]))

    def noise(rate):
        assert rate == Fraction(1, 4)  # half of 1, for two items
        calls.append("noise")
        return len(calls) if len(calls) > 4 else 0

    release = request.draw(Randomness(draw, noise))
    assert calls == ["draw"] * 2 + ["noise"] * 4
    assert [count.value for count in release["DE"].counts] == [912, 877]
    assert [count.value for count in release["FR"].counts] == [315, 304]


def test_what_is_seen_of_one_group_says_nothing_of_another():
    request = make_grouped_request(discreet.grouped(VISITS, each_user="one"), 1, 1)
    for first in range(3):
        for second in range(3):
            ranks = iter([first, second])
            release = request.draw(Randomness(lambda _, ranks=ranks: Selection(np.array([next(ranks)]))))
            assert release["DE"].items == [["dune", "alien", "heat"][first]]
            assert release["FR"].items == [["alien", "heat", "dune"][second]]


def test_members_may_be_whatever_top_k_takes():
    import pyarrow as pa

    loans = pa.table({"who": [1, 2, 3, 3], "what": ["a", "a", "a", "b"]})
    source = discreet.events(loans, user="who", item="what", domain=["a", "b"])
    scores = {"events": source, "list": [1, 9], "array": np.array([3, 2])}
    assert [one.items for one in charts(1, 1000, scores=scores).values()] == [["a"], [1], [0]]


def test_a_wide_frame_has_a_group_in_each_column():
    import pandas as pd

    frame = pd.DataFrame(VISITS)
    release = charts(scores=frame)
    assert {group: one.items for group, one in release.items()} == {"DE": ["alien", "dune"], "FR": ["alien", "heat"]}
    assert (release.names, release["DE"].d) == (("group",), 3)
    rows = pd.DataFrame(
        [(land, item, n) for land, each in VISITS.items() for item, n in each.items()], columns=list("gin")
    )
    assert charts(scores=rows.pivot(index="i", columns="g", values="n")).names == ("g",)
    both = pd.concat({2025: frame, 2026: frame}, axis=1, names=["year", "country"])
    assert charts(scores=both).names == ("year", "country")
    assert charts(scores=both)[2026, "FR"].items == ["alien", "heat"]


def test_groups_have_the_names_that_the_caller_gives():
    source = discreet.grouped(VISITS, each_user="one", by="country")
    assert discreet.top_k(source, 1, 100).to_frame("pyarrow").column_names == ["country", "item"]
    assert source.description()["by"] == ["country"]
    pairs = {("DE", 2026): [9, 1], ("FR", 2026): [1, 9]}
    release = discreet.top_k(discreet.grouped(pairs, each_user="one", by=["country", "year"]), 1, 100)
    assert release.to_frame("pyarrow").to_pylist()[1] == {"country": "FR", "year": 2026, "item": 1}
    assert discreet.GroupedRelease.from_json(release.to_json()) == release


def test_labels_are_for_all_groups_or_for_each():
    scores = {"x": np.array([9, 1]), "y": np.array([1, 9])}
    every = discreet.grouped(scores, each_user="one", labels=["a", "b"])
    assert [one.items for one in discreet.top_k(every, 1, 1000).values()] == [["a"], ["b"]]
    each = discreet.grouped(scores, each_user="one", labels={"x": ["a", "b"], "y": ["c", "d"]})
    assert [one.items for one in discreet.top_k(each, 1, 1000).values()] == [["a"], ["d"]]
    # One list is checked once.
    assert every.members[0].labels is every.members[1].labels
    some = discreet.grouped(scores, each_user="one", labels={"y": ["c", "d"]})
    assert [one.items for one in discreet.top_k(some, 1, 1000).values()] == [[0], ["d"]]


def test_groups_are_named_as_items_are():
    keys = [date(2026, 1, 1), 7, "x", ("DE", 2026), None]
    release = charts(1, scores={key: [9, 1] for key in keys})
    assert list(release) == keys
    assert discreet.GroupedRelease.from_json(release.to_json()) == release
    assert list(charts(1, scores={np.int64(3): [9, 1], np.str_("b"): [9, 1]})) == [3, "b"]


def long_frame(library):
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    columns = {"country": ["DE"], "song": ["a"], "n": [1]}
    return {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}[library](columns)


REFUSED = {
    "long pandas": (lambda: discreet.grouped(long_frame("pandas"), each_user="one"), "write frame.pivot"),
    "polars": (lambda: discreet.grouped(long_frame("polars"), each_user="one"), r"for name in frame\.columns"),
    "pyarrow": (lambda: discreet.grouped(long_frame("pyarrow"), each_user="one"), r"for name in frame\.column_names}"),
    "no name": (lambda: discreet.grouped(VISITS, each_user="one", by=7), "by must be a name or a list of names, not 7"),
    "names": (lambda: discreet.grouped(VISITS, each_user="one", by=["a", "b"]), "by must be one name where groups are"),
    "twice": (lambda: discreet.grouped({(1, 2): [1]}, each_user="one", by=["a", "a"]), "by must hold each name once"),
    "one list of groups": (lambda: discreet.top_k(VISITS, 1, 1), r"for lists by group use discreet\.grouped\(scores"),
    "no groups": (lambda: discreet.grouped({}, each_user="one"), "scores must hold at least one group, not none"),
    "no mapping": (lambda: discreet.grouped([[1]], each_user="one"), "scores must be a mapping from group to scores"),
    "an odd group": (lambda: discreet.grouped({frozenset(): [1]}, each_user="one"), "groups of scores must be names"),
    "each_user": (lambda: discreet.grouped(MONTHS, each_user="all"), "each_user must be 'one' or 'many', not 'all'"),
    "most with one": (lambda: discreet.grouped(VISITS, each_user="one", max_groups_per_user=1), "must be left out"),
    "most zero": (lambda: discreet.grouped(VISITS, each_user="many", max_groups_per_user=0), "whole number from 1"),
    "most of text": (lambda: discreet.grouped(VISITS, each_user="many", max_groups_per_user="2"), "whole number from"),
    "odd scores": (lambda: discreet.grouped({"x": ["?"]}, each_user="one"), r"of type str \(in the group 'x'\)"),
    "groups of groups": (lambda: charts(scores={"x": discreet.grouped(VISITS, each_user="one")}), "several groups"),
    "labels of others": (lambda: discreet.grouped({"x": [1]}, each_user="one", labels={"y": [1]}), "'y' is none"),
    "labels of keys": (lambda: discreet.grouped(VISITS, each_user="one", labels=["a", "b", "c"]), "in the group 'DE'"),
    "labels again": (lambda: charts(labels=["a", "b", "c"]), "labels must be left out when scores is by group"),
    "large k": (lambda: charts(3, scores={"x": [1] * 4, "y": [1, 2]}), "1 to 2, the number of items in the group 'y'"),
    "rounded": (lambda: charts(adjacency="swap", mechanism=discreet.Canonical(ceil=True)), "for groups under 'swap'"),
    "fractions": (lambda: charts(scores={"x": [1.5, 2]}, k=1, counts=1), "whole numbers for counts"),
    "auto for objects": (lambda: charts(pad_to="auto"), "pad_to must be a number of seconds"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_is_refused(name):
    call, words = REFUSED[name]
    with pytest.raises((InvalidValueError, InvalidTypeError), match=words):
        call()


def test_one_group_twice_is_refused():
    class Twice(dict):
        def __iter__(self):
            return iter([1, True])

    with pytest.raises(InvalidValueError, match="labels must all be different, but True is there twice"):
        discreet.grouped(Twice({1: [1]}), each_user="one")


def test_who_leaves_out_each_user_learns_the_difference_and_the_price():
    with pytest.raises(InvalidValueError) as raised:
        discreet.grouped(MONTHS)
    message = str(raised.value)
    assert "with 'one' a user counts in one group alone, and each of the 12 groups has the whole of epsilon" in message
    assert "epsilon 1 in each costs 12, or give each 1/12" in message


def test_groups_of_another_sensitivity_or_adjacency_are_refused():
    import pyarrow as pa

    loans = pa.table({"who": [1, 2], "what": ["a", "a"], "n": [1, 2]})
    kinds = {"user": "who", "item": "what", "domain": ["a", "b"]}
    plain, swap = discreet.events(loans, **kinds), discreet.events(loans, **kinds, adjacency="swap")
    sums = discreet.events(loans, **kinds, value="n", clip=(0, 5), resolution=1)
    with pytest.raises(InvalidValueError, match="sensitivity must be the same for all groups"):
        charts(1, scores={"x": plain, "y": sums})
    with pytest.raises(InvalidValueError, match="adjacency must be the same for all groups"):
        charts(1, scores={"x": plain, "y": swap})
    assert charts(1, scores={"x": swap, "y": [1, 2]}, adjacency="swap").guarantee.adjacency == "swap"


@pytest.mark.parametrize(
    ("per_user", "adjacency", "steps"), [(None, "add-remove", 2), (None, "swap", 4), (1, "swap", 2)]
)
def test_counts_by_group_under_swap_allow_for_a_user_who_changes_groups(per_user, adjacency, steps):
    from discreet.evidence.counts import BoundedScores

    member = BoundedScores(np.array([5, 3, 1]), grid=Fraction(1), max_items_per_user=per_user)
    source = discreet.grouped({"x": member, "y": member}, each_user="one")
    request = make_grouped_request(source, 2, 1, adjacency=adjacency, counts=1)
    assert {one.count_mechanism.rate for one in request.requests} == {Fraction(1, steps)}
    # Groups that are alike share what they are asked for.
    assert len({id(one.count_mechanism) for one in request.requests}) == 1


def test_json_holds_everything_and_formats_are_told_apart():
    release = charts(each_user="many", counts=1, mechanism=discreet.OneShot())
    data = json.loads(release.to_json(indent=1))
    assert data["format"] == 2
    assert [entry["group"] for entry in data["groups"]] == ["DE", "FR"]
    assert len(data["guarantees"]) == 1
    again = discreet.GroupedRelease.from_json(release.to_json())
    assert again == release == read_release(release.to_dict())
    assert list(again) == list(release)
    assert read_release(release["DE"].to_dict()) == release["DE"]
    with pytest.raises(InvalidValueError, match=r"Release\.to_dict"):
        discreet.Release.from_dict(release.to_dict())
    with pytest.raises(InvalidValueError, match="a release by group as GroupedRelease"):
        discreet.GroupedRelease.from_dict(release["DE"].to_dict())


@pytest.mark.parametrize(
    "change",
    [
        {"groups": []},
        {"guarantees": []},
        {"groups": None},
        {"names": 3},
        {"guarantee": {}},
        {"groups_per_user": "?"},
        {"each_user": "all"},
        {"groups": "twice"},
        {"names": []},
        {"names": ["country", "month"]},
        {"groups_per_user": 0},
        {"groups_per_user": 2},
        {"each_user": "many", "groups_per_user": 3},
        {"each_user": "many", "groups_per_user": 2},
        {"guarantee": "cheaper"},
    ],
    ids=repr,
)
def test_what_is_no_release_by_group_is_refused(change):
    data = charts().to_dict()
    if change == {"groups": "twice"}:
        change = {"groups": data["groups"] * 2}
    if change == {"guarantee": "cheaper"}:
        change = {"guarantee": {**data["guarantee"], "epsilon": "1"}}
    with pytest.raises(InvalidValueError, match="data must be a release by group"):
        discreet.GroupedRelease.from_dict({**data, **change})
    for text in ("", "[", "null", "3", None, "[" * 10**5):
        with pytest.raises(Error):
            discreet.GroupedRelease.from_json(text)


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_the_frame_has_a_row_for_each_group_and_item(library):
    pytest.importorskip(library)
    release = charts(scores={("DE", 1): [9, 5, 1], ("FR", 2): [1, 2]}, mechanism=discreet.Peeling(), counts=1000)
    object.__setattr__(release, "names", ("country", "order"))
    frame = release.to_frame(library)
    rows = (
        frame.to_pylist()
        if library == "pyarrow"
        else frame.to_dict("records")
        if library == "pandas"
        else frame.to_dicts()
    )
    figures = [{"count": n, "low": n, "high": n} for n in (9, 5, 2, 1)]
    assert list(rows[0]) == ["country", "group_order", "item", "order", "count", "low", "high"]
    places = [row.pop("order") for row in rows]
    # A group that is released whole has no order.
    assert places[:2] == [1, 2]
    assert all(place is None or place != place for place in places[2:])
    groups = [{"country": "DE", "group_order": 1}] * 2 + [{"country": "FR", "group_order": 2}] * 2
    expected = [{**g, "item": i, **f} for g, i, f in zip(groups, [0, 1, 1, 0], figures, strict=True)]
    assert rows == expected


@pytest.mark.parametrize("library", ["polars", "pyarrow"])
def test_what_a_library_has_no_type_for_is_text(library):
    pytest.importorskip(library)
    release = charts(2, scores={"x": {("a", 1): 9, 2: 5, "b": 1}, 3: {"c": 9, "d": 8, "e": 1}})
    frame = release.to_frame(library)
    columns = frame.to_pydict() if library == "pyarrow" else frame.to_dict(as_series=False)
    assert columns == {"group": ["x", "x", "3", "3"], "item": ["2", "('a', 1)", "c", "d"]}


def test_a_frame_is_of_a_library_that_is_there(monkeypatch):
    from discreet.release import formats

    with pytest.raises(InvalidValueError, match="library must be one of pandas, polars, pyarrow, not 'excel'"):
        charts().to_frame("excel")
    monkeypatch.setattr(formats, "find_spec", lambda name: None)
    for name in (None, "polars"):
        with pytest.raises(ImportError, match="pip install"):
            charts().to_frame(name)


def test_few_groups_are_printed_side_by_side_where_there_is_room(monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    wide = str(charts()).splitlines()
    assert wide[0].startswith("Top 2 of 3 items in each of 2 groups, sorted by name")
    assert [line.split() for line in wide[1:-3]] == [["DE", "FR"], ["alien", "alien"], ["dune", "heat"]]
    monkeypatch.setenv("COLUMNS", "10")
    narrow = str(charts()).splitlines()
    assert narrow[1:-3] == ["DE", "  alien", "  dune", "FR", "  alien", "  heat"]
    assert narrow[-3] == (
        "Privacy: epsilon 100 for each person added or removed, who counts in one group alone and adds at most 1 to "
        "each score."
    )


def test_many_groups_are_printed_as_the_first_three_and_how_many_more(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    scores = {("DE", week): [9, 1] for week in range(1, 53)}
    text = str(charts(1, scores=scores, each_user="many", most=4, rng=random.Random(1)))
    assert "... and 49 more groups (all of them: to_frame(), --format csv)" in text
    assert "DE, 3" in text
    assert "DE, 4" not in text
    assert "who counts in up to 4 groups at 25 each" in text
    assert text.splitlines()[-1].startswith("NOT PRIVATE")
    assert repr(charts()) == "GroupedRelease(2 groups, k=2, epsilon=100)"


def test_long_names_leave_room_for_the_list_beside(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    long = "The Very Long Title of a Song That Goes On and On"
    text = str(charts(1, scores={group: {long: 9, "b": 1} for group in "xy"}))
    assert "  The Very Long Title of a Song That Go..." in text
    assert long not in text
    assert long in str(charts(1, scores={"x": {long: 9, "b": 1}}))
    monkeypatch.setenv("COLUMNS", "70")
    assert long in str(charts(1, scores={group: {long: 9, "b": 1} for group in "xy"}))


@pytest.mark.parametrize(("most", "said"), [(1, True), (2, False)])
def test_counts_say_whom_they_leave_out(most, said):
    sentence = "counts are of the users who count in the group, without those who were there and count elsewhere"
    assert (sentence in str(charts(each_user="many", most=most, counts=1)).splitlines()) is said
    assert sentence in charts(counts=1)._repr_html_()
    assert sentence not in str(charts())


def test_a_group_that_is_not_there_is_told_by_those_that_are():
    with pytest.raises(
        KeyError, match="'UK' is no group of this release, whose 12 groups are like '2026-01', '2026-02', "
    ):
        charts(1, scores=MONTHS)["UK"]


def test_a_source_says_in_short_what_it_is():
    assert repr(discreet.grouped(VISITS, each_user="one")) == "MemberGroups(2 groups by group, each_user='one')"
    source = discreet.grouped(MONTHS, each_user="many", max_groups_per_user=3, by="month")
    assert repr(source) == "MemberGroups(12 groups by month, each_user='many', max_groups_per_user=3)"


def test_the_page_of_a_notebook_needs_no_script_and_escapes_what_it_shows():
    few = charts(1, scores={"<x>": {"<b>": 9, "c": 1}})._repr_html_()
    assert "<b>&lt;x&gt;</b><ul><li>&lt;b&gt;</li></ul>" in few
    many = charts(1, scores={group: [9, 1] for group in range(300)})._repr_html_()
    assert many.count("<details>") == 200
    assert "and 100 more groups" in many
    assert not re.search("<script|src=|href=|on[a-z]+=", few + many)


def test_padding_is_for_the_whole_and_auto_for_arrays():
    begun = time.monotonic()
    charts(pad_to="0.2")
    assert 0.2 <= time.monotonic() - begun < 0.4
    arrays = {group: np.arange(100) for group in range(3)}
    begun = time.monotonic()
    charts(1, scores=arrays, pad_to="auto")
    assert time.monotonic() - begun >= default_period(300, 3, groups=3)
    assert default_period(10**7, 10**5, groups=10**4) >= 16
    with pytest.raises(InvalidValueError, match="pad_to must be a number"):
        charts(1, scores={**arrays, "list": [1, 2]}, pad_to="auto")


def test_what_making_the_source_took_is_counted_in(monkeypatch):
    """Scores are converted then, which takes as long as their types ask for."""

    def convert_slowly(*arguments):
        time.sleep(0.2)
        return as_source(*arguments)

    monkeypatch.setattr(scores, "as_source", convert_slowly)
    begun = time.monotonic()
    charts(pad_to="0.6")
    assert 0.6 <= time.monotonic() - begun < 0.8


def test_the_settings_of_numpy_do_not_matter():
    with np.errstate(all="raise"):
        scores = {"x": np.array([1e300, -1e300]), "y": np.array([1.0, 5e-324])}
        release = charts(1, Fraction(1, 10**12), scores=scores, sensitivity=discreet.Sensitivity(0, 1))
    assert release.k == 1


def test_progress_says_how_many_groups_are_done(monkeypatch):
    monkeypatch.setattr(jobs, "_PATIENCE", 0.0)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(jobs.sys, "stderr", terminal := Terminal())
    request = make_grouped_request(discreet.grouped(MONTHS, each_user="one"), 1, 1)
    drawn = iter(range(12))

    def draw(prepared):
        if next(drawn) == 4:
            # A stage of the source's own shows nothing.
            with jobs.stage("computing the scores"):
                wait_until(lambda: "drawing 4 of 12 groups ... 0 s" in terminal.text)
        return Selection(np.array([0]))

    with jobs.show_progress():
        request.draw(Randomness(draw))
    assert "drawing 4 of 12 groups" in terminal.text
    assert "computing" not in terminal.text
    assert terminal.text.endswith("\x1b[2K")


class Terminal(SimpleNamespace):
    """A stream that says it is a terminal."""

    text = ""

    def isatty(self):
        return True

    def write(self, text):
        self.text += text

    def flush(self):
        pass


def wait_until(holds):
    for _ in range(100):
        if holds():
            return
        time.sleep(0.05)


def test_analyses_of_one_list_refuse_groups_in_one_sentence():
    source = discreet.grouped(VISITS, each_user="one")
    for ask in (
        lambda: discreet.class_probabilities(source, 1, 1),
        lambda: discreet.subset_probability(source, ["dune"], 1),
    ):
        with pytest.raises(InvalidTypeError, match="scores must be of one list of items here, not of several groups"):
            ask()

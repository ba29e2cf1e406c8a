"""The page that compares discovery with thresholded counts shows what its script prints, and the script is right."""

import random
import re
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from dp_accounting.gaussian_mechanism import get_sigma_gaussian

import discreet
from site_pages import DOCS, ROOT


@pytest.fixture
def compared(monkeypatch):
    """The script that prints the tables."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    import discovery_compared

    return discovery_compared


@pytest.fixture
def page():
    return (DOCS / "discovery-compared.md").read_text(encoding="utf-8")


@pytest.fixture
def figures():
    return (DOCS / "appendix" / "discovery.md").read_text(encoding="utf-8")


@pytest.fixture
def stated(compared, figures):
    """The shares that the appendix shows, by number of people; rows that it leaves out are 100% for every method."""
    cells = list(product(compared.SIZES, compared.LIMITS, compared.BUDGETS))
    found = {people: read_shares(figures, people) for people in compared.PEOPLE}
    assert all(set(shares) < set(cells) for shares in found.values())
    everything = dict.fromkeys(next(iter(found[compared.PEOPLE[0]].values())), 100)
    return {people: {cell: shares.get(cell, everything) for cell in cells} for people, shares in found.items()}


def read_shares(figures, people):
    table = figures.partition(f"With {people:,} people:\n\n")[2].partition("\n\n")[0]
    head, _, *rows = [[cell.strip("* %") for cell in line.strip("|").split("|")] for line in table.splitlines()]
    cells = {(int(k), int(limit), epsilon): map(int, shares) for k, limit, epsilon, *shares in rows}
    return {cell: dict(zip(head[3:], shares, strict=True)) for cell, shares in cells.items()}


def test_the_tables_are_those_of_the_script_and_agree(compared, page, figures, stated):
    for people, shares in stated.items():
        assert f"With {people:,} people:\n\n{compared.format_shares(shares)}\n" in figures
    assert f"\n\n{compared.format_best(stated)}\n\n" in page
    assert f"\n\n{compared.format_thresholds()}\n\n" in page


def test_what_the_page_says_of_who_wins_is_in_its_tables(stated):
    few, many = stated[20_000], stated[200_000]
    rivals = ("OpenDP", "Laplace", "Gaussian")
    assert few[50, 1, "0.3"]["Laplace"] > 60 > 50 > few[50, 1, "0.3"]["discreet, 3/4"] > few[50, 1, "0.3"]["discreet"]
    assert few[50, 30, "1"]["Gaussian"] > 90 > 30 > few[50, 30, "1"]["discreet, 3/4"] > few[50, 30, "1"]["discreet"]
    assert few[50, 1, "3"]["discreet"] > max(few[50, 1, "3"][name] for name in rivals) + 4
    for limit in (1, 3):
        assert few[50, limit, "1"]["discreet, 3/4"] > max(few[50, limit, "1"][name] for name in rivals)
        assert all(0 <= many[50, limit, e]["discreet"] - many[50, limit, e]["OpenDP"] <= 1 for e in ("0.3", "1", "3"))
    assert all(many[50, limit, "0.3"]["discreet"] < 80 for limit in (10, 30))


@pytest.mark.long
@pytest.mark.slow
def test_shares_of_the_page_are_drawn_again(compared, stated):
    settings = [(1, "1"), (3, "3"), (30, "1")]
    drawn = compared.measure_shares(20_000, settings, boundings=2, draws=4)
    assert len(drawn) == 6
    for (k, *others), row in drawn.items():
        # Of 8 draws the mean share of k is off by at most 50 / sqrt(8 k) points in the deviation: this is over five.
        off = 13 if k == 50 else 30
        assert row == {name: pytest.approx(share, abs=off) for name, share in stated[20_000][k, *others].items()}


@pytest.mark.long
@pytest.mark.slow
def test_a_release_from_events_is_as_good_as_the_script_says(compared, stated):
    events = compared.make_events(20_000)
    table = pa.table({"person": events.person, "item": events.item})
    domain = discreet.discovered(compared.DELTA, 3, kind="integer")
    source = discreet.events(table, user="person", item="item", domain=domain)
    best = np.argsort(-events.count_people(), kind="stable")[:50]
    hits = [compared.count_common(best, discreet.top_k(source, 50, 3).items) for _ in range(4)]
    assert 2 * np.mean(hits) == pytest.approx(stated[20_000][50, 3, "3"][compared.OURS], abs=13)


def test_each_person_has_1_to_1000_different_items(compared):
    events = compared.make_events(3_000)
    assert len(set(zip(events.person.tolist(), events.item.tolist(), strict=True))) == len(events.person)
    per_person = np.bincount(events.person, minlength=3_000)
    assert per_person.min() == 1
    assert 900 < per_person.max() <= compared.MOST
    for limit, counts in events.count_bounded(np.random.default_rng(1)).items():
        assert counts.sum() == np.minimum(per_person, limit).sum()
        assert (counts <= events.count_people()).all()


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 3.0])
@pytest.mark.parametrize("limit", [1, 30])
def test_the_thresholds_keep_delta_and_hardly_more(compared, limit, epsilon):
    deviation, threshold = compared.gaussian_threshold(limit, epsilon)
    assert deviation == pytest.approx(limit**0.5 * get_sigma_gaussian(epsilon, 5e-9), rel=1e-6)
    alone = compared.normal_cdf(-(threshold - 1) / deviation)
    assert 1 - (1 - alone) ** limit == pytest.approx(5e-9, rel=1e-6)
    scale, threshold = compared.laplace_threshold(limit, epsilon)
    assert 1 - (1 - np.exp(-(threshold - 1) / scale) / 2) ** limit == pytest.approx(1e-8, rel=1e-6)
    own, least = compared.opendp_threshold(limit, epsilon)
    spent, delta = compared.make_opendp(own, least).map((limit, limit, 1))
    assert spent == pytest.approx(epsilon)
    assert delta <= 1e-8 < compared.make_opendp(own, least - 1).map((limit, limit, 1))[1]
    assert least == pytest.approx(threshold, abs=2)


def test_what_is_found_is_released_whole_where_it_is_no_more_than_k(compared):
    counts = np.array([10**6, 10**6, 1, 0])
    ranked = compared.Ranked(counts, counts)
    for name in compared.PARTS:
        assert sorted(ranked.release(name, (10, 1, "1"), random.Random(1)).tolist()) == [0, 1], name
    for name in compared.list_methods():
        released = compared.RELEASES[name](counts, 1, 1.0, np.random.default_rng(1))
        assert sorted(released.tolist()) == [0, 1], name


def test_without_opendp_its_column_is_left_out(compared, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert compared.format_thresholds().splitlines()[0].startswith("| l | Laplace | Gaussian | discreet")


def test_the_picture_has_a_panel_for_each_epsilon(compared, stated, tmp_path):
    compared.draw(tmp_path, stated)
    drawn = (tmp_path / "discovery-compared.svg").read_text(encoding="utf-8")
    titles = re.findall(r"<!-- (epsilon = [\d.]+) -->", drawn)
    assert titles == [f"epsilon = {epsilon}" for epsilon in compared.BUDGETS]

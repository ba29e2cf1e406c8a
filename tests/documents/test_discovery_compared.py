"""The page that compares ways to find items shows what its scripts print, and the scripts are right."""

import random
import re
from fractions import Fraction
from itertools import product

import numpy as np
import pyarrow as pa
import pytest
from dp_accounting.gaussian_mechanism import get_sigma_gaussian

import discreet
from discreet.mechanisms.weighted_discovery import WeightedDiscovery
from site_pages import DOCS, ROOT


@pytest.fixture
def compared(monkeypatch):
    """The script that prints the tables of methods."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    import discovery_compared

    return discovery_compared


@pytest.fixture
def split(monkeypatch):
    """The script that prints the tables of rules."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    import discovery_split

    return discovery_split


@pytest.fixture
def page():
    return (DOCS / "discovery-compared.md").read_text(encoding="utf-8")


@pytest.fixture
def figures():
    return (DOCS / "appendix" / "discovery.md").read_text(encoding="utf-8")


def read_table(text, head):
    """Return the names of the columns and the rows of the table whose head begins so."""
    table = head + text.partition(head)[2].partition("\n\n")[0]
    names, _, *rows = [[cell.strip("* %") for cell in line.strip("|\n").split("|")] for line in table.splitlines()]
    return names, rows


@pytest.fixture
def stated(compared, figures):
    """The shares that the appendix shows; rows that it leaves out are equal for all methods."""
    names, rows = read_table(figures, "| law | people |")
    found = {
        (law, int(people.replace(",", "")), int(k), epsilon): dict(zip(names[4:], map(int, shares), strict=True))
        for law, people, k, epsilon, *shares in rows
    }
    cells = list(product(compared.COMPARED, compared.PEOPLE, compared.SIZES, compared.BUDGETS))
    assert set(found) < set(cells)
    return {cell: found.get(cell, dict.fromkeys(names[4:], 100)) for cell in cells}


def test_the_tables_are_those_of_the_script_and_agree(compared, page, figures, stated):
    assert f"\n\n{compared.format_shares(stated)}\n\n<!-- end of tables -->" in figures
    _, rows = read_table(figures, "| law | OpenDP")
    errors = {law: list(map(float, row)) for law, *row in rows}
    assert set(errors) == {*compared.COMPARED, "largest of all cells"}
    assert max(errors["largest of all cells"]) < 10.5
    assert f"\n\n{compared.format_usual(stated)}\n\n" in page
    assert f"\n\n{compared.format_behind(stated)}\n\n" in page


def test_what_the_page_says_of_who_wins_is_in_its_tables(compared, page, stated):
    usual = {law: stated[law, 20_000, 50, "1"] for law in compared.COMPARED}
    ours = {law: row[compared.OURS] for law, row in usual.items()}
    best = {law: max(row[name] for name in compared.RELEASES) for law, row in usual.items()}
    assert [law for law in usual if ours[law] > best[law]] == [
        "searches", "one item", "steep", "lognormal", "tastes",
    ]  # fmt: skip
    assert [law for law in usual if ours[law] == best[law]] == ["few items", "flat"]
    for law, row in usual.items():
        assert ours[law] >= 95 or max(row.values()) < 95, law
    assert (usual["one item"][compared.GAUSSIAN], ours["one item"]) == (71, 99)
    hit = usual["one hit"]
    assert [hit[name] for name in ("weighted", "PipelineDP", compared.OURS, compared.GAUSSIAN)] == [94, 94, 64, 74]
    hit = stated["one hit", 20_000, 50, "3"]
    assert [hit[name] for name in ("weighted", "PipelineDP", compared.OURS)] == [97, 97, 100]
    rare, weak = stated["few items", 5_000, 50, "1"], stated["few items", 20_000, 50, "0.3"]
    assert [row[name] for row in (rare, weak) for name in ("OpenDP", compared.OURS)] == [56, 50, 66, 59]
    blurred = stated["few items", 20_000, 50, "3"]
    assert (blurred[compared.OURS], blurred[compared.GAUSSIAN]) == (96, 99)
    flat = stated["flat", 5_000, 50, "3"]
    assert (flat["weighted"], flat[compared.OURS]) == (87, 49)
    busy = stated["tastes", 5_000, 50, "1"]
    assert (busy["weighted"], busy[compared.OURS], busy["PipelineDP"]) == (77, 54, 86)
    tastes = [row["weighted"] for (law, people, *_), row in stated.items() if law == "tastes" and people > 5_000]
    assert (min(tastes), max(tastes)) == (58, 78)


def test_the_rule_of_the_library_has_the_least_worst_case_of_its_tables(split, page, figures):
    for start, laws in (("On the laws that fitted the rule:", split.FITTED), ("On the others:", split.OTHERS)):
        names, rows = read_table(figures.partition(start)[2], "| law | 1/2 |")
        regrets = {row[0]: dict(zip(names[1:], map(float, row[1:]), strict=True)) for row in rows}
        assert set(laws) <= set(regrets)
        assert list(names[1:]) == list(split.RULES)
        largest = regrets.pop("largest")
        regrets.pop("mean")
        assert largest == {name: max(row[name] for row in regrets.values()) for name in largest}
        assert largest["library"] == largest["c = 5"] == 40
        if laws is split.FITTED:
            assert largest["library"] == min(largest.values())
        assert min(largest[name] for name in ("1/2", "9/16", "5/8", "3/4")) == (42 if laws is split.FITTED else 48)
    assert "at most 40 points behind" in re.sub(r"\s+", " ", page)


def test_the_rule_is_that_of_the_library(split):
    for k, epsilon, groups in product((1, 7, 20, 50, 1000), ("0.1", "1", "7"), (1, 4, 12)):
        assert split.grow(5)(k, epsilon, groups) == pytest.approx(split.plan(k, epsilon, groups))


def test_a_regret_is_the_distance_from_the_best_part(split):
    shares = [10.0, 20, 30, 40, 50, 60, 70, 80, 40]
    curves = {"searches": {(5_000, 10, "1"): shares}}
    assert split.find_regrets(curves, lambda *_: 13 / 16) == {("searches", (5_000, 10, "1")): 0.0}
    assert split.find_regrets(curves, lambda *_: 0.5) == {("searches", (5_000, 10, "1")): 50.0}
    assert split.find_regrets(curves, lambda *_: 17 / 32) == {("searches", (5_000, 10, "1")): 45.0}


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("law", ["few items", "tastes"])
def test_shares_of_the_page_are_drawn_again(compared, stated, law):
    for cell, row in compared.measure_shares(law, 5_000, seeds=(18, 19), draws=3)[0].items():
        # Of 6 draws the mean share of k is off by at most 50 / sqrt(6 k) points in the deviation: this is over four.
        off = 13 if cell[2] == 50 else 28
        assert row == {name: pytest.approx(share, abs=off) for name, share in stated[cell].items()}


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("law", ["searches", "tastes"])
def test_a_release_from_events_is_as_good_as_the_script_says(compared, stated, law):
    events = compared.make_events(law, 20_000)
    table = pa.table({"person": events.person, "item": events.item})
    domain = discreet.discovered(compared.DELTA, kind="integer")
    source = discreet.events(table, user="person", item="item", domain=domain)
    hits = [
        compared.count_best(events.count_people(), 50, discreet.top_k(source, 50, epsilon).items)
        for epsilon in ("0.3", "1", "1")
    ]
    assert 2 * hits[0] == pytest.approx(stated[law, 20_000, 50, "0.3"][compared.OURS], abs=20)
    assert 2 * min(hits[1:]) >= 95


@pytest.mark.parametrize("law", ["searches", "one item", "tastes", "lands", "one hit"])
def test_each_person_has_different_items_of_which_a_few_count(compared, law):
    events = compared.make_events(law, 2_000)
    assert len(set(zip(events.person.tolist(), events.item.tolist(), strict=True))) == len(events.person)
    sizes = np.bincount(events.person, minlength=2_000)
    assert 1 <= sizes.min() <= sizes.max() <= compared.MOST
    assert events.item.max() < compared.ITEMS * events.groups
    within = np.bincount(events.person * events.groups + events.item // compared.ITEMS)
    for limit in (1, 30):
        counts, weights = events.bound(limit, np.random.default_rng(1).random(len(events.person)))
        assert counts.sum() == np.minimum(within, limit).sum()
        assert (counts <= events.count_people()).all()
        assert ((weights > 0) == (counts > 0)).all()
        assert weights.sum() <= 1024 * counts.sum()


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
    deviation, threshold = compared.weighted_threshold(limit, epsilon)
    found = WeightedDiscovery(Fraction(epsilon), Fraction(1, 10**8), limit)
    assert (deviation, threshold) == pytest.approx((float(found.sigma), found.cutoff / 1024), rel=1e-4)


def test_picks_of_peeling_cost_what_they_may(compared):
    for k, epsilon in product((10, 50), (0.15, 0.5, 1.5)):
        rate = compared.peeling_rate(k, epsilon, 5e-9)
        rho = k * rate**2 / 8
        composed = rho + 2 * np.sqrt(rho * np.log(2e8))
        assert min(k * rate, composed) == pytest.approx(epsilon)


def test_what_is_found_is_released_whole_where_it_is_no_more_than_k(compared):
    counts = np.array([10**6, 10**6, 1, 0])
    table = compared.Table(counts, 1024 * counts, counts, 1, counts)
    for name, release in compared.RELEASES.items():
        assert sorted(release(table, 10, 1.0, np.random.default_rng(1)).tolist()) == [0, 1], name
    for method in ("auto", "gaussian", "laplace"):
        assert sorted(compared.release_ours(table, 10, "1", method, random.Random(1)).tolist()) == [0, 1], method


def test_items_of_as_many_people_as_the_last_one_are_in_a_true_top_k(compared):
    people = np.array([9, 5, 5, 5, 1])
    assert compared.count_best(people, 2, np.array([0, 3])) == 2
    assert compared.count_best(people, 2, np.array([4, 3])) == 1


def test_without_opendp_its_column_is_left_out(compared, monkeypatch):
    assert compared.list_methods()[0] == "OpenDP"
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    assert compared.list_methods()[0] == "Tumult"


def test_the_picture_has_a_panel_for_each_law(compared, stated, tmp_path):
    compared.draw(tmp_path, stated)
    drawn = (tmp_path / "discovery-compared.svg").read_text(encoding="utf-8")
    for law in ("searches", "few items", "flat", "tastes"):
        assert f"<!-- {law} -->" in drawn

"""The tables of docs/appendix/planning.md are what their commands print, and the pages that cite them say the same."""

import importlib
import os
import re
from collections import Counter
from math import ceil, floor
from pathlib import Path

import numpy as np
import pytest

from discreet.study.vectors import load_vectors, make_vectors
from site_pages import DOCS, ROOT

PAGE = (DOCS / "appendix" / "planning.md").read_text(encoding="utf-8")
DATA = Path(os.environ.get("DISCREET_DATA", ROOT.parent / "shared" / "datasets"))
SCRIPTS = ("recall", "core", "sketches", "best", "gammas")


@pytest.fixture
def script(monkeypatch):
    """Imports a script of the repository."""
    for folder in ("examples", "examples/gallery", "benchmarks", "docs/_build"):
        monkeypatch.syspath_prepend(str(ROOT / folder))
    return importlib.import_module


@pytest.fixture
def table(script):
    """Returns the table on the page that a script printed."""
    return lambda name: script("planning_tables").find_table(PAGE, name)


@pytest.fixture
def papers():
    """Returns a vector of the paper."""
    if not DATA.is_dir():
        pytest.skip(f"the paper's vectors are not in {DATA.name} (set DISCREET_DATA to their folder)")
    return lambda name: load_vectors(DATA, [name])[0]


def text_of(page):
    """The text of a page in one line."""
    return " ".join((DOCS / page).read_text(encoding="utf-8").split())


def cells(line):
    return [cell.strip("* ") for cell in line.strip("|\n").split("|")]


def row(table, *first):
    """The cells of the one row that begins with these."""
    [found] = [cells(line) for line in table.splitlines() if cells(line)[: len(first)] == list(first)]
    return found[len(first) :]


def test_every_table_has_a_command(script, table):
    tables = script("planning_tables")
    commands = tables.list_commands(PAGE)
    assert [Path(command.split()[0]).stem for command in commands] == list(SCRIPTS)
    for command in commands:
        assert (ROOT / command.split()[0]).is_file()
    for name in SCRIPTS:
        assert table(name).count("\n| ") > 6
        assert tables.NO_VECTORS not in table(name)


def test_a_table_is_replaced_and_the_rest_stays(script, table):
    tables, command = script("planning_tables"), "examples/core.py"
    changed = tables.replace_table(PAGE, command, "\n| a |\n")
    assert tables.find_table(changed, "core") == f"<!-- printed by python {command} -->\n\n| a |\n\n<!-- end -->"
    assert changed == PAGE.replace(table("core"), tables.find_table(changed, "core"))
    printed = table("core").removeprefix(f"<!-- printed by python {command} -->\n").removesuffix("<!-- end -->")
    assert tables.replace_table(changed, command, printed) == PAGE


@pytest.mark.parametrize("goal", ["top", "recall"])
def test_the_table_of_gammas_is_what_the_script_prints(script, table, goal):
    gammas, [vector] = script("gammas"), make_vectors(["LONGTAIL"])
    needs = [gammas.need(vector, 100, gamma, goal) for gamma in gammas.GAMMAS]
    parts = dict(zip(gammas.TARGETS, table("gammas").split("The epsilon that canonical needs for ")[1:], strict=True))
    assert gammas.table({("LONGTAIL", 100): needs}).splitlines()[2] in parts[goal].splitlines()
    assert parts[goal].startswith(gammas.TARGETS[goal])


def test_the_page_on_mechanisms_says_what_the_default_gamma_needs(table):
    default = cells(table("gammas").splitlines()[4]).index("3/4")
    lines = [cells(line) for line in table("gammas").splitlines() if line.startswith("| **")]
    worst, mean = (max(each[default] for each in lines if each[0].startswith(name)) for name in ("worst", "mean"))
    page = text_of("mechanisms.md")
    assert f"needs at most {worst} times the epsilon of the best gamma" in page
    assert f"and {mean} times on average" in page


def test_the_script_says_where_the_papers_vectors_are_not_there(script, capsys, tmp_path):
    gammas = script("gammas")
    assert gammas.load_papers(tmp_path / "nowhere") == []
    assert f"{script('planning_tables').NO_VECTORS} nowhere" in capsys.readouterr().out
    [steps] = make_vectors(["STEPS"])
    assert gammas.need(steps, 10, "3/4", "top") is None


@pytest.mark.long
def test_the_tables_of_sketches_are_what_the_script_prints(script, table):
    sketches, vectors = script("sketches"), make_vectors(["LONGTAIL"])
    usual, few = table("sketches").split("At the ranks ")
    for part, sizes, ranks in ((usual, sketches.SIZES, None), (few, (10,), sketches.FEW)):
        printed = sketches.table(vectors, sizes, ranks).splitlines()[2:]
        assert len(printed) == len(sizes)
        assert set(printed) < set(part.splitlines())


def test_the_page_on_sketches_has_the_ranges_of_the_table(table):
    usual, few = table("sketches").split("At the ranks ")
    ratios = [tuple(map(float, found)) for found in re.findall(r"([\d.]+) \(([\d.]+) to ([\d.]+)\)", usual)]
    middle, low, high = zip(*ratios, strict=True)
    page = text_of("private-plan.md")
    assert f"the median plan asked for {min(middle):.2f} to {max(middle):.2f} times the epsilon" in page
    assert f"single plans for {min(low):.2f} to {max(high):.2f} times" in page
    most = max(re.findall(r" to ([\d.]+)\)", few[few.index("| LONGTAIL") :].partition("\n")[0]))
    assert f"asked for up to {most} times the need if it was not (LONGTAIL)" in page


def test_core_is_best_on_average_from_60_on(table):
    wide = table("core").partition("fewer than")[0]
    for k in (20, 60, 100, 300, 1000):
        core, _, *fixed = map(float, row(wide, str(k))[1:6])
        assert (core > max(fixed)) == (k >= 60)
    assert "the best average [recall](glossary.md#recall) [from k = 60 on]" in text_of("mechanisms.md")


def test_a_plan_asks_for_three_percent_more_at_most(table):
    [worst] = re.findall(r"The largest ratio is (1\.\d+)\.", table("best"))
    assert float(worst) <= 1.03
    assert "a plan asks for at most 3% more" in text_of("epsilon.md")
    rows = [cells(line) for line in table("best").splitlines() if line.startswith("| ")][2:]
    assert all(re.fullmatch(r"\d+(/\d+)?", each[-1]) for each in rows), "the page says that the best is canonical"


@pytest.mark.slow
@pytest.mark.long
def test_the_page_on_mechanisms_has_the_ratios_of_the_figures(script):
    needs, page = script("figures").needs, text_of("mechanisms.md")
    assert f"one-shot needs {needs(100, 'one-shot') / needs(100, 'canonical'):.0f} times" in page
    assert f"joint {needs(100, 'joint') / needs(100, 'canonical'):.1f} times" in page
    assert needs(1, "canonical") / needs(1, "peeling") == pytest.approx(4 / 3, rel=0.002)


def test_the_page_says_which_mechanism_is_best_in_the_table_of_recall(table):
    head, _, *lines = (line for line in table("recall").splitlines() if line.startswith("| "))
    head = cells(head)
    rows = [dict(zip(head, cells(line), strict=True)) for line in lines]
    for each, line in zip(rows, lines, strict=True):
        each["best"] = head[line.partition("**")[0].count("|") - 1]
    half, most = ([each for each in rows if each["recall"] == share] for share in ("0.5", "0.9"))
    everybody, page = head[3:8], text_of("appendix/planning.md")

    def times(rows, method, others=everybody):
        ratios = [float(each[method]) / min(float(each[other]) for other in others) for each in rows]
        return f"{floor(100 * min(ratios)) / 100:.2f} to {ceil(100 * max(ratios)) / 100:.2f} times"

    assert Counter(each["best"] for each in most) == {"canonical, 3/4": 8, "canonical, 1/2": 2}
    assert {(each["scores"], each["k"]) for each in half if each["best"] == "one-shot"} == {
        (name, "1000") for name in ("HEPTH", "MEDCOST", "SEARCHLOGS")
    }
    assert sum(each["best"] == "core" for each in half) == 7
    needs = f"Core needs {times(most, 'core')} as much, one-shot {times(most, 'one-shot')}, and "
    assert f"{needs}OpenDP's peeling {times(most, head[7])}." in page
    assert f"{times(rows, head[7], ['one-shot'])} the epsilon of one-shot" in page
    few = "histogram, l = 30"
    short_half, short_most = ([each for each in part if each["k"] == "100"] for part in (half, most))
    assert f"{times(short_half, few)} the best of the others for half of the list" in page
    assert f"and {times(short_most, few)} for nine tenths" in page
    long = [each for each in rows if each["k"] == "1000"]
    assert f"With k = 1000 it needs at most {times(long, few).split()[2]} times" in page


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize("name", ["HEPTH", "NETFLIX", "ZIPFIAN"])
def test_the_table_of_recall_is_what_the_script_prints(papers, script, table, name):
    recall = script("recall")
    printed = recall.table({(name, 100): recall.needs(papers(name), 100)}).splitlines()[2:]
    assert len(printed) == 2
    assert set(printed) < set(table("recall").splitlines())


@pytest.mark.slow
@pytest.mark.long
def test_a_need_in_the_table_of_recall_is_where_the_share_is_reached(papers, script, table):
    recall, vector = script("recall"), papers("NETFLIX")
    for method, stated in zip(recall.METHODS, row(table("recall"), "NETFLIX", "100", "0.9"), strict=True):
        share = recall.recall_of(vector, 100, recall.METHODS[method])
        near = 0.05 if method == recall.OPENDP else 0.005
        assert share((1 - near) * float(stated)) < 0.9 < share((1 + near) * float(stated)), method


@pytest.mark.slow
@pytest.mark.long
def test_the_table_of_the_best_is_what_the_script_prints(papers, script, table, capsys):
    best = script("best")
    best.show("HEPTH", np.asarray(papers("HEPTH").scores), 10, "recall")
    assert capsys.readouterr().out in table("best")


@pytest.mark.slow
@pytest.mark.long
def test_a_mean_over_vectors_of_core_is_what_the_script_prints(papers, script, table):
    core = script("core")
    wide = core.load_papers(DATA) + make_vectors([]) + core.make_long_vectors()
    assert core.summarise(20, [core.measure(vector, 20) for vector in wide]) in table("core").splitlines()

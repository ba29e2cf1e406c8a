"""The page for reviewers and its appendix say what the commands print."""

import re
from decimal import ROUND_CEILING, Decimal
from pathlib import Path

import pytest

import discreet
from discreet.evidence.discovery import DiscoveryVerdict, discovery_tasks
from discreet.evidence.discovery_choice import choice_tasks
from discreet.evidence.groups import GroupVerdict, group_tasks
from discreet.evidence.neighbours import SHARP, best_witness
from discreet.evidence.number_rows import (
    CountVerdict,
    ShortfallVerdict,
    ValueVerdict,
    count_tasks,
    shortfall_tasks,
    value_tasks,
)
from discreet.evidence.report import Verdict
from discreet.mechanisms.registry import all_variants
from self_test import cases

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "evidence.md").read_text(encoding="utf-8")
TABLES = (ROOT / "docs" / "appendix" / "verify.md").read_text(encoding="utf-8")


def read_tables(name):
    """The tables between the marks of this name as lists of cells, without the lines below their heads."""
    between = TABLES.partition(f"<!-- tables: {name} -->")[2].partition("<!-- end of tables -->")[0]
    parts = [part.splitlines() for part in between.strip().split("\n\n")]
    tables = [[line.strip("| ").split(" | ") for line in part] for part in parts if len(part) > 1]
    return [[head, *rows] for head, _, *rows in tables], [part[0] for part in parts if len(part) == 1]


(ROWS, COUNTS, SHORTFALLS, GROUPS, VALUES, FOUND), (STAR, TOTAL) = read_tables("verify")
# A noise comes onto the page with the pairs that a search finds for it.
SEARCHED = [mechanism for mechanism in all_variants() if best_witness(mechanism) is not None]


def test_the_table_has_every_mechanism_and_all_of_them_hold():
    assert tuple(ROWS[0]) == Verdict.headings
    assert len(ROWS[1:]) == len(SEARCHED)
    assert {tuple(row[-2:]) for row in ROWS[1:]} == {("same", "holds")}
    figures = [row[3] for row in (*ROWS[1:], *GROUPS[1:])] + [
        row[2] for row in (*COUNTS[1:], *SHORTFALLS[1:], *VALUES[1:])
    ]
    figures += [row[6] for row in FOUND[1:]]
    pairs = sum(int(figure.replace(",", "")) for figure in figures)
    assert f"{pairs:,} pairs of neighbouring inputs" == TOTAL
    assert pairs >= 10_000
    assert f"| {pairs:,} pairs of" in PAGE


def test_every_row_reaches_enough_for_a_scale_five_percent_off():
    reached = [best_witness(one).share for one in SEARCHED]
    assert [row[4] for row in ROWS[1:]] == [f"{share:.6f}{'' if share >= SHARP else ' *'}" for share in reached]
    # What chooses first and then draws has a star.
    assert [one.may_release_fewer for one in SEARCHED] == [row[4].endswith("*") for row in ROWS[1:]]


def test_the_table_has_counts_with_a_selection_and_alone():
    assert tuple(COUNTS[0]) == CountVerdict.headings
    assert [row[0] for row in COUNTS[1:]] == ["canonical", "one-shot", "joint", "all items"] * 2
    assert {row[-1] for row in COUNTS[1:]} == {"holds"}
    printed = next(task for task in count_tasks() if task.mechanism is None).examine().cells()
    assert list(printed) in COUNTS


def test_the_table_has_shortfalls_as_verify_prints_them():
    tasks = shortfall_tasks()
    assert tuple(SHORTFALLS[0]) == ShortfallVerdict.headings
    assert [row[:2] for row in SHORTFALLS[1:]] == [[task.mechanism.name, task.adjacency] for task in tasks]
    assert {tuple(row[-2:]) for row in SHORTFALLS[1:]} == {("1.000000", "holds")}
    assert list(tasks[1].examine().cells()) == SHORTFALLS[2]
    pairs = sum(int(row[2]) for row in SHORTFALLS[1:])
    reached = max(Decimal(row[3]) for row in SHORTFALLS[1:]).quantize(Decimal("0.001"), ROUND_CEILING)
    assert f"| {pairs:,} of these pairs: list and shortfall reach at most {reached} of their epsilon" in PAGE


@pytest.mark.long
def test_the_table_has_groups_as_verify_prints_them():
    assert tuple(GROUPS[0]) == GroupVerdict.headings
    assert [tuple(row[:2]) for row in GROUPS[1:]] == [(task.each_user, task.adjacency) for task in group_tasks()]
    assert {row[-1] for row in GROUPS[1:]} == {"holds"}
    assert list(group_tasks()[0].examine().cells()) == GROUPS[1]


@pytest.mark.long
def test_the_table_has_items_that_nobody_listed_as_verify_prints_them():
    assert tuple(FOUND[0]) == DiscoveryVerdict.headings
    tables = [task.tables for task in [*discovery_tasks(), *choice_tasks()]]
    planned = [[one.method, f"{one.items}", one.each_user or "-", one.adjacency] for one in tables]
    assert [row[:4] for row in FOUND[1:]] == planned
    assert {row[-1] for row in FOUND[1:]} == {"holds"}
    assert list(discovery_tasks()[0].examine().cells()) == FOUND[1]


@pytest.mark.long
def test_the_table_has_values_as_verify_prints_them():
    assert tuple(VALUES[0]) == ValueVerdict.headings
    assert [row[1] for row in VALUES[1:]] == [task.adjacency for task in value_tasks()]
    assert list(value_tasks("add-remove")[0].examine().cells()) == VALUES[1]
    assert {row[-1] for row in VALUES[1:]} == {"holds"}


@pytest.mark.some(1)
@pytest.mark.parametrize(
    "mechanism",
    [discreet.Canonical(), discreet.Canonical(gamma="1/3"), discreet.Joint(), discreet.Canonical(1, "exponential")],
    ids=str,
)
def test_the_rows_are_what_verify_prints(mechanism):
    printed = re.split(r"\s{2,}", str(discreet.verify(mechanism)).splitlines()[1])
    assert printed in ROWS


def test_every_file_that_the_page_names_is_there():
    named = re.findall(r"`((?:tests|tools)/[\w/]+(?:\.py)?)`", PAGE + TABLES)
    named += [f"docs/{name}" for name in re.findall(r"\]\(([^)#]+)", PAGE)]
    named += [f"docs/appendix/{name}" for name in re.findall(r"\]\(([^)#]+)", TABLES)]
    assert len(named) >= 20
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_table_of_planted_faults_is_that_of_the_self_test():
    [[_, *table]], [total] = read_tables("self-test")
    rows = {cells[0]: cells[1:] for cells in table}
    assert list(rows) == [case.name for case in cases()]
    assert [cells[-1] for cells in rows.values()] == ["acquitted"] + ["caught"] * (len(rows) - 1)
    assert total == f"{len(rows) - 1} of {len(rows) - 1} planted faults caught"
    assert total in PAGE
    drawn = next(case for case in cases() if case.name == "counts: half the noise drawn").examine()
    assert rows[drawn.fault] == [drawn.by_verify(), drawn.by_audit(), drawn.verdict]

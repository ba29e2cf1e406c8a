"""The page for reviewers says what the commands print."""

import re
from pathlib import Path

import pytest

import discreet
from discreet.evidence.counts import CountVerdict, ValueVerdict, count_tasks, value_tasks
from discreet.evidence.discovery import DiscoveryVerdict, discovery_tasks
from discreet.evidence.groups import GroupVerdict, group_tasks
from discreet.evidence.neighbours import SHARP, best_witness
from discreet.evidence.report import Verdict
from discreet.mechanisms.registry import all_variants
from self_test import cases

PAGE = (Path(__file__).parents[2] / "docs" / "evidence.md").read_text()
LINES = PAGE.split("```")[1].strip().splitlines()
TOTAL = LINES.pop()
LINES = [line for line in LINES if not line.startswith("*")]
ROWS, COUNTS, GROUPS, VALUES, FOUND = (
    [re.split(r"\s{2,}", line) for line in table.splitlines()] for table in "\n".join(LINES).split("\n\n")
)
# A noise comes onto the page with the pairs that a search finds for it.
SEARCHED = [mechanism for mechanism in all_variants() if best_witness(mechanism) is not None]


def test_the_table_has_every_mechanism_and_all_of_them_hold():
    assert tuple(ROWS[0]) == Verdict.headings
    assert len(ROWS[1:]) == len(SEARCHED)
    assert {tuple(row[-2:]) for row in ROWS[1:]} == {("same", "holds")}
    figures = [row[3] for row in (*ROWS[1:], *GROUPS[1:])] + [row[2] for row in (*COUNTS[1:], *VALUES[1:])]
    figures += [row[5] for row in FOUND[1:]]
    pairs = sum(int(figure.replace(",", "")) for figure in figures)
    assert f"{pairs:,} pairs of neighbouring inputs" == TOTAL
    assert pairs >= 10_000


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


def test_the_table_has_groups_as_verify_prints_them():
    assert tuple(GROUPS[0]) == GroupVerdict.headings
    assert [tuple(row[:2]) for row in GROUPS[1:]] == [(task.each_user, task.adjacency) for task in group_tasks()]
    assert {row[-1] for row in GROUPS[1:]} == {"holds"}
    assert list(group_tasks()[0].examine().cells()) == GROUPS[1]


def test_the_table_has_items_that_nobody_listed_as_verify_prints_them():
    assert tuple(FOUND[0]) == DiscoveryVerdict.headings
    tables = [task.tables for task in discovery_tasks()]
    assert [row[:3] for row in FOUND[1:]] == [[f"{one.items}", one.each_user or "-", one.adjacency] for one in tables]
    assert {row[-1] for row in FOUND[1:]} == {"holds"}
    assert list(discovery_tasks()[0].examine().cells()) == FOUND[1]


def test_the_table_has_values_as_verify_prints_them():
    assert tuple(VALUES[0]) == ValueVerdict.headings
    assert [row[1] for row in VALUES[1:]] == [task.adjacency for task in value_tasks()]
    assert list(value_tasks("add-remove")[0].examine().cells()) == VALUES[1]
    assert {row[-1] for row in VALUES[1:]} == {"holds"}


@pytest.mark.some(2)
@pytest.mark.parametrize(
    "mechanism",
    [discreet.Canonical(), discreet.Canonical(gamma="1/3"), discreet.Joint(), discreet.Canonical(1, "exponential")],
    ids=str,
)
def test_the_rows_are_what_verify_prints(mechanism):
    printed = re.split(r"\s{2,}", str(discreet.verify(mechanism)).splitlines()[1])
    assert printed in ROWS


def test_every_file_that_the_page_names_is_there():
    root = Path(__file__).parents[2]
    named = re.findall(r"`(tests/[\w/]+(?:\.py)?)`", PAGE) + [
        f"docs/{name}" for name in re.findall(r"\]\((.+?)\)", PAGE)
    ]
    assert len(named) >= 8
    assert [name for name in named if not (root / name).exists()] == []


def test_the_table_of_planted_faults_is_that_of_the_self_test():
    lines = next(block for block in PAGE.split("```") if block.strip().startswith("planted fault")).strip().splitlines()
    rows = {cells[0]: cells[1:] for cells in (re.split(r"\s{2,}", line) for line in lines[1:-1])}
    assert list(rows) == [case.name for case in cases()]
    assert [cells[-1] for cells in rows.values()] == ["acquitted"] + ["caught"] * (len(rows) - 1)
    assert lines[-1] == f"{len(rows) - 1} of {len(rows) - 1} planted faults caught"
    drawn = next(case for case in cases() if case.name == "counts: half the noise drawn").examine()
    assert rows[drawn.fault] == [drawn.by_verify(), drawn.by_audit(), drawn.verdict]

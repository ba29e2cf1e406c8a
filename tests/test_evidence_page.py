"""The page for reviewers says what the commands print."""

import re
from pathlib import Path

import pytest

import discreet
from discreet.evidence.verify import all_mechanisms

PAGE = (Path(__file__).parents[1] / "docs" / "evidence.md").read_text()
ROWS = [re.split(r"\s{2,}", line) for line in PAGE.split("```")[1].strip().splitlines()]


def test_the_table_has_every_mechanism_and_all_of_them_hold():
    assert ROWS[0] == ["mechanism", "noise", "gamma", "pairs", "worst / epsilon", "Renyi / zCDP", "verdict"]
    assert len(ROWS[1:-1]) == len(all_mechanisms())
    assert {row[-1] for row in ROWS[1:-1]} == {"holds"}
    pairs = sum(int(row[3]) for row in ROWS[1:-1])
    assert ROWS[-1] == [f"{pairs:,} pairs of neighbouring inputs"]
    assert pairs >= 10_000


@pytest.mark.parametrize(
    "mechanism",
    [discreet.Canonical(), discreet.Canonical(gamma="1/3"), discreet.Joint(), discreet.Canonical(1, "exponential")],
    ids=str,
)
def test_the_rows_are_what_verify_prints(mechanism):
    printed = re.split(r"\s{2,}", str(discreet.verify(mechanism)).splitlines()[1])
    assert printed in ROWS


def test_every_file_that_the_page_names_is_there():
    root = Path(__file__).parents[1]
    named = re.findall(r"`(tests/[\w/]+(?:\.py)?)`", PAGE) + [
        f"docs/{name}" for name in re.findall(r"\]\((.+?)\)", PAGE)
    ]
    assert len(named) >= 8
    assert [name for name in named if not (root / name).exists()] == []

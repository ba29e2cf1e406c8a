"""A short run has every value of every parameter, and leaves the other cases to a long run."""

import re
from itertools import product
from pathlib import Path

import pytest

from effort import LONG, SHARE, choose_corners, choose_some, examples, list_values, mark_long_cases

GRID = [{("letter", letter), ("number", number)} for letter, number in product("abc", range(5))]


def test_corners_have_every_value_and_no_more_cases_than_the_longest_list():
    chosen = choose_corners(GRID)
    assert set().union(*(GRID[place] for place in chosen)) == set().union(*GRID)
    assert len(chosen) == 5


@pytest.mark.parametrize(
    ("count", "most", "places"),
    [(9, 3, {1, 4, 7}), (3, 1, {1}), (2, 2, {0, 1}), (2, 5, {0, 1}), (12, 4, {1, 4, 7, 10})],
)
def test_some_cases_are_spread_evenly(count, most, places):
    assert choose_some(count, most) == places


def test_each_case_is_chosen_by_some_shift():
    assert [choose_some(9, 3, shift) for shift in (1, 2, 3)] == [{2, 5, 8}, {0, 3, 6}, {1, 4, 7}]
    assert choose_some(2, 5, 1) == {0, 1}


class Case:
    """A case of a test as pytest collects it, as far as marks go."""

    def __init__(self, marks, **params):
        self.path, self.originalname, self.marks = "here", "test", [*marks]
        self.callspec = type("Callspec", (), {"params": params})

    def iter_markers(self, name):
        return (mark for mark in self.marks if mark.name == name)

    def get_closest_marker(self, name):
        return next(self.iter_markers(name), None)

    def add_marker(self, mark):
        self.marks.append(mark.mark)


def make_cases(*marks, long=()):
    stacked = [pytest.mark.parametrize(("letter", "number"), []).mark, pytest.mark.parametrize("unit", []).mark]
    return [
        Case(
            [*marks, *stacked, *([pytest.mark.long.mark] if place in long else [])], letter=letter, number=0, unit=unit
        )
        for place, (letter, unit) in enumerate(product("abcd", [[1], [2], [3]]))
    ]


def count_short(cases):
    mark_long_cases(cases)
    return sum(case.get_closest_marker("long") is None for case in cases)


def test_marks_leave_cases_to_the_long_run():
    assert count_short(make_cases()) == 12
    assert count_short(make_cases(pytest.mark.corners.mark)) == 4
    assert count_short(make_cases(pytest.mark.some(5).mark)) == 5
    assert count_short(make_cases(pytest.mark.some(5).mark, long=range(10))) == 2


def test_values_that_one_parametrize_gives_together_stay_together():
    first, *_, last = make_cases()
    assert len(list_values(first)) == 2
    assert not list_values(first) & list_values(last)


def test_a_short_run_tries_a_share_of_the_examples_and_at_least_one(monkeypatch):
    monkeypatch.setattr("effort.LONG", False)
    assert [examples(usual) for usual in (1, SHARE + 1, 25 * SHARE)] == [1, 2, 25]
    monkeypatch.setattr("effort.LONG", True)
    assert examples(100) == 100


def test_a_short_run_has_one_worker_more_than_cores_unless_told(pytestconfig, monkeypatch):
    plugin = pytest.importorskip("xdist.plugin", reason="pytest-xdist is not installed here")
    monkeypatch.delenv("PYTEST_XDIST_AUTO_NUM_WORKERS", raising=False)
    count = pytestconfig.hook.pytest_xdist_auto_num_workers
    assert count(config=pytestconfig) == plugin.pytest_xdist_auto_num_workers(pytestconfig) + (not LONG)
    monkeypatch.setenv("PYTEST_XDIST_AUTO_NUM_WORKERS", "2")
    assert count(config=pytestconfig) == 2


TESTS = Path(__file__).parents[1]


def list_own_fixtures(text):
    """Return the fixtures of servers that a module imports: it would start servers of its own for them."""
    imported = re.findall(r"^from (?:engines|places) import (\([^)]*\)|.*)", text, re.MULTILINE)
    return re.findall(r"\b(?:mariadb|place|postgres|spark)\b", re.sub("#.*", "", "\n".join(imported)))


def test_no_module_starts_servers_of_its_own():
    assert list_own_fixtures("from engines import on, on_server, postgres  # noqa: F401") == ["postgres"]
    assert list_own_fixtures("from places import (\n    PLACES,\n    place,\n)\n") == ["place"]
    assert [path.name for path in TESTS.rglob("test_*.py") if list_own_fixtures(path.read_text(encoding="utf-8"))] == []

"""The bound of a shortfall holds in 95% of releases and is no wider than it must be; a step less fails."""

import importlib
from dataclasses import replace
from fractions import Fraction

import pytest

from discreet.exact.ball import ball, precision
from discreet.privacy import Sensitivity
from discreet.release.shortfall import ShortfallMechanism, find_half_widths, make_shortfall_mechanism
from laplace import tail_probability
from site_pages import ROOT

DRAWS = 300
SHAPES = ["Zipf", "uniform", "geometric", "ties", "near-ties", "all equal"]
COSTS = ["0.01", "0.05", "2"]


@pytest.fixture
def script(monkeypatch):
    """The script that draws 10,000 releases of each kind, and is repeated here with fewer."""
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    return importlib.import_module("shortfall_coverage")


@pytest.mark.parametrize(("cost", "steps"), [("0.01", 230), ("0.05", 46), ("0.1", 23), ("1", 2), ("2", 1), ("3", 0)])
def test_the_bound_is_the_least_that_misses_one_time_in_twenty(script, cost, steps):
    found = ShortfallMechanism(Fraction(1), Fraction(cost), Fraction(cost)).add_noise(Fraction(7), lambda rate: 0)
    assert (found.value, found.upper) == (7, 7 + steps)
    assert script.find_width(float(cost)) == steps
    with precision(128):
        # The bound is missed if the noise is below -q: half of the probability that it is further than q from 0.
        assert tail_probability(Fraction(cost), steps) / 2 < ball(Fraction(1, 20))
        assert steps == 0 or tail_probability(Fraction(cost), steps - 1) / 2 > ball(Fraction(1, 20))


@pytest.mark.parametrize(("adjacency", "factor"), [("add-remove", 1), ("swap", 2)])
def test_the_bound_grows_with_the_sensitivity(script, adjacency, factor):
    one = make_shortfall_mechanism(Sensitivity(), adjacency, Fraction(1), Fraction(1, 10))
    assert one.rate == Fraction(1, 10 * factor)
    assert one.add_noise(Fraction(0), lambda rate: 0).upper == script.find_width(0.1 / factor)


@pytest.mark.some(5)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("cost", COSTS)
def test_the_bound_holds_as_often_as_it_says(script, shape, cost):
    row = script.draw_row(shape, script.make_shapes()[shape], cost, DRAWS)
    row.check(len(SHAPES) * len(COSTS))


def test_the_rows_are_those_of_the_script(script):
    assert (list(script.make_shapes()), list(script.EPSILONS)) == (SHAPES, COSTS)


def test_a_bound_of_one_step_less_is_rejected(script, monkeypatch):
    """At epsilon 2 it would hold in 88% of releases, which a few hundred of them tell from 95%."""
    add = ShortfallMechanism.add_noise

    def one_less(self, lead, noise):
        found = add(self, lead, noise)
        return replace(found, upper=found.upper - 1)

    monkeypatch.setattr(ShortfallMechanism, "add_noise", one_less)
    row = script.draw_row("uniform", script.make_shapes()["uniform"], "2", 3 * DRAWS)
    with pytest.raises(SystemExit, match="missed"):
        replace(row, widths={1}).check(1)
    with pytest.raises(SystemExit, match="above their values"):
        replace(row, missed=0).check(1)


def test_the_appendix_has_the_table_of_the_script(script):
    page = (ROOT / "docs" / "appendix" / "verify.md").read_text(encoding="utf-8")
    printed = page.partition("<!-- tables: coverage -->")[2].partition("<!-- end of tables -->")[0].strip()
    head, _, *rows = [line.strip("| ").split(" | ") for line in printed.splitlines() if line.startswith("|")]
    assert printed.startswith(f"The top {script.K} of {script.D}, {script.DRAWS:,} releases a row.")
    assert tuple(head) == script.HEADINGS
    assert [row[:2] for row in rows] == [[cost, shape] for cost in COSTS for shape in SHAPES]
    for cost, _, _, above, *_, exactly, less in rows:
        assert int(above) == find_half_widths(Fraction(cost))[1]
        assert float(less.rstrip("%")) < 95 <= float(exactly.rstrip("%"))

"""The curves of a panel as they are drawn: on to both ends, and in pieces where a step lies between two points."""

import re

import pytest

from discreet.study import charts
from discreet.study.charts import figures_of, panels_of, traces
from discreet.study.curves import FIGURES, Point, Results
from study_rows import curve, study


def panel_of(levels, places=None):
    places = places or [10 ** (i / 4) for i in range(len(levels))]
    points = [Point("methods", "A", 9, 1, "m", x, "top", level, 0.0) for x, level in zip(places, levels, strict=True)]
    return panels_of(Results(points, [], []), FIGURES["methods"])[0]


def test_every_curve_goes_from_one_end_to_the_other():
    panels = [panel for figure in figures_of(study()) for panel in panels_of(study(), figure)]
    assert len(panels) > 10
    for panel in panels:
        for pieces in traces(panel).values():
            assert (pieces[0][0].x, pieces[-1][-1].x) == (panel.axis.low, panel.axis.high)
        drawn = re.findall(r'<polyline class="line [^"]*" data-m="(\d+)" points="([\d., ]+)"', charts.draw(panel))
        for method in range(len(panel.methods)):
            places = [place.split(",") for m, path in drawn if int(m) == method for place in path.split()]
            assert float(places[0][0]) == charts.LEFT
            assert float(places[-1][0]) == charts.RIGHT


def test_beyond_its_points_a_curve_is_as_at_its_end():
    early, late = (curve("methods", "A", 1, name, middle, ("top",)) for name, middle in (("early", 1), ("late", 100)))
    [panel] = panels_of(Results(early + late, [], []), FIGURES["methods"])
    [before, after] = [traces(panel)[name][0] for name in ("late", "early")]
    assert before[0].probability == before[1].probability == late[0].probability
    assert after[-1].probability == after[-2].probability == early[-1].probability
    # The files have what was computed, and no more.
    assert panel.curves["early"] == early


@pytest.mark.parametrize(
    ("levels", "places", "pieces"),
    [
        ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], None, 1),
        ([0.0, 0.0, 0.9, 1.0], None, 2),
        ([0.0, 0.6, 1.0], None, 3),
        # A step that is narrower than can be seen is a line straight up.
        ([0.0, 0.0, 1.0, 1.0], [1.0, 9.99, 10.0, 100.0], 1),
    ],
)
def test_no_straight_line_crosses_a_step(levels, places, pieces):
    panel = panel_of(levels, places)
    assert len(traces(panel)["m"]) == pieces
    drawn = charts.draw(panel)
    assert drawn.count("<polyline") + drawn.count('r="2"') - drawn.count('class="lead') == pieces

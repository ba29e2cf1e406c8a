"""The plots of comparisons, utilities and plans."""

import matplotlib
import pytest
from matplotlib.figure import Figure

import discreet
from discreet.release.theme import Theme

SCORES = [90, 88, 85, 84, 41, 40, 38, 9, 8, 7]


def words(figure):
    return " ".join(text.get_text() for text in figure.findobj(matplotlib.text.Text))


def test_a_comparison_has_a_row_for_each_mechanism_and_a_marker_for_each_goal():
    table = discreet.compare(SCORES, k=4, mechanisms=[discreet.Canonical(), discreet.OneShot(), discreet.Joint()])
    figure = table.plot()
    [axes] = figure.axes
    assert [label.get_text() for label in axes.get_yticklabels()] == [choice.label for choice in table.choices]
    lines = {line.get_label(): line for line in axes.lines}
    assert list(lines) == ["top", "great", "good", "optimal", "recall"]
    for goal, line in lines.items():
        assert line.get_xdata().tolist() == [float(choice.needs[goal]) for choice in table.choices]
    assert len({line.get_marker() for line in lines.values()}) == 5
    assert axes.get_xscale() == "log"
    assert "NOT private" in words(figure)


def test_a_need_that_is_not_known_is_said():
    scores = [5, 5, 5, 1]
    table = discreet.compare(scores, k=2, mechanisms=[discreet.Canonical()], goal="top")
    [axes] = table.plot().axes
    assert not axes.lines[0].get_xdata().size
    assert "not computed, or never" in words(axes.figure)


def test_one_goal_has_its_numbers_beside_the_points():
    table = discreet.compare(SCORES, k=4, goal="top", mechanisms=[discreet.Canonical(), discreet.OneShot()])
    [axes] = table.plot().axes
    assert [text.get_text() for text in axes.texts] == [f"{float(c.needs['top']):g}" for c in table.choices]
    figure = Figure()
    assert table.plot(ax=figure.subplots()) is figure


def test_a_utility_has_a_bar_for_each_goal_that_was_computed():
    found = discreet.utility(SCORES, k=4, epsilon="0.1")
    [axes] = found.plot().axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == ["top", "great", "good", "optimal", "recall"]
    assert [bar.get_width() for bar in axes.patches] == [getattr(found, name) for name in names]
    assert [text.get_text() for text in axes.texts] == [f"{100 * getattr(found, name):.1f}%" for name in names]
    # A list that may be shorter than k has a recall and nothing else.
    core = discreet.utility(SCORES, k=4, epsilon="0.1", mechanism=discreet.Core())
    assert [label.get_text() for label in core.plot().axes[0].get_yticklabels()] == ["recall"]


def test_the_lines_of_groups_go_from_the_worst_to_the_best():
    groups = discreet.grouped({"a": {"x": 90, "y": 40, "z": 1}, "b": {"x": 9, "y": 4, "z": 1}}, each_user="one")
    found = discreet.utility(groups, k=1, epsilon="0.1")
    [axes] = found.plot().axes
    [lines] = axes.containers[1].lines[2]
    tops = sorted(one.top for one in found.groups.values())
    assert lines.get_segments()[0][:, 0].tolist() == pytest.approx(tops)


@pytest.fixture(scope="module")
def plan():
    return discreet.plan(SCORES, k=4, goal="top", probability="0.9")


def test_a_plan_marks_the_recommended_point_among_the_curves(plan):
    figure = plan.plot(dark=True)
    [axes] = figure.axes
    marked = [line for line in axes.lines if line.get_markersize() == 10]
    assert [(line.get_xdata()[0], line.get_ydata()[0]) for line in marked] == [(float(plan.epsilon), 0.9)]
    labels = {text.get_text() for text in figure.legends[0].get_texts()}
    assert labels == {choice.label for choice in plan.comparison.choices}
    assert plan.sentences[0] in words(figure).replace("\n", " ")
    assert "NOT private" in words(figure)


def test_the_curves_of_a_plan_have_colours_of_their_own_and_nothing_covers_them(plan):
    figure = plan.plot()
    [axes] = figure.axes
    figure.draw_without_rendering()
    colours = {line.get_label(): line.get_color() for line in axes.lines if line.get_label() in plan.curves}
    assert len(set(colours.values())) == len(plan.curves) <= len(Theme().curves)
    [mark] = [text for text in axes.texts if text.get_text().startswith("epsilon = ")]
    assert mark.get_window_extent().y1 < axes.transData.transform((float(plan.epsilon), 0))[1]


def test_a_plan_is_drawn_in_axes(plan):
    figure = Figure(figsize=(9, 5))
    left, right = figure.subplots(1, 2)
    assert plan.plot(ax=right) is figure
    assert not left.lines
    assert len(right.lines) > len(plan.curves)
    figure.draw_without_rendering()
    assert right.get_legend().get_window_extent().x0 >= right.get_window_extent().x1
    assert right.get_legend().get_window_extent().x1 <= figure.bbox.x1


@pytest.mark.long
def test_the_heading_of_recall_says_if_it_is_a_share_or_a_probability():
    share, chance = (
        discreet.plan(SCORES, k=4, goal="recall", probability="0.9", share=each).plot().axes[0]
        for each in (None, "0.75")
    )
    assert share.get_title(loc="left") == "RECALL: the expected share of right items"
    assert (share.get_ylabel(), chance.get_ylabel()) == ("expected share", "probability")
    assert chance.get_title(loc="left") == "RECALL: 0.75 of the list is right, or more"
    titles = [discreet.utility(SCORES, 4, "0.1", **more).plot().get_suptitle() for more in (
        {}, {"share": "0.5"}, {"mechanism": discreet.Core()},
    )]  # fmt: skip
    assert titles == [
        "How likely a release is to be good, and its expected recall", "How likely a release is to be good",
        "The expected recall of a release",
    ]  # fmt: skip


@pytest.mark.parametrize("make", [
    lambda: discreet.utility(SCORES, 2, "0.1"), lambda: discreet.compare(SCORES, 2, mechanisms=[discreet.Canonical()]),
])  # fmt: skip
def test_without_matplotlib_the_message_names_the_extra(make, monkeypatch):
    monkeypatch.setattr("discreet.release.theme.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'pip install "matplotlib>=3\.9"$'):
        make().plot()

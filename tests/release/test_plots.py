"""The plots of releases and sketches: what they show, what they leave out, and that they are the same each time."""

import io
import itertools
import random
import re
import sys
import warnings
from fractions import Fraction

import matplotlib
import pytest
from matplotlib import pyplot
from matplotlib.figure import Figure

import discreet
from discreet.errors import InvalidValueError
from discreet.language import find_language
from discreet.release import plots, theme
from discreet.release.plots import MOST_ITEMS, Canvas, render
from discreet.release.theme import Theme

SCORES = {f"item {i:02}": 10_000 // (i + 1) for i in range(30)}
ODD = {"$x_1$": 50_000, "two\nlines": 40_000, "x" * 90: 30_000, "rest": 0}


def words(figure):
    """All words of a figure that can be seen."""
    return [text.get_text() for text in figure.findobj(matplotlib.text.Text) if text.get_text() and text.get_visible()]


def bars(axes):
    return [bar.get_width() for bar in axes.patches]


def test_counts_are_bars_with_intervals_and_the_shortfall_below():
    release = discreet.top_k(SCORES, k=5, epsilon=100, counts="0.1", shortfall=1)
    figure = release.plot()
    [axes] = figure.axes
    assert isinstance(figure, Figure)
    assert bars(axes) == [float(count.value) for count in release.counts]
    [lines] = axes.containers[1].lines[2]
    drawn = [segment[:, 0].tolist() for segment in lines.get_segments()]
    assert drawn == [pytest.approx([float(count.low), float(count.high)]) for count in release.counts]
    assert [label.get_text() for label in axes.get_yticklabels()] == [count.item for count in release.counts]
    # The largest stands at the top, and the axis begins at zero.
    assert axes.get_ylim()[0] > axes.get_ylim()[1]
    assert axes.get_xlim()[0] <= 0
    said = " ".join(words(figure)).replace("\n", " ")
    assert release.describe_shortfall()[0] in said
    assert "Privacy: epsilon 101.1 (100 for the selection" in said
    assert "gumbel" not in said


def test_a_picture_can_be_german():
    release = discreet.top_k(SCORES, k=5, epsilon=100, counts="0.1", shortfall=1)
    groups = discreet.top_k(discreet.grouped({"DE": SCORES, "FR": SCORES}, each_user="one"), k=2, epsilon=100)
    said = " ".join(words(release.plot(language="de"))).replace("\n", " ")
    assert "Top 5 von 30 Einträgen, nach verrauschter Zahl geordnet" in said
    assert "Datenschutz: Epsilon 101,1 (100 für die Auswahl" in said
    assert f"{release.counts[0].value:,}".replace(",", ".") in said
    assert "in jeder von 2 Gruppen" in " ".join(words(groups.plot(language="de"))).replace("\n", " ")
    with pytest.raises(InvalidValueError, match="language must be one of en, de, not 'fr'"):
        release.plot(language="fr")


def test_a_list_without_an_order_has_no_numbers_and_no_bars():
    release = discreet.top_k(SCORES, k=8, epsilon=100)
    [axes] = release.plot().axes
    chips = [text for text in axes.texts if text.get_bbox_patch() is not None]
    assert [text.get_text() for text in chips] == release.items == sorted(release.items)
    assert len({text.get_bbox_patch().get_facecolor() for text in chips}) == 1
    assert not axes.get_xticks().size
    assert not axes.get_yticks().size
    assert not bars(axes)
    assert "which says nothing about rank" in " ".join(words(axes.figure))


def test_an_order_is_numbered():
    release = discreet.top_k(SCORES, k=3, epsilon=1000, mechanism=discreet.Peeling())
    [axes] = release.plot().axes
    assert [text.get_text() for text in axes.texts] == [f"{i}.  {item}" for i, item in enumerate(release.order, 1)]
    # With counts, the place in the order stands behind the name.
    counted = discreet.top_k(SCORES, k=3, epsilon=1000, mechanism=discreet.Peeling(), counts=1)
    places = {item: place for place, item in enumerate(counted.order, 1)}
    names = [label.get_text() for label in counted.plot().axes[0].get_yticklabels()]
    assert names == [f"{count.item} (order {places[count.item]})" for count in counted.counts]


def test_negative_and_odd_values_are_drawn():
    counts = [discreet.Count("up", 5, 3, 7), discreet.Count("down", Fraction(-5, 2), -4, -1)]
    release = discreet.Release(["down", "up"], None, 9, discreet.top_k({"a": 1, "b": 2}, 1, 1).guarantee, counts=counts)
    [axes] = release.plot().axes
    assert bars(axes) == [5, -2.5]
    assert [text.get_text() for text in axes.texts] == ["5", "-2.5"]
    huge = discreet.Release(["x"], None, 9, release.guarantee, counts=[discreet.Count("x", 10**400, 0, 10**400)])
    with pytest.raises(discreet.Error, match=r"^counts must be at most 10\^300"):
        huge.plot()


@pytest.mark.parametrize("counts", [None, 1000])
def test_labels_are_text_whatever_is_in_them(counts):
    said = words(discreet.top_k(ODD, k=3, epsilon=1000, counts=counts).plot())
    assert {"$x_1$", "two\\nlines"} <= set(said)
    assert max(len(text) for text in said if text.startswith("xxx")) == 40
    svg = render(discreet.top_k(ODD, k=3, epsilon=1000, counts=counts).plot(), "svg").decode()
    assert "$x_1$" in svg


def test_long_names_that_begin_alike_stay_different():
    names = [f"{'x' * 50} {end}" for end in ("one", "two")] + [f"{'y' * 50}{i}{'z' * 50}" for i in range(12)]
    for counts in (None, 1000):
        release = discreet.top_k({**dict.fromkeys(names, 90), "rest": 0}, k=14, epsilon=1000, counts=counts)
        said = [text for text in words(release.plot()) if text[:3] in ("xxx", "yyy")]
        assert len(set(said)) == len(said) == 14
        assert max(map(len, said)) == 40
        assert sorted(text[-4:] for text in said if text[0] == "x") == [" one", " two"]


def test_letters_that_no_font_has_are_told_once_without_the_letters():
    # A hieroglyph.
    plot = discreet.top_k({"a\U00013000b": 9, "rest": 0}, k=1, epsilon=1000, counts=1000).plot()
    plots._warn_of_missing_letters.cache_clear()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for ending in ("svg", "png", "png", "pdf"):
            render(plot, ending)
    [said] = told
    assert str(said.message).startswith("pictures have boxes in place of letters that no font here has: fonts of other")
    assert "3000" not in str(said.message)


def test_a_font_of_the_machine_shows_the_letters_that_ours_lacks(recwarn):
    if theme._find_fonts() == ["sans-serif"]:
        pytest.skip("there is no font here beside those of matplotlib: apt-get install fonts-noto-cjk")
    plots._warn_of_missing_letters.cache_clear()
    render(discreet.top_k({"東京": 9, "rest": 0}, k=1, epsilon=1000).plot(), "png")
    assert not recwarn.list


def test_an_empty_list_is_a_picture():
    release = discreet.Release([], None, 9, discreet.top_k({"a": 1, "b": 2}, 1, 1).guarantee, asked=3)
    assert "no item" in words(release.plot())


def test_a_list_that_is_too_long_is_refused_with_the_limit():
    release = discreet.top_k(list(range(MOST_ITEMS + 2)), k=MOST_ITEMS + 1, epsilon=1)
    with pytest.raises(discreet.Error, match=r"^k must be at most 1,000 for a picture, not 1,001: to_frame has all"):
        release.plot()


def grouped(count, **options):
    groups = {f"g{i}": {item: score // (i + 1) for item, score in SCORES.items()} for i in range(count)}
    return discreet.top_k(discreet.grouped(groups, each_user="one"), k=4, epsilon=100, **options)


def test_groups_are_panels_with_one_scale():
    release = grouped(3, counts=10, shortfall=10)
    figure = release.plot()
    panels = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title(loc="left").split(" ")[0] for axes in panels] == ["g0", "g1", "g2"]
    assert len({axes.get_xlim() for axes in panels}) == 1
    for axes, one in zip(panels, release.values(), strict=True):
        assert bars(axes) == [float(count.value) for count in one.counts]
        assert f"({one.listing.bound})" in axes.get_title(loc="left")
    assert "With 95% confidence for each group" in " ".join(words(figure)).replace("In brackets, with", "With")


@pytest.mark.parametrize(("limit", "most"), [("MOST_ITEMS", 10), ("MOST_PANELS", 2)])
def test_groups_beyond_the_limit_are_named_and_not_drawn(monkeypatch, limit, most):
    monkeypatch.setattr(f"discreet.release.plots.{limit}", most)
    figure = grouped(5).plot()
    assert len([axes for axes in figure.axes if axes.get_visible()]) == 2
    assert "3 more groups are not drawn" in " ".join(words(figure))


def test_axes_of_a_reader_are_drawn_in_and_anything_else_is_refused():
    release = discreet.top_k(SCORES, k=5, epsilon=100, counts=1)
    figure = Figure()
    left, right = figure.subplots(1, 2)
    assert release.plot(ax=right) is figure
    assert len(bars(right)) == 5
    assert not left.patches
    assert "Top 5 of 30 items" in right.get_title(loc="left")
    part = Figure().subfigures(1, 2)[0]
    assert release.plot(ax=part.subplots()) is part.canvas.figure
    with pytest.raises(discreet.Error, match=r"^ax must be the axes of matplotlib to draw in, not 3$"):
        release.plot(ax=3)


def plot_named(length, most, shape):
    """A picture of counts of items with names of a length, laid out: a list, the half of a figure, or groups."""
    scores = {f"{i} {'and so forth' * 4}"[:length]: most - i * most // 20 for i in range(8)}
    if shape == "groups":
        groups = discreet.grouped(dict.fromkeys(("DE", "FR", "IT"), scores), each_user="one")
        figure = discreet.top_k(groups, k=5, epsilon=100, counts=100).plot()
    else:
        axes = Figure(figsize=(7.2, 3)).subplots(1, 2)[1] if shape == "half" else None
        figure = discreet.top_k(scores, k=5, epsilon=100, counts=100).plot(ax=axes)
    figure.draw_without_rendering()
    return figure, [each for each in figure.axes if bars(each)]


@pytest.mark.some(6)
@pytest.mark.parametrize("shape", ["list", "half", "groups"])
@pytest.mark.parametrize("most", [9, 1300, 90_000, 2 * 10**9])
@pytest.mark.parametrize("length", [5, 20, 40])
def test_labels_do_not_overlap_and_bars_have_room(length, most, shape):
    figure, panels = plot_named(length, most, shape)
    for axes in panels:
        ticks = [label.get_window_extent() for label in axes.get_xticklabels() if label.get_text()]
        assert all(before.x1 + 3 < after.x0 for before, after in itertools.pairwise(ticks))
        assert 0 in axes.get_xticks()
        names = [label.get_window_extent() for label in axes.get_yticklabels()]
        assert all(upper.y0 > lower.y1 for upper, lower in itertools.pairwise(names))
        numbers = [text.get_window_extent() for text in axes.texts]
        others = [
            label.get_window_extent() for other in panels if other is not axes for label in other.get_yticklabels()
        ]
        assert not any(one.overlaps(other) for one in numbers for other in [*names, *others])
        assert max(bar.get_window_extent().width for bar in axes.patches) > 0.8 * figure.dpi


def test_an_axis_has_as_many_labels_as_fit():
    _, [wide] = plot_named(5, 90_000, "list")
    _, [narrow] = plot_named(5, 2 * 10**9, "half")
    assert len(wide.get_xticks()) == 4
    assert len(narrow.get_xticks()) == 2


def test_names_that_are_long_stand_in_one_column_of_panels():
    columns = {
        length: len({axes.get_position().x0 for axes in plot_named(length, 900, "groups")[1]}) for length in (20, 21)
    }
    assert columns == {20: 2, 21: 1}


@pytest.mark.parametrize("layout", [None, "constrained", "tight"])
def test_names_and_notes_fit_into_the_half_of_a_figure(layout):
    release = discreet.top_k(SCORES, k=12, epsilon=100, counts=1, shortfall=1)
    figure, (left, right) = pyplot.subplots(1, 2, layout=layout)
    release.plot(ax=right)
    figure.draw_without_rendering()
    pyplot.close(figure)
    frame, half = figure.bbox, right.get_window_extent()
    title, notes = (text.get_window_extent() for text in (right._left_title, right.xaxis.label))
    assert "Privacy: epsilon" in right.get_xlabel()
    for box in (title, notes):
        assert frame.x0 <= box.x0 <= box.x1 <= half.x1 + 1
        assert frame.y0 <= box.y0 <= box.y1 <= frame.y1
    assert min(label.get_window_extent().x0 for label in right.get_yticklabels()) > left.get_window_extent().x1


def test_axes_of_a_reader_look_like_ours_and_keep_a_layout_that_was_chosen():
    figure = Figure()
    figure.subplots_adjust(left=0.3)
    axes = figure.subplots()
    discreet.top_k(SCORES, k=3, epsilon=100, counts=1).plot(ax=axes, dark=True)
    assert figure.get_layout_engine() is None
    assert not axes.spines["top"].get_visible()
    assert not axes.spines["right"].get_visible()
    assert matplotlib.colors.to_hex(axes.get_facecolor()) == Theme.of(True).paper
    for text in (axes.get_yticklabels()[0], axes._left_title):
        assert matplotlib.colors.to_hex(text.get_color()) == Theme.of(True).ink


@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_the_same_release_is_the_same_file_whatever_the_reader_has_set(ending):
    release = discreet.top_k(SCORES, k=5, epsilon=100, counts=1)
    before = render(release.plot(), ending)
    with matplotlib.rc_context({"font.size": 20, "axes.facecolor": "red", "savefig.facecolor": "red"}):
        assert render(release.plot(), ending) == before
        assert matplotlib.rcParams["font.size"] == 20


def test_dark_pages_have_the_dark_colours():
    release = discreet.top_k(SCORES, k=5, epsilon=100, counts=1)
    for dark in (False, True):
        svg, theme = render(release.plot(dark=dark), "svg").decode(), Theme.of(dark)
        assert all(colour in svg for colour in (theme.paper, theme.ink, theme.bar, theme.mark))
        assert not any(colour in svg for colour in (Theme.of(not dark).bar, Theme.of(not dark).mark))


def test_a_notebook_shows_a_figure_without_pyplot():
    figure = discreet.top_k(SCORES, k=2, epsilon=1).plot()
    assert isinstance(figure, Canvas)
    assert figure._repr_png_().startswith(b"\x89PNG")


def test_a_release_that_is_not_private_says_so():
    rng = {"epsilon": 1, "rng": random.Random(1)}
    groups = discreet.grouped({"a": SCORES, "b": SCORES}, each_user="one")
    makers = discreet.top_k(SCORES, k=2, **rng), discreet.top_k(groups, k=2, **rng), discreet.sketch([9, 5, 1], **rng)
    for made in makers:
        figure = made.plot()
        assert figure.get_suptitle().startswith("NOT PRIVATE: drawn with the caller's random generator\n")
        assert figure._suptitle.get_color() == Theme().warn
        # It promises nothing, so it has no cost.
        assert " ".join(words(figure)).count("NOT PRIVATE") == 1
        assert "Privacy: epsilon" not in " ".join(words(figure))
    axes = Figure().subplots()
    makers[0].plot(ax=axes)
    assert axes.get_title(loc="left").startswith("NOT PRIVATE")


def test_a_sketch_shows_its_ranks_with_intervals():
    sketch = discreet.sketch([900, 500, 200, 50, 20], epsilon=10, ranks=[1, 2, 5])
    [axes] = sketch.plot().axes
    line, points = axes.lines[0], axes.containers[0]
    assert points[0].get_xdata().tolist() == [1, 2, 5]
    assert points[0].get_ydata().tolist() == [float(score) for score in sketch.noisy]
    half = float(sketch.half_width)
    assert [segment[:, 1].tolist() for segment in points[2][0].get_segments()] == [
        [score - half, score + half] for score in map(float, sketch.noisy)
    ]
    # The curve passes through the fitted scores.
    curve = dict(zip(line.get_xdata(), line.get_ydata(), strict=True))
    assert [curve[rank] for rank in sketch.ranks] == [float(score) for score in sketch.scores]
    many = discreet.sketch(list(range(5000)), epsilon=1)
    assert render(many.plot(), "png").startswith(b"\x89PNG")


@pytest.mark.parametrize("make", [
    lambda: discreet.top_k(SCORES, k=2, epsilon=1), lambda: grouped(2), lambda: discreet.sketch([3, 2, 1], epsilon=1),
])  # fmt: skip
def test_without_matplotlib_the_message_names_the_package(make, monkeypatch):
    monkeypatch.setattr("discreet.release.theme.find_spec", lambda name: None)
    with pytest.raises(ImportError, match=r'^pictures .* extra "plot" .* pip install "matplotlib>=3\.9"$'):
        make().plot()


def test_matplotlib_is_imported_by_a_plot_alone():
    import subprocess

    script = "import sys, discreet; discreet.top_k([3, 2, 1], 1, 1); print('matplotlib' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_pillow_can_read_the_picture():
    content = render(discreet.top_k(SCORES, k=20, epsilon=1).plot(), "png")
    height, width, _ = matplotlib.image.imread(io.BytesIO(content)).shape
    assert (width, height > 300) == (1080, True)


def test_a_sketch_is_drawn_in_german():
    sketch = discreet.sketch([9000, 5000, 2000, 500, 20], epsilon=10, ranks=[1, 2, 5])
    axes = sketch.plot(language="de").axes[0]
    assert axes.get_ylabel() == "Wert"
    assert axes.yaxis.get_major_formatter()(5000, 0) == "5.000"
    drawn = " ".join(text.get_text() for text in axes.figure.findobj(lambda each: hasattr(each, "get_text")))
    assert "Werte an 3 Rängen von 5 Einträgen" in drawn
    assert "Datenschutz: Epsilon 10 für jede Person" in drawn
    assert "Rang" in drawn


def test_lists_without_an_order_are_sorted_for_readers_and_data_by_code_point():
    names = ["Öl", "Zimt", "Petersilie", "Äpfel", "apfel"]
    release = discreet.top_k({**dict.fromkeys(names, 10**6), "Brot": 0}, k=5, epsilon=100)
    told, stored = ["apfel", "Äpfel", "Öl", "Petersilie", "Zimt"], ["Petersilie", "Zimt", "apfel", "Äpfel", "Öl"]
    assert str(release).splitlines()[1:6] == [f"  {name}" for name in told]
    assert re.findall("<li>(.*?)</li>", release._repr_html_()) == told
    drawn = [text.get_text() for text in release.plot(language="de").axes[0].texts]
    assert [name for name in drawn if name in told] == told
    assert release.items == list(release) == release.to_dict()["items"] == stored
    assert release.to_frame("pyarrow")["item"].to_pylist() == stored


@pytest.mark.parametrize(
    ("language", "one", "several"),
    [
        ("en", "1 item was found, fewer than the 3 asked for", "Top 1 of 30 items in each of 2 groups"),
        ("de", "1 Eintrag gefunden, weniger als die verlangten 3", "Top 1 von 30 Einträgen in jeder von 2 Gruppen"),
    ],
)
def test_one_item_has_no_order_to_tell_of(language, one, several):
    release = discreet.Release(["a"], None, None, discreet.top_k({"a": 1, "b": 2}, 1, 1).guarantee, asked=3)
    groups = discreet.top_k(discreet.grouped({"DE": SCORES, "FR": SCORES}, each_user="one"), k=1, epsilon=1)
    assert release.title(find_language(language)) == one
    assert groups.title(find_language(language)) == several
    assert release.plot(language=language).get_suptitle() == one

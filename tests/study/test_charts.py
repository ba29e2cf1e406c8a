"""The pictures of a study: curves on to both ends, in pieces where a step lies between two points, and their looks."""

import xml.etree.ElementTree as ElementTree
from dataclasses import replace
from fractions import Fraction
from itertools import combinations

import matplotlib
import numpy as np
import pytest

from discreet.release import theme
from discreet.release.theme import Theme
from discreet.study.charts import (  # fmt: skip
    DASHES,
    MARKERS,
    is_crowded,
    pictures_of,
    read_gamma,
    sort_by_gamma,
    style_curves,
    trace_line,
)
from discreet.study.curves import Point, Results
from discreet.study.run import gather_results
from discreet.study.tasks import METHODS
from study_rows import curve, study

LIGHT, COLOURS = Theme(), Theme().curves
SVG = "{http://www.w3.org/2000/svg}"


def pieces(values):
    """The stretches between NaNs."""
    gaps = np.flatnonzero(np.isnan(values))
    return [piece[~np.isnan(piece)] for piece in np.split(values, gaps)]


def test_every_curve_goes_from_one_end_to_the_other():
    pictures = pictures_of(study())
    assert len(pictures) == 6
    for picture in pictures:
        for curves in picture.curves.values():
            for points in curves.values():
                x, _, _ = trace_line(picture, points)
                assert (x[0], x[-1]) == (picture.low, picture.high)


def test_beyond_its_points_a_curve_is_as_at_its_end():
    early, late = (curve("methods", "A", 1, name, middle, ("top",)) for name, middle in (("early", 1), ("late", 100)))
    [picture] = pictures_of(Results(early + late, [], []))
    assert trace_line(picture, late)[1][0] == late[0].probability
    assert trace_line(picture, early)[1][-1] == early[-1].probability
    # The files have what was computed, and no more.
    assert picture.curves["top"]["early"] == early


@pytest.mark.parametrize(
    ("levels", "places", "count"),
    [
        ([0.0, 0.2, 0.4, 0.6, 0.8, 1.0], None, 1),
        ([0.0, 0.0, 0.9, 1.0], None, 2),
        ([0.0, 0.6, 1.0], None, 3),
        # A step that is narrower than can be seen is a line straight up.
        ([0.0, 0.0, 1.0, 1.0], [1.0, 9.99, 10.0, 100.0], 1),
    ],
)
def test_no_straight_line_crosses_a_step(levels, places, count):
    places = places or [10 ** (i / 4) for i in range(len(levels))]
    points = [Point("methods", "A", 9, 1, "m", x, "top", level, 0.0) for x, level in zip(places, levels, strict=True)]
    [picture] = pictures_of(Results(points, [], []))
    x, y, error = trace_line(picture, points)
    assert len(pieces(y)) == len(pieces(x)) == len(pieces(error)) == count
    assert picture.svg.startswith("<?xml")


def test_a_picture_is_the_same_each_time_and_says_what_it_shows():
    one, other = (pictures_of(study())[0] for _ in range(2))
    assert one.svg == other.svg
    assert "dc:date" not in one.svg
    # Whatever the reader has set for drawings of their own.
    with matplotlib.rc_context({"font.size": 20, "axes.facecolor": "red"}):
        assert pictures_of(study())[0].svg == one.svg
        assert matplotlib.rcParams["font.size"] == 20
    assert one.description.startswith("TOP for ALPHA, k = 10. canonical, gamma = 3/4 reaches one half by epsilon = ")


def test_names_are_text_whatever_is_in_them():
    name = "$x_1$ <b> & 名"
    [picture] = pictures_of(Results(curve("methods", name, 1, "m, $y$", 1, ("top",)), [], []))
    texts = ["".join(text.itertext()) for text in ElementTree.fromstring(picture.svg).iter(f"{SVG}text")]  # noqa: S314
    assert {f"{name}, 1,000 items, k = 1", "m, $y$", "epsilon", "probability"} <= set(texts)


def test_one_point_is_a_picture_too():
    [picture] = pictures_of(Results([Point("methods", "A", 9, 1, "m", 2.0, "top", 0.5, 0.1)], [], []))
    assert "</svg>" in picture.svg


def test_without_matplotlib_one_sentence_says_what_is_missing(monkeypatch):
    monkeypatch.setattr(theme, "find_spec", lambda name: None)
    with pytest.raises(
        ImportError, match=r'^pictures need matplotlib, which the extra "plot" .* pip install "matplotlib>=3\.9"$'
    ):
        pictures_of(study())[0].svg  # noqa: B018


@pytest.mark.parametrize(
    ("method", "gamma"),
    [("gamma = 1/4", Fraction(1, 4)), ("canonical, gamma = 15/16, at most 2 items a user", Fraction(15, 16)),
     ("gamma = 0.1", Fraction(1, 10)), ("gamma = 1/0", None), ("my gamma", None), ("peeling", None)],
)  # fmt: skip
def test_a_gamma_is_read_from_a_name(method, gamma):
    assert read_gamma(method) == gamma


def test_gammas_are_sorted_as_numbers():
    names = ["1", "15/16", "1/4", "3/4", "0", "1/2"]
    points = [point for name in names for point in curve("gammas", "A", 1, f"gamma = {name}", 1)]
    [picture] = pictures_of(gather_results([Results(points, [], [])]))
    ordered = [f"gamma = {name}" for name in ("0", "1/4", "1/2", "3/4", "15/16", "1")]
    assert picture.methods == ordered
    assert sort_by_gamma(["peeling", "b, gamma = 1", "a, gamma = 1/2"]) == ["peeling", "a, gamma = 1/2", "b, gamma = 1"]


def channels(colour):
    return [part / 255 for part in bytes.fromhex(colour[1:])]


def luminance(parts):
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_colours_are_seen_on_light_and_dark_pages(dark):
    colours = Theme.of(dark)
    paper = channels(colours.paper)
    assert min(contrast(channels(colour), paper) for colour in colours.curves) >= 3
    words = (colours.ink, colours.quiet, colours.warn)
    assert min(contrast(channels(colour), paper) for colour in words) >= 4.5
    # The outline of a bar and its interval are seen on the paper, and the interval on the bar.
    assert min(contrast(channels(colours.mark), channels(other)) for other in (colours.paper, colours.bar)) >= 3


def test_the_colours_of_a_dark_page_are_those_of_the_filter_of_a_style_sheet():
    weights = np.array([0.213, 0.715, 0.072])
    turn = 2 * weights - np.eye(3)  # the matrix of hue-rotate(180deg)
    for colour in (*COLOURS, LIGHT.warn, LIGHT.ink, LIGHT.paper, LIGHT.bar):
        turned = np.clip(turn @ (1 - np.array(channels(colour))), 0, 1)
        blended = 1 - (1 - turned) * (1 - np.array(channels("#171d29")))  # mix-blend-mode: screen, over the dark card
        assert np.allclose(channels(theme.darken(colour)), blended, atol=0.003)


SIGHTS = {
    "usual": np.eye(3),
    "no red": np.array([[0.1523, 1.0526, -0.2049], [0.1145, 0.7863, 0.0992], [-0.0039, -0.0481, 1.0520]]),
    "no green": np.array([[0.3673, 0.8606, -0.2280], [0.2801, 0.6725, 0.0474], [-0.0118, 0.0429, 0.9689]]),
    "grey": np.array([[0.2126, 0.7152, 0.0722]] * 3),
}
"""How linear light is seen, after Machado, Oliveira and Fernandes (2009)."""


def lab(parts, sight):
    """The colour in CIELAB, where a distance of about 2 can just be seen."""
    linear = np.array([part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts])
    to_xyz = np.array([[0.4125, 0.3576, 0.1804], [0.2127, 0.7152, 0.0722], [0.0193, 0.1192, 0.9503]])
    xyz = to_xyz @ np.clip(sight @ linear, 0, 1) / (0.9505, 1, 1.0888)
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("sight", SIGHTS)
def test_curves_with_the_same_dashes_are_told_apart_by_colour(sight, dark):
    looks = list(style_curves([f"method {i}" for i in range(len(COLOURS))], Theme.of(dark)).values())
    for one, other in combinations(looks, 2):
        first, second = (lab(channels(look["color"]), SIGHTS[sight]) for look in (one, other))
        apart = np.linalg.norm(first - second)
        assert apart >= 12 or one["linestyle"] != other["linestyle"]
        assert apart >= 12 or sight == "grey"


def test_no_two_methods_share_dashes_and_colour():
    looks = style_curves([f"method {i}" for i in range(len(COLOURS) * len(DASHES))], LIGHT)
    assert len({(look["color"], look["linestyle"]) for look in looks.values()}) == len(looks) == 44
    assert len({look["marker"] for look in list(looks.values())[:8]}) == 8


def rises(figure, halves):
    """Curves on an axis from 0 to 1 that rise from 0 to 1 at these places."""
    return [
        Point(figure, "A", 9, 1, f"method {i}", x, "top", float(x >= half), 0.0)
        for i, half in enumerate(halves)
        for x in np.linspace(0, 1, 101).tolist()
    ]


def test_an_axis_is_logarithmic_where_curves_crowd_at_its_left_end():
    assert is_crowded(rises("shapes", [0.02, 0.05, 0.6]))
    assert not is_crowded(rises("shapes", [0.02, 0.5, 0.6]))
    assert not is_crowded([])
    [picture] = pictures_of(Results(rises("shapes", [0.02, 0.05, 0.6]), [], []))
    assert (picture.is_logarithmic, picture.low, picture.high) == (True, 0.01, 1.0)
    # A point at zero has no place there, and stays in the files.
    assert np.nanmin(trace_line(picture, picture.curves["top"]["method 0"])[0]) == 0.01
    assert picture.points[0].x == 0
    assert picture.svg.startswith("<?xml")
    [picture] = pictures_of(Results(rises("shapes", [0.02, 0.5, 0.6]), [], []))
    assert (picture.is_logarithmic, picture.low, picture.high) == (False, 0.0, 1.0)
    # One crowded picture decides for the figure.
    both = rises("shapes", [0.02]) + [replace(point, k=2) for point in rises("shapes", [0.7])]
    assert [picture.is_logarithmic for picture in pictures_of(Results(both, [], []))] == [True, True]


def named(picture):
    """How often each method is named in a picture."""
    texts = ["".join(text.itertext()) for text in ElementTree.fromstring(picture.svg).iter(f"{SVG}text")]  # noqa: S314
    return [texts.count(method) for method in picture.methods]


def test_a_curve_has_its_name_beside_it_if_there_is_room():
    apart = [point for i, name in enumerate("abc") for point in curve("methods", "A", 1, name, 10**i, ("top",))]
    assert named(*pictures_of(Results(apart, [], []))) == [2, 2, 2]
    # One that runs between two others is named in the legend alone.
    middles = {"left": 1.0, "between": 1.05, "right": 1.1}
    close = [point for name, middle in middles.items() for point in curve("methods", "A", 1, name, middle, ("top",))]
    assert named(*pictures_of(Results(close, [], []))) == [2, 1, 2]


def test_the_methods_of_a_study_and_all_candidates_of_a_plan_look_different():
    plans = [f"canonical, gamma = {gamma}" for gamma in ("1/3", "1/2", "2/3", "3/4", "7/8", "15/16", "1")]
    plans += [
        f"{name}, at most {n} items a user" for n in (1, 2, 3) for name in ("histogram", "canonical, gamma = 3/4")
    ]
    for methods in (list(METHODS), [*plans, "peeling", "core", "one-shot, exponential"]):
        looks = {tuple(map(str, look.values())) for look in style_curves(methods, LIGHT).values()}
        assert len(looks) == len(methods)
        if len(methods) <= len(MARKERS):
            assert len({look["marker"] for look in style_curves(methods, LIGHT).values()}) == len(methods)

"""The colours and dashes of curves: gammas in their order, and no two methods alike."""

import colorsys
import re
from fractions import Fraction
from itertools import combinations, pairwise

import pytest

from discreet.study.charts import panels_of
from discreet.study.curves import FIGURES, Results
from discreet.study.run import gather_results
from discreet.study.tasks import METHODS
from discreet.study.theme import DARK, DASHES, LIGHT, SHADES, read_gamma, sort_by_gamma, style, tone
from study_rows import curve

THEMES = pytest.mark.parametrize("theme", [LIGHT, DARK], ids=["light", "dark"])


def channels(colour):
    return [part / 255 for part in bytes.fromhex(colour[1:])]


def luminance(colour):
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in channels(colour)]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def looks(theme):
    """The colour and the dashes of each class of curves."""
    rules = re.findall(
        r"^\.([cr]\d+)\{color:(#[0-9a-f]{6})(?:;stroke-dasharray:([\d ]+))?\}$", style(theme), re.MULTILINE
    )
    return {name: (colour, dashes) for name, colour, dashes in rules}


@pytest.mark.parametrize(
    ("method", "gamma"),
    [("gamma = 1/4", Fraction(1, 4)), ("canonical, gamma = 15/16, at most 2 items a user", Fraction(15, 16)),
     ("gamma = 0.1", Fraction(1, 10)), ("gamma = 1/0", None), ("my gamma", None), ("peeling", None)],
)  # fmt: skip
def test_a_gamma_is_read_from_a_name(method, gamma):
    assert read_gamma(method) == gamma


def test_gammas_are_sorted_as_numbers_and_their_shades_with_them():
    names = ["1", "15/16", "1/4", "3/4", "0", "1/2"]
    points = [point for name in names for point in curve("gammas", "A", 1, f"gamma = {name}", 1)]
    [panel, *_] = panels_of(gather_results([Results(points, [], [])]), FIGURES["gammas"])
    ordered = [f"gamma = {name}" for name in ("0", "1/4", "1/2", "3/4", "15/16", "1")]
    assert panel.methods == ordered
    shades = [int(tone(panel.methods, method)[1:]) for method in ordered]
    assert shades == sorted(set(shades))
    assert (shades[0], shades[-1]) == (0, SHADES)
    assert sort_by_gamma(["peeling", "b, gamma = 1", "a, gamma = 1/2"]) == ["peeling", "a, gamma = 1/2", "b, gamma = 1"]


@THEMES
def test_the_scale_of_gammas_goes_one_way_and_is_seen(theme):
    scale = [looks(theme)[f"r{i}"][0] for i in range(SHADES + 1)]
    steps = [luminance(other) - luminance(one) for one, other in pairwise(scale)]
    assert all(step < 0 for step in steps) or all(step > 0 for step in steps)
    assert min(contrast(colour, theme.paper) for colour in scale) >= 3
    assert contrast(scale[0], scale[-1]) >= 3


@THEMES
def test_no_two_methods_share_dashes_and_hue(theme):
    known = looks(theme)
    others = {name: look for name, look in known.items() if name[0] == "c"}
    assert len(set(others.values())) == len(others) == len(theme.hues) * len(DASHES)
    assert all(dashes for _, dashes in others.values())
    assert not any(dashes for name, (_, dashes) in known.items() if name[0] == "r")
    # Colours that differ in name alone would be one: hues are apart, or one of them is grey.
    for one, other in combinations(theme.hues, 2):
        (h1, _, s1), (h2, _, s2) = (colorsys.rgb_to_hls(*channels(colour)) for colour in (one, other))
        apart = abs(h1 - h2)
        assert min(apart, 1 - apart) > 0.04 or min(s1, s2) < 0.15, (one, other)
    assert min(contrast(colour, theme.paper) for colour in theme.hues) >= 4.5
    # Of as many as a figure has, those with the same dashes are of quite another hue.
    for i, j in combinations(range(8), 2):
        if others[f"c{i}"][1] == others[f"c{j}"][1]:
            (h1, _, s1), (h2, _, s2) = (colorsys.rgb_to_hls(*channels(others[f"c{n}"][0])) for n in (i, j))
            assert min(abs(h1 - h2), 1 - abs(h1 - h2)) > 0.2 or min(s1, s2) < 0.15


def test_the_methods_of_a_study_and_all_candidates_of_a_plan_look_different():
    plans = [f"canonical, gamma = {gamma}" for gamma in ("1/3", "1/2", "2/3", "3/4", "7/8", "15/16", "1")]
    plans += [
        f"{name}, at most {n} items a user" for n in (1, 2, 3) for name in ("histogram", "canonical, gamma = 3/4")
    ]
    for methods in (list(METHODS), [*plans, "peeling", "core", "one-shot, exponential"]):
        assert len({tone(methods, method) for method in methods}) == len(methods)

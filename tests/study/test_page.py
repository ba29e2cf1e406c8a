"""The page of a study: whole, alone, and drawn by a real browser."""

import math
import re

import pytest

from browser import CHROMIUM, page
from discreet.study.charts import Axis, tick_text
from discreet.study.page import budget_table, time_table, write_page
from discreet.study.results import NeededEpsilon, Results, Time
from study_rows import METHODS, curve, study

NOTES = ["Canonical was cheapest.", "Peeling was not.", "A note with <script>alert('no')</script> & more."]
SHOWN = "[...document.querySelectorAll('#methods figure:not([hidden])')]"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_page(study(), NOTES, path)
    return path


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    if CHROMIUM is None:
        pytest.skip("there is no Chromium here: apt-get install chromium")
    with page(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture
def opened(chromium, written):
    chromium.open(written)
    return chromium


def choose(opened, name, value):
    opened.ask(f"document.querySelector('[name={name}][value=\"{value}\"]').click()")


def test_the_page_asks_for_no_other_file(written):
    text = written.read_text(encoding="utf-8")
    assert not re.findall(r"""(?:src|href)=["'](?!data:|#)|@import|url\(""", text)
    assert set(re.findall(r"https?://[^\"' ]+", text)) == {"http://www.w3.org/2000/svg"}  # a name, not an address


def test_the_page_says_that_it_is_not_private_and_what_the_notes_say(written):
    text = written.read_text(encoding="utf-8")
    assert "Not private." in text
    assert '<p class="verdict">Canonical was cheapest.</p>' in text
    assert "<li>Peeling was not.</li>" in text
    assert text.index("Canonical was cheapest.") < text.index("<figure") < text.index("Peeling was not.")
    assert "<script>alert" not in text
    assert '<b>&"Beta' not in text


def test_a_page_of_nothing_is_a_page(tmp_path):
    write_page(Results([], [], []), [], tmp_path / "page.html")
    assert "<section" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.corners
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1400])
def test_the_page_opens_without_complaint_request_or_overflow(chromium, written, width, dark):
    chromium.requests.clear()
    chromium.open(written, width, dark)
    assert chromium.complaints == []
    assert [url for url in chromium.requests if not url.startswith("data:")] == [written.as_uri()]
    assert chromium.ask("document.documentElement.scrollWidth") == width
    # On a phone there is one goal at a time.
    shown = chromium.ask(f"{SHOWN}.map(f => f.querySelectorAll('polyline').length)")
    assert shown == ([3] if width == 390 else [3, 3, 3])
    assert chromium.ask(f"{SHOWN}.every(f => f.querySelector('polyline').getBBox().width > 100)")


def test_the_first_chart_is_on_the_first_screen_of_a_phone(chromium, written):
    chromium.open(written, 390)
    boxes = "[...document.querySelectorAll('figure svg')].map(s => s.getBoundingClientRect()).filter(b => b.width)"
    first = chromium.ask(f"(b => [b.left, b.right, b.bottom])({boxes}[0])")
    assert 0 <= first[0] < first[1] <= 390
    assert first[2] <= 844


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 800, 1280, 1600])
def test_names_stand_at_their_lines_and_do_not_overlap(chromium, written, width, dark):
    chromium.open(written, width, dark)
    names = """[...document.querySelectorAll("figure")].filter(f => f.getClientRects().length).map(f => {
        const box = e => (b => [b.left, b.right, b.top, b.bottom])(e.getBoundingClientRect())
        return {frame: box(f), lines: f.querySelectorAll("polyline").length,
                names: [...f.querySelectorAll("text.name")].map(box)}
    })"""
    figures = chromium.ask(names)
    assert len(figures) >= 4
    for figure in figures:
        assert len(figure["names"]) >= min(figure["lines"], 8)
        left, right, top, bottom = figure["frame"]
        for i, one in enumerate(figure["names"]):
            assert left <= one[0] < one[1] <= right
            assert top <= one[2] < one[3] <= bottom
            for other in figure["names"][:i]:
                # Half a pixel of a line of text is its spacing.
                apart = one[1] <= other[0] or other[1] <= one[0] or one[3] <= other[2] + 2 or other[3] <= one[2] + 2
                assert apart, (one, other)


def test_the_printed_page_is_dark_on_white(chromium, written):
    chromium.open(written, 1000, dark=True)
    colours = "[document.body, document.querySelector('h1')].map(e => getComputedStyle(e).color)"
    before = chromium.ask(colours)
    chromium.print_as_paper()
    assert chromium.ask(colours) == ["rgb(27, 35, 48)"] * 2 != before
    # What was chosen is told, and what might have been is not.
    seen = "[...document.querySelectorAll('#methods label, nav')].filter(e => e.getClientRects().length)"
    assert chromium.ask(f"{seen}.map(e => e.innerText)") == ["ALPHA", "100", "all"]


def test_the_controls_change_what_is_drawn(opened):
    where = SHOWN + ".map(f => [f.dataset.vector, f.dataset.k, f.dataset.goal].join(' '))"
    assert opened.ask(where) == [f"ALPHA 100 {goal}" for goal in ("top", "great", "good")]
    choose(opened, "methods-k", 10)
    choose(opened, "methods-goal", "great")
    assert opened.ask(where) == ["ALPHA 10 great"]
    opened.ask("document.querySelectorAll('[name=methods-vector]')[1].click()")
    assert opened.ask(where) == ["<b>&\"Beta' 10 great"]


def test_a_choice_that_is_not_there_gives_way(opened):
    opened.ask("document.querySelectorAll('[name=methods-vector]')[1].click()")
    assert opened.ask(SHOWN + ".map(f => f.dataset.k)") == ["10"] * 3
    assert opened.ask("document.querySelector('[name=methods-k][value=\"100\"]').disabled")


def test_the_legend_hides_and_shows_a_method(opened):
    seen = SHOWN + ".map(f => f.querySelector('polyline[data-m=\"1\"]').getClientRects().length)"
    button = "document.querySelector('#methods .legend [data-m=\"1\"]')"
    assert opened.ask(seen) == [1, 1, 1]
    opened.ask(f"{button}.click()")
    assert opened.ask(seen) == [0, 0, 0]
    assert opened.ask(f"{button}.getAttribute('aria-pressed')") == "false"
    opened.ask(f"{button}.click()")
    assert opened.ask(seen) == [1, 1, 1]


def test_pointing_tells_the_values(opened):
    box = f"{SHOWN}[0].querySelector('svg').getBoundingClientRect()"
    opened.ask(f"{SHOWN}[0].scrollIntoView({{block: 'center'}}); new Promise(requestAnimationFrame)")
    opened.move(*opened.ask(f"(b => [b.left + b.width / 2, b.top + b.height / 2])({box})"))
    told = opened.ask("document.querySelector('#methods .tip').innerText")
    assert "epsilon = " in told
    assert all(method in told for method in METHODS)
    assert "%" in told
    opened.move(1, 1)
    assert opened.ask("document.querySelector('#methods .tip').hidden")


def test_arrow_keys_step_through_points_and_show_intervals(opened):
    opened.ask("document.querySelector('#canonical-noises figure:not([hidden]) svg').focus()")
    tip, told = "document.querySelector('#canonical-noises .tip').innerText", []
    for key in ("ArrowRight", "ArrowRight", "ArrowLeft"):
        opened.press(key)
        told.append(opened.ask(tip))
    assert told[0] == told[2] != told[1]
    assert "± 3.0" in told[0]


def test_budgets_change_with_the_probability(opened):
    table = "document.querySelectorAll('#budgets .part:not([hidden]) td')[1].innerText"
    assert opened.ask(table) == "300 30\N{MULTIPLICATION SIGN}"
    choose(opened, "budgets-probability", 0.5)
    assert opened.ask(table) == "60.0 30\N{MULTIPLICATION SIGN}"


def test_intervals_are_bands(opened):
    bands = (
        "[...document.querySelectorAll('polygon')].every(b => b.dataset.m === '1' && b.closest('#canonical-noises'))"
    )
    assert opened.ask("document.querySelectorAll('polygon').length") == 3
    assert opened.ask(bands)


@pytest.mark.parametrize(
    ("axis", "ticks"),
    [
        (Axis("epsilon", True, 0.01, 100), ["0.01", "0.1", "1", "10", "100"]),
        (Axis("epsilon", True, 0.9, 11), ["1", "2", "5", "10"]),
        (Axis("epsilon", True, 1.1, 1.9), ["1.2", "1.4", "1.6", "1.8"]),
        (Axis("epsilon", True, 1e-7, 1e7), ["10⁻⁶", "0.001", "1", "1,000", "10⁶"]),
        (Axis("shape", False, 0, 1), ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        (Axis("shape", False, 3, 3), ["3"]),
    ],
)
def test_ticks_are_few_and_round(axis, ticks):
    assert [tick_text(value) for value in axis.ticks()] == ticks


def test_one_point_is_in_the_middle():
    assert Axis("epsilon", True, 2, 2).share(2) == 0.5


def test_a_figure_that_is_not_there_is_a_dash():
    budgets = [NeededEpsilon("A", 9, 1, "m", 0.5, 12.345, 2.0), NeededEpsilon("A", 9, 1, "n", 0.5, math.inf, math.inf)]
    found = re.findall("<td[^>]*>(.+?)</td>", budget_table(budgets))
    assert found == ["12.3 <small>2&times;</small>", "&ndash; <small>&ndash;</small>"]
    times = [Time("A", 9, 1, "m", 0.0123, "d"), Time("A", 9, 1, "n", math.nan, "d")]
    assert re.findall("<td>(.+?)</td>", time_table(times).partition("<tfoot>")[0]) == ["12.3 ms", "&ndash;"]


def test_a_page_that_cannot_be_written_leaves_the_old_one(tmp_path):
    path = tmp_path / "page.html"
    write_page(Results(curve("methods", "A", 1, "m", 1), [], []), ["old"], path)
    broken = Results(curve("methods", "A", 1, "m", 1, goals=("unknown",)), [], [])
    with pytest.raises(KeyError):
        write_page(broken, ["new"], path)
    assert '<p class="verdict">old</p>' in path.read_text(encoding="utf-8")
    assert list(tmp_path.iterdir()) == [path]

"""The page of a study: whole, alone, and drawn by a real browser."""

import base64
import hashlib
import math
import re

import pytest

from browser import CHROMIUM, page
from discreet.study import page as pages
from discreet.study.charts import pictures_of
from discreet.study.curves import NeededEpsilon, Results, Time
from study_rows import curve, study

NOTES = ["Canonical was cheapest.", "Peeling was not.", "A note with <script>alert('no')</script> & more."]
SHOWN = "[...document.querySelectorAll('#methods details[open] img')]"


def write_page(results, notes, path, sketch=None, **given):
    path.write_text(pages.page(results, notes, sketch, **given), encoding="utf-8")


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


def test_the_page_asks_for_no_other_file(written):
    text = written.read_text(encoding="utf-8")
    assert not re.findall(r"""(?:src|href)=["'](?!data:|#)|@import|url\(""", text)
    assert "http:" not in text
    assert "https:" not in text


def test_the_policy_allows_this_style_and_no_script(written):
    text = written.read_text(encoding="utf-8")
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]+)"', text)
    style = text.partition("<style>")[2].partition("</style>")[0]
    hashed = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{hashed}'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    assert " style=" not in text
    assert "<script" not in text


def test_the_page_says_that_it_is_not_private_and_what_the_notes_say(written):
    text = written.read_text(encoding="utf-8")
    assert "Not private." in text
    assert '<p class="verdict">Canonical was cheapest.</p>' in text
    assert "<li>Peeling was not.</li>" in text
    assert text.index("Canonical was cheapest.") < text.index("<img") < text.index("Peeling was not.")
    assert "<script>alert" not in text
    assert '<b>&"Beta' not in text


def test_a_page_of_nothing_is_a_page(tmp_path):
    write_page(Results([], [], []), [], tmp_path / "page.html")
    assert "<section" in (tmp_path / "page.html").read_text(encoding="utf-8")


@pytest.mark.long
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1400])
def test_the_page_opens_without_complaint_request_or_overflow(chromium, written, width, dark):
    chromium.requests.clear()
    chromium.open(written, width, dark)
    assert chromium.complaints == []
    assert [url for url in chromium.requests if not url.startswith("data:")] == [written.as_uri()]
    assert chromium.ask("document.documentElement.scrollWidth") == width
    # One picture of a figure is open, and its browser can read it.
    assert chromium.ask(f"{SHOWN}.map(i => i.alt.slice(0, 20))") == ["TOP for ALPHA, k = 1"]
    assert chromium.ask(f"{SHOWN}[0].decode().then(() => {SHOWN}[0].naturalWidth)") > 600


def test_the_first_chart_is_on_the_first_screen_of_a_phone(chromium, written):
    chromium.open(written, 390)
    left, top = chromium.ask(f"(b => [b.left, b.top])({SHOWN}[0].getBoundingClientRect())")
    assert 0 <= left < 390
    # The first row of panels ends by the middle of the picture.
    assert top + chromium.ask(f"{SHOWN}[0].getBoundingClientRect().height") / 2 <= 844


@pytest.mark.long
@pytest.mark.parametrize("width", [390, 1400])
def test_words_in_a_picture_are_inside_and_do_not_overlap(chromium, written, tmp_path, width):
    for number, picture in enumerate(pictures_of(study())):
        (tmp_path / f"{number}.html").write_text(f"<meta charset=utf-8>{picture.svg}", encoding="utf-8")
        chromium.open(tmp_path / f"{number}.html", width)
        frame, *boxes = chromium.ask("""[...document.querySelectorAll("svg, svg text")].map(e =>
            (b => [b.left, b.right, b.top, b.bottom])(e.getBoundingClientRect()))""")
        assert len(boxes) > 10
        for i, one in enumerate(boxes):
            assert frame[0] - 1 <= one[0] < one[1] <= frame[1] + 1
            assert frame[2] - 1 <= one[2] < one[3] <= frame[3] + 1
            for other in boxes[:i]:
                # Two pixels of a line of text are its spacing.
                apart = one[1] <= other[0] or other[1] <= one[0] or one[3] <= other[2] + 2 or other[3] <= one[2] + 2
                assert apart, (picture.subject, one, other)


def test_the_printed_page_is_dark_on_white(chromium, written):
    chromium.open(written, 1000, dark=True)
    colours = "[document.body, document.querySelector('h1')].map(e => getComputedStyle(e).color)"
    before = chromium.ask(colours)
    chromium.print_as_paper()
    assert chromium.ask(colours) == ["rgb(27, 35, 48)"] * 2 != before
    # What is open is printed, and what might be is not.
    seen = "[...document.querySelectorAll('#methods summary, nav')].filter(e => e.getClientRects().length)"
    assert chromium.ask(f"{seen}.map(e => e.innerText.replaceAll('\\u00a0', ' '))") == ["ALPHA, 1,000 items, k = 100"]
    assert chromium.ask(f"getComputedStyle({SHOWN}[0]).filter") == "none"


def test_opening_a_picture_or_a_table_closes_the_one_before(chromium, written):
    chromium.open(written)
    opened = (
        "[...document.querySelectorAll('%s details[open] summary')].map(e => e.innerText.replaceAll('\u00a0', ' '))"
    )
    assert chromium.ask(opened % "#methods") == ["ALPHA, 1,000 items, k = 100"]
    chromium.ask("document.querySelectorAll('#methods summary')[2].click()")
    assert chromium.ask(opened % "#methods") == ["<b>&\"Beta', 1,000 items, k = 10"]
    table = "document.querySelectorAll('#budgets [open] td')[1].innerText"
    assert chromium.ask(opened % "#budgets") == ["with probability 90%"]
    assert chromium.ask(table) == "300 30\N{MULTIPLICATION SIGN}"
    chromium.ask("document.querySelector('#budgets summary').click()")
    assert chromium.ask(opened % "#budgets") == ["with probability 50%"]
    assert chromium.ask(table) == "60.0 30\N{MULTIPLICATION SIGN}"


def test_a_page_without_pictures_has_its_tables(tmp_path):
    write_page(study(), NOTES, tmp_path / "page.html", pictures=[])
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<img" not in text
    assert text.count("<table>") == 4


def test_a_figure_that_is_not_there_is_a_dash(tmp_path):
    budgets = [NeededEpsilon("A", 9, 1, "m", 0.5, 12.345, 2.0), NeededEpsilon("A", 9, 1, "n", 0.5, math.inf, math.inf)]
    times = [Time("A", 9, 1, "m", 0.0123, "d"), Time("A", 9, 1, "n", math.nan, "d")]
    write_page(Results([], budgets, times), [], tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    found = re.findall("<td[^>]*>(.+?)</td>", text.partition("<tfoot>")[0])
    assert found == ["12.3 <small>2\N{MULTIPLICATION SIGN}</small>", "– <small>–</small>", "12.3 ms", "–"]  # noqa: RUF001


def test_a_page_that_cannot_be_written_leaves_the_old_one(tmp_path):
    path = tmp_path / "page.html"
    write_page(Results(curve("methods", "A", 1, "m", 1), [], []), ["old"], path)
    broken = Results(curve("methods", "A", 1, "m", 1, goals=("unknown",)), [], [])
    with pytest.raises(ValueError, match="unknown"):
        write_page(broken, ["new"], path)
    assert '<p class="verdict">old</p>' in path.read_text(encoding="utf-8")
    assert list(tmp_path.iterdir()) == [path]

"""The site: alone, whole, readable by people and programs, and driven by a real browser."""

import base64
import csv
import hashlib
import io
import json
import re
import time
from dataclasses import replace
from fractions import Fraction
from html import unescape
from importlib.resources import files
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
from markdown_it import MarkdownIt

import discreet
from chart_folder import ARTISTS, HEAD, SONGS, TITLES, fill_folder, publish, read_site, write_charts
from discreet.language import Language
from discreet.publish.charts_file import read_charts
from discreet.publish.editions import Edition
from discreet.publish.pages import (
    ChartPages,
    Earlier,
    Site,
    describe_list,
    list_files,
    list_pictures,
    make_site,
    render,
)
from discreet.publish.trends import describe_trend

pytestmark = pytest.mark.xdist_group("site")
"""One process makes the site and starts the browser, for all tests."""

GERMAN = 'title = "Was Menschen hören"\nlanguage = "de"\nledger = "budget.db"\nout = "site"\n'

AXE = Path(__file__).parents[2] / ".venv" / "axe" / "node_modules" / "axe-core" / "axe.min.js"

ODD = "<script>alert('x')</script> & \"y\""


MONTHS = [("songs", "2025-08"), ("songs", "2025-09"), ("songs", "2025-10"), ("artists", "2025-10")]


def release_charts(folder):
    """A ledger with the lists of two charts and three months, of scores: publishing events takes many times as long."""
    ledger = discreet.Ledger.create(folder / "budget.db", epsilon=20, unit="listeners")
    write_charts(folder, SONGS + ARTISTS)
    songs = {"DE": dict(zip(TITLES, range(900, 100, -100), strict=True)), "FR": dict.fromkeys(TITLES, 50)}
    for chart, _ in MONTHS:
        if chart == "songs":
            grouped = discreet.grouped(songs, by="country", each_user="one")
            discreet.top_k(grouped, k=3, epsilon="0.25", counts="0.25", ledger=ledger)
        else:
            discreet.top_k({"abba": 40, "bach": 30, "cure": 20, "dido": 10}, k=2, epsilon="0.1", ledger=ledger)
    return ledger


def write_site(folder, ledger, head=HEAD):
    """Writes the site of those lists, in the language of a charts file that begins with `head`."""
    write_charts(folder, SONGS + ARTISTS, head)
    file = read_charts(folder / "charts.toml")
    charts = {chart.id: ChartPages(chart, []) for chart in file.charts}
    for (name, month), entry in zip(MONTHS, ledger.history(), strict=True):
        pages = charts[name]
        charged = replace(entry, edition={"chart": name, "period": month, "settings": pages.chart.fingerprint})
        pages.editions.append(Edition(month, entry.release, charged))
    for name, text in list_files(Site(file, list(charts.values()), ledger)).items():
        path = folder / "site" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return folder / "site"


@pytest.fixture(scope="module")
def ledger(tmp_path_factory):
    return release_charts(tmp_path_factory.mktemp("released"))


@pytest.fixture(scope="module")
def site(tmp_path_factory, ledger):
    """A site of two charts and three months."""
    return write_site(tmp_path_factory.mktemp("charts"), ledger)


def release(scores, **terms):
    rng = np.random.default_rng(1)
    return discreet.top_k(scores, **{"k": 2, "epsilon": 100, "rng": rng, **terms})


def list_to_html(release, earlier):
    return render("list.html", list=describe_list(release, earlier))


def make_files(tmp_path, editions, title="Films"):
    write_charts(tmp_path, ARTISTS.replace('"Artists"', json.dumps(title)))
    file = read_charts(tmp_path / "charts.toml")
    return list_files(Site(file, [ChartPages(file.charts[0], editions)], None))


def test_every_page_tells_a_budget_that_is_not_below_the_exact_one(tmp_path):
    write_charts(tmp_path, ARTISTS)
    ledger = discreet.Ledger.create(tmp_path / "b.db", epsilon=3 + Fraction(1, 10**18), unit="readers")
    discreet.top_k({"abba": 3, "bach": 2}, k=1, epsilon=1 + Fraction(1, 10**18), ledger=ledger)
    page = list_files(Site(read_charts(tmp_path / "charts.toml"), [], ledger))["index.html"]
    # The exact bound is 95.2575%.
    assert "is at most 95.3% sure of it after seeing all lists that this privacy budget will ever allow." in page


def test_nothing_is_loaded_from_elsewhere_and_every_link_leads_somewhere(site):
    found = read_site(site)
    pages = {name: text.decode() for name, text in found.items() if name.endswith(".html")}
    assert len(pages) == 2 + 4 + 2
    # Without a script all groups are there.
    assert pages["songs.html"].count('<section class="list" data-find=') == 2
    assert not re.search("<section[^>]* hidden", pages["songs.html"])
    for name, text in pages.items():
        assert not re.findall(r"https?:|\bsrc=|@import|url\(", text), name
        assert set(re.findall(r'href="([^"#:]+)"', text)) <= set(found), name


def test_downloads_hold_what_was_released(site):
    found = read_site(site)
    release = discreet.GroupedRelease.from_json(found["data/songs.2025-10.json"].decode())
    rows = list(csv.DictReader(io.StringIO(found["data/songs.2025-10.csv"].decode())))
    assert list(rows[0]) == ["country", "item", "count", "low", "high"]
    assert [row["item"] for row in rows if row["country"] == "FR"] == [count.item for count in release["FR"].counts]


def test_the_statement_is_of_each_chart(site):
    found = read_site(site)
    text = found["statement.md"].decode()
    assert re.findall("^## (.*)", text, re.MULTILINE) == [
        "Most played songs, October 2025: Top 3 in each of 2 groups by country",
        "Artists, October 2025: Top 2 of 4 items",
    ]
    entries = found["statement.yaml"].decode().split("---\n")
    assert ['name: "Most played songs"' in entries[0], 'name: "Artists"' in entries[1]] == [True, True]
    assert 'release_type: "Many releases"' in entries[0]
    assert b"How is my privacy protected?" in found["songs.html"]
    assert b"of the listeners is in the data" in found["songs.html"]


@pytest.mark.parametrize(
    ("adjacency", "hidden", "kept"),
    [
        ("add-remove", "whether any single one of the R&amp;D staff is in the data", "what the rows of"),
        ("swap", "what the rows of any single one of the R&amp;D staff are", "in the data"),
    ],
)
@pytest.mark.parametrize("delta", [None, "1e-6"])
def test_a_site_says_it_hides_what_the_adjacency_hides(tmp_path, adjacency, hidden, kept, delta):
    """With swap, who is in the data is no secret."""
    write_charts(tmp_path, ARTISTS)
    terms = {"epsilon": 1, "unit": "R&D staff", "adjacency": adjacency, "delta": delta}
    ledger = discreet.Ledger.create(tmp_path / "budget.db", **terms)
    words = list_files(make_site(read_charts(tmp_path / "charts.toml"), ledger))["index.html"]
    assert f"It hides {hidden}; the next sentences say how well.</p>" in words
    assert kept not in words


def test_names_cannot_end_a_tag(tmp_path):
    scores = {ODD: 9, "b": 8, "c": 1}
    grouped = discreet.grouped({ODD: scores, "x": scores}, each_user="one")
    for scored in (scores, grouped):
        for text in make_files(tmp_path, [Edition("2026-10", release(scored, counts=100))], ODD).values():
            if text.startswith("<!doctype"):
                assert "<script>alert" not in text
                assert text.count("<script>") == 1


@pytest.mark.parametrize("title", ["[a](https://x.example)", "<https://x.example>", "![a](x.png)", "*a* &amp; b_c_"])
def test_a_title_stays_text_in_the_statement(tmp_path, title):
    page = make_files(tmp_path, [Edition("2026-10", release({"a": 9, "b": 8, "c": 1}))], title)["statement.html"]
    (heading,) = re.findall("<h2>(.*?), October 2026: Top 2 of 3 items</h2>", page)
    assert unescape(heading) == title
    assert "<" not in heading


@pytest.mark.parametrize(
    "odd", ["<script>alert(1)</script>", "<img src=x>", "[a](b)", "`a`", "*a* _b_ &lt; \\*", "a\\"]
)
def test_names_are_text_in_the_markdown_of_a_statement(tmp_path, odd):
    """Any reader of Markdown may render the download, so tags, links and emphasis are escaped."""
    write_charts(
        tmp_path,
        ARTISTS.replace('title = "Artists"', f"title = '{odd}'"),
        HEAD.replace('"What', f"'{odd}").replace('to"', "to'"),
    )
    ledger = discreet.Ledger.create(tmp_path / "budget.db", epsilon=1, unit=odd)
    file = read_charts(tmp_path / "charts.toml")
    scores = {"DE": {"a": 9, "b": 8, "c": 1}}
    found = discreet.top_k(discreet.grouped(scores, by=odd, each_user="one"), k=2, epsilon="0.5", ledger=ledger)
    edition = Edition("2026-10", found, ledger.history()[0])
    text = list_files(Site(file, [ChartPages(file.charts[0], [edition])], ledger))["statement.md"]
    tokens = MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    inline = [part for token in tokens if token.type == "inline" for part in token.children]
    assert {part.type for part in inline} <= {"text", "text_special", "softbreak", "code_inline"}
    assert "html_block" not in {token.type for token in tokens}
    said = ["".join(part.content for part in token.children) for token in tokens if token.type == "inline"]
    assert sum(line.count(odd) for line in said) == 5


def test_counts_are_bars_with_intervals_in_a_table():
    html = list_to_html(release({"a": 90, "b": 50, "c": 1}, counts=2000), None)
    assert re.findall(r'<rect x="(\d+)" y="3" width="(\d+)"', html) == [("0", "1000"), ("0", "556")]
    assert re.findall(r'class="number">([^<]*)<', html) == ["90", "50"]
    assert re.findall(r'rowheader">(\w)<', html) == ["a", "b"]
    assert html.count('aria-hidden="true"') == 2
    assert "by noisy count" in html


def test_without_counts_there_is_a_list():
    assert "<ul" in list_to_html(release({"a": 90, "b": 50, "c": 1}), None)
    assert "which says nothing about rank" in list_to_html(release({"a": 90, "b": 50, "c": 1}), None)
    ordered = list_to_html(release({"a": 50, "b": 90, "c": 1}, mechanism=discreet.OneShot()), None)
    assert re.findall(r"<li>(\w)</li>", ordered) == ["b", "a"]
    assert "<ol" in ordered


def test_an_interval_says_if_few_items_of_each_user_count():
    counted = release({"a": 9, "b": 8, "c": 1}, counts=2000)
    told = "where the number without noise lies, with a chance of at least 95% for each item by itself"
    assert f"{told}." in describe_list(counted, None)["caption"]
    assert f"{told}, counting at most 2 items of each user." in describe_list(counted, None, bound=2)["caption"]


def test_what_came_in_and_went_out_is_said_as_data():
    before, after = release({"a": 9, "b": 8, "c": 1}), release({"a": 1, "b": 8, "c": 9})
    html = list_to_html(after, Earlier(before, "September 2026"))
    assert "<b>Came in since September 2026:</b> c. <b>Went out since September 2026:</b> a." in html
    assert "by chance" not in html
    assert re.findall(r'<li>(\w) <span class="new">([^<]+)<', html) == [("c", "not listed for September 2026")]
    assert "The same items as in" in list_to_html(after, Earlier(after, "September 2026"))
    counted = list_to_html(release({"a": 9, "b": 8, "c": 1}, counts=2000), Earlier(
        release({"a": 7, "b": 1, "c": 5}, counts=2000), "September 2026"
    ))  # fmt: skip
    assert re.findall(r'class="number before">([^<]*)<', counted) == ["7", "&ndash;"]


def test_many_periods_fold_and_an_edited_chart_is_told(tmp_path):
    write_charts(tmp_path, ARTISTS)
    file = read_charts(tmp_path / "charts.toml")
    told = file.charts[0].fingerprint
    one, two = release({"a": 9, "b": 8, "c": 1}), release({"a": 9, "b": 8, "c": 1}, k=1)
    book = discreet.Ledger.create(tmp_path / "budget.db", epsilon=1, unit="x")
    discreet.top_k({"a": 9, "b": 8}, k=1, epsilon="0.1", ledger=book)
    entry = replace(book.history()[0], time="2026-02-01T00:00:00Z")
    before, now = (
        replace(entry, edition={"chart": "artists", "period": None, "settings": digits}) for digits in ("0" * 8, told)
    )
    editions = [Edition(f"2025-{month:02}", one, before) for month in range(1, 13)]
    pages = ChartPages(file.charts[0], [*editions, Edition("2026-01", two, now)])
    texts = list_files(Site(file, [pages], None))
    first, last = texts["artists.2025-01.html"], texts["artists.2026-01.html"]
    # Only the page where they changed says it.
    assert "the settings changed from those of December 2025: length of the list 1 (before: 2)." in last
    assert "settings changed" not in first
    assert "Released 1 February 2026, 00:00 UTC." in last
    assert last.index("artists.2025-02.html") < last.index("<details>") < last.index("artists.2025-01.html")


@pytest.mark.parametrize(
    ("period", "name"), [("2026", "2026"), ("2026-W01", "week 1 of 2026"), ("2026-05", "May 2026")]
)
def test_periods_have_names(period, name):
    assert Language("en").period(period) == name


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_every_colour_can_be_read():
    """At least 4.5 to 1 for text, and 3 to 1 for lines, as WCAG asks."""
    style = files("discreet.publish").joinpath("page.css").read_text(encoding="utf-8")
    for scheme in re.findall(r":root \{([^}]*)\}", style)[:2]:
        colours = {name: luminance(colour) for name, colour in re.findall(r"--([\w-]+): (#[0-9a-f]{6})", scheme)}

        def contrast(one, other, colours=colours):
            low, high = sorted((colours[one], colours[other]))
            return (high + 0.05) / (low + 0.05)

        for paper in ("paper", "panel"):
            for ink in ("ink", "soft", "link", "new"):
                assert contrast(ink, paper) >= 4.5, (ink, paper)
        assert contrast("warn", "warn-paper") >= 4.5
        assert min(contrast("mark", "paper"), contrast("mark", "bar")) >= 3


SHOWN = "[...document.querySelectorAll('section[data-find]:not([hidden]) h2')].map(each => each.textContent)"


def search(chromium, text):
    chromium.ask(f"search.value = {json.dumps(text)}; search.dispatchEvent(new Event('input'))")


def test_a_browser_opens_every_page(chromium, site):
    for file in sorted(site.glob("*.html")):
        for width, dark in ((1200, False), (360, True)):
            chromium.open(file, width=width, dark=dark)
            assert chromium.ask("document.documentElement.scrollWidth") <= width, file
            assert chromium.ask("document.querySelector('h1') !== null"), file
    assert chromium.complaints == []
    assert [url for url in chromium.requests if not url.startswith(("file:", "data:", "about:"))] == []


def test_a_search_finds_groups_and_items_and_stays_in_other_periods(chromium, site):
    chromium.open(site / "songs.html")
    assert chromium.ask(SHOWN) == ["DE", "FR"]
    search(chromium, " fR")
    assert chromium.ask(SHOWN) == ["FR"]
    assert chromium.ask("found.textContent") == "1 of 2 shown"
    assert unquote(chromium.ask("location.hash")) == "#q= fR"
    chromium.ask("document.querySelector('.periods a:not([aria-current])').click()")
    deadline = time.monotonic() + 30
    while not chromium.ask("location.pathname + document.readyState").endswith("songs.2025-09.htmlcomplete"):
        assert time.monotonic() < deadline, "the other period does not open"
    assert chromium.ask(SHOWN) == ["FR"]
    search(chromium, "nobody")
    assert chromium.ask(SHOWN) == []
    search(chromium, "")
    assert chromium.ask(SHOWN) == ["DE", "FR"]
    search(chromium, "song")
    assert chromium.ask(SHOWN) == ["DE", "FR"]
    assert chromium.complaints == []


def test_a_script_whose_page_gives_way_is_asked_again(chromium, site):
    chromium.open(site / "songs.html")
    other = (site / "artists.html").as_uri()
    script = f"document.title.startsWith('Artists') || (location.href = {json.dumps(other)}, new Promise(() => {{}}))"
    assert chromium.ask(script) is True
    chromium.complaints.clear()


def test_a_trend_has_a_line_and_a_table(chromium, tmp_path):
    months = [("2026-01", 1300, 900, 5), ("2026-02", 1200, 3, 950), ("2026-03", 1100, 1000, 5)]
    lists = [
        Edition(month, release({"a": a, "b": b, "c": c}, epsilon=10**6, counts=10**6)) for month, a, b, c in months
    ]
    (tmp_path / "artists.html").write_text(make_files(tmp_path, lists)["artists.html"])
    chromium.open(tmp_path / "artists.html")
    chromium.ask("document.querySelectorAll('details').forEach(each => { each.open = true })")
    lines = chromium.ask(
        "[...document.querySelectorAll('svg.trend')].map(each => "
        "[each.getAttribute('aria-label'), each.querySelector('.line').getTotalLength() > 0, "
        "each.querySelectorAll('circle').length, each.getBoundingClientRect().height > 20])"
    )
    assert lines == [
        ["a: January 2026 1,300, February 2026 1,200, March 2026 1,100", True, 3, True],
        # It was not on the list in between.
        ["b: January 2026 900, March 2026 1,000", False, 2, True],
    ]
    # The intervals are too narrow to be seen, so the last one stands below the line in words.
    assert chromium.ask("[...document.querySelectorAll('.ends')].map(each => each.lastElementChild.innerText)") == [
        "March 2026: 1,100 (1,100 to 1,100)", "March 2026: 1,000 (1,000 to 1,000)",
    ]  # fmt: skip
    cells = "[...document.querySelectorAll('table.grid tbody td')].map(each => each.innerText.split('\\n')[0])"
    assert chromium.ask(cells) == ["1,300", "1,200", "1,100", "900", "\N{EN DASH}", "1,000"]
    assert chromium.complaints == []


SEEN = "[...document.querySelectorAll('{}')].filter(e => e.getBoundingClientRect() && e.checkVisibility()).length"


def test_on_paper_groups_stay_whole_and_have_their_trends(chromium, tmp_path):
    scores = {name: {"a": most, "b": 9, "c": 1} for name, most in (("DE", 1300), ("FR", 700))}
    groups = discreet.grouped(scores, each_user="one")
    lists = [Edition(f"2026-0{month}", release(groups, counts=2000)) for month in (1, 2)]
    (tmp_path / "artists.html").write_text(make_files(tmp_path, lists)["artists.html"])
    chromium.open(tmp_path / "artists.html")
    lines = SEEN.format("svg.trend")
    assert chromium.ask(lines) == 0
    chromium.print_as_paper()
    assert chromium.ask(lines) == 4
    assert chromium.ask(SEEN.format(".groups > .list > .whole > table")) == 2
    assert chromium.ask("getComputedStyle(document.querySelector('.groups .whole')).breakInside") == "avoid"
    # A list that fits on no page would leave the one before it empty.
    many = {f"item {i:02}": 99 - i for i in range(40)}
    long = discreet.grouped({"DE": many, "FR": many}, each_user="one")
    page = make_files(tmp_path, [Edition("2026-01", release(long, k=30))])["artists.html"]
    assert "whole" not in page.partition("<body>")[2]
    assert chromium.ask(SEEN.format("summary, .numbers table")) == 0


def test_the_front_page_has_its_title_once(site):
    index, songs = ((site / f"{name}.html").read_text() for name in ("index", "songs"))
    assert index.partition("<body>")[2].count("What people listen to") == 1
    assert '<a href="index.html">What people listen to</a>' in songs


def test_a_policy_allows_the_style_and_the_script_of_the_page_and_no_others(site):
    for file in site.glob("*.html"):
        text = file.read_text()
        policy = re.search('Content-Security-Policy" content="([^"]*)"', text)[1]
        assert "unsafe" not in policy
        for tag in ("style", "script"):
            (inline,) = re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL)
            allowed = base64.b64encode(hashlib.sha256(inline.encode()).digest()).decode()
            assert f"{tag}-src 'sha256-{allowed}'" in policy
        assert not re.search(r"<[^>]*\s(style|on\w+)=", text)


def test_a_browser_runs_no_script_that_is_not_the_page_s_own(chromium, site):
    chromium.open(site / "songs.html")
    # Its own has run: it shows the search box.
    assert chromium.ask("document.querySelector('.search').hidden") is False
    assert chromium.ask("getComputedStyle(document.querySelector('.skip')).position") == "absolute"
    more = "const more = document.createElement('script'); more.textContent = 'window.posed = true';"
    assert chromium.ask(f"{more} document.body.append(more); window.posed === undefined")
    chromium.complaints.clear()


@pytest.mark.parametrize("fragment", ["#%", "#%E0%A4%A", "#%25", "#nobody"])
def test_whatever_a_link_has_for_a_fragment_the_groups_are_shown(chromium, site, fragment):
    chromium.open(site / "songs.html")
    chromium.ask(
        "new Promise(done => { addEventListener('hashchange', done, {once: true}); "
        f"location.hash = {json.dumps(fragment)} }}).then(() => null)"
    )
    assert chromium.ask(SHOWN) == ["DE", "FR"]
    assert chromium.complaints == []


def test_keys_alone_reach_everything(chromium, site):
    chromium.open(site / "songs.html")
    chromium.ask("document.querySelectorAll('details').forEach(each => { each.open = true })")
    stops = chromium.ask("[...document.querySelectorAll('a, input, summary, [tabindex]')].length")
    assert stops > 10
    reached = []
    for _ in range(stops):
        chromium.press("Tab")
        reached.append(chromium.ask(
            "[...document.querySelectorAll('a, input, summary, [tabindex]')].indexOf(document.activeElement)"
        ))  # fmt: skip
    assert reached == list(range(stops))
    # The first stop is the way past everything, and it can be seen while it has the focus.
    chromium.ask("document.activeElement.blur(); document.querySelector('.skip').focus()")
    assert chromium.ask("document.querySelector('.skip').getBoundingClientRect().left >= 0")
    chromium.ask("document.querySelector('#search').focus()")
    chromium.type("fr")
    assert chromium.ask(SHOWN) == ["FR"]
    assert chromium.ask("found.textContent") == "1 of 2 shown"
    assert chromium.ask("document.querySelector('label[for=search]').control.id") == "search"
    roles = "[...document.querySelectorAll('tbody tr')].every(row => row.querySelector('th[scope=row]'))"
    assert chromium.ask(roles)


@pytest.mark.long
@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("language", ["en", "de"])
def test_axe_finds_no_fault_in_any_page(chromium, site, ledger, language, dark, tmp_path):
    """Contrast, labels, roles, headings and regions, of pages with everything unfolded."""
    if not AXE.exists():
        pytest.skip("axe-core is not installed here: npm install --prefix .venv/axe axe-core@4")
    # German words are longer.
    folder = site if language == "en" else write_site(tmp_path, ledger, GERMAN)
    for file in ("index.html", "statement.html", "songs.html", "songs.2025-08.html", "artists.html"):
        for width in (1200, 360):
            chromium.open(folder / file, width=width, dark=dark)
            assert chromium.ask("document.documentElement.lang") == language
            assert chromium.ask("document.documentElement.scrollWidth") <= width, file
            chromium.ask("document.querySelectorAll('details').forEach(each => { each.open = true })")
            chromium.ask(f"{AXE.read_text(encoding='utf-8')}; null")
            faults = chromium.ask(
                "axe.run().then(found => found.violations.map(each => [each.id, each.nodes.map(node => node.html)]))"
            )
            assert faults == [], (file, width)
    # What is too pale is found.
    chromium.ask("document.querySelector('h1').animate([{color: '#bbb'}, {color: '#bbb'}], 1e9); null")
    found = chromium.ask("axe.run().then(found => found.violations.map(each => each.id))")
    assert ("color-contrast" in found) is not dark
    chromium.complaints.clear()


def test_a_list_says_how_good_it_is(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fill_folder(tmp_path, SONGS + 'shortfall = "1"\n' + ARTISTS + 'shortfall = "auto"\n')
    assert publish("--as-of", "2025-11-01") == 0
    site = read_site()
    months = discreet.GroupedRelease.from_json(site["data/songs.2025-10.json"].decode())
    page = unescape(site["songs.html"].decode())
    for release in months.values():
        assert f'<p class="shortfall">{release.describe_shortfall()[0]}</p>' in page
    assert "The confidence of 95% is for each list by itself, and about the users who count in its group." in page
    assert "In brackets" not in page
    artists = discreet.Release.from_json(site["data/artists.2025-10.json"].decode())
    assert page.count("With 95% confidence") == 2
    assert unescape(site["artists.html"].decode()).count(artists.describe_shortfall()[0]) == 1
    assert artists.guarantee.epsilon == Fraction(1, 10)
    assert site["data/artists.2025-10.csv"].decode().splitlines()[0] == "item,shortfall_upper"


def test_a_list_whose_bound_is_above_the_limit_is_withheld(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    # Every bound is 10,000 above the noisy lead. The limit is read when the site is made, not when a list is drawn.
    monkeypatch.setattr("discreet.release.shortfall.find_half_widths", lambda rate: (10_000, 10_000))
    noisy = ARTISTS + 'shortfall = "0.01"\nwithhold_above = 3\n'
    fill_folder(tmp_path, SONGS + noisy)
    assert publish("--as-of", "2025-11-01") == 0
    site = read_site()
    page, index = unescape(site["artists.html"].decode()), unescape(site["index.html"].decode())
    assert re.search(r"Too noisy to publish: an item left out .* by up to [\d,]+ .*, a bound with 95% confidence", page)
    assert "The bound of a list says how far an item left out may be ahead of an item on it. Lists" in page
    assert "Lists whose bound is above 3 are not published; of all lists that are drawn, at most 5%" in page
    assert re.search(r"Released \d+ \w+ 20", page)
    assert "too noisy to publish" in index
    assert not [name for name in site if name.startswith("data/artists")]
    for name in ("abba", "bach", "cure", "dido"):
        assert name not in page + index
    assert "Download this period" not in page
    write_charts(tmp_path, SONGS + noisy.replace("withhold_above = 3", "withhold_above = 30000"))
    spent = discreet.Ledger("budget.db").spent
    assert publish("--as-of", "2025-11-01") == 0
    assert discreet.Ledger("budget.db").spent == spent
    site = read_site()
    assert "Too noisy" not in site["artists.html"].decode()
    assert "settings changed" not in site["artists.html"].decode()
    assert "data/artists.2025-10.csv" in site


@pytest.mark.long
def test_of_groups_only_those_above_the_limit_are_withheld(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fill_folder(tmp_path, SONGS + 'shortfall = "5"\nwithhold_above = 0\n')
    assert publish("--as-of", "2025-11-01") == 0
    [pages] = make_site(read_charts("charts.toml"), discreet.Ledger("budget.db")).charts
    edition = pages.latest
    uppers = iter([0, 1])
    lists = {
        group: replace(release, shortfall=replace(release.shortfall, value=-2, low=-4, high=4, upper=next(uppers)))
        for group, release in edition.release.items()
    }
    mixed = replace(edition, release=replace(edition.release, releases=lists))
    site = list_files(Site(read_charts("charts.toml"), [replace(pages, editions=[mixed])], None))
    page = unescape(site["songs.html"])
    assert page.count("Too noisy to publish") == 1
    shown = discreet.GroupedRelease.from_json(site["data/songs.2025-10.json"])
    assert list(shown) == ["DE"]
    assert {row.split(",")[0] for row in site["data/songs.2025-10.csv"].splitlines()} == {"country", "DE"}


def test_a_trend_breaks_where_the_item_or_the_settings_are_others(tmp_path):
    write_charts(tmp_path, ARTISTS)
    file = read_charts(tmp_path / "charts.toml")
    terms = {"k": 2, "counts": 2000}
    lists = [release({"a": a, "b": b, "c": c}, **terms) for a, b, c in [(9, 8, 1), (9, 1, 8), (9, 8, 1), (5, 8, 1)]]
    book = discreet.Ledger.create(tmp_path / "budget.db", epsilon=1, unit="x")
    discreet.top_k({"a": 9, "b": 8}, k=1, epsilon="0.1", ledger=book)
    entry = book.history()[0]

    def edition(month, settings):
        charged = replace(entry, edition={"chart": "artists", "period": month, "settings": settings})
        return Edition(month, lists[int(month[-1]) - 1], charged)

    months = [edition(f"2026-0{month}", "old" if month < 4 else "new") for month in range(1, 5)]
    trend = describe_trend(file.charts[0], months, None, Language("en"))
    paths = {item["label"]: re.findall("[ML]", item["path"]) for item in trend["items"]}
    assert paths == {"b": ["M", "M", "M"], "a": ["M", "L", "L", "M"]}
    assert trend["is_broken"]
    assert [item["cells"][1] for item in trend["items"]] == [None, {"value": "9", "interval": "9 to 9"}]
    assert describe_trend(file.charts[0], months[:1], None, Language("en")) is None


def test_a_german_site_is_german_and_its_pictures_are_kept(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    fill_folder(tmp_path, ARTISTS + 'counts = "0.5"\nshortfall = "1"\n')
    write_charts(tmp_path, ARTISTS + 'counts = "0.5"\nshortfall = "1"\n', GERMAN)
    assert publish("--as-of", "2025-11-01") == 0
    site = read_site()
    page = unescape(site["artists.html"].decode())
    assert '<html lang="de">' in page
    words = set(re.findall(r"\w+", re.sub("<(style|script)>.*?</\\1>|<[^>]*>", "", page, flags=re.DOTALL)))
    assert not words & {"the", "of", "and", "is", "in the", "from", "with", "this"}
    assert "Eine Person, die diese Liste sieht und es vorher für 50\xa0% wahrscheinlich hielt, dass" in page
    assert 'name: "Artists"' in site["statement.yaml"].decode()
    assert site["data/artists.2025-10.png"].startswith(b"\x89PNG")
    assert site["data/artists.2025-10.svg"].lstrip().startswith(b"<?xml")
    # The second run takes the pictures of the first, and draws one that was damaged.
    monkeypatch.setattr("discreet.release.release.Release.plot", lambda *_, **__: pytest.fail("drawn again"))
    made = make_site(read_charts("charts.toml"), discreet.Ledger("budget.db"))
    assert list_pictures(made, tmp_path / "site") == {
        name: site[name] for name in ("data/artists.2025-10.png", "data/artists.2025-10.svg")
    }
    with pytest.raises(pytest.fail.Exception, match="drawn again"):
        list_pictures(made, tmp_path)

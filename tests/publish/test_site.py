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
from urllib.parse import unquote

import numpy as np
import pytest

import browser
import discreet
from chart_folder import ARTISTS, SONGS, fill_folder, publish, read_site, write_charts
from discreet.publish.charts_file import read_charts
from discreet.publish.editions import Edition
from discreet.publish.pages import ChartPages, Earlier, Site, describe_list, list_files, make_site, name_period, render

pytestmark = pytest.mark.xdist_group("site")
"""One process makes the site and starts the browser, for all tests."""

ODD = "<script>alert('x')</script> & \"y\""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """A site of two charts and three months."""
    folder = tmp_path_factory.mktemp("charts")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        fill_folder(folder, SONGS.replace('every = "month"', 'every = "month"\nfrom = "2025-08"') + ARTISTS)
        assert publish("--as-of", "2025-11-01") == 0
    return folder / "site"


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    if browser.CHROMIUM is None:
        pytest.skip("there is no Chromium here: apt-get install chromium")
    with browser.page(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


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
    assert "epsilon = 3.00000000001 (rounded up), of which 1.00000000001 (rounded up) is spent" in page


def test_nothing_is_loaded_from_elsewhere_and_every_link_leads_somewhere(site):
    found = read_site(site)
    pages = {name: text.decode() for name, text in found.items() if name.endswith(".html")}
    assert len(pages) == 2 + 4 + 2
    # Without a script all groups are there.
    assert pages["songs.html"].count('<section class="list" data-group=') == 2
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
        "Most played songs: Top 3 in each of 2 groups by country", "Artists: Top 2 of 4 items",
    ]  # fmt: skip
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
    assert f"as far as the next sentence says, {hidden}. Whoever looks at" in words
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
    (heading,) = re.findall("<h2>(.*?): Top 2 of 3 items</h2>", page)
    assert unescape(heading) == title
    assert "<" not in heading


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


def test_what_came_in_and_went_out_is_said_as_data():
    before, after = release({"a": 9, "b": 8, "c": 1}), release({"a": 1, "b": 8, "c": 9})
    html = list_to_html(after, Earlier(before, "September 2026"))
    assert "<b>Came in since September 2026:</b> c. <b>Went out since September 2026:</b> a." in html
    assert "by chance" in html
    assert re.findall(r'<li>(\w) <span class="new">', html) == ["c"]
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
    assert "stays as it is: k 2, not 1." in first
    assert "have changed" not in last
    assert "Released 2026-02-01 00:00:00 UTC." in last
    assert last.index("artists.2025-02.html") < last.index("<details>") < last.index("artists.2025-01.html")


@pytest.mark.parametrize(
    ("period", "name"), [("2026", "2026"), ("2026-W01", "week 1 of 2026"), ("2026-05", "May 2026")]
)
def test_periods_have_names(period, name):
    assert name_period(period) == name


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


SHOWN = "[...document.querySelectorAll('section[data-group]:not([hidden]) h2')].map(each => each.textContent)"


def test_a_browser_opens_every_page(chromium, site):
    for file in sorted(site.glob("*.html")):
        for width, dark in ((1200, False), (360, True)):
            chromium.open(file, width=width, dark=dark)
            assert chromium.ask("document.documentElement.scrollWidth") <= width, file
            assert chromium.ask("document.querySelector('h1') !== null"), file
    assert chromium.complaints == []
    assert [url for url in chromium.requests if not url.startswith(("file:", "data:", "about:"))] == []


def test_a_group_is_chosen_and_stays_chosen_in_other_periods(chromium, site):
    chromium.open(site / "songs.html")
    assert chromium.ask(SHOWN) == ["DE"]
    chromium.ask("group.value = '1'; group.dispatchEvent(new Event('change'))")
    assert chromium.ask(SHOWN) == ["FR"]
    assert unquote(chromium.ask("location.hash")) == "#FR"
    chromium.ask("document.querySelector('.periods a:not([aria-current])').click()")
    deadline = time.monotonic() + 30
    while not chromium.ask("location.pathname + document.readyState").endswith("songs.2025-09.htmlcomplete"):
        assert time.monotonic() < deadline, "the other period does not open"
    assert chromium.ask(SHOWN) == ["FR"]
    chromium.ask("group.value = ''; group.dispatchEvent(new Event('change'))")
    assert chromium.ask(SHOWN) == ["DE", "FR"]
    assert chromium.complaints == []


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
    # Its own has run: it shows one group alone.
    assert chromium.ask(SHOWN) == ["DE"]
    assert chromium.ask("getComputedStyle(document.querySelector('.skip')).position") == "absolute"
    more = "const more = document.createElement('script'); more.textContent = 'window.posed = true';"
    assert chromium.ask(f"{more} document.body.append(more); window.posed === undefined")
    chromium.complaints.clear()


@pytest.mark.parametrize("fragment", ["#%", "#%E0%A4%A", "#%25", "#nobody"])
def test_whatever_a_link_has_for_a_fragment_a_group_is_shown(chromium, site, fragment):
    chromium.open(site / "songs.html")
    chromium.ask(
        "new Promise(done => { addEventListener('hashchange', done, {once: true}); "
        f"location.hash = {json.dumps(fragment)} }}).then(() => null)"
    )
    assert chromium.ask(SHOWN) == ["DE"]
    assert chromium.complaints == []


def test_keys_alone_reach_everything(chromium, site):
    chromium.open(site / "songs.html")
    reached = chromium.ask(
        "[...document.querySelectorAll('a, select, summary')]"
        ".every(each => (each.focus(), document.activeElement === each))"
    )
    assert reached
    assert chromium.ask("document.querySelector('label[for=group]').control.id") == "group"
    roles = "[...document.querySelectorAll('tbody tr')].every(row => row.querySelector('th[scope=row]'))"
    assert chromium.ask(roles)


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
    monkeypatch.setattr("discreet.release.shortfall.interval_half_width", lambda rate, alpha: 10_000)
    noisy = ARTISTS + 'shortfall = "0.01"\nwithhold_above = 3\n'
    fill_folder(tmp_path, SONGS + noisy)
    assert publish("--as-of", "2025-11-01") == 0
    site = read_site()
    page, index = unescape(site["artists.html"].decode()), unescape(site["index.html"].decode())
    assert "Too noisy to publish: an item left out may be ahead of an item on the list by" in page
    assert "Lists whose bound is above 3 are not published; of all lists, published or not, at most 5%" in page
    assert "Released 20" in page
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
    assert "have changed" not in site["artists.html"].decode()
    assert "data/artists.2025-10.csv" in site


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

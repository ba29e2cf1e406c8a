"""The documentation builds without a warning, from what the repository has, and asks no other host for anything."""

import re
import runpy
import sys
from pathlib import Path

import pytest

import browser
import discreet
from site_pages import DOCS, ROOT, run

pytestmark = pytest.mark.site
MADE = {"cli.md", "notebook.md"}
"""The pages that are made when the site is built."""


@pytest.fixture(scope="module")
def site():
    """The site as `make docs` has built it: strictly, so that it is there only if there was no warning."""
    built = ROOT / "site"
    if not built.is_dir():
        pytest.fail("there is no site to look at: make docs-check builds it first")
    return built


def test_every_page_is_there(site):
    pages = {str(Path(page).with_suffix(".html")) for page in all_pages()}
    assert {str(page.relative_to(site)) for page in site.rglob("*.html")} == pages | {"404.html"}


def test_every_page_is_in_the_navigation():
    listed = re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert sorted(listed) == sorted(all_pages())


def all_pages():
    return {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} | MADE


def test_every_picture_is_there(site):
    seen = 0
    for page in site.rglob("*.html"):
        for picture in pictures_of(page):
            assert (page.parent / picture.partition("#")[0]).is_file(), (page, picture)
            seen += 1
    assert seen > 10


def pictures_of(page):
    """The addresses of the pictures of a page but its mark, in their order."""
    found = re.findall(r"<img\b[^>]*src=[\"']?([^\"' >]+)", page.read_text(encoding="utf-8"))
    return [picture for picture in found if not picture.startswith("data:") and "assets/logo.svg" not in picture]


def test_every_picture_has_a_dark_version_and_the_first_page_has_one(site):
    for page in site.rglob("*.html"):
        # What the notebook has drawn is shown as it is there, on white.
        pictures = [each for each in pictures_of(page) if not each.endswith("pictures/notebook-chart.png")]
        assert [picture.replace(".svg#only-light", "-dark.svg#only-dark") for picture in pictures[::2]] == pictures[
            1::2
        ]
        for light, dark in zip(pictures[::2], pictures[1::2], strict=True):
            assert light.endswith("#only-light")
            drawn = [(page.parent / name.partition("#")[0]).read_text(encoding="utf-8") for name in (light, dark)]
            assert "#ffffff" in drawn[0]
            assert "#ffffff" not in drawn[1]
            assert re.sub("#[0-9a-f]{6}", "", drawn[0]) == re.sub("#[0-9a-f]{6}", "", drawn[1])
    assert [name.partition("#")[0] for name in pictures_of(site / "index.html")[::2]] == [
        *("pictures/movies.svg", "pictures/navigation.svg")
    ]


def test_the_picture_of_the_navigation_has_every_title(site):
    drawn = (site / "pictures" / "navigation.svg").read_text(encoding="utf-8")
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("\nnav:\n")[2]
    titles = re.findall(r"^ {6}- \"?(.+?)\"?: [\w/-]+\.md$", nav, re.MULTILINE)
    assert len(titles) > 40
    assert [title for title in titles if f"<!-- {title} -->" not in drawn] == []


def test_every_fence_became_a_block(site):
    for page in site.rglob("*.html"):
        assert "```" not in page.read_text(encoding="utf-8"), page


def test_nothing_is_loaded_from_another_host(site):
    for page in [*site.rglob("*.html"), *site.rglob("*.css")]:
        text = page.read_text(encoding="utf-8")
        loaded = re.findall(
            r"<(?:script|img|iframe|source|link)\b[^>]*(?:src|href)=[\"']?((?:https?:)?//[^\"' >]*)", text
        )
        assert loaded + re.findall(r"(?:url\(|@import )[\"']?((?:https?:)?//[^)\"']*)", text) == [], page


def test_the_python_reference_has_every_public_name(site):
    text = (site / "api.html").read_text(encoding="utf-8")
    for name in set(discreet.__all__) - {"__version__"}:
        assert re.search(rf'id="discreet\.{name}"', text), name
    for name in discreet.bounds.__all__:
        assert f'id="discreet.bounds.{name}"' in text, name
    assert "discreet.__version__" in text


def test_the_command_line_reference_has_every_command_and_option(site):
    text = runpy.run_path(str(DOCS / "_build" / "command_line.py"))["reference"]()
    page = (site / "cli.html").read_text(encoding="utf-8")
    commands = re.findall(r"^## (discreet.*)$", text, re.MULTILINE)
    assert {"discreet select", "discreet plan", "discreet budget init", "discreet budget export"} < set(commands)
    for command in commands:
        printed = run(sys.executable, "-m", "discreet", *command.split()[1:], "--help", folder=Path.cwd())
        section = text.partition(f"\n## {command}\n")[2].partition("\n## ")[0]
        options = {word for word in re.findall(r"^  (-[\w-]+)", printed, re.MULTILINE) if word != "-h"}
        assert {word for word in options if f"`{word}`" not in section} == set(), command
        assert f'id="{command.replace(" ", "-")}"' in page


@pytest.fixture(scope="module")
def chromium(tmp_path_factory):
    if browser.CHROMIUM is None:
        pytest.skip("there is no Chromium to open the site with")
    with browser.page(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.mark.parametrize("width", [390, 1280])
def test_code_fits_its_page(chromium, site, width):
    wide = """[...document.querySelectorAll("pre, pre > code")]
        .filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.textContent.slice(0, 60))"""
    blocks = 0
    for page in sorted(site.rglob("*.html")):
        chromium.open(page, width)
        assert chromium.ask(wide) == [], page.name
        assert chromium.ask("document.documentElement.scrollWidth") <= width, page.name
        blocks += chromium.ask("document.querySelectorAll('pre > code').length")
    assert blocks > 100


def test_a_wide_table_scrolls_inside_its_own_box_on_a_phone(chromium, site):
    chromium.open(site / "comparison.html", 390)
    boxes = chromium.ask("""new Promise(resolve => setTimeout(() => resolve(
        [...document.querySelectorAll("article table")].map(table => {
            const box = table.closest(".md-typeset__scrollwrap"), cell = table.querySelector("tbody td")
            box.scrollLeft = 100
            return [box.scrollWidth, box.clientWidth, box.scrollLeft, cell.getBoundingClientRect().left
                    - box.getBoundingClientRect().left]
        })), 500))""")
    assert len(boxes) >= 2
    for content, width, moved, first in boxes:
        assert width < 390 < content
        # The names in the first column stay.
        assert (moved, round(first)) == (100, 1)


@pytest.mark.parametrize(("width", "columns"), [(390, 1), (1280, 3)])
def test_the_gallery_is_a_grid_of_cards_that_are_links(chromium, site, width, columns):
    chromium.open(site / "gallery" / "index.html", width)
    cards = chromium.ask("""[...document.querySelectorAll(".stories li")].map(card => {
        const box = card.getBoundingClientRect()
        const [picture] = [...card.querySelectorAll("img")].filter(each => each.offsetWidth)
        card.scrollIntoView()
        const seen = card.getBoundingClientRect()
        const there = document.elementFromPoint(seen.left + seen.width / 2, seen.top + seen.height - 5)
        return [Math.round(box.left), picture.naturalWidth > 0, there.closest("a")?.getAttribute("href")]
    })""")
    assert len(cards) == len(list((ROOT / "examples" / "gallery").glob("*.py"))) - 1
    assert len({left for left, _, _ in cards}) == columns
    assert all(is_drawn and (site / "gallery" / link).is_file() for _, is_drawn, link in cards)


@pytest.mark.parametrize("dark", [False, True])
def test_the_site_has_a_look_of_its_own_in_the_light_and_in_the_dark(chromium, site, dark):
    chromium.open(site / "index.html", 1280, dark)
    # Whoever chose once keeps that.
    chromium.ask("localStorage.clear()")
    chromium.open(site / "index.html", 1280, dark)
    assert chromium.ask("document.body.dataset.mdColorScheme") == ("slate" if dark else "default")
    colour, heading = chromium.ask("""[
        getComputedStyle(document.querySelector(".md-header")).borderBottomColor,
        getComputedStyle(document.querySelector("h1")).fontFamily]""")
    assert colour == ("rgb(251, 146, 60)" if dark else "rgb(178, 60, 10)")
    assert heading.startswith("ui-serif")
    seen = chromium.ask("""[...document.querySelectorAll(".picture img")]
        .filter(e => e.getClientRects().length).map(e => e.getAttribute("src"))""")
    ending = "-dark.svg#only-dark" if dark else ".svg#only-light"
    assert seen == [f"pictures/{name}{ending}" for name in ("movies", "navigation")]


@pytest.mark.skipif(browser.CHROMIUM is None, reason="there is no Chromium to open the site with")
def test_the_site_opens_from_the_disk_and_its_search_finds(site, tmp_path):
    with browser.page(tmp_path) as page:
        for name in ("index", "epsilon", "groups", "gallery/words", "gallery/charts", "cli"):
            page.open(site / f"{name}.html", width=400)
            assert page.ask("document.documentElement.scrollWidth") <= 400, name
            assert page.ask("[...document.images].every(image => image.complete && image.naturalWidth > 0)"), name
        page.open(site / "index.html")
        page.ask("document.querySelector('.md-search__button').click()")
        found = page.ask("""new Promise((resolve, reject) => {
            const inside = chosen => [...document.querySelectorAll("*")].flatMap(
                each => each.shadowRoot ? [...each.shadowRoot.querySelectorAll(chosen)] : [])
            const look = setInterval(() => {
                const [field] = inside("input"), links = inside("a[href*='.html']").map(link => link.href)
                if (field && field.value == "") {
                    field.value = "group privacy"
                    field.dispatchEvent(new InputEvent("input", {bubbles: true, composed: true}))
                }
                if (links.length) (clearInterval(look), resolve(links))
            }, 50)
            setTimeout(() => reject(Error("nothing is found")), 20000)
        })""")
        assert any("concepts.html" in link for link in found)
        assert [url for url in page.requests if not url.startswith(("file:", "data:", "about:"))] == []
        assert page.complaints == []

"""The documentation builds without a warning, from what the repository has, and asks no other host for anything."""

import re
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
        for picture in re.findall(r"<img\b[^>]*src=[\"']?([^\"' >]+)", page.read_text(encoding="utf-8")):
            assert picture.startswith("data:") or (page.parent / picture).is_file(), (page, picture)
            seen += 1
    assert seen > 5


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


def test_the_command_line_reference_has_every_command_and_option(site, monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "_build"))
    from command_line import reference

    text, page = reference(), (site / "cli.html").read_text(encoding="utf-8")
    commands = re.findall(r"^## (discreet.*)$", text, re.MULTILINE)
    assert {"discreet select", "discreet plan", "discreet budget init", "discreet budget export"} < set(commands)
    for command in commands:
        printed = run(sys.executable, "-m", "discreet", *command.split()[1:], "--help", folder=Path.cwd())
        section = text.partition(f"\n## {command}\n")[2].partition("\n## ")[0]
        options = {word for word in re.findall(r"^  (-[\w-]+)", printed, re.MULTILINE) if word != "-h"}
        assert {word for word in options if f"`{word}`" not in section} == set(), command
        assert f'id="{command.replace(" ", "-")}"' in page


@pytest.mark.skipif(browser.CHROMIUM is None, reason="there is no Chromium to open the site with")
def test_the_site_opens_from_the_disk_and_its_search_finds(site, tmp_path):
    with browser.page(tmp_path) as page:
        for name in ("index", "choosing", "groups", "gallery/words", "gallery/charts", "cli"):
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
                    field.value = "neighbours"
                    field.dispatchEvent(new InputEvent("input", {bubbles: true, composed: true}))
                }
                if (links.length) (clearInterval(look), resolve(links))
            }, 50)
            setTimeout(() => reject(Error("nothing is found")), 20000)
        })""")
        assert any("concepts.html" in link for link in found)
        assert [url for url in page.requests if not url.startswith(("file:", "data:", "about:"))] == []
        assert page.complaints == []

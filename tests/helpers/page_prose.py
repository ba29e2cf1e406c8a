"""The pages of the documentation as prose: blocks of text without code, sentences, links and code spans."""

import json
import re
from dataclasses import dataclass
from functools import cache

import yaml
from markdown_it import MarkdownIt

from site_pages import DOCS, ROOT

MADE = {"cli.md"}
"""Made from the program when the site is built. The page of the notebook is made then too, and read here from
`examples/chart.ipynb`."""

NOTEBOOK = "notebook.md"
CODE = "\N{OBJECT REPLACEMENT CHARACTER}"
"""Stands in prose for a code span, or for a character of the name of another page."""


@dataclass(frozen=True)
class Block:
    """A paragraph, list item, table cell or heading: its kind, its text, and for each character the link it is in.

    A code span is one character of the text, so that no rule about words applies to it.
    """

    kind: str
    text: str
    links: tuple[str | None, ...]

    @property
    def sentences(self):
        """The sentences, split after a full stop, a question mark or an exclamation mark and white space."""
        return [found for found in re.split(r"(?<=[.!?])[\"')\]]*\s+|(?<=[.!?][\"')\]])\s+", self.text) if found]


def all_pages():
    """The README and the pages by their names, in order."""
    found = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - MADE
    return ["README.md", *sorted(found | {NOTEBOOK})]


def nav_pages(*doors):
    """The pages of some doors of the navigation."""
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    pages = [page for entry in nav for door, listed in entry.items() if door in doors for page in listed]
    return [page if isinstance(page, str) else next(iter(page.values())) for page in pages]


@cache
def markdown(page):
    """The Markdown of a page; that of the notebook is the text of its cells."""
    if page == NOTEBOOK:
        cells = json.loads((ROOT / "examples" / "chart.ipynb").read_text(encoding="utf-8"))["cells"]
        parts = [("".join(cell["source"]), cell["cell_type"]) for cell in cells]
        return "\n\n".join(text if kind == "markdown" else f"```py\n{text}\n```" for text, kind in parts)
    text = ((ROOT if page == "README.md" else DOCS) / page).read_text(encoding="utf-8")
    # The body of an admonition is indented.
    return re.sub(
        r"^!!! .*\n((?:    .*\n|\n)+)", lambda found: re.sub("^    ", "", found[1], flags=re.M), text, flags=re.M
    )


@cache
def parse(page):
    return MarkdownIt("commonmark").enable("table").parse(markdown(page))


@cache
def blocks_of(page):
    """The blocks of a page in order."""
    found, kinds = [], []
    names = {"heading": "heading", "th": "cell", "td": "cell", "list_item": "item", "paragraph": "paragraph"}
    for token in parse(page):
        name = names.get(token.type.rpartition("_")[0])
        if name and token.nesting == 1:
            kinds.append(name)
        elif name and token.nesting == -1:
            kinds.pop()
        elif token.type == "inline":
            kind = "item" if kinds[-2:] == ["item", "paragraph"] else kinds[-1]
            found.append(make_block(kind, token.children))
    # A line with three colons has mkdocstrings insert a docstring.
    return [block for block in found if not block.text.startswith(":::")]


def make_block(kind, children):
    text, links, link = "", [], None
    for child in children:
        if child.type in ("link_open", "link_close"):
            link = child.attrGet("href") if child.type == "link_open" else None
            continue
        piece = {"text": child.content, "softbreak": " ", "hardbreak": " ", "code_inline": CODE}.get(child.type, "")
        text += piece
        links += [link] * len(piece)
    return Block(kind, text, tuple(links))


@cache
def code_spans(page):
    """The code spans of a page, its headings and tables included, in order."""
    inline = [token for token in parse(page) if token.type == "inline"]
    return [child.content for token in inline for child in token.children if child.type == "code_inline"]


@cache
def code_blocks(page):
    """The fenced and indented code of a page as one text."""
    return "\n".join(token.content for token in parse(page) if token.type in ("fence", "code_block"))

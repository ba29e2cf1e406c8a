"""Count the words of the documentation that are prose, by door of the navigation.

    python tools/words.py                  the pages as they are
    python tools/words.py --rev 8dbb6d4    those of a revision
    python tools/words.py --pages          each page, too

A word is what stands between white space and has a letter or a digit. Not counted: front matter; code, samples and
formulas that stand between fences or are indented; the dark variant of a picture, whose text is that of the light one;
names whose docstrings are inserted; comments and tags of HTML; tables that a script makes; and rows of a table in which
most cells have no letter, because a script measured them. All else counts: tables of text, formulas within a sentence,
and the proofs. The line "without the appendices" leaves out the pages whose lists and tables scripts write. The last
line counts the pages by the same rules as they were before they were written anew for their readers.
"""

from __future__ import annotations

import argparse
import re
import subprocess
from collections import Counter
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
NO_PROSE = re.compile(
    r"\A---\n.*?^---$|^( *)```.*?^ *```$|<!-- (?:made by|printed by|tables:) .*?<!-- end(?: of tables)? -->|<!--.*?-->"
    r"|</?[a-z]+\b[^<>\n]*>|!\[[^\]]*\]\([^)\s]*#only-dark\)|^::: [^\n]*(?:\n +[^\n]*)*",
    re.DOTALL | re.MULTILINE,
)
BEFORE = "54a399c"
"""The last revision before the pages were written anew for their readers. It has no appendices."""


def read_file(name: str, revision: str | None) -> str:
    """Return the text of a file as it is, or as it was in a revision."""
    return (ROOT / name).read_text(encoding="utf-8") if revision is None else ask_git("show", f"{revision}:{name}")


def ask_git(*words: str) -> str:
    """Return what git prints."""
    return subprocess.run(["git", *words], cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout


def list_pages(revision: str | None) -> list[str]:
    """Return the names of the pages that the repository has."""
    listed = ["ls-files", "docs"] if revision is None else ["ls-tree", "-r", "--name-only", revision, "docs"]
    return [name for name in ask_git(*listed).split() if name.endswith(".md")]


def count_pages(revision: str | None) -> dict[str, int]:
    """Return the number of words of each page."""
    return {page: count_words(read_file(page, revision)) for page in list_pages(revision)}


def count_words(text: str) -> int:
    """Return the number of words of a page that are prose."""
    lines = [line for line in leave_out_indented(NO_PROSE.sub("", text)) if not is_measured(line)]
    return sum(bool(re.search(r"[^\W_]", word)) for line in lines for word in line.split())


def leave_out_indented(text: str) -> list[str]:
    """Return the lines of a page without indented code; lists, notes and admonitions may indent their paragraphs."""
    kept, holds_paragraphs, is_code, after_blank = [], False, False, True
    for line in text.splitlines():
        if line.strip() and not line.startswith(" "):
            holds_paragraphs = bool(re.match(r"[-*+] |\d+\. |!!! |\?\?\? |\[\^", line))
        is_code = line.startswith("    ") and not holds_paragraphs and (after_blank or is_code)
        after_blank = not line.strip()
        if not is_code:
            kept.append(line)
    return kept


def is_measured(line: str) -> bool:
    """Return True for a row of a table in which most cells have no letter."""
    cells = line.strip().strip("|").split("|") if line.lstrip().startswith("|") else []
    return sum(not re.search("[A-Za-z]", cell) for cell in cells) * 2 > len(cells)


def read_doors(revision: str | None) -> dict[str, str]:
    """Return the door of each page, read from mkdocs.yml; the appendices are a door of their own."""
    found = {}
    for entry in yaml.safe_load(read_file("mkdocs.yml", revision))["nav"]:
        for door, listed in entry.items():
            for page in [listed] if isinstance(listed, str) else listed:
                name = page if isinstance(page, str) else next(iter(page.values()))
                found[f"docs/{name}"] = "Appendices" if name.startswith("appendix/") else door
    return found


def main() -> None:
    """Print the words of each door and of all."""
    parser = argparse.ArgumentParser(description="Count the words of the documentation that are prose.")
    parser.add_argument("--rev", help="a revision of the repository")
    parser.add_argument("--pages", action="store_true", help="print the words of each page, too")
    options = parser.parse_args()
    counts = count_pages(options.rev)
    doors, by_door = read_doors(options.rev), Counter[str]()
    for page, words in counts.items():
        by_door[doors.get(page, "no door")] += words
    total = sum(counts.values())
    totals = [("in all", total), ("without the appendices", total - by_door["Appendices"])]
    if ask_git("rev-list", "--no-walk", "--ignore-missing", BEFORE):  # a shallow clone does not have it
        totals.append((f"before, at {BEFORE}", sum(count_pages(BEFORE).values())))
    for name, words in [*(counts.items() if options.pages else ()), *by_door.items(), *totals]:
        print(f"{name:36}{words:>8,}")


if __name__ == "__main__":
    main()

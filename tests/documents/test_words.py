"""The words of the pages: names that exist, plain sentences, a first paragraph that says what for, and linked terms.

The rules hold for the README and for every page under docs/. Each failure names the page and the words.
"""

import pkgutil
import re
import runpy
from functools import cache
from pathlib import Path

import pytest

import words
from code_names import has_member, known_names, names_of, package_classes
from page_prose import CODE, MADE, NOTEBOOK, all_pages, blocks_of, code_blocks, code_spans, markdown, nav_pages
from site_pages import DOCS, ROOT

PAGES = all_pages()
every_page = pytest.mark.parametrize("page", PAGES)


def check(page, found):
    """Fails with one line for each fault of a page, and nothing else."""
    if found:
        pytest.fail(f"{page}:\n" + "\n".join(f"  {each}" for each in dict.fromkeys(found)), pytrace=False)


# Sentences.

OPENINGS = re.compile(r"[\"'(*]*(What|Whatever|Where|Wherever|Which|Whichever|Who|Whoever|Whose|Whether|How)\b")
"""Words that open a question, or a relative clause in the place of a subject. "However" is another word."""


def riddles(block):
    """The sentences that open with such a word and are no questions.

    Headings are not sentences. A table cell or a list item without a full stop is a noun phrase ("What it costs"). A
    sentence that opens with a link begins with the name of a page.
    """
    if block.kind == "heading" or (block.kind in ("cell", "item") and not re.search(r"[.!?]", block.text)):
        return []
    begin = 0
    found = []
    for sentence in block.sentences:
        begin = block.text.index(sentence, begin)
        if OPENINGS.match(sentence) and block.links[begin] is None and not sentence.rstrip("\"')* ").endswith("?"):
            found.append(sentence.replace(CODE, "`...`")[:110])
    return found


@every_page
def test_no_sentence_opens_with_a_relative_clause(page):
    found = [sentence for block in blocks_of(page) for sentence in riddles(block)]
    check(page, found)


def test_no_help_of_a_command_opens_with_a_relative_clause():
    reference = runpy.run_path(str(DOCS / "_build" / "command_line.py"))["reference"]()
    sentences = re.split(r"(?<=[.:?|])\s+", reference)
    check("cli.md", [each for each in sentences if OPENINGS.match(each) and not each.endswith("?")])


# First paragraphs.


@pytest.mark.parametrize("page", nav_pages("Learn", "Do"))
def test_a_page_to_learn_or_do_says_what_you_will_have_and_how_long_it_takes(page):
    if page not in PAGES:
        pytest.skip("the page is not there yet")
    first = next(block.text for block in blocks_of(page) if block.kind == "paragraph")
    rules = {
        "what you have": r"\byou (will )?have\b|^At the end of this page\b",
        "how long it takes": r"\b(minutes?|hours?)\b",
    }
    check(page, [f"does not say {what}: {first}" for what, pattern in rules.items() if not re.search(pattern, first)])


@pytest.mark.parametrize("page", ["index.md", *nav_pages("Understand", "Look up")])
def test_any_other_page_says_how_long_it_takes(page):
    """The appendices are looked up, and the first page of the gallery says it for its stories."""
    if page.startswith("appendix/") or page not in PAGES:
        pytest.skip("an appendix is not read from top to bottom, nor is the reference that the program prints")
    first = next(block.text for block in blocks_of(page) if block.kind == "paragraph")
    check(page, [] if re.search(r"\b(minutes?|hours?)\b", first) else [f"does not say how long it takes: {first}"])


# Terms.

TERMS = {
    "accountant": r"accountants?",
    "composition": "composition",
    "contribution bound": r"contribution bounds?",
    "delta": r"(?-i:deltas?)",  # Delta is a sensitivity in the proofs and in the paper
    "differencing attack": r"differencing attacks?",
    "domain": r"domains?",
    "epsilon": r"(?<!\^)epsilons?",  # not in a formula
    "group privacy": "group privacy",
    "ledger": r"ledgers?",
    "neighbouring datasets": "neighbouring datasets",
    "partition selection": "partition selection",
    "post-processing": "post-processing",
    "privacy loss": r"privacy loss(es)?",
    "sensitivity": r"sensitivit(y|ies)",
    "user-level privacy": "user-level privacy",
    "zCDP": "zCDP",
}
"""The core terms of the glossary, as they are written in prose."""

UNLINKED = {"glossary.md", NOTEBOOK}
"""The glossary itself, and the notebook, which is read in its own program."""


def first_use(page, pattern):
    """The block and the place of the first use of a term in prose, outside of the names of other pages; or None."""
    for block in blocks_of(page):
        if block.kind in ("paragraph", "item"):
            other = [link is not None and "glossary.md#" not in link for link in block.links]
            prose = "".join(CODE if named else sign for sign, named in zip(block.text, other, strict=True))
            if found := re.search(rf"\b{pattern}\b", prose, re.IGNORECASE):
                return block, found.start()
    return None


@pytest.mark.parametrize("page", [page for page in PAGES if page not in UNLINKED])
def test_the_first_use_of_a_term_links_to_the_glossary(page):
    missing = []
    for term, pattern in TERMS.items():
        use = first_use(page, pattern)
        if use and use[0].links[use[1]] is None:
            missing.append(f"{term}: {use[0].text[max(0, use[1] - 40) : use[1] + 40].replace(CODE, '`...`')}")
    check(page, missing)


def test_links_to_the_glossary_find_their_terms():
    headings = re.findall(r"^## (.*)$", markdown("glossary.md"), re.MULTILINE)
    anchors = {heading.lower().replace(" ", "-") for heading in headings}
    assert anchors >= {term.lower().replace(" ", "-") for term in TERMS}
    assert headings == sorted(headings, key=str.lower)
    for page in PAGES:
        cited = set(re.findall(r"glossary\.md#([\w-]+)", markdown(page)))
        assert cited <= anchors, (page, cited - anchors)


# Names of code.

OTHERS = {
    *("AggregateParams", "GaussianPartitionSelection", "GeometricPartitionSelection", "KeySet"),
    *("LaplacePartitionSelection", "MaxGroupsPerID", "ThresholdingMechanism", "auto_explain"),
    *("create_partition_selection_measurement", "dp_engine.py", "dp_topk", "drop_duplicates", "eval.py"),
    "exponential.py",
    *("get_groups", "inverse_cdf.py", "max_partitions_contributed", "mechanisms.py", "partition_selection.py"),
    *("series.py", "to_numeric", "visit_get_groups"),
}
"""Names and files of other programs that stand on a page and nowhere in our code."""

TOP = ("src", "tests", "docs", "tools", "benchmarks", "examples", "fuzz", "mutation", ".ci")
IDENTIFIER = r"[A-Za-z_]\w*"


@cache
def options():
    """The options of every command, read from the reference of the command line."""
    reference = runpy.run_path(str(DOCS / "_build" / "command_line.py"))["reference"]
    sections = re.split(r"^## (discreet.*)$", reference(), flags=re.MULTILINE)[1:]
    return {
        name: set(re.findall(r"`(--?[\w-]+)`", text)) | {"--help", "-h"}
        for name, text in zip(sections[::2], sections[1::2], strict=True)
    }


@cache
def file_names():
    """The names of all files under the folders of the repository, and of those beside them."""
    return {path.name for folder in TOP for path in (ROOT / folder).rglob("*")} | {path.name for path in ROOT.iterdir()}


def faults(page, span):
    """The reasons why a code span names something that does not exist."""
    words = span.split()
    if not words or span in OTHERS:
        return []
    if words[0] == "discreet" and len(words) > 1:
        return command_faults(words)
    if words[0].startswith("--"):
        every = set().union(*options().values())
        return [f"no command has the option {word}" for word in re.findall(r"--[a-z][\w-]*", span) if word not in every]
    if words[0] == "make" and len(words) > 1:
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        return [] if "=" in words[1] or f"\n{words[1]}:" in makefile else [f"make has no target {words[1]}"]
    if len(words) > 1 and not re.match(rf"{IDENTIFIER}(\.\w+)*\(", span):
        return [fault for word in words for fault in path_faults(page, word.strip(",;"))]
    return path_faults(page, span) or name_faults(page, span)


def command_faults(words):
    name = " ".join(words[: 3 if words[1] == "budget" and len(words) > 2 else 2])
    if words[1].isupper() or words[1].startswith("-"):
        name = "discreet"
    if name not in options():
        return [f"there is no command {name}"]
    given = {word.partition("=")[0] for word in words if re.match(r"--[a-z]", word)}
    return [f"{name} has no option {option}" for option in sorted(given - options()[name])]


def path_faults(page, span):
    """A path in a folder of the repository or of the package must exist, and so must every file of Python.

    A file that the code of the page mentions is the reader's own.
    """
    if not re.fullmatch(r"[\w.-]+(/[\w.-]+)*/?", span) or not ("/" in span or span.endswith(".py")):
        return []
    layers = {path.name for path in (ROOT / "src" / "discreet").iterdir() if path.is_dir()}
    ours = span.partition("/")[0] in {*TOP, *layers} or span.endswith(".py")
    roots = (ROOT, ROOT / "src" / "discreet", ROOT / "src", DOCS, (DOCS / page).parent)
    exists = any((root / span).exists() for root in roots) or ("/" not in span and span in file_names())
    made = span.removeprefix("docs/") in MADE | {NOTEBOOK} or span.startswith("docs/pictures")
    if exists or made or not ours or span in code_blocks(page) or re.fullmatch(r"\.\w+", span):  # an ending alone
        return []
    return [f"there is no file {span}"]


def name_faults(page, span):
    """A dotted name of `discreet` resolves, a class of the package has the member, any other name occurs in the code.

    Names are those that look like it: with an underscore, a dot, a capital inside, a call, or a keyword.
    """
    found = re.match(rf"({IDENTIFIER}(?:\.{IDENTIFIER})*)(\(.*|=.*)?$", span, re.DOTALL)
    if not found or (re.search(r"\.(\w{2,5})$", found[1]) and path_like(found[1])):
        return []
    name, rest = found.groups()
    parts = name.split(".")
    if name.isupper() and rest:  # a variable of a shell or of make
        return []
    if parts[0] == "discreet":
        return [] if len(parts) == 1 or resolves(name) else [f"{name} does not exist"]
    if len(parts) > 1 and parts[0] in package_classes()[0] and parts[0][0].isupper():
        return [] if has_member(parts[0], parts[1]) else [f"the class {parts[0]} has no {parts[1]}"]
    named = "_" in name or "." in name or rest or re.search(r"[a-z][A-Z]", name)
    known = known_names() | OTHERS | set(re.findall(r"\w+", code_blocks(page)))
    return [f"{part} occurs nowhere in the code" for part in parts if part not in known] if named else []


def path_like(name):
    """True for a file of the reader's such as `charts.toml`."""
    return Path(name).suffix[1:] in {
        *(
            "csv",
            "tsv",
            "json",
            "jsonl",
            "npy",
            "parquet",
            "toml",
            "db",
            "yaml",
            "yml",
            "html",
            "md",
            "txt",
            "log",
            "gz",
        ),
        *("svg", "png", "ddb", "zst", "cff", "ipynb", "css", "js", "zip", "tex", "com", "org"),
    }


def resolves(name):
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found = pkgutil.resolve_name(".".join(parts[:end]))
        except (ImportError, AttributeError):
            continue
        rest = parts[end:]
        # A field of a dataclass without a default is no attribute of its class.
        return not rest or (isinstance(found, type) and len(rest) == 1 and has_member(found.__name__, rest[0]))
    return False


@pytest.mark.long
@every_page
def test_every_code_name_on_a_page_exists(page):
    found = [f"`{span}`: {fault}" for span in code_spans(page) for fault in faults(page, span)]
    check(page, found)


@pytest.mark.parametrize(
    ("page", "span"),
    [
        ("design.md", "Request.select_items"),
        ("design.md", "draw_any"),
        ("design.md", "release/nowhere.py"),
        ("design.md", "exact/nowhere/"),
        ("design.md", "discreet.top_q"),
        ("design.md", "discreet.Guarantee.sigma"),
        ("design.md", "make nothing"),
        ("tutorial.md", "discreet selekt"),
        ("tutorial.md", "discreet select --no-such"),
        ("tutorial.md", "--no-such"),
    ],
)
def test_a_name_that_does_not_exist_is_found(page, span):
    assert faults(page, span)


@every_page
def test_names_in_a_file_are_defined_there(page):
    """Both "`name` in `file.py`" and "`file.py`: `name`, `other`"."""
    text = markdown(page)
    named = [(path, name) for name, path in re.findall(r"`([\w.]+)` in\s+`([\w/]+\.py)`", text)]
    for path, names in re.findall(r"`([\w/]+\.py)`:\s+((?:`[\w.]+`(?:,\s+| and )?)+)", text):
        named += [(path, name) for name in re.findall(r"`([\w.]+)`", names)]
    missing = []
    for path, name in named:
        file = next((root / path for root in (ROOT, ROOT / "src" / "discreet") if (root / path).is_file()), None)
        if file is None or not set(name.split(".")) <= names_of(file).defined:
            missing.append(f"{name} in {path}")
    check(page, missing)


# References from the sources.


def test_the_sources_cite_sections_that_are_there():
    cited, missing = 0, []
    for path in (ROOT / "src").rglob("*.py"):
        text = re.sub(r"\n\s*(# )?", " ", path.read_text(encoding="utf-8"))
        for page, number in re.findall(r"docs/([\w/-]+\.md)(?:,? (?:section )?(\d+(?:\.\d+)?)\b)?", text):
            cited += bool(number)
            if not (DOCS / page).is_file():
                missing.append(f"{path.relative_to(ROOT)}: docs/{page}")
            elif number and number not in sections(page):
                missing.append(f"{path.relative_to(ROOT)}: docs/{page}, section {number}")
        # A section without a page is one of the proofs.
        for number in re.findall(r"\((?:section )(\d+(?:\.\d+)?)\)", text):
            cited += 1
            if number not in sections("proofs.md"):
                missing.append(f"{path.relative_to(ROOT)}: section {number}")
    check("src", missing)
    assert cited > 25


def sections(page):
    """The numbers of the headings of a page."""
    return set(re.findall(r"^#+ (\d+(?:\.\d+)?)\.? ", markdown(page), re.MULTILINE))


# How many there are.


def test_words_are_counted_once_without_code_and_figures():
    page = """# Two words

<!-- not seen --> One, two and `three` = 4.

```python
nothing = "of this"
```

| name | 2024 | 2025 |
| --- | --- | --- |
| law | 5 | 6 |
| a law | in words | 7 |

![A picture](law.svg#only-light)
![A picture](law.svg#only-dark)

Then a formula:

    Pr[A] = p
    p < 1

::: discreet.top_k
    options: {members: false}

- an item

    of two paragraphs
"""
    assert words.count_words(page) == 22

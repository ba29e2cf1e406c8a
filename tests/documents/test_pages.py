"""Every snippet of the pages runs as printed, from top to bottom, and prints what the page says."""

import contextlib
import io
import pkgutil
import re

import pytest

import discreet
from site_pages import DOCS, ROOT, blocks, run, with_programs

PAGES = [
    *("index.md", "tutorial.md", "concepts.md", "discovery.md", "groups.md"),
    *("epsilon.md", "mechanisms.md", "private-plan.md"),
    *("check.md", "messy.md", "own-mechanism.md", "publish.md", "quality.md", "list.md", "statements.md"),
    *("gallery/index.md", "gallery/messages.md"),
]
BY_HAND = {
    *("mkdir canteen", "cd canteen", "python3 -m venv .venv", ". .venv/bin/activate"),
    "python3 -m venv .venv && . .venv/bin/activate && pip install .",
}


SLOW = {
    "check.md", "discovery.md", "epsilon.md", "gallery/index.md", "groups.md", "list.md", "messy.md",
    "own-mechanism.md", "private-plan.md", "publish.md", "quality.md",
}  # fmt: skip
"""What draws so often, or calls so many programs, that it waits for the long tests."""


@pytest.mark.some(1)
@pytest.mark.slow
@pytest.mark.parametrize(
    "page", [pytest.param(page, marks=pytest.mark.long) if page in SLOW else page for page in PAGES]
)
def test_a_page_runs_as_printed(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    (tmp_path / "path" / "to").mkdir(parents=True)
    (tmp_path / "path" / "to" / "discreet").symlink_to(ROOT)
    environment, names, printed = with_programs(tmp_path), {}, ""
    for language, title, text in blocks(page):
        if title == "install":
            assert set(text.splitlines()) - {"pip install path/to/discreet"} <= BY_HAND
        elif language == "sh":
            code = None if title == "refused" else 0
            printed = run("bash", "-euo", "pipefail", "-c", text, folder=tmp_path, environment=environment, code=code)
        elif language == "python":
            printed = python(page, text, names)
        elif title == "prints":
            assert text == printed
        else:
            assert text.startswith("--8<-- "), text


def python(page, text, names):
    """Runs a block, and holds what it prints against the comments behind its calls of print."""
    with contextlib.redirect_stdout(io.StringIO()) as out:
        exec(compile(text, page, "exec"), names)  # noqa: S102  # our own page
    lines = out.getvalue().splitlines()
    for stated in re.findall(r"^print\(.*\) +# ([0-9A-Z].*)$", text, re.MULTILINE):
        assert stated in lines
    return out.getvalue()


def test_the_pages_that_run_are_those_with_snippets():
    """But for those that are made of others, or have tests of their own."""
    elsewhere = {
        *("attacks.md", "budget.md", "databases.md", "engines.md", "evidence.md", "integrations.md"),
        *("known-limits.md", "appendix/mutants.md", "paper.md", "scale.md", "schedule.md", "sklearn.md"),
    }
    others = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - elsewhere - set(PAGES)
    assert [page for page in others if any(language in ("sh", "python") for language, _, _ in blocks(page))] == []


def test_the_table_of_epsilons_is_what_the_snippet_prints():
    page = (DOCS / "concepts.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([\d.]+) \| ([\d.]+) \| ([\d.]+%) \|$", page, re.MULTILINE)
    [text] = [text for language, _, text in blocks("concepts.md") if language == "python"]
    assert python("concepts.md", text, {}).splitlines() == [" ".join(row) for row in rows]
    assert len(rows) == 6


@pytest.mark.parametrize("page", ["comparison.md", "appendix/discovery.md"])
def test_every_statement_of_a_comparison_has_a_source(page):
    text, _, sources = (DOCS / page).read_text(encoding="utf-8").partition("## Sources")
    cited = {int(number) for number in re.findall(r"\[(\d+)\]", text)}
    listed = [int(number) for number in re.findall(r"^(\d+)\. ", sources, re.MULTILINE)]
    assert listed == list(range(1, max(cited) + 1))
    assert cited == set(listed)
    assert "November 2026" in text


def test_the_list_of_mutants_names_code_that_is_there():
    page = (DOCS / "appendix" / "mutants.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^- `([\w.]+:[\w.]+)`(?!, gone since)", page, re.MULTILINE))
    assert len(named) > 25
    for name in named:
        assert pkgutil.resolve_name(f"discreet.{name}"), name


def test_the_proofs_name_code_that_is_there():
    page = (DOCS / "proofs.md").read_text(encoding="utf-8")
    named = re.findall(r"`([\w/]+\.py)`(?::((?: `[\w.]+`,?)+))?", page)
    assert len(named) > 15
    for path, names in named:
        file = ROOT / path if path.startswith("tests/") else ROOT / "src" / "discreet" / path
        text = file.read_text(encoding="utf-8")
        for name in re.findall(r"[\w.]+", names):
            assert re.search(rf"(def|class) {name.rpartition('.')[2]}\b", text), (path, name)


def test_the_table_of_thresholds_is_what_is_planned():
    page = (DOCS / "discovery.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (\d+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|$", page, re.MULTILINE)
    assert len(rows) == 4
    for most, *stated in rows:
        found = discreet.discovered("1e-8", int(most))
        assert [f"{found.plan(20, epsilon).threshold:,}" for epsilon in ("1/2", 1, 2, 4)] == stated


def test_who_has_no_list_finds_the_page():
    """The errors about a missing domain name it too, which tests of events and of the command line look at."""
    assert (DOCS / "discovery.md").read_text(encoding="utf-8").startswith("# Items without a list\n")
    assert re.search(r"no list\b.*?\(docs/discovery\.md\)", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)

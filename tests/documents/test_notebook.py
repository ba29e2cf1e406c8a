"""The notebook of the examples runs from top to bottom, and says what it said when it was last run and stored."""

import json
import re

import nbformat
import pytest

from site_pages import DOCS, ROOT

NOTEBOOK = ROOT / "examples" / "chart.ipynb"
DRAWN = {"release", "chart"}
"""The cells whose outputs are drawn by chance, or made of what was."""


@pytest.fixture
def page_maker(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "_build"))
    import notebook_page

    return notebook_page


def outputs(notebook):
    """What each cell of code printed, returned or drew, by the id of the cell."""
    return {cell["id"]: cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code"}


@pytest.mark.long
@pytest.mark.slow
def test_it_runs_and_says_what_is_stored(page_maker, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    ran, stored = outputs(page_maker.run_notebook()), outputs(nbformat.read(NOTEBOOK, as_version=4))
    assert {name: found for name, found in ran.items() if name not in DRAWN} == {
        name: found for name, found in stored.items() if name not in DRAWN
    }
    [printed], [before] = ran["release"], stored["release"]
    assert (
        re.sub(r"[\d,]+", "#", printed["text"]).splitlines()[-2:]
        == re.sub(r"[\d,]+", "#", before["text"]).splitlines()[-2:]
    )
    assert len(re.findall(r"[\d,]+ to [\d,]+$", printed["text"], re.MULTILINE)) == 10
    [chart] = ran["chart"]
    assert len(chart["data"]["image/png"]) > 10_000


def test_the_page_has_every_cell_and_output(page_maker, tmp_path):
    page_maker.write_page(tmp_path)
    page, cells = (tmp_path / "notebook.md").read_text(encoding="utf-8"), json.loads(NOTEBOOK.read_text())["cells"]
    assert [cell["id"] for cell in cells if "".join(cell["source"]) not in page] == []
    assert page.count("\n```text\n") == 3
    assert "![What the cell above draws](pictures/notebook-chart.png)" in page
    assert (tmp_path / "pictures" / "notebook-chart.png").read_bytes().startswith(b"\x89PNG")
    assert "\n> **What is promised**\n" in page

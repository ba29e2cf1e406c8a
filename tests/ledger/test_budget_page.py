"""Everything on docs/budget.md runs as printed, from top to bottom, and prints what the comments say."""

import re
import shlex
from pathlib import Path

import pytest

from discreet import cli

PAGE = (Path(__file__).parents[2] / "docs" / "budget.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("scores.csv").write_text("item,score\n" + "".join(f"film {i},{i * i}\n" for i in range(40)))


def test_the_page_runs_as_printed(monkeypatch, capsys):
    names: dict[str, object] = {}
    for language, block in BLOCKS:
        if language == "python":
            exec(compile(block, "budget.md", "exec"), names)  # noqa: S102  # our own page
        for line in block.splitlines() if not language else []:
            monkeypatch.setattr("sys.argv", shlex.split(line))
            assert cli.main() == 0, line
    printed = capsys.readouterr().out
    assert {language for language, _ in BLOCKS} == {"", "python"}
    refused = "dataset must be that of the ledger, 'ratings', not 'orders'"
    fits_not = "epsilon 5 does not fit: 2.4 of 3 is left, and nothing was drawn"
    for stated in ("3/5 12/5", "26/5 1.7", refused, fits_not):
        assert f"{stated}\n" in printed
        assert f"# {stated}" in PAGE
    assert "\n2\n" in printed
    assert Path("budget.json").exists()
